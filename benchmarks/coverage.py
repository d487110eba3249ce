"""How often the 95 % intervals hold the truth, and how often there is one: the product's own functions over repeated runs.

| cell                | values                                                      | the truth is                         |
| ------------------- | ----------------------------------------------------------- | ------------------------------------ |
| exponential, log-normal, bimodal | independent                                    | known                                |
| M/M/1               | times in the system, from a stationary start                | known (exponential, mean 1 / (1 - rho)) |
| engine              | the reference engine, Poisson arrivals, at a share of what  | that of all replications together    |
|                     | it can carry at most                                        |                                      |

An interval that is withheld neither covers nor misses; `wrong` is the share of all runs that have an interval without the truth
in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.figure import Figure, Note
from benchmarks.loads import Bench
from inferometer.measure.load import Span
from inferometer.measure.load_states import LoadStates, load_states
from inferometer.measure.record import Floats, Ints
from inferometer.measure.stats import describe, describe_at
from inferometer.measure.throughput import rate_interval
from inferometer.metrics.statistics import Interval, Stats
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings

REPLICATIONS, QUICK_REPLICATIONS = 500, 20
REQUESTS = 1_000
POINTS = ("mean", "p50", "p90", "p95", "p99")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
LOADS = (0.5, 0.75, 0.9)
ENGINE = Settings(max_batch=32)
GOOD_TTFT_MS, GOOD_E2E_MS = 15.0, 500.0
Truth = Mapping[str, float]


@dataclass
class Tally:
    """Of how many runs: with an interval, and with the truth in it."""

    runs: int = 0
    given: int = 0
    held: int = 0

    def add(self, interval: Interval | None, truth: float) -> None:
        """One run."""
        self.runs += 1
        if interval is not None:
            self.given += 1
            self.held += interval[0] <= truth <= interval[1]

    def figures(self, line: str, label: str) -> Iterator[Figure]:
        """Shares in per cent, in three tables: a line a cell, a column a statistic."""
        yield Figure(
            label, 100 * self.given / max(self.runs, 1), "%", digits=0, grid="interval given", line=line
        )
        covers = 100 * self.held / self.given if self.given else math.nan
        yield Figure(label, covers, "%", digits=1, grid="truth held, of those given", line=line)
        wrong = 100 * (self.given - self.held) / max(self.runs, 1)
        yield Figure(label, wrong, "%", digits=1, grid="interval without the truth, of all runs", line=line)


def exponential(mean: float) -> Truth:
    """Mean and quantiles."""
    return {"mean": mean, **{name: -mean * math.log(1 - p) for name, p in QUANTILES.items()}}


def observed(values: Floats) -> Truth:
    """Mean and quantiles of very many values, as the truth of them."""
    points = zip(QUANTILES, np.quantile(values, list(QUANTILES.values())), strict=True)
    return {"mean": float(values.mean()), **{name: float(point) for name, point in points}}


def bimodal(random: np.random.Generator, n: int) -> Floats:
    """Four fifths near 1, one fifth near 5."""
    return np.where(random.random(n) < 0.8, random.normal(1, 0.1, n), random.normal(5, 0.5, n))


INDEPENDENT: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "exponential": lambda random, n: random.exponential(1, n),
    "log-normal": lambda random, n: random.lognormal(0, 1, n),
    "bimodal": bimodal,
}


def queue(random: np.random.Generator, n: int, rho: float) -> tuple[Floats, LoadStates]:
    """Times in an M/M/1 queue with services of mean 1, and the states of its load."""
    gaps, services = random.exponential(1 / rho, n), random.exponential(1, n)
    wait = random.exponential(1 / (1 - rho)) if random.random() < rho else 0.0
    times = np.empty(n)
    for i in range(n):
        times[i] = wait + services[i]
        wait = max(0.0, times[i] - gaps[i])
    begins = np.concatenate(([0.0], np.cumsum(gaps)[:-1]))
    return times, load_states(present(begins, begins + times), times, float(begins[-1]))


def longest(waits: Floats) -> float:
    """How much longer the longest wait was than the mean one."""
    return float(waits.max() - waits.mean())


def present(begins: Floats, ends: Floats) -> Floats:
    """Requests in flight right after each begins."""
    still = np.arange(1, len(begins) + 1) - np.searchsorted(np.sort(ends), begins, side="right")
    return still.astype(np.float64)


def tallied(stats: Iterator[Stats | None], truth: Truth, line: str) -> Iterator[Figure]:
    """The shares of each statistic over replications."""
    tallies = {name: Tally() for name in POINTS}
    for one in stats:
        assert one is not None
        for name, tally in tallies.items():
            tally.add(getattr(one.ci95, name), truth[name])
    for name, tally in tallies.items():
        yield from tally.figures(line, name)


@dataclass(frozen=True, slots=True)
class Played:
    """One run of the engine: by request in order of sending, ms; and each token's instant, ms."""

    sent: Floats
    ttft: Floats
    e2e: Floats
    tokens: Ints
    arrivals: tuple[Ints, ...]
    in_flight: Floats

    @property
    def ends(self) -> Floats:
        """When each request ended."""
        return self.sent + self.e2e

    @property
    def tpot(self) -> Floats:
        """Time per output token."""
        return (self.e2e - self.ttft) / (self.tokens - 1)

    @property
    def states(self) -> LoadStates:
        """The states of its load."""
        return load_states(self.in_flight, self.e2e, float(self.sent[-1] - self.sent[0]))


