"""What a short time slice is worth to a process that shares its core: `python -m benchmarks.time_slice [PAIRS]`.

In turns, a process with the slice that the system gives it and one with a short one (drive/time_slice.py) wake up every 5 ms on
a core on which another process only computes. Printed is how late they woke up, P50 and P99, and the median of the ratios.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import statistics
import sys
import time

import numpy as np

from inferometer.drive.poller import Timer
from inferometer.drive.time_slice import shorten

EVERY_NS, TIMES = 5_000_000, 2_000
WORK_NS = 200_000
"""What a worker does when it wakes up takes some time."""


def _compute(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        pass


def _wake(core: int, short: bool, late: multiprocessing.Queue[list[int]]) -> None:
    os.sched_setaffinity(0, {core})
    if short:
        shorten()
    timer, found = Timer(), list[int]()
    due = time.monotonic_ns() + EVERY_NS
    for _ in range(TIMES):
        timer.arm(due)
        select.select([timer.fd], [], [])
        woken = time.monotonic_ns()
        timer.fired()
        found.append(woken - due)
        while time.monotonic_ns() < woken + WORK_NS:
            pass
        due = max(due + EVERY_NS, woken + WORK_NS)
    late.put(found)


def lateness_ms(core: int, *, short: bool) -> tuple[float, float]:
    """P50 and P99."""
    late: multiprocessing.Queue[list[int]] = multiprocessing.Queue()
    waking = multiprocessing.Process(target=_wake, args=(core, short, late))
    waking.start()
    found = np.array(late.get(timeout=60)) / 1e6
    waking.join()
    return float(np.percentile(found, 50)), float(np.percentile(found, 99))


def main(pairs: int) -> None:
    """Prints a line a pair."""
    core = max(os.sched_getaffinity(0))
    computing = multiprocessing.Process(target=_compute, args=(core,), daemon=True)
    computing.start()
    ratios = []
    try:
        for _ in range(pairs):
            (p50, p99), (short_p50, short_p99) = (lateness_ms(core, short=short) for short in (False, True))
            ratios.append(short_p99 / p99)
            print(
                f"P50 {p50:.3f} and {short_p50:.3f} ms, P99 {p99:.3f} and {short_p99:.3f} ms, ratio {ratios[-1]:.2f}"
            )
    finally:
        computing.kill()
    print(f"P99 of lateness, short slice to the system's: median {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
