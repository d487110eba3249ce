"""Tokens from first to last text: those that show nothing before or after are not what the time between was spent on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass
from inferometer.measure.error_bound import error_bounds
from inferometer.measure.load import Spans
from inferometer.measure.samples import Samples

CONTENT, REASONING, EMPTY = EventClass.CONTENT, EventClass.REASONING, EventClass.EMPTY
EACH_MS = 5.0


def answer(kinds: list[EventClass], usage: int | None, **more: Any) -> dict[str, Any]:
    """An answer with an event of these classes every 5 ms."""
    events = [(50.0 + EACH_MS * at, kind) for at, kind in enumerate(kinds)]
    return {"events": events, "usage_output": usage, **more}


def tpot(build: Any, row: dict[str, Any]) -> float:
    return float(Samples(build(row), streamed=True).tpot[0])


@given(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.integers(2, 40), st.booleans())
def test_a_token_every_five_milliseconds_is_a_tpot_of_five(
    build: Any, before: int, between: int, after: int, seen: int, ended: bool
) -> None:
    """Law: where every event is a token, whether it shows something or not, and the answer's end may be one more, TPOT is the
    time of a token."""
    kinds = [EMPTY] * before + [CONTENT] + [EMPTY] * between + [CONTENT] * (seen - 1) + [EMPTY] * after
    row = answer(kinds, len(kinds) + ended, finish_reason="stop" if ended else "length")
    assert tpot(build, row) == pytest.approx(EACH_MS)


@given(st.integers(0, 20), st.integers(2, 40))
def test_padding_that_is_not_counted_changes_nothing(build: Any, padding: int, seen: int) -> None:
    """Law: events without text of which the server counts none are no tokens, wherever they are."""
    kinds = [EMPTY] * padding + [CONTENT] * seen + [EMPTY] * padding
    assert tpot(build, answer(kinds, seen)) == pytest.approx(EACH_MS)


def test_reasoning_that_is_not_sent_is_no_part_of_the_pace(build: Any) -> None:
    """Law: reasoning tokens of the usage that no event has come before the first text; where events have them, they are
    between first and last text."""
    silent = answer([CONTENT] * 8, 16, usage_reasoning=8)
    sent = answer([REASONING] * 8 + [CONTENT] * 8, 16, usage_reasoning=8)
    assert tpot(build, silent) == tpot(build, sent) == pytest.approx(EACH_MS)


def test_what_cannot_be_told_is_not_measured(build: Any) -> None:
    """Law: beside events of several tokens a first event without text may be a token or padding; TPOT is given only where that
    makes less than a twentieth of a difference. Characters that nobody sees were generated."""
    several = [EMPTY] + [CONTENT] * 5
    assert math.isnan(tpot(build, answer(several, 16)))
    assert tpot(build, answer(several, 41)) == pytest.approx(20.0 / 40)
    assert tpot(build, answer(several, 16, text="\u200b" + "word" * 5)) == pytest.approx(20.0 / 14)


@pytest.mark.parametrize(
    ("text", "local", "tokens"),
    [("\u200b" + "word" * 15, 16, 15), ("word" * 15, 15, 15), ("\u200b", None, 1)],
)
def test_a_tokenizer_counts_text_alone(build: Any, text: str, local: int | None, tokens: int) -> None:
    """Law: of a tokenizer's count, hidden characters before the text are taken off, and empty deltas are not; an estimate stays
    as it is."""
    row = answer([EMPTY] + [CONTENT] * 15, None, text=text, output_tokens_local=local)
    assert Samples(build(row), streamed=True).span_tokens[0] == tokens


def test_an_answer_without_text_keeps_its_tokens(build: Any) -> None:
    """Law: where there is no first text, nothing stands before it."""
    record = build(answer([EMPTY] * 3, 3), answer([CONTENT] * 2, 2, index=1), answer([], 4, index=2))
    assert Samples(record, streamed=True).span_tokens.tolist() == [3, 2, 4]


def test_the_bound_of_tpot_is_of_the_same_tokens(build: Any) -> None:
    """Law: reads that may be 3 ms late bound a pace of three tokens by 1 ms, whatever stands before them."""
    late = {"merged_event": [], "merged_ns": [], "submit_ns": 0, "lag_ns": 3_000_000}
    samples = Samples(build(answer([EMPTY] + [CONTENT] * 4, 5) | late), streamed=True)
    bounds = error_bounds(samples, Spans(None, None, None))
    assert bounds is not None
    assert bounds.tpot_ms is not None
    assert bounds.tpot_ms.p50 == pytest.approx(1.0)
