"""A campaign's document held to the runs beside it: what the runs come to is worked out again, as when they were made, and a
document that says anything else is refused.

    campaign.json -> its tests' runs -> their summaries -> results, verdicts, statements -> the same document, or a RecordError

| cannot be held to its runs      | because                                                          |
| ------------------------------- | ---------------------------------------------------------------- |
| a redacted document             | it names neither runs nor plan                                   |
| without run folders, or a part  | figures of a test may rest on all tests before                   |
| of another version of the tool  | it may have reckoned in another way                              |

Then only what contradicts itself is refused (campaign_file.py), and the document says that it is unchecked. What this version
never writes, in a document of this version, is refused: it is no reason to check nothing. Instants, how the
system was switched and why a run was made are in no summary: they are as the file has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from inferometer import __version__, whole_file
from inferometer.documents.campaign import Campaign, Conditions, ProcedureDocument, ProcedureRun, Unchecked
from inferometer.documents.note import Note
from inferometer.documents.part import from_json, to_data
from inferometer.documents.summary import SCHEMA, Summary
from inferometer.errors import PlanError, RecordError, check_machine
from inferometer.journal.documents import holds
from inferometer.journal.folder import RunFolder, inside
from inferometer.judge.compliance.evidence import TESTS, Evidence, MeasuredRun, of_test
from inferometer.judge.compliance.statement import campaign as campaign_statement
from inferometer.judge.compliance.statement import comply
from inferometer.judge.spoilt import spoilt_by
from inferometer.plan import campaign as campaigns
from inferometer.plan.saved import plan_hash, resolved
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import (
    KnownLimits,
    Measured,
    Performed,
    PerformedRun,
    Refused,
    RefusedRun,
    Run,
    Switch,
    Switched,
)
from inferometer.report.campaign.document import compose
from inferometer.report.campaign.purposes import PURPOSES
from inferometer.report.campaign.verdict import verdict_of
from inferometer.report.compliance import statement_document
from inferometer.run.evaluate import requests_of
from inferometer.studies import procedure_document as shown
from inferometer.studies.campaign import Tested, max_batch, parameters_of, reproduction, write
from inferometer.studies.campaign_file import read_campaign

WHY = Note("held_to_its_runs")
"""Of a run that was made already."""


class _Unheld(Exception):
    """A document cannot be held to its runs. `why`: what the document says then."""

    def __init__(self, why: Unchecked) -> None:
        super().__init__(why)
        self.why = why


class _Damaged(Exception):
    """A document of this version has what this version does not write. Its words: the place, and what is wrong there."""


def read_held(path: Path) -> Campaign:
    """The document of a campaign.json, `unchecked` where nothing could be held against its figures. Raises RecordError: not
    read, not such a document, or it is not what its runs come to."""
    document = replace(read_campaign(path), unchecked=None)
    try:
        for stored, made in _worked_out(document, path.parent):
            found = _difference(to_data(stored), to_data(made), "")
            if found is not None:
                where = f" of {stored.test}" if isinstance(stored, ProcedureDocument) else ""
                raise RecordError(f"{path}: is not what its runs come to: {found}{where}. {_blame(document)}")
    except _Unheld as why:
        return replace(document, unchecked=why.why)
    except _Damaged as why:
        raise RecordError(f"{path}: {why}. {_blame(document)}") from why
    return document


def _blame(document: Campaign) -> str:
    return f"It was damaged or changed, or written by another build of inferometer {document.version}"


def rewritten(folder: Path, redacted: Sequence[str]) -> Tested:
    """A campaign's reports, written again out of its document. Raises RecordError."""
    tested = Tested(folder, read_held(folder / "campaign.json"))
    write(tested, redacted)
    return tested


def _worked_out(
    document: Campaign, folder: Path
) -> Iterator[tuple[ProcedureDocument | Campaign, ProcedureDocument | Campaign]]:
    """The document's tests, each with what its runs come to, then all of it. Raises _Unheld where that cannot be known, and
    _Damaged."""
    if document.redacted:
        raise _Unheld("redacted")
    if document.version != __version__:
        raise _Unheld("version")
    requested = _requested(document)
    known = KnownLimits()
    summaries: dict[str, Summary] = {}
    evidence: list[Evidence] = []
    tests: list[ProcedureDocument] = []
    for test in document.tests:
        setup = Setup(requested.plan, requested.tests, known, max_batch(requested), quick=requested.quick)
        runs = {run.run: _summary(folder, run.run) for run in test.runs}
        summaries |= runs
        made, known = _made(test, setup, runs, folder)
        if test.test in TESTS:
            evidence.append(of_test(made, summaries))
            made = replace(made, compliance=statement_document(comply(evidence[-1])))
        yield test, made
        tests.append(made)
    whole = compose(
        name=document.id,
        label="tests" if requested.plan.name == "run" else requested.plan.name,
        started=0,
        ended=0,
        simulated=any(one.run.simulated for one in summaries.values()) if summaries else document.simulated,
        quick=requested.quick,
        tests=tests,
        summaries=summaries,
        verdict=verdict_of(tests, summaries, requested.names),
        compliance=statement_document(campaign_statement(evidence)) if evidence else None,
        reproduction=replace(
            reproduction(requested, document.reproduction.command, tests),
            versions=document.reproduction.versions,
        ),
    )
    yield document, replace(whole, started=document.started, ended=document.ended)


