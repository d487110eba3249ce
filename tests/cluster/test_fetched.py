"""What is known of a host's clock holds for the whole load, not only for where it was compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.clock_fit import ClockProbe, fit
from inferometer.cluster.fetched import described, number_of

S = 1_000_000_000


@given(st.integers(1, 20), st.integers(-100, 200), st.integers(0, 200), st.integers(1_000, 5_000_000))
def test_the_bound_is_of_every_instant_of_the_load(
    seconds: int, begun_s: int, lasted_s: int, trip: int
) -> None:
    probes = [ClockProbe(at * S, 7 * S, trip) for at in range(seconds)]
    fitted, begun, ended = fit(probes), begun_s * S, (begun_s + lasted_s) * S
    clock = described(probes, begun, ended)
    for at in (begun, (begun + ended) // 2, ended):
        assert clock.bound_ns >= fitted.bound_at(at)
    outside = max(0, -begun_s, begun_s + lasted_s - (seconds - 1))
    assert clock.uncompared_s == outside


def test_a_stream_is_its_workers() -> None:
    assert [number_of(name) for name in ("worker-7.arrows", "pulse-12.arrows", "../worker-7.arrows", "x")] == [
        7, 12, None, None,
    ]  # fmt: skip
