"""What a statement is worked out from, and how a rule is held against it.

A check takes the Evidence and gives a Ruling, or None where nothing is there yet to show it either way: before the start that
rule is left open, and afterwards it is unknown. What was observed is a Note; `report/compliance_notes.py` has the words.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

from inferometer.documents import summary as summaries
from inferometer.documents.campaign import Conditions, ProcedureDocument, ReportedTable, StateSwitch
from inferometer.documents.note import Fact, Note
from inferometer.documents.part import from_data
from inferometer.documents.results import Cell
from inferometer.documents.statement import RuleState
from inferometer.documents.summary import Summary
from inferometer.documents.verdict import CheckResult
from inferometer.documents.workload import NAMES, disclosed, requirement
from inferometer.metrics.statistics import Stats
from inferometer.plan import schema
from inferometer.plan.procedure_parameters import NAMES as PROCEDURES
from inferometer.plan.procedure_parameters import Parameters, Tests, Ttft
from inferometer.plan.saved import restored
from inferometer.plan.schema import Load, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import AnyRows, AnyWorkload, TraceWorkload

T = TypeVar("T")
SINGLE = "ttft"
"""A run by itself is judged as the test of section 5.1, with its own load."""
BEFORE = ("pilot", "warm-up", "full-again", "session-length")
"""Parts of a test beside its levels: what comes before the first, and the full system once more at the end."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """How a rule stands, and what was observed: the value and its limit. `run`: the first run that breaks it."""

    state: RuleState
    note: Note
    run: str | None = None


RuleCheck = Callable[["Evidence"], Ruling | None]


def note(code: str, /, *, capacity: bool = False, **facts: Fact) -> Note:
    """What was observed. `capacity`: it tells a load, a duration or a number of requests, which together give a load."""
    return Note(code, facts, capacity)


def satisfied(observed: Note) -> Ruling:
    """Observed to be kept."""
    return Ruling("satisfied", observed)


def violated(observed: Note, run: str | None = None) -> Ruling:
    """Observed to be broken."""
    return Ruling("violated", observed, run)


def satisfied_if(kept: bool, observed: Note, run: str | None = None) -> Ruling:
    """Observed to be kept, or broken."""
    return satisfied(observed) if kept else violated(observed, run)


def declared(declaration: Note) -> Ruling:
    """Kept by the tester's word; nothing observed contradicts it."""
    return Ruling("declared", declaration)


def unknown(missing: Note, run: str | None = None) -> Ruling:
    """Neither observed nor declared."""
    return Ruling("unknown", missing, run)


