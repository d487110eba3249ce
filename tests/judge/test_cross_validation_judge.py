"""Differences between methods of measuring one engine: what has one, what its interval holds, and which way it points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_requests import measured

from inferometer.documents.cross_validation import METHODS, Method
from inferometer.documents.verdict import CheckResult, CheckStatus
from inferometer.judge.cross_validation import Found, overhead, tables, verdict
from inferometer.measure.engine_figures import (
    FIGURES,
    Figure,
    Figures,
    Measured,
    by_client,
    by_timings,
    of_whole,
)
from inferometer.measure.measured_requests import MeasuredRequest

SPANS = st.tuples(st.floats(1, 500), st.floats(11, 5_000), st.integers(1, 4_000))


def found_of(**methods: Figures) -> Found:
    """Figures by method as one table."""
    known: dict[str, Method] = {one: one for one in METHODS}
    return {(name, known[method]): one for method, of in methods.items() for name, one in of.items()}


def streamed(
    times: Sequence[tuple[float, float]], own: Sequence[tuple[float, float]] = ()
) -> list[MeasuredRequest]:
    """Answers of 100 tokens by (TTFT, generation) in ms of the client and of the engine."""
    return [
        measured(
            row,
            ttft_ms=wait,
            total_ms=wait + rest,
            own_ms=(*own[row], sum(own[row])) if own else None,
        )
        for row, (wait, rest) in enumerate(times)
    ]


MEASURED = st.builds(Measured, st.integers(1, 9), st.floats(0.1, 1e6), st.none() | st.floats(0, 10))


@given(st.dictionaries(st.tuples(st.sampled_from(FIGURES), st.sampled_from(METHODS)), MEASURED))
def test_no_delta_is_without_both_sides(found: Mapping[tuple[Figure, Method], Measured]) -> None:
    """The reference has none, every other row has its difference from it; an overhead needs both sides, too."""
    for table in tables(found):
        assert {row.method for row in table.rows} == {
            method for name, method in found if name == table.figure
        }
        for row in table.rows:
            assert (row.delta is None) == (row.method == table.reference)
            if row.delta is not None:
                assert row.delta.absolute == row.mean - table.rows[0].mean
    own = {name for name, method in found if method in ("timings", "counters")}
    by_streams = {name for name, method in found if method == "streamed"}
    assert (overhead(found).ttft_ms is not None) == ("ttft_ms" in own & by_streams)
    assert (overhead(found).tok_per_sec is not None) == ("tok_per_sec" in own & by_streams)


@given(st.lists(SPANS, min_size=1, max_size=8))
def test_a_speed_is_all_tokens_over_all_time(answers: list[tuple[float, float, int]]) -> None:
    """A ratio of sums, not a mean of ratios; the values of its requests have it as their mean."""
    requests = [
        measured(row, ttft_ms=wait, total_ms=wait + rest, output_tokens=tokens)
        for row, (wait, rest, tokens) in enumerate(answers)
    ]
    speed = by_client(requests)["tok_per_sec"]
    spans = [one.client for one in requests]
    seconds = sum(one.generation_ms for one in spans if one is not None) / 1_000
    assert speed.mean == pytest.approx(sum(tokens for _, _, tokens in answers) / seconds)
    assert np.mean(speed.values) == pytest.approx(speed.mean)


def test_short_answers_weigh_little_in_a_speed() -> None:
    """10 tokens in 1 s and 990 in 9 s are 100 tokens/s in all; the mean of both speeds would be 60."""
    requests = [
        measured(0, ttft_ms=5, total_ms=1_005, output_tokens=10),
        measured(1, ttft_ms=5, total_ms=9_005, output_tokens=990),
    ]
    assert by_client(requests)["tok_per_sec"].mean == pytest.approx(100)


def test_pairs_of_the_same_requests_tell_a_small_difference_apart() -> None:
    """TTFT varies by tens of ms from one request to the next, and the client's is 1 ms longer in each: that is shown."""
    own = [(wait, 100.0) for wait in (20.0, 80.0, 35.0, 120.0, 50.0)]
    seen = [(wait + extra, 100.0) for (wait, _), extra in zip(own, (0.9, 1.1, 1.0, 1.05, 0.95), strict=True)]
    requests = streamed(seen, own)
    found = overhead(found_of(streamed=by_client(requests), timings=by_timings(requests))).ttft_ms
    assert found is not None
    assert found.ci95 is not None
    assert found.absolute == pytest.approx(1.0)
    assert 0.8 < found.ci95[0] < 1.0 < found.ci95[1] < 1.2
    assert found.side == "above"


