"""How often the statistical arrival checks notice a load generator's fault, and how often they raise a false alarm.

A run is n sends of a client that was asked for a Poisson process of rate 1 and does something else; the three checks of
judge/arrival.py look at its sends. A run is noticed if any of them fails. (The check `load_exact` compares instants one by one
and needs no statistics: it notices each of these faults in every run.)

| fault                   | the client                                                                              |
| ----------------------- | --------------------------------------------------------------------------------------- |
| constant, uniform, Erlang-2 | draws gaps of another kind with the same mean: 1; uniform(0, 2); gamma of shape 2    |
| in step                 | has 10 workers that draw the same gaps, a thousandth of a gap apart                     |
| sorted                  | sends gaps in tens, each sorted                                                         |
| slow by 2, 5, 10 %      | needs that much longer for each gap                                                     |
| dropped                 | drops one arrival in 50, in a run that ends by time                                     |
| drift                   | begins slower and ends faster by that share, linearly                                   |
| swings                  | is half as fast and one and a half times as fast for 100 sends each                     |
| floor                   | waits a tenth of the mean gap at least                                                  |
| quantised               | sends on a grid of a fifth of the mean gap                                              |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import Bench
from inferometer.judge.arrival import Process, arrival_checks, compare
from inferometer.measure.record import Floats

SIZES = (400, 1_000, 2_000, 10_000)
RUNS, QUICK_RUNS = 200, 10
TRUE_RUNS, QUICK_TRUE_RUNS = 3_000, 50
SHAPES = (1.0, 0.1, 0.25, 4.0)
SEED = 20_261_122
Sends = tuple[Floats, float | None]
"""Send times, and the duration if that ended the run."""
Fault = Callable[[np.random.Generator, int], Sends]


def _gaps(random: np.random.Generator, n: int) -> Floats:
    return random.exponential(1.0, n)


def _slow(share: float) -> Fault:
    return lambda random, n: (np.cumsum(_gaps(random, n) * (1 + share)), None)


def _drift(share: float) -> Fault:
    def drift(random: np.random.Generator, n: int) -> Sends:
        return np.cumsum(_gaps(random, n) / np.linspace(1 - share, 1 + share, n)), None

    return drift


def _in_step(random: np.random.Generator, n: int) -> Sends:
    one = np.cumsum(_gaps(random, n // 10) * 10)
    return np.sort(np.concatenate([one + worker / 1_000 for worker in range(10)])), None


def _dropped(random: np.random.Generator, n: int) -> Sends:
    sends = np.cumsum(_gaps(random, 2 * n))
    sends = sends[sends < n]
    return sends[random.random(len(sends)) >= 1 / 50], float(n)


def _swings(random: np.random.Generator, n: int) -> Sends:
    pace = np.where(np.arange(n) // 100 % 2, 1.5, 0.5)
    return np.cumsum(_gaps(random, n) / pace * (1 / pace).mean() ** -1), None


FAULTS: Mapping[str, Fault] = {
    "constant gaps": lambda _, n: (np.arange(1.0, n + 1), None),
    "uniform gaps": lambda random, n: (np.cumsum(random.uniform(0, 2, n)), None),
    "Erlang-2 gaps": lambda random, n: (np.cumsum(random.gamma(2, 0.5, n)), None),
    "workers in step": _in_step,
    "gaps sorted in tens": lambda random, n: (
        np.cumsum(np.sort(_gaps(random, n).reshape(-1, 10), axis=1).ravel()),
        None,
    ),
    "2 % slow": _slow(0.02),
    "5 % slow": _slow(0.05),
    "10 % slow": _slow(0.10),
    "2 % dropped": _dropped,
    "drift, +-20 %": _drift(0.2),
    "drift, +-50 %": _drift(0.5),
    "swings, +-50 %": _swings,
    "gaps of at least 0.1": lambda random, n: (np.cumsum(np.maximum(_gaps(random, n), 0.1)), None),
    "on a grid of 0.2": lambda random, n: (np.ceil(np.cumsum(_gaps(random, n)) / 0.2) * 0.2, None),
}


def noticed(process: Process, sends: Floats, duration: float | None) -> bool:
    """Whether any of the three checks fails."""
    comparison = compare(process, sends, np.zeros(0), duration)
    return any(check.status == "fail" for check in arrival_checks(comparison))


def power(bench: Bench) -> Iterator[Figure | Note]:
    """Per cent of the runs with each fault that are noticed, by the number of sends; and false alarms in 1,000 true runs."""
    runs = QUICK_RUNS if bench.quick else RUNS
    poisson = Process(1.0, 1.0)
    for name, fault in FAULTS.items():
        for n in SIZES:
            random = np.random.default_rng((SEED, n))
            found = sum(noticed(poisson, *fault(random, n)) for _ in range(runs))
            yield Figure(f"n = {n:,}", 100 * found / runs, "%", digits=0, grid="noticed", line=name)
    alarms = trials = 0
    for shape in SHAPES:
        for n in (100, *SIZES):
            random = np.random.default_rng((SEED, n, round(100 * shape)))
            some = (QUICK_TRUE_RUNS if bench.quick else TRUE_RUNS) // (5 if n > 2_000 else 1)
            for _ in range(some):
                sends = np.cumsum(random.gamma(shape, 1 / shape, n))
                alarms += noticed(Process(1.0, shape), sends, None)
            trials += some
    yield Figure("false alarms in 1,000 true runs", 1_000 * alarms / trials, "", at_most(1.0), 2)
    yield Note("true runs", f"{trials:,}, {alarms} of them with an alarm")
