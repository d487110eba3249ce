"""From a record's scrapes to series: per endpoint the times of its scrapes, and per cell the changes of its value.

Most numbers of most scrapes are those of the scrape before, so a cell keeps only its changes: the index of a scrape and the
value from there on. A scrape whose lines are those of the one before, but for numbers, costs a comparison of each line and the
decoding of the lines that differ; any other is read as a whole.

A scrape that cannot be used is dropped with a code, counted, and leaves no trace in the series:

| code               | meaning                                                                          |
| ------------------ | -------------------------------------------------------------------------------- |
| `clock_backwards`  | its time is not after that of the endpoint's scrape before                       |
| `empty`, `html`, `json`, `too_large`, `garbage`, `no_samples` | see `exposition.py`                   |
| others             | what the scraper wrote into the record                                           |

What a record is worth in memory is bounded for each endpoint, whatever it invents. Each line of what was first seen beyond a
limit is passed over and counted in `skipped`: `too_many_series` beyond MOST_SERIES series or families, CELLS_A_SERIES cells a
series on average, or MOST_CHARACTERS in their names; `too_many_buckets` beyond MOST_BUCKETS of one histogram.

Scrapes of a record that are not in order of time are sorted first (`collect`), so that `clock_backwards` is left to those at
the same instant. A line that is no sample, or behind OpenMetrics' `# EOF`, costs that line, a series that stands there twice
has the value of its last line; all are counted in `skipped`.

Notes name the metrics of which something was passed over: those of `exposition.py`, and

| code                    | meaning                                                                          |
| ----------------------- | -------------------------------------------------------------------------------- |
| `type_changed`          | a later scrape gives the name another type: its samples there are left out       |
| `buckets_changed`       | a later scrape has a bucket that the histogram did not begin with: it is left out |
| `histogram_without_inf` | there is no bucket `+Inf`; estimates take `_count` in its place                  |
| `too_many_notes`        | there are more notes than MOST_NOTES; the name is that of the first left out     |
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inferometer.addresses import shown
from inferometer.telemetry.metrics.exposition import (
    ABSENT,
    COUNTER,
    HISTOGRAM,
    LARGEST_COUNT,
    LARGEST_VALUE,
    NOT_FINITE,
    Cell,
    Count,
    Family,
    Labels,
    Layout,
    Unusable,
    admitted,
    counted,
    number,
    parse,
)
from inferometer.telemetry.metrics.record import Scrape

MOST_SERIES = 50_000
"""Of one endpoint over a run. An engine has hundreds, a gateway or a cluster's exporter thousands; labels that are new in each
scrape would have a report grow without end."""
MOST_BUCKETS = 500
"""Of one histogram. Engines have 10 to 60. The estimator `smooth` takes time with their cube."""
CELLS_A_SERIES = 10
"""On average over MOST_SERIES, each of which may be a histogram."""
MOST_CHARACTERS = 64 << 20
"""Of the names, labels and descriptions of one endpoint's series, and of its notes."""
MOST_NOTES = 1_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
    a row a scrape and a column for each of `les`. `absent` are the endpoint's scrapes before the first of `times` that had the
    rest of its metrics but not this series, and lost no line: a counter or histogram was 0 then.
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
    absent: Ints = field(default_factory=lambda: np.empty(0, np.int64))


