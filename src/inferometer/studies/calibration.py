"""Calibration, from top to bottom: ladders of loads against the reference server, each rung joined with what it truly did.

    ladder -> run -> join -> limits -> certificate

The runs are whole runs, every feature on. The server keeps a fixed script (server/fixed_script.py) in a separate process. Where
there are two cores, it has the first and the instrument the others: the certificate is about the instrument, and a server that
takes its core away would be measured instead. A user's run is not pinned; what it loses by that shows in its own checks.
Only workers and server are pinned: the process that watches them goes where there is room.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inferometer.calibration import certificate as certificates
from inferometer.calibration import join, ladder
from inferometer.documents.certificate import (
    SCHEMA,
    CalibrationRung,
    Certificate,
    CertificateLookup,
    CertifiedLimit,
    CertifiedLimits,
)
from inferometer.documents.summary import Summary
from inferometer.drive.progress_counters import Progress
from inferometer.engines import dialect as dialects
from inferometer.engines.interface import INTERFACES
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.plan import saved
from inferometer.plan.schema import Plan
from inferometer.plan.target import Target
from inferometer.plan.transports import Transport
from inferometer.run.conduct import conduct
from inferometer.run.evaluate import RunResult
from inferometer.run.facts import read_facts
from inferometer.server.embedded import Embedded, on_cores
from inferometer.studies.local_identity import LocalIdentity, local_identity
from inferometer.telemetry.host import environment, hot_path

INTERVAL_MS = 20.0
TTFT_MS, SPREAD_MS = 50.0, 200.0
"""Of the streams: the spread is ten token intervals wide, so that streams begun together do not march, nor end, in step."""
REQUEST_TTFT_MS, REQUEST_SPREAD_MS = 40.0, 20.0
"""Of the single tokens: as short as servers are, so that a lot of requests a second are few at a time."""
US_PER_MS = 1_000
OWN = CertificateLookup("own")
"""What a calibration's own runs cite: no earlier certificate judges them."""

_USUAL, _USUAL_HTTP = {"grpc": "vllm-grpc", "websocket": "websocket"}, "chat"
"""The interface of a calibration without a plan, by what carries it."""

Say = Callable[[str], None]
"""Told one line about what happens now."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What to calibrate. `like`: also try the load of `plan`; else `plan` says how many workers and nothing more.

    `streams`, `requests`: the ladders' loads for one worker, those of whole answers as of requests; None: the usual ones.
    """

    plan: Plan
    like: bool = False
    quick: bool = False
    streams: tuple[int, ...] | None = None
    requests: tuple[int, ...] | None = None
    transport: Transport = "http/1.1"

    def target(self, url: str, ca_file: str | None) -> Target:
        """The reference server at `url`, by this transport and the plan's interface; without `like` by one that goes over it.
        Raises PlanError if the plan's does not."""
        if self.plan.target.interface.mapped:
            words = "the reference server knows no messages that a plan describes: give --transport in place of --like"
            raise PlanError([Problem("target.websocket", words)])
        way = self.transport.removesuffix("+tls")
        version: Any = way.removeprefix("http/") if way.startswith("http/") else None
        chosen = {} if version is None else {"http": version}
        names = [self.plan.target.api, *([] if self.like else [_USUAL.get(way, _USUAL_HTTP)])]
        for api in names:
            if not INTERFACES[api].embedded:  # another over the same transport stands for it
                continue
            target = Target.model_validate({"url": url, "api": api, "tls_ca_file": ca_file, **chosen})
            if target.transport == self.transport:
                return target
        words = (
            f"the reference server does not speak {self.plan.target.api} over {self.transport}: "
            "leave out --transport, or --like"
        )
        raise PlanError([Problem("target.api", words)])

    def steps(self, kind: ladder.Kind) -> list[float]:
        """One ladder's loads, for all workers."""
        given, usual, quick = (
            (self.streams, ladder.STREAMS, ladder.STREAMS_QUICK)
            if kind == "streams"
            else (self.requests, ladder.REQUESTS, ladder.REQUESTS_QUICK)
        )
        steps = given or (quick if self.quick else usual)
        return [float(step * self.plan.instrument.workers) for step in steps]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of it: `certificate` holds all rungs; `stored` is its file, None if nothing could be certified."""

    certificate: Certificate
    stored: Path | None

    @property
    def exit_code(self) -> int:
        """0 certified; 4 if not even the lowest rung of a ladder, or the plan's own load, was good."""
        plan_good = all(rung.good for rung in self.certificate.rungs if rung.kind == "plan")
        return 0 if self.stored is not None and plan_good else 4


