"""Waiting until the client's machine is on time again, before a run that it spoilt is made again.

What disturbs a machine (a backup, a neighbour on the same host) often lasts for minutes: a run made again at once is spoilt
like the first. So the timer of the load generator is tried for some seconds at a time, until P99 of its lateness is at most
half of what a run may have, or until patience is at its end. No server is contacted, and nothing that one answered has a part
in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from inferometer.documents.doctor import TimerSeries
from inferometer.judge.checks import LATENESS_MS
from inferometer.studies import instrument_trial

INSTANTS = 5_000
"""A millisecond apart: of five seconds, the worst fiftieth of a second is not looked at, nor is it in a run's P99."""
CALM_MS = LATENESS_MS / 2
PATIENCE_S = 300.0


def tried() -> TimerSeries:
    """One look at the machine."""
    return instrument_trial.timer(INSTANTS)


def await_calm(
    look: Callable[[], TimerSeries] = tried, clock: Callable[[], float] = time.monotonic
) -> TimerSeries:
    """Look until the machine is on time, for PATIENCE_S at most; the last look, by which it may still be late."""
    until = clock() + PATIENCE_S
    while (seen := look()).p99_ms > CALM_MS and clock() < until:
        pass
    return seen
