"""The text a server exposes: Prometheus' classic format and OpenMetrics, from lines to cells.

A cell is one number of one series: a gauge's or counter's value, a histogram's sum, its count, or the count of one of its
buckets. What one line means depends on the `# TYPE` lines, so a body is read as a whole once; while the next bodies have the
same lines with other numbers, only the numbers are read again (`series.py`).

| type                       | is taken as                                                                           |
| -------------------------- | ------------------------------------------------------------------------------------- |
| counter                    | counter, without the `_total` of its name                                             |
| gauge                      | gauge                                                                                 |
| histogram                  | histogram; the native kind, whose value is in braces, is passed over with a note      |
| untyped, unknown, none     | unknown: treated as a gauge                                                           |
| info                       | gauge of value 1 under the name of its sample, which ends in `_info`                  |
| stateset                   | gauge, a series a state                                                               |
| summary, gaugehistogram    | passed over with a note                                                               |
| name in `_created`, `_uptime`, or with `_uptime_` | passed over                                                    |

In OpenMetrics, `# TYPE x counter` is the type of `x_total`; in the classic format it is not, and `x_total` is a gauge then
(note `counter_as_gauge`).

A line that is no sample is skipped and counted, and so is a sample that a later line of the same body repeats. So are lines
behind OpenMetrics' `# EOF`: nothing may follow it, and whatever does, such as what a proxy appends, is none of the server's.
What drops a whole body is `Unusable`: among others, more lines that are no samples than samples. What drops one number of it is
a value that is not finite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
"""Names and values, by name."""
COUNTER, GAUGE, HISTOGRAM, UNKNOWN = "counter", "gauge", "histogram", "unknown"
LARGEST = 128 << 20
"""Characters of a body: what the scraper may be told to read (plan/server_metrics.py)."""
ABSENT = float("nan")
"""The value of a cell that a body does not have."""
NOT_FINITE = float("inf")
"""The value of a cell whose number in the body is not finite, or so large that nothing can be computed of it."""
MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 14, 512
"""Label blocks that are remembered as they were read, and the characters of the longest of these: 8 Mi characters in all,
whatever a server sends."""
LONGEST_HELP = 1_000
"""Characters that are kept of a family's HELP: tables repeat it in the row of each series."""
LONGEST_BOUND = 64
"""Characters of a bucket's `le`."""
LARGEST_VALUE = 1e30
LARGEST_COUNT = 2.0**53
"""Of a histogram's observations: the whole numbers that a float holds."""

