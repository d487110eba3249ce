"""Draft 5.5, Concurrent Request Capacity: the most requests in flight that meet the criteria.

The search, the criteria and how long a level lasts are in concurrency.py. Inputs are the plan's, answers of one length.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Mark, Series
from inferometer.plan.schema import Plan
from inferometer.plan.workload import LengthsWorkload, StandardWorkload
from inferometer.procedures.concurrency import (
    SYSTEM_ERRORS,
    Level,
    Sought,
    answer,
    best,
    errors,
    interval,
    known_capacity,
    ladder_of,
    lasted,
    levels,
    seek,
)
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.search import Answer
from inferometer.procedures.setup import Setup, answering, closed_loop
from inferometer.procedures.step import Performed, Steps
from inferometer.procedures.summary_access import rate, rate_interval, stat, success

NAME, SECTION = "capacity", "5.5"

PASS, FAIL, OPEN, SHORT = "Pass", "Fail", "not settled", "too short"


def steps(setup: Setup) -> Steps:
    """A pilot; double, bisect, confirm."""
    yield from seek(sought(setup))


def sought(setup: Setup) -> Sought:
    """The search that the test's parameters ask for."""
    wanted = setup.tests.capacity
    return Sought(
        plan=answering(setup.plan, wanted.output_tokens),
        ladder=ladder_of(setup, wanted.initial, wanted.maximum),
        seconds=wanted.duration_s,
        completions=wanted.completions_per_slot,
        success_rate=wanted.success_rate,
        ttft_p99_ms=wanted.ttft_p99_ms,
    )


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    wanted = sought(setup)
    return closed_loop(wanted.plan, setup.tests.capacity.initial, seconds=wanted.seconds)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 7, the way the search went, and the answer."""
    wanted = sought(setup)
    measured, ended, top = levels(wanted, done), answer(wanted, done), best(wanted, done)
    if not measured:
        return Results(undecided=(Note("no_concurrency_measured"),))
    return Results(
        values=_values(top, ended, interval(wanted, done)),
        tables=(search_table(measured, top),),
        figures=(_figure(measured, top, ended),),
        notes=_notes(setup, wanted, measured, ended),
        undecided=_undecided(wanted, top, ended),
        known=known_capacity(wanted, ended),
    )


def _values(top: Level | None, ended: Answer | None, ends: Interval | None) -> tuple[Value, ...]:
    summary = None if top is None else top.done.outcome.summary
    tokens = None if summary is None else summary.in_flight_tokens
    mean, peak = (None, None) if tokens is None else (tokens.mean, tokens.peak)
    below = None if ended is None or ended.below is None else int(ended.below)
    why = None if below is None else Note("lowest_that_failed", {"concurrency": below}, capacity=True)
    if top is None:
        why = Note("no_concurrency_met_the_criteria")
    approximate = Note("tokens_in_flight_by_client")
    return (
        Value(
            "max_concurrency", "Maximum concurrent requests meeting criteria", None if top is None else top.concurrency,
            "in flight", ends, why, capacity=True,
        ),
        Value(
            "throughput_at_max", "Achieved throughput at maximum", rate(summary, "output_tok_s"),
            "tok/s", rate_interval(summary, "output_tok_s"), capacity=True,
        ),
        Value(
            "tokens_in_flight_mean", "Tokens in flight at maximum, mean over time", mean, "tokens", None,
            approximate, capacity=True,
        ),
        Value("tokens_in_flight_peak", "Tokens in flight at maximum, peak", peak, "tokens", None,
              approximate, capacity=True),
    )  # fmt: skip


def search_table(
    levels: Sequence[Level], top: Level | None, name: str = "levels", title: str = "Capacity search"
) -> Table:
    """Draft Table 7, with what else 5.5.3 and 5.5.4 ask to be recorded on its right."""
    columns = (
        Column("concurrency", "Concurrency"),
        Column("completion", "Completion", "%"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("errors", "Errors"),
        Column("status", "Status"),
        Column("output_tok_s", "Throughput", "tok/s"),
        Column("tokens_mean", "Tokens in flight, mean", "tokens"),
        Column("tokens_peak", "Tokens in flight, peak", "tokens"),
        Column("completed", "Completed"),
        Column("seconds", "Run", "s"),
        Column("because", "Because of"),
    )
    notes = [Note("levels_in_order_run")]
    if top is not None:
        notes.append(Note("maximum_concurrency", {"concurrency": top.concurrency}, capacity=True))
    rows = tuple(_row(one) for one in levels)
    return Table(name, title, "5.5.5", columns, rows, tuple(notes), capacity=True)


def _row(one: Level) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    tokens = summary.in_flight_tokens
    met = one.decision.sustained
    because = "" if met else ", ".join(signal.code for signal in one.decision.reasons)
    return (
        one.concurrency,
        success(summary),
        stat(summary, "ttft", "p99"),
        stat(summary, "tpot", "p99"),
        errors(summary),
        status(one) + (" (confirmed)" if one.confirms and met else ""),
        rate(summary, "output_tok_s"),
        None if tokens is None else tokens.mean,
        None if tokens is None else tokens.peak,
        summary.requests.completed,
        lasted(summary),
        because,
    )


def status(one: Level) -> str:
    """Whether a level met the criteria, in the words of draft Table 7."""
    if one.short:
        return SHORT
    return {True: PASS, False: FAIL, None: OPEN}[one.decision.sustained]


def _figure(levels: Sequence[Level], top: Level | None, ended: Answer | None) -> Figure:
    """The way of the search: the level of each step, and between which two the answer lies."""
    statuses = [status(one) for one in levels]
    series = tuple(
        Series(
            name,
            tuple(float(number) for number, word in enumerate(statuses, 1) if word == name),
            tuple(float(one.concurrency) for one, word in zip(levels, statuses, strict=True) if word == name),
        )
        for name in (PASS, FAIL, OPEN, SHORT)
        if name in statuses
    )
    marks = [] if top is None else [Mark("maximum", y=float(top.concurrency))]
    if ended is not None and ended.below is not None:
        marks.append(Mark("lowest that failed", y=ended.below))
    axes = Axis("Step of the search"), Axis("Requests in flight", log=True)
    return Figure("search", "Capacity search", "points", *axes, series, tuple(marks), capacity=True)


def _notes(setup: Setup, wanted: Sought, levels: Sequence[Level], ended: Answer | None) -> tuple[Note, ...]:
    notes = [
        _lengths(setup),
        Note("search_doubles_and_bisects", {"resolution": wanted.ladder.resolution}),
        Note("system_errors", {"errors": SYSTEM_ERRORS}),
    ]
    if wanted.ttft_p99_ms is None:
        notes.append(Note("no_ttft_threshold"))
    else:
        notes.append(Note("ttft_threshold", {"ms": wanted.ttft_p99_ms}, capacity=True))
    brief = sorted(
        {
            one.concurrency
            for one in levels
            if not one.short and lasted(one.done.outcome.summary) < wanted.seconds
        }
    )
    if brief:
        notes.append(
            Note("levels_too_short", {"seconds": wanted.seconds, "levels": tuple(brief)}, capacity=True)
        )
    if ended is not None and ended.unsettled:
        notes.append(Note("unsettled_taken_as_not_met", {"levels": ended.unsettled}, capacity=True))
    return tuple(notes)


def _lengths(setup: Setup) -> Note:
    """Lengths of answers: draft 5.5.2 wants them to be the same."""
    workload, asked = setup.plan.workload, setup.tests.capacity.output_tokens
    if workload.file is not None:
        return Note("answers_as_in_workload_file")
    facts = {"tokens": str(asked)}
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        return Note("answers_of_one_length", facts | {"planned": str(workload.output_tokens)})
    if workload.classes:
        return Note("answers_of_one_length_in_classes", facts)
    return Note("answers_of_one_length_in_prompt_file", facts)


def _undecided(wanted: Sought, top: Level | None, ended: Answer | None) -> tuple[Note, ...]:
    if ended is None:
        return (Note("search_not_ended"),)
    if ended.why == "endless":
        return (Note("criteria_search_given_up"),)
    if top is None:
        return (Note("one_request_failed_the_criteria"),)
    if ended.why == "ceiling":
        facts = {"maximum": wanted.ladder.most, "threshold": wanted.ttft_p99_ms is not None}
        return (Note("capacity_above_maximum", facts, capacity=True),)
    return ()
