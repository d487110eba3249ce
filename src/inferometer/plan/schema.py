"""The Plan: everything that decides what a run does, frozen before the clock starts.

A plan is data. It is saved resolved (every default written out) as `plan.json`, hashed, and can be run again.
It never holds a secret: only the name of the environment variable or file that does.

What one part implies about itself is settled here, so that a part is complete however it was made: a rate means open loop, a
standard workload has its own lengths, another tokenizer is the model's own. What two keys forbid each other is in `rules.py`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from inferometer.journal.kept_text import KeepText
from inferometer.plan.declarations import Declared
from inferometer.plan.host_telemetry import HostTelemetry
from inferometer.plan.lead_in import LEAD_PER_SLOT
from inferometer.plan.part import NUMBER, SECONDS, Group, Option, Part, Sha256, Values
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.slo import Slo
from inferometer.plan.target import Target
from inferometer.plan.version_1 import own_keys
from inferometer.plan.workload import FileWorkload, StandardWorkload, Workload

SCHEMA: Literal["inferometer/plan/2"] = "inferometer/plan/2"
VERSION_1 = "inferometer/plan/1"
"""Of inferometer 0.1.0, did not name the kind of a workload, and had the keys of every kind."""
READABLE = (SCHEMA, VERSION_1)

DEFAULT_CONCURRENCY = 16
DEFAULT_REQUESTS = 1000
DEFAULT_WARMUP = 100
"""Draft 4.5.1's number; with the standard workloads these also make its 10,000 output tokens."""
REFERENCE_TOKENIZER = "cl100k_base"
SHIPPED_TOKENIZERS = (REFERENCE_TOKENIZER, "o200k_base")
AUTO_TOKENIZER = "auto"
SERVER_TOKENIZER = "server"
NO_TOKENIZER = "none"
UNCOUNTED = (NO_TOKENIZER, "learned")
"""Tokenizers whose count of a text is not the server's: a yardstick, or an estimate by a learned ratio."""

_SUT: Group = "System under test (declared)"


def _not_1(value: object) -> bool:
    """Whether a number, or its text, is another than 1; False of what is no number."""
    try:
        return isinstance(value, str | int | float) and float(value) != 1
    except (ValueError, OverflowError):
        return False


