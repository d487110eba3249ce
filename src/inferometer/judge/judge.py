"""All checks of a run, in the order a reader should meet them, and the verdict they add up to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import RoundTrips
from inferometer.documents.summary import WarmUp
from inferometer.documents.workload import RequestStatistics, TokenizerFacts
from inferometer.judge import cache, checks, delivery, length_checks
from inferometer.judge.answering import answered_as
from inferometer.judge.arrival import ArrivalCheck, Process, arrival_checks, compare, replayed_checks
from inferometer.judge.calibration import NOTHING_LOOKED_UP, calibration
from inferometer.judge.error_bound import error_bound
from inferometer.judge.load_hosts import host_clocks, host_lateness
from inferometer.judge.load_proof import load_exact
from inferometer.judge.round_trip import round_trip
from inferometer.judge.server_metrics import server_queue, server_tokens, server_ttft
from inferometer.judge.session_checks import (
    NO_SESSIONS,
    SessionEvidence,
    session_cache,
    session_context,
    session_ends,
    session_gaps,
    session_steps,
)
from inferometer.judge.steadiness import drift, filled, gap_variation, stationary, work_variation
from inferometer.judge.task_checks import task_results
from inferometer.judge.verdict import Check, Verdict, verdict_of
from inferometer.measure.load import connecting_ms, excused_ms, lateness_ms
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Floats, Record
from inferometer.measure.tasks import TasksAccount
from inferometer.plan.schema import Load, Plan
from inferometer.units import NS_PER_S

MS_PER_S = 1_000.0


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What checks are made of. `load_exact`, `lateness`: the checks of these names, on which `arrivals` rest. `arrivals`,
    `samples`: checks that come of one computation; `lookup`: the calibration certificate as the run noted it when it began;
    `drawn`: statistics of its requests, `warm_up`: its warm-up, None where not known. `tokenizer`:
    what sized the prompts; `model`: the name that the probe was answered with, None where not known; so of `round_trips`.
    `sessions`: what was left of recorded agent sessions and of conversations; `tasks`: how those of a run of tasks went."""

    plan: Plan
    measurement: Measurement
    record: Record
    load_exact: Check
    lateness: Check
    arrivals: tuple[Check, Check, Check]
    samples: tuple[Check, Check, Check]
    lookup: CertificateLookup
    drawn: RequestStatistics | None
    warm_up: WarmUp | None
    tokenizer: TokenizerFacts
    model: str | None
    round_trips: RoundTrips | None
    sessions: SessionEvidence
    tasks: TasksAccount | None

    @property
    def probed(self) -> bool:
        """Whether a request before the load was answered: a cold start sends none."""
        return self.warm_up is None or not self.warm_up.skipped

    @property
    def native(self) -> bool:
        """Whether the tokenizer at hand is the model's own."""
        return self.plan.tokenizer.own

    @property
    def ids(self) -> bool:
        """Whether answers are token ids, which the client counts itself."""
        return self.plan.target.interface.grpc


class LimitSource(StrEnum):
    """Where a check's limit comes from.

    `any`: there is none, a single occurrence counts. `chance`: what chance allows a correct run. `certificate`: what the
    machine is certified for. `draft`: the draft's number. `method`: chosen here, with a reason where the constant stands.
    """

    ANY = "any"
    CHANCE = "chance"
    CERTIFICATE = "certificate"
    DRAFT = "draft"
    METHOD = "method"


Unit = Literal["share", "number", "ms", "1/s"]
"""What a check's value is in: a `Check` has no unit for the first two."""


class CheckEntry(NamedTuple):
    """A check: its code and its function.

    `units`: those its value may have, by what it judges. `limit`: where its limit comes from. `sections`: of the draft, whose
    rules it serves. `of_instrument`: it says whether the numbers are right, and so counts toward a test's verdict too; the
    others are about the system, or the number of samples. `simulated`: in virtual time there is something to look at; "client":
    if a client was modelled that sends or reads late.
    """

    code: str
    function: Callable[[JudgedRun], Check]
    units: tuple[Unit, ...]
    limit: LimitSource
    sections: tuple[str, ...] = ()
    of_instrument: bool = False
    simulated: bool | Literal["client"] = True


