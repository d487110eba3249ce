"""Draft 5.5, Concurrent Request Capacity: the most requests in flight that meet the criteria.

The search, the criteria and how long a level lasts are in concurrency.py. Inputs are the plan's, answers of one length.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.plan.schema import Plan
from inferometer.plan.workload import LengthsWorkload, StandardWorkload
from inferometer.procedures.concurrency import (
    SYSTEM_ERRORS,
    Level,
    Sought,
    answer,
    best,
    errors,
    known_capacity,
    ladder_of,
    lasted,
    levels,
    seek,
)
from inferometer.procedures.results import Axis, Cell, Column, Figure, Mark, Results, Series, Table, Value
from inferometer.procedures.search import Answer
from inferometer.procedures.setup import Setup, answering, closed_loop
from inferometer.procedures.step import Performed, Steps
from inferometer.procedures.summary_access import rate, rate_interval, stat, success

NAME, SECTION, TITLE = "capacity", "5.5", "Concurrent Request Capacity"
OBJECTIVE = (
    "Find out how many requests at once the system takes while it completes them, in time and without errors."
)

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
    found, ended, top = levels(wanted, done), answer(wanted, done), best(wanted, done)
    if not found:
        return Results(undecided=("No concurrency level was measured.",))
    return Results(
        values=_values(top, ended),
        tables=(_table(found, top),),
        figures=(_figure(found, top, ended),),
        notes=_notes(setup, wanted, found, ended),
        undecided=_undecided(wanted, top, ended),
        known=known_capacity(wanted, ended),
    )


def _values(top: Level | None, ended: Answer | None) -> tuple[Value, ...]:
    summary = None if top is None else top.done.outcome.summary
    tokens = None if summary is None else summary.in_flight_tokens
    mean, peak = (None, None) if tokens is None else (tokens.mean, tokens.peak)
    below = None if ended is None or ended.below is None else int(ended.below)
    why = "" if below is None else f"the lowest that did not meet the criteria: {below}"
    if top is None:
        why = "no concurrency met the criteria"
    approximate = "input and output so far, over all requests in flight, by the client's records"
    return (
        Value(
            "max_concurrency", "Maximum concurrent requests meeting criteria", None if top is None else top.concurrency,
            "in flight", None, why, capacity=True,
        ),
        Value(
            "throughput_at_max", "Achieved throughput at maximum", rate(summary, "output_tok_s"),
            "tok/s", rate_interval(summary, "output_tok_s"), "", capacity=True,
        ),
        Value(
            "tokens_in_flight_mean", "Tokens in flight at maximum, mean over time", mean, "tokens", None,
            approximate, capacity=True,
        ),
        Value("tokens_in_flight_peak", "Tokens in flight at maximum, peak", peak, "tokens", None,
              approximate, capacity=True),
    )  # fmt: skip


def _table(found: Sequence[Level], top: Level | None) -> Table:
    """Draft Table 7, with what else 5.5.3 and 5.5.4 ask to be recorded on its right."""
    columns = (
        Column("concurrency", "Concurrency"),
        Column("completion", "Completion", "%"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("errors", "Errors"),
        Column("status", "Status"),
        Column("ttft_p99_later", "TTFT P99 without the first wave", "ms"),
        Column("output_tok_s", "Throughput", "tok/s"),
        Column("tokens_mean", "Tokens in flight, mean", "tokens"),
        Column("tokens_peak", "Tokens in flight, peak", "tokens"),
        Column("completed", "Completed"),
        Column("seconds", "Run", "s"),
        Column("because", "Because of"),
    )
    notes = [
        "Levels in the order they were run.",
        "The first wave, as many requests as slots, is submitted at once; its TTFT stays in P99.",
    ]
    if top is not None:
        notes.append(f"Maximum concurrent requests meeting criteria: {top.concurrency}")
    rows = tuple(_row(one) for one in found)
    return Table("levels", "Capacity search", "5.5.5", columns, rows, tuple(notes), capacity=True)


def _row(one: Level) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    tokens, later = summary.in_flight_tokens, summary.first_wave
    met = one.decision.sustained
    because = "" if met else ", ".join(signal.code for signal in one.decision.reasons)
    return (
        one.concurrency,
        success(summary),
        stat(summary, "ttft", "p99"),
        stat(summary, "tpot", "p99"),
        errors(summary),
        status(one) + (" (confirmed)" if one.confirms and met else ""),
        None if later is None else later.ttft_p99_ms,
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


def _figure(found: Sequence[Level], top: Level | None, ended: Answer | None) -> Figure:
    """The way of the search: the level of each step, and between which two the answer lies."""
    said = [status(one) for one in found]
    series = tuple(
        Series(
            name,
            tuple(float(number) for number, word in enumerate(said, 1) if word == name),
            tuple(float(one.concurrency) for one, word in zip(found, said, strict=True) if word == name),
        )
        for name in (PASS, FAIL, OPEN, SHORT)
        if name in said
    )
    marks = [] if top is None else [Mark("maximum", y=float(top.concurrency))]
    if ended is not None and ended.below is not None:
        marks.append(Mark("lowest that failed", y=ended.below))
    axes = Axis("Step of the search"), Axis("Requests in flight", log=True)
    return Figure("search", "Capacity search", "points", *axes, series, tuple(marks), capacity=True)


def _notes(setup: Setup, wanted: Sought, found: Sequence[Level], ended: Answer | None) -> tuple[str, ...]:
    said = [
        _lengths(setup),
        f"The search doubles, and bisects until the gap is 1 or {100 * wanted.ladder.resolution:g} %, whichever is wider; "
        "the answer was run twice.",
        f"Errors are out-of-memory and other system errors as a client sees them: {', '.join(SYSTEM_ERRORS)}. "
        "Timeouts and refusals only lower completion.",
    ]
    if wanted.ttft_p99_ms is None:
        said.append("No threshold of TTFT P99 was given (capacity.ttft_p99_ms): none was held (draft 5.5.2).")
    else:
        said.append(f"Threshold held: TTFT P99 <= {wanted.ttft_p99_ms:g} ms, by its 95 % interval.")
    brief = sorted(
        {
            one.concurrency
            for one in found
            if not one.short and lasted(one.done.outcome.summary) < wanted.seconds
        }
    )
    if brief:
        named = ", ".join(str(level) for level in brief)
        said.append(f"Shorter than {wanted.seconds:g} s: {named}.")
    if ended is not None and ended.unsettled:
        named = ", ".join(f"{level:g}" for level in ended.unsettled)
        said.append(f"Never settled by their intervals, and taken as not met: {named}.")
    return tuple(said)


def _lengths(setup: Setup) -> str:
    """Of answers, which draft 5.5.2 wants to be of one length."""
    workload, asked = setup.plan.workload, setup.tests.capacity.output_tokens
    if workload.file is not None:
        return (
            "The workload was made before, so answers have its lengths; draft 5.5.2 wants them to be of one."
        )
    if isinstance(workload, StandardWorkload | LengthsWorkload):
        had = f"workload has {workload.output_tokens}"
    elif workload.classes:
        had = "classes have lengths of their own"
    else:
        had = "prompts that name a length of their own keep it"
    return f"All answers are asked to have {asked} tokens (draft 5.5.2); the plan's {had}. Input lengths are the plan's."


def _undecided(wanted: Sought, top: Level | None, ended: Answer | None) -> tuple[str, ...]:
    if ended is None:
        return ("The search did not come to its end.",)
    if ended.why == "endless":
        return ("The search was given up: levels met the criteria once, and then did not.",)
    if top is None:
        return ("Not even one request at a time met the criteria.",)
    if ended.why == "ceiling":
        hint = "" if wanted.ttft_p99_ms is not None else ", and no threshold of TTFT was held"
        return (
            f"All levels up to the maximum of {wanted.ladder.most:g} met the criteria{hint}: the capacity lies above.",
        )
    return ()
