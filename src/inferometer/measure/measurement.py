"""A measurement: everything a run's record says about the server, the load and the instrument, as one frozen tree.

Names are those of `summary.json`. Metrics are made of samples: successful requests
of the measured phase. Failures are counted, never averaged in. `excluded` says for how many samples a metric is undefined.

Throughput over the steady span counts tokens and requests by arrival time, whichever side of the span their request began;
input tokens count when the request's first token arrived. `whole_run` is the article's: totals over first send to last end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.journal.schema import EventClass, Outcome
from inferometer.measure.backlog import Backlog, backlogs
from inferometer.measure.breakdown import Conversations, Held, OfClass, by_class, conversations, held
from inferometer.measure.count_gaps import CountGaps, count_gaps
from inferometer.measure.delivery import Delivery, ItlMethod
from inferometer.measure.dependence import binned, effective_size
from inferometer.measure.distributions import Distributions, distributions
from inferometer.measure.drift import Drift, drift_of
from inferometer.measure.filling import Filling, filling
from inferometer.measure.instrument import Instrument, instrument, losses
from inferometer.measure.itl_shape import ItlShape, itl_shape
from inferometer.measure.large_arrays import order_by
from inferometer.measure.length_wait import LengthWait, length_wait
from inferometer.measure.lengths import (
    NOTHING_PROBED,
    Lengths,
    Probed,
    Spread,
    cached_beyond_template,
    learned_lengths,
    output_lengths,
    prompt_lengths,
    server_lengths,
    spread,
)
from inferometer.measure.load import (
    Causes,
    Span,
    Spans,
    Sweep,
    TokensInFlight,
    causes,
    first_wave,
    first_wave_of_users,
    lateness_ms,
    spans,
    tokens_in_flight,
)
from inferometer.measure.machine_figures import MachineSeen
from inferometer.measure.machines import machines_seen
from inferometer.measure.record import Floats, Record, counted
from inferometer.measure.samples import Samples, values_of
from inferometer.measure.server import Preempted, Server, preempted, server_seen
from inferometer.measure.stats import describe, percentile
from inferometer.measure.steady import Steady, steady
from inferometer.measure.system_tokens import SystemTokens, system_tokens
from inferometer.measure.throughput import rates
from inferometer.metrics.catalogue import METRICS, Metrics, Rates, stem
from inferometer.metrics.statistics import Interval, Stats
from inferometer.plan.schema import Load, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import AnyRows
from inferometer.telemetry.machines.tracks import MachineTracks
from inferometer.telemetry.metrics.normalised import Translated
from inferometer.units import NS_PER_S

INPUT_BUCKETS = (0, 256, 512, 1024, 2048, 4096)
"""Lower ends of the TTFT buckets by input tokens (draft 5.1.4.2); the last is open."""

VARIANT_SHARE = 0.05
"""First tokens closer than a twentieth of TTFT are one: a role event of its own, in the packet before the first token."""

SELDOM_HELD = 0.01
"""Users of whom more requests wait slow down while the server fills up: what is missing is not known."""

LENGTHS = ("input_tokens", "output_tokens")
OTHER_FIRST_TOKENS = ("ttft_any_ms", "ttfo_ms", "ttfe_ms")
"""Metrics that are TTFT itself where the first event, or the first with text, is the first visible token, as it often is."""

WindowRule = Literal["open-last-90", "closed-full-last-90", "none"]


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of the measured phase, counted; `warmup_*` those before it, `lead_in` and `lead_out` those around it that kept a
    closed loop's slots in use, `first_wave` those sent before all slots were (measure/load.py). `unaccounted` were lost with
    workers that died.

    `outcomes_effective`: as many independent outcomes tell as much of the success rate, for failures come in bursts.
    """

    sent: int
    completed: int
    failed: int
    cancelled: int
    by_error: dict[str, int]
    unaccounted: int
    warmup_sent: int
    warmup_completed: int
    warmup_output_tokens: int
    lead_in: int
    lead_out: int
    first_wave: int | None
    finish_reasons: dict[str, int]
    outcomes_effective: float


