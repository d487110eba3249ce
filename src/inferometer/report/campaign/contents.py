"""The six sections of draft C.2 as rows and words, for Markdown and HTML alike.

1 system  2 configuration  3 results  4 each test  5 compliance  6 reproduction
"""

from __future__ import annotations

from dataclasses import dataclass

from inferometer.documents.campaign import (
    Campaign,
    Conditions,
    ProcedureDocument,
    ProcedureRun,
    ReportedValue,
    SpoiltRun,
    StateSwitch,
)
from inferometer.documents.note import WITHHELD
from inferometer.documents.part import to_data
from inferometer.printable import json_text
from inferometer.report.campaign import compliance, disclosure, overview, titles
from inferometer.report.campaign.cells import amount, bounds, cell, labelled, rough
from inferometer.report.campaign.minimum import result
from inferometer.report.figures import MARK, UNKNOWN, Row, clean, moment, text
from inferometer.report.run import rows as run_rows

SECTIONS = (
    "System Identification",
    "Test Configuration",
    "Results",
    "Detailed Results",
    "Methodology Compliance",
    "Reproduction Information",
)
"""Draft C.2."""

LIMITATIONS = (
    "What the instrument cannot see from outside, the tester declares; a declared state is marked as such.",
    "Workloads are benign (draft 7.3): adversarial input may be slower or faster.",
    "Results hold for this system, configuration and workload; verify them against samples of production traffic (draft 7.2).",
)

CANNOT_RERUN = "A redacted report cannot be repeated: the loads it would need are withheld."


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value of a test in words."""

    label: str
    value: str
    interval: str
    note: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a test in words. `requests`: the head of their fingerprint."""

    run: str
    part: str
    at: str
    verdict: str
    requests: str
    why: str


@dataclass(frozen=True, slots=True)
class Detail:
    """One test in words; tables and figures are drawn from the document."""

    title: str
    section: str
    verdict: str
    compliance: str
    problem: str
    objective: str
    procedure: str
    when: str
    setup: list[Row]
    switches: list[str]
    reasons: list[str]
    undecided: list[str]
    values: list[ValueRow]
    meanings: list[tuple[str, str]]
    notes: list[str]
    runs: list[RunRow]


@dataclass(frozen=True, slots=True)
class ReproductionWords:
    """What it takes to do it again, in words. `redacted`: why that is not possible, or nothing."""

    redacted: str
    command: str
    harness: list[Row]
    plan: str
    data: list[Row]


def lede(campaign: Campaign) -> str:
    """What was tested, in a sentence or two."""
    minimum = campaign.minimum
    return (
        f"{overview.tally(campaign)}. Model: {result(minimum, 'model', '')}; boundary: {result(minimum, 'boundary', '')}; "
        f"hardware: {result(minimum, 'hardware', '')}; software: {result(minimum, 'software', '')}. "
        "Tests of draft-gaikwad-llm-benchmarking-methodology-00."
    )


def system(campaign: Campaign) -> list[Row]:
    """1. Model, hardware, software as declared; what the server said of itself; the client's machine."""
    found: list[Row] = []
    if campaign.sut is not None:
        declared = run_rows.declared_system(campaign.sut, "", simulated=campaign.simulated)
        found += [row for row in declared if row[0] != "Guardrails"]
    found.append(("Guardrails", disclosure.method(campaign, "guardrails")))
    if campaign.environment is not None:
        client = run_rows.machine(campaign.environment)
        found += [(f"Client: {name.lower()}", value) for name, value in client]
    return found


def configuration(campaign: Campaign) -> list[Row]:
    """2. Workload, load and execution parameters that hold for every test; those of one test stand with it."""
    minimum = campaign.minimum
    return [
        ("Workload", result(minimum, "workload", "")),
        ("Load model", result(minimum, "load_model", "")),
        ("Requests", result(minimum, "request_count", "")),
        ("Duration", result(minimum, "test_duration_s", "s")),
        ("Time", "simulated" if campaign.simulated else "real"),
        ("Sizes", "quick: below the draft's" if campaign.quick else "as planned"),
        *disclosure.execution(campaign),
    ]


def summaries(campaign: Campaign) -> dict[str, list[Row]]:
    """3. Summaries of latency, throughput and success."""
    minimum = campaign.minimum

    def rows(*named: tuple[str, str, str]) -> list[Row]:
        return [(name, result(minimum, member, unit)) for name, member, unit in named]

    if any(test.test == "ttft" for test in campaign.tests):
        latency = disclosure.ttft(campaign, count=False)
    else:
        latency = rows(("TTFT P50", "ttft_p50_ms", "ms"), ("TTFT P99", "ttft_p99_ms", "ms"))
    counted = [
        ("Requests, first run", clean(one.value)) for one in campaign.disclosed if one.key == "requests"
    ]
    verdicts = [
        (f"{overview.title(test)}, verdicts of its runs", overview.runs(test))
        for test in overview.in_order(campaign)
    ]
    return {
        "Latency": [*latency, *rows(("TPOT P50", "tpot_p50_ms", "ms"), ("TPOT P99", "tpot_p99_ms", "ms"))],
        "Throughput": rows(
            ("Max throughput", "max_throughput_tok_s", "tok/s"),
            ("Throughput at P99 TTFT < 500 ms", "throughput_at_p99_ttft_500ms_tok_s", "tok/s"),
        ),
        "Success": [*counted, *_tasks(campaign), *verdicts],
    }


