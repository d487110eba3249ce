"""`summary.json`: one run's result. Times are ms or s as the name says; shares lie between 0 and 1; instants are ISO 8601 UTC.

Parts of the measurement that are shown as they are (metrics, distributions, the steady span, ...) are those of `measure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from inferometer.documents.certificate import CertificateRung, CertifiedLimits
from inferometer.documents.load import LoadAccount
from inferometer.documents.part import Part
from inferometer.documents.run_facts import RoundTrips
from inferometer.documents.verdict import RunVerdict
from inferometer.documents.workload import LearnedRatio, WarmPrefixes, WorkloadAccount
from inferometer.measure.agent_sessions import AgentSessions
from inferometer.measure.breakdown import Conversations, MeanLengths, Waits
from inferometer.measure.distributions import Distributions, Quantiles
from inferometer.measure.error_bound import ErrorBounds
from inferometer.measure.instrument import Loss
from inferometer.measure.itl_shape import ItlShape
from inferometer.measure.length_cost import LengthGroup
from inferometer.measure.lengths import Spread
from inferometer.measure.less_round_trip import LessRoundTrip
from inferometer.measure.load import TokensInFlight
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.machine_figures import MachineSeen
from inferometer.measure.measurement import Refusals
from inferometer.measure.record import OwnCpu
from inferometer.measure.server import Server
from inferometer.measure.steady import Steady
from inferometer.measure.system_tokens import SystemTokens
from inferometer.measure.tasks import TasksAccount
from inferometer.metrics.catalogue import Metrics, Rates
from inferometer.metrics.statistics import Interval, Stats
from inferometer.plan.schema import Plan
from inferometer.plan.transports import Transport
from inferometer.telemetry.clock_state import ClockSynchronisation
from inferometer.telemetry.host import Environment

SCHEMA: Final = "inferometer/summary/4"


class Run(Part, frozen=True):
    """The run itself. `ended`: None where it died."""

    id: str
    name: str
    started: str
    ended: str | None
    interrupted: bool
    simulated: bool
    plan_hash: str | None


class Observed(Part, frozen=True):
    """What the server said of itself. `answered_as`: the model that it said answered, where that is another name than the one
    asked for: an alias, or another model."""

    server: str | None
    models: tuple[str, ...]
    answered_as: str | None = None


class DeclaredGuardrails(Part, frozen=True):
    """Which filters the tester declared; None: not declared."""

    input_filter: bool | None
    output_filter: bool | None
    names: tuple[str, ...]


class Sut(Part, frozen=True):
    """The system under test, declared by the tester except `observed`. `url`: without credentials; None is the embedded
    reference server."""

    boundary: Literal["engine", "gateway", "compound"] | None
    model_version: str | None
    quantization: str | None
    software: str | None
    accelerator: str | None
    accelerator_count: int | None
    accelerator_memory: str | None
    prefix_caching: Literal["enabled", "disabled"] | None
    cache_state: Literal["cold", "warm", "unknown"]
    guardrails: DeclaredGuardrails
    notes: str | None
    model: str | None
    url: str | None
    api: str
    stream: bool
    protocol: str
    observed: Observed


class WarmUpCount(Part, frozen=True):
    """Requests before the measured phase."""

    sent: int
    completed: int


class RequestCounts(Part, frozen=True):
    """Requests of the measured phase. The interval (95 %) is of the share that failed.

    `lead_in`, `lead_out`: those that kept a closed loop's slots in use before the first measured one and after the last.
    """

    sent: int
    completed: int
    failed: int
    cancelled: int
    by_error: Mapping[str, int]
    failed_share_ci95: Interval | None
    warmup: WarmUpCount
    lead_in: int = 0
    lead_out: int = 0


class SuccessRate(Part, frozen=True):
    """Requests that succeeded among those that ended, with Wilson's interval."""

    value: float | None
    ci95: Interval | None
    succeeded: int
    ended: int


class WarmUpVolume(Part, frozen=True):
    """What the plan requests of a warm-up."""

    requests: int
    output_tokens: int


class WarmUpProbes(Part, frozen=True):
    """Single requests before and after the warm-up; latencies in ms. `stable`: the last three lie within `limit`."""

    most: int
    input_tokens: int | None
    output_tokens: int | None
    before_ms: float | None
    after_ms: tuple[float | None, ...]
    variation: float | None
    limit: float
    stable: bool | None


class WarmUp(Part, frozen=True):
    """The warm-up as carried out (draft 4.5). `waiting`, `running`: requests at the server before the measurement, by its
    own metrics. `output_tokens`: None where neither the server nor the client counts them."""

    asked: WarmUpVolume
    requests: int
    completed: int
    output_tokens: int | None
    reached: bool
    drained: bool | None
    waiting: float | None
    running: float | None
    prefixes: WarmPrefixes | None
    probes: WarmUpProbes
    skipped: bool


