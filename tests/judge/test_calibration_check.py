"""The check `calibration`: what a run noted of its certificate, against the load it came to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from inferometer.documents.certificate import (
    CertificateLookup,
    CertificateRung,
    CertifiedLimit,
    CertifiedLimits,
    CitedCertificate,
)
from inferometer.judge.calibration import calibration, cited_calibration, load_per_worker
from inferometer.judge.judge import judge
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

Run = Callable[..., tuple[Plan, Measurement, Record]]
ELSEWHERE = {"target": {"url": "http://localhost:1"}}


def cited(tokens: float, requests: float, **changes: Any) -> CertificateLookup:
    """A certificate of two workers as a run notes it down, for so many of each a second and worker."""
    rungs = tuple(
        CertificateRung(kind, rate, rate, rate, None, None, None)
        for kind in ("streams", "requests")
        for rate in (2 * 100.0, 2 * 1000.0)
    )
    certificate = CitedCertificate(
        id="x",
        date="2026-01-02T03:04:05.678Z",
        workers=2,
        timestamp_source="kernel",
        quick=False,
        limits=CertifiedLimits(CertifiedLimit(tokens, "server"), CertifiedLimit(requests, "server")),
        rungs=rungs,
    )
    return CertificateLookup("found", None, replace(certificate, **changes))


def not_streamed(plan: Plan) -> Plan:
    return plan.model_copy(update={"target": plan.target.model_copy(update={"stream": False})})


@pytest.mark.parametrize(
    ("tokens", "requests", "by", "status"),
    [
        (1e6, 1e6, "token_events_s", "pass"),
        (1.0, 1e6, "token_events_s", "unsure"),
        (1e6, 1.0, "requests_s", "unsure"),
        (1e6, 1e3, "requests_s", "pass"),
    ],
)
def test_the_load_that_uses_most_decides(
    run: Run, tokens: float, requests: float, by: str, status: str
) -> None:
    """Its value and its limit are told; beyond it the run cannot be called VALID."""
    plan, measurement, record = run(plan=ELSEWHERE)
    noted = cited(tokens, requests)
    check = calibration(plan, measurement, noted)
    load = load_per_worker(plan, measurement)
    assert (check.status, check.facts["of"]) == (status, by)
    certified = {"token_events_s": tokens, "requests_s": requests}
    assert (check.value, check.limit) == (getattr(load, by), certified[by])
    verdict = judge(plan, measurement, record, noted)
    assert verdict.check("calibration") == check
    assert (verdict.status == "VALID") == (status == "pass")


def test_the_load_is_per_worker_and_in_events(run: Run) -> None:
    """About 50 requests a second of 4 tokens each; nothing streamed makes no events."""
    plan, measurement, _ = run(plan=ELSEWHERE)
    load = load_per_worker(plan, measurement)
    assert load.token_events_s == pytest.approx(4 * load.requests_s, rel=0.1)
    assert load.requests_s == pytest.approx(50, rel=0.2)
    plan, measurement, _ = run(plan=ELSEWHERE, worker=np.arange(1300) % 2)
    two = load_per_worker(plan, measurement)
    assert two.requests_s == pytest.approx(load.requests_s / 2)
    whole = load_per_worker(not_streamed(plan), measurement)
    assert (whole.token_events_s, whole.requests_s) == (0, 0)
    assert whole.whole_answers_s == two.requests_s


@pytest.mark.parametrize(("certified", "status"), [(1e6, "pass"), (1.0, "unsure"), (None, "note")])
def test_whole_answers_are_certified_by_themselves(run: Run, certified: float | None, status: str) -> None:
    """Law: what was certified of streams says nothing of answers that are read as a whole."""
    streamed, measurement, _ = run(plan=ELSEWHERE)
    plan = not_streamed(streamed)
    limits = CertifiedLimits(
        CertifiedLimit(1e6, "server"),
        CertifiedLimit(1e6, "server"),
        None if certified is None else CertifiedLimit(certified, "server"),
    )
    noted = cited(1e6, 1e6, limits=limits)
    check = calibration(plan, measurement, noted)
    assert check.status == status
    if certified is None:
        assert check.facts["why"] == "whole_answers"
    else:
        load = load_per_worker(plan, measurement)
        assert (check.facts["of"], check.value, check.limit) == (
            "whole_answers_s",
            load.whole_answers_s,
            certified,
        )


def test_the_errors_cited_are_those_of_the_nearest_rung_not_below(run: Run) -> None:
    """Per worker on both sides; above all rungs there is none."""
    plan, measurement, _ = run(plan=ELSEWHERE)
    found = cited_calibration(cited(1000.0, 1e6), plan, measurement)
    assert found is not None
    assert found.rung is not None
    assert (found.rung.kind, found.rung.load) == ("streams", 2000.0)  # 200 events: above 100, below 1000
    assert found.used == pytest.approx(found.load.token_events_s / 1000)
    few = cited(1000.0, 1e6, rungs=(CertificateRung("streams", 200.0, 200.0, 200.0, None, None, None),))
    above = cited_calibration(few, plan, measurement)
    assert above is not None
    assert above.rung is None


@pytest.mark.parametrize(
    ("noted", "why"),
    [
        (CertificateLookup("none"), "none"),
        (CertificateLookup("mismatch", "kernel was a, is b"), "mismatch"),
        (CertificateLookup("damaged", "x.json"), "damaged"),
        (cited(1e6, 1e6, timestamp_source="user"), "timestamps"),
    ],
)
def test_without_a_certificate_that_fits_there_is_a_note_and_the_run_stands(
    run: Run, noted: CertificateLookup, why: str
) -> None:
    """The other checks decide; the demonstration of the embedded server is not nagged."""
    plan, measurement, record = run(plan=ELSEWHERE)
    check = calibration(plan, measurement, noted)
    assert (check.status, check.facts["why"]) == ("note", why)
    assert bool(check.facts["differs"]) == (why != "none")
    assert cited_calibration(noted, plan, measurement) is None
    assert judge(plan, measurement, record, noted).status == "VALID"
    embedded, measurement, _ = run()
    assert calibration(embedded, measurement, noted).status == "na"


def test_calibrations_own_runs_do_not_judge_themselves(run: Run) -> None:
    """An old certificate must not decide about a new one."""
    plan, measurement, _ = run(plan=ELSEWHERE)
    assert calibration(plan, measurement, CertificateLookup("own")).status == "na"
    assert cited_calibration(CertificateLookup("own"), plan, measurement) is None


@pytest.mark.parametrize(
    "noted", [cited(1.0, 2.0), CertificateLookup("damaged", "x"), CertificateLookup("own")]
)
def test_what_a_run_notes_is_read_back(noted: CertificateLookup) -> None:
    """Whatever was found; a run that notes nothing has none."""
    assert CertificateLookup.of_facts(noted.facts()) == noted
    assert CertificateLookup.of_facts(None) == CertificateLookup("none")
