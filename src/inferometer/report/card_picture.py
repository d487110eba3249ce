"""A card as PNG, for the places that show no SVG: most chats and forums.

Its letters are the package's own (fonts/, DejaVu Sans Condensed 2.37), so the picture is the same on every machine, also on
one without fonts. They cover Latin, Greek and Cyrillic; any other character becomes U+FFFD.
"""

from __future__ import annotations

import re
from pathlib import Path

import resvg_py

FONTS = Path(__file__).parent / "fonts"
FAMILY = "DejaVu Sans Condensed"
ZOOM = 2
"""Pixels along a unit of the SVG: text stays sharp where a picture is shown enlarged."""
_MISSING = re.compile(
    "[^\t\n\r -~\u00a0-\u017f\u0370-\u0377\u037a-\u037f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u045f"
    "\u2000-\u200a\u2010-\u2027\u202f\u2030-\u203a\u20ac\u2190-\u2193\u2212\u2248\u2260\u2264\u2265]"
)
"""What the fonts have no glyph for: it would leave a gap without a trace."""
_FAMILIES = re.compile(r'font-family="[^"]*"')


def picture(svg: str) -> bytes:
    """A PNG file of a card's SVG file.

    Raises:
        ValueError: it is no SVG.
    """
    own = _FAMILIES.sub(f'font-family="{FAMILY}"', _MISSING.sub("\ufffd", svg))
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=own,
            font_files=[str(path) for path in sorted(FONTS.glob("*.ttf"))],
            font_family=FAMILY,
            skip_system_fonts=True,
            zoom=ZOOM,
        )
    )
