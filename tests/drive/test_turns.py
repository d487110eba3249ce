"""Requests that wait for answers: laws of their pacing, and the bodies they come to, in virtual time."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.drive.pacer import Ending, Hit
from inferometer.drive.share import Assignment, Share, TurnShare
from inferometer.drive.shares import share_of
from inferometer.engines.dialect import GenerationRequest, messages_bytes
from inferometer.engines.openai import CHAT
from inferometer.journal.schedule import Schedule, Scheduled, write
from inferometer.journal.schema import Phase

Played = list[tuple[int, Hit, Ending]]
"""When each was given out, what, and how it ended."""


def scheduled(at: int, own: str, **given: Any) -> Scheduled:
    """A turn whose own message is `own`."""
    body = CHAT.body(GenerationRequest("m", own, 5))
    said = messages_bytes([("user", own)])
    return Scheduled(
        at, int(Phase.MEASURE), given.pop("due_ns", None), body, -1, 0, 1, 1, 5,
        own_at=body.index(said), own_len=len(said), **given,
    )  # fmt: skip


def sessions(
    sizes: list[int], think_ns: int, starts: list[int] | None = None, users: int = 0
) -> list[Scheduled]:
    """Sessions of so many turns; `starts` of the first turns (open loop), or dealt to `users` whose instants are 100 apart."""
    rows: list[Scheduled] = []
    asked = [0] * users
    for session, size in enumerate(sizes):
        for turn in range(size):
            user = session % users if users else None
            due = starts[session] if starts and turn == 0 else None
            if user is not None:
                due = 100 * asked[user]
                asked[user] += 1
            rows.append(
                scheduled(
                    len(rows),
                    f"{session}.{turn}",
                    due_ns=due,
                    session=session,
                    turn=turn,
                    turns=size,
                    user=user,
                    think_ns=think_ns if turn else 0,
                )
            )
    return rows


def played(
    folder: Path,
    rows: list[Scheduled],
    slots: int | None,
    service: Callable[[Hit], int],
    ok: Callable[[Hit], bool] = lambda _: True,
    *,
    worker: int = 0,
    workers: int = 1,
    duration: int = 0,
    again: bool = False,
) -> tuple[Played, dict[tuple[int, int], bytes]]:
    """Run one worker's share from instant 1000 against answers `reply to ROW` that take `service` long; and every body sent."""
    path = folder / "requests.arrow"
    write(path, rows)
    share = share_of(Schedule(path), Assignment(Phase.MEASURE, slots, worker, workers))
    assert isinstance(share, TurnShare)
    pacer = share.pacer(1000, duration, again=again)
    now = 1000
    found: Played = []
    bodies: dict[tuple[int, int], bytes] = {}
    flying: list[tuple[int, Hit, int]] = []
    while True:
        while (hit := pacer.take(now)) is not None:
            bodies[hit.row, hit.cycle] = share.body(hit)
            heapq.heappush(flying, (now + service(hit), hit, now))
        if pacer.exhausted and not flying:
            return found, bodies
        assert len(found) < 10_000
        coming = [at for at in (pacer.next_due(), flying[0][0] if flying else None) if at is not None]
        now = max(now, min(coming))
        while flying and flying[0][0] <= now:
            at, hit, given_out = heapq.heappop(flying)
            end = Ending(hit.row, hit.cycle, at, ok(hit))
            found.append((given_out, hit, end))
            share.ended(end, f"reply to {hit.row}")
            pacer.ended(end)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=12)
times = st.lists(st.integers(1, 300), min_size=1, max_size=7)


def cycled(values: list[int]) -> Callable[[Hit], int]:
    return lambda hit: values[(hit.row + hit.cycle) % len(values)]


