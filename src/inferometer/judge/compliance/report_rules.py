"""Checks of what a test shows, draft 5's measurements and reporting formats: the table is there, and no cell of it is null."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    each_run,
    not_applicable,
    note,
    satisfied,
    violated,
    worst,
)
from inferometer.judge.compliance.sut_rules import guardrails, hardware, model
from inferometer.measure.measurement import INPUT_BUCKETS

FOUR = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99")
"""The draft's columns, in the spelling of procedures/."""


def table(*sections: str, name: str | None = None, columns: Sequence[str] = ()) -> RuleCheck:
    """A table of one of these sections, or of this name, without a null in these columns, or in any."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        tables = {
            key: one
            for key, one in evidence.shown.tables.items()
            if key == name or (name is None and one.section in sections)
        }
        if not tables:
            return violated(note("no_table", table=name, sections=sections))
        for key, one in tables.items():
            if not one.rows:
                return violated(note("empty_table", table=key))
            empty = tuple(column for column in one.empty if not columns or column in columns)
            if empty:
                return violated(note("empty_columns", table=key, columns=empty))
        return satisfied(note("tables", tables=tuple(tables)))

    return check


def figure(name: str) -> RuleCheck:
    """A figure of this name."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        if name in evidence.shown.figures:
            return satisfied(note("figure", figure=name))
        return violated(note("no_figure", figure=name))

    return check


def values(section: str) -> RuleCheck:
    """A test's values, of which each has to be measured."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        shown = evidence.shown.values
        missing = tuple(name for name, measured in shown.items() if not measured)
        if missing:
            return violated(note("not_measured", names=missing))
        if not shown:
            return violated(note("no_values", section=section))
        return satisfied(note("values", names=tuple(shown)))

    return check


def _has_ttft(*statistics: str) -> Callable[[MeasuredRun], Note | None]:
    """The problem of a run in which TTFT has no sample: then it has none of these statistics."""
    return lambda run: None if run.measured("ttft_ms") else note("ttft_missing", statistics=statistics)


def percentiles(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.1: all five, of every level."""
    problem = _has_ttft("p50", "p90", "p95", "p99", "p99_9")
    ruling = each_run(evidence.of("level"), problem, note("ttft_percentiles"))
    return worst(ruling, table(name="ttft")(evidence))


def moments(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.1."""
    return each_run(evidence.of("level"), _has_ttft("mean", "min", "max"), note("ttft_moments"))


def sample_count(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.3."""

    def kept(run: MeasuredRun) -> Note:
        ttft = run.measured("ttft_ms")
        return note("ttft_samples", capacity=True, n=ttft.n if ttft else 0)

    return worst(each_run(evidence.of("level"), _has_ttft("n"), kept), table(name="ttft")(evidence))


def buckets(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.2: of those, the ones that prompts fell into."""

    def problem(run: MeasuredRun) -> Note | None:
        found = tuple(bucket.from_tokens for bucket in run.summary.ttft_by_input)
        if not found:
            return note("no_buckets")
        return None if set(found) <= set(INPUT_BUCKETS) else note("other_buckets", from_tokens=found)

    return each_run(evidence.of("level"), problem, note("buckets"))


def by_length(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.4.2: where prompts fall into several ranges."""
    several = [run for run in evidence.levels if sum(bool(b.n) for b in run.summary.ttft_by_input) > 1]
    if evidence.levels and not several:
        return not_applicable(note("one_bucket"))
    return table(name="ttft_by_input")(evidence)


def variants(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.3.1: TTFT is to the first content; that to anything stands beside it."""

    def problem(run: MeasuredRun) -> Note | None:
        return None if run.measured("ttft_any_ms") else note("no_ttft_any")

    def kept(run: MeasuredRun) -> Note:
        check = run.check("ttft_variants")
        return note("ttft_variants", capacity=True, message=None if check is None else check.message)

    return each_run(evidence.of("level"), problem, kept)


def load(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.5.1."""

    def problem(run: MeasuredRun) -> Note | None:
        offered = run.summary.load.offered
        known = offered.rate is not None or offered.concurrency is not None
        return None if known else note("load_not_reported")

    return each_run(evidence.levels, problem, lambda run: note("load", model=run.summary.load.model))


def extent(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.5.1."""

    def problem(run: MeasuredRun) -> Note | None:
        reported = run.summary.requests.sent and run.summary.window.duration_s is not None
        return None if reported else note("extent_not_reported")

    def kept(run: MeasuredRun) -> Note:
        sent, seconds = run.summary.requests.sent, run.summary.window.duration_s
        return note("extent", capacity=True, requests=sent, seconds=seconds)

    return each_run(evidence.levels, problem, kept)


def modality(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.4.3: how many modes the gaps' distribution has."""

    def problem(run: MeasuredRun) -> Note | None:
        shape = run.summary.itl_shape
        return _undetermined("modality", None if shape is None else shape.modality)

    return each_run(evidence.of("level"), problem, note("shape", names=("modality",)))


def tail(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.4.3: how heavy its tail is."""

    def problem(run: MeasuredRun) -> Note | None:
        shape = run.summary.itl_shape
        return _undetermined("tail", None if shape is None else shape.tail)

    return each_run(evidence.of("level"), problem, note("shape", names=("tail",)))


def _undetermined(name: str, value: str | None) -> Note | None:
    return note("shape_unknown", name=name, value=value) if value in (None, "undetermined") else None


def configured(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.5.1: model and hardware are reported."""
    return worst(model(evidence), hardware(evidence))


CHECKS: dict[str, RuleCheck] = {
    "D-5.1.3.1-noncontent": variants,
    "D-5.1.4.1-percentiles": percentiles,
    "D-5.1.4.1-moments": moments,
    "D-5.1.4.2-by-length": by_length,
    "D-5.1.4.2-buckets": buckets,
    "D-5.1.4.3-samples": sample_count,
    "D-5.1.5.1-model": configured,
    "D-5.1.5.1-load": load,
    "D-5.1.5.1-extent": extent,
    "D-5.1.5.1-guardrail": guardrails,
    "D-5.1.5.2-table": table(name="ttft"),
    "D-5.1.5.4-plot": figure("ttft_cdf"),
    "D-5.2.4.3-latency": table(name="latency"),
    "D-5.2.5.1-table": table(name="summary"),
    "D-5.3.3-plot": figure("curve"),
    "D-5.3.5-table": table(name="levels", columns=("rate", "achieved", *FOUR, "success")),
    "D-5.4.4.2-per-request": table(name="per_request"),
    "D-5.4.4.3-modality": modality,
    "D-5.4.4.3-tail": tail,
    "D-5.4.5-table": table(name="itl"),
    "D-5.5.4-max": values("5.5.4"),
    "D-5.5.5-table": table(
        "5.5.5", columns=("concurrency", "completion", "ttft_p99", "tpot_p99", "errors", "status")
    ),
    "D-5.6.4-inflation": values("5.6.4"),
    "D-5.6.5-class-table": table("5.6.5", "5.6.5.1", "5.6.5.2", columns=("class", "count", "value", *FOUR)),
    "D-5.7.4-reduction": values("5.7.4"),
    "D-5.7.5-table": table("5.7.5"),
    "D-5.8.5-table": table("5.8.5"),
    "D-5.9.5-table": table("5.9.5", columns=("context", "ttft_mean", "ttft_p95", "ms_per_1k")),
    "D-5.9.5-fit": values("5.9.5"),
    "D-5.10.4-throughput": table("5.10.5", "5.10.4"),
}
