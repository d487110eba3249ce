"""The fit of a host's clock is held to a clock whose offset and drift are known."""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.cluster.clock_fit import (
    DRIFT_ALLOWANCE,
    RATE_CHANGE,
    STEP_LEAST_NS,
    ClockFit,
    ClockProbe,
    fit,
    four_stamps,
)

SECOND = 1_000_000_000
MS = 1_000_000
START = 7_000 * SECOND


class Clock:
    """The conductor's clock in terms of the host's, exactly."""

    def __init__(self, offset_ns: int, drift_ppb: int) -> None:
        self.offset_ns, self.drift = offset_ns, Fraction(drift_ppb, SECOND)

    def conductor(self, host_ns: int | Fraction) -> Fraction:
        """What it shows at an instant of the host."""
        return host_ns + self.offset_ns + self.drift * (host_ns - START)

    def host(self, conductor_ns: int | Fraction) -> Fraction:
        """The inverse."""
        return START + (conductor_ns - self.offset_ns - START) / (1 + self.drift)

    def probe(self, at: int, there: int, back: int, turn: int = 50_000) -> ClockProbe:
        """One that leaves at `at` of the host, takes so long either way and `turn` to be answered. Stamps are whole ns."""
        t2 = math.ceil(self.conductor(at + there))
        t3 = t2 + turn
        t4 = math.ceil(self.host(t3) + back)
        probe = four_stamps(at, t2, t3, t4)
        assert probe is not None
        return probe


clocks = st.builds(
    Clock,
    st.integers(-(10**17), 10**17),
    st.integers(-round(DRIFT_ALLOWANCE * SECOND), round(DRIFT_ALLOWANCE * SECOND)),
)
delays = st.integers(1_000, 300 * MS)
paths = st.lists(st.tuples(st.integers(0, 5 * SECOND), delays, delays), min_size=1, max_size=40)


def probed(clock: Clock, path: list[tuple[int, int, int]]) -> list[ClockProbe]:
    """A probe after each pause."""
    at, probes = START, []
    for pause, there, back in path:
        at += pause
        probes.append(clock.probe(at, there, back))
    return probes


@given(clocks, paths, st.floats(0, 1), st.integers(-3600 * SECOND, 3600 * SECOND))
def test_the_true_offset_lies_within_the_bound_whatever_the_path(
    clock: Clock, path: list[tuple[int, int, int]], inside: float, beyond: int
) -> None:
    """Law: |fit - truth| <= bound between the first and the last probe, and the grown bound anywhere, for any delays."""
    found = fit(probed(clock, path))
    assert not found.stepped
    assert found.residual_ns == 0
    within = found.first_ns + int(inside * (found.last_ns - found.first_ns))
    for at in (found.first_ns, within, found.last_ns):
        assert found.bound_at(at) == found.bound_ns
        assert abs(found.conductor_ns(at) - clock.conductor(at)) <= found.bound_ns
    far = found.last_ns + beyond
    assert abs(found.conductor_ns(far) - clock.conductor(far)) <= found.bound_at(far)


@given(clocks, delays, delays)
def test_one_probe_gives_half_its_round_trip_and_no_drift(clock: Clock, there: int, back: int) -> None:
    """And the bound grows by the allowance for drift from it on, in both directions."""
    (probe,) = probed(clock, [(0, there, back)])
    found = fit([probe])
    assert found.drift == 0.0
    assert found.bound_ns == pytest.approx(probe.round_trip_ns / 2, abs=4)
    for at in (probe.host_ns + SECOND, probe.host_ns - SECOND):
        grown = (DRIFT_ALLOWANCE + RATE_CHANGE) * SECOND
        assert found.bound_at(at) - found.bound_ns == pytest.approx(grown, abs=1)


def test_drift_is_unknown_until_the_probes_show_it() -> None:
    """Two probes a moment apart say nothing of it; a minute of them does."""
    clock = Clock(5 * SECOND, 20_000)
    early = fit([clock.probe(START + at * MS, 100_000, 100_000) for at in (0, 100)])
    assert early.drift == 0.0
    assert early.drift_bound == pytest.approx(DRIFT_ALLOWANCE, rel=0.02)
    later = fit([clock.probe(START + at * SECOND, 100_000, 100_000) for at in range(60)])
    assert later.drift == pytest.approx(20e-6, abs=later.drift_bound)
    assert later.drift_bound < DRIFT_ALLOWANCE / 10


