"""All checks of a run, in the order a reader should meet them, and the verdict they add up to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.summary import WarmUp
from inferometer.documents.workload import RequestStatistics
from inferometer.judge import checks
from inferometer.judge.arrival import ArrivalCheck, Process, arrival_checks, compare, replayed_checks
from inferometer.judge.calibration import NOTHING_LOOKED_UP, calibration
from inferometer.judge.server_metrics import server_queue, server_tokens, server_ttft
from inferometer.judge.verdict import Check, Verdict, verdict_of
from inferometer.measure.load import connecting_ms, excused_ms, lateness_ms
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Floats, Record
from inferometer.plan.schema import Load, Plan
from inferometer.units import NS_PER_S

MS_PER_S = 1_000.0

NOT_SIMULATED = frozenset(
    {
        "workers_alive",
        "lateness",
        "receive_lag",
        "worker_cpu",
        "clock_step",
        "calibration",
        "stale_connections",
    }
)
"""Checks of the instrument and of connections: in virtual time there is neither."""


def judge(
    plan: Plan,
    measurement: Measurement,
    record: Record,
    lookup: CertificateLookup = NOTHING_LOOKED_UP,
    drawn: RequestStatistics | None = None,
    warm_up: WarmUp | None = None,
) -> Verdict:
    """The verdict on a run: every check of the method, `na` where it does not apply.

    In a simulation the checks of NOT_SIMULATED do not apply either.

    `lookup`: the calibration certificate as the run noted it when it began; `drawn`: statistics of its requests
    (workload/request_statistics.py), `warm_up`: its warm-up (run/warmup.py); None: not known.
    """
    native = plan.tokenizer.own
    p99, p99_9, few = checks.sample_counts(measurement)
    found = (
        checks.workers_alive(measurement, record),
        checks.interrupted(record),
        checks.error_rate(measurement, interrupted=record.interrupted),
        few,
        checks.streamed(plan, measurement),
        checks.lateness(plan, measurement, record),
        *_arrival(plan, measurement, record),
        checks.concurrency_held(plan, measurement),
        checks.users_held(measurement),
        checks.stationary(plan, measurement, record),
        checks.receive_lag(measurement),
        checks.worker_cpu(measurement),
        checks.clock_step(measurement),
        calibration(plan, measurement, lookup),
        checks.prompt_length(measurement),
        checks.output_length(measurement, native=native),
        checks.token_counts(measurement, native=native),
        checks.cache_hits(plan, measurement, record, drawn),
        checks.workload_lengths(drawn),
        server_tokens(measurement),
        server_ttft(measurement),
        server_queue(plan, measurement),
        p99,
        p99_9,
        checks.tokens_per_event(plan, measurement),
        checks.ttft_variants(plan, measurement),
        checks.stale_connections(plan, record),
        checks.warmup(measurement, warm_up),
    )
    return verdict_of(map(_simulated, found) if record.simulated else found)


def _simulated(check: Check) -> Check:
    """The check as a simulation has it: `na` where it has nothing to look at."""
    if check.code not in NOT_SIMULATED:
        return check
    return Check(check.code, "na", None, check.limit, check.unit, {"simulated": True})


def arrival_found(plan: Plan, measurement: Measurement, record: Record) -> ArrivalCheck | None:
    """The achieved arrival process against the one asked for; None in closed loop, of a trace and for fewer than 100 sends."""
    load = plan.load
    if load.model != "open" or load.rate is None:
        return None
    ours = np.clip(lateness_ms(record) - excused_ms(record), 0.0, checks.lateness_limit_ms(measurement))
    late = ours + connecting_ms(record)
    sends = _offers_s(record)
    duration = _duration(load, measurement.requests.sent, record.interrupted)
    return compare(_process(load), sends, late / MS_PER_S, duration)


def _process(load: Load) -> Process:
    assert load.rate is not None
    shape = {"constant": None, "poisson": 1.0, "gamma": load.burstiness}[load.arrival]  # a trace has no rate
    return Process(load.rate, shape)


def _offers_s(record: Record) -> Floats:
    """When each measured request was offered, ascending, in s from the first: t_send, which no back-pressure moves, or for
    one the server never took (a refused connection) t_connect if it was opened for it, else t_intended. Leaving those out
    would look like dropped arrivals. Of a conversation its first: the others are no arrivals."""
    offered = np.where(record.opened, record.t_connect.values, record.t_intended)
    offered = np.where(record.t_send.valid, record.t_send.values, offered)
    offered = np.sort(offered[record.measured & (record.turn == 0)])
    return (offered - offered[0]) / NS_PER_S if len(offered) else np.zeros(0)


def _duration(load: Load, sent: int, interrupted: bool) -> float | None:
    """The duration the rate is taken over when time, not a count, ended the run."""
    by_count = load.requests is not None and sent >= load.requests
    return None if interrupted or by_count else load.duration_s


def _arrival(plan: Plan, measurement: Measurement, record: Record) -> tuple[Check, Check, Check]:
    """Rate, dispersion and lag-1 correlation. A run by count that sent fewer than asked dropped arrivals: its rate fails."""
    if record.replay is not None:
        offered = (
            measurement.requests.sent + measurement.requests.unaccounted
        )  # the lost ones are workers_alive's
        return replayed_checks(offered, record.replay.rows, interrupted=record.interrupted)
    rate, dispersion, lag1 = arrival_checks(arrival_found(plan, measurement, record))
    load, sent = plan.load, measurement.requests.sent
    dropped = 0
    if (
        load.model == "open"
        and load.requests is not None
        and load.duration_s is None
        and not record.interrupted
    ):
        lost = measurement.requests.unaccounted  # these are workers_alive's
        left_out = measurement.conversations.left_out if measurement.conversations else 0
        dropped = max(0, load.requests - sent - lost - left_out)
    if dropped:
        rate = replace(rate, status="fail", facts={**rate.facts, "dropped": dropped})
    return rate, dispersion, lag1
