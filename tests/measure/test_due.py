"""What was due to end of conversations and sessions, against queues whose truth is known."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.measure.due import due_of_requests, due_of_sessions
from inferometer.measure.load import Span, Sweep, spans
from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.measure.steady import Steady, steady

SERVERS, WORK_MS = 4, 40.0
"""A queue that does a request in 10 ms on average, whichever it is of."""


def step(session: int, at: int, of: int, due: float, ms: float, **more: Any) -> dict[str, Any]:
    """A step that is answered with one token."""
    return {"session": session, "turn": at, "turns": of, "t_intended": due, "t_submit": due,
            "events": [(due + ms, EventClass.CONTENT)], "usage_output": 1} | more  # fmt: skip


def queued(
    load: float, steps: Callable[[random.Random], int], think_ms: float, lasts_ms: float, seed: int
) -> list[dict[str, Any]]:
    """Sessions that arrive at a share of what the queue can do, first come, first served, until the load ends."""
    rng = random.Random(seed)
    mean = sum(steps(random.Random(n)) for n in range(2_000)) / 2_000
    sessions = load * SERVERS / WORK_MS / mean
    waiting: list[tuple[float, int, int, int]] = []
    at, number = 0.0, 0
    while (at := at + rng.expovariate(sessions)) < lasts_ms:
        waiting.append((at, number, 0, steps(rng)))
        number += 1
    heapq.heapify(waiting)
    free, rows = [0.0] * SERVERS, []
    while waiting:
        due, which, turn, of = heapq.heappop(waiting)
        end = max(due, heapq.heappop(free)) + rng.uniform(0.5, 1.5) * WORK_MS
        heapq.heappush(free, end)
        rows.append(step(which, turn, of, due, end - due))
        following = end + think_ms
        if turn + 1 < of and following < lasts_ms:
            heapq.heappush(waiting, (following, which, turn + 1, of))
    return rows


def seen(record: Record) -> Steady:
    """Its steady state."""
    sweep, samples = Sweep(record), Samples(record, streamed=False)
    found = steady(record, samples, sweep, spans(record, sweep, None, WORK_MS).steady, closed=False)
    assert found is not None
    return found


KINDS: dict[str, tuple[Callable[[random.Random], int], float]] = {
    "one step": (lambda rng: 1, 0.0),
    "four": (lambda rng: 4, 0.0),
    "twenty, and tools between": (lambda rng: 20, 150.0),
    "a few or many": (lambda rng: rng.choice((1, 2, 30)), 20.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("load", "least", "most"), [(0.5, 0.95, 1.05), (0.85, 0.93, 1.06), (2.0, 0.4, 0.75)])
def test_sessions_that_a_server_keeps_up_with_complete_and_others_do_not(
    build: Callable[..., Record], kind: str, load: float, least: float, most: float
) -> None:
    """Law: by completions a load of sessions is told from an overload as one of single requests is, though few are sent of
    sessions that nobody answers."""
    steps, think = KINDS[kind]
    ratios = [
        seen(build(*queued(load, steps, think, 60_000 / load, seed))).completion_ratio for seed in range(2)
    ]
    assert all(ratio is not None for ratio in ratios)
    assert least < float(np.mean(np.array(ratios, float))) < most


def test_by_what_was_sent_an_overload_of_sessions_would_pass(build: Callable[..., Record]) -> None:
    """Law: a server at 200 % answers nearly all that it is sent of long sessions; it falls behind in what they should be."""
    record = build(*queued(2.0, lambda rng: 20, 150.0, 30_000, 0))
    found = seen(record)
    assert found.completion_ratio is not None
    assert found.completions / found.arrivals > 0.88
    assert found.completion_ratio < 0.75


def test_sessions_that_all_finished_were_due_as_they_came(build: Callable[..., Record]) -> None:
    """Law: without waits and cuts N is the mean of the sessions' own counts, and E ends at all of their requests."""
    rows = [step(one, at, 3 - one, 1000.0 * one + 100 * at, 50) for one in range(3) for at in range(3 - one)]
    record = build(*rows)
    due = due_of_sessions(record, np.arange(6), np.zeros(6, np.int64), int(record.t_end.max()))
    assert due.each == pytest.approx(2.0)
    assert due.ages.tolist() == [50_000_000] * 3 + [150_000_000] * 2 + [250_000_000]
    assert due.until(np.array([record.t_end.max() + 10**9])) == pytest.approx([6.0])


def test_what_cut_sessions_are_to_bring_is_due(build: Callable[..., Record]) -> None:
    """Law: of a session cut at its first of four steps three more are due; a session that failed brings no more."""
    cut = build(step(0, 0, 4, 0, 50), step(1, 0, 4, 10, 50))
    assert due_of_sessions(cut, np.arange(2), np.zeros(2, np.int64), 0).each == pytest.approx(4.0)
    broken = build(step(0, 0, 4, 0, 50, outcome="timeout"), step(1, 0, 4, 10, 50, outcome="timeout"))
    assert due_of_sessions(broken, np.arange(2), np.zeros(2, np.int64), 0).each == pytest.approx(1.0)


def test_a_wait_delays_what_follows_it_and_nothing_else(build: Callable[..., Record]) -> None:
    """Law: u_j is without all waits on the way to j, and with no wait of a branch beside it."""
    record = build(
        step(0, 0, 4, 0, 100),  # waited 60
        step(0, 1, 4, 100, 30), step(0, 2, 4, 100, 80),  # two branches, the second waited 50
        step(0, 3, 4, 180, 20),
    )  # fmt: skip
    waits = np.array([60, 0, 50, 0], np.int64) * 10**6
    due = due_of_sessions(record, np.arange(4), waits, int(record.t_end.max()))
    assert (due.ages / 1e6).tolist() == pytest.approx([40, 70, 70, 90])


def test_sessions_of_one_request_are_requests(build: Callable[..., Record]) -> None:
    """Law: both ways come to the same where each session is one request."""
    record = build(*queued(0.7, lambda rng: 1, 0.0, 10_000, 3))
    rows = np.flatnonzero(record.measured)
    zero, sends = np.zeros(len(rows), np.int64), np.sort(record.t_submit.values)
    one = due_of_sessions(record, rows, zero, int(sends[-1]))
    other = due_of_requests(sends, record.t_end - record.t_submit.values)
    whole = Span(int(sends[0]), int(sends[-1]))
    at = np.linspace(whole.start, whole.end, 50).astype(np.int64)
    assert one.until(at) == pytest.approx(other.until(at), abs=2.0)
