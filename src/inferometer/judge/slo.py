"""Service level objectives against a measurement.

An objective is met when the whole 95 % interval of its value meets it, not met when none of it does, and undecided (None)
when the limit lies inside, or when the sample cannot give an interval: more requests would decide it. A maximum is a fact
about this run, without an interval; its value alone decides.

A percentile without an interval may be decided all the same: P99 is below a limit just when less than 1 % of the values are
beyond it. So the share of those is held against 1 - p by an interval for correlated values (measure/stats.py), with the share
added that states of the load which the run did not meet could carry beyond. None of 400 independent values beyond 500 ms shows
P99 < 500 ms, wherever P99 itself may lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.judge.checks import failures
from inferometer.measure.load_states import LoadStates
from inferometer.measure.measurement import Measurement, samples_of
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import (
    quantile_interval,
    quantile_interval_at,
    share_interval,
    share_of_values_interval,
)
from inferometer.measure.tasks import TasksAccount
from inferometer.metrics.catalogue import METRICS, TASK_SUCCESS
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


@dataclass(frozen=True, slots=True)
class Observed:
    """What a run observed of a latency: its statistics; its defined values, in order of sending, or pooled, each `at_ns`; the
    states of the load; how much longer the longest `wait` for the server was than the mean one (0: none is part of it); and the
    mean `life` of a request, from its sending to its end."""

    stats: Stats
    values: Floats
    at_ns: Ints | None
    states: LoadStates
    wait: float
    life: float


def slo_outcomes(
    plan: Plan,
    measurement: Measurement,
    record: Record,
    samples: Samples | None = None,
    tasks: TasksAccount | None = None,
) -> tuple[SloOutcome, ...]:
    """Outcomes of the plan's objectives, in its order. `samples`: those of `samples_of`, if already taken; `tasks`: of a run of
    tasks."""
    samples = samples_of(plan, record) if samples is None else samples
    return tuple(_outcome(slo, measurement, samples, tasks) for slo in plan.slos)


def _outcome(slo: Slo, measurement: Measurement, samples: Samples, tasks: TasksAccount | None) -> SloOutcome:
    value: float | None
    met: bool | None
    if slo.metric == TASK_SUCCESS:
        value, interval = (None, None) if tasks is None else (tasks.all.success, tasks.all.success_ci95)
        met = None if interval is None else _met_by_all(slo, interval)
    elif slo.stat is None:
        value, interval = _of_rate(slo.metric, measurement, samples.record)
        met = None if interval is None else _met_by_all(slo, interval)
    else:
        observed = _observed(slo.metric, measurement, samples)
        value = None if observed is None else getattr(observed.stats, slo.stat)
        met, interval = (None, None) if observed is None else decided(slo, observed)
    return SloOutcome(str(slo), value, slo.limit, slo.unit, met, interval)


def _of_rate(metric: str, measurement: Measurement, record: Record) -> tuple[float | None, Interval | None]:
    if metric == "success_rate":
        failed, ended = failures(measurement.requests, interrupted=record.interrupted)
        good = ended - failed
        interval = share_interval(good, ended, measurement.requests.outcomes_effective)
        return (good / ended if ended else None), interval
    throughput = measurement.throughput
    return getattr(throughput.steady, metric), getattr(throughput.ci95, metric)


def _observed(metric: str, measurement: Measurement, samples: Samples) -> Observed | None:
    stats: Stats | None = getattr(measurement.metrics, f"{metric}_ms")
    if stats is None:
        return None
    life = float(samples.e2e.mean())
    if METRICS[f"{metric}_ms"].pooled:
        values, at_ns = samples.pooled[metric]
        return Observed(stats, values, at_ns, samples.states, 0.0, life)
    in_order: Floats = getattr(samples, metric)[samples.order]
    wait = samples.wait_ms if METRICS[f"{metric}_ms"].waits else 0.0
    return Observed(stats, in_order[~np.isnan(in_order)], None, samples.states, wait, life)


def decided(slo: Slo, observed: Observed) -> tuple[bool | None, Interval | None]:
    """Whether an objective on a latency is met (None: undecided), and the interval of its value."""
    if slo.stat in _BARE:
        return slo.met_by(getattr(observed.stats, str(slo.stat))), None
    if slo.stat in _FROM_SAMPLES:
        interval = _interval(_FROM_SAMPLES[slo.stat], observed)
    else:
        interval = getattr(observed.stats.ci95, str(slo.stat))
    if interval is not None:
        return _met_by_all(slo, interval), interval
    return (_by_share(slo, QUANTILES[slo.stat], observed) if slo.stat in QUANTILES else None), None


def _met_by_all(slo: Slo, interval: Interval) -> bool | None:
    ends = {slo.met_by(end) for end in interval}
    return ends.pop() if len(ends) == 1 else None


def _by_share(slo: Slo, p: float, observed: Observed) -> bool | None:
    """Whether the share of values beyond the limit is clearly below or above what the percentile allows."""
    values = observed.values
    if observed.stats.n_effective is None:
        return None
    beyond: Mask = values >= slo.limit if slo.op == "<" else values > slo.limit
    low, high = share_of_values_interval(beyond, observed.stats.n_effective, observed.at_ns)
    if observed.wait:
        # In states that were not met, a request may also have to wait until another one ends.
        close = (values > slo.limit - max(observed.wait, observed.life)) & ~beyond
        high += observed.states.unseen * float(close.mean())
    return None if low <= 1 - p <= high else high < 1 - p


def _interval(p: float, observed: Observed) -> Interval | None:
    """The interval of a percentile that the metric's statistics do not carry."""
    if observed.at_ns is None:
        found = quantile_interval(observed.values, p, observed.states, observed.wait)
    else:
        found = quantile_interval_at(observed.values, observed.at_ns, p, observed.states)
    return None if isinstance(found, str) else found
