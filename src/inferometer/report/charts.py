"""A chart as SVG.

| kind        | draws                                                                               |
| ----------- | ----------------------------------------------------------------------------------- |
| `lines`     | points joined in their order: a throughput-latency curve may turn back; null is a gap |
| `points`    | a marker each                                                                       |
| `bars`      | groups of bars, named on the x axis                                                 |
| `cdf`       | steps up                                                                            |
| `histogram` | `x` are edges, `y` the counts between them and a closing 0; the first series is filled |
| `timeline`  | a line without markers from zero, null is skipped; a single series is filled        |
| `spikes`    | a stroke from zero for every `y` above it                                           |
| `dots`      | a small dot each: for many points                                                   |

Lines, points and bars may carry intervals (`spans`), drawn as strokes with caps. What of them lies below zero is cut. Markers
of percentiles with too few samples (`few` of a series) are hollow.

Series differ by colour, dash and marker, so that no colour has to be told from another. What has no place on its axis (null,
zero on a logarithm) is left out. A chart reads the same without scripts.

Linear axes are ticked at multiples of 1, 2 or 5 times a power of ten; logarithmic ones at 1, 2 and 5 of each decade, at fewer
or more where the axis is long or short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal, TypeGuard

from inferometer.documents.results import Axis, Figure, Mark, Series
from inferometer.report.figures import UNMEASURED, clean, figure

WIDTH, HEIGHT = 560, 320
TOP, RIGHT, BOTTOM = 46, 24, 56
CHAR = 9.2
"""Mean width of a character of the 17 px that the page takes on a narrow screen; on a wide one there is room to spare."""
STYLES = 6
MARKERS_UP_TO = 40
"""Points of a series that are each marked."""
Box = tuple[float, float, float, float]
Point = tuple[float, float]
Spans = tuple[tuple[float, float] | None, ...]
"""An interval for each point of a series; None: it has none."""

Kind = Literal["lines", "points", "bars", "cdf", "histogram", "timeline", "spikes", "dots"]
_FROM_ZERO = ("cdf", "histogram", "timeline", "spikes", "dots")


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw. `height` in units of which the chart is WIDTH wide; `within`: what the x axis reaches over, whatever the
    series do; `shaded`: a span of x to set apart; `spans`: for each series, in lines, points and bars."""

    title: str
    kind: Kind
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    height: int = HEIGHT
    within: tuple[float, float] | None = None
    shaded: tuple[float, float] | None = None
    spans: tuple[Spans, ...] = ()

    @property
    def base(self) -> float:
        """Where the x axis lies."""
        return self.height - BOTTOM


def of_figure(shown: Figure) -> Chart:
    """The chart of a test's figure."""
    spans = tuple(one.ci or (None,) * len(one.x) for one in shown.series)
    return Chart(shown.title, shown.kind, shown.x, shown.y, shown.series, shown.marks, spans=spans)


def draw(chart: Chart) -> str | None:
    """The SVG element, or None where there is nothing to draw. All text from outside is escaped."""
    if chart.kind == "bars":
        return _bars(chart)
    across, up = _across(chart), _up(chart)
    if not across or not up:
        return None
    y = _scale(up, chart.y.log, chart.base, TOP, chart.kind in _FROM_ZERO)
    left = _left(y)
    if chart.within is not None:
        whole = all(value.is_integer() for value in across)
        x = exact_axis(*chart.within, left, WIDTH - RIGHT, log=chart.x.log, whole=whole)
    else:
        x = _scale(across, chart.x.log, left, WIDTH - RIGHT, False)
    parts = [*_band(chart, x), *_grid(x, y, left, chart.base), _titles(chart)]
    for index, series in enumerate(chart.series):
        parts += _series(chart, series, index, x, y)
    for index, (series, spans) in enumerate(zip(chart.series, chart.spans, strict=False)):
        for place, span in zip(series.x, spans, strict=True):
            if span is not None and drawable(place, x.log):
                parts.append(_stroke(x.at(float(place)), span, y, index % STYLES))
    return _svg(chart, [*parts, *_marks(chart, x, y, left)])


def legend(chart: Chart) -> list[tuple[str, str]]:
    """(sample of its line or bar as SVG, name) for each series, where there are several."""
    if len(chart.series) < 2:
        return []
    kind = chart.kind
    return [
        (_sample(kind, i % STYLES, marked=_few_points(kind, one.x)), clean(one.label))
        for i, one in enumerate(chart.series)
    ]


