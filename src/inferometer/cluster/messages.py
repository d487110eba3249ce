"""What a conductor and a load host say to each other. Times are ns on the load host's monotonic clock, unless it is said
otherwise. A job may hold secrets: messages travel through TLS and are never written down.
"""

from __future__ import annotations

import msgspec

from inferometer.cluster.clock_fit import ClockProbe
from inferometer.documents.certificate import CertificateLookup
from inferometer.drive.worker_messages import Go, Job, More, Stop
from inferometer.measure.load_hosts import HostTrips
from inferometer.plan.transports import Transport
from inferometer.telemetry.clock_state import ClockSynchronisation
from inferometer.telemetry.host import Environment
from inferometer.telemetry.slowdowns import Slowdowns

PROTOCOL = 5
"""Of these messages; both sides have to speak the same."""
WHOLE, APPENDED, STEPS, AUTHORITY = "requests.arrow", "requests.arrows", "steps.arrow", "authority.pem"
FILES = (WHOLE, APPENDED, STEPS, AUTHORITY)
"""The two files of requests (journal/schedule.py), how recorded sessions hang together (journal/steps.py), and whom TLS is to
trust."""


# From a load host.


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """Who asks to join. `name`: what its user calls it. `kept`: runs of which this host still holds streams that the conductor
    may not have, and what the host was called in each. `process`: of one `inferometer worker`, the same each time that it
    comes."""

    protocol: int
    version: str
    secret: bytes
    name: str | None
    environment: Environment
    clock_state: ClockSynchronisation | None = None
    kept: dict[str, tuple[str, ...]] = {}
    process: str = ""


class HostReady(msgspec.Struct, frozen=True, tag="host-ready"):
    """All workers of this host stand ready. `certificate`: what its machine cites for such a run."""

    certificate: CertificateLookup


class Surroundings(msgspec.Struct, frozen=True, tag="surroundings"):
    """Round trips from this host to the server, and what had slowed its processes down until then: before its workers were
    ready, or behind the run."""

    behind: bool
    trips: HostTrips
    slowdowns: Slowdowns


class HostDone(msgspec.Struct, frozen=True, tag="host-done"):
    """A phase has ended in all workers of the host that live; the rest as in worker_messages.PhaseDone, over all of them."""

    phase: int
    stamped: int
    unstamped: int
    single_use: bool


class WorkerGone(msgspec.Struct, frozen=True, tag="worker-gone"):
    """A worker of this host has died: see worker_pool.Death. Said again once more is known of it."""

    worker: int
    phase: int
    sent: int
    exit_code: int | None
    reason: str | None
    shortage: str | None


class HostLog(msgspec.Struct, frozen=True, tag="host-log"):
    """The end of what the workers of a run wrote to the log of their host, once they have ended."""

    run: str
    text: str


class Live(msgspec.Struct, frozen=True, tag="live"):
    """The counters of the host's workers (progress_counters.py), and with that the sign that the host lives. `arrived`: of the
    phase that runs, whether the measured requests of all of them have ended."""

    counters: list[list[int]]
    arrived: bool


class Probes(msgspec.Struct, frozen=True, tag="probes"):
    """Comparisons of this host's clock with the conductor's."""

    probes: list[ClockProbe]


class StreamPart(msgspec.Struct, frozen=True, tag="stream-part"):
    """The next bytes of a stream of the journal of a run."""

    run: str
    name: str
    data: bytes


class StreamsSent(msgspec.Struct, frozen=True, tag="streams-sent"):
    """All that the streams of a run hold has been sent. `final`: nothing is written to them any more."""

    run: str
    final: bool


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Why this side cannot go on, in words; the connection ends. `shortage`: a code of SHORTAGES, of what the machine lacks."""

    reason: str
    shortage: str | None = None


FromHost = (
    Hello
    | HostReady
    | HostDone
    | HostLog
    | WorkerGone
    | Live
    | Surroundings
    | Probes
    | StreamPart
    | StreamsSent
    | Refused
)


# From the conductor.


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The host is in, under this name. Its clock is compared at this UDP port of the address that it joined."""

    name: str
    clock_port: int


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """The conductor lives."""


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """A run begins, in which the host has so many `workers`, the first of them with this number. `run`: as no other is called;
    `record`: the id that its streams carry."""

    run: str
    record: str
    first: int
    workers: int
    transport: Transport


class FilePart(msgspec.Struct, frozen=True, tag="file-part"):
    """The next `size` bytes of one of FILES, which a run needs on the host, compressed. `digest`: BLAKE2b of the whole file,
    with its last part."""

    name: str
    data: bytes
    size: int
    digest: bytes | None = None


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """One job for each worker that the host has in the run; their folder is the host's own."""

    jobs: list[Job]


class Gathered(msgspec.Struct, frozen=True, tag="gathered"):
    """The measured requests of all other hosts have ended: a closed loop need not be led out any longer."""


class SendStreams(msgspec.Struct, frozen=True, tag="send-streams"):
    """Send what the streams of this run hold beyond these sizes. `final`: the run is over; end the workers first."""

    run: str
    have: dict[str, int]
    final: bool = False


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """The conductor has all that this run's streams held, on disk: the host may remove them."""

    run: str


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """No further run comes."""


ToHost = (
    Welcome
    | Beat
    | Begin
    | FilePart
    | Assign
    | Go
    | More
    | Stop
    | Gathered
    | SendStreams
    | Kept
    | Leave
    | Refused
)
