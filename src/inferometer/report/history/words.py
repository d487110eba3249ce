"""The sentences of a history's check, for every medium."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.documents.history import (
    ChangePoint,
    CheckedFigure,
    CheckedResult,
    CheckMethod,
    CheckOutcome,
    HistoryCheck,
    HistoryEntry,
    NumberedEntry,
    Scale,
)
from inferometer.judge.comparison.loads import SHARE
from inferometer.metrics.statistics import Interval
from inferometer.report.figures import ABSENT, clean, figure, moment

OUTCOMES: dict[CheckOutcome, str] = {
    "regression": "REGRESSION",
    "no_regression": "NO REGRESSION",
    "too_little": "INCONCLUSIVE",
}
VERDICTS = {"worse": "worse", "better": "better", "no_difference": "as usual", "no_claim": "no claim"}
_WHY = {
    "not_valid": "the result is {verdict}, so its figures cannot be held against others",
    "loads": "{elsewhere} of the results before it measured the figures that decide at other absolute loads, since the "
    "loads of this test are percentages of what the system carried; fewer than {least} are left",
    "few": "{n} comparable VALID results before it; {least} are needed",
    "no_figure": "the result has no figure that decides",
    "lacking": "the result lacks a figure that decides and that the results before it have",
}


def name_of(one: NumberedEntry) -> str:
    """What a list calls a result: its test or engine, else its name."""
    return clean(one.entry.part or one.entry.name)


def change(value: float | None, scale: Scale, unit: str) -> str:
    """A change with its sign: in per cent, in percentage points, or in the figure's unit."""
    if value is None:
        return ABSENT
    shown = value * 100 if scale == "ratio" else value
    sign = "+" if shown > 0 else ""
    behind = "%" if scale == "ratio" else "points" if scale == "points" else clean(unit)
    return f"{sign}{figure(shown, 3, trim=True)} {behind}".strip()


def width(value: float | None, scale: Scale, unit: str) -> str:
    """The same of a size, without a sign."""
    return change(value, scale, unit).removeprefix("+")


def span(bounds: Interval | None) -> str:
    """An interval as `low to high`."""
    return ABSENT if bounds is None else f"{figure(bounds[0])} to {figure(bounds[1])}"


def least_p(one: CheckedFigure) -> str:
    """The smallest corrected p of a figure."""
    values = [each.p_holm for each in one.recent]
    return ABSENT if not values else "< 0.001" if min(values) < 0.001 else figure(min(values), 2)


def verdict_of(entry: HistoryEntry) -> str:
    """The verdict, and what a reader must know beside it."""
    beside = [
        word
        for word, holds in (
            ("cut short", entry.interrupted),
            ("simulated", entry.conditions.get("instrument.simulated") == "true"),
        )
        if holds
    ]
    return ", ".join((clean(entry.verdict), *beside))


def heading(one: CheckedResult) -> str:
    """Which result was checked, against how many."""
    part = f" {clean(one.part)}" if one.part else ""
    return (
        f"{one.kind}{part} {clean(one.id)} (entry {one.number}, {moment(one.started)}, {clean(one.verdict)})"
    )


def against(one: CheckedResult) -> str:
    """What it stands against."""
    if not one.compared:
        return "No comparable VALID result before it."
    count = len(one.compared)
    plural = "s" if count > 1 else ""
    line = f"{count} comparable VALID result{plural} before it (entries {_ranges(one.compared)})"
    used = max((each.n + each.outliers for each in one.figures if each.usual is not None), default=count)
    line = f"Against {line}" if used >= count else f"Against at most {used} of {line}"
    seeds = {
        True: "; all sent the same requests",
        False: "; seeds differ, which is part of the noise",
        None: "",
    }
    return f"{line}{seeds[one.same_requests]}."


def _ranges(numbers: tuple[int, ...]) -> str:
    if len(numbers) <= 4:
        return ", ".join(map(str, numbers))
    return f"{numbers[0]}, {numbers[1]} ... {numbers[-1]}"


