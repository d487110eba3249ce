"""Certificates: what a calibration found about the instrument on one machine, and what runs cite of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from inferometer.documents.part import Part, from_data, to_data
from inferometer.plan.transports import Transport

SCHEMA: Final = "inferometer/certificate/1"

LEAST_LIMIT = 0.001
"""Per worker and second: what is certified for less is certified for nothing, and no load is a share of it."""

EndedBy = Literal["instrument", "server", "ladder"]
"""What ended a ladder: the next load was too much, the reference server fell behind, or there was no higher load. In the last
two cases the instrument's own limit was not reached."""


class CertifiedLimit(Part, frozen=True):
    """A certified load per worker and second, and what ended the ladder."""

    per_worker: float
    ended_by: EndedBy


class CertifiedLimits(Part, frozen=True):
    """By dimension of the load. `whole_answers_s`: None in certificates from before whole answers were calibrated."""

    token_events_s: CertifiedLimit
    requests_s: CertifiedLimit
    whole_answers_s: CertifiedLimit | None = None


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

    kind: Literal["streams", "requests", "whole"]
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

    kind: Literal["streams", "requests", "whole", "plan"]
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
    """A calibration's result. `machine`: what it is bound to; `pinned`: the cores of server and client, None if unpinned;
    `transport`: the one it holds for."""

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
    transport: Transport = "http/1.1"


class CitedCertificate(Part, frozen=True):
    """What a run notes of the certificate that fits when it begins: enough to judge it by later and elsewhere. `rungs`: those
    within all limits.

    Raises ValueError for one that certifies no load: a load is stated as a share of what is certified.
    """

    id: str
    date: str
    workers: int
    timestamp_source: Literal["kernel", "user"]
    quick: bool
    limits: CertifiedLimits
    rungs: tuple[CertificateRung, ...]
    transport: Transport = "http/1.1"

    def __post_init__(self) -> None:
        """See the class."""
        limits = (self.limits.token_events_s, self.limits.requests_s, self.limits.whole_answers_s)
        if self.workers < 1 or any(one is not None and one.per_worker < LEAST_LIMIT for one in limits):
            raise ValueError("the certificate certifies no load")


LookupStatus = Literal["found", "none", "mismatch", "damaged", "own", "simulated"]
"""`own`: the run is one of a calibration; `simulated`: there is no instrument to certify."""


class CertificateLookup(Part, frozen=True):
    """Whether a certificate was found for a run; `why` not: what differs, or which file is damaged."""

    status: LookupStatus
    why: str | None = None
    certificate: CitedCertificate | None = None

    def facts(self) -> dict[str, Any]:
        """The member `calibration` of run.json, in which the certificate's members stand beside the status."""
        if self.certificate is not None:
            return {"status": self.status, **to_data(self.certificate)}
        return (
            {"status": self.status}
            if self.status in ("own", "simulated")
            else {"status": self.status, "why": self.why}
        )

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any] | None) -> CertificateLookup:
        """As `facts` gave it; `none` where a run notes nothing.

        Raises msgspec.ValidationError for what is no such member.
        """
        if facts is None or facts.get("status") != "found":
            return from_data(facts or {"status": "none"}, cls)
        cited = {name: value for name, value in facts.items() if name != "status"}
        # Version 0.1.0 noted the rung of the plan's own load too, which is on no ladder.
        cited["rungs"] = [rung for rung in facts["rungs"] if rung["kind"] != "plan"]
        return cls("found", None, from_data(cited, CitedCertificate))
