"""Draft 5.2 in closed loop: the concurrency beyond which throughput no longer rises.

Queues cannot grow in closed loop, and completions cannot fall behind arrivals. So a level counts as saturated when it adds less
than 5 % to the throughput of the highest level below it, or when P99 of TTFT exceeds ten times the P50 at the lowest level.
Both are this tool's own rule (docs/tests.md). Levels step up by the increment; the last that still added is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Done, Steps


def steps(setup: Setup) -> Steps:
    """Levels, stepping up."""
    raise NotImplementedError
    yield


def results(setup: Setup, done: Sequence[Done]) -> Results:
    """As in open loop."""
    raise NotImplementedError
