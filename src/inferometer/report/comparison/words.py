"""The words of a comparison: titles of its figures, a sentence and an advice for each item of the checklist, the conclusion."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from inferometer.documents.comparison import (
    ComparisonMethod,
    Contrast,
    Difference,
    FigureVerdict,
    Held,
    Item,
    Outcome,
    TitledDifference,
    WordedItem,
)
from inferometer.documents.statement import ComplianceStatement
from inferometer.metrics.catalogue import (
    METRICS,
    RATES,
    SESSION_METRICS,
    SESSION_RATES,
    SUCCESS,
    TASK_SUCCESS,
    stem,
)
from inferometer.metrics.statistics import STATISTICS, Interval
from inferometer.report.figures import clean, figure, moment
from inferometer.report.run.composition import moment as written

_MOST, _BEFORE = 24, 6
"""Characters of a value that differs, and of those how many before the difference: the document has it whole."""
DECIDES = (
    "A figure is better or worse only if a t-test on per-run values rejects after Holm's correction (on the differences of "
    "pairs where runs are paired by seed, else Welch's), the bootstrap of the pooled samples (clustered by run and by "
    "request) agrees, and the difference exceeds threshold and noise floor. With a threshold, no difference is claimed only "
    "where the interval holds no change for the worse beyond it; a difference that the threshold alone holds back is tolerated."
)
MULTIPLICITY = (
    "Holm's correction over the deciding figures of all sides, and apart from them over all others: the chance of any false "
    "difference among the deciding figures stays below 5 %. Intervals are not corrected."
)
NORMALISATION = (
    "Tokens per GPU-second: output tokens a second divided by the number of accelerators declared. Tokens per dollar-hour: "
    "output tokens a second divided by the price an hour; tokens per dollar: that times 3600 (draft 6.2)."
)


@dataclass(frozen=True, slots=True)
class Title:
    """A figure's name and unit; values are shown `times` as large."""

    title: str
    unit: str
    times: float = 1.0


def _titles() -> Iterator[tuple[str, Title]]:
    for name, rate in RATES.items():
        if rate.compared:
            yield name, Title(rate.compared, rate.unit)
    yield "output_tok_gpu_s", Title("Tokens/GPU-s", "tokens/s")
    yield "output_tok_dollar_h", Title("Tok/s per $/h", "tokens/s per $/h")
    for name, metric in METRICS.items():
        for statistic in metric.compared:
            yield f"{stem(name)}_{statistic}", Title(f"{metric.short} {_heading(statistic)}", metric.unit)
    for name, one in SESSION_RATES.items():
        yield name, Title(one.short, one.unit)
    for name, one in SESSION_METRICS.items():
        for statistic in one.compared:
            yield f"{stem(name)}_{statistic}", Title(f"{one.short} {_heading(statistic)}", one.unit)
    yield SUCCESS, Title("Success rate", "%", 100.0)
    yield TASK_SUCCESS, Title("Task success", "%", 100.0)


def _heading(statistic: str) -> str:
    return "mean" if statistic == "mean" else STATISTICS[statistic]


TITLES: dict[str, Title] = dict(_titles())

VERDICTS = {
    "better": "better",
    "worse": "WORSE",
    "no_difference": "no diff.",
    "no_claim": "no claim",
    "not_comparable": "n/a",
}
TOLERATED = "tolerated"
"""Of a difference that was shown, and is no larger than the threshold: it is none that matters, and yet one."""
_HELD = {
    "interval": "the interval holds zero",
    "holm": "not significant after Holm's correction",
    "bootstrap": "the bootstrap does not agree",
    "threshold": "below the threshold",
    "noise": "below the noise floor",
}
_TESTS = {"paired": "the t-test on pairs of runs with one seed", "welch": "Welch's t"}


def tolerated(verdict: FigureVerdict, held: Sequence[Held]) -> bool:
    """Whether nothing but the threshold kept a difference from being called better or worse."""
    return verdict == "no_difference" and tuple(held) == ("threshold",)


def verdict_word(verdict: FigureVerdict, held: Sequence[Held]) -> str:
    """The verdict on a figure as tables have it. `held`: what kept it from being called better or worse."""
    return TOLERATED if tolerated(verdict, held) else VERDICTS[verdict]


OUTCOMES = {
    "regression": "REGRESSION",
    "no_regression": "NO REGRESSION",
    "no_claim": "NO CLAIM",
    "invalid": "INVALID",
    "not_comparable": "NOT COMPARABLE",
}