def _tasks(campaign: Campaign) -> list[Row]:
    """How many tasks of a compound system succeeded (draft 4.1.3), by test."""
    return [
        (f"{overview.title(test)}, tasks", clean(note.message))
        for test in overview.in_order(campaign)
        for note in test.notes
        if note.code == "tasks_succeeded"
    ]


def detail(test: ProcedureDocument) -> Detail:
    """4. One test: objective, set-up, procedure, what was measured."""
    reasons = overview.reasons(test.verdict)
    return Detail(
        title=overview.title(test),
        section=clean(test.section),
        verdict=test.verdict.status,
        compliance=compliance.labelled(test.compliance),
        problem=overview.problem(test),
        objective=clean(test.objective),
        procedure=titles.of(test).procedure,
        when=f"{moment(test.started)} to {moment(test.ended)}; {overview.runs(test)}",
        setup=[(clean(name), text(value, "none")) for name, value in test.parameters.items()],
        switches=[_switch(one) for one in test.switches],
        reasons=reasons,
        undecided=[words for one in test.undecided if (words := clean(one.message)) not in reasons],
        values=[_value(one) for one in test.values],
        meanings=titles.meanings(test),
        notes=[
            *rough(test),
            *(clean(note.message) for note in test.notes),
            *(_spoilt(one) for one in test.spoilt),
        ],
        runs=[_run(one) for one in test.runs],
    )


def _value(one: ReportedValue) -> ValueRow:
    note = (
        ""
        if one.note is None
        else clean(one.note.message).removeprefix(f"{amount(one).removesuffix(MARK)}: ")
    )
    return ValueRow(labelled(one.label, one.at), amount(one), bounds(one), note)


def _switch(one: StateSwitch) -> str:
    seen = f"; seen: {clean(one.evidence)}" if one.evidence else ""
    return f"{clean(one.what)} {clean(one.state)}: {one.status}, by {clean(one.how or '')}{seen}"


def _run(one: ProcedureRun) -> RunRow:
    at = one.at if isinstance(one.at, str) else _conditions(one.at)
    # The whole fingerprint is in campaign.json; its head is enough to tell two apart.
    made_of = cell(one.fingerprint or UNKNOWN)
    if made_of != WITHHELD:
        made_of = made_of.removeprefix("sha256:")[:12]
    return RunRow(clean(one.run), clean(one.part), at, one.verdict, made_of, clean(one.why))


def _spoilt(one: SpoiltRun) -> str:
    at = one.at if isinstance(one.at, str) else _conditions(one.at)
    failed = ", ".join(map(clean, one.checks))
    return (
        f"Made again: {clean(one.part)}, {at}. The client's machine spoilt {clean(one.run)}, which failed {failed} and "
        "nothing else."
    )


def _conditions(at: Conditions) -> str:
    return ", ".join(f"{clean(name)} {cell(value)}" for name, value in to_data(at).items())


def limitations(campaign: Campaign) -> list[str]:
    """5. What holds of every report, then what the statements leave to trust."""
    own = [one for test in overview.in_order(campaign) for one in compliance.limitations(test.compliance)]
    return list(dict.fromkeys([*LIMITATIONS, *own]))


def reproduction(campaign: Campaign) -> ReproductionWords:
    """6. Harness, configuration and data, and the command that carries it out again."""
    about = campaign.reproduction
    plan = about.plan_file
    versions = [(clean(name), text(value)) for name, value in about.versions.items() if name != "inferometer"]
    data = [
        ("Seeds", text(about.seeds)),
        ("Plan, resolved", "tests.json, and in this report"),
        (
            "Requests",
            "requests.parquet of each run folder; each run's fingerprint of them stands with the test",
        ),
    ]
    data += [
        (f"Plan of {clean(test.test)}", text(test.plan_hash, UNKNOWN)) for test in overview.in_order(campaign)
    ]
    return ReproductionWords(
        redacted=CANNOT_RERUN if campaign.redacted else "",
        command=clean(about.command),
        harness=[("Inferometer", clean(campaign.version)), *versions],
        plan=plan if isinstance(plan, str) else json_text(plan, indent=2),
        data=data,
    )
