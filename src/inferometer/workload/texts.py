"""Natural text for a workload: whose words its prompts are, as something that pieces can be cut from.

| workload          | with a dataset                       | without                                                   |
| ----------------- | ------------------------------------ | --------------------------------------------------------- |
| `conversation`    | its prompts                          | pieces of the English corpus                              |
| `code-completion` | its functions                        | the functions of the code corpus                          |
| `long-context`    |                                      | pieces of the English corpus                              |

A text has `places`; a place is drawn. At a place stands one whole text (`own`), where texts are whole, and from it on goes a
stretch that has no end (`front`), from which pieces of any length are cut.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from inferometer.documents.workload import Corpus, TextSource
from inferometer.plan.lengths import Empirical
from inferometer.workload import corpora
from inferometer.workload.datasets import pool as pools
from inferometer.workload.datasets.functions import prompts
from inferometer.workload.datasets.preprocessing import Item

if TYPE_CHECKING:
    from inferometer.plan.workload import StandardWorkload
    from inferometer.workload.tokenizers import Tokenizer

_TRIES = 16
_APART = "\n\n"


class Texts(Protocol):
    """See the head. Places run from 0 to `places - 1`."""

    places: int

    def own(self, place: int) -> Item | None:
        """The whole text of a place; None where texts have no ends of their own."""

    def longest(self) -> tuple[int, int]:
        """Bytes of the longest whole text, and of the longest answer to one: no tokenizer counts more tokens."""

    def cut(self, tokenizer: Tokenizer, tokens: int, place: int, skip: int = 0) -> str:
        """A piece of so many tokens, or as near as can be, from the place on, or from one some beginnings behind it; neither
        end is white space."""

    def stretches(self, tokenizer: Tokenizer, tokens: int, place: int) -> Iterator[corpora.Stretch]:
        """Long pieces, from the place on and from some behind it, whose middles have been counted; none where none can be."""

    def ids(self, tokenizer: Tokenizer, tokens: int, place: int) -> list[int]:
        """The first so many ids of what goes on from the place."""


class Prose:
    """A corpus of the package: a place is a character, and a piece begins at the next sentence or function."""

    def __init__(self, corpus: corpora.Corpus) -> None:
        self._corpus = corpus
        self.places = len(corpus.text)

    def own(self, place: int) -> Item | None:  # noqa: ARG002 (of no place)
        """See Texts."""
        return None

    def longest(self) -> tuple[int, int]:
        """See Texts."""
        return 0, 0

    def cut(self, tokenizer: Tokenizer, tokens: int, place: int, skip: int = 0) -> str:
        """See Texts."""
        starts = self._corpus.starts_from(place, skip + _TRIES)[skip:]
        return corpora.cut_from(self._corpus.front, tokenizer, tokens, starts)

    def stretches(self, tokenizer: Tokenizer, tokens: int, place: int) -> Iterator[corpora.Stretch]:
        """See Texts."""
        if tokenizer.splits_at_words:
            ruler = corpora.Ruler(self._corpus, tokenizer)
            for start in self._corpus.starts_from(place, _TRIES):
                yield ruler.stretch(start, tokens)

    def ids(self, tokenizer: Tokenizer, tokens: int, place: int) -> list[int]:
        """See Texts."""
        [start] = self._corpus.starts_from(place, 1)
        return corpora.long_enough(self._corpus.front, tokenizer, tokens, start)[1][:tokens]


class Items:
    """Whole texts: a place is one of them, and behind it come the next."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        self._items = items
        self.places = len(items)

    def own(self, place: int) -> Item | None:
        """See Texts."""
        return self._items[place]

    def longest(self) -> tuple[int, int]:
        """See Texts."""
        both = ((len(one.prompt.encode()), len((one.answer or "").encode())) for one in self._items)
        prompts, answers = zip(*both, strict=True)
        return max(prompts), max(answers)

    def front(self, place: int, chars: int) -> str:
        """So many characters from a text on, going round."""
        found: list[str] = []
        held = 0
        while held < chars:
            found.append(self._items[place % self.places].prompt)
            held += len(found[-1]) + len(_APART)
            place += 1
        return _APART.join(found)[:chars]

    def cut(self, tokenizer: Tokenizer, tokens: int, place: int, skip: int = 0) -> str:
        """See Texts."""
        starts = range(place + skip, place + skip + _TRIES)
        return corpora.cut_from(self.front, tokenizer, tokens, starts)

    def stretches(self, *_: object) -> Iterator[corpora.Stretch]:
        """See Texts: none."""
        yield from ()

    def ids(self, tokenizer: Tokenizer, tokens: int, place: int) -> list[int]:
        """See Texts."""
        return corpora.long_enough(self.front, tokenizer, tokens, place)[1][:tokens]


def texts_of(spec: StandardWorkload) -> Texts:
    """Whose words the workload's prompts are; it must be one of natural text. PlanError where its dataset cannot be used."""
    content = spec.content
    if spec.dataset is not None and content.dataset is not None:
        return Items(pools.load(spec.dataset, content.dataset, spec.dataset_subset).items)
    return Items(_functions()) if content.text == "code" else Prose(corpora.load("english"))


def context_texts(spec: StandardWorkload) -> Texts:
    """Whose words its shared prefixes are: the same, but whole modules of the code corpus instead of its functions' halves."""
    if spec.dataset is None and spec.content.text == "code":
        return Prose(corpora.load("code"))
    return texts_of(spec)


@functools.cache
def _functions() -> tuple[Item, ...]:
    return tuple(map(Item, prompts(corpora.load("code").text, "Python")))


def longest(spec: StandardWorkload) -> tuple[int, int]:
    """The longest prompt, without a shared prefix, and the longest answer, in tokens; an empirical one is a text's."""
    both = (spec.input_tokens, spec.output_tokens)
    own = texts_of(spec).longest() if any(isinstance(length, Empirical) for length in both) else (0, 0)
    prompt, answer = (
        of_text if isinstance(length, Empirical) else length.most()
        for length, of_text in zip(both, own, strict=True)
    )
    return prompt, answer


def facts(spec: StandardWorkload) -> TextSource:
    """What run.json says of them: the corpus (None where there is none) and the dataset. Raises PlanError, as `texts_of`."""
    content = spec.content
    if spec.dataset is not None and content.dataset is not None:
        read = pools.load(spec.dataset, content.dataset, spec.dataset_subset).facts
        version = spec.dataset_version or read.revision
        return TextSource(corpus=None, dataset=msgspec.structs.replace(read, version=version))
    if content.text is None:
        return TextSource(corpus=None, dataset=None)
    corpus = corpora.load(content.text)
    return TextSource(Corpus(corpus.name, corpus.sha256, corpus.language, corpus.source), dataset=None)
