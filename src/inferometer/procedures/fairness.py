"""Draft 5.6, Scheduling Fairness: what each class of requests meets in a mix, beside what it meets alone.

base (the 100 % of the mix) -> each class alone -> the mix, for at least so long and at least so many requests of each class

Requests are those of Synthetic-Skewed that lie in a class's ranges of input and output. The workload draws both apart, so a
class is a product of two log-normals, each drawn again until it lies within its range (docs/workloads.md).

| figure                 | is                                                                                       |
| ---------------------- | ---------------------------------------------------------------------------------------- |
| latency inflation      | a statistic of a class's TTFT in the mix / the same of the class alone                   |
| Jain's index J         | of x = TTFT / what a prompt of its length takes alone, over all successful requests      |
| ... alone              | the same of the isolated runs, classes in the mix's numbers: below 1 by chance alone     |
| slowdown               | the mean x of a class                                                                    |
| J by class             | of the classes' inflations of the median                                                 |
| J by output token      | of each request's end-to-end latency over its output tokens                              |
| starvation rate        | requests that waited over 5 medians of their class's TTFT in the mix                     |
| ... against isolation  | requests with a TTFT over 5 medians of their class alone, from the quantiles of the mix  |

What a prompt of some length takes alone is a curve through the TTFTs of its class's isolated run (measure/length_cost.py). So
requests that differ in length are no unfairness, and one number for all x, however large, is none either: J = 1 where all wait
in proportion to what they cost.

Alone, a class has the mix's offered tokens a second, input and output together: at the mix's request rate a class of long
requests would be beyond what the system carries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Series
from inferometer.documents.summary import ClassAccount
from inferometer.measure.jain import Shares, jain, jain_of_moments, jain_of_shares
from inferometer.measure.length_cost import cost_of, slowdowns_of
from inferometer.metrics.statistics import Stats
from inferometer.plan.procedure_parameters import FairnessClass
from inferometer.plan.schema import Plan
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.fairness_intervals import fairness_intervals
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.saturation import base_of, base_table, find_base, known_base
from inferometer.procedures.setup import Setup, another_workload, open_loop, with_warm_up, without_warm_up
from inferometer.procedures.step import Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import growth, percent, rate, statistic, steps_of
from inferometer.procedures.sustained import COMPLETIONS, QUEUE, decide

NAME, SECTION = "fairness", "5.6"
BY_REQUEST = True
"""Intervals are by the requests that several runs have in common."""

UNFAIR = 0.9
"""Draft 5.6.4: below this, J says that the system is significantly unfair."""
STARVED = 5.0
BEHIND = 2.0
"""A class whose mean slowdown is over this many times another's is named; the draft has no such limit."""
SIGMAS = 4.0
"""So many requests more of a class are planned as chance can take away, at this many standard deviations."""

KEPT_UP = 0.92
"""Requests completed per second over those offered, of a class alone: half-way to what is surely too much (sustained.py)."""

LONGEST_S = 604_800
"""No run is longer: a system so slow brings fewer requests of a rare class, and the notes say so."""

Reading = Literal["fair", "alone", "unsettled", "unfair"]

PERCENTILES = ("p50", "p95", "p99")
STATISTICS = (("mean", "Mean"), ("p50", "P50"), ("p95", "P95"), ("p99", "P99"))


