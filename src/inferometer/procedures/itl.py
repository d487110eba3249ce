"""Draft 5.4, Inter-Token Latency Distribution: how evenly tokens follow one another, at several shares of saturation.

Gaps are of answers of at least 50 tokens (measure/itl_shape.py); the wait for the first token is no gap. Where an event holds
several tokens, a gap is the time between two chunks and is called so (draft 4.6.3, B.2.1). Gaps by the server's own stamps
have a table of their own (option C). A tester may choose B or C (`itl.option`, 5.4.2): its P50 and P99 then stand for the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Series
from inferometer.documents.summary import Summary
from inferometer.measure.itl_shape import ItlShape
from inferometer.metrics.statistics import Stats
from inferometer.plan.procedure_parameters import LEAST_OUTPUT
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import arrivals_in, arrivals_of
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.saturation import base_life, base_of, base_table, find_base, known_base
from inferometer.procedures.setup import (
    Setup,
    answering,
    level_of,
    open_loop,
    variant,
    warm_up_run,
    without_warm_up,
    workload_key,
)
from inferometer.procedures.step import Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import Curve, curve, interval, percent, statistic

NAME, SECTION = "itl", "5.4"

LEAST_REQUESTS, LEAST_GAPS = 100, 5_000
"""Draft 5.4.2."""
ROWS = (
    ("n", "{gap} Samples", ""),
    ("p50", "{gap} P50", "ms"),
    ("p90", "{gap} P90", "ms"),
    ("p95", "{gap} P95", "ms"),
    ("p99", "{gap} P99", "ms"),
    ("p99_9", "{gap} P99.9", "ms"),
    ("mean", "{gap} Mean", "ms"),
    ("std", "{gap} Std Dev", "ms"),
)
"""Draft Table 6, above the ratio."""
PER_REQUEST = (("jitter_ms", "Jitter"), ("max_pause_ms", "Maximum pause"))
PERCENTILES = ("p50", "p95", "p99")
CHUNKS = "Time Between Chunks"
STAMPS_MS, STAMPS_SHARE = 0.2, 0.2
"""By so much, whichever is more, gaps that arrived may be longer on average than gaps that the server stamped. A network
delays the last token of an answer no more than the first, but for its jitter."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of draft 4.6.3: the metric of a summary that has its gaps, its table and note."""

    metric: str
    table: str
    title: str
    note: Note


OPTIONS = {
    "B": Option(
        "itl_distributed_ms",
        "itl_distributed",
        "ITL by distributed timing, by load level",
        Note("gaps_distributed"),
    ),
    "C": Option(
        "itl_server_ms",
        "itl_server",
        "ITL by the server's stamps, by load level",
        Note("gaps_by_the_servers_stamps"),
    ),
}
"""Option A is what is measured always: the gaps between chunks, or between tokens where each event has one."""


def steps(setup: Setup) -> Steps:
    """The saturation rate, and the levels, each until its request count is reached."""
    plan = _plan(setup)
    if workload_key(plan) in setup.known.saturation:
        yield warm_up_run(plan)  # nothing went before, and the first level is a low one
    base = yield from find_base(setup, plan)
    wanted, unit = setup.tests.itl, arrivals_of(plan, ()).per_second
    for number, share in enumerate(sorted(set(wanted.percent)) if base is not None else ()):
        level = float(f"{(base or 0.0) * share / 100:.6g}")
        yield Run(
            level_of(
                open_loop(without_warm_up(_stamped(setup, plan)), level, requests=wanted.requests),
                NAME,
                number,
            ),
            "level",
            Conditions(percent=share, rate=level),
            Note("itl_level", {"requests": wanted.requests, "percent": share, "rate": level, "unit": unit}),
        )


def _plan(setup: Setup) -> Plan:
    """With the output lengths that the test asks for, if it does."""
    asked = setup.tests.itl.output_tokens
    return setup.plan if asked is None else answering(setup.plan, asked)