def signs(chart: Chart) -> list[tuple[str, str]]:
    """(sample as SVG, what it means) of what is drawn beside lines and bars: intervals, and markers of too few samples."""
    found = []
    if any(span is not None for spans in chart.spans for span in spans):
        found.append((_framed('<path class="span" d="M13 1V13M9 1h8M9 13h8"/>'), "95 % interval"))
    if chart.kind in ("lines", "points") and any(
        value is not None and _few_points(chart.kind, one.x)
        for one in chart.series
        for at, value in enumerate(one.y)
        if at in one.few
    ):
        found.append(
            (
                _framed('<path class="hollow dot s5" d="M9 7a4 4 0 1 0 8 0a4 4 0 1 0-8 0"/>'),
                "too few samples for this percentile",
            )
        )
    return found


def heading(axis: Axis) -> str:
    """An axis's title with its unit: `TTFT P99 (ms)`, unless the title names it already."""
    label, unit = clean(axis.label), clean(axis.unit)
    return f"{label} ({unit})" if unit and f"({unit})" not in label else label


def _across(chart: Chart) -> list[float]:
    log = chart.x.log
    found = [float(x) for one in chart.series for x in one.x if drawable(x, log)]
    return found and found + [mark.x for mark in chart.marks if drawable(mark.x, log)]


def _up(chart: Chart) -> list[float]:
    log = chart.y.log
    found = [y for one in chart.series for y in one.y if drawable(y, log)]
    found += [
        max(end, 0.0) for ends in chart.spans for span in ends if span for end in span if drawable(end, log)
    ]
    return found and found + [mark.y for mark in chart.marks if drawable(mark.y, log)]


def _scale(values: Sequence[float], log: bool, start: float, end: float, from_zero: bool) -> Scale:
    if log:
        return logarithmic(values, start, end)
    return linear(values, start, end, from_zero)


def _left(y: Scale) -> float:
    return 14 + CHAR * max(len(figure(tick, trim=True)) for tick in y.ticks or (0,))


def _svg(chart: Chart, parts: Sequence[str]) -> str:
    named = ", ".join(clean(series.label) for series in chart.series)
    label = escape(f"{clean(chart.title)}: {named}", quote=True)
    box = f"0 0 {WIDTH} {chart.height}"
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def _titles(chart: Chart) -> str:
    return _text(4, 15, heading(chart.y)) + _text(WIDTH - RIGHT, chart.height - 8, heading(chart.x), "end")


def _band(chart: Chart, x: Scale) -> Iterator[str]:
    if chart.shaded is not None:
        start, end = (x.inside(edge) for edge in chart.shaded)
        if end > start:
            yield f'<path class="band" d="M{start:.1f} {TOP}H{end:.1f}V{chart.base}H{start:.1f}z"/>'


def _grid(x: Scale | None, y: Scale, left: float, base: float) -> Iterator[str]:
    for tick in y.ticks:
        at = y.at(tick)
        yield f'<path class="grid" d="M{left:.1f} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(left - 6, at + 4, figure(tick, trim=True), "end")
    free = left - CHAR
    for tick in x.ticks if x else ():
        at, words = x.at(tick) if x else 0.0, figure(tick, trim=True)
        half = len(words) * CHAR / 2
        yield f'<path class="grid" d="M{at:.1f} {TOP}V{base}"/>'
        # A name that would touch the one before is left out; its line stays.
        if at - half > free:
            yield _text(at, base + 19, words, "middle")
            free = at + half + CHAR


def _series(chart: Chart, series: Series, index: int, x: Scale, y: Scale) -> Iterator[str]:
    kind, style = chart.kind, index % STYLES
    parts: list[list[Point]] = [[]]
    rough: set[Point] = set()
    for at, (across, up) in enumerate(zip(series.x, series.y, strict=True)):
        if drawable(across, x.log) and drawable(up, y.log):
            assert up is not None
            point = (x.inside(float(across)) if chart.within else x.at(float(across)), y.at(up))
            parts[-1].append(point)
            rough |= {point} if at in series.few else set()
        elif kind != "timeline":
            parts.append([])
    points = [point for part in parts for point in part]
    if kind == "histogram":
        yield from _outline(points, style, chart.base, filled=index == 0)
    elif kind == "spikes":
        strokes = "".join(f"M{px:.1f} {chart.base}V{py:.1f}" for px, py in points if py < chart.base - 0.05)
        yield f'<path class="spikes s{style}" d="{strokes}"/>' if strokes else ""
    elif kind == "dots":
        yield f'<path class="dots s{style}" d="{"".join(f"M{px:.1f} {py:.1f}h0" for px, py in points)}"/>'
    else:
        yield from _joined(parts, rough, style, chart)


