"""Checks of the draft's plain statements on the tests that look for what a system sustains: throughput (5.2), trade-off (5.3),
capacity (5.5) and memory pressure (5.8)."""

from __future__ import annotations

from itertools import pairwise

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    note,
    satisfied,
    violated,
)
from inferometer.judge.compliance.rule_checks import runs_of, unless
from inferometer.judge.compliance.shown_rules import (
    columns,
    concurrency,
    equal,
    follows,
    latencies,
    latency,
    measured,
    number,
    output_tok_s,
    rate,
    right,
    success,
)

THREE = ("p50", "p95", "p99")
KNEE = 2.0

# Draft 5.2.


def bracketed(evidence: Evidence) -> Ruling | None:
    """Draft 5.2.3: the search ends between a load that is sustained and one that is not."""
    rows = [] if evidence.shown is None else evidence.shown.rows("levels")
    if not rows:
        return None
    said = {str(row.get("sustained")).partition(" ")[0] for row in rows}
    if {"yes", "no"} <= said:
        return satisfied(note("search_bracketed"))
    return violated(note("search_open"))


def highest_sustained(evidence: Evidence) -> Ruling | None:
    """Draft 5.2.3: the throughput reported is within what the runs of the search measured."""
    searched = (run for run in evidence.runs if run.part != "warm-up")
    rates = [found for run in searched if (found := output_tok_s(run)) is not None]
    ruling = measured("max_output_tok_s")(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None or not rates:
        return ruling
    value = number(evidence.shown.numbers["max_output_tok_s"])
    kept = value is None or min(rates) * 0.999999 <= value <= max(rates) * 1.000001
    return ruling if kept else violated(note("beyond_every_run", capacity=True, value=value))


def signal(name: str, *shown: str) -> RuleCheck:
    """Draft 5.2.3.1: a sign of saturation is shown of each level, and a level that is refused names the signs that it had."""
    there = columns("levels", *shown)

    def check(evidence: Evidence) -> Ruling | None:
        ruling = there(evidence)
        if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
            return ruling
        for row in evidence.shown.rows("levels"):
            if row.get("sustained") == "no" and not row.get("because"):
                return violated(note("refused_without_sign", sign=name))
        return ruling

    return check


def _steadiness(run: MeasuredRun) -> Note | None:
    steady = run.summary.steady
    return None if steady is not None and steady.stable is not None else note("steadiness_unknown")


def _ramp(run: MeasuredRun) -> Note | None:
    start, end = run.summary.window.steady_start_s, run.summary.window.steady_end_s
    if start is None or end is None:
        return note("steadiness_unknown")
    return None if start >= 0.0999 * end else note("ramp_included", share=start / end if end else 0.0)


def per_gpu(evidence: Evidence) -> float | None:
    """Draft 5.2.4.2."""
    count = evidence.system.accelerator_count
    total = None if evidence.shown is None else number(evidence.shown.numbers.get("max_output_tok_s"))
    return None if total is None or not count else total / count


def _counted(evidence: Evidence) -> bool:
    return bool(evidence.system.accelerator_count)


def _batch(evidence: Evidence) -> bool:
    return evidence.shown is not None and bool(evidence.shown.values.get("batch_utilisation"))


def _objectives(evidence: Evidence) -> bool:
    plans = [run.summary.plan for run in evidence.levels] or [evidence.plan]
    return any(plan.slos for plan in plans)


# Draft 5.3.


def estimated(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.3: from a preliminary search, another test's or this one's, or as published."""
    return measured("capacity_rate")(evidence)


def knee(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.4: the first level whose P99 is above twice the least, worked out again from the table."""
    rows = [] if evidence.shown is None else evidence.shown.rows("levels")
    p99s = [number(row.get("ttft_p99")) for row in rows]
    least = min((one for one in p99s if one is not None), default=None)
    if least is None:
        return (
            None
            if evidence.shown is None
            else violated(note("empty_columns", table="levels", columns=("ttft_p99",)))
        )
    over = (row for row, p99 in zip(rows, p99s, strict=True) if p99 is not None and p99 > KNEE * least)
    return _point(evidence, "knee", next(over, None))


def saturation(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.4: the first level with less throughput than the one before it, likewise."""
    rows = [] if evidence.shown is None else evidence.shown.rows("levels")
    if not rows:
        return None if evidence.shown is None else violated(note("no_table", table="levels", sections=()))
    achieved = [number(row.get("achieved")) or 0.0 for row in rows]
    falls = (row for row, (one, other) in zip(rows[1:], pairwise(achieved), strict=True) if other < one)
    return _point(evidence, "saturation", next(falls, None))


def _point(evidence: Evidence, name: str, row: object) -> Ruling | None:
    assert evidence.shown is not None  # rows came of it
    if name not in evidence.shown.numbers:
        return violated(note("not_measured", names=(name,)))
    expected = number(row.get("rate")) if isinstance(row, dict) else None
    value = number(evidence.shown.numbers[name])
    if equal(value, expected):
        return satisfied(note("point_follows", point=name))
    return violated(note("does_not_follow", capacity=True, value=name, shown=value, expected=expected))


def points(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.5: both are given, each with a note on how it was found or why there is none."""
    if evidence.shown is None:
        return None
    missing = tuple(name for name in ("knee", "saturation") if name not in evidence.shown.values)
    return violated(note("not_measured", names=missing)) if missing else satisfied(note("points_given"))


# Draft 5.5.


def _burst(run: MeasuredRun) -> Note | None:
    if run.load.model != "closed":
        return note("load_model", models=(run.load.model,))
    return run.failure("concurrency_held")


def converged(evidence: Evidence) -> Ruling | None:
    """Draft 5.5.3: between the highest concurrency that passes and the lowest that fails, or up to the highest allowed."""
    rows = [] if evidence.shown is None else evidence.shown.rows("levels")
    if not rows:
        return None if evidence.shown is None else violated(note("no_table", table="levels", sections=()))
    said = {str(row.get("status")).partition(" ")[0] for row in rows}
    if {"Pass", "Fail"} <= said:
        return satisfied(note("search_bracketed"))
    highest, limit = max(number(row.get("concurrency")) or 0 for row in rows), evidence.number("maximum")
    if limit is not None and highest >= limit:
        return satisfied(note("search_to_its_bound"))
    return violated(note("search_open"))


CHECKS: dict[str, RuleCheck] = {
    "D-5.2.2-slo-meaning": unless(_objectives, "objectives", columns("levels", "sustained", "because")),
    "D-5.2.3-formula": right("levels", rate=rate, achieved=output_tok_s),
    "D-5.2.3-percentiles": right(
        "levels", **latencies(("ttft",), ("p50", "p99")), tpot_p99=latency("tpot", "p99")
    ),
    "D-5.2.3-search": bracketed,
    "D-5.2.3-unconstrained": columns("levels", "queue", "because"),
    "D-5.2.3-sustainable": highest_sustained,
    "D-5.2.3.1-queue": signal("queue", "queue"),
    "D-5.2.3.1-completion": signal("completions", "ratio"),
    "D-5.2.3.1-p99": signal("latency", "ttft_p50", "ttft_p99"),
    "D-5.2.3.2-steady": runs_of(_steadiness, note("steadiness_judged"), "level", "confirm"),
    "D-5.2.3.2-ramp": runs_of(_ramp, note("ramp_left_out"), "level", "confirm"),
    "D-5.2.4.1-output": measured("max_output_tok_s"),
    "D-5.2.4.1-request": measured("max_request_s"),
    "D-5.2.4.1-input": measured("max_input_tok_s"),
    "D-5.2.4.2-gpu": unless(_counted, "accelerators", follows("tok_per_gpu_s", per_gpu)),
    "D-5.2.4.2-batch": unless(_batch, "batch", measured("batch_utilisation")),
    "D-5.3.3-estimate": estimated,
    "D-5.3.3-achieved": right("levels", rate=rate, achieved=output_tok_s),
    "D-5.3.4-latency": right("levels", **latencies(("ttft", "tpot", "e2e"), THREE)),
    "D-5.3.4-success": right("levels", success=success),
    "D-5.3.4-queue": columns("levels", "queue"),
    "D-5.3.4-optimal": unless(_objectives, "objectives", measured("optimum")),
    "D-5.3.4-knee": knee,
    "D-5.3.4-saturation": saturation,
    "D-5.3.5-points": points,
    "D-5.5.2-oom": columns("levels", "errors", "status"),
    "D-5.5.3-burst": runs_of(_burst, note("burst"), "level", "confirm"),
    "D-5.5.3-record": right("levels", concurrency=concurrency, ttft_p99=latency("ttft", "p99")),
    "D-5.5.3-search": converged,
    "D-5.5.4-throughput": measured("throughput_at_max"),
    "D-5.5.4-in-flight": measured("tokens_in_flight_mean"),
    "D-5.8.3-monitor": columns("levels", "completion", "events", "ttft_p99"),
    "D-5.8.3-failures": columns("levels", "errors", "failed"),
    "D-5.8.3-analyse": measured("degradation"),
    "D-5.8.4-completion": columns("levels", "completion"),
    "D-5.8.4-preemption": columns("levels", "preempted"),
    "D-5.8.4-recovery": columns("levels", "recovered"),
    "D-5.8.4-loss": columns("levels", "lost"),
}
