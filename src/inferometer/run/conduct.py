"""The one file that knows every room. It reads top to bottom as a run goes:

    plan -> workload -> drive -> journal -> measure -> judge -> report

`conduct` carries a plan out; `evaluate` does everything from the sealed record on, so that `report` and `recover` need no
server. (run/simulate.py carries a plan out in virtual time.)
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from inferometer import __version__
from inferometer.calibration import certificate as certificates
from inferometer.drive import probe as probing
from inferometer.drive.credentials import headers, read_key
from inferometer.drive.pacer import deal, slots_of
from inferometer.drive.progress_counters import Progress
from inferometer.drive.tls import context
from inferometer.drive.worker_messages import Job
from inferometer.drive.worker_pool import Crew, Interrupt
from inferometer.engines import openai
from inferometer.errors import InstrumentError, PlanError, Problem, RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import Redactor
from inferometer.journal.schema import OUTCOME, PULSE, RECORD, Phase
from inferometer.journal.seal import read_table, seal, streams
from inferometer.judge.compliance.sources import brief_of
from inferometer.judge.judge import arrival_found, judge
from inferometer.judge.slo import slo_outcomes
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import Death, Record, Replay
from inferometer.measure.series import series
from inferometer.plan import saved
from inferometer.plan.schema import REFERENCE_TOKENIZER, SERVER_TOKENIZER, Guardrails, Plan
from inferometer.report.run.composition import summarise
from inferometer.report.run.files import write_reports
from inferometer.run.replay import Replayed
from inferometer.run.requests import (
    PromptFormat,
    Requests,
    Served,
    last_facts,
    options_of,
    requests_of,
    surveyed,
)
from inferometer.run.scraping import Scrapes, exported, settle
from inferometer.run.warmup import Part, warm_up, warmed
from inferometer.server.embedded import Embedded
from inferometer.server.http_reply import PRODUCT
from inferometer.telemetry.host import environment, hot_path
from inferometer.units import seconds_to_ns
from inferometer.workload import tokenizers
from inferometer.workload.context_limit import Room
from inferometer.workload.prompts import NONCES
from inferometer.workload.sources import Source, sourced
from inferometer.workload.traces.survey import Survey

SPARE_SECONDS = 1.0
SPARE_MOST = 512
"""Open loop: connections opened before the start, one for each request of the first second, within reason."""


class Ui(Protocol):
    """What the person watching is told."""

    def note(self, text: str) -> None:
        """One line about what happens now."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """Where the load stands; called several times a second. `total` counts this phase's requests, if known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run came to: its folder, its summary (the data of summary.json), and what went wrong on the way, for people."""

    folder: Path
    summary: dict[str, Any]
    notes: list[str]

    @property
    def exit_code(self) -> int:
        """The exit code of the design: 0 VALID, 3 INVALID, 4 INCONCLUSIVE, 5 nothing succeeded, 130 interrupted."""
        if self.summary["run"]["interrupted"]:
            return 130
        requests = self.summary["requests"]
        if requests["sent"] and not requests["completed"]:
            return 5
        return {"VALID": 0, "INVALID": 3, "INCONCLUSIVE": 4}[self.summary["verdict"]["status"]]


@dataclass(frozen=True, slots=True)
class _Target(Served):
    """The server as the probe found it, and what is needed to talk to it."""

    endpoint: probing.Endpoint = field(kw_only=True)
    family: int = field(kw_only=True)
    address: tuple[str | int, ...] = field(kw_only=True)


