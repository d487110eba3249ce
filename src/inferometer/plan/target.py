"""The server under test: its address, its interface, and what requests to it carry beside their prompts."""

import difflib
import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from inferometer import foreign_json
from inferometer.engines.interface import INTERFACES, Interface, takers
from inferometer.engines.message_form import MessageForm
from inferometer.plan.part import HARMLESS, NUMBER, SECONDS, Option, Part
from inferometer.plan.transports import Transport
from inferometer.plan.websocket_form import WebSocketForm


def _registered(name: str) -> str:
    if name not in INTERFACES:
        near = difflib.get_close_matches(name.lower(), INTERFACES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"must be {' or '.join(INTERFACES)}, not {name[:60]!r}{hint}")
    return name


Api = Annotated[str, AfterValidator(_registered), Field(json_schema_extra={"enum": list(INTERFACES)})]
"""The name of a registered interface (engines/interface.py)."""


def _base_url(url: str) -> str:
    """Check a base URL and bring it to its one form. Messages never repeat it: it may hold a password."""
    example = "for example http://localhost:8000"
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(
            f"is not a URL (a port is a number up to 65535, an IPv6 host is in brackets): {example}"
        ) from None
    scheme = parts.scheme
    if scheme not in ("http", "https"):
        over = next((one for one in INTERFACES.values() if scheme in (one.scheme, f"{one.scheme}s")), None)
        if over is not None:
            names = " or ".join(one.name for one in INTERFACES.values() if one.scheme == over.scheme)
            raise ValueError(f"begins with {scheme}://, which is of interfaces that --api names: {names}")
        raise ValueError(f"must begin with http:// or https:// (of a WebSocket ws:// or wss://), {example}")
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
    return f"{scheme}://{parts.netloc.lower()}{path.removesuffix('/v1').rstrip('/')}"


# What a plan may put into requests beside their prompts: headers, fields of the body, sampling parameters.
#
# None of them may hold a secret, for a plan is saved to disk, nor frame the request, which is ours to do.


_SECRET_NAME = re.compile(
    r"authorization|cookie|api[-_]?key|secret|passw|credential|(access|auth|bearer|refresh|session)[-_]?token|^x-auth|^token$|subscription[-_]?key",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"^\s*(bearer|basic)\s+\S|^\s*(sk|hf|gsk|xai|nvapi)[-_]\w{8}", re.IGNORECASE)
_FRAMING = {
    *("host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te"),
    *("keep-alive", "proxy-connection"),  # malformed over HTTP/2 (RFC 9113, 8.2.2)
    *(f"sec-websocket-{name}" for name in ("key", "version", "extensions", "accept")),
    *(f"grpc-{name}" for name in ("timeout", "encoding", "accept-encoding")),
}
_NO_SECRETS = (
    "looks like a secret, and a plan is saved to disk: "
    "use --api-key-env or --api-key-file (target.api_key_env, target.api_key_file)"
)
_OURS = {
    "model": "target.model",
    "messages": "workload",
    "prompt": "workload",
    "input": "workload",
    "stream": "target.stream",
    "max_tokens": "workload.output_tokens",
    "max_completion_tokens": "workload.output_tokens",
    "max_output_tokens": "workload.output_tokens",
    "n": "load.requests",
}


Fields = dict[str, Any]
"""Fields of a request's body, as they are sent."""


def header_name(name: str) -> str:
    """Check the name of a header line that a plan may hold. Raises ValueError."""
    field_name(name)
    if secret_name(name):
        raise ValueError(_NO_SECRETS)
    return name


def field_name(name: str) -> str:
    """Check the name of a header line, whatever it holds. Raises ValueError."""
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):  # RFC 9110, 5.6.2: token
        raise ValueError(
            "a header's name is letters, digits and hyphens, for example X-Request-Source: bench"
        )
    if name.lower() in _FRAMING:
        raise ValueError("is set by inferometer itself: it frames the request")
    return name


def header_value(value: str) -> str:
    """Check its value, which the message does not repeat. Raises ValueError."""
    if any(_SECRET_VALUE.search(part) for part in (value, *re.split(r"[\s,;=.]+", value))):
        raise ValueError(_NO_SECRETS)
    if not all(char == "\t" or " " <= char <= "~" or "\x80" <= char <= "\xff" for char in value):
        raise ValueError("holds a character that an HTTP header cannot")
    return value


