"""The steady span: what came in and went out, whether a queue grew and whether the output was stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass as E
from inferometer.measure.due import due_of_requests
from inferometer.measure.load import Span, Sweep
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.steady import Queue, Steady, ratio_interval, steady
from inferometer.plan.schema import Plan
from inferometer.telemetry.metrics.normalised import Track, Translated

ORIGIN = 10**16 + 1
MS = 10**6
SPAN = Span(ORIGIN, ORIGIN + 3000 * MS)
"""Thirds of a second each."""


def asked(start: float, ms: float, **more: Any) -> dict[str, Any]:
    """A request of one token that takes `ms`."""
    return {
        "t_intended": start,
        "t_submit": start,
        "events": [(start + ms, E.CONTENT)],
        "usage_output": 1,
    } | more


def look(record: Record, told: tuple[Translated, ...] = (), *, closed: bool = False) -> Steady:
    found = steady(record, Samples(record, streamed=True), Sweep(record), SPAN, told, closed=closed)
    assert found is not None
    return found


def waiting(times_ms: Any, values: Any) -> Translated:
    """A server that shows its queue."""
    times = ORIGIN + np.asarray(times_ms, np.int64) * MS
    track = Track(times, np.asarray(values, np.float64))
    return Translated("http://h/metrics", "vLLM", True, True, times, 0, 0, {"waiting": track}, {})


def test_arrivals_and_completions_by_hand(build: Callable[..., Record]) -> None:
    """Only what happens inside the span counts, failed requests arrive and do not complete, warm-up does neither."""
    record = build(
        asked(-50, 100),  # arrived before, completed inside
        asked(0, 100),
        asked(1000, 100),
        asked(2000, 100, outcome="timeout"),
        asked(2950, 100),  # completed after
        asked(500, 100, phase=0),
    )
    found = look(record)
    assert (found.duration_s, found.arrivals, found.completions) == (3, 4, 3)
    assert found.completion_ratio == 0.75
    assert found.completion_ratio_ci95 is None
    assert found.output_thirds_tok_s == (2, 1, 0)
    assert found.stable is False
    assert look(record, closed=True).completion_ratio is None


def test_the_queue_is_in_flight_over_time(build: Callable[..., Record]) -> None:
    """One request that lasts half a second of a third is half a request there."""
    found = look(build(asked(0, 500), asked(1000, 1000), asked(2000, 1000), asked(2000, 1000))).queue
    assert found is not None
    assert found.source == "in_flight"
    assert found.thirds == pytest.approx((0.5, 1, 2))
    assert found.rise_share == pytest.approx(3)
    assert found.rising is False


@pytest.mark.parametrize(
    ("thirds", "growing"),
    [
        ((10, 20, 30), True),
        ((10, 9.9, 30), False),  # not in every third
        ((10, 30, 29.9), False),
        ((10, 11, 11.9), False),  # under two requests
        ((10, 11, 12.1), True),
        ((100, 104, 109), False),  # under 10 %
        ((100, 104, 111), True),
        ((0, 1, 2.1), True),
        ((30, 20, 10), False),
    ],
)
def test_a_growing_queue_rises_in_every_third_and_enough(
    build: Callable[..., Record], thirds: tuple[float, ...], growing: bool
) -> None:
    """Law: more in each third, by more than a tenth and two requests in all; the server's own queue if it shows one."""
    told = waiting(np.arange(0, 3000, 2), np.repeat(thirds, 500))
    found = look(build(asked(0, 100)), (told,)).queue
    assert found is not None
    assert found.source == "server"
    assert found.thirds == pytest.approx(thirds, rel=0.01, abs=0.01)
    assert found.rising is growing
    assert found.rise_share == pytest.approx((found.thirds[2] - found.thirds[0]) / found.thirds[0])
    closed = look(build(asked(0, 100)), (told,), closed=True).queue
    assert closed is not None
    assert closed.rising is None


def test_an_empty_queue_rises_by_no_share(build: Callable[..., Record]) -> None:
    """Nobody ever waited: nothing grows, and there is nothing to compare with."""
    found = look(build(asked(0, 100)), (waiting([0, 1500, 2500], [0, 0, 0]),)).queue
    assert found == Queue("server", (0, 0, 0), None, False)


def test_scrapes_are_weighted_by_time(build: Callable[..., Record]) -> None:
    """Law: many scrapes of one instant weigh no more than one; a straight rise has its middle as mean."""
    even = waiting(range(0, 3001, 250), [ms / 100 for ms in range(0, 3001, 250)])
    crowded = [*range(0, 3001, 250), *range(2900, 2990)]
    both = [
        look(build(asked(0, 100)), (told,)).queue
        for told in (even, waiting(sorted(crowded), [ms / 100 for ms in sorted(crowded)]))
    ]
    for one in both:
        assert one is not None
        assert one.thirds == pytest.approx((5, 15, 25))


