"""The bounds of the instrument's own error: whatever the true arrivals were, the true figure lies within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass
from inferometer.measure.error_bound import STATISTICS_BOUND, Bound, error_bounds
from inferometer.measure.event_waits import event_waits
from inferometer.measure.load import Span, Spans
from inferometer.measure.samples import Samples, values_of
from inferometer.measure.stats import percentile
from inferometer.metrics.statistics import INTERVALS

MS = 1_000_000
NO_SPANS = Spans(None, None, None)
HEADLINES = ("ttft_ms", "e2e_ms", "tpot_ms", "ttft_from_intended_ms", "e2e_from_intended_ms")


def test_all_events_of_a_read_but_its_last_may_have_waited() -> None:
    """By hand: two answers; a read of three events, one of two whose wait the event before it cuts short, one that leads.
    Of a read that held events of other requests too, the last may have waited as well."""
    event_ns = np.array([10, 50, 50, 50, 60, 60, 100, 100, 130]) * MS
    offsets = np.array([0, 6, 9])
    waits = event_waits(event_ns, offsets, np.array([1, 4, 6]), np.array([25, 25, 40]) * MS)
    assert (waits / MS).tolist() == [0, 25, 25, 0, 10, 0, 40, 0, 0]
    shared = event_waits(event_ns, offsets, np.array([1, 4, 6]), np.array([-25, -25, 40]) * MS)
    assert (shared / MS).tolist() == [0, 25, 25, 25, 10, 10, 40, 0, 0]
    assert not event_waits(event_ns, offsets, np.zeros(0, np.int64), np.zeros(0, np.int64)).any()


def request(index: int, submit: float, times: list[float], **more: Any) -> dict[str, Any]:
    """A streamed answer with a token at each of `times` (ms)."""
    events = [(at, EventClass.CONTENT) for at in times]
    known = {"merged_event": [], "merged_ns": [], "submit_ns": 0, "usage_output": len(times)} | more
    return {"index": index, "t_intended": submit, "t_submit": submit, "events": events, **known}


def stated(samples: Samples, name: str) -> dict[str, float]:
    """Mean and percentiles of a metric, or of the gaps."""
    values = np.sort(values_of(samples, name))
    values = values[~np.isnan(values)]
    found = {"mean": float(values.mean())}
    return found | {key: percentile(values, p) for key, p in INTERVALS.items()}


def read_late(
    true: list[float], reads: list[float], submit: float, index: int, call: float
) -> dict[str, Any]:
    """The row of an answer with tokens at `true` for a client that reads at `reads`: each read has its last token's stamp."""
    stamps: list[float] = []
    merged: list[int] = []
    waits: list[int] = []
    empty = submit
    for at in [*reads, true[-1] + 1.0]:
        these = [time for time in true if empty < time <= at]
        if len(these) > 1:
            merged.append(len(stamps))
            waits.append(round((these[-1] - empty) * MS))
        stamps += [these[-1]] * len(these) if these else []
        empty = max(empty, at)
    row = request(index, submit - call, stamps)
    return row | {"merged_event": merged, "merged_ns": waits, "submit_ns": round(call * MS)}


@given(st.integers(0, 10**6), st.floats(0.2, 30.0))
@settings(deadline=None, max_examples=60)
def test_the_true_figure_lies_within_the_bound(build: Any, seed: int, pause: float) -> None:
    """Law: for tokens that come at any times and a client that reads at any times, where a read has the stamp of its last
    packet, no statistic of TTFT, E2E, TPOT or the gaps is farther from the true one than its bound."""
    random = np.random.default_rng(seed)
    true_rows, rows = [], []
    for index in range(40):
        submit = float(index * 10) + 1.0
        true = (submit + np.cumsum(random.exponential(10.0, random.integers(2, 12)) + 0.2)).tolist()
        reads = (submit + np.cumsum(random.exponential(pause, 200))).tolist()
        call = float(random.choice([0.0, 0.5]))
        true_rows.append(request(index, submit, true))
        rows.append(read_late(true, [at for at in reads if at < true[-1]], submit, index, call))
    truth = Samples(build(*true_rows, timestamp_source="kernel"), streamed=True, native=True)
    samples = Samples(build(*rows, timestamp_source="kernel"), streamed=True, native=True)
    bounds = error_bounds(samples, NO_SPANS)
    assert bounds is not None
    names = [name for name in HEADLINES if not np.isnan(values_of(samples, name)).any()]
    if samples.itl_method == truth.itl_method == "direct":
        names.append("itl_ms")
    assert {"ttft_ms", "e2e_ms"} <= set(names)
    for name in names:
        bound, said, right = getattr(bounds, name), stated(samples, name), stated(truth, name)
        for key in STATISTICS_BOUND:
            assert abs(said[key] - right[key]) <= getattr(bound, key) + 1e-5, (name, key)