def _variable(name: str) -> str:
    # The value is not repeated: it may be the key itself.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(
            "must be the name of an environment variable, for example OPENAI_API_KEY, not the key itself"
        )
    return name


Variable = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable that holds a secret."""


def _plain_body(body: Fields) -> Fields:
    ours = [f"{key} comes from {_OURS[key]}" for key in body if key in _OURS]
    options = body.get("options")
    if isinstance(options, dict) and "num_predict" in options:  # Ollama's
        ours.append("options.num_predict comes from workload.output_tokens")
    if ours:
        raise ValueError(f"cannot set what the plan decides: {', '.join(ours)}")
    foreign_json.check_depth(body)
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise ValueError("must be expressible in JSON: no dates, no NaN, no infinity") from None
    if (name := secret_in(body)) is not None:
        raise ValueError(f"{name} {_NO_SECRETS}")
    return body


def secret_in(value: object, name: str = "") -> str | None:
    """The name of the first member of a body that looks like a secret, by its name or its value; None: nothing does."""
    if isinstance(value, dict):
        found = (secret_in(inner, str(key)) for key, inner in value.items())
    elif isinstance(value, list):
        found = (secret_in(inner, name) for inner in value)
    else:
        return name if isinstance(value, str) and (secret_name(name) or _SECRET_VALUE.search(value)) else None
    return next((one for one in found if one is not None), None)


def secret_name(name: str) -> bool:
    """Whether what has this name, a header, a member of a body or an environment variable, is a secret."""
    return bool(_SECRET_NAME.search(name)) or name.lower().endswith("token")


def _subprotocols(headers: dict[str, str]) -> dict[str, str]:
    """A WebSocket's subprotocols are names, of which some services have one that ends in a key."""
    for name, value in headers.items():
        if name.lower() == "sec-websocket-protocol" and secret_name(value):
            raise ValueError(f"{name} {_NO_SECRETS}")
    return headers


Headers = Annotated[
    dict[Annotated[str, AfterValidator(header_name)], Annotated[str, AfterValidator(header_value)]],
    AfterValidator(_subprotocols),
]
"""Header lines by name."""

Body = Annotated[Fields, AfterValidator(_plain_body)]
"""Fields merged into a request's JSON."""

Priority = Annotated[int, Field(ge=-(2**31), lt=2**31), NUMBER]
"""The body's `priority`. vLLM serves lower ones sooner."""


class Sampling(Part):
    """Sampling parameters by the names that OpenAI's interface and vLLM give them. None: not sent."""

    temperature: Annotated[
        Annotated[float, Field(ge=0, le=10), NUMBER] | None,
        Field(description="Temperature."),
        HARMLESS,
    ] = None
    top_p: Annotated[
        Annotated[float, Field(gt=0, le=1), NUMBER] | None,
        Field(description="Nucleus sampling: probability mass."),
        HARMLESS,
    ] = None
    top_k: Annotated[
        Annotated[int, Field(ge=-1, le=10_000_000), NUMBER] | None,
        Field(description="Number of candidates."),
        HARMLESS,
    ] = None
    min_p: Annotated[
        Annotated[float, Field(ge=0, le=1), NUMBER] | None,
        Field(description="Least probability, relative to the likeliest."),
        HARMLESS,
    ] = None
    presence_penalty: Annotated[
        Annotated[float, Field(ge=-2, le=2), NUMBER] | None,
        Field(description="Penalty of tokens that occurred."),
        HARMLESS,
    ] = None
    frequency_penalty: Annotated[
        Annotated[float, Field(ge=-2, le=2), NUMBER] | None,
        Field(description="Penalty by how often tokens occurred."),
        HARMLESS,
    ] = None
    repetition_penalty: Annotated[
        Annotated[float, Field(gt=0, le=10), NUMBER] | None,
        Field(description="Factor on repeated tokens."),
        HARMLESS,
    ] = None
    seed: Annotated[
        Annotated[int, Field(ge=0, lt=2**63), NUMBER] | None,
        Field(description="Seed of the server."),
        HARMLESS,
    ] = None
    stop: Annotated[
        Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1, max_length=16)] | None,
        Field(description="Texts that end an answer."),
    ] = None

    @property
    def fields(self) -> Fields:
        """The fields of a body that say it."""
        return self.model_dump(mode="json", exclude_none=True)


