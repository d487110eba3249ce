"""Draft 5.9, Long Context Scaling: TTFT by the length of the prompt, and which curve it follows.

A length after the other, ascending, each in closed loop with few requests in flight and a fixed short answer. Documents are
those of Long Context, which the draft requires. Before them a run of short ones: its warm-up is the test's (5.9.3). At the end
the first length comes once more (repeated.py): a system that becomes slower meanwhile looks like one that scales worse.

A length that the model has no room for ends the test: no longer one has. What the fits are is in measure/scaling.py.

    ms per 1K tokens = mean TTFT / mean input tokens as the server counts them * 1000          (draft 5.9.4; 1K is 1000)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Series
from inferometer.documents.summary import Summary
from inferometer.errors import PlanError
from inferometer.measure.scaling import Model, Scaling, fit
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Plan
from inferometer.procedures import repeated
from inferometer.procedures.collapse import in_climb
from inferometer.procedures.plateau import (
    SEEDS,
    SLOT_REQUESTS,
    Capacity,
    Climb,
    capacity,
    following,
    plateau,
    rungs,
    still_rose,
)
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.setup import (
    Setup,
    closed_loop,
    documents,
    level_of,
    reseeded,
    warm_up_run,
    without_warm_up,
)
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, Steps, refusals, runs
from inferometer.procedures.summary_access import (
    Metric,
    rate,
    samples,
    stat,
    stat_interval,
    statistic,
    success,
)

NAME, SECTION = "long-context", "5.9"

SHORT = 512
"""Tokens of a prompt of the warm-up: as long as Synthetic-Uniform's longest."""
LEAST_FITTED = 3
"""Lengths; two make a line, whatever they are."""
CURVE_POINTS = 49
BY_REQUEST = True
"""The first length and its repetition are held against each other request by request."""
REPEATED: tuple[Metric, ...] = ("ttft",)


def steps(setup: Setup) -> Steps:
    """Short requests, then the lengths in ascending order, and the first again."""
    wanted = setup.tests.long_context
    yield warm_up_run(_plan(setup, SHORT))
    made: list[Run] = []
    for number, length in enumerate(wanted.lengths):
        # Of its own seed: what a model of an engine draws would else be the same at all lengths, and their errors one.
        plan = level_of(_plan(setup, length), NAME, number)
        plan = closed_loop(plan, wanted.concurrency, requests=wanted.requests)
        why = Note(
            "context_level",
            {"requests": wanted.requests, "tokens": length, "concurrency": wanted.concurrency},
        )
        try:
            run = Run(without_warm_up(plan), "level", Conditions(context=length), why)
            yield run
            made.append(run)
            if wanted.search:
                yield from _to_the_top(_climb(setup, length), length)
        except PlanError:
            break
    if len(made) > 1 and not setup.quick:
        yield replace(made[0], part=repeated.PART)


def _climb(setup: Setup, length: int) -> Climb:
    """The way up to the maximum throughput at a length (plateau.py)."""
    wanted = setup.tests.long_context
    most = max(wanted.concurrency, wanted.most_in_flight)
    return Climb(_plan(setup, length), wanted.concurrency, most, wanted.requests, part=f"climb-{length}")


def _to_the_top(climb: Climb, length: int) -> Generator[Run, Measured, None]:
    """More and more in flight, until that adds nothing. The test's warm-up has been."""
    done: list[Performed] = []
    while (slots := following(climb, rungs(climb, done))) is not None:
        count = max(climb.requests, SLOT_REQUESTS * slots)
        run = Run(
            reseeded(closed_loop(without_warm_up(climb.plan), slots, requests=count), SEEDS * len(done)),
            climb.part,
            Conditions(context=length, concurrency=slots),
            Note("climb", {"concurrency": slots}),
        )
        done.append(PerformedRun(run, (yield run)))


def _maxima(setup: Setup, done: Sequence[Performed]) -> Iterator[tuple[int, Capacity | None]]:
    """By length its maximum throughput; None where throughput still rose, or nothing succeeded."""
    for length in (one.step.at.context or 0 for one in runs(done, "level")):
        climb = _climb(setup, length)
        found = rungs(climb, done)
        at = plateau(climb, found)
        yield length, None if at is None or still_rose(found) else capacity(found, at, ())


def _slower(setup: Setup, done: Sequence[Performed]) -> Iterator[Note]:
    """Lengths whose maximum is one of a client that holds requests back."""
    for length in (one.step.at.context or 0 for one in runs(done, "level")):
        climb = _climb(setup, length)
        found = rungs(climb, done)
        at = plateau(climb, found)
        slower = None if at is None else in_climb(found, at, capacity(found, at, ()))
        if slower is not None:
            of = f"{length:,} tokens"
            yield Note("slower_with_more_in_flight", {"of": of, **slower.seen.facts}, capacity=True)


