"""Checks of what the tests of draft 5 are to be: loads, counts, durations, levels. A parameter that is too small breaks a rule
before the start already; a run that came to less breaks it afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterable

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    Loads,
    MeasuredRun,
    RuleCheck,
    Ruling,
    each_run,
    not_applicable,
    note,
    satisfied,
    satisfied_if,
    unknown,
    violated,
    worst,
)
from inferometer.judge.compliance.workload_rules import workload
from inferometer.plan.lengths import Distribution, Empirical, Fixed, Histogram, Quantiles, Uniform
from inferometer.plan.procedure_parameters import Fairness, FairnessClass, Itl

P99_SAMPLES, P999_SAMPLES = 1_000, 10_000
LEAST_OUTPUT = 50
LEAST_S = 60.0
LEAST_COMPLETIONS = 100
"""A slot, in a search for capacity."""
LEAST_OF_CLASS = 500
LEAST_LEVELS = 10
REVEAL_NOTHING = ("requests", "success_rate", "loop", "lengths")
"""Parameters that tell what was done, and not how much the system takes."""


def least(name: str, limit: float, unit: str = "") -> RuleCheck:
    """A parameter that must not be below a limit."""

    def check(evidence: Evidence) -> Ruling | None:
        value = evidence.number(name)
        if value is None:
            return None
        capacity = name not in REVEAL_NOTHING
        observed = note("parameter", capacity=capacity, parameter=name, value=value, limit=limit, unit=unit)
        return satisfied_if(value >= limit, observed)

    return check


def lasting(limit: float, *parts: str) -> RuleCheck:
    """Runs of these parts that must last so long."""

    def check(evidence: Evidence) -> Ruling | None:
        def problem(run: MeasuredRun) -> Note | None:
            return None if run.lasted_s >= limit else _too_short(run, limit)

        return each_run(evidence.of(*parts), problem, note("lasted", capacity=True, limit_s=limit))

    return check


def _too_short(run: MeasuredRun, limit: float) -> Note:
    return note("too_short", capacity=True, seconds=run.lasted_s, limit_s=limit)


def samples(metric: str, limit: int, *parts: str) -> RuleCheck:
    """Runs of these parts that must have so many samples of a metric: of requests that succeeded (Q-sample-basis)."""

    def check(evidence: Evidence) -> Ruling | None:
        def problem(run: MeasuredRun) -> Note | None:
            stats = run.measured(metric)
            n = stats.n if stats else 0
            if n >= limit:
                return None
            return note("too_few_samples", capacity=True, n=n, metric=metric, limit=limit)

        return each_run(evidence.of(*parts), problem, note("samples", metric=metric, limit=limit))

    return check


def long_gaps(limit: int) -> RuleCheck:
    """Levels that must have so many gaps of answers that are long enough (draft 5.4.2)."""

    def check(evidence: Evidence) -> Ruling | None:
        def problem(run: MeasuredRun) -> Note | None:
            n = run.long_gaps.n if run.long_gaps else 0
            if n >= limit:
                return None
            return note("too_few_samples", capacity=True, n=n, metric="itl_ms", limit=limit)

        return each_run(evidence.of("level"), problem, note("samples", metric="itl_ms", limit=limit))

    return check


def both(*checks: RuleCheck) -> RuleCheck:
    """Several checks of one rule: the worst ruling counts."""

    def check(evidence: Evidence) -> Ruling | None:
        return worst(*(one(evidence) for one in checks))

    return check


def given(*names: str, purpose: str) -> RuleCheck:
    """Parameters that must be there. `purpose`: what they are together."""

    def check(evidence: Evidence) -> Ruling | None:
        values = {name: getattr(evidence.parameters, name, None) for name in names}
        missing = tuple(name for name, value in values.items() if value in (None, ()))
        if missing:
            return violated(note("parameters_missing", purpose=purpose, parameters=missing))
        capacity = not set(names) <= set(REVEAL_NOTHING)
        return satisfied(note("parameters", capacity=capacity, **values))

    return check


def covering(name: str, values: Iterable[float]) -> RuleCheck:
    """A list of percentages that must hold at least these."""
    wanted = tuple(values)

    def check(evidence: Evidence) -> Ruling | None:
        percent = evidence.numbers(name)
        if percent is None:
            return None
        missing = tuple(sorted(set(wanted) - set(percent)))
        if missing:
            return violated(note("percentages_missing", parameter=name, percent=percent, missing=missing))
        return satisfied(note("percentages", parameter=name, percent=percent))

    return check


# The load of TTFT and throughput tests.


def load_model(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.2.2: open or closed; users who wait for their answers are neither."""
    for load, run in evidence.loads:
        if load.model not in ("open", "closed"):
            return violated(note("other_load_model", model=load.model), run)
    return satisfied(note("load_model", models=tuple(sorted({load.model for load, _ in evidence.loads}))))


