"""The verdict of a test, with its words."""

from __future__ import annotations

from inferometer.documents.campaign import ProcedureReason, ProcedureVerdict
from inferometer.judge.procedure_verdict import Objection, ProcedureJudgement
from inferometer.report import compliance_notes
from inferometer.report.campaign import notes


def verdict_document(judgement: ProcedureJudgement) -> ProcedureVerdict:
    """The member `verdict` of a test's document."""
    return ProcedureVerdict(judgement.status, tuple(map(_reason, judgement.objections)))


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
