"""Draft 5.7, Prefix Cache Effectiveness: the same workload without prefix cache, with an empty one, and with a filled one.

cache disabled -> base -> disabled pass -> throughput -> cache enabled and empty -> cold pass -> warm pass -> throughput
-> cache disabled -> disabled pass again, which shows whether the system changed meanwhile (repeated.py)

All three passes have the same seed, so the same lengths, sharing and instants. They differ in what their warm-up says: that of
the warm pass begins with what the measured requests share (draft 4.5.1), that of the others shares nothing with those. Nonces
are new in every run, so a pass finds in the cache what it brought itself, and nothing of the pass before.

| figure                  | is                                                                                          |
| ----------------------- | ------------------------------------------------------------------------------------------- |
| TTFT reduction          | (TTFT disabled - TTFT enabled) / TTFT disabled, of one statistic, in per cent               |
| cache hit rate          | sum of min(cached, prefix) / sum of prefix tokens, by the usage that the server reports     |
| ... best possible       | the same of a cache without limit, that knows every request before                          |
| throughput improvement  | output tokens a second in closed loop: (enabled - disabled) / disabled, in per cent         |

In open loop below capacity throughput is the load offered, whatever the cache does: so throughput is measured in closed loop.

Intervals of reductions and hit rates leave out one stretch of time after the other (measure/jackknife.py), in all passes the
same requests; that of throughput is by the intervals of both runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Series
from inferometer.documents.summary import Summary
from inferometer.errors import CannotSwitch
from inferometer.measure.jackknife import jackknife_intervals
from inferometer.measure.record import Ints
from inferometer.measure.request_times import RequestTimes
from inferometer.plan.schema import Plan
from inferometer.procedures import repeated
from inferometer.procedures.arrivals import REQUESTS, Arrivals, arrivals_in, unit_of
from inferometer.procedures.cache_control import QUIET, Control, control
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.plateau import distinct
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.saturation import base_of, base_table, find_base, known_base
from inferometer.procedures.setup import (
    Setup,
    another_workload,
    answering,
    closed_loop,
    open_loop,
    variant,
    with_warm_up,
    without_warm_up,
)
from inferometer.procedures.step import Measured, Performed, Run, Steps, Switch, Switched, kept, runs
from inferometer.procedures.summary_access import Metric, percent, rate, rate_interval, samples, stat, success

NAME, SECTION = "prefix-cache", "5.7"
BY_REQUEST = True
"""Intervals are by the requests that several runs have in common."""

RECOMMENDED = "code-completion"
FASTER = 2.0
"""Requests of a throughput run, each its own, of those that the system without a cache is done with: a prompt that comes again
would be found in the cache whole. Where a cache makes it faster still, the run ends sooner."""
WAVES = 2
"""Requests of a throughput run for each in flight, at the rate without a cache."""
PERCENTILES = ("p50", "p95", "p99")
STATISTICS = (("mean", "Mean"), ("p50", "P50"), ("p95", "P95"), ("p99", "P99"))


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: the part of its run, its row in draft Table 10, and the state of the cache."""

    part: str
    label: str
    caching: str
    state: str


PASSES = (
    Pass("disabled", "Cache Disabled", "disabled", "cold"),
    Pass("cold", "Cache (Cold)", "enabled", "cold"),
    Pass("warm", "Cache (Warm)", "enabled", "warm"),
)
DISABLED, COLD, WARM = PASSES
REPEATED: tuple[Metric, ...] = ("ttft",)
"""Of what the system is held to have stayed as it was."""


