"""Pacing in virtual time: nothing here sleeps or reads a clock."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inferometer.drive.pacer import ClosedPacer, Ending, Hit, OpenPacer, Pacer, deal, slots_of
from inferometer.drive.progress_counters import Company, Counters
from inferometer.plan.arrivals import instants
from inferometer.plan.lead_in import LEAD_PER_SLOT
from inferometer.plan.schema import Load


def play(pacer: Pacer, service: list[int], *, late: int = 0, until: int = 1 << 60) -> list[tuple[int, Hit]]:
    """Run a pacer against answers that take `service[i]`; gives (instant given out, hit)."""
    given_out: list[tuple[int, Hit]] = []
    in_flight: list[tuple[int, Hit]] = []
    now = 0
    while now < until:
        while (hit := pacer.take(now)) is not None:
            given_out.append((now, hit))
            heapq.heappush(in_flight, (now + service[(len(given_out) - 1) % len(service)], hit))
        coming = [at for at in (pacer.next_due(), in_flight[0][0] if in_flight else None) if at is not None]
        if not coming:
            return given_out
        now = max(now, min(coming)) + late
        while in_flight and in_flight[0][0] <= now:
            at, hit = heapq.heappop(in_flight)
            pacer.ended(Ending(hit.row, hit.cycle, at, ok=True))
    return given_out


gaps = st.lists(st.integers(0, 1000), min_size=1, max_size=60)


@given(gaps, st.lists(st.integers(1, 10_000), min_size=1, max_size=5), st.integers(0, 500))
def test_open_loop_gives_out_every_request_once_with_its_own_instant_however_slow_the_answers(
    steps: list[int], service: list[int], late: int
) -> None:
    """Due instants never depend on answers or on our lateness; none is early, none dropped, none re-anchored."""
    due = [sum(steps[: i + 1]) for i in range(len(steps))]
    hits = play(OpenPacer(range(len(due)), due), service, late=late)
    assert [hit for _, hit in hits] == [Hit(i, 0, at) for i, at in enumerate(due)]
    assert all(now >= hit.due_ns for now, hit in hits)


@given(st.integers(1, 8), st.integers(1, 60), st.lists(st.integers(1, 1000), min_size=1, max_size=7))
def test_closed_loop_keeps_its_slots_full_and_never_overfull(
    slots: int, count: int, service: list[int]
) -> None:
    """At every instant in flight <= slots; a replacement is due the moment its slot is free; all are sent once."""
    hits = play(ClosedPacer(range(count), slots, 0), service)
    assert [hit.row for _, hit in hits] == list(range(count))
    ends: list[int] = []
    for i, (now, hit) in enumerate(hits):
        assert now == hit.due_ns
        assert now == 0 if i < slots else hit.due_ns in ends
        in_flight = sum(end > now for end in ends)
        assert in_flight < slots
        ends.append(now + service[i % len(service)])


def test_a_duration_goes_through_the_schedule_again_and_ends_at_its_instant() -> None:
    """With `again` the cycle counts up, and nothing is due at or after the end of the duration."""
    hits = [hit for _, hit in play(ClosedPacer(range(3), 1, 0, 100, again=True), [10])]
    assert [(hit.row, hit.cycle) for hit in hits] == [(i % 3, i // 3) for i in range(10)]
    assert max(hit.due_ns for hit in hits) < 100


def test_a_count_and_a_duration_end_at_whichever_is_first() -> None:
    """Without `again` the schedule is gone through once even if time is left."""
    assert len(play(ClosedPacer(range(3), 1, 0, 1000), [10])) == 3
    assert len(play(ClosedPacer(range(30), 1, 0, 95), [10])) == 10


@given(
    st.integers(2, 8),
    st.integers(1, 3),
    st.integers(1, 60),
    st.lists(st.integers(1, 300), min_size=1, max_size=7),
    st.one_of(st.none(), st.integers(1, 3000)),
)
def test_measured_requests_meet_full_slots_from_the_first_sent_to_the_last_ended(
    slots: int, rounds: int, count: int, service: list[int], duration: int | None
) -> None:
    """A lead-in is sent once, then the measured requests in their order, then the lead-in's rows again, in later cycles, from
    its second wave on: at most as many as were measured. While a measured request is in flight all slots are taken, and
    nothing is sent once none is left. A duration counts from the first measured request."""
    lead, rows = range(rounds * slots), range(rounds * slots, rounds * slots + count)
    again = duration is not None
    pacer = ClosedPacer(rows, slots, 0, duration, again=again, lead=lead)
    assert pacer.measured_from() is None
    hits = play(pacer, service)
    kinds = [hit.row in lead for _, hit in hits]
    first = kinds.index(False)
    last = len(kinds) - 1 - kinds[::-1].index(False)
    measured = [hit for _, hit in hits[first : last + 1]]
    assert [hit.row for _, hit in hits[:first]] == list(lead)
    assert not any(kinds[first : last + 1])
    assert [(hit.cycle, hit.row) for hit in measured] == [
        (at // count, rows[at % count]) for at in range(len(measured))
    ]
    assert pacer.measured_from() == measured[0].due_ns
    if duration is None:
        assert len(measured) == count
    else:
        assert all(hit.due_ns < measured[0].due_ns + duration for hit in measured)
    behind = hits[last + 1 :]
    assert all(hit.row in lead and hit.cycle >= 1 for _, hit in behind)
    assert len(behind) <= len(measured)
    begin = len(lead) + len(lead) // LEAD_PER_SLOT
    assert [(hit.cycle, hit.row) for _, hit in behind] == [
        (at // len(lead), lead[at % len(lead)]) for at in range(begin, begin + len(behind))
    ]
    ends = [now + service[at % len(service)] for at, (now, _) in enumerate(hits)]
    over = max(ends[first : last + 1])
    assert all(now < over for now, _ in behind)
    for now, _ in hits[first:]:
        in_flight = sum(begin <= now < end for (begin, _), end in zip(hits, ends, strict=True))
        assert in_flight == slots or len(behind) == len(measured)


def company(workers: int) -> list[Counters]:
    """The rows of so many workers in one file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "journal").mkdir()
        Counters.create(folder, workers)
        return [Counters.attach(folder, worker, workers) for worker in range(workers)]