ITEMS = {
    "workload": "Same workload: the same requests, in the same order, with the same seeds",
    "boundary": "Same boundary of the system under test",
    "hardware": "Comparable hardware, or normalised by it",
    "load": "Same load model and parameters",
    "specification": "Same workload specification",
    "duration": "Same test duration",
    "warmup": "Same warm-up procedure",
    "success": "Same success criteria: objectives and timeouts",
    "token_count": "Same token count",
    "same_time": "Tested at the same time, if resources are shared",
    "production": "Production-representative configuration",
    "differences": "Differences in configuration explicitly noted",
    "one_kind": "All measured, or all simulated",
    "noise": "A/A runs are of the baseline's system and load",
    "size": "All quick, or all of full size",
    "tests": "Same tests",
    "parameters": "Same parameters of each test",
    "one_system": "The runs of each side are of one system",
}
_ADVICE = {
    "workload": "Give every side the same seeds and workload: --interleave does, or run each plan with the same --seed.",
    "boundary": "Measure all systems at one boundary (--boundary engine, gateway or compound).",
    "hardware": "Declare accelerator_count on all sides, or give --price for each, so that throughput can be normalised.",
    "load": "Measure all sides under one load.",
    "specification": "Give all sides the same workload keys.",
    "duration": "Give all sides the same --requests, --duration and --drain, and leave out runs that were interrupted.",
    "warmup": "Give all sides the same --warmup.",
    "success": "Give all sides the same --slo and --timeout.",
    "token_count": "Count with one yardstick: --tokenizer cl100k_base --token-count reference (draft 4.4.2).",
    "same_time": "Measure in turns (--interleave), and say --shared-resources if the systems share any.",
    "production": "Say --production-representative if both are.",
    "one_kind": "Compare simulations with simulations.",
    "noise": "Measure the A/A runs with the baseline's own plan.",
    "size": "Give all sides --quick, or none.",
    "tests": "Give all sides the same tests, or name those that decide with --metric.",
    "parameters": "Give all sides the same --param: tests whose parameters differ are not compared.",
    "one_system": "Put the runs of each system on a separate side, and declare the same system in all of them.",
}


def told_apart(sides: Sequence[Sequence[object]]) -> list[str]:
    """The values of a key that differs, of each side in a line of text: of long lists the entries that differ; other long ones
    shortened, from where they begin to differ, and whole if they would look alike."""
    texts = [[clean("not declared" if value is None else str(value)) for value in side] for side in sides]
    distinct = {text for side in texts for text in side}
    declared = {clean(str(value)) for side in sides for value in side if value is not None}
    if entries := _entries_apart(declared):
        return [" or ".join(entries.get(text, text) for text in side) for side in texts]
    alike = takewhile(lambda at: len(set(at)) == 1, zip(*declared, strict=False))  # up to the shortest
    lead = sum(1 for _ in alike) if len(declared) > 1 else 0
    begin = lead - _BEFORE if max(map(len, distinct), default=0) > _MOST and lead > _MOST // 2 else 0
    shown = {text: _shortened(text, begin) for text in distinct}
    if len(set(shown.values())) < len(distinct):
        shown = {text: text for text in distinct}
    return [" or ".join(shown[text] for text in side) for side in texts]


def _entries_apart(texts: Collection[str]) -> dict[str, str]:
    """Long texts that are lists with commas, such as an engine's settings, by their entries that not all of them have; empty:
    they are no lists, have no entry in common, or would look alike."""
    lists = {text: text.split(", ") for text in texts}
    common = set.intersection(*map(set, lists.values())) if lists else set()
    if len(lists) < 2 or not common or max(map(len, lists)) <= _MOST:
        return {}
    shown = {
        text: ", ".join(one for one in entries if one not in common) or "none of these"
        for text, entries in lists.items()
    }
    return shown if len(set(shown.values())) == len(shown) else {}


def _shortened(text: str, begin: int) -> str:
    rest = f"...{text[begin:]}" if begin and len(text) > _MOST else text
    return rest if len(rest) <= _MOST else f"{rest[: _MOST - 3]}..."


def label(at: int) -> str:
    """A, B, C ... of the sides in their order."""
    return chr(ord("A") + at)


def advice(item: Item) -> str | None:
    """What to do about an item of the checklist; None: nothing."""
    return _ADVICE.get(item.code) if item.status in ("violated", "unknown") else None