def conduct(
    plan: Plan, out: Path, ui: Ui, *, embedded: Embedded | None = None, calibrating: bool = False
) -> Finding:
    """Carry a plan out. Raises PlanError, PeerError (before anything was measured), RecordError, InstrumentError.

    `embedded`: a reference server that runs already. A plan without a URL is then measured there, and it goes on running.
    `calibrating`: the run is a calibration's own and is not to be judged by an earlier one.
    """
    started = time.time_ns()
    key = read_key(plan.target, os.environ)
    folder = RunFolder.create(out, plan.name, started)
    try:
        with ExitStack() as stack:
            # Processes first: they start up while this one prepares.
            embedded = _embedded(plan, embedded, folder, stack)
            scrapes = stack.enter_context(Scrapes(plan, folder))
            with Crew(plan.instrument.workers, folder.log) as crew:
                plan, source = sourced(plan)
                tokenizer = _tokenizer(plan, source)
                url = plan.target.url if embedded is None else embedded.url()
                assert url is not None
                plan, trace = surveyed(plan, ui.note)
                if embedded is None:
                    how = "" if plan.load.cold_start else ", with one short request"
                    ui.note(f"asking the server what it serves{how}")
                probe = stack.enter_context(_probe(plan, url, key))
                target, tokenizer = _look_at(plan, probe, tokenizer)
                where = "the embedded reference server" if embedded else target.endpoint.url
                ui.note(f"{target.model} at {where}")
                tight = source.check(plan, trace, tokenizer, target.room)
                if tight is not None:
                    ui.note(f"{target.model} takes {tight.context:,} tokens: making every request first")
                ours = (target.server or "").startswith(PRODUCT)
                scraped = {"server_metrics": scrapes.brief(plan, target.endpoint, key, at_once=ours)}
                salt = secrets.randbelow(NONCES)
                clock = time.monotonic_ns
                schedule = requests_of(plan, source, trace, target, tokenizer, folder, salt, clock, tight)
                schedule.prepare()
                facts = first_facts(plan, folder, target, tokenizer, schedule, trace, started) | scraped
                # Looked up once, here: later, or on another machine, another one would be found.
                cited = {"status": "own"} if calibrating else _certificate(plan, facts["environment"])
                facts["calibration"] = cited
                folder.write_run(facts)
                crew.brief(_jobs(plan, trace, folder, target, key))
                for line in scrapes.ready():
                    ui.note(line)
                interrupted = _drive(plan, crew, schedule, folder, tokenizer, ui, scrapes)
                facts |= last_facts(facts, schedule) | {
                    "ended_wall_ns": time.time_ns(),
                    "interrupted": interrupted,
                    "timestamp_source": crew.outcome.timestamp_source,
                }
            # Who died is known once all have left.
            folder.write_run(facts | {"dead_workers": _deaths(plan, crew, schedule.measured)})
            ui.note("measuring is over; reading the record")
            # The server is still there: it may be the one that counts.
            return conclude(folder, tokenizer, scrapes)
    except InstrumentError:
        raise  # its reason is in the folder's log
    except BaseException:
        leave_no_empty(folder)
        raise


def leave_no_empty(folder: RunFolder) -> None:
    """Remove the folder of a run that came to nothing."""
    if not any(folder.journal.glob("*.arrows")):
        shutil.rmtree(folder.path)  # nothing was measured: leave nothing behind


def conclude(folder: RunFolder, tokenizer: tokenizers.Tokenizer, scrapes: Scrapes | None = None) -> Finding:
    """Seal what the journal holds, end what is still scraped, and evaluate it all. Raises RecordError."""
    try:
        seal(folder, tokenizer.count_all)
        if scrapes is not None:
            settle(folder, scrapes.end(interrupted=folder.read_run()["interrupted"]))
        return evaluate(folder)
    except (OSError, KeyboardInterrupt) as cause:
        why = "interrupted" if isinstance(cause, KeyboardInterrupt) else _words(cause)
        raise RecordError(
            f"measured, but not reported: {why}. Nothing is lost: `inferometer recover {folder.path}` goes on from here"
        ) from cause


def _words(cause: OSError) -> str:
    return f"{cause.filename or 'a file'}: {cause.strerror or cause}"


def evaluate(folder: RunFolder) -> Finding:
    """Measure, judge and report a sealed run. Raises RecordError."""
    facts = folder.read_run()
    plan = _known(saved.read(folder.plan), facts.get("engine"))
    table = read_table(folder.record, RECORD)
    record = Record.from_tables(
        table,
        read_table(folder.pulse, PULSE),
        interrupted=facts["interrupted"],
        timestamp_source=facts["timestamp_source"],
        deaths=[Death(**death) for death in facts["dead_workers"]],
        replay=Replay.of(facts.get("trace")),
        classes=facts.get("classes", ()),
    )
    told, notes = exported(folder, plan, facts)
    samples = samples_of(plan, record)
    measurement = measure(plan, record, samples, told)
    warm = warmed(plan.load, table, facts.get("warm_prefixes"), told)
    verdict = judge(plan, measurement, record, facts.get("calibration"), facts.get("requests"), warm)
    arrival = arrival_found(plan, measurement, record)
    slos = slo_outcomes(plan, measurement, record)
    summary = summarise(plan, facts, measurement, verdict, arrival, slos, warm)
    summary["compliance"] = brief_of(summary)
    write_reports(folder.path, summary, series(plan, record, samples, told))
    return Finding(folder.path, summary, notes)


def recover(folder: RunFolder) -> Finding:
    """Seal what the journal of a run that died holds, and evaluate it."""
    plan = saved.read(folder.plan)
    seal(folder, tokenizers.counter(plan.tokenizer).count_all)
    settle(folder)
    return evaluate(folder)


