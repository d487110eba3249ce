"""Generations of a benchmark, from planted rows of a record: whose clock counts, what is discarded, what is warned of."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from inferometer.journal.schema import RECORD, Phase
from inferometer.measure.generations import Generation, generations

MS = 1_000_000
START = 5_000 * MS


def row(index: int = 0, **changes: Any) -> dict[str, Any]:
    """A generation of 100 tokens in 1,000 ms after a first token at 50 ms, by the client's clock."""
    return {
        "index": index,
        "phase": Phase.MEASURE,
        "t_submit": START,
        "t_end": START + 1_050 * MS,
        "event_ns": [START + 40 * MS, START + 50 * MS, START + 1_040 * MS],
        "first_text": 1,
        "outcome": "ok",
        "text": "x" * 400,
        "usage_input": 20,
        "usage_output": 100,
    } | changes


def found(*rows: dict[str, Any], prompts: int = 1, fast_is_odd: bool = False) -> tuple[Generation, ...]:
    fields = [field.with_nullable(True) for field in RECORD]
    table = pa.Table.from_pylist(list(rows), schema=pa.schema(fields))
    return generations(table, prompts, fast_is_odd=fast_is_odd)


def one(**changes: Any) -> Generation:
    (only,) = found(row(**changes), fast_is_odd=True)
    return only


def test_a_stream_is_timed_from_its_last_byte_to_its_first_text_and_its_end() -> None:
    """Not from an event without text, nor to the last text: M2, M3, M5 and M1 by the client's clock."""
    only = one()
    assert only.by == only.client
    assert only.by is not None
    assert (only.by.source, only.by.ttft_ms, only.by.total_ms) == ("client", 50.0, 1_050.0)
    assert only.by.generation_ms == 1_000.0
    assert (only.speed, only.tokens, only.counts, only.warnings) == (100.0, 100, True, ())


def test_an_engines_own_durations_count_where_it_reports_all_three() -> None:
    """And the client's TTFT stays beside them; what the parts leave of the total is the time to load."""
    own = {"server_total_ns": 900 * MS, "server_prefill_ns": 30 * MS, "server_decode_ns": 800 * MS}
    only = one(**own)
    assert only.by is not None
    assert only.client is not None
    assert (only.by.source, only.by.ttft_ms, only.by.total_ms) == ("server", 30.0, 900.0)
    assert only.by.load_ms == pytest.approx(70.0)
    assert (only.speed, only.client.ttft_ms) == (125.0, 50.0)
    for missing in own:
        partly = one(**own | {missing: None})
        assert partly.by == partly.client


def test_durations_that_contradict_each_other_are_not_used() -> None:
    """Parts longer than their total break the invariant; equal ones do not, whatever rounding does."""
    only = one(server_total_ns=100, server_prefill_ns=50, server_decode_ns=51)
    assert only.by == only.client
    assert only.warnings == ("durations_differ",)
    exact = one(server_total_ns=333_333_333, server_prefill_ns=111_111_110, server_decode_ns=222_222_223)
    assert exact.by is not None
    assert exact.by.source == "server"
    assert exact.by.load_ms == pytest.approx(0.0, abs=1e-9)


def test_an_engine_that_counts_no_tokens_is_marked_as_an_estimate() -> None:
    """A quarter of the characters, never the number of events."""
    only = one(usage_output=None)
    assert (only.tokens, only.tokens_counted, only.warnings) == (100, False, ("tokens_estimated",))
    assert one(usage_output=None, text="abc").tokens == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"outcome": "reset"}, "failed"),
        ({"first_text": -1, "event_ns": []}, "not_streamed"),
        ({"usage_output": 0}, "no_tokens"),
        ({"t_end": START + 59 * MS}, "too_short"),
    ],
)
def test_what_has_no_speed_is_kept_and_counts_in_no_statistic(changes: dict[str, Any], reason: str) -> None:
    """With the reason, and its outcome."""
    only = one(**changes)
    assert only.discarded == reason
    assert not only.counts
    assert only.outcome == changes.get("outcome", "ok")


def test_a_slow_first_token_and_an_odd_speed_are_warned_of() -> None:
    """TTFT over 60 s always; over 500 tokens/s only where that is not plausible. Both still count."""
    slow = one(event_ns=[START + 60_001 * MS], first_text=0, t_end=START + 62_000 * MS)
    assert (slow.warnings, slow.counts) == (("ttft_high",), True)
    fast = row(usage_output=501)
    assert [only.warnings for only in found(fast, fast_is_odd=True)] == [("speed_high",)]
    assert [only.warnings for only in found(fast)] == [()]
    assert one(usage_output=500).warnings == ()


def test_rounds_are_counted_by_the_order_of_the_prompts() -> None:
    """Two prompts, twice each; what was sent for another purpose is none of them."""
    rows = [row(index) for index in range(4)] + [row(9, phase=Phase.WARMUP)]
    assert [(only.prompt, only.run) for only in found(*rows, prompts=2)] == [(0, 1), (1, 1), (0, 2), (1, 2)]
