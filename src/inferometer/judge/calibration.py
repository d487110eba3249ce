"""A run's load beside what the instrument is certified for on this machine.

The certificate was looked up when the run began and is part of its record (run.json); here nothing is looked up again. Loads
are per worker and second, means over the steady span (over the whole run where there is none):

    token events   output tokens / tokens an event; 0 where nothing is streamed
    requests       requests sent whose answers are streamed (their mean over the load span)
    whole answers  the same, of answers that are not streamed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import asdict

from inferometer.documents.certificate import CertificateLookup, CertificateRung
from inferometer.documents.summary import CalibrationCited, LoadPerWorker
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.measurement import Measurement
from inferometer.plan.schema import Plan

Dimension = Literal["token_events_s", "requests_s", "whole_answers_s"]
LADDERS: Mapping[Dimension, str] = {
    "token_events_s": "streams",
    "requests_s": "requests",
    "whole_answers_s": "whole",
}
"""The ladder of a calibration that certifies each."""
NOTHING_LOOKED_UP = CertificateLookup("none")


def cited_calibration(
    lookup: CertificateLookup, plan: Plan, measurement: Measurement
) -> CalibrationCited | None:
    """`instrument.calibration` of the summary; None where no certificate speaks for this run.

    `used`: the largest of the loads as a share of what is certified. `rung`: the certificate's errors at the lowest load
    not below the run's, in that dimension; None above all.
    """
    certificate = lookup.certificate
    if certificate is None or certificate.timestamp_source != measurement.instrument.timestamp_source:
        return None
    load, limits = load_per_worker(plan, measurement), certificate.limits
    used: dict[Dimension, float] = {}
    if plan.target.stream:
        used["token_events_s"] = load.token_events_s / limits.token_events_s.per_worker
        used["requests_s"] = load.requests_s / limits.requests_s.per_worker
    elif limits.whole_answers_s is not None:
        used["whole_answers_s"] = load.whole_answers_s / limits.whole_answers_s.per_worker
    else:
        return None
    by = max(used, key=lambda dimension: used[dimension])
    above = [rung for rung in certificate.rungs if _reaches(rung, by, load, certificate.workers)]
    return CalibrationCited(
        id=certificate.id,
        date=certificate.date,
        workers=certificate.workers,
        quick=certificate.quick,
        limits=limits,
        load=load,
        by=by,
        used=used[by],
        transport=certificate.transport,
        rung=min(above, key=lambda rung: _rate(rung, by), default=None),
    )


def _rate(rung: CertificateRung, by: Dimension) -> float:
    return rung.tok_s if by == "token_events_s" else rung.request_s


def _reaches(rung: CertificateRung, by: Dimension, load: LoadPerWorker, workers: int) -> bool:
    """Whether the rung is on the ladder that certified this dimension, and its load not below the run's."""
    return rung.kind == LADDERS[by] and _rate(rung, by) / workers >= getattr(load, by)


def _why_none(lookup: CertificateLookup, plan: Plan, measurement: Measurement) -> Facts:
    """Facts: why no certificate speaks for the run, as a name and in words."""
    if lookup.certificate is not None:
        if not plan.target.stream and lookup.certificate.limits.whole_answers_s is None:
            return {"why": "whole_answers", "differs": "it was made with streamed answers only"}
        source, cited = measurement.instrument.timestamp_source, lookup.certificate.timestamp_source
        return {"why": "timestamps", "differs": f"time stamps were from {cited}, are from {source}"}
    differs = (
        f"{lookup.why} is damaged, was changed, or is of another version"
        if lookup.status == "damaged"
        else lookup.why
    )
    return {"why": lookup.status, "differs": differs}


def load_per_worker(plan: Plan, measurement: Measurement) -> LoadPerWorker:
    """What a certificate limits, per second and worker."""
    workers = max(measurement.instrument.workers, 1)
    throughput, tokens = measurement.throughput, measurement.tokens
    tok_s = _first(throughput.steady.output_tok_s, throughput.whole_run.output_tok_s)
    events = tok_s / (tokens.tokens_per_event or 1.0)
    if tokens.tokens is None:  # nobody counted tokens
        events = tokens.events / (measurement.window.duration_s or 1.0)
    requests = _first(measurement.load.achieved_request_s, throughput.whole_run.request_s)
    if not plan.target.stream:
        return LoadPerWorker(0.0, 0.0, requests / workers)
    return LoadPerWorker(events / workers, requests / workers)


def _first(*values: float | None) -> float:
    return next((value for value in values if value is not None), 0.0)


def calibration(plan: Plan, measurement: Measurement, lookup: CertificateLookup) -> Check:
    """Is the instrument certified for this load on this machine? Value and limit: per worker and second, of the load that
    uses most of what is certified.

    Without a certificate a note, for the other checks still hold; beyond it unsure, for then it is known where trust ended.
    Calibration's own runs do not judge themselves, and the embedded server's demonstration needs no certificate.
    """
    if lookup.status == "own" or not measurement.requests.sent:
        return Check("calibration", "na", None, None)
    cited = cited_calibration(lookup, plan, measurement)
    if cited is None:
        facts = _why_none(lookup, plan, measurement)
        return Check("calibration", "na" if plan.target.url is None else "note", None, None, "", facts)
    facts = {"of": cited.by, "id": cited.id, "date": cited.date, **asdict(cited.load)}
    value, limit = getattr(cited.load, cited.by), getattr(cited.limits, cited.by).per_worker
    return Check("calibration", "pass" if value <= limit else "unsure", value, limit, "1/s", facts)
