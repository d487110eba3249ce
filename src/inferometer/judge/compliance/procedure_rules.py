"""Checks of what the tests of draft 5 are to be: loads, counts, durations, levels. A parameter that is too small breaks a rule
before the start already; a run that came to less breaks it afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inferometer.judge.compliance.evidence import (
    Check,
    Evidence,
    Named,
    Ran,
    Seen,
    beside,
    broken,
    every,
    met,
    number,
    unknown,
    worst,
)
from inferometer.judge.compliance.workload_rules import workload
from inferometer.plan.lengths import Distribution, Empirical, Fixed, Histogram, Quantiles, Uniform, parse

P99_SAMPLES, P999_SAMPLES = 1_000, 10_000
LEAST_OUTPUT = 50
LEAST_S = 60.0


def least(name: str, limit: float, unit: str = "") -> Check:
    """A parameter that must not be below a limit."""

    def look(evidence: Evidence) -> Seen | None:
        value = evidence.parameter(name)
        if value is None:
            return None
        said = f"{name} {number(value)}{unit}, at least {number(limit)}{unit}"
        return met(said) if value >= limit else broken(said)

    return look


def lasting(limit: float, *parts: str) -> Check:
    """Runs of these parts that must last so long."""

    def look(evidence: Evidence) -> Seen | None:
        def wrong(one: Ran) -> str | None:
            return (
                None
                if one.lasted_s >= limit
                else f"lasted {number(one.lasted_s)} s, at least {number(limit)} s"
            )

        return every(evidence.of(*parts), wrong, f"at least {number(limit)} s")

    return look


def samples(metric: str, limit: int, *parts: str) -> Check:
    """Runs of these parts that must have so many samples of a metric: of requests that succeeded (Q-sample-basis)."""

    def look(evidence: Evidence) -> Seen | None:
        def wrong(one: Ran) -> str | None:
            found = one.measured(metric)
            n = found["n"] if found else 0
            return None if n >= limit else f"{number(n)} samples of {metric}, at least {number(limit)}"

        return every(evidence.of(*parts), wrong, f"at least {number(limit)} samples of {metric}")

    return look


def both(*checks: Check) -> Check:
    """Several looks at one rule: the worst counts."""

    def look(evidence: Evidence) -> Seen | None:
        return worst(*(check(evidence) for check in checks))

    return look


def given(*names: str, words: str) -> Check:
    """Parameters that must be there."""

    def look(evidence: Evidence) -> Seen | None:
        missing = [name for name in names if evidence.parameter(name) in (None, (), [])]
        if missing:
            return broken(f"{words}: {', '.join(missing)} not given")
        return met(", ".join(f"{name} {_spelled(evidence.parameter(name))}" for name in names))

    return look


def _spelled(value: Any) -> str:
    listed = isinstance(value, list | tuple)
    return (
        ", ".join(map(_spelled, value))
        if listed
        else number(value)
        if isinstance(value, int | float)
        else str(value)
    )


def covering(name: str, values: Iterable[float], unit: str = "%") -> Check:
    """A list that must hold at least these."""
    wanted = tuple(values)

    def look(evidence: Evidence) -> Seen | None:
        asked = evidence.parameter(name)
        if asked is None:
            return None
        missing = sorted(set(wanted) - {float(one) for one in asked})
        said = f"{name} {_spelled(asked)}{unit}"
        return broken(f"{said}; without {_spelled(missing)}{unit}") if missing else met(said)

    return look


# The load of TTFT and throughput tests.


def load_model(evidence: Evidence) -> Seen | None:
    """Draft 5.1.2.2: open or closed; users who wait for their answers are neither."""
    for load, run in evidence.loads:
        if load["model"] not in ("open", "closed"):
            return broken(f"{load['model']}: neither open nor closed loop", run)
    return met(", ".join(sorted({str(load["model"]) for load, _ in evidence.loads})) + " loop")


def _opened(evidence: Evidence) -> Named:
    return [(load, run) for load, run in evidence.loads if load["model"] == "open"]


def rate(evidence: Evidence) -> Seen | None:
    """Draft 5.1.2.2."""
    if not _opened(evidence):
        return beside("closed loop")
    for load, run in _opened(evidence):
        if load["rate"] is None:
            return broken(f"no rate: arrivals of a {load['arrival']}", run)
    return met(", ".join(number(load["rate"]) for load, _ in _opened(evidence)) + " requests/s")


def arrival(evidence: Evidence) -> Seen | None:
    """Draft 5.1.2.2 (Q-poisson-required): other arrivals are additional runs."""
    found = [(str(load["arrival"]), run) for load, run in _opened(evidence)]
    if not found:
        return beside("closed loop")
    if any(name == "poisson" for name, _ in found):
        return met("Poisson")
    return broken(f"{found[0][0]} arrivals, and no level with Poisson arrivals", found[0][1])


def concurrency(evidence: Evidence) -> Seen | None:
    """Draft 5.1.2.2."""
    closed = [(load, run) for load, run in evidence.loads if load["model"] == "closed"]
    if not closed:
        return beside("open loop")
    for load, run in closed:
        if load["concurrency"] is None:
            return broken("no concurrency", run)
    return met(", ".join(number(load["concurrency"]) for load, _ in closed) + " in flight")


def only_open(evidence: Evidence) -> Seen | None:
    """Draft 5.3.2: a closed loop never offers more than the system takes. The test brings its load along."""
    if not evidence.levels:
        return None
    for load, run in evidence.loads:
        if load["model"] != "open":
            return broken(f"{load['model']} loop", run)
    return met("open loop")


def _loop(name: str, check: Check) -> Check:
    def look(evidence: Evidence) -> Seen | None:
        return (
            check(evidence) if evidence.parameter("loop") == name else beside(f"no {name} loop is asked for")
        )

    return look


def rate_range(evidence: Evidence) -> Seen | None:
    """Draft 5.2.2.2: given, or in terms of a pilot's estimate."""
    low, high, step = (evidence.parameter(name) for name in ("min_rate", "max_rate", "rate_step"))
    if None not in (low, high, step):
        return met(f"{number(low)} to {number(high)} requests/s in steps of {number(step)}")
    if evidence.runs and not evidence.of("pilot"):
        return broken("neither given (min_rate, max_rate, rate_step) nor taken from a pilot")
    return met(
        "by a pilot's estimate: from half of it, in steps of a quarter, between a 64th and 64 times of it"
    )


