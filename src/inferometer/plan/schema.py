"""The Plan: everything that decides what a run does, frozen before the clock starts.

A plan is data. It is saved resolved (every default written out) as `plan.json`, hashed, and can be run again.
It never holds a secret: only the name of the environment variable or file that does.

What one part implies about itself is settled here, so that a part is complete however it was made: a rate means open loop, a
standard workload has its own lengths, another tokenizer is the model's own. What two keys forbid each other is in `rules.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from inferometer.engines.interface import INTERFACES, Interface
from inferometer.plan.api import Api
from inferometer.plan.body import Body, Headers
from inferometer.plan.declarations import Declared
from inferometer.plan.part import NUMBER, SECONDS, Part, Sha256
from inferometer.plan.server_metrics import ServerMetrics
from inferometer.plan.slo import Slo
from inferometer.plan.workload import FileWorkload, StandardWorkload, Workload

SCHEMA: Literal["inferometer/plan/2"] = "inferometer/plan/2"
READABLE = (SCHEMA, "inferometer/plan/1")
"""Version 1, of inferometer 0.1.0, did not name the kind of a workload, and had the keys of every kind."""

DEFAULT_CONCURRENCY = 16
DEFAULT_REQUESTS = 1000
DEFAULT_WARMUP = 100
"""Draft 4.5.1's number; with the standard workloads these also make its 10,000 output tokens."""
REFERENCE_TOKENIZER = "cl100k_base"
SHIPPED_TOKENIZERS = (REFERENCE_TOKENIZER, "o200k_base")
SERVER_TOKENIZER = "server"
NO_TOKENIZER = "none"


class Target(Part):
    """The server. No `url` means the embedded reference server.

    `url` is the base URL, kept without a trailing slash and without the `/v1` that may stand at its end: engines add
    `/v1/chat/completions` and so on. A path in front of that, as a proxy may have, is kept.
    `extra_body` is merged into every request's JSON body.
    """

    url: str | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    api: Api = "chat"
    stream: bool = True
    headers: Headers = Field(default_factory=dict)
    extra_body: Body = Field(default_factory=dict)
    api_key_env: str | None = None
    api_key_file: Annotated[str, Field(min_length=1)] | None = None
    tls_verify: bool = True
    tls_ca_file: Annotated[str, Field(min_length=1)] | None = None
    timeout_s: Annotated[float, Field(gt=0, le=86_400), SECONDS] = 600.0
    connect_timeout_s: Annotated[float, Field(gt=0, le=600), SECONDS] = 10.0
    connection: Literal["reuse", "new"] = "reuse"

    @property
    def interface(self) -> Interface:
        """What is known of the interface `api`."""
        return INTERFACES[self.api]

    @field_validator("url")
    @classmethod
    def _base_url(cls, url: str | None) -> str | None:
        return None if url is None else _base_url(url)

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, name: str | None) -> str | None:
        # The value is not repeated: it may be the key itself.
        if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(
                "must be the name of an environment variable, for example OPENAI_API_KEY, not the key itself"
            )
        return name


def _base_url(url: str) -> str:
    """Check a base URL and bring it to its one form. Messages never repeat it: it may hold a password."""
    example = "for example http://localhost:8000"
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(
            f"is no URL (a port is a number up to 65535, an IPv6 host stands in brackets): {example}"
        ) from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"must begin with http:// or https://, {example}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user name or password: use --api-key-env or --api-key-file")
    if not host or port == 0 or re.search(r"[\x00-\x20\x7f]", url.strip()):
        raise ValueError(f"needs a host and no spaces, {example}")
    if parts.query or parts.fragment:
        raise ValueError(f"must be a base URL, without ? and #, {example}")
    path = parts.path.rstrip("/")
    for interface in INTERFACES.values():
        if path.endswith(interface.path):
            raise ValueError(f"must be the base URL, without {interface.path}, {example}")
    return f"{parts.scheme}://{parts.netloc.lower()}{path.removesuffix('/v1').rstrip('/')}"


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

    model: Literal["closed", "open", "users"] = "closed"
    concurrency: Annotated[int, Field(ge=1, le=100_000), NUMBER] | None = None
    rate: Annotated[float, Field(ge=1e-6, le=1_000_000), NUMBER] | None = None
    users: Annotated[int, Field(ge=1, le=100_000), NUMBER] | None = None
    user_rate: Annotated[float, Field(ge=1e-6, le=1_000_000), NUMBER] | None = None
    arrival: Literal["poisson", "constant", "gamma", "trace"] = "poisson"
    burstiness: Annotated[float, Field(ge=0.001, le=1_000), NUMBER] = 1.0
    requests: Annotated[int, Field(ge=1, le=10_000_000), NUMBER] | None = None
    duration_s: Annotated[float, Field(gt=0, le=604_800), SECONDS] | None = None
    warmup: Annotated[int, Field(ge=0, le=1_000_000), NUMBER] = DEFAULT_WARMUP
    warmup_tokens: Annotated[int, Field(ge=0, le=1_000_000_000), NUMBER] = 0
    warmup_probes: Annotated[int, Field(ge=0, le=1_000), NUMBER] = 0
    warmup_prefixes: bool = True
    cold_start: bool = False
    drain_s: Annotated[float, Field(ge=0, le=86_400), SECONDS] = 30.0

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
        if "arrival" not in load and load.get("burstiness", 1) not in (1, "1", "1.0"):
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

    @model_validator(mode="after")
    def _complete(self) -> Load:
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

    file: Annotated[str, Field(min_length=1)] | None = None
    format: Literal["auto", "mooncake", "azure", "burstgpt", "jsonl"] = "auto"
    speed: Annotated[float, Field(ge=0.001, le=1_000_000), NUMBER] = 1.0
    start_s: Annotated[float, Field(ge=0, le=1e9), SECONDS] = 0.0
    end_s: Annotated[float, Field(gt=0, le=1e9), SECONDS] | None = None
    sha256: Sha256 | None = None