@pytest.mark.parametrize(("extra", "side"), [(-5.0, "below"), (0.0, "open"), (5.0, "above")])
def test_a_difference_has_a_side_only_where_its_interval_leaves_zero(extra: float, side: str) -> None:
    """A negative overhead and one that cannot be told from chance are named as that; a speed points the other way."""
    noise = (0.4, -0.3, 0.2, -0.35, 0.05)
    own = [(50.0, 200.0) for _ in noise]
    seen = [(50.0 + extra + one, 200.0 + extra + one) for one in noise]
    requests = streamed(seen, own)
    found = overhead(found_of(streamed=by_client(requests), timings=by_timings(requests)))
    assert found.ttft_ms is not None
    assert found.tok_per_sec is not None
    assert found.ttft_ms.side == side
    assert found.tok_per_sec.side == {"below": "above", "above": "below", "open": "open"}[side]


def test_other_requests_are_no_pairs() -> None:
    """Whole answers in the same order are other requests: a shift far below their own spread is not shown."""
    waits = (20.0, 80.0, 35.0, 120.0, 50.0)
    seen = streamed([(10.0, wait + 1) for wait in waits])
    whole = [measured(row, ttft_ms=None, total_ms=10.0 + wait) for row, wait in enumerate(waits)]
    found = overhead(found_of(streamed=by_client(seen), whole=of_whole(whole))).streaming_ms
    assert found is not None
    assert found.absolute == pytest.approx(1.0)
    assert found.side == "open"


def test_counters_of_the_same_requests_have_the_spread_of_the_client_at_most() -> None:
    """Counters are a total: the interval is as wide as the client's own; of another number of requests there is none."""
    seen = by_client(streamed([(wait, 100.0) for wait in (20.0, 21.0, 19.0, 20.5, 19.5)]))
    found = overhead(found_of(streamed=seen, counters={"ttft_ms": Measured(5, 18.0)})).ttft_ms
    assert found is not None
    assert found.ci95 is not None
    assert found.absolute == pytest.approx(2.0)
    assert found.ci95[1] - found.ci95[0] == pytest.approx(2 * 2.7764 * 0.7906 / np.sqrt(5), rel=1e-3)
    other = overhead(found_of(streamed=seen, counters={"ttft_ms": Measured(6, 18.0)})).ttft_ms
    assert other is not None
    assert (other.ci95, other.side) == (None, "open")


def test_one_request_has_a_difference_without_an_interval() -> None:
    """Nothing tells how much it varies."""
    requests = streamed([(12.0, 100.0)], [(10.0, 100.0)])
    found = overhead(found_of(streamed=by_client(requests), timings=by_timings(requests))).ttft_ms
    assert found is not None
    assert found.absolute == pytest.approx(2.0)
    assert (found.ci95, found.side) == (None, "open")


@pytest.mark.parametrize("n", [3, 5, 20])
def test_intervals_hold_the_truth_as_often_as_they_state(n: int) -> None:
    """In 95 % of 1,000 planted cross-validations: TTFT 1 ms longer than the engine's, give or take 0.4, generation 2 %."""
    random = np.random.default_rng(n)
    held = {"ttft_ms": 0, "tok_per_sec": 0}
    for _ in range(1_000):
        waits, rests = random.lognormal(4, 0.3, n), random.lognormal(7, 0.2, n)
        extra, longer = 1 + random.normal(0, 0.4, n), 1.02 + random.normal(0, 0.01, n)
        own = list(zip(waits, rests, strict=True))
        requests = streamed(list(zip(waits + extra, rests * longer, strict=True)), own)
        found = overhead(found_of(streamed=by_client(requests), timings=by_timings(requests)))
        assert found.ttft_ms is not None
        assert found.ttft_ms.ci95 is not None
        assert found.tok_per_sec is not None
        assert found.tok_per_sec.share_ci95 is not None
        held["ttft_ms"] += found.ttft_ms.ci95[0] <= 1 <= found.ttft_ms.ci95[1]
        low, high = found.tok_per_sec.share_ci95
        held["tok_per_sec"] += low <= 1 / 1.02 - 1 <= high
    assert all(0.92 <= count / 1_000 <= 0.98 for count in held.values()), held


def checks(*found: tuple[str, CheckStatus]) -> list[CheckResult]:
    return [CheckResult(code, status, None, None, None, {}, "") for code, status in found]


def test_a_few_requests_are_not_doubted_for_what_is_not_stated() -> None:
    """Too few for a P99 or to see drift says nothing of a mean; an instrument that was late says it of every figure."""
    few = checks(("samples_p99", "unsure"), ("drift", "unsure"))
    late = checks(("samples_p99", "unsure"), ("lateness", "fail"))
    unsure = checks(("lateness", "unsure"), ("token_counts", "unsure"))
    assert verdict([]) == (None, ())
    assert verdict([few, few]) == ("VALID", ())
    assert verdict([unsure, late]) == ("INVALID", ("lateness", "token_counts"))
    assert verdict([unsure]) == ("INCONCLUSIVE", ("lateness", "token_counts"))
