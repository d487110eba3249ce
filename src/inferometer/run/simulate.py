"""A plan in virtual time, top to bottom: the requests of a live run, a simulation in place of `drive`, the same evaluation.

    plan -> workload -> simulation -> journal -> measure -> judge -> report

No worker, no server, no socket; and no clock but for the date in the run's name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import PreemptionCounts, SimulatedEngine
from inferometer.drive.progress_counters import Progress
from inferometer.drive.share import Assignment
from inferometer.drive.shares import share_of
from inferometer.engines import dialect as dialects
from inferometer.engines.dialect import GenerationRequest
from inferometer.errors import PlanError, Problem
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams
from inferometer.journal.writer import Journal
from inferometer.plan.schema import REFERENCE_TOKENIZER, Instrument, Plan, Sut
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.target import Target
from inferometer.plan.workload import AnyRows
from inferometer.run.disk_need import announce_need
from inferometer.run.evaluate import RunResult, conclude, cut_short
from inferometer.run.facts import first_facts, last_facts, write_facts
from inferometer.run.request_writer import RequestWriter, Served
from inferometer.run.requests import requests_of
from inferometer.run.ui import Expected, Ui, interrupts
from inferometer.run.warmup import Part, warm_up
from inferometer.server.dialects import reader as body_reader
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.preemption import Preempted
from inferometer.server.engine.settings import Settings
from inferometer.server.options import Options
from inferometer.simulation.client import PERFECT, ClientModel
from inferometer.simulation.driver import Driver, Server
from inferometer.simulation.engine import Chosen
from inferometer.simulation.generation import Generation, opener
from inferometer.simulation.reading import reader
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.encodings import Cl100k
from inferometer.workload.prompts import salt_of
from inferometer.workload.sources import sourced

NO_LENGTHS: Mapping[int, tuple[int, int]] = MappingProxyType({})
Model = Callable[[Settings, int], Engine[Generation]]
"""From an engine's settings and a seed to the engine."""


def simulate(
    plan: Plan,
    engine: Chosen,
    out: Path,
    ui: Ui,
    lengths: Mapping[int, tuple[int, int]] = NO_LENGTHS,
    client: ClientModel = PERFECT,
    model: Model = Engine,
) -> RunResult:
    """Carry a plan out in virtual time: its load on a model of an engine, and no server. Raises PlanError, RecordError.

    What the plan says of a server (its URL, its keys, its declaration) is left aside. Two simulations of one plan and engine
    differ in ids and dates alone: whatever is drawn is drawn from the plan's seed. `lengths`: by row of the schedule, tokens of
    the prompt and of the answer as they were in a run of this plan. `client`: how late it sends and reads. `model`: makes the
    engine of its settings.
    """
    started = time.time_ns()
    plan, source = sourced(plan, ui.note)
    plan = _without_server(plan)
    folder = RunFolder.create(out, plan.name, started)
    with hold.joined(folder.journal):
        try:
            announce_need(plan, source, folder, ui)
            tokenizer = tokenizers.load(plan.tokenizer)
            source.check_tokenizer(tokenizer)
            served = _simulated_server(plan)
            ui.note(f"simulating {engine.preset}: virtual time, no server")
            # What was carried out before had room.
            room = None if lengths else _room(plan, engine, served, tokenizer)
            context_limit = None if room is None else source.limit(tokenizer, room)
            salt = salt_of(plan.workload.seed)
            schedule = requests_of(plan, source, served, tokenizer, folder, salt, lambda: 0, context_limit)
            facts = first_facts(plan, folder, served, tokenizer, schedule, source.trace, started)
            facts = replace(
                facts,
                simulated=True,
                timestamp_source="modelled" if client.takes_time else "virtual",
                engine=SimulatedEngine(engine.preset, asdict(engine.settings), asdict(client)),
                calibration=CertificateLookup("simulated").facts(),
            )
            write_facts(folder, facts)
            if plan.load.warmup:
                schedule.warm_up()
            schedule.measurement()
            if schedule.ahead is not None:
                schedule.ahead.write_all()
                schedule.ahead.close()
            modelled = model(engine.settings, plan.workload.seed)
            interrupted, preempted = _simulate(
                plan, modelled, client, tokenizer, schedule, folder, started, lengths, ui
            )
            facts = last_facts(facts, schedule, interrupted=interrupted)
            write_facts(folder, replace(facts, preempted=PreemptionCounts(**asdict(preempted))))
        except BaseException as cause:
            raise cut_short(folder, cause)  # noqa: B904 - it is the cause, or carries it
        ui.note("simulation complete; reading the record")
        return conclude(folder, tokenizer)