@dataclass(frozen=True, slots=True)
class Window:
    """The measured phase. `start_ns` on the run's clock, `start_wall_ns` UTC since 1970; the spans in s from the start.

    `definition`: how the steady span was found; `none` if there is none and its rates are None.
    """

    start_ns: int | None
    start_wall_ns: int | None
    duration_s: float | None
    definition: WindowRule
    load_start_s: float | None
    load_end_s: float | None
    steady_start_s: float | None
    steady_end_s: float | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """TTFT in ms of the samples whose input tokens lie in [from_tokens, to_tokens)."""

    from_tokens: int
    to_tokens: int | None
    n: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates over the steady span, over the whole run, and the cached share of prompt tokens if the server told.

    `cached_beyond_template` leaves the chat template's own tokens out, which every prompt begins with (measure/lengths.py).
    `cached_prefix_share`: of the tokens that requests have in common with others, min(cached, shared) a request (draft 5.7.4).
    `ci95`: intervals of the steady rates. `cached_beyond_shared`: what is cached beyond the template, what a request shares
    with others and what its conversation repeats.
    """

    steady: Rates[float]
    whole_run: Rates[float]
    cached_input_share: float | None
    cached_beyond_template: float | None
    cached_prefix_share: float | None
    ci95: Rates[Interval]
    cached_beyond_shared: float | None


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """The load as it was: sends per second and requests in flight over the load span, lateness in ms, and of
    what it is made.
    """

    model: Literal["closed", "open", "users"]
    offered_rate: float | None
    offered_concurrency: int | None
    achieved_request_s: float | None
    concurrency_mean: float | None
    concurrency_max: int
    lateness_ms: Stats | None
    lateness_causes_ms: Causes | None
    lateness_shares: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Who counted tokens, and how events carry them. Totals are over samples; `*_where_both` over those with usage. Whole
    answers, which were not streamed, have no `events_where_both`. `gaps`: what of the differences does not cancel out.

    `chunk_tokens`: tokens of each chunk (draft 4.6.3); None where nothing was streamed. `delivery`: how answers arrived;
    `length_wait`: those whose TTFT says that they were held until they were whole, None: no such evidence. `tokens`: None where
    nobody counted some of them. `system`: what a compound system says of all its steps; None for all others.
    """

    count_source: str | None
    by_source: dict[str, int]
    itl_method: ItlMethod
    single_token_share: float | None
    events: int
    tokens: float | None
    tokens_per_event: float | None
    itl_zero_share: float | None
    prompt: Lengths
    output: Lengths
    server_where_both: int
    events_where_both: int
    silent_events_where_both: int
    stops_where_both: int
    reasoning_where_both: int
    server_where_local: int
    local_where_both: int
    reasoning_where_local: int
    words_where_both: int
    gaps: CountGaps
    chunk_tokens: Spread | None
    delivery: Delivery
    length_wait: LengthWait | None
    system: SystemTokens | None


@dataclass(frozen=True, slots=True)
class Measurement:
    """All of it."""

    requests: Requests
    window: Window
    metrics: Metrics
    excluded: dict[str, int]
    ttft_by_input: tuple[Bucket, ...]
    by_class: tuple[OfClass, ...]
    conversations: Conversations | None
    held: Held | None
    throughput: Throughput
    load: LoadSeen
    tokens: Tokens
    instrument: Instrument
    server: Server | None
    preempted: Preempted | None
    ttft_variant_share: float | None
    first_event_classes: dict[str, int]
    steady: Steady | None
    filling: Filling | None
    drift: Drift | None
    backlogs: tuple[Backlog, ...]
    in_flight_tokens: TokensInFlight | None
    itl_shape: ItlShape | None
    distributions: Distributions
    refusals: Refusals
    machines: tuple[MachineSeen, ...]


