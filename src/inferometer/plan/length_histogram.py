"""Histograms of lengths in tokens: whole numbers, in the same bins for all that is laid over each other.

Bin i holds the lengths from `edges[i]` up to, but without, `edges[i + 1]`.

| the lengths                              | bins                                                                    |
| ---------------------------------------- | ----------------------------------------------------------------------- |
| the longest is WIDE times the shortest   | growing, for a logarithmic axis: the next edge is e + max(1, floor(r e)) |
| there are no more of them than bins      | each a bin of its own                                                   |
| else                                     | all of one width                                                        |

No bin is narrower than the one before it, so rounding to whole tokens leaves no comb. There are at most MOST bins, and of few
lengths fewer (2 sqrt(n), at least FEWEST): with more, a picture would show chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MOST, FEWEST = 60, 12
WIDE = 16
_GROWTH = (0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """Histograms of sets of lengths in the same bins. `edges` in tokens; `log`: whether the bins grow; `counts`: by the name of
    each set that has any length, how many lie in each bin."""

    edges: tuple[int, ...]
    log: bool
    counts: Mapping[str, tuple[int, ...]]


def histogram(lengths: Mapping[str, ArrayLike]) -> LengthHistogram | None:
    """Histograms of several sets of lengths (tokens, at least 0; NaN: not known) in the bins of them all; None if there are no
    lengths."""
    known = {name: _whole(values) for name, values in lengths.items()}
    known = {name: values for name, values in known.items() if len(values)}
    if not known:
        return None
    low = min(int(values.min()) for values in known.values())
    high = max(int(values.max()) for values in known.values())
    most = min(MOST, max(FEWEST, 2 * math.isqrt(max(map(len, known.values())))))
    log = high >= WIDE * max(low, 1)
    edges = _growing(low, high, most) if log else _even(low, high, most)
    counts = {name: tuple(np.histogram(values, edges)[0].tolist()) for name, values in known.items()}
    return LengthHistogram(tuple(edges), log, counts)


def _whole(values: ArrayLike) -> np.ndarray[Any, np.dtype[np.int64]]:
    floats = np.asarray(values, np.float64)
    return floats[~np.isnan(floats)].astype(np.int64)


def _even(low: int, high: int, most: int) -> list[int]:
    width = -(-(high - low + 1) // most)
    count = -(-(high - low + 1) // width)
    return [low + width * i for i in range(count + 1)]


def _growing(low: int, high: int, most: int) -> list[int]:
    edges: list[int] = []
    for growth in _GROWTH:
        edges = [low]
        while edges[-1] <= high:
            edges.append(edges[-1] + max(1, int(growth * edges[-1])))
        if len(edges) - 1 <= most:
            break
    return edges
