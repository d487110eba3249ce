"""Do the steps of recorded sessions fit into the model's context?

A prompt is all that a step repeats and its own messages. While the file is read, each session gets a bound
(stored_sessions.py): the bytes of its longest prompt and the tokens of that step's answer. A token is a byte at the least, so
that what fits by its bytes fits. Of the others, the sessions of the largest bounds first, the texts are counted, and the first
step that cannot fit is refused: by the fewest tokens that the model can read of them (context_limit.py). Only MOST_COUNTED
bytes are counted, however long the file.

What is not text (images, tool calls, `tools`, the chat template around each message) is left out of the count, and a server's
own reply is taken to be as long as requested, as in conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from inferometer.errors import PlanError, Problem

if TYPE_CHECKING:
    from inferometer.workload.agent_sessions.stored_sessions import SessionStore, StoredSession, StoredStep
    from inferometer.workload.context_limit import Room
    from inferometer.workload.tokenizers import Tokenizer

MOST_COUNTED = 4_000_000
"""Bytes of messages: about a second with the slowest tokenizer that is counted with."""
COUNTING = frozenset({"shipped", "file", "hub"})
"""Kinds of tokenizers that count here, without a question to a server and without a ratio."""
_ADVICE = "Take that session out of the file, or serve the model with a longer context"
_messages = msgspec.json.Decoder(list[dict[str, object]]).decode


def check_room(
    store: SessionStore,
    numbers: Sequence[int],
    name: str,
    tokenizer: Tokenizer,
    room: Room,
    most: int = MOST_COUNTED,
) -> None:
    """Raise PlanError for the first step found that does not fit. `numbers`: of the sessions that are sent; `name`: of the
    file; `most`: bytes that are counted."""
    if tokenizer.kind not in COUNTING:
        return
    may = [number for number in numbers if store.bounds[number] > room.context]
    left = most
    for number in sorted(may, key=lambda one: store.bounds[one], reverse=True):
        session = store.session(number)
        left -= sum(len(step.own) + len(step.reply or b"") for step in session.steps)
        if left < 0:
            return
        for at, sent in enumerate(_sent(session, tokenizer)):
            output = session.steps[at].output
            if not room.holds(sent, output):
                problem = f"{room.words(sent, output)}. {_ADVICE}"
                raise PlanError([Problem(f"{name}:{session.line}: steps[{at}]", problem)])


def _sent(session: StoredSession, tokenizer: Tokenizer) -> Iterator[int]:
    """The tokens of each step's prompt."""
    held: list[int] = []
    for step in session.steps:
        sent = _tokens(step.own, tokenizer) + (held[step.extends] if step.extends >= 0 else 0)
        held.append(sent + _answer(step, tokenizer))
        yield sent


def _answer(step: StoredStep, tokenizer: Tokenizer) -> int:
    whole = step.reply is not None and step.hole < 0
    return _tokens(step.reply or b"", tokenizer) if whole else step.output


def _tokens(listed: bytes, tokenizer: Tokenizer) -> int:
    """Of the texts of messages that stand one after the other, as in a list of JSON."""
    return sum(
        len(tokenizer.encode(text))
        for message in _messages(b"[%b]" % listed)
        for text in _texts(message.get("content"))
    )


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                yield text
