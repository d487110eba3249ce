"""The checks, one pure function each: a number, a limit with its reason, a status.

A check that cannot be made says `na` when it does not concern the run, `unsure` when it does and the evidence is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inferometer.documents.summary import WarmUp
from inferometer.documents.verdict import CheckStatus
from inferometer.documents.workload import RequestStatistics
from inferometer.judge.length_checks import inside
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.load import (
    Span,
    concurrency_but_for_failures,
    excused_ms,
    lateness_ms,
    parts_ns,
)
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.machine_figures import MachineSeen
from inferometer.measure.measurement import Measurement, Requests, Tokens
from inferometer.measure.record import Record
from inferometer.measure.stats import describe
from inferometer.measure.survivors import censored
from inferometer.metrics.statistics import Stats
from inferometer.plan.schema import Plan
from inferometer.printable import printable
from inferometer.units import NS_PER_MS, NS_PER_S

CLIENT_LIMIT = "client_limit"
"""The outcome of requests that this machine could not connect (docs/definitions.md)."""
ERROR_RATE = 0.01
"""Above one failure in a hundred, the successes are a selection and P99 is out of sight."""

BENT_SHARE = 0.05
"""A figure that is off by more than a twentieth is another figure."""

TOKEN_GAP = 0.05
"""Throughput cannot be better known than its tokens are counted."""

TOKEN_BIAS = 0.01
"""A difference between counts that intervals of throughput do not show, for they are of chance alone: it is told."""

REENCODED = 1.0
"""A text that is encoded again may have other tokens than it was made of, but hardly twice as many."""

LATENESS_MS = 1.0
LATENESS_SHARE = 0.05
LATENESS_LEAST_MS = 0.2
"""Open loop: a server that takes requests in order finishes each at most as much later as its latest arrival was late, whatever
the rate (docs/limits.md). So lateness must be small against a latency: at most a twentieth of the median TTFT and at most 1 ms,
the smaller of the two. Below 0.2 ms it is smaller than what a figure may be wrong by for other reasons."""

UNPREPARED_SHARE = 0.01
"""What is decided at P99 can be the doing of one request in a hundred."""

LATENESS_SLOT_SHARE = 0.01
"""Closed loop: a slot that waits a hundredth of its time for the client lowers the load by as much."""

MERGED_SHARE = 0.01
"""Kernel stamps are right however late the read. What a late read can still do is find two tokens of one stream, which then
share the later one's stamp; one gap in a hundred made zero that way moves no percentile printed here."""

RECEIVE_LAG_USER_MS = 1.0
"""Without kernel stamps the lag is part of every latency measured."""

WORKER_CPU = 0.9
"""A queue in front of a worker that is busy nine tenths of the time is ten times as long as its service."""

OWN_CPU = 0.02
"""A worker whose core another process takes for a fiftieth of the time is late by milliseconds now and then; the watch over a
run itself, a few looks a second, stays far below."""

FIRST_WAVE_SHARE, FIRST_WAVE_MEAN, FIRST_WAVE_LEAST = 0.005, 0.1, 2.0
"""A wave of w requests on an idle server waits for up to w prefills, w / 2 on average, which the later ones do not. Of n
requests it adds w^2 / 2n of a prefill to the mean TTFT, at most a twentieth for w <= sqrt(0.1 n); and at 0.5 % of n it is at
most half of what a P99 is made of. The client's reaction leaves a slot or two free at any time."""

CONCURRENCY_HELD = 0.95
"""A twentieth of the slots empty is the most a label "concurrency N" can bear."""

MOST_SILENT = 8
"""Parts of machines that a sentence names."""
HELD_SHARE = 0.01

DRAWN_LEAST = 1_000
"""Of fewer draws a P99, and the mean of a skewed length, say little."""


OPENED_SHARE = 0.5
"""A server that keeps connections alive needs new ones for few requests only."""

SAMPLES_P99 = 1_000
SAMPLES_P99_9 = 10_000
"""Draft 5.1.4.3."""

CLOCK_STEP_MS, SUSPENDED_MS = 1.0, 1_000.0
"""Kernel stamps are wall-clock times: a step of the wall clock is an error of the same size in a latency."""