def steps(setup: Setup) -> Steps:
    """Disabled, cold, warm."""
    wanted = setup.tests.prefix_cache
    yield Switch("prefix_cache", "disabled")
    done: list[Performed] = []
    base = yield from kept(find_base(setup, _plan(setup, DISABLED)), done)
    if base is None:
        return
    load, arrivals = base * wanted.percent / 100, arrivals_in(_plan(setup, DISABLED), done)
    yield _pass(setup, DISABLED, load)
    yield _throughput(setup, DISABLED, base, arrivals)
    try:
        yield Switch("prefix_cache", "flushed")
    except CannotSwitch:  # its prompts are new to any cache, so an empty one is enough where it can be had
        yield Switch("prefix_cache", "enabled")
    yield _pass(setup, COLD, load)
    yield _pass(setup, WARM, load)
    yield _throughput(setup, WARM, base, arrivals)
    if setup.quick:
        return
    try:
        yield Switch("prefix_cache", "disabled")
    except CannotSwitch:
        return
    yield replace(_pass(setup, DISABLED, load), part=repeated.PART)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    return open_loop(_plan(setup, DISABLED), 1.0, requests=setup.tests.prefix_cache.requests)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 10, reductions, hit rates, throughput."""
    passes = {one.part: found for one in PASSES if (found := _summary(done, one.part)) is not None}
    bare = _plan(setup, DISABLED)
    base = base_of(setup, bare, done)
    if base is None:
        return Results(tables=base_table(setup, bare, done), undecided=(Note("no_saturation_without_cache"),))
    missing = [one.label for one in PASSES if one.part not in passes]
    throughputs = {one.part: _throughput_of(done, one) for one in (DISABLED, WARM)}
    intervals = _intervals(done)
    open_ = [Note("not_measured", {"what": tuple(missing)})] if missing else []
    if not missing and not _shown(done, passes, intervals):
        open_.append(Note("cache_not_shown"))
    apart = _control(done)
    if apart is not None and apart.quicker:
        open_.append(Note("control_quicker", {"reduction": apart.reduction, "sharing": apart.sharing}))
    first, again = (_measured(done, part) for part in (DISABLED.part, repeated.PART))
    open_ += repeated.drifted(DISABLED.label, first, again, REPEATED)
    slower = base_collapse(setup, bare, done)
    open_ += unsure_loads(slower, base, [setup.tests.prefix_cache.percent])
    return Results(
        values=(*_values(passes, throughputs, intervals), *_control_value(apart)),
        tables=(
            _cache_table(passes),
            _reduction_table(passes),
            _throughput_table(throughputs),
            *base_table(setup, bare, done),
        ),
        figures=(_bars(passes),),
        notes=(
            *_notes(setup, passes, base),
            *repeated.unseen(DISABLED.label, first, again, REPEATED),
            *base_notes(slower),
        ),
        undecided=tuple(open_),
        known=known_base(bare, base, slower),
    )


def workload(setup: Setup) -> Plan:
    """The plan's own workload if requests have prefixes in common there, or may in its file; else the recommended one. Never
    with repeatable prompts: the passes would find each other's in the cache."""
    plan = variant(setup.plan, workload={"repeatable_prompts": False})
    shares = plan.workload.shares or plan.workload.file is not None
    chosen = plan if shares else another_workload(plan, name=RECOMMENDED)
    answers = setup.tests.prefix_cache.output_tokens
    return chosen if answers is None else answering(chosen, answers)


def _plan(setup: Setup, one: Pass) -> Plan:
    return variant(workload(setup), sut={"prefix_caching": one.caching, "cache_state": one.state})


def _pass(setup: Setup, one: Pass, load: float) -> Run:
    count = setup.tests.prefix_cache.requests
    plan = with_warm_up(open_loop(_plan(setup, one), load, requests=count), prefixes=one is WARM)
    at = Conditions(cache=one.part, rate=load)
    why = Note(
        "cache_pass", {"requests": count, "rate": load, "configuration": one.label, "unit": unit_of(plan)}
    )
    return Run(plan, one.part, at, why)


def _throughput(setup: Setup, one: Pass, base: float, arrivals: Arrivals) -> Run:
    """Twice as long as its requests take without a cache at least: a shorter run has no steady span."""
    wanted = setup.tests.prefix_cache
    seconds = max(wanted.throughput_s, float(f"{WAVES * wanted.concurrency / base:.4g}"))
    count = distinct(seconds, FASTER * arrivals.requests(base))
    plan = closed_loop(_plan(setup, one), wanted.concurrency, seconds=seconds, requests=count)
    ready = with_warm_up(plan) if one is WARM else without_warm_up(plan)
    at = Conditions(cache=one.caching, concurrency=wanted.concurrency)
    why = Note("cache_throughput", {"concurrency": wanted.concurrency, "caching": one.caching})
    return Run(ready, "throughput", at, why)