# Levels and counts of single tests.


def ten_asked(evidence: Evidence) -> Seen | None:
    """Draft 5.3.2: ten from 10 % on."""
    asked = evidence.parameter("percent")
    if asked is None:
        return None
    said = f"{len(asked)} levels from {number(min(asked))}%"
    return met(said) if len(asked) >= 10 and min(asked) <= 10 else broken(f"{said}, at least 10 from 10%")


def ten_done(evidence: Evidence) -> Seen | None:
    """Draft 5.3.2: and as many were measured."""
    done = {one.load["rate"] for one in evidence.of("level")}
    if not done:
        return None
    said = f"{len(done)} levels were measured"
    return met(said) if len(done) >= 10 else broken(f"{said}, at least 10")


def long_answers(evidence: Evidence) -> Seen | None:
    """Draft 5.4.2: before the start by the lengths asked for, afterwards by the shortest answer."""

    def wrong(one: Ran) -> str | None:
        shape, found = one.summary.get("itl_shape") or {}, one.measured("output_tokens")
        if found is None:
            return "the lengths of answers are not known"
        shortest, share = found["min"], shape.get("short_share")
        if shortest >= LEAST_OUTPUT and not share:
            return None
        so_many = "" if share is None else f"; {share:.1%} have fewer than that"
        return f"an answer has {number(shortest)} tokens, at least {LEAST_OUTPUT}{so_many}"

    seen = every(evidence.of("level"), wrong, f"every answer has at least {LEAST_OUTPUT} tokens")
    return seen or _asked_answers(evidence)


def _asked_answers(evidence: Evidence) -> Seen | None:
    asked = evidence.parameter("output_tokens") or evidence.plan["workload"].get("output_tokens")
    if asked is None:
        return None
    length = parse(asked)
    shortest = _shortest(length)
    if shortest is None or shortest >= LEAST_OUTPUT:
        return None
    return broken(f"answers of {length} tokens are asked for, at least {LEAST_OUTPUT}")


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


def of_percent(evidence: Evidence) -> Seen | None:
    """Draft 5.4.2: loads are told as shares of the highest throughput."""

    def wrong(one: Ran) -> str | None:
        return None if one.at.get("percent") is not None else "its load is no percentage of saturation"

    return every(evidence.of("level"), wrong, "percentages of saturation")


def fixed_output(evidence: Evidence) -> Seen | None:
    """Draft 5.5.2, 5.9.2: all answers are of one length."""
    asked = evidence.parameter("output_tokens")
    for one in evidence.of("level"):
        length = one.summary["plan"]["workload"].get("output_tokens")
        if length is not None and not str(length).isdigit():
            return broken(f"answers of {length} tokens", one.name)
    return None if asked is None else met(f"{number(asked)} tokens each")