class Load(Part):
    """When requests are sent.

    `closed`: `concurrency` requests in flight, each replaced the moment it ends (draft 4.2.4).
    `open`: `rate` requests per second, at instants drawn before the start (draft 4.2.3); `gamma` gaps have shape
    `burstiness` (1 is Poisson, below 1 is burstier). Ends after `requests` requests or `duration_s`, whichever is first.
    The arrival `trace` has neither rate nor duration: the plan's Trace says when, and `requests` is the most of it to replay.
    `users`: so many of them, each of whom asks `user_rate` times a second, at instants drawn before the start, but waits for
    the answer to what it asked before.

    The warm-up goes on until `warmup` requests and `warmup_tokens` output tokens are done, both. Up to `warmup_probes` single
    requests behind it find out whether the server has settled; 0: nobody looks (draft 4.5.2). `warmup_prefixes`: its requests
    begin with what measured ones share; else they share nothing with those. `cold_start`: the load's first requests are what is
    to be measured (draft 4.5.3).

    Implied: a `rate` alone is open loop, `users` are users, anything else closed, with 16 in flight; a `burstiness` other than
    1 without an arrival is gamma; a user's arrivals are constant; 1,000 requests when neither end is given; 100 requests of
    warm-up, but no more than are measured, and none before a cold start.
    """

    model: Annotated[
        Literal["closed", "open", "users"],
        Field(description="closed: requests in flight; open: requests per second; users: each at a rate."),
    ] = "closed"
    concurrency: Annotated[
        Annotated[int, Field(ge=1, le=100_000), NUMBER] | None,
        Field(description="Closed loop: this many requests in flight."),
        Option(
            "--concurrency",
            "Common options",
            "N",
            default=f"{DEFAULT_CONCURRENCY}",
            drops=(
                "load.model",
                "load.rate",
                "load.arrival",
                "load.burstiness",
                "load.users",
                "load.user_rate",
            ),
        ),
    ] = None
    rate: Annotated[
        Annotated[float, Field(ge=1e-6, le=1_000_000), NUMBER] | None,
        Field(description="Open loop: this many requests per second, whatever the server does."),
        Option(
            "--rate",
            "Common options",
            "PER_S",
            drops=("load.model", "load.concurrency", "load.users", "load.user_rate"),
        ),
    ] = None
    users: Annotated[
        Annotated[int, Field(ge=1, le=100_000), NUMBER] | None,
        Field(description="N users, each requesting at --user-rate but waiting for its own answers."),
        Option("--users", "Load", "N", drops=("load.model", "load.concurrency", "load.rate")),
    ] = None
    user_rate: Annotated[
        Annotated[float, Field(ge=1e-6, le=1_000_000), NUMBER] | None,
        Field(description="Requests per second of each user."),
        Option("--user-rate", "Load", "PER_S", drops=("load.model", "load.concurrency", "load.rate")),
    ] = None
    arrival: Annotated[
        Literal["poisson", "constant", "gamma", "trace"],
        Field(description="Arrival process of open loop and users: poisson, constant or gamma."),
        Option(
            "--arrival",
            "Load",
            "PROCESS",
            default="poisson, constant for users",
            drops=("load.burstiness",),
        ),
    ] = "poisson"
    burstiness: Annotated[
        float,
        Field(
            ge=0.001,
            le=1_000,
            description="Shape of gamma gaps: 1 is Poisson, below 1 burstier, above 1 more regular. Implies gamma.",
        ),
        NUMBER,
        Option("--burstiness", "Load", "K", drops=("load.arrival",)),
    ] = 1.0
    requests: Annotated[
        Annotated[int, Field(ge=1, le=10_000_000), NUMBER] | None,
        Field(description="End after this many requests."),
        Option(
            "--requests",
            "Common options",
            "N",
            default=f"{DEFAULT_REQUESTS} without a duration; for a trace, all",
        ),
    ] = None
    duration_s: Annotated[
        Annotated[float, Field(gt=0, le=604_800), SECONDS] | None,
        Field(description="End after this long: seconds, or 90s, 5m, 1h."),
        Option("--duration", "Common options", "S"),
    ] = None
    warmup: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="Requests before the measurement, recorded separately; 0: none. At most as many as are measured.",
        ),
        NUMBER,
        Option("--warmup", "Warm-up", "N"),
    ] = DEFAULT_WARMUP
    warmup_tokens: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="Extend the warm-up until it has produced N output tokens as well.",
        ),
        NUMBER,
        Option("--warmup-tokens", "Warm-up", "N"),
    ] = 0
    warmup_probes: Annotated[
        int,
        Field(
            ge=0,
            le=1_000,
            description="After warm-up, send up to N probe requests, one at a time, until latency has stabilised; 0: off.",
        ),
        NUMBER,
        Option("--warmup-probes", "Warm-up", "N"),
    ] = 0
    warmup_prefixes: Annotated[
        bool, Field(description="Whether warm-up requests use the shared prefixes of measured requests.")
    ] = True
    cold_start: Annotated[
        bool, Field(description="Measure from the first request on: no warm-up and no request before it.")
    ] = False
    drain_s: Annotated[
        float,
        Field(ge=0, le=86_400, description="Wait at most this long for requests in flight at the end."),
        SECONDS,
        Option("--drain", "Load", "S"),
    ] = 30.0

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        load = {key: value for key, value in given.items() if value is not None}
        traced = load.get("arrival") == "trace"
        if "model" not in load:
            rated = "rate" in load and "concurrency" not in load
            users = ("users" in load or "user_rate" in load) and not {"rate", "concurrency"} & load.keys()
            load["model"] = "users" if users else "open" if rated or traced else "closed"
        if "arrival" not in load and _not_1(load.get("burstiness", 1)):
            load["arrival"] = "gamma"
        if "arrival" not in load and load["model"] == "users":
            load["arrival"] = "constant"
        return load

    @property
    def offered_rate(self) -> float | None:
        """Requests a second that are asked for whatever the server does, or by all users if none has to wait; None: no rate."""
        if self.model == "users":
            return None if self.users is None or self.user_rate is None else self.users * self.user_rate
        return self.rate

    @property
    def lead_in(self) -> int:
        """Closed loop: requests that take all slots before the first measured one is sent (drive/pacer.py). 0: a single slot
        has no first wave, and of a cold start that wave is what is to be measured."""
        slots = self.concurrency or 1
        leads = self.model == "closed" and slots > 1 and not self.cold_start
        return LEAD_PER_SLOT * slots if leads else 0

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """What is implied is no field that was set: a workload's file says otherwise."""
        requests = self.requests
        if requests is None and self.duration_s is None and self.arrival != "trace":
            requests = DEFAULT_REQUESTS
        implied: dict[str, int | None] = {"requests": requests}
        if self.model == "closed" and self.rate is None and self.concurrency is None:
            implied["concurrency"] = min(DEFAULT_CONCURRENCY, requests or DEFAULT_CONCURRENCY)
        if "warmup" not in self.model_fields_set:
            implied["warmup"] = 0 if self.cold_start else min(DEFAULT_WARMUP, requests or DEFAULT_WARMUP)
        for name, value in implied.items():
            object.__setattr__(self, name, value)  # frozen from here on
        return self


