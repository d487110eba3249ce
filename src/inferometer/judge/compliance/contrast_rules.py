"""Checks of the draft's plain statements on the tests that set classes of requests or states of the system side by side:
fairness (5.6), prefix cache (5.7) and guardrails (5.10)."""

from __future__ import annotations

from collections.abc import Callable

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    note,
    satisfied,
    satisfied_if,
    violated,
)
from inferometer.judge.compliance.rule_checks import nobody_checks, runs_of
from inferometer.judge.compliance.shown_rules import (
    change,
    columns,
    equal,
    fitting,
    follows,
    latencies,
    measured,
    number,
    right,
)
from inferometer.judge.compliance.sut_rules import switched
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import AnyRows, TraceWorkload

THREE = ("p50", "p95", "p99")
FAIR = 0.9

# Draft 5.6.


def classes_right(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.4: each row of the table is a class of the mixed run."""
    wanted = tuple(f"ttft_{name}" for name in THREE)
    ruling = columns("classes", *wanted)(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
        return ruling
    met = [one.ttft_ms for run in evidence.of("mixed") for one in run.summary.by_class if one.ttft_ms]
    for i, row in enumerate(evidence.shown.rows("classes"), 1):
        if not any(
            all(equal(number(row[f"ttft_{name}"]), getattr(one, name)) for name in THREE) for one in met
        ):
            return violated(note("cells_of_no_run", table="classes", row=i, columns=wanted))
    return satisfied(note("cells_of_runs", table="classes", columns=wanted))


def _classes_recorded(run: MeasuredRun) -> Note | None:
    return None if run.summary.by_class else note("no_classes")


def jain(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.4: an index lies above 0 and is 1 at most."""
    ruling = measured("jain")(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
        return ruling
    value = number(evidence.shown.numbers["jain"])
    if value is None or 0 < value <= 1 + 1e-9:
        return ruling
    return violated(note("no_index", value=value))


def jain_read(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.4: below 0.9 it is said to be unfair, and above it is not."""
    if evidence.shown is None:
        return None
    value = number(evidence.shown.numbers.get("jain"))
    if value is None:
        return violated(note("not_measured", names=("jain",)))
    said = any("unfair" in code for code in evidence.shown.notes)
    observed = note("index_read", value=value, limit=FAIR)
    return satisfied_if(said or value >= FAIR, observed)


# Draft 5.7.


def off_first(evidence: Evidence) -> Ruling | None:
    """Draft 5.7.3: the pass without a cache comes first, and its warm-up fills none."""
    passes = evidence.of("disabled", "cold", "warm")
    if not passes:
        return None
    if passes[0].part != "disabled":
        return violated(note("other_pass_first", part=passes[0].part), passes[0].name)
    filled = passes[0].summary.warm_up.prefixes == "populated"
    return violated(note("cache_filled_before"), passes[0].name) if filled else satisfied(note("off_first"))


def toggled(what: str) -> RuleCheck:
    """Draft 5.7.3, 5.10.3: the system was switched, and what came of that is on record."""

    def check(evidence: Evidence) -> Ruling | None:
        return switched(evidence, what) if evidence.runs else None

    return check


def _hits_of(part: str) -> Callable[[Evidence], float | None]:
    def hits(evidence: Evidence) -> float | None:
        found = evidence.of(part)
        share = found[-1].summary.throughput.cached_prefix_share if found else None
        return None if share is None else 100.0 * share

    return hits


def hit_rates(evidence: Evidence) -> Ruling | None:
    """Draft 5.7.4: those of the passes with a cache, as their runs have them."""
    for part in ("cold", "warm"):
        ruling = follows(f"hit_rate_{part}", _hits_of(part))(evidence)
        if ruling is None or ruling.state != "satisfied":
            return ruling
    return satisfied(note("values", names=("hit_rate_cold", "hit_rate_warm")))


def improvement(evidence: Evidence) -> float | None:
    """Draft 5.7.4: of the throughputs in the table."""
    rows = [] if evidence.shown is None else evidence.shown.rows("throughput")
    found = [number(row.get("output_tok_s")) for row in rows]
    return change(found[0], found[-1]) if len(found) == 2 else None


# Draft 5.10.


def benign(evidence: Evidence) -> Ruling | None:
    """Draft 5.10.2: what this program makes is benign; prompts of a file or a trace nobody can check."""
    for workload, run in evidence.workloads:
        if isinstance(workload, AnyRows | SessionsWorkload | TraceWorkload) or workload.file is not None:
            return Ruling("not applicable", note("cannot_be_checked", why="prompts"), run)
    return satisfied(note("benign"))


def overheads(kind: str, metric: str, configuration: str) -> RuleCheck:
    """Draft 5.10.4: of each level, the difference of two medians of the table."""
    there = measured(f"{kind}_overhead_*")

    def check(evidence: Evidence) -> Ruling | None:
        ruling = there(evidence)
        if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
            return ruling
        for name in fitting(evidence.shown.values, f"{kind}_overhead_*"):
            rows = evidence.shown.rows(f"latency_{name.rpartition('_')[2]}")
            medians = {str(row.get("configuration")): number(row.get(f"{metric}_p50")) for row in rows}
            with_it, without = medians.get(configuration), medians.get("Baseline")
            if with_it is None or without is None:
                continue
            value = number(evidence.shown.numbers[name])
            if value is None or abs(value - (with_it - without)) > 1e-6:
                return violated(note("does_not_follow", value=name, shown=value, expected=with_it - without))
        return ruling

    return check


LATENCY_ROWS = latencies(("ttft", "e2e"), THREE)


CHECKS: dict[str, RuleCheck] = {
    "D-5.6.3-record": runs_of(_classes_recorded, note("classes_recorded"), "mixed"),
    "D-5.6.4-latency": classes_right,
    "D-5.6.4-jain": jain,
    "D-5.6.4-jain-reading": jain_read,
    "D-5.6.4-starvation": measured("starvation_*"),
    "D-5.6.5-metric-table": columns("fairness", "metric", "value"),
    "D-5.7.3-disabled": off_first,
    "D-5.7.3-toggle": toggled("prefix_cache"),
    "D-5.7.4-ttft": right("cache", **latencies(("ttft",), THREE)),
    "D-5.7.4-hit-rate": hit_rates,
    "D-5.7.4-throughput": follows("throughput_improvement", improvement),
    "D-5.10.2-benign": benign,
    "D-5.10.3-toggle": toggled("guardrails"),
    "D-5.10.4-latency": right("latency_*", **LATENCY_ROWS),
    "D-5.10.4-input": overheads("input", "ttft", "Input Filter"),
    "D-5.10.4-total": overheads("full", "e2e", "Full Filter"),
    "D-7.2-gaming": nobody_checks("gaming"),
}