def _joined(parts: Sequence[list[Point]], rough: Set[Point], style: int, chart: Chart) -> Iterator[str]:
    kind, points = chart.kind, [point for part in parts for point in part]
    if kind == "timeline" and len(chart.series) == 1 and len(points) > 1:
        under = f"V{chart.base}H{points[0][0]:.1f}z"
        yield f'<path class="fill s{style}" d="{_path(points, False)}{under}"/>'
    if kind != "points":
        for part in parts:
            if len(part) > 1:
                yield f'<path class="line s{style}" d="{_path(part, kind == "cdf")}"/>'
    if _few_points(kind, points):
        yield from (_marker(style, *point, hollow=point in rough) for point in points)


def _few_points(kind: Kind, points: Sequence[object]) -> bool:
    """Whether each point of a series is marked."""
    return kind == "points" or (kind != "cdf" and len(points) <= (1 if kind == "timeline" else MARKERS_UP_TO))


def _stroke(x: float, span: tuple[float, float], y: Scale, style: int | None) -> str:
    """An interval: a stroke with a cap at both ends. `style`: of its series; None: to be seen on a bar of it."""
    low, high = (y.inside(end) for end in span)
    kind = "span" if style is None else f"span s{style}"
    return f'<path class="{kind}" d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8"/>'


def _outline(points: Sequence[Point], style: int, base: float, *, filled: bool) -> Iterator[str]:
    """The outline of a histogram, down to the axis at both ends."""
    if len(points) < 2:
        return
    steps = "".join(f"V{py:.1f}H{to:.1f}" for (_, py), (to, _) in pairwise(points))
    path = f"M{points[0][0]:.1f} {base}{steps}V{base}"
    if filled:
        yield f'<path class="fill s{style}" d="{path}z"/>'
    yield f'<path class="line s{style}" d="{path}"/>'


def _path(points: Sequence[Point], steps: bool) -> str:
    (x, y), *rest = points
    words = [f"M{x:.1f} {y:.1f}"]
    words += [f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in rest]
    return "".join(words)


def _marker(style: int, x: float, y: float, *, hollow: bool = False) -> str:
    shapes = (
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "m-3.5-3.5h7v7h-7z",
        "m0-5l4.6 8h-9.2z",
        "m0-5l5 5l-5 5l-5-5z",
        "m0 5l4.6-8h-9.2z",
        "m-5-1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
    )
    name = "hollow dot" if hollow else "dot"
    return f'<path class="{name} s{style}" d="M{x:.1f} {y:.1f}{shapes[style]}"/>'


def _sample(kind: str, style: int, *, marked: bool) -> str:
    line = f'<path class="line s{style}" d="M0 7h26"/>'
    filled = '<path class="fill s0" d="M0 2h26v10h-26z"/>' if kind == "histogram" and style == 0 else ""
    shape = {
        "bars": f'<path class="bar s{style}" d="M4 1h18v12h-18z"/>',
        "points": _marker(style, 13, 7),
        "lines": line + (_marker(style, 13, 7) if marked else ""),
    }.get(kind, filled + line)
    return _framed(shape)


def _framed(shape: str) -> str:
    return f'<svg viewBox="0 0 26 14" width="26" height="14" aria-hidden="true">{shape}</svg>'


def _marks(chart: Chart, x: Scale, y: Scale, left: float) -> Iterator[str]:
    taken: list[Box] = []
    lines = _under(chart, x, y)
    for mark in chart.marks:
        across = x.at(mark.x) if mark.x is not None and drawable(mark.x, x.log) else None
        up = y.at(mark.y) if mark.y is not None and drawable(mark.y, y.log) else None
        if (across is None and up is None) or (across is not None and not x.holds(mark.x)):
            continue
        words = clean(mark.label)
        places = _places(len(words) * CHAR, across, up, left, chart.base)
        free = [box for box in places if not any(_touch(box, other) for other in taken)] or places
        box = min(free, key=lambda one: math.fsum(_touch(one, (px, py, px, py)) for px, py in lines))
        taken.append(box)
        yield f'<path class="mark" d="{_sign(across, up, left, chart.base)}"/>' + _beside(
            box, across, up, words
        )