def _drift(run: JudgedRun) -> Check:
    return drift(run.measurement.drift, run.measurement.steady, trace=run.record.replay is not None)


def _stationary(run: JudgedRun) -> Check:
    """With how much arrivals and work vary."""
    load, metrics = run.plan.load, run.measurement.metrics
    arrivals = gap_variation(load, run.record)
    work = work_variation((metrics.input_tokens, metrics.output_tokens))
    return stationary(load, run.measurement.backlogs, arrivals, work, trace=run.record.replay is not None)


def _cache_hits(run: JudgedRun) -> Check:
    return cache.cache_hits(run.plan, run.measurement, run.record, run.drawn, run.sessions.measured)


CHECKS = (
    CheckEntry("workers_alive", lambda run: checks.workers_alive(run.measurement, run.record),
               ("share",), LimitSource.ANY, ("4.2.5",), of_instrument=True, simulated=False),
    CheckEntry("interrupted", lambda run: checks.interrupted(run.record),
               ("number",), LimitSource.ANY),
    CheckEntry("error_rate", lambda run: checks.error_rate(run.plan, run.measurement, run.record),
               ("share",), LimitSource.METHOD),
    CheckEntry("few_samples", lambda run: run.samples[2],
               ("number",), LimitSource.METHOD),
    CheckEntry("streamed", lambda run: delivery.streamed(run.plan, run.measurement),
               ("share",), LimitSource.METHOD, ("4.2.2",), of_instrument=True),
    CheckEntry("lateness", lambda run: run.lateness,
               ("ms", "share"), LimitSource.METHOD, ("4.2.3", "4.2.4", "4.2.5"), of_instrument=True, simulated="client"),
    CheckEntry("load_exact", lambda run: run.load_exact,
               ("number",), LimitSource.ANY, ("4.2.3",), of_instrument=True),
    CheckEntry("arrival_rate", lambda run: run.arrivals[0],
               ("1/s", "number"), LimitSource.CHANCE, ("4.2.3",), of_instrument=True),
    CheckEntry("arrival_dispersion", lambda run: run.arrivals[1],
               ("number",), LimitSource.CHANCE, ("4.2.3",), of_instrument=True),
    CheckEntry("arrival_lag1", lambda run: run.arrivals[2],
               ("number",), LimitSource.CHANCE, ("4.2.3",), of_instrument=True),
    CheckEntry("session_steps", lambda run: session_steps(run.plan, run.sessions),
               ("number",), LimitSource.ANY, ("4.2.3", "4.2.5"), of_instrument=True),
    CheckEntry("session_gaps", lambda run: session_gaps(run.sessions),
               ("number",), LimitSource.ANY, ("4.2.3", "4.2.5"), of_instrument=True),
    CheckEntry("session_context", lambda run: session_context(run.sessions),
               ("number",), LimitSource.ANY, of_instrument=True),
    CheckEntry("session_ends", lambda run: session_ends(run.sessions),
               ("share",), LimitSource.METHOD, of_instrument=True),
    CheckEntry("task_results", lambda run: task_results(run.plan, run.tasks, run.record),
               ("share",), LimitSource.METHOD, ("4.1.3",)),
    CheckEntry("concurrency_held", lambda run: checks.concurrency_held(run.plan, run.measurement, run.record),
               ("share",), LimitSource.METHOD, ("4.2.4",), of_instrument=True),
    CheckEntry("first_wave", lambda run: checks.first_wave(run.plan, run.measurement),
               ("number",), LimitSource.METHOD, of_instrument=True),
    CheckEntry("filling", lambda run: filled(run.measurement.filling),
               ("share",), LimitSource.METHOD),
    CheckEntry("users_held", lambda run: checks.users_held(run.measurement),
               ("share",), LimitSource.METHOD),
    CheckEntry("drift", _drift,
               ("number",), LimitSource.CHANCE),
    CheckEntry("stationary", _stationary,
               ("number",), LimitSource.CHANCE),
    CheckEntry("receive_lag", lambda run: checks.receive_lag(run.measurement),
               ("share", "ms"), LimitSource.METHOD, ("4.2.1",), of_instrument=True, simulated="client"),
    CheckEntry("error_bound", lambda run: error_bound(run.plan, run.measurement),
               ("ms", "share"), LimitSource.METHOD, ("4.2.1",), of_instrument=True, simulated="client"),
    CheckEntry("worker_cpu", lambda run: checks.worker_cpu(run.measurement, run.record),
               ("share",), LimitSource.METHOD, of_instrument=True, simulated=False),
    CheckEntry("own_cpu", lambda run: checks.own_cpu(run.measurement),
               ("share",), LimitSource.METHOD, simulated=False),
    CheckEntry("clock_step", lambda run: checks.clock_step(run.measurement),
               ("ms",), LimitSource.METHOD, of_instrument=True, simulated=False),
    CheckEntry("round_trip", lambda run: round_trip(run.round_trips),
               ("ms",), LimitSource.METHOD, ("4.7.3",), simulated=False),
    CheckEntry("host_clocks", lambda run: host_clocks(run.measurement, run.record),
               ("ms",), LimitSource.METHOD, ("4.7",), of_instrument=True, simulated=False),
    CheckEntry("host_lateness", lambda run: host_lateness(run.plan, run.measurement, run.record),
               ("ms",), LimitSource.METHOD, ("4.2.3",), of_instrument=True, simulated=False),
    CheckEntry("calibration", lambda run: calibration(run.plan, run.measurement, run.lookup),
               ("1/s",), LimitSource.CERTIFICATE, of_instrument=True, simulated=False),
    CheckEntry("prompt_length", lambda run: length_checks.prompt_length(run.plan, run.measurement, run.tokenizer),
               ("share",), LimitSource.METHOD, of_instrument=True),
    CheckEntry("output_length", lambda run: length_checks.output_length(run.measurement, native=run.native),
               ("share",), LimitSource.METHOD, of_instrument=True),
    CheckEntry("token_counts", lambda run: checks.token_counts(run.measurement, native=run.native, ids=run.ids),
               ("share",), LimitSource.METHOD, ("4.4.2",), of_instrument=True),
    CheckEntry("cache_hits", _cache_hits,
               ("share",), LimitSource.METHOD),
    CheckEntry("session_cache", lambda run: session_cache(run.plan, run.sessions),
               ("share",), LimitSource.METHOD),
    CheckEntry("answered_as", lambda run: answered_as(run.record, run.model, probed=run.probed),
               ("share",), LimitSource.ANY, of_instrument=True),
    CheckEntry("workload_lengths", lambda run: checks.workload_lengths(run.drawn),
               ("number",), LimitSource.CHANCE),
    CheckEntry("server_tokens", lambda run: server_tokens(run.measurement),
               ("share",), LimitSource.METHOD, of_instrument=True),
    CheckEntry("server_ttft", lambda run: server_ttft(run.measurement),
               ("ms",), LimitSource.METHOD),
    CheckEntry("server_queue", lambda run: server_queue(run.plan, run.measurement),
               ("number",), LimitSource.METHOD, ("5.2.3.1",)),
    CheckEntry("samples_p99", lambda run: run.samples[0],
               ("number",), LimitSource.DRAFT, ("5.1.4.3",)),
    CheckEntry("samples_p99_9", lambda run: run.samples[1],
               ("number",), LimitSource.DRAFT, ("5.1.4.3",)),
    CheckEntry("tokens_per_event", lambda run: delivery.tokens_per_event(run.plan, run.measurement),
               ("share",), LimitSource.DRAFT, ("B.2.1",)),
    CheckEntry("ttft_variants", lambda run: checks.ttft_variants(run.plan, run.measurement),
               ("share",), LimitSource.ANY, ("5.1.3.1",)),
    CheckEntry("stale_connections", lambda run: checks.stale_connections(run.plan, run.record),
               ("share",), LimitSource.ANY, simulated=False),
    CheckEntry("throttled", lambda run: checks.throttled(run.measurement, run.record.hosts),
               ("number",), LimitSource.ANY, simulated=False),
    CheckEntry("warmup", lambda run: checks.warmup(run.measurement, run.warm_up),
               ("number",), LimitSource.DRAFT, ("4.5.1", "4.5.2", "4.5.3")),
)  # fmt: skip
"""Every check of the method, in the order a reader should meet them."""

