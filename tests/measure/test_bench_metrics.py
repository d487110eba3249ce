"""M1 to M8: each held to its formula, and to what it must not do."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.bench_metrics import (
    client_durations,
    monotone_fall,
    pooled,
    server_durations,
    stability,
    tok_per_sec,
    tokens_generated,
)

MS = st.floats(0, 1e6)
SPEEDS = st.lists(st.floats(1, 1e4), min_size=2, max_size=6)


@given(ttft=MS, rest=MS)
def test_the_parts_of_a_streams_time_add_up(ttft: float, rest: float) -> None:
    """Law: total = TTFT + generation, and the total is never below the TTFT."""
    found = client_durations(ttft, ttft + rest)
    assert found.source == "client"
    assert found.total_ms >= found.ttft_ms
    assert found.ttft_ms + found.generation_ms == pytest.approx(found.total_ms)


@given(prefill=MS, decode=MS, load=MS)
def test_what_an_engines_parts_leave_of_its_total_is_the_time_to_load(
    prefill: float, decode: float, load: float
) -> None:
    """Law: total = TTFT + generation + load, all by the engine's clock."""
    found = server_durations(prefill, decode, prefill + decode + load)
    assert found.source == "server"
    assert found.load_ms == pytest.approx(load, abs=1e-6)
    assert found.generation_ms == decode


def test_a_total_below_its_parts_is_refused() -> None:
    """Law: the invariant of M3 is an error where it does not hold, by either clock."""
    with pytest.raises(ValueError, match="shorter than the TTFT"):
        client_durations(10.0, 9.0)
    with pytest.raises(ValueError, match="shorter than prefill and decode"):
        server_durations(10.0, 5.0, 14.0)


@pytest.mark.parametrize(("ms", "speed"), [(9.99, 0.0), (10.0, 10_000.0), (1000.0, 100.0), (0.0, 0.0)])
def test_a_generation_below_ten_milliseconds_has_no_speed(ms: float, speed: float) -> None:
    """M1's guard, on either side of its limit."""
    assert tok_per_sec(100, ms) == pytest.approx(speed)


@given(characters=st.integers(0, 10_000))
def test_tokens_are_the_engines_or_a_quarter_of_the_characters(characters: int) -> None:
    """M4: a count of the engine stands, 0 included; an estimate is at least 1 and is marked."""
    assert tokens_generated(0, characters) == (0, "server")
    assert tokens_generated(None, characters) == (max(1, characters // 4), "estimate")


@given(groups=st.dictionaries(st.text(min_size=1), SPEEDS, min_size=1, max_size=4))
def test_the_spread_is_within_prompts(groups: dict[str, list[float]]) -> None:
    """M8: the square is the mean of the prompts' variances, by n - 1 and by n; prompts of other speed do not widen it."""
    found = pooled(groups)
    assert found.bessel == pytest.approx(
        math.sqrt(statistics.fmean(statistics.variance(v) for v in groups.values())), abs=1e-6
    )
    assert found.population == pytest.approx(
        math.sqrt(statistics.fmean(statistics.pvariance(v) for v in groups.values())), abs=1e-6
    )
    first = next(iter(groups))
    moved = pooled(groups | {first: [value + 1e4 for value in groups[first]]})
    assert moved.bessel == pytest.approx(found.bessel, abs=1e-4)


def test_a_single_generation_has_no_spread() -> None:
    """Law: nothing is guessed from one value: no deviation, no class, no interval."""
    found = pooled({"code": [50.0], "chat": [60.0]})
    assert (found.mean, found.bessel, found.population, found.stability, found.ci95) == (
        55.0,
        None,
        None,
        None,
        None,
    )
    assert pooled({"code": [50.0, 51.0], "chat": [60.0]}).ci95 is None


def test_an_interval_covers_the_mean_of_the_prompts() -> None:
    """Law: of one prompt it is Student's; prompts that vary each for itself make it narrower, whatever their speeds, and
    prompts that vary together do not: what made them do so may do it to the next round."""
    one = pooled({"a": [9.0, 10.0, 11.0]}).ci95
    assert one is not None
    half = 4.302653 / math.sqrt(3)
    assert list(one) == pytest.approx([10 - half, 10 + half], abs=1e-4)
    three = pooled({"a": [9.0, 10.0, 11.0], "b": [60.0, 61.0, 59.0], "c": [111.0, 109.0, 110.0]})
    assert three.ci95 is not None
    assert (three.ci95[1] - three.ci95[0]) / 2 == pytest.approx(2.446912 / math.sqrt(9), abs=1e-4)
    assert (pooled({"a": [1.0, 1.0, 100.0]}).ci95 or (-1.0, 0.0))[0] == 0.0
    together = pooled({str(at): [at + 9.0, at + 10.0, at + 11.0] for at in (0, 50, 100, 150)})
    assert together.ci95 is not None
    assert (together.ci95[1] - together.ci95[0]) / 2 == pytest.approx(half, abs=1e-4)


@pytest.mark.parametrize(
    ("cv", "word"),
    [(0.0, "stable"), (0.0499, "stable"), (0.05, "variable"), (0.0999, "variable"), (0.1, "unstable")],
)
def test_the_classes_of_stability(cv: float, word: str) -> None:
    """M8: below 5 % stable, below 10 % variable, else unstable."""
    assert stability(cv) == word


@pytest.mark.parametrize(
    ("values", "fall"),
    [
        ([100.0, 97.0, 95.0], 0.05),
        ([100.0, 98.0, 96.0], None),
        ([100.0, 101.0, 90.0], None),
        ([100.0, 90.0, 90.0], None),
        ([100.0, 50.0], None),
        ([100.0, 94.0, 88.4, 83.1], 0.169),
    ],
)
def test_a_fall_is_one_at_every_run_and_of_five_per_cent(values: list[float], fall: float | None) -> None:
    """Law: three runs and more, each strictly lower, 5 % or more from first to last."""
    assert monotone_fall(values) == (None if fall is None else pytest.approx(fall))
