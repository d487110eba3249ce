"""One load host: it joins a conductor, has its workers send what they are told, and hands over what they wrote.

    join -> for each run: begin, files, jobs, phases, streams -> leave

It sends by its own clock, and the conductor is in no request's way. Should it lose the conductor, its workers stop at once;
what they wrote stays in its folder until a conductor of that run has it (`inferometer recover --listen`)."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from inferometer.calibration import certificate as certificates
from inferometer.client.round_trip import Address, measured
from inferometer.cluster.admission import ConductorLink
from inferometer.cluster.clock_probe import ClockProber
from inferometer.cluster.fetched import STREAM
from inferometer.cluster.link import LinkLost
from inferometer.cluster.messages import (
    AUTHORITY,
    FILES,
    Assign,
    Beat,
    Begin,
    FilePart,
    Gathered,
    HostDone,
    HostLog,
    HostReady,
    Kept,
    Leave,
    Live,
    Probes,
    Refused,
    SendStreams,
    StreamPart,
    StreamsSent,
    Surroundings,
    ToHost,
    WorkerGone,
)
from inferometer.cluster.schedule_share import PART_BYTES, ReceivedFile, unpacked
from inferometer.documents.certificate import CertificateLookup
from inferometer.drive.progress_counters import COUNTERS
from inferometer.drive.worker_messages import Go, Job, More, Stop
from inferometer.drive.worker_pool import Interrupt, WorkerPool
from inferometer.errors import InferometerError, PeerError, in_words, shortage_of
from inferometer.journal import hold
from inferometer.measure.load_hosts import HostTrips
from inferometer.telemetry import slowdowns
from inferometer.telemetry.host import environment, hot_path
from inferometer.units import NS_PER_MS

SLICE_S = 0.25
LIVE_S = 1.0
"""How often a host says that it lives while no phase runs; while one does, each time that its counters are looked at."""
HANDSHAKES, HANDSHAKE_S = 10, 2.0
NAME, RUN = "host", "run"
"""In the folder of a run: what the host was called in it, and what the run is called (messages.Begin)."""
LOG_BYTES = 1 << 16
"""Of the end of a log that is handed over."""
LAST_PROBE_S = 2.5
"""A burst of probes begins each second, and takes less than another one."""
SILENT_S = 3.0
"""Neither a word nor an answer about clocks for so long while there is something to send: the conductor is gone, or the way to
it."""
SILENT_BEFORE_S = 30.0
"""The same where nothing is to be sent: many load hosts that start at once on few cores say nothing for longer than 3 s."""


@dataclass(slots=True)
class _Run:
    """One run at this host. `hold`: on its journal, so that no other load host here takes what it holds for left behind.
    `ident`: see messages.Begin.run. `start_ns`: of the phase that runs, or ran last."""

    ident: str
    folder: Path
    pool: WorkerPool
    certificate: CertificateLookup
    hold: contextlib.ExitStack
    server: Address | None = None
    files: dict[str, ReceivedFile] = field(default_factory=dict)
    start_ns: int = 0
    told_dead: dict[int, WorkerGone] = field(default_factory=dict)
    ended: bool = False


class LoadHost:
    """The host's side of a link. `root`: where it keeps a folder for each run. `name`: what the conductor calls it."""

    def __init__(
        self, link: ConductorLink, prober: ClockProber, root: Path, name: str, note: Callable[[str], None]
    ) -> None:
        self._link, self._prober, self._root, self._name, self._note = link, prober, root, name, note
        self._later: list[SendStreams] = []
        self._run: _Run | None = None
        self._last_live_ns = 0
        self._heard_ns = time.monotonic_ns()

    def serve(self) -> None:
        """Do what the conductor asks, until it needs nothing more. Raises PeerError when it is lost, MachineError or OSError
        when this machine is short of something; in all cases the workers have ended, and what they wrote is in its folder."""
        try:
            while True:
                for message in self._link.wait(SLICE_S):
                    self._heard_ns = time.monotonic_ns()
                    if isinstance(message, Leave):
                        self._end_run()
                        if self._run is not None and not self._run.start_ns:  # it never came to send anything
                            shutil.rmtree(self._run.folder, ignore_errors=True)
                        return
                    self._do(message)
                self._say_live()
                self.check_silence(time.monotonic_ns())
        except (InferometerError, OSError, MemoryError) as cause:
            if not isinstance(cause, LinkLost):
                with contextlib.suppress(LinkLost):
                    self._link.send(Refused(in_words(cause), shortage_of(cause)))
            raise
        finally:
            self._end_run()
            self._release()
            self._link.close()

    def _do(self, message: ToHost) -> None:
        match message:
            case Begin():
                self._begin(message)
            case FilePart():
                self._file(message)
            case Assign():
                self._assign(message)
            case Go():
                self._phase(message)
            case More() if self._run is not None:
                self._run.pool.announce(message.size, message.final)
            case SendStreams():
                self._send_streams(message)
            case Kept():
                self._forget(message.run)
            case Refused():
                raise PeerError(f"the conductor ended it: {message.reason}")

    # A run.

    def _begin(self, message: Begin) -> None:
        self._end_run()
        self._release()
        folder = new_folder(self._root, message.first, message.run, message.record)
        held = contextlib.ExitStack()
        held.enter_context(hold.joined(folder / "journal"))
        (folder / NAME).write_text(self._name, encoding="utf-8")
        pool = WorkerPool(message.workers, folder / "log.txt", first=message.first)
        self._run = _Run(message.run, folder, pool, _certificate(message), held)
        self._note(f"{message.record}: {message.workers} workers")

    def _file(self, message: FilePart) -> None:
        run = self._started()
        if message.name not in FILES:
            raise PeerError(f"the conductor sends a file {message.name[:40]!r}, which no run has")
        if message.name not in run.files:
            run.files[message.name] = ReceivedFile(run.folder / message.name)
        file = run.files[message.name]
        file.add(unpacked(message))
        if message.digest is not None:
            if not file.whole(message.digest):
                raise PeerError(f"{message.name}: what arrived is not what was sent")
            file.close()

    def _assign(self, message: Assign) -> None:
        run = self._started()
        job = message.jobs[0]
        run.server = Address(job.family, tuple(job.address))
        # Before connections are opened for the load.
        self._link.send(Surroundings(False, _trips(run.server), slowdowns.read()))
        run.pool.assign([self._here(job, run) for job in message.jobs])
        self._link.send(HostReady(run.certificate))

    def _here(self, job: Job, run: _Run) -> Job:
        authority = None if job.tls_ca_file is None else str(run.folder / AUTHORITY)
        return replace(job, folder=str(run.folder), tls_ca_file=authority)

    def _phase(self, go: Go) -> None:
        """One phase, from its order to its end. Meanwhile the conductor may stop it, and hears how it goes."""
        run = self._started()
        run.start_ns = go.start_ns
        lost: LinkLost | None = None

        def watch(*_: object) -> None:
            nonlocal lost
            if lost is not None:
                return
            try:
                self._listen(run)
                self._say_live(always=True)
                self.check_silence(time.monotonic_ns())
            except LinkLost as cause:
                lost = cause
                run.pool.stop(0)

        before = run.pool.outcome.stamped, run.pool.outcome.unstamped
        run.pool.go(go)
        run.pool.finish(go.phase, watch, Interrupt(0))
        if lost is not None:
            raise lost
        self._say_live(always=True)
        after = run.pool.outcome
        self._link.send(
            HostDone(go.phase, after.stamped - before[0], after.unstamped - before[1], after.single_use)
        )
        while self._later:
            self._send_streams(self._later.pop(0))

    def _listen(self, run: _Run) -> None:
        """What the conductor says while a phase runs."""
        for message in self._link.receive():
            self._heard_ns = time.monotonic_ns()
            match message:
                case Stop():
                    run.pool.stop(message.drain_ns)
                case More():
                    run.pool.announce(message.size, message.final)
                case FilePart():
                    self._file(message)
                case Gathered():
                    run.pool.others_arrived(run.start_ns)
                case SendStreams():  # the conductor has to leave before the load is over
                    run.pool.stop(0)
                    self._later.append(message)
                case Beat():
                    pass
                case _:
                    raise LinkLost(f"the conductor says {type(message).__name__} while a phase runs")

    def _end_run(self) -> None:
        run = self._run
        if run is not None and not run.ended:
            run.ended = True
            run.pool.__exit__(None, None, None)

    def _release(self) -> None:
        """What is left of the run here may be handed over by whoever comes next."""
        if self._run is not None:
            self._run.hold.close()

    def _started(self) -> _Run:
        if self._run is None or self._run.ended:
            raise PeerError("the conductor gives orders for a run that it has not begun")
        return self._run

    # What the conductor is told.

    def _say_live(self, *, always: bool = False) -> None:
        now = time.monotonic_ns()
        if not always and now - self._last_live_ns < LIVE_S * 1e9:
            return
        self._last_live_ns = now
        if probes := self._prober.taken():
            self._link.send(Probes(probes))
        counters, arrived = list[list[int]](), False
        if self._run is not None and not self._run.ended:
            counters = self._run.pool.live()
            arrived = bool(counters) and all(row[COUNTERS] >= self._run.start_ns for row in counters)
        self._link.send(Live(counters, arrived))
        self._say_dead()

    def _say_dead(self) -> None:
        run = self._run
        if run is None:
            return
        for number, death in list(run.pool.outcome.dead.items()):
            gone = WorkerGone(number, death.phase, death.sent, death.exit_code, death.reason, death.shortage)
            if run.told_dead.get(number) != gone:  # its exit code may be known later than its death
                run.told_dead[number] = gone
                self._link.send(gone)

    def check_silence(self, now_ns: int) -> None:
        """Raises LinkLost where nothing has come from the conductor for too long, neither words nor answers about clocks."""
        silent_s = (now_ns - self._heard_ns) / 1e9
        sends = self._run is not None and bool(self._run.start_ns) and not self._run.ended
        if min(silent_s, self._prober.silent_s(now_ns)) > silence_s(sends=sends):
            raise LinkLost(f"the conductor has said nothing for {silent_s:.0f} s")

    def _send_streams(self, message: SendStreams) -> None:
        """Send what the streams of a run hold beyond what the conductor has."""
        if message.final:
            self._end_run()
            self._say_dead()
            self._send_log()
            if self._run is not None and self._run.server is not None:
                self._link.send(Surroundings(True, _trips(self._run.server), slowdowns.read()))
            self._compare_once_more()
        own = self._run is not None and self._run.ident == message.run
        folders = [self._run.folder] if self._run is not None and own else self._kept(message.run)
        for folder in folders:
            for path in sorted((folder / "journal").glob("*.arrows")):
                if STREAM.fullmatch(path.name):
                    self._send_stream(message.run, path, message.have.get(path.name, 0))
        self._link.send(StreamsSent(message.run, message.final))

    def _send_log(self) -> None:
        """What the workers said, which goes with the folder."""
        if self._run is None:
            return
        with contextlib.suppress(OSError):
            said = (self._run.folder / "log.txt").read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
            if said:
                self._link.send(HostLog(self._run.ident, said))

    def _compare_once_more(self) -> None:
        """So that the clock is known after the load, too; or the way for comparisons is blocked."""
        asked_ns = time.monotonic_ns()
        while time.monotonic_ns() - asked_ns < LAST_PROBE_S * 1e9:
            if probes := self._prober.taken():
                self._link.send(Probes(probes))
                if probes[-1].host_ns > asked_ns:
                    return
            time.sleep(0.05)

    def _send_stream(self, run: str, path: Path, at: int) -> None:
        with path.open("rb") as source:
            source.seek(at)
            while data := source.read(PART_BYTES):
                self._link.send(StreamPart(run, path.name, data))

    def _forget(self, run: str) -> None:
        mine = self._run is not None and self._run.ident == run
        folders = [self._run.folder] if self._run is not None and mine else self._kept(run)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def _kept(self, run: str) -> list[Path]:
        """The folders of a run that a host of this name has left: another on this machine may share the root."""
        return [path for path in folders_of(self._root, run) if name_in(path) in (None, self._name)]


