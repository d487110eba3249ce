"""card.svg of an agentic benchmark: each engine's verdict, TTFT with and without the shared prefix, and the conditions."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.documents.agentic import Agentic, AgenticEngine
from inferometer.judge.agentic import PREFIX_TESTS
from inferometer.judge.agentic_means import Mean, ttft_of
from inferometer.report.agentic import contents
from inferometer.report.bench import contents as bench
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
from inferometer.report.figures import clean, figure, moment, share

VERDICT, BARS, END = 350, 490, 790
"""Where the verdicts and the bars begin, and where the longest bar ends."""
_COLOURS = {"yes": TONES["VALID"], "partial": TONES["INCONCLUSIVE"], "no": TONES["INVALID"]}


def render_card(document: Agentic) -> str:
    """The SVG file. All text from outside is escaped, and cut to its room."""
    words = f"{document.status}{', INTERRUPTED' if document.interrupted else ''}"
    return drawing(
        title([clean(one.label) for one in document.engines]),
        document.status,
        words,
        (bench.models(document), bench.machines(document)),
        f"Reuse of a shared prefix. {contents.condition(document)} {words}",
        (*_rows(document), *_foot(document)),
    )


def _rows(document: Agentic) -> Iterator[str]:
    shown = document.engines[:MOST]
    waits = [(ttft_of(one.samples, ("cold",)), ttft_of(one.samples, PREFIX_TESTS)) for one in shown]
    means = [wait.mean for pair in waits for wait in pair if wait is not None]
    scale = linear(means, BARS, END, True) if means else None
    step = min((BOTTOM - TOP) / max(len(shown), 1), 96)
    yield text(VERDICT, TOP - 14, "prefix reuse", 18, 130, colour=MUTED)
    yield text(BARS, TOP - 14, "TTFT: cold (pale), prefix tests (dark)", 18, 400, colour=MUTED)
    yield text(WIDTH - EDGE, TOP - 14, "cached, as reported", 18, 200, colour=MUTED, anchor="end")
    for at, (one, pair) in enumerate(zip(shown, waits, strict=True)):
        yield from _row(one, pair, TOP + step * (at + 0.5), step, scale)
    if len(document.engines) > MOST:
        more = f"and {len(document.engines) - MOST} more in the report"
        yield text(BARS, BOTTOM + 16, more, 18, 500, colour=MUTED)


def _row(
    one: AgenticEngine,
    waits: tuple[Mean | None, Mean | None],
    middle: float,
    step: float,
    scale: Scale | None,
) -> Iterator[str]:
    size = 26 if step >= 50 else 22
    verdict = one.prefix_cache_reuse.verdict
    yield from name(clean(one.label), EDGE, middle, size, VERDICT - EDGE - 14)
    words = verdict or "not known"
    yield text(VERDICT, middle + 9, words, size, 130, colour=_COLOURS.get(words, MUTED), weight=700)
    tall = min(step * 0.3, 24)
    for at, wait in enumerate(waits):
        if wait is None or scale is None:
            continue
        top = middle - tall - 1 + at * (tall + 2)
        wide = max(scale.at(wait.mean) - BARS, 1)
        opacity = 0.85 if at else 0.3
        yield (
            f'<rect x="{BARS}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{BAR}" fill-opacity="{opacity}"/>'
        )
        yield text(BARS + wide + 8, top + tall / 2 + 6, f"{figure(wait.mean, 3)} ms", 16, 120, colour=INK)
    notes = [note for note in (bench.verdict(one), *one.quality_gates.tripped) if note != "VALID"][:2]
    for at, note in enumerate(notes):
        below = middle + 5 + 18 * (at - (len(notes) - 1) / 2)
        yield text(END + 104, below, note, 15, 160, colour=TONES.get(note, TONES["INVALID"]))
    if one.prefix_cache_reuse.source == "cached_tokens":
        value = share(one.prefix_cache_reuse.value)
        yield text(WIDTH - EDGE, middle + 9, value, size, 110, anchor="end")
    elif one.samples:
        yield text(WIDTH - EDGE, middle + 6, "not reported", 16, 130, colour=MUTED, anchor="end")


def _foot(document: Agentic) -> Iterator[str]:
    repeats = document.protocol.repeats
    times = "once" if repeats == 1 else f"{repeats} times with other text"
    sizes = next((one.sizes for one in document.engines if one.sizes is not None), None)
    shared = "" if sizes is None else f" Shared system prompt: {figure(sizes.system_a)} tokens."
    protocol = document.protocol
    how = f"{len(protocol.phases)} phases, {times}, one request at a time, temperature {protocol.temperature:g}."
    about = (
        f"{moment(document.started)}, Inferometer {clean(document.version)}. yes: half of the prompt cached, or TTFT below 1/5 "
        "of cold."
    )
    return foot(how + shared, about)