def _beside(box: Box, across: float | None, up: float | None, words: str) -> str:
    """The name in its box: over the middle of a vertical line, close to a point, at the start on a horizontal one."""
    before = across is not None and box[2] < across
    x, anchor = (box[2], "end") if before else (box[0], "start")
    if up is None:
        x, anchor = (box[0] + box[2]) / 2, "middle"
    return _text(x, box[3] - 3, words, anchor, "name")


def _sign(across: float | None, up: float | None, left: float, base: float) -> str:
    if up is None:
        return f"M{across:.1f} {TOP}V{base}"
    if across is None:
        return f"M{left:.1f} {up:.1f}H{WIDTH - RIGHT}"
    return f"M{across:.1f} {up:.1f}m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0"


def _places(width: float, across: float | None, up: float | None, left: float, base: float) -> list[Box]:
    """Where a mark's name may stand, best first: above a vertical line, on a horizontal one, about a point."""
    if up is None:
        assert across is not None
        x0 = min(max(across - width / 2, left), WIDTH - width)
        return [(x0, y0 - 12, x0 + width, y0 + 3) for y0 in (TOP - 6, *range(TOP + 14, TOP + 120, 15))]
    if across is None:
        starts = (WIDTH - RIGHT - width - 4, left + 6, (left + WIDTH - RIGHT - width) / 2)
        return [(x0, y0 - 12, x0 + width, y0 + 3) for y0 in (up - 6, up + 15) for x0 in starts]
    sides = [x0 for x0 in (across - 11 - width, across + 11) if left < x0 and x0 + width < WIDTH]
    heights = [y0 for y0 in (up - 8, up + 18, up + 4) if TOP < y0 < base]
    return [(x0, y0 - 12, x0 + width, y0 + 3) for x0 in sides or [left + 6] for y0 in heights or [up + 18]]


