"""Certificates: what a calibration found about the instrument on one machine, and what runs cite of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from inferometer.documents.part import Part

SCHEMA: Final = "inferometer/certificate/1"

EndedBy = Literal["instrument", "server", "ladder"]
"""What ended a ladder: the next load was too much, the reference server fell behind, or there was no higher load. In the last
two cases the instrument's own limit was not reached."""


class CertifiedLimit(Part, frozen=True):
    """A certified load per worker and second, and what ended the ladder."""

    per_worker: float
    ended_by: EndedBy


class CertifiedLimits(Part, frozen=True):
    """By dimension of the load."""

    token_events_s: CertifiedLimit
    requests_s: CertifiedLimit


class ErrorSpread(Part, frozen=True):
    """Error of the instrument in ms: of the statistics (n, mean, p50, p99, max) and of single values (`each_*`)."""

    n: int
    mean: float
    p50: float
    p99: float
    max: float
    each_p50: float
    each_p99: float
    each_max: float


class CertificateRung(Part, frozen=True):
    """A rung of the calibration ladder: its load and the errors measured there."""

    kind: Literal["streams", "requests"]
    load: float
    tok_s: float
    request_s: float
    ttft_ms: ErrorSpread | None
    itl_ms: ErrorSpread | None
    e2e_ms: ErrorSpread | None


class CalibrationRung(Part, frozen=True):
    """One load and the errors of the instrument under it; rates in all, per second. `load`: streams or requests/s; `kind`:
    the ladder it belongs to, or the plan's own load.

    `faults`: names of the limits broken. `verdict`, `reasons`: the run's own, and its failed checks. `tries`: 2 when
    repeated.
    """

    kind: Literal["streams", "requests", "plan"]
    load: float
    offered_tok_s: float
    tok_s: float
    request_s: float
    cpu: float | None
    ttft_ms: ErrorSpread | None
    itl_ms: ErrorSpread | None
    e2e_ms: ErrorSpread | None
    missing: float
    merged: float
    server_late_ms: float
    server_read_ms: float
    server_behind: bool
    verdict: str
    reasons: tuple[str, ...]
    faults: tuple[str, ...]
    tries: int

    @property
    def good(self) -> bool:
        """No limit was broken."""
        return not self.faults


class Certificate(Part, frozen=True):
    """A calibration's result. `machine`: what it is bound to; `pinned`: the cores of server and client, None if unpinned."""

    schema: Literal["inferometer/certificate/1"]
    id: str
    date: str
    machine: Mapping[str, str | int | None]
    packages: Mapping[str, str]
    workers: int
    timestamp_source: Literal["kernel", "user"]
    truth_from_kernel: bool
    quick: bool
    pinned: Mapping[str, tuple[int, ...]] | None
    interval_ms: float
    limits: CertifiedLimits
    rungs: tuple[CalibrationRung, ...]
