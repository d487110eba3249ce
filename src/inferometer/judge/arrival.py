"""Is the achieved arrival process the one asked for?

From the send times s_1 <= ... <= s_n (t_submit) come the gaps g_i = s_(i+1) - s_i, with mean m, and three statistics:

| statistic  | formula                                              | Poisson | gamma, shape k | constant |
| ---------- | ---------------------------------------------------- | ------- | -------------- | -------- |
| rate       | (n - 1) / (s_n - s_1); ended by duration D: n / D    | r       | r              | r        |
| dispersion | sum (g - m)^2 / ((n - 1) m^2), the gaps' CV^2        | 1       | 1 / k          | 0        |
| lag1       | sum (g_i - m)(g_(i+1) - m) / sum (g_i - m)^2         | 0       | 0              | -        |

This is what an outsider can verify, who sees the sends and knows the process but not its instants. Gross faults leave a trace:
workers that send in step raise the dispersion, gaps of the wrong kind have the wrong dispersion, bursts and pauses that follow
each other correlate neighbours, and a fifth of the arrivals dropped lowers the rate. Small ones leave none in a run of ordinary
length (docs/method.md has the measured power), so whether the load was the plan's is decided by load_proof.py, exactly.

Limits come from simulating the asked process with the same n (fixed seed): centre +- LIMIT_SD standard deviations, on a
logarithmic scale for rate and dispersion, and wider on the side to which the statistic leans: by (z^2 - 1) skewness / 6
(Cornish and Fisher 1938), which matters for very bursty gaps. A client within its lateness limit may
shift every send a little; so the process is also simulated with the lateness that was seen (never more than is allowed) dealt
out at random, and the limits span both. What is later than allowed gets no such pardon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.verdict import Check
from inferometer.measure.record import Floats

MIN_SENDS = 100
"""With fewer sends the limits are so wide that a pass would mean nothing."""

LIMIT_SD = 3.7
"""Two-sided normal tail 2.2e-4 for each of three statistics, which have somewhat heavier tails: less than one false alarm in a
thousand runs. Measured rate: benchmarks/arrival_power.py, docs/method.md."""

CONSTANT_RATE_ERROR = 0.005
"""A constant process has no variance of its own; half a percent lets clocks and the last gap be what they are."""

CONSTANT_DISPERSION = 0.01
"""Gaps that wander by a tenth of their length (standard deviation); Poisson has 1."""

_REPLICAS = 400
_SIMULATED = 4_000
"""Sends a replica at most: standard deviations shrink as 1 / sqrt(n) and are scaled from here."""

_SEED = 20_260_501
_NEGLIGIBLE = 1e-3
"""Lateness below this share of the mean gap changes no statistic."""


@dataclass(frozen=True, slots=True)
class Process:
    """The arrival process asked for: `rate` per second, gap shape k (None: constant gaps)."""

    rate: float
    shape: float | None


class Statistics(NamedTuple):
    """The three statistics above."""

    rate: float
    dispersion: float
    lag1: float


class Limits(NamedTuple):
    """Allowed [low, high] of each statistic; `lag1` None for a constant process."""

    rate: tuple[float, float]
    dispersion: tuple[float, float]
    lag1: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ArrivalCheck:
    """What was seen and what was allowed, for the report. Rates per second, the rest plain numbers."""

    rate: float
    rate_expected: float
    rate_limits: tuple[float, float]
    dispersion: float
    dispersion_expected: tuple[float, float]
    lag1: float
    lag1_limit: tuple[float, float] | None
    n: int


def statistics(sends_s: Floats, duration_s: float | None = None) -> Statistics:
    """Statistics of ascending send times in s, three or more of them and not all equal. `duration_s`: the run ended by time."""
    gaps = np.diff(sends_s)
    mean = float(gaps.mean())
    centred = gaps - mean
    squares = float(centred @ centred)
    rate = 1 / mean if duration_s is None else len(sends_s) / duration_s
    lag1 = float(centred[:-1] @ centred[1:]) / squares if squares > 0 else 0.0
    return Statistics(rate, squares / (len(gaps) - 1) / mean**2, lag1)


def limits(process: Process, n: int, lateness_s: Floats) -> Limits:
    """Allowed ranges for n sends of the process. `lateness_s`: the lateness to pardon, one entry a send, none negative."""
    late = lateness_s * process.rate  # in mean gaps: the simulation runs at rate 1
    plain = _limits(process.shape, n, _simulate(process.shape, n))
    bounds = [plain]
    if len(late) and float(late.max()) > _NEGLIGIBLE:
        bounds.append(_limits(process.shape, n, _run_simulation(process.shape, n, late)))
    rates = [bound.rate for bound in bounds]
    dispersions = [bound.dispersion for bound in bounds]
    lags = [bound.lag1 for bound in bounds if bound.lag1 is not None]
    rate_low, rate_high = _span(rates)
    return Limits(
        (rate_low * process.rate, rate_high * process.rate), _span(dispersions), _span(lags) if lags else None
    )


def _span(ranges: list[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


class _Moments(NamedTuple):
    """Mean, standard deviation and skewness over replicas, of log rate, log dispersion and lag1 in turn."""

    mean: Floats
    sd: Floats
    skewness: Floats


@lru_cache(maxsize=64)
def _simulate(shape: float | None, n: int) -> _Moments:
    """Moments of the process itself, whose limits for n -> infinity are known: the bias of order 1 / n is scaled to n."""
    moments = _run_simulation(shape, n, np.zeros(0))
    if shape is None:
        return moments
    endless = np.array([0.0, -math.log(shape), 0.0])
    return moments._replace(mean=endless + min(n, _SIMULATED) / n * (moments.mean - endless))


def _run_simulation(shape: float | None, n: int, late: Floats) -> _Moments:
    """Simulate at rate 1. Replicas of a long run are shorter than it, and their moments scaled."""
    size = min(n, _SIMULATED)
    random = np.random.default_rng(_SEED)
    gaps = np.ones((_REPLICAS, size)) if shape is None else random.gamma(shape, 1 / shape, (_REPLICAS, size))
    if len(late):
        sends = np.cumsum(gaps, axis=1) + random.choice(late, (_REPLICAS, size))
        gaps = np.diff(np.sort(sends, axis=1), axis=1)
    else:
        gaps = gaps[:, 1:]
    mean = gaps.mean(axis=1, keepdims=True)
    centred = gaps - mean
    squares = (centred**2).sum(axis=1)
    dispersion = squares / (gaps.shape[1] - 1) / mean[:, 0] ** 2
    tiny = np.finfo(np.float64).tiny
    lag1 = (centred[:, :-1] * centred[:, 1:]).sum(axis=1) / np.maximum(squares, tiny)
    columns = np.column_stack((-np.log(mean[:, 0]), np.log(np.maximum(dispersion, tiny)), lag1))
    middle, sd = columns.mean(axis=0), columns.std(axis=0)
    skewness = (((columns - middle) / np.maximum(sd, tiny)) ** 3).mean(axis=0)
    scale = math.sqrt(size / n)
    return _Moments(middle, scale * sd, scale * skewness)


def _limits(shape: float | None, n: int, moments: _Moments) -> Limits:
    lean = (LIMIT_SD**2 - 1) / 6 * moments.skewness
    lows = (moments.mean - moments.sd * (LIMIT_SD + np.maximum(-lean, 0))).tolist()
    highs = (moments.mean + moments.sd * (LIMIT_SD + np.maximum(lean, 0))).tolist()
    if shape is None:
        error = CONSTANT_RATE_ERROR + 1.5 / n  # by duration, one send more or less is a matter of rounding
        return Limits(
            (math.exp(lows[0]) - error, math.exp(highs[0]) + error),
            (0.0, max(CONSTANT_DISPERSION, math.exp(highs[1]))),
            None,
        )
    edge = 1.5 / n
    return Limits(
        (math.exp(lows[0]) - edge, math.exp(highs[0]) + edge),
        (math.exp(lows[1]), math.exp(highs[1])),
        (lows[2], highs[2]),
    )


def compare(
    process: Process, sends_s: Floats, lateness_s: Floats, duration_s: float | None
) -> ArrivalCheck | None:
    """Compare ascending send times with the process; None if there are fewer than MIN_SENDS or they do not advance."""
    n = len(sends_s)
    if n < MIN_SENDS or sends_s[-1] <= sends_s[0]:
        return None
    seen = statistics(sends_s, duration_s)
    allowed = limits(process, n, lateness_s)
    return ArrivalCheck(
        seen.rate, process.rate, allowed.rate, seen.dispersion, allowed.dispersion, seen.lag1, allowed.lag1, n
    )


def arrival_checks(comparison: ArrivalCheck | None, *, proved: bool = False) -> tuple[Check, Check, Check]:
    """The three checks; `na` where nothing could be compared. A check's limit is the bound on its value's side.

    `proved`: each arrival was held against its own instant (load_proof.py) and late by no more than is accepted, so a statistic
    that is off is a note.
    """
    if comparison is None:
        return (
            Check("arrival_rate", "na", None, None, "1/s"),
            Check("arrival_dispersion", "na", None, None),
            Check("arrival_lag1", "na", None, None),
        )
    return (
        _check(
            "arrival_rate",
            comparison.rate,
            comparison.rate_limits,
            "1/s",
            {"expected": comparison.rate_expected, "n": comparison.n},
            proved=proved,
        ),
        _check(
            "arrival_dispersion",
            comparison.dispersion,
            comparison.dispersion_expected,
            "",
            {"n": comparison.n},
            proved=proved,
        ),
        _check(
            "arrival_lag1", comparison.lag1, comparison.lag1_limit, "", {"n": comparison.n}, proved=proved
        ),
    )


def replayed_checks(offered: int, rows: int, *, interrupted: bool) -> tuple[Check, Check, Check]:
    """Of a trace: it is no process, and each arrival has its own instant, to which lateness holds it. What can be missed is an
    arrival: `offered` of its `rows` were.
    """
    of = {"of": "trace"}
    status: CheckStatus = "na" if interrupted else "pass" if offered >= rows else "fail"
    return (
        Check("arrival_rate", status, float(offered), float(rows), facts=of),
        Check("arrival_dispersion", "na", None, None, facts=of),
        Check("arrival_lag1", "na", None, None, facts=of),
    )


def _check(
    code: Literal["arrival_rate", "arrival_dispersion", "arrival_lag1"],
    value: float,
    allowed: tuple[float, float] | None,
    unit: str,
    facts: dict[str, float],
    *,
    proved: bool,
) -> Check:
    if allowed is None:
        return Check(code, "na", value, None, unit, dict(facts))
    low, high = allowed
    status: CheckStatus = "pass" if low <= value <= high else "note" if proved else "fail"
    return Check(
        code,
        status,
        value,
        low if value < (low + high) / 2 else high,
        unit,
        {**facts, "low": low, "high": high},
    )