@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 8),
    st.lists(st.integers(1, 300), min_size=1, max_size=7),
    st.one_of(st.none(), st.integers(1, 3000)),
)
def test_all_workers_lead_out_until_the_last_measured_request_of_any_has_ended(
    workers: int, own: int, rounds: int, service: list[int], duration: int | None
) -> None:
    """Law: from the first measured request on until the last of all workers has ended, each worker's slots are full, unless it
    has led out for as many requests as it measured; then nothing more is sent."""
    slots, start = workers * own, 5
    lead, rows = range(2 * slots), range(2 * slots, 2 * slots + rounds * slots)
    pacers = [
        ClosedPacer(
            [rows[i] for i in deal(len(rows), worker, workers, slots)], own, start, duration,
            again=duration is not None, lead=[lead[i] for i in deal(len(lead), worker, workers, slots)],
            company=Company(counters, start),
        )
        for worker, counters in enumerate(company(workers))
    ]  # fmt: skip
    in_flight: list[tuple[int, int, Hit]] = []
    sent: list[tuple[int, int, int, Hit]] = []
    now = start
    while True:
        for worker, pacer in enumerate(pacers):
            while (hit := pacer.take(now)) is not None:
                lasts = service[len(sent) % len(service)] * (1 + worker)
                sent.append((now, now + lasts, worker, hit))
                heapq.heappush(in_flight, (now + lasts, worker, hit))
        if not in_flight:
            break
        now = in_flight[0][0]
        while in_flight and in_flight[0][0] <= now:
            at, worker, hit = heapq.heappop(in_flight)
            pacers[worker].ended(Ending(hit.row, hit.cycle, at, ok=True))
    measured = [(begin, end) for begin, end, _, hit in sent if hit.row in rows]
    first, last = min(begin for begin, _ in measured), max(end for _, end in measured)
    assert all(begin < last for begin, _, _, _ in sent)
    for worker in range(workers):
        mine = [(begin, end, hit) for begin, end, of, hit in sent if of == worker]
        behind = [begin for begin, _, hit in mine if hit.row in lead and hit.cycle]
        bounded = len(behind) >= sum(hit.row in rows for _, _, hit in mine)
        for at in {begin for begin, _, _, _ in sent if begin >= first}:
            assert bounded or sum(begin <= at < end for begin, end, _ in mine) == own


