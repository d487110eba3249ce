"""How near the percentile estimates of histograms come to the samples that were put into them.

Latencies are drawn, arrive at random, are counted into buckets as vLLM has them, and scraped at an interval; each estimator is
given what was scraped and nothing else. The error of a percentile is abs(estimate - true) / true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.figure import Figure, Note
from benchmarks.loads import Bench
from inferometer.telemetry.metrics.estimators import ESTIMATORS
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Floats, Observed

SECONDS = 60
LOADS = (2, 20)
"""Requests a second."""
INTERVALS = (0.1, 0.333, 2.0)
"""s between scrapes."""
TOKENS = 48
"""Inter-token latencies a request."""
SEEDS, QUICK_SEEDS = 40, 2
FIRST_SEED = 1000
"""The constants of `smooth` were chosen on seeds 0 to 9: none of those is measured with."""

_REQUEST = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
_BETWEEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_SHORT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5)
Draws = npt.NDArray[np.float64]


SHAPES: dict[str, Callable[[np.random.Generator, int, float, float], Draws]] = {
    "log-normal": lambda rng, count, median, sigma: median * np.exp(sigma * rng.standard_normal(count)),
    "gamma": lambda rng, count, shape, scale: rng.gamma(shape, scale, count),
    "uniform": lambda rng, count, low, high: rng.uniform(low, high, count),
    "exponential": lambda rng, count, least, mean: least + rng.exponential(mean, count),
}


@dataclass(frozen=True, slots=True)
class Population:
    """Latencies of one kind, s, counted into `bounds`; `each` of them a request.

    Parts are a share, a shape and its two numbers: log-normal (median, sigma), gamma (shape, scale), uniform (from, to),
    exponential (least, mean above it). The last latency of a minute is `drift` times as long as it would be without.
    """

    name: str
    bounds: Sequence[float]
    parts: Sequence[tuple[float, str, float, float]]
    each: int = 1
    drift: float = 1.0

    def draw(self, count: int, rng: np.random.Generator) -> Draws:
        """That many of them."""
        part = rng.choice(len(self.parts), count, p=[share for share, *_ in self.parts])
        drawn = np.array([SHAPES[shape](rng, count, a, b) for _, shape, a, b in self.parts])
        return drawn[part, np.arange(count)] * np.linspace(1, self.drift, count)


KINDS: dict[str, tuple[Population, ...]] = {
    "log-normal": (
        Population("time to first token", _FIRST_TOKEN, [(1, "log-normal", 0.18, 0.55)]),
        Population("request latency", _REQUEST, [(1, "log-normal", 3.2, 0.45)]),
        Population("queue time", _REQUEST, [(1, "log-normal", 0.6, 1.1)]),
        Population("inter-token latency", _BETWEEN, [(1, "log-normal", 0.018, 0.35)], TOKENS),
    ),
    "bimodal": (
        Population(
            "cache hit or miss",
            _FIRST_TOKEN,
            [(0.6, "log-normal", 0.045, 0.25), (0.4, "log-normal", 1.4, 0.3)],
        ),
        Population(
            "short or long answers",
            _REQUEST,
            [(0.7, "log-normal", 0.9, 0.3), (0.3, "log-normal", 17.0, 0.25)],
        ),
        Population(
            "decode or prefill",
            _BETWEEN,
            [(0.9, "log-normal", 0.014, 0.15), (0.1, "log-normal", 0.12, 0.2)],
            TOKENS,
        ),
    ),
    "boundary-hugging": (
        Population(
            "just below a bound",
            _FIRST_TOKEN,
            [(0.8, "log-normal", 0.245, 0.008), (0.2, "log-normal", 0.4, 0.3)],
        ),
        Population(
            "just above a bound", _REQUEST, [(0.9, "log-normal", 5.1, 0.008), (0.1, "log-normal", 7.0, 0.2)]
        ),
        Population("steady", _BETWEEN, [(1, "log-normal", 0.0245, 0.004)], TOKENS),
    ),
    "other shapes": (
        Population("gamma", _FIRST_TOKEN, [(1, "gamma", 2.0, 0.15)]),
        Population("uniform", _REQUEST, [(1, "uniform", 0.6, 8.0)]),
        Population("shifted exponential", _REQUEST, [(1, "exponential", 0.9, 1.5)]),
        Population(
            "shifted exponential, between tokens", _BETWEEN, [(1, "exponential", 0.008, 0.01)], TOKENS
        ),
    ),
    "drifting": (
        Population("time to first token, 4 times", _FIRST_TOKEN, [(1, "log-normal", 0.12, 0.4)], drift=4),
        Population("request latency, 3 times", _REQUEST, [(1, "log-normal", 2.0, 0.3)], drift=3),
        Population("inter-token latency, twice", _BETWEEN, [(1, "log-normal", 0.015, 0.3)], TOKENS, drift=2),
    ),
    "above the last bound": (
        Population("a fifth in +Inf", _SHORT, [(1, "log-normal", 0.25, 0.8)]),
        Population("a tenth in +Inf", _SHORT, [(1, "log-normal", 0.18, 0.8)]),
    ),
}


def observe(
    population: Population, rate: float, interval: float, rng: np.random.Generator
) -> tuple[Observed, Floats]:
    """What scrapes tell of a minute of this load, and the true percentiles."""
    requests = rng.poisson(rate * SECONDS)
    arrivals = np.sort(rng.uniform(0, SECONDS, max(requests, 2)))
    times = np.repeat(arrivals, population.each)
    values = population.draw(len(times), rng)
    scrapes = np.append(np.arange(0, SECONDS, interval), SECONDS)
    seen = np.searchsorted(times, scrapes, "right")
    bounds = np.append(np.asarray(population.bounds, dtype=float), np.inf)
    bucket = np.searchsorted(bounds, values, "left")
    table = np.zeros((len(values) + 1, len(bounds)))
    table[np.arange(1, len(values) + 1), bucket] = 1
    buckets = np.cumsum(np.cumsum(table, axis=0)[seen], axis=1)
    sums = np.concatenate([[0.0], np.cumsum(values)])[seen]
    observed = Observed(
        bounds, buckets[-1], float(sums[-1]), float(len(values)), buckets, sums, buckets[:, -1], len(seen)
    )
    return observed, np.percentile(values, PERCENTILES)


def errors(kind: str, seeds: int) -> dict[str, Floats]:
    """By estimator, the relative errors: (cases, percentiles)."""
    found: dict[str, list[Floats]] = {name: [] for name in ESTIMATORS}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for population in KINDS[kind]:
            for rate in LOADS:
                for interval in INTERVALS:
                    # The same observations at every scrape rate.
                    rng = np.random.default_rng([seed, rate, *population.name.encode()])
                    observed, true = observe(population, rate, interval, rng)
                    for name, estimator in ESTIMATORS.items():
                        estimate = estimator(observed)
                        assert estimate is not None
                        found[name].append(np.abs(estimate - true) / true)
    return {name: np.array(rows) for name, rows in found.items()}


def accuracy(bench: Bench) -> Iterator[Figure | Note]:
    """Mean relative errors by kind of latencies, over loads and scrape intervals."""
    seeds = QUICK_SEEDS if bench.quick else SEEDS
    yield Note(
        "cases", f"{seeds} seeds x {LOADS} requests/s x {INTERVALS} s between scrapes, {SECONDS} s each"
    )
    for kind in KINDS:
        for name, rows in errors(kind, seeds).items():
            each = 100 * rows.mean(axis=0)
            for percentile, value in zip(PERCENTILES, each, strict=True):
                yield Figure(f"p{percentile}", float(value), "%", None, 1, kind, name)
            yield Figure("all", float(each.mean()), "%", None, 1, kind, name)
            yield Figure("p50-p99", float(each[4:].mean()), "%", None, 1, kind, name)
