"""Recordings of when each request began and ended: which requests each had to wait for.

Of the requests of its own agent that had ended when it began, and of the agents below that one, a request waits for those that
no other of them waited for. An agent's first request waits so for the requests of the agent above it. The delay is from the
last end among them to its beginning, so that a replay in which every request takes its recorded time has the recorded times.

    main     ├─plan─┤                    ├─answer─┤       `answer` waits for find and read, not for plan
    finder           ├──find──┤                           `find` and `read` wait for plan, not for each other
    reader            ├───read────┤
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MOST_DEPTH = 100
"""Agents above one another."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request: ns on the recording's clock, `agent`: a number."""

    start_ns: int
    end_ns: int
    agent: int


def waits(requests: Sequence[Recorded], above: Sequence[int]) -> list[tuple[int, ...]]:
    """What each request waits for. `requests`: in order of `start_ns`; `above`: of each agent the agent above it, -1: none."""
    ended: list[tuple[int, int]] = []
    found: list[tuple[int, ...]] = []
    fronts: dict[int, dict[int, None]] = {}
    frozen: dict[int, tuple[int, ...]] = {}
    for number, one in enumerate(requests):
        while ended and ended[0][0] <= one.start_ns:
            _, last = heapq.heappop(ended)
            for agent in _lineage(requests[last].agent, above):
                front = fronts.setdefault(agent, {})
                for before in found[last]:
                    front.pop(before, None)
                front[last] = None
                frozen.pop(agent, None)
        nearest = next((agent for agent in _lineage(one.agent, above) if agent in fronts), None)
        if nearest is None:
            found.append(())
        else:
            if nearest not in frozen:
                frozen[nearest] = tuple(fronts[nearest])
            found.append(frozen[nearest])
        heapq.heappush(ended, (one.end_ns, number))
    return found


def _lineage(agent: int, above: Sequence[int]) -> list[int]:
    """The agent and those above it."""
    line: list[int] = []
    while agent != -1 and len(line) <= MOST_DEPTH:
        line.append(agent)
        agent = above[agent]
    return line


class Busy:
    """Times at which at least one of some intervals ran."""

    def __init__(self, intervals: Sequence[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(intervals):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def within(self, start_ns: int, end_ns: int) -> int:
        """How much of the time from one instant to another it was."""
        total = 0
        for at in range(bisect_right(self._ends, start_ns), len(self._starts)):
            if self._starts[at] >= end_ns:
                break
            total += min(self._ends[at], end_ns) - max(self._starts[at], start_ns)
        return total
