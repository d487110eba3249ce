"""Draft 5.1, Time to First Token, at one load level or several; each has its own count, tables and picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Series
from inferometer.documents.summary import Summary
from inferometer.metrics.statistics import percentile_of
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import Unit, unit_of
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.results import Results, Table, Value, joined
from inferometer.procedures.saturation import base_life, base_of, find_base, known_base
from inferometer.procedures.setup import Setup, closed_loop, level_of, open_loop, warm_up_run, without_warm_up
from inferometer.procedures.step import Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import curve, samples, stat, stat_interval

NAME, SECTION = "ttft", "5.1"

ROWS = (
    ("p50", "TTFT P50"),
    ("p90", "TTFT P90"),
    ("p95", "TTFT P95"),
    ("p99", "TTFT P99"),
    ("p99_9", "TTFT P99.9"),
    ("mean", "TTFT Mean"),
    ("min", "TTFT Min"),
    ("max", "TTFT Max"),
)
"""Draft Table 1, below the number of requests."""
COMPONENT_POINTS = ("p50", "p90", "p99")
P99_SAMPLES, P999_SAMPLES = 1_000, 10_000
"""Draft 5.1.4.3."""
OVER_MS, OVER_SHARE = 1.0, 0.02
"""By so much the parts of TTFT may exceed it: an engine may count a request as arrived before its body is whole."""


def steps(setup: Setup) -> Steps:
    """The levels, each until its request count is reached."""
    base = yield from find_base(setup, setup.plan) if setup.tests.ttft.percent else _nothing()
    levels = _levels(setup, base)
    if levels:
        yield warm_up_run(setup.plan)
    for number, at in enumerate(levels):
        yield Run(
            level_of(without_warm_up(_plan(setup, at)), NAME, number),
            "level",
            at,
            Note(
                "ttft_level",
                {"requests": setup.tests.ttft.requests, "level": _level(at, unit_of(setup.plan))},
            ),
        )


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    levels = _levels(setup, None)
    return _plan(setup, levels[0] if levels else Conditions(rate=1.0))


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Tables 1 and 2 and the distribution, for each level."""
    performed, percents = runs(done, "level"), setup.tests.ttft.percent
    base = base_of(setup, setup.plan, done) if percents else None
    slower = base_collapse(setup, setup.plan, done) if percents else None
    if not performed:
        return Results(undecided=(Note("no_level_measured"),))
    requested = setup.tests.ttft.requests
    missing = len(_levels(setup, base)) - len(performed)
    open_ = [Note("levels_missing", {"missing": missing})] if missing else []
    if percents and base is None:
        open_.append(Note("no_percentages_of_saturation"))
    open_ += unsure_loads(slower, base, percents)
    short = [one for one in performed if (_n(one) or 0) < requested]
    return joined(
        [
            *(_of_level(one, several=len(performed) > 1) for one in performed),
            Results(
                figures=(_cdf(performed),),
                notes=(
                    *(
                        Note(
                            "few_ttfts",
                            {
                                "of": _level(one.step.at, _unit(one)),
                                "samples": _n(one) or 0,
                                "requests": requested,
                            },
                            True,
                        )
                        for one in short
                    ),
                    *base_notes(slower),
                ),
                undecided=tuple(open_),
                known=known_base(setup.plan, base, slower, base_life(setup, setup.plan, done)),
            ),
        ]
    )


def _nothing() -> Steps:
    yield from ()


def _levels(setup: Setup, base: float | None) -> list[Conditions]:
    """The levels asked for; without any, that of the plan's own load."""
    wanted, plan = setup.tests.ttft, setup.plan
    levels = [Conditions(rate=rate) for rate in wanted.rates]
    if base is not None:
        levels += [Conditions(percent=share, rate=base * share / 100) for share in wanted.percent]
    levels += [Conditions(concurrency=slots) for slots in wanted.concurrencies]
    if levels or wanted.percent:
        return levels
    rate = plan.load.offered_rate  # of users: what they ask for if none has to wait
    return [Conditions(concurrency=plan.load.concurrency or 1) if rate is None else Conditions(rate=rate)]


