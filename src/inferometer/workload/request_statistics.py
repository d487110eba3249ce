"""An account of the requests of a run, taken as they pass: lengths, sharing, and the best prefix-hit rate there could be.

A prefix cache without limit, that knows every earlier request of the run and its warm-up, would find of a prompt the
tokens that an earlier one began with: h, the longest common prefix. Over a run

    exact = sum(h) / sum(prompt tokens),        blocks = sum(16 floor(h / 16)) / sum(prompt tokens),

the latter being what a cache of whole blocks of 16 tokens can do. The chat template's own tokens are left out, though a cache
finds those too, and so is what a closed loop that ends by time sends when it goes through its requests again.
Turns of a conversation repeat all before them; where they repeat the server's replies, those are taken to be as long as asked,
and to be kept in its cache. The newest of recorded replies nobody sent or said before. Without nonces (`repeatable`) a server
may know requests from before, so the rates are not known. Requests in flight together cannot hit each other on every engine;
the rate is a bound, not a forecast.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.documents.workload import (
    DrawnRequests,
    Lengths,
    PrefixHits,
    PublishedFigure,
    SharedPrefixes,
    WarmPrefixes,
)
from inferometer.plan.length_histogram import histogram
from inferometer.plan.standard import Published
from inferometer.workload.prompts import Ids, Prompt

BLOCK = 16
MOST_GROUPS = 100
MOST_POINTS = 40
CHANCE_SD = 4.5
"""By so many standard deviations may a figure be off by chance; a good draw is, in fewer than one run in a hundred thousand."""
SHARE_SLACK, MEAN_SLACK = 0.005, 0.02
"""What rounding to whole tokens, clamping and a published "about" may do beside chance: to a share, and to a mean."""


class Prefixes:
    """Everything that was begun with, as a tree: an edge is a run of ids, and each child of a node begins with another id."""

    def __init__(self) -> None:
        self._root: _Node = _Node(np.empty(0, np.uint32))

    def add(self, ids: Ids, *, keep: bool = True) -> int:
        """How many of the first ids an earlier call began with; from now on all of them are known, if they are to be kept."""
        node, at = self._root, 0
        while at < len(ids):
            child = node.children.get(int(ids[at]))
            if child is None:
                if keep:
                    node.children[int(ids[at])] = _Node(ids[at:])
                return at
            edge = child.ids
            length = min(len(edge), len(ids) - at)
            unlike = np.flatnonzero(edge[:length] != ids[at : at + length])
            same = int(unlike[0]) if len(unlike) else length
            if same < len(edge) and not keep:
                return at + same
            if same < len(edge):
                node.children[int(ids[at])] = child.split(same)
                child = node.children[int(ids[at])]
            node, at = child, at + same
        return at


class _Node:
    __slots__ = ("children", "ids")

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.children: dict[int, _Node] = {}

    def split(self, at: int) -> _Node:
        """A node with the first `at` ids, whose only child is the rest of this one."""
        front = _Node(self.ids[:at])
        self.ids = self.ids[at:]
        front.children[int(self.ids[0])] = self
        return front


class Account:
    """See the head. `published`: what the lengths should come to. `repeatable`: requests have no nonces."""

    def __init__(self, published: Sequence[Published] = (), *, repeatable: bool = False) -> None:
        self._published, self._repeatable = published, repeatable
        self._requested, self._shared, self._sent, self._output, self._repeated = (
            array("q") for _ in range(5)
        )
        self._groups: Counter[int] = Counter()
        self._known, self._warm = Prefixes(), Prefixes()
        self._hits = self._block_hits = 0
        self._sharing = self._cold = 0

    def before(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts of a warm-up, each of them known from then on."""
        for prompt in prompts:
            if not prompt.repeated:
                self._warm.add(prompt.key)
            yield prompt

    @property
    def prefixes(self) -> WarmPrefixes:
        """Whether the warm-up sent what measured requests begin with in common, so that a cache knows it: "populated" (all of
        it), "not populated", or "none shared"."""
        return "not populated" if self._cold else "populated" if self._sharing else "none shared"

    def of(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """The prompts, each of them taken in as it passes."""
        for prompt in prompts:
            self._requested.append(prompt.requested + prompt.repeated)
            self._shared.append(prompt.shared)
            self._sent.append(prompt.sent + prompt.repeated)
            self._repeated.append(prompt.repeated)
            self._output.append(prompt.output)
            if prompt.group >= 0:
                self._groups[prompt.group] += 1
            # A conversation is known by its beginning: what it repeats was sent or answered before, and only there.
            hit = prompt.known if prompt.repeated else self._begun(prompt.key)
            self._hits += hit
            self._block_hits += hit // BLOCK * BLOCK
            yield prompt

    def _begun(self, key: Ids) -> int:
        """How many of its first ids an earlier request had, of the run or of its warm-up."""
        here, warm = self._known.add(key), self._warm.add(key, keep=False)
        # By chance nonces have a first token or two in common, which is less than a block.
        self._sharing += here >= BLOCK
        self._cold += here >= BLOCK and here - warm >= BLOCK
        return max(here, warm)

    def facts(self) -> DrawnRequests:
        """What run.json says of them; statistics are None where there were none."""
        taken = (self._requested, self._shared, self._repeated, self._sent, self._output)
        asked, shared, repeated, sent, output = (np.asarray(values) for values in taken)
        sharing, total = shared[shared > 0], int(sent.sum())
        # What is shared is among what a turn repeats, where it repeats anything.
        drawn = {"input": asked - np.where(repeated > 0, repeated, shared), "output": output}
        return DrawnRequests(
            requests=len(asked),
            input_tokens=_statistics(asked),
            unshared_input_tokens=_statistics(drawn["input"]),
            repeated_input_tokens=_statistics(repeated[repeated > 0]),
            sent_tokens=_statistics(sent),
            output_tokens=_statistics(output),
            shared=SharedPrefixes(
                requests=len(sharing),
                fraction=len(sharing) / len(asked) if len(asked) else None,
                tokens=_statistics(sharing),
                groups=self._by_group(),
                curve=self._curve(),
            ),
            prefix_hits=PrefixHits(
                exact=self._hits / total if total and not self._repeatable else None,
                blocks=self._block_hits / total if total and not self._repeatable else None,
                block_tokens=BLOCK,
            ),
            published=tuple(_held(figure, drawn[figure.side]) for figure in self._published),
            histograms={
                "input_tokens": histogram({"asked": asked, "sent": sent}),
                "output_tokens": histogram({"asked": output}),
            },
        )

    def _by_group(self) -> tuple[int, ...] | None:
        """Requests of each prefix in turn; None where there are too many to list."""
        count = max(self._groups, default=-1) + 1
        return tuple(self._groups[group] for group in range(count)) if count <= MOST_GROUPS else None

    def _curve(self) -> tuple[tuple[int, int], ...]:
        """How uneven the sharing is: (k, requests with one of the k most used prefixes), k from 0 to the prefixes used."""
        ordered = sorted(self._groups.values(), reverse=True)
        carried = np.concatenate(([0], np.cumsum(ordered, dtype=np.int64)))
        kept = np.unique(np.rint(np.linspace(0, len(ordered), MOST_POINTS + 1)).astype(np.int64))
        return tuple((int(k), int(carried[k])) for k in kept)


def _statistics(values: NDArray[np.int64]) -> Lengths | None:
    if not len(values):
        return None
    p50, p95, p99 = np.percentile(values, (50, 95, 99)).tolist()
    return Lengths(float(values.mean()), p50, p95, p99, min=int(values.min()), max=int(values.max()))


_NAMES: Final[Mapping[int | None, Literal["mean", "p50", "p95", "p99"]]] = {
    None: "mean", 50: "p50", 95: "p95", 99: "p99",
}  # fmt: skip


def _held(figure: Published, drawn: NDArray[np.int64]) -> PublishedFigure:
    """A published figure beside what was drawn. `off`: by how much of what is allowed they differ; up to 1 is good.

    A percentile v of p %: the share of lengths up to v against p %, whose standard deviation is sqrt(p (1 - p) / n). A mean:
    against the drawn one, sd / sqrt(n).
    """
    n, percent, tokens = len(drawn), figure.percent, figure.tokens
    value = off = None
    if n and percent is None:
        value = float(drawn.mean())
        chance = float(drawn.std()) / math.sqrt(n)
        off = abs(value - tokens) / (CHANCE_SD * chance + MEAN_SLACK * tokens)
    elif n and percent is not None:
        value, share = float(np.percentile(drawn, percent)), percent / 100
        # Half of those that are just as long count as shorter: lengths are whole numbers.
        below = float((drawn < tokens).mean() + (drawn == tokens).mean() / 2)
        off = abs(below - share) / (CHANCE_SD * math.sqrt(share * (1 - share) / n) + SHARE_SLACK)
    return PublishedFigure(figure.side, _NAMES[percent], tokens, figure.source, drawn=value, off=off)