def _requested(document: Campaign) -> campaigns.Campaign:
    """The campaign that a document of this version is of. Raises _Damaged."""
    where, values = "reproduction.plan_file", document.reproduction.plan_file
    if isinstance(values, str):
        raise _withheld(where)
    try:
        return campaigns.of_values(dict(values), where)
    except RecordError as cause:
        raise _Damaged(str(cause)) from cause
    except PlanError as cause:
        raise _Damaged(f"{where}: {'; '.join(map(str, cause.problems))}") from cause


def _withheld(where: str) -> _Damaged:
    return _Damaged(f"{where} is withheld, and it is no redacted copy")


def _summary(folder: Path, run: str) -> Summary:
    """Of a run beside the document. Raises _Unheld."""
    try:
        made = inside(inside(folder, "runs"), run)
        there = holds(made, "summary.json")
    except RecordError as cause:
        raise _Unheld("runs_missing") from cause
    if not there:
        raise _Unheld("runs_missing")
    path = made / "summary.json"
    try:
        return from_json(whole_file.read(path), Summary, SCHEMA, str(path))
    except (OSError, RecordError) as cause:
        check_machine(cause)
        raise _Unheld("runs_unreadable") from cause


def _made(
    test: ProcedureDocument, setup: Setup, summaries: Mapping[str, Summary], folder: Path
) -> tuple[ProcedureDocument, KnownLimits]:
    """What the runs of a test come to: its document but for the statement, and what later tests know by it."""
    procedure = PROCEDURES.get(test.test)
    if procedure is None:
        raise _Damaged(f"there is no test {test.test[:60]!r}")
    folders = {run: folder / "runs" / run for run in summaries} if procedure.by_request else {}
    results = procedure.results(setup, _performed(test, setup, summaries, folders))
    measured = [
        MeasuredRun(one.run, one.part, _conditions(one), summaries[one.run], one.state) for one in test.runs
    ]
    title, objective = PURPOSES[procedure.name]
    base = replace(
        test,
        version=__version__,
        section=procedure.section,
        title=title,
        objective=objective,
        parameters=parameters_of(setup, procedure.name).model_dump(mode="json"),
        plan=resolved(setup.plan),
        plan_hash=plan_hash(setup.plan),
        compliance=None,
        runs=tuple(_as_summarised(one, summaries[one.run]) for one in test.runs),
        spoilt=tuple(replace(one, checks=spoilt_by(_summary(folder, one.run))) for one in test.spoilt),
    )
    return shown.with_results(base, measured, results), setup.known | results.known


def _conditions(run: ProcedureRun) -> Conditions:
    if isinstance(run.at, str):
        raise _withheld(f"the condition of run {run.run[:60]!r}")
    return run.at


def _as_summarised(run: ProcedureRun, summary: Summary) -> ProcedureRun:
    """A run by its summary: the verdict, the requests, and of its conditions the load."""
    at, load = _conditions(run), summary.plan.load
    rate = load.rate if at.rate is not None and load.model == "open" else at.rate
    slots = load.concurrency if at.concurrency is not None and load.model == "closed" else at.concurrency
    return replace(
        run,
        at=replace(at, rate=rate, concurrency=slots),
        verdict=summary.verdict.status,
        fingerprint=summary.workload.fingerprint,
    )


def _performed(
    test: ProcedureDocument, setup: Setup, summaries: Mapping[str, Summary], folders: Mapping[str, Path]
) -> list[Performed]:
    """The steps of a test with their outcomes, in their order. `folders`: of the runs whose requests are needed."""
    steps: list[tuple[int, Performed]] = []
    for switch in test.switches:
        if switch.runs_before is None or switch.status == "contradicted":
            raise _Damaged(f"the switch of {switch.what[:60]!r} in {test.test} is none that a test makes")
        outcome = Switched(switch.status, switch.how or "", switch.evidence, switch.seconds)
        steps.append((switch.runs_before, Performed(Switch(switch.what, switch.state), outcome)))
    for one in test.refused:
        why = Refused(one.why)
        if one.part is not None:
            run = Run(setup.plan, one.part, one.at or Conditions(), WHY)
            steps.append((one.runs_before, RefusedRun(run, why)))
        else:
            steps.append((one.runs_before, Performed(Switch(one.what or "", one.state or ""), why)))
    for number, ran in enumerate(test.runs):
        run = Run(summaries[ran.run].plan, ran.part, _conditions(ran), WHY)
        requests = None
        if ran.run in folders:
            try:
                requests = requests_of(RunFolder.open(folders[ran.run]))
            except RecordError as cause:
                raise _Unheld("runs_unreadable") from cause
        steps.append((number + 1, PerformedRun(run, Measured(ran.run, summaries[ran.run], requests))))
    # A run that is the n-th stands behind what n - 1 runs came before.
    return [
        one for _, one in sorted(steps, key=lambda step: (step[0], not isinstance(step[1], PerformedRun)))
    ]


def _difference(stored: Any, made: Any, where: str) -> str | None:
    """The first place where two parts of a document differ, but for how numbers are rounded on another machine."""
    if isinstance(stored, dict) and isinstance(made, dict):
        for key in dict.fromkeys((*stored, *made)):
            found = _difference(stored.get(key), made.get(key), f"{where}.{key}" if where else str(key))
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for at, (one, other) in enumerate(zip(stored, made, strict=True)):
            name = other.get("name") if isinstance(other, dict) else None
            found = _difference(one, other, f"{where}[{name or at}]")
            if found is not None:
                return found
        return None
    if _number(stored) and _number(made):
        alike = math.isclose(cast(float, stored), cast(float, made), rel_tol=1e-6, abs_tol=1e-9)
    else:
        alike = stored == made
    return None if alike else f"{where} is {_brief(stored)}, by the runs {_brief(made)}"


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _brief(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