class Window(Part, frozen=True):
    """The measured phase; the steady span in s from its start."""

    start: str | None
    duration_s: float | None
    definition: str
    steady_start_s: float | None
    steady_end_s: float | None


class TtftBucket(Part, frozen=True, rename={"from_tokens": "from", "to_tokens": "to"}):
    """TTFT in ms of the samples whose input tokens lie in [from, to)."""

    from_tokens: int
    to_tokens: int | None
    n: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None


class ClassCounts(Part, frozen=True):
    """Requests of one class."""

    sent: int
    completed: int
    failed: int
    cancelled: int


class ClassPrompts(Part, frozen=True):
    """Mean prompt lengths of one class in tokens."""

    asked_mean: float | None
    sent_mean: float | None
    server_mean: float | None


class ClassDistributions(Part, frozen=True):
    """Quantiles for pictures, ms."""

    ttft_ms: Quantiles | None


class ClassAccount(Part, frozen=True):
    """What one class of requests met. `waits`: requests that waited over five medians of their class. `ttft_by_length`: TTFT
    by groups of prompts of about one length; empty in summaries that were written before there was one."""

    name: str
    requests: ClassCounts
    ttft_ms: Stats | None
    tpot_ms: Stats | None
    e2e_ms: Stats | None
    e2e_per_token_ms: Stats | None
    input_tokens: Stats | None
    output_tokens: Stats | None
    prompt: ClassPrompts
    output: MeanLengths
    waits: Waits
    distributions: ClassDistributions
    ttft_by_length: tuple[LengthGroup, ...] = ()


class ThroughputAccount(Rates[float], frozen=True, forbid_unknown_fields=True):
    """Rates per second over the steady span, over the whole run, and the cached share of prompt tokens.

    `cached_prefix_share`: of the tokens that requests share with others, min(cached, shared) of each request (draft 5.7.4).
    """

    whole_run: Rates[float]
    cached_input_share: float | None
    cached_prefix_share: float | None
    ci95: Rates[Interval]


class TokenizerAccount(Part, frozen=True):
    """The tokenizer that measured prompts and, where declared so, counts tokens."""

    kind: Literal["shipped", "file", "hub", "server", "ids", "learned", "none"] | None
    name: str | None
    version: str | None
    vocab_size: int | None
    source: str | None
    method: str | None
    learned: LearnedRatio | None = None


class PromptLengths(Part, frozen=True):
    """Prompts: tokens requested, sent, and counted by the server. `template`: tokens of the chat template."""

    asked_mean: float | None
    sent_mean: float | None
    server_mean: float | None
    misses: int | None
    counted: Spread | None
    template: int | None


class OutputLengths(Part, frozen=True):
    """Answers: tokens requested, and counted by the tokenizer at hand and by the server."""

    asked_mean: float | None
    local_mean: float | None
    server_mean: float | None
    misses: int | None
    counted: Spread | None


class TokenAccount(Part, frozen=True):
    """Who counted tokens, and how stream events carry them. `chunk_tokens`: tokens that arrived together (draft 4.6.3);
    `system`: what a compound system's usage says of all its steps, null for all others."""

    count_source: str | None
    tokenizer: TokenizerAccount
    itl_method: str | None
    single_token_share: float | None
    events: int | None
    tokens: int | None
    tokens_per_event: float | None
    prompt: PromptLengths
    output: OutputLengths
    chunk_tokens: Spread | None = None
    system: SystemTokens | None = None


class Objective(Part, frozen=True):
    """An objective against the measurement; `met` None: undecided."""

    expr: str
    value: float | None
    limit: float | None
    met: bool | None
    ci: Interval | None


class Preemption(Part, frozen=True):
    """Preemptions of the load, its lead-in and lead-out included. `requests`: preempted at least once; `finished`: of these,
    ended with all their tokens; `discarded`: tokens lost from the KV cache."""

    source: Literal["server metrics", "simulated engine"]
    events: float
    requests: float | None
    finished: float | None
    discarded: float | None


class Lost(Part, frozen=True):
    """Scrapes or lines that gave nothing, for one reason; `first`: the words of the first, empty if there are none."""

    reason: str
    count: int
    first: str


class MetricsEndpointAccount(Part, frozen=True):
    """What came of scraping one endpoint of metrics. `own`: nobody named it, it is the target's; `absent`: why that was given
    up at first. `engine`: whose metrics it has, None: none that are known. `longest_gap_s`: of the measured phase, without a
    good scrape. `skipped_instants`: scrapes that fell due while one was under way. `instead`: the path asked in place of the
    URL's."""

    url: str
    own: bool
    engine: str | None
    scrapes: int
    lost: tuple[Lost, ...]
    skipped_lines: tuple[Lost, ...]
    skipped_instants: int
    longest_gap_s: float | None
    instead: str | None
    absent: str | None


