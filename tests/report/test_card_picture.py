"""A card as PNG: its size, its letters, and that it is the same on every machine."""

from __future__ import annotations

import struct
from html import escape

import pytest
from benches import usual
from hypothesis import given
from hypothesis import strategies as st

from inferometer.report.bench.card import render_card
from inferometer.report.card_drawing import HEIGHT, WIDTH
from inferometer.report.card_picture import ZOOM, picture


def pictured(words: str, weight: int = 400) -> bytes:
    """A picture of some words and nothing else, before white."""
    return picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20" font-family="Inter, sans-serif">'
        f'<text x="2" y="15" font-size="14" font-weight="{weight}">{escape(words)}</text></svg>'
    )


def test_a_card_as_png_has_twice_as_many_pixels_each_way() -> None:
    """By the header of the PNG file."""
    png = picture(render_card(usual()))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (ZOOM * WIDTH, ZOOM * HEIGHT)


@pytest.mark.parametrize("weight", [400, 700])
@pytest.mark.parametrize("sign", "aZ09~éßŁΩжЯ…‰€→≈≤µ°")
def test_letters_of_the_reports_have_glyphs(sign: str, weight: int) -> None:
    """Neither a gap nor the sign for what is missing, in either weight."""
    assert pictured(sign, weight) not in (pictured("", weight), pictured("\ufffd", weight))


@given(st.characters(codec=None))
def test_no_character_vanishes(sign: str) -> None:
    """Whatever an engine's name holds leaves ink, or is white space, or is marked as missing."""
    shown = pictured(sign)
    if sign.isspace() or 0x2000 <= ord(sign) <= 0x200A or sign == "\xad":
        return
    assert shown != pictured("")


def test_what_is_no_svg_is_an_error() -> None:
    """And never an empty picture."""
    with pytest.raises(ValueError, match="token"):
        picture("no picture")
