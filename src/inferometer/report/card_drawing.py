"""What cards have in common: one picture of 1200 x 630 as SVG, to share.

A card stands alone: its colours are its own and no script, style sheet or font is loaded. A card without its conditions would
be an advertisement, so they are on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

WIDTH, HEIGHT, EDGE = 1200, 630, 56
MOST = 6
"""Engines on a card; the others are counted."""
TOP, BOTTOM = 216, 540
"""Where the rows of engines begin and end."""
CHAR = 0.52
"""Width of a character, of the font's size: an upper mean for the fonts of _SANS."""
BOLD = 0.56
"""The same of a bold one, with the capitals of models' names."""
_SANS = "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"
TONES = {"VALID": "#1a6a3d", "INVALID": "#a3221c", "INCONCLUSIVE": "#825500"}
INK, MUTED, RULE, PAPER, BAR = "#1c1c1a", "#5c5b55", "#dcd9cf", "#fcfbf8", "#1f5a8c"


def text(
    x: float,
    y: float,
    words: str,
    size: int,
    room: float,
    *,
    colour: str = INK,
    anchor: str = "start",
    weight: int = 400,
) -> str:
    """A line of text, escaped, and cut to its room."""
    most = max(int(room / (size * CHAR)), 3)
    shown = words if len(words) <= most else words[: most - 3].rstrip() + "..."
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(shown)}</text>"
    )


def name(label: str, start: float, middle: float, size: int, room: float) -> Iterator[str]:
    """An engine's name on one line, or in smaller letters on two."""
    if len(label) <= int(room / (size * BOLD)):
        yield text(start, middle + size * 0.35, label, size, room, weight=600)
        return
    most = int(room / (19 * BOLD))
    whole = len(label) <= 2 * most
    yield text(start, middle - 4, label[:most] if whole else f"{label[: most - 3]}...", 19, room, weight=600)
    if len(label) > most:
        yield text(start, middle + 18, label[most:] if whole else label[-most:], 19, room, weight=600)


def title(labels: list[str]) -> str:
    """Of the engines with these names."""
    return " vs ".join(labels) if 1 <= len(labels) <= 3 else f"{len(labels)} engines"


def drawing(
    heading: str, status: str, words: str, about: Iterable[str], label: str, parts: Iterable[str]
) -> str:
    """The SVG file. `words`: the verdict; `about`: two lines below the heading; `label`: for those who cannot see it."""
    tone = TONES[status]
    first, second = about
    every = (
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/><rect width="14" height="{HEIGHT}" fill="{tone}"/>',
        text(EDGE, 84, heading, 44, WIDTH - 2 * EDGE - 430, weight=700),
        text(WIDTH - EDGE, 82, words, 30, 420, colour=tone, anchor="end", weight=700),
        text(EDGE, 126, first, 24, WIDTH - 2 * EDGE, colour=MUTED),
        text(EDGE, 158, second, 24, WIDTH - 2 * EDGE, colour=MUTED),
        *parts,
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(label, quote=True)}" font-family="{_SANS}">{"".join(every)}</svg>\n'
    )


def foot(how: str, about: str) -> Iterator[str]:
    """The conditions, in two lines below a rule."""
    yield f'<path d="M{EDGE} 568H{WIDTH - EDGE}" stroke="{RULE}" stroke-width="2"/>'
    yield text(EDGE, 594, how, 18 if len(how) <= 116 else 16, WIDTH - 2 * EDGE, colour=MUTED)
    yield text(EDGE, 618, about, 18, WIDTH - 2 * EDGE, colour=MUTED)