WARMUP_REQUESTS = 100
WARMUP_TOKENS = 10_000
"""Draft 4.5.1: both."""

FEW_SAMPLES = 2
"""Below two there is no spread and no interval."""


def _within(value: float, limit: float) -> CheckStatus:
    return "pass" if value <= limit else "fail"


def error_rate(plan: Plan, measurement: Measurement, record: Record) -> Check:
    """Share of ended requests that did not succeed. Cancelled ones count when the drain limit, not a person, ended them.

    Where few failed, and P99 would be longer by more than BENT_SHARE with their waits (measure/survivors.py): that, unsure.
    A request that this machine could not connect was not sent, and says nothing of the server: one is too many.
    """
    seen = measurement.requests
    failed, ended = failures(seen, interrupted=record.interrupted)
    cancelled = failed - seen.failed
    by_error = dict(seen.by_error) | ({"cancelled": cancelled} if cancelled else {})
    facts = {"ended": ended, "failed": failed, "by_error": by_error}
    if ended == 0:
        return Check("error_rate", "unsure", None, ERROR_RATE, facts=facts)
    if own := seen.by_error.get(CLIENT_LIMIT, 0):
        return Check("error_rate", "fail", own / ended, 0.0, facts=facts | {"of": "own"})
    share = failed / ended
    bent = censored(record, streamed=bool(plan.target.stream)) if failed else None
    if share <= ERROR_RATE and bent is not None and bent.share > BENT_SHARE:
        facts |= {"of": "p99", "series": bent.series, "p99_ms": bent.p99, "p99_with_ms": bent.p99_with}
        return Check("error_rate", "unsure", bent.share, BENT_SHARE, facts=facts | {"waited": bent.failed})
    return Check("error_rate", _within(share, ERROR_RATE), share, ERROR_RATE, facts=facts)


def failures(requests: Requests, *, interrupted: bool) -> tuple[int, int]:
    """Requests that failed, and that ended. Cancelled at the drain limit is failed; cancelled by a person is neither."""
    failed = requests.failed + (0 if interrupted else requests.cancelled)
    return failed, requests.completed + failed


def token_counts(measurement: Measurement, *, native: bool, ids: bool = False) -> Check:
    """Relative gap between the server's output tokens and the nearest count of the client's own.

    The client counts text events, with or without the deltas whose text the server held back, and, if the declared tokenizer
    is the model's, tokens of the text. A reply that stopped by itself may hold one end-of-sequence token without text. Fewer
    tokens than events with text is a contradiction; more may mean several tokens an event, which only the model's own
    tokenizer could count: unsure. A server whose count lies between events, which it may merge, and tokens of the text, which
    re-encoding may multiply, agrees with both.

    Reasoning that usage counts may not have been sent, or in a summary: between the server's count with and without it nothing
    contradicts, and what of it did not arrive is the server's word alone. More than a twentieth of that is unsure.

    Differences of single answers that cancel in the sums count as well (measure/count_gaps.py). Where all that agrees, or there
    are no counts of ours, something else may still say that the server's are none (`_doubt`): unsure.

    `ids`: answers are token ids, which the client counts itself, however many are in an event; an answer whose own counts
    contradict them has failed.
    """
    tokens = measurement.tokens
    if tokens.system is not None:
        return inside("token_counts")
    facts: Facts = {
        "server": tokens.server_where_both,
        "events": tokens.events_where_both,
        "tokenizer": tokens.local_where_both,
        "words": tokens.words_where_both,
        "by_source": dict(tokens.by_source),
    }
    if not measurement.requests.completed:  # what is missing is answers, which is another check's matter
        return Check("token_counts", "na", None, TOKEN_GAP, facts=facts)
    if ids:
        came = {"ids": tokens.server_where_both, "by_source": dict(tokens.by_source), "against": "ids"}
        return Check("token_counts", "pass", 0.0, TOKEN_GAP, facts=came)
    check = _nearest(tokens, facts, native=native)
    doubt = _doubt(tokens, native=native) if check.status in ("pass", "note") else None
    if doubt is None:
        return check
    name, share, limit = doubt
    return Check(check.code, "unsure", share, limit, facts=facts | {"against": name})


