"""The verdict of a test, with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inferometer.documents.campaign import ProcedureDocument, ProcedureReason, ProcedureVerdict
from inferometer.documents.summary import Summary
from inferometer.judge.procedure_verdict import (
    Objection,
    ProcedureJudgement,
    beyond_maximum,
    verdict_of_campaign,
)
from inferometer.report import compliance_notes
from inferometer.report.campaign import notes


def verdict_document(judgement: ProcedureJudgement) -> ProcedureVerdict:
    """The member `verdict` of a test's document."""
    return ProcedureVerdict(judgement.status, tuple(map(_reason, judgement.objections)))


def verdict_of(tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]) -> ProcedureVerdict:
    """The verdict of a campaign: by its tests, and by what they say of each other."""
    beyond = beyond_maximum(tests, summaries)
    across = () if beyond is None else (_reason(beyond),)
    return verdict_of_campaign([(test.test, test.title, test.verdict) for test in tests], across)


def _reason(objection: Objection) -> ProcedureReason:
    # What a run's check says, in words, may tell a load.
    capacity = True if isinstance(objection.reason, str) else objection.reason.capacity
    return ProcedureReason(
        objection.code, objection.status, objection.run, _message(objection), objection.runs, capacity
    )


def _message(objection: Objection) -> str:
    if isinstance(objection.reason, str):
        return objection.reason
    if objection.code == "undecided":
        return notes.worded(objection.reason)
    return compliance_notes.worded(objection.reason)
