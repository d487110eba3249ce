"""Requests from a file of prompts of one's own.

| order      | rows are taken                                    | from                                                      |
| ---------- | ------------------------------------------------- | --------------------------------------------------------- |
| `file`     | as they stand in the file, over and over          | row `skip` on                                             |
| `shuffled` | each once, in a drawn order; then in another      | `random.Random(seed).shuffle` of all rows, for every pass |
| `sampled`  | each time any of them                             | `random.Random(seed).randrange(rows)`                     |

A row that says nothing of its answer's length has one drawn from the plan's `output_tokens`, by a `random.Random(seed)` of its
own, row by row.

A prompt is sent as it is, but for the nonces: a line with the request's own at the head of its first user message, and where
messages stand before that, a line with the run's at the head of the first of them. So system prompts are shared within a run
and not with another. Its length is what the tokenizer counts of all its messages' texts, nonces included; what the chat
template adds is not counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, repeat, takewhile
from typing import TYPE_CHECKING

import numpy as np

from inferometer.plan.lengths import Distribution
from inferometer.workload import lengths
from inferometer.workload.context_limit import SLACK, Room
from inferometer.workload.nonces import nonces
from inferometer.workload.parallel import in_order
from inferometer.workload.prompt_file import Chat, PromptFile, Row, segments
from inferometer.workload.prompts import NO_IDS, Contexts, Prompt, read
from inferometer.workload.sessions import SessionTokens
from inferometer.workload.turn_schedule import Place

if TYPE_CHECKING:
    from inferometer.plan.workload import AnyRows
    from inferometer.workload.tokenizers import Tokenizer


def numbers(spec: AnyRows, rows: int, skip: int = 0, contexts: Contexts | None = None) -> Iterator[int]:
    """Rows of the file in the order in which they are sent, without end. Those that `contexts` has to cover go first."""
    yield from () if contexts is None else (row for row, _ in contexts.cover)
    rng = random.Random(spec.seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
    if spec.order == "sampled":
        while True:
            yield rng.randrange(rows)
    order = list(range(rows))
    if spec.order == "file":
        yield from islice(order, skip % rows, None)
    while True:
        if spec.order == "shuffled":
            rng.shuffle(order)
        yield from order


def contexts(spec: AnyRows, file: PromptFile, n: int, salt: int) -> Contexts:
    """What several of the first `n` rows begin with before anything that a user says: one row for each."""
    if not file.systems:
        return Contexts(spec.seed, salt)
    sent = list(islice(numbers(spec, len(file)), n))
    first: dict[Chat, int] = {}
    seen: Counter[Chat] = Counter()
    for number, row in zip(sent, file.rows(sent), strict=True):
        begin = tuple(takewhile(lambda one: one[0] != "user", row.chat))
        if begin:
            first.setdefault(begin, number)
            seen[begin] += 1
    return Contexts(spec.seed, salt, [(number, 0) for begin, number in first.items() if seen[begin] > 1])


def generate(
    spec: AnyRows,
    tokenizer: Tokenizer,
    file: PromptFile,
    n: int,
    salt: int,
    skip: int = 0,
    contexts: Contexts | None = None,
) -> Iterator[Prompt]:
    """The first `n` prompts, one after the other. `skip`: rows that the order `file` begins behind. `contexts`: whose system
    prompts they have, if not their own. Raises PlanError."""
    marks: Iterator[str] = repeat("", n)
    common = ""
    if not spec.repeatable_prompts:
        marks = nonces(tokenizer, salt, "text", 0, n)
        [common] = nonces(tokenizer, salt if contexts is None else contexts.salt, "text", -1, 1)
    classes = _numbered(file)
    outputs = _outputs(spec.output_tokens, spec.seed)

    def prompt(request: tuple[Row, str, int]) -> Prompt:
        row, mark, output = request
        chat = _marked(row.chat, mark, common)
        sent = sum(len(tokenizer.encode(text)) for _, text in chat)
        texts = [text for role, text in chat] if not mark else _before(chat, mark)
        alone = len(chat) == 1 and chat[0][0] == "user"
        return Prompt(
            "\n".join(text for _, text in chat), sent, sent, row.output_tokens or output, mark,
            messages=None if alone else chat,
            request_class=None if row.class_ is None else classes[row.class_],
            fields=row.fields or None,
            bare="\n".join(text for _, text in row.chat),
            timeout_s=row.time_limit_s,
            key=np.concatenate([read(tokenizer, text) for text in texts]),
        )  # fmt: skip

    rows = file.rows(islice(numbers(spec, len(file), skip, contexts), n))
    yield from in_order(prompt, zip(rows, marks, outputs, strict=False), tokenizer.lanes)


def _numbered(file: PromptFile) -> dict[str, int]:
    return {name: number for number, name in enumerate(file.classes)}


def turns(spec: AnyRows, file: PromptFile, skip: int = 0, contexts: Contexts | None = None) -> Iterator[int]:
    """How many turns the rows have, in the order in which they are taken, without end."""
    return (file.turns[number] for number in numbers(spec, len(file), skip, contexts))


def conversations(
    spec: AnyRows,
    tokenizer: Tokenizer,
    file: PromptFile,
    places: Sequence[Place],
    salt: int,
    skip: int = 0,
    contexts: Contexts | None = None,
) -> Iterator[Prompt]:
    """Rows as sessions: the prompts of these places. The nonces are those of `generate`, in the first turn of each row.

    Answers in the file are the replies that later turns repeat, unless the plan asks for the server's. Raises PlanError for a
    turn in which no user says anything.
    """
    starts = [at for at, place in enumerate(places) if place.turn == 0]
    n = len(starts)
    marks: Iterator[str] = repeat("", n)
    common = ""
    if not spec.repeatable_prompts:
        marks = nonces(tokenizer, salt, "text", 0, n)
        [common] = nonces(tokenizer, salt if contexts is None else contexts.salt, "text", -1, 1)
    classes, outputs = _numbered(file), _outputs(spec.output_tokens, spec.seed)
    tokens_so_far = SessionTokens()
    sent_rows = list(islice(numbers(spec, len(file), skip, contexts), n))

    def count(messages: Chat) -> int:
        return sum(len(tokenizer.encode(text)) for _, text in messages)

    ends = [*starts[1:], len(places)]
    for start, end, number, row, mark in zip(
        starts, ends, sent_rows, file.rows(sent_rows), marks, strict=True
    ):
        bare = segments(row.chat)
        if any(all(role != "user" for role, _ in plain) for plain, _ in bare):
            raise file.problem(number, "messages", "hold a turn without a message of role user")
        for place, (plain, answer) in zip(places[start:end], bare, strict=False):
            own = _marked(plain, mark, common) if place.turn == 0 else plain
            sent, output = count(own), row.output_tokens or next(outputs)
            recorded = answer if spec.replies == "recorded" else None
            first = [
                read(tokenizer, text) for text in (_before(own, mark) if mark else [one for _, one in own])
            ]
            prompt = Prompt(
                "\n".join(text for _, text in own), sent, sent, output, mark if place.turn == 0 else "",
                messages=own,
                request_class=None if row.class_ is None else classes[row.class_],
                fields=row.fields or None,
                bare="\n".join(text for _, text in plain),
                key=np.concatenate(first) if place.turn == 0 else NO_IDS,
            )  # fmt: skip
            yield tokens_so_far.turn(prompt, place, recorded, output if recorded is None else count(recorded))


def _outputs(length: Distribution | None, seed: int) -> Iterator[int]:
    """An answer's length for each row, whether it needs one or not. 0 where the plan has none: then every row has its own."""
    if length is None:
        yield from repeat(0)
        return
    rng = random.Random(seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
    while True:
        yield lengths.draw(length, rng)


def _marked(chat: Chat, mark: str, common: str) -> Chat:
    """The messages with their nonces."""
    if not mark:
        return chat
    first = next(at for at, (role, _) in enumerate(chat) if role == "user")
    heads = {0: common, first: mark}  # where they are one, it is the request's own
    return tuple(
        (role, f"{heads[at]}\n{text}" if at in heads else text) for at, (role, text) in enumerate(chat)
    )


def _before(chat: Chat, mark: str) -> list[str]:
    """The messages up to the request's own nonce, and that."""
    first = next(at for at, (role, _) in enumerate(chat) if role == "user")
    return [*(text for _, text in chat[:first]), mark]


def check_lengths(spec: AnyRows, tokenizer: Tokenizer, file: PromptFile, room: Room) -> bool:
    """Raise PlanError for the first prompt that has no room in the model with its answer.

    Whether one could still have none once its answer's length is drawn and its nonces stand in it.
    """
    default = spec.output_tokens
    least, most = (0, 0) if default is None else (1, default.most())
    tight = False

    def counted(row: Row) -> tuple[int, int | None]:
        return sum(len(tokenizer.encode(text)) for _, text in row.chat), row.output_tokens

    rows = file.rows(range(len(file)))
    for number, (tokens, output) in enumerate(in_order(counted, rows, tokenizer.lanes)):
        if not room.holds(tokens, output or least):
            raise file.problem(number, "prompt", room.words(tokens, output or least))
        tight = tight or not room.holds(tokens + SLACK, output or most)
    return tight