def _doubt(tokens: Tokens, *, native: bool) -> tuple[str, float, float] | None:
    """What speaks against the counts although server and client agree, by what share, and the share allowed: answers hold more
    tokens than the server counted, or were sent in more parts than they have tokens, or nobody counted them."""
    if (more := tokens.gaps.words / tokens.server_where_both) > TOKEN_GAP:
        return "words", more, TOKEN_GAP
    if native and tokens.server_where_local and tokens.local_where_both:
        server, local = tokens.server_where_local, tokens.local_where_both
        if (more := local / server - 1) > REENCODED:
            return "encoded", more, REENCODED
        if (more := server / local - 1) > REENCODED:
            return "parts", more, REENCODED
    if tokens.gaps.estimated > TOKEN_GAP:
        return "estimate", tokens.gaps.estimated, TOKEN_GAP
    return None


def _nearest(tokens: Tokens, facts: Facts, *, native: bool) -> Check:
    """The gap to the nearest count of the client's own."""
    if (
        tokens.server_where_both == 0
    ):  # no answer has both counts, so there are no sums of such answers to tell
        return Check("token_counts", "unsure", None, TOKEN_GAP, facts={"by_source": dict(tokens.by_source)})
    gaps = _count_gaps(tokens, native=native)
    if (
        not gaps
    ):  # whole answers show no events, and this tokenizer is not the model's: the server's word stands alone
        return Check("token_counts", "note", None, TOKEN_GAP, facts=facts)
    against = min(gaps, key=lambda name: gaps[name])
    status = _within(gaps[against], TOKEN_GAP)
    if status == "pass" and gaps[against] > TOKEN_BIAS:
        status = "note"
    if status == "fail" and tokens.server_where_both > tokens.events_where_both:
        if tokens.reasoning_where_both and _reasoning_explains(tokens, native=native):
            facts |= {"against": "reasoning", "reasoning": tokens.reasoning_where_both}
            return Check("token_counts", "unsure", gaps[against], TOKEN_GAP, facts=facts)
        if "tokenizer" not in gaps:
            status = "unsure"
    return Check("token_counts", status, gaps[against], TOKEN_GAP, facts=facts | {"against": against})


def _count_gaps(tokens: Tokens, *, native: bool) -> dict[str, float]:
    """The server's count against each of the client's own."""
    server, stops = tokens.server_where_both, tokens.stops_where_both
    gaps: dict[str, float] = {}
    if tokens.events_where_both:
        of_sums = min(_gap(server, own, stops) for own in _by_events(tokens))
        gaps["events"] = max(of_sums, tokens.gaps.events / server)
    if native and tokens.server_where_local:
        of_sums = _gap(tokens.server_where_local, tokens.local_where_both, stops)
        gaps["tokenizer"] = max(of_sums, tokens.gaps.tokenizer / tokens.server_where_local)
        if tokens.events_where_both <= server <= tokens.local_where_both:
            gaps["both"] = tokens.gaps.both / server
    return gaps


def _by_events(tokens: Tokens) -> tuple[int, int]:
    return tokens.events_where_both, tokens.events_where_both + tokens.silent_events_where_both


def _reasoning_explains(tokens: Tokens, *, native: bool) -> bool:
    """Whether an own count that has fewer tokens than the server has as many as it counts without reasoning, or more."""
    pairs = [(tokens.server_where_both - tokens.reasoning_where_both, own) for own in _by_events(tokens)]
    if native and tokens.server_where_local:
        # The model's own tokenizer knows better than events, which may have been merged.
        pairs = [(tokens.server_where_local - tokens.reasoning_where_local, tokens.local_where_both)]
    return any(own >= shown or _gap(shown, own, tokens.stops_where_both) <= TOKEN_GAP for shown, own in pairs)


def _gap(server: int, own: int, stops: int) -> float:
    """|server - own| / server; up to `stops` more on the server's side are end-of-sequence tokens."""
    excess = server - own
    return (max(0, excess - stops) if excess > 0 else -excess) / server