def _plan(setup: Setup, at: Conditions) -> Plan:
    """Of a level. Raises PlanError: such a load does not exist."""
    count = setup.tests.ttft.requests
    if at.rate is not None:
        return open_loop(setup.plan, at.rate, requests=count)
    return closed_loop(setup.plan, at.concurrency or 1, requests=count)


def _share(at: Conditions) -> str:
    return f"{at.percent:g} % of saturation" if at.percent is not None else ""


def _load(at: Conditions, unit: Unit) -> str:
    return f"{at.rate:.4g} {unit}/s" if at.rate is not None else f"{at.concurrency} in flight"


def _level(at: Conditions, unit: Unit) -> str:
    return ", ".join(filter(None, (_share(at), _load(at, unit))))


def _unit(one: PerformedRun) -> Unit:
    return unit_of(one.step.plan, [one.outcome.summary])


def _n(one: PerformedRun) -> int | None:
    return samples(one.outcome.summary)


def _of_level(one: PerformedRun, *, several: bool) -> Results:
    summary, at = one.outcome.summary, _load(one.step.at, _unit(one)) if several else ""
    share = _share(one.step.at)
    suffix = f", {share}" if several and share else ""
    samples = _n(one) or 0
    rows: list[tuple[Cell, ...]] = [("Requests", samples)]
    rows += [(label, stat(summary, "ttft", name)) for name, label in ROWS]
    notes = [Note("times_of_successes")]
    if samples < P999_SAMPLES:
        notes.append(Note("p99_9_unreliable", {"least": P999_SAMPLES}))
    if samples < P99_SAMPLES:
        notes.append(Note("p99_unreliable", {"least": P99_SAMPLES}))
    columns = (Column("metric", "Metric"), Column("value", "Value"))
    main = Table("ttft", f"TTFT{suffix}", "5.1.5.2", columns, tuple(rows), tuple(notes), at=at)
    values = tuple(
        Value(
            f"ttft_{name}",
            f"{label}{suffix}",
            stat(summary, "ttft", name),
            "ms",
            stat_interval(summary, "ttft", name),
            at=at,
        )
        for name, label in ROWS
        if name.startswith("p")
    )
    return Results(
        values,
        (
            main,
            *_by_input(summary, suffix, at),
            *_components(summary, suffix, at),
            *_reported_components(summary, suffix, at),
        ),
        notes=_noncontent(summary),
    )


def _by_input(summary: Summary, suffix: str, at: str) -> tuple[Table, ...]:
    """Draft Table 2, with the recommended buckets (5.1.4.2) and the samples in each."""
    columns = (
        Column("input", "Input Tokens"),
        Column("n", "Samples"),
        *(Column(name, name.upper(), "ms") for name in ("p50", "p95", "p99")),
    )
    rows = tuple(
        (
            f"{bucket.from_tokens}-{bucket.to_tokens}" if bucket.to_tokens is not None else f"{bucket.from_tokens}+",
            bucket.n,
            *(percentile_of(getattr(bucket, name), name, bucket.n) for name in ("p50", "p95", "p99")),
        )
        for bucket in summary.ttft_by_input
        if bucket.n
    )  # fmt: skip
    if len(rows) < 2:
        return ()  # prompts are of one length, as far as the buckets go
    notes = (Note("empty_ranges_left_out"),)
    return (Table("ttft_by_input", f"TTFT by input length{suffix}", "5.1.5.3", columns, rows, notes, at=at),)


