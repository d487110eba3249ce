"""`python -m benchmarks.merged_arrivals [--hosts 8] [--runs 1000]`: how often merged arrivals of load hosts pass their checks.

In virtual time: the same open loop of 1,200 Poisson arrivals as the trial's clean loads of hosts, with another seed each run.
Each host begins where its clock's bound allows, and one has a clock that runs 20 ppm faster. Left out is that hosts are late.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.load_hosts import ARRIVALS
from benchmarks.trial.hosts import agreeing
from benchmarks.trial.playing import Scene
from benchmarks.trial.records import judged, truthful
from inferometer.measure.stats import wilson

REQUESTS, PPM = 1_200, 20.0


def failing(hosts: int, seed: int) -> list[str]:
    """The arrival checks that a run of this seed does not pass."""
    sent = truthful(Scene(seed=seed, requests=REQUESTS))
    merged = agreeing(hosts, PPM)(sent, np.random.default_rng(seed))
    found = {one.code: one.status for one in judged(merged).verdict.checks}
    return [code for code in ARRIVALS if found[code] != "pass"]


def main(argv: Sequence[str]) -> int:
    """Count; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.merged_arrivals", description=(__doc__ or "").partition("\n")[2]
    )
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--runs", type=int, default=1_000)
    given = parser.parse_args(argv)
    each = [failing(given.hosts, 10_000 + seed) for seed in range(given.runs)]
    passed = sum(not codes for codes in each)
    interval = wilson(passed, given.runs)
    assert interval is not None, "there are runs"
    print(
        f"{passed} of {given.runs} pass: {passed / given.runs:.3f} (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
    )
    print(
        ", ".join(
            f"{code} {count}" for code, count in Counter(code for codes in each for code in codes).items()
        )
        or "none failed"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
