"""Checks of the draft's plain statements on how the tests of section 5 measure and what they report, held against what a test
shows and its runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    declared,
    each_run,
    not_applicable,
    note,
    satisfied,
    satisfied_if,
    unknown,
    violated,
    worst,
)
from inferometer.judge.compliance.report_rules import by_length
from inferometer.judge.compliance.shown_rules import (
    change,
    columns,
    concurrency,
    context,
    equal,
    fitting,
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
from inferometer.judge.compliance.sut_rules import switched
from inferometer.judge.compliance.workload_rules import starts
from inferometer.plan.workload import PromptsWorkload, TraceWorkload

THREE = ("p50", "p95", "p99")
KNEE, FAIR = 2.0, 0.9


def both(*checks: RuleCheck) -> RuleCheck:
    """Several checks of one rule: the worst ruling counts."""
    return lambda evidence: worst(*(one(evidence) for one in checks))


def runs_of(problem: Callable[[MeasuredRun], Note | None], kept: Note, *parts: str) -> RuleCheck:
    """A rule about the runs of these parts, or about all."""
    return lambda evidence: each_run(evidence.of(*parts) if parts else evidence.runs, problem, kept)


def by_design(kept: Note) -> RuleCheck:
    """What the program does in every run, and no record shows otherwise."""
    return runs_of(lambda _: None, kept)


def nobody_checks(why: str) -> RuleCheck:
    """A statement that no observation and no declaration decides."""
    return lambda _: not_applicable(note("cannot_be_checked", why=why))


def unless(precondition: Callable[[Evidence], bool], why: str, check: RuleCheck) -> RuleCheck:
    """A rule whose precondition may not hold."""

    def held(evidence: Evidence) -> Ruling | None:
        return check(evidence) if precondition(evidence) else not_applicable(note("precondition", why=why))

    return held


# Every test.


def five_parts(evidence: Evidence) -> Ruling | None:
    """Draft 5: a test shows what it measured, beside objective, set-up and procedure, which every report has."""
    if evidence.shown is None:
        return None
    if evidence.shown.values or evidence.shown.tables:
        return satisfied(note("five_parts"))
    return violated(note("nothing_shown"))


def configured(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.3 and its like: the warm-up is seen to have ended; how the system is configured, the tester declares."""
    if not evidence.runs:
        return None
    if evidence.test != "cold-start":
        for run in starts(evidence):
            if run.part != "cold" and not run.summary.warm_up.drained:
                return violated(note("warm_up_not_drained"), run.name)
    return satisfied(note("configured")) if evidence.embedded else declared(note("configured"))


def _ttft_after_submission(run: MeasuredRun) -> Note | None:
    ttft = run.measured("ttft_ms")
    return None if ttft is None or ttft.min >= 0 else note("negative_ttft", capacity=True, ms=ttft.min)


def _first_content(run: MeasuredRun) -> Note | None:
    """Content never comes before anything does."""
    content, anything = run.measured("ttft_ms"), run.measured("ttft_any_ms")
    if content is None or anything is None or content.n != anything.n:
        return None
    return None if content.mean >= anything.mean - 1e-6 else note("content_before_anything")


# Draft 5.1.


def _to_the_last(run: MeasuredRun) -> Note | None:
    planned, sent = run.load.requests, run.summary.requests.sent
    if run.summary.run.interrupted or (planned is not None and sent < planned):
        return note("load_cut", capacity=True, sent=sent, planned=planned)
    return next(
        (failed for code in ("load_exact", "concurrency_held") if (failed := run.failure(code))), None
    )