# What `conduct` does, in its order.


def _embedded(plan: Plan, running: Embedded | None, folder: RunFolder, stack: ExitStack) -> Embedded | None:
    """The reference server of a plan that names no server: the one that runs, or one that ends with the run."""
    if plan.target.url is not None:
        return None
    return running or stack.enter_context(Embedded(folder.log))


def _known(plan: Plan, engine: dict[str, Any] | None) -> Plan:
    """The plan, and where the embedded server is measured, or an engine simulated, also what we know of it for it is ours."""
    if plan.target.url is not None:
        return plan
    what = "embedded reference server" if engine is None else f"simulated engine, preset {engine['preset']}"
    settings = {} if engine is None else engine["settings"]
    ours = {
        "boundary": "engine",
        "software": f"inferometer {__version__}, {what}",
        "notes": ", ".join(f"{name} {value}" for name, value in settings.items()) or None,
        "accelerator": "cpu" if engine is None else "simulated",
        "accelerator_count": 0,
        "prefix_caching": "enabled" if settings.get("prefix_caching") else "disabled",
        "cache_state": "cold",
        "guardrails": Guardrails(input_filter=False, output_filter=False),
    }
    # A saved plan spells every default, so undeclared is what still has its default.
    undeclared = {
        name: value
        for name, value in ours.items()
        if getattr(plan.sut, name) in (None, "unknown", Guardrails())
    }
    updates: dict[str, Any] = {"sut": plan.sut.model_copy(update=undeclared)}
    if plan.tokenizer.name == REFERENCE_TOKENIZER:  # it counts with this one
        updates["tokenizer"] = plan.tokenizer.model_copy(update={"method": "native"})
    return plan.model_copy(update=updates)


def _tokenizer(plan: Plan, source: Source) -> tokenizers.Tokenizer | None:
    """The plan's tokenizer; None where the server is to be asked for its own. Raises PlanError."""
    if plan.tokenizer.name == SERVER_TOKENIZER:
        return None
    tokenizer = tokenizers.load(plan.tokenizer)
    source.check_tokenizer(tokenizer)
    return tokenizer


def _probe(plan: Plan, url: str, key: str | None) -> probing.Probe:
    """Untimed questions to the server of this plan. Raises PlanError."""
    endpoint = probing.endpoint(url)
    verify = _trust(plan) if endpoint.scheme == "https" else False
    redact = Redactor([key] if key is not None else [])
    return probing.Probe(endpoint, headers(plan.target, key), verify, plan.target.timeout_s, redact)


def _look_at(
    plan: Plan, probe: probing.Probe, tokenizer: tokenizers.Tokenizer | None
) -> tuple[_Target, tokenizers.Tokenizer]:
    """Find out what is served there, and that it answers a request of this plan's kind. Raises PeerError, PlanError.

    Without a `tokenizer` the server's own is the plan's, and is found here too. Before a cold start nothing is generated
    (draft 4.5.3): what only an answer would tell stays unknown.
    """
    wanted, endpoint = plan.target, probe.endpoint
    family, address = probing.resolve(endpoint, wanted.connect_timeout_s)
    models, server = probe.models()
    model = wanted.model or (models[0] if len(models) == 1 else None)
    if model is None:
        offered = ", ".join(models) if models else "the server lists none"
        raise PlanError([Problem("--model", f"which model? {offered}")])
    cold = plan.load.cold_start
    found = probing.UNASKED if cold else _tried(plan, probe, model)
    tokenizer = tokenizer or tokenizers.load(plan.tokenizer, probe.tokenizer(model))
    prompt_format: PromptFormat = "text"
    if wanted.api == "completions" and not plan.workload.text_only and tokenizer.kind != "server":
        highest = max(set(range(tokenizer.vocab_size)) - tokenizer.reserved)
        known = highest < probe.vocabularies.get(model, highest + 1)
        asked = plan.workload.prompt_format == "ids"
        if known and (asked if cold else probe.takes_ids(model, [highest, highest])):
            prompt_format = "ids"
        elif plan.workload.prompt_format == "ids":
            raise PlanError(
                [Problem("--prompt-format", f"{model} does not take token ids up to {highest}; use text")]
            )
    around = _around(found, tokenizer) if prompt_format == "text" else None
    template = _template(plan, around)
    target = _Target(
        model, models, server, prompt_format, found.length_field, template,
        room=_room(plan, probe.contexts.get(model), prompt_format, around, tokenizer),
        endpoint=endpoint, family=family, address=address,
    )  # fmt: skip
    return target, tokenizer


