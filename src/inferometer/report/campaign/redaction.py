"""A campaign's document without what tells how much the system takes before it fails (draft 7.1).

| member                                                         | in a redacted document                        |
| -------------------------------------------------------------- | --------------------------------------------- |
| values, columns, tables, figures, axes, notes, rows of a run's | kept unless marked `capacity`                 |
| method, reasons, findings                                      |                                               |
| loads that labels and titles are of (`at`), loads of runs      | withheld                                      |
| free text of the tester and of the system (names, notes,       | withheld: it may tell anything                |
| problems, how a state was brought about)                       |                                               |
| parameters and keys of a plan's workload that are not marked   | withheld                                      |
| harmless (plan/published.py); a plan's other parts but those   |                                               |
| of PLAN_PARTS                                                  |                                               |
| classes of requests that the tester named                      | numbers, where a label, a cell or a fact is   |
|                                                                | such a name, or begins or ends with it        |
| hashes of plans and requests, commands, plan files, durations  | withheld: a load can be guessed and confirmed |
| names of runs                                                  | numbers                                       |
| instants                                                       | days: requests over time are a rate           |

Beside the names of classes, which the plan gives, no label and no sentence is read: what decides is the mark. Every struct
is written out member by member, so that a new member has to be decided on here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from inferometer.documents.campaign import (
    Campaign,
    MinimumReport,
    ProcedureDocument,
    ProcedureReason,
    ProcedureRun,
    ProcedureVerdict,
    ReportedTable,
    ReportedValue,
    Reproduction,
    StateSwitch,
)
from inferometer.documents.note import WITHHELD, Fact, Note, WordedNote
from inferometer.documents.results import Figure, Series
from inferometer.documents.statement import ComplianceStatement, RuleFinding
from inferometer.documents.summary import Sut
from inferometer.plan.procedure_parameters import parameter_parts, published
from inferometer.plan.published import ClassNames, within, workload
from inferometer.report import compliance_notes
from inferometer.report.campaign import deviations, notes

Kind = Literal["capacity"]

PLAN_PARTS = ("schema", "tokenizer")
"""Parts of a plan that hold no load, beside what is published of its workload."""

_NOTHING = WordedNote(WITHHELD, {}, True, WITHHELD)


def redact(campaign: Campaign, kind: str) -> Campaign:
    """The campaign without what `kind` names; `capacity` is the only one there is.

    Raises:
        ValueError: an unknown kind.
    """
    if kind != "capacity":
        raise ValueError(f"{kind} is nothing that can be withheld; `capacity` is")
    names = _Names()
    tests = tuple(_test(test, names) for test in campaign.tests)
    redacted = Campaign(
        schema=campaign.schema,
        version=campaign.version,
        id=WITHHELD,
        name=WITHHELD,
        started=_day(campaign.started),
        ended=_day(campaign.ended),
        simulated=campaign.simulated,
        quick=campaign.quick,
        sut=None if campaign.sut is None else _sut(campaign.sut),
        environment=campaign.environment,
        tokenizer=campaign.tokenizer,
        disclosed=tuple(row for row in campaign.disclosed if not row.capacity),
        verdict=_verdict(campaign.verdict, names),
        minimum=_minimum(campaign.minimum),
        tests=tests,
        compliance=_statement(campaign.compliance, names),
        reproduction=_reproduction(campaign.reproduction),
        redacted=("capacity",),
        unchecked=campaign.unchecked,
    )
    # The notes of C.1 again, out of what is left.
    return replace(redacted, minimum=replace(redacted.minimum, notes=deviations.notes(redacted)))


class _Names:
    """Folders may be named after a load: a run is told from another by a number. So is a class that the tester named."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.classes = ClassNames()

    def of(self, run: str) -> str:
        return self._names.setdefault(run, f"run {len(self._names) + 1}")

    def of_any(self, run: str | None) -> str | None:
        return None if run is None else self.of(run)


def _day(moment: str | None) -> str | None:
    return moment and moment.partition("T")[0]


def _text(text: str | None) -> str | None:
    """Free text, if there is any."""
    return text and WITHHELD