def _maxima_table(maxima: Sequence[tuple[int, Capacity | None]]) -> Table:
    """Draft 5.9.4: the maximum throughput at each length."""
    columns = (
        Column("context", "Context", "tokens"),
        Column("max_output_tok_s", "Max output throughput", "tok/s"),
        Column("low", "95 % from", "tok/s"),
        Column("high", "to", "tok/s"),
        Column("max_request_s", "Max requests", "req/s"),
        Column("concurrency", "In flight"),
    )
    rows = tuple((length, *_cells(found)) for length, found in maxima)
    notes = (Note("throughput_of_a_backlog"),)
    return Table("maxima", "Maximum throughput by length", "5.9.4", columns, rows, notes, capacity=True)


def _cells(found: Capacity | None) -> tuple[Cell, ...]:
    if found is None:
        return (None,) * 5
    low, high = found.output_ci or (None, None)
    return found.output_tok_s, low, high, found.request_s, found.concurrency


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    wanted = setup.tests.long_context
    return closed_loop(_plan(setup, wanted.lengths[0]), wanted.concurrency, requests=wanted.requests)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 12, the fits, and their picture."""
    performed = runs(done, "level")
    scaling = _scaling(performed)
    wanted = setup.tests.long_context
    maxima = list(_maxima(setup, done)) if wanted.search else []
    missing = tuple(length for length, found in maxima if found is None)
    return Results(
        values=_values(scaling),
        tables=(_table(performed), _fits_table(scaling), *([_maxima_table(maxima)] if maxima else [])),
        figures=(_figure(performed, scaling),),
        notes=(
            Note("time_per_1k_tokens"),
            *(() if wanted.search else (_at_concurrency(wanted.concurrency),)),
            *_left_out(setup, done),
            *_short_of(performed, wanted.requests),
            *(_slower(setup, done) if wanted.search else ()),
            *_repeated(performed, done, repeated.unseen),
        ),
        undecided=(
            *(() if performed else (Note("no_length_measured"),)),
            *_repeated(performed, done, repeated.drifted),
            *((Note("no_maximum_at_lengths", {"lengths": missing}, capacity=True),) if missing else ()),
        ),
    )


def _at_concurrency(concurrency: int) -> Note:
    return Note("throughput_at_concurrency", {"concurrency": concurrency}, capacity=True)


def _repeated(
    performed: Sequence[PerformedRun],
    done: Sequence[Performed],
    say: Callable[[str, Measured | None, Measured | None, Sequence[Metric]], list[Note]],
) -> list[Note]:
    """What the first length says beside itself at the end, by one of repeated.py; nothing where no other was measured."""
    if len(performed) < 2:
        return []
    first, again = performed[0], runs(done, repeated.PART)
    label = f"{first.step.at.context or 0:,} tokens"
    return say(label, first.outcome, again[-1].outcome if again else None, REPEATED)


def _plan(setup: Setup, length: int) -> Plan:
    return documents(setup.plan, fixed(length), fixed(setup.tests.long_context.output_tokens))


def _left_out(setup: Setup, done: Sequence[Performed]) -> tuple[Note, ...]:
    """Lengths beyond the model's context, with the message of the refusal."""
    refused = [one for one in refusals(done) if one.step.at.context is not None]
    if not refused:
        return ()
    first = refused[0].step.at.context or 0
    lengths = tuple(length for length in setup.tests.long_context.lengths if length >= first)
    return (Note("lengths_left_out", {"lengths": lengths, "why": refused[0].outcome.why}, capacity=True),)


def _short_of(performed: Sequence[PerformedRun], requests: int) -> tuple[Note, ...]:
    return tuple(
        Note("few_ttfts", {"of": f"{one.step.at.context or 0:,} tokens", "samples": n, "requests": requests})
        for one in performed
        if (n := _n(one.outcome.summary)) < requests
    )


def _n(summary: Summary) -> int:
    return samples(summary) or 0


def _tokens(summary: Summary) -> float | None:
    return statistic(summary.metrics.input_tokens, "mean")


def _scaling(performed: Sequence[PerformedRun]) -> Scaling | None:
    """The fit; None where fewer than three lengths have a TTFT."""
    pairs = [(_tokens(one.outcome.summary), stat(one.outcome.summary, "ttft", "mean")) for one in performed]
    known = {length: mean for length, mean in pairs if length and mean}
    return fit(list(known), list(known.values())) if len(known) >= LEAST_FITTED else None


def _values(scaling: Scaling | None) -> tuple[Value, ...]:
    names = (
        ("exponent", "Scaling exponent k"),
        ("best_model", "Best fit"),
        ("r_squared", "R^2 of the best fit"),
    )
    if scaling is None:
        few = Note("few_lengths", {"least": LEAST_FITTED})
        labelled = (*names, ("us_per_token", "Time per input token"))
        return tuple(Value(name, label, None, note=few) for name, label in labelled)
    best = next((one for one in scaling.models if one.name == scaling.best), None)
    how = (
        Note("log_log_fit"),
        Note("lowest_aicc"),
        Note("on_linear_scale"),
    )
    if best is None:
        how = (how[0], _TOO_FEW, _TOO_FEW)
    performed = scaling.exponent, best.name if best else None, best.r_squared if best else None
    intervals = scaling.exponent_ci95, None, None
    return (
        *(
            Value(name, label, value, "", ci, note)
            for (name, label), value, ci, note in zip(names, performed, intervals, how, strict=True)
        ),
        Value(
            "us_per_token",
            "Time per input token",
            scaling.us_per_token,
            "us",
            scaling.us_per_token_ci95,
            Note("slope_of_linear_model"),
        ),
    )