def _tried(plan: Plan, probe: probing.Probe, model: str) -> probing.Reply:
    """One short request, and one for each class: a field that the server refuses is better found now. Raises PeerError."""
    api = plan.target.api
    found = probe.try_out(api, model, options_of(plan))
    for one in plan.workload.classes:
        probe.try_out(api, model, options_of(plan, one.fields))
    return found


def _around(found: probing.Reply, tokenizer: tokenizers.Tokenizer) -> int | None:
    """What the server counts beyond the text of the probe's one message, if it told. None also where that is less than nothing:
    not the model's own tokenizer, or another count than of tokens; checks of the run will say."""
    if found.prompt_tokens is None:
        return None
    extra = found.prompt_tokens - len(tokenizer.encode(probing.GREETING))
    return extra if extra >= 0 else None


def _template(plan: Plan, extra: int | None) -> int | None:
    """The chat template's tokens, if lengths are to include them and they are known. Raises PlanError."""
    if not plan.workload.count_template or extra is None:
        return None
    lengths = [one.input_tokens for one in plan.workload.classes if one.input_tokens is not None]
    shortest = min(lengths or [plan.workload.input_tokens], key=lambda length: length.mean())
    if extra >= shortest.mean():
        raise PlanError(
            [
                Problem(
                    "--input-tokens",
                    f"the server puts {extra} tokens around every prompt, which leaves no room for "
                    f"{shortest} with them: ask for more, or give --count-template no",
                )
            ]
        )
    return extra


def _room(
    plan: Plan,
    context: int | None,
    prompt_format: PromptFormat,
    around: int | None,
    tokenizer: tokenizers.Tokenizer,
) -> Room | None:
    """What the model takes, if the server tells. `around`: the tokens that it puts around a text, if they are known."""
    if context is None:
        return None
    native = _known(plan, None).tokenizer.own
    return Room(context, native or prompt_format == "ids", tokenizer.name, around or 0 if native else 0)


def _trust(plan: Plan) -> ssl.SSLContext:
    try:
        return context(plan.target.tls_verify, plan.target.tls_ca_file)
    except (OSError, ssl.SSLError) as cause:
        raise PlanError(
            [Problem("--ca-file", f"holds no certificates that can be read ({cause})")]
        ) from cause


def first_facts(
    plan: Plan,
    folder: RunFolder,
    served: Served,
    tokenizer: tokenizers.Tokenizer,
    schedule: Requests | Replayed,
    trace: Survey | None,
    started: int,
) -> dict[str, Any]:
    """Write the plan; what is known of the run so far."""
    folder.plan.write_bytes(saved.to_json(plan))
    return {
        "id": folder.path.name,
        "plan_hash": saved.plan_hash(plan),
        "started_wall_ns": started,
        "ended_wall_ns": None,
        # Until the end is reached this is what became of it, should the process die.
        "interrupted": True,
        "simulated": False,
        "server_metrics": None,
        "timestamp_source": None,
        "dead_workers": [],
        "salt": schedule.salt,
        **schedule.facts(),
        "trace": None if trace is None else trace.facts(),
        "prompt_format": served.prompt_format,
        "length_field": served.length_field,
        "template": served.template,
        "model": served.model,
        "models": served.models,
        "server": served.server,
        "environment": environment(),
        "tokenizer": tokenizers.facts(tokenizer),
    }


def _certificate(plan: Plan, here: dict[str, Any]) -> dict[str, Any]:
    machine, where = certificates.machine_of(here), certificates.folder(os.environ)
    return certificates.cited(certificates.find(where, machine, hot_path(), plan.instrument.workers))


def _heads(plan: Plan, target: _Target, key: str | None) -> list[str]:
    """A request's head up to the value of Content-Length: one for all, or of classes with lines of their own, one for each."""
    wanted, classes = plan.target, plan.workload.classes
    ours = {
        "Host": target.endpoint.host_header,
        "User-Agent": "inferometer",
        "Accept": "text/event-stream" if wanted.stream else "application/json",
        "Content-Type": "application/json",
    }
    everybodys = _over(ours, headers(wanted, key))

    def head(more: Mapping[str, str]) -> str:
        lines = _over(everybodys, more)
        text = f"POST {target.endpoint.base}{openai.PATHS[wanted.api]} HTTP/1.1\r\n"
        return text + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "Content-Length: "

    return [head(one.headers) for one in classes] if any(one.headers for one in classes) else [head({})]