def lateness(plan: Plan, measurement: Measurement, record: Record) -> Check:
    """t_submit - t_intended, less what is the plan's or the server's: connecting for the request, and back-pressure.

    Open loop: its P99 in ms. One late request, which among fewer than a hundred or so is what P99 is made of, may be chance:
    unsure. Closed loop: its mean as a share of a request's mean time, since a late slot shifts no schedule and only stands
    empty. Of a request that was sent twice, the first time counts.
    """
    late = lateness_ms(record) - excused_ms(record)
    limit, stats = lateness_limit_ms(measurement), describe(late)
    if stats is None:
        return Check("lateness", "na", None, limit, "ms")
    facts = {"loop": plan.load.model, "p50": stats.p50, "p99": stats.p99, "max": stats.max, "n": stats.n}
    facts |= _causes(measurement, float(late.sum()), float(parts_ns(record)["scheduling"].sum()) / NS_PER_MS)
    facts |= _unprepared(record, facts.get("cause"))
    e2e = measurement.metrics.e2e_ms
    if plan.load.model != "closed":
        status = _within(stats.p99, limit)
        if status == "fail" and int((late > limit).sum()) == 1:
            status = "unsure"
        return Check("lateness", status, stats.p99, limit, "ms", facts)
    if e2e is None or e2e.mean <= 0:
        return Check("lateness", "na", None, LATENESS_SLOT_SHARE, "", facts)
    share = stats.mean / (stats.mean + e2e.mean)
    return Check("lateness", _within(share, LATENESS_SLOT_SHARE), share, LATENESS_SLOT_SHARE, "", facts)


def _causes(measurement: Measurement, counted_ms: float, scheduling_ms: float) -> Facts:
    """Facts: the main cause of the lateness that counts and its share of it, and the shares of each cause in all lateness."""
    facts: Facts = {}
    if counted_ms > 0:
        share = min(1.0, scheduling_ms / counted_ms)
        facts |= {"cause": "scheduling" if share >= 0.5 else "socket", "cause_share": max(share, 1.0 - share)}
    shares = measurement.load.lateness_shares or {}
    return facts | {f"{name}_share": share for name, share in shares.items()}


def _unprepared(record: Record, cause: object) -> Facts:
    """Facts: requests of a trace that were not yet made when they were due, if there were any. Where they are as many as P99
    can feel, they are why requests were taken up late."""
    replay = record.replay
    if replay is None or not replay.unprepared:
        return {}
    facts: Facts = {"unprepared": replay.unprepared, "unprepared_ms": replay.unprepared_ms}
    many = replay.unprepared >= UNPREPARED_SHARE * replay.rows
    return facts | ({"cause": "preparation"} if cause == "scheduling" and many else {})


def lateness_limit_ms(measurement: Measurement) -> float:
    """The lateness allowed at P99 in open loop: the smaller of LATENESS_MS and LATENESS_SHARE of the median TTFT (of the median
    latency where nothing was streamed), but LATENESS_LEAST_MS at least."""
    stats = measurement.metrics.ttft_ms or measurement.metrics.e2e_ms
    share = LATENESS_SHARE * stats.p50 if stats else LATENESS_MS
    return min(LATENESS_MS, max(LATENESS_LEAST_MS, share))


def receive_lag(measurement: Measurement) -> Check:
    """What reading late did to the token times: with kernel stamps gaps merged, without them the lag itself (P99, ms)."""
    seen = measurement.instrument
    lag = seen.receive_lag_ms
    facts: Facts = {"source": seen.timestamp_source, "stall_max_ms": seen.stall_max_ms}
    if lag is not None:
        facts |= {"p50": lag.p50, "p99": lag.p99, "max": lag.max}
    if seen.timestamp_source in ("kernel", "modelled"):  # a modelled client has a kernel's stamps
        share = seen.merged_share
        status: CheckStatus = "na" if share is None else _within(share, MERGED_SHARE)
        return Check("receive_lag", status, share, MERGED_SHARE, "", facts)
    if lag is None:
        return Check("receive_lag", "na", None, RECEIVE_LAG_USER_MS, "ms", facts)
    return Check(
        "receive_lag", _within(lag.p99, RECEIVE_LAG_USER_MS), lag.p99, RECEIVE_LAG_USER_MS, "ms", facts
    )