def slots(evidence: Evidence) -> Seen | None:
    """Draft 5.5.3 (Q-capacity-duration): 60 s, and 100 completions a slot."""

    def wrong(one: Ran) -> str | None:
        held, done = one.load["concurrency"] or 0, one.summary["requests"]["completed"]
        if one.lasted_s < LEAST_S:
            return f"lasted {number(one.lasted_s)} s, at least {number(LEAST_S)} s"
        return (
            None
            if done >= 100 * held
            else f"{number(done)} completions of {held} slots, at least {number(100 * held)}"
        )

    return every(evidence.of("level", "confirm"), wrong, "at least 60 s and 100 completions a slot")


def classes(evidence: Evidence) -> Seen | None:
    """Draft 5.6.2."""
    asked = evidence.parameter("classes")
    if asked is None:
        return None
    said = f"{len(asked)} classes: {', '.join(one['name'] for one in asked)}"
    return met(said) if len(asked) >= 2 else broken(f"{said}, at least 2")


RANGES = {"short": ((64, 256), (32, 128)), "long": ((1024, 4096), (256, 1024))}


def ranges(evidence: Evidence) -> Seen | None:
    """Draft 5.6.2."""
    asked = evidence.parameter("classes")
    if asked is None:
        return None
    found = {one["name"]: (tuple(one["input_tokens"]), tuple(one["output_tokens"])) for one in asked}
    return met("those of the draft") if found == RANGES else broken(f"other ranges: {found}")


def mix(evidence: Evidence) -> Seen | None:
    """Draft 5.6.2: shares of a whole."""
    asked = evidence.parameter("classes")
    if asked is None:
        return None
    said = ", ".join(f"{one['name']} {one['share']:.0%}" for one in asked)
    return (
        met(said)
        if abs(sum(one["share"] for one in asked) - 1) < 1e-6
        else broken(f"{said}: not 100% together")
    )


def fairness_load(evidence: Evidence) -> Seen | None:
    """Draft 5.6.2."""
    percent = evidence.parameter("percent")
    if percent is None:
        return None
    said = f"{number(percent)}% of saturation, 70 to 90%"
    return met(said) if 70 <= percent <= 90 else broken(said)


def class_counts(evidence: Evidence) -> Seen | None:
    """Draft 5.6.2: of the mixed run."""

    def wrong(one: Ran) -> str | None:
        counts = {each["name"]: each["requests"]["completed"] for each in one.summary["by_class"]}
        few = [name for name, count in counts.items() if count < 500]
        if not counts:
            return "no classes"
        return f"{few[0]}: {number(counts[few[0]])} requests, at least 500" if few else None

    return every(evidence.of("mixed"), wrong, "at least 500 requests a class")


def baselines(evidence: Evidence) -> Seen | None:
    """Draft 5.6.3: each class by itself first."""
    if not evidence.runs:
        return None
    parts = [one.part for one in evidence.runs]
    first = parts.index("mixed") if "mixed" in parts else len(parts)
    alone = {one.at.get("class") for one in evidence.runs[:first] if one.part == "isolated"}
    wanted = {one["name"] for one in evidence.parameter("classes") or ()}
    missing = sorted(wanted - alone)
    return (
        broken(f"not measured alone: {', '.join(missing)}")
        if missing or not wanted
        else met("each class alone first")
    )


def oversubscribed(evidence: Evidence) -> Seen | None:
    """Draft 5.8.2."""
    asked = evidence.parameter("percent")
    if asked is None:
        return None
    said = f"{_spelled(asked)}% of capacity"
    return met(said) if max(asked) > 100 else broken(f"{said}, none above 100%")


def by_capacity(evidence: Evidence) -> Seen | None:
    """Draft 5.8.3: capacity comes from the search of 5.5."""
    if not evidence.runs:
        return None
    if any(one.part == "capacity" or one.part.startswith("base-") for one in evidence.runs):
        return met("searched with this test's workload")
    return unknown("no search by this test: another's answer may have been taken")


def few_at_once(evidence: Evidence) -> Seen | None:
    """Draft 5.9.2."""
    asked = evidence.parameter("concurrency")
    for one in evidence.of("level"):
        if one.load["model"] != "closed" or not 1 <= (one.load["concurrency"] or 0) <= 4:
            return broken(
                f"{one.load['model']} loop, {one.load['concurrency']} in flight; closed, 1 to 4", one.name
            )
    if asked is None:
        return None
    said = f"{number(asked)} in flight, 1 to 4"
    return met(said) if 1 <= asked <= 4 else broken(said)


