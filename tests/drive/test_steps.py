"""Recorded sessions in virtual time: when steps are due, what they repeat, and what a failure leaves out."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.drive.pacer import Ending, Hit
from inferometer.drive.share import Assignment, Share
from inferometer.drive.shares import share_of
from inferometer.drive.step_pacer import StepPacer
from inferometer.drive.step_share import StepShare
from inferometer.engines.dialect import GenerationRequest, messages_bytes, repeated, with_hole
from inferometer.engines.openai import CHAT
from inferometer.journal import steps as graph
from inferometer.journal.schedule import Schedule, Scheduled, write
from inferometer.journal.schema import Phase
from inferometer.journal.steps import StepRow, renewed

START = 1000
Service = Callable[[Hit], int]


@dataclass(frozen=True)
class Planned:
    """A step of the first law: numbers of its session's steps."""

    after: tuple[int, ...]
    extends: int | None
    delay: int
    recorded: str | None = None


Dag = list[Planned]


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    found: Dag = []
    before: list[set[int]] = []
    for number in range(draw(st.integers(1, 7))):
        after = tuple(draw(st.sets(st.integers(0, number - 1), max_size=3))) if number else ()
        awaited = set(after).union(*(before[one] for one in after))
        before.append(awaited)
        extends = draw(st.sampled_from([None, *sorted(awaited)]))
        recorded = draw(st.none() | st.just(f"recorded {number}"))
        found.append(Planned(after, extends, draw(st.integers(0, 40)), recorded))
    return found


