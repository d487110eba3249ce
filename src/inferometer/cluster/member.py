"""A load host as its conductor sees it, over all runs of a command."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from inferometer.cluster.admission import HostLink
from inferometer.cluster.clock_fit import ClockFit, ClockProbe, fit
from inferometer.cluster.link import LinkLost
from inferometer.cluster.messages import FromHost, Hello, Welcome
from inferometer.documents.certificate import CertificateLookup
from inferometer.drive.progress_counters import COUNTERS, Progress
from inferometer.measure.load_hosts import HostTrips
from inferometer.telemetry.clock_state import ClockSynchronisation
from inferometer.telemetry.host import Environment
from inferometer.telemetry.slowdowns import Slowdowns, Slowed, between


@dataclass(slots=True)
class Member:
    """`number`: of the order in which hosts came, from 0. `lost`: why it is not there any more; `lost_in_run`: why it was
    lost while this run went on, whether it came back or not. `kept`: runs whose streams it holds. `process`: see Hello.
    `counters`: of its workers in this run (progress_counters.py). `arrived`: see messages.Live.
    `trips`: to the server, before the run and (True) behind it; `slowdowns`: likewise."""

    number: int
    name: str
    environment: Environment
    link: HostLink
    clock_state: ClockSynchronisation | None = None
    kept: set[str] = field(default_factory=set)
    process: str = ""
    lost: str | None = None
    lost_in_run: str | None = None
    heard_ns: int = field(default_factory=time.monotonic_ns)
    probes: list[ClockProbe] = field(default_factory=list)
    counters: list[list[int]] = field(default_factory=list)
    arrived: bool = False
    gathered: bool = False
    certificate: CertificateLookup | None = None
    trips: dict[bool, HostTrips] = field(default_factory=dict)
    slowdowns: dict[bool, Slowdowns] = field(default_factory=dict)

    @classmethod
    def joined(cls, number: int, link: HostLink, hello: Hello, clock_port: int) -> Member:
        """A host that has come. Raises LinkLost."""
        member = cls(
            number,
            hello.name or f"host-{number + 1}",
            hello.environment,
            link,
            hello.clock_state,
            set(hello.kept),
            hello.process,
        )
        member.welcome(clock_port)
        return member

    def welcome(self, clock_port: int) -> None:
        """Let it in. Raises LinkLost."""
        self.link.name = self.name
        self.link.send(Welcome(self.name, clock_port))

    def back(self, link: HostLink, hello: Hello, clock_port: int) -> None:
        """It was lost, and has come again: with what it holds, and to send no more in this run. Raises LinkLost."""
        self.lost_in_run = self.lost_in_run or self.lost
        self.link, self.lost, self.kept, self.process = link, None, set(hello.kept), hello.process
        self.heard_ns = time.monotonic_ns()
        self.welcome(clock_port)

    def send(self, message: object) -> None:
        """Tell it something. One that does not take it is lost."""
        if self.lost is None:
            try:
                self.link.send(message)
            except LinkLost as cause:
                self.lose(str(cause))

    def receive(self) -> list[FromHost]:
        """What it has said since the last call. One whose connection has ended is lost."""
        if self.lost is not None:
            return []
        try:
            messages = self.link.receive()
        except LinkLost as cause:
            self.lose(str(cause))
            return []
        if messages:
            self.heard_ns = time.monotonic_ns()
        return messages

    def lose(self, why: str) -> None:
        """It is gone."""
        if self.lost is None:
            self.lost = why
            self.link.close()

    @property
    def clock(self) -> ClockFit | None:
        """How its clock relates to the conductor's; None before any comparison."""
        return fit(self.probes) if self.probes else None

    @property
    def slowed(self) -> Slowed | None:
        """What slowed it down in this run; None unless it said both before and behind it."""
        if len(self.slowdowns) < 2:
            return None
        return between(self.slowdowns[False], self.slowdowns[True])

    @property
    def takes_part(self) -> bool:
        """Whether it is there and has been since the run began: one that came back has no workers any more."""
        return self.lost is None and self.lost_in_run is None

    def progress(self) -> Progress:
        """Over its workers."""
        columns = zip(*self.counters, strict=True) if self.counters else [[0]] * COUNTERS
        return Progress(*(sum(column) for column in list(columns)[:COUNTERS]))

    def sent(self, at: int) -> int:
        """The requests that its `at`-th worker had sent when it was last heard."""
        return self.counters[at][0] if at < len(self.counters) else 0
