"""What draft 5.2's test has in either loop: the plan with C.1's operating point, its limits, the values, and Tables 3 and 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Cell, Column, Interval
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.procedures.arrivals import REQUESTS
from inferometer.procedures.batch_utilisation import batch_utilisation
from inferometer.procedures.latency_limit import Found, Limit, Point, Seeking, points
from inferometer.procedures.results import Table, Value
from inferometer.procedures.setup import Setup, variant
from inferometer.procedures.step import Performed, PerformedRun
from inferometer.procedures.summary_access import Metric, percent, rate, stat, success

LATENCIES: tuple[tuple[Metric, str], ...] = (("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "End-to-End"))
PERCENTILES = ("p50", "p95", "p99")
LoadName = Literal["rate", "concurrency"]
"""Of a condition that is a load: open loop, closed loop."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """The first answer of draft 5.2: rates per second with their intervals, the load they are at, and what refused more. All
    None: there is no answer."""

    output_tok_s: float | None
    output_ci: Interval | None
    request_s: float | None
    request_ci: Interval | None
    input_tok_s: float | None
    load: Cell
    load_ci: Interval | None
    binding: str


NO_MAXIMUM = Maximum(None, None, None, None, None, None, None, "")


@dataclass(frozen=True, slots=True)
class Under:
    """An answer under a limit. `tokens`: output tokens of an arrival; below capacity what arrives is done, so the
    throughput is that of the rate, unless it was measured (`output`)."""

    limit: Limit
    found: Found
    tokens: float
    output: float | None = None
    ends: Interval | None = None

    @property
    def output_tok_s(self) -> float | None:
        """Output tokens a second."""
        if self.output is not None:
            return self.output
        return None if self.found.rate is None else self.found.rate * self.tokens

    @property
    def output_ci(self) -> Interval | None:
        """Its interval."""
        ends = self.found.ci
        if self.output is not None:
            return self.ends
        return None if ends is None else (ends[0] * self.tokens, ends[1] * self.tokens)


def point_expression(setup: Setup) -> str:
    """C.1's operating point as an objective."""
    return str(Slo.parse(f"ttft_p99<{setup.tests.throughput.ttft_p99_ms!r}ms"))


def with_point(setup: Setup) -> Plan:
    """The plan with C.1's operating point among the objectives, so that each run says whether it was met."""
    point, slos = point_expression(setup), [str(slo) for slo in setup.plan.slos]
    return variant(setup.plan, slos=slos if point in slos else [*slos, point])


def limits_of(setup: Setup) -> tuple[Limit, Limit]:
    """The limit of step 4b, and that of C.1's operating point."""
    asked = tuple(str(slo) for slo in setup.plan.slos)
    point = tuple(dict.fromkeys((*asked, point_expression(setup))))
    return Limit(asked, ten_times=not asked), Limit(point)


def values(
    setup: Setup,
    maximum: Maximum,
    under: Sequence[Under],
    top: PerformedRun | None,
    unit: str,
    key: LoadName,
) -> tuple[Value, ...]:
    """Draft 5.2.4. `top`: the run at the highest load that was kept up with; `key`: what the load is given in."""
    most = maximum
    bound = Note("without_latency_constraint", {"binding": most.binding})
    limited, point = under
    label = "within the objectives" if setup.plan.slos else "by the ten-times rule"
    summary = None if top is None else top.outcome.summary
    ms = setup.tests.throughput.ttft_p99_ms
    return (
        Value(
            "max_output_tok_s", "Max Output Throughput", most.output_tok_s, "tok/s", most.output_ci,
            bound, capacity=True,
        ),
        Value(
            "max_request_s", "Max Request Throughput", most.request_s, "req/s", most.request_ci, bound,
            capacity=True,
        ),
        Value("max_input_tok_s", "Max Input Throughput", most.input_tok_s, "tok/s", None, bound, capacity=True),
        Value(
            f"sustainable_{key}", "Sustainable Load", most.load, unit, most.load_ci,
            Note("completions_keep_up"), capacity=True,
        ),
        Value(
            "limited_output_tok_s", f"Max Output Throughput {label}", limited.output_tok_s, "tok/s", limited.output_ci,
            _how(limited, unit), capacity=True,
        ),
        Value(
            f"limited_{key}", f"Load {label}", limited.found.rate, unit, limited.found.ci, _how(limited, unit), capacity=True
        ),
        per_gpu(setup, maximum),
        Value(
            "cached_input_share", "Prompt tokens served from a cache",
            percent(None if summary is None else summary.throughput.cached_input_share), "%", None,
            Note("cached_and_not_prefilled"),
        ),
        batch_utilisation(setup, summary),
        Value(
            "throughput_at_ttft_limit", f"Throughput at P99 TTFT < {ms:g} ms", point.output_tok_s, "tok/s", point.output_ci,
            _how(point, unit), capacity=True,
        ),
    )  # fmt: skip