def _stamped(setup: Setup, plan: Plan) -> Plan:
    """With the field that has llama.cpp put its times into each event; Ollama's events have them always. What the plan's own
    extra fields say of it stands."""
    field = plan.target.interface.stamp_field
    if setup.tests.itl.option != "C" or field is None:
        return plan
    return variant(plan, target={"extra_body": {field: True, **plan.target.extra_body}})


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    return open_loop(_stamped(setup, _plan(setup)), 1.0, requests=setup.tests.itl.requests)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 6 a column a level, jitter and pauses, the shape, and the distributions."""
    performed = runs(done, "level")
    base = base_of(setup, _plan(setup), done)
    slower = base_collapse(setup, _plan(setup), done)
    known = known_base(_plan(setup), base, slower, base_life(setup, _plan(setup), done))
    if not performed:
        why = Note("no_level_measured") if base is not None else Note("no_saturation_rate")
        return Results(tables=base_table(setup, _plan(setup), done), undecided=(why,), known=known)
    return Results(
        values=(
            Value("saturation_rate", "Saturation rate, 100 %", base, arrivals_in(_plan(setup), done).column, None,
                  Note("highest_sustainable_rate"), capacity=True),
            *(value for one in performed for value in _chosen(setup, one)),
            *(value for one in performed for value in _values(one)),
        ),
        tables=(
            _table(performed), *_of_option(performed, "C"), *_spread(setup, performed),
            _per_request(performed), _shapes(performed),
            *base_table(setup, _plan(setup), done),
        ),
        figures=(_cdf(performed),),
        notes=(*_notes(performed), *base_notes(slower)),
        undecided=(*_undecided(setup, performed), *unsure_loads(slower, base, setup.tests.itl.percent)),
        known=known,
    )  # fmt: skip


def _undecided(setup: Setup, performed: Sequence[PerformedRun]) -> Iterator[Note]:
    if len(performed) < len(set(setup.tests.itl.percent)):
        yield Note("not_all_levels_measured")
    if silent := [_words(one) for one in performed if not _stat(one, "itl_ms", "n")]:
        yield Note("no_gaps_at_levels", {"least": LEAST_OUTPUT, "levels": tuple(silent)})
    option = setup.tests.itl.option
    if option in OPTIONS and (
        missing := [_words(one) for one in performed if _optional(one, option) is None]
    ):
        yield Note("itl_option_not_measured", {"option": option, "levels": tuple(missing)})
    if option == "C" and (slower := [_words(one) for one in performed if _slower_than_stamped(one)]):
        yield Note("itl_stamps_disagree", {"levels": tuple(slower), "share": STAMPS_SHARE})


def _slower_than_stamped(one: PerformedRun) -> bool:
    """Whether tokens arrived further apart than the server's stamps say. Both means are a span over its gaps, so chance
    evens out; what is held back on its way arrives closer together, not further apart."""
    metrics = one.outcome.summary.metrics
    stamped, seen = metrics.itl_server_ms, metrics.itl_ms or metrics.chunk_gap_ms
    if stamped is None or seen is None:
        return False
    return seen.mean > stamped.mean + max(STAMPS_MS, STAMPS_SHARE * stamped.mean)


def _optional(one: PerformedRun, option: str) -> Stats | None:
    """Gaps of all answers by an option of draft 4.6.3. Where each event has one token, B is no other than ITL."""
    summary = one.outcome.summary
    if option == "B" and summary.tokens.itl_method == "direct":
        return summary.metrics.itl_ms
    stats: Stats | None = getattr(summary.metrics, OPTIONS[option].metric)
    return stats


def _chosen(setup: Setup, one: PerformedRun) -> tuple[Value, ...]:
    """The gaps by the option that was chosen, before those by chunk."""
    option = setup.tests.itl.option
    if option not in OPTIONS:
        return ()
    stats, share = _optional(one, option), f"{_percent(one):g}".replace(".", "_")
    return tuple(
        Value(
            f"itl_{option.lower()}_{name}_{share}", f"ITL {name.upper()} at {_words(one)}, option {option}",
            statistic(stats, name), "ms", interval(stats, name), OPTIONS[option].note,
        )
        for name in ("p50", "p99")
    )  # fmt: skip


def _spread(setup: Setup, performed: Sequence[PerformedRun]) -> tuple[Table, ...]:
    return _of_option(performed, "B") if setup.tests.itl.option == "B" else ()


def _shape(one: PerformedRun) -> ItlShape | None:
    return one.outcome.summary.itl_shape


def _stat(one: PerformedRun, of: str, name: str) -> float | None:
    stats: Stats | None = getattr(_shape(one), of, None)
    return statistic(stats, name)


def _tail_ratio(one: PerformedRun) -> float | None:
    shape = _shape(one)
    return None if shape is None else shape.tail_ratio


def _answers(one: PerformedRun) -> int | None:
    shape = _shape(one)
    return None if shape is None else shape.answers


def _percent(one: PerformedRun) -> float:
    return one.step.at.percent or 0.0


def _words(one: PerformedRun) -> str:
    return f"{_percent(one):g} %"


def gap_name(summaries: Sequence[Summary]) -> str:
    """What a gap is called: ITL only where each token is timed."""
    by_chunk = any(summary.tokens.itl_method == "chunk" for summary in summaries)
    return CHUNKS if by_chunk else "ITL"


def _named(performed: Sequence[PerformedRun]) -> str:
    return gap_name([one.outcome.summary for one in performed])


def _curve(summary: Summary) -> Curve:
    return curve(summary, "chunk_gap" if gap_name([summary]) == CHUNKS else "itl")


def _values(one: PerformedRun) -> tuple[Value, ...]:
    gap, at, share = _named([one]), _words(one), f"{_percent(one):g}".replace(".", "_")
    shape = _shape(one)

    def of(name: str) -> Value:
        value = _stat(one, "itl_ms", name)
        return Value(
            f"itl_{name}_{share}", f"{gap} {name.upper()} at {at}", value, "ms",
            interval(None if shape is None else shape.itl_ms, name),
            None if value is not None else Note("no_long_answer_streamed", {"least": LEAST_OUTPUT}),
        )  # fmt: skip

    tail, modes = (None, None) if shape is None else (shape.tail, shape.modality)
    return (
        of("p50"),
        of("p99"),
        Value(
            f"tail_ratio_{share}",
            f"P99/P50 at {at}",
            _tail_ratio(one),
            "",
            None,
            Note("distribution_shape", {"modality": modes, "tail": tail}),
        ),
    )


def _table(performed: Sequence[PerformedRun]) -> Table:
    """Draft Table 6."""
    gap, columns = _named(performed), _columns(performed)
    rows: list[tuple[Cell, ...]] = [
        (label.format(gap=gap), unit, *(_stat(one, "itl_ms", name) for one in performed))
        for name, label, unit in ROWS
    ]
    rows.append(("P99/P50 Ratio", "", *(_tail_ratio(one) for one in performed)))
    notes = (
        Note("levels_are_shares_of_saturation"),
        Note("gaps_of_long_answers", {"least": LEAST_OUTPUT}),
    )
    return Table("itl", f"{gap} by load level", "5.4.5", columns, tuple(rows), notes)


def _columns(performed: Sequence[PerformedRun]) -> tuple[Column, ...]:
    levels = (Column(f"at_{_percent(one):g}", f"at {_words(one)}") for one in performed)
    return Column("metric", "Metric"), Column("unit", "Unit"), *levels


def _of_option(performed: Sequence[PerformedRun], option: str) -> tuple[Table, ...]:
    """Draft 4.6.3, option B or C, where it was measured: the rows of Table 6, of all answers."""
    stats = [_optional(one, option) for one in performed]
    if not any(stats):
        return ()
    rows = tuple(
        (label.format(gap="ITL"), unit, *(statistic(one, name) for one in stats))
        for name, label, unit in ROWS
    )
    about = OPTIONS[option]
    notes = (Note("levels_are_shares_of_saturation"), about.note)
    return (Table(about.table, about.title, "4.6.3", _columns(performed), rows, notes),)


def _per_request(performed: Sequence[PerformedRun]) -> Table:
    """Draft 5.4.4.2."""
    columns = (
        Column("percent", "Load level", "%"),
        *(
            Column(f"{of.removesuffix('_ms')}_{name}", f"{label} {name.upper()}", "ms")
            for of, label in PER_REQUEST
            for name in PERCENTILES
        ),
        Column("answers", "Answers"),
    )
    rows = tuple(
        (
            _percent(one),
            *(_stat(one, of, name) for of, _ in PER_REQUEST for name in PERCENTILES),
            _answers(one),
        )
        for one in performed
    )
    notes = (Note("jitter_and_pause"),)
    return Table("per_request", "Jitter and pauses by request", "5.4.4.2", columns, rows, notes)


def _shapes(performed: Sequence[PerformedRun]) -> Table:
    """Draft 5.4.4.3, and how gaps were measured (4.6.3)."""
    columns = (
        Column("percent", "Load level", "%"),
        Column("modality", "Modality"),
        Column("modes", "Modes (ms)"),
        Column("tail", "Tail"),
        Column("ratio", "P99/P50"),
        Column("method", "Measured by"),
        Column("tokens_per_event", "Tokens an event"),
        Column("single", "Events of one token", "%"),
        Column("answers", "Answers"),
        Column("short", "Answers left out", "%"),
    )
    return Table("shape", "Shape of the distribution", "5.4.4.3", columns, tuple(map(_shape_row, performed)))


def _shape_row(one: PerformedRun) -> tuple[Cell, ...]:
    shape, tokens = _shape(one), one.outcome.summary.tokens
    modes = None if shape is None else shape.modes_ms
    return (
        _percent(one),
        None if shape is None else shape.modality,
        ", ".join(f"{mode:.3g}" for mode in modes) if modes else None,
        None if shape is None else shape.tail,
        None if shape is None else shape.tail_ratio,
        tokens.itl_method,
        tokens.tokens_per_event,
        percent(tokens.single_token_share),
        _answers(one),
        percent(None if shape is None else shape.short_share),
    )


def _cdf(performed: Sequence[PerformedRun]) -> Figure:
    gap = _named(performed)
    series = tuple(
        Series(
            f"{_words(one)} of saturation",
            *_curve(one.outcome.summary),
            f"{one.step.at.rate or 0.0:.4g} {arrivals_in(one.step.plan, [one]).per_second}",
        )
        for one in performed
    )
    return Figure(
        "itl_cdf",
        f"Distribution of {gap}",
        "cdf",
        Axis(gap, "ms", log=True),
        Axis("Share of gaps"),
        series,
    )


def _notes(performed: Sequence[PerformedRun]) -> tuple[Note, ...]:
    """How it was measured, and what of draft 5.4.2 was not met."""
    tokens = [one.outcome.summary.tokens for one in performed]
    notes = [
        Note("itl_method", {"method": method} if counted else {"method": method, "counted": False})
        for method, counted in sorted(
            {(one.itl_method, one.single_token_share is not None) for one in tokens}, key=str
        )
    ]
    for one in performed:
        shape, share = _shape(one), _percent(one)
        answers, gaps = _answers(one) or 0, _stat(one, "itl_ms", "n") or 0
        if shape is not None and shape.short_share:
            facts = {"percent": share, "short_share": shape.short_share, "least": LEAST_OUTPUT}
            notes.append(Note("short_answers_left_out", facts))
        if answers < LEAST_REQUESTS or gaps < LEAST_GAPS:
            counts = {"answers": answers, "gaps": gaps}
            least = {"least_answers": LEAST_REQUESTS, "least_gaps": LEAST_GAPS}
            notes.append(Note("few_gaps", {"percent": share, **counts, **least}))
    return tuple(notes)
