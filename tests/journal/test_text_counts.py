"""What is counted in a text: the fast way counts what the expressions define."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.text_counts import NAMES, by_expressions, text_counts

CHARACTERS = "ab \t\n\v\f\r\x00\x1f\x7f\u200b\u200d\ufe0f\ufffd\u00e9\u4e2d\U0001f600\u2800\u00a0\u1160"
TEXTS = st.lists(st.none() | st.text(CHARACTERS, max_size=12) | st.text("ab \n\t", max_size=12), max_size=12)


@given(TEXTS, st.integers(0, 3), st.integers(0, 12))
def test_a_text_is_counted_alike_both_ways(texts: list[str | None], start: int, length: int) -> None:
    """Law: `text_counts` is `by_expressions`, for any mix of texts and for a part of a column."""
    column = pa.array(texts, pa.string()).slice(start, length)
    assert text_counts(column) == by_expressions(column)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (None, (None, None, None, None, None)),
        ("", (0, 0, False, 0, 0)),
        ("two words", (9, 9, False, 0, 2)),
        (" \n ", (3, 3, False, 0, 0)),
        ("a\u200bb", (3, 2, False, 1, 1)),
        ("na\u00efve", (5, 6, False, 0, 1)),
        ("\u2764\ufe0f", (2, 3, False, 0, 1)),
        ("lost \ufffd", (6, 8, True, 0, 2)),
    ],
)
def test_what_is_counted(text: str | None, counts: tuple[object, ...]) -> None:
    """By hand: characters, bytes that can be seen, lost ones, unseen ones, words."""
    found = [column.to_pylist() for column in text_counts(pa.array([text], pa.string()))]
    assert dict(zip(NAMES, (one for (one,) in found), strict=True)) == dict(zip(NAMES, counts, strict=True))