class Tokenizer(Part):
    """Who counts (draft 4.4). `reference`: a declared yardstick, not the model's own; `native`: the model's own.

    `name` is cl100k_base or o200k_base, which ship with the package; the path of a tokenizer.json or of a folder that holds
    one; a model on Hugging Face, org/name or org/name@revision; server, for its own /tokenize; or none. Unless `method` says
    otherwise, a shipped one is a yardstick and any other the model's own. With none only the server counts, which is native.
    """

    name: Annotated[str, Field(min_length=1)] = REFERENCE_TOKENIZER
    method: Literal["reference", "native"] = "reference"

    @model_validator(mode="before")
    @classmethod
    def _settle(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("method") is None:
            shipped = given.get("name", REFERENCE_TOKENIZER) in SHIPPED_TOKENIZERS
            return {**given, "method": "reference" if shipped else "native"}
        return given

    @property
    def own(self) -> bool:
        """Whether what it counts is what the server counts: it is the model's own, and there is one."""
        return self.method == "native" and self.name != NO_TOKENIZER


class Guardrails(Part):
    """Draft 4.8.1. `None` is: not declared."""

    input_filter: bool | None = None
    output_filter: bool | None = None
    names: tuple[str, ...] = ()


class Sut(Part):
    """The declaration of the system under test (draft 4.1, 5.1.2.3). Nothing here is observed."""

    boundary: Literal["engine", "gateway", "compound"] | None = None
    model_version: str | None = None
    quantization: str | None = None
    software: str | None = None
    accelerator: str | None = None
    accelerator_count: Annotated[int, Field(ge=0), NUMBER] | None = None
    accelerator_memory: str | None = None
    prefix_caching: Literal["enabled", "disabled"] | None = None
    cache_state: Literal["cold", "warm", "unknown"] = "unknown"
    guardrails: Guardrails = Guardrails()
    notes: str | None = None


class Instrument(Part):
    """How we measure."""

    workers: Annotated[int, Field(ge=1, le=256), NUMBER] = 1


class Plan(Part):
    """One measurement, complete."""

    schema_: Annotated[Literal["inferometer/plan/2"], Field(alias="schema")] = SCHEMA
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = "run"
    target: Target = Target()
    load: Load = Load()
    workload: Workload = StandardWorkload()
    trace: Trace | None = None
    tokenizer: Tokenizer = Tokenizer()
    sut: Sut = Sut()
    slos: tuple[Slo, ...] = ()
    instrument: Instrument = Instrument()
    server_metrics: ServerMetrics = ServerMetrics()
    declared: Declared = Declared()

    @model_validator(mode="before")
    @classmethod
    def _imply(cls, given: Any) -> Any:
        """An earlier version is read as this one. A trace implies its own arrivals and lengths."""
        if not isinstance(given, dict):
            return given
        plan = dict(given)
        if plan.get("schema") in READABLE:
            plan["schema"] = SCHEMA
        if plan.get("trace") is None:
            return plan
        implied = {"load": {"model": "open", "arrival": "trace"}, "workload": {"kind": "trace"}}
        for part, values in implied.items():
            given_part = plan.get(part, {})
            if isinstance(given_part, dict):
                said = {key: value for key, value in given_part.items() if value is not None}
                plan[part] = values | said
        return plan

    @property
    def keeps_full(self) -> bool:
        """Whether all slots of a closed loop should be taken at any time: nobody thinks meanwhile."""
        return self.load.model == "closed" and self.workload.think_ms is None

    @model_validator(mode="after")
    def _settle(self) -> Plan:
        workload = self.workload
        if (
            not isinstance(workload, FileWorkload)
            and workload.file is None
            and workload.count_template is None
        ):
            counted = self.tokenizer.own and self.target.interface.applies_template
            settled = workload.model_copy(update={"count_template": counted})
            object.__setattr__(self, "workload", settled)  # frozen from here on
        if "ignore_eos" not in self.workload.model_fields_set and not self.target.interface.takes_ignore_eos:
            unforced = self.workload.model_copy(update={"ignore_eos": False})
            object.__setattr__(self, "workload", unforced)
        return self
