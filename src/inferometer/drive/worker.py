"""One worker process: `python -m inferometer.drive.worker`. Orders come on stdin, a line each; reports go to stdout.

Its life: read the Job, open connections, say Ready; then for each Go map the schedule, run that phase to its end and say
PhaseDone; at Quit, or when the parent is gone, close the journal and leave.

No garbage collection while measuring: what an ended request leaves behind is freed by reference counting alone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
import zlib
from pathlib import Path
from typing import Literal

import msgspec

from inferometer.client.trust import context
from inferometer.drive import clock, progress_counters, time_slice
from inferometer.drive.channel import ChannelKind
from inferometer.drive.channel_kinds import kind_of
from inferometer.drive.exchange import Exchange
from inferometer.drive.pacer import Ending, Hit, OpenPacer, Pacer
from inferometer.drive.reactor import Reactor
from inferometer.drive.session_header import SessionHeader
from inferometer.drive.share import Assignment, Share, TailShare
from inferometer.drive.shares import share_of
from inferometer.drive.trace_context import TraceContext
from inferometer.drive.transport import Peer
from inferometer.drive.worker_messages import Command, Failed, Go, Job, More, PhaseDone, Ready, Report, Stop
from inferometer.engines import dialect
from inferometer.errors import MachineError, in_words, shortage_of
from inferometer.isolation import undisturbed
from inferometer.journal import hold
from inferometer.journal.redact import Redactor
from inferometer.journal.schedule import Schedule, Tail
from inferometer.journal.schema import Outcome, Phase
from inferometer.journal.writer import Journal
from inferometer.printable import guard_stderr

TICK_NS = 50_000_000
TICK_ROOM_NS = 2_000_000
"""A tick waits for a request that falls due so soon after it: a wait that is not exact may last a millisecond too long."""
PULSE_NS = 250_000_000
EXPIRY_NS = 500_000_000
"""Looking for what has outlived its deadline means looking at every connection."""
FLUSH_NS = 800_000_000
FLUSH_ROWS = 2048
FLUSH_ROOM_NS = 2_500_000
FLUSH_PATIENCE_NS = 150_000_000
"""A flush takes 1 to 3 ms, mostly however much there is to write, and holds up what falls due meanwhile: so there are few, and
each waits for a moment when nothing does."""
SENDS_A_ROUND = 32
"""However many requests are due at once, sockets are read between so many sends: a send takes some 20 microseconds."""
CONNECT_PAUSE_NS = 100_000_000
"""Closed loop: a slot whose connection failed, or whose handshake was refused, is free again after this, or a dead server
would be hammered."""
SPARE = 8
"""Open loop: idle connections held ready, so that a request rarely waits for a handshake."""

OWN_FILES = 24
"""Files of a worker beside its connections: schedule, journal, pipes, timers. Connections never take their place."""

_CONNECT_FAILURES = frozenset(
    {Outcome.CONNECT_REFUSED, Outcome.CONNECT_ERROR, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR}
)


class Worker:
    """Runs phases. `report` hands a line to the parent."""

    def __init__(self, job: Job, stdin: int, most_files: int, redact: Redactor) -> None:
        most_open = most_files - OWN_FILES
        self._dialect = dialect.load(job.api, job.form)
        kind = kind_of(job.protocol, job.streams, job.heads[0], greets=self._dialect.interface.greets)
        at_once = 1 if job.open_loop else job.prepare
        needed = -(-at_once // kind.places)
        if most_open < needed:
            raise MachineError(
                f"a worker with {at_once} requests in flight needs {needed + OWN_FILES} open files, and the limit is "
                f"{most_files}; raise it (ulimit -n), or use more --workers or fewer requests in flight",
                "files",
            )
        self._job = job
        self._limits = job.limits
        self._stdin = stdin
        self._buffer = b""
        self._commands: list[Command] = []
        self._decode = msgspec.json.Decoder(Command).decode
        folder = Path(job.folder)
        self._folder = folder
        self._hold = hold.join(folder / "journal")  # for as long as this process lives
        self._journal = Journal(folder / "journal", job.worker, redact, folder.name)
        self._counters = progress_counters.Counters.attach(folder, job.worker, job.workers)
        self._heads = [kind.prepare(head) for head in job.heads]
        self._head = self._heads[0]
        self._one_head = len(self._heads) == 1
        name = job.session_header
        self._session_header = None if name is None else SessionHeader(name, job.session_salt)
        self._trace = None if job.trace_run is None else TraceContext(job.trace_run)
        self._pacer: Pacer = OpenPacer([], [])
        self._share: Share | TailShare | None = None
        self._appended = More(size=0, final=False)
        self._ok = self._failed = self._events = self._led = 0
        self._drain_by: int | None = None
        self._parent_gone = False
        self._next_tick = self._next_pulse = self._next_flush = self._next_expiry = 0
        self._reactor = Reactor(
            _peer(job, kind),
            kind,
            self._ended,
            reuse=job.reuse,
            spare=SPARE if job.open_loop else 0,
            most_ready=max(SPARE, job.prepare) if job.open_loop else job.prepare,
            connect_timeout_ns=job.connect_timeout_ns,
            most_open=most_open,
        )
        self._reactor.watch(stdin, self._read_commands)
        if hasattr(signal, "SIGCONT"):
            signal.signal(signal.SIGCONT, lambda *_: self._reactor.rounds.stopped())

    def _map_schedule(self, go: Go) -> Pacer:
        """The schedule as it is now: a trace's rows may be appended later."""
        job, path = self._job, self._folder / "requests.arrow"
        if go.appended is not None:
            self._share = TailShare(Tail(path), go.appended, go.start_ns, job.worker, job.workers)
            self._read_on()
            return self._share.pacer
        slots = None if job.open_loop else job.slots
        assignment = Assignment(go.phase, slots, job.worker, job.workers, go.part, go.cycle)
        self._share = share_of(Schedule(path), assignment)
        company = progress_counters.Company(self._counters, go.start_ns)
        return self._share.pacer(go.start_ns, go.duration_ns, again=go.again, company=company)

    def _read_on(self) -> None:
        if isinstance(self._share, TailShare):
            self._share.read_on(self._appended.size, final=self._appended.final)

    def main(self) -> None:
        """From the first connection to the last line of the journal."""
        self._open_ahead()
        gc.collect()
        gc.freeze()
        gc.disable()
        self._say(Ready())
        while True:
            command = self._next_command()
            if command is None:
                break
            if isinstance(command, Go):
                self._run(command)
                vitals = self._reactor.vitals
                self._say(
                    PhaseDone(
                        phase=command.phase,
                        stamped=vitals.stamped,
                        unstamped=vitals.unstamped,
                        single_use=self._reactor.single_use,
                    )
                )
            elif not isinstance(command, Stop):
                break
        self._journal.flush()
        self._journal.close()
        self._reactor.close()

    def _open_ahead(self) -> None:
        if self._job.reuse:
            self._reactor.open(self._job.prepare)
        until = clock.monotonic_ns() + self._job.connect_timeout_ns
        called_off = False  # by a command, which before the start can only be to leave
        while self._reactor.opening and not called_off and (now := clock.monotonic_ns()) < until:
            self._reactor.wait(now + TICK_NS, exact=False)
            self._reactor.expire(now)
            called_off = self._parent_gone or bool(self._commands)

    # The phase.

    def _run(self, go: Go) -> None:
        job = self._job
        self._pacer = self._map_schedule(go)
        self._drain_by = None
        duration = go.duration_ns
        reactor, pacer = self._reactor, self._pacer
        reactor.vitals.stamped = reactor.vitals.unstamped = 0
        # Reading the schedule took long, and is no stall of the phase.
        reactor.wait(clock.monotonic_ns(), exact=False)
        now = clock.monotonic_ns()
        self._next_pulse = self._next_flush = self._next_expiry = self._next_tick = now
        while True:
            now = clock.monotonic_ns()
            if now >= self._next_tick:
                self._tick(now)
                now = clock.monotonic_ns()  # or what this took would count as waiting for a connection
            if (now >= self._next_flush or self._journal.pending >= FLUSH_ROWS) and self._has_room(now):
                self._flush(now)
                now = clock.monotonic_ns()
            for _ in range(SENDS_A_ROUND):
                if (hit := pacer.take(now)) is None:
                    break
                self._send(hit, now)
                now = clock.monotonic_ns()
            began = pacer.measured_from() if duration else None
            if began is not None and now >= began + duration:  # what was due before is still sent, late
                by = began + duration + job.drain_ns
                self._drain_by = min(self._drain_by or by, by)
                duration = 0
            if pacer.exhausted and not reactor.vitals.in_flight:
                break
            if self._drain_by is not None and now >= self._drain_by:
                pacer.stop()
                reactor.cancel(now, "cancelled: the time to drain was over")
                break
            due = pacer.next_due()
            if due is not None and due < self._next_tick + TICK_ROOM_NS:
                reactor.wait(due, exact=True)
            else:
                reactor.wait(self._next_tick, exact=False)
        self._counters.arrived(go.start_ns)  # whatever ended it: nobody waits for this one
        self._pulse(clock.monotonic_ns())
        self._journal.flush()

    def _send(self, hit: Hit, now: int) -> None:
        share, own = self._share, None
        assert share is not None, "no phase has begun"
        body = share.body(hit)
        head = self._head if self._one_head else self._heads[share.request_class(hit)]
        limit = share.timeout_ns(hit)
        deadline = now + (self._job.timeout_ns if limit is None else min(limit, self._job.timeout_ns))
        if self._session_header is not None:
            session = share.session_of(hit.row)
            own = self._session_header.field(share.phase_of(hit.row), session, hit.row, hit.cycle)
        elif self._trace is not None:
            own = self._trace.field(hit.row, hit.cycle)
        exchange = Exchange(
            hit.row, hit.cycle, hit.due_ns, head, body, deadline, self._dialect,
            tokens=share.tokens(hit), limits=self._limits, own_field=own,
        )  # fmt: skip
        self._reactor.submit(exchange, now)
        if share.listens:  # behind the sending, which it is not to delay
            exchange.body_crc = zlib.crc32(body)

    def _ended(self, exchange: Exchange) -> None:
        free_at, ok = exchange.t_end, exchange.outcome == "ok"
        if ok:
            self._ok += 1
        else:
            self._failed += 1
            if exchange.outcome in _CONNECT_FAILURES or (exchange.status and not exchange.t_send):
                free_at += CONNECT_PAUSE_NS
        exchange.request_body = b""
        self._events += len(exchange.answer.texts)
        share = self._share
        assert share is not None, "no phase has begun"
        phase = share.phase_of(exchange.index)
        self._led += ok and phase == Phase.LEAD
        self._journal.add(exchange, phase)
        end = Ending(exchange.index, exchange.cycle, free_at, ok)
        if share.listens:
            share.ended(end, exchange.answer.reply())
        self._pacer.ended(end)

    # Housekeeping, a few times a second.

    def _tick(self, now: int) -> None:
        self._next_tick = now + TICK_NS
        reactor = self._reactor
        reactor.offset_ns = clock.realtime_offset_ns()
        reactor.rounds.catch_up()
        reactor.adapt(now)
        self._count()
        chore = chore_at(now, self._next_pulse, self._next_expiry)
        if chore == "pulse":
            self._next_pulse = now + PULSE_NS
            self._pulse(now)
        elif chore == "expiry":
            self._next_expiry = now + EXPIRY_NS
            reactor.expire(now)
        if self._parent_gone and self._drain_by is None:
            self._pacer.stop()
            self._drain_by = now

    def _count(self) -> None:
        vitals = self._reactor.vitals
        self._counters.put(vitals.sent, self._ok, self._failed, vitals.in_flight, self._events, self._led)

    def _has_room(self, now: int) -> bool:
        """No request falls due while a flush lasts, or the flush has waited for that long enough."""
        due = self._pacer.next_due()
        room = due is None or due - now > FLUSH_ROOM_NS
        return room or now >= self._next_flush + FLUSH_PATIENCE_NS or self._journal.pending >= 2 * FLUSH_ROWS

    def _flush(self, now: int) -> None:
        self._next_flush = now + FLUSH_NS
        self._journal.flush()

    def _pulse(self, now: int) -> None:
        vitals = self._reactor.vitals
        self._journal.add_pulse(
            now,
            clock.cpu_ns(),
            clock.run_delay_ns(),
            vitals.reads,
            vitals.lag_sum,
            vitals.lag_max,
            vitals.stall_max,
            self._reactor.offset_ns,
            vitals.in_flight,
            vitals.sent,
            vitals.finished,
            self._events,
        )
        vitals.reset()
        self._count()

    # The parent.

    def _read_commands(self) -> None:
        data = os.read(self._stdin, 65536)
        if not data:
            self._parent_gone = True
            self._reactor.unwatch(self._stdin)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            command = self._decode(line)
            if isinstance(command, Stop):
                # A stop is for now: the phase that runs must hear it at once.
                self._pacer.stop()
                self._drain_by = clock.monotonic_ns() + command.drain_ns
            elif isinstance(command, More):
                self._appended = command
                self._read_on()
            else:
                self._commands.append(command)

    def _next_command(self) -> Command | None:
        while not self._commands and not self._parent_gone:
            now = clock.monotonic_ns()
            self._reactor.wait(now + TICK_NS, exact=False)
        return self._commands.pop(0) if self._commands else None

    def _say(self, report: Report) -> None:
        os.write(1, msgspec.json.encode(report) + b"\n")


