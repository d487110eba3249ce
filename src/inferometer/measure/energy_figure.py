"""What a run spent: energy, power, the share of it that the idle machine would have drawn too, and energy per token.

The span is that from the first request to the end of the last answer. Devices of one meter and one scope are added up; scopes
never are, for one contains the other (telemetry/power/readings.py). All devices are measured by one method:

| method    | when                                                                                                     |
| --------- | -------------------------------------------------------------------------------------------------------- |
| `counter` | every device has a counter that moved and was not reset                                                  |
| `power`   | otherwise, where every device has power at instants                                                      |
| `mean`    | otherwise, where every device has means                                                                  |

Where a counter decides and there is power too, `other_joules` is the energy by the power, to hold one against the other.

| figure                       | is                                                                                         |
| ---------------------------- | ------------------------------------------------------------------------------------------ |
| `joules_per_output_token`    | joules / output tokens of the span                                                         |
| `joules_per_total_token`     | joules / input and output tokens of the span                                               |
| `output_tokens_per_s_per_w`  | (output tokens / s) / (joules / s): the inverse of the first, in tokens per joule           |

Idle power is in them: it is part of what a token costs. Tokens are counted at the instants given, within the span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from inferometer.measure import energy
from inferometer.measure.block_ratio import Ratio, block_count, block_ratio
from inferometer.measure.energy import LARGEST_GAP_S, Course, SpanEnergy
from inferometer.measure.power_series import PowerSeries
from inferometer.measure.record import Floats, Ints
from inferometer.telemetry.power.readings import LARGEST_DEVICE_W, LARGEST_W, Method, Scope
from inferometer.units import NS_PER_S

NoFigure = Literal[
    "no_readings",
    "too_few",
    "not_covered",
    "counter_reset",
    "counter_jumped",
    "counter_stuck",
    "no_power",
    "implausible",
    "unit_changes",
    "gap",
    "disagree",
]
"""Those of energy.Reason, and of a figure that is there, but not valid: `gap`, and `disagree`: by its power it is far off."""
DISAGREEMENT = 1.5
"""Energy by counter and by power that are further apart by this factor are not of one device in one unit. How a meter averages
makes them differ by some percent, on some idle GPUs by more: by far less than this."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """`counts[i]` tokens at `t_ns[i]`, on the clock of the readings, in any order."""

    t_ns: Ints
    counts: Ints


class EnergyFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The energy of one scope by one meter. None is unknown, for `reason`.

    `joules` over `duration_s`, `mean_w` their quotient. `idle_w`: the mean power of the baseline, None for `idle_reason`;
    `idle_share`: idle_w / mean_w, more than 1 where the machine drew more before than under load. `samples`, `rate_hz`: of the
    device with the fewest; `largest_gap_s` of all, which is valid up to `largest_gap_limit_s`. `other_joules`: by the power,
    where a counter decides. `counter_reason`: why the counters were not used, where there are some.
    """

    meter: str
    scope: Scope
    devices: tuple[str, ...]
    duration_s: float
    method: Method | None = None
    joules: float | None = None
    mean_w: float | None = None
    idle_w: float | None = None
    idle_share: float | None = None
    idle_reason: NoFigure | None = None
    samples: int = 0
    rate_hz: float | None = None
    largest_gap_s: float | None = None
    largest_gap_limit_s: float = LARGEST_GAP_S
    valid: bool = False
    reason: NoFigure | None = None
    other_joules: float | None = None
    counter_reason: NoFigure | None = None
    joules_per_output_token: Ratio | None = None
    joules_per_total_token: Ratio | None = None
    output_tokens_per_s_per_w: Ratio | None = None


def energy_figure(
    series: Sequence[PowerSeries],
    begin_ns: int,
    end_ns: int,
    *,
    baseline: tuple[int, int] | None = None,
    output: Tokens | None = None,
    total: Tokens | None = None,
    memory_s: float | None = None,
) -> EnergyFigure:
    """The figure of devices of one meter and one scope. `baseline`: the idle span before the load, in ns; `output`, `total`:
    the tokens that energy is divided by; `memory_s`: that of the load (block_ratio.py), without which there is no interval.
    Raises ValueError for series that must not be added up, and for a span without a length."""
    if len({(one.meter, one.scope) for one in series}) != 1:
        raise ValueError("only devices of one meter and one scope can be added up")
    if len({one.device for one in series}) != len(series):
        raise ValueError("a device is there twice")
    duration_s = (end_ns - begin_ns) / NS_PER_S
    method, spent, counter_reason = _chosen(series, begin_ns, end_ns)
    plain = EnergyFigure(
        meter=series[0].meter,
        scope=series[0].scope,
        devices=tuple(one.device for one in series),
        duration_s=duration_s,
        counter_reason=counter_reason,
    )
    if spent.joules is None:
        return msgspec.structs.replace(plain, reason=spent.reason)
    mean_w = spent.joules / duration_s
    idle_w, idle_reason = _idle(series, baseline)
    blocks = 0 if memory_s is None else block_count(duration_s, memory_s)
    edges_s = np.linspace(0.0, duration_s, (blocks or 1) + 1)
    other = _by_power(series, begin_ns, end_ns) if method == "counter" else None
    agree = other is None or other.joules is None or not other.valid or _alike(spent.joules, other.joules)
    joules = _joules_of_blocks(series, method, begin_ns, end_ns, edges_s)
    remembered = None if memory_s is None else memory_s / float(edges_s[1])
    per_output = _per_token(joules, output, begin_ns, end_ns, edges_s, remembered)
    return msgspec.structs.replace(
        plain,
        method=method,
        joules=spent.joules,
        mean_w=mean_w,
        idle_w=idle_w,
        idle_share=idle_w / mean_w if idle_w is not None and mean_w > 0 else None,
        idle_reason=idle_reason,
        samples=spent.samples,
        rate_hz=spent.rate_hz,
        largest_gap_s=spent.largest_gap_s,
        valid=spent.valid and agree,
        reason="gap" if not spent.valid else None if agree else "disagree",
        other_joules=None if other is None else other.joules,
        joules_per_output_token=per_output,
        joules_per_total_token=_per_token(joules, total, begin_ns, end_ns, edges_s, remembered),
        output_tokens_per_s_per_w=None if per_output is None else per_output.inverse(),
    )


