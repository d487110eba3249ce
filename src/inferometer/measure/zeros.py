"""Values of zero that are told by their number: how many there are is a server's word, and takes no memory.

Distributed ITL has a zero for each token beyond the first of a chunk (samples.py). How many tokens those are stands in the
usage of the answer, or in a record that somebody sent: up to 2^31 a request, whatever was received. They are therefore kept
as instants and counts, and everything that statistics ask of values (stats.py) is answered with them added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.measure.record import Floats, Ints


@dataclass(frozen=True, slots=True)
class Zeros:
    """`counts[i]` values of zero, at least one, that were observed at `at_ns[i]`."""

    at_ns: Ints
    counts: Ints

    @property
    def number(self) -> int:
        """Of all together. More than 2^32 requests would be needed to pass what an int64 holds."""
        return int(self.counts.sum())


class Ascending:
    """`values`, which are in ascending order, with so many zeros in their place among them."""

    def __init__(self, values: Floats, zeros: int = 0) -> None:
        self.values, self.zeros = values, zeros
        self._at = int(np.searchsorted(values, 0.0)) if zeros else 0

    def __len__(self) -> int:
        return len(self.values) + self.zeros

    def __getitem__(self, place: int) -> float:
        """The value number `place`, from 0."""
        if place < self._at:
            return float(self.values[place])
        return 0.0 if place < self._at + self.zeros else float(self.values[place - self.zeros])

    def mean(self) -> float:
        """Of at least one."""
        return float(self.values.sum()) / len(self)

    def before(self, point: float, side: Literal["left", "right"]) -> int:
        """How many are less than `point`; with `right`, or equal to it."""
        zeros = self.zeros if point > 0.0 or (side == "right" and point == 0.0) else 0
        return int(np.searchsorted(self.values, point, side)) + zeros
