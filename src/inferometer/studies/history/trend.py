"""One figure over time: comparable results with their values, intervals and verdicts, and where the level changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferometer.documents.history import NumberedEntry, Trend, TrendPoint
from inferometer.judge.comparison.loads import alike
from inferometer.judge.history.change_points import Permutations, change_points
from inferometer.judge.history.regression import ALPHA_CHANGES, LONG, PERMUTATIONS
from inferometer.studies.history import selection
from inferometer.studies.history.entries import instant

MOST = 500
"""Points: the newest ones are kept."""


def trend(
    entries: Sequence[NumberedEntry], name: str, number: int | None, ignored: Sequence[str], last: int = MOST
) -> Trend:
    """The figure over all results that are comparable with entry `number`, None: with the newest that has it. Results that are
    not VALID are points too, and have no say in where the level changed. Raises PlanError."""
    chosen = entries if number is None else [selection.numbered(entries, number)]
    subject = selection.newest_with(name, chosen)
    about = selection.figure_of(subject.entry, name)
    assert about is not None
    selection.known_conditions(entries, ignored)
    points, left, elsewhere = [], 0, 0
    for one in selection.same_kind(subject, entries):
        found = next((each for each in one.entry.figures if each.name == about.name), None)
        if found is None:
            continue
        if selection.differing(subject.entry.conditions, one.entry.conditions, ignored):
            left += 1
            continue
        if not alike(found.loads, about.loads):
            elsewhere += 1
            continue
        entry = one.entry
        points.append(
            TrendPoint(
                one.number, instant(entry), entry.started, found.value, found.ci95, selection.usable(entry)
            )
        )
    points = points[-min(last, MOST) :]
    valid = [one for one in points if one.valid]
    values = np.array([one.value for one in valid], np.float64)
    if about.scale == "ratio" and (values > 0).all():
        values = np.log(values)
    splits = change_points(values, Permutations(PERMUTATIONS, ALPHA_CHANGES)) if len(values) >= LONG else []
    return Trend(
        name=about.name,
        title=about.title,
        unit=about.unit,
        better=about.better,
        kind=subject.entry.kind,
        part=subject.entry.part,
        model=subject.entry.conditions.get("sut.model"),
        engine=subject.entry.conditions.get("sut.engine"),
        points=tuple(points),
        changes=tuple(valid[one.at].number for one in splits),
        incomparable=left,
        elsewhere=elsewhere,
    )