def finding(item: Item) -> str:
    """What was found about an item of the checklist."""
    facts = item.facts
    match item.code:
        case "workload":
            return _workload(item)
        case "boundary" | "hardware":
            worded = _hardware if item.code == "hardware" else _values
            declared = "; ".join(f"{label(at)}: {worded(one)}" for at, one in enumerate(facts.values or ()))
            how = {"price": "the price an hour", "gpu": "the number of accelerators"}
            by = f" Throughput is normalised by {how[facts.normalised]}." if facts.normalised else ""
            return f"{declared}.{by}"
        case "token_count":
            return _counted(item)
        case "same_time":
            return _time(item)
        case "production":
            return "Declared." if item.status == "declared" else "Not declared."
        case "differences":
            return f"{figure(facts.count)} listed."
        case "one_kind":
            if item.status == "violated":
                return "Some are measured, and some simulated."
            return "Simulated: no claim about a real system." if facts.simulated else "All measured."
        case "one_system":
            return within(item, "runs")
    apart = f"Differing: {listed(facts.keys)}." if facts.keys else "The same."
    return f"Interrupted: {listed(facts.interrupted)}. {apart}" if facts.interrupted else apart


def within(item: Item, whose: str) -> str:
    """What differs between the runs of a side. `whose`: what they are called, in lower case."""
    sides = [
        f"{whose.capitalize()} of {label(at)} differ in {listed(keys)}"
        for at, keys in enumerate(item.facts.within or ())
        if keys
    ]
    if sides:
        return f"{'. '.join(sides)}: their mean is of no system."
    if item.status == "unknown":
        return f"Declarations differ within a side, or are missing in some of its {whose}."
    return "No difference within a side."


def _workload(item: Item) -> str:
    facts = item.facts
    if facts.why == "seeds":
        sides = "; ".join(f"{label(at)}: {listed(seeds)}" for at, seeds in enumerate(facts.seeds or ()))
        return f"The seeds differ ({sides}), and so do the requests."
    if facts.why == "fingerprints":
        return f"The requests differ, by their fingerprints, for seed {listed(facts.apart or ())}."
    if facts.why == "plans":
        plans = "agree" if item.status == "declared" else "differ"
        return f"A run has no fingerprint of its requests; the plans {plans}."
    one = (
        " All runs have one seed: their requests repeat, and a cache may know them." if facts.one_seed else ""
    )
    return f"Fingerprints agree, seed by seed.{one}"


def _counted(item: Item) -> str:
    facts = item.facts
    lists = (listed(facts.methods or ()), listed(facts.tokenizers or ()), listed(facts.sources or ()))
    models = " Different models count in tokens of their own." if item.status == "unknown" else ""
    usual = "" if facts.recommended else " The draft recommends cl100k_base as a yardstick across systems."
    return f"{lists[0]}, {lists[1]}, counted by {lists[2]}.{models}{usual}"


def _time(item: Item) -> str:
    facts = item.facts
    spans = "; ".join(
        f"{label(at)} from {moment(written(start))} to {moment(written(end))}"
        for at, (start, end) in enumerate(facts.spans or ())
    )
    how = {
        "virtual": "Time is virtual.",
        "modelled": "Time is virtual, with a modelled client.",
        "interleaved": f"Their runs lie between each other: {spans}.",
        "in turn": f"One side was measured after the other: {spans}.",
    }[facts.how or "in turn"]
    shared = facts.shared or item.status == "satisfied"
    return how if shared else f"{how} Whether they share resources is not declared."


def listed(values: Sequence[object]) -> str:
    """Values with commas between them."""
    return ", ".join(clean(str(value)) for value in values)


def _values(values: Sequence[Mapping[str, str | int | None]]) -> str:
    declared = [
        ", ".join(clean(str(value)) for value in one.values() if value is not None) or "not declared"
        for one in values
    ]
    return " or ".join(declared)


def _hardware(values: Sequence[Mapping[str, str | int | None]]) -> str:
    """Accelerators as declared: `4 x H100, 80 GB each`."""
    return " or ".join(map(_accelerators, values))


def _accelerators(declared: Mapping[str, str | int | None]) -> str:
    keys = ("accelerator", "accelerator_count", "accelerator_memory")
    name, count, memory = (None if (one := declared.get(key)) is None else clean(str(one)) for key in keys)
    if name == "simulated" and count == "0":
        return "simulated, without an accelerator"
    if count == "0":
        found = "no accelerator" if name is None else f"{name}, no accelerator"
    elif count is not None:
        found = f"{count} x {name or 'an accelerator that is not named'}"
    elif name is not None:
        found = f"{name}, number not declared"
    else:
        found = "not declared"
    return found if memory is None else f"{found}, memory {memory}"


def complied(statement: ComplianceStatement) -> str:
    """The label of the comparison itself, and the rules of section 6 that it does not keep."""
    open_ = ", ".join(f"{one.id} ({one.level}) {one.state}" for one in statement.deviations)
    return f"Compliance with draft section 6: {statement.label}. Deviations: {open_ or 'none'}."


def held(reasons: Sequence[str]) -> str:
    """What kept a figure from being called better or worse; beside an interval that holds zero, nothing else matters."""
    return "; ".join(_HELD[why] for why in (reasons if "interval" not in reasons else ["interval"]))


