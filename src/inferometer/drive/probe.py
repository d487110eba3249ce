"""Before anything is timed: is the server there, what does it serve, does it take this plan's requests?

One look at the models listing and one short whole request, which a cold start does without; the dialect spells both. What is
learned is on record; nothing here is measured.

| bound             | of each request                                                                       |
| ----------------- | ------------------------------------------------------------------------------------- |
| LISTING_S         | the listing, for which nothing is generated                                           |
| `probe_timeout_s` | every other, name look-up, connecting and reading included; or `timeout_s` if shorter |
| LARGEST           | the reply's bytes                                                                     |

Nothing is decompressed and no redirect followed (client/http_client.py); where that is why there is no listing, it is said.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from inferometer.client.http_client import Client, Response, Unanswered
from inferometer.client.name_lookup import Addresses, NameLookup, NoAddress
from inferometer.client.websocket_conversation import NoConversation
from inferometer.drive.answer_limits import OverLimit, check_values
from inferometer.drive.credentials import merged
from inferometer.drive.exchange import COMPRESSED
from inferometer.engines.answer import Answer, error_text
from inferometer.engines.dialect import Dialect, GenerationRequest, Models
from inferometer.engines.interface import JsonObject
from inferometer.errors import PeerError, PlanError, Problem
from inferometer.journal.redact import Redactor


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address taken apart. `base` is the path before `/v1`, `host_header` what goes into the Host field."""

    scheme: str
    host: str
    port: int
    base: str
    host_header: str

    @property
    def url(self) -> str:
        """The base URL, without credentials or query."""
        return f"{self.scheme}://{self.host_header}{self.base}"


