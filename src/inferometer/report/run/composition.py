"""From what was measured and judged to the summary: names change here, numbers never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from inferometer import __version__
from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.load import (
    AchievedLoad,
    ArrivalStatistics,
    LatenessShares,
    LoadAccount,
    OfferedLoad,
    TraceAccount,
)
from inferometer.documents.run_facts import RunFacts
from inferometer.documents.summary import (
    SCHEMA,
    ClassAccount,
    ClassCounts,
    ClassDistributions,
    ClassPrompts,
    DeclaredGuardrails,
    InstrumentAccount,
    Objective,
    Observed,
    OutputLengths,
    Preemption,
    PromptLengths,
    RequestCounts,
    Run,
    SuccessRate,
    Summary,
    Sut,
    ThroughputAccount,
    TokenAccount,
    TokenizerAccount,
    TtftBucket,
    WarmUp,
    WarmUpCount,
    Window,
)
from inferometer.documents.verdict import CheckResult, Reason, RunVerdict
from inferometer.documents.workload import (
    NAMES,
    DisclosureItem,
    DrawnRequests,
    RequestStatistics,
    TraceFacts,
    WorkloadAccount,
    disclosed,
    missing,
    requirement,
)
from inferometer.judge.arrival import ArrivalCheck
from inferometer.judge.calibration import cited_calibration
from inferometer.judge.checks import failures
from inferometer.judge.slo import SloOutcome
from inferometer.judge.verdict import Verdict
from inferometer.measure.breakdown import OfClass
from inferometer.measure.less_round_trip import LessRoundTrip
from inferometer.measure.measurement import Bucket, Measurement
from inferometer.measure.stats import share_interval
from inferometer.metrics.catalogue import RATES, definitions
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.target import Target
from inferometer.report import checks

WINDOWS = {
    "open-last-90": "Rates are taken over the last 90 % of the sending time. Requests sent inside it may end after it; "
    "tokens count where they arrive.",
    "closed-full-last-90": "Rates are taken over the last 90 % of the time in which all slots were full; the tail, in which "
    "they drain, is left out. Tokens count where they arrive.",
    "none": "There was no steady span, so there are no rates over it.",
}
DRAINS = {
    False: " Requests in flight when the last was sent were waited for.",
    True: " Requests in flight at the time limit were waited for up to the drain time, then cancelled.",
}


def summarise(
    plan: Plan,
    run: RunFacts,
    measurement: Measurement,
    verdict: Verdict,
    arrival: ArrivalCheck | None,
    slos: Sequence[SloOutcome],
    warm_up: WarmUp,
    less: LessRoundTrip | None = None,
) -> Summary:
    """The summary of one run, its compliance not yet worked out. `run`: the facts of run.json; `warm_up`: see run/warmup.py;
    `less`: TTFT less the round trip, if the plan asks for it."""
    interrupted = bool(run.interrupted)
    return Summary(
        schema=SCHEMA,
        version=__version__,
        run=_run(plan, run),
        verdict=_verdict(verdict),
        sut=_sut(plan, run),
        environment=run.environment,
        plan=plan,
        requests=_requests(measurement, warm_up, interrupted=interrupted),
        success_rate=_success(measurement, interrupted=interrupted),
        refusals=measurement.refusals,
        warm_up=warm_up,
        window=_window(plan, measurement),
        metrics=measurement.metrics,
        distributions=measurement.distributions,
        itl_shape=measurement.itl_shape,
        ttft_by_input=tuple(_bucket(bucket) for bucket in measurement.ttft_by_input),
        conversations=measurement.conversations,
        by_class=tuple(_class(one) for one in measurement.by_class),
        workload=_workload(plan, run),
        throughput=_throughput(measurement),
        steady=measurement.steady,
        in_flight_tokens=measurement.in_flight_tokens,
        preemption=_preemption(run, measurement),
        load=_load(plan, run, measurement, arrival),
        tokens=_tokens(plan, run, measurement),
        slos=tuple(Objective(one.expr, one.value, one.limit, one.met, one.ci) for one in slos),
        server=measurement.server,
        machines=measurement.machines,
        round_trips=run.round_trips,
        ttft_less_round_trip=less,
        instrument=_instrument(plan, run, measurement),
        definitions=definitions(),
        compliance=None,
    )


def _run(plan: Plan, run: RunFacts) -> Run:
    return Run(
        id=run.id,
        name=plan.name,
        started=moment(run.started_wall_ns),
        ended=moment(run.ended_wall_ns) if run.ended_wall_ns else None,
        interrupted=bool(run.interrupted),
        simulated=bool(run.simulated),
        plan_hash=run.plan_hash,
    )


def _verdict(verdict: Verdict) -> RunVerdict:
    """The verdict with a sentence for each check: other programs that read summary.json say the same as our reports."""
    return RunVerdict(
        verdict.status,
        tuple(Reason(one.code, checks.message(one), one.value, one.limit) for one in verdict.reasons),
        tuple(CheckResult(**asdict(check), message=checks.message(check)) for check in verdict.checks),
    )


def _bucket(bucket: Bucket) -> TtftBucket:
    return TtftBucket(**asdict(bucket))


def _throughput(measurement: Measurement) -> ThroughputAccount:
    rates = measurement.throughput
    return ThroughputAccount(
        **{name: getattr(rates.steady, name) for name in RATES},
        whole_run=rates.whole_run,
        cached_input_share=rates.cached_input_share,
        cached_prefix_share=rates.cached_prefix_share,
        ci95=rates.ci95,
    )


def _instrument(plan: Plan, run: RunFacts, measurement: Measurement) -> InstrumentAccount:
    of = measurement.instrument
    lookup = CertificateLookup.of_facts(run.calibration)
    return InstrumentAccount(
        timestamp_source=of.timestamp_source,
        workers=of.workers,
        receive_lag_ms=of.receive_lag_ms,
        merged_share=of.merged_share,
        cpu_fraction=of.cpu_fraction,
        run_delay_fraction=of.run_delay_fraction,
        stall_max_ms=of.stall_max_ms,
        clock_step_ms=of.clock_step_ms,
        dead_workers=of.dead_workers,
        calibration=cited_calibration(lookup, plan, measurement),
        own_cpu=of.own_cpu,
        error_bounds=of.error_bounds,
        clock_state=run.clock_state,
        hosts=run.hosts,
    )


def _preemption(run: RunFacts, measurement: Measurement) -> Preemption | None:
    """By a simulated engine's own counts, else by the server's metrics; None where neither counts preemptions."""
    if run.preempted is not None:
        own = run.preempted
        return Preemption("simulated engine", own.events, own.requests, own.finished, own.discarded)
    seen = measurement.preempted
    if seen is None:
        return None
    return Preemption("server metrics", seen.events, seen.requests, seen.finished, seen.discarded)


def moment(wall_ns: int) -> str:
    """ISO 8601 in UTC with milliseconds (draft 4.7.4)."""
    at = datetime.fromtimestamp(wall_ns / 1e9, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def protocol_of(target: Target) -> str:
    """The protocol of the load, whether it is over TLS, that bodies are not compressed (one that is fails its request), and how
    many requests share a connection where that may be several."""
    tls = " over TLS" if target.transport.endswith("+tls") else ""
    if target.interface.over_websocket:
        mapped = ", messages by the plan's target.websocket" if target.interface.mapped else ""
        return f"WebSocket (RFC 6455){tls}{mapped}{'' if target.stream else ', one message an answer'}, uncompressed"
    framing = f" with {target.interface.framing}" if target.stream else ""
    shared = "" if target.http == "1.1" else f", at most {target.streams} requests at once on a connection"
    if target.interface.grpc:
        return f"gRPC over HTTP/{target.http}{tls}, uncompressed{shared}"
    return f"HTTP/{target.http}{tls}{framing}, uncompressed{shared}"


def _sut(plan: Plan, run: RunFacts) -> Sut:
    target, sut = plan.target, plan.sut
    protocol = protocol_of(target)
    guardrails = sut.guardrails
    return Sut(
        boundary=sut.boundary,
        model_version=sut.model_version,
        quantization=sut.quantization,
        software=sut.software,
        accelerator=sut.accelerator,
        accelerator_count=sut.accelerator_count,
        accelerator_memory=sut.accelerator_memory,
        prefix_caching=sut.prefix_caching,
        cache_state=sut.cache_state,
        guardrails=DeclaredGuardrails(guardrails.input_filter, guardrails.output_filter, guardrails.names),
        notes=sut.notes,
        model=run.model,
        url=target.url,
        api=target.api,
        stream=bool(target.stream),
        protocol="none: simulated" if run.simulated else protocol,
        observed=Observed(run.server, run.models, run.answered_as),
    )


def _workload(plan: Plan, run: RunFacts) -> WorkloadAccount:
    """The seven items of draft 4.3.1, the ids of those that are missing, the sources of the texts, and what was drawn (without
    its histograms, which only the pictures need)."""
    drawn = run.requests
    items = disclosed(plan, run.prompts, run.trace, run.sessions)
    hits = drawn.prefix_hits if drawn is not None else None if run.trace is None else run.trace.prefix_hits
    return WorkloadAccount(
        items=tuple(
            DisclosureItem(requirement(name), words, getattr(items, name)) for name, words in NAMES.items()
        ),
        missing=tuple(missing(items)),
        fingerprint=run.fingerprint,
        made=run.made,
        prompts=run.prompts,
        sessions=run.sessions,
        deviations=tuple(plan.workload.deviations),
        texts=run.texts,
        drawn=None if drawn is None else _statistics(drawn),
        prefix_hits=hits,
    )


def _class(one: OfClass) -> ClassAccount:
    return ClassAccount(
        name=one.name,
        requests=ClassCounts(one.sent, one.completed, one.failed, one.cancelled),
        ttft_ms=one.ttft_ms,
        tpot_ms=one.tpot_ms,
        e2e_ms=one.e2e_ms,
        e2e_per_token_ms=one.e2e_per_token_ms,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        prompt=ClassPrompts(one.prompt.asked_mean, one.prompt.local_mean, one.prompt.server_mean),
        output=one.output,
        waits=one.waits,
        distributions=ClassDistributions(one.ttft_quantiles),
        ttft_by_length=one.ttft_by_length,
    )


def _success(measurement: Measurement, *, interrupted: bool) -> SuccessRate:
    """Succeeded of ended requests. Those cancelled by a person have not ended; those cancelled at the drain limit failed."""
    failed, ended = failures(measurement.requests, interrupted=interrupted)
    good = ended - failed
    interval = share_interval(good, ended, measurement.requests.outcomes_effective)
    return SuccessRate(good / ended if ended else None, interval, good, ended)


def _requests(measurement: Measurement, warm_up: WarmUp, *, interrupted: bool) -> RequestCounts:
    requests = measurement.requests
    return RequestCounts(
        sent=requests.sent,
        completed=requests.completed,
        failed=requests.failed,
        cancelled=requests.cancelled,
        by_error=requests.by_error,
        failed_share_ci95=share_interval(
            *failures(requests, interrupted=interrupted), requests.outcomes_effective
        ),
        warmup=WarmUpCount(warm_up.requests, warm_up.completed),
        lead_in=requests.lead_in,
        lead_out=requests.lead_out,
    )


def _window(plan: Plan, measurement: Measurement) -> Window:
    window = measurement.window
    return Window(
        start=moment(window.start_wall_ns) if window.start_wall_ns is not None else None,
        duration_s=window.duration_s,
        definition=WINDOWS[window.definition] + DRAINS[plan.load.duration_s is not None],
        steady_start_s=window.steady_start_s,
        steady_end_s=window.steady_end_s,
    )


def _load(plan: Plan, run: RunFacts, measurement: Measurement, arrival: ArrivalCheck | None) -> LoadAccount:
    of = measurement.load
    return LoadAccount(
        model=plan.load.model,
        offered=_offered(plan, of.offered_rate),
        trace=_trace(plan, run.trace),
        held=measurement.held,
        achieved=AchievedLoad(of.achieved_request_s, of.concurrency_mean, of.concurrency_max),
        lateness_ms=of.lateness_ms,
        lateness_causes_ms=of.lateness_causes_ms,
        lateness_shares=None if of.lateness_shares is None else LatenessShares(**of.lateness_shares),
        arrival_check=None if arrival is None else _arrival(arrival),
    )


def _offered(plan: Plan, rate: float | None) -> OfferedLoad:
    load = plan.load
    closed, users = load.model == "closed", load.model == "users"
    conversations = not users and plan.workload.turns is not None
    sessions = not users and isinstance(plan.workload, SessionsWorkload)
    return OfferedLoad(
        rate=rate,
        rate_of=None
        if closed
        else "sessions"
        if sessions
        else "conversations"
        if conversations
        else "requests",
        concurrency=load.concurrency if closed else None,
        users=load.users if users else None,
        user_rate=load.user_rate if users else None,
        arrival=None if closed else load.arrival,
        burstiness=load.burstiness if not closed and load.arrival == "gamma" else None,
    )


def _arrival(check: ArrivalCheck) -> ArrivalStatistics:
    return ArrivalStatistics(
        rate=check.rate,
        rate_expected=check.rate_expected,
        dispersion=check.dispersion,
        dispersion_expected=check.dispersion_expected,
        lag1=check.lag1,
        lag1_limit=None if check.lag1_limit is None else max(abs(limit) for limit in check.lag1_limit),
    )


def _trace(plan: Plan, facts: TraceFacts | None) -> TraceAccount | None:
    """The trace that was replayed: the facts of run.json, and the plan's window and speed."""
    if plan.trace is None or facts is None:
        return None
    window = {name: getattr(plan.trace, name) for name in ("speed", "start_s", "end_s")}
    repeated = set(TraceAccount.__struct_fields__) - window.keys()
    return TraceAccount(**window, **{name: getattr(facts, name) for name in repeated})