def samples_of(plan: Plan, record: Record) -> Samples:
    """The record's samples; `measure` and `series` can share them."""
    return Samples(
        record,
        streamed=bool(plan.target.stream),
        reference=_reference(plan),
        native=plan.tokenizer.own,
        objectives=plan.slos,
    )


def _reference(plan: Plan) -> bool:
    return plan.tokenizer.method == "reference"


def measure(
    plan: Plan,
    record: Record,
    samples: Samples | None = None,
    told: Sequence[Translated] = (),
    probed: Probed = NOTHING_PROBED,
    machines: Sequence[MachineTracks] = (),
) -> Measurement:
    """Measure a record under the plan that made it. `samples`: those of `samples_of`, if already taken; `told`: what endpoints
    said in the meantime; `probed`: what was found of the server before the load; `machines`: what machines did meanwhile."""
    samples = samples_of(plan, record) if samples is None else samples
    metrics, excluded = _metrics(samples)
    sweep = Sweep(record)
    closed = plan.load.model == "closed"
    slots = plan.load.concurrency if plan.keeps_full else None
    users = held(record)
    parts = spans(record, sweep, slots, float(np.median(samples.e2e)) if len(samples) else None)
    return Measurement(
        requests=_requests(record, samples, slots, waiting=users is not None and users.mostly),
        window=_window(record, parts, keeps_full=plan.keeps_full),
        metrics=metrics,
        excluded=excluded,
        ttft_by_input=_ttft_by_input(samples),
        by_class=by_class(record, samples),
        conversations=conversations(record, samples),
        held=users,
        throughput=_throughput(record, samples, parts, probed, plan.tokenizer.own),
        load=_load(record, sweep, parts, plan.load),
        tokens=_tokens(record, samples, plan, probed),
        instrument=instrument(record, samples, parts),
        server=server_seen(told, record, parts.load, streamed=bool(plan.target.stream)),
        preempted=preempted(told, record),
        ttft_variant_share=_variant_share(samples),
        first_event_classes=_first_event_classes(record, samples),
        steady=steady(record, samples, sweep, parts.steady, told, closed=closed),
        filling=filling(samples, parts) if _sends_regardless(plan, record, users) else None,
        drift=drift_of(record, samples, parts.steady, slots, sweep),
        backlogs=backlogs(record, sweep, parts.load, told, streamed=bool(plan.target.stream)),
        in_flight_tokens=tokens_in_flight(record, parts.steady or parts.load, reference=_reference(plan)),
        itl_shape=itl_shape(samples, streamed=bool(plan.target.stream)),
        distributions=distributions(samples),
        refusals=refusals(record),
        machines=machines_seen(machines, record, samples),
    )


def _sends_regardless(plan: Plan, record: Record, users: Held | None) -> bool:
    """Whether requests are sent at a steady rate, whatever becomes of those before them."""
    if plan.load.model == "users":
        return users is not None and users.requests <= SELDOM_HELD * users.of
    return plan.load.model == "open" and record.replay is None


def _metrics(samples: Samples) -> tuple[Metrics, dict[str, int]]:
    """The statistics of each metric, and for how many samples it is undefined. One metric's values at a time."""
    described: dict[str, Stats | None] = {}
    excluded: dict[str, int] = {}
    for name, metric in METRICS.items():
        if metric.pooled:
            described[name] = samples.pooled_described(stem(name))
            continue
        values = values_of(samples, name)
        excluded[name] = int(np.isnan(values).sum())
        if name in OTHER_FIRST_TOKENS and np.array_equal(values, samples.ttft, equal_nan=True):
            described[name] = described["ttft_ms"]
        else:
            described[name] = _described(samples, name, values)
    return Metrics(**described), excluded


def _described(samples: Samples, name: str, values: Floats) -> Stats | None:
    # Lengths are drawn by the plan, whatever the load.
    if name in LENGTHS:
        return describe(values[samples.order])
    return samples.described(values, waits=METRICS[name].waits)


