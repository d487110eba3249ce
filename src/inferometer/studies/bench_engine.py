"""An engine of a benchmark, over the network: what its turn asks of it.

| step      | by                                                                                              |
| --------- | ----------------------------------------------------------------------------------------------- |
| `counting` | its `/tokenize`                                                                                 |
| `prepare` | its list of models, the adapter's call to load, and one generation that is not measured           |
| `measure` | a whole run (run/conduct.py) of a prompts file                                                   |
| `one_token` | whole answers of one token, to prompts that no cache has                                        |
| `facts`   | the adapter's questions: version, runner, format, quantization, memory                           |
| `unload`  | the adapter's call                                                                               |

An engine without an adapter is measured over the interface given, and what only an adapter knows stays unknown.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from inferometer.addresses import is_loopback, shown
from inferometer.client.http_client import Unanswered
from inferometer.documents.bench import Remark
from inferometer.drive.credentials import headers, read_key
from inferometer.drive.probe import endpoint
from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Reply
from inferometer.engines.adapters.registry import recognised
from inferometer.errors import PeerError
from inferometer.journal.redact import encodable
from inferometer.plan.host_telemetry import WALL
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.run.conduct import conduct
from inferometer.run.evaluate import RunResult
from inferometer.run.request_writer import generation_of, greeting_of
from inferometer.run.target import offer, open_probe
from inferometer.run.ui import Ui
from inferometer.studies.certificate import cited_certificate
from inferometer.studies.detection import Local, look
from inferometer.studies.engine_client import EngineClient
from inferometer.studies.engine_tokens import PATIENCE_S, Counting, TokenCounter, token_counter
from inferometer.telemetry.processes import family, physical_footprint
from inferometer.units import NS_PER_MS
from inferometer.workload.bench_prompts import BenchPrompt, prompt_file

ANSWER_S = 30.0
"""For an adapter's question."""
LOAD_S = 600.0
"""For loading or unloading a model."""
ONE_TOKEN_ASKS = 3
ANEW_ASKS, ANEW_TOKENS = 2, 128
"""The faster of two answers, since one may meet a stall, that are long enough to show a speed."""
LATEST = ":latest"
"""What Ollama adds to a model's name that has no tag."""


Flags = Mapping[str, str | bool | tuple[str, ...] | None]
"""Flags of a plan by name, with their values as text."""


class EngineFailed(Exception):
    """An engine could not be measured: a code, and its facts by name."""

    def __init__(self, code: str, **facts: str | float | int | None) -> None:
        super().__init__(code)
        self.remark = Remark(code, facts)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An engine that has answered. `context`: of the model, in tokens, prompt and answer together; None: not reported.
    `meters`: those of its run that were named as its own."""

    model: str
    context: int | None
    remarks: tuple[Remark, ...]
    meters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Anew:
    """A whole answer that nobody can have kept: its tokens by the engine's count, and what it took."""

    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class OneToken:
    """What a whole answer of one token to a prompt that no cache has takes, as median of ONE_TOKEN_ASKS. `prompt`: its name;
    `anew`: a longer answer to such a prompt, None: without a count of its tokens."""

    prompt: str
    ms: float
    anew: Anew | None = None


@dataclass(frozen=True, slots=True)
class EngineProcesses:
    """What this machine shows of an engine's processes: the runner by their command lines, and the memory that is theirs."""

    runner: str | None
    memory_bytes: int | None


class Engine(Counting, Protocol):
    """What a benchmark asks of an engine."""

    @property
    def label(self) -> str:
        """Its name in tables."""

    @property
    def name(self) -> str:
        """An adapter's key, or what the user calls it."""

    @property
    def url(self) -> str | None:
        """Its base URL."""

    @property
    def model(self) -> str | None:
        """The model asked for; None: the one that it lists."""

    def prepare(self) -> Prepared:
        """Find the model, load it and generate once. Raises EngineFailed."""

    def measure(
        self, prepared: Prepared, prompts: tuple[BenchPrompt, ...], runs: int, out: Path, ui: Ui
    ) -> RunResult:
        """Send each prompt `runs` times, one request at a time. Raises PlanError, PeerError, RecordError, InstrumentError."""

    def one_token(self, prepared: Prepared, prompt: BenchPrompt) -> OneToken | None:
        """How long an answer of one token takes, and a longer one; None: it gave none."""

    def facts(self, model: str) -> EngineFacts | None:
        """The engine by its own account; None: unknown."""

    def process(self) -> EngineProcesses | None:
        """Its processes, if they are on this machine and shown."""

    def unload(self, model: str) -> Remark | None:
        """Unload the model; a remark if that was not possible."""


def _by_wall_meters(plan: Plan) -> Plan:
    """With no meters of power but those that may be of another machine: the engine's, of which this one's say nothing."""
    telemetry = plan.host_telemetry
    wall = tuple(meter for meter in telemetry.power if meter.startswith(WALL))
    return plan.model_copy(update={"host_telemetry": telemetry.model_copy(update={"power": wall})})


