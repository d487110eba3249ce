"""A plan in virtual time, top to bottom: the conductor's requests, a simulation in the place of drive, the conductor's end.

    plan -> workload -> simulation -> journal -> measure -> judge -> report

No worker, no server, no socket; and no clock but for the date in the run's name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from inferometer.conductor import (
    Finding,
    Ui,
    conclude,
    first_facts,
    interrupts,
    leave_no_empty,
)
from inferometer.drive.live import Progress
from inferometer.drive.turns import share_of
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase
from inferometer.journal.writer import Journal
from inferometer.plan.schema import Instrument, Plan, Sut, Target
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.preparer import Requests, Served, last_facts, requests_of, surveyed
from inferometer.replayer import Replayed
from inferometer.server.engine.engine import Engine
from inferometer.server.openai import Script
from inferometer.server.options import Options
from inferometer.simulation.driver import Driver, Server
from inferometer.simulation.engine import Chosen
from inferometer.simulation.reading import reader
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.encodings import Cl100k
from inferometer.workload.prompts import salt_of
from inferometer.workload.sources import sourced

NO_LENGTHS: Mapping[int, tuple[int, int]] = MappingProxyType({})


def simulate(
    plan: Plan, engine: Chosen, out: Path, ui: Ui, lengths: Mapping[int, tuple[int, int]] = NO_LENGTHS
) -> Finding:
    """Carry a plan out in virtual time: its load on a model of an engine, and no server. Raises PlanError, RecordError.

    What the plan says of a server (its URL, its keys, its declaration) is left aside. Two simulations of one plan and engine
    differ in ids and dates alone: whatever is drawn is drawn from the plan's seed. `lengths`: by row of the schedule, tokens of
    the prompt and of the answer as they were in a run of this plan.
    """
    started = time.time_ns()
    plan, source = sourced(_without_server(plan))
    folder = RunFolder.create(out, plan.name, started)
    try:
        tokenizer = tokenizers.load(plan.tokenizer)
        served = _simulated_server(plan)
        ui.note(f"simulating {engine.preset}: virtual time, no server")
        plan, trace = surveyed(plan, ui.note)
        source.check(plan, tokenizer, _context(engine), native=True)
        salt = salt_of(plan.workload.seed)
        schedule = requests_of(plan, source, trace, served, tokenizer, folder, salt, lambda: 0)
        facts = first_facts(plan, folder, served, tokenizer, schedule, trace, started)
        facts |= {"simulated": True, "engine": engine.facts(), "timestamp_source": "virtual"}
        facts["calibration"] = {"status": "simulated"}
        folder.write_run(facts)
        schedule.warm_up()
        schedule.measurement()
        schedule.write_all()
        schedule.close()
        facts |= last_facts(facts, schedule)
        interrupted = _simulate(plan, engine, tokenizer, schedule, folder, started, lengths, ui)
        folder.write_run(facts | {"ended_wall_ns": time.time_ns(), "interrupted": interrupted})
    except BaseException:
        leave_no_empty(folder)
        raise
    ui.note("the simulation is over; reading the record")
    return conclude(folder, tokenizer)


def _without_server(plan: Plan) -> Plan:
    """The plan as far as it is about the load: no server to find, no key, nothing declared of a system that is not there."""
    target = plan.target
    kept = Target(
        model=target.model,
        api=target.api,
        stream=target.stream,
        extra_body=target.extra_body,
        timeout_s=target.timeout_s,
    )
    workload = plan.workload.model_copy(
        update={"count_template": False}
    )  # there is no probe to learn it from
    return plan.model_copy(
        update={
            "target": kept,
            "workload": workload,
            "sut": Sut(),
            "instrument": Instrument(),
            "server_metrics": ServerMetrics(enabled=False),
        }
    )


def _simulated_server(plan: Plan) -> Served:
    """What the probe would have found of the reference server, with any model's name."""
    model = plan.target.model or Options().model
    ids = plan.target.api == "completions" and not plan.workload.text_only
    return Served(model, [model], None, "ids" if ids else "text", "max_tokens")


def _context(engine: Chosen) -> int:
    """Tokens that the model takes, prompt and answer together (simulation/reading.py)."""
    return min(Options().max_model_len, engine.settings.capacity_tokens)


def _simulate(
    plan: Plan,
    engine: Chosen,
    tokenizer: tokenizers.Tokenizer,
    requests: Requests | Replayed,
    folder: RunFolder,
    started: int,
    lengths: Mapping[int, tuple[int, int]],
    ui: Ui,
) -> bool:
    """Warm-up, then the measurement, in virtual time. True if Ctrl-C ended it."""
    load, target = plan.load, plan.target
    schedule = Schedule(folder.schedule)
    theirs = Cl100k()
    same = tokenizer.kind == "none" or (tokenizer.kind, tokenizer.name) == ("shipped", theirs.name)
    # Chats of several messages, as a file's prompts and the turns of conversations may be, nobody counted one by one.
    same = same and plan.workload.prompts is None and plan.workload.turns is None
    counted = schedule.table.column("input_tokens_sent").to_pylist() if same else None
    model = target.model or Options().model
    server = Server(
        Engine(engine.settings, plan.workload.seed),
        Script(model, target.api == "chat"),
        reader(target.api, model, engine.settings, theirs, counted, lengths),
    )
    slots = load.concurrency or 1 if load.model == "closed" else None

    def watch(phase: int, progress: Progress) -> None:
        ui.watch(Phase(phase), progress, requests.warm if phase == Phase.WARMUP else requests.total)

    with interrupts(seconds_to_ns(load.drain_s)) as interrupt:
        journal = Journal(folder.journal, 0, Redactor([]))
        driver = Driver(
            server,
            journal,
            timeout_ns=seconds_to_ns(target.timeout_s),
            drain_ns=seconds_to_ns(load.drain_s),
            offset_ns=started,
            heard=interrupt.heard,
            watch=watch,
        )
        if load.warmup:
            driver.run(Phase.WARMUP, share_of(schedule, Phase.WARMUP, slots))
        if not interrupt.pressed:
            driver.run(
                Phase.MEASURE,
                share_of(schedule, Phase.MEASURE, slots),
                duration_ns=seconds_to_ns(load.duration_s) if load.duration_s is not None else 0,
                again=slots is not None and load.requests is None,
            )
        journal.close()
        return interrupt.pressed