def _measured(done: Sequence[Performed], part: str) -> Measured | None:
    found = runs(done, part)
    return found[-1].outcome if found else None


def _summary(done: Sequence[Performed], part: str) -> Summary | None:
    found = _measured(done, part)
    return None if found is None else found.summary


def _throughput_of(done: Sequence[Performed], one: Pass) -> Summary | None:
    found = [ran for ran in runs(done, "throughput") if ran.step.at.cache == one.caching]
    return found[-1].outcome.summary if found else None


def reduction(without: Summary | None, cached: Summary | None, name: str) -> float | None:
    """Draft 5.7.4, of one statistic of TTFT, in per cent."""
    before, after = (stat(one, "ttft", name) for one in (without, cached))
    return None if after is None or not before else 100.0 * (before - after) / before


def hit_rate(summary: Summary | None) -> float | None:
    """Of the tokens that requests have in common with others, those from the cache. None: the server does not tell."""
    return None if summary is None else percent(summary.throughput.cached_prefix_share)


def best_hit_rate(summary: Summary | None) -> float | None:
    """What a cache without limit would have found of them."""
    workload = None if summary is None else summary.workload
    if workload is None or workload.drawn is None or workload.prefix_hits is None:
        return None
    drawn, share = workload.drawn, workload.prefix_hits.exact
    shared, sent = drawn.shared, drawn.sent_tokens
    if share is None or sent is None or not shared.requests or shared.tokens is None:
        return None
    return min(100.0, 100.0 * share * sent.mean * drawn.requests / (shared.requests * shared.tokens.mean))


def _shown(done: Sequence[Performed], passes: dict[str, Summary], known: Mapping[str, Interval]) -> bool:
    """Whether anything shows that the cache was on in one pass and off in the other: the system confirmed each switch, or
    reports cached tokens (which may contradict it), or has hits in its metrics in the warm pass alone, or TTFT fell by more
    than chance. Without that, a switch that did nothing looks like a cache that saves nothing."""
    switched = [one.outcome.status for one in done if isinstance(one.outcome, Switched)]
    confirmed = bool(switched) and set(switched) == {"verified"}
    warm = passes[WARM.part]
    hits = [
        0.0 if one.server is None else one.server.prefix_hit_share or 0.0
        for one in (warm, passes[DISABLED.part])
    ]
    reported = warm.throughput.cached_input_share is not None or hits[0] > hits[1] == 0
    ends = known.get(f"ttft_reduction_{WARM.part}")
    return confirmed or reported or (ends is not None and ends[0] > 0)


def _intervals(done: Sequence[Performed]) -> dict[str, Interval]:
    """Of reductions of the median TTFT and of hit rates, by the names of their values. Requests of passes with the same
    fingerprint are the same requests at the same instants: they are left out together."""
    found: dict[str, Interval] = {}
    last = {one.part: ran[-1].outcome for one in PASSES if (ran := runs(done, one.part))}
    without = last.get(DISABLED.part)
    for one in (COLD, WARM):
        cached = last.get(one.part)
        if cached is None or cached.requests is None:
            continue
        found |= _hit_interval(one.part, cached.requests)
        if without is not None and without.requests is not None:
            same = without.summary.workload.fingerprint == cached.summary.workload.fingerprint
            found |= _reduction_interval(one.part, without.requests, cached.requests, paired=same)
    return found


def _control(done: Sequence[Performed]) -> Control | None:
    """What the requests that share nothing say of the warm pass beside that without a cache."""
    sides = [found for part in (DISABLED.part, WARM.part) if (found := _measured(done, part)) is not None]
    if len(sides) < 2 or len({one.summary.workload.fingerprint for one in sides}) > 1:
        return None
    return control(sides[0].requests, sides[1].requests)


def _control_value(found: Control | None) -> tuple[Value, ...]:
    if found is None:
        return ()
    note = Note("of_the_quickest", {"percent": 100 * QUIET})
    label = "TTFT reduction, requests that share nothing"
    return (Value("ttft_reduction_control", label, found.reduction, "%", ci=found.ci, note=note),)


