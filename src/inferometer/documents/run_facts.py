"""`run.json`: the facts of a run that its record does not hold. Written when the load begins, and again when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from inferometer.documents.part import Part, WallNs
from inferometer.documents.workload import (
    DrawnRequests,
    PromptFile,
    SessionFile,
    SourceFacts,
    TextSource,
    TokenizerFacts,
    TraceFacts,
    WarmPrefixes,
    WorkloadFile,
)
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.record import Death, OwnCpu
from inferometer.telemetry.clock_state import ClockSynchronisation
from inferometer.telemetry.host import Environment

RUN_SCHEMA: Final = "inferometer/run/2"


class ScrapedEndpoint(Part, frozen=True):
    """The scraper's account of one endpoint. `errors`: failures by reason; `words`: those of the first of each; `absent`: why
    it was given up at first."""

    url: str
    own: bool
    scrapes: int = 0
    characters: int = 0
    errors: Mapping[str, int] = {}
    skipped: int = 0
    absent: str | None = None
    instead: str | None = None
    words: Mapping[str, str] = {}


class PhaseTimes(Part, frozen=True):
    """A phase of the run; ns since the epoch."""

    start_ns: WallNs
    end_ns: WallNs


class ScrapingAccount(Part, frozen=True, omit_defaults=True):
    """How the server's metrics were scraped. `cpu_s` and `failed` are added when the load has ended, `phases` when the record
    is sealed."""

    interval_s: float
    clock_offset_ns: int
    endpoints: tuple[ScrapedEndpoint, ...]
    cpu_s: float | None = None
    failed: str | msgspec.UnsetType | None = msgspec.UNSET
    phases: Mapping[str, PhaseTimes] = {}


class SimulatedEngine(Part, frozen=True):
    """The engine that was simulated, every setting spelled out, and the model of the client, in ns; and the system that stood
    on the engine, if one did."""

    preset: str
    settings: Mapping[str, float | int | str | bool]
    client: Mapping[str, float] = {}
    system: str | None = None
    system_settings: Mapping[str, float | int | bool] = {}


class PreemptionCounts(Part, frozen=True):
    """Preemptions by a simulated engine's own counts, over the measured phase."""

    events: int
    requests: int
    finished: int
    discarded: int


TimedBy = Literal["kernel", "client"]


class TripTimes(Part, frozen=True):
    """Round trips of one kind, in ms; None: there were none. `repeated`: handshakes whose first packet was sent again, which
    have no time; `failed`: those that gave nothing, `problem`: the first's reason in words."""

    count: int
    least_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    repeated: int = 0
    failed: int = 0
    problem: str | None = None


class RoundTrips(Part, frozen=True):
    """Round trips to the server (draft 4.7.3): of TCP handshakes before the load, while it was measured and behind it, and of
    the cheapest request that it answers. None: not measured. `timed_by`: who timed the handshakes. `request`: what was sent."""

    timed_by: TimedBy
    before: TripTimes
    during: TripTimes | None = None
    after: TripTimes | None = None
    request: str | None = None
    request_before: TripTimes | None = None
    request_after: TripTimes | None = None

    @property
    def least_ms(self) -> float | None:
        """The shortest handshake of all: each request's round trip took so long at least."""
        seen = [one.least_ms for one in (self.before, self.during, self.after) if one is not None]
        return min((one for one in seen if one is not None), default=None)


class RequestFacts(msgspec.Struct, frozen=True):
    """What is known of a run's requests, before they are made and after. `source`: where they came from."""

    fingerprint: str | None
    requests: DrawnRequests | None
    warm_prefixes: WarmPrefixes | None
    source: SourceFacts


class RunFacts(Part, frozen=True, omit_defaults=True):
    """The facts. `calibration`: see CertificateLookup.of_facts. `interrupted` is true until the end is reached: should the
    process die, that is what became of the run. `single_use`: the server closed its connections after one answer, without
    announcing it, so that from then on each request had a fresh one. `greeting`: its count of the probe's, template and all.
    `answered_as`: the model that it said answered the probe, where that is another name than `model`. `clock_state`: what the
    client's machine said of its own synchronisation before the load; of no other machine's.
    `hosts`: those that sent the load, where this machine did not."""

    schema: Literal["inferometer/run/2"]
    id: str
    plan_hash: str
    started_wall_ns: WallNs
    ended_wall_ns: WallNs | None
    interrupted: bool
    simulated: bool
    server_metrics: ScrapingAccount | None
    timestamp_source: Literal["kernel", "user", "virtual", "modelled"] | None
    dead_workers: tuple[Death, ...]
    salt: int
    fingerprint: str | None
    requests: DrawnRequests | None
    warm_prefixes: WarmPrefixes | None
    classes: tuple[str, ...]
    prompts: PromptFile | None
    texts: TextSource | None
    made: WorkloadFile | None
    trace: TraceFacts | None
    prompt_format: Literal["text", "ids"]
    length_field: str
    template: int | None
    model: str
    models: tuple[str, ...]
    server: str | None
    environment: Environment
    tokenizer: TokenizerFacts
    greeting: int | None = None
    engine: SimulatedEngine | None = None
    calibration: Mapping[str, Any] | None = None
    preempted: PreemptionCounts | None = None
    single_use: bool = False
    own_cpu: OwnCpu | None = None
    answered_as: str | None = None
    clock_state: ClockSynchronisation | None = None
    hosts: tuple[LoadHost, ...] = ()
    round_trips: RoundTrips | None = None
    sessions: SessionFile | None = None
