"""What draft 5.2's test has in either loop: the plan with C.1's operating point, the values, and Tables 3 and 4."""

from __future__ import annotations

from typing import Literal

from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.procedures.results import Table, Value
from inferometer.procedures.setup import Setup, variant
from inferometer.procedures.step import PerformedRun
from inferometer.procedures.summary_access import Metric, Rate, percent, rate, rate_interval, stat

LATENCIES: tuple[tuple[Metric, str], ...] = (("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "End-to-End"))
PERCENTILES = ("p50", "p95", "p99")
LoadName = Literal["rate", "concurrency"]
"""Of a condition that is a load: open loop, closed loop."""


def point_expression(setup: Setup) -> str:
    """C.1's operating point as an objective."""
    return str(Slo.parse(f"ttft_p99<{setup.tests.throughput.ttft_p99_ms!r}ms"))


def with_point(setup: Setup) -> Plan:
    """The plan with C.1's operating point among the objectives, so that each run says whether it was met."""
    point, slos = point_expression(setup), [str(slo) for slo in setup.plan.slos]
    return variant(setup.plan, slos=slos if point in slos else [*slos, point])


def values(
    setup: Setup, top: PerformedRun | None, point: PerformedRun | None, unit: str, key: LoadName
) -> tuple[Value, ...]:
    """Draft 5.2.4, of the run at the highest load sustained and of that at C.1's operating point. `key`: what the load
    is given in."""
    summary = None if top is None else top.outcome.summary
    kind = Note("with_objectives_met") if setup.plan.slos else Note("without_latency_constraint")
    limit = setup.tests.throughput.ttft_p99_ms

    def of(level: PerformedRun | None, name: str, label: str, value: Rate, unit: str, note: Note) -> Value:
        summary = None if level is None else level.outcome.summary
        ci = rate_interval(summary, value)
        return Value(name, label, rate(summary, value), unit, ci, note, capacity=True)

    return (
        of(top, "max_output_tok_s", "Max Output Throughput", "output_tok_s", "tok/s", kind),
        of(top, "max_request_s", "Max Request Throughput", "request_s", "req/s", kind),
        of(top, "max_input_tok_s", "Max Input Throughput", "input_tok_s", "tok/s", kind),
        Value(
            f"sustainable_{key}", "Sustainable Load", _load(top, key), unit, None, Note("offered"),
            capacity=True,
        ),
        per_gpu(setup, summary),
        Value(
            "cached_input_share", "Prompt tokens served from a cache",
            percent(None if summary is None else summary.throughput.cached_input_share), "%", None,
            Note("cached_and_not_prefilled"),
        ),
        Value("batch_utilisation", "Batch utilisation", None, "%", None, Note("batch_size_unknown")),
        of(
            point, "throughput_at_ttft_limit", f"Throughput at P99 TTFT < {limit:g} ms", "output_tok_s", "tok/s",
            Note("minimum_report_operating_point"),
        ),
    )  # fmt: skip


def per_gpu(setup: Setup, summary: Summary | None) -> Value:
    """Output tokens a second by accelerator; not measured without a declared number of them."""
    count = setup.plan.sut.accelerator_count
    found = rate(summary, "output_tok_s")
    value = None if found is None or not count else found / count
    note = Note("by_declared_accelerators") if count else Note("no_accelerator_declared")
    return Value("tok_per_gpu_s", "Tokens per GPU-second", value, "tok/s/GPU", None, note, capacity=True)


def _load(top: PerformedRun | None, key: LoadName) -> Cell:
    if top is None:
        return None
    at = top.step.at
    return at.rate if key == "rate" else at.concurrency


def summary_table(setup: Setup, top: PerformedRun | None, unit: str, key: LoadName) -> Table:
    """Draft Table 3, with units in a column of their own. The row of tokens per GPU-second only where there are GPUs."""
    summary = None if top is None else top.outcome.summary
    gpu = per_gpu(setup, summary)
    rows: list[tuple[Cell, ...]] = [
        ("Max Output Throughput", rate(summary, "output_tok_s"), "tok/s"),
        ("Max Request Throughput", rate(summary, "request_s"), "req/s"),
        ("Max Input Throughput", rate(summary, "input_tok_s"), "tok/s"),
        ("Sustainable Load", _load(top, key), unit),
    ]
    rows += [("Tokens per GPU-second", gpu.value, "tok/s/GPU")] if setup.plan.sut.accelerator_count else []
    kind = Note("objectives_met") if setup.plan.slos else Note("no_objective_held")
    columns = (Column("metric", "Metric"), Column("value", "Value"), Column("unit", "Unit"))
    return Table("summary", "Throughput summary", "5.2.5.1", columns, tuple(rows), (kind,), capacity=True)


def latency_table(top: PerformedRun | None) -> Table:
    """Draft Table 4."""
    summary = None if top is None else top.outcome.summary
    rows = tuple(
        (label, *(stat(summary, metric, name) for name in PERCENTILES)) for metric, label in LATENCIES
    )
    columns = (Column("metric", "Metric"), *(Column(name, name.upper(), "ms") for name in PERCENTILES))
    return Table("latency", "Latency at maximum throughput", "5.2.5.2", columns, rows)
