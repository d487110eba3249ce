"""Draft 5.10, Guardrail Overhead: the same load with and without safety systems.

base of the baseline -> for each configuration: switch -> every level at the baseline's rates -> its most throughput
-> the baseline's first level again, which shows whether the system changed meanwhile (repeated.py)

| figure                  | is                                                                             |
| ----------------------- | ------------------------------------------------------------------------------ |
| input filter overhead   | TTFT (input filter) - TTFT (baseline)                                          |
| output filter overhead  | end-to-end (output filter) - end-to-end (baseline): this tool's own            |
| total overhead          | end-to-end (full) - end-to-end (baseline)                                      |
| throughput reduction    | (baseline - configuration) / baseline, positive for less, in per cent, of the  |
|                         | most throughput of each (guarded_maximum.py)                                   |

A difference is of one statistic (mean, P50, P95, P99), at one load level, of the requests that were answered in both runs
(paired_medians.py); that of medians has an interval. Every configuration gets the same offered load, that of the baseline's
percentages: otherwise a slower configuration would be measured at less load, and hide its cost.
A configuration that the system cannot be brought into is left out, and its rows say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Series
from inferometer.documents.summary import Summary
from inferometer.errors import CannotSwitch
from inferometer.plan.schema import Plan
from inferometer.plan.workload import RowsWorkload
from inferometer.procedures import filters_shown, guarded_maximum, repeated
from inferometer.procedures.arrivals import Arrivals, arrivals_in
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.guarded_maximum import BASELINE, Maximum, reduction
from inferometer.procedures.paired_medians import both, difference_interval
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.saturation import base_life, base_of, base_table, find_base, known_base
from inferometer.procedures.setup import (
    Setup,
    another_workload,
    lasting,
    open_loop,
    variant,
    warm_up_run,
    without_warm_up,
)
from inferometer.procedures.step import Measured, Performed, Refused, Run, Steps, Switch, kept, runs
from inferometer.procedures.summary_access import Metric, samples, stat, success

NAME, SECTION = "guardrail", "5.10"
BY_REQUEST = True
"""Intervals are by the requests that several runs have in common."""

LABELS = {"baseline": "Baseline", "input": "Input Filter", "output": "Output Filter", "full": "Full Filter"}
FILTERS = {"baseline": (False, False), "input": (True, False), "output": (False, True), "full": (True, True)}
"""By configuration: whether input and output are filtered."""
RECOMMENDED = "conversation"
STATISTICS = (("mean", "Mean"), ("p50", "P50"), ("p95", "P95"), ("p99", "P99"))
OVERHEADS: tuple[tuple[str, Metric, str], ...] = (
    ("input", "ttft", "Input filter overhead (TTFT)"),
    ("output", "e2e", "Output filter overhead (end-to-end)"),
    ("full", "e2e", "Total overhead (end-to-end)"),
)
"""Configuration, metric, words."""

Levels = Mapping[tuple[str, float], Summary]
"""By configuration and per cent."""
Made = Mapping[tuple[str, float], Measured]


def steps(setup: Setup) -> Steps:
    """Baseline first: its capacity is the 100 %."""
    yield Switch("guardrails", BASELINE)
    done: list[Performed] = []
    base = yield from kept(find_base(setup, _plan(setup, BASELINE)), done)
    if base is None:
        return
    yield from kept(_configuration(setup, BASELINE, base, done), done)
    compared = False
    for name in _others(setup):
        try:
            yield Switch("guardrails", name)
        except CannotSwitch:  # a system with one switch for all: the others can still be compared
            continue
        yield from kept(_configuration(setup, name, base, done), done)
        compared = True
    if not compared or setup.quick:
        return
    try:
        yield Switch("guardrails", BASELINE)
    except CannotSwitch:
        return
    yield warm_up_run(_plan(setup, BASELINE))
    plan, share = _plan(setup, BASELINE), setup.tests.guardrail.percent[0]
    again = _level(setup, BASELINE, base, share, arrivals_in(plan, done), base_life(setup, plan, done))
    yield replace(again, part=repeated.PART)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    return open_loop(_plan(setup, BASELINE), 1.0, seconds=setup.tests.guardrail.duration_s)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Tables 13 and 14, overheads."""
    plan = _plan(setup, BASELINE)
    base = base_of(setup, plan, done)
    if base is None:
        return Results(
            tables=base_table(setup, plan, done), undecided=(Note("no_saturation_without_guardrails"),)
        )
    made = {
        (one.step.at.configuration or "", one.step.at.percent or 0.0): one.outcome
        for one in runs(done, "level")
    }
    levels: Levels = {at: one.summary for at, one in made.items()}
    refused = _refused(done)
    labels = {name: LABELS[name] for name in _configurations(setup)}
    most = {name: guarded_maximum.maximum(setup, plan, name, done) for name in labels if name not in refused}
    missing = [
        f"{LABELS[name]} at {share:g} %"
        for name in _configurations(setup)
        for share in setup.tests.guardrail.percent
        if (name, share) not in levels and name not in refused
    ]
    missing += [f"the most throughput of {LABELS[name]}" for name, one in most.items() if one.found is None]
    slower = base_collapse(setup, plan, done)
    return Results(
        values=tuple(_values(setup, made, most, refused)),
        tables=(
            *(_latency_table(setup, share, levels, refused) for share in setup.tests.guardrail.percent),
            _overhead_table(setup, made),
            guarded_maximum.throughput_table(setup, labels, most, _refusal_notes(refused)),
            *guarded_maximum.climb_table(labels, most), *base_table(setup, plan, done),
        ),
        figures=tuple(_figures(setup, levels)),
        notes=(
            *_notes(setup, levels, refused, base, arrivals_in(plan, done).per_second), *_rising(most), *_slower(most),
            *repeated.unseen(LABELS[BASELINE], *_both_ends(setup, made, done), _metrics(setup)), *base_notes(slower),
        ),
        undecided=(
            *_undecided(setup, missing, refused), *_not_shown(setup, made, done), *_drifted(setup, made, done),
            *unsure_loads(slower, base, setup.tests.guardrail.percent),
        ),
        known=known_base(plan, base, slower, base_life(setup, plan, done)),
    )  # fmt: skip