class Call:
    """A request on its way through the engine."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.tokens: list[int] = []


def play(seed: int, rate: float | None, n: int, warm: int, slots: int = 0) -> Played:
    """`n` requests after `warm` others: Poisson at `rate` a second, or with `slots` in flight."""
    random = np.random.default_rng(seed)
    engine: Engine[Call] = Engine(ENGINE, seed)
    prompts = random.integers(50, 500, n + warm)
    lengths = np.clip(np.round(random.lognormal(math.log(128) - 0.125, 0.5, n + warm)), 2, 2000).astype(int)
    due = (
        np.zeros(n + warm, np.int64)
        if rate is None
        else (np.cumsum(random.exponential(1 / rate, n + warm)) * 1e9).astype(np.int64)
    )
    calls: list[Call] = []

    def send(at: int) -> None:
        calls.append(Call(at))
        engine.submit(calls[-1], int(prompts[len(calls) - 1]), int(lengths[len(calls) - 1]), at)

    for _ in range(slots):
        send(0)
    while True:
        at = engine.next_due()
        if rate is not None and len(calls) < len(due) and (at is None or due[len(calls)] <= at):
            send(int(due[len(calls)]))
        elif at is None:
            break
        else:
            while (emission := engine.advance(at)) is not None:
                for call, _, count, ended in emission.tokens:
                    call.tokens.extend([int(emission.at)] * count)
                    if ended and rate is None and len(calls) < len(due):
                        send(int(emission.at))
    kept = calls[warm:]
    first, last = (np.array([call.tokens[end] for call in kept]) / 1e6 for end in (0, -1))
    sent = np.array([call.at for call in kept]) / 1e6
    arrivals = tuple(np.array(call.tokens) for call in kept)
    begins, ends = (
        np.array(instants) for instants in ([call.at for call in calls], [call.tokens[-1] for call in calls])
    )
    in_flight = present(begins, ends)[warm:]
    tokens = np.array([len(call.tokens) for call in kept])
    return Played(sent, first - sent, last - sent, tokens, arrivals, in_flight)


def capacity() -> float:
    """Requests a second that the engine ends with twice its places in flight."""
    run = play(1, None, 2_000, 200, slots=2 * ENGINE.max_batch)
    ends = np.sort(run.ends)[200:-200]
    return (len(ends) - 1) / float(ends[-1] - ends[0]) * 1_000


def described(run: Played) -> dict[str, Stats | None]:
    """The metrics of a run, by the product's functions."""
    states, wait = run.states, longest(run.ttft)
    gaps = np.concatenate([np.diff(one) for one in run.arrivals]) / 1e6
    return {
        "TTFT": describe(run.ttft, states, wait),
        "E2E": describe(run.e2e, states, wait),
        "TPOT": describe(run.tpot, states),
        "ITL": describe_at(gaps, np.concatenate([one[1:] for one in run.arrivals]), states),
    }


def goodput(run: Played) -> tuple[float, Interval | None]:
    """Requests a second that meet both limits, over the span from a tenth of the sends to their end, and its interval."""
    good = ((run.ttft <= GOOD_TTFT_MS) & (run.e2e <= GOOD_E2E_MS)).astype(np.float64)
    start, end = int(run.sent[0] * 1e6), int(run.sent[-1] * 1e6)
    span = Span(start + (end - start) // 10, end)
    at = (run.ends * 1e6).astype(np.int64)
    inside = (at >= span.start) & (at < span.end)
    long_s = float(np.quantile(run.e2e, 0.9)) / 1_000
    return float(good[inside].sum()) / span.seconds, rate_interval(at, good, span, long_s, run.states.count)


def of_engine(load: float, rate: float, replications: int) -> Iterator[Figure]:
    """One load of the engine."""
    runs: Sequence[Played] = [play(1_000 + i, rate * load, REQUESTS, 600) for i in range(replications)]
    truths = {
        "TTFT": observed(np.concatenate([run.ttft for run in runs])),
        "E2E": observed(np.concatenate([run.e2e for run in runs])),
        "TPOT": observed(np.concatenate([run.tpot for run in runs])),
        "ITL": observed(np.concatenate([np.diff(one) for run in runs for one in run.arrivals]) / 1e6),
    }
    all_stats = [described(run) for run in runs]
    for metric, truth in truths.items():
        yield from tallied((one[metric] for one in all_stats), truth, f"engine at {load:.0%}, {metric}")
    rates = [goodput(run) for run in runs]
    truth_rate = math.fsum(value for value, _ in rates) / len(rates)
    tally = Tally()
    for _, interval in rates:
        tally.add(interval, truth_rate)
    yield from tally.figures(f"engine at {load:.0%}, goodput", "mean")


def coverage(bench: Bench) -> Iterator[Figure | Note]:
    """Coverage of the intervals of latency and goodput."""
    replications = QUICK_REPLICATIONS if bench.quick else REPLICATIONS
    random = np.random.default_rng(1)
    for name, draw in INDEPENDENT.items():
        truth = (
            observed(draw(np.random.default_rng(2), 4_000_000)) if name != "exponential" else exponential(1)
        )
        for n in (100, 1_000, 10_000):
            stats = (describe(draw(random, n)) for _ in range(replications))
            yield from tallied(stats, truth, f"{name}, n = {n}")
    for rho in (0.5, 0.8, 0.95):
        for n in (1_000, 10_000):
            drawn = (queue(random, n, rho) for _ in range(replications))
            stats = (describe(times, states, longest(times)) for times, states in drawn)
            yield from tallied(stats, exponential(1 / (1 - rho)), f"M/M/1 at rho {rho}, n = {n}")
    rate = capacity()
    yield Note(
        "engine", f"{ENGINE.max_batch} places, at most {rate:.1f} requests/s; {REQUESTS} requests a run"
    )
    for load in LOADS:
        yield from of_engine(load, rate, replications)
