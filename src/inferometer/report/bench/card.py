"""card.svg: a benchmark on one picture of 1200 x 630 to share: numbers, conditions, verdict.

It stands alone: its colours are its own and no script, style sheet or font is loaded. A card without its conditions would be
an advertisement, so model, chip, runs and the definition of the bars are on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from inferometer.documents.bench import METRICS_VERSION, Bench, EngineResult, Figure, Ranking
from inferometer.judge.bench import figure_over
from inferometer.report.bench import contents
from inferometer.report.charts import Scale, linear
from inferometer.report.figures import clean, figure, moment

WIDTH, HEIGHT, EDGE = 1200, 630, 56
MOST = 6
"""Engines on a card; the others are counted."""
BARS, TOP, BOTTOM = 440, 216, 540
"""Where the bars begin, and the rows with them begin and end."""
END = 800
"""Where the longest bar ends; figures stand right of it."""
CHAR = 0.52
"""Width of a character, of the font's size: an upper mean for the fonts of _SANS."""
_SANS = "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"
_TONES = {"VALID": "#1a6a3d", "INVALID": "#a3221c", "INCONCLUSIVE": "#825500"}
_INK, _MUTED, _RULE, _PAPER, _BAR = "#1c1c1a", "#5c5b55", "#dcd9cf", "#fcfbf8", "#1f5a8c"


def render_card(document: Bench) -> str:
    """The SVG file. All text from outside is escaped, and cut to its room."""
    tone = _TONES[document.status]
    words = f"{document.status}{', INTERRUPTED' if document.interrupted else ''}"
    label = escape(f"{contents.condition(document)} {words}", quote=True)
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{_PAPER}"/><rect width="14" height="{HEIGHT}" fill="{tone}"/>',
        _text(EDGE, 84, _title(document), 44, WIDTH - 2 * EDGE - 430, weight=700),
        _text(WIDTH - EDGE, 82, words, 30, 420, colour=tone, anchor="end", weight=700),
        _text(EDGE, 126, _models(document), 24, WIDTH - 2 * EDGE, colour=_MUTED),
        _text(EDGE, 158, contents.machines(document), 24, WIDTH - 2 * EDGE, colour=_MUTED),
        *_rows(document),
        *_foot(document),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{label}" font-family="{_SANS}">{"".join(parts)}</svg>\n'
    )


def _text(
    x: float,
    y: float,
    words: str,
    size: int,
    room: float,
    *,
    colour: str = _INK,
    anchor: str = "start",
    weight: int = 400,
) -> str:
    most = max(int(room / (size * CHAR)), 3)
    shown = words if len(words) <= most else words[: most - 3].rstrip() + "..."
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(shown)}</text>"
    )


def _title(document: Bench) -> str:
    labels = [clean(one.label) for one in document.engines]
    return (
        " vs ".join(labels)
        if 1 < len(labels) <= 3
        else labels[0]
        if len(labels) == 1
        else f"{len(labels)} engines"
    )


def _models(document: Bench) -> str:
    known = [(one.metadata.model, one.metadata.model_quantization) for one in document.engines]
    named = dict.fromkeys(clean(" ".join(part for part in pair if part)) for pair in known)
    return "; ".join(name for name in named if name)


def _ranking(document: Bench) -> Ranking | None:
    return next((one for one in document.rankings if one.figure == "tok_per_sec"), None)


def _places(document: Bench) -> dict[str, str]:
    """`1.`, or `1. tie`, of each engine with a place in an order that is claimed."""
    ranking = _ranking(document)
    if ranking is None or not ranking.decided or len(document.engines) < 2:
        return {}
    return {
        label: f"{one.place}.{' tie' if one.tie else ''}" for one in ranking.places for label in one.labels
    }


@dataclass(frozen=True, slots=True)
class _Row:
    """An engine's row. Its figures are over the prompts that the ranking is over, so that bars can be compared."""

    label: str
    place: str
    speed: Figure
    wait: Figure
    tone: str
    notes: tuple[str, ...]
    ranked: bool


def _all_rows(document: Bench) -> list[_Row]:
    """Ranked engines in their order, then the others."""
    ranking, places = _ranking(document), _places(document)
    ranked = [label for one in ranking.places for label in one.labels] if ranking else []
    prompts = ranking.prompts if ranking and ranking.prompts else document.protocol.prompts
    at = {label: place for place, label in enumerate(ranked)}
    return [
        _Row(
            clean(one.label),
            places.get(one.label, ""),
            figure_over(one, prompts, "tok_per_sec"),
            figure_over(one, prompts, "ttft_client_ms"),
            _TONES.get(one.status or "", _MUTED),
            _notes(one, one.label in ranked),
            one.label in ranked,
        )
        for one in sorted(document.engines, key=lambda one: at.get(one.label, len(at)))
    ]


