"""One worker's part of one phase: which rows of the schedule are its, when they are due, and the bytes of each."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.drive.pacer import (
    ClosedPacer,
    Ending,
    Hit,
    LaterPacer,
    OpenPacer,
    Pacer,
    TailPacer,
    deal,
    slots_of,
)
from inferometer.journal.schedule import Schedule, Tail


class Share:
    """What one of so many `workers` has to send. `slots`: of the closed loop over all workers; None: open loop.

    `part`: of the phase only the rows from the first up to before the second. `cycle`: how often they were sent before.
    """

    listens = False
    """Whether what is sent depends on what was answered: then `ended` is to be called."""

    def __init__(
        self,
        schedule: Schedule,
        phase: int,
        slots: int | None,
        worker: int = 0,
        workers: int = 1,
        part: tuple[int, int] | None = None,
        cycle: int = 0,
    ) -> None:
        self._schedule = schedule
        self.slots, self._worker, self._workers = slots, worker, workers
        self._phase, self._cycle = phase, cycle
        first, stop = part or (0, len(schedule))
        phases = schedule.table.column("phase").slice(first, stop - first).to_pylist()
        self._rows = [row for row, its_phase in enumerate(phases, first) if its_phase == phase]
        self._classes: bytes = schedule.table.column("request_class").fill_null(0).to_numpy().tobytes()
        # A single probe has no use for them, and is asked for often.
        columns = ["nonce_at", "nonce_len", "phase"] if part is None or cycle else []
        self._nonces: dict[str, list[int]] = schedule.table.select(columns).to_pydict()
        self._marked: dict[int, int] | None = None  # which rows have a nonce, found when it is needed
        self._others: list[int] = []

    def pacer(self, start_ns: int, duration_ns: int = 0, *, again: bool = False) -> Pacer:
        """When they are due, from `start_ns` on. `duration_ns` 0: until all is sent. `again`: over and over."""
        pacer = self._paced(start_ns, duration_ns, again=again)
        return LaterPacer(pacer, self._cycle) if self._cycle else pacer

    def _paced(self, start_ns: int, duration_ns: int, *, again: bool) -> Pacer:
        rows = self._rows
        mine: Sequence[int] = deal(len(rows), self._worker, self._workers, self.slots)
        chosen = [rows[i] for i in mine]
        if self.slots is None:
            due = self._schedule.table.column("due_ns").to_numpy()
            return OpenPacer(chosen, [start_ns + int(due[row]) for row in chosen])
        slots = slots_of(self._worker, self._workers, self.slots)
        until = start_ns + duration_ns if duration_ns else None
        return ClosedPacer(chosen, slots, start_ns, until, again=again)

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        body = self._schedule.body(hit.row)
        return self._renew_nonce(body, hit) if hit.cycle else body

    def request_class(self, hit: Hit) -> int:
        """The class of a request that is due; 0 where it has none."""
        return self._classes[hit.row]

    def ended(self, end: Ending, reply: str) -> None:
        """A request has ended; `reply` is what the server answered."""

    def _renew_nonce(self, body: bytes, hit: Hit) -> bytes:
        """The schedule is gone through again: pair this body with another's nonce, so that no prefix recurs."""
        at, length = self._nonces["nonce_at"][hit.row], self._nonces["nonce_len"][hit.row]
        if at < 0:
            return body
        if self._marked is None:
            rows = zip(self._nonces["phase"], self._nonces["nonce_at"], strict=True)
            marked = [row for row, (phase, nonce) in enumerate(rows) if phase == self._phase and nonce >= 0]
            self._marked = {row: number for number, row in enumerate(marked)}
            self._others = marked
        other = self._others[(self._marked[hit.row] + hit.cycle) % len(self._others)]
        other_at = self._nonces["nonce_at"][other]
        nonce = self._schedule.body(other)[other_at : other_at + length]
        return body[:at] + nonce + body[at + length :]


class TailShare:
    """The part of one of so many `workers` in a phase whose schedule is still being written.

    Its requests wait for no answers. `first`: row of the schedule that the appended part begins with. The i-th request of the
    phase is worker i mod workers', as in any open loop.
    """

    listens = False

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

    def ended(self, end: Ending, reply: str) -> None:
        """See Share."""