def silence_s(*, sends: bool) -> float:
    """For how long a conductor may be silent: for less where workers may send."""
    return SILENT_S if sends else SILENT_BEFORE_S


def _certificate(run: Begin) -> CertificateLookup:
    """What a run cites of this machine's calibration."""
    machine, where = certificates.machine_of(environment()), certificates.folder(os.environ)
    return certificates.cited(
        certificates.find(where, machine, hot_path(), run.workers, run.transport, time.time())
    )


def _trips(server: Address) -> HostTrips:
    times = np.array(measured(server, HANDSHAKES, HANDSHAKE_S, HANDSHAKE_S).times_ns, np.float64) / NS_PER_MS
    if not len(times):
        return HostTrips(0, None, None)
    return HostTrips(len(times), float(times.min()), float(np.median(times)))


def new_folder(root: Path, first: int, run: str, record: str) -> Path:
    """A folder for what the workers from `first` on write of a run, with the name that its streams carry. Runs of two
    conductors that began within one second have one such name, and their load hosts may share the root: each has a folder of
    its own, which says whose it is."""
    for at in count(1):
        folder = root / (str(first) if at == 1 else f"{first}.{at}") / Path(record).name
        with contextlib.suppress(FileExistsError):
            (folder / "journal").mkdir(parents=True)
            (folder / RUN).write_text(run, encoding="utf-8")
            return folder
    raise AssertionError("the numbers do not end")


def folders_of(root: Path, run: str) -> list[Path]:
    """The folders of a run that no other process on this host writes to."""
    return [path for path in _left(root) if run_in(path) == run]


def name_in(folder: Path) -> str | None:
    """What the host was called that wrote this folder of a run; None: it does not say."""
    return _said(folder, NAME)


def run_in(folder: Path) -> str:
    """Whose folder this is, as messages.Begin has it; what it is called itself where it does not say."""
    return _said(folder, RUN) or folder.name


def _said(folder: Path, file: str) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (folder / file).read_text(encoding="utf-8")
    return None


def _left(root: Path) -> Iterator[Path]:
    """The folders of all runs that no process on this host writes to."""
    for folder in sorted(root.glob("[0-9]*/*")):
        if (folder / "journal").is_dir() and not hold.held(folder / "journal"):
            yield folder


def kept_runs(root: Path) -> dict[str, tuple[str, ...]]:
    """The runs of which this host still holds streams that nobody has taken, and what it was called in each."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in _left(root):
        run = run_in(folder)
        found[run] = (*found.get(run, ()), name_in(folder) or "")
    return found