def _hit_interval(part: str, cached: RequestTimes) -> dict[str, Interval]:
    known = np.flatnonzero(~np.isnan(cached.cached) & (cached.shared > 0))
    hits, shared = np.minimum(cached.cached, cached.shared)[known], cached.shared[known]

    def rate_of(places: Sequence[Ints]) -> dict[str, float | None]:
        [left] = places
        return {f"hit_rate_{part}": 100.0 * float(hits[left].sum()) / float(shared[left].sum())}

    found = jackknife_intervals([len(known)], rate_of)
    return {name: (max(0.0, low), min(100.0, high)) for name, (low, high) in found.items()}


def _reduction_interval(
    part: str, without: RequestTimes, cached: RequestTimes, *, paired: bool
) -> dict[str, Interval]:
    before, after = (one.where(np.flatnonzero(~np.isnan(one.ttft_ms))) for one in (without, cached))
    if paired:
        _, first, second = np.intersect1d(before.index, after.index, return_indices=True)
        before, after = before.where(first), after.where(second)

    def reduced(places: Sequence[Ints]) -> dict[str, float | None]:
        low, high = places[-1], places[0]
        waited = float(np.median(before.ttft_ms[high]))
        return {f"ttft_reduction_{part}": 100.0 * (1 - float(np.median(after.ttft_ms[low])) / waited)}

    return jackknife_intervals([len(before)] if paired else [len(before), len(after)], reduced)


def improvement_interval(throughputs: dict[str, Summary | None]) -> Interval | None:
    """Of two runs that are independent but for their requests: the relative errors of both rates, as of a ratio."""
    more = improvement(throughputs)
    ends = [rate_interval(one, "output_tok_s") for one in throughputs.values()]
    if more is None or None in ends:
        return None
    widths = [math.log(high / low) / 2 if low > 0 else math.inf for low, high in filter(None, ends)]
    half, middle = math.hypot(*widths), 1 + more / 100
    if not math.isfinite(half):
        return None
    return 100 * (middle * math.exp(-half) - 1), 100 * (middle * math.exp(half) - 1)


def improvement(throughputs: dict[str, Summary | None]) -> float | None:
    """Output tokens a second more, in per cent."""
    before, after = (rate(one, "output_tok_s") for one in throughputs.values())
    return None if after is None or not before else 100.0 * (after - before) / before


def _values(
    passes: dict[str, Summary], throughputs: dict[str, Summary | None], known: Mapping[str, Interval]
) -> tuple[Value, ...]:
    without = passes.get(DISABLED.part)
    found = []
    for one in (COLD, WARM):
        cached = passes.get(one.part)
        hits = hit_rate(cached)
        source = Note("hits_by_usage") if hits is not None else Note("hits_not_reported")
        found += [
            Value(
                f"ttft_reduction_{one.part}", f"TTFT reduction, {one.part}", reduction(without, cached, "p50"), "%",
                ci=known.get(f"ttft_reduction_{one.part}"), note=Note("of_the_median", {"of": 100.0}),
            ),
            Value(
                f"hit_rate_{one.part}", f"Cache hit rate, {one.part}", hits, "%",
                ci=known.get(f"hit_rate_{one.part}") if hits is not None else None, note=source,
            ),
        ]  # fmt: skip
    more = improvement(throughputs)
    note = Note("output_in_closed_loop") if more is not None else Note("throughput_not_measured_both_ways")
    ends = improvement_interval(throughputs)
    return (*found, Value("throughput_improvement", "Throughput improvement", more, "%", ci=ends, note=note))


def _cache_table(passes: dict[str, Summary]) -> Table:
    """Draft Table 10, with more to the right."""
    columns = (
        Column("configuration", "Configuration"),
        *(Column(f"ttft_{name}", f"TTFT {name.upper()}", "ms") for name in PERCENTILES),
        Column("ttft_mean", "TTFT Mean", "ms"),
        Column("n", "Samples"),
        Column("hit_rate", "Hit rate", "%"),
        Column("best_hit_rate", "Best possible", "%"),
        Column("cached", "Of all prompt tokens cached", "%"),
        Column("success", "Success", "%"),
    )
    rows = tuple(_cache_row(one, passes.get(one.part)) for one in PASSES)
    notes = (
        Note("cold_cache"),
        Note("warm_cache"),
        Note("empty_hit_rate"),
    )
    return Table("cache", "TTFT without and with prefix cache", "5.7.5", columns, rows, notes)