class Trace(Part):
    """A recorded load to replay: arrivals and lengths from `file`, in place of those that Load and Workload would draw.

    Trace time begins with the file's first row. Replayed is what lies in [start_s, end_s) of it, `speed` times as fast; the
    measurement begins at start_s. `sha256` is that of the file: filled in when a run begins, and demanded of the file from
    then on. `format` likewise, where it was `auto`.
    """

    file: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(
            description="Replay a trace: arrivals and lengths from a file of Mooncake's, Azure's, BurstGPT's, or plain JSONL."
        ),
        Option(
            "--trace",
            "Trace replay",
            "FILE",
            drops=(
                *("load.model", "load.rate", "load.concurrency", "load.users", "load.user_rate"),
                *("load.arrival", "load.burstiness", "load.requests", "load.duration_s"),
                *("trace.format", "trace.sha256"),
            ),
        ),
    ] = None
    format: Annotated[
        Literal["auto", "mooncake", "azure", "burstgpt", "jsonl"],
        Field(description="auto (recognised by the first line), mooncake, azure, burstgpt or jsonl."),
        Option("--trace-format", "Trace replay", "FORMAT"),
    ] = "auto"
    speed: Annotated[
        float,
        Field(ge=0.001, le=1_000_000, description="Replay X times as fast as recorded."),
        NUMBER,
        Option("--trace-speed", "Trace replay", "X"),
    ] = 1.0
    start_s: Annotated[
        float,
        Field(
            ge=0, le=1e9, description="Begin this long after the trace's first row: seconds, or 90s, 5m, 1h."
        ),
        SECONDS,
        Option("--trace-start", "Trace replay", "S"),
    ] = 0.0
    end_s: Annotated[
        Annotated[float, Field(gt=0, le=1e9), SECONDS] | None,
        Field(description="End before this long after the trace's first row."),
        Option("--trace-end", "Trace replay", "S"),
    ] = None
    sha256: Annotated[
        Sha256 | None,
        Field(description="The file's SHA-256; filled in when a run begins, and required from then on."),
    ] = None


class Tokenizer(Part):
    """Who counts (draft 4.4). `reference`: a declared yardstick, not the model's own; `native`: the model's own.

    `name` is auto; cl100k_base or o200k_base, which ship with the package; the path of a tokenizer.json or of a folder that
    holds one; a model on Hugging Face, org/name or org/name@revision; server, for its own /tokenize; or none. Unless `method`
    says otherwise, a shipped one is a yardstick and any other the model's own. With none only the server counts, which is
    native. With auto the server counts as well, and prompts are sized in its tokens by whatever it offers; a run's record
    names what that was: server, ids, learned or none (run/own_tokens.py). The reference method alone means cl100k_base.
    """

    name: Annotated[
        str,
        Field(
            min_length=1,
            description="auto (the server's own tokens), cl100k_base, o200k_base, a tokenizer.json or its folder, "
            "org/name[@revision], server or none.",
        ),
        Option(
            "--tokenizer", "Token counting", "NAME", drops=("tokenizer.method", "workload.count_template")
        ),
    ] = AUTO_TOKENIZER
    method: Annotated[
        Literal["reference", "native"],
        Field(description="reference (a yardstick) or native (the model's own tokenizer)."),
        Option(
            "--token-count",
            "Token counting",
            "METHOD",
            default="native, unless a shipped tokenizer is named",
            drops=("workload.count_template",),
        ),
    ] = "native"

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if given.get("method") is None:
            shipped = given.get("name", AUTO_TOKENIZER) in SHIPPED_TOKENIZERS
            return {**given, "method": "reference" if shipped else "native"}
        if given["method"] == "reference" and given.get("name") is None:
            return {**given, "name": REFERENCE_TOKENIZER}
        return given

    @property
    def own(self) -> bool:
        """Whether what it counts is what the server counts: it is the model's own, and there is one."""
        return self.method == "native" and self.name not in UNCOUNTED


