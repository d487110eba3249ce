"""The prompts of a workload of several classes.

One generator, `random.Random(seed)`, decides all of them in this order, request by request:

| drawn                         | taken from the generator                                       | for                         |
| ----------------------------- | -------------------------------------------------------------- | --------------------------- |
| the class                     | `choices(classes, weights)`: one number                        | every request               |
| its input length              | see lengths.py                                                 | every request               |
| its output length             | see lengths.py                                                 | every request               |
| whether it shares a prefix    | `random() < share`                                             | a class with shared_prefix  |
| which of the groups'          | `choices(groups, weights)`: one number                         | the same                    |
| its content, random           | that many token ids, as in prompts.py                          | content random              |
| its content, of a corpus      | `getrandbits(64)`: where the piece begins (see corpora.py)     | content english or code     |

A prompt is [shared prefix] [own text]; the length drawn is the own text's, and the prefix's tokens are on top of it. What the
texts of a group say comes from a generator of its own, seeded by the plan's seed, the class's name and the group's number.

Nonces: each request has its own at the head of its own text, as in prompts.py, and each group has one at the head of its
prefix. So prompts of one group share that prefix and nothing beyond it, in this run, and nothing with another run. Over text
the prefix and the own text are two paragraphs; a nonce before words of a corpus has a line of its own. All of it counts: the
own text is made longer or shorter until the whole has the tokens asked for.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from inferometer.workload import corpora, lengths
from inferometer.workload.nonces import nonces, spelling
from inferometer.workload.parallel import in_order
from inferometer.workload.plain_words import ruler
from inferometer.workload.prompts import (
    NO_IDS,
    Contexts,
    Ids,
    Prompt,
    allowed_ids,
    below,
    expected,
    ids_prompt,
    known,
    read,
    ruled,
    writer,
)

if TYPE_CHECKING:
    from inferometer.plan.request_class import ClassContent, RequestClass
    from inferometer.plan.workload import MixtureWorkload
    from inferometer.workload.tokenizers import Tokenizer

Format = Literal["ids", "text"]

_TRIES = 8
_PARAGRAPH = "\n\n"


class Draw(NamedTuple):
    """What the generator decided of one request. `group` -1: no shared prefix. `ids` or, of a corpus, the place `at`."""

    number: int
    requested: int
    output: int
    group: int
    ids: Ids
    at: int


def drawn(
    spec: MixtureWorkload,
    vocab_size: int,
    n: int,
    same: Iterable[bool] = (),
    cover: Iterable[tuple[int, int]] = (),
) -> Iterator[Draw]:
    """The first `n` requests, in the order of the module's head. `same`: which of them go on with the conversation before, if
    any do: no class is drawn for those, and none has a shared prefix, which the conversation began with. `cover`: the class
    and the group of the first that do not, whatever is drawn."""
    rng = random.Random(spec.seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
    classes = spec.classes
    numbers, weights = range(len(classes)), [one.weight for one in classes]
    groups = [None if one.shared_prefix is None else one.shared_prefix.weights for one in classes]
    number, wanted = 0, iter(cover)
    for _, again in zip(range(n), chain(same, repeat(False)), strict=False):
        held = None if again else next(wanted, None)
        if not again:
            number = rng.choices(numbers, weights)[0] if held is None else held[0]
        one, shared = classes[number], groups[number]
        asked = lengths.draw(one.input_tokens, rng)
        output = lengths.draw(one.output_tokens, rng)
        group = -1
        if one.shared_prefix is not None and shared is not None:
            carries = rng.random() < one.shared_prefix.share
            group = rng.choices(range(len(shared)), shared)[0]
            group = held[1] if held is not None else group if carries and not again else -1
        if one.content == "random":
            yield Draw(number, asked, output, group, below(rng, vocab_size, asked), 0)
        else:
            yield Draw(number, asked, output, group, NO_IDS, rng.getrandbits(64))


def generate(
    spec: MixtureWorkload,
    tokenizer: Tokenizer,
    n: int,
    salt: int,
    prompt_format: Format,
    template: int = 0,
    same: Iterable[bool] = (),
    contexts: Contexts | None = None,
) -> Iterator[Prompt]:
    """The first `n` prompts, one after the other; texts are made on the tokenizer's lanes. See prompts.generate, and drawn.

    `contexts`: whose shared prefixes they have, if not their own.
    """
    marks = [""] * n if spec.repeatable_prompts else nonces(tokenizer, salt, prompt_format, 0, n)
    context = contexts or Contexts(spec.seed, salt)
    maker = _Maker(spec, tokenizer, context, prompt_format, template)
    requests = zip(drawn(spec, tokenizer.vocab_size, n, same, context.cover), marks, strict=True)
    yield from in_order(maker.prompt, requests, tokenizer.lanes)


def contexts(
    spec: MixtureWorkload, vocab_size: int, n: int, salt: int, same: Iterable[bool] = ()
) -> Contexts:
    """The shared prefixes of the first `n` requests."""
    if all(one.shared_prefix is None for one in spec.classes):
        return Contexts(spec.seed, salt)
    found = {(draw.number, draw.group) for draw in drawn(spec, vocab_size, n, same) if draw.group >= 0}
    return Contexts(spec.seed, salt, sorted(found))


@dataclass(frozen=True, slots=True)
class _Shared:
    """A group's prefix: with its nonce as it is sent, without it, its tokens, and the ids that a cache knows it by."""

    text: str
    bare: str
    ids: list[int]
    bare_ids: list[int]
    tokens: int
    key: Ids


