"""What a simulation has in the place of a server: a model of an engine, or a system of several steps on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

from inferometer.documents.run_facts import SimulatedEngine
from inferometer.drive.trace_context import TraceContext
from inferometer.engines import dialect as dialects
from inferometer.engines.dialect import GenerationRequest
from inferometer.errors import PlanError, Problem
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.plan.schema import REFERENCE_TOKENIZER, Instrument, Plan, Sut
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.target import Target
from inferometer.plan.workload import AnyRows, TasksWorkload
from inferometer.run.request_writer import Served
from inferometer.server.dialects import reader as body_reader
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.preemption import Preempted
from inferometer.server.engine.settings import Settings
from inferometer.server.options import Options
from inferometer.server.systems.chat import API
from inferometer.server.systems.compound import Compound
from inferometer.server.systems.step_log import StepLog
from inferometer.simulation.client import ClientModel
from inferometer.simulation.driver import Server
from inferometer.simulation.engine import Chosen
from inferometer.simulation.generation import Generation, opener
from inferometer.simulation.reading import reader
from inferometer.simulation.systems import SimulatedSystem
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.encodings import Cl100k

Lengths = Mapping[int, tuple[int, int]]
NO_LENGTHS: Lengths = MappingProxyType({})
Model = Callable[[Settings, int], Engine[Generation]]
"""From an engine's settings and a seed to the engine."""


def without_server(plan: Plan, engine: Chosen) -> Plan:
    """The plan as far as it is about the load: no server to find, no key, nothing declared of a system that is not there, and
    no spans of one. Raises PlanError."""
    target = plan.target
    if not target.interface.embedded or target.interface.mapped:
        words = f"no simulated engine speaks {target.api}: choose another interface"
        raise PlanError([Problem("target.api", words)])
    if engine.system is not None and target.api != API:
        words = f"a reference system has OpenAI's chat alone, not {target.api}: set it to {API}"
        raise PlanError([Problem("target.api", words)])
    kept = Target(
        model=target.model,
        api=target.api,
        stream=target.stream,
        extra_body=target.extra_body,
        timeout_s=target.timeout_s,
    )
    # There is no probe to learn the template from.
    left_out = {"count_template": False} | (
        {"spans": None} if isinstance(plan.workload, TasksWorkload) else {}
    )
    return plan.model_copy(
        update={
            "target": kept,
            "workload": plan.workload.model_copy(update=left_out),
            "sut": Sut() if engine.system is None else Sut(boundary="compound"),
            "instrument": Instrument(keep_text=plan.instrument.keep_text),
            "server_metrics": ServerMetrics(enabled=False),
        }
    )


def as_probed(plan: Plan) -> Served:
    """What the probe would have found of the reference server, with any model's name."""
    model = plan.target.model or Options().model
    ids = plan.target.interface.takes_ids and not plan.workload.text_only
    length_field = dialects.load(plan.target.api).length_fields[0]
    return Served(model, [model], None, "ids" if ids else "text", length_field)


def context_of(plan: Plan, engine: Chosen, served: Served, tokenizer: tokenizers.Tokenizer) -> Room:
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


def facts_of(engine: Chosen, client: ClientModel) -> SimulatedEngine:
    """What run.json says of the engine, the system and the client."""
    system = engine.system
    return SimulatedEngine(
        engine.preset,
        asdict(engine.settings),
        asdict(client),
        None if system is None else system.name,
        {} if system is None else asdict(system.settings),
    )


@dataclass(frozen=True, slots=True)
class SimulatedServer:
    """The driver's side of it; `log`: of the steps of a system."""

    server: Server
    engine: Engine[Generation] | Compound[Generation]
    log: StepLog | None = None

    @property
    def preempted(self) -> Preempted:
        """By the engine's own counts, so far."""
        return self.engine.preempted

    def close(self, folder: RunFolder) -> None:
        """No more requests follow: write the log of a system's steps."""
        if self.log is not None:
            folder.system_steps.write_bytes(self.log.json_lines())
            self.log.close()


def simulated_server(
    plan: Plan,
    engine: Chosen,
    tokenizer: tokenizers.Tokenizer,
    schedule: Schedule,
    folder: RunFolder,
    started: int,
    lengths: Lengths,
    made: Model = Engine,
) -> SimulatedServer:
    """The model of a plan's engine, and of the system on it. `started`: the wall clock at the beginning of virtual time; the
    rest is as of `simulate`; `made`: the engine, but for a system's. Raises OSError where a system's spans cannot be
    written."""
    target, theirs, seed = plan.target, Cl100k(), plan.workload.seed
    model = target.model or Options().model
    dialect = dialects.load(target.api)
    if engine.system is not None:
        traces = TraceContext(folder.path.name) if isinstance(plan.workload, TasksWorkload) else None
        system = SimulatedSystem(
            engine.system, engine.settings, seed, model, folder.system_spans, started, traces
        )
        server = Server(dialect, system.compound, system.opener(), system.reader(theirs))
        return SimulatedServer(server, system.compound, system.log)
    # Chats of several messages, as a file's prompts and the turns of conversations may be, nobody counted one by one.
    same = (
        _counts_alike(tokenizer)
        and not isinstance(plan.workload, AnyRows | SessionsWorkload)
        and plan.workload.turns is None
    )
    counted = schedule.table.column("input_tokens_sent").to_pylist() if same else None
    modelled = made(engine.settings, seed)
    read = reader(target.api, model, engine.settings, theirs, counted, lengths)
    return SimulatedServer(Server(dialect, modelled, opener(model, target.api), read), modelled)
