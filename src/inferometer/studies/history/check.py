"""The newest result against the comparable VALID ones before it: which those are, and what the statistics say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from inferometer import __version__
from inferometer.documents.history import (
    CHECK_SCHEMA,
    ChangePoint,
    CheckedFigure,
    CheckedResult,
    CheckMethod,
    CheckOutcome,
    EntryKind,
    HistoryCheck,
    HistoryEntry,
    HistoryFigure,
    Incomparable,
    NumberedEntry,
    RecentResults,
    VersionChange,
)
from inferometer.errors import PlanError, Problem
from inferometer.judge.comparison.loads import alike
from inferometer.judge.history import regression
from inferometer.judge.history.regression import FigureFinding, FigureSeries, Sensitivity
from inferometer.metrics.catalogue import SUCCESS, TASK_SUCCESS
from inferometer.studies.history import selection
from inferometer.studies.history.conditions import UNDECLARED
from inferometer.studies.history.entries import ahead

EXIT_CODES: dict[CheckOutcome, int] = {"no_regression": 0, "too_little": 4, "regression": 6}
CHECKED: tuple[EntryKind, ...] = ("run", "test", "bench")
"""Kinds that are checked: a comparison has its own outcome."""
MOST_LISTED = 10
"""Results that are named with the reason why they are not comparable."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `number`: which entry, None: all of the newest result; `metrics`: what decides, () for the usual;
    `start`: the first entry of the history that counts; `ignored`: conditions that need not agree; `now`: seconds since the
    epoch, None: no result is too new."""

    number: int | None = None
    kind: EntryKind | None = None
    metrics: tuple[str, ...] = ()
    start: int | None = None
    ignored: tuple[str, ...] = ()
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    now: float | None = None


@dataclass(frozen=True, slots=True)
class _Series:
    """A figure over the results that measured it at the same loads, the newest last. `elsewhere`: how many did at others."""

    about: HistoryFigure
    at: list[NumberedEntry]
    values: FigureSeries
    elsewhere: int


@dataclass(slots=True)
class _Subject:
    """A result in the making: the entries it stands against, and its series. `lacking`: whether it has not a figure that
    decides in as many of these as a claim needs; what was not measured, or not judged, is no better than before."""

    at: NumberedEntry
    before: list[NumberedEntry]
    incomparable: list[Incomparable]
    later: tuple[int, ...]
    series: dict[str, _Series] = field(default_factory=dict)
    short: list[CheckedFigure] = field(default_factory=list)
    lacking: bool = False


def check(entries: Sequence[NumberedEntry], question: Question) -> HistoryCheck:
    """The check. Raises PlanError for entries, figures and conditions that there are not."""
    subjects = [_subject(one, entries, question) for one in _subjects(entries, question)]
    _known_metrics(subjects, question)
    selection.known_conditions(entries, question.ignored)
    for number, subject in enumerate(subjects):
        if selection.usable(subject.at.entry):
            _collect(subject, str(number), question)
    series = [one.values for subject in subjects for one in subject.series.values()]
    found = {one.series.name: one for one in regression.examine(series, question.sensitivity)}
    results = tuple(_result(one, found, question.sensitivity.least) for one in subjects)
    return HistoryCheck(
        schema=CHECK_SCHEMA,
        version=__version__,
        outcome=_outcome(results),
        results=results,
        method=_method(question),
    )


def _subjects(entries: Sequence[NumberedEntry], question: Question) -> list[NumberedEntry]:
    if question.number is not None:
        one = selection.numbered(entries, question.number)
        if one.entry.kind not in CHECKED:
            raise PlanError(
                [Problem("N", "is a comparison, which has its own outcome: name a run, test or bench")]
            )
        return [one]
    kinds = CHECKED if question.kind is None else (question.kind,)
    found = selection.Filters().of(one for one in entries if one.entry.kind in kinds)
    now = question.now
    found = [one for one in found if now is None or not ahead(one.entry, now)]
    if not found:
        raise PlanError([Problem("history", "holds no result that can be checked")])
    newest = found[-1].entry
    return [one for one in found if (one.entry.kind, one.entry.id) == (newest.kind, newest.id)]


def _subject(one: NumberedEntry, entries: Sequence[NumberedEntry], question: Question) -> _Subject:
    before: list[NumberedEntry] = []
    apart: list[Incomparable] = []
    alike = selection.same_kind(one, entries)
    place = next(at for at, other in enumerate(alike) if other.number == one.number)
    later = [other.number for other in alike if other.number > one.number]
    if question.number is not None:  # those that began after it are no news then
        later = [other.number for other in alike[:place] if other.number > one.number]
    for other in alike[:place]:
        if question.start is not None and other.number < question.start:
            continue
        keys = selection.differing(one.entry.conditions, other.entry.conditions, question.ignored)
        if keys or not selection.usable(other.entry):
            apart.append(Incomparable(other.number, keys))
        else:
            before.append(other)
    return _Subject(one, before, apart, tuple(sorted(later)))


def _known_metrics(subjects: Sequence[_Subject], question: Question) -> None:
    for name in question.metrics:
        if not any(selection.figure_of(one.at.entry, name) for one in subjects):
            names = sorted({each.name for one in subjects for each in one.at.entry.figures})
            raise PlanError(
                [
                    Problem(
                        "--metric",
                        f"the result has no figure {name[:60]!r}; it has {', '.join(names) or 'none'}",
                    )
                ]
            )


def _collect(subject: _Subject, prefix: str, question: Question) -> None:
    """The series of each figure with a direction; those that are too short apart."""
    entry = subject.at.entry
    for one in entry.figures:
        if one.better is None:
            continue
        deciding = one.deciding
        if question.metrics:
            deciding = any(name in (one.name, f"{entry.part}.{one.name}") for name in question.metrics)
        named = [
            (other, each)
            for other in subject.before
            for each in other.entry.figures
            if (each.name, each.unit, each.scale) == (one.name, one.unit, one.scale)
        ]
        found = [(other, each) for other, each in named if alike(each.loads, one.loads)]
        elsewhere = len(named) - len(found)
        if len(found) < question.sensitivity.least:
            subject.short.append(_unclaimed(one, deciding, len(found), elsewhere))
            continue
        values = np.array([*(each.value for _, each in found), one.value], np.float64)
        counted = _requests(entry) if one.name in (SUCCESS, TASK_SUCCESS) else None
        series = FigureSeries(f"{prefix}:{one.name}", one.better, one.scale, deciding, values, counted)
        at = [*(other for other, _ in found), subject.at]
        subject.series[series.name] = _Series(one, at, series, elsewhere)
    if not question.metrics:
        there = {one.name for one in entry.figures}
        decided = Counter(
            each.name for other in subject.before for each in other.entry.figures if each.deciding
        )
        subject.lacking = any(
            count >= question.sensitivity.least and name not in there for name, count in decided.items()
        )


def _requests(entry: HistoryEntry) -> int:
    """How many requests its success rate is of, as are those of comparable results: by its plan, else by its rate over the
    planned duration; 0: not known."""
    planned, seconds = (_number(entry.conditions.get(f"load.{name}")) for name in ("requests", "duration_s"))
    rate = selection.figure_of(entry, "request_s")
    return int(planned or (seconds * rate.value if rate is not None else 0.0))


def _number(text: str | None) -> float:
    """A positive number of a condition, which others may have written; 0: it is none."""
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return number if 0 < number < 1e9 else 0.0


def _unclaimed(one: HistoryFigure, deciding: bool, n: int, elsewhere: int) -> CheckedFigure:
    assert one.better is not None
    return CheckedFigure(
        name=one.name,
        title=one.title,
        unit=one.unit,
        scale=one.scale,
        better=one.better,
        deciding=deciding,
        newest=one.value,
        n=n,
        usual=None,
        expected=None,
        change=None,
        noise=None,
        detectable=None,
        outliers=0,
        elsewhere=elsewhere,
        recent=(),
        verdict="no_claim",
    )


def _result(subject: _Subject, found: dict[str, FigureFinding], least: int) -> CheckedResult:
    entry = subject.at.entry
    figures = [_figure(one, found[name]) for name, one in subject.series.items()]
    changes = [change for name, one in subject.series.items() for change in _changes(one, found[name])]
    prints = {one.entry.fingerprint for one in (*subject.before, subject.at)}
    known = {*entry.conditions}
    order = {one.name: at for at, one in enumerate(entry.figures)}
    return CheckedResult(
        number=subject.at.number,
        kind=entry.kind,
        id=entry.id,
        part=entry.part,
        started=entry.started,
        verdict=entry.verdict,
        compared=tuple(one.number for one in subject.before),
        later=subject.later,
        incomparable=tuple(subject.incomparable[-MOST_LISTED:]),
        same_requests=None if None in prints or not subject.before else len(prints) == 1,
        versions=tuple(_versions(subject)),
        undeclared=tuple(key for key in UNDECLARED if key not in known),
        figures=tuple(sorted((*figures, *subject.short), key=lambda one: order[one.name])),
        changes=tuple(sorted(changes, key=lambda one: (one.first, one.figure))),
        too_little=_too_little(subject, figures, least),
    )


def _too_little(
    subject: _Subject, figures: Sequence[CheckedFigure], least: int
) -> Literal["few", "loads", "not_valid", "no_figure", "lacking"] | None:
    usable = selection.usable(subject.at.entry)
    if usable and subject.lacking:
        return "lacking"
    if any(one.deciding for one in figures):
        return None
    if not usable:
        return "not_valid"
    short = [one for one in subject.short if one.deciding]
    if any(one.n + one.elsewhere >= least for one in short):
        return "loads"
    return "few" if short else "no_figure"


def _figure(one: _Series, found: FigureFinding) -> CheckedFigure:
    series, about = found.series, one.about
    return CheckedFigure(
        name=about.name,
        title=about.title,
        unit=about.unit,
        scale=about.scale,
        better=series.better,
        deciding=series.deciding,
        newest=about.value,
        n=found.n,
        usual=found.usual,
        expected=found.expected,
        change=found.change,
        noise=found.noise,
        detectable=found.detectable,
        outliers=found.outliers,
        elsewhere=one.elsewhere,
        recent=tuple(
            RecentResults(
                each.k,
                each.n,
                regression.shown_change(series, each.change, each.usual),
                each.p,
                each.p_holm,
            )
            for each in found.recent
        ),
        verdict=found.verdict,
    )


def _changes(one: _Series, found: FigureFinding) -> Iterator[ChangePoint]:
    for level in found.levels:
        better = regression.is_better(found.series, level.change)
        change = regression.shown_change(found.series, level.change, level.usual)
        yield ChangePoint(one.about.name, one.at[level.at].number, change, level.p, better, level.stands)


def _versions(subject: _Subject) -> Iterator[VersionChange]:
    if not subject.before:
        return
    before, now = subject.before[-1].entry.versions, subject.at.entry.versions
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield VersionChange(name, before.get(name), now.get(name))


def _outcome(results: Sequence[CheckedResult]) -> CheckOutcome:
    if any(one.deciding and one.verdict == "worse" for result in results for one in result.figures):
        return "regression"
    return "too_little" if any(one.too_little for one in results) else "no_regression"


def _method(question: Question) -> CheckMethod:
    sensitivity = question.sensitivity
    return CheckMethod(
        alpha=regression.ALPHA,
        alpha_changes=regression.ALPHA_CHANGES,
        least=sensitivity.least,
        last=sensitivity.last,
        long=regression.LONG,
        threshold=sensitivity.threshold,
        recent=regression.RECENT,
        permutations=regression.PERMUTATIONS,
        seed=sensitivity.seed,
        ignored=question.ignored,
    )
