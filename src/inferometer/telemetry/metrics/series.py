"""From a record's scrapes to series: per endpoint the times of its scrapes, and per cell the changes of its value.

Most numbers of most scrapes are those of the scrape before, so a cell keeps only its changes: the index of a scrape and the
value from there on. A scrape whose lines are those of the one before, but for numbers, costs a comparison of each line and the
decoding of the lines that differ; any other is read as a whole.

A scrape that cannot be used is dropped with a code, counted, and leaves no trace in the series:

| code               | meaning                                                                          |
| ------------------ | -------------------------------------------------------------------------------- |
| `clock_backwards`  | its time is not after that of the endpoint's scrape before                       |
| `duplicate_series` | a series stands there twice, and did not in the endpoint's first scrape          |
| `empty`, `html`, `json`, `too_large`, `garbage`, `no_samples` | see `exposition.py`                   |
| others             | what the scraper wrote into the record                                           |

A server whose first scrape repeated a series is taken at its last word of it, with a note.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inferometer.addresses import shown
from inferometer.telemetry.metrics.exposition import (
    ABSENT,
    HISTOGRAM,
    LARGEST_COUNT,
    LARGEST_VALUE,
    NOT_FINITE,
    Cell,
    Family,
    Labels,
    Layout,
    Unusable,
    admitted,
    number,
    parse,
)
from inferometer.telemetry.metrics.record import Scrape

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Drops:
    """What was dropped under one code: how often, and the words of the first time."""

    first: str
    count: int = 0


@dataclass(slots=True)
class Changes:
    """The values of one cell: from scrape `at[i]` on it was `values[i]`. Beyond `largest` a value is as good as not finite."""

    largest: float = LARGEST_VALUE
    at: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def expanded(self, scrapes: int) -> Floats:
        """A value a scrape; NaN where the cell is not there, inf where its number is not finite."""
        if not self.at:
            return np.full(scrapes, ABSENT)
        runs = np.diff(np.append(self.at, scrapes))
        return np.concatenate([np.full(self.at[0], ABSENT), np.repeat(np.asarray(self.values), runs)])


@dataclass(frozen=True, slots=True)
class Series:
    """One series of one endpoint at the scrapes that have it. Times in ns.

    A gauge or counter has `values`; a histogram has `sums`, `counts` and `buckets`, the cumulative counts as they were exposed,
    a row a scrape and a column for each of `les`.
    """

    endpoint_url: str
    family: Family
    labels: Labels
    times: Ints
    values: Floats
    sums: Floats
    counts: Floats
    buckets: Floats
    les: tuple[str, ...]


class Endpoint:
    """What one endpoint said, scrape after scrape."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.families: dict[str, Family] = {}
        self.times = array("q")
        self.updates = array("q")
        """Times of the scrapes whose body was not that of the one before."""
        self.fresh = array("b")
        """Of each scrape, whether it is one of these."""
        self.latencies = array("q")
        """ns; -1 where it is not known."""
        self.phases: list[str | None] = []
        self.drops: dict[str, Drops] = {}
        self.notes: set[tuple[str, str]] = set()
        self._cells: dict[Cell, Changes] = {}
        self._groups: dict[tuple[str, Labels], dict[str, Changes]] = {}
        self._by_name: dict[str, list[Labels]] = {}
        self._layout: Layout | None = None
        self._slots: list[Changes | None] = []
        self._body: str | None = None
        self._repeats: set[Cell] | None = None
        self._last_ns = -1

    def take(self, scrape: Scrape) -> None:
        """Add a scrape, or count why it is dropped."""
        try:
            self._take(scrape)
        except Unusable as why:
            self.drops.setdefault(why.code, Drops(str(why))).count += 1

    def _take(self, scrape: Scrape) -> None:
        if scrape.body is None:
            raise Unusable(scrape.error or "no_body", f"no body: {scrape.error}")
        if scrape.timestamp_ns <= self._last_ns:
            raise Unusable(
                "clock_backwards",
                f"a scrape at {scrape.timestamp_ns} ns came after one at {self._last_ns} ns",
            )
        body = admitted(scrape.body)
        new = body != self._body
        if new and not self._patch(body):
            self._read(body, scrape.content_type)
        self._body = body
        self._last_ns = scrape.timestamp_ns
        self.times.append(scrape.timestamp_ns)
        self.phases.append(scrape.phase)
        self.fresh.append(new)
        if new:
            self.updates.append(scrape.timestamp_ns)
        self.latencies.append(-1 if scrape.latency_ns is None else scrape.latency_ns)

    def _patch(self, body: str) -> bool:
        """Take the numbers of a body with the lines of the one before; False if it has others."""
        layout = self._layout
        if layout is None:
            return False
        lines = body.split("\n")
        if len(lines) != len(layout.lines):
            return False
        prefixes = layout.prefixes
        found: list[tuple[int, float]] = []
        try:
            for at, (line, old) in enumerate(zip(lines, layout.lines, strict=True)):
                if line != old:
                    prefix = prefixes[at]
                    if prefix is None or not line.startswith(prefix):
                        return False
                    found.append((at, number(line[len(prefix) :])))
        except ValueError:
            return False  # the whole reading says what is wrong
        scrape = len(self.times)
        layout.lines = lines
        for at, value in found:
            self._put(self._slots[at], scrape, value)
        return True

    def _put(self, changes: Changes | None, scrape: int, value: float) -> None:
        if changes is None:
            return
        if abs(value) > changes.largest:
            value = NOT_FINITE
        if not changes.at or changes.values[-1] != value:
            changes.at.append(scrape)
            changes.values.append(value)

    def _read(self, body: str, content_type: str | None) -> None:
        """Read a body as a whole. Raises Unusable."""
        layout = parse(body, content_type)
        if self._repeats is None:
            self._repeats = layout.repeated
        if others := layout.repeated - self._repeats:
            cell = min(others)
            raise Unusable(
                "duplicate_series", f"{cell.family}{dict(cell.labels)} stands there more than once"
            )
        for name, family in layout.families.items():
            self.families.setdefault(name, family)
        self.notes |= layout.notes
        self.notes |= {("duplicate_series", cell.family) for cell in layout.repeated}
        if self._layout is not None:
            self._forget(layout)
        self._layout = layout
        new = len(self.times)
        self._slots = [self._slot(layout, cell) for cell in layout.cells]
        for changes, value in zip(self._slots, layout.values, strict=True):
            self._put(changes, new, value)

    def _forget(self, layout: Layout) -> None:
        """Cells of the body before that are not in this one are absent from here on."""
        here = {cell for cell in layout.cells if cell is not None}
        for cell, changes in self._cells.items():
            if cell not in here and not np.isnan(changes.values[-1]):
                self._put(changes, len(self.times), ABSENT)

    def _slot(self, layout: Layout, cell: Cell | None) -> Changes | None:
        """Where a cell's values go; a family keeps the kind, and a histogram the buckets, that it began with."""
        if cell is None or layout.families[cell.family].kind != self.families[cell.family].kind:
            return None
        known = self._cells.get(cell)
        if known is not None:
            return known
        group = self._groups.get((cell.family, cell.labels))
        if group is None:
            group = self._groups[cell.family, cell.labels] = {}
            self._by_name.setdefault(cell.family, []).append(cell.labels)
        first = next(iter(group.values()), None)
        if first is not None and first.at and first.at[0] < len(self.times):
            return None
        largest = LARGEST_VALUE if cell.part in ("value", "sum") else LARGEST_COUNT
        return group.setdefault(cell.part, self._cells.setdefault(cell, Changes(largest)))

    def groups(self) -> Iterator[tuple[Family, Labels, dict[str, Changes]]]:
        """The cells of each series, by part, in the order in which the series were first seen."""
        for (name, labels), parts in self._groups.items():
            yield self.families[name], labels, parts

    def kinds(self) -> dict[str, str]:
        """The kind of each family that has a series."""
        return {name: self.families[name].kind for name in self._by_name}

    @staticmethod
    def les(parts: Iterable[str]) -> list[str]:
        """The buckets among a histogram's parts, by their bounds."""
        return sorted((part for part in parts if part not in ("sum", "count")), key=float)

    def series(self, name: str | None = None) -> Iterator[Series]:
        """The series of one name, or of all, in the order in which they were first seen, each made when it is asked for."""
        times = np.asarray(self.times, dtype=np.int64)
        chosen = self._groups if name is None else [(name, labels) for labels in self._by_name.get(name, [])]
        for key in chosen:
            family, cells = self.families[key[0]], self._groups[key]
            make = self._histogram if family.kind == HISTOGRAM else self._plain
            made = make(family, key[1], cells, times)
            if len(made.times):
                yield made

    def _plain(self, family: Family, labels: Labels, cells: dict[str, Changes], times: Ints) -> Series:
        values = cells["value"].expanded(len(times))
        there = np.isfinite(values)
        none = np.empty(0)
        return Series(self.url, family, labels, times[there], values[there], none, none, np.empty((0, 0)), ())

    def _histogram(self, family: Family, labels: Labels, cells: dict[str, Changes], times: Ints) -> Series:
        """A cell that a scrape lacks counts as 0; one that is not finite drops the histogram of that scrape."""
        les = self.les(cells)
        columns = [
            cells[part].expanded(len(times)) if part in cells else np.full(len(times), ABSENT)
            for part in (*les, "sum", "count")
        ]
        table = np.stack(columns, axis=1)
        there = ~np.isinf(table).any(axis=1) & ~np.isnan(table).all(axis=1)
        table = np.nan_to_num(table[there], nan=0.0)
        return Series(
            self.url,
            family,
            labels,
            times[there],
            np.empty(0),
            table[:, -2],
            table[:, -1],
            table[:, :-2],
            tuple(les),
        )


@dataclass(slots=True)
class Store:
    """Everything a record says, by endpoint in the order of first mention; credentials in a URL end here."""

    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    _by_address: dict[str, Endpoint] = field(default_factory=dict)

    def take(self, scrape: Scrape) -> None:
        """Add one scrape to its endpoint."""
        endpoint = self._by_address.get(scrape.endpoint_url)
        if endpoint is None:
            url = shown(scrape.endpoint_url)
            endpoint = self.endpoints.setdefault(url, Endpoint(url))
            self._by_address[scrape.endpoint_url] = endpoint
        endpoint.take(scrape)


def collect(scrapes: Iterable[Scrape]) -> Store:
    """The store of a record."""
    store = Store()
    for scrape in scrapes:
        store.take(scrape)
    return store
