"""Prompts of natural text: conversation, code-completion and long-context (draft A.3 to A.5).

One generator, `random.Random(seed)`, draws in this order. Once, for each shared prefix: its length, its place in the text.
Then for each request: the input length, the output length, whether it shares (`random() < fraction`), which prefix
(`choices` by their weights; nothing is taken where there is one only), its place in the text (`randrange(places)`). What is
empirical, and fixed lengths, take nothing: the text of the place decides (lengths.py).

    [nonce of the prefix][shared prefix][nonce of the request][text][question]

A prefix is a system message in the chat of a workload that says so, and stands in front of the text otherwise. Its nonce is the
same for all that share it, so that they share it with each other and with no other run. Both nonces are written over
the first tokens of their part, so lengths are as drawn. Over text a nonce is nine digits on a line of their own.
`--repeatable-prompts` leaves both out.

Text is cut to exact length with everything that stands before and behind it, and counted as a whole.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal

import numpy as np

from inferometer.plan.lengths import Empirical, estimated_mean
from inferometer.workload import lengths
from inferometer.workload.nonces import nonces
from inferometer.workload.parallel import DEFAULT, Processes, spread
from inferometer.workload.plain_words import ruler
from inferometer.workload.prompts import Contexts, Ids, Prompt, expected, known, read, ruled
from inferometer.workload.texts import Texts, context_texts, texts_of

if TYPE_CHECKING:
    from inferometer.plan.workload import StandardWorkload
    from inferometer.workload.tokenizers import Tokenizer

QUESTION = (
    "\n\nQuestion about the document above: which of the rules that it describes matters most to somebody who reads it for the "
    "first time, and why? Base the answer on the document alone and on nothing that is known from elsewhere. Begin with one "
    "sentence that names the rule. Then explain in two or three paragraphs what it says, which cases it covers, which "
    "exceptions the document mentions, and what would go wrong if it were ignored. End with the words of the document that "
    "support the answer best."
)
"""Draft A.5.1: fixed, about 100 tokens, behind the document."""

_APART = "\n"  # between a prefix and what follows it in one text: one line end is read alike with and without the rest
_ROUNDS, _BEGINNINGS = 3, 4
_ROOM = 8  # tokens for a piece that may be too few for any to fit between front and tail
_LONG = 2048  # tokens from which on a text's middle is not read again
_ENDS = 1024  # tokens left for its ends, a prefix and a question among them


Cut = Callable[[int, int], str]
"""A piece of so many tokens, that begins at the first beginning from its place on, or so many behind it."""


@dataclass(frozen=True, slots=True)
class _Prefix:
    """One shared prefix: as text or as ids, with its nonce and without it; `key`: the ids a cache would know it by."""

    content: str | list[int]
    bare: str | list[int]
    tokens: int
    key: Ids


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What was drawn for one request; a length is None where the text decides. `group` -1: it shares nothing."""

    tokens: int | None
    output: int | None
    group: int
    place: int