def remarks(one: CheckedResult, method: CheckMethod) -> Iterator[str]:
    """What a reader has to know beside the figures."""
    if one.too_little is not None:
        n = max((each.n for each in one.figures if each.deciding), default=len(one.compared))
        elsewhere = max((each.elsewhere for each in one.figures if each.deciding), default=0)
        facts = {"verdict": one.verdict, "n": n or "no", "least": method.least, "elsewhere": elsewhere}
        yield f"No claim: {_WHY[one.too_little].format(**facts)}."
    if one.later:
        yield (
            f"Entries that came to the index later are not newer by their dates, or are dated ahead of now: "
            f"{_ranges(one.later)}. Name one to check it."
        )
    for other in one.incomparable:
        why = ", ".join(map(clean, other.keys)) or "not VALID, or interrupted"
        yield f"Entry {other.number} is left out: {'differs in ' if other.keys else ''}{why}."
    if one.versions:
        changed = "; ".join(
            f"{clean(each.name)} {clean(each.before or ABSENT)} -> {clean(each.now or ABSENT)}"
            for each in one.versions
        )
        yield f"Changed since the result before: {changed}."
    if one.undeclared:
        names = ", ".join(key.partition(".")[2] for key in one.undeclared)
        yield f"Not declared: {names}. A difference there would not be noticed."
    apart = {each.name: each.elsewhere for each in one.figures if each.elsewhere}
    if apart and one.too_little != "loads":
        counts = ", ".join(f"{clean(name)} {count}" for name, count in apart.items())
        yield f"Results that measured a figure at absolute loads more than {SHARE:.0%} away, left out of it: {counts}."
    left = {each.name: each.outliers for each in one.figures if each.outliers}
    if left:
        counts = ", ".join(f"{clean(name)} {count}" for name, count in left.items())
        yield f"Results far from all others, without a say in the noise: {counts}."


def level_change(one: ChangePoint, figures: dict[str, CheckedFigure]) -> str:
    """A change point in words."""
    about = figures[one.figure]
    word = "better" if one.better else "worse"
    stands = "" if one.stands else "; it is not the last change, or not recent, and decides nothing"
    by = "from 0" if one.change is None else f"by {change(one.change, about.scale, about.unit)}"
    return (
        f"{clean(one.figure)}: the level changed at entry {one.first} {by} "
        f"({word}, p {figure(one.p, 2)}){stands}."
    )


def recent(one: CheckedFigure) -> str:
    """What the newest results of a figure that is worse or better show."""
    parts = [
        f"the newest {each.k if each.k > 1 else 'result'}: {change(each.change, one.scale, one.unit)}, "
        f"p {'< 0.001' if each.p_holm < 0.001 else figure(each.p_holm, 2)}"
        for each in one.recent
    ]
    return f"{clean(one.name)} is {VERDICTS[one.verdict]}: {'; '.join(parts)}."


def conclusion(document: HistoryCheck) -> str:
    """The check in one sentence."""
    figures = [one for result in document.results for one in result.figures if one.deciding]
    if document.outcome == "regression":
        worse = ", ".join(dict.fromkeys(clean(one.name) for one in figures if one.verdict == "worse"))
        return f"Worse than the results before: {worse}."
    if document.outcome == "too_little":
        return "There is too little history for a claim."
    return "No deciding figure is worse than the results before, beyond their noise and the threshold."


def method(document: HistoryCheck) -> str:
    """How the verdicts come about."""
    about = document.method
    found = (
        f"Noise between results from at most {about.last} before the newest. Worse: p below {about.alpha:g} (two-sided, "
        f"Student's t, Holm over all deciding figures), or a change of level that still stands (E-divisive, "
        f"{about.permutations:,} permutations, p below {about.alpha_changes:g} over all, from {about.long} results on); and "
        f"by more than {about.threshold * 100:.3g} %."
    )
    return f"{found} Ignored: {', '.join(map(clean, about.ignored))}." if about.ignored else found