def _how(under: Under, column: str) -> Note:
    """What refuses a higher load, or why there is none. `column`: the unit of the load in tables."""
    unit = column if column.endswith("s/s") else REQUESTS.per_second
    if under.found.why == "crossed" and under.found.below is not None:
        facts: dict[str, Fact] = {"binding": under.found.binding, "least": under.found.below, "unit": unit}
        if under.found.rate is None:
            return Note("bound_below_levels", facts, capacity=True)
        return Note("bound_by_from_below", facts, capacity=True)
    if under.found.why == "crossed":
        return Note("bound_by", {"binding": under.found.binding})
    if under.found.why == "free":
        return Note("not_bound")
    if under.found.why == "held":
        return Note("held_at_highest", {"rate": under.found.rate, "unit": unit}, capacity=True)
    if under.found.why == "few":
        return Note("limit_levels_too_short", {"requests": under.found.requests})
    return Note("missed_at_least_load") if under.found.why == "missed" else Note("limit_not_found")


def per_gpu(setup: Setup, maximum: Maximum) -> Value:
    """Output tokens a second by accelerator; not measured without a declared number of them."""
    count = setup.plan.sut.accelerator_count
    found = maximum.output_tok_s
    value = None if found is None or not count else found / count
    note = Note("by_declared_accelerators") if count else Note("no_accelerator_declared")
    return Value("tok_per_gpu_s", "Tokens per GPU-second", value, "tok/s/GPU", None, note, capacity=True)


def summary_table(setup: Setup, maximum: Maximum, under: Sequence[Under], unit: str) -> Table:
    """Draft Table 3, with units in a column of their own, and the answer under the limit below it. The row of tokens per
    GPU-second only where there are GPUs."""
    gpu, most, limited = per_gpu(setup, maximum), maximum, under[0]
    label = "with the objectives met" if setup.plan.slos else "by the ten-times rule (5.2.3.1)"
    rows: list[tuple[Cell, ...]] = [
        ("Max Output Throughput", most.output_tok_s, "tok/s", most.binding),
        ("Max Request Throughput", most.request_s, "req/s", ""),
        ("Max Input Throughput", most.input_tok_s, "tok/s", ""),
        ("Sustainable Load", most.load, unit, ""),
    ]
    rows += (
        [("Tokens per GPU-second", gpu.value, "tok/s/GPU", "")] if setup.plan.sut.accelerator_count else []
    )
    rows += [
        (f"Output Throughput {label}", limited.output_tok_s, "tok/s", limited.found.binding),
        (f"Load {label}", limited.found.rate, unit, ""),
    ]
    kind = Note("objectives_apart") if setup.plan.slos else Note("no_objective_held")
    columns = (
        Column("metric", "Metric"), Column("value", "Value"), Column("unit", "Unit"), Column("binding", "Bound by"),
    )  # fmt: skip
    return Table("summary", "Throughput summary", "5.2.5.1", columns, tuple(rows), (kind,), capacity=True)


def latency_table(top: PerformedRun | None) -> Table:
    """Draft Table 4."""
    summary = None if top is None else top.outcome.summary
    rows = tuple(
        (label, *(stat(summary, metric, name) for name in PERCENTILES)) for metric, label in LATENCIES
    )
    columns = (Column("metric", "Metric"), *(Column(name, name.upper(), "ms") for name in PERCENTILES))
    return Table("latency", "Latency at maximum throughput", "5.2.5.2", columns, rows)


def limit_table(seeking: Seeking, under: Sequence[Under], done: Sequence[Performed]) -> tuple[Table, ...]:
    """The levels of the searches under a limit, each with how far it is from either: value by limit of the worst objective."""
    seen = [points(seeking, one.limit, done) for one in under]
    order = {one.done.outcome.run: one.done for each in seen for one in each}
    if not order:
        return ()
    beyond = [{one.done.outcome.run: one for one in each} for each in seen]
    rows = tuple(
        (
            one.step.at.concurrency or "",
            one.step.at.rate or "",
            one.outcome.summary.window.duration_s,
            one.outcome.summary.requests.completed,
            rate(one.outcome.summary, "output_tok_s"),
            stat(one.outcome.summary, "ttft", "p50"),
            stat(one.outcome.summary, "ttft", "p99"),
            success(one.outcome.summary),
            *(cell for each in beyond for cell in _cells(each.get(name))),
        )
        for name, one in order.items()
    )
    columns = (
        Column("concurrency", "In flight"),
        Column("rate", "Offered", seeking.arrivals.column),
        Column("seconds", "Run", "s"),
        Column("requests", "Requests"),
        Column("achieved", "Achieved", "tok/s"),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("success", "Success", "%"),
        Column("limit", "Worst of the limit"),
        Column("limit_met", "Met"),
        Column("point", "Worst at C.1's point"),
        Column("point_met", "Met"),
    )
    title = "Levels under a limit of latency, in the order they were run"
    return (
        Table("limit_levels", title, "5.2.3", columns, rows, (Note("beyond_is_a_ratio"),), capacity=True),
    )


def _cells(point: Point | None) -> tuple[Cell, Cell]:
    if point is None:
        return None, None
    return math.exp(point.beyond), "yes" if point.beyond <= 0 else f"no: {point.binding}"
