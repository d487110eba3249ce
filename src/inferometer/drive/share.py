"""One worker's part of one phase: which rows of the schedule are its, when they are due, and the bytes of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.drive.pacer import (
    ClosedPacer,
    Company,
    Ending,
    Hit,
    LaterPacer,
    OpenPacer,
    Pacer,
    TailPacer,
    deal,
    slots_of,
)
from inferometer.drive.turn_pacer import Lanes, TurnPacer
from inferometer.engines.dialect import extended, inserted, messages_bytes
from inferometer.journal.schedule import Schedule, Tail
from inferometer.journal.schema import Phase


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one of `workers` is to send of a `phase`.

    `slots`: of the closed loop, over all workers; None: open loop. `part`: only the rows from the first up to before the
    second. `cycle`: how often they were sent before.
    """

    phase: int
    slots: int | None
    worker: int = 0
    workers: int = 1
    part: tuple[int, int] | None = None
    cycle: int = 0


class Share:
    """The requests of an assignment that do not wait for each other's answers."""

    listens = False
    """Whether what is sent depends on what was answered: then `ended` is to be called."""
    by_end = False
    """Whether later requests are due by the instant at which an answer ended, also where it was read later."""

    def __init__(self, schedule: Schedule, assignment: Assignment) -> None:
        self._schedule = schedule
        self._assignment = assignment
        phase, part = assignment.phase, assignment.part
        first, stop = part or (0, len(schedule))
        phases = schedule.table.column("phase").slice(first, stop - first).to_pylist()
        self._rows = [row for row, its_phase in enumerate(phases, first) if its_phase == phase]
        leads = part is None and phase == Phase.MEASURE and assignment.slots is not None
        self._lead = [row for row, its_phase in enumerate(phases, first) if leads and its_phase == Phase.LEAD]
        self._leading = frozenset(self._lead)
        self._tokens = schedule.table.column("output_tokens_asked").to_numpy()
        limits = schedule.table.column("timeout_ns")
        self._limits = None if limits.null_count == len(limits) else limits.to_pylist()
        self._classes: bytes = schedule.table.column("request_class").fill_null(0).to_numpy().tobytes()
        # A single probe has no use for them, and is asked for often.
        columns = ["nonce_at", "nonce_len", "phase"] if part is None or assignment.cycle else []
        self._nonces: dict[str, list[int]] = schedule.table.select(columns).to_pydict()
        self._marked: dict[int, list[int]] = {}  # by phase, which rows have a nonce; found when it is needed

    def pacer(
        self, start_ns: int, duration_ns: int = 0, *, again: bool = False, company: Company | None = None
    ) -> Pacer:
        """When they are due, from `start_ns` on. `duration_ns` 0: until all is sent. `again`: over and over. `company`: the
        workers of a closed loop; None: this one alone."""
        pacer = self._paced(start_ns, duration_ns, again, company)
        cycle = self._assignment.cycle
        return LaterPacer(pacer, cycle) if cycle else pacer

    @property
    def slots(self) -> int | None:
        """Of the closed loop, over all workers; None: open loop."""
        return self._assignment.slots

    def own_rows(self) -> list[int]:
        """The rows that are this worker's."""
        return [self._rows[i] for i in self._dealt(len(self._rows))]

    def _dealt(self, count: int) -> Sequence[int]:
        """Which of so many requests, or lanes of them, are this worker's."""
        mine = self._assignment
        return deal(count, mine.worker, mine.workers, mine.slots)

    @property
    def _own_slots(self) -> int:
        mine = self._assignment
        return slots_of(mine.worker, mine.workers, mine.slots or 0)

    def _paced(self, start_ns: int, duration_ns: int, again: bool, company: Company | None) -> Pacer:
        chosen = self.own_rows()
        if self.slots is None:
            due = self._schedule.table.column("due_ns").to_numpy()
            return OpenPacer(chosen, [start_ns + int(due[row]) for row in chosen], start_ns)
        lead = [self._lead[i] for i in self._dealt(len(self._lead))]
        slots, duration = self._own_slots, duration_ns or None
        return ClosedPacer(chosen, slots, start_ns, duration, again=again, lead=lead, company=company)

    def phase_of(self, row: int) -> int:
        """The phase of a request: the assignment's, or that of its lead-in."""
        return Phase.LEAD if row in self._leading else self._assignment.phase

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        body = self._schedule.body(hit.row)
        return self._renew_nonce(body, hit) if hit.cycle else body

    def request_class(self, hit: Hit) -> int:
        """The class of a request that is due; 0 where it has none."""
        return self._classes[hit.row]

    def tokens(self, hit: Hit) -> int:
        """The output tokens that a request asks for, at most."""
        return int(self._tokens[hit.row])

    def timeout_ns(self, hit: Hit) -> int | None:
        """The request's own time limit; None: it has none."""
        return None if self._limits is None else self._limits[hit.row]

    def session_of(self, _row: int, /) -> int | None:
        """The session of a request, or the conversation; None: it is of none."""
        return None

    def ended(self, end: Ending, reply: str) -> None:
        """A request has ended; `reply` is what the server answered."""

    def _renew_nonce(self, body: bytes, hit: Hit) -> bytes:
        """The schedule is gone through again: pair this body with another's nonce, so that no prefix recurs."""
        at, length = self._nonces["nonce_at"][hit.row], self._nonces["nonce_len"][hit.row]
        if at < 0:
            return body
        mine = self._nonces["phase"][hit.row]
        if mine not in self._marked:
            rows = zip(self._nonces["phase"], self._nonces["nonce_at"], strict=True)
            self._marked[mine] = [
                row for row, (phase, nonce) in enumerate(rows) if phase == mine and nonce >= 0
            ]
        marked = self._marked[mine]
        other = marked[(bisect_left(marked, hit.row) + hit.cycle) % len(marked)]
        other_at = self._nonces["nonce_at"][other]
        nonce = self._schedule.body(other)[other_at : other_at + length]
        return body[:at] + nonce + body[at + length :]


