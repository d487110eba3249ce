"""A plan carried out on a live server. It reads top to bottom as a run goes:

    plan -> workload -> drive -> journal -> measure -> judge -> report

`conduct` carries out a plan: target.py finds and probes the server, `drive` sends the load, evaluate.py does everything from
the sealed record on. (simulate.py carries out a plan in virtual time.)
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from inferometer.cluster.conductor import LoadHosts
from inferometer.cluster.host_pool import HostPool
from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import RunFacts, ScrapingAccount
from inferometer.drive import clock
from inferometer.drive.answer_limits import AnswerLimits
from inferometer.drive.credentials import read_key
from inferometer.drive.pacer import slots_of
from inferometer.drive.progress_counters import Progress
from inferometer.drive.worker_messages import Job
from inferometer.drive.worker_pool import WorkerPool
from inferometer.errors import PlanError, Problem
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.measure.record import OwnCpu
from inferometer.plan.schema import Plan
from inferometer.plan.workload import TasksWorkload
from inferometer.run.disk_need import announce_need
from inferometer.run.evaluate import RunResult, conclude, cut_short
from inferometer.run.facts import CpuBeside, deaths, last_facts, write_facts
from inferometer.run.preparation import prepared
from inferometer.run.request_writer import RequestWriter
from inferometer.run.round_trips import RoundTripAccount
from inferometer.run.scraping import Scrapes, secrets_of_run
from inferometer.run.span_listening import listening
from inferometer.run.target import (
    Target,
    embedded_server,
    engine_processes,
    load_tokenizer,
    reach,
    request_heads,
)
from inferometer.run.task_criteria import judge_key
from inferometer.run.task_judging import judge_tasks
from inferometer.run.ui import Expected, Ui, interrupts
from inferometer.run.warmup import Part, Patience, warm_up
from inferometer.server.embedded import Embedded, beside, on_cores
from inferometer.server.http_reply import PRODUCT
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.sources import sourced
from inferometer.workload.traces.survey import Survey

SPARE_SECONDS = 1.0
SPARE_MOST = 512
"""Open loop: connections opened before the start, one for each request of the first second, at most SPARE_MOST."""


def conduct(
    plan: Plan,
    out: Path,
    ui: Ui,
    *,
    certificate: CertificateLookup,
    embedded: Embedded | None = None,
    hosts: LoadHosts | None = None,
) -> RunResult:
    """Carry out a plan. Raises PlanError, PeerError (before anything was measured), RecordError, InstrumentError.

    `hosts`: those that send the load; None: this machine does.

    `embedded`: a running reference server; a plan without a URL is measured there, and it is left running.
    `certificate`: what the run cites of the instrument's calibration (studies/certificate.py), now and for good: later, or on
    another machine, another one would be found.
    """
    if hosts is None and plan.instrument.hosts is not None:
        words = "load hosts send what `inferometer run` and `inferometer rerun` measure, and nothing else yet: leave it out"
        raise PlanError([Problem("--hosts", words)])
    started = time.time_ns()
    key = read_key(plan.target, os.environ)
    if isinstance(plan.workload, TasksWorkload) and plan.workload.task_commands:
        judge_key(os.environ)
    folder = RunFolder.create(out, plan.name, started)
    try:
        with ExitStack() as stack:
            stack.enter_context(hold.joined(folder.journal))
            # Processes first: they start up while this one prepares.
            embedded = embedded_server(plan, embedded, folder, stack)
            scrapes = stack.enter_context(Scrapes(plan, folder))
            spans = stack.enter_context(listening(plan, folder, ui.note))
            with _pool(plan, folder, embedded, hosts, ui) as pool:
                plan, source = sourced(plan, ui.note)
                announce_need(plan, source, folder, ui)
                given = load_tokenizer(plan, source)
                find = partial(reach, plan, source, embedded, key, given, stack, ui.note)
                brief = partial(_brief, scrapes, plan, key, embedded)
                ready = prepared(plan, source, find, brief, folder, pool.announce, ui, started, certificate)
                target, tokenizer, schedule = ready.target, ready.tokenizer, ready.schedule
                # Before connections are opened for the load: a server may close those that stay idle for seconds.
                network = RoundTripAccount(plan, target, key)
                facts = replace(ready.facts, round_trips=network.before())
                write_facts(folder, facts)
                pool.assign(_jobs(plan, source.trace, folder, target, key))
                if isinstance(pool, HostPool):  # it is their machines that measure
                    facts = replace(facts, calibration=pool.certificate().facts())
                for line in scrapes.ready():
                    ui.note(line)
                note_deaths = partial(_note_deaths, plan, pool, facts, schedule, folder)
                driven = drive(plan, pool, schedule, tokenizer, ui, scrapes, network, note_deaths)
                facts = replace(
                    last_facts(facts, schedule, interrupted=driven.interrupted),
                    timestamp_source=pool.outcome.timestamp_source,
                    single_use=pool.outcome.single_use,
                    own_cpu=driven.own_cpu,
                    round_trips=network.after(interrupted=driven.interrupted),
                )
            # Who died is known once all have left.
            facts = replace(facts, hosts=pool.hosts())
            write_facts(folder, _with_deaths(plan, pool, facts, schedule))
            ui.note("measurement complete; reading the record")
            # The server is still there: it may be the one that counts.
            return conclude(folder, tokenizer, scrapes, lambda: judge_tasks(plan, folder, ui.note, spans()))
    except BaseException as cause:
        raise cut_short(folder, cause)  # noqa: B904 - it is the cause, or carries it


Pool = WorkerPool | HostPool
"""The workers of a run, here or on load hosts: the same calls."""


def _pool(plan: Plan, folder: RunFolder, embedded: Embedded | None, hosts: LoadHosts | None, ui: Ui) -> Pool:
    if hosts is not None:
        return HostPool(hosts, folder, ui.note, plan.target.transport, again=_again(plan))
    with on_cores(beside(embedded, plan.instrument.workers)):
        return WorkerPool(plan.instrument.workers, folder.log)


def _again(plan: Plan) -> bool:
    """Whether the measurement goes through its requests over and over."""
    return plan.load.model == "closed" and plan.load.requests is None


def _brief(
    scrapes: Scrapes, plan: Plan, key: str | None, embedded: Embedded | None, target: Target
) -> ScrapingAccount | None:
    ours = (target.server or "").startswith(PRODUCT)
    engine = engine_processes(target, embedded) if plan.host_telemetry.wanted else ()
    return scrapes.brief(plan, target.endpoint, key, at_once=ours, engine=engine)


def _jobs(plan: Plan, trace: Survey | None, folder: RunFolder, target: Target, key: str | None) -> list[Job]:
    wanted, load, workers = plan.target, plan.load, plan.instrument.all_workers
    open_loop, slots = load.model != "closed", load.concurrency or 1
    first = trace.facts.first_second if trace is not None else (load.offered_rate or 0) * SPARE_SECONDS
    at_start = -(-int(min(first, SPARE_MOST)) // workers)
    salt = secrets.token_hex(16)
    tasks = isinstance(plan.workload, TasksWorkload) and not wanted.interface.over_websocket
    traced = folder.path.name if tasks else None
    return [
        Job(
            api=wanted.api,
            form=wanted.form,
            folder=str(folder.path),
            worker=worker,
            workers=workers,
            family=target.family,
            address=list(target.address),
            protocol=target.protocol,
            heads=request_heads(plan, target, key),
            secrets=secrets_of_run(plan, key),
            tls=target.endpoint.scheme == "https",
            tls_verify=wanted.tls_verify,
            tls_ca_file=wanted.tls_ca_file,
            server_name=target.endpoint.host,
            reuse=wanted.connection == "reuse",
            open_loop=open_loop,
            slots=0 if open_loop else slots,
            prepare=at_start if open_loop else slots_of(worker, workers, slots),
            timeout_ns=seconds_to_ns(wanted.timeout_s),
            connect_timeout_ns=seconds_to_ns(wanted.connect_timeout_s),
            drain_ns=seconds_to_ns(load.drain_s),
            limits=AnswerLimits(
                bytes=int(wanted.max_answer_mib * (1 << 20)),
                events=wanted.max_events,
                overrun_ns=seconds_to_ns(wanted.max_overrun_s),
            ),
            streams=wanted.streams,
            session_header=wanted.session_header,
            session_salt=salt,
            trace_run=traced,
        )
        for worker in range(workers)
    ]


def _note_deaths(plan: Plan, pool: Pool, facts: RunFacts, schedule: RequestWriter, folder: RunFolder) -> None:
    """Write down at once which workers died: should this process be killed too, `recover` knows. On a full disk, which may
    be what they died of, it is written at the end or not at all."""
    with contextlib.suppress(OSError):
        write_facts(folder, _with_deaths(plan, pool, facts, schedule))


def _with_deaths(plan: Plan, pool: Pool, facts: RunFacts, schedule: RequestWriter) -> RunFacts:
    return replace(facts, dead_workers=deaths(plan, pool.outcome.dead.values(), schedule.measured))


@dataclass(frozen=True, slots=True)
class Driven:
    """How the load went: whether Ctrl-C was pressed, and what was taken beside the workers while measuring."""

    interrupted: bool
    own_cpu: OwnCpu | None = None


def drive(
    plan: Plan,
    pool: Pool,
    schedule: RequestWriter,
    tokenizer: tokenizers.Tokenizer,
    ui: Ui,
    scrapes: Scrapes,
    network: RoundTripAccount,
    on_death: Callable[[], None] = lambda: None,
) -> Driven:
    """Warm-up and measurement. Ctrl-C ends a phase, and no other begins. Raises PeerError if the server hangs in the former."""
    load, ahead, reported, patience = plan.load, schedule.ahead, 0, Patience(plan.target.timeout_s)
    expected = Expected(schedule)
    own_cpu: OwnCpu | None = None

    def watch(phase: int, progress: Progress) -> None:
        nonlocal reported
        for death in list(pool.outcome.dead.values())[reported:]:
            reported += 1
            why = "" if death.reason is None else f" ({death.reason})"
            ui.note(f"worker {death.worker} has died{why}: this run will be INVALID; the others continue")
            on_death()
        ui.watch(Phase(phase), progress, expected.of(Phase(phase)))
        if phase != Phase.MEASURE and patience.over(progress.ok, progress.failed, clock.monotonic_ns()):
            pool.stop(0)

    def work() -> bool:
        return not interrupt.pressed and ahead is not None and ahead.write_on()

    def play(part: Part) -> bool:
        if interrupt.pressed:
            return False
        expected.ordered(part)
        probing = part.phase is Phase.PROBE  # with nothing else going on, here or there
        rows = part.stop - part.first if probing else schedule.rows
        pool.begin(part.phase, rows, part=(part.first, part.stop), cycle=part.cycle)
        pool.finish(part.phase, watch, interrupt, (lambda: False) if probing else work)
        patience.refuse()
        return not interrupt.pressed

    def warmed_up() -> bool:
        mark = partial(scrapes.mark, Phase.WARMUP)
        mark(begins=True)
        # Scraped once the last answer is there, too: is the queue empty?
        go_on = warm_up(
            load, schedule.warm_rows, play, pool.outcomes, tokenizer.count_all, partial(mark, begins=True),
            usage=not plan.compound,
        )  # fmt: skip
        mark(begins=False)
        return go_on

    with interrupts(seconds_to_ns(load.drain_s)) as interrupt:
        warm = not load.warmup or warmed_up()
        if warm and not interrupt.pressed:
            scrapes.mark(Phase.MEASURE, begins=True)
            beside = CpuBeside(scrapes.cpu_s)
            start = _begin(plan, pool, schedule)
            if ahead is not None:
                ahead.began(start)
            with network.during():
                pool.finish(Phase.MEASURE, watch, interrupt, work)
            own_cpu = beside.taken()
            scrapes.mark(Phase.MEASURE, begins=False)
        if ahead is not None:
            ahead.close()
        return Driven(interrupt.pressed or not warm, own_cpu)


def _begin(plan: Plan, pool: Pool, schedule: RequestWriter) -> int:
    """Let the measurement begin; gives its start."""
    seconds = plan.load.duration_s
    duration = seconds_to_ns(seconds) if seconds is not None else 0
    return pool.begin(
        Phase.MEASURE, schedule.rows, duration_ns=duration, again=_again(plan), appended=schedule.appended
    )
