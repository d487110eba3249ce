"""Checks of the draft's plain statements on TTFT (5.1), inter-token latency (5.4) and long context (5.9), and on what every
test of section 5 shows."""

from __future__ import annotations

import math

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    declared,
    not_applicable,
    note,
    satisfied,
    satisfied_if,
    unknown,
    violated,
)
from inferometer.judge.compliance.report_rules import by_length
from inferometer.judge.compliance.rule_checks import by_design, runs_of
from inferometer.judge.compliance.shown_rules import (
    columns,
    context,
    equal,
    follows,
    latencies,
    number,
    output_tok_s,
    right,
)
from inferometer.judge.compliance.workload_rules import starts

THREE = ("p50", "p95", "p99")


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
    """Draft 5.1.4.2: where the server's metrics have the wait in its queue, or its answers the time of prefill."""
    served = [one.summary.server for one in evidence.levels]
    if any(one is not None and one.queue_ms is not None for one in served):
        return columns("ttft_components", "component", "mean")(evidence)
    if any(run.measured("prefill_server_ms") for run in evidence.levels):
        return columns("ttft_components_by_answer", "component", "mean")(evidence)
    return not_applicable(note("precondition", why="components"))


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


# Draft 5.4: the table has a row for each statistic and a column for each level.

ITL_ROWS = {
    "ITL Samples": "n", "ITL P50": "p50", "ITL P90": "p90", "ITL P95": "p95", "ITL P99": "p99", "ITL P99.9": "p99_9",
    "ITL Mean": "mean", "ITL Std Dev": "std",
}  # fmt: skip


CHUNKS = "Time Between Chunks"
"""What gaps are called where an event has several tokens: ITL by option A of draft 4.6.3."""


def itl_rows(*labels: str) -> RuleCheck:
    """Rows of the table of ITL are there, and each cell is a level's."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        rows = {str(row.get("metric")).replace(CHUNKS, "ITL"): row for row in evidence.shown.rows("itl")}
        missing = tuple(label for label in labels if label not in rows)
        if missing:
            return violated(note("rows_missing", table="itl", rows=missing))
        for label in labels:
            measured_ones = [_itl(run, ITL_ROWS[label]) for run in evidence.of("level")]
            cells = [cell for name, cell in rows[label].items() if name not in ("metric", "unit")]
            wrong = [cell for cell in cells if not any(equal(number(cell), one) for one in measured_ones)]
            if not cells or wrong:
                return violated(note("row_of_no_run", table="itl", row=label))
        shown = tuple(str(rows[label].get("metric")) for label in labels)
        return satisfied(note("rows_of_runs", table="itl", rows=shown))

    return check


def _itl(run: MeasuredRun, name: str) -> float | None:
    value: float | None = getattr(run.long_gaps, name, None)
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
    "D-5.4.3-formula": runs_of(_gaps, note("gaps_of_pairs"), "level"),
    "D-5.4.3-aggregate": itl_rows("ITL Samples"),
    "D-5.4.3-jitter": columns("per_request", "jitter_p50", "jitter_p95", "jitter_p99"),
    "D-5.4.3-pause": columns("per_request", "max_pause_p50", "max_pause_p95", "max_pause_p99"),
    "D-5.4.4.1-percentiles": itl_rows("ITL P50", "ITL P90", "ITL P95", "ITL P99", "ITL P99.9"),
    "D-5.4.4.1-moments": itl_rows("ITL Mean", "ITL Std Dev"),
    "D-5.4.4.3-ratio": tail_ratio,
    "D-5.9.3-warmup": short_warm_up,
    "D-5.9.4-latency": right("lengths", context=context, **latencies(("ttft",), ("mean", "p50", "p95"))),
    "D-5.9.4-prefill": scaling_right,
    "D-5.9.4-exponent": follows("exponent", exponent),
    "D-5.9.4-throughput": right("lengths", context=context, output_tok_s=output_tok_s),
}
