"""The worker processes of one run, on several hosts: what `WorkerPool` is for one machine, with the same calls.

    assign    each host gets the requests that it may send, and its workers' jobs
    begin     one instant on the conductor's clock, to each host on its own
    finish    waits for all; counters, deaths and comparisons of clocks come in meanwhile
    leave     the journals are fetched, put on the conductor's clock (merging.py), and from there on are those of any run

A lost host is so many lost workers: the others go on, and the run says so. What it had measured is fetched when it comes back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from inferometer.cluster.conductor import BEAT_S, SLICE_S, LoadHosts
from inferometer.cluster.fetched import Fetched, described, named, number_of
from inferometer.cluster.member import Member
from inferometer.cluster.messages import (
    APPENDED,
    AUTHORITY,
    STEPS,
    WHOLE,
    Assign,
    Beat,
    Begin,
    FromHost,
    Gathered,
    HostDone,
    HostLog,
    HostReady,
    Kept,
    Live,
    Probes,
    Refused,
    SendStreams,
    StreamPart,
    StreamsSent,
    Surroundings,
    WorkerGone,
)
from inferometer.cluster.schedule_share import appended, needed, packed, send_file, send_share
from inferometer.documents.certificate import CertificateLookup
from inferometer.drive import clock
from inferometer.drive.progress_counters import FIELDS, Progress
from inferometer.drive.worker_messages import Go, Job, More, Stop
from inferometer.drive.worker_pool import (
    HANG_S,
    START_TIMEOUT_S,
    Death,
    Interrupt,
    Outcome,
    Watch,
    Work,
    lead_ns,
)
from inferometer.errors import InstrumentError, MachineError, PeerError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase
from inferometer.measure.load_hosts import HostClock, LoadHost
from inferometer.plan.transports import Transport

START_NS = 2_000_000_000
"""From the order to the start of the measurement: long enough for the slowest way to a host."""
SHORT_START_NS = 300_000_000
"""The same of the warm-up's parts, of which there are many, and which nothing is judged by."""
SILENT_S = 10.0
"""A host that says nothing for so long while a phase runs is lost: its counters come several times a second."""
REJOIN_S = 15.0
"""For so long a lost host is waited for at the end of a run."""
FIRST_PROBES_S = 15.0


