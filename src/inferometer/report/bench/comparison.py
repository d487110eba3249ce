"""Two benchmarks compared, in a terminal or a pipe, and as Markdown."""

from __future__ import annotations

from rich.console import Console

from inferometer.documents.bench_comparison import BenchComparison, BenchSide, ComparedFigure
from inferometer.report.bench.contents import span
from inferometer.report.comparison.words import OUTCOMES, VERDICTS, percent
from inferometer.report.figures import clean, figure, moment, text
from inferometer.report.tables import Screen, bullets, escaped, markdown_table

HEAD = ("engine", "prompt", "A", "95 %", "B", "95 %", "change", "verdict")
TITLES = {"tok_per_sec": "Tokens per second", "ttft_client_ms": "Client TTFT, ms"}
NOTE = (
    "Means of the runs with their 95 % intervals. A figure is better or worse only if the intervals of the sides do not "
    "overlap; nothing is corrected for the number of figures."
)


def render(document: BenchComparison, console: Console) -> None:
    """Print the comparison."""
    screen = Screen(console, most=100)
    screen.say("")
    screen.say(OUTCOMES[document.outcome], "bold")
    for one in document.sides:
        screen.say(_side(one))
    for name, title in TITLES.items():
        if rows := _rows(document, name):
            screen.say("")
            screen.say(title, "bold")
            screen.table(HEAD, rows, [False, False, *[True] * 5, False], cut=False)
    screen.say("")
    for line in _lines(document):
        screen.say(line)
    screen.say(NOTE, "dim")


def render_markdown(document: BenchComparison) -> str:
    """The page."""
    parts = [f"# {OUTCOMES[document.outcome]}", bullets(map(_side, document.sides))]
    for name, title in TITLES.items():
        rows = _rows(document, name)
        parts += (
            [f"## {title}", markdown_table(HEAD, rows, [False, False, *[True] * 5, False])] if rows else []
        )
    parts += [bullets(_lines(document)), escaped(NOTE)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _side(one: BenchSide) -> str:
    return f"{one.label}: {clean(one.name)}, {one.status}, {moment(one.started)}"


def _rows(document: BenchComparison, name: str) -> list[tuple[str, ...]]:
    return [_row(one) for one in document.figures if one.figure == name]


def _row(one: ComparedFigure) -> tuple[str, ...]:
    return (
        clean(one.engine),
        clean(one.prompt),
        figure(one.baseline.mean),
        span(one.baseline),
        figure(one.side.mean),
        span(one.side),
        percent(one.change),
        VERDICTS[one.verdict],
    )


def _lines(document: BenchComparison) -> list[str]:
    """What else to know: results that are INVALID, engines of one side only, metadata that differ."""
    lines = [f"{clean(one)} is INVALID on a side: no claim." for one in document.invalid]
    if document.unmatched:
        lines.append(f"On one side only: {', '.join(map(clean, document.unmatched))}.")
    lines += [
        f"{clean(one.engine)}, {one.name}: A: {text(one.baseline)}, B: {text(one.side)}."
        for one in document.differences
    ]
    return lines