def _cache_row(one: Pass, summary: Summary | None) -> tuple[Cell, ...]:
    if summary is None:
        return (one.label, *(None for _ in range(9)))
    return (
        one.label,
        *(stat(summary, "ttft", name) for name in PERCENTILES),
        stat(summary, "ttft", "mean"),
        samples(summary),
        hit_rate(summary),
        "" if one is DISABLED else best_hit_rate(summary),
        percent(summary.throughput.cached_input_share),
        success(summary),
    )


def _reduction_table(passes: dict[str, Summary]) -> Table:
    without = passes.get(DISABLED.part)
    rows = tuple(
        (one.label, *(reduction(without, passes.get(one.part), name) for name, _ in STATISTICS))
        for one in (COLD, WARM)
    )
    columns = (
        Column("configuration", "Configuration"),
        *(Column(name, f"TTFT {label} reduced", "%") for name, label in STATISTICS),
    )
    return Table("reduction", "TTFT reduction", "5.7.4", columns, rows)


def _throughput_table(throughputs: dict[str, Summary | None]) -> Table:
    columns = (
        Column("configuration", "Configuration"),
        Column("output_tok_s", "Output", "tok/s"),
        Column("low", "95 % from", "tok/s"),
        Column("high", "to", "tok/s"),
        Column("input_tok_s", "Input", "tok/s"),
        Column("change", "Change of output", "%"),
    )
    rows = []
    for label, (part, summary) in zip(("Cache Disabled", "Cache Enabled"), throughputs.items(), strict=True):
        found = rate(summary, "output_tok_s")
        ends = rate_interval(summary, "output_tok_s")
        change: Cell = "" if part == DISABLED.part else improvement(throughputs)
        inputs = rate(summary, "input_tok_s")
        rows.append((label, found, *(ends or (None, None)), inputs, change))
    notes = (Note("throughput_without_search"),)
    return Table(
        "throughput",
        "Throughput without and with prefix cache",
        "5.7.4",
        columns,
        tuple(rows),
        notes,
        capacity=True,
    )


def _bars(passes: dict[str, Summary]) -> Figure:
    labels = tuple(f"TTFT {name.upper()}" for name in PERCENTILES)
    series = tuple(
        Series(one.label, labels, tuple(stat(passes[one.part], "ttft", name) for name in PERCENTILES))
        for one in PASSES
        if one.part in passes
    )
    return Figure(
        "cache", "TTFT by state of the cache", "bars", Axis("statistic"), Axis("TTFT", "ms"), series
    )


def _notes(setup: Setup, passes: dict[str, Summary], base: float) -> Iterator[Note]:
    wanted, asked = setup.tests.prefix_cache, workload(setup).workload
    own = asked == setup.plan.workload.model_copy(update={"repeatable_prompts": False})
    unit = REQUESTS.per_second if asked.turns is None else "conversations/s"
    load: dict[str, Fact] = {"rate": base * wanted.percent / 100, "percent": wanted.percent, "unit": unit}
    yield Note("cache_passes", load, capacity=True)
    yield Note("planned_workload_shares") if own else Note("recommended_workload_shares")
    if asked.content.sharing is not None:
        yield Note("shared", {"sharing": str(asked.content.sharing)})
    short = [
        (one, n) for one in PASSES if (n := _count(passes.get(one.part))) is not None and n < wanted.requests
    ]
    for one, n in short:
        yield Note("few_ttfts", {"of": one.label, "samples": n, "requests": wanted.requests})
    if len({found.workload.fingerprint for found in passes.values()}) > 1 and setup.plan.workload.file:
        yield Note("passes_differ")


def _count(summary: Summary | None) -> int | None:
    return None if summary is None else samples(summary) or 0
