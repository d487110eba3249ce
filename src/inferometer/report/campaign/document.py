"""From a campaign's tests to its document: the parts that are about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from inferometer import __version__
from inferometer.documents.campaign import (
    CAMPAIGN_SCHEMA,
    Campaign,
    MethodRow,
    MinimumReport,
    ProcedureDocument,
    ProcedureRun,
    ProcedureVerdict,
    Reproduction,
)
from inferometer.documents.load import OfferedLoad
from inferometer.documents.results import Cell
from inferometer.documents.statement import ComplianceStatement
from inferometer.documents.summary import Summary, Sut
from inferometer.metrics.statistics import ENOUGH, Stats
from inferometer.report.campaign import deviations
from inferometer.report.campaign.disclosure import WORKLOAD_DEVIATION, guardrails, of_run
from inferometer.report.run.composition import moment

NOT_MEASURED = MinimumReport(
    model=None,
    hardware=None,
    software=None,
    boundary=None,
    workload=None,
    load_model=None,
    request_count=None,
    test_duration_s=None,
    ttft_p50_ms=None,
    ttft_p99_ms=None,
    tpot_p50_ms=None,
    tpot_p99_ms=None,
    max_throughput_tok_s=None,
    throughput_at_p99_ttft_500ms_tok_s=None,
    notes=(),
    of_run=None,
    seed=None,
)


def compose(
    *,
    name: str,
    label: str,
    started: int,
    ended: int,
    simulated: bool,
    quick: bool,
    tests: Sequence[ProcedureDocument],
    summaries: Mapping[str, Summary],
    verdict: ProcedureVerdict,
    compliance: ComplianceStatement | None,
    reproduction: Reproduction,
) -> Campaign:
    """The campaign's document. `name`: of its folder, `summaries`: of its runs, by the name of their folder; `started` and
    `ended`: wall clock, ns."""
    first = next(iter(summaries.values()), None)
    campaign = Campaign(
        schema=CAMPAIGN_SCHEMA,
        version=__version__,
        id=name,
        name=label,
        started=moment(started),
        ended=moment(ended),
        simulated=simulated,
        quick=quick,
        sut=None if first is None else first.sut,
        environment=None if first is None else first.environment,
        tokenizer=None if first is None else first.tokens.tokenizer,
        disclosed=_disclosed(tests, summaries),
        verdict=verdict,
        minimum=minimum(tests, summaries),
        tests=tuple(tests),
        compliance=compliance,
        reproduction=reproduction,
        redacted=None,
    )
    return replace(campaign, minimum=replace(campaign.minimum, notes=deviations.notes(campaign)))


def _disclosed(tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]) -> tuple[MethodRow, ...]:
    """The method of the run that stands for the system. Where it relies on the warm-up of its test's first run, that one's.
    Then how the workloads of all tests differ from the standard ones."""
    shown = _representative(tests)
    if shown is None:
        return ()
    rows = of_run(summaries[shown.run])
    if not summaries[shown.run].plan.load.warmup:
        mine = next(test for test in tests if shown in test.runs)
        warmed = {row.key: row for row in of_run(summaries[mine.runs[0].run])}
        rows = tuple(warmed.get("warm_up", row) if row.key == "warm_up" else row for row in rows)
    told = guardrails(summaries[shown.run].sut, tests, summaries)
    rows = tuple(replace(row, value=told) if row.key == "guardrails" else row for row in rows)
    used = deviations.of_workloads(
        {test.test: [summaries[run.run] for run in test.runs if run.part != "warm-up"] for test in tests}
    )
    return rows + tuple(
        MethodRow(WORKLOAD_DEVIATION, ", ".join(names), sentence, capacity=True)
        for sentence, names in used.items()
    )


def minimum(tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]) -> MinimumReport:
    """What the lines of draft C.1 need. Latencies are of the run that stands for the system."""
    found = replace(
        NOT_MEASURED,
        max_throughput_tok_s=_number(_value(tests, "throughput", "max_output_tok_s")),
        throughput_at_p99_ttft_500ms_tok_s=_number(_value(tests, "throughput", "throughput_at_ttft_limit")),
    )
    run = _representative(tests)
    if run is None:
        return found
    summary = summaries[run.run]
    ttft, tpot = summary.metrics.ttft_ms, summary.metrics.tpot_ms
    return replace(
        found,
        model=_model(summary.sut),
        hardware=_hardware(summary.sut),
        software=summary.sut.software,
        boundary=summary.sut.boundary,
        workload=summary.plan.workload.name,
        load_model=_load(summary.load.offered),
        request_count=summary.requests.sent,
        answered=summary.requests.completed,
        test_duration_s=summary.window.duration_s,
        ttft_p50_ms=None if ttft is None else ttft.p50,
        ttft_p99_ms=None if ttft is None else ttft.p99,
        tpot_p50_ms=None if tpot is None else tpot.p50,
        tpot_p99_ms=None if tpot is None else tpot.p99,
        of_run=run.run,
        seed=summary.plan.workload.seed,
        few=tuple(_few("ttft", ttft) + _few("tpot", tpot)),
    )


def _few(name: str, stats: Stats | None) -> list[str]:
    """The members of a latency that are percentiles of too few samples."""
    return [f"{name}_{one}_ms" for one in ("p50", "p99") if stats is not None and stats.n < ENOUGH[one]]


def _value(tests: Sequence[ProcedureDocument], test: str, name: str) -> Cell:
    values = [value for one in tests if one.test == test for value in one.values]
    return next((value.value for value in reversed(values) if value.name == name), None)


def _number(value: Cell) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _model(sut: Sut) -> str:
    quantization = f"quantization {sut.quantization}" if sut.quantization else None
    return ", ".join(part for part in (sut.model, sut.model_version, quantization) if part)


def _hardware(sut: Sut) -> str | None:
    count = sut.accelerator_count
    return f"{sut.accelerator} x {count}" if sut.accelerator and count else sut.accelerator


def _load(offered: OfferedLoad) -> str | None:
    if offered.concurrency:
        return f"closed loop, {offered.concurrency} in flight"
    return (
        None if offered.rate is None else f"open loop, {offered.rate:.4g} {offered.rate_of or 'requests'}/s"
    )


def _representative(tests: Sequence[ProcedureDocument]) -> ProcedureRun | None:
    """The run whose latencies stand for the system: the first level of the TTFT test; else the one that confirmed the highest
    load; else the first that was no mere search."""
    found = [(test.test, run) for test in tests for run in test.runs if not _searching(run.part)]
    levels = [run for test, run in found if test == "ttft"]
    confirmed = [run for test, run in found if test == "throughput" and run.part == "confirm"]
    return next(iter([*levels, *confirmed[-1:], *(run for _, run in found)]), None)


def _searching(part: str) -> bool:
    return part.startswith("base-") or part in ("pilot", "warm-up", "full-again", "session-length")
