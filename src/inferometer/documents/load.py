"""The summary's account of the load: what was offered, what was achieved, and by how much it was late."""

from __future__ import annotations

from typing import Literal

from inferometer.documents.part import Part
from inferometer.documents.workload import TraceLengths
from inferometer.measure.breakdown import Held
from inferometer.measure.load import Causes
from inferometer.metrics.statistics import Interval, Stats


class OfferedLoad(Part, frozen=True):
    """What the plan asks for. `rate` per second, of `rate_of`; the members of other load models are None."""

    rate: float | None
    rate_of: Literal["requests", "conversations", "sessions"] | None
    concurrency: int | None
    users: int | None
    user_rate: float | None
    arrival: str | None
    burstiness: float | None


class TraceAccount(Part, frozen=True):
    """The trace that was replayed, the plan's window and speed, and requests that were not prepared in time."""

    file: str
    format: str
    sha256: str
    rows: int
    failed: int
    span_s: float
    texts: int
    shares_prefixes: bool
    speed: float
    start_s: float
    end_s: float | None
    input_tokens: TraceLengths | None
    output_tokens: TraceLengths | None
    unprepared: int
    unprepared_ms: float


class AchievedLoad(Part, frozen=True):
    """The load as it was."""

    request_s: float | None
    concurrency_mean: float | None
    concurrency_max: float | None


class LatenessShares(Part, frozen=True):
    """Share of each cause in the sum of all lateness."""

    scheduling: float
    socket: float
    back_pressure: float


class ArrivalStatistics(Part, frozen=True):
    """The achieved arrival process beside the requested one. Rates per second; dispersion is the squared coefficient of
    variation of the gaps, lag1 their autocorrelation."""

    rate: float | None
    rate_expected: float | None
    dispersion: float | None
    dispersion_expected: Interval | None
    lag1: float | None
    lag1_limit: float | None


class LoadAccount(Part, frozen=True):
    """`held`: requests that waited for the answer before them to the same user. `lateness_causes_ms`: the three parts, which
    add up to the lateness request by request."""

    model: Literal["closed", "open", "users"]
    offered: OfferedLoad
    trace: TraceAccount | None
    held: Held | None
    achieved: AchievedLoad
    lateness_ms: Stats | None
    lateness_causes_ms: Causes | None
    lateness_shares: LatenessShares | None
    arrival_check: ArrivalStatistics | None