def test_a_rate_beyond_the_allowance_is_found_if_probes_show_it() -> None:
    """As of a host whose clock is being slewed at the kernel's limit; more than any two kernels allow is none."""
    fast = fit([Clock(0, 700_000).probe(START + at * SECOND, 90_000, 110_000) for at in range(20)])
    assert not fast.stepped
    assert fast.drift == pytest.approx(700e-6, rel=0.02)
    assert fit([Clock(0, 3_000_000).probe(START + at * SECOND, 90_000, 110_000) for at in range(20)]).stepped


def test_the_fastest_ways_of_different_probes_meet() -> None:
    """A probe that was fast there and one that was fast back bound the offset better than either's round trip does."""
    clock = Clock(0, 0)
    found = fit([clock.probe(START, 10_000, 900_000), clock.probe(START + MS, 900_000, 10_000)])
    assert found.bound_ns < 20_000
    assert found.least_round_trip_ns > 900_000


@given(clocks, paths, st.integers(-(10**13), 10**13))
def test_instants_go_there_and_back(clock: Clock, path: list[tuple[int, int, int]], away: int) -> None:
    """Law: host_ns is the inverse of conductor_ns to 1 ns, arrays are as single instants, and order does not matter."""
    probes = probed(clock, path)
    found = fit(probes)
    at = START + away
    assert abs(found.host_ns(found.conductor_ns(at)) - at) <= 1
    instants = np.array([at, START, found.last_ns], dtype=np.int64)
    assert found.conductor_times(instants).tolist() == [found.conductor_ns(int(one)) for one in instants]
    assert fit(probes[::-1]) == found


@given(
    st.integers(-(10**15), 10**15),
    st.integers(2, 30),
    st.integers(2, 30),
    st.integers(4, 2_000),
    st.booleans(),
)
def test_a_step_is_found_where_it_was(
    offset: int, before: int, after: int, times: int, forward: bool
) -> None:
    """Law: a jump of more than the round trips hide, and more than drift explains, is reported with the probes beside it."""
    jump = times * (100_000 + 2 * STEP_LEAST_NS) * (1 if forward else -1)
    here, there = Clock(offset, 0), Clock(offset + jump, 0)
    probes = [here.probe(START + at * SECOND, 50_000, 50_000) for at in range(before)]
    probes += [there.probe(START + (before + at) * SECOND, 50_000, 50_000) for at in range(after)]
    step = fit(probes).step
    assert step is not None
    assert (step.before, step.after) == (probes[before - 1], probes[before])
    assert step.jump_ns == pytest.approx(jump, abs=10)


def test_a_machine_that_warms_up_has_not_stepped_its_clock() -> None:
    """An hour in which the rate changes by 0.5 ppm: no line passes, yet the truth is within the bound."""
    span = 3600

    def offset(at_s: int) -> int:
        return round(0.5e-6 * SECOND * at_s * at_s / span / 2)

    probes = [Clock(offset(at), 0).probe(START + at * SECOND, 20_000, 20_000) for at in range(span)]
    found = fit(probes)
    assert not found.stepped
    assert found.residual_ns > 10_000
    assert all(
        abs(found.conductor_ns(one.host_ns) - one.host_ns - offset(at)) <= found.bound_ns
        for at, one in enumerate(probes)
    )


@pytest.mark.parametrize("probes", [[], [ClockProbe(1, 2, -3)]])
def test_what_is_no_probe_is_refused(probes: list[ClockProbe]) -> None:
    """None at all, and one whose round trip is negative."""
    with pytest.raises(ValueError, match="probe"):
        fit(probes)


def test_stamps_that_no_clock_gives_are_no_probe() -> None:
    """An answer before the question, or there and back in less than no time."""
    assert four_stamps(10, 20, 30, 5) is None
    assert four_stamps(0, 100, 10_000, 5_000) is None
    assert four_stamps(0, 100, 10_000, 9_999, slack_ns=0) is not None


def test_a_fit_and_its_probes_can_be_stored() -> None:
    """A probe is three numbers; a fit reads back as it was, its step included."""
    probes = [ClockProbe(at * SECOND, 0 if at < 9 else SECOND, 1_000) for at in range(20)]
    found = fit(probes)
    assert found.stepped
    assert msgspec.json.decode(msgspec.json.encode(found), type=ClockFit) == found
    assert msgspec.json.encode(probes[9]) == b"[9000000000,1000000000,1000]"