def _alike(one: float, other: float) -> bool:
    return max(one, other) <= DISAGREEMENT * min(one, other)


def _chosen(
    series: Sequence[PowerSeries], begin_ns: int, end_ns: int
) -> tuple[Method, SpanEnergy, NoFigure | None]:
    """The method by the table above, the energy by it, and why a counter was not used though there is one."""
    by_counter = _summed([_span(one, "counter", begin_ns, end_ns) for one in series])
    if by_counter.joules is not None:
        return "counter", by_counter, None
    by_power = _by_power(series, begin_ns, end_ns)
    without_counters = all(np.isnan(one.joules).all() for one in series)
    if by_power.reason == "no_readings" and not without_counters:
        return "counter", by_counter, by_counter.reason
    return _power_method(series), by_power, None if without_counters else by_counter.reason


def _by_power(series: Sequence[PowerSeries], begin_ns: int, end_ns: int) -> SpanEnergy:
    method = _power_method(series)
    return _summed([_span(one, method, begin_ns, end_ns) for one in series])


def _power_method(series: Sequence[PowerSeries]) -> Method:
    return "mean" if all(one.method == "mean" for one in series) else "power"


def _span(one: PowerSeries, method: Method, begin_ns: int, end_ns: int) -> SpanEnergy:
    largest_w = _largest_w(one)
    if method == "counter":
        return energy.counted(one.t_ns, one.joules, begin_ns, end_ns, one.wraps_at, largest_w=largest_w)
    # The unit of other scopes is that of a library. All readings count: of two units neither is known to be watts.
    if one.scope == "machine" and not energy.in_one_unit(one.watts):
        return SpanEnergy(None, "unit_changes")
    means = method == "mean"
    spent = energy.averaged if means else energy.integrated
    return spent(one.t_ns, one.watts, begin_ns, end_ns, largest_w=largest_w)


def _largest_w(one: PowerSeries) -> float:
    return LARGEST_W if one.scope == "machine" else LARGEST_DEVICE_W


def _course(one: PowerSeries, method: Method, begin_ns: int, end_ns: int) -> Course:
    """Of a device whose energy is known."""
    if method == "counter":
        found = energy.counted_course(one.t_ns, one.joules, begin_ns, end_ns, one.wraps_at)
    else:
        course = energy.averaged_course if method == "mean" else energy.integrated_course
        found = course(one.t_ns, one.watts, begin_ns, end_ns)
    assert isinstance(found, Course)
    return found


def _summed(spans: Sequence[SpanEnergy]) -> SpanEnergy:
    """The devices together: the sum, the fewest samples, the largest gap; the first reason why one of them is unknown."""
    unknown = next((one for one in spans if one.joules is None), None)
    if unknown is not None:
        return unknown
    return SpanEnergy(
        math.fsum(one.joules or 0.0 for one in spans),
        None,
        min(one.samples for one in spans),
        min(one.rate_hz or 0.0 for one in spans),
        max(one.largest_gap_s or 0.0 for one in spans),
    )


def _idle(
    series: Sequence[PowerSeries], baseline: tuple[int, int] | None
) -> tuple[float | None, NoFigure | None]:
    """The mean power of the baseline in watts, or why it is unknown."""
    if baseline is None:
        return None, "no_readings"
    _, spent, _ = _chosen(series, *baseline)
    if spent.joules is None:
        return None, spent.reason
    if not spent.valid:
        return None, "gap"
    return spent.joules / ((baseline[1] - baseline[0]) / NS_PER_S), None


def _joules_of_blocks(
    series: Sequence[PowerSeries], method: Method, begin_ns: int, end_ns: int, edges_s: Floats
) -> Floats:
    courses = [_course(one, method, begin_ns, end_ns) for one in series]
    found: Floats = np.sum([np.diff(course.at(edges_s)) for course in courses], axis=0)
    return found


def _per_token(
    joules: Floats,
    tokens: Tokens | None,
    begin_ns: int,
    end_ns: int,
    edges_s: Floats,
    remembered: float | None,
) -> Ratio | None:
    """Joules of each block by its tokens; None without tokens."""
    if tokens is None:
        return None
    within = (tokens.t_ns >= begin_ns) & (tokens.t_ns <= end_ns)
    at_s = (tokens.t_ns[within] - begin_ns) / NS_PER_S
    counts, _ = np.histogram(at_s, edges_s, weights=tokens.counts[within].astype(np.float64))
    found = block_ratio(joules, counts, remembered or 0.0)
    if found is None or remembered is not None:
        return found
    return Ratio(found.value, None, 0, "memory_unknown")