NOT_SIMULATED = frozenset(entry.code for entry in CHECKS if entry.simulated is not True)
"""Checks of the instrument and of connections: in virtual time there is neither."""
OF_A_CLIENT = frozenset(entry.code for entry in CHECKS if entry.simulated == "client")
"""Of these, the ones that judge a client that was modelled."""
OF_THE_INSTRUMENT = frozenset(entry.code for entry in CHECKS if entry.of_instrument)


def judge(
    plan: Plan,
    measurement: Measurement,
    record: Record,
    lookup: CertificateLookup = NOTHING_LOOKED_UP,
    drawn: RequestStatistics | None = None,
    warm_up: WarmUp | None = None,
    tokenizer: TokenizerFacts | None = None,
    arrival: ArrivalCheck | None = None,
    model: str | None = None,
    round_trips: RoundTrips | None = None,
    sessions: SessionEvidence = NO_SESSIONS,
    tasks: TasksAccount | None = None,
) -> Verdict:
    """The verdict on a run: every check of CHECKS, `na` where it does not apply. See JudgedRun for the arguments.
    `arrival`: that of `arrival_comparison`, if already made.

    In a simulation the checks of NOT_SIMULATED do not apply either.
    """
    exact, late = load_exact(plan, measurement, record), checks.lateness(plan, measurement, record)
    proved = exact.status == "pass" and late.status == "pass"
    run = JudgedRun(
        plan=plan,
        measurement=measurement,
        record=record,
        load_exact=exact,
        lateness=late,
        arrivals=_arrival(plan, measurement, record, arrival, proved=proved),
        samples=checks.sample_counts(measurement),
        lookup=lookup,
        drawn=drawn,
        warm_up=warm_up,
        tokenizer=tokenizer or TokenizerFacts(),
        model=model,
        round_trips=round_trips,
        sessions=sessions,
        tasks=tasks,
    )
    results = [entry.function(run) for entry in CHECKS]
    if not record.simulated:
        return verdict_of(results)
    empty = NOT_SIMULATED - OF_A_CLIENT if record.client_modelled else NOT_SIMULATED
    return verdict_of(_simulated(check, empty) for check in results)