PARTS = {
    "counter": ("", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "summary": ("", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount", "_created"),
    "info": ("_info", ""),
}
TYPES = {"counter": COUNTER, "gauge": GAUGE, "histogram": HISTOGRAM, "info": GAUGE, "stateset": GAUGE}
PASSED_OVER = ("summary", "gaugehistogram")

# Possessive throughout: a long line that is no sample must not be tried in every way.
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_SAMPLE = re.compile(
    rf"[ \t]*+({_NAME})?[ \t]*+(\{{(?:[^\"}}]|{_QUOTED})*+\}})?[ \t]*+(?=[^ \t{{}}\",=])", re.ASCII
)
_LABEL = re.compile(
    rf"[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*|{_QUOTED})[ \t]*+(?:=[ \t]*+({_QUOTED}))?[ \t]*+(?:,|$)", re.ASCII
)
_NATIVE = re.compile(
    rf"[ \t]*+({_NAME})[ \t]*+(?:\{{(?:[^\"}}]|{_QUOTED})*+\}})?[ \t]*+\{{\s*count\s*:.*\}}", re.ASCII
)
_QUOTED_NAME = re.compile(rf"\{{{_QUOTED}\s*[,}}]")
"""How a metric begins whose name is not a plain word; JSON has a colon there."""
_LE = re.compile(r"[+-]?(?:Inf|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n"}


class Unusable(Exception):
    """A body of which nothing can be used. `code` is one word for counting, the text says what was met where."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class Cell(NamedTuple):
    """Which number of which series: `part` is `value`, `sum`, `count`, or a bucket's `le` as it was written."""

    family: str
    labels: Labels
    part: str


@dataclass(slots=True)
class Family:
    """A metric: the name it is kept under, the name exposed (from which its unit is inferred), its kind and its HELP."""

    name: str
    exposed: str
    kind: str
    description: str = ""


@dataclass(slots=True)
class Count:
    """How often something was met, and the words of the first time."""

    first: str
    count: int = 0


def counted(counts: dict[str, Count], code: str, words: str, number: int = 1) -> None:
    """Count something under a code; the words are kept the first time."""
    counts.setdefault(code, Count(words)).count += number


@dataclass(slots=True)
class Layout:
    """A body, line by line: what stands before the number (None: no number), which cell it is (None: of none), the number.

    `skipped` are lines that gave nothing, by code: `bad_line`, no sample; `duplicate_series`, of a cell that a later line gives
    again; `after_eof`, behind OpenMetrics' end. `notes` are what was passed over: a code and a name.
    """

    lines: list[str]
    prefixes: list[str | None] = field(default_factory=list)
    cells: list[Cell | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    families: dict[str, Family] = field(default_factory=dict)
    skipped: dict[str, Count] = field(default_factory=dict)
    notes: set[tuple[str, str]] = field(default_factory=set)


def is_openmetrics(body: str, content_type: str | None) -> bool:
    """Whether the sender says so: in the content type, or by OpenMetrics' last line, which is sent as `text/plain` too; lines
    may follow it."""
    if content_type and content_type.partition(";")[0].strip().lower() == "application/openmetrics-text":
        return True
    return body[-256:].rstrip().endswith("\n# EOF") or "\n# EOF\n" in body or "\n# EOF\r\n" in body


def admitted(body: str) -> str:
    """The text behind a byte order mark, if any. Raises Unusable for what is no exposition at first sight: too much, nothing,
    HTML, JSON."""
    if len(body) > LARGEST:
        raise Unusable("too_large", f"{len(body)} characters; more than {LARGEST} are not read")
    body = body.removeprefix("\ufeff")
    start = body[:200].lstrip()
    if not start and not body.strip():
        raise Unusable("empty", "the body is empty")
    if start.startswith("<"):
        raise Unusable("html", "the body is HTML or XML, not metrics")
    if start.startswith(("{", "[")) and not _QUOTED_NAME.match(start):
        raise Unusable("json", "the body is JSON, not metrics")
    return body


def parse(body: str, content_type: str | None = None) -> Layout:
    """Read a body. Raises Unusable."""
    body = admitted(body)
    layout = Layout(body.split("\n"))
    reader = _Reader(layout, is_openmetrics(body, content_type))
    for number, line in enumerate(layout.lines, 1):
        reader.take(number, line)
    reader.close()
    bad = layout.skipped.get("bad_line")
    if bad is not None and bad.count > sum(prefix is not None for prefix in layout.prefixes):
        raise Unusable("garbage", bad.first)
    if not layout.families and not layout.notes:
        raise Unusable("no_samples", "the body has no sample")
    return layout


def number(text: str) -> float:
    """The value at the head of what follows a sample's name and labels; a timestamp and an exemplar may come after it.

    Raises ValueError where there is none.
    """
    words = text.partition(" # ")[0].split()
    if not 1 <= len(words) <= 2 or "_" in text.partition("#")[0]:
        raise ValueError(text)
    value = float(words[0])
    if len(words) == 2:
        float(words[1])
    return value if isfinite(value) else NOT_FINITE


class _Reader:
    """Takes lines in their order and fills a layout."""

    def __init__(self, layout: Layout, openmetrics: bool) -> None:
        self._layout = layout
        self._openmetrics = openmetrics
        self._types: dict[str, str] = {}
        self._help: dict[str, str] = {}
        self._owner: dict[str, tuple[str, str]] = {}
        """From a sample's name to the declared name it belongs to, and the suffix between them."""
        self._positions: dict[str, dict[Cell, int]] = {}
        """By family, where its cells stand: a family that loses its name is dropped without a look at all others."""
        self._kept: dict[str, Family | None] = {}
        """From a declared name to its family, None where it is passed over."""
        self._ended = False

    def take(self, at: int, line: str) -> None:
        """One line."""
        layout = self._layout
        prefix, cell, value = None, None, ABSENT
        stripped = line.strip()
        if self._ended:
            if stripped:
                counted(layout.skipped, "after_eof", f"line {at} is behind # EOF: {stripped[:60]!r}")
        elif stripped.startswith("#"):
            self._ended = self._openmetrics and stripped == "# EOF"
            self._comment(stripped)
        elif stripped:
            prefix, cell, value = self._sample(at, line)
        if cell is not None:
            positions = self._positions.setdefault(cell.family, {})
            if cell in positions:
                counted(layout.skipped, "duplicate_series", f"line {at} repeats {line.strip()[:60]!r}")
                layout.notes.add(("duplicate_series", cell.family))
                layout.cells[positions[cell]] = None
            positions[cell] = at - 1
        layout.prefixes.append(prefix)
        layout.cells.append(cell)
        layout.values.append(value)

    def close(self) -> None:
        """Of two families under one name, the later in the body is kept."""
        layout = self._layout
        by_name = {id(family) for family in layout.families.values()}
        lost = {family.exposed for family in self._kept.values() if family and id(family) not in by_name}
        if lost:
            layout.notes |= {("name_taken", name) for name in lost}

    def _comment(self, line: str) -> None:
        """HELP and TYPE; every other comment says nothing to us."""
        words = line[1:].split(None, 2)
        if len(words) < 2 or words[0] not in ("HELP", "TYPE"):
            return
        name = _unquote(words[1]) if words[1].startswith('"') else words[1]
        rest = words[2] if len(words) > 2 else ""
        if words[0] == "HELP":
            self._help[name] = _unescape(rest[: 2 * LONGEST_HELP])[:LONGEST_HELP]
            family = self._kept.get(name)
            if family:
                family.description = self._help[name]
            return
        kind = rest.strip().lower()
        self._types[name] = kind
        parts = (
            ("_total", "", "_created") if kind == "counter" and self._openmetrics else PARTS.get(kind, ("",))
        )
        for part in parts:
            self._owner[name + part] = (name, part)

    def _sample(self, at: int, line: str) -> tuple[str | None, Cell | None, float]:
        """What stands before the number, its cell, and the number; nothing of a line that is no sample."""
        found = _SAMPLE.match(line)
        try:
            if found is None or not (found[1] or found[2]):
                raise ValueError(line)
            known = _remembered if len(found[2] or "") <= LONGEST_REMEMBERED else _labels
            name, labels = known(found[1], found[2])
            value = number(line[found.end() :])
        except ValueError:
            native = _NATIVE.match(line)
            if native:
                self._layout.notes.add(("native_histogram", native[1]))
                return line, None, ABSENT
            counted(self._layout.skipped, "bad_line", f"garbage at line {at}: {line.strip()[:60]!r}")
            return None, None, ABSENT
        return found[0], self._cell(name, labels), value

    def _cell(self, sample: str, labels: Labels) -> Cell | None:
        """The cell of a sample, None where it is passed over."""
        declared, suffix = self._owner.get(sample, (sample, ""))
        kind = self._types.get(declared, "unknown")
        if suffix == "_created":
            return None
        if declared not in self._kept:
            self._kept[declared] = self._family(declared, kind)
            if kind == "unknown" and self._types.get(sample.removesuffix("_total")) == "counter":
                self._layout.notes.add(("counter_as_gauge", sample))
        family = self._kept[declared]
        if family is None or self._layout.families.get(family.name) is not family:
            return None
        if family.kind != HISTOGRAM:
            return Cell(family.name, labels, "value")
        part = suffix[1:]
        if part == "bucket":
            part = next((value for key, value in labels if key == "le"), "")
            if len(part) > LONGEST_BOUND or not _LE.fullmatch(part):
                return None
            labels = tuple(pair for pair in labels if pair[0] != "le")
        elif not part:
            self._layout.notes.add(("histogram_without_part", family.name))
            return None
        return Cell(family.name, labels, part)

    def _family(self, declared: str, kind: str) -> Family | None:
        """A family that its first sample makes, under its name; None where it is passed over."""
        layout = self._layout
        name = exposed = declared
        if kind == "counter":
            name = declared.removesuffix("_total")
            if self._openmetrics and not declared.endswith("_total"):
                exposed = f"{declared}_total"
        elif kind == "info":
            name = exposed = declared if declared.endswith("_info") else f"{declared}_info"
        if name.endswith(("_created", "_uptime")) or "_uptime_" in name:
            layout.notes.add(("uptime_or_created", name))
            return None
        if kind in PASSED_OVER:
            layout.notes.add((kind, name))
            return None
        for at in self._positions.pop(name, {}).values():
            layout.cells[at] = None
        family = Family(name, exposed, TYPES.get(kind, UNKNOWN), self._help.get(declared, ""))
        layout.families[name] = family
        return family


def _labels(name: str | None, block: str | None) -> tuple[str, Labels]:
    """The sample's name, which may stand quoted among the labels, and its labels. Raises ValueError."""
    labels: dict[str, str] = {}
    text = block[1:-1].strip() if block else ""
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise ValueError(text)
        key = _unquote(found[1]) if found[1].startswith('"') else found[1]
        if found[2] is not None:
            labels[key] = _unquote(found[2])
        elif name is None and found[1].startswith('"'):
            name = key
        else:
            raise ValueError(text)
        at = found.end()
    if name is None:
        raise ValueError(text)
    return name, tuple(sorted(labels.items()))


_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_labels)
"""A server whose lines change their order has to be read as a whole each time."""


def _unquote(text: str) -> str:
    return _unescape(text[1:-1])


def _unescape(text: str) -> str:
    return text if "\\" not in text else _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)