def _requests(record: Record, samples: Samples, slots: int | None, *, waiting: bool) -> Requests:
    """`waiting`: users who wait for answers more often than not, and so are a closed loop in effect."""
    measured, warm = record.measured, ~record.of_load
    ok, cancelled = record.ok, record.outcome.are(Outcome.CANCELLED)
    errors = measured & ~ok & ~cancelled
    usage, local = record.usage_output, record.output_tokens_local
    warm_tokens = np.where(usage.valid, usage.values, local.values)  # null columns hold 0
    reasons = np.zeros(len(record), np.bool_)
    reasons[samples.rows] = True
    latencies = (samples.ttft if samples.streamed else samples.e2e)[samples.order]
    return Requests(
        sent=int(measured.sum()),
        completed=len(samples),
        failed=int(errors.sum()),
        cancelled=int((measured & cancelled).sum()),
        by_error=record.outcome.counts(errors),
        unaccounted=sum(loss.lost for loss in losses(record)),
        warmup_sent=int(warm.sum()),
        warmup_completed=int((warm & ok).sum()),
        warmup_output_tokens=int(warm_tokens[warm & ok].sum()),
        lead_in=int((record.lead & (record.cycle == 0)).sum()),
        lead_out=int((record.lead & (record.cycle > 0)).sum()),
        first_wave=first_wave_of_users(record, latencies) if waiting else first_wave(record, slots),
        finish_reasons=record.finish_reason.counts(reasons),
        outcomes_effective=_effective_outcomes(record),
    )


def _effective_outcomes(record: Record) -> float:
    """Successes and failures in order of their ends, as a series of ones and zeros."""
    ended = np.flatnonzero(record.measured)
    order = ended[order_by(record.t_end[ended], record.ok[ended].astype(np.int64))]
    ok = record.ok[order].astype(np.float64)
    return len(ok) * min(1.0, effective_size(series) / len(series)) if len(series := binned(ok)) else 0.0


def _window(record: Record, parts: Spans, *, keeps_full: bool) -> Window:
    if parts.run is None:
        return Window(None, None, None, "none", None, None, None, None)
    start = parts.run.start
    rule: WindowRule = "none"
    if parts.steady is not None:
        rule = "closed-full-last-90" if keeps_full else "open-last-90"
    offset = record.pulse.clock_offset_ns
    return Window(
        start,
        start + int(offset[0]) if len(offset) else None,
        parts.run.seconds,
        rule,
        *_from_start(parts.load, start),
        *_from_start(parts.steady, start),
    )


def _from_start(span: Span | None, start: int) -> tuple[float | None, float | None]:
    return (None, None) if span is None else ((span.start - start) / NS_PER_S, (span.end - start) / NS_PER_S)


def _ttft_by_input(samples: Samples) -> tuple[Bucket, ...]:
    defined = ~np.isnan(samples.ttft) & ~np.isnan(samples.counts.input)
    where = np.searchsorted(INPUT_BUCKETS, samples.counts.input, side="right") - 1
    buckets = []
    for number, low in enumerate(INPUT_BUCKETS):
        high = INPUT_BUCKETS[number + 1] if number + 1 < len(INPUT_BUCKETS) else None
        ordered = np.sort(samples.ttft[defined & (where == number)])
        points = (percentile(ordered, p) if len(ordered) else None for p in (0.5, 0.9, 0.95, 0.99, 0.999))
        buckets.append(Bucket(low, high, len(ordered), *points))
    return tuple(buckets)


def _throughput(record: Record, samples: Samples, parts: Spans, probed: Probed, native: bool) -> Throughput:
    counts = samples.counts
    told = record.usage_cached.valid[samples.rows] & ~np.isnan(counts.server_input)
    prompt = float(counts.server_input[told].sum())
    cached = record.usage_cached.values[samples.rows][told].astype(np.float64)
    beyond = cached_beyond_template(record, samples, told, probed, native=native)
    steady, whole, intervals = rates(samples, parts)
    share, share_beyond = (float(part.sum()) / prompt if prompt else None for part in (cached, beyond))
    shared = record.input_tokens_shared[samples.rows][told].astype(np.float64)
    prefix = float(np.minimum(cached, shared).sum()) / float(shared.sum()) if shared.any() else None
    own = shared + record.input_tokens_repeated[samples.rows][told]
    unshared = float(np.maximum(beyond - own, 0.0).sum()) / prompt if prompt else None
    return Throughput(steady, whole, share, share_beyond, prefix, intervals, unshared)