def worker_cpu(measurement: Measurement, record: Record) -> Check:
    """CPU share of the busiest worker; of several hosts, whose it is."""
    shares = [share for share in measurement.instrument.cpu_fraction if share is not None]
    if not shares:
        return Check("worker_cpu", "na", None, WORKER_CPU)
    seen = measurement.instrument
    facts = {
        "workers": seen.workers,
        "each_share": list(seen.cpu_fraction),
        "waited_share": [share for share in seen.run_delay_fraction if share is not None],
    }
    busiest = np.array([seen.cpu_fraction.index(max(shares))])
    if host := next((one.name for one in record.hosts if one.of(busiest).any()), None):
        facts["host"] = host
    return Check("worker_cpu", _within(max(shares), WORKER_CPU), max(shares), WORKER_CPU, facts=facts)


def own_cpu(measurement: Measurement) -> Check:
    """CPU time of our processes other than the workers while measuring, as a share of one core's.

    A note where they have to share a core with a worker, since there is none beyond one for each. What harm that did is what
    `lateness` and `receive_lag` measure; this names the cause.
    """
    seen = measurement.instrument
    found = None if seen.own_cpu is None else seen.own_cpu.fraction
    if seen.own_cpu is None or found is None:
        return Check("own_cpu", "na", None, OWN_CPU)
    one = seen.own_cpu
    facts: Facts = {"conductor_s": one.conductor_s, "elapsed_s": one.elapsed_s, "cores": one.cores}
    if one.scraper_s is not None:
        facts["scraper_s"] = one.scraper_s
    shared = one.cores <= seen.workers
    return Check("own_cpu", "note" if shared and found > OWN_CPU else "pass", found, OWN_CPU, facts=facts)


def concurrency_held(plan: Plan, measurement: Measurement, record: Record) -> Check:
    """Mean number in flight while all slots should be taken, as a share of the concurrency asked for. Where people think
    between turns they are not taken all the time. A note where the server emptied them, by ending requests with an error sooner
    than it answers others: the client sent as many as asked, and how many failed is another check's subject."""
    load, window = measurement.load, measurement.window
    requested, mean = load.offered_concurrency, load.concurrency_mean
    if not plan.keeps_full or requested is None or mean is None or window.load_start_s is None:
        return Check("concurrency_held", "na", None, CONCURRENCY_HELD)
    share = mean / requested
    facts: Facts = {"asked": requested, "mean": mean, "max": load.concurrency_max}
    if share >= CONCURRENCY_HELD:
        return Check("concurrency_held", "pass", share, CONCURRENCY_HELD, "", facts)
    without = concurrency_but_for_failures(record, _load_span(measurement))
    if without is not None and without >= CONCURRENCY_HELD * requested:
        failed = measurement.requests.failed
        return Check("concurrency_held", "note", share, CONCURRENCY_HELD, "", facts | {"failed": failed})
    return Check("concurrency_held", "fail", share, CONCURRENCY_HELD, "", facts)


def _load_span(measurement: Measurement) -> Span:
    """While all slots should be taken, on the run's clock."""
    window = measurement.window
    first, start, end = window.start_ns or 0, window.load_start_s or 0.0, window.load_end_s or 0.0
    return Span(first + round(start * NS_PER_S), first + round(end * NS_PER_S))


def first_wave(plan: Plan, measurement: Measurement) -> Check:
    """Measured requests that a closed loop, or users who mostly wait, sent before all slots were in use: see FIRST_WAVE."""
    wave, sent = measurement.requests.first_wave, measurement.requests.sent
    single = (plan.load.concurrency or plan.load.users or 1) < 2
    if wave is None or plan.load.cold_start or single or not sent:
        return Check("first_wave", "na", None, None)
    limit = max(FIRST_WAVE_LEAST, min(FIRST_WAVE_SHARE * sent, math.sqrt(FIRST_WAVE_MEAN * sent)))
    return Check("first_wave", "pass" if wave <= limit else "unsure", float(wave), limit, facts={"of": sent})


def users_held(measurement: Measurement) -> Check:
    """Share of users' requests that had to wait for the answer before them: so much of the load was not offered when asked."""
    held = measurement.held
    if held is None:
        return Check("users_held", "na", None, HELD_SHARE)
    share = held.requests / held.of
    facts = {"held": held.requests, "of": held.of} | (
        {"p50": held.ms.p50, "p99": held.ms.p99} if held.ms else {}
    )
    return Check("users_held", "pass" if share <= HELD_SHARE else "note", share, HELD_SHARE, facts=facts)


