"""Which entries are meant: by filters of a list, by number, and comparable ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inferometer.documents.history import EntryKind, HistoryEntry, HistoryFigure, NumberedEntry
from inferometer.errors import PlanError, Problem
from inferometer.studies.history.conditions import UNDECLARED
from inferometer.studies.history.entries import instant


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list shows: all that is not None has to agree; of texts a part does. `since`: seconds since the epoch."""

    kind: EntryKind | None = None
    part: str | None = None
    model: str | None = None
    engine: str | None = None
    verdict: str | None = None
    since: float | None = None
    last: int | None = None

    def of(self, entries: Iterable[NumberedEntry]) -> list[NumberedEntry]:
        """Those entries, oldest first."""
        found = [one for one in entries if self._takes(one.entry)]
        found.sort(key=_order)
        return found if self.last is None else found[-self.last :]

    def _takes(self, entry: HistoryEntry) -> bool:
        texts = (
            (self.part, entry.part),
            (self.model, entry.conditions.get("sut.model", "")),
            (self.engine, entry.conditions.get("sut.engine", "")),
        )
        return (
            (self.kind is None or entry.kind == self.kind)
            and (self.verdict is None or entry.verdict.casefold() == self.verdict.casefold())
            and (self.since is None or instant(entry) >= self.since)
            and all(wanted is None or wanted.casefold() in text.casefold() for wanted, text in texts)
        )


def numbered(entries: Iterable[NumberedEntry], number: int) -> NumberedEntry:
    """The entry of this number. Raises PlanError."""
    found = next((one for one in entries if one.number == number), None)
    if found is None:
        raise PlanError([Problem("N", f"there is no entry {number}: `inferometer history list` shows them")])
    return found


def differing(one: Mapping[str, str], other: Mapping[str, str], ignored: Collection[str]) -> tuple[str, ...]:
    """The keys of conditions in which two results differ."""
    return tuple(
        key for key in sorted({*one, *other}) if key not in ignored and one.get(key) != other.get(key)
    )


def known_conditions(entries: Iterable[NumberedEntry], ignored: Sequence[str]) -> None:
    """That each condition to ignore is one of some result: a misspelt one would be ignored itself. Raises PlanError."""
    if not ignored:
        return
    known = {*UNDECLARED, *(key for one in entries for key in one.entry.conditions)}
    for key in ignored:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise PlanError([Problem("--ignore", f"no result has a condition {key[:60]!r}{hint}")])


def usable(entry: HistoryEntry) -> bool:
    """Whether its figures may be relied on, and are of a whole result."""
    return entry.verdict == "VALID" and not entry.interrupted


def same_kind(subject: NumberedEntry, entries: Iterable[NumberedEntry]) -> list[NumberedEntry]:
    """Entries of its kind, and of its test, oldest first; itself among them."""
    about = subject.entry
    found = [
        one
        for one in entries
        if one.entry.kind == about.kind and (about.kind != "test" or one.entry.part == about.part)
    ]
    return sorted(found, key=_order)


def figure_of(entry: HistoryEntry, name: str) -> HistoryFigure | None:
    """Its figure of this name, or of this name after its part: `throughput.max_output_tok_s`."""
    return next((one for one in entry.figures if name in (one.name, f"{entry.part}.{one.name}")), None)


def newest_with(name: str, entries: Sequence[NumberedEntry]) -> NumberedEntry:
    """The newest result that has a figure of this name. Raises PlanError, which lists names."""
    found = [one for one in sorted(entries, key=_order) if figure_of(one.entry, name) is not None]
    if found:
        return found[-1]
    names = {
        f"{one.entry.part}.{each.name}" if one.entry.kind == "test" else each.name
        for one in entries
        for each in one.entry.figures
    }
    there = f"there are {', '.join(sorted(names)[:40])}" if names else "there are no figures yet"
    raise PlanError([Problem("METRIC", f"no result has a figure {name[:60]!r}; {there}")])


def _order(one: NumberedEntry) -> tuple[float, int]:
    return instant(one.entry), one.number