def test_nobody_waits_for_a_worker_that_died_or_for_an_earlier_phase() -> None:
    """Law: the company is complete once each has arrived in this phase or is gone; that of another phase counts for nothing."""
    first, second, third = company(3)
    for counters in (first, second, third):
        counters.arrived(10)
    assert third.complete(10)
    assert not third.complete(20)
    first.arrived(20)
    third.arrived(20)
    assert not third.complete(20)
    first.gone(1)
    assert third.complete(20)
    assert third.complete(30) is False
    third.put(1, 2, 3, 4, 5)
    assert first.progress().events == 5


def test_a_stopped_pacer_gives_out_nothing_more() -> None:
    """Stop is at once, in both loops, and for good."""
    for pacer in (OpenPacer(range(3), [0, 1, 2]), ClosedPacer(range(3), 3, 0)):
        assert pacer.take(0) is not None
        pacer.stop()
        pacer.ended(Ending(0, 0, 5, ok=True))
        assert (pacer.take(10), pacer.next_due(), pacer.exhausted) == (None, None, True)


def test_a_worker_without_requests_is_done_at_once() -> None:
    """Nothing to give out is exhausted, not waiting."""
    assert ClosedPacer([], 4, 0).exhausted
    assert OpenPacer([], []).exhausted


@given(st.integers(0, 200), st.integers(1, 9), st.one_of(st.none(), st.integers(1, 20)))
def test_dealing_gives_every_request_to_exactly_one_worker(
    count: int, workers: int, slots: int | None
) -> None:
    """The workers' shares are a partition; in closed loop they are the workers' shares of the slots, to less than one request,
    and slots differ by one at most."""
    shares = [list(deal(count, worker, workers, slots)) for worker in range(workers)]
    assert Counter(row for share in shares for row in share) == Counter(range(count))
    if slots is not None:
        held = [slots_of(worker, workers, slots) for worker in range(workers)]
        assert sum(held) == slots
        assert max(held) - min(held) <= 1
        for worker, share in enumerate(shares):
            exact = count * slots_of(worker, workers, slots) / slots
            assert abs(len(share) - exact) < 1


@given(
    st.sampled_from(["poisson", "gamma", "constant"]),
    st.integers(0, 2**32),
    st.integers(1, 300),
    st.integers(1, 12),
)
def test_the_instants_of_all_workers_are_those_drawn_for_one(
    arrival: str, seed: int, count: int, workers: int
) -> None:
    """Dealt to N workers and taken by each in turn, the instants are exactly the multiset that one worker would be given."""
    shape = {"burstiness": 0.5} if arrival == "gamma" else {}
    load = Load.model_validate({"model": "open", "rate": 40, "requests": count, "arrival": arrival, **shape})
    due = instants(load, seed, count, None).tolist()
    given_out: list[Hit] = []
    for worker in range(workers):
        mine = deal(count, worker, workers, None)
        given_out += [hit for _, hit in play(OpenPacer(mine, [due[row] for row in mine]), [1])]
    assert sorted((hit.row, hit.due_ns) for hit in given_out) == list(enumerate(due))


@given(
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(1, 60),
    st.lists(st.integers(1, 1000), min_size=1, max_size=7),
)
def test_workers_together_hold_the_slots_of_one_closed_loop(
    workers: int, slots: int, count: int, service: list[int]
) -> None:
    """Whatever the answers take, at most C are in flight over all workers, fewer workers than slots or more; all are sent."""
    spans: list[tuple[int, int]] = []
    for worker in range(workers):
        mine, own = deal(count, worker, workers, slots), slots_of(worker, workers, slots)
        hits = play(ClosedPacer(mine, own, 0), service)
        spans += [(now, now + service[i % len(service)]) for i, (now, _) in enumerate(hits)]
    assert len(spans) == count
    for begin, _ in spans:
        assert sum(start <= begin < end for start, end in spans) <= slots
    assert sum(begin == 0 for begin, _ in spans) == min(slots, count)