@given(sizes, times, st.integers(0, 50), st.integers(1, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_each_turn_is_due_a_think_time_after_the_answer_before_it_in_every_load(
    counts: list[int], service: list[int], think: int, workers: int, data: st.DataObject
) -> None:
    """All are given out once over all workers, in their order, at the instant at which they were due."""
    model = data.draw(st.sampled_from(["open", "closed", "users"]))
    starts = sorted(data.draw(st.lists(st.integers(0, 900), min_size=len(counts), max_size=len(counts))))
    rows = sessions(counts, think, starts if model == "open" else None, 3 if model == "users" else 0)
    slots = 2 if model == "closed" else None
    seen: dict[int, tuple[int, Ending]] = {}
    for worker in range(workers):
        with tempfile.TemporaryDirectory() as folder:
            found, _ = played(Path(folder), rows, slots, cycled(service), worker=worker, workers=workers)
        for given_out, hit, end in found:
            assert given_out == hit.due_ns
            assert hit.row not in seen
            seen[hit.row] = given_out, end
    assert sorted(seen) == list(range(len(rows)))
    last: dict[int | None, int] = {}
    for row in rows:
        due, end = seen[row.index]
        if row.turn:
            thought = seen[row.index - 1][1].at + think
            assert due == (thought if row.due_ns is None else max(thought, 1000 + row.due_ns))
        elif model == "open":
            assert due == 1000 + (row.due_ns or 0)
        elif model == "users":
            assert due == max(1000 + (row.due_ns or 0), last.get(row.user, 0))
        last[row.user] = end.at


@given(sizes, times, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_closed_loop_keeps_its_slots_and_never_more(
    counts: list[int], service: list[int], slots: int
) -> None:
    """Without think times every slot is taken until no conversation is left to begin."""
    with tempfile.TemporaryDirectory() as folder:
        found, _ = played(Path(folder), sessions(counts, 0), slots, cycled(service))
    changes = sorted([(at, 1) for at, _, _ in found] + [(end.at, -1) for _, _, end in found])
    level = most = 0
    for _, change in changes:
        level += change
        most = max(most, level)
    assert most == min(slots, len(counts))


@given(sizes, times, st.sets(st.integers(0, 40), max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_turn_repeats_what_was_sent_and_answered_and_a_failure_ends_its_conversation_alone(
    counts: list[int], service: list[int], failing: set[int], recorded: bool
) -> None:
    """The messages of a body are all own messages before it, each with its reply, then its own; nothing follows a failure."""
    rows = sessions(counts, 5)
    if recorded:
        for at, row in enumerate(rows):
            reply = messages_bytes([("assistant", f"recorded {row.index}")])
            rows[at] = Scheduled(
                **{name: getattr(row, name) for name in Scheduled.__slots__} | {"reply": reply}
            )
    with tempfile.TemporaryDirectory() as folder:
        _, bodies = played(Path(folder), rows, 2, cycled(service), lambda hit: hit.row not in failing)
    at = 0
    for session, count in enumerate(counts):
        history: list[dict[str, str]] = []
        for turn in range(count):
            broken = any(row in failing for row in range(at, at + turn))
            assert ((at + turn, 0) not in bodies) == broken
            history.append({"role": "user", "content": f"{session}.{turn}"})
            if not broken:
                assert json.loads(bodies[at + turn, 0])["messages"] == history
            text = f"{'recorded' if recorded else 'reply to'} {at + turn}"
            history.append({"role": "assistant", "content": text})
        at += count


def test_a_schedule_that_is_used_up_begins_again_with_conversations_of_their_own(tmp_path: Path) -> None:
    """What one cycle said is not repeated in the next, and the duration ends it."""
    found, bodies = played(tmp_path, sessions([2, 3], 0), 3, lambda _: 10, duration=200, again=True)
    assert max(cycle for _, cycle in bodies) > 3
    for (row, _), body in bodies.items():
        turn = row if row < 2 else row - 2
        assert len(json.loads(body)["messages"]) == 2 * turn + 1
    assert max(given_out for given_out, _, _ in found) < 1200


def test_nothing_is_given_out_at_or_behind_the_end(tmp_path: Path) -> None:
    """In open loop and of users a turn that its answer held back beyond the end is left out."""
    open_rows = sessions([3, 3], 100, [0, 150])
    found, _ = played(tmp_path, open_rows, None, lambda _: 50, duration=300)
    assert sorted(hit.row for _, hit, _ in found) == [0, 1, 3]
    found, _ = played(tmp_path, sessions([3, 3], 0, users=2), None, lambda _: 250, duration=300)
    assert sorted(hit.row for _, hit, _ in found) == [0, 1, 3, 4]


def test_a_stopped_pacer_gives_out_nothing_more_whatever_ends(tmp_path: Path) -> None:
    """Also if an answer comes that a turn was waiting for."""
    write(tmp_path / "requests.arrow", sessions([2, 2], 0))
    pacer = share_of(Schedule(tmp_path / "requests.arrow"), Assignment(Phase.MEASURE, 1)).pacer(0)
    assert pacer.take(0) == Hit(0, 0, 0)
    pacer.stop()
    pacer.ended(Ending(0, 0, 5, ok=True))
    assert (pacer.take(10), pacer.next_due(), pacer.exhausted) == (None, None, True)


def test_the_order_of_a_users_requests_is_the_order_of_its_instants(tmp_path: Path) -> None:
    """However late the answers, instants stay where they are: after a slow answer come the held ones, one by one."""
    found, _ = played(tmp_path, sessions([1] * 6, 0, users=1), None, lambda hit: 250 if hit.row == 0 else 10)
    dues = [hit.due_ns - 1000 for _, hit, _ in found]
    assert dues == [0, 250, 260, 300, 400, 500]
    assert all(later > earlier for earlier, later in pairwise(dues))


def test_requests_that_stand_alone_are_shared_out_as_ever(tmp_path: Path) -> None:
    """No turns, no users: none of this."""
    rows = [Scheduled(at, int(Phase.MEASURE), None, b"{}", -1, 0, 1, 1, 1) for at in range(4)]
    write(tmp_path / "requests.arrow", rows)
    assert type(share_of(Schedule(tmp_path / "requests.arrow"), Assignment(Phase.MEASURE, 2))) is Share