class Load:
    """Sessions on disk as a schedule and its steps."""

    def __init__(
        self, sessions: list[Dag], starts: list[int] | None = None, users: int = 0, lead: int = 0
    ) -> None:
        self.rows: list[Scheduled] = []
        self.steps: list[StepRow] = []
        self.planned: list[Planned] = []
        self.firsts: list[int] = []
        for number, dag in enumerate(sessions):
            self._add(number, dag, Phase.LEAD if number < lead else Phase.MEASURE, starts, users)

    def _add(self, number: int, dag: Dag, phase: Phase, starts: list[int] | None, users: int) -> None:
        first = len(self.rows)
        self.firsts.append(first)
        for at, step in enumerate(dag):
            row = len(self.rows)
            nonce = "" if step.extends is not None else f"{row:09d}"
            own = messages_bytes([("user", f"{nonce}own {row}")])
            body = CHAT.body(GenerationRequest("m", f"{nonce}own {row}", 5))
            begins = at == 0 and (starts is not None or users)
            due = (starts[number] if starts else 100 * (number // users)) if begins else None
            reply = None if step.recorded is None else messages_bytes([("assistant", step.recorded)])
            self.rows.append(
                Scheduled(
                    row, int(phase), due, body, body.find(nonce.encode()) if nonce else -1, len(nonce), 0, 0, 5,
                    session=number, turn=at, turns=len(dag), think_ns=step.delay,
                    user=number % users if users else None,
                    own_at=body.index(own), own_len=len(own), reply=reply,
                )
            )  # fmt: skip
            after = [first + one for one in step.after]
            extends = None if step.extends is None else first + step.extends
            self.steps.append(StepRow(row, number, at, after, extends, 0, visible=False))
            self.planned.append(step)

    def after(self, row: int) -> list[int]:
        """The rows that it waits for."""
        return list(self.steps[row].after)

    def dependants(self, rows: set[int]) -> set[int]:
        """The rows that wait for any of these, directly or not."""
        found = set(rows)
        for step in self.steps:
            if found & set(step.after):
                found.add(step.index)
        return found - rows

    def shared(self, folder: Path, assignment: Assignment) -> StepShare:
        """A worker's share of it."""
        path = folder / "requests.arrow"
        write(path, self.rows)
        graph.write(folder / graph.FILE, self.steps)
        share = share_of(Schedule(path), assignment)
        assert isinstance(share, StepShare)
        return share


@dataclass
class Played:
    """Of every (row, cycle): the instant it was given out, when it was due, how it ended, its body."""

    taken: dict[tuple[int, int], int]
    hits: dict[tuple[int, int], Hit]
    ends: dict[tuple[int, int], Ending]
    bodies: dict[tuple[int, int], bytes]
    kept: int
    """Histories and sessions that were not let go."""


def play(
    share: Share,
    service: Service,
    ok: Callable[[Hit], bool] = lambda _: True,
    *,
    duration: int = 0,
    again: bool = False,
    stop_at: int | None = None,
) -> Played:
    """Against answers `reply to ROW` that take `service` long."""
    pacer = share.pacer(START, duration, again=again)
    now = START
    found = Played({}, {}, {}, {}, 0)
    flying: list[tuple[int, Hit]] = []
    turns = 0
    while True:
        while (hit := pacer.take(now)) is not None:
            key = hit.row, hit.cycle
            assert key not in found.hits, "each is given out once"
            found.taken[key], found.hits[key], found.bodies[key] = now, hit, share.body(hit)
            heapq.heappush(flying, (now + service(hit), hit))
        if pacer.exhausted and not flying:
            break
        turns += 1
        assert turns < 20_000, "it goes on for ever"
        coming = [at for at in (pacer.next_due(), flying[0][0] if flying else None) if at is not None]
        now = max(now, min(coming))
        if stop_at is not None and now >= stop_at:
            pacer.stop()
        while flying and flying[0][0] <= now:
            at, hit = heapq.heappop(flying)
            end = Ending(hit.row, hit.cycle, at, ok(hit))
            found.ends[hit.row, hit.cycle] = end
            share.ended(end, f"reply to {hit.row}")
            pacer.ended(end)
    assert isinstance(share, StepShare)
    assert isinstance(pacer, StepPacer)
    found.kept = len(share._said) + len(share._sent) + len(pacer._sessions)
    return found


times = st.lists(st.integers(1, 300), min_size=1, max_size=7)
many = st.lists(dags(), min_size=1, max_size=6)


def cycled(values: list[int]) -> Service:
    return lambda hit: values[(hit.row + hit.cycle) % len(values)]


def texts(load: Load, row: int) -> list[tuple[str, str]]:
    """Role and text of all messages of a step, put together another way than the share does."""
    step, planned = load.steps[row], load.planned[row]
    own = [("user", ("" if step.extends is not None else f"{row:09d}") + f"own {row}")]
    if step.extends is None:
        return own
    answer = load.planned[step.extends].recorded or f"reply to {step.extends}"
    assert planned.extends is not None
    return [*texts(load, step.extends), ("assistant", answer), *own]


@given(many, times, st.sampled_from(["open", "closed", "users"]), st.integers(1, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_a_step_is_due_when_all_it_waits_for_has_ended_and_its_delay_has_passed(
    sessions: list[Dag], service: list[int], model: str, workers: int, data: st.DataObject
) -> None:
    """Law: just then, in every load; over all workers each is sent once, and repeats the chain that it goes on with."""
    starts = [data.draw(st.integers(0, 500)) for _ in sessions] if model == "open" else None
    load = Load(sessions, starts, users=2 if model == "users" else 0)
    sent: set[int] = set()
    for worker in range(workers):
        with tempfile.TemporaryDirectory() as folder:
            slots = 2 if model == "closed" else None
            share = load.shared(Path(folder), Assignment(Phase.MEASURE, slots, worker, workers))
            played = play(share, cycled(service))
        assert {row for row, _ in played.hits} == set(share.own_rows())
        assert played.kept == 0, "a session that is over leaves nothing behind"
        assert not sent & {row for row, _ in played.hits}
        sent |= {row for row, _ in played.hits}
        for (row, cycle), hit in played.hits.items():
            ends = [played.ends[before, cycle].at for before in load.after(row)]
            if ends:
                assert hit.due_ns == max(ends) + load.planned[row].delay
            elif starts is not None:
                assert hit.due_ns == START + starts[load.rows[row].session or 0] + load.planned[row].delay
            assert played.taken[row, cycle] == hit.due_ns
            messages = json.loads(played.bodies[row, cycle])["messages"]
            assert [(one["role"], one["content"]) for one in messages] == texts(load, row)
    assert sent == set(range(len(load.rows)))


@given(many, times, st.sets(st.integers(0, 20), max_size=5), st.sampled_from([None, 1, 2]))
@settings(max_examples=60, deadline=None)
def test_a_failure_leaves_out_what_waits_for_it_and_nothing_else(
    sessions: list[Dag], service: list[int], failing: set[int], slots: int | None
) -> None:
    load = Load(sessions, None if slots else [7 * at for at in range(len(sessions))])
    with tempfile.TemporaryDirectory() as folder:
        share = load.shared(Path(folder), Assignment(Phase.MEASURE, slots))
        played = play(share, cycled(service), lambda hit: hit.row not in failing)
    failed = {row for row, _ in played.hits} & failing
    assert {row for row, _ in played.hits} == set(range(len(load.rows))) - load.dependants(failed)
    assert played.kept == 0


@given(many, times, st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_slot_holds_a_session_until_each_of_its_steps_has_ended(
    sessions: list[Dag], service: list[int], slots: int
) -> None:
    """Law: so many sessions at once at most, in their order, the next when one is over."""
    load = Load(sessions)
    with tempfile.TemporaryDirectory() as folder:
        played = play(load.shared(Path(folder), Assignment(Phase.MEASURE, slots)), cycled(service))
    delay = [load.planned[first].delay for first in load.firsts]
    begun = [played.hits[first, 0].due_ns - late for first, late in zip(load.firsts, delay, strict=True)]
    over = [0] * len(sessions)
    for (row, _), end in played.ends.items():
        number = load.rows[row].session or 0
        over[number] = max(over[number], end.at)
    assert begun == sorted(begun)
    for number, start in enumerate(begun):
        running = [at for at in range(len(begun)) if at < number and over[at] > start]
        assert len(running) < slots
        assert start == START or start in over


@given(many, times)
@settings(max_examples=40, deadline=None)
def test_a_user_holds_one_session_after_another(sessions: list[Dag], service: list[int]) -> None:
    """Law: each at its user's instant, and not before the one before is over."""
    load = Load(sessions, users=2)
    with tempfile.TemporaryDirectory() as folder:
        played = play(load.shared(Path(folder), Assignment(Phase.MEASURE, None)), cycled(service))
    for number, first in enumerate(load.firsts):
        start = played.hits[first, 0].due_ns - load.planned[first].delay
        before = [played.ends[row, 0].at for row, _ in played.hits if load.rows[row].session == number - 2]
        assert start == max(START + 100 * (number // 2), *before, 0)


@given(many, times, st.integers(1, 400), st.sampled_from([None, 2]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_step_is_given_out_that_is_due_after_the_end(
    sessions: list[Dag], service: list[int], duration: int, slots: int | None, again: bool
) -> None:
    """Law: nor is anything awaited then, so that the phase ends with what is in flight."""
    load = Load(sessions, None if slots else [50 * at for at in range(len(sessions))])
    with tempfile.TemporaryDirectory() as folder:
        share = load.shared(Path(folder), Assignment(Phase.MEASURE, slots))
        played = play(share, cycled(service), duration=duration, again=again and slots is not None)
    late = [hit for hit in played.hits.values() if hit.due_ns >= START + duration]
    assert [load.rows[hit.row].turn for hit in late] == [0] * len(late), "only sessions that were planned"
    assert slots is None or not late
    for row, cycle in played.hits:
        for before in load.after(row):
            assert (before, cycle) in played.ends


@given(many, times)
@settings(max_examples=40, deadline=None)
def test_sessions_that_are_gone_through_again_have_other_nonces(
    sessions: list[Dag], service: list[int]
) -> None:
    """Law: and what their steps repeat is that cycle's own."""
    load = Load(sessions)
    with tempfile.TemporaryDirectory() as folder:
        share = load.shared(Path(folder), Assignment(Phase.MEASURE, 2))
        played = play(share, cycled(service), duration=1500, again=True)
    for (row, cycle), body in played.bodies.items():
        step = load.steps[row]
        if step.extends is None:
            nonce = renewed(b"%09d" % row, cycle).decode()
            assert json.loads(body)["messages"][0]["content"] == f"{nonce}own {row}"
        else:
            before = json.loads(played.bodies[step.extends, cycle])["messages"]
            assert json.loads(body)["messages"][: len(before)] == before


def test_the_servers_text_stands_in_the_hole_of_a_reply() -> None:
    reply = with_hole(b'{"role":"assistant","content":', b',"tool_calls":[]}')
    assert json.loads(repeated(reply, 'a "b"')) == {
        "role": "assistant",
        "content": 'a "b"',
        "tool_calls": [],
    }
    assert repeated(b'{"role":"assistant","content":"c"}', "x") == b'{"role":"assistant","content":"c"}'
    assert json.loads(repeated(None, "x")) == {"role": "assistant", "content": "x"}


@given(st.integers(0, 10**9 - 1), st.integers(0, 1000))
def test_no_two_cycles_have_one_nonce(value: int, cycle: int) -> None:
    nonce = b"%09d" % value
    assert len(renewed(nonce, cycle)) == 9
    assert (renewed(nonce, cycle) == nonce) == (cycle == 0)


def test_a_session_of_thousands_of_steps_is_begun_without_a_look_at_each(tmp_path: Path) -> None:
    """Law: what begins and goes on costs by what it starts, not by the session's length."""
    chain: Dag = [Planned((), None, 0), *(Planned((at,), at, 1, "r") for at in range(3000))]
    played = play(Load([chain]).shared(tmp_path, Assignment(Phase.MEASURE, 1)), lambda _: 1)
    assert len(played.hits) == 3001
    assert played.kept == 0


@pytest.mark.parametrize("lead", [2])
def test_a_lead_in_of_sessions_is_not_measured_and_holds_the_slots_to_the_end(
    lead: int, tmp_path: Path
) -> None:
    """Law: its steps are those of its phase, and sessions of it are sent again until the measured ones have ended."""
    dag: Dag = [Planned((), None, 0), Planned((0,), 0, 5), Planned((0,), None, 0)]
    load = Load([dag] * 6, lead=lead)
    share = load.shared(tmp_path, Assignment(Phase.MEASURE, 2))
    played = play(share, lambda hit: 400 if hit.row >= 15 else 10)
    phases: dict[int, Any] = {row: share.phase_of(row) for row, _ in played.hits}
    assert {row for row, phase in phases.items() if phase == Phase.LEAD} == set(range(6))
    assert {row for row, phase in phases.items() if phase == Phase.MEASURE} == set(range(6, 18))
    assert max(cycle for row, cycle in played.hits if row < 6) > 0
    assert max(cycle for row, cycle in played.hits if row >= 6) == 0