def _sut(sut: Sut) -> Sut:
    return replace(sut, notes=_text(sut.notes), url=_text(sut.url))


def _verdict(verdict: ProcedureVerdict, names: _Names) -> ProcedureVerdict:
    return ProcedureVerdict(verdict.status, tuple(_reason(one, names) for one in verdict.reasons))


def _reason(reason: ProcedureReason, names: _Names) -> ProcedureReason:
    return ProcedureReason(
        code=reason.code,
        status=reason.status,
        run=names.of_any(reason.run),
        message=WITHHELD if reason.capacity else reason.message,
        runs=reason.runs,
        capacity=reason.capacity,
    )


def _minimum(minimum: MinimumReport) -> MinimumReport:
    return MinimumReport(
        model=minimum.model,
        hardware=minimum.hardware,
        software=minimum.software,
        boundary=minimum.boundary,
        workload=minimum.workload,
        load_model=WITHHELD,
        request_count=WITHHELD,
        answered=None if minimum.answered is None else WITHHELD,
        test_duration_s=WITHHELD,
        ttft_p50_ms=minimum.ttft_p50_ms,
        ttft_p99_ms=minimum.ttft_p99_ms,
        tpot_p50_ms=minimum.tpot_p50_ms,
        tpot_p99_ms=minimum.tpot_p99_ms,
        max_throughput_tok_s=WITHHELD,
        throughput_at_p99_ttft_500ms_tok_s=WITHHELD,
        notes=(),
        of_run=None,
        seed=minimum.seed,
        few=minimum.few,
    )


def _reproduction(about: Reproduction) -> Reproduction:
    return Reproduction(
        command=WITHHELD,
        plan_file=WITHHELD,
        versions=about.versions,
        seeds=about.seeds,
        workloads=(),
        run_folders=(),
    )


def _test(test: ProcedureDocument, names: _Names) -> ProcedureDocument:
    plan, parameters = _plan(test.plan, names), _parameters(test, names)
    return ProcedureDocument(
        schema=test.schema,
        version=test.version,
        test=test.test,
        section=test.section,
        title=test.title,
        objective=test.objective,
        started=_day(test.started),
        ended=_day(test.ended),
        simulated=test.simulated,
        quick=test.quick,
        ended_by=test.ended_by,
        problem=_text(test.problem),
        parameters=parameters,
        plan=plan,
        plan_hash=_text(test.plan_hash),
        verdict=_verdict(test.verdict, names),
        compliance=_statement(test.compliance, names),
        switches=tuple(_switch(one) for one in test.switches),
        runs=tuple(_run(one, names) for one in test.runs),
        values=tuple(_value(one, names) for one in test.values),
        tables=tuple(_table(one, names) for one in test.tables),
        figures=tuple(_figure(one, names) for one in test.figures),
        notes=_notes(test.notes, names),
        undecided=_notes(test.undecided, names),
        spoilt=tuple(replace(one, run=WITHHELD, at=WITHHELD) for one in test.spoilt),
    )


def _plan(plan: Mapping[str, Any], names: _Names) -> Mapping[str, Any]:
    kept = {name: plan[name] for name in PLAN_PARTS if name in plan}
    made_of = plan.get("workload")
    return kept | (
        {"workload": workload(dict(made_of), names.classes, WITHHELD)} if isinstance(made_of, Mapping) else {}
    )


def _parameters(test: ProcedureDocument, names: _Names) -> Mapping[str, Any]:
    kept = published(test.test)
    inner = parameter_parts(test.test)
    return {
        name: WITHHELD
        if value is not None and name not in kept
        else within(inner.get(name), value, names.classes, WITHHELD)
        for name, value in test.parameters.items()
    }


def _switch(one: StateSwitch) -> StateSwitch:
    return StateSwitch(
        what=one.what, state=one.state, status=one.status, how=_text(one.how), evidence=_text(one.evidence)
    )


def _run(run: ProcedureRun, names: _Names) -> ProcedureRun:
    return ProcedureRun(
        run=names.of(run.run),
        part=run.part,
        at=WITHHELD,
        why=WITHHELD,
        state=run.state,
        verdict=run.verdict,
        fingerprint=_text(run.fingerprint),
    )