def stale_connections(plan: Plan, record: Record) -> Check:
    """Share of the requests sent twice because the server closed a kept-alive connection as it was used again.

    Where most requests opened a connection of their own although reuse was asked for, that share instead: nothing is kept.
    Where the server closed connections unannounced after one answer, the share of requests with a fresh one ahead of need.
    """
    rows = record.sent_rows
    if plan.target.connection == "new" or not len(rows):
        return Check("stale_connections", "na", None, 0.0)
    retried = record.attempts[rows] > 1
    opened = float(record.opened[rows].mean())
    facts: Facts = {"retried": int(retried.sum()), "sent": len(rows)}
    if record.single_use:
        ahead = float(np.mean(record.t_connect.valid[rows] & ~record.opened[rows] & ~retried))
        return Check("stale_connections", "note", ahead, None, facts=facts | {"kept": "single_use"})
    if opened > OPENED_SHARE:
        return Check("stale_connections", "note", opened, OPENED_SHARE, facts=facts | {"kept": "none"})
    share = float(np.mean(retried))
    return Check("stale_connections", "note" if share > 0 else "pass", share, 0.0, facts=facts)


def throttled(measurement: Measurement, hosts: Sequence[LoadHost]) -> Check:
    """How many machines were slower than they could be: an accelerator by its own word, a processor for heat, a load host for
    heat or its CPU limit. A note: what was measured is true of a system in that state, and not of another one. It passes only
    if each part of each machine that was read said that it was not; those that did not say are named."""
    machines = measurement.machines
    slow = [one for one in machines if one.throttled]
    silent = [f"{name} of {_machine(one)}" for one in machines for name in one.silent]
    facts: Facts = (
        {"silent": printable("; ".join(silent[:MOST_SILENT])), "silent_parts": len(silent)} if silent else {}
    )
    slow_hosts = [one.name for one in hosts if one.slowed is not None and one.slowed.at_all]
    if slow_hosts:
        facts |= {"slow_hosts": slow_hosts}
    if slow or slow_hosts:
        reasons = sorted({reason for one in slow for reason in one.throttle_reasons})
        if reasons:
            facts |= {"reasons": printable(", ".join(reasons))}
        return Check(
            "throttled",
            "note",
            float(len(slow) + len(slow_hosts)),
            0.0,
            facts=facts,
        )
    if silent or not any(one.throttled is not None for one in machines):
        return Check("throttled", "na", None, 0.0, facts=facts)
    return Check("throttled", "pass", 0.0, 0.0)


def _machine(one: MachineSeen) -> str:
    return "this machine" if one.own else one.url


def workload_lengths(drawn: RequestStatistics | None) -> Check:
    """The drawn lengths against the figures published for them: how much of what chance and rounding allow the worst is off."""
    figures = [] if drawn is None else [(one.off, one) for one in drawn.published if one.off is not None]
    if drawn is None or not figures or drawn.requests < DRAWN_LEAST:
        return Check("workload_lengths", "na", None, 1.0)
    off, worst = max(figures, key=lambda one: one[0])
    facts = {name: getattr(worst, name) for name in ("side", "figure", "published", "drawn", "source")}
    return Check("workload_lengths", "pass" if off <= 1.0 else "note", off, 1.0, facts=facts)


def sample_counts(measurement: Measurement) -> tuple[Check, Check, Check]:
    """Enough samples for P99, for P99.9, and for any statistic at all (draft 5.1.4.3)."""
    n = measurement.requests.completed
    return (
        _at_least("samples_p99", n, SAMPLES_P99, "unsure"),
        _at_least("samples_p99_9", n, SAMPLES_P99_9, "note"),
        _at_least("few_samples", n, FEW_SAMPLES, "unsure"),
    )


def _at_least(code: str, n: int, limit: int, otherwise: CheckStatus) -> Check:
    return Check(code, "pass" if n >= limit else otherwise, float(n), float(limit))