def _undecided(setup: Setup, missing: Sequence[str], refused: Mapping[str, str]) -> tuple[Note, ...]:
    """Some configurations may be out of reach; without any there is no overhead."""
    given = [Note("not_measured", {"what": tuple(missing)})] if missing else []
    others = _others(setup)
    if others and all(name in refused for name in others):
        given.append(Note("no_configuration_with_guardrails"))
    return tuple(given)


def _not_shown(setup: Setup, made: Made, done: Sequence[Performed]) -> tuple[Note, ...]:
    """Configurations with filters of which nothing shows that they were switched to."""
    known = filters_shown.confirmed(done)
    unseen = []
    for name in _others(setup):
        shares = [share for share in setup.tests.guardrail.percent if (name, share) in made]
        levels = [(made[BASELINE, share], made[name, share]) for share in shares if (BASELINE, share) in made]
        if levels and not known >= {BASELINE, name} and not filters_shown.seen(levels):
            unseen.append(LABELS[name])
    return (Note("filters_not_shown", {"configurations": tuple(unseen)}),) if unseen else ()


def _drifted(setup: Setup, made: Made, done: Sequence[Performed]) -> list[Note]:
    """That the baseline's first level was another at the end, in a latency of which overheads are."""
    return repeated.drifted(LABELS[BASELINE], *_both_ends(setup, made, done), _metrics(setup))


def _metrics(setup: Setup) -> list[Metric]:
    """Latencies of which overheads are."""
    return list(dict.fromkeys(metric for name, metric, _ in OVERHEADS if name in _others(setup)))


def _both_ends(
    setup: Setup, made: Made, done: Sequence[Performed]
) -> tuple[Measured | None, Measured | None]:
    """The baseline's first level, and the same at the end."""
    again = runs(done, repeated.PART)
    first = made.get((BASELINE, setup.tests.guardrail.percent[0]))
    return first, again[-1].outcome if again else None


def _configurations(setup: Setup) -> tuple[str, ...]:
    """The baseline, which everything is compared with, and the other configurations in the order given."""
    return BASELINE, *_others(setup)


def _others(setup: Setup) -> list[str]:
    return [name for name in dict.fromkeys(setup.tests.guardrail.configurations) if name != BASELINE]


def workload(setup: Setup) -> Plan:
    """The plan's own workload if it chose one, else the recommended one. A saved campaign that does not say whether it did is
    taken to have chosen any but the default."""
    asked, wanted = setup.plan.workload, setup.tests.guardrail.workload
    other = asked.name != "synthetic-uniform" or asked.file is not None
    chosen = other if wanted is None else wanted == "plan"
    return setup.plan if chosen else another_workload(setup.plan, name=RECOMMENDED)