class _Silent:
    """`conduct`'s Ui for runs of ours. At the first note the workers have been started, on the instrument's cores; from
    then on this process may run anywhere, as in a user's run: beside one worker on one core it would only be in the way.
    """

    def __init__(self, everywhere: list[int] | None) -> None:
        self._everywhere = everywhere

    def note(self, text: str) -> None:  # noqa: ARG002 - a Ui's signature
        """See Ui."""
        if self._everywhere:
            os.sched_setaffinity(0, self._everywhere)

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def calibrate(ask: Ask, out: Path | None, say: Say) -> Calibrated:
    """Climb all ladders, certify, store. `out` keeps the runs' folders; None throws them away.

    Raises KeyboardInterrupt when interrupted (nothing is stored then), InstrumentError, PlanError (also if the plan's interface
    does not go over the transport, or if nothing here can make a certificate for TLS), OSError.
    """
    ask.target(
        f"http{'s' if ask.transport.endswith('+tls') else ''}://127.0.0.1", None
    )  # refused at once, or never
    machine = certificates.machine_of(environment())  # before anything is pinned: that would be fewer cores
    cores = _cores()
    with contextlib.ExitStack() as stack:
        place = out or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="inferometer-calibration-"))
        )
        place.mkdir(parents=True, exist_ok=True)
        identity = (
            local_identity(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            if ask.transport.endswith("+tls")
            else None
        )
        session = _Session(ask, place, cores, identity, say)
        interval = ladder.interval_ms(ask.plan, INTERVAL_MS) if ask.like else INTERVAL_MS
        with session.serving(interval, TTFT_MS, SPREAD_MS) as server:
            if ask.like:
                session.once_or_twice(server, ladder.plan_rung(ask.plan, TTFT_MS + SPREAD_MS / 2, interval))
            streams = session.climb(server, "streams")
        with session.serving(interval, REQUEST_TTFT_MS, REQUEST_SPREAD_MS) as server:
            requests = session.climb(server, "requests")
            only_streams = session.target(server).interface.only_streams
            whole = None if only_streams else session.climb(server, "whole")
    made = certificates.named(
        Certificate(
            schema=SCHEMA,
            id="",
            date=session.ended,
            machine=machine,
            packages=hot_path(),
            workers=ask.plan.instrument.workers,
            timestamp_source="kernel" if session.sources == {"kernel"} else "user",
            truth_from_kernel=session.from_kernel,
            quick=ask.quick,
            pinned=None if cores is None else {name: tuple(numbers) for name, numbers in cores.items()},
            interval_ms=interval,
            limits=CertifiedLimits(streams, requests, whole),
            rungs=tuple(session.rungs),
            transport=ask.transport,
        )
    )
    certified = min(limit.per_worker for limit in (streams, requests, whole) if limit is not None) > 0
    return Calibrated(made, certificates.store(made, certificates.folder(os.environ)) if certified else None)


class _Session:
    """The rungs tried so far, and what trying one takes."""

    def __init__(
        self,
        ask: Ask,
        place: Path,
        cores: dict[str, list[int]] | None,
        identity: LocalIdentity | None,
        say: Say,
    ) -> None:
        self.rungs: list[CalibrationRung] = []
        self.sources: set[str] = set()
        self.from_kernel = True
        self.ended = ""
        self._ask, self._place, self._cores, self._identity, self._say = ask, place, cores, identity, say
        self._script = (0.0, 0.0, 0.0)

    @contextlib.contextmanager
    def serving(self, interval: float, ttft: float, spread: float) -> Iterator[Embedded]:
        """A reference server that keeps this script, in ms, on its core."""
        self._script = interval, ttft, spread
        names = ("--interval-us", "--ttft-us", "--ttft-spread-us")
        flags = [
            word for name, ms in zip(names, self._script, strict=True) for word in (name, str(ms * US_PER_MS))
        ]
        with contextlib.ExitStack() as stack:
            with on_cores(self._cores["server"] if self._cores else []):
                server = stack.enter_context(self._started(flags))
            server.url()
            yield server

    def _started(self, flags: list[str]) -> Embedded:
        log, identity = self._place / "server.txt", self._identity
        if identity is None:
            return Embedded(log, *flags)
        pem = ("--tls-cert", str(identity.certificate), "--tls-key", str(identity.key))
        return Embedded(log, *flags, *pem, trust=identity.context)

    def target(self, server: Embedded) -> Target:
        """The server, by the transport that is calibrated."""
        return self._ask.target(
            server.url(), None if self._identity is None else str(self._identity.authority)
        )

    def climb(self, server: Embedded, kind: ladder.Kind) -> CertifiedLimit:
        """One ladder to its end; what it certifies, for one worker."""
        workers, quick = self._ask.plan.instrument.workers, self._ask.quick
        make = {
            "streams": ladder.stream_rung,
            "requests": ladder.request_rung,
            "whole": ladder.whole_rung,
        }[kind]
        loads = self._ask.steps(kind)
        tried: list[ladder.Tried] = []
        while (load := ladder.next_load(loads, tried, refine=not quick)) is not None:
            rung = self._try(server, make(load, quick=quick), 1 + sum(one.load == load for one in tried))
            tried.append(ladder.Tried(load, rung.good, rung.server_behind))
        mine = [rung for rung in self.rungs if rung.kind == kind and rung.good]
        best = max((rung.tok_s if kind == "streams" else rung.request_s for rung in mine), default=0.0)
        return CertifiedLimit(best / workers, ladder.ended_by(tried))

    def once_or_twice(self, server: Embedded, rung: ladder.Rung) -> None:
        """A rung outside the ladders: tried again once if it is not good."""
        if not self._try(server, rung, 1).good:
            self._try(server, rung, 2)

    def _try(self, server: Embedded, rung: ladder.Rung, tries: int) -> CalibrationRung:
        """Run it, join it, keep it; a repetition takes the place of the first try."""
        what = ("requests/s" if rung.open_loop else "streams") + (
            "" if rung.streamed else " of whole answers"
        )
        self._say(
            f"{rung.load:,.0f} {what}, {rung.requests:,} requests" + (", once more" if tries > 1 else "")
        )
        server.forget()
        plan, cores = ladder.plan_of(rung, self.target(server), self._ask.plan), self._cores
        with on_cores(cores["client"] if cores else []):
            ui = _Silent(cores["server"] + cores["client"] if cores else None)
            try:
                finding = conduct(plan, self._place, ui, certificate=OWN)
            except RecordError as error:
                if isinstance(error.__cause__, KeyboardInterrupt):  # pressed while the record was read
                    raise KeyboardInterrupt from error
                raise
        if finding.summary.run.interrupted:
            raise KeyboardInterrupt
        joined = _joined(finding, server.truth(), streamed=rung.streamed)
        result = self._judged(rung, finding.summary, joined, tries)
        self.sources.add(str(finding.summary.instrument.timestamp_source))
        self.from_kernel = self.from_kernel and joined.from_kernel
        self.ended = str(finding.summary.run.ended)
        self.rungs = [one for one in self.rungs if (one.kind, one.load) != (rung.kind, rung.load)]
        self.rungs.append(result)
        return result

    def _judged(
        self, rung: ladder.Rung, summary: Summary, joined: join.Joined, tries: int
    ) -> CalibrationRung:
        """Errors, load and limits of one run."""
        interval, ttft, spread = self._script
        seconds = (ttft + spread / 2 + (rung.tokens - 1) * interval) / 1_000
        rate = rung.load if rung.open_loop else rung.load / seconds
        errors = (
            join.spread(joined.ttft, joined.ttft_true) if rung.streamed else None,
            join.spread(joined.gaps, joined.gaps_true),
            join.spread(joined.e2e, joined.e2e_true),
        )
        late, read = (_median(values) for values in (joined.server_late, joined.read_delay))
        verdict, got = summary.verdict, summary.throughput
        shares = [share for share in summary.instrument.cpu_fraction if share is not None]
        return CalibrationRung(
            rung.kind,
            rung.load,
            rate * rung.tokens,
            _rate(got.output_tok_s, got.whole_run.output_tok_s),
            _rate(summary.load.achieved.request_s, got.whole_run.request_s),
            max(shares, default=None),
            *errors,
            joined.missing,
            joined.merged,
            late,
            read,
            max(late, read) > ladder.SERVER_LATE_MS,
            verdict.status,
            tuple(check.code for check in verdict.checks if check.status == "fail"),
            ladder.faults(*errors, joined.missing, joined.merged, verdict.status),
            tries,
        )


def scheduled_nonces(folder: RunFolder) -> list[str]:
    """The nonce of every scheduled request of a run, as its interface spells it. Raises RecordError."""
    schedule, facts = Schedule(folder.schedule), read_facts(folder)
    dialect = dialects.load(saved.read(folder.plan).target.api)
    read = dialect.read_ids_nonce if facts.prompt_format == "ids" else bytes.decode
    return join.nonces(schedule.table, schedule.body, read)


def _joined(finding: RunResult, log: bytes, *, streamed: bool) -> join.Joined:
    folder = RunFolder.open(finding.folder)
    measured = join.client_requests(read_table(folder.record, RECORD), scheduled_nonces(folder))
    true = join.server_requests(log)
    return join.joined(measured, true) if streamed else join.joined(*join.as_wholes(measured, true))


def _median(values: join.Floats) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _rate(steady: float | None, whole_run: float | None) -> float:
    return next((value for value in (steady, whole_run) if value is not None), 0.0)


def _cores() -> dict[str, list[int]] | None:
    """The first core for the server, the others for the instrument; None with one core, or where nothing can be pinned."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    first, *others = sorted(os.sched_getaffinity(0))
    return {"server": [first], "client": others} if others else None
