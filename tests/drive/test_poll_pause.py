"""The pause between polls: bounded whatever the load, and only where it pays."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from inferometer.drive.poller import GAP_SHARE, LEAST, MOST_NS, TURN_SHARE, pause_ns

counts = st.integers(0, 1_000_000)
ROUNDING = 1 + 1e-12
elapsed = st.integers(1_000_000, 1_000_000_000)


@given(elapsed, counts, counts, st.integers(0, 100_000))
@example(1_000_000, 10_000, 10_187, 10_187)
def test_a_pause_keeps_every_bound_and_gathers_enough(
    elapsed_ns: int, reads: int, ended: int, in_flight: int
) -> None:
    """Never above its three bounds, but for the last digit of a double; never for fewer than LEAST reads."""
    pause = pause_ns(elapsed_ns, reads, ended, in_flight)
    assert 0 <= pause <= MOST_NS
    assert pause * reads <= GAP_SHARE * in_flight * elapsed_ns * ROUNDING
    assert pause * ended <= TURN_SHARE * in_flight * elapsed_ns * ROUNDING
    assert pause == 0 or (pause + 1) * reads >= LEAST * elapsed_ns


def test_thick_streams_are_gathered_and_thin_or_short_ones_are_not() -> None:
    """1,000 streams of 50 tokens/s: a hundredth of their 20 ms. One stream, a wave of ends, one-token requests: none."""
    second = 1_000_000_000
    assert pause_ns(second, 50_000, 490, 1_000) == 200_000
    assert pause_ns(second, 50, 1, 1) == 0
    assert pause_ns(second // 20, 2_500, 1_000, 1_000) == 0
    assert pause_ns(second, 30_000, 30_000, 64) == 0
    assert pause_ns(second, 0, 0, 0) == 0
