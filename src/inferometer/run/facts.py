"""Facts of a run for run.json: the versions, the machine, the requests, the workers that died."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from inferometer import __version__, whole_file
from inferometer.documents.part import from_data, from_json, to_data
from inferometer.documents.run_facts import RUN_SCHEMA, RunFacts, SimulatedEngine
from inferometer.drive.pacer import deal, slots_of
from inferometer.drive.worker_pool import Death as WorkerDeath
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.seal import run_of
from inferometer.measure.record import Death, OwnCpu
from inferometer.plan import saved
from inferometer.plan.schema import AUTO_TOKENIZER, REFERENCE_TOKENIZER, Guardrails, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.run.request_writer import RequestWriter, Served
from inferometer.server.engine.settings import INPUT_GUARDRAILS, OUTPUT_GUARDRAILS
from inferometer.server.systems.settings import SystemSettings
from inferometer.telemetry.host import environment, usable_cores
from inferometer.workload import tokenizers
from inferometer.workload.traces.survey import Survey


def first_facts(
    plan: Plan,
    folder: RunFolder,
    served: Served,
    tokenizer: tokenizers.Tokenizer,
    schedule: RequestWriter,
    trace: Survey | None,
    started: int,
) -> RunFacts:
    """Write the plan; what is known of the run so far."""
    folder.plan.write_bytes(saved.to_json(plan))
    requests = schedule.facts()
    return RunFacts(
        schema=RUN_SCHEMA,
        id=folder.path.name,
        plan_hash=saved.plan_hash(plan),
        started_wall_ns=started,
        ended_wall_ns=None,
        # Until the end is reached this is what became of it, should the process die.
        interrupted=True,
        simulated=False,
        server_metrics=None,
        timestamp_source=None,
        dead_workers=(),
        salt=schedule.salt,
        fingerprint=requests.fingerprint,
        requests=requests.requests,
        warm_prefixes=requests.warm_prefixes,
        classes=requests.source.classes,
        prompts=requests.source.prompts,
        texts=requests.source.texts,
        made=requests.source.made,
        sessions=requests.source.sessions,
        trace=None if trace is None else trace.facts,
        prompt_format=served.prompt_format,
        length_field=served.length_field,
        template=served.template,
        greeting=served.greeting,
        model=served.model,
        models=tuple(served.models),
        answered_as=served.answered_as,
        server=served.server,
        environment=environment(),
        tokenizer=tokenizers.facts(tokenizer),
    )


def last_facts(facts: RunFacts, schedule: RequestWriter, *, interrupted: bool) -> RunFacts:
    """What is known of the run once its load has ended: its requests are all made."""
    requests = schedule.facts()
    return replace(
        facts,
        ended_wall_ns=time.time_ns(),
        interrupted=interrupted,
        fingerprint=requests.fingerprint,
        requests=requests.requests,
        warm_prefixes=requests.warm_prefixes,
        prompts=requests.source.prompts,
        trace=facts.trace if schedule.ahead is None else schedule.ahead.course(),
    )


class CpuBeside:
    """What is taken beside the workers from now on. `scraper`: CPU time of the scraper so far in s; None without one."""

    def __init__(self, scraper: Callable[[], float | None]) -> None:
        self._scraper, self._scraper_s = scraper, scraper()
        self._began, self._conductor_s = time.monotonic(), time.process_time()

    def taken(self) -> OwnCpu:
        """All until now."""
        last = self._scraper()
        return OwnCpu(
            elapsed_s=time.monotonic() - self._began,
            conductor_s=time.process_time() - self._conductor_s,
            scraper_s=None if last is None or self._scraper_s is None else last - self._scraper_s,
            cores=usable_cores(),
        )


def write_facts(folder: RunFolder, facts: RunFacts) -> None:
    """Save what is known of the run beside its plan."""
    whole_file.write(folder.facts, json.dumps(to_data(facts), indent=1).encode())


def read_facts(folder: RunFolder) -> RunFacts:
    """What `write_facts` saved last. Raises RecordError."""
    try:
        text = whole_file.read(folder.facts)
    except OSError as cause:
        raise RecordError(f"{folder.path}: run.json is missing or damaged ({cause})") from cause
    return from_json(text, RunFacts, RUN_SCHEMA, str(folder.facts))


def check_of_one_run(folder: RunFolder, plan: Plan, facts: RunFacts) -> None:
    """That plan, facts and sealed tables of a folder are of one run, as far as they say. Raises RecordError."""
    if facts.plan_hash not in (saved.plan_hash(plan), saved.file_hash(folder.plan)):
        raise RecordError(f"{folder.plan}: is not the plan of {folder.facts}, which has another plan_hash")
    for path in (folder.record, folder.pulse):
        if run_of(path) not in (None, facts.id):
            raise RecordError(f"{path}: is of another run than {folder.facts}, which has the id {facts.id}")


def deaths(plan: Plan, died: Iterable[WorkerDeath], measured: int) -> tuple[Death, ...]:
    """The workers that died, each with its share of a load of so many measured requests."""
    load, workers = plan.load, plan.instrument.all_workers
    slots = load.concurrency or 1 if load.model == "closed" else None
    alone = plan.workload.turns is None and not isinstance(plan.workload, SessionsWorkload)
    independent = load.model != "users" and alone
    fixed = independent and (slots is None or load.duration_s is None)

    def death(one: WorkerDeath) -> Death:
        requests = len(deal(measured, one.worker, workers, slots)) if fixed else None
        part = 1 / workers if slots is None else slots_of(one.worker, workers, slots) / slots
        return Death(one.worker, one.phase, one.exit_code, one.sent, part, requests, shortage=one.shortage)

    return tuple(death(one) for one in died)


# What is known about the system under test without being declared: the embedded reference server and simulated engines.


def with_known_sut(plan: Plan, engine: SimulatedEngine | None) -> Plan:
    """The plan; where it measures the embedded server or simulates an `engine`, undeclared facts about it are filled in."""
    if plan.target.url is not None:
        return plan
    what = "embedded reference server" if engine is None else f"simulated engine, preset {engine.preset}"
    settings = {} if engine is None else engine.settings
    system = None if engine is None else engine.system
    if engine is not None and system is not None:
        what = f"simulated system {system} on a {what}"
    every = {**settings, **(engine.system_settings if engine is not None else {})}
    ours = {
        "boundary": "engine" if system is None else "compound",
        "software": f"inferometer {__version__}, {what}",
        "notes": ", ".join(f"{name} {value}" for name, value in every.items()) or None,
        "accelerator": "cpu" if engine is None else "simulated",
        "accelerator_count": 0,
        "prefix_caching": "enabled" if settings.get("prefix_caching") else "disabled",
        "cache_state": "cold",
        "guardrails": filters_of(settings, _guards_of(engine)),
    }
    # A saved plan spells every default, so undeclared is what still has its default.
    undeclared = {
        name: value
        for name, value in ours.items()
        if getattr(plan.sut, name) in (None, "unknown", Guardrails())
    }
    plan = plan.model_copy(update={"sut": plan.sut.model_copy(update=undeclared)})
    if plan.tokenizer.name in (AUTO_TOKENIZER, REFERENCE_TOKENIZER):  # it counts with this one
        plan = _counted_with(plan, REFERENCE_TOKENIZER)
    return plan


def _guards_of(engine: SimulatedEngine | None) -> tuple[bool, bool]:
    """Of the system that was simulated, whether a guardrail of its own was on, on the way in and out."""
    if engine is None or engine.system is None:
        return False, False
    return from_data(engine.system_settings, SystemSettings).guards(engine.system)


def filters_of(settings: Mapping[str, object], system: tuple[bool, bool] = (False, False)) -> Guardrails:
    """Which filters an engine of these settings has (draft 4.8.1); the embedded server, without any, has none. `system`:
    whether one that stands on it has filters of its own, of input and output."""
    names, there = [], []
    for side, keys, own in zip(
        ("input", "output"), (INPUT_GUARDRAILS, OUTPUT_GUARDRAILS), system, strict=True
    ):
        checked = any(settings.get(name) for name in keys)
        names += [f"simulated {side} filter"] * checked + [f"the system's own {side} guardrail"] * own
        there.append(checked or own)
    return Guardrails(input_filter=there[0], output_filter=there[1], names=tuple(names))


def as_measured(plan: Plan, facts: RunFacts) -> Plan:
    """The plan with what a run found out: undeclared facts of our own server (`with_known_sut`), and who counts if that was
    left open."""
    plan = with_known_sut(plan, facts.engine)
    kind = facts.tokenizer.kind
    if plan.tokenizer.name == AUTO_TOKENIZER and kind not in (None, "shipped"):
        plan = _counted_with(plan, kind)
    if kind == "none" and plan.workload.count_template:  # a yardstick's lengths have no room for it
        plan = plan.model_copy(
            update={"workload": plan.workload.model_copy(update={"count_template": False})}
        )
    return plan


def _counted_with(plan: Plan, name: str) -> Plan:
    counted = plan.tokenizer.model_copy(update={"name": name, "method": "native"})
    return plan.model_copy(update={"tokenizer": counted})
