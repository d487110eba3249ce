"""A plan in virtual time, top to bottom: the requests of a live run, a simulation in place of `drive`, the same evaluation.

    plan -> workload -> simulation -> journal -> measure -> judge -> report

No worker, no server, no socket; and no clock but for the date in the run's name.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import PreemptionCounts
from inferometer.drive.progress_counters import Progress
from inferometer.drive.share import Assignment
from inferometer.drive.shares import Shares, share_of
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams
from inferometer.journal.writer import Journal
from inferometer.plan.schema import Plan
from inferometer.run.disk_need import announce_need
from inferometer.run.evaluate import RunResult, conclude, cut_short
from inferometer.run.facts import first_facts, last_facts, write_facts
from inferometer.run.request_writer import RequestWriter
from inferometer.run.requests import requests_of
from inferometer.run.simulated_server import (
    NO_LENGTHS,
    Lengths,
    Model,
    SimulatedServer,
    as_probed,
    context_of,
    facts_of,
    simulated_server,
    without_server,
)
from inferometer.run.task_judging import judge_tasks
from inferometer.run.ui import Expected, Ui, interrupts
from inferometer.run.warmup import Part, warm_up
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.preemption import Preempted
from inferometer.simulation.client import PERFECT, ClientModel
from inferometer.simulation.driver import Driver
from inferometer.simulation.engine import Chosen
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.prompts import salt_of
from inferometer.workload.sources import sourced


def simulate(
    plan: Plan,
    engine: Chosen,
    out: Path,
    ui: Ui,
    lengths: Lengths = NO_LENGTHS,
    client: ClientModel = PERFECT,
    model: Model = Engine,
    shares: Shares = share_of,
) -> RunResult:
    """Carry a plan out in virtual time: its load on a model of an engine, or of a system on one, and no server. Raises
    PlanError, RecordError.

    What the plan says of a server (its URL, its keys, its declaration) is left aside. Two simulations of one plan and engine
    differ in ids and dates alone: whatever is drawn is drawn from the plan's seed. `lengths`: by row of the schedule, tokens of
    the prompt and of the answer as they were in a run of this plan. `client`: how late it sends and reads. `model`: makes the
    engine of its settings. `shares`: makes what says when requests are due, and what they hold.
    Tasks are judged where a system answers them: the answers of an engine alone are filler.
    """
    started = time.time_ns()
    plan, source = sourced(plan, ui.note)
    plan = without_server(plan, engine)
    folder = RunFolder.create(out, plan.name, started)
    with hold.joined(folder.journal):
        try:
            announce_need(plan, source, folder, ui)
            tokenizer = tokenizers.load(plan.tokenizer)
            source.check_tokenizer(tokenizer)
            served = as_probed(plan)
            what = engine.preset if engine.system is None else f"{engine.system.name} on {engine.preset}"
            ui.note(f"simulating {what}: virtual time, no server")
            # What was carried out before had room.
            room = None if lengths else context_of(plan, engine, served, tokenizer)
            context_limit = None if room is None else source.limit(tokenizer, room)
            salt = salt_of(plan.workload.seed)
            schedule = requests_of(plan, source, served, tokenizer, folder, salt, lambda: 0, context_limit)
            facts = first_facts(plan, folder, served, tokenizer, schedule, source.trace, started)
            facts = replace(
                facts,
                simulated=True,
                timestamp_source="modelled" if client.takes_time else "virtual",
                engine=facts_of(engine, client),
                calibration=CertificateLookup("simulated").facts(),
            )
            write_facts(folder, facts)
            if plan.load.warmup:
                schedule.warm_up()
            schedule.measurement()
            if schedule.ahead is not None:
                schedule.ahead.write_all()
                schedule.ahead.close()
            modelled = simulated_server(
                plan, engine, tokenizer, Schedule(folder.schedule), folder, started, lengths, model
            )
            interrupted, preempted = _simulate(
                plan, modelled, client, shares, tokenizer, schedule, folder, started, ui
            )
            modelled.close(folder)
            facts = last_facts(facts, schedule, interrupted=interrupted)
            write_facts(folder, replace(facts, preempted=PreemptionCounts(**asdict(preempted))))
        except BaseException as cause:
            raise cut_short(folder, cause)  # noqa: B904 - it is the cause, or carries it
        ui.note("simulation complete; reading the record")
        judging = partial(judge_tasks, plan, folder, ui.note, folder.system_spans)
        return conclude(folder, tokenizer, judging=list if engine.system is None else judging)


def _simulate(
    plan: Plan,
    modelled: SimulatedServer,
    client: ClientModel,
    shares: Shares,
    tokenizer: tokenizers.Tokenizer,
    requests: RequestWriter,
    folder: RunFolder,
    started: int,
    ui: Ui,
) -> tuple[bool, Preempted]:
    """Warm-up, then the measurement, in virtual time. True if Ctrl-C ended it; the measurement's preemptions."""
    load, target = plan.load, plan.target
    schedule = Schedule(folder.schedule)
    slots = load.concurrency or 1 if load.model == "closed" else None
    expected = Expected(requests)

    def watch(phase: int, progress: Progress) -> None:
        ui.watch(Phase(phase), progress, expected.of(Phase(phase)))

    with interrupts(seconds_to_ns(load.drain_s)) as interrupt:
        journal = Journal(folder.journal, 0, Redactor([]), folder.path.name)
        driver = Driver(
            modelled.server,
            journal,
            timeout_ns=seconds_to_ns(target.timeout_s),
            drain_ns=seconds_to_ns(load.drain_s),
            offset_ns=started,
            client=client,
            seed=plan.workload.seed,
            heard=interrupt.new_drain_ns,
            watch=watch,
        )

        def play(part: Part) -> bool:
            expected.ordered(part)
            rows = part.first, part.stop
            assignment = Assignment(part.phase, slots, part=rows, cycle=part.cycle)
            driver.run(part.phase, shares(schedule, assignment))
            return not interrupt.pressed

        seen = partial(streams, folder, "worker", OUTCOME)
        if load.warmup:
            counts, usage = tokenizer.count_all, not plan.compound
            warm_up(load, requests.warm_rows, play, seen, counts, lambda: None, usage=usage)
        before = modelled.preempted
        if not interrupt.pressed:
            driver.run(
                Phase.MEASURE,
                shares(schedule, Assignment(Phase.MEASURE, slots)),
                duration_ns=seconds_to_ns(load.duration_s) if load.duration_s is not None else 0,
                again=slots is not None and load.requests is None,
            )
        journal.close()
        return interrupt.pressed, modelled.preempted - before
