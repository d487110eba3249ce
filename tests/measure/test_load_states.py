"""States of the load: how many a run has met, whether that can be believed, what it may have missed."""

from __future__ import annotations

import numpy as np
import pytest

from inferometer.measure.load_states import INDEPENDENT, LoadStates, load_states
from inferometer.measure.record import Floats
from inferometer.measure.stats import describe


def in_flight(begins: Floats, ends: Floats) -> Floats:
    """Requests in flight right after each begins."""
    present = np.arange(1, len(begins) + 1) - np.searchsorted(np.sort(ends), begins, side="right")
    return present.astype(np.float64)


def unlimited(random: np.random.Generator, n: int, places: float) -> tuple[Floats, Floats]:
    """Sends and lives at a server without a queue, `places` in flight on average; lives have a mean of 1."""
    begins = np.cumsum(random.exponential(1 / places, n))
    return begins, random.gamma(4, 0.25, n)


def test_a_server_without_a_queue_remembers_as_long_as_its_requests_live() -> None:
    """Law: there are about T E[S] / E[S^2] states, and they are believed in at least 95 % of the runs."""
    random = np.random.default_rng(1)
    counts, believed = [], []
    for _ in range(100):
        begins, lives = unlimited(random, 1500, 10)
        states = load_states(
            in_flight(begins, begins + lives)[200:], lives[200:], float(begins[-1] - begins[200])
        )
        counts.append(
            states.count * float((lives**2).mean() / lives.mean()) / float(begins[-1] - begins[200])
        )
        believed.append(states.believed)
    assert float(np.median(counts)) == pytest.approx(1.0, abs=0.25)
    assert np.mean(believed) >= 0.95


def test_the_memory_of_a_queue_is_not_believed_from_a_short_run() -> None:
    """Law: 1,000 requests at rho 0.95, whose memory is longer than the run, are believed in at most one run in twenty."""
    random = np.random.default_rng(2)
    believed = 0
    for _ in range(100):
        gaps, services = random.exponential(1 / 0.95, 1000), random.exponential(1, 1000)
        times, wait = np.empty(1000), random.exponential(20)
        for i in range(1000):
            times[i] = wait + services[i]
            wait = max(0.0, times[i] - gaps[i])
        begins = np.concatenate(([0.0], np.cumsum(gaps)[:-1]))
        believed += load_states(in_flight(begins, begins + times), times, float(begins[-1])).believed
    assert believed <= 5


def test_a_load_that_never_changes_is_met_anew_by_each_request() -> None:
    """Law: constant concurrency is one state a request; nothing sent is no load."""
    states = load_states(np.full(400, 8.0), np.full(400, 2.0), 100.0)
    assert (states.count, states.believed) == (400.0, True)
    assert load_states(np.zeros(0), np.zeros(0), 0.0) == INDEPENDENT


def test_more_states_leave_less_unseen() -> None:
    """Law: the share that may have been missed falls with the length of the run, towards nothing."""
    random = np.random.default_rng(3)
    begins, lives = unlimited(random, 40_000, 10)
    series = in_flight(begins, begins + lives)
    shares = [load_states(series[:n], lives[:n], float(begins[n - 1])).unseen for n in (500, 4_000, 40_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.002


def test_an_unseen_share_raises_only_the_upper_ends_of_what_waits() -> None:
    """Law: [low, high] becomes [low, high + unseen * wait] for the mean; quantiles keep their lower end too, and a metric
    without a wait its whole interval."""
    values = np.random.default_rng(4).gamma(4, 1, 2000)
    plain, waits = (
        describe(values, LoadStates(200.0, True, unseen), wait) for unseen, wait in ((0.0, 5.0), (0.01, 5.0))
    )
    none = describe(values, LoadStates(200.0, True, 0.01))
    assert plain is not None
    assert waits is not None
    assert none is not None
    assert plain.ci95.mean is not None
    assert waits.ci95.mean == pytest.approx((plain.ci95.mean[0], plain.ci95.mean[1] + 0.05))
    for name in ("p50", "p90"):
        before, after = getattr(plain.ci95, name), getattr(waits.ci95, name)
        assert after[0] == before[0]
        assert after[1] > before[1]
    assert none.ci95 == plain.ci95
