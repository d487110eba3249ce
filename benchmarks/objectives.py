"""How often an objective is decided, and how often wrongly: the product's own decision over repeated runs.

Two limits for each objective: one that the truth exceeds by 25 %, where `met` is wrong, and one of which the truth leaves 25 %,
where `not met` is. Queues and the reference engine are those of coverage.py; the truth is known or that of all runs together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.coverage import (
    ENGINE,
    LOADS,
    REQUESTS,
    Truth,
    capacity,
    exponential,
    longest,
    observed,
    play,
    queue,
)
from benchmarks.figure import Figure, Note
from benchmarks.loads import Bench
from inferometer.judge.slo import Observed, decided
from inferometer.measure.record import Floats, Ints
from inferometer.measure.stats import describe, describe_at
from inferometer.plan.slo import Slo

RUNS, QUICK_RUNS = 40, 8
STATS = ("mean", "p50", "p95", "p99")
BEYOND, INSIDE = 1.25, 0.75
QUEUES = ((0.5, 1_000), (0.8, 1_000), (0.8, 10_000), (0.95, 10_000))
Run = Mapping[str, Observed]


def of_queue(random: np.random.Generator, n: int, rho: float) -> Run:
    """One run of an M/M/1 queue: its times in the system."""
    times, states = queue(random, n, rho)
    wait = longest(times)
    stats = describe(times, states, wait)
    assert stats is not None
    return {"e2e": Observed(stats, times, None, states, wait, float(times.mean()))}


def of_engine(seed: int, rate: float) -> Run:
    """One run of the engine."""
    run = play(seed, rate, REQUESTS, 600)
    states, wait = run.states, longest(run.ttft)
    gaps = np.concatenate([np.diff(one) for one in run.arrivals]) / 1e6
    at_ns = np.concatenate([one[1:] for one in run.arrivals])
    made: dict[str, tuple[Floats, Ints | None, float]] = {
        "ttft": (run.ttft, None, wait),
        "e2e": (run.e2e, None, wait),
        "tpot": (run.tpot, None, 0.0),
        "itl": (gaps, at_ns, 0.0),
    }
    found = {}
    for name, (values, at, waits) in made.items():
        stats = describe(values, states, waits) if at is None else describe_at(values, at, states)
        assert stats is not None
        found[name] = Observed(stats, values, at, states, waits, float(run.e2e.mean()))
    return found


def outcomes(runs: Sequence[Run], truths: Mapping[str, Truth], load: str) -> Iterator[Figure]:
    """How many runs decide each objective, and how many wrongly, with the truth beyond its limit and inside it."""
    for metric, truth in truths.items():
        for stat in STATS:
            for beyond in (True, False):
                limit = truth[stat] / (BEYOND if beyond else INSIDE)
                slo = Slo.parse(f"{metric}_{stat}<{limit:.9f}ms")
                found = [decided(slo, run[metric])[0] for run in runs]
                where = "truth 25 % beyond" if beyond else "truth 25 % inside"
                line = f"{load}, {metric.upper()}"
                yield Figure(
                    stat, sum(one is not None for one in found), digits=0, grid=f"{where}: decided", line=line
                )
                wrong = sum(one is beyond for one in found)
                yield Figure(stat, wrong, digits=0, grid=f"{where}: wrong", line=line)


def objectives(bench: Bench) -> Iterator[Figure | Note]:
    """Decisions about objectives whose truth is known."""
    count = QUICK_RUNS if bench.quick else RUNS
    random = np.random.default_rng(3)
    for rho, n in QUEUES:
        runs = [of_queue(random, n, rho) for _ in range(count)]
        yield from outcomes(runs, {"e2e": exponential(1 / (1 - rho))}, f"M/M/1 at rho {rho}, n = {n}")
    rate = capacity()
    yield Note("runs", f"{count} a cell; engine of {ENGINE.max_batch} places, {REQUESTS} requests a run")
    for load in LOADS:
        runs = [of_engine(10_000 + i, rate * load) for i in range(count)]
        names = ("ttft", "e2e", "tpot", "itl")
        truths = {name: observed(np.concatenate([run[name].values for run in runs])) for name in names}
        yield from outcomes(runs, truths, f"engine at {load:.0%}")