@dataclass(frozen=True, slots=True)
class LiveEngine:
    """See the table above. `found`: the key of the adapter that recognised what answers there; `several`: of all adapters that
    did, if they are several, so that none is the one; `options`: further flags of the plan, such as `--api-key-env`; `meters`:
    of power, its own, beside those of `options`."""

    label: str
    name: str
    url: str
    model: str | None = None
    adapter: Adapter | None = None
    found: str | None = None
    several: tuple[str, ...] = ()
    api: str = "chat"
    options: Flags = field(default_factory=dict)
    meters: tuple[str, ...] = ()

    def _plan(self, model: str | None, more: Flags | None = None) -> Plan:
        flags: Flags = {
            "--url": self.url,
            "--model": model,
            "--api": self.api,
            "--concurrency": "1",
            "--warmup": "0",
            "--probe-timeout": f"{LOAD_S:g}",
            "--no-ignore-eos": True,
            "--repeatable-prompts": True,
            **self.options,
            "--power": self._power,
            **(more or {}),
        }
        plan = build(None, flags, environ=os.environ)
        return plan if is_loopback(self.url) else _by_wall_meters(plan)

    @property
    def _power(self) -> tuple[str, ...]:
        shared = self.options.get("--power") or ()
        assert isinstance(shared, tuple)
        return (*self.meters, *shared)

    @contextlib.contextmanager
    def counting(self, model: str | None = None) -> Iterator[TokenCounter | None]:
        """See Counting. `model`: one that is loaded; None: the one that would be measured, if it is."""
        plan = self._plan(self.model, {"--timeout": f"{PATIENCE_S:g}"})
        with open_probe(plan, self.url, read_key(plan.target, os.environ)) as probe:
            counter = None
            # What fails here is for `prepare` to say.
            with contextlib.suppress(PeerError, EngineFailed):
                chosen = model or self._chosen(probe.models().models.names)[0]
                if model is not None or not self._must_load(chosen):
                    counter = token_counter(probe, self.name, chosen)
            yield counter

    def prepare(self) -> Prepared:
        """See Engine."""
        plan = self._plan(self.model)
        with open_probe(plan, self.url, read_key(plan.target, os.environ)) as probe:
            try:
                models = probe.models().models
            except PeerError as cause:
                raise _failed("unreachable", cause) from cause
            model, remarks = self._chosen(models.names)
            if self.adapter is not None and self.found not in (None, self.adapter.key):
                facts = {"expected": self.adapter.key, "found": self.found}
                remarks.append(Remark("other_engine", facts))
            if self._power and not plan.host_telemetry.power:
                remarks.append(Remark("power_elsewhere"))
            if self.several:
                remarks.append(Remark("several_engines", {"found": ", ".join(self.several)}))
            if self.adapter is not None and self.adapter.load is not None:
                remarks += self._loaded(self.adapter.load(model), model)
            try:
                probe.try_out(greeting_of(plan, model))
            except PeerError as cause:
                timed_out = isinstance(cause.__cause__, Unanswered) and cause.__cause__.reason == "timeout"
                names = [encodable(name) for name in models.names]
                missing = bool(names) and model not in names
                code = "warm_up_hung" if timed_out else "model_missing" if missing else "warm_up_failed"
                raise _failed(code, cause, model=model, offered=offer(names)) from cause
        return Prepared(
            model, models.contexts.get(model) or self._context(model), tuple(remarks), self.meters
        )

    def _chosen(self, names: Iterable[str]) -> tuple[str, list[Remark]]:
        """The model to measure. Raises EngineFailed."""
        listed = list(dict.fromkeys(map(encodable, names)))
        if self.model is None:
            if len(listed) == 1:
                return listed[0], []
            if not listed:
                raise EngineFailed("models_unlisted", url=shown(self.url))
            raise EngineFailed("model_open", offered=offer(listed))
        if self.model in listed or not listed:
            return self.model, []
        if self.model + LATEST in listed:
            return self.model + LATEST, []
        return self.model, [Remark("model_not_listed", {"model": self.model})]

    def _context(self, model: str) -> int | None:
        """By the adapter: most lists of models have none. Asked for when the model is loaded, since only then is it settled."""
        facts = self.facts(model)
        known = None if facts is None else facts.model(model)
        return None if known is None else known.context

    def _must_load(self, model: str) -> bool:
        """Whether the model has to be loaded by the adapter's call first, as far as the engine says."""
        if self.adapter is None or self.adapter.load is None:
            return False
        facts = self.facts(model)
        known = None if facts is None else facts.model(model)
        return not ((known is not None and known.loaded) or (facts is not None and not facts.manages_models))

    def _loaded(self, ask: Ask, model: str) -> list[Remark]:
        """Load the model, unless the engine says that it is. An engine that refuses may still answer a generation."""
        if not self._must_load(model):
            return []
        refusal = self._call(ask)
        return [] if refusal is None else [Remark("load_refused", {"model": model, "why": refusal})]

    def measure(
        self, prepared: Prepared, prompts: tuple[BenchPrompt, ...], runs: int, out: Path, ui: Ui
    ) -> RunResult:
        """See Engine."""
        plan = self.planned(prepared.model, prompts, runs, out.parent)
        return conduct(plan, out, ui, certificate=cited_certificate(plan))

    def one_token(self, prepared: Prepared, prompt: BenchPrompt) -> OneToken | None:
        """See Engine. The prompt begins unlike any before it, so that no cache makes it short."""
        plan = self._plan(prepared.model)
        with open_probe(plan, self.url, read_key(plan.target, os.environ)) as probe:

            def asked(tokens: int) -> Anew:
                text = "\n".join(filter(None, (secrets.token_hex(8), prompt.system, prompt.text)))
                begun = time.monotonic_ns()
                reply = probe.try_out(generation_of(plan, prepared.model, text, tokens))
                return Anew(reply.output_tokens or 0, (time.monotonic_ns() - begun) / NS_PER_MS)

            try:
                ms = statistics.median(asked(1).ms for _ in range(ONE_TOKEN_ASKS))
            except PeerError:
                return None
            longer = list[Anew]()
            with contextlib.suppress(PeerError):
                longer += (asked(min(prompt.max_tokens, ANEW_TOKENS)) for _ in range(ANEW_ASKS))
        counted = [one for one in longer if one.tokens > 1]
        fastest = min(counted, key=lambda one: (one.ms - ms) / (one.tokens - 1), default=None)
        return OneToken(prompt.name, ms, fastest)

    def planned(self, model: str, prompts: tuple[BenchPrompt, ...], runs: int, folder: Path) -> Plan:
        """The plan of its run, whose prompts file is written into `folder`: each prompt once, round after round."""
        name = file_name(self.label)
        path = folder / f"prompts-{name}.jsonl"
        takes = self._plan(model).target.interface.takes_messages
        path.write_bytes(prompt_file(prompts, messages=takes))
        more = {
            "--name": name,
            "--prompts": str(path),
            "--prompts-order": "file",
            "--requests": str(len(prompts) * runs),
        }
        return self._plan(model, more)

    def facts(self, model: str) -> EngineFacts | None:
        """See Engine."""
        adapter = self.adapter
        if adapter is None:
            return None
        with self._client() as client:
            replies = look(client, time.monotonic() + ANSWER_S).replies
            if adapter not in recognised(replies):
                return None
            facts = adapter.read(replies)
            known = facts.model(model)
            if known is not None:
                known = adapter.describe(known, _replies(client, adapter.model_asks(model)))
        return replace(facts, models=(known,)) if known is not None else facts

    def process(self) -> EngineProcesses | None:
        """See Engine."""
        target = endpoint(self.url)
        if not is_loopback(self.url):
            return None
        here = Local.now()
        listeners = here.listeners(target.port, target.host)
        if not listeners:
            return None
        pids = tuple({pid for one in listeners for pid in family(one.pid, here.running)})
        sizes = [size for pid in pids if (size := physical_footprint(pid)) is not None]
        runner = None if self.adapter is None else self.adapter.runner_of(here.commands(pids))
        return EngineProcesses(runner, sum(sizes) if sizes and len(sizes) == len(pids) else None)

    def unload(self, model: str) -> Remark | None:
        """See Engine."""
        if self.adapter is None:
            return Remark("unload_unknown")
        facts = self.facts(model)
        if self.adapter.unload is None or (facts and not facts.manages_models):
            return Remark("unload_none")
        refusal = self._call(self.adapter.unload(model))
        return None if refusal is None else Remark("unload_refused", {"model": model, "why": refusal})

    def _call(self, ask: Ask) -> str | None:
        """Why the engine did not do it; None: it did."""
        with self._client() as client:
            try:
                reply = client.call(ask, LOAD_S)
            except Unanswered as cause:
                return str(cause)
        return None if reply.ok else f"{reply.status}: {str(reply.body)[:200]}"

    def _client(self) -> EngineClient:
        target = self._plan(self.model).target
        return EngineClient(self.url, headers(target, read_key(target, os.environ)), timeout_s=ANSWER_S)


def _replies(client: EngineClient, asks: Iterable[Ask]) -> dict[str, Reply]:
    """By path; those that did not come are not there."""
    found: dict[str, Reply] = {}
    for ask in asks:
        with contextlib.suppress(Unanswered):
            found[ask.path] = client.call(ask)
    return found


def told(cause: PeerError) -> str:
    """What a server said, with what these commands have against it: not every flag of a run is one of theirs."""
    key = cause.status in (401, 403)
    return cause.said[:400] + (" Name the variable that holds its key with --api-key-env." if key else "")


def _failed(code: str, cause: PeerError, **facts: str | None) -> EngineFailed:
    return EngineFailed(code, why=told(cause), **facts)


def file_name(label: str) -> str:
    """A label as part of a file's name."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in label)[
        :48
    ]
