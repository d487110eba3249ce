"""One worker's part of one phase: which rows of the schedule are its, when they are due, and the bytes of each."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.drive.pacer import ClosedPacer, Hit, OpenPacer, Pacer, deal, slots_of
from inferometer.journal.schedule import Schedule


class Share:
    """What one of so many `workers` has to send. `slots`: of the closed loop over all workers; None: open loop."""

    def __init__(
        self, schedule: Schedule, phase: int, slots: int | None, worker: int = 0, workers: int = 1
    ) -> None:
        self._schedule = schedule
        self._slots, self._worker, self._workers = slots, worker, workers
        phases = schedule.table.column("phase").to_pylist()
        self._rows = [row for row, its_phase in enumerate(phases) if its_phase == phase]
        self._classes = schedule.table.column("request_class").fill_null(0).to_numpy()
        self._nonces = schedule.table.select(["nonce_at", "nonce_len"]).to_pydict()

    def pacer(self, start_ns: int, duration_ns: int = 0, *, again: bool = False) -> Pacer:
        """When they are due, from `start_ns` on. `duration_ns` 0: until all is sent. `again`: over and over."""
        rows = self._rows
        mine: Sequence[int] = deal(len(rows), self._worker, self._workers, self._slots)
        chosen = [rows[i] for i in mine]
        if self._slots is None:
            due = self._schedule.table.column("due_ns").to_numpy()
            return OpenPacer(chosen, [start_ns + int(due[row]) for row in chosen])
        slots = slots_of(self._worker, self._workers, self._slots)
        until = start_ns + duration_ns if duration_ns else None
        return ClosedPacer(chosen, slots, start_ns, until, again=again)

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        body = self._schedule.body(hit.row)
        return self._renew_nonce(body, hit) if hit.cycle else body

    def request_class(self, hit: Hit) -> int:
        """The class of a request that is due; 0 where it has none."""
        return int(self._classes[hit.row])

    def _renew_nonce(self, body: bytes, hit: Hit) -> bytes:
        """The schedule is gone through again: pair this body with another's nonce, so that no prefix recurs."""
        at, length = self._nonces["nonce_at"][hit.row], self._nonces["nonce_len"][hit.row]
        if at < 0:
            return body
        rows = self._rows
        other = rows[(hit.row - rows[0] + hit.cycle) % len(rows)]  # a phase's rows stand together
        other_at = self._nonces["nonce_at"][other]
        nonce = self._schedule.body(other)[other_at : other_at + length]
        return body[:at] + nonce + body[at + length :]
