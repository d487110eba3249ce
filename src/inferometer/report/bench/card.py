"""card.svg of a benchmark: numbers, verdict, and its conditions: model, chip, runs and the definition of the bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inferometer.documents.bench import METRICS_VERSION, Bench, EngineResult, Figure, Ranking
from inferometer.judge.bench import figure_over
from inferometer.report.bench import contents
from inferometer.report.card_drawing import (
    BAR,
    BOTTOM,
    EDGE,
    INK,
    MOST,
    MUTED,
    TONES,
    TOP,
    WIDTH,
    drawing,
    foot,
    name,
    text,
    title,
)
from inferometer.report.charts import Scale, linear
from inferometer.report.figures import clean, figure, moment

BARS = 440
"""Where the bars begin."""
END = 800
"""Where the longest bar ends; figures stand right of it."""


def render_card(document: Bench) -> str:
    """The SVG file. All text from outside is escaped, and cut to its room."""
    words = f"{document.status}{', INTERRUPTED' if document.interrupted else ''}"
    return drawing(
        title([clean(one.label) for one in document.engines]),
        document.status,
        words,
        (contents.models(document), contents.machines(document)),
        f"{contents.condition(document)} {words}",
        (*_rows(document), *_foot(document)),
    )


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
            TONES.get(one.status or "", MUTED),
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
    yield text(BARS, TOP - 14, caption, 18, 480, colour=MUTED)
    yield text(WIDTH - EDGE, TOP - 14, "client TTFT, median", 18, 260, colour=MUTED, anchor="end")
    for at, one in enumerate(shown):
        yield from _row(one, TOP + step * (at + 0.5), step, scale, start)
    if len(rows) > MOST:
        yield text(BARS, BOTTOM + 16, f"and {len(rows) - MOST} more in the report", 18, 500, colour=MUTED)


def _row(one: _Row, middle: float, step: float, scale: Scale | None, start: float) -> Iterator[str]:
    size = 26 if step >= 50 else 22
    line = middle + size * 0.35
    yield text(EDGE, line, one.place, size, 84, colour=MUTED)
    yield from name(one.label, start, middle, size, BARS - start - 14)
    if scale is None or one.speed.median is None:
        yield text(BARS, line, ", ".join(one.notes), size, 470, colour=one.tone)
        return
    yield _bar(scale.at(one.speed.median), middle, min(step * 0.62, 50), 0.75 if one.ranked else 0.3)
    if one.speed.ci95 is not None:
        yield _interval(one.speed.ci95, scale, middle)
    yield text(END + 14, line, figure(one.speed.median, 3), size, 90, weight=700)
    notes = one.notes[:2]
    for at, note in enumerate(notes):
        below = middle + 5 + 18 * (at - (len(notes) - 1) / 2)
        yield text(END + 92, below, note, 15, 130, colour=one.tone if note in TONES else MUTED)
    yield text(WIDTH - EDGE, line, f"{figure(one.wait.median, 3)} ms", size, 150, anchor="end")


def _bar(end: float, middle: float, tall: float, opacity: float) -> str:
    return (
        f'<rect x="{BARS}" y="{middle - tall / 2:.1f}" width="{max(end - BARS, 1):.1f}" height="{tall:.1f}" fill="{BAR}" '
        f'fill-opacity="{opacity}"/>'
    )


def _interval(ends: tuple[float, float], scale: Scale, middle: float) -> str:
    low, high = (scale.inside(end) for end in ends)
    return (
        f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}M{low:.1f} {middle - 9:.1f}v18M{high:.1f} {middle - 9:.1f}v18" '
        f'stroke="{INK}" stroke-width="2.5" fill="none"/>'
    )


def _foot(document: Bench) -> Iterator[str]:
    ranking = _ranking(document)
    over = contents.partial(ranking, document) if ranking is not None else ""
    runs = "one run" if document.protocol.runs == 1 else f"{document.protocol.runs} runs"
    prompts = ", ".join(map(clean, document.protocol.prompts))
    how = f"Median of {runs}, one request at a time. {over or f'Prompts: {prompts}.'}"
    about = (
        f"{moment(document.started)}, Inferometer {clean(document.version)}, metrics version {METRICS_VERSION}. "
        "Overlapping intervals tie."
    )
    return foot(how, about)
