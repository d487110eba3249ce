"""The verdict of a test, with its words."""

from __future__ import annotations

from inferometer.documents.campaign import ProcedureReason, ProcedureVerdict
from inferometer.judge.procedure_verdict import Objection, ProcedureJudgement
from inferometer.report.compliance_notes import worded


def verdict_document(judgement: ProcedureJudgement) -> ProcedureVerdict:
    """The member `verdict` of a test's document."""
    return ProcedureVerdict(judgement.status, tuple(map(_reason, judgement.objections)))


def _reason(objection: Objection) -> ProcedureReason:
    message = objection.said if isinstance(objection.said, str) else worded(objection.said)
    return ProcedureReason(objection.code, objection.status, objection.run, message, objection.runs)
