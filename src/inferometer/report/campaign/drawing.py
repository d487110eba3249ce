"""A figure of a test document as SVG inside the page: no script, no network, colours from the page's style sheet.

Series differ by colour, dash and marker, so that no colour has to be told from another. Points are joined in their order: a
throughput-latency curve may turn back. What has no place on its axis (null, zero on a logarithm) leaves a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from inferometer.report.campaign import scale
from inferometer.report.campaign.cells import heading
from inferometer.report.campaign.scale import Scale
from inferometer.report.figures import clean, figure
from inferometer.report.run.disclosure import UNMEASURED

WIDTH, HEIGHT = 560, 320
TOP, RIGHT, BOTTOM = 46, 24, 56
CHAR = 9.2
"""Mean width of a character of the 17 px that the page takes on a narrow screen; on a wide one there is room to spare."""
STYLES = 6
MARKERS_UP_TO = 40
"""Points of a series that are each marked."""
Box = tuple[float, float, float, float]


def drawn(shown: Mapping[str, Any]) -> str | None:
    """The SVG element, or None where there is nothing to draw. All text from outside is escaped."""
    if shown["kind"] == "bars":
        return _bars(shown)
    across, up = _values(shown, "x"), _values(shown, "y")
    if not across or not up:
        return None
    kind, x_axis, y_axis = shown["kind"], shown["x"], shown["y"]
    y = _scale(up, y_axis["log"], HEIGHT - BOTTOM, TOP, kind == "cdf")
    left = _left(y)
    x = _scale(across, x_axis["log"], left, WIDTH - RIGHT, False)
    parts = [*_grid(x, y, left), _titles(shown)]
    for index, series in enumerate(shown["series"]):
        parts += _series(series, index % STYLES, kind, x, y)
    return _svg(shown, [*parts, *_marks(shown, x, y, left)])


def legend(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(sample of its line or bar as SVG, name) for each series, where there are several."""
    if len(shown["series"]) < 2:
        return []
    return [
        (_sample(shown["kind"], i % STYLES), clean(one["label"])) for i, one in enumerate(shown["series"])
    ]


def _values(shown: Mapping[str, Any], side: str) -> list[float]:
    log = shown[side]["log"]
    found = [one for series in shown["series"] for one in series[side] if scale.drawable(one, log)]
    marks = [mark[side] for mark in shown["marks"] if scale.drawable(mark[side], log)]
    return found and found + marks


def _scale(values: Sequence[float], log: bool, start: float, end: float, from_zero: bool) -> Scale:
    if log:
        return scale.logarithmic(values, start, end)
    return scale.linear(values, start, end, from_zero)


def _left(y: Scale) -> float:
    return 14 + CHAR * max(len(figure(tick, trim=True)) for tick in y.ticks or (0,))


def _svg(shown: Mapping[str, Any], parts: Sequence[str]) -> str:
    named = ", ".join(clean(series["label"]) for series in shown["series"])
    label = escape(f"{clean(shown['title'])}: {named}", quote=True)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def _titles(shown: Mapping[str, Any]) -> str:
    return _text(4, 15, heading(shown["y"])) + _text(WIDTH - RIGHT, HEIGHT - 8, heading(shown["x"]), "end")


def _grid(x: Scale | None, y: Scale, left: float) -> Iterator[str]:
    for tick in y.ticks:
        at = y.at(tick)
        yield f'<path class="grid" d="M{left:.1f} {at:.1f}H{WIDTH - RIGHT}"/>'
        yield _text(left - 6, at + 4, figure(tick, trim=True), "end")
    free = left - CHAR
    for tick in x.ticks if x else ():
        at, words = x.at(tick) if x else 0.0, figure(tick, trim=True)
        half = len(words) * CHAR / 2
        yield f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
        # A name that would touch the one before is left out; its line stays.
        if at - half > free:
            yield _text(at, HEIGHT - BOTTOM + 19, words, "middle")
            free = at + half + CHAR


def _series(series: Mapping[str, Any], style: int, kind: str, x: Scale, y: Scale) -> Iterator[str]:
    parts: list[list[tuple[float, float]]] = [[]]
    for across, up in zip(series["x"], series["y"], strict=True):
        if scale.drawable(across, x.log) and scale.drawable(up, y.log):
            parts[-1].append((x.at(across), y.at(up)))
        else:
            parts.append([])
    points = [point for part in parts for point in part]
    if kind != "points":
        for part in parts:
            if len(part) > 1:
                yield f'<path class="line s{style}" d="{_path(part, kind == "cdf")}"/>'
    if kind != "cdf" and (kind == "points" or len(points) <= MARKERS_UP_TO):
        yield from (_marker(style, *point) for point in points)


def _path(points: Sequence[tuple[float, float]], steps: bool) -> str:
    (x, y), *rest = points
    words = [f"M{x:.1f} {y:.1f}"]
    words += [f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in rest]
    return "".join(words)


def _marker(style: int, x: float, y: float) -> str:
    shapes = (
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "m-3.5-3.5h7v7h-7z",
        "m0-5l4.6 8h-9.2z",
        "m0-5l5 5l-5 5l-5-5z",
        "m0 5l4.6-8h-9.2z",
        "m-5-1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
    )
    return f'<path class="dot s{style}" d="M{x:.1f} {y:.1f}{shapes[style]}"/>'


def _sample(kind: str, style: int) -> str:
    shape = {
        "bars": f'<path class="bar s{style}" d="M4 1h18v12h-18z"/>',
        "points": _marker(style, 13, 7),
        "cdf": f'<path class="line s{style}" d="M0 7h26"/>',
    }.get(kind, f'<path class="line s{style}" d="M0 7h26"/>' + _marker(style, 13, 7))
    return f'<svg viewBox="0 0 26 14" width="26" height="14" aria-hidden="true">{shape}</svg>'