def not_applicable(why: Note) -> Ruling:
    """The rule's precondition does not hold."""
    return Ruling("not applicable", why)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A measurement of the test: its folder's name, the conditions it was made at, its summary, and the states
    that the system had been switched into."""

    name: str
    part: str
    at: Conditions
    summary: Summary
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def load(self) -> Load:
        """The load of its plan."""
        return self.summary.plan.load

    @property
    def lasted_s(self) -> float:
        """What it was to last where time ended it, else its window; 0 where there was none."""
        planned, window = self.load.duration_s, self.summary.window.duration_s
        most = self.load.requests
        by_count = most is not None and self.summary.requests.sent >= most
        cut = self.summary.run.interrupted or by_count
        return float((window if cut else planned or window) or 0.0)

    def check(self, code: str) -> CheckResult | None:
        """A check of its verdict."""
        return next((one for one in self.summary.verdict.checks if one.code == code), None)

    def failure(self, code: str) -> Note | None:
        """That a check of its verdict failed, with its value and limit; None: it did not."""
        check = self.check(code)
        if check is None or check.status != "fail":
            return None
        return note(
            "check_failed", capacity=True, check=code, value=check.value, limit=check.limit, unit=check.unit
        )

    def measured(self, metric: str) -> Stats | None:
        """A metric's statistics, if it has samples. Times between chunks are gaps too, where ITL was not measured."""
        stats: Stats | None = getattr(self.summary.metrics, metric)
        if metric == "itl_ms" and stats is None:
            stats = self.summary.metrics.chunk_gap_ms
        return stats if stats and stats.n else None

    @property
    def long_gaps(self) -> Stats | None:
        """The gaps that the test of 5.4 is about: those of answers of at least 50 tokens, if there are any."""
        stats = None if self.summary.itl_shape is None else self.summary.itl_shape.itl_ms
        return stats if stats and stats.n else None


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table of the test: its section, its rows, the columns in which a cell is null, and each row's cells by column."""

    section: str
    rows: int
    empty: tuple[str, ...] = ()
    cells: tuple[Mapping[str, Cell], ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """What a test shows: its values (whether each was measured, and what it came to), its tables, the names of its figures,
    and the codes of its notes, those of values included."""

    values: Mapping[str, bool] = field(default_factory=dict)
    tables: Mapping[str, ShownTable] = field(default_factory=dict)
    figures: frozenset[str] = frozenset()
    numbers: Mapping[str, Cell] = field(default_factory=dict)
    notes: frozenset[str] = frozenset()

    def rows(self, name: str) -> list[Mapping[str, Cell]]:
        """The rows of the tables of this name, or of names like it (`latency_*`)."""
        return [row for key, one in self.tables.items() if fnmatchcase(key, name) for row in one.cells]


@dataclass(frozen=True, slots=True)
class System:
    """The system under test as declared, or as known where it is the embedded reference server. None: neither."""

    boundary: str | None
    model: str | None
    model_version: str | None
    quantization: str | None
    accelerator: str | None
    accelerator_count: int | None
    accelerator_memory: str | None
    prefix_caching: str | None
    filters: tuple[bool | None, bool | None]
    """Whether inputs and outputs are filtered."""
    filter_names: tuple[str, ...]


Loads = Sequence[tuple[Load, str | None]]
"""With the name of the run; None: the plan's."""
Workloads = Sequence[tuple[AnyWorkload, str | None]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one test. `parameters`: of the test, None for a run by itself that time ended; `items` are draft
    4.3.1's by id, where there are no runs to show them yet.

    `ahead`: nothing was sent yet; `cut`: what ended the test before its end; `virtual`: it was to happen in virtual time,
    whether or not a run came of it.
    """

    test: str
    plan: Plan
    parameters: Parameters | None = None
    runs: Sequence[MeasuredRun] = ()
    switches: Sequence[StateSwitch] = ()
    shown: Shown | None = None
    items: Mapping[str, str | None] | None = None
    ahead: bool = False
    cut: str | None = None
    virtual: bool = False

    @property
    def simulated(self) -> bool:
        """Whether any of it happened in virtual time."""
        return self.virtual or any(one.summary.run.simulated for one in self.runs)

    @property
    def levels(self) -> list[MeasuredRun]:
        """The runs that the test is about: no pilots and warm-ups, and nothing that only looks for the base of percentages."""
        return [one for one in self.runs if one.part not in BEFORE and not one.part.startswith("base-")]

    def of(self, *parts: str) -> list[MeasuredRun]:
        """The runs of these parts."""
        return [one for one in self.runs if one.part in parts]

    @property
    def embedded(self) -> bool:
        """Whether the reference server is measured, of which everything is known."""
        return self.plan.target.url is None

    @property
    def system(self) -> System:
        """The system under test, by the first run or before there is one, by the plan."""
        if self.runs:
            sut = self.runs[0].summary.sut
            return _system(sut, sut.model, embedded=self.embedded)
        return _system(self.plan.sut, self.plan.target.model, embedded=self.embedded)

    def declaration(self, name: str) -> Any:
        """What the tester declared; None: nothing."""
        return getattr(self.plan.declared, name)

    def number(self, name: str) -> float | None:
        """A parameter of the test that is one number."""
        value = getattr(self.parameters, name, None)
        return value if isinstance(value, int | float) else None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """A parameter of the test that is a list of numbers."""
        value = getattr(self.parameters, name, None)
        return value if isinstance(value, tuple) else None

    @property
    def loads(self) -> Loads:
        """The loads of the test's levels with the names of their runs; before there are any, the plan's."""
        return [(one.load, one.name) for one in self.levels] or [(self.plan.load, None)]

    @property
    def workloads(self) -> Workloads:
        """The workloads, likewise."""
        return [(one.summary.plan.workload, one.name) for one in self.levels] or [(self.plan.workload, None)]


def _system(sut: summaries.Sut | schema.Sut, model: str | None, *, embedded: bool) -> System:
    """`embedded`: what is known of the reference server without asking takes the place of what is not declared."""
    rails = sut.guardrails
    filters = rails.input_filter, rails.output_filter
    if not embedded:
        return _declared(sut, model, filters)
    found = _declared(sut, model, (False, False) if filters == (None, None) else filters)
    return replace(
        found,
        boundary=_else(found.boundary, "engine"),
        model_version=_else(found.model_version, "that of inferometer"),
        accelerator=_else(found.accelerator, "cpu"),
        accelerator_count=_else(found.accelerator_count, 0),
        prefix_caching=_else(found.prefix_caching, "disabled"),
    )


def _else(declared: T | None, known: T) -> T:
    return known if declared is None else declared


def _declared(
    sut: summaries.Sut | schema.Sut, model: str | None, filters: tuple[bool | None, bool | None]
) -> System:
    return System(
        boundary=sut.boundary,
        model=model,
        model_version=sut.model_version,
        quantization=sut.quantization,
        accelerator=sut.accelerator,
        accelerator_count=sut.accelerator_count,
        accelerator_memory=sut.accelerator_memory,
        prefix_caching=sut.prefix_caching,
        filters=filters,
        filter_names=sut.guardrails.names,
    )


def each_run(
    runs: Iterable[MeasuredRun],
    problem: Callable[[MeasuredRun], Note | None],
    kept: Note | Callable[[MeasuredRun], Note],
) -> Ruling | None:
    """A rule about runs: broken by the first that has a problem; None without runs. `kept`: a note, or what gives that of the
    last run."""
    runs = list(runs)
    for run in runs:
        found = problem(run)
        if found is not None:
            return violated(found, run.name)
    if not runs:
        return None
    return satisfied(kept if isinstance(kept, Note) else kept(runs[-1]))


def worst(*rulings: Ruling | None) -> Ruling | None:
    """Of several rulings on one rule the one that counts: violated, unknown, declared, satisfied; None where there is none."""
    order: tuple[RuleState, ...] = ("violated", "unknown", "declared", "satisfied", "not applicable")
    given = [one for one in rulings if one is not None]
    return min(given, key=lambda one: order.index(one.state)) if given else None


# Where evidence comes from: a run's summary, a test's document with its runs, a plan before the start.


def of_run(summary: Summary) -> Evidence:
    """A run's summary as a test of TTFT: its load is the test's one level, and its report shows what 5.1.5 asks for."""
    ttft = summary.metrics.ttft_ms
    buckets = [one for one in summary.ttft_by_input if one.n]
    empty = () if ttft else ("n", "p50", "p90", "p95", "p99", "p99_9", "mean", "min", "max")
    tables = {
        "ttft": ShownTable("5.1.5.2", 1, empty),
        "ttft_by_input": ShownTable("5.1.5.3", len(buckets)),
    }
    if summary.server is not None and summary.server.queue_ms is not None:
        parts = {"queue wait": summary.server.queue_ms, "prefill": summary.server.prefill_ms}
        waits: list[dict[str, Cell]] = [
            {"component": name, "mean": one.mean} for name, one in parts.items() if one is not None
        ]
        tables["ttft_components"] = ShownTable("5.1.4.2", len(waits), cells=tuple(waits))
    if summary.metrics.prefill_server_ms is not None:
        prefill: dict[str, Cell] = {"component": "prefill", "mean": summary.metrics.prefill_server_ms.mean}
        tables["ttft_components_by_answer"] = ShownTable("5.1.4.2", 1, cells=(prefill,))
    shown = Shown(tables=tables, figures=frozenset(("ttft_cdf",) if ttft and ttft.n else ()))
    level = MeasuredRun(summary.run.id, "level", Conditions(), summary)
    requests = summary.plan.load.requests
    parameters = None if requests is None else Ttft(requests=requests)
    return Evidence(SINGLE, summary.plan, parameters, (level,), shown=shown)


def of_test(document: ProcedureDocument, runs: Mapping[str, Summary]) -> Evidence:
    """A test's document with the summaries of its runs, by the names of their folders.

    Raises ValueError for parameters or a plan that no version of this test has.
    """
    measured = tuple(
        MeasuredRun(
            one.run,
            one.part,
            one.at if isinstance(one.at, Conditions) else Conditions(),
            runs[one.run],
            one.state,
        )
        for one in document.runs
    )
    return Evidence(
        document.test,
        restored(document.plan),
        parameters_of(document.test, document.parameters),
        measured,
        document.switches,
        shown_in(document),
        cut=None if document.ended_by is None else document.problem or document.ended_by,
        virtual=document.simulated,
    )


def parameters_of(test: str, data: Mapping[str, Any]) -> Parameters:
    """A test's parameters out of its document. Raises ValueError for what is none."""
    attribute = next(name for name, procedure in PROCEDURES.items() if procedure == test)
    parameters: Parameters = getattr(Tests.model_validate({test: dict(data)}), attribute)
    return parameters


def shown_in(document: ProcedureDocument) -> Shown:
    """What a test's document shows."""
    return Shown(
        {one.name: one.value is not None for one in document.values},
        _tables(document.tables),
        frozenset(one.name for one in document.figures),
        {one.name: one.value for one in document.values},
        frozenset(
            note.code
            for note in (*document.notes, *document.undecided, *(one.note for one in document.values))
            if note is not None
        ),
    )


def _tables(tables: Sequence[ReportedTable]) -> dict[str, ShownTable]:
    """By name; a table a level has one name, and each of them has to be whole."""
    shown: dict[str, ShownTable] = {}
    for table in tables:
        one, same = _table(table), shown.get(table.name)
        if same is not None:
            empty = tuple(dict.fromkeys((*same.empty, *one.empty)))
            one = ShownTable(one.section, min(one.rows, same.rows), empty, same.cells + one.cells)
        shown[table.name] = one
    return shown


INTERVALS = ("low", "high")
"""Columns of intervals, which stand in tables where the draft asks for none."""


def _table(table: ReportedTable) -> ShownTable:
    empty = tuple(
        column.name
        for i, column in enumerate(table.columns)
        if column.name not in INTERVALS and any(row[i] is None for row in table.rows)
    )
    names = [column.name for column in table.columns]
    cells = tuple(dict(zip(names, row, strict=True)) for row in table.rows)
    return ShownTable(table.section, len(table.rows), empty, cells)


def ahead_of(test: str, parameters: Parameters, plan: Plan) -> Evidence:
    """A test before its start. `plan` is the one its levels will have: with their load and workload.

    Draft 4.3.1's items are known, except those that are read from a file or a trace.
    """
    items = None
    if plan.workload.file is None and not isinstance(
        plan.workload, AnyRows | SessionsWorkload | TraceWorkload
    ):
        found = disclosed(plan)
        items = {requirement(name): getattr(found, name) for name in NAMES}
    return Evidence(test, plan, parameters, items=items, ahead=True)


# The draft's rules as data: catalogue.json, which ships with the package.
#
# | level                          | counts as | a test that breaks it                                |
# | ------------------------------ | --------- | ---------------------------------------------------- |
# | MUST, REQUIRED                 | MUST      | is not compliant                                     |
# | SHOULD, RECOMMENDED            | SHOULD    | is conditionally compliant at best                   |
# | states                         |           | has a deviation to list; the label stands (draft 2)  |
#
# Draft 2 binds by words in capitals alone. What it states plainly (60 s, 10 levels, 500 requests a class) is listed all the
# same, for appendix C asks for deviations.


Level = Literal["MUST", "REQUIRED", "SHOULD", "RECOMMENDED", "states"]
Weight = Literal["MUST", "SHOULD", "states"]
Kind = Literal["program", "runs", "plan", "declared", "report", "campaign", "comparison"]
"""What a rule is checked on: what the program does in every run, what runs show, the plan, somebody's word, the tables and
figures of a test, all tests of a campaign together, or the systems that are compared."""

DRAFT = "draft-gaikwad-llm-benchmarking-methodology-00"
TESTS = {
    "ttft": "5.1",
    "throughput": "5.2",
    "tradeoff": "5.3",
    "itl": "5.4",
    "capacity": "5.5",
    "fairness": "5.6",
    "prefix-cache": "5.7",
    "memory-pressure": "5.8",
    "long-context": "5.9",
    "guardrail": "5.10",
    "cold-start": "4.5.3",
    "compare": "6",
}
"""What can carry a statement, and its section. Section 6 counts toward `compare` alone, and nothing else does."""
WEIGHTS: dict[Level, Weight] = {
    "MUST": "MUST",
    "REQUIRED": "MUST",
    "SHOULD": "SHOULD",
    "RECOMMENDED": "SHOULD",
    "states": "states",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One duty. `tests`: the tests it is about, `all`, or `campaign`: the reports of one; `text` what it asks, `how` how that
    is found out. `numeric`: it is a limit in numbers that the draft states without a word in capitals."""

    id: str
    section: str
    level: Level
    tests: tuple[str, ...]
    kind: Kind
    text: str
    how: str
    numeric: bool = False

    @property
    def weight(self) -> Weight:
        """What the level counts as."""
        return WEIGHTS[self.level]

    def about(self, test: str) -> bool:
        """Whether it is a duty of this test."""
        return test in self.tests or ("all" in self.tests and test != "compare")


@functools.cache
def catalogue() -> tuple[Rule, ...]:
    """Every rule, in the draft's order."""
    text = importlib.resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    return from_data(json.loads(text), tuple[Rule, ...])