class HostPool:
    """All workers of one run on the load hosts of a command. Use as a context manager: leaving it ends the run there."""

    def __init__(
        self,
        hosts: LoadHosts,
        folder: RunFolder,
        note: Callable[[str], None],
        transport: Transport,
        *,
        again: bool,
    ) -> None:
        """`again`: the measurement goes through its requests over and over. Raises PeerError if a host does not come."""
        self._hosts, self._folder, self._note, self._again = hosts, folder, note, again
        self._run = named(folder)
        self._phase = int(Phase.WARMUP)
        self._measured_ns = self._ended_ns = clock.monotonic_ns()
        hosts.gather()
        self.members: tuple[Member, ...] = tuple(hosts.alive)
        for member in self.members:
            member.lost_in_run, member.certificate, member.trips = None, None, {}
            member.slowdowns = {}
        self._fetched = Fetched(folder, len(self.members))
        self._announced: More | None = None
        self._sent_on = 0
        self._assigned = self._begun = False
        self.outcome = Outcome()
        for at, member in enumerate(self.members):
            member.send(Begin(self._run, folder.path.name, at * hosts.workers, hosts.workers, transport))

    def __enter__(self) -> HostPool:
        """Use as a context manager."""
        return self

    @property
    def _parts(self) -> list[Member]:
        """Those that still send."""
        return [member for member in self.members if member.takes_part]

    # The phases of a run.

    def assign(self, jobs: Sequence[Job]) -> None:
        """Give each host the requests of its workers and their jobs, and wait until all stand ready. Raises PeerError for a
        host that is lost before, InstrumentError or MachineError for a worker that does not start."""
        self._compared()
        self._check_still_there()
        schedule = Schedule(self._folder.schedule)
        for member, mine in zip(self.members, self._by_host(jobs), strict=True):
            self._check_still_there()
            self._send_files(member, mine, schedule)
            member.send(Assign([replace(job, folder="", tls_ca_file=_authority(job)) for job in mine]))
            member.counters, member.arrived = [], False
        self._assigned = True
        if self._announced is not None:
            self.announce(self._announced.size, self._announced.final)
        patience_s = START_TIMEOUT_S + jobs[0].connect_timeout_ns / 1e9
        ready = self._gather(HostReady, patience_s)
        self._check_still_there()
        if len(ready) < len(self.members):
            late = sorted({one.name for one in self.members} - {one.name for one, _ in ready})
            raise InstrumentError(f"{', '.join(late)}: the workers were not ready within {patience_s:.0f} s")

    def _check_still_there(self) -> None:
        """Raises PeerError for a host that was lost: one that came back has no workers to give orders to."""
        for member in self.members:
            if not member.takes_part:
                why = member.lost_in_run or member.lost
                raise PeerError(f"{member.name} was lost before the load began: {why}")

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
        """As WorkerPool.begin; the start is on this machine's clock, and each host is told when that is on its own."""
        self._fetched.begun(self.hosts())
        self._phase, self._begun = phase, True
        ahead_ns = START_NS if phase == Phase.MEASURE else SHORT_START_NS
        self._measured_ns = self._ended_ns = start_ns = clock.monotonic_ns() + max(ahead_ns, lead_ns(rows))
        for member in self._parts:
            member.arrived = member.gathered = False
            fitted = member.clock
            if fitted is None:
                member.lose("its clock could not be compared")
                continue
            there = fitted.host_ns(start_ns)
            member.send(Go(phase, there, duration_ns, again, appended, part, cycle))
        return start_ns

    def announce(self, size: int, final: bool) -> None:
        """As WorkerPool.announce: the bytes go ahead of the news."""
        self._announced = More(size=size, final=final)
        if not self._assigned:
            return
        path = self._folder.schedule.with_name(APPENDED)
        for data in appended(path, self._sent_on, size):
            self._tell(packed(APPENDED, data))
        self._sent_on = size
        self._tell(self._announced)

    def finish(self, phase: int, watch: Watch, interrupt: Interrupt, work: Work = lambda: False) -> None:
        """As WorkerPool.finish. What the warm-up's requests became is fetched at once: it decides how the warm-up goes on."""
        for _, done in self._gather(HostDone, None, lambda: watch(phase, self.progress()), interrupt, work):
            if isinstance(done, HostDone) and done.phase == phase == Phase.MEASURE:
                self.outcome.single_use |= done.single_use
                self.outcome.stamped += done.stamped
                self.outcome.unstamped += done.unstamped
        self._ended_ns = clock.monotonic_ns()
        watch(phase, self.progress())
        if phase != Phase.MEASURE:
            self._fetch(self._parts, final=False)

    def stop(self, drain_ns: int) -> None:
        """As WorkerPool.stop."""
        self._tell(Stop(drain_ns=drain_ns))

    def outcomes(self) -> pa.Table:
        """As WorkerPool.outcomes: on each host's own clock, for differences only."""
        return self._fetched.outcomes()

    def progress(self) -> Progress:
        """Over all hosts."""
        each = [member.progress() for member in self.members]
        return Progress(*(sum(getattr(one, name) for one in each) for name in Progress.__slots__))

    def certificate(self) -> CertificateLookup:
        """What the run cites: of a host without a certificate, why; else that which certifies the least."""
        cited = [(one.name, one.certificate) for one in self.members if one.certificate is not None]
        for name, lookup in cited:
            if lookup.certificate is None:
                return replace(lookup, why=f"{name}: {lookup.why or 'never calibrated'}")
        _, least = min(cited, key=lambda one: _certified(one[1]))
        return least

    def hosts(self) -> tuple[LoadHost, ...]:
        """The hosts of the run, for run.json; complete once it has ended."""
        return tuple(self._described(at, member) for at, member in enumerate(self.members))

    def _described(self, at: int, member: Member) -> LoadHost:
        each = self._hosts.workers
        cited = None if member.certificate is None else member.certificate.certificate
        return LoadHost(
            name=member.name,
            first=at * each,
            workers=each,
            environment=member.environment,
            clock=_clock(member, self._measured_ns, self._ended_ns),
            lost=member.lost_in_run,
            clock_state=member.clock_state,
            certificate=None if cited is None else cited.id,
            round_trip_before=member.trips.get(False),
            round_trip_after=member.trips.get(True),
            slowed=member.slowed,
        )

    def __exit__(self, *exc: object) -> None:
        """Fetch the journals, from lost hosts too if they come back soon, and put them on this machine's clock."""
        if not self._begun:  # nothing was sent
            return
        self._fetch(self._hosts.alive, final=True)
        self._await_lost()
        self._record_lost(lambda member: not self._fetched.whole(member.number))
        damaged = self._fetched.merge({member.number: member.clock for member in self.members})
        for member in self.members:
            if why := damaged.get(member.number):
                member.lost_in_run = member.lost_in_run or f"what it measured cannot be read: {why}"
        self._record_lost(lambda member: member.number in damaged)
        for member in self._hosts.alive:
            if self._fetched.whole(member.number):
                member.send(Kept(self._run))

    # What hosts say.

    def _gather(
        self,
        kind: type[Any],
        timeout_s: float | None,
        watch: Callable[[], None] = lambda: None,
        interrupt: Interrupt | None = None,
        work: Work = lambda: False,
    ) -> list[tuple[Member, FromHost]]:
        """One message of this kind from every host that takes part."""
        waiting = {one.number for one in self._parts}
        found: list[tuple[Member, FromHost]] = []
        busy, beat_ns = False, 0
        deadline = None if timeout_s is None else clock.monotonic_ns() + int(timeout_s * 1e9)
        while waiting and (deadline is None or clock.monotonic_ns() < deadline):
            for member, message in self._hosts.heard(0 if busy else SLICE_S):
                if isinstance(message, kind):
                    found.append((member, message))
                    waiting.discard(member.number)
                self._take(member, message)
            now = clock.monotonic_ns()
            if now - beat_ns > BEAT_S * 1e9:
                beat_ns = now
                for member in self._hosts.alive:
                    member.send(Beat())
            self._look_after(now, phase_runs=deadline is None)
            waiting &= {one.number for one in self._parts}
            watch()
            busy = bool(waiting) and work()
            if interrupt is not None and (drain := interrupt.new_drain_ns()) is not None:
                self.outcome.interrupted = True
                self.stop(drain)
        return found

    def _take(self, member: Member, message: FromHost) -> None:
        match message:
            case Live() if not self._possible(message):
                member.lose("it says what no load host of this run can say")
            case Live() if member.takes_part:  # what one that came back had counted before stands
                member.counters, member.arrived = message.counters, message.arrived
            case Probes():
                member.probes += message.probes
                self._fetched.compared(member.number, message.probes)
            case HostReady():
                member.certificate = message.certificate
            case Surroundings():
                member.trips[message.behind] = message.trips
                member.slowdowns[message.behind] = message.slowdowns
            case WorkerGone() if self._own(member, message.worker):
                self._died(member, message)
            case HostLog() if message.run == self._run:
                self._log(member, message.text)
            case StreamPart() if message.run == self._run and self._own(member, number_of(message.name)):
                self._fetched.add(member.number, message)
            case StreamPart() | WorkerGone():
                member.lose("it speaks of workers that are not its own")
            case StreamsSent():
                if message.final and message.run == self._run:
                    self._fetched.complete(member.number)
            case Refused():
                self._refused(member, message)

    def _died(self, member: Member, gone: WorkerGone) -> None:
        """A worker of a host has died, or more is known of one that has."""
        reason = gone.reason and f"{member.name}: {gone.reason}"
        death = Death(gone.worker, gone.phase, gone.sent, gone.exit_code, reason, gone.shortage)
        known = self.outcome.dead.setdefault(gone.worker, death)
        known.exit_code = gone.exit_code if known.exit_code is None else known.exit_code
        known.reason, known.shortage = known.reason or reason, known.shortage or gone.shortage

    def _log(self, member: Member, text: str) -> None:
        """What the workers of a host said stands in the run's log, each line with the host's name."""
        with contextlib.suppress(OSError), self._folder.log.open("a", encoding="utf-8") as log:
            log.writelines(f"{member.name}: {line}\n" for line in text.splitlines())

    def _own(self, member: Member, worker: int | None) -> bool:
        """Whether a worker of this number is one of a host's."""
        return worker is not None and worker // self._hosts.workers == member.number

    def _possible(self, live: Live) -> bool:
        """Whether these are counters of a host's workers: none has them before its jobs."""
        return len(live.counters) in (0, self._hosts.workers) and all(
            len(row) == FIELDS and min(row) >= 0 for row in live.counters
        )

    def _refused(self, member: Member, message: Refused) -> None:
        member.lose(message.reason)
        if not self._begun:
            said = f"{member.name}: {message.reason}"
            raise InstrumentError(said) if message.shortage is None else MachineError(said, message.shortage)

    def _look_after(self, now: int, *, phase_runs: bool) -> None:
        """Lose hosts that are silent; tell those whose own requests have ended that the others' have too."""
        for member in self.members:
            silent_s = (now - member.heard_ns) / 1e9
            if phase_runs and member.lost is None and silent_s > SILENT_S:
                member.lose(f"it has said nothing for {silent_s:.0f} s")
        self._record_lost(lambda member: not member.takes_part)
        parts = self._parts
        for member in parts:
            others = (one for one in parts if one is not member)
            if not member.gathered and all(one.arrived for one in others):
                member.gathered = True
                member.send(Gathered())

    def _record_lost(self, gone: Callable[[Member], bool]) -> None:
        """The workers of hosts that are gone have died."""
        for at, member in enumerate(self.members):
            if not gone(member):
                continue
            member.lost_in_run = member.lost_in_run or member.lost or "not all of its journal came"
            reason = f"{member.name} was lost: {member.lost_in_run}"
            for worker in range(self._hosts.workers):
                number = at * self._hosts.workers + worker
                death = Death(number, self._phase, member.sent(worker), None, reason)
                self.outcome.dead.setdefault(number, death)

    # What hosts are given, and what is fetched from them.

    def _tell(self, message: object) -> None:
        for member in self._parts:
            member.send(message)

    def _compared(self) -> None:
        """Wait for the first comparisons of clocks, without which no host knows when to begin. Raises PeerError."""
        until = clock.monotonic_ns() + int(FIRST_PROBES_S * 1e9)
        while lacking := [one for one in self.members if one.lost is None and not one.probes]:
            if clock.monotonic_ns() > until:
                names = ", ".join(one.name for one in lacking)
                raise PeerError(
                    f"{names}: no answer to any comparison of clocks. UDP port {self._hosts.clock.port} of this machine "
                    "has to be open to load hosts"
                )
            for member, message in self._hosts.heard(SLICE_S):
                self._take(member, message)

    def _by_host(self, jobs: Sequence[Job]) -> list[list[Job]]:
        each = self._hosts.workers
        return [list(jobs[at : at + each]) for at in range(0, len(jobs), each)]

    def _send_files(self, member: Member, mine: Sequence[Job], schedule: Schedule) -> None:
        first = mine[0]
        slots = None if first.open_loop else first.slots
        workers = [job.worker for job in mine]
        keep = None if self._again else needed(schedule, workers, first.workers, slots)
        send_share(self._folder.schedule, keep, partial(_send_part, member, WHOLE))
        whole = {STEPS: self._folder.steps} if self._folder.steps.is_file() else {}
        if first.tls_ca_file is not None:
            whole[AUTHORITY] = Path(first.tls_ca_file)
        for name, path in whole.items():
            send_file(path, partial(_send_part, member, name))

    def _fetch(self, members: Sequence[Member], *, final: bool) -> None:
        """Have these hosts send what their streams hold beyond what is here."""
        mine = [member for member in members if member in self.members]
        for member in mine:
            member.send(SendStreams(self._run, self._fetched.sizes(member.number), final))
        self._gather_streams(mine)

    def _gather_streams(self, members: Sequence[Member]) -> None:
        # A host that is silent is given up, and so is one that says that it lives and sends nothing.
        waiting = {one.number for one in members if one.lost is None}
        sent_ns = dict.fromkeys(waiting, time.monotonic_ns())
        while waiting:
            for member, message in self._hosts.heard(SLICE_S):
                self._take(member, message)
                if isinstance(message, StreamsSent):
                    waiting.discard(member.number)
                if not isinstance(message, Live | Probes):
                    sent_ns[member.number] = time.monotonic_ns()
            now = time.monotonic_ns()
            for member in members:
                if member.number in waiting and now - sent_ns[member.number] > HANG_S * 1e9:
                    member.lose(f"it has sent nothing of its journal for {HANG_S:.0f} s")
            waiting -= {one.number for one in members if one.lost is not None}

    def _await_lost(self) -> None:
        """Wait a little for lost hosts to come back, and fetch what they hold of this run."""
        until = clock.monotonic_ns() + int(REJOIN_S * 1e9)
        if gone := [one.name for one in self.members if one.lost is not None]:
            self._note(
                f"waiting {REJOIN_S:.0f} s for {', '.join(gone)} to come back with what was measured there"
            )
        while clock.monotonic_ns() < until and any(
            not self._fetched.whole(one.number) for one in self.members
        ):
            for member, message in self._hosts.heard(SLICE_S):
                self._take(member, message)
            back = [
                one for one in self.members
                if one.lost is None and self._run in one.kept and not self._fetched.whole(one.number)
            ]  # fmt: skip
            if back:
                self._fetch(back, final=True)


def _certified(lookup: CertificateLookup) -> float:
    assert lookup.certificate is not None, "those without one go before"
    return lookup.certificate.limits.token_events_s.per_worker


def _clock(member: Member, from_ns: int, until_ns: int) -> HostClock | None:
    """Of a member, between two instants of the conductor's; of one that was lost, as far as it was there."""
    fitted = member.clock
    if fitted is None:
        return None
    begun = fitted.host_ns(from_ns)
    ended = fitted.last_ns if member.lost_in_run is not None else fitted.host_ns(until_ns)
    return described(member.probes, begun, max(begun, ended))


def _send_part(member: Member, name: str, data: bytes, digest: bytes | None) -> None:
    member.send(packed(name, data, digest))


def _authority(job: Job) -> str | None:
    return None if job.tls_ca_file is None else AUTHORITY