_TOO_FEW = Note("too_few_lengths_for_aicc")


def _table(performed: Sequence[PerformedRun]) -> Table:
    """Draft Table 12, and what else 5.9.4 asks for."""
    columns = (
        Column("context", "Context", "tokens"),
        Column("ttft_mean", "TTFT Mean", "ms"),
        Column("ttft_p95", "TTFT P95", "ms"),
        Column("ms_per_1k", "ms/1K tokens"),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("n", "Samples"),
        Column("input_tokens", "Input, actual", "tokens"),
        Column("e2e_mean", "Total Latency Mean", "ms"),
        Column("output_tok_s", "Output throughput", "tok/s", capacity=True),
        Column("input_tok_s", "Input throughput", "tok/s", capacity=True),
        Column("success", "Success", "%"),
        Column("ttft_mean_low", "TTFT Mean, 95 % from", "ms"),
        Column("ttft_mean_high", "to", "ms"),
    )
    rows = tuple(_row(one) for one in performed)
    return Table("lengths", "Latency by context length", "5.9.5", columns, rows)


def _row(one: PerformedRun) -> tuple[Cell, ...]:
    summary = one.outcome.summary
    tokens, mean = _tokens(summary), stat(summary, "ttft", "mean")
    return (
        one.step.at.context,
        mean,
        stat(summary, "ttft", "p95"),
        1_000 * mean / tokens if mean is not None and tokens else None,
        stat(summary, "ttft", "p50"),
        _n(summary),
        tokens,
        stat(summary, "e2e", "mean"),
        rate(summary, "output_tok_s"),
        rate(summary, "input_tok_s"),
        success(summary),
        *(stat_interval(summary, "ttft", "mean") or (None, None)),
    )


FORMULAS = {"linear": "a + b x", "power": "a x^k", "quadratic": "a + b x + c x^2"}


def _fits_table(scaling: Scaling | None) -> Table:
    columns = (
        Column("model", "Model"),
        Column("formula", "TTFT (ms) over tokens x"),
        Column("a", "a"),
        Column("b", "b or k"),
        Column("c", "c"),
        Column("r_squared", "R^2"),
        Column("aicc", "AICc"),
    )
    rows = tuple(
        (one.name, FORMULAS[one.name], *_padded(one.coefficients), one.r_squared, one.aicc)
        for one in (() if scaling is None else scaling.models)
    )
    notes = () if scaling is not None else (Note("not_fitted", {"least": LEAST_FITTED}),)
    return Table("fits", "Scaling models", "5.9.3", columns, rows, notes)


def _padded(coefficients: tuple[float, ...]) -> tuple[Cell, ...]:
    """A model has no more of them than it has: those cells are empty, and nothing was missed."""
    return (*coefficients, *("" for _ in range(3 - len(coefficients))))


def _figure(performed: Sequence[PerformedRun], scaling: Scaling | None) -> Figure:
    """Measured points, and the fitted curves between them."""
    lengths = tuple(_tokens(one.outcome.summary) or float(one.step.at.context or 0) for one in performed)
    measured = tuple(
        Series(
            label,
            lengths,
            tuple(stat(one.outcome.summary, "ttft", name) for one in performed),
            ci=tuple(stat_interval(one.outcome.summary, "ttft", name) for one in performed),
        )
        for name, label in (("mean", "TTFT mean"), ("p95", "TTFT P95"))
    )
    curves = (
        () if scaling is None else tuple(_curve(one, min(lengths), max(lengths)) for one in scaling.models)
    )
    return Figure(
        "scaling", "TTFT by context length", "lines", Axis("Context", "tokens", log=True), Axis("TTFT", "ms", log=True),
        (*measured, *curves),
    )  # fmt: skip


def _curve(model: Model, least: float, most: float) -> Series:
    """Even steps on a logarithmic axis, which has no place for what is not above 0."""
    ratio = math.log(most / least)
    at = tuple(least * math.exp(ratio * step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS))
    values = [fitted(model, x) for x in at]
    return Series(f"{model.name} fit", at, tuple(value if value > 0 else None for value in values))


def fitted(model: Model, tokens: float) -> float:
    """What a model says of a length, in ms."""
    if model.name == "power":
        a, k = model.coefficients
        return float(a * tokens**k)
    return math.fsum(one * tokens**power for power, one in enumerate(model.coefficients))