def _marks(shown: Mapping[str, Any], x: Scale, y: Scale, left: float) -> Iterator[str]:
    taken: list[Box] = []
    lines = _under(shown["series"], x, y)
    for mark in shown["marks"]:
        across = x.at(mark["x"]) if scale.drawable(mark["x"], x.log) else None
        up = y.at(mark["y"]) if scale.drawable(mark["y"], y.log) else None
        if across is None and up is None:
            continue
        words = clean(mark["label"])
        places = _places(len(words) * CHAR, across, up, left)
        free = [box for box in places if not any(_touch(box, other) for other in taken)] or places
        box = min(free, key=lambda one: sum(_touch(one, (px, py, px, py)) for px, py in lines))
        taken.append(box)
        yield f'<path class="mark" d="{_sign(across, up, left)}"/>' + _beside(box, across, up, words)


def _beside(box: Box, across: float | None, up: float | None, words: str) -> str:
    """The name in its box: over the middle of a vertical line, close to a point, at the start on a horizontal one."""
    before = across is not None and box[2] < across
    x, anchor = (box[2], "end") if before else (box[0], "start")
    if up is None:
        x, anchor = (box[0] + box[2]) / 2, "middle"
    return _text(x, box[3] - 3, words, anchor, "name")


def _sign(across: float | None, up: float | None, left: float) -> str:
    if up is None:
        return f"M{across:.1f} {TOP}V{HEIGHT - BOTTOM}"
    if across is None:
        return f"M{left:.1f} {up:.1f}H{WIDTH - RIGHT}"
    return f"M{across:.1f} {up:.1f}m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0"


def _places(width: float, across: float | None, up: float | None, left: float) -> list[Box]:
    """Where a mark's name may stand, best first: above a vertical line, on a horizontal one, about a point."""
    if up is None:
        assert across is not None
        x0 = min(max(across - width / 2, left), WIDTH - width)
        return [(x0, y0 - 12, x0 + width, y0 + 3) for y0 in (TOP - 6, *range(TOP + 14, TOP + 120, 15))]
    if across is None:
        starts = (WIDTH - RIGHT - width - 4, left + 6, (left + WIDTH - RIGHT - width) / 2)
        return [(x0, y0 - 12, x0 + width, y0 + 3) for y0 in (up - 6, up + 15) for x0 in starts]
    sides = [x0 for x0 in (across - 11 - width, across + 11) if left < x0 and x0 + width < WIDTH]
    heights = [y0 for y0 in (up - 8, up + 18, up + 4) if TOP < y0 < HEIGHT - BOTTOM]
    return [(x0, y0 - 12, x0 + width, y0 + 3) for x0 in sides or [left + 6] for y0 in heights or [up + 18]]


def _touch(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _under(series: Sequence[Mapping[str, Any]], x: Scale, y: Scale) -> list[tuple[float, float]]:
    """Places on the lines, close enough together that a name over a line covers one."""
    found: list[tuple[float, float]] = []
    for one in series:
        points = [
            (x.at(across), y.at(up))
            for across, up in zip(one["x"], one["y"], strict=True)
            if scale.drawable(across, x.log) and scale.drawable(up, y.log)
        ]
        found += points
        for (ax, ay), (bx, by) in pairwise(points):
            steps = int(max(abs(bx - ax), abs(by - ay)) / 8)
            found += [
                (ax + (bx - ax) * i / (steps + 1), ay + (by - ay) * i / (steps + 1)) for i in range(steps + 1)
            ]
    return found


def _bars(shown: Mapping[str, Any]) -> str | None:
    names = list(dict.fromkeys(name for series in shown["series"] for name in series["x"]))
    up = _values(shown, "y")
    if not names or not up:
        return None
    y = _scale(up, shown["y"]["log"], HEIGHT - BOTTOM, TOP, True)
    left = _left(y)
    room = (WIDTH - RIGHT - left) / len(names)
    wide = min(room * 0.8 / len(shown["series"]), 56)
    base = HEIGHT - BOTTOM
    parts = list(_grid(None, y, left))
    for group, name in enumerate(names):
        middle = left + room * (group + 0.5)
        parts += [
            _text(middle, base + 19 + 17 * i, line, "middle")
            for i, line in enumerate(_folded(clean(name), int(room / CHAR)))
        ]
        for index, series in enumerate(shown["series"]):
            value = dict(zip(series["x"], series["y"], strict=True)).get(name)
            x0 = middle + (index - len(shown["series"]) / 2) * wide
            parts.append(_bar(value, x0, wide, y, base, index % STYLES))
    # The groups are named already: no title below them.
    return _svg(shown, [*parts, _text(4, 15, heading(shown["y"]))])


def _bar(value: float | None, x0: float, wide: float, y: Scale, base: float, style: int) -> str:
    if value is None or not scale.drawable(value, y.log):
        x = x0 + wide / 2 + 4
        return f'<text transform="translate({x:.1f} {base - 6:.1f}) rotate(-90)">{UNMEASURED}</text>'
    top, words = y.at(value), figure(value, 3, trim=True)
    shape = f'<path class="bar s{style}" d="M{x0 + 1:.1f} {base:.1f}V{top:.1f}h{wide - 2:.1f}V{base:.1f}z"/>'
    fits = len(words) * CHAR <= wide + 2
    return shape + (_text(x0 + wide / 2, top - 4, words, "middle", "name") if fits else "")


def _folded(words: str, most: int) -> list[str]:
    """On two lines at most, broken at a blank."""
    if len(words) <= most or " " not in words:
        return [words]
    head, _, tail = words.partition(" ")
    return [head, tail]