def components(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.2: where the server's metrics have the wait in its queue."""
    served = [one.summary.server for one in evidence.levels]
    if not any(one is not None and one.queue_ms is not None for one in served):
        return not_applicable(note("precondition", why="components"))
    return columns("ttft_components", "component", "mean")(evidence)


def ranges_right(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.5.3: each row is a range of some level."""
    ruling = by_length(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
        return ruling
    wanted = ("n", *THREE)
    buckets = [bucket for run in evidence.levels for bucket in run.summary.ttft_by_input]
    for i, row in enumerate(evidence.shown.rows("ttft_by_input"), 1):
        if not any(all(equal(number(row.get(key)), getattr(one, key)) for key in wanted) for one in buckets):
            return violated(note("cells_of_no_run", table="ttft_by_input", row=i, columns=wanted))
    return satisfied(note("cells_of_runs", table="ttft_by_input", columns=wanted))


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


# Draft 5.4: the table has a row for each statistic and a column for each level.

ITL_ROWS = {
    "ITL Samples": "n", "ITL P50": "p50", "ITL P90": "p90", "ITL P95": "p95", "ITL P99": "p99", "ITL P99.9": "p99_9",
    "ITL Mean": "mean", "ITL Std Dev": "std",
}  # fmt: skip


def itl_rows(*labels: str) -> RuleCheck:
    """Rows of the table of ITL are there, and each cell is a level's."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        rows = {str(row.get("metric")): row for row in evidence.shown.rows("itl")}
        missing = tuple(label for label in labels if label not in rows)
        if missing:
            return violated(note("rows_missing", table="itl", rows=missing))
        for label in labels:
            measured_ones = [_itl(run, ITL_ROWS[label]) for run in evidence.of("level")]
            cells = [cell for name, cell in rows[label].items() if name not in ("metric", "unit")]
            wrong = [cell for cell in cells if not any(equal(number(cell), one) for one in measured_ones)]
            if not cells or wrong:
                return violated(note("row_of_no_run", table="itl", row=label))
        return satisfied(note("rows_of_runs", table="itl", rows=labels))

    return check


def _itl(run: MeasuredRun, name: str) -> float | None:
    value: float | None = getattr(run.measured("itl_ms"), name, None)
    return value


def tail_ratio(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.4.3: P99/P50, worked out again from the levels."""
    ruling = columns("shape", "ratio")(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
        return ruling
    found = [(_itl(run, "p99"), _itl(run, "p50")) for run in evidence.of("level")]
    ratios = [p99 / p50 for p99, p50 in found if p99 is not None and p50]
    for row in evidence.shown.rows("shape"):
        if not any(equal(number(row["ratio"]), one) for one in ratios):
            return violated(note("row_of_no_run", table="shape", row="ratio"))
    return ruling


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
    if any(not str(row.get("status")).startswith("Pass") for row in rows):
        return satisfied(note("search_bracketed"))
    highest, limit = max(number(row.get("concurrency")) or 0 for row in rows), evidence.number("maximum")
    if limit is not None and highest >= limit:
        return satisfied(note("search_to_its_bound"))
    return violated(note("search_open"))


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


# Draft 5.9.


def short_warm_up(evidence: Evidence) -> Ruling | None:
    """Draft 5.9.3: prompts of the warm-up are no longer than the shortest context."""
    contexts = [run.at.context for run in evidence.of("level") if run.at.context]
    if not contexts:
        return None
    first = evidence.runs[0]
    tokens = first.summary.warm_up.probes.input_tokens
    prompts = first.summary.metrics.input_tokens if first.part == "warm-up" else None
    longest = prompts.max if prompts is not None else tokens
    if longest is None:
        return unknown(note("warm_up_not_known"), first.name)
    # What a chat template adds is no part of the context that was asked for.
    observed = note("warm_up_prompts", tokens=longest, context=min(contexts))
    return satisfied_if(longest <= 1.1 * max(min(contexts), 512), observed, first.name)


def scaling_right(evidence: Evidence) -> Ruling | None:
    """Draft 5.9.4: time per 1,000 tokens is mean TTFT over the tokens of the prompt (Q-per-1k)."""
    ruling = columns("lengths", "ttft_mean", "input_tokens", "ms_per_1k")(evidence)
    if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
        return ruling
    for i, row in enumerate(evidence.shown.rows("lengths"), 1):
        mean, tokens = number(row["ttft_mean"]), number(row["input_tokens"])
        if mean is None or not tokens or not equal(number(row["ms_per_1k"]), 1000.0 * mean / tokens):
            return violated(note("cells_of_no_run", table="lengths", row=i, columns=("ms_per_1k",)))
    return ruling


def exponent(evidence: Evidence) -> float | None:
    """Draft 5.9.4: the slope of log TTFT over log length, by least squares."""
    rows = [] if evidence.shown is None else evidence.shown.rows("lengths")
    found = [(number(row.get("input_tokens")), number(row.get("ttft_mean"))) for row in rows]
    pairs = [(math.log(x), math.log(y)) for x, y in found if x and y]
    if len(pairs) < 2:
        return None
    x0, y0 = (math.fsum(part) / len(pairs) for part in zip(*pairs, strict=True))
    spread = math.fsum((x - x0) ** 2 for x, _ in pairs)
    return math.fsum((x - x0) * (y - y0) for x, y in pairs) / spread if spread else None


# Draft 5.10.


def benign(evidence: Evidence) -> Ruling | None:
    """Draft 5.10.2: what this program makes is benign; prompts of a file or a trace nobody can check."""
    for workload, run in evidence.workloads:
        if isinstance(workload, PromptsWorkload | TraceWorkload) or workload.file is not None:
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


def _gaps(run: MeasuredRun) -> Note | None:
    return None if run.measured("itl_ms") else note("no_gaps")


CHECKS: dict[str, RuleCheck] = {
    "D-5-structure": five_parts,
    "D-5-configure": configured,
    "D-5.1.3-formula": runs_of(_ttft_after_submission, note("ttft_by_definition")),
    "D-5.1.3-stop": runs_of(_to_the_last, note("load_held"), "level"),
    "D-5.1.3.1-content": runs_of(_first_content, note("first_content")),
    "D-5.1.3.1-overhead": by_design(note("framing_left_out")),
    "D-5.1.4.2-components": components,
    "D-5.1.5.3-table": ranges_right,
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
    "D-5.4.3-formula": runs_of(_gaps, note("gaps_of_pairs"), "level"),
    "D-5.4.3-aggregate": itl_rows("ITL Samples"),
    "D-5.4.3-jitter": columns("per_request", "jitter_p50", "jitter_p95", "jitter_p99"),
    "D-5.4.3-pause": columns("per_request", "max_pause_p50", "max_pause_p95", "max_pause_p99"),
    "D-5.4.4.1-percentiles": itl_rows("ITL P50", "ITL P90", "ITL P95", "ITL P99", "ITL P99.9"),
    "D-5.4.4.1-moments": itl_rows("ITL Mean", "ITL Std Dev"),
    "D-5.4.4.3-ratio": tail_ratio,
    "D-5.5.2-oom": columns("levels", "errors", "status"),
    "D-5.5.3-burst": runs_of(_burst, note("burst"), "level", "confirm"),
    "D-5.5.3-record": right("levels", concurrency=concurrency, ttft_p99=latency("ttft", "p99")),
    "D-5.5.3-search": converged,
    "D-5.5.4-throughput": measured("throughput_at_max"),
    "D-5.5.4-in-flight": measured("tokens_in_flight_mean"),
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
    "D-5.8.3-monitor": columns("levels", "completion", "events", "ttft_p99"),
    "D-5.8.3-failures": columns("levels", "errors", "failed"),
    "D-5.8.3-analyse": measured("degradation"),
    "D-5.8.4-completion": columns("levels", "completion"),
    "D-5.8.4-preemption": columns("levels", "preempted"),
    "D-5.8.4-recovery": columns("levels", "recovered"),
    "D-5.8.4-loss": columns("levels", "lost"),
    "D-5.9.3-warmup": short_warm_up,
    "D-5.9.4-latency": right("lengths", context=context, **latencies(("ttft",), ("mean", "p50", "p95"))),
    "D-5.9.4-prefill": scaling_right,
    "D-5.9.4-exponent": follows("exponent", exponent),
    "D-5.9.4-throughput": right("lengths", context=context, output_tok_s=output_tok_s),
    "D-5.10.2-benign": benign,
    "D-5.10.3-toggle": toggled("guardrails"),
    "D-5.10.4-latency": right("latency_*", **LATENCY_ROWS),
    "D-5.10.4-input": overheads("input", "ttft", "Input Filter"),
    "D-5.10.4-total": overheads("full", "e2e", "Full Filter"),
    "D-7.2-gaming": nobody_checks("gaming"),
}
