"""The join as arithmetic: errors that are put in come out, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.calibration.join import (
    ClientRequest,
    ServerRequest,
    as_wholes,
    client_requests,
    joined,
    matched,
    nonces,
    server_requests,
    spread,
)
from inferometer.journal.schema import RECORD, EventClass

MS = 1_000_000
lengths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


def both(
    tokens: list[int], late_ns: int = 0, seed: int = 0
) -> tuple[list[ClientRequest], list[ServerRequest]]:
    """Requests whose every event, and end, the client stamps `late_ns` after the truth."""
    random = np.random.default_rng(seed)
    mine, true = [], []
    for number, count in enumerate(tokens):
        sent = np.cumsum(random.integers(1, 30 * MS, count)) + 10**12
        submit = int(sent[0]) - int(random.integers(1, 80 * MS))
        key = f"{number:09d}"
        mine.append(ClientRequest(key, submit, submit, int(sent[-1]) + MS + late_ns, sent + late_ns))
        true.append(
            ServerRequest(key + " and so on", submit, submit + MS, int(sent[-1]) + MS, sent, sent - MS)
        )
    return mine, true


@given(lengths, st.integers(-(10**6), 10**9), st.integers(0, 99))
def test_a_shift_of_the_common_clock_changes_nothing(tokens: list[int], shift: int, seed: int) -> None:
    """Only differences count; the instants themselves have no meaning."""
    mine, true = both(tokens, 12_345, seed)
    moved_mine = [
        replace(one, submit=one.submit + shift, end=one.end + shift, tokens=one.tokens + shift)
        for one in mine
    ]
    moved_true = [
        replace(
            row,
            arrived=(row.arrived or 0) + shift,
            received=row.received + shift,
            ended=row.ended + shift,
            sent=row.sent + shift,
        )
        for row in true
    ]
    here, there = joined(mine, true), joined(moved_mine, moved_true)
    for name in ("ttft", "ttft_true", "gaps", "gaps_true", "e2e", "e2e_true"):
        assert np.array_equal(getattr(here, name), getattr(there, name))


@given(lengths, st.integers(-MS, 10 * MS), st.integers(0, 99))
def test_a_lateness_of_all_stamps_is_found_in_first_token_and_end_and_not_in_gaps(
    tokens: list[int], late: int, seed: int
) -> None:
    """By exactly as much, in every statistic of the differences."""
    seen = joined(*both(tokens, late, seed))
    for mine, true in ((seen.ttft, seen.ttft_true), (seen.e2e, seen.e2e_true)):
        errors = spread(mine, true)
        assert errors is not None
        assert errors.n == len(tokens)
        assert [errors.mean, errors.p50, errors.p99, errors.max] == pytest.approx([late / MS] * 4, abs=1e-6)
        assert [errors.each_p50, errors.each_max] == pytest.approx([abs(late) / MS] * 2, abs=1e-6)
    assert np.array_equal(seen.gaps, seen.gaps_true)
    assert len(seen.gaps) == sum(tokens) - len(tokens)
    assert (seen.missing, seen.merged) == (0, 0)
    assert spread(seen.gaps[:0], seen.gaps_true[:0]) is None


def test_two_tokens_read_as_one_are_merged() -> None:
    """The first of them gets the second's stamp: one gap of zero where truth has none, and one too long by as much."""
    mine, true = both([5])
    stamps = mine[0].tokens.copy()
    stamps[2] = stamps[3]
    seen = joined([replace(mine[0], tokens=stamps)], true)
    assert seen.merged == 1 / 4
    assert seen.missing == 0
    assert (seen.gaps - seen.gaps_true).sum() == pytest.approx(0)
    errors = spread(seen.gaps, seen.gaps_true)
    assert errors is not None
    assert errors.each_max == pytest.approx((true[0].sent[3] - true[0].sent[2]) / MS)