def fields_of(sampling: Sampling, priority: int | None, extra: Fields) -> Fields:
    """The fields that one request has beside everybody's."""
    said = sampling.fields if priority is None else {**sampling.fields, "priority": priority}
    return {**said, **extra}


def refuse_twice(extra: Fields, sampling: object, priority: object) -> Fields:
    """`extra` as it is, unless it sets what the other two have set: then ValueError."""
    said = set(sampling.fields) if isinstance(sampling, Sampling) else set()
    said |= {"priority"} if priority is not None else set()
    twice = sorted(said & extra.keys())
    if twice:
        raise ValueError(f"sets {', '.join(twice)} twice: set each in one place")
    return extra


MAPPED = next(name for name, one in INTERFACES.items() if one.mapped)
"""The interface whose messages a plan describes."""

DEFAULT_STREAMS = 100
"""Requests at once on an HTTP/2 connection unless a plan says otherwise: what RFC 9113, 6.5.2, wants every server to take."""


def _version(value: Any) -> Any:
    """A version as text: YAML makes a number of it."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


class Target(Part):
    """The server. No `url` means the embedded reference server.

    `url` is the base URL, kept without a trailing slash and without the `/v1` that may stand at its end: engines add
    `/v1/chat/completions` and so on. A path in front of that, as a proxy may have, is kept. gRPC's are kept as http or https.
    `extra_body` is merged into every request's JSON body.
    What a server sends is bounded: `probe_timeout_s` before the load, the other limits of each answer (drive/answer_limits.py).
    """

    url: Annotated[
        str | None,
        Field(description="Base URL of the server. Without it, the embedded reference server is measured."),
        Option("--url", "Common options", "URL"),
    ] = None
    model: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="Name of the model to request."),
        Option("--model", "Common options", "NAME", default="the one the server lists"),
    ] = None
    api: Annotated[
        Api,
        Field(description=f"HTTP interface of the server: {takers()}."),
        Option("--api", "Common options", "API", drops=("workload.count_template",)),
    ] = "chat"
    stream: Annotated[
        bool,
        Field(description="Request streams; false: non-streaming answers."),
        Option("--no-stream", "Server", help="Request non-streaming answers.", value=False),
    ] = True
    headers: Annotated[
        Headers,
        Field(description="Extra header lines, by name. Not for keys."),
        Option(
            "--header",
            "Server",
            "K: V",
            help="Extra header line 'K: V'. Not for keys.",
            repeat=True,
        ),
    ] = Field(default_factory=dict)
    session_header: Annotated[
        Annotated[str, AfterValidator(header_name)] | None,
        Field(
            description="Name of a header line that says which session, or conversation, a request is of, for routers."
        ),
        Option("--session-header", "Server", "NAME"),
    ] = None
    extra_body: Annotated[
        Body,
        Field(description="JSON object merged into the body of every request."),
        Option("--extra-body", "Server", "JSON"),
    ] = Field(default_factory=dict)
    api_key_env: Annotated[
        Variable | None,
        Field(description="Name of the environment variable that holds the API key."),
        Option("--api-key-env", "Server", "NAME", drops=("target.api_key_file",)),
    ] = None
    api_key_file: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="File that holds the API key."),
        Option("--api-key-file", "Server", "FILE", drops=("target.api_key_env",)),
    ] = None
    tls_verify: Annotated[
        bool,
        Field(description="Verify the server's TLS certificate."),
        Option(
            "--insecure",
            "Server",
            help="Do not verify the server's TLS certificate.",
            value=False,
            drops=("target.tls_ca_file",),
        ),
    ] = True
    tls_ca_file: Annotated[
        Annotated[str, Field(min_length=1)] | None,
        Field(description="Certificates (PEM) to trust instead of the system's."),
        Option("--ca-file", "Server", "FILE", drops=("target.tls_verify",)),
    ] = None
    timeout_s: Annotated[
        float,
        Field(gt=0, le=86_400, description="Give a request up after this long: seconds, or 90s, 5m."),
        SECONDS,
        Option("--timeout", "Server", "S"),
    ] = 600.0
    connect_timeout_s: Annotated[
        float, Field(gt=0, le=600, description="Give a connection up after this long, in seconds."), SECONDS
    ] = 10.0
    probe_timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            description="Give up each request before the load after this long, or after the timeout if that is shorter.",
        ),
        SECONDS,
        Option("--probe-timeout", "Server", "S"),
    ] = 300.0
    max_answer_mib: Annotated[
        float,
        Field(gt=0, le=1024, description="Largest answer that is read, in MiB."),
        NUMBER,
        Option("--max-answer", "Server", "MIB"),
    ] = 64.0
    max_events: Annotated[
        int,
        Field(ge=1, le=100_000_000, description="Most events of a stream that are read."),
        NUMBER,
        Option("--max-events", "Server", "N"),
    ] = 1_000_000
    max_overrun_s: Annotated[
        float,
        Field(
            gt=0,
            le=86_400,
            description="Give a stream up this long after it had more events with text than tokens were requested.",
        ),
        SECONDS,
        Option("--max-overrun", "Server", "S"),
    ] = 60.0
    connection: Annotated[
        Literal["reuse", "new"],
        Field(description="reuse, or new for one connection per request."),
        Option("--connection", "Server", "HOW"),
    ] = "reuse"
    http: Annotated[
        Literal["1.1", "2"],
        Field(description="Version of HTTP of the load: 1.1, or 2 for many requests on each connection."),
        BeforeValidator(_version),
        Option("--http", "Server", "VERSION"),
    ] = "1.1"
    streams_per_connection: Annotated[
        Annotated[int, Field(ge=1, le=10_000), NUMBER] | None,
        Field(description="HTTP/2: at most this many requests at once on a connection."),
        Option(
            "--streams-per-connection",
            "Server",
            "N",
            default=f"as many as the server allows, at most {DEFAULT_STREAMS}",
        ),
    ] = None

    websocket: Annotated[
        WebSocketForm | None,
        Field(description="Messages of a WebSocket server with a form of its own, for websocket-mapped."),
    ] = None

    @property
    def streams(self) -> int:
        """Requests at once that a connection carries at most."""
        if self.http == "1.1" or self.connection == "new":
            return 1
        return self.streams_per_connection or DEFAULT_STREAMS

    @property
    def transport(self) -> Transport:
        """What carries the load. Without a URL it is the embedded server, without TLS."""
        tls = urlsplit(self.url or "").scheme == "https"
        if self.interface.grpc:
            return "grpc+tls" if tls else "grpc"
        if self.interface.over_websocket:
            return "websocket+tls" if tls else "websocket"
        if self.http == "2":
            return "http/2+tls" if tls else "http/2"
        return "http/1.1+tls" if tls else "http/1.1"

    @property
    def interface(self) -> Interface:
        """What is known of the interface `api`."""
        known, form = INTERFACES[self.api], self.form
        return known if form is None else known.described(form.target, greets=form.greets)

    @property
    def form(self) -> MessageForm | None:
        """The form of messages that the plan describes; None: the interface's own."""
        return None if self.websocket is None else self.websocket.form

    @model_validator(mode="before")
    @classmethod
    def _of_its_scheme(cls, values: Any) -> Any:
        """gRPC is spoken over HTTP/2, unless a plan says otherwise, which is a fault. URLs of gRPC and of WebSockets may begin
        with a scheme that no other interface has."""
        api = values.get("api", "chat") if isinstance(values, dict) else None
        if not isinstance(api, str) or api not in INTERFACES:
            return values
        known, made = INTERFACES[api], dict(values)
        if known.grpc:
            made.setdefault("http", "2")
        if known.scheme and isinstance(url := values.get("url"), str):
            made["url"] = re.sub(rf"^\s*{known.scheme}(s?)://", r"http\1://", url, flags=re.IGNORECASE)
        return made

    @field_validator("websocket")
    @classmethod
    def _no_secret(cls, described: WebSocketForm | None) -> WebSocketForm | None:
        if described is None:
            return None
        name = secret_in(described.request)
        for key, value in parse_qsl(urlsplit(described.path).query):
            name = name or secret_in(value, key)
        if any(_SECRET_VALUE.search(part) for part in described.path.split("/")):
            name = name or "path"
        if name is not None:
            raise ValueError(f"{name} {_NO_SECRETS}")
        return described

    @model_validator(mode="before")
    @classmethod
    def _of_mapped(cls, values: Any) -> Any:
        """A description of messages says which interface it is for, unless a plan says otherwise, which is a fault."""
        described = isinstance(values, dict) and values.get("websocket")
        return {"api": MAPPED} | values if described else values

    @field_validator("url")
    @classmethod
    def _base_url(cls, url: str | None) -> str | None:
        return None if url is None else _base_url(url)