def test_reads_of_one_packet_leave_no_doubt(build: Any) -> None:
    """Law: however late it is read, an event that shares its stamp with no other has no bound above 0; and one that shares it
    with others, but came in the same packet, has none either."""
    rows = [request(index, 0.0, [50.0, 60.0, 60.0, 80.0], lag_ns=30 * MS) for index in range(20)]
    bounds = error_bounds(Samples(build(*rows, timestamp_source="kernel"), streamed=True), NO_SPANS)
    assert bounds is not None
    assert bounds.ttft_ms == bounds.e2e_ms == bounds.tpot_ms == Bound(0, 0, 0, 0, 0)
    assert (bounds.itl_ms or bounds.chunk_gap_ms) == Bound(0, 0, 0, 0, 0)


def test_without_kernel_stamps_every_event_may_have_waited(build: Any) -> None:
    """A read is then stamped when it is done: as late as the longest wait of the answer's reads."""
    rows = [request(index, 0.0, [50.0, 60.0], lag_ns=2 * MS) for index in range(20)]
    bounds = error_bounds(Samples(build(*rows, timestamp_source="user"), streamed=True), NO_SPANS)
    assert bounds is not None
    assert bounds.ttft_ms is not None
    assert bounds.ttft_ms.p99 == pytest.approx(2.0)


def test_our_own_lateness_is_part_of_what_is_counted_from_the_due_instant(build: Any) -> None:
    """Waiting for a connection that was opened for the request is not ours; the rest of the time to the first byte is."""
    late = {"t_intended": 0.0, "t_taken": 3.0, "t_send": 3.0}
    ours = [request(index, 3.0, [50.0, 60.0], **late) for index in range(20)]
    opened = {"t_connect": 0.5, "t_connected": 2.5, "t_taken": 0.5}
    theirs = [one | opened for one in ours]
    for rows, bound in ((ours, 3.0), (theirs, 1.0)):
        bounds = error_bounds(Samples(build(*rows, timestamp_source="kernel"), streamed=True), NO_SPANS)
        assert bounds is not None
        assert bounds.ttft_ms is not None
        assert bounds.ttft_from_intended_ms is not None
        assert bounds.ttft_from_intended_ms.p50 == pytest.approx(bound)
        assert bounds.ttft_ms.p50 == 0


def test_throughput_is_in_doubt_by_what_may_have_crossed_an_end_of_the_span(build: Any) -> None:
    """By hand: of 4 tokens a request, one may have come before the span of 100 ms begins: 20 of them, 200 tokens/s."""
    read = {"merged_event": [0], "merged_ns": [15 * MS]}
    rows = [request(index, 0.0, [50.0, 50.0, 60.0, 80.0], **read) for index in range(20)]
    record = build(*rows, timestamp_source="kernel")
    start = int(record.event_ns.min()) - 10 * MS
    steady = Span(start, start + 100 * MS)
    bounds = error_bounds(Samples(record, streamed=True), Spans(steady, steady, steady))
    assert bounds is not None
    assert bounds.output_tok_s == pytest.approx(200.0)
    assert bounds.request_s == 0.0


def test_a_record_that_does_not_say_has_no_bounds(build: Any) -> None:
    """As those of earlier versions; nor has a simulation."""
    row = request(0, 0.0, [50.0, 60.0])
    old = build(row | {"merged_event": None, "merged_ns": None}, timestamp_source="kernel")
    for record in (old, build(row, timestamp_source="virtual")):
        assert error_bounds(Samples(record, streamed=True), NO_SPANS) is None


def test_only_tokens_that_may_have_been_merged_make_an_answer_read_late(build: Any) -> None:
    """Law: a stall that ends just after an answer's last packet counts, though its bytes were read at once; the last token and
    the end of the stream that comes behind it merge no tokens."""
    stalled = {"merged_event": [1], "merged_ns": [15 * MS], "lag_ns": 10_000}
    rows = [request(0, 0.0, [50.0, 80.0, 80.0, 100.0], **stalled)]
    ended = {"merged_event": [2], "merged_ns": [15 * MS], "lag_ns": 10_000}
    row = request(1, 0.0, [50.0, 80.0, 100.0], **ended)
    row["events"] = [*row["events"], (100.0, EventClass.FINISH)]
    samples = Samples(build(*rows, row, timestamp_source="kernel"), streamed=True)
    assert samples.read_late.tolist() == [True, False]
    assert (samples.last_wait_ns / MS).tolist() == [0.0, 15.0]
