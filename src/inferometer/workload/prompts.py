"""Prompts: what every request of a run says, decided before the clock starts.

One generator, `random.Random(seed)`, makes all of them in this order, request by request: the input length, the output
length, then that many token ids. For synthetic-uniform over cl100k_base this is the reference stream of draft A.1.4,
value for value; the other workloads differ in the two lengths only. Ids run from 0 to the vocabulary size of the
declared tokenizer, which is the draft's 0 to 100255 for cl100k_base and a declared variant of it for any other.

What is sent departs from what was drawn in these ways, and in no other:

| why                                                        | what changes                                                   |
| ---------------------------------------------------------- | -------------------------------------------------------------- |
| a second run must not hit the first one's prefix cache     | a nonce stands in place of the first tokens                    |
| an id is reserved: a special token, or none (custom files) | an ordinary id in its place                                    |
| text: the id alone is no UTF-8, or is NUL or U+FFFD        | a plain word in its place (782 of cl100k_base's 100,256 ids)   |
| text: read again, the ids join and split differently       | the end is cut and filled with plain words to the length asked |

With cl100k_base random text comes back about 5 % longer than drawn, so a text prompt keeps about 19 in 20 of its ids.

The nonce is the first thing in the prompt (nonces.py), and as many tokens whatever its value, so that the rest of a prompt
does not depend on it. A prompt shorter than its nonce is sent as the nonce alone, and is a miss.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from inferometer.plan.target import Fields
from inferometer.workload import lengths
from inferometer.workload.nonces import NONCES, nonces, spelling
from inferometer.workload.parallel import DEFAULT, Processes, spread
from inferometer.workload.plain_words import allowed, own_text, ruler, words_of
from inferometer.workload.turn_schedule import Place

if TYPE_CHECKING:
    from inferometer.plan.workload import LengthsWorkload, StandardWorkload
    from inferometer.workload.tokenizers import Tokenizer

Ids: TypeAlias = NDArray[np.uint32]
Message: TypeAlias = tuple[str, str]
"""Role and text."""

NO_IDS: Ids = np.empty(0, np.uint32)
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request's words. `requested` and `sent` are prompt tokens under the declared tokenizer, `output` those asked for.

    `content` is text or token ids. `nonce` is spelled as in the JSON body ("123456789", or "12345,67890"), "" if none.

    `messages`: role and text of a chat's several messages, sent in place of `content`, which then is all their texts.
    `request_class`: which of the workload's classes it is of. `fields`: of the body, beside everybody's. `bare`: the content
    without nonces, where there are others than the one it begins with.

    `shared` of the tokens asked for, or of those that a turn repeats, are a prefix in common with the others of `group` (-1:
    of none). `key`: the prompt's first ids, as far as an earlier request can have begun with them: for the account
    (request_statistics.py), and not compared.

    `place`: of one that does not stand alone (places.py). A turn of a conversation is its own messages alone; before them it
    repeats `repeated` tokens, as far as that can be known now, of which `known` were sent or answered before. `reply`: the
    recorded answer that later turns repeat; None: the server's. `timeout_s`: its own time limit; None: the plan's.
    """

    content: str | list[int]
    requested: int
    sent: int
    output: int
    nonce: str
    messages: tuple[Message, ...] | None = None
    request_class: int | None = None
    fields: Fields | None = None
    bare: str | list[int] | None = None
    shared: int = 0
    group: int = -1
    key: Ids = field(default_factory=lambda: NO_IDS, repr=False, compare=False)
    place: Place | None = None
    repeated: int = 0
    known: int = 0
    reply: tuple[Message, ...] | None = None
    timeout_s: float | None = None


class Contexts(NamedTuple):
    """What a warm-up is to have in common with the measured requests: their shared prefixes, drawn by their seed and with the
    nonces of their salt. `cover`: those to begin with, one request each: (class, group), or of a file of prompts (row, 0).
    """

    seed: int
    salt: int
    cover: Sequence[tuple[int, int]] = ()


