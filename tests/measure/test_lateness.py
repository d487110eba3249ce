"""Lateness in its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass as E
from inferometer.measure.instrument import instrument
from inferometer.measure.load import PARTS, Span, Spans, causes, excused_ms, lateness_ms, parts_ns
from inferometer.measure.samples import Samples

steps = st.tuples(*[st.integers(0, 10**9)] * 3)


@given(st.lists(steps, min_size=1, max_size=20))
def test_the_parts_of_lateness_add_up_to_it(build: Any, waits: list[tuple[int, int, int]]) -> None:
    """Law: scheduling + socket + back-pressure = lateness, to the nanosecond and for every request; shares add up to 1."""
    rows = []
    for index, wait in enumerate(waits):
        taken, sent, submitted = (sum(wait[: place + 1]) / 1e6 for place in range(3))
        rows.append({"index": index, "t_taken": taken, "t_send": sent, "t_submit": submitted})
    record = build(*rows)
    parts = parts_ns(record)
    total = record.t_submit.values - record.t_intended
    assert np.array_equal(np.sort(np.sum(list(parts.values()), axis=0)), np.sort(total))
    found, shares = causes(record)
    assert found is not None
    means = [getattr(found, name).mean for name in PARTS]
    assert sum(means) == pytest.approx(lateness_ms(record).mean())
    assert (shares is None) == (not total.any())
    assert shares is None or sum(shares.values()) == pytest.approx(1)


def test_only_what_was_spent_on_a_connection_of_its_own_is_excused(build: Any) -> None:
    """Law: connecting counts from the taking up; what began before it was for another request."""
    waited = {"t_taken": 1.0, "t_send": 9.0, "t_submit": 10.0}
    own = {"index": 0, **waited, "t_connect": 1.0, "t_connected": 4.0, "t_tls": 8.0}
    ahead = {"index": 1, **waited, "t_connect": 0.5, "t_connected": 4.0, "t_tls": 8.0}
    assert excused_ms(build(own, ahead)).tolist() == pytest.approx([8.0, 1.0])


def test_nothing_sent_has_no_causes_and_nothing_late_no_shares(build: Any) -> None:
    """Law: unknown is None, never 0."""
    assert causes(build({"t_submit": None, "t_send": None, "outcome": "connect_refused"})) == (None, None)
    found, shares = causes(build({}))
    assert found is not None
    assert (found.socket.max, shares) == (0.0, None)


def test_waiting_for_a_core_is_a_share_of_the_run_for_each_worker(build: Any) -> None:
    """Law: growth of the counter over the time between the pulses around the run; None where the system does not count."""
    rows = [{"events": [(50, E.CONTENT), (90, E.CONTENT)]}]
    pulse = [
        {"worker": worker, "t_ms": t, "run_delay_ns": delay}
        for worker, delays in ((0, (7, 7 + 30_000_000)), (1, (None, None)))
        for t, delay in zip((0, 100), delays, strict=True)
    ]
    record = build(*rows, pulse=tuple(pulse))
    span = Span(int(record.t_intended[0]), int(record.t_end[0]))
    shares = instrument(record, Samples(record, streamed=True), Spans(span, None, None)).run_delay_fraction
    assert shares[0] == pytest.approx(0.3)
    assert shares[1:] == (None,)
    assert np.all(record.pulse.run_delay_ns.valid == [True, True, False, False])