def exactly(name: str, value: float, unit: str) -> Check:
    """A parameter that the draft gives one value."""

    def look(evidence: Evidence) -> Seen | None:
        asked = evidence.parameter(name)
        if asked is None:
            return None
        said = f"{number(asked)} {unit}"
        return met(said) if asked == value else broken(f"{said}; the draft has {number(value)}")

    return look


def ascending(evidence: Evidence) -> Seen | None:
    """Draft 5.9.3."""
    found = [float(one.at.get("context") or 0) for one in evidence.of("level")]
    if not found:
        return None
    return met("in ascending order") if found == sorted(found) else broken(f"in the order {_spelled(found)}")


CHECKS: dict[str, Check] = {
    "D-5.1.2-count-p99": both(least("requests", P99_SAMPLES), samples("ttft_ms", P99_SAMPLES, "level")),
    "D-5.1.2-count-p999": both(least("requests", P999_SAMPLES), samples("ttft_ms", P999_SAMPLES, "level")),
    "D-5.1.2-load-model": load_model,
    "D-5.1.2-rate": rate,
    "D-5.1.2-arrival": arrival,
    "D-5.1.2-concurrency": concurrency,
    "D-5.1.4.3-accuracy": both(least("requests", P999_SAMPLES), samples("ttft_ms", P999_SAMPLES, "level")),
    "D-5.2.2-duration": both(least("duration_s", LEAST_S, " s"), lasting(LEAST_S, "level", "confirm")),
    "D-5.2.2-duration-300": both(least("duration_s", 300, " s"), lasting(300, "confirm")),
    "D-5.2.2-load-model": given("loop", words="the load model"),
    "D-5.2.2-rate-range": _loop("open", rate_range),
    "D-5.2.2-conc-range": _loop(
        "closed", given("min_concurrency", "max_concurrency", "concurrency_step", words="the range")
    ),
    "D-5.2.3-level": lambda evidence: lasting(float(evidence.parameter("duration_s") or 0), "level")(
        evidence
    ),
    "D-5.3.2-duration": both(least("duration_s", LEAST_S, " s"), lasting(LEAST_S, "level")),
    "D-5.3.2-levels": both(ten_asked, ten_done),
    "D-5.3.2-open-loop": only_open,
    "D-5.3.3-steps": covering("percent", range(10, 121, 10)),
    "D-5.4.2-workload": workload("synthetic-uniform", "conversation"),
    "D-5.4.2-min-output": long_answers,
    "D-5.4.2-count": both(
        least("requests", 100), samples("e2e_ms", 100, "level"), samples("itl_ms", 5_000, "level")
    ),
    "D-5.4.2-load": of_percent,
    "D-5.4.2-levels": covering("percent", (25, 50, 75, 90)),
    "D-5.5.2-workload": workload("synthetic-uniform", variant=True),
    "D-5.5.2-output": fixed_output,
    "D-5.5.2-bounds": given("initial", "maximum", words="the bounds of the search"),
    "D-5.5.2-completion": least("success_rate", 0.99),
    "D-5.5.2-ttft": given("ttft_p99_ms", words="the threshold of TTFT"),
    "D-5.5.3-duration": both(
        least("duration_s", LEAST_S, " s"), least("completions_per_slot", 100, " completions a slot"), slots
    ),
    "D-5.6.2-workload": workload("synthetic-skewed", variant=True),
    "D-5.6.2-classes": classes,
    "D-5.6.2-ranges": ranges,
    "D-5.6.2-mix": mix,
    "D-5.6.2-load": fairness_load,
    "D-5.6.2-count": both(least("requests_per_class", 500), class_counts),
    "D-5.6.3-baseline": baselines,
    "D-5.6.3-mixed": both(least("duration_s", 300, " s"), lasting(300, "mixed")),
    "D-5.7.2-workload": workload("code-completion"),
    "D-5.8.2-workload": workload("long-context"),
    "D-5.8.2-levels": oversubscribed,
    "D-5.8.3-capacity": by_capacity,
    "D-5.8.3-run": both(least("duration_s", 120, " s"), lasting(120, "level")),
    "D-5.9.2-workload": workload("long-context", variant=True),
    "D-5.9.2-lengths": given("lengths", words="the context lengths"),
    "D-5.9.2-output": both(exactly("output_tokens", 256, "tokens"), fixed_output),
    "D-5.9.2-load": few_at_once,
    "D-5.9.2-count": both(least("requests", 20), samples("e2e_ms", 20, "level")),
    "D-5.9.3-order": ascending,
    "D-5.10.2-workload": workload("conversation"),
    "D-5.10.2-levels": covering("percent", (25, 50, 75)),
}