def _simulated(check: Check, empty: Collection[str]) -> Check:
    """The check as a simulation has it: `na` where it has nothing to look at."""
    if check.code not in empty:
        return check
    return Check(check.code, "na", None, check.limit, check.unit, {"simulated": True})


def arrival_comparison(plan: Plan, measurement: Measurement, record: Record) -> ArrivalCheck | None:
    """The achieved arrival process against the one asked for; None in closed loop, of a trace and for fewer than 100 sends."""
    load = plan.load
    if load.model != "open" or load.rate is None:
        return None
    own_lateness = np.clip(
        lateness_ms(record) - excused_ms(record), 0.0, checks.lateness_limit_ms(measurement)
    )
    late = own_lateness + connecting_ms(record)
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


def _arrival(
    plan: Plan, measurement: Measurement, record: Record, made: ArrivalCheck | None, *, proved: bool
) -> tuple[Check, Check, Check]:
    """Rate, dispersion and lag-1 correlation. `proved`: each arrival left for its own
    instant, and late by no more than is accepted; then what these find is a note."""
    if record.replay is not None:
        offered = (
            measurement.requests.sent + measurement.requests.unaccounted
        )  # the lost ones are workers_alive's
        return replayed_checks(offered, record.replay.rows, interrupted=record.interrupted)
    comparison = made or arrival_comparison(plan, measurement, record)
    rate, dispersion, lag1 = arrival_checks(comparison, proved=proved)
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