def _notes(one: EngineResult, ranked: bool) -> tuple[str, ...]:
    """The verdict unless it is VALID, and what is wrong with the answers: a speed without them would advertise."""
    verdict = contents.verdict(one)
    notes = [verdict] if verdict != "VALID" else [] if ranked else ["no place"]
    faults = contents.answer_faults(one)
    if any(remark.code == "answers_differ" for remark in one.remarks):
        faults.insert(0, "answers differ")
    return (*notes, *faults)


def _rows(document: Bench) -> Iterator[str]:
    rows = _all_rows(document)
    shown = rows[:MOST]
    ends = [
        end
        for one in shown
        for end in (one.speed.median, *(one.speed.ci95 or ()))
        if end is not None and end >= 0
    ]
    scale = linear(ends, BARS, END, True) if ends else None
    step = min((BOTTOM - TOP) / max(len(shown), 1), 96)
    start = EDGE + (84 if any(one.place for one in shown) else 0)
    caption = "tokens/s: bar, median; line, 95 % of the mean"
    yield _text(BARS, TOP - 14, caption, 18, 480, colour=_MUTED)
    yield _text(WIDTH - EDGE, TOP - 14, "client TTFT, median", 18, 260, colour=_MUTED, anchor="end")
    for at, one in enumerate(shown):
        yield from _row(one, TOP + step * (at + 0.5), step, scale, start)
    if len(rows) > MOST:
        yield _text(BARS, BOTTOM + 16, f"and {len(rows) - MOST} more in the report", 18, 500, colour=_MUTED)


def _row(one: _Row, middle: float, step: float, scale: Scale | None, start: float) -> Iterator[str]:
    size = 26 if step >= 50 else 22
    line = middle + size * 0.35
    yield _text(EDGE, line, one.place, size, 84, colour=_MUTED)
    yield from _name(one.label, start, middle, size)
    if scale is None or one.speed.median is None:
        yield _text(BARS, line, ", ".join(one.notes), size, 470, colour=one.tone)
        return
    yield _bar(scale.at(one.speed.median), middle, min(step * 0.62, 50), 0.75 if one.ranked else 0.3)
    if one.speed.ci95 is not None:
        yield _interval(one.speed.ci95, scale, middle)
    yield _text(END + 14, line, figure(one.speed.median, 3), size, 90, weight=700)
    notes = one.notes[:2]
    for at, note in enumerate(notes):
        below = middle + 5 + 18 * (at - (len(notes) - 1) / 2)
        yield _text(END + 92, below, note, 15, 130, colour=one.tone if note in _TONES else _MUTED)
    yield _text(WIDTH - EDGE, line, f"{figure(one.wait.median, 3)} ms", size, 150, anchor="end")


def _name(label: str, start: float, middle: float, size: int) -> Iterator[str]:
    """On one line, or in smaller letters on two."""
    room = BARS - start - 14
    if len(label) <= int(room / (size * CHAR)):
        yield _text(start, middle + size * 0.35, label, size, room, weight=600)
        return
    most = int(room / (19 * CHAR))
    whole = len(label) <= 2 * most
    yield _text(start, middle - 4, label[:most] if whole else f"{label[: most - 3]}...", 19, room, weight=600)
    if len(label) > most:
        yield _text(start, middle + 18, label[most:] if whole else label[-most:], 19, room, weight=600)


def _bar(end: float, middle: float, tall: float, opacity: float) -> str:
    return (
        f'<rect x="{BARS}" y="{middle - tall / 2:.1f}" width="{max(end - BARS, 1):.1f}" height="{tall:.1f}" fill="{_BAR}" '
        f'fill-opacity="{opacity}"/>'
    )


def _interval(ends: tuple[float, float], scale: Scale, middle: float) -> str:
    low, high = (scale.inside(end) for end in ends)
    return (
        f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 9:.1f}v18M{high:.1f} {middle - 9:.1f}v18" '
        f'stroke="{_INK}" stroke-width="2.5" fill="none"/>'
    )


def _foot(document: Bench) -> Iterator[str]:
    yield f'<path d="M{EDGE} 568H{WIDTH - EDGE}" stroke="{_RULE}" stroke-width="2"/>'
    ranking = _ranking(document)
    over = contents.partial(ranking, document) if ranking is not None else ""
    runs = "one run" if document.protocol.runs == 1 else f"{document.protocol.runs} runs"
    prompts = ", ".join(map(clean, document.protocol.prompts))
    how = f"Median of {runs}, one request at a time. {over or f'Prompts: {prompts}.'}"
    yield _text(EDGE, 594, how, 18 if len(how) <= 116 else 16, WIDTH - 2 * EDGE, colour=_MUTED)
    about = (
        f"{moment(document.started)}, Inferometer {clean(document.version)}, metrics version {METRICS_VERSION}. "
        "Overlapping intervals tie."
    )
    yield _text(EDGE, 618, about, 18, WIDTH - 2 * EDGE, colour=_MUTED)
