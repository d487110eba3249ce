"""What a test comes to, as data: values, tables in the draft's own columns, figures.

A cell is a number, a text, or None: not measured. An empty text: it has no meaning there. `capacity` marks what tells how much
a system can take before it fails: what `--redact capacity` leaves out (draft 7.1). `at` is the load level that a title or a
label is of, in words (`12 requests/s`): it is shown behind the label, and left out with what is marked so.
"""

from __future__ import annotations

from typing import Literal

from inferometer.documents.part import Part

Cell = float | int | str | bool | None
Interval = tuple[float, float]


class Column(Part, frozen=True):
    """A column: its key, its heading, and the unit of its numbers (`ms`, `tok/s`, `%`, "" for plain)."""

    name: str
    label: str
    unit: str = ""
    capacity: bool = False


class Series(Part, frozen=True):
    """A line, or a group of bars: as many x as y. `x` may be names (bars). `ci`: the 95 % interval of each y, or empty where
    none has one; `few`: which of y, from 0, are percentiles of too few samples."""

    label: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    at: str = ""
    ci: tuple[Interval | None, ...] = ()
    few: tuple[int, ...] = ()


class Mark(Part, frozen=True):
    """Something to point out: a vertical line at `x`, a horizontal one at `y`, or a point at both."""

    label: str
    x: float | None = None
    y: float | None = None


class Axis(Part, frozen=True):
    """An axis: what it shows, its unit, and whether it is logarithmic."""

    label: str
    unit: str = ""
    log: bool = False
    capacity: bool = False


class Figure(Part, frozen=True):
    """A picture: `lines` joins points in their order (a throughput-latency curve may turn back), `points` does not, `bars`
    are grouped by series, `cdf` steps up."""

    name: str
    title: str
    kind: Literal["lines", "points", "bars", "cdf"]
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    capacity: bool = False