def test_a_server_that_was_not_seen_in_every_third_is_not_asked(build: Callable[..., Record]) -> None:
    """Its queue in a third without a scrape is not known; requests in flight are."""
    found = look(build(asked(0, 100)), (waiting([100, 1100], [5, 6]),)).queue
    assert found is not None
    assert found.source == "in_flight"


@pytest.mark.parametrize(
    ("counts", "stable"), [((100, 100, 100), True), ((90, 100, 110), True), ((89, 100, 111), False)]
)
def test_output_within_a_tenth_is_stable(
    build: Callable[..., Record], counts: tuple[int, ...], stable: bool
) -> None:
    """Law: each third's output tokens per second lie within 10 % of their mean."""
    rows = [
        asked(1000 * third, 500, usage_output=count, output_tokens_asked=count)
        for third, count in enumerate(counts)
    ]
    assert look(build(*rows)).stable is stable
    assert look(build(asked(0, 100, outcome="timeout"))).stable is None


def queue_of(
    random: np.random.Generator, rate: float, servers: int, service_s: float
) -> tuple[Ints, Ints, Ints]:
    """Arrivals, completions and times of service in ns over 60 s of a queue with exponential service."""
    arrivals = np.sort(random.uniform(0, 60, random.poisson(60 * rate)))
    free, ends = [0.0] * servers, []
    lengths = random.exponential(service_s, len(arrivals))
    for at, length in zip(arrivals.tolist(), lengths.tolist(), strict=True):
        first = int(np.argmin(free))
        free[first] = max(free[first], at) + length
        ends.append(free[first])
    instants = arrivals, np.array(ends), lengths
    came, went, took = ((one * 1e9).astype(np.int64) for one in instants)
    return came, went, took


@pytest.mark.parametrize(("load", "truth"), [(0.7, 1.0), (1.3, 1 / 1.3)])
def test_the_interval_of_the_ratio_holds_it(load: float, truth: float) -> None:
    """Law: the true ratio, 1 while a queue is stable, else what the servers manage, is inside in 90 % of simulated queues."""
    random = np.random.default_rng(6)
    inside = 0
    for _ in range(300):
        arrivals, ends, lengths = queue_of(random, 20, 4, 4 / 20 * load)
        found = ratio_interval(due_of_requests(arrivals, lengths), ends, Span(6 * 10**9, 60 * 10**9))
        assert found is not None
        inside += found[0] <= truth <= found[1]
    assert inside >= 0.9 * 300


def test_a_run_that_is_overloaded_says_so(build: Callable[..., Record], plan_of: Callable[..., Plan]) -> None:
    """Through `measure`: 100 requests a second, 50 answered: half complete, and more are in flight in every third."""
    rows = [asked(10.0 * n, 10 * n + 20.0, index=n) for n in range(300)]
    found = measure(plan_of(load={"model": "open", "rate": 100, "requests": 300}), build(*rows)).steady
    assert found is not None
    # What the first third has waited counts as usual, so it is a little above a half.
    assert found.completion_ratio == pytest.approx(0.54, abs=0.01)
    assert found.queue is not None
    assert found.queue.rising is True


@pytest.mark.parametrize("seed", range(5))
def test_a_light_load_of_long_answers_completes_what_is_due(
    build: Callable[..., Record], plan_of: Callable[..., Plan], seed: int
) -> None:
    """Law: where nothing waits the ratio is 1, also in a run of four answers' length and of answers of very different lengths.

    240 requests in 60 s, each by itself 15 s long on average (log-normal, sigma 1.2), of which a fifth has not ended by then.
    """
    random = np.random.default_rng(seed)
    sent = np.sort(random.uniform(0, 60_000, 240)).tolist()
    took = (15_000 * random.lognormal(-0.72, 1.2, 240) + 100).tolist()
    rows = [
        asked(at, ms, index=n, events=[(at + 50, E.CONTENT), (at + ms, E.CONTENT)])
        for n, (at, ms) in enumerate(zip(sent, took, strict=True))
    ]
    found = measure(plan_of(load={"model": "open", "rate": 4, "requests": 240}), build(*rows)).steady
    assert found is not None
    assert found.completions < 0.9 * found.arrivals
    assert found.completion_ratio == pytest.approx(1, abs=0.1)
    assert found.completion_ratio_ci95 is not None
    assert found.completion_ratio_ci95[1] > 0.95


def test_no_span_has_nothing_steady(build: Callable[..., Record], plan_of: Callable[..., Plan]) -> None:
    """One request has no steady span."""
    record = build(asked(0, 100))
    assert measure(plan_of(), record, samples_of(plan_of(), record)).steady is None
