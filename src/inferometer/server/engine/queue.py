"""Those who wait, in the order of their rank. Who gave up is skipped when reached."""

from __future__ import annotations

import heapq
from typing import Generic

from inferometer.server.engine.emission import K
from inferometer.server.engine.sequence import Sequence


class Queue(Generic[K]):
    """A queue by rank: with equal priorities, first come, first served."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, int, int], Sequence[K]]] = []
        self._gone = 0

    def __len__(self) -> int:
        return len(self._heap) - self._gone

    def push(self, sequence: Sequence[K]) -> None:
        """Stand in line. Ranks differ, so sequences are never compared."""
        heapq.heappush(self._heap, (sequence.rank, sequence))

    def first(self) -> Sequence[K] | None:
        """Whose turn it is."""
        while self._heap and self._heap[0][1].gone:
            heapq.heappop(self._heap)
            self._gone -= 1
        return self._heap[0][1] if self._heap else None

    def pop(self) -> None:
        """Let the first go."""
        heapq.heappop(self._heap)

    def give_up(self) -> None:
        """One of those here has been marked as gone."""
        self._gone += 1
