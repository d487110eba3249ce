"""The generated text, against the tokenizer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.filler_text import PIECES, text
from inferometer.workload.encodings import Cl100k

TOKENIZER = Cl100k()


def test_every_piece_is_one_token() -> None:
    """One event, one token."""
    assert [piece for piece in PIECES if len(TOKENIZER.encode(piece)) != 1] == []


@given(st.integers(0, 10_000), st.integers(1, 2_000))
def test_the_joined_text_has_as_many_tokens_as_pieces(start: int, count: int) -> None:
    """Re-encoding the whole text gives the tokens one by one: no two pieces merge, wherever it starts and ends."""
    pieces = [PIECES[(start + i) % len(PIECES)] for i in range(count)]
    assert text(start, count) == "".join(pieces)
    assert TOKENIZER.encode(text(start, count)) == [TOKENIZER.encode(piece)[0] for piece in pieces]


def test_marks_stand_where_prose_has_them() -> None:
    """Words have a space in front, punctuation has none."""
    assert text(0, 20) == (
        " A measurement is only as good as the clock that made it. When two people time the same race"
    )


def test_no_token_is_white_space() -> None:
    """The first token is the first visible token (draft 5.1.3.1)."""
    assert all(piece.strip() for piece in PIECES)