def _touch(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _under(chart: Chart, x: Scale, y: Scale) -> list[Point]:
    """Places on the lines, close enough together that a name over a line covers one."""
    found: list[Point] = []
    for one in chart.series:
        points = [
            (x.at(float(across)), y.at(up))
            for across, up in zip(one.x, one.y, strict=True)
            if drawable(across, x.log) and up is not None and drawable(up, y.log)
        ]
        found += points
        if chart.kind in ("dots", "spikes"):
            continue
        for (ax, ay), (bx, by) in pairwise(points):
            steps = int(max(abs(bx - ax), abs(by - ay)) / 8)
            found += [
                (ax + (bx - ax) * i / (steps + 1), ay + (by - ay) * i / (steps + 1)) for i in range(steps + 1)
            ]
    return found


def _bars(chart: Chart) -> str | None:
    names = list(dict.fromkeys(str(name) for series in chart.series for name in series.x))
    up = _up(chart)
    if not names or not up:
        return None
    y = _scale(up, chart.y.log, chart.base, TOP, True)
    left = _left(y)
    room = (WIDTH - RIGHT - left) / len(names)
    wide = min(room * 0.8 / len(chart.series), 56)
    parts = list(_grid(None, y, left, chart.base))
    for group, name in enumerate(names):
        middle = left + room * (group + 0.5)
        parts += [
            _text(middle, chart.base + 19 + 17 * i, line, "middle")
            for i, line in enumerate(_folded(clean(name), int(room / CHAR)))
        ]
        for index, series in enumerate(chart.series):
            value = dict(zip(map(str, series.x), series.y, strict=True)).get(name)
            x0 = middle + (index - len(chart.series) / 2) * wide
            parts.append(_bar(value, x0, wide, y, chart.base, index % STYLES, _span(chart, index, name)))
    # The groups are named already: no title below them.
    return _svg(chart, [*parts, _text(4, 15, heading(chart.y))])


def _span(chart: Chart, index: int, name: str) -> tuple[float, float] | None:
    spans = chart.spans[index] if chart.spans else ()
    return dict(zip(map(str, chart.series[index].x), spans, strict=False)).get(name)


def _bar(
    value: float | None,
    x0: float,
    wide: float,
    y: Scale,
    base: float,
    style: int,
    span: tuple[float, float] | None,
) -> str:
    if value is None or not drawable(value, y.log):
        x = x0 + wide / 2 + 4
        return f'<text transform="translate({x:.1f} {base - 6:.1f}) rotate(-90)">{UNMEASURED}</text>'
    top, words = y.at(value), figure(value, 3, trim=True)
    shape = f'<path class="bar s{style}" d="M{x0 + 1:.1f} {base:.1f}V{top:.1f}h{wide - 2:.1f}V{base:.1f}z"/>'
    fits = len(words) * CHAR <= wide + 2
    if span is not None:
        shape += _stroke(x0 + wide / 2, span, y, None)
        top = min(top, y.inside(span[1]))
    return shape + (_text(x0 + wide / 2, top - 4, words, "middle", "name") if fits else "")


def _folded(words: str, most: int) -> list[str]:
    """On two lines at most, broken at a blank."""
    if len(words) <= most or " " not in words:
        return [words]
    head, _, tail = words.partition(" ")
    return [head, tail]


# Axes.

FEW = 8
"""Ticks on a logarithmic axis, at most, but for powers of ten."""


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` to `high` in the axis's unit, lying at `start` to `end` of the chart, with ticks between."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a number lies."""
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float | None) -> bool:
        """Whether a number lies on the axis."""
        return value is not None and self.low <= value <= self.high

    def inside(self, value: float) -> float:
        """Where a number lies, or the end of the axis that it lies beyond."""
        return self.at(min(max(value, self.low), self.high))


def drawable(value: object, log: bool) -> TypeGuard[float]:
    """Whether a number has a place on the axis: None, NaN, and on a logarithmic axis zero and less, have none."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > 0 or not log)
    )


LEAST_SPAN = 1e-290
"""Below this an axis has no steps: a fifth of it, and the power of ten that its ticks are rounded to, leave a float's range."""


def linear(values: Sequence[float], start: float, end: float, from_zero: bool) -> Scale:
    """Over all values; from zero on where asked, or where they come near it."""
    low, high = min(values), max(values)
    if from_zero or 0 <= low <= high / 2:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < LEAST_SPAN:
        low, high = (low, low + 1) if from_zero else (low - 1, high + 1)
    step = _step((high - low) / 5)
    if all(float(value).is_integer() for value in values):
        step = max(step, 1.0)
    low, high = math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step
    count = round((high - low) / step)
    ticks = tuple(_rounded(low + step * i, step) for i in range(count + 1))
    # A point on the very edge would be cut in half.
    room = 0.0 if from_zero else 0.03 * (high - low)
    low, high = low - room * (low == min(values)), high + room * (high == max(values))
    return Scale(low, high, start, end, False, ticks)


def exact_axis(
    low: float, high: float, start: float, end: float, *, log: bool = False, whole: bool = False
) -> Scale:
    """From `low` to `high` and no further: for charts that share an axis. On a logarithmic one `low` is above zero. `whole`:
    there is nothing between whole numbers, so no tick either."""
    if log:
        low, high = (low, high) if low < high else (low / 1.1, high * 1.1)
        return Scale(low, high, start, end, True, _decades(low, high))
    if high - low < LEAST_SPAN:
        low, high = low - 1, high + 1
    step = max(_step((high - low) / 5), 1.0) if whole else _step((high - low) / 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Scale(
        low, high, start, end, False, tuple(_rounded(step * i, step) for i in range(first, last + 1))
    )


def _rounded(value: float, step: float) -> float:
    """A tick without the noise of floating point, however small the steps are."""
    return round(value, 12 - math.floor(math.log10(step)))


def _step(rough: float) -> float:
    ten: float = 10.0 ** math.floor(math.log10(rough))
    return next((ten * n for n in (1, 2, 5) if ten * n >= rough * 0.999), ten * 10)


def logarithmic(values: Sequence[float], start: float, end: float) -> Scale:
    """Over all values, which are above zero, with a little room at both ends."""
    low, high = min(values) / 1.1, max(values) * 1.1
    return Scale(low, high, start, end, True, _decades(low, high))


def _decades(low: float, high: float) -> tuple[float, ...]:
    """As many ticks as tell the scale, and no more than FEW: of each decade 1, or 1, 2 and 5, or 1 to 9; within a small part of
    one decade, even steps."""
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,), range(1, 10)):
        found = [n * 10.0**ten for ten in tens for n in digits if low <= n * 10.0**ten <= high]
        if 3 <= len(found) <= FEW:
            return tuple(found)
    if high / low > 10:
        return tuple(10.0**ten for ten in tens if low <= 10.0**ten <= high)
    ticks: tuple[float, ...] = ()
    for parts in (4, 8):  # a step of nearly half may fit in only once
        step = _step((high - low) / parts)
        ticks = tuple(
            _rounded(step * i, step) for i in range(math.ceil(low / step), math.floor(high / step) + 1)
        )
        if len(ticks) > 1:
            break
    return ticks