def _note(note: WordedNote, names: _Names) -> WordedNote:
    if note.capacity:
        return WordedNote(note.code, {}, True, WITHHELD)
    facts = _facts(note.facts, names)
    if facts == note.facts:
        return note
    return notes.with_words(Note(note.code, facts))


def _notes(given: Sequence[WordedNote], names: _Names) -> tuple[WordedNote, ...]:
    return tuple(_note(one, names) for one in given)


def _facts(facts: Mapping[str, Fact], names: _Names) -> Mapping[str, Fact]:
    """Facts with the classes by number."""
    return {name: _fact(value, names) for name, value in facts.items()}


def _fact(value: Fact, names: _Names) -> Fact:
    if isinstance(value, tuple | list):  # a list, of a document that was read
        return tuple(_cell(one, names) for one in value)
    return _cell(value, names)


T = TypeVar("T")


def _cell(value: T, names: _Names) -> T | str:
    return names.classes.within(value) if isinstance(value, str) else value


def _level(at: str) -> str:
    return at and WITHHELD


def _value(value: ReportedValue, names: _Names) -> ReportedValue:
    hide = value.capacity
    return ReportedValue(
        name=names.classes.within(value.name),
        label=names.classes.within(value.label),
        value=WITHHELD if hide else _cell(value.value, names),
        unit=value.unit,
        ci=None if hide else value.ci,
        note=None if hide or value.note is None else _note(value.note, names),
        capacity=hide,
        at=_level(value.at),
        few=value.few and not hide,
    )


def _table(table: ReportedTable, names: _Names) -> ReportedTable:
    hidden = [column.capacity for column in table.columns]
    withheld = {at for at, hide in enumerate(hidden) if hide}
    rows = tuple(
        tuple(WITHHELD if hide else _cell(cell, names) for cell, hide in zip(row, hidden, strict=True))
        for row in table.rows
    )
    return ReportedTable(
        name=table.name,
        title=table.title,
        section=table.section,
        columns=() if table.capacity else table.columns,
        rows=() if table.capacity else rows,
        notes=(_NOTHING,) if table.capacity else _notes(table.notes, names),
        capacity=table.capacity,
        at=_level(table.at),
        few=() if table.capacity else tuple(at for at in table.few if at[1] not in withheld),
    )


def _figure(figure: Figure, names: _Names) -> Figure:
    hide = figure.capacity or figure.x.capacity or figure.y.capacity
    return Figure(
        name=figure.name,
        title=figure.title,
        kind=figure.kind,
        x=figure.x,
        y=figure.y,
        series=() if hide else tuple(_series(one, names) for one in figure.series),
        marks=() if hide else figure.marks,
        capacity=hide,
    )


def _series(series: Series, names: _Names) -> Series:
    return Series(
        label=names.classes.within(series.label),
        x=series.x,
        y=series.y,
        at=_level(series.at),
        ci=series.ci,
        few=series.few,
    )


def _statement(statement: ComplianceStatement | None, names: _Names) -> ComplianceStatement | None:
    if statement is None:
        return None
    return ComplianceStatement(
        draft=statement.draft,
        test=statement.test,
        section=statement.section,
        label=statement.label,
        counts=statement.counts,
        deviations=tuple(_finding(one, names) for one in statement.deviations),
        limitations=(),  # sentences made of the findings, which stand beside them
        findings=tuple(_finding(one, names) for one in statement.findings),
    )


def _finding(finding: RuleFinding, names: _Names) -> RuleFinding:
    hide = finding.capacity or finding.code is None  # words without a code may tell anything
    facts = finding.facts if hide else _facts(finding.facts, names)
    renamed = finding.code is not None and not hide and facts != finding.facts
    return RuleFinding(
        id=finding.id,
        section=finding.section,
        level=finding.level,
        text=finding.text,
        state=finding.state,
        note=_text(finding.note)
        if hide
        else (compliance_notes.worded(Note(finding.code or "", facts)) if renamed else finding.note),
        run=names.of_any(finding.run),
        code=finding.code,
        facts={} if hide else facts,
        capacity=hide,
    )
