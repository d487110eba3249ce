"""The worker processes as the parent sees them: start them, set one start instant for all, watch them, stop them.

A worker that dies takes its unflushed second with it and nothing more; the others go on, and the run says so. One that hangs,
stopped or waiting for a disk that does not answer, is ended after HANG_S and has died then.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa

from inferometer.drive import clock, progress_counters
from inferometer.drive.worker_messages import Failed, Go, Job, More, PhaseDone, Quit, Ready, Report, Stop
from inferometer.errors import SHORTAGES, InstrumentError, MachineError
from inferometer.isolation import Child, ended_by
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams

LEAD_NS = 20_000_000
LEAD_ROW_NS = 2_000
"""From the order to the start: long enough for the slowest worker to have read it, and to have looked through the schedule."""
START_TIMEOUT_S = 30.0
LEAVE_S = 20.0
SLICE_S = 0.25
HANG_S = 120.0
"""A worker whose loop stands still for so long hangs, as does one that takes no order for so long. To begin a phase of
10,000,000 requests takes it 20 s."""
UNSTAMPED_SHARE = 0.001


def lead_ns(rows: int) -> int:
    """From the order to the start of a phase of a schedule with so many rows."""
    return LEAD_NS + rows * LEAD_ROW_NS


Watch = Callable[[int, progress_counters.Progress], None]
"""Called several times a second with the phase and the totals so far."""
Work = Callable[[], bool]
"""A piece of work that is done while the workers run; whether there is more of it now."""


@dataclass(slots=True)
class Death:
    """A worker that ended before its time: the phase that was running or the last that had, what it had sent by then (its
    counters are up to 50 ms old), its exit code once it is known (negative: killed by that signal), and where it lived to say
    so the reason, with what the machine was short of."""

    worker: int
    phase: int
    sent: int
    exit_code: int | None = None
    reason: str | None = None
    shortage: str | None = None


@dataclass(slots=True)
class Outcome:
    """How the drive went. `single_use`: a worker found that the server closes each connection after one answer."""

    dead: dict[int, Death] = field(default_factory=dict)
    interrupted: bool = False
    stamped: int = 0
    unstamped: int = 0
    single_use: bool = False

    @property
    def timestamp_source(self) -> Literal["kernel", "user"] | None:
        """Kernel if (nearly) all reads of the measurement had its time: a socket's first bytes may lack it. None without reads,
        or if no worker lived to report them: the pulses show it.
        """
        if not self.stamped and not self.unstamped:
            return None
        return "kernel" if self.unstamped <= UNSTAMPED_SHARE * self.stamped else "user"


class _WorkerProcess:
    """One worker process and its pipe."""

    def __init__(self, number: int, log: int) -> None:
        self.number = number
        self.child = Child("inferometer.drive.worker", called=f"worker {number}", stderr=log)
        self.buffer = b""
        self.alive = True
        self.failed: Failed | None = None
        self.hung = False
        self.beat = 0
        self.still_s = 0.0

    def send(self, message: Job | Go | More | Stop | Quit, patience_s: float = HANG_S) -> None:
        """Send one line; that a worker is dead shows when its reports are next read. One that takes no more hangs."""
        pipe, data = self.child.stdin.fileno(), msgspec.json.encode(message) + b"\n"
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        until = clock.monotonic_ns() + int(patience_s * 1e9)
        try:
            while data:
                if not poll.poll(max(0, until - clock.monotonic_ns()) / 1e6):
                    self.end_hung()
                    self.alive = False
                    return
                data = data[os.write(pipe, data[: select.PIPE_BUF]) :]  # as much as fits for sure
        except OSError:
            self.alive = False

    def watched(self, beat: int, passed_s: float) -> float:
        """For how long its loop has stood still (s), now that its counters are at this beat and so much time has passed."""
        self.still_s = 0.0 if beat != self.beat else self.still_s + passed_s
        self.beat = beat
        return self.still_s

    def end_hung(self) -> None:
        """End it at once: it takes no orders. What it said before is still to be read."""
        self.hung, self.failed = True, Failed("it hung, and was ended", None)
        self.child.kill()

    def receive(self) -> list[Report]:
        """The reports received since the last call; marks the worker dead at the end of its output."""
        data = os.read(self.child.stdout.fileno(), 65536)
        if not data:
            self.alive = False
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        reports: list[Report] = [msgspec.json.decode(line, type=Report) for line in lines]
        self.failed = next((one for one in reports if isinstance(one, Failed)), self.failed)
        return reports

    def hear_out(self) -> None:
        """Take what a worker that has ended said last."""
        self.alive = True
        while self.alive:
            self.receive()


class WorkerPool:
    """All workers of one run: started early, since that takes a while, then given their jobs, then run phase by phase.

    Use as a context manager: leaving it ends every process.
    """

    def __init__(self, workers: int, log: Path, hang_s: float = HANG_S, *, first: int = 0) -> None:
        """`first`: the number of the first of them, where other hosts have others of the same run."""
        self._log, self._hang_s = log, hang_s
        with open(log, "ab") as sink:
            self._workers = [
                _WorkerProcess(number, sink.fileno()) for number in range(first, first + workers)
            ]
        self._selector = selectors.DefaultSelector()
        for worker in self._workers:
            self._selector.register(worker.child.stdout, selectors.EVENT_READ, worker)
        self._folder: Path | None = None
        self._counters: progress_counters.Counters | None = None
        self._phase = int(Phase.WARMUP)
        self._announced: More | None = None
        self.outcome = Outcome()

    def __enter__(self) -> WorkerPool:
        """Use as a context manager."""
        return self

    @property
    def pids(self) -> list[int]:
        """The processes that live."""
        return [worker.child.pid for worker in self._workers if worker.alive]

    def assign(self, jobs: Sequence[Job]) -> None:
        """Give each worker its job and wait until all stand ready. One that is killed meanwhile has died, if others are ready.
        Raises InstrumentError if one does not start, as MachineError if the machine is short of something or has killed all."""
        self._folder = Path(jobs[0].folder)
        self._counters = progress_counters.Counters.create(self._folder, jobs[0].workers)
        for worker, job in zip(self._workers, jobs, strict=True):
            worker.send(job)
            if self._announced is not None:
                worker.send(self._announced)
        ready = self._gather(Ready, START_TIMEOUT_S + jobs[0].connect_timeout_ns / 1e9)
        if len(ready) < len(self._workers) and not (ready and self._others_killed(len(ready))):
            raise self._not_started()

    def _others_killed(self, ready: int) -> bool:
        """Whether all but so many workers were killed before they were ready: then the run goes on as it does without any that
        is killed later."""
        gone = [worker for worker in self._workers if not worker.alive]
        killed = [worker for worker in gone if ended_by(worker.child.process) is not None]
        for worker in killed:
            self._record_death(worker)
        return len(killed) == len(gone) == len(self._workers) - ready

    def _not_started(self) -> InstrumentError:
        """The error of a pool of which a worker did not start. None is to write a journal of nothing at its end."""
        gone = [worker for worker in self._workers if not worker.alive]
        for worker in self._workers:
            worker.child.kill()
            worker.alive = False
        failed = next((worker.failed for worker in self._workers if worker.failed is not None), None)
        if failed is None:
            signals = [ended_by(worker.child.process) for worker in gone]
            if len(gone) == len(self._workers) and all(signals):
                said = f"worker 0 was killed ({signals[0]}) before it was ready, and none is left"
                return MachineError(f"{said}; {SHORTAGES['killed'][1]}", "killed")
            return InstrumentError("a worker did not start; its reason is in log.txt of the run folder")
        if failed.shortage is None:
            return InstrumentError(
                f"a worker did not start: {failed.reason}; more is in log.txt of the run folder"
            )
        return MachineError(failed.reason, failed.shortage)

    def __exit__(self, *exc: object) -> None:
        """End all processes: politely, then not."""
        for worker in self._workers:
            if worker.alive:
                worker.send(Quit(), self._hang_s)
        for worker in self._workers:
            worker.child.end(min(LEAVE_S, self._hang_s))
            worker.hear_out()
            worker.child.close()
            code = worker.child.process.returncode
            if code != 0:
                self._record_death(worker)
            if worker.number in self.outcome.dead:
                self.outcome.dead[worker.number].exit_code = code
        self._selector.close()
        if self._folder is not None:
            progress_counters.Counters.remove(self._folder)

    def begin(
        self,
        phase: int,
        rows: int,
        *,
        duration_ns: int = 0,
        again: bool = False,
        appended: int | None = None,
        part: tuple[int, int] | None = None,
        cycle: int = 0,
    ) -> int:
        """Let all workers begin a phase of a schedule with so many rows; gives the start. See Go for the other arguments."""
        start_ns = clock.monotonic_ns() + lead_ns(rows)
        self.go(
            Go(
                phase=phase,
                start_ns=start_ns,
                duration_ns=duration_ns,
                again=again,
                appended=appended,
                part=part,
                cycle=cycle,
            )
        )
        return start_ns

    def go(self, order: Go) -> None:
        """Let all workers begin a phase."""
        self._phase = order.phase
        self.order(order)

    def announce(self, size: int, final: bool) -> None:
        """Announce to all workers how much of the appended schedule there is; with their jobs if they have none yet."""
        self._announced = More(size=size, final=final)
        if self._folder is None:
            return
        self.order(self._announced)

    def finish(self, phase: int, watch: Watch, interrupt: Interrupt, work: Work = lambda: False) -> None:
        """Wait until the phase has ended in all workers, and meanwhile do the `work` there is."""
        counters = self._counters
        assert counters is not None, "assign first"
        for report in self._gather(
            PhaseDone, None, lambda: watch(phase, counters.progress()), interrupt, work
        ):
            if isinstance(report, PhaseDone) and report.phase == phase == Phase.MEASURE:
                self.outcome.single_use |= report.single_use
                self.outcome.stamped += report.stamped
                self.outcome.unstamped += report.unstamped
        watch(phase, counters.progress())

    def live(self) -> list[list[int]]:
        """The counters of its workers, a row for each (progress_counters.py); none before they have jobs."""
        if self._counters is None:
            return []
        return [self._counters.row(worker.number) for worker in self._workers]

    def others_arrived(self, start_ns: int) -> None:
        """The workers that are not of this pool have ended the measured requests of the phase that began then."""
        own = {worker.number for worker in self._workers}
        if self._counters is not None:
            self._counters.others_arrived(own, start_ns)

    def outcomes(self) -> pa.Table:
        """What has become of the requests that have ended, as far as it is on disk (schema.OUTCOME)."""
        assert self._folder is not None, "assign first"
        return streams(RunFolder(self._folder), "worker", OUTCOME)

    def hosts(self) -> tuple[()]:
        """None but this machine."""
        return ()

    def order(self, message: Go | More | Stop) -> None:
        """Send all workers that live one order."""
        for worker in self._workers:
            if worker.alive:
                worker.send(message, self._hang_s)

    def stop(self, drain_ns: int) -> None:
        """Let all workers send no more, and end what is in flight within so long."""
        self.order(Stop(drain_ns=drain_ns))

    def _end_hung(self, waiting: Collection[int], passed_s: float) -> None:
        """End those that are waited for and whose loop has stood still for too long."""
        counters = self._counters
        if counters is None:
            return
        for worker in self._workers:
            still_s = worker.watched(counters.beat(worker.number), passed_s)
            if worker.number in waiting and still_s > self._hang_s and not worker.hung:
                worker.end_hung()
                with contextlib.suppress(OSError), self._log.open("a") as log:
                    log.write(f"worker {worker.number} hung for {still_s:.0f} s and was ended\n")

    def _record_death(self, worker: _WorkerProcess) -> None:
        sent = 0
        if self._counters is not None:
            sent = self._counters.of(worker.number).sent
            self._counters.gone(worker.number)
        said = worker.failed
        self.outcome.dead.setdefault(
            worker.number,
            Death(worker.number, self._phase, sent, worker.child.process.poll())
            if said is None
            else Death(
                worker.number, self._phase, sent, worker.child.process.poll(), said.reason, said.shortage
            ),
        )

    def _gather(
        self,
        kind: type[Report],
        timeout_s: float | None,
        watch: Callable[[], None] = lambda: None,
        interrupt: Interrupt | None = None,
        work: Work = lambda: False,
    ) -> list[Report]:
        """One report of this kind from every worker that lives."""
        busy = False
        reports: list[Report] = []
        waiting = {worker.number for worker in self._workers if worker.alive}
        last = clock.monotonic_ns()
        deadline = None if timeout_s is None else last + int(timeout_s * 1e9)
        while waiting and (deadline is None or clock.monotonic_ns() < deadline):
            for key, _ in self._selector.select(0 if busy else SLICE_S):
                worker: _WorkerProcess = key.data
                for report in worker.receive():
                    if isinstance(report, kind):
                        reports.append(report)
                        waiting.discard(worker.number)
                if not worker.alive:
                    self._selector.unregister(key.fileobj)
                    self._record_death(worker)
                    waiting.discard(worker.number)
            watch()
            if deadline is None:
                # Time that this process did not run itself, as while it was stopped, is no worker's.
                now = clock.monotonic_ns()
                self._end_hung(waiting, min((now - last) / 1e9, 4 * SLICE_S))
                last = now
            busy = bool(waiting) and work()
            if interrupt is not None and (drain := interrupt.new_drain_ns()) is not None:
                self.outcome.interrupted = True
                self.stop(drain)
        return reports


class Interrupt:
    """Ctrl-C, translated: the first means stop sending and drain for `drain_ns`, the second means now, the third leave."""

    def __init__(self, drain_ns: int) -> None:
        self._drain_ns = drain_ns
        self._count = 0
        self._announced = 0

    def press(self, *_: object) -> None:
        """Signal handler. A third press does not wait for anybody."""
        self._count += 1
        if self._count > 2:
            raise KeyboardInterrupt

    @property
    def pressed(self) -> bool:
        """True once Ctrl-C was pressed."""
        return self._count > 0

    def new_drain_ns(self) -> int | None:
        """The drain time to announce now, or None if there is nothing new."""
        if self._count == self._announced:
            return None
        self._announced = self._count
        return self._drain_ns if self._count == 1 else 0