def generate(
    spec: StandardWorkload,
    tokenizer: Tokenizer,
    n: int,
    salt: int,
    prompt_format: Literal["ids", "text"],
    template: int = 0,
    *,
    chat: bool = False,
    same: Iterable[bool] = (),
    contexts: Contexts | None = None,
    processes: Processes = DEFAULT,
) -> Iterator[Prompt]:
    """The first `n` prompts, as prompts.generate gives those of random tokens; `spec.content` must have a text. `same`: which
    of them go on with the conversation before, if any do: none of those has the prefix that the conversation began with.
    `contexts`: whose shared prefixes they have, if not their own.

    Raises PlanError where the dataset cannot be used.
    """
    texts = texts_of(spec)
    rng = random.Random(spec.seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
    make = (_TextPrompts if prompt_format == "text" else _IdsPrompts)(
        spec, tokenizer, texts, template, chat=chat
    )
    cover: Sequence[tuple[int, int]] = ()
    first, prefix_salt = rng, salt
    if contexts is not None:
        cover, prefix_salt = contexts.cover, contexts.salt
        first = random.Random(contexts.seed)  # noqa: S311 (the stream of the measured requests, from its begin)
    make.prefixes = list(_prefixes(spec, first, make.prefix, tokenizer, prefix_salt, prompt_format))
    marks = repeat("", n) if spec.repeatable_prompts else nonces(tokenizer, salt, prompt_format, 0, n)
    requests = zip(_drawn(spec, rng, texts, n, same, cover), marks, strict=True)
    tokens = n * estimated_mean(spec.input_tokens)
    yield from spread(make.prompt, requests, tokenizer.lanes, tokens, processes)


def _prefixes(
    spec: StandardWorkload,
    rng: random.Random,
    make: Callable[[Texts, int, int, str], _Prefix],
    tokenizer: Tokenizer,
    salt: int,
    prompt_format: Literal["ids", "text"],
) -> Iterator[_Prefix]:
    """All shared prefixes; their nonces stand before those of the requests in the sequence of nonces."""
    sharing = spec.content.sharing
    if sharing is None:
        return
    texts = context_texts(spec)
    for group in range(sharing.groups):
        tokens = lengths.draw(sharing.tokens, rng)
        place = rng.randrange(texts.places)
        mark = "" if spec.repeatable_prompts else next(nonces(tokenizer, salt, prompt_format, -1 - group, 1))
        yield make(texts, tokens, place, mark)


def _drawn(
    spec: StandardWorkload,
    rng: random.Random,
    texts: Texts,
    n: int,
    same: Iterable[bool],
    cover: Iterable[tuple[int, int]],
) -> Iterator[_Drawn]:
    """What is drawn for each request, in the order of the module's head; `cover` as in mixture.drawn."""
    sharing, wanted = spec.content.sharing, iter(cover)
    for _, again in zip(range(n), chain(same, repeat(False)), strict=False):
        tokens, output = (
            None if isinstance(length, Empirical) else lengths.draw(length, rng)
            for length in (spec.input_tokens, spec.output_tokens)
        )
        group = -1
        if sharing is not None and rng.random() < sharing.fraction:
            group = rng.choices(range(sharing.groups), sharing.weights)[0] if sharing.groups > 1 else 0
        held = None if again else next(wanted, None)
        group = -1 if again else group if held is None else held[1]
        yield _Drawn(tokens, output, group, rng.randrange(texts.places))


class _Prompts:
    """What both formats have in common. `template`: tokens that the server puts around a text and that were asked for."""

    prefixes: Sequence[_Prefix] = ()

    def __init__(
        self, spec: StandardWorkload, tokenizer: Tokenizer, texts: Texts, template: int, *, chat: bool
    ) -> None:
        self._tokenizer, self._texts, self._template = tokenizer, texts, template
        self._ruler = ruler(tokenizer)
        self._tail = QUESTION if spec.content.question else ""
        self._repeats = spec.repeatable_prompts
        sharing = spec.content.sharing
        self._system = chat and sharing is not None and sharing.system

    def _lengths(self, drawn: _Drawn) -> tuple[int, int]:
        """Input length without what is shared, and output length."""
        own = self._texts.own(drawn.place)
        tokens, output = drawn.tokens, drawn.output
        if tokens is None:
            assert own is not None
            tokens = max(1, len(self._tokenizer.encode(own.prompt))) + self._template
        if output is None:
            assert own is not None
            assert own.answer is not None
            output = max(1, len(self._tokenizer.encode(own.answer)))
        return tokens, output


class _TextPrompts(_Prompts):
    """Prompts as text."""

    def prefix(self, texts: Texts, tokens: int, place: int, mark: str) -> _Prefix:
        """One shared prefix, ending in what parts it from the rest where it stands in one text with it."""
        tail = "" if self._system else _APART
        content, sent = self._fit(
            _line(mark),
            lambda count, skip: texts.cut(self._ruler, count, place, skip),
            tail,
            ruled(self._tokenizer, tokens, mark),
        )
        sent = expected(self._tokenizer, content, sent)
        return _Prefix(content, content[len(mark) :], sent, read(self._tokenizer, content))

    def prompt(self, request: tuple[_Drawn, str]) -> Prompt:
        """One request."""
        drawn, mark = request
        tokens, output = self._lengths(drawn)
        shared = self.prefixes[drawn.group] if drawn.group >= 0 else None
        said, bare = ("", "") if shared is None else (str(shared.content), str(shared.bare))
        more = 0 if shared is None else shared.tokens
        in_front = "" if self._system else said
        target = ruled(self._tokenizer, max(1, tokens - self._template) + (more if in_front else 0), mark)
        own = self._texts.own(drawn.place) if drawn.tokens is None and not mark else None

        def cut(count: int, skip: int) -> str:
            return self._texts.cut(self._ruler, count, drawn.place, skip) if own is None else own.prompt

        content, sent = self._long(in_front + _line(mark), drawn.place, target) if own is None else ("", 0)
        if sent != target:
            content, sent = self._fit(in_front + _line(mark), cut, self._tail, target, bare=in_front + mark)
        sent = expected(self._tokenizer, content, sent)
        unmarked = content[len(in_front) + len(mark) :]
        key = read(self._tokenizer, mark or content)
        if shared is not None and (mark or self._system):
            key = np.concatenate([shared.key, key])
        chat = (("system", said), ("user", content)) if self._system and shared is not None else None
        return Prompt(
            content if chat is None else f"{said}\n{content}",
            tokens + more,
            sent + (more if chat is not None else 0),
            output,
            mark,
            messages=chat,
            bare=None if shared is None else f"{bare}\n{unmarked}" if chat is not None else bare + unmarked,
            shared=more,
            group=drawn.group,
            key=key,
        )

    def _long(self, front: str, place: int, tokens: int) -> tuple[str, int]:
        """A long text of so many tokens, its middle counted once for all; other tokens where there is none."""
        if tokens < _LONG:
            return "", 0
        for piece in self._texts.stretches(self._ruler, tokens - _ENDS, place):
            before = front + piece.head
            text, sent = self._fit(before, piece.rest, self._tail, tokens - piece.tokens)
            if sent + piece.tokens == tokens:
                return before + piece.middle + text[len(before) :], tokens
        return "", 0

    def _fit(self, front: str, cut: Cut, tail: str, tokens: int, bare: str | None = None) -> tuple[str, int]:
        """Front, piece and tail that are so many tokens together, or as near as can be, and how many they are.

        Where a seam makes tokens of its own, another count is tried, then another beginning of the piece. Where there is no
        room for both, or so little that no piece fills it, the piece goes before the tail; `bare` is sent where there is none
        for more than that.
        """
        count = self._count
        alone = count(front + tail) if front or tail else 0
        if tokens - alone < 1:
            if tail and bare is not None:
                return self._fit(front, cut, "", tokens, bare)
            text = bare or cut(1, 0)
            return text, count(text)
        best: tuple[int, str, int] | None = None
        for skip in range(_BEGINNINGS):
            around = alone
            for _ in range(_ROUNDS):
                text = front + cut(max(1, tokens - around), skip) + tail
                sent = count(text)
                if best is None or abs(sent - tokens) < best[0]:
                    best = abs(sent - tokens), text, sent
                if sent == tokens:
                    return text, sent
                around += sent - tokens
        assert best is not None
        if tail and bare is not None and tokens - alone < _ROOM:
            return min(
                (best[1:], self._fit(front, cut, "", tokens, bare)), key=lambda one: abs(one[1] - tokens)
            )
        return best[1:]

    def _count(self, text: str) -> int:
        return len(self._ruler.encode(text))


class _IdsPrompts(_Prompts):
    """Prompts as token ids: exact by themselves."""

    def prefix(self, texts: Texts, tokens: int, place: int, mark: str) -> _Prefix:
        """One shared prefix."""
        ids = _marked(mark, texts.ids(self._tokenizer.ink, tokens, place))
        return _Prefix(ids, _unmarked(mark, ids), len(ids), np.asarray(ids, np.uint32))

    def prompt(self, request: tuple[_Drawn, str]) -> Prompt:
        """One request."""
        drawn, mark = request
        tokens, output = self._lengths(drawn)
        encode = self._tokenizer.ink.encode
        tail = encode(self._tail) if self._tail else []
        own = self._texts.own(drawn.place) if drawn.tokens is None else None
        room = max(0, tokens - len(tail))
        text = (
            encode(own.prompt) if own is not None else self._texts.ids(self._tokenizer.ink, room, drawn.place)
        )
        shared = self.prefixes[drawn.group] if drawn.group >= 0 else None
        before, bare = ([], []) if shared is None else (list(shared.content), list(shared.bare))
        rest = _marked(mark, [*text, *tail][: max(1, tokens)])
        ids: list[int] = [*before, *rest]  # type: ignore[list-item] # a prefix of ids is a list of ids
        return Prompt(
            ids,
            tokens + len(before),
            len(ids),
            output,
            mark,
            bare=None if shared is None else [*bare, *_unmarked(mark, rest)],  # type: ignore[list-item] # the same
            shared=len(before),
            group=drawn.group,
            key=known(ids, mark, len(before)),
        )


def _line(mark: str) -> str:
    return f"{mark}\n" if mark else ""


def _marked(mark: str, ids: list[int]) -> list[int]:
    """Ids with a nonce in place of the first."""
    front = [int(word) for word in mark.split(",")] if mark else []
    return front + ids[len(front) :]


def _unmarked(mark: str, ids: list[int]) -> list[int]:
    return ids[mark.count(",") + 1 if mark else 0 :]