def clock_step(measurement: Measurement) -> Check:
    """Largest step of the wall clock against the monotonic one. Without kernel stamps no figure rests on the wall clock, and
    only a step as long as a suspension of the machine is of concern."""
    instrument = measurement.instrument
    step, limit = instrument.clock_step_ms, CLOCK_STEP_MS
    if step is None:
        return Check("clock_step", "na", None, limit, "ms")
    if instrument.timestamp_source == "kernel":
        return Check("clock_step", _within(step, limit), step, limit, "ms")
    return Check("clock_step", "pass" if step <= SUSPENDED_MS else "unsure", step, SUSPENDED_MS, "ms")


def workers_alive(measurement: Measurement, record: Record) -> Check:
    """Share of the measured requests that were lost with workers that died. A death fails even if nothing was lost by it."""
    seen, dead = measurement.requests, measurement.instrument.dead_workers
    total = seen.sent + seen.unaccounted
    share = seen.unaccounted / total if total else 0.0
    if not dead:
        return Check("workers_alive", "pass", share, 0.0)
    theirs = [loss.requests for loss in dead if loss.requests is not None]
    exact = len(theirs) == len(dead) and not record.interrupted
    facts: Facts = {
        "dead": [loss.worker for loss in dead],
        "exit_codes": [loss.exit_code for loss in dead if loss.exit_code is not None],
        "shortages": sorted({loss.shortage for loss in dead if loss.shortage is not None}),
        "workers": measurement.instrument.workers,
        "load_share": math.fsum(loss.load_share for loss in dead),
        "kept": sum(loss.kept for loss in dead),
        "lost": seen.unaccounted,
    } | ({"theirs": sum(theirs), "total": total} if exact else {"at_least": True})
    numbers = np.array(facts["dead"], np.int64)
    if names := [host.name for host in record.hosts if host.of(numbers).any()]:
        facts["on_hosts"] = names
    return Check("workers_alive", "fail", share, 0.0, facts=facts)


def interrupted(record: Record) -> Check:
    """A person stopped the run, or its journal is not whole: what is on record is not what the plan asked for."""
    return Check("interrupted", "unsure" if record.interrupted else "pass", float(record.interrupted), 0.0)


def warmup(measurement: Measurement, warm_up: WarmUp | None = None) -> Check:
    """Warm-up against draft 4.5.1 and what the plan asked for; short of it is a note, and so is a server that had not settled
    (4.5.2). Without one by intent (4.5.3) there is nothing to hold to. `warm_up`: None where it is not known.
    """
    seen = measurement.requests
    done = seen.warmup_completed
    tokens: int | None = seen.warmup_output_tokens
    if warm_up is not None:
        done, tokens = warm_up.completed, warm_up.output_tokens
        if warm_up.skipped:
            return Check("warmup", "note", 0.0, float(WARMUP_REQUESTS), facts={"of": "cold"})
    facts: Facts = {"output_tokens": tokens, "output_tokens_limit": WARMUP_TOKENS}
    enough = done >= WARMUP_REQUESTS and (tokens or 0) >= WARMUP_TOKENS
    if warm_up is not None and not warm_up.reached:
        enough = False
        requested = warm_up.asked
        facts |= {"asked_requests": requested.requests, "asked_output_tokens": requested.output_tokens}
    if warm_up is not None and warm_up.probes.stable is False:
        enough = False
        facts |= {"probes": len(warm_up.probes.after_ms), "unsettled": True}
    return Check("warmup", "pass" if enough else "note", float(done), float(WARMUP_REQUESTS), facts=facts)


def ttft_variants(plan: Plan, measurement: Measurement) -> Check:
    """Share of requests whose TTFT depends on the definition (draft 5.1.3.1 wants it noted)."""
    share, metrics = measurement.ttft_variant_share, measurement.metrics
    if share is None or not plan.target.stream:
        return Check("ttft_variants", "na", None, 0.0)
    facts = {
        "first_event_classes": dict(measurement.first_event_classes),
        "ttft": _median(metrics.ttft_ms),
        "ttft_any": _median(metrics.ttft_any_ms),
        "ttfo": _median(metrics.ttfo_ms),
        "ttfe": _median(metrics.ttfe_ms),
    }
    return Check("ttft_variants", "note" if share > 0 else "pass", share, 0.0, facts=facts)


def _median(stats: Stats | None) -> float | None:
    return None if stats is None else stats.p50