class TailShare:
    """The part of one of so many `workers` in a phase whose schedule is still being written.

    Its requests wait for no answers. `first`: row of the schedule that the appended part begins with. The i-th request of the
    phase is worker i mod workers', as in any open loop.
    """

    listens = by_end = False

    def __init__(self, tail: Tail, first: int, start_ns: int, worker: int = 0, workers: int = 1) -> None:
        self._tail, self._first, self._worker, self._workers = tail, first, worker, workers
        self.pacer = TailPacer(start_ns)

    def read_on(self, size: int, *, final: bool) -> None:
        """Take in what has been appended. `final`: nothing more will be."""
        worker, workers, first = self._worker, self._workers, self._first
        for row, due in self._tail.read_on(size):
            skip = (worker - row) % workers
            self.pacer.extend(range(first + row + skip, first + row + len(due), workers), due[skip::workers])
        if final:
            self.pacer.finish()

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        return self._tail.body(hit.row - self._first)

    def request_class(self, _hit: Hit) -> int:
        """0: a trace's requests have no class."""
        return 0

    def tokens(self, hit: Hit) -> int:
        """The output tokens that a request asks for, at most; of the latest one whose body was asked for."""
        return self._tail.tokens(hit.row - self._first)

    def timeout_ns(self, _hit: Hit) -> None:
        """A trace's requests have no time limits of their own."""

    def phase_of(self, _row: int) -> int:
        """A trace has no lead-in."""
        return Phase.MEASURE

    def session_of(self, _row: int, /) -> None:
        """A trace's requests are of no session."""

    def ended(self, end: Ending, reply: str) -> None:
        """See Share."""


class TurnShare(Share):
    """As Share, of requests that wait for answers. A session, or all that a user asks, is one worker's."""

    listens = True

    def __init__(self, schedule: Schedule, assignment: Assignment) -> None:
        super().__init__(schedule, assignment)
        self._lanes = Lanes(schedule)
        own = schedule.table.select(["own_at", "own_len", "reply"])
        self._own_at, self._own_len = own.column("own_at").to_pylist(), own.column("own_len").to_pylist()
        self._reply = own.column("reply")
        self._history: dict[tuple[int, int, int], bytes] = {}  # by phase, session and cycle
        self._sent: dict[tuple[int, int], bytes] = {}  # the own messages of what is in flight

    def _paced(self, start_ns: int, duration_ns: int, again: bool, company: Company | None) -> TurnPacer:
        slots = None if self.slots is None else self._own_slots
        mine, lead = self._own_lanes(self._rows), self._own_lanes(self._lead)
        duration = duration_ns or None
        return TurnPacer(
            self._lanes, mine, start_ns, slots, duration, again=again, lead=lead, company=company
        )

    def own_rows(self) -> list[int]:
        """See Share: those of its lanes."""
        return self._own_lanes(self._rows)

    def _own_lanes(self, rows: Sequence[int]) -> list[int]:
        """Of these rows, those of this worker's lanes."""
        firsts, follower = self._lanes.chains(rows)
        mine: list[int] = []
        for at in self._dealt(len(firsts)):
            row = firsts[at]
            while row >= 0:
                mine.append(row)
                row = follower.get(row, -1)
        return mine

    def session_of(self, row: int, /) -> int | None:
        """See Share."""
        return self._lanes.session[row]

    def body(self, hit: Hit) -> bytes:
        """The body of a turn, with all that it repeats."""
        body = super().body(hit)
        at = self._own_at[hit.row]
        session = self._lanes.session[hit.row]
        if at < 0 or session is None:
            return body
        turn = self._lanes.turn[hit.row]
        self._sent[hit.row, hit.cycle] = body[at : at + self._own_len[hit.row]]
        key = (self.phase_of(hit.row), session, hit.cycle)
        return inserted(body, at, self._history.get(key, b"") if turn else b"")

    def ended(self, end: Ending, reply: str) -> None:
        """See Share. After a failure the conversation ends."""
        own = self._sent.pop((end.row, end.cycle), None)
        session = self._lanes.session[end.row]
        if own is None or session is None:
            return
        key = (self.phase_of(end.row), session, end.cycle)
        history = self._history.pop(key, b"") if self._lanes.turn[end.row] else b""
        if not end.ok or not self._goes_on(end.row):
            return
        recorded = self._reply[end.row].as_py()
        repeated = messages_bytes([("assistant", reply)]) if recorded is None else recorded
        self._history[key] = extended(history, own, repeated)

    def _goes_on(self, row: int) -> bool:
        turns = self._lanes.turn
        return row + 1 < len(turns) and turns[row + 1] == turns[row] + 1
