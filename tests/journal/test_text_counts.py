"""What is counted in a text: the fast way counts what the expressions define."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.journal.text_counts import NAMES, by_expressions, text_counts

CHARACTERS = "ab \t\n\v\f\r\x00\x1f\x7f\u200b\u200d\ufe0f\ufffd\u00e9\u4e2d\U0001f600\u2800\u00a0\u1160"
TEXTS = st.lists(st.none() | st.text(CHARACTERS, max_size=12) | st.text("ab \n\t", max_size=12), max_size=12)


@given(TEXTS, st.integers(0, 3), st.integers(0, 12))
def test_a_text_is_counted_alike_both_ways(texts: list[str | None], start: int, length: int) -> None:
    """Law: `text_counts` is `by_expressions`, for any mix of texts and for a part of a column."""
    column = pa.array(texts, pa.string()).slice(start, length)
    assert text_counts(column) == by_expressions(column)


def test_every_character_is_counted_alike_both_ways() -> None:
    """Law: so is each by itself, between letters and beside its like; beyond the planes in use, one of each sixteen."""
    points = [*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 16), 0xE0001, 0xE007F]
    column = pa.array([f"a{chr(point)}b {chr(point)}{chr(point)}" for point in points], pa.string())
    assert text_counts(column) == by_expressions(column)


@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_long_texts_and_columns_are_counted_alike_both_ways(seed: int) -> None:
    """Law: so are more bytes than are counted at once, in texts of any length."""
    random = np.random.default_rng(seed)
    words = np.array(
        ["word ", "na\u00efve", "\u4e2d\u6587\u3001", "\U0001f600", "\n", "\u201cso\u201d ", "x" * 300]
    )
    texts = [
        "".join(random.choice(words, size))
        for size in (0, 100_000, 1, 5_000, 0, *random.integers(0, 50, 500))
    ]
    texts[int(random.integers(len(texts)))] += "\u200b"
    column = pa.array([*texts, None], pa.string())
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