def generate(
    spec: StandardWorkload | LengthsWorkload,
    tokenizer: Tokenizer,
    n: int,
    salt: int,
    prompt_format: Literal["ids", "text"],
    template: int = 0,
    processes: Processes = DEFAULT,
) -> Iterator[Prompt]:
    """The first `n` prompts of a workload, one after the other; texts are made a little ahead, and many of them in `processes`.

    `salt` (0 or more, fresh for each run) decides the nonces and nothing else; `spec.repeatable_prompts` leaves them out.
    `template`: so many of the tokens asked for are not ours to send, for the server puts them around a text by itself.
    """
    marks = _marks(tokenizer, salt, prompt_format, n, salted=not spec.repeatable_prompts)
    requests = zip(_drawn(spec, tokenizer.vocab_size, n), marks, strict=True)
    if prompt_format == "text":
        write = _TextPrompt(tokenizer, template)
        yield from spread(write, requests, tokenizer.lanes, n * spec.input_tokens.mean(), processes)
    else:
        drawn_from = allowed_ids(tokenizer)
        for (ids, output), mark in requests:
            made = ids_prompt(ids.tolist(), mark, tokenizer.reserved, drawn_from)
            yield Prompt(made, len(ids), len(made), output, mark, key=known(made, mark))


def salt_of(seed: int) -> int:
    """The salt of a run that is to be the same each time, in virtual time: there is no cache that an earlier run had filled."""
    return int.from_bytes(hashlib.sha256(b"inferometer salt %d" % seed).digest()[:8], "big") % NONCES


def plain_words(tokenizer: Tokenizer) -> Sequence[str]:
    """Words of one token each, a space before every one, that stay one token behind each other; empty if there are none."""
    return words_of(ruler(tokenizer))