class LoadPerWorker(Part, frozen=True):
    """The run's own load, per second and worker. Answers are streamed or whole: `requests_s` or `whole_answers_s` is 0."""

    token_events_s: float
    requests_s: float
    whole_answers_s: float = 0.0


class CalibrationCited(Part, frozen=True):
    """The certificate that speaks for this run. `used`: the larger load as a share of what is certified; `rung`: the
    certificate's errors at the lowest load not below the run's."""

    id: str
    date: str
    workers: int
    quick: bool
    limits: CertifiedLimits
    load: LoadPerWorker
    by: Literal["token_events_s", "requests_s", "whole_answers_s"]
    used: float
    rung: CertificateRung | None
    transport: Transport = "http/1.1"


class InstrumentAccount(Part, frozen=True):
    """What the instrument says of itself. `error_bounds`: how wrong each headline may be through it, in the headline's unit.
    `cpu_fraction`, `run_delay_fraction`: one entry a worker. `clock_state`: the client's clock, by its own account (draft
    4.7.2); it says nothing of the server's.
    `hosts`: those that sent the load, where this machine did not."""

    timestamp_source: Literal["kernel", "user", "virtual", "modelled"] | None
    workers: int | None
    receive_lag_ms: Stats | None
    merged_share: float | None
    cpu_fraction: tuple[float | None, ...]
    run_delay_fraction: tuple[float | None, ...]
    stall_max_ms: float | None
    clock_step_ms: float | None
    dead_workers: tuple[Loss, ...]
    calibration: CalibrationCited | None
    own_cpu: OwnCpu | None = None
    error_bounds: ErrorBounds | None = None
    clock_state: ClockSynchronisation | None = None
    hosts: tuple[LoadHost, ...] = ()


class ComplianceBrief(Part, frozen=True):
    """How the run stands by the draft's rules. `counts`: rules by weight and by state; `deviations`: ids."""

    draft: str
    test: str
    label: Literal[
        "unconditionally compliant", "conditionally compliant", "not compliant", "not a measurement"
    ]
    counts: Mapping[str, Mapping[str, int]]
    deviations: tuple[str, ...]


class Summary(Part, frozen=True):
    """One run's result. None is: undefined or unknown, never 0.

    `ttft_less_round_trip`: with --subtract-rtt, beside `metrics.ttft_ms`, from which it is worked out and which stays as it was
    measured (draft 4.7.3). `agent_sessions`: where recorded sessions were sent."""

    schema: Literal["inferometer/summary/4"]
    version: str
    run: Run
    verdict: RunVerdict
    sut: Sut
    environment: Environment
    plan: Plan
    requests: RequestCounts
    success_rate: SuccessRate
    refusals: Refusals
    warm_up: WarmUp
    window: Window
    metrics: Metrics
    distributions: Distributions
    itl_shape: ItlShape | None
    ttft_by_input: tuple[TtftBucket, ...]
    conversations: Conversations | None
    by_class: tuple[ClassAccount, ...]
    workload: WorkloadAccount
    throughput: ThroughputAccount
    steady: Steady | None
    in_flight_tokens: TokensInFlight | None
    preemption: Preemption | None
    load: LoadAccount
    tokens: TokenAccount
    slos: tuple[Objective, ...]
    server: Server | None
    instrument: InstrumentAccount
    definitions: Mapping[str, str]
    compliance: ComplianceBrief | None
    metrics_endpoints: tuple[MetricsEndpointAccount, ...] = ()
    machines: tuple[MachineSeen, ...] = ()
    round_trips: RoundTrips | None = None
    ttft_less_round_trip: LessRoundTrip | None = None
    agent_sessions: AgentSessions | None = None
    tasks: TasksAccount | None = None

    @property
    def requests_each(self) -> float:
        """Requests that an arrival of this run brings: 1, or those of its conversations or sessions on average."""
        talks = self.conversations
        if talks is None or not talks.begun:
            return 1.0
        return (self.requests.sent + talks.left_out) / talks.begun

    @property
    def requests_at_once(self) -> float:
        """By how much the number of requests varies more than where each arrives by itself: of arrivals that bring k requests
        E[k^2] / E[k], which a few long sessions make far larger than their mean k."""
        each, talks = self.requests_each, self.conversations
        std = None if talks is None else talks.turns_std
        return each + (std or 0.0) ** 2 / each if each else each