def _without_server(plan: Plan) -> Plan:
    """The plan as far as it is about the load: no server to find, no key, nothing declared of a system that is not there.
    Raises PlanError."""
    target = plan.target
    if not target.interface.embedded or target.interface.mapped:
        words = f"no simulated engine speaks {target.api}: choose another interface"
        raise PlanError([Problem("target.api", words)])
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
            "instrument": Instrument(keep_text=plan.instrument.keep_text),
            "server_metrics": ServerMetrics(enabled=False),
        }
    )


def _simulated_server(plan: Plan) -> Served:
    """What the probe would have found of the reference server, with any model's name."""
    model = plan.target.model or Options().model
    ids = plan.target.interface.takes_ids and not plan.workload.text_only
    length_field = dialects.load(plan.target.api).length_fields[0]
    return Served(model, [model], None, "ids" if ids else "text", length_field)


def _room(plan: Plan, engine: Chosen, served: Served, tokenizer: tokenizers.Tokenizer) -> Room:
    """What the model takes (simulation/reading.py). It counts with cl100k_base."""
    options, theirs, template = Options(), Cl100k(), 0
    exact = served.prompt_format == "ids" or _counts_alike(tokenizer)
    if exact and plan.target.interface.applies_template:
        api = plan.target.api
        body = dialects.load(api).body(GenerationRequest(served.model, ".", 1))
        request = body_reader(api, served.model, options.max_model_len, theirs)(body)
        template = request.prompt_tokens - len(theirs.encode("."))
    context = min(options.max_model_len, engine.settings.capacity_tokens)
    return Room(context, exact, tokenizer.name, template)


def _counts_alike(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether a tokenizer counts as the simulated server does."""
    return tokenizer.kind == "none" or (tokenizer.kind, tokenizer.name) == ("shipped", REFERENCE_TOKENIZER)


def _simulate(
    plan: Plan,
    engine: Engine[Generation],
    client: ClientModel,
    tokenizer: tokenizers.Tokenizer,
    requests: RequestWriter,
    folder: RunFolder,
    started: int,
    lengths: Mapping[int, tuple[int, int]],
    ui: Ui,
) -> tuple[bool, Preempted]:
    """Warm-up, then the measurement, in virtual time. True if Ctrl-C ended it; the measurement's preemptions."""
    load, target = plan.load, plan.target
    schedule = Schedule(folder.schedule)
    theirs = Cl100k()
    # Chats of several messages, as a file's prompts and the turns of conversations may be, nobody counted one by one.
    same = (
        _counts_alike(tokenizer)
        and not isinstance(plan.workload, AnyRows | SessionsWorkload)
        and plan.workload.turns is None
    )
    counted = schedule.table.column("input_tokens_sent").to_pylist() if same else None
    model = target.model or Options().model
    server = Server(
        dialects.load(target.api),
        engine,
        opener(model, target.api),
        reader(target.api, model, engine.settings, theirs, counted, lengths),
    )
    slots = load.concurrency or 1 if load.model == "closed" else None
    expected = Expected(requests)

    def watch(phase: int, progress: Progress) -> None:
        ui.watch(Phase(phase), progress, expected.of(Phase(phase)))

    with interrupts(seconds_to_ns(load.drain_s)) as interrupt:
        journal = Journal(folder.journal, 0, Redactor([]), folder.path.name)
        driver = Driver(
            server,
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
            driver.run(part.phase, share_of(schedule, assignment))
            return not interrupt.pressed

        seen = partial(streams, folder, "worker", OUTCOME)
        if load.warmup:
            warm_up(load, requests.warm_rows, play, seen, tokenizer.count_all, lambda: None)
        before = engine.preempted
        if not interrupt.pressed:
            driver.run(
                Phase.MEASURE,
                share_of(schedule, Assignment(Phase.MEASURE, slots)),
                duration_ns=seconds_to_ns(load.duration_s) if load.duration_s is not None else 0,
                again=slots is not None and load.requests is None,
            )
        journal.close()
        return interrupt.pressed, engine.preempted - before