class Guardrails(Part):
    """Draft 4.8.1. `None` is: not declared."""

    input_filter: Annotated[bool | None, Field(description="Whether requests are filtered.")] = None
    output_filter: Annotated[bool | None, Field(description="Whether answers are filtered.")] = None
    names: Annotated[tuple[str, ...], Field(description="Names of the filters.")] = ()


class Sut(Part):
    """The declaration of the system under test (draft 4.1, 5.1.2.3). Nothing here is observed."""

    boundary: Annotated[
        Literal["engine", "gateway", "compound"] | None,
        Field(description="What is measured: engine, gateway or compound."),
        Option("--boundary", _SUT, "WHAT"),
    ] = None
    model_version: Annotated[str | None, Field(description="Version of the model.")] = None
    quantization: Annotated[
        str | None,
        Field(description="Quantization of the model, for example fp8."),
        Option("--quantization", _SUT, "NAME"),
    ] = None
    software: Annotated[str | None, Field(description="Engine and version.")] = None
    accelerator: Annotated[str | None, Field(description="Name of the accelerators, or cpu.")] = None
    accelerator_count: Annotated[
        Annotated[int, Field(ge=0), NUMBER] | None, Field(description="Number of accelerators.")
    ] = None
    accelerator_memory: Annotated[str | None, Field(description="Memory of each accelerator.")] = None
    prefix_caching: Annotated[
        Literal["enabled", "disabled"] | None,
        Field(description="State of prefix caching: enabled or disabled."),
        Option("--prefix-caching", _SUT, "STATE"),
    ] = None
    cache_state: Annotated[
        Literal["cold", "warm", "unknown"],
        Field(description="State of the prefix cache before the run: cold, warm or unknown."),
        Option("--cache-state", _SUT, "STATE"),
    ] = "unknown"
    guardrails: Annotated[
        Guardrails,
        Field(description="Content filters in front of the model."),
        Option(
            "--guardrails",
            _SUT,
            "WHICH",
            help="Content filters: none, input, output, both, or both:Llama Guard.",
        ),
    ] = Field(default_factory=Guardrails)
    notes: Annotated[str | None, Field(description="Anything else.")] = None


class Instrument(Part):
    """How we measure."""

    workers: Annotated[
        int,
        Field(
            ge=1,
            le=256,
            description="Processes that send requests and time-stamp answers; with load hosts, on each of them.",
        ),
        NUMBER,
        Option("--workers", "Run", "N"),
    ] = 1
    hosts: Annotated[
        int | None,
        Field(ge=1, le=256, description="Load hosts that send the load together, in place of this machine."),
        NUMBER,
        Option("--hosts", "Run", "N"),
    ] = None
    keep_text: Annotated[
        KeepText,
        Field(
            description="Whose answers' text the record keeps: all, errors (failed requests) or none. All figures are the same."
        ),
        Option("--keep-text", "Run", "WHOSE"),
    ] = "all"
    subtract_rtt: Annotated[
        bool,
        Field(
            description="Show TTFT less the round trip to the server beside TTFT as measured (draft 4.7.3)."
        ),
        Option("--subtract-rtt", "Run", value=True),
    ] = False

    @property
    def all_workers(self) -> int:
        """The processes of all hosts."""
        return self.workers * (self.hosts or 1)


