"""Service level objectives against a measurement.

An objective is met when the whole 95 % interval of its value meets it, not met when none of it does, and undecided (None)
when the limit lies inside, or when the sample cannot give an interval: more requests would decide it. A maximum is a fact
about this run, without an interval; its value alone decides.

A percentile without an interval may be decided all the same: P99 is below a limit just when less than 1 % of the values are
beyond it. So the share of those is held against 1 - p by Wilson's interval, with as many independent values as the sample is
worth (measure/dependence.py). None of 400 independent values beyond 500 ms shows P99 < 500 ms, wherever P99 itself may lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.judge.checks import failures
from inferometer.measure.dependence import binned, effective_size
from inferometer.measure.measurement import Measurement, samples_of
from inferometer.measure.record import Floats, Record
from inferometer.measure.stats import quantile_interval, quantile_interval_at, share_interval
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import QUANTILES, Interval, Stats
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo

_BARE = ("max",)
_FROM_SAMPLES = {"p75": 0.75, "p99_9": 0.999}


@dataclass(frozen=True, slots=True)
class SloOutcome:
    """One objective's outcome: `value`, `limit` and `ci` in the objective's unit; `met` None is undecided."""

    expr: str
    value: float | None
    limit: float
    unit: str
    met: bool | None
    ci: Interval | None


def slo_outcomes(plan: Plan, measurement: Measurement, record: Record) -> tuple[SloOutcome, ...]:
    """Outcomes of the plan's objectives, in its order."""
    return tuple(_outcome(slo, plan, measurement, record) for slo in plan.slos)


def _outcome(slo: Slo, plan: Plan, measurement: Measurement, record: Record) -> SloOutcome:
    value, interval, bare = _value(slo, plan, measurement, record)
    met: bool | None = None
    if value is not None and bare:
        met = slo.met_by(value)
    elif interval is not None:
        ends = {slo.met_by(end) for end in interval}
        met = ends.pop() if len(ends) == 1 else None
    elif slo.stat in QUANTILES:
        met = _by_share(slo, plan, measurement, record)
    return SloOutcome(str(slo), value, slo.limit, slo.unit, met, interval)


def _value(
    slo: Slo, plan: Plan, measurement: Measurement, record: Record
) -> tuple[float | None, Interval | None, bool]:
    """The objective's value, its interval, and whether the value decides alone."""
    throughput = measurement.throughput
    if slo.metric == "success_rate":
        failed, ended = failures(measurement.requests, interrupted=record.interrupted)
        good = ended - failed
        interval = share_interval(good, ended, measurement.requests.outcomes_effective)
        return (good / ended if ended else None), interval, False
    if slo.stat is None:
        return getattr(throughput.steady, slo.metric), getattr(throughput.ci95, slo.metric), False
    stats: Stats | None = getattr(measurement.metrics, f"{slo.metric}_ms")
    if stats is None:
        return None, None, False
    if slo.stat in _FROM_SAMPLES:
        interval = _interval(slo.metric, _FROM_SAMPLES[slo.stat], plan, record)
    else:
        interval = getattr(stats.ci95, slo.stat, None)
    return getattr(stats, slo.stat), interval, slo.stat in _BARE


def _by_share(slo: Slo, plan: Plan, measurement: Measurement, record: Record) -> bool | None:
    """Whether the share of values beyond the limit is clearly below or above what the percentile allows."""
    stats: Stats | None = getattr(measurement.metrics, f"{slo.metric}_ms")
    if stats is None or stats.n_effective is None or METRICS[f"{slo.metric}_ms"].pooled or slo.stat is None:
        return None
    metric = METRICS[f"{slo.metric}_ms"]
    samples = samples_of(plan, record)
    values: Floats = getattr(samples, slo.metric)[samples.order]
    values = values[~np.isnan(values)]
    beyond = np.array([not slo.met_by(value) for value in values.tolist()], np.float64)
    series = binned(beyond)
    worth = min(stats.n_effective, len(beyond) * effective_size(series) / len(series))
    interval = share_interval(float(beyond.sum()), len(beyond), worth)
    if interval is None:
        return None
    close = (values > slo.limit - samples.wait_ms) & (beyond == 0)  # a longer wait would carry them beyond
    most = interval[1] + (samples.states.unseen * float(close.mean()) if metric.waits else 0.0)
    allowed = 1 - QUANTILES[slo.stat]
    if interval[0] <= allowed <= most:
        return None
    return most < allowed


def _interval(metric: str, p: float, plan: Plan, record: Record) -> Interval | None:
    """The interval of a percentile that the metric's statistics do not carry."""
    samples = samples_of(plan, record)
    if METRICS[f"{metric}_ms"].pooled:
        found = quantile_interval_at(samples.gaps, samples.gap_ns, p, samples.states)
    else:
        values: Floats = getattr(samples, metric)[samples.order]
        wait = samples.wait_ms if METRICS[f"{metric}_ms"].waits else 0.0
        found = quantile_interval(values[~np.isnan(values)], p, samples.states, wait)
    return None if isinstance(found, str) else found