def percent(share: float | None) -> str:
    """A signed share as per cent with one digit after the point; a tenth of it where that would be nothing."""
    if share is None:
        return "-"
    digits = 1 if abs(share) >= 0.0005 or share == 0 else 3
    return f"{share * 100:+.{digits}f} %"


def span(interval: Sequence[float] | None) -> str:
    """An interval of shares as per cent: `-1.2 to 3.4`."""
    return (
        "-"
        if interval is None
        else " to ".join(percent(end).removesuffix(" %").lstrip("+") for end in interval)
    )


def shown(name: str, value: float | None, digits: int = 4) -> str:
    """A figure's value in the unit of its title."""
    return figure(None if value is None else value * TITLES[name].times, digits)


# The conclusion.


def conclusion(
    outcome: Outcome,
    method: ComparisonMethod,
    checklist: Sequence[WordedItem],
    contrasts: Sequence[Contrast],
) -> str:
    """The result of a comparison in one paragraph."""
    if outcome == "not_comparable":
        parts = [f"{one.title}: {one.message} {one.advice}" for one in checklist if one.forbids]
        return "The sides must not be compared. " + " ".join(parts)
    if outcome == "invalid":
        return (
            f"No claim: {listed(method.invalid)} INVALID, so the numbers cannot be believed. "
            "Its own report says why: mend that, and measure again."
        )
    if method.runs < method.least_runs:
        runs = f"{method.runs} run{'' if method.runs == 1 else 's'}"
        return f"No claim: {runs} a side, and a claim needs {method.least_runs} (draft 6.3)."
    return _claims(contrasts)


def _claims(contrasts: Sequence[Contrast]) -> str:
    claims = []
    for contrast in contrasts:
        by: dict[str, list[str]] = {}
        for one in contrast.metrics:
            if one.deciding:
                by.setdefault(TOLERATED if tolerated(one.verdict, one.held) else one.verdict, []).append(
                    _claim(one)
                )
        parts = [f"{verdict} in {joined(by[verdict])}" for verdict in ("worse", "better") if verdict in by]
        if TOLERATED in by:
            parts.append(f"a difference within the threshold in {joined(by[TOLERATED])}")
        if "no_difference" in by:
            parts.append(f"no difference shown in {joined(by['no_difference'])}")
        for verdict in ("not_comparable", "no_claim"):
            if verdict in by:
                parts.append(f"no claim about {joined(by[verdict])}")
        claims.append(f"{contrast.side} against A: {'; '.join(parts) or 'nothing decides'}.")
    if missed := _missed(contrasts):
        claims.append(missed)
    return " ".join(claims)


def deciding_interval(one: Difference) -> Interval | None:
    """The interval of the test that decides."""
    return one.paired if one.test == "paired" else one.welch


def intervals_by(contrast: Contrast) -> str:
    """Which test a contrast's changes have their intervals from: all its figures are decided by the same one."""
    tests = sorted({one.test for one in contrast.metrics if one.test is not None})
    return (
        f"intervals of the change by {' and '.join(_TESTS[test] for test in tests)}"
        if tests
        else "no test was possible"
    )


def could_see(one: Difference) -> str:
    """The detectable difference with its own interval, in per cent: `3.1 (1.9 to 8.9) %`."""
    if one.detectable is None:
        return "-"
    value = percent(one.detectable).lstrip("+")
    if one.detectable_ci95 is None:
        return value
    low, high = (percent(end).lstrip("+").removesuffix(" %") for end in one.detectable_ci95)
    return f"{value.removesuffix(' %')} ({low} to {high}) %"


def _not_shown(one: TitledDifference) -> bool:
    return one.verdict in ("no_difference", "no_claim") and not tolerated(one.verdict, one.held)


def _claim(one: TitledDifference) -> str:
    if one.verdict in ("better", "worse") or tolerated(one.verdict, one.held):
        return f"{one.title} ({percent(one.relative)}, {span(deciding_interval(one))})"
    return one.title


def _missed(contrasts: Sequence[Contrast]) -> str:
    """What could have been there without being seen, for a figure without a difference has not been shown to be the same."""
    worst: dict[str, float] = {}
    for one in (one for contrast in contrasts for one in contrast.metrics):
        if one.deciding and _not_shown(one) and one.detectable:
            least = max(one.detectable, one.floor.value if one.floor else 0.0)
            worst[one.title] = max(worst.get(one.title, 0.0), least)
    if not worst:
        return ""
    parts = [f"{percent(value).lstrip('+')} of {title}" for title, value in worst.items()]
    return f"What could have been seen four times out of five: {joined(parts)}."


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: `a, b and c`."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