def _load(record: Record, sweep: Sweep, parts: Spans, load: Load) -> LoadSeen:
    sends = sweep.sends
    elapsed = (int(sends[-1]) - int(sends[0])) / NS_PER_S if len(sends) else 0.0
    mean = sweep.mean(parts.load)
    parts_ms, shares = causes(record)
    return LoadSeen(
        model=load.model,
        offered_rate=_offered_rate(record, load),
        offered_concurrency=load.concurrency if load.model == "closed" else None,
        achieved_request_s=(len(sends) - 1) / elapsed if elapsed > 0 else None,
        concurrency_mean=sweep.mean(parts.run) if mean is None else mean,
        concurrency_max=sweep.maximum(),
        lateness_ms=describe(lateness_ms(record)),
        lateness_causes_ms=parts_ms,
        lateness_shares=shares,
    )


def _offered_rate(record: Record, load: Load) -> float | None:
    return load.offered_rate if record.replay is None else record.replay.rate


def _tokens(record: Record, samples: Samples, plan: Plan, probed: Probed) -> Tokens:
    counts, events = samples.counts, samples.text_events
    by_source = counts.by_source()
    carried = np.where(np.isnan(samples.carried), counts.streamed, samples.carried)
    total_events, total_tokens = int(events.sum()), _total(carried)
    usage = ~np.isnan(counts.server_output)
    # A text with U+FFFD has lost characters, so its count says nothing of the tokens it was made of.
    both = usage & ~np.isnan(counts.local_output) & ~record.text_lossy[samples.rows]
    silent, stops = _silent_events(record, samples), record.finish_reason.are("stop")[samples.rows]
    return Tokens(
        count_source=max(by_source, key=lambda name: by_source[name]) if by_source else None,
        by_source=by_source,
        itl_method=samples.itl_method,
        single_token_share=samples.single_token_share,
        events=total_events,
        tokens=total_tokens,
        tokens_per_event=total_tokens / total_events if total_events and total_tokens is not None else None,
        itl_zero_share=_zero_share(samples),
        prompt=_prompts(record, samples, plan, probed),
        output=output_lengths(record, samples, forced=plan.workload.forced),
        server_where_both=int(counts.server_output[usage].sum()),
        events_where_both=int(events[usage].sum()) if samples.streamed else 0,
        silent_events_where_both=int(silent[usage].sum()),
        stops_where_both=int(stops[usage].sum()),
        reasoning_where_both=int(counts.reasoning[usage].sum()),
        server_where_local=int(counts.server_output[both].sum()),
        local_where_both=int(counts.local_output[both].sum()),
        reasoning_where_local=int(counts.reasoning[both].sum()),
        words_where_both=int(record.text_words[samples.rows][usage].sum()),
        gaps=count_gaps(
            counts,
            events.astype(np.float64),
            silent,
            record.text_words[samples.rows],
            stops,
            record.text_lossy[samples.rows],
        ),
        chunk_tokens=None
        if total_tokens is None or not samples.streamed
        else spread(samples.chunks.tokens(carried)),
        delivery=samples.delivery,
        length_wait=length_wait(samples),
        system=system_tokens(record, samples.rows),
    )


def _total(tokens: Floats) -> float | None:
    """None where one of them is not known."""
    return None if np.isnan(tokens).any() else float(tokens.sum())


def _zero_share(samples: Samples) -> float | None:
    """Share of the gaps between text events that are zero."""
    gaps = samples.event_gaps
    return float((gaps == 0).mean()) if len(gaps) and samples.streamed else None