class Plan(Part):
    """One measurement, complete."""

    schema_: Annotated[
        Literal["inferometer/plan/2"],
        Field(alias="schema", description="Version of the plan's format; 1 is read as well."),
    ] = SCHEMA
    name: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="Name of the run, part of its folder's name."),
        Option("--name", "Run", "NAME"),
    ] = "run"
    target: Annotated[Target, Field(description="The server.")] = Field(default_factory=Target)
    load: Annotated[Load, Field(description="When requests are sent.")] = Field(default_factory=Load)
    workload: Annotated[Workload, Field(description="Content of the requests.")] = Field(
        default_factory=StandardWorkload
    )
    trace: Annotated[Trace | None, Field(description="A recorded load to replay.")] = None
    tokenizer: Annotated[Tokenizer, Field(description="How tokens are counted.")] = Field(
        default_factory=Tokenizer
    )
    sut: Annotated[
        Sut,
        Field(description="Declaration of the system under test (draft 4.1)."),
        Option(
            "--hardware",
            _SUT,
            "NAMExN",
            help="Accelerators: H100x4, H100x4:80GB or cpu.",
        ),
    ] = Field(default_factory=Sut)
    slos: Annotated[
        tuple[Slo, ...],
        Field(description="Objectives, such as ttft_p99<500ms."),
        Option(
            "--slo",
            "Common options",
            "EXPR",
            help="Objective, such as 'ttft_p99<500ms'.",
            repeat=True,
        ),
    ] = ()
    instrument: Annotated[Instrument, Field(description="How the instrument measures.")] = Field(
        default_factory=Instrument
    )
    server_metrics: Annotated[ServerMetrics, Field(description="Prometheus metrics to scrape.")] = Field(
        default_factory=ServerMetrics
    )
    host_telemetry: Annotated[
        HostTelemetry, Field(description="Readings of this machine beside the load.")
    ] = Field(default_factory=HostTelemetry)
    declared: Annotated[
        Declared,
        Field(description="Declarations about the measurement that cannot be observed."),
        Option(
            "--declare",
            _SUT,
            "KEY[=VALUE]",
            help="Declare a fact that cannot be observed, such as model_loaded or clock_accuracy_ms=2.",
            repeat=True,
        ),
    ] = Field(default_factory=Declared)

    @model_validator(mode="before")
    @classmethod
    def _imply(cls, given: Any) -> Any:
        """An earlier version is read as this one. A trace implies its own arrivals and lengths."""
        if not isinstance(given, dict):
            return given
        plan = dict(given)
        first = plan.get("schema") == VERSION_1
        if first:
            plan["schema"] = SCHEMA
        if plan.get("trace") is not None:
            plan |= cls._traced(plan)
        if first and isinstance(plan.get("workload"), dict):
            plan["workload"] = own_keys(plan["workload"])
        return plan | cls._visible(plan)

    @staticmethod
    def _visible(plan: Values) -> Values:
        """Who counts at the boundary of a compound system, if that is left open: its usage counts what its user never sees,
        so the reference tokenizer that draft 4.4.2 recommends does. A workload file brings its own."""
        parts = {name: plan.get(name) or {} for name in ("sut", "tokenizer", "workload")}
        if not all(isinstance(one, dict) for one in parts.values()):
            return {}
        left_open = parts["tokenizer"].get("name") in (None, AUTO_TOKENIZER)
        if parts["sut"].get("boundary") != "compound" or not left_open or parts["workload"].get("file"):
            return {}
        return {"tokenizer": {"name": REFERENCE_TOKENIZER, "method": "reference"}}

    @staticmethod
    def _traced(plan: Values) -> Values:
        """Load and workload, with what a trace implies."""
        made: Values = {}
        implied = {"load": {"model": "open", "arrival": "trace"}, "workload": {"kind": "trace"}}
        for part, values in implied.items():
            given_part = plan.get(part, {})
            if isinstance(given_part, dict):
                said = {key: value for key, value in given_part.items() if value is not None}
                made[part] = values | said
        return made

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> Values:
        """What was added later stands in a saved plan where it is set: all others keep the hash that they always had."""
        values: Values = handler(self)
        if self.host_telemetry == HostTelemetry():
            values.pop("host_telemetry", None)
        if not self.instrument.subtract_rtt and "instrument" in values:
            values["instrument"].pop("subtract_rtt", None)
        return values

    @property
    def compound(self) -> bool:
        """Whether it is a compound system (draft 4.1.3), whose usage counts calls that its user never sees. Answers by gRPC are
        token ids, which the client counts itself."""
        return self.sut.boundary == "compound" and not self.target.interface.grpc

    @property
    def keeps_full(self) -> bool:
        """Whether all slots of a closed loop should be taken at any time: nobody thinks meanwhile, and no tool runs."""
        recorded = isinstance(self.workload, SessionsWorkload)
        return self.load.model == "closed" and self.workload.think_ms is None and not recorded

    @model_validator(mode="after")
    def _settle(self) -> Self:
        workload = self.workload
        if (
            not isinstance(workload, FileWorkload)
            and workload.file is None
            and workload.count_template is None
        ):
            unknown = self.tokenizer.name == AUTO_TOKENIZER and self.target.url is None
            counted = self.tokenizer.own and self.target.interface.applies_template and not unknown
            settled = workload.model_copy(update={"count_template": counted})
            object.__setattr__(self, "workload", settled)  # frozen from here on
        if "ignore_eos" not in self.workload.model_fields_set and not self.target.interface.takes_ignore_eos:
            unforced = self.workload.model_copy(update={"ignore_eos": False})
            object.__setattr__(self, "workload", unforced)
        return self