def _components(summary: Summary, suffix: str, at: str) -> tuple[Table, ...]:
    """Queue wait and prefill, where the server's metrics have them (draft 5.1.4.2). Percentiles are estimates from buckets."""
    server = summary.server
    named = () if server is None else (("queue wait", server.queue_ms), ("prefill", server.prefill_ms))
    rows = tuple(
        (name, one.mean, *(getattr(one, point) for point in COMPONENT_POINTS), one.n)
        for name, one in named
        if one is not None
    )
    if not rows:
        return ()
    columns = (
        Column("component", "Component"),
        Column("mean", "Mean", "ms"),
        *(Column(point, f"~{point.upper()}", "ms") for point in COMPONENT_POINTS),
        Column("n", "Requests"),
    )
    notes = (Note("components_by_server"), *_longer_than_ttft(summary))
    title = f"Components of TTFT by the server{suffix}"
    return (Table("ttft_components", title, "5.1.4.2", columns, rows, notes, at=at),)


def _longer_than_ttft(summary: Summary) -> tuple[Note, ...]:
    """That the means of the parts add up to more than that of TTFT."""
    server, whole = summary.server, summary.metrics.ttft_ms
    parts = [one.mean for one in (server.queue_ms, server.prefill_ms) if one is not None] if server else []
    known = [mean for mean in parts if mean is not None]
    if whole is None or math.fsum(known) <= whole.mean + max(OVER_MS, OVER_SHARE * whole.mean):
        return ()
    return (Note("components_add_up", {"parts_ms": math.fsum(known), "ttft_ms": whole.mean}),)


def _reported_components(summary: Summary, suffix: str, at: str) -> tuple[Table, ...]:
    """Model load and prefill as the engine reports them with each answer, and the rest of TTFT (draft 5.1.4.2)."""
    metrics = summary.metrics
    if metrics.prefill_server_ms is None:
        return ()
    named = (
        ("model load", metrics.load_server_ms),
        ("prefill", metrics.prefill_server_ms),
        ("queue wait, HTTP, network, client", metrics.ttft_outside_ms),
    )
    rows = tuple(
        (
            name,
            one.mean,
            *(percentile_of(getattr(one, point), point, one.n) for point in COMPONENT_POINTS),
            one.n,
        )
        for name, one in named
        if one is not None
    )
    columns = (
        Column("component", "Component"),
        Column("mean", "Mean", "ms"),
        *(Column(point, point.upper(), "ms") for point in COMPONENT_POINTS),
        Column("n", "Requests"),
    )
    title = f"Components of TTFT by the engine's answers{suffix}"
    notes = (
        Note("components_by_answer", {"rest": metrics.ttft_outside_ms is not None}),
        *_beyond_ttft(summary),
    )
    return (Table("ttft_components_by_answer", title, "5.1.4.2", columns, rows, notes, at=at),)


def _beyond_ttft(summary: Summary) -> tuple[Note, ...]:
    """Answers whose parts, as the engine reports them, are together longer than TTFT: those cannot be its parts."""
    told, within = summary.metrics.prefill_server_ms, summary.metrics.ttft_outside_ms
    of = 0 if told is None else told.n
    beyond = of - (0 if within is None else within.n)
    return (Note("components_beyond_ttft", {"requests": beyond, "of": of}, True),) if beyond else ()


def _noncontent(summary: Summary) -> tuple[Note, ...]:
    """Draft 5.1.3.1: whether anything comes before the first content token, and what TTFT measures then."""
    variants = next((one for one in summary.verdict.checks if one.code == "ttft_variants"), None)
    if variants is None or variants.status != "note":
        return ()
    return (Note("events_before_first_token"),)


def _cdf(performed: Sequence[PerformedRun]) -> Figure:
    """Draft 5.1.5.4."""
    series = tuple(
        Series(_share(one.step.at), *curve(one.outcome.summary, "ttft"), _load(one.step.at, _unit(one)))
        for one in performed
    )
    return Figure(
        "ttft_cdf",
        "Distribution of TTFT",
        "cdf",
        Axis("TTFT", "ms", log=True),
        Axis("Share of requests"),
        series,
    )
