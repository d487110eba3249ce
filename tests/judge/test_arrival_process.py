"""The arrival check: true processes pass, every known way of offering another one is seen. All time here is virtual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.judge.arrival import (
    ArrivalCheck,
    Process,
    arrival_checks,
    compare,
    limits,
    statistics,
)
from inferometer.measure.record import Floats

RATE = 50.0
POISSON = Process(RATE, 1.0)
NO_LATENESS = np.zeros(0)


def sends_of(process: Process, n: int, seed: int) -> Floats:
    """n send times of a true process."""
    random = np.random.default_rng(seed)
    shape = process.shape
    gaps = np.ones(n) if shape is None else random.gamma(shape, 1 / shape, n)
    return np.cumsum(gaps / process.rate)


def failures(
    process: Process, sends: Floats, late: Floats = NO_LATENESS, duration: float | None = None
) -> set[str]:
    """Codes of the checks that fail."""
    found = compare(process, np.sort(sends), late, duration)
    assert found is not None
    return {check.code for check in arrival_checks(found) if check.status == "fail"}


def test_statistics_are_those_worked_out_by_hand() -> None:
    """Law: gaps 1, 3, 1, 3 have mean 2, rate 1/2, CV^2 (4/3)/4 = 1/3 and lag-1 correlation -3/4."""
    seen = statistics(np.array([0.0, 1.0, 4.0, 5.0, 8.0]))
    assert seen == pytest.approx((0.5, 1 / 3, -0.75))
    assert statistics(np.array([0.0, 1.0, 4.0, 5.0, 8.0]), 10.0).rate == pytest.approx(0.5)


def test_true_processes_raise_fewer_than_one_false_alarm_in_a_thousand() -> None:
    """Law: over 9,000 true runs of Poisson and gamma arrivals, short and long, fewer than 9 fail any of the three checks."""
    alarms = trials = 0
    for shape in (0.1, 1.0, 4.0):
        for n in (100, 400, 2500):
            process = Process(RATE, shape)
            for seed in range(1000):
                alarms += bool(failures(process, sends_of(process, n, 77_000 + seed)))
                trials += 1
    assert trials == 9000
    assert alarms < 9


def test_a_true_run_that_ends_by_time_passes() -> None:
    """Law: counting over the duration raises no more alarms than counting over the span."""
    alarms = 0
    for seed in range(500):
        sends = sends_of(POISSON, 1000, seed)
        sends = sends[sends < 10.0]
        alarms += bool(failures(POISSON, sends, duration=10.0))
    assert alarms <= 1
    even = np.arange(500) / RATE
    assert not failures(Process(RATE, None), even, duration=10.0)


def test_a_constant_process_passes_and_may_tremble_a_little() -> None:
    """Law: exact spacing passes, and so does spacing that trembles by a twentieth of a gap."""
    process = Process(RATE, None)
    even = np.arange(1000) / RATE
    assert not failures(process, even)
    assert not failures(process, even + np.random.default_rng(1).normal(0, 0.05 / RATE, 1000))


def test_workers_with_one_seed_are_seen() -> None:
    """Law: ten identical Poisson streams laid over each other are no Poisson stream, in step or a little out of step."""
    one = sends_of(Process(RATE / 10, 1.0), 200, 5)
    assert "arrival_dispersion" in failures(POISSON, np.tile(one, 10))
    apart = np.concatenate([one + worker * 1e-4 for worker in range(10)])
    assert "arrival_dispersion" in failures(POISSON, apart)


def test_ten_workers_with_seeds_of_their_own_pass() -> None:
    """Law: independent Poisson streams add up to one."""
    streams = [sends_of(Process(RATE / 10, 1.0), 300, seed) for seed in range(10)]
    together = np.sort(np.concatenate(streams))
    assert not failures(POISSON, together[together < min(one[-1] for one in streams)])


def test_constant_gaps_are_not_poisson_nor_poisson_gaps_constant() -> None:
    """Law: the dispersion tells gaps of the wrong kind, either way, and the wrong burstiness."""
    assert "arrival_dispersion" in failures(POISSON, np.arange(500) / RATE)
    assert "arrival_dispersion" in failures(Process(RATE, None), sends_of(POISSON, 500, 3))
    assert "arrival_dispersion" in failures(POISSON, sends_of(Process(RATE, 0.25), 1000, 3))
    assert "arrival_dispersion" in failures(Process(RATE, 0.25), sends_of(POISSON, 1000, 3))


def test_a_schedule_re_anchored_when_late_is_seen() -> None:
    """Law: a client that needs 10 ms a send and then counts on from there, rather than catching up, lowers the rate."""
    gaps = np.maximum(np.diff(sends_of(POISSON, 4000, 6), prepend=0), 0.010)
    assert {"arrival_rate", "arrival_dispersion"} <= failures(POISSON, np.cumsum(gaps))


def test_arrivals_dropped_when_busy_are_seen() -> None:
    """Law: with every fifth arrival dropped the stream is as random as before, but slower; and constant spacing has holes."""
    keep = np.random.default_rng(2).random(4000) > 0.2
    assert "arrival_rate" in failures(POISSON, sends_of(POISSON, 4000, 8)[keep])
    assert "arrival_dispersion" in failures(Process(RATE, None), (np.arange(4000) / RATE)[keep])
    few = np.random.default_rng(2).random(4000) > 0.02
    assert "arrival_rate" in failures(Process(RATE, None), (np.arange(4000) / RATE)[few])


def test_a_queue_in_front_of_the_client_is_seen() -> None:
    """Law: sends at most every 15 ms, catching up later, keep the rate but smooth the gaps and tie neighbours together."""
    due = sends_of(POISSON, 2000, 9)
    sent = due.copy()
    for i in range(1, len(due)):
        sent[i] = max(due[i], sent[i - 1] + 0.015)
    assert "arrival_dispersion" in failures(POISSON, sent)


def test_bursts_that_follow_each_other_are_seen_in_neighbouring_gaps() -> None:
    """Law: the same Poisson gaps, sorted into fast and slow minutes, keep rate and dispersion but not independence."""
    gaps = np.random.default_rng(10).exponential(1 / RATE, 2000)
    blocks = np.sort(gaps.reshape(10, 200), axis=1)
    assert failures(POISSON, np.cumsum(blocks.ravel())) == {"arrival_lag1"}


def test_a_run_that_stops_half_way_through_its_time_is_seen() -> None:
    """Law: the rate of a run that ends by time is taken over that time, so silence counts."""
    sends = sends_of(POISSON, 1000, 4)
    assert "arrival_rate" in failures(POISSON, sends[sends < 10], duration=20.0)


def test_lateness_within_its_limit_is_pardoned_and_a_real_change_is_not() -> None:
    """Law: at 2,000/s, sends late by up to 1 ms change the gaps' statistics; that much is the lateness check's to judge. The
    pardon does not reach to another process."""
    process = Process(2000.0, None)
    late = np.random.default_rng(3).uniform(0, 0.001, 3000)
    even = np.arange(3000) / 2000
    assert failures(process, even + late)
    assert not failures(process, even + late, late)
    assert not failures(process, even, late)
    small = np.full(3000, 0.00002)
    assert "arrival_dispersion" in failures(process, sends_of(Process(2000.0, 1.0), 3000, 1), small)


def test_few_sends_are_not_judged() -> None:
    """Law: below 100 sends, or with no time between them, there is nothing to compare: na."""
    assert compare(POISSON, sends_of(POISSON, 99, 1), NO_LATENESS, None) is None
    assert compare(POISSON, np.zeros(500), NO_LATENESS, None) is None
    assert {check.status for check in arrival_checks(None)} == {"na"}


@given(st.sampled_from([100, 1000, 30_000, 1_000_000]), st.sampled_from([0.5, 1.0, 3.0]))
@settings(deadline=None)
def test_limits_enclose_the_expectation_and_narrow_with_the_run(n: int, shape: float) -> None:
    """Law: the asked rate and CV^2 = 1 / k lie inside, and ten times the run gives narrower limits."""
    process = Process(RATE, shape)
    now, longer = limits(process, n, NO_LATENESS), limits(process, 10 * n, NO_LATENESS)
    assert now.rate[0] < RATE < now.rate[1]
    assert now.dispersion[0] < 1 / shape < now.dispersion[1]
    assert now.lag1 is not None
    assert now.lag1[0] < 0 < now.lag1[1]
    assert longer.rate[1] - longer.rate[0] < now.rate[1] - now.rate[0]
    assert longer.dispersion[1] - longer.dispersion[0] < now.dispersion[1] - now.dispersion[0]


def test_the_same_run_is_always_judged_the_same() -> None:
    """Law: the simulation's seed is fixed."""
    sends, late = sends_of(POISSON, 500, 1), np.full(500, 0.0004)
    first, again = compare(POISSON, sends, late, None), compare(POISSON, sends, late, None)
    assert isinstance(first, ArrivalCheck)
    assert first == again
