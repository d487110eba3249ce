"""Tokens in flight: by hand, and against a plain count at every instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass as E
from inferometer.measure.load import Span, tokens_in_flight
from inferometer.measure.record import Record
from inferometer.measure.tokens import count

ORIGIN = 10**16 + 1
MS = 10**6


def span(start_ms: float, end_ms: float) -> Span:
    return Span(ORIGIN + round(start_ms * MS), ORIGIN + round(end_ms * MS))


def test_one_request_by_hand(build: Callable[..., Record]) -> None:
    """100 prompt tokens for 40 ms, and four tokens in two events at 20 and 30 ms: 100 x 40 + 2 x 20 + 2 x 10 over 50 ms."""
    one = {"events": [(20.0, E.CONTENT), (30.0, E.CONTENT)], "usage_output": 4, "t_end": 40.0}
    found = tokens_in_flight(build(one), span(0, 50), reference=False)
    assert found is not None
    assert [found.mean, found.peak] == pytest.approx([4060 / 50, 104])
    later = tokens_in_flight(build(one), span(25, 35), reference=False)
    assert later is not None
    assert [later.mean, later.peak] == pytest.approx([103, 104])
    assert tokens_in_flight(build(one), span(9, 9), reference=False) is None
    assert tokens_in_flight(build(one), None, reference=False) is None


def test_an_answer_that_comes_whole_is_its_prompt(build: Callable[..., Record]) -> None:
    """Nobody saw it grow; and a warm-up request is not there at all."""
    whole: dict[str, Any] = {"events": [(40.0, E.CONTENT)], "usage_output": 900, "t_end": 40.0}
    found = tokens_in_flight(build(whole, whole | {"phase": 0}), span(0, 40), reference=False)
    assert found is not None
    assert [found.mean, found.peak] == pytest.approx([100, 100])


def test_the_next_takes_the_place_of_the_last(build: Callable[..., Record]) -> None:
    """One that begins the instant another ends does not stand beside it."""
    rows = [{"t_intended": ms, "events": [(ms + 10, E.CONTENT)]} for ms in (0.0, 10.0, 20.0)]
    found = tokens_in_flight(build(*rows), span(0, 30), reference=False)
    assert found is not None
    assert found.peak == pytest.approx(100)


@given(st.integers(0, 2**32), st.integers(0, 200), st.integers(1, 300))
@settings(max_examples=25, deadline=None)
def test_every_instant_counted_one_by_one(
    build: Any, random_rows: Any, seed: int, start: int, length: int
) -> None:
    """Independent partner: at every ms, the sum over requests of their prompt and of what had come of their answer."""
    record = build(*random_rows(seed, 30))
    found = tokens_in_flight(record, span(start, start + length), reference=False)
    assert found is not None
    rows = np.flatnonzero(record.measured)
    counts = count(record, rows, reference=False)
    held = []
    for ms in range(start, start + length):  # all times are whole ms
        at, total = ORIGIN + ms * MS, 0.0
        for place, row in enumerate(rows.tolist()):
            if not record.t_send.values[row] <= at < record.t_end[row]:
                continue
            events = record.event_ns[record.event_offsets[row] : record.event_offsets[row + 1]][1:]
            came = (events <= at).sum() / max(1, len(events))
            total += counts.input[place] + counts.output[place] * came
        held.append(total)
    assert found.mean == pytest.approx(np.mean(held), abs=1e-6)
    assert found.peak == pytest.approx(max(held), abs=1e-6)