def chore_at(now: int, next_pulse: int, next_expiry: int) -> Literal["pulse", "expiry"] | None:
    """What a tick does beside its clocks: one thing at most, that which has been due for longer. Where every round takes
    longer than PULSE_NS, as under a flood of tiny events, a pulse is due at each tick, and must not keep deadlines waiting."""
    if now < min(next_pulse, next_expiry):
        return None
    return "expiry" if next_expiry < next_pulse else "pulse"


def _peer(job: Job, kind: ChannelKind) -> Peer:
    tls = context(job.tls_verify, job.tls_ca_file, kind.alpn) if job.tls else None
    agreed = kind.alpn if kind.agreed else ()
    return Peer(job.family, tuple(job.address), tls, job.server_name, agreed)


def _raise_file_limit() -> int:
    """Allow this process as many open files as the system does; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _say_why(cause: BaseException, redact: Redactor) -> None:
    """Report to the parent why this worker ends: the log may be on the disk that is full."""
    shortage = shortage_of(cause)
    why = f"{type(cause).__name__}: {cause}" if shortage is None else in_words(cause)
    with contextlib.suppress(OSError):
        os.write(1, msgspec.json.encode(Failed(redact.short(why, 500), shortage)) + b"\n")


def main() -> None:
    """Entry point of the process. Signals to a whole group of processes reach it too; the parent says what happens."""
    undisturbed()
    guard_stderr()
    time_slice.shorten()
    most_files = _raise_file_limit()
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        line += byte
    job = msgspec.json.decode(bytes(line), type=Job)
    redact = Redactor(job.secrets)
    guard_stderr(redact.strike)
    try:
        Worker(job, 0, most_files, redact).main()
    except BaseException as cause:
        _say_why(cause, redact)
        raise


if __name__ == "__main__":
    main()
