"""A run's load beside what the instrument is certified for on this machine.

The certificate was looked up when the run began and is part of its record (run.json); here nothing is looked up again. Loads
are per worker and second, means over the steady span (over the whole run where there is none):

    token events   output tokens / tokens an event; 0 where nothing is streamed
    requests       requests sent (their mean over the load span)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.judge.verdict import Check
from inferometer.measure.measurement import Measurement
from inferometer.plan.schema import Plan

RUNGS = {"token_events_s": ("streams", "tok_s"), "requests_s": ("requests", "request_s")}
"""By the load that is compared: the ladder that certified it, and the rate it is on."""


def beside(cited: Mapping[str, Any] | None, plan: Plan, measurement: Measurement) -> dict[str, Any] | None:
    """`instrument.calibration` of the summary; None where no certificate speaks for this run.

    `used`: the larger of the two loads as a share of what is certified. `rung`: the certificate's errors at the lowest load
    not below the run's, in that dimension; None above all.
    """
    if not cited or cited.get("status") != "found":
        return None
    if cited["timestamp_source"] != measurement.instrument.timestamp_source:
        return None
    load = load_per_worker(plan, measurement)
    limits = {name: cited["limits"][name]["per_worker"] for name in RUNGS}
    shares = {name: load[name] / limits[name] for name in RUNGS}
    by = max(shares, key=lambda name: shares[name])
    kind, rate = RUNGS[by]
    above = [
        rung for rung in cited["rungs"] if rung["kind"] == kind and rung[rate] / cited["workers"] >= load[by]
    ]
    nearest = min(above, key=lambda rung: float(rung[rate]), default=None)
    return {
        "id": cited["id"],
        "date": cited["date"],
        "workers": cited["workers"],
        "quick": cited["quick"],
        "limits": cited["limits"],
        "load": load,
        "by": by,
        "used": shares[by],
        "rung": nearest,
    }


def _misfit(cited: Mapping[str, Any], measurement: Measurement) -> dict[str, Any]:
    """Why no certificate speaks for the run, as a name and in words."""
    status, why = cited.get("status", "none"), cited.get("why")
    if status == "found":
        source = measurement.instrument.timestamp_source
        status, why = "timestamps", f"time stamps were from {cited['timestamp_source']}, are from {source}"
    elif status == "damaged":
        why = f"{why} cannot be read"
    return {"why": status, "differs": why}


def load_per_worker(plan: Plan, measurement: Measurement) -> dict[str, float]:
    """Token events and requests, per second and worker."""
    workers = max(measurement.instrument.workers, 1)
    throughput, tokens = measurement.throughput, measurement.tokens
    tok_s = _first(throughput.steady.output_tok_s, throughput.whole_run.output_tok_s)
    events = tok_s / (tokens.tokens_per_event or 1.0) if plan.target.stream else 0.0
    requests = _first(measurement.load.achieved_request_s, throughput.whole_run.request_s)
    return {"token_events_s": events / workers, "requests_s": requests / workers}


def _first(*values: float | None) -> float:
    return next((value for value in values if value is not None), 0.0)


def calibration(plan: Plan, measurement: Measurement, cited: Mapping[str, Any] | None) -> Check:
    """Is the instrument certified for this load on this machine? Value and limit: per worker and second, of the load that
    uses most of what is certified.

    Without a certificate a note, for the other checks still hold; beyond it unsure, for then it is known where trust ended.
    Calibration's own runs do not judge themselves, and the embedded server's demonstration needs no certificate.
    """
    status = (cited or {}).get("status", "none")
    if status == "own" or not measurement.requests.sent:
        return Check("calibration", "na", None, None)
    found = beside(cited, plan, measurement)
    if found is None:
        facts = _misfit(cited or {}, measurement)
        return Check("calibration", "na" if plan.target.url is None else "note", None, None, "", facts)
    by = found["by"]
    facts = {"of": by, "id": found["id"], "date": found["date"], **found["load"]}
    value, limit = found["load"][by], found["limits"][by]["per_worker"]
    return Check("calibration", "pass" if value <= limit else "unsure", value, limit, "1/s", facts)