def _open(evidence: Evidence) -> Loads:
    return [(load, run) for load, run in evidence.loads if load.model == "open"]


def rate(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.2.2."""
    if not _open(evidence):
        return not_applicable(note("closed_loop"))
    rates = []
    for load, run in _open(evidence):
        if load.rate is None:
            return violated(note("no_rate", arrival=load.arrival), run)
        rates.append(load.rate)
    # Of conversations and sessions a rate counts those; what their runs say of it stands for all of them.
    offered = {one.summary.load.offered.rate_of for one in evidence.runs} - {None, "requests"}
    return satisfied(
        note("rates", capacity=True, rates=tuple(rates), of=min(offered, key=str, default="requests"))
    )


def arrival(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.2.2 (Q-poisson-required): other arrivals are additional runs."""
    arrivals = [(load.arrival, run) for load, run in _open(evidence)]
    if not arrivals:
        return not_applicable(note("closed_loop"))
    if any(name == "poisson" for name, _ in arrivals):
        return satisfied(note("poisson_arrivals"))
    name, run = arrivals[0]
    return violated(note("no_poisson_arrivals", arrival=name), run)


def concurrency(evidence: Evidence) -> Ruling | None:
    """Draft 5.1.2.2."""
    closed = [(load, run) for load, run in evidence.loads if load.model == "closed"]
    if not closed:
        return not_applicable(note("open_loop"))
    held = []
    for load, run in closed:
        if load.concurrency is None:
            return violated(note("no_concurrency"), run)
        held.append(load.concurrency)
    return satisfied(note("concurrency", capacity=True, concurrency=tuple(held)))


def only_open(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.2: a closed loop never offers more than the system takes. The test brings its load along."""
    if not evidence.levels:
        return None
    for load, run in evidence.loads:
        if load.model != "open":
            return violated(note("load_model", models=(load.model,)), run)
    return satisfied(note("open_loop"))


def _of_loop(name: str, check: RuleCheck) -> RuleCheck:
    def of_loop(evidence: Evidence) -> Ruling | None:
        if getattr(evidence.parameters, "loop", None) == name:
            return check(evidence)
        return not_applicable(note("loop_not_requested", loop=name))

    return of_loop


def rate_range(evidence: Evidence) -> Ruling | None:
    """Draft 5.2.2.2: given, or in terms of a pilot's estimate."""
    low, high, step = (evidence.number(name) for name in ("min_rate", "max_rate", "rate_step"))
    if None not in (low, high, step):
        return satisfied(note("rate_range", capacity=True, low=low, high=high, step=step))
    if evidence.runs and not evidence.of("pilot"):
        return violated(note("no_rate_range"))
    return satisfied(note("rate_range_of_pilot"))


# Levels and counts of single tests.


def ten_planned(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.2: ten from 10 % on."""
    percent = evidence.numbers("percent")
    if percent is None:
        return None
    levels, first = len(percent), min(percent)
    if levels >= LEAST_LEVELS and first <= 10:
        return satisfied(note("levels_planned", levels=levels, first=first))
    return violated(note("too_few_levels_planned", levels=levels, first=first, limit=LEAST_LEVELS))


def ten_measured(evidence: Evidence) -> Ruling | None:
    """Draft 5.3.2: and as many were measured."""
    levels = len({run.load.rate for run in evidence.of("level")})
    if not levels:
        return None
    if levels >= LEAST_LEVELS:
        return satisfied(note("levels_measured", levels=levels))
    return violated(note("too_few_levels_measured", levels=levels, limit=LEAST_LEVELS))


def long_answers(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.2: before the start by the lengths requested, afterwards by the shortest answer."""

    def problem(run: MeasuredRun) -> Note | None:
        shape, tokens = run.summary.itl_shape, run.measured("output_tokens")
        if tokens is None:
            return note("answer_lengths_unknown")
        share = None if shape is None else shape.short_share
        if tokens.min >= LEAST_OUTPUT and not share:
            return None
        return note("short_answer", tokens=tokens.min, limit=LEAST_OUTPUT, share=share)

    ruling = each_run(evidence.of("level"), problem, note("long_answers", limit=LEAST_OUTPUT))
    return ruling or _long_answers_planned(evidence)


def _long_answers_planned(evidence: Evidence) -> Ruling | None:
    parameters = evidence.parameters
    planned = parameters.output_tokens if isinstance(parameters, Itl) else None
    length = planned or evidence.plan.workload.output_tokens
    shortest = None if length is None else _shortest(length)
    if shortest is None or shortest >= LEAST_OUTPUT:
        return None
    return violated(note("short_answers_planned", lengths=str(length), limit=LEAST_OUTPUT))


def _shortest(length: Distribution) -> int | None:
    """The shortest length that can be drawn; None where it is not known."""
    if isinstance(length, Fixed):
        return length.tokens
    if isinstance(length, Uniform):
        return length.clamp(length.low)
    if isinstance(length, Histogram):
        return length.clamp(min(value for value, _ in length.bins))
    if isinstance(length, Quantiles):
        return length.clamp(length.at(0))
    return None if isinstance(length, Empirical) else length.floor


def of_percent(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.2: loads are shares of the highest throughput."""

    def problem(run: MeasuredRun) -> Note | None:
        return None if run.at.percent is not None else note("no_percentage")

    return each_run(evidence.of("level"), problem, note("percentages_of_saturation"))


def fixed_output(evidence: Evidence) -> Ruling | None:
    """Draft 5.5.2, 5.9.2: all answers are of one length."""
    for run in evidence.of("level"):
        length = run.summary.plan.workload.output_tokens
        if length is not None and not isinstance(length, Fixed):
            return violated(note("answers_vary", lengths=str(length)), run.name)
        asked = run.summary.tokens.output.asked_mean
        if isinstance(length, Fixed) and asked is not None and not math.isclose(asked, length.mean()):
            # The rows of a file may name lengths of their own.
            return violated(note("answers_vary", lengths=f"{asked:.4g} on average"), run.name)
    tokens = evidence.number("output_tokens")
    return None if tokens is None else satisfied(note("answers_of_one_length", tokens=tokens))


def slots(evidence: Evidence) -> Ruling | None:
    """Draft 5.5.3 (Q-capacity-duration): 60 s, and 100 completions a slot."""

    def problem(run: MeasuredRun) -> Note | None:
        held, completed = run.load.concurrency or 0, run.summary.requests.completed
        if run.lasted_s < LEAST_S:
            return _too_short(run, LEAST_S)
        limit = LEAST_COMPLETIONS * held
        if completed >= limit:
            return None
        return note("too_few_completions", capacity=True, completed=completed, slots=held, limit=limit)

    kept = note("slots", capacity=True, limit_s=LEAST_S, completions=LEAST_COMPLETIONS)
    return each_run(evidence.of("level", "confirm"), problem, kept)


def _classes(evidence: Evidence) -> tuple[FairnessClass, ...] | None:
    return evidence.parameters.classes if isinstance(evidence.parameters, Fairness) else None


def classes(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.2."""
    found = _classes(evidence)
    if found is None:
        return None
    names = tuple(one.name for one in found)
    if len(names) >= 2:
        return satisfied(note("classes", classes=names))
    return violated(note("too_few_classes", classes=names, limit=2))


RANGES = {"short": ((64, 256), (32, 128)), "long": ((1024, 4096), (256, 1024))}


def ranges(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.2."""
    found = _classes(evidence)
    if found is None:
        return None
    if {one.name: (one.input_tokens, one.output_tokens) for one in found} == RANGES:
        return satisfied(note("class_ranges"))
    return violated(
        note(
            "other_class_ranges",
            classes=tuple(one.name for one in found),
            least_input=tuple(one.input_tokens[0] for one in found),
            most_input=tuple(one.input_tokens[1] for one in found),
            least_output=tuple(one.output_tokens[0] for one in found),
            most_output=tuple(one.output_tokens[1] for one in found),
        )
    )


def mix(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.2: shares of a whole."""
    found = _classes(evidence)
    if found is None:
        return None
    names, shares = tuple(one.name for one in found), tuple(one.share for one in found)
    if abs(sum(shares) - 1) < 1e-6:
        return satisfied(note("class_shares", classes=names, shares=shares))
    return violated(note("class_shares_incomplete", classes=names, shares=shares))


def fairness_load(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.2."""
    percent = evidence.number("percent")
    if percent is None:
        return None
    return satisfied_if(70 <= percent <= 90, note("fairness_load", percent=percent, low=70, high=90))


def class_counts(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.2: of the mixed run."""

    def problem(run: MeasuredRun) -> Note | None:
        if not run.summary.by_class:
            return note("no_classes")
        for one in run.summary.by_class:
            completed = one.requests.completed
            if completed < LEAST_OF_CLASS:
                return note(
                    "small_class", capacity=True, name=one.name, requests=completed, limit=LEAST_OF_CLASS
                )
        return None

    return each_run(evidence.of("mixed"), problem, note("class_counts", limit=LEAST_OF_CLASS))


def baselines(evidence: Evidence) -> Ruling | None:
    """Draft 5.6.3: each class by itself first."""
    if not evidence.runs:
        return None
    parts = [run.part for run in evidence.runs]
    first = parts.index("mixed") if "mixed" in parts else len(parts)
    alone = {run.at.class_name for run in evidence.runs[:first] if run.part == "isolated"}
    wanted = {one.name for one in _classes(evidence) or ()}
    missing = tuple(sorted(wanted - alone))
    if missing or not wanted:
        return violated(note("classes_not_alone", classes=missing))
    return satisfied(note("classes_alone"))


def oversubscribed(evidence: Evidence) -> Ruling | None:
    """Draft 5.8.2."""
    percent = evidence.numbers("percent")
    if percent is None:
        return None
    if max(percent) > 100:
        return satisfied(note("percent_of_capacity", percent=percent))
    return violated(note("not_oversubscribed", percent=percent))


def by_capacity(evidence: Evidence) -> Ruling | None:
    """Draft 5.8.3: capacity comes from the search of 5.5."""
    if not evidence.runs:
        return None
    if any(run.part == "capacity" or run.part.startswith("base-") for run in evidence.runs):
        return satisfied(note("capacity_searched"))
    return unknown(note("capacity_not_searched"))


def few_at_once(evidence: Evidence) -> Ruling | None:
    """Draft 5.9.2."""
    for run in evidence.of("level"):
        held = run.load.concurrency
        if run.load.model != "closed" or not 1 <= (held or 0) <= 4:
            observed = note("too_many_at_once", capacity=True, model=run.load.model, concurrency=held, most=4)
            return violated(observed, run.name)
    planned = evidence.number("concurrency")
    if planned is None:
        return None
    return satisfied_if(1 <= planned <= 4, note("few_at_once", capacity=True, concurrency=planned, most=4))


def exactly(name: str, value: float) -> RuleCheck:
    """A parameter in tokens that the draft gives one value."""

    def check(evidence: Evidence) -> Ruling | None:
        planned = evidence.number(name)
        if planned is None:
            return None
        if planned == value:
            return satisfied(note("tokens_as_drafted", tokens=planned))
        return violated(note("other_tokens", tokens=planned, draft=value))

    return check


def ascending(evidence: Evidence) -> Ruling | None:
    """Draft 5.9.3."""
    contexts = tuple(float(run.at.context or 0) for run in evidence.of("level"))
    if not contexts:
        return None
    if contexts == tuple(sorted(contexts)):
        return satisfied(note("ascending"))
    return violated(note("not_ascending", contexts=contexts))


P999 = both(least("requests", P999_SAMPLES), samples("ttft_ms", P999_SAMPLES, "level"))
CHECKS: dict[str, RuleCheck] = {
    "D-5.1.2-count-p99": both(least("requests", P99_SAMPLES), samples("ttft_ms", P99_SAMPLES, "level")),
    "D-5.1.2-count-p999": P999,
    "D-5.1.2-load-model": load_model,
    "D-5.1.2-rate": rate,
    "D-5.1.2-arrival": arrival,
    "D-5.1.2-concurrency": concurrency,
    "D-5.1.4.3-accuracy": P999,
    "D-5.2.2-duration": both(least("duration_s", LEAST_S, "s"), lasting(LEAST_S, "level", "confirm")),
    "D-5.2.2-duration-300": both(least("duration_s", 300, "s"), lasting(300, "confirm")),
    "D-5.2.2-load-model": given("loop", purpose="load_model"),
    "D-5.2.2-rate-range": _of_loop("open", rate_range),
    "D-5.2.2-conc-range": _of_loop(
        "closed", given("min_concurrency", "max_concurrency", "concurrency_step", purpose="range")
    ),
    "D-5.2.3-level": lambda evidence: lasting(evidence.number("duration_s") or 0, "level")(evidence),
    "D-5.3.2-duration": both(least("duration_s", LEAST_S, "s"), lasting(LEAST_S, "level")),
    "D-5.3.2-levels": both(ten_planned, ten_measured),
    "D-5.3.2-open-loop": only_open,
    "D-5.3.3-steps": covering("percent", range(10, 121, 10)),
    "D-5.4.2-workload": workload("synthetic-uniform", "conversation"),
    "D-5.4.2-min-output": long_answers,
    "D-5.4.2-count": both(least("requests", 100), samples("e2e_ms", 100, "level"), long_gaps(5_000)),
    "D-5.4.2-load": of_percent,
    "D-5.4.2-levels": covering("percent", (25, 50, 75, 90)),
    "D-5.5.2-workload": workload("synthetic-uniform", variant=True),
    "D-5.5.2-output": fixed_output,
    "D-5.5.2-bounds": given("initial", "maximum", purpose="search_bounds"),
    "D-5.5.2-completion": least("success_rate", 0.99),
    "D-5.5.2-ttft": given("ttft_p99_ms", purpose="ttft_threshold"),
    "D-5.5.3-duration": both(
        least("duration_s", LEAST_S, "s"),
        least("completions_per_slot", LEAST_COMPLETIONS, "completions a slot"),
        slots,
    ),
    "D-5.6.2-workload": workload("synthetic-skewed", variant=True),
    "D-5.6.2-classes": classes,
    "D-5.6.2-ranges": ranges,
    "D-5.6.2-mix": mix,
    "D-5.6.2-load": fairness_load,
    "D-5.6.2-count": both(least("requests_per_class", LEAST_OF_CLASS), class_counts),
    "D-5.6.3-baseline": baselines,
    "D-5.6.3-mixed": both(least("duration_s", 300, "s"), lasting(300, "mixed")),
    "D-5.7.2-workload": workload("code-completion"),
    "D-5.8.2-workload": workload("long-context"),
    "D-5.8.2-levels": oversubscribed,
    "D-5.8.3-capacity": by_capacity,
    "D-5.8.3-run": both(least("duration_s", 120, "s"), lasting(120, "level")),
    "D-5.9.2-workload": workload("long-context", variant=True),
    "D-5.9.2-lengths": given("lengths", purpose="context_lengths"),
    "D-5.9.2-output": both(exactly("output_tokens", 256), fixed_output),
    "D-5.9.2-load": few_at_once,
    "D-5.9.2-count": both(least("requests", 20), samples("e2e_ms", 20, "level")),
    "D-5.9.3-order": ascending,
    "D-5.10.2-workload": workload("conversation"),
    "D-5.10.2-levels": covering("percent", (25, 50, 75)),
}