def _plan(setup: Setup, configuration: str) -> Plan:
    prompts, answers = FILTERS[configuration]
    declared = setup.plan.sut.guardrails.model_dump() | {"input_filter": prompts, "output_filter": answers}
    if not (prompts or answers):
        declared["names"] = []  # what is off filters nothing
    return variant(workload(setup), sut={"guardrails": declared})


def _configuration(setup: Setup, name: str, base: float, done: Sequence[Performed]) -> Steps:
    """Warm-up, levels, and the most throughput. The baseline is warm already if its 100 % was searched for."""
    plan = _plan(setup, name)
    if not (name == BASELINE and done):
        yield warm_up_run(plan)
    arrivals, life_s = arrivals_in(plan, done), base_life(setup, _plan(setup, BASELINE), done)
    for share in setup.tests.guardrail.percent:
        yield _level(setup, name, base, share, arrivals, life_s)
    yield from guarded_maximum.measure(setup, plan, name, LABELS[name], done, base)


def _level(setup: Setup, name: str, base: float, share: float, arrivals: Arrivals, life_s: float) -> Run:
    load = base * share / 100
    seconds = lasting(setup, load, setup.tests.guardrail.duration_s, arrivals, life_s)
    level = open_loop(_plan(setup, name), load, seconds=seconds)
    at = Conditions(configuration=name, percent=share, rate=load)
    unit = arrivals.per_second
    facts: dict[str, Fact] = {"rate": load, "seconds": seconds, "percent": share, "unit": unit}
    why = Note("guardrail_level", facts | {"configuration": LABELS[name]})
    return Run(without_warm_up(level), "level", at, why)


def _refused(done: Sequence[Performed]) -> dict[str, str]:
    """Why the system could not be brought into a configuration."""
    return {
        one.step.state: one.outcome.why
        for one in done
        if isinstance(one.step, Switch) and isinstance(one.outcome, Refused) and one.step.state != BASELINE
    }


def overhead(made: Made, configuration: str, share: float, metric: Metric, name: str) -> float | None:
    """A statistic of a configuration less that of the baseline, at one level, in ms, of the requests answered in both."""
    found = both(made.get((BASELINE, share)), made.get((configuration, share)), metric, name)
    return None if found is None else found[1] - found[0]


def overhead_interval(made: Made, configuration: str, share: float, metric: Metric) -> Interval | None:
    """The 95 % interval of the difference of medians."""
    return difference_interval(made.get((BASELINE, share)), made.get((configuration, share)), metric)


def refusals(summary: Summary | None) -> int | None:
    """Requests refused on grounds of policy."""
    return None if summary is None else summary.refusals.requests


def _values(
    setup: Setup, made: Made, most: Mapping[str, Maximum], refused: Mapping[str, str]
) -> Iterator[Value]:
    for share in setup.tests.guardrail.percent:
        for name, metric, words in OVERHEADS:
            if name not in _others(setup):
                continue
            found = overhead(made, name, share, metric, "p50")
            ends = None if found is None else overhead_interval(made, name, share, metric)
            chance = ends is not None and ends[0] <= 0 <= ends[1]
            medians = both(made.get((BASELINE, share)), made.get((name, share)), metric, "p50")
            of = None if medians is None else medians[0]
            note = Note("within_chance", {"of": of}) if chance else Note("of_the_medians", {"of": of})
            if found is None:
                note = _missing(name, refused)
            elif ends is None:
                note = Note("medians_not_told_apart", {"of": of})
            yield Value(f"{name}_overhead_{share:g}", f"{words} at {share:g} %", found, "ms", ends, note)
    for name in _others(setup):
        less = reduction(most[BASELINE], most[name]) if name in most else None
        why = Note("within_chance") if less is not None and less.by_chance else Note("of_the_maxima")
        if less is None:
            why = _missing(name, refused)
        value, ends = (None, None) if less is None else (less.percent, less.ci)
        label = f"Throughput reduction, {LABELS[name]}"
        yield Value(f"throughput_reduction_{name}", label, value, "%", ends, why)


def _missing(name: str, refused: Mapping[str, str]) -> Note:
    return (
        Note("refused", {"why": refused[name]}, capacity=True)
        if name in refused
        else Note("configuration_missing")
    )


def _refusal_notes(refused: Mapping[str, str]) -> tuple[Note, ...]:
    return tuple(
        Note("configuration_left_out", {"configuration": LABELS[name], "why": why}, capacity=True)
        for name, why in refused.items()
    )