def steps(setup: Setup) -> Steps:
    """Base, isolated runs, the mix."""
    wanted = setup.tests.fairness
    base = yield from find_base(setup, mix(setup))
    if base is None:
        return
    rate = base * wanted.percent / 100
    for number, one in enumerate(wanted.classes):
        alone = rate * _mean_tokens(setup) / one.mean_tokens
        plan = open_loop(_plan(setup, (one,)), alone, seconds=_seconds(setup, alone))
        why = Note("class_alone", {"class": one.name, "rate": alone})
        at = Conditions(class_name=one.name, rate=alone)
        yield Run(with_warm_up(plan) if number == 0 else without_warm_up(plan), "isolated", at, why)
    seconds = _seconds(setup, rate * min(_shares(setup)))
    plan = open_loop(mix(setup), rate, seconds=seconds)
    why = Note("mix", {"seconds": seconds, "rate": rate, "percent": wanted.percent})
    yield Run(without_warm_up(plan), "mixed", Conditions(percent=wanted.percent, rate=rate), why)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    return open_loop(mix(setup), 1.0, seconds=setup.tests.fairness.duration_s)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Tables 8 and 9, the inflation, and how TTFT is distributed by class."""
    base = base_of(setup, mix(setup), done)
    alone, mixed = _alone(done), runs(done, "mixed")
    if base is None:
        return Results(tables=base_table(setup, mix(setup), done), undecided=(Note("no_saturation_of_mix"),))
    if not mixed:
        open_ = Note("mix_not_measured")
        return Results(
            tables=(_isolated_table(setup, done), *base_table(setup, mix(setup), done)),
            undecided=(open_,),
            known=known_base(mix(setup), base, base_collapse(setup, mix(setup), done)),
        )
    classes, overloaded = list(mixed[0].outcome.summary.by_class), _overloaded(done)
    intervals, slower = _intervals(done, mixed[0]), base_collapse(setup, mix(setup), done)
    return Results(
        values=_values(classes, alone, intervals, sound=not overloaded),
        tables=(
            _classes_table(classes), _fairness_table(classes, alone), _inflation_table(classes, alone),
            _isolated_table(setup, done), *base_table(setup, mix(setup), done),
        ),
        figures=(_cdf(classes, alone), _bars(classes, alone)),
        notes=(*_notes(setup, mixed[0], classes, alone, intervals, sound=not overloaded), *base_notes(slower)),
        undecided=(*overloaded, *_mix_overloaded(mixed), *unsure_loads(slower, base, [setup.tests.fairness.percent])),
        known=known_base(mix(setup), base, slower),
    )  # fmt: skip


def mix(setup: Setup) -> Plan:
    """The plan with all classes by their shares."""
    return _plan(setup, setup.tests.fairness.classes)


def _plan(setup: Setup, classes: Sequence[FairnessClass]) -> Plan:
    drawn = []
    for one in classes:
        prompt, answer = one.lengths
        drawn.append(
            {
                "name": one.name,
                "weight": one.share,
                "input_tokens": str(prompt),
                "output_tokens": str(answer),
                "priority": one.priority,
            }
        )
    return another_workload(setup.plan, classes=drawn)


def _shares(setup: Setup) -> list[float]:
    shares = [one.share for one in setup.tests.fairness.classes]
    return [share / math.fsum(shares) for share in shares]


def _mean_tokens(setup: Setup) -> float:
    classes = setup.tests.fairness.classes
    return math.fsum(share * one.mean_tokens for share, one in zip(_shares(setup), classes, strict=True))


def _seconds(setup: Setup, rate: float) -> float:
    """How long a class that comes at this rate takes to bring its requests, chance allowed for; no less than the test's own
    time."""
    wanted = setup.tests.fairness
    n = wanted.requests_per_class
    needed = math.ceil((n + SIGMAS * math.sqrt(n) + SIGMAS**2 / 2) / rate)
    return max(wanted.duration_s, min(needed, LONGEST_S))


def _alone(done: Sequence[Performed]) -> dict[str, ClassAccount]:
    """By name, each class as it was alone."""
    return {one.step.at.class_name or "": one.outcome.summary.by_class[0] for one in runs(done, "isolated")}


def _stat(one: ClassAccount | None, metric: str, name: str) -> float | None:
    stats: Stats | None = getattr(one, metric, None)
    return statistic(stats, name)


def inflation(mixed: ClassAccount, alone: ClassAccount | None, name: str) -> float | None:
    """TTFT in the mix / TTFT alone, of one statistic."""
    above, below = _stat(mixed, "ttft_ms", name), _stat(alone, "ttft_ms", name)
    return None if above is None or not below else above / below


def slowdowns(one: ClassAccount, alone: ClassAccount | None) -> Shares | None:
    """x of a class's requests: TTFT over what a prompt of that length takes when the class is alone. None: nobody knows."""
    cost = None if alone is None else cost_of(alone.ttft_by_length)
    return None if cost is None else slowdowns_of(one.ttft_by_length, cost)