def test_tokens_that_one_side_lacks_are_missing_and_in_no_statistic() -> None:
    """A request short of two tokens, one the server does not know, and one without a token on either side."""
    mine, true = both([5, 4, 3])
    short = replace(mine[0], tokens=mine[0].tokens[:-2])
    silent = ClientRequest("999999999", 0, 0, 1, mine[0].tokens[:0])
    seen = joined([short, mine[1], mine[2], silent], true[:2])
    assert seen.missing == (2 + 3 + 1) / (5 + 4 + 3 + 1)
    assert (seen.requests, len(seen.ttft), len(seen.gaps)) == (4, 1, 3)
    assert [row is None for _, row in matched([mine[2]], true[:2])] == [True]
    assert joined([], true).missing == 0


def test_the_true_time_counts_from_the_kernels_stamp_where_there_is_one() -> None:
    """Rows without are left out of TTFT and end to end; where none has one, the server's reading stands in."""
    mine, true = both([3, 3])
    some = joined(mine, [true[0], replace(true[1], arrived=None)])
    assert (len(some.ttft), len(some.gaps), some.from_kernel) == (1, 4, True)
    none = joined(mine, [replace(row, arrived=None) for row in true])
    assert (len(none.ttft), none.from_kernel) == (2, False)
    assert none.ttft_true == pytest.approx(none.ttft - 1)
    assert some.read_delay == pytest.approx([1.0])
    assert some.server_late == pytest.approx([1.0] * 6)


def test_what_is_joined_comes_from_the_record_the_schedule_and_the_log() -> None:
    """Warm-up, lead-in and lead-out, unsent requests and events without content stay out; a schedule whose measured requests
    were gone through again cannot be told apart."""
    import pyarrow as pa

    row: dict[str, object] = {field.name: None if field.nullable else 0 for field in RECORD}
    row |= {"index": 1, "phase": 1, "outcome": "ok", "t_submit": 5, "t_end": 90, "t_intended": 4}
    row |= {
        "event_ns": [6, 7, 8],
        "event_class": bytes([EventClass.ROLE, EventClass.CONTENT, EventClass.DONE]),
    }
    rows = [row, row | {"phase": 0}, row | {"phase": 3, "cycle": 1}, row | {"t_submit": None}]
    (one,) = client_requests(pa.Table.from_pylist(rows, schema=RECORD), ["a", "b"])
    assert (one.key, one.intended, one.submit, one.end, one.tokens.tolist()) == ("b", 4, 5, 90, [7])
    with pytest.raises(ValueError, match="requests"):
        client_requests(pa.Table.from_pylist([row | {"cycle": 1}], schema=RECORD), ["a", "b"])
    places = pa.table({"nonce_at": [2, -1], "nonce_len": [3, 0]})
    assert nonces(places, lambda _: b"..123..") == ["123", ""]
    line = {
        "prompt_head": "b...",
        "arrived_ns": None,
        "received_ns": 6,
        "model_ns": [7],
        "sent_ns": [8],
        "ended_ns": 9,
    }
    (known,) = server_requests(msgspec.json.encode(line | {"id": "left out"}) + b"\n")
    assert (known.key, known.arrived, known.received, known.sent.tolist()) == ("b...", None, 6, [8])


@given(lengths, st.integers(0, 10**9), st.integers(0, 99))
def test_whole_answers_are_compared_by_their_ends(tokens: list[int], late_ns: int, seed: int) -> None:
    """Law: one event is missing nothing, whatever the number of tokens in it, and the error of the end is what was put in."""
    mine, true = both(tokens, late_ns, seed)
    found = joined(*as_wholes([replace(one, tokens=one.tokens[:1]) for one in mine], true))
    assert (found.missing, found.merged, len(found.gaps)) == (0.0, 0.0, 0)
    assert found.e2e - found.e2e_true == pytest.approx(np.full(len(tokens), late_ns / MS), abs=1e-6)


def test_a_whole_answer_that_one_side_lacks_is_missing() -> None:
    """Ours that failed, theirs that never left, and one that the server knows nothing of."""
    mine, true = both([3, 3, 3, 3])
    none = np.zeros(0, np.int64)
    mine[0], true[1] = replace(mine[0], tokens=none), replace(true[1], sent=none)
    found = joined(*as_wholes(mine, [row for number, row in enumerate(true) if number != 2]))
    assert found.missing == pytest.approx(3 / 4)
    assert len(found.e2e) == 1