class Fingerprint:
    """`sha256:` and the digest of the request list without its nonces: lengths asked for and contents, in order.

    Runs of one plan agree on it whatever their salts, and so do machines (nonces.py has the one exception).
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def of(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts, each of them taken in as it passes."""
        for prompt in prompts:
            said = _bare(prompt)
            if isinstance(said, str):
                kind, body = b"t", said.encode()
            else:
                kind, body = b"i", struct.pack(f"<{len(said)}I", *said)
            self._digest.update(struct.pack("<cIII", kind, prompt.requested, prompt.output, len(body)) + body)
            if prompt.messages is not None or prompt.request_class is not None or prompt.fields is not None:
                roles = None if prompt.messages is None else [role for role, _ in prompt.messages]
                more = json.dumps([roles, prompt.request_class, prompt.fields], sort_keys=True).encode()
                self._digest.update(struct.pack("<cI", b"+", len(more)) + more)
            if prompt.place is not None and prompt.place.session is not None:
                place = prompt.place._replace(due_ns=None, user=None)  # which are of the load
                told = json.dumps([place, prompt.reply], ensure_ascii=False).encode()
                self._digest.update(struct.pack("<cI", b"@", len(told)) + told)
            yield prompt

    def __str__(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"


def _bare(prompt: Prompt) -> str | list[int]:
    """What a prompt says, without its nonces."""
    if prompt.bare is not None:
        return prompt.bare
    if isinstance(prompt.content, str):
        return prompt.content[len(prompt.nonce) :]
    return prompt.content[prompt.nonce.count(",") + 1 if prompt.nonce else 0 :]


def below(rng: random.Random, bound: int, count: int) -> Ids:
    """`[rng.randint(0, bound - 1) for _ in range(count)]`, number for number, about twenty times as fast.

    `randint` takes the top bits of one 32-bit word of the generator and tries again when they are not below the bound
    (bound at most 2^32). `getrandbits(32 * m)` yields the next `m` words, the first one lowest. Each number still to come
    costs a word at least, so asking for as many words as numbers are missing never takes one too many, and the
    generator ends in the same state.
    """
    shift = 32 - bound.bit_length()
    found = [np.empty(0, np.uint32)]
    while missing := count - sum(map(len, found)):
        words = np.frombuffer(
            rng.getrandbits(32 * missing).to_bytes(4 * missing, "little"), "<u4"
        ) >> np.uint32(shift)
        found.append(words[words < bound])
    return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class _TextPrompt:
    """Makes a text prompt of what was drawn; may be sent to another process."""

    tokenizer: Tokenizer
    template: int

    def __call__(self, request: tuple[tuple[Ids, int], str]) -> Prompt:
        (ids, output), mark = request
        count = ruled(self.tokenizer, max(1, len(ids) - self.template), mark)
        text, sent = writer(self.tokenizer).write(np.resize(ids, count), mark)
        sent = expected(self.tokenizer, text, sent)
        return Prompt(text, len(ids), sent, output, mark, key=read(self.tokenizer, mark or text))


def ruled(tokenizer: Tokenizer, tokens: int, mark: str) -> int:
    """The ruler's tokens in a text of `tokens` that begins with the nonce `mark`, if there is one; at least 1."""
    if tokenizer.kind != "learned":
        return tokens
    front, counted = (len(by.encode(mark)) for by in (tokenizer.ink, tokenizer))
    return max(1, front + round((tokens - counted) / tokenizer.rate))


def expected(tokenizer: Tokenizer, text: str, counted: int) -> int:
    """The tokens of a text of which its ruler counted so many."""
    return len(tokenizer.encode(text)) if tokenizer.kind == "learned" else counted


def known(ids: list[int], mark: str, before: int = 0) -> Ids:
    """What an earlier request can have begun with of a prompt of ids: all up to its nonce, which stands behind `before` ids."""
    return np.asarray(ids[: before + mark.count(",") + 1] if mark else ids, np.uint32)


def read(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of a text, as those of its `ink` if the tokenizer has none at hand."""
    return np.asarray(tokenizer.ink.encode(text), np.uint32)


def _marks(
    tokenizer: Tokenizer, salt: int, prompt_format: Literal["ids", "text"], n: int, *, salted: bool
) -> Iterator[str]:
    return nonces(tokenizer, salt, prompt_format, 0, n) if salted else repeat("", n)


def _drawn(spec: StandardWorkload | LengthsWorkload, vocab_size: int, n: int) -> Iterator[tuple[Ids, int]]:
    """Ids and output length of each request, in the order of the module's head."""
    rng = random.Random(spec.seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
    # The article's prompts cut lengths to whole numbers, the draft's round.
    whole = spec.standard == "normal"
    for _ in range(n):
        requested = lengths.draw(spec.input_tokens, rng, truncate=whole)
        output = lengths.draw(spec.output_tokens, rng)
        yield below(rng, vocab_size, requested), output


def ids_prompt(ids: list[int], nonce: str, reserved: frozenset[int], drawn_from: Sequence[int]) -> list[int]:
    """The ids with ordinary ones (`drawn_from`) for the reserved, and the nonce in place of the first, if there is one."""
    if reserved:
        ids = [drawn_from[i % len(drawn_from)] if i in reserved else i for i in ids]
    if nonce:
        front = [int(word) for word in nonce.split(",")]
        ids = front + ids[len(front) :]
    return ids


def allowed_ids(tokenizer: Tokenizer) -> Sequence[int]:
    """The ids that may be drawn."""
    return allowed(tokenizer, 0, tokenizer.vocab_size)


@functools.lru_cache(maxsize=4)
def writer(tokenizer: Tokenizer) -> Writer:
    """A writer remembers the pieces of a vocabulary, which are slow to make, so each tokenizer keeps its own."""
    return Writer(ruler(tokenizer))


class Writer:
    """Turns drawn ids into text that the tokenizer counts as exactly as long as asked, if that can be had."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._ink = tokenizer, tokenizer.ink
        self._nonces = spelling(tokenizer)
        self.words = words_of(tokenizer)
        # By token id, made on first use: a short run needs few. Several threads may make the same one, to the same end.
        self._pieces: NDArray[np.object_] = np.full(self._ink.vocab_size, None, object)

    def write(self, drawn: Ids, nonce: str) -> tuple[str, int]:
        """A text and its tokens as the tokenizer counts them: `len(drawn)`, unless the nonce alone is longer.

        Neither end is white space, because chat templates may strip that from a message. Each round cuts what is too
        long, at a token, or fills what is too short, with words, and counts again.
        """
        requested, settled, front = (
            len(drawn),
            0,
            "",
        )  # `front`: text that no longer changes; `settled`: its tokens
        tail = self._body(drawn, nonce)
        ids = self._tokenizer.encode(tail)
        for attempt in range(_TRIES):
            short = requested - settled - len(ids)
            if (short == 0 and not tail[-1:].isspace()) or (short < 0 and tail == nonce):
                break
            if short <= 0:
                keep = max(
                    0, len(ids) + short - 1 - attempt
                )  # ever earlier: the place of the cut may be the trouble
                if not front and self._tokenizer.splits_at_words:
                    front, settled = self._settle(tail, ids, keep)
                    tail, ids, keep = tail[len(front) :], ids[settled:], keep - settled
                tail, kept = _cut(tail, ids, keep, self._tokenizer)
                short = requested - settled - kept
                if not front and not tail.startswith(nonce):
                    tail, short = nonce, requested - self._nonces.tokens
            tail += self._filling(drawn, short, attempt)
            tail = tail if front else tail.lstrip()
            ids = self._tokenizer.encode(tail)
        return front + tail, settled + len(ids)

    def _body(self, drawn: Ids, nonce: str) -> str:
        if not nonce:
            return "".join(self._texts(drawn)).lstrip()
        rest = drawn[self._nonces.tokens :]
        pieces = self._texts(rest)
        if pieces and not self._nonces.parts(pieces[0]):
            pieces[0] = self._word(int(rest[0]))
        return nonce + "".join(pieces)

    def _texts(self, drawn: Ids) -> list[str]:
        """The text of each id."""
        pieces: list[str | None] = self._pieces[drawn].tolist()
        if None in pieces:
            for token in set(drawn.tolist()):
                if self._pieces[token] is None:
                    self._pieces[token] = self._fit_piece(token)
            pieces = self._pieces[drawn].tolist()
        return cast(list[str], pieces)

    def _settle(self, text: str, ids: list[int], keep: int) -> tuple[str, int]:
        """The longest front of `text`, in less than `keep` tokens, that no later change can touch, and its tokens."""
        decode = self._tokenizer.decode
        after = decode(ids[keep - 1 : keep])
        for place in range(keep - 1, 0, -1):
            before = decode(ids[place - 1 : place])
            if after[:1] == " " and _is_letter(after[1:2]) and _is_letter(before[-1:]):
                return text[: -len(decode(ids[place:]))], place
            after = before
        return "", 0

    def _filling(self, drawn: Ids, count: int, attempt: int) -> str:
        return "".join([self._word(int(drawn[-1 - i % len(drawn)]) + attempt) for i in range(count)])

    def _word(self, number: int) -> str:
        return self.words[number % len(self.words)] if self.words else ""

    def _fit_piece(self, token: int) -> str:
        """The text that stands for a drawn id: its own where that is sound, else a word."""
        piece = "" if token in self._ink.reserved else own_text(self._ink, token)
        return piece if piece and "\ufffd" not in piece and "\0" not in piece else self._word(token)


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _cut(text: str, ids: list[int], keep: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """A front of `text`, which was read as `ids`, in about `keep` tokens, and its tokens as far as is known."""
    front = tokenizer.decode(ids[:keep]).rstrip("\ufffd")  # a character cut in two
    if text.startswith(front) and (front or not keep):
        return front, keep
    # A decoder that does not give the text back: cut by proportion, and count until it is short enough.
    front, count = text, len(ids)
    while front and count > keep:
        front = front[: min(len(front) - 1, len(front) * keep // count)]
        count = len(tokenizer.encode(front))
    return front, count