def _latency_table(setup: Setup, share: float, levels: Levels, refused: Mapping[str, str]) -> Table:
    """Draft Table 13 at one load level, with more to the right."""
    several: tuple[tuple[Metric, str], ...] = (
        ("ttft", "p50"),
        ("ttft", "p99"),
        ("e2e", "p50"),
        ("e2e", "p99"),
        ("ttft", "p95"),
        ("e2e", "p95"),
    )
    columns = (
        Column("configuration", "Configuration"),
        *(Column(f"{metric}_{name}", f"{metric.upper()} {name.upper()}", "ms") for metric, name in several),
        Column("n", "Samples", capacity=True),
        Column("success", "Success", "%"),
        Column("refused", "Refused"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name in _configurations(setup):
        summary = levels.get((name, share))
        if summary is None:
            rows.append((LABELS[name], *(None for _ in range(len(columns) - 1))))
            continue
        cells = (stat(summary, metric, statistic) for metric, statistic in several)
        rows.append((LABELS[name], *cells, samples(summary), success(summary), refusals(summary)))
    notes = _refusal_notes(refused)
    return Table(
        f"latency_{share:g}",
        f"Latency at {share:g} % of the baseline's capacity",
        "5.10.5",
        columns,
        tuple(rows),
        notes,
    )


def _overhead_table(setup: Setup, made: Made) -> Table:
    rows = tuple(
        (
            words,
            share,
            *(overhead(made, name, share, metric, statistic) for statistic, _ in STATISTICS),
            *(overhead_interval(made, name, share, metric) or (None, None)),
        )
        for name, metric, words in OVERHEADS
        if name in _others(setup)
        for share in setup.tests.guardrail.percent
    )
    columns = (
        Column("overhead", "Overhead"),
        Column("percent", "Load", "%"),
        *(Column(name, label, "ms") for name, label in STATISTICS),
        Column("low", "P50, 95 % from", "ms"),
        Column("high", "to", "ms"),
    )
    notes = (
        Note("differences_of_statistics"),
        Note("output_filter_like_total"),
    )
    return Table("overhead", "Guardrail overhead", "5.10.4", columns, rows, notes)


def _rising(most: Mapping[str, Maximum]) -> Iterator[Note]:
    """Configurations whose throughput still rose at the most requests in flight that were tried."""
    for name, one in most.items():
        if one.rose:
            facts: dict[str, Fact] = {
                "configuration": LABELS[name],
                "concurrency": one.climbed[-1].concurrency,
            }
            yield Note("configuration_still_rose", facts, capacity=True)


def _slower(most: Mapping[str, Maximum]) -> Iterator[Note]:
    """Configurations whose maximum is one of a client that holds requests back."""
    for name, one in most.items():
        if one.slower is not None:
            yield Note("slower_with_more_in_flight", {"of": LABELS[name], **one.slower.seen.facts}, True)


def _figures(setup: Setup, levels: Levels) -> Iterator[Figure]:
    shares = [share for share in setup.tests.guardrail.percent if (BASELINE, share) in levels]
    labels = tuple(f"{share:g} %" for share in shares)
    shown: tuple[tuple[Metric, str], ...] = (("ttft", "TTFT"), ("e2e", "End-to-end latency"))
    for metric, words in shown:
        series = tuple(
            Series(
                LABELS[name],
                labels,
                tuple(stat(levels.get((name, share)), metric, "p50") for share in shares),
            )
            for name in _configurations(setup)
            if any((name, share) in levels for share in shares)
        )
        yield Figure(
            f"{metric}_by_configuration",
            f"{words} P50 by configuration",
            "bars",
            Axis("Load"),
            Axis(words, "ms"),
            series,
        )


def _notes(
    setup: Setup, levels: Levels, refused: Mapping[str, str], base: float, unit: str
) -> Iterator[Note]:
    asked = workload(setup)
    yield Note("same_rates_for_all", {"rate": base, "unit": unit}, capacity=True)
    if asked is setup.plan:
        yield Note("planned_workload", {"workload": str(asked.workload.name)})
    else:
        yield Note("recommended_conversation")
    yield Note("content_of_the_file") if isinstance(asked.workload, RowsWorkload) else Note("benign_content")
    for name, why in refused.items():
        yield Note("configuration_not_measured", {"configuration": LABELS[name], "why": why}, capacity=True)
    stopped = {
        LABELS[name]: refusals(summary) or 0 for (name, _), summary in levels.items() if refusals(summary)
    }
    for label, count in stopped.items():
        yield Note("benign_requests_refused", {"configuration": label, "requests": count}, capacity=True)