class Endpoint:
    """What one endpoint said, scrape after scrape."""

    def __init__(self, url: str, most_series: int = MOST_SERIES) -> None:
        self.url = url
        self._most_series, self._most_cells = most_series, most_series * CELLS_A_SERIES
        self._characters = MOST_CHARACTERS
        """How many more are kept."""
        self.families: dict[str, Family] = {}
        self.times = array("q")
        self.updates = array("q")
        """Times of the scrapes whose body was not that of the one before."""
        self.fresh = array("b")
        """Of each scrape, whether it is one of these."""
        self.latencies = array("q")
        """ns; -1 where it is not known."""
        self.phases: list[str | None] = []
        self.drops: dict[str, Count] = {}
        """Scrapes that gave nothing, by code."""
        self.skipped: dict[str, Count] = {}
        """Lines that gave nothing, by code, over all scrapes."""
        self.reordered = 0
        """Scrapes that the record has after a later one."""
        self._notes: set[tuple[str, str]] = set()
        self._cells: dict[Cell, Changes] = {}
        self._groups: dict[tuple[str, Labels], dict[str, Changes]] = {}
        self._bounds: dict[tuple[str, Labels], dict[float, Changes]] = {}
        """Of histograms that have met a bucket they did not begin with: their buckets by bound."""
        self._by_name: dict[str, list[Labels]] = {}
        self._layout: Layout | None = None
        self._slots: list[Changes | None] = []
        self._body: str | None = None
        self._whole = array("b")
        """Of each scrape, whether it lost no line: else what is not there may have been in that line."""
        self._last_ns = -1

    def take(self, scrape: Scrape) -> None:
        """Add a scrape, or count why it is dropped."""
        try:
            self._take(scrape)
        except Unusable as why:
            counted(self.drops, why.code, str(why))

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
        assert self._layout is not None, "patched or read"
        for code, lines in self._layout.skipped.items():
            counted(self.skipped, code, lines.first, lines.count)
        self._whole.append(not {"bad_line", "after_eof"} & self._layout.skipped.keys())
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
        for name, family in layout.families.items():
            new = name not in self.families and len(self.families) < self._most_series
            if new and self._has_room(name, family.exposed, family.description):
                self.families[name] = family
        for code, name in sorted(layout.notes):
            self._note(code, name)
        slots = [self._slot(layout, cell) for cell in layout.cells]
        self._forget(slots)
        self._layout, self._slots = layout, slots
        for changes, value in zip(slots, layout.values, strict=True):
            self._put(changes, len(self.times), value)

    def _has_room(self, *words: str) -> bool:
        """Whether these may be kept; if so, they count from here on."""
        size = sum(map(len, words))
        if size > self._characters:
            return False
        self._characters -= size
        return True

    def _note(self, code: str, name: str) -> None:
        if (code, name) in self._notes or len(self._notes) > MOST_NOTES:
            return
        if len(self._notes) == MOST_NOTES or not self._has_room(name):
            code, name = "too_many_notes", name[:100]
        self._notes.add((code, name))

    def _forget(self, slots: list[Changes | None]) -> None:
        """Cells of the body before that are not in this one are absent from here on."""
        here = {id(changes) for changes in slots}
        for changes in self._slots:
            if changes is not None and id(changes) not in here and not np.isnan(changes.values[-1]):
                self._put(changes, len(self.times), ABSENT)

    def _slot(self, layout: Layout, cell: Cell | None) -> Changes | None:
        """Where a cell's values go; a family keeps the kind, and a histogram the buckets, that it began with."""
        if cell is None:
            return None
        family = self.families.get(cell.family)
        if family is not None and layout.families[cell.family].kind != family.kind:
            self._note("type_changed", cell.family)
            return None
        known = self._cells.get(cell)
        if known is not None:
            return known
        key = cell.family, cell.labels
        group = self._groups.get(key)
        if group is None:
            if family is None or not self._may_begin(cell.labels):
                counted(
                    layout.skipped,
                    "too_many_series",
                    f"{cell.family[:100]}: beyond the limits of an endpoint",
                )
                return None
            group = self._groups[key] = {}
            self._by_name.setdefault(cell.family, []).append(cell.labels)
        first = next(iter(group.values()), None)
        if first is not None and first.at and first.at[0] < len(self.times):
            same = self._respelled(key, cell.part)
            if same is None:
                self._note("buckets_changed", cell.family)
            return same
        bucket = cell.part not in ("value", "sum", "count")
        buckets = len(group) - ("sum" in group) - ("count" in group)
        if bucket and (buckets >= MOST_BUCKETS or len(self._cells) >= self._most_cells):
            counted(layout.skipped, "too_many_buckets", f"{cell.family[:100]}: beyond {buckets:,} buckets")
            return None
        largest = LARGEST_VALUE if cell.part in ("value", "sum") else LARGEST_COUNT
        return group.setdefault(cell.part, self._cells.setdefault(cell, Changes(largest)))

    def _may_begin(self, labels: Labels) -> bool:
        """Whether one more series has room."""
        return (
            len(self._groups) < self._most_series
            and len(self._cells) < self._most_cells
            and self._has_room(*(word for label in labels for word in label))
        )

    def _respelled(self, key: tuple[str, Labels], part: str) -> Changes | None:
        """The bucket of a histogram that has the same bound in another spelling, such as 1 and 1.0."""
        if part in ("sum", "count"):
            return None
        bounds = self._bounds.get(key)
        if bounds is None:
            bounds = self._bounds[key] = {}
            group = self._groups[key]
            for le in self.les(group):
                bounds.setdefault(float(le), group[le])
        return bounds.get(float(part))

    def groups(self) -> Iterator[tuple[Family, Labels, dict[str, Changes]]]:
        """The cells of each series, by part, in the order in which the series were first seen."""
        for (name, labels), parts in self._groups.items():
            yield self.families[name], labels, parts

    def noted(self) -> set[tuple[str, str]]:
        """A code and a metric's name for everything that was passed over."""
        without = {
            ("histogram_without_inf", family.name)
            for family, _, parts in self.groups()
            if family.kind == HISTOGRAM and (les := self.les(parts)) and np.isfinite(float(les[-1]))
        }
        return self._notes | without

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
        absent = self._absent(times, cells) if family.kind == COUNTER else times[:0]
        return Series(
            self.url, family, labels, times[there], values[there], none, none, np.empty((0, 0)), (), absent
        )

    def _absent(self, times: Ints, cells: dict[str, Changes]) -> Ints:
        """The scrapes before a series was first there that lost no line."""
        first = min(one.at[0] for one in cells.values() if one.at)
        found: Ints = times[:first][np.asarray(self._whole[:first], dtype=bool)]
        return found

    def _histogram(self, family: Family, labels: Labels, cells: dict[str, Changes], times: Ints) -> Series:
        """A cell that a scrape lacks counts as 0, unless a line of that scrape was lost: that drops the histogram there, as a
        cell that is not finite does."""
        les = self.les(cells)
        columns = [
            cells[part].expanded(len(times)) if part in cells else np.full(len(times), ABSENT)
            for part in (*les, "sum", "count")
        ]
        table = np.stack(columns, axis=1)
        missing, whole = np.isnan(table), np.asarray(self._whole, dtype=bool)
        there = ~np.isinf(table).any(axis=1) & ~missing.all(axis=1) & (whole | ~missing.any(axis=1))
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
            self._absent(times, cells),
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
    """The store of scrapes, in whatever order."""
    held = list(scrapes)
    return collect_from(lambda: held)


def collect_from(read: Callable[[], Iterable[Scrape]], urls: Iterable[str] = ()) -> Store:
    """The store of a record that can be read several times. `urls`: endpoints that are known without it.

    Scrapes are taken as they are read. Only a record that has one after a later one of the same endpoint is read again, held
    in memory and sorted; of those at one instant the first counts.
    """
    store = _collected(read(), urls)
    late = {url: _backwards(one) for url, one in store.endpoints.items() if _backwards(one)}
    if not late:
        return store
    store = _collected(sorted(read(), key=lambda one: one.timestamp_ns), urls)
    for url, found in late.items():
        store.endpoints[url].reordered = found - _backwards(store.endpoints[url])
    return store


def _backwards(endpoint: Endpoint) -> int:
    """How many of its scrapes were not later than the one before."""
    drops = endpoint.drops.get("clock_backwards")
    return 0 if drops is None else drops.count


def _collected(scrapes: Iterable[Scrape], urls: Iterable[str]) -> Store:
    store = Store()
    for url in urls:
        store.endpoints[url] = Endpoint(url)
    for scrape in scrapes:
        store.take(scrape)
    return store