class _Maker:
    """Makes prompts from draws, each from its draw alone."""

    def __init__(
        self,
        spec: MixtureWorkload,
        tokenizer: Tokenizer,
        context: Contexts,
        prompt_format: Format,
        template: int,
    ) -> None:
        self._classes, self._tokenizer, self._template = spec.classes, tokenizer, template
        self._ruler = ruler(tokenizer)
        self._text = prompt_format == "text"
        self._writer = writer(tokenizer) if self._text else None
        self._allowed: Sequence[int] = () if self._text else allowed_ids(tokenizer)
        self._fields = [one.fields or None for one in spec.classes]
        self._seed, self._salted = context.seed, not spec.repeatable_prompts
        self._salt, self._format = context.salt, prompt_format
        sizes = [0 if one.shared_prefix is None else one.shared_prefix.groups for one in spec.classes]
        self._first = [sum(sizes[:number]) for number in range(len(sizes))]
        # Made on first use. Several threads may make the same one, to the same end.
        self._shared: dict[tuple[int, int], _Shared] = {}

    def prompt(self, request: tuple[Draw, str]) -> Prompt:
        """What is sent for a draw, with this nonce."""
        draw, mark = request
        one = self._classes[draw.number]
        shared = self._prefix(draw.number, draw.group) if draw.group >= 0 else None
        before = 0 if shared is None else shared.tokens
        requested = before + draw.requested
        bare: str | list[int] | None = None
        content: str | list[int]
        if self._text:
            head = "" if shared is None else shared.text + _PARAGRAPH
            head += mark
            own, sent = self._words(
                one.content, draw.ids, draw.at, head, max(1, requested - self._template), mark
            )
            content = head + own
            key = read(self._tokenizer, mark or content)
            if shared is not None:
                bare = shared.bare + _PARAGRAPH + own
                key = np.concatenate([shared.key, key]) if mark else key
        else:
            made = self._ids(one.content, draw.ids, draw.at, draw.requested, mark)
            content, sent = made, before + len(made)
            if shared is not None:
                bare = [*shared.bare_ids, *made[mark.count(",") + 1 if mark else 0 :]]
                content = [*shared.ids, *made]
            key = known(content, mark, before)
        return Prompt(
            content, requested, sent, draw.output, mark,
            request_class=draw.number, fields=self._fields[draw.number], bare=bare,
            shared=before, group=self._first[draw.number] + draw.group if before else -1, key=key,
        )  # fmt: skip

    def _prefix(self, number: int, group: int) -> _Shared:
        found = self._shared.get((number, group))
        if found is None:
            mark = ""
            if self._salted:
                # The groups' nonces stand before those of the requests, however many those are.
                at = -1 - self._first[number] - group
                [mark] = nonces(self._tokenizer, self._salt, self._format, at, 1)
            found = self._shared[number, group] = self._made(self._classes[number], group, mark)
        return found

    def _made(self, one: RequestClass, group: int, mark: str) -> _Shared:
        assert one.shared_prefix is not None, "a class of which a group was drawn"
        tokens = one.shared_prefix.tokens
        name = b"inferometer shared prefix %d %d %b" % (self._seed, group, one.name.encode())
        seed = int.from_bytes(hashlib.sha256(name).digest(), "big")
        rng = random.Random(seed)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)
        ids = below(rng, self._tokenizer.vocab_size, tokens) if one.content == "random" else NO_IDS
        at = rng.getrandbits(64)
        if self._text:
            own, sent = self._words(one.content, ids, at, mark, tokens, mark)
            return _Shared(mark + own, own, [], [], sent, read(self._tokenizer, mark + own + _PARAGRAPH))
        made = self._ids(one.content, ids, at, tokens, mark)
        bare = made[mark.count(",") + 1 if mark else 0 :]
        return _Shared("", "", made, bare, len(made), np.asarray(made, np.uint32))

    def _words(
        self, content: ClassContent, ids: Ids, at: int, head: str, requested: int, mark: str
    ) -> tuple[str, int]:
        """What to write behind `head`, which ends in the nonce `mark` if there is one, for `requested` tokens in all; and
        the tokens it counts."""
        length = ruled(self._tokenizer, requested, mark)
        text, sent = self._ruled(content, ids, at, head, length, mark)
        return text, expected(self._tokenizer, head + text, sent)

    def _ruled(
        self, content: ClassContent, ids: Ids, at: int, head: str, requested: int, mark: str
    ) -> tuple[str, int]:
        """The same in tokens of the ruler."""
        assert self._writer is not None
        if content == "random":
            if head == mark:
                text, sent = self._writer.write(np.resize(ids, requested), mark)
                return text[len(mark) :], sent
            return self._fitted(head, requested, lambda tokens: self._random(ids, tokens, mark))
        corpus = corpora.load(content)
        line = "\n" if mark else ""
        return self._fitted(
            head, requested, lambda tokens: line + corpora.cut(corpus, self._ruler, tokens, at)
        )

    def _random(self, ids: Ids, tokens: int, mark: str) -> str:
        """So many tokens of drawn text, apart from a nonce before it."""
        assert self._writer is not None
        text, _ = self._writer.write(np.resize(ids, tokens), "")
        return text if not mark or spelling(self._tokenizer).parts(text) else f" {text}"

    def _fitted(self, head: str, requested: int, write: Callable[[int], str]) -> tuple[str, int]:
        """`write(k)` with such a k that it and `head` together count `requested`, or nearly; and what they count."""
        count = self._ruler.encode
        missing = requested - len(count(head)) if head else requested
        if missing < 1:
            return "", len(count(head))
        best: tuple[int, str, int] | None = None
        tried: set[int] = set()
        for _ in range(_TRIES):
            tokens = max(1, missing)
            if tokens in tried:
                break
            tried.add(tokens)
            text = write(tokens)
            sent = len(count(head + text))
            if best is None or abs(sent - requested) < best[0]:
                best = abs(sent - requested), text, sent
            if sent == requested:
                break
            missing += requested - sent
        assert best is not None
        return best[1], best[2]

    def _ids(self, content: ClassContent, ids: Ids, at: int, tokens: int, mark: str) -> list[int]:
        """`tokens` ids, the first of them the nonce's."""
        if content == "random":
            made: list[int] = ids.tolist()
        else:
            made = self._tokenizer.encode(corpora.cut(corpora.load(content), self._tokenizer, tokens, at))
        return ids_prompt(made, mark, self._tokenizer.reserved, self._allowed)