def _over(lines: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Header lines, and others in place of those of the same name, however it is spelled."""
    named = {name.lower() for name in others}
    return {name: value for name, value in lines.items() if name.lower() not in named} | dict(others)


def _jobs(plan: Plan, trace: Survey | None, folder: RunFolder, target: _Target, key: str | None) -> list[Job]:
    wanted, load, workers = plan.target, plan.load, plan.instrument.workers
    open_loop, slots = load.model != "closed", load.concurrency or 1
    first = trace.first_second if trace is not None else (load.offered_rate or 0) * SPARE_SECONDS
    at_start = -(-int(min(first, SPARE_MOST)) // workers)
    return [
        Job(
            folder=str(folder.path),
            worker=worker,
            workers=workers,
            family=target.family,
            address=list(target.address),
            heads=_heads(plan, target, key),
            secrets=[key] if key is not None else [],
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
        )
        for worker in range(workers)
    ]


def _drive(
    plan: Plan,
    crew: Crew,
    schedule: Requests | Replayed,
    folder: RunFolder,
    tokenizer: tokenizers.Tokenizer,
    ui: Ui,
    scrapes: Scrapes,
) -> bool:
    """Warm-up, then the measurement. Ctrl-C ends the phase that runs, and no other begins; True if it was pressed."""
    load, told = plan.load, 0

    def watch(phase: int, progress: Progress) -> None:
        nonlocal told
        for worker in list(crew.outcome.dead)[told:]:
            told += 1
            ui.note(f"worker {worker} has died: this run will be INVALID; the others go on")
        ui.watch(Phase(phase), progress, expected(Phase(phase), schedule))

    def work() -> bool:
        return not interrupt.pressed and schedule.write_on()

    def play(part: Part) -> bool:
        if interrupt.pressed:
            return False
        probing = part.phase is Phase.PROBE  # with nothing else going on, here or there
        rows = part.stop - part.first if probing else schedule.rows
        crew.begin(part.phase, rows, part=(part.first, part.stop), cycle=part.cycle)
        if not probing and not part.cycle:
            schedule.measurement(crew.announce)
        crew.finish(part.phase, watch, interrupt, (lambda: False) if probing else work)
        return not interrupt.pressed

    def warmed_up() -> bool:
        schedule.warm_up()
        mark = partial(scrapes.mark, Phase.WARMUP)
        mark(begins=True)
        seen = partial(streams, folder, "worker", OUTCOME)
        # Scraped once the last answer is there, too: is the queue empty?
        go_on = warm_up(load, schedule.warm_rows, play, seen, tokenizer.count_all, partial(mark, begins=True))
        mark(begins=False)
        return go_on

    with interrupts(seconds_to_ns(load.drain_s)) as interrupt:
        if not load.warmup:
            schedule.measurement(crew.announce)
        elif not warmed_up():
            schedule.close()
            return True
        if not interrupt.pressed:
            duration = seconds_to_ns(load.duration_s) if load.duration_s is not None else 0
            again = load.model == "closed" and load.requests is None
            scrapes.mark(Phase.MEASURE, begins=True)
            start = crew.begin(
                Phase.MEASURE, schedule.rows, duration_ns=duration, again=again, appended=schedule.appended
            )
            schedule.began(start)
            crew.finish(Phase.MEASURE, watch, interrupt, work)
            scrapes.mark(Phase.MEASURE, begins=False)
        schedule.close()
        return interrupt.pressed


def expected(phase: Phase, schedule: Requests | Replayed) -> int | None:
    """How many requests a phase will have, if that is known."""
    return {Phase.WARMUP: schedule.warm, Phase.MEASURE: schedule.total}.get(phase)


def _deaths(plan: Plan, crew: Crew, measured: int) -> list[dict[str, Any]]:
    """The workers that died, each with its share of a load of so many measured requests."""
    load, workers = plan.load, plan.instrument.workers
    slots = load.concurrency or 1 if load.model == "closed" else None
    alone = load.model != "users" and plan.workload.turns is None
    fixed = alone and (slots is None or load.duration_s is None)

    def share(worker: int) -> dict[str, Any]:
        requests = len(deal(measured, worker, workers, slots)) if fixed else None
        part = 1 / workers if slots is None else slots_of(worker, workers, slots) / slots
        return {"load_share": part, "requests": requests}

    return [asdict(death) | share(death.worker) for death in crew.outcome.dead.values()]


@contextmanager
def interrupts(drain_ns: int) -> Iterator[Interrupt]:
    """Ctrl-C and SIGTERM mean: stop gracefully."""
    interrupt = Interrupt(drain_ns)
    before = {number: signal.signal(number, interrupt.press) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