def jain_of_requests(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> float | None:
    """J over the x of all requests in the mix."""
    return _jain([(one, slowdowns(one, alone.get(one.name))) for one in classes])


def jain_alone(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> float | None:
    """What J would be if every class met in the mix what it met alone: what chance does to requests of one length."""
    found = []
    for one in classes:
        isolated, n = alone.get(one.name), _answered(one)
        shares = None if isolated is None else slowdowns(isolated, isolated)
        found.append((one, shares if shares is None or not n else shares.weighed(n)))
    return _jain(found)


def _jain(found: Sequence[tuple[ClassAccount, Shares | None]]) -> float | None:
    """Over the classes that were answered; None if of one of these nothing is known."""
    known = [shares for one, shares in found if _answered(one)]
    return jain_of_shares(one for one in known if one is not None) if None not in known else None


def _answered(one: ClassAccount) -> int:
    return 0 if one.ttft_ms is None else one.ttft_ms.n


def slowdown(one: ClassAccount, alone: ClassAccount | None) -> float | None:
    """The mean x of a class."""
    shares = slowdowns(one, alone)
    return None if shares is None else shares.mean


def jain_by_token(classes: Sequence[ClassAccount]) -> float | None:
    """J over all requests of end-to-end latency / output tokens."""
    latencies = [one.e2e_per_token_ms for one in classes]
    return jain_of_moments([(one.n, one.mean, one.std, 1.0) for one in latencies if one is not None])


def jain_of_classes(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> float | None:
    """J over the classes of their inflations of the median."""
    found = [inflation(one, alone.get(one.name), "p50") for one in classes]
    known = [one for one in found if one is not None]
    return jain(known) if len(known) == len(found) else None


def starved_against(one: ClassAccount, alone: ClassAccount | None) -> float | None:
    """The share of a class's TTFTs in the mix that lie over STARVED medians of it alone, interpolated between quantiles."""
    median = _stat(alone, "ttft_ms", "p50")
    values, shares = steps_of(one.distributions.ttft_ms)
    if median is None or not values:
        return None
    limit = STARVED * median
    if limit >= values[-1]:
        return 0.0
    above = next(place for place, value in enumerate(values) if value > limit)
    if above == 0:
        return 1.0
    low, high = values[above - 1], values[above]
    part = (limit - low) / (high - low)
    return 1.0 - (shares[above - 1] + part * (shares[above] - shares[above - 1]))


def _overloaded(done: Sequence[Performed]) -> tuple[Note, ...]:
    """The classes that the system fell behind with when they were alone, or may have: the mix's tokens a second are more of
    them than it sustains, so what they met says how long that run was, and not what their prompts cost."""
    found = []
    for one in runs(done, "isolated"):
        facts: dict[str, Fact] = {"class": one.step.at.class_name, "rate": one.step.at.rate}
        behind = _falls_behind(one)
        if behind:
            found.append(Note("class_alone_overloaded", facts, capacity=True))
        elif behind is None:
            found.append(Note("class_alone_unsettled", facts, capacity=True))
    return tuple(found)


def _mix_overloaded(mixed: Sequence[PerformedRun]) -> Iterator[Note]:
    """The same of the mix: it is offered less than the system was found to sustain of it, so that one it falls behind with is
    met by another system than the classes alone were."""
    for one in mixed:
        if _falls_behind(one):
            yield Note("mix_overloaded", {"rate": one.step.at.rate, "percent": one.step.at.percent}, True)


def _falls_behind(one: PerformedRun) -> bool | None:
    """Whether a queue grew that chance does not explain, or completions were surely too few (sustained.py): a class that is a
    few per cent more than the system sustains waits as long as its run lasts, too. None: a queue grew, and its run does not
    settle whether completions kept up."""
    summary = one.outcome.summary
    signals = {one.code: one.saturated for one in decide(summary, success_rate=0.0).signals}
    if signals[COMPLETIONS] or signals[QUEUE]:
        return True
    if growth(summary) != "rising":
        return False
    completed = rate(summary, "request_s")
    few = completed is not None and completed < KEPT_UP * (one.step.at.rate or 0.0)
    return True if few else signals[COMPLETIONS]


def _intervals(done: Sequence[Performed], mixed: PerformedRun) -> Mapping[str, Interval]:
    """By the names of values."""
    alone = {one.step.at.class_name or "": one.outcome.requests for one in runs(done, "isolated")}
    names = [one.name for one in mixed.outcome.summary.by_class]
    return fairness_intervals(names, mixed.outcome.requests, alone)


def _values(
    classes: Sequence[ClassAccount],
    alone: Mapping[str, ClassAccount],
    known: Mapping[str, Interval],
    *,
    sound: bool,
) -> tuple[Value, ...]:
    """`sound`: the isolated runs show what prompts cost."""
    index = jain_of_requests(classes, alone)
    apart = jain_alone(classes, alone)
    unsound = None if sound else Note("isolated_overloaded")
    reading = Note("no_isolated_cost") if index is None else _of_index(_read(index, apart, known))
    if index is not None and unsound is not None:
        reading = unsound
    found = [
        Value("jain", "Jain's Fairness Index", index, ci=known.get("jain"), note=reading),
        Value(
            "jain_alone",
            "Jain's index of the classes alone",
            apart,
            ci=known.get("jain_alone"),
            note=unsound or Note("unfairness_of_chance"),
        ),
        Value(
            "jain_classes",
            "Jain's index of the classes' inflations",
            jain_of_classes(classes, alone),
            note=unsound,
        ),
        Value("jain_e2e", "Jain's index of end-to-end latency by output token", jain_by_token(classes)),
    ]
    for one in classes:
        name = one.name
        found += [
            Value(
                f"starvation_{name}", f"{_title(name)} Class Starvation", percent(one.waits.starved_share), "%",
                note=Note("over_medians", {"medians": STARVED}),
            ),
            Value(
                f"inflation_{name}", f"{_title(name)} Class TTFT Inflation", inflation(one, alone.get(name), "p50"), "",
                ci=known.get(f"inflation_{name}"), note=unsound or Note("median_mix_over_alone"),
            ),
            Value(
                f"slowdown_{name}", f"{_title(name)} Class Slowdown", slowdown(one, alone.get(name)), "",
                ci=known.get(f"slowdown_{name}"), note=unsound or Note("mean_slowdown"),
            ),
        ]  # fmt: skip
    return tuple(found)


def _read(index: float, apart: float | None, known: Mapping[str, Interval]) -> Reading:
    """What an index says beside that of the classes alone: what chance does to requests of one class, in whatever order they
    are served, is no doing of the mix. The mix is blamed only if the interval of their ratio agrees: its upper end is, of
    independent runs, as far off in logarithms as both are."""
    if index >= UNFAIR:
        return "fair"
    beside = 1.0 if apart is None else apart
    if index >= UNFAIR * beside:
        return "alone"
    mine, others = known.get("jain"), (beside, beside) if apart is None else known.get("jain_alone")
    if mine is None or others is None:
        return "unsettled"
    least = max(others[0], 1e-9)  # an interval that reaches 0 settles nothing
    off = math.hypot(math.log(mine[1] / index), math.log(beside / least))
    return "unfair" if index / beside * math.exp(off) < UNFAIR else "unsettled"


def _of_index(reading: Reading) -> Note:
    if reading == "fair":
        return Note("fair_index", {"limit": UNFAIR})
    if reading == "alone":
        return Note("unfair_alone_index", {"limit": UNFAIR})
    if reading == "unsettled":
        return Note("unfair_unsettled_index", {"limit": UNFAIR})
    return Note("significantly_unfair_index", {"limit": UNFAIR})


def _unfairness(index: float, apart: float | None, known: Mapping[str, Interval]) -> Note:
    """Of an index below the draft's limit."""
    reading = _read(index, apart, known)
    if reading == "alone":
        return Note("unfair_alone", {"index": index, "alone": apart, "limit": UNFAIR})
    if reading == "unsettled":
        return Note("unfair_unsettled", {"index": index, "alone": apart, "limit": UNFAIR})
    return Note("significantly_unfair", {"index": index, "limit": UNFAIR})


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def _classes_table(classes: Sequence[ClassAccount]) -> Table:
    """Draft Table 8, with more to the right."""
    columns = (
        Column("class", "Class"),
        Column("count", "Count", capacity=True),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p50", "TPOT P50", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("ttft_p95", "TTFT P95", "ms"),
        Column("e2e_per_token_p50", "E2E/token P50", "ms"),
        Column("sent", "Sent", capacity=True),
    )
    rows = tuple(
        (
            _title(one.name), one.requests.completed,
            _stat(one, "ttft_ms", "p50"), _stat(one, "ttft_ms", "p99"),
            _stat(one, "tpot_ms", "p50"), _stat(one, "tpot_ms", "p99"),
            _stat(one, "ttft_ms", "p95"), _stat(one, "e2e_per_token_ms", "p50"), one.requests.sent,
        )
        for one in classes
    )  # fmt: skip
    return Table("classes", "Per-class results in the mix", "5.6.5", columns, rows)


def _fairness_table(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> Table:
    """Draft Table 9, with more below. A cell is a number; its unit stands beside it."""
    rows: list[tuple[Cell, ...]] = [("Jain's Fairness Index", jain_of_requests(classes, alone), "")]
    rows += [
        (f"{_title(one.name)} Class Starvation", percent(one.waits.starved_share), "%") for one in classes
    ]
    rows += [
        ("Jain's index of the classes alone", jain_alone(classes, alone), ""),
        ("Jain's index of the classes' inflations", jain_of_classes(classes, alone), ""),
        ("Jain's index of end-to-end latency by output token", jain_by_token(classes), ""),
    ]
    rows += [
        (
            f"{_title(one.name)} Class Starvation against its median alone",
            percent(starved_against(one, alone.get(one.name))), "%",
        )
        for one in classes
    ]  # fmt: skip
    rows += [
        (f"{_title(one.name)} Class Slowdown", slowdown(one, alone.get(one.name)), "") for one in classes
    ]
    columns = (Column("metric", "Metric"), Column("value", "Value"), Column("unit", "Unit"))
    notes = (Note("jain_over_requests"), Note("jain_by_chance"), Note("starvation", {"medians": STARVED}))
    return Table("fairness", "Fairness metrics", "5.6.5", columns, tuple(rows), notes)


def _inflation_table(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> Table:
    """Mix / alone, for each class and statistic."""
    rows = tuple(
        (_title(one.name), *(inflation(one, alone.get(one.name), name) for name, _ in STATISTICS))
        for one in classes
    )
    columns = (Column("class", "Class"), *(Column(name, f"TTFT {label}") for name, label in STATISTICS))
    notes = (Note("inflation"),)
    return Table("inflation", "Latency inflation", "5.6.4", columns, rows, notes)


def _isolated_table(setup: Setup, done: Sequence[Performed]) -> Table:
    """Each class alone, with the request rate that the same tokens a second come to."""
    columns = (
        Column("class", "Class"),
        Column("rate", "Offered", "req/s"),
        Column("tokens", "Offered", "tok/s"),
        Column("seconds", "Run", "s"),
        Column("count", "Count"),
        *(Column(f"ttft_{name}", f"TTFT {name.upper()}", "ms") for name in PERCENTILES),
    )
    by_name = {one.name: one for one in setup.tests.fairness.classes}
    rows = tuple(_isolated_row(one, by_name[one.step.at.class_name or ""]) for one in runs(done, "isolated"))
    notes = (Note("offered_tokens"),)
    return Table("isolated", "Each class alone", "5.6.3", columns, rows, notes, capacity=True)


def _isolated_row(one: PerformedRun, drawn: FairnessClass) -> tuple[Cell, ...]:
    alone, rate = one.outcome.summary.by_class[0], one.step.at.rate or 0.0
    return (
        _title(drawn.name),
        rate,
        rate * drawn.mean_tokens,
        one.step.plan.load.duration_s,
        alone.requests.completed,
        *(_stat(alone, "ttft_ms", name) for name in PERCENTILES),
    )


def _behind(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> list[Note]:
    """The class that the mix slows down most, where it is more than twice as much as another; and those of which most requests
    starve by what the class meets alone."""
    found = []
    slowed = {one.name: x for one in classes if (x := slowdown(one, alone.get(one.name))) is not None}
    if slowed:
        last, first = max(slowed, key=slowed.__getitem__), min(slowed, key=slowed.__getitem__)
        if slowed[last] > BEHIND * slowed[first]:
            facts: dict[str, Fact] = {
                "class": _title(last), "slowdown": slowed[last], "other": _title(first), "least": slowed[first],
            }  # fmt: skip
            found.append(Note("class_behind", facts))
    for one in classes:
        share = starved_against(one, alone.get(one.name))
        if share is not None and share > 0.5:
            facts = {"class": _title(one.name), "percent": 100 * share, "medians": STARVED}
            found.append(Note("class_starved", facts))
    return found


def _cdf(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> Figure:
    series = []
    for one in classes:
        name = one.name
        for words, account in (("in the mix", one), ("alone", alone.get(name))):
            curve = steps_of(None if account is None else account.distributions.ttft_ms)
            series += [Series(f"{name}, {words}", *curve)] if curve[0] else []
    return Figure(
        "ttft_by_class",
        "TTFT by class",
        "cdf",
        Axis("TTFT", "ms", log=True),
        Axis("share of requests"),
        tuple(series),
    )


def _bars(classes: Sequence[ClassAccount], alone: Mapping[str, ClassAccount]) -> Figure:
    labels = tuple(label for _, label in STATISTICS)
    series = tuple(
        Series(one.name, labels, tuple(inflation(one, alone.get(one.name), name) for name, _ in STATISTICS))
        for one in classes
    )
    return Figure("inflation", "Latency inflation", "bars", Axis("TTFT"), Axis("mix / alone"), series)


def _notes(
    setup: Setup,
    mixed: PerformedRun,
    classes: Sequence[ClassAccount],
    alone: Mapping[str, ClassAccount],
    known: Mapping[str, Interval],
    *,
    sound: bool,
) -> tuple[Note, ...]:
    wanted, at = setup.tests.fairness, mixed.step.at
    offered: dict[str, Fact] = {
        "rate": at.rate, "percent": wanted.percent, "seconds": mixed.step.plan.load.duration_s,
    }  # fmt: skip
    lengths = tuple(f"{one.name} {' and '.join(map(str, one.lengths))}" for one in wanted.classes)
    given = [Note("mix_offered", offered, capacity=True), Note("classes_drawn", {"classes": lengths})]
    index = jain_of_requests(classes, alone)
    if index is not None and index < UNFAIR and sound:
        given.append(_unfairness(index, jain_alone(classes, alone), known))
    given += _behind(classes, alone) if sound else []
    for one in classes:
        completed, wanted_of_class = one.requests.completed, wanted.requests_per_class
        if completed < wanted_of_class:
            facts: dict[str, Fact] = {
                "class": _title(one.name),
                "completed": completed,
                "requests": wanted_of_class,
            }
            given.append(Note("few_requests_of_class", facts, capacity=True))
    missing = tuple(one.name for one in classes if one.name not in alone)
    if missing:
        given.append(Note("classes_not_measured_alone", {"classes": missing}))
    return tuple(given)
