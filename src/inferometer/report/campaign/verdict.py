"""The verdict of a test, with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inferometer.documents.campaign import ProcedureDocument, ProcedureReason, ProcedureVerdict
from inferometer.documents.summary import Summary
from inferometer.judge.procedure_verdict import (
    Objection,
    ProcedureJudgement,
    of_maximum,
    of_one_system,
    unfinished,
    verdict_of_campaign,
)
from inferometer.report import compliance_notes
from inferometer.report.campaign import notes


def verdict_document(judgement: ProcedureJudgement) -> ProcedureVerdict:
    """The member `verdict` of a test's document."""
    return ProcedureVerdict(judgement.status, tuple(map(_reason, judgement.objections)))


def verdict_of(
    tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary], asked: Sequence[str] = ()
) -> ProcedureVerdict:
    """The verdict of a campaign: by its tests, and by what they say of each other. `asked`: the names of all tests that it was
    to carry out."""
    said = {reason.code for test in tests for reason in test.verdict.reasons}
    found = (
        *(one for one in of_one_system(tests, summaries) if one.code not in said),
        *unfinished(asked, tests),
        *of_maximum(tests, summaries),
    )
    return verdict_of_campaign(
        [(test.test, test.title, test.verdict) for test in tests], tuple(map(_reason, found))
    )


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