def endpoint(url: str) -> Endpoint:
    """Take a checked base URL apart; a trailing `/v1` belongs to the dialect, not to the base."""
    parts = urlsplit(url)
    host = _ascii_host(parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    base = quote(parts.path, safe="/%:@!$&'()*+,;=~").rstrip("/").removesuffix("/v1").rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    default = port == (443 if parts.scheme == "https" else 80)
    return Endpoint(parts.scheme, host, port, base, shown if default else f"{shown}:{port}")


def _ascii_host(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as cause:
        raise PlanError([Problem("--url", f"{host!r} is not a host name")]) from cause


def resolve(
    target: Endpoint, timeout_s: float, look_up: Callable[..., Addresses] = socket.getaddrinfo
) -> tuple[int, tuple[str | int, ...]]:
    """Family and address of the first of the host's addresses that takes a connection. `timeout_s`: for the look-up of the
    name, and for each address. Raises PeerError."""
    lookup = NameLookup(target.host, target.port, look_up)
    try:
        found = lookup.addresses(time.monotonic_ns() + int(timeout_s * 1e9))
    except NoAddress as cause:
        raise PeerError(f"{target.url}: {cause}") from cause
    tried: list[str] = []
    for family, kind, proto, _, address in found:
        with socket.socket(family, kind, proto) as sock:
            sock.settimeout(timeout_s)
            try:
                sock.connect(address)
            except OSError as cause:
                tried.append(f"{str(address[0])!s} port {target.port}: {cause.strerror or cause}")
                continue
            return int(family), tuple(part for part in address if not isinstance(part, bytes))
    raise PeerError(
        f"{target.url}: no connection. Tried "
        + "; ".join(tried)
        + ". Is the server running, and on this port?"
    )


LARGEST = 16 << 20
"""Bytes of a reply: a listing of 50,000 models with 300 bytes each. As JSON it may take twenty times as much memory."""


def client_of(
    target: Endpoint,
    headers: Mapping[str, str],
    tls: Callable[[], ssl.SSLContext] | None,
    timeout_s: float,
) -> Client:
    """A client of this server; `tls` is left aside where its URL is http. Paths are given without the URL's own."""
    lines = {"Host": target.host_header, "User-Agent": "inferometer", "Accept": "*/*"}
    return Client(
        target.host,
        target.port,
        merged(lines, headers),
        timeout_s=timeout_s,
        base=target.base,
        tls=tls if target.scheme == "https" else None,
        largest=LARGEST,
    )


GREETING = "Hello"
GREETING_ID = 100
"""In its place where only ids are taken: a byte of text in most vocabularies, and in none beyond the end."""
LISTING_S = 30.0
TOKENIZER_S = 60.0
"""A tokenizer reads a million tokens in a few seconds, eight texts at once; a server that takes longer hangs."""


KEY_ADVICE = "Name the key's location with --api-key-env or --api-key-file."
LISTEN_S = 0.25
"""How long to listen for messages before a request over a WebSocket, and behind an answer: longer than those of one are
apart."""
TIMEOUT_ADVICE = "--probe-timeout and --timeout set how long a request before the load may take."
ADVICE: Mapping[int, str] = {
    400: "If it names a field: --no-ignore-eos and --extra-body change what is sent.",
    401: KEY_ADVICE,
    403: KEY_ADVICE,
    404: "Is the model's name right (--model), and does the server offer this interface (--api)?",
}
"""By status, in flags of `inferometer run`."""


MODEL_LENGTH = 300
"""Characters of a model's name that are kept."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What the models listing showed, and the Server header. `missing`: in words, why there are no models; None: there are, or
    the list is empty."""

    models: Models
    server: str | None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What one short request showed: the length field the server takes, its count of GREETING's tokens, the name of the model
    that it says answered, if it gave one, its count of the answer's tokens, if it is read. `before`, `behind`: the beginning of
    a message before the request and behind the end, over a WebSocket, that would be taken for another answer's."""

    length_field: str
    prompt_tokens: int | None
    model: str | None = None
    output_tokens: int | None = None
    before: str = ""
    behind: str = ""


class Probe:
    """Sends a server a few untimed requests. `headers` may hold a secret; what the server says passes `redact`."""

    def __init__(
        self,
        dialect: Dialect,
        target: Endpoint,
        headers: dict[str, str],
        tls: ssl.SSLContext | None,
        timeout_s: float,
        redact: Redactor,
    ) -> None:
        self.endpoint = target
        self._dialect = dialect
        self._redact = redact
        self._timeout_s = timeout_s
        self._client = client_of(target, headers, None if tls is None else lambda: tls, timeout_s)

    def __enter__(self) -> Probe:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the connections."""
        self._client.close()

    def models(self) -> Listing:
        """The models: none if the server has no such list. Raises PeerError."""
        path = self._dialect.models_path
        reply = self._send("GET", path, timeout_s=min(LISTING_S, self._timeout_s))
        if reply.status in (401, 403):
            raise PeerError(
                f"{self.endpoint.url}{path}: {reply.status}, the server wants a key.",
                KEY_ADVICE,
                reply.status,
            )
        server = self._redact(reply.header(b"server")) or None
        missing = self._odd(reply)
        if missing is None:
            try:
                return Listing(self._redacted(self._dialect.read_models(reply.json())), server)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                missing = f"is no listing and begins {self._redact.line(reply.text(), 80)!r}"
        return Listing(Models(), server, f"what {path} answers {missing}")

    @property
    def cheapest(self) -> str:
        """What `touch` sends."""
        return f"GET {self._dialect.models_path}"

    def touch(self, timeout_s: float) -> None:
        """Send the cheapest request that there is, and read nothing of its answer. Raises PeerError, also if it is refused."""
        path = self._dialect.models_path
        status = self._send("GET", path, timeout_s=min(timeout_s, self._timeout_s)).status
        if not 200 <= status < 300:
            raise PeerError(f"what {path} answers is {status}", status=status)

    def _odd(self, reply: Response) -> str | None:
        """Why a reply cannot be read, in words that follow "what it answers"; None: it may be."""
        coding = reply.header(b"content-encoding").strip().lower()
        if 300 <= reply.status < 400:
            place = self._redact.short(reply.header(b"location"), 200)
            return f"is {reply.status}, a redirect to {place!r}, which is not followed"
        if not 200 <= reply.status < 300:
            return f"is {reply.status}"
        return f"is compressed ({coding}), which was not requested" if coding in COMPRESSED else None

    def _redacted(self, models: Models) -> Models:
        """A server may repeat the key it was sent, even as the name of a model."""
        redact = self._redact.strike  # a name that no file can hold is the caller's to refuse
        return Models(
            tuple(map(redact, models.names)),
            {redact(name): tokens for name, tokens in models.contexts.items()},
            {redact(name): ids for name, ids in models.vocabularies.items()},
        )

    def _send(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float | None = None
    ) -> Response:
        limit = self._timeout_s if timeout_s is None else timeout_s
        try:
            return self._client.request(method, path, body, limit)
        except Unanswered as cause:
            words = f"{self.endpoint.url}{path}: {self._redact.short(str(cause), 300)}"
            if cause.reason != "timeout":
                raise PeerError(words) from cause
            advice = TIMEOUT_ADVICE if limit == self._timeout_s else ""
            raise PeerError(f"{words} ({limit:g} s).", advice) from cause

    def takes_ids(self, model: str, ids: list[int]) -> bool:
        """True if the interface takes these token ids as a prompt."""
        body = self._dialect.body(GenerationRequest(model, ids, 1, stream=False))
        return self._send("POST", self._dialect.interface.path, body).status == 200

    def tokenizer(
        self, model: str, patience_s: float = TOKENIZER_S
    ) -> Callable[[str, JsonObject], JsonObject]:
        """A client of the server's own tokenizer: path and question in, answer out, {} where there is none of use. No answer
        within `patience_s` is a PeerError.

        Its paths are the engine's, whatever the dialect.
        """
        timeout_s = min(patience_s, self._timeout_s)

        def ask(path: str, question: JsonObject) -> JsonObject:
            body = json.dumps({"model": model, **question}).encode()
            reply = self._send("POST", path, body, timeout_s)
            return _object(reply.body) if reply.status == 200 else {}

        return ask

    def try_out(self, wanted: GenerationRequest, length_field: str | None = None) -> Reply:
        """Send one real request for a whole answer, usually to GREETING. Raises PeerError with the server's words.

        `length_field`: the one that the server takes, if that is known.
        """
        dialect, path = self._dialect, self._dialect.interface.path
        if dialect.interface.over_websocket:
            listen_s = LISTEN_S if length_field is None else 0
            wanted = replace(wanted, length_field=length_field or dialect.length_fields[0])
            return self._try_message(wanted, listen_s)
        first, *others = dialect.length_fields if length_field is None else (length_field,)

        def send(field: str) -> tuple[Response, str]:
            reply = self._send("POST", path, dialect.body(replace(wanted, length_field=field)))
            return reply, self._redact.short(error_text(reply.body), 300)

        field, (reply, error) = first, send(first)
        for other in others:
            if reply.status == 400 and other in error:
                field, (reply, error) = other, send(other)
        place, odd = f"{self.endpoint.url}{path}", self._odd(reply)
        if odd is not None and reply.status < 400:
            raise PeerError(f"{place}: what the server answers {odd}.", status=reply.status)
        if reply.status != 200:
            words = f"{place}: the server answered {reply.status}: {error.rstrip('.')}."
            raise PeerError(words, ADVICE.get(reply.status, ""), reply.status)
        answer = Answer()
        try:
            check_values(reply.body)
        except OverLimit as cause:
            raise PeerError(f"{place}: what the server answers is {cause}.", status=reply.status) from None
        dialect.read_whole(answer, reply.body, 0)
        if answer.error is not None:
            words = self._redact.short(answer.error, 300)
            raise PeerError(f"{place}: the server answered with an error: {words}")
        if not answer.done:
            raise PeerError(
                f"{place}: the reply is not an {dialect.vendor} reply; it begins {error[:80]!r}. "
                f"Is this the base URL of an {dialect.vendor}-compatible server?"
            )
        tokens, named = answer.input_tokens, _object(reply.body).get("model")
        return replace(self._reply(field, tokens, named), output_tokens=answer.output_tokens)

    def _reply(self, field: str, tokens: int | None, named: object) -> Reply:
        model = self._redact.short(named, MODEL_LENGTH) if isinstance(named, str) and named else None
        return Reply(field, tokens if tokens is not None and tokens > 0 else None, model)

    def _try_message(self, wanted: GenerationRequest, listen_s: float) -> Reply:
        """The same over a WebSocket of its own."""
        dialect, answer = self._dialect, Answer()
        path = dialect.interface.target(wanted.model)
        place = f"{self.endpoint.url}{path}"
        before: list[bytes] = []
        behind: list[bytes] = []

        def read(message: bytes) -> bool:
            dialect.read_event(answer, message, 0)
            return answer.done or answer.error is not None or answer.malformed is not None

        def stray(message: bytes) -> None:
            if self._of_an_answer(message):
                (behind if answer.done else before).append(message)

        try:
            self._client.converse(path, dialect.body(wanted), read, stray, listen_s)
        except NoConversation as cause:
            words = f"{place}: {self._redact.short(str(cause), 300).rstrip('.')}."
            raise PeerError(words, ADVICE.get(cause.status, ""), cause.status or None) from None
        except Unanswered as cause:
            timed_out, messages = cause.reason == "timeout", len(answer.event_ns)
            words = self._redact.short(str(cause), 300)
            if timed_out and messages:
                came = "1 message" if messages == 1 else f"{messages:,} messages"
                words = f"{came} came in time, but none that ends the answer ({dialect.end})"
            raise PeerError(f"{place}: {words}.", TIMEOUT_ADVICE if timed_out else "") from cause
        if answer.error is not None:
            words = self._redact.short(answer.error, 300)
            raise PeerError(f"{place}: the server answered with an error: {words}")
        if not answer.done:
            odd = "" if answer.malformed is None else f" ({self._redact.short(answer.malformed, 100)})"
            raise PeerError(
                f"{place}: the reply does not end as this interface's do, with {dialect.end}{odd}."
            )
        field = wanted.length_field or dialect.length_fields[0]
        reply = self._reply(field, answer.input_tokens, answer.model)
        return replace(reply, before=self._quoted(before), behind=self._quoted(behind))

    def _quoted(self, messages: Sequence[bytes]) -> str:
        """The beginning of the first of them."""
        return self._redact.short(messages[0].decode("utf-8", "replace"), 100) if messages else ""

    def _of_an_answer(self, message: bytes) -> bool:
        """Whether this message would be taken for a part of another answer: any, unless servers say something of their own
        accord."""
        if not self._dialect.interface.greets:
            return True
        read = Answer()
        self._dialect.read_event(read, message, 0)
        counted = read.input_tokens, read.output_tokens, read.finish_reason, read.error, read.malformed
        return bool(read.texts or read.unseen or read.done) or any(one is not None for one in counted)


def _object(content: bytes) -> JsonObject:
    """The JSON object of a reply; empty if it is none."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