def _prompts(record: Record, samples: Samples, plan: Plan, probed: Probed) -> Lengths:
    with_template = bool(plan.workload.count_template)
    if isinstance(plan.workload, SessionsWorkload):
        return server_lengths(samples)
    if probed.template is not None:
        return learned_lengths(record, samples, probed.template, with_template=with_template)
    # A file's prompts are as long as they are: what can be wrong is that the server does not read them to their end.
    given = isinstance(plan.workload, AnyRows)
    native = plan.tokenizer.own and not given
    templated = plan.target.interface.applies_template
    return prompt_lengths(
        record, samples, native=native, with_template=with_template, alike=given, templated=templated
    )


def _silent_events(record: Record, samples: Samples) -> Floats:
    """Per sample, deltas without text that may each be a token: one that is part of a character, whose text comes later.

    A character of k bytes has at most k tokens, and k - 1 of them show nothing; further such deltas are padding. Where
    characters were lost (U+FFFD) or there is no text, it cannot be told.
    """
    empty = counted(record.event_class == EventClass.EMPTY, record.event_offsets)
    counts: Floats = empty[samples.rows].astype(np.float64)
    size, chars = record.text_bytes[samples.rows], record.text_chars[samples.rows]
    told = size.valid & ~record.text_lossy[samples.rows]
    most = np.maximum(size.values - chars.values, 0)
    return np.where(told, np.minimum(counts, most), counts)


def _variant_share(samples: Samples) -> float | None:
    """Share of samples with a TTFT in which ttft_any, ttfo or ttfe is elsewhere by VARIANT_SHARE of it, or undefined."""
    defined = ~np.isnan(samples.ttft)
    if not defined.any():
        return None
    ttft = samples.ttft[defined]
    variants = (samples.ttft_any, samples.ttfo, samples.ttfe)
    same = np.all(
        [np.abs(one[defined] - ttft) <= VARIANT_SHARE * ttft for one in variants], axis=0
    )  # NaN is never
    return float(1.0 - same.mean())


def _first_event_classes(record: Record, samples: Samples) -> dict[str, int]:
    starts = record.event_offsets[:-1][samples.rows]
    some = np.diff(record.event_offsets)[samples.rows] > 0
    tally = np.bincount(record.event_class[starts[some]], minlength=len(EventClass))
    return {one.name.lower(): int(tally[one]) for one in EventClass if tally[one]}


# Requests that were refused on grounds of policy, by what said so (draft 4.8.1).
#
# | signal          | is                                                                                        |
# | --------------- | ----------------------------------------------------------------------------------------- |
# | `finish_reason` | the answer ended for `content_filter` or `refusal`                                        |
# | `refusal_field` | text came in the `refusal` field of a delta or message                                    |
# | `policy_status` | a status that is not 2xx, with an error code that names a policy (drive/exchange.py)      |
#
# Only structured signals count; text is never guessed at. A request counts once, by the first of the three that it gave.


REASONS = ("content_filter", "refusal")
"""Finish reasons of a refusal."""
OF_FILTERS = ("finish_reason", "policy_status")
"""Signals of a filter at work. A refusal in the answer's own field is the model's."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Measured requests that were refused: all, and by signal."""

    requests: int
    by_signal: dict[str, int]


def refusals(record: Record) -> Refusals:
    """Count them; every signal is there, if only with 0."""
    refused = record.measured & record.outcome.are(Outcome.REFUSED)
    by_status = refused & record.status.valid & ((record.status.values < 200) | (record.status.values >= 300))
    by_reason = refused & ~by_status & np.any([record.finish_reason.are(name) for name in REASONS], axis=0)
    by_signal = {
        "finish_reason": int(by_reason.sum()),
        "refusal_field": int((refused & ~by_reason & ~by_status).sum()),
        "policy_status": int(by_status.sum()),
    }
    return Refusals(int(refused.sum()), by_signal)