def _statistics(drawn: DrawnRequests) -> RequestStatistics:
    return RequestStatistics(*(getattr(drawn, name) for name in RequestStatistics.__struct_fields__))


def _tokens(plan: Plan, run: RunFacts, measurement: Measurement) -> TokenAccount:
    tokens = measurement.tokens
    prompt, output = tokens.prompt, tokens.output
    own = run.tokenizer
    return TokenAccount(
        count_source=tokens.count_source,
        tokenizer=TokenizerAccount(
            own.kind, own.name, own.version, own.vocab_size, own.source, plan.tokenizer.method, own.learned
        ),
        itl_method=tokens.itl_method,
        single_token_share=tokens.single_token_share,
        events=tokens.events,
        tokens=None if tokens.tokens is None else round(tokens.tokens),
        tokens_per_event=tokens.tokens_per_event,
        prompt=PromptLengths(
            asked_mean=prompt.asked_mean,
            sent_mean=prompt.local_mean,
            server_mean=prompt.server_mean,
            misses=prompt.misses,
            counted=prompt.counted,
            template=run.template,
        ),
        output=OutputLengths(
            asked_mean=output.asked_mean,
            local_mean=output.local_mean,
            server_mean=output.server_mean,
            misses=output.misses,
            counted=output.counted,
        ),
        chunk_tokens=tokens.chunk_tokens,
        system=tokens.system,
    )
