"""The probe of an engine by its gRPC service, with the questions of probe.py:

| question             | call                                                                                            |
| -------------------- | ----------------------------------------------------------------------------------------------- |
| is it there?         | `grpc.health.v1.Health/Check`; a server without that service goes on                            |
| what does it serve?  | the dialect's `models_path` and `server_path`; either may be missing                            |
| does it take this?   | one short answer, not streamed                                                                  |
| what else is there?  | of a server that does not offer the method: its services, by reflection (v1, else v1alpha)      |
| its own tokenizer?   | none: gRPC services have no call that counts                                                    |
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace

from inferometer.client.grpc_client import Called, GrpcClient
from inferometer.client.http_client import Unanswered
from inferometer.drive.probe import (
    ADVICE,
    KEY_ADVICE,
    LARGEST,
    LISTING_S,
    TIMEOUT_ADVICE,
    Endpoint,
    Listing,
    Probe,
    Reply,
    client_of,
)
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, Models
from inferometer.engines.interface import JsonObject
from inferometer.errors import PeerError
from inferometer.journal.redact import Redactor
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import CONTENT_TYPE, BadMessage, GrpcDecoder, framed, timeout
from inferometer.protocol.protobuf import BYTES, VARINT, Malformed, key, piece, read

HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = tuple(
    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")
)
_SERVICES_MOST = 16
"""So many services of a server are named."""
_NOT_SERVING = 2
_NO_KEY = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
_LIKE_HTTP = {"INVALID_ARGUMENT": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "UNIMPLEMENTED": 404}
"""Statuses whose advice is that of an HTTP status."""


def grpc_fields(timeout_s: float) -> dict[str, str]:
    """The header fields of every call, which is given up after so many seconds."""
    return {
        "TE": "trailers",
        "Content-Type": CONTENT_TYPE,
        "grpc-accept-encoding": "identity",
        "grpc-timeout": timeout(timeout_s),
    }


class GrpcProbe(Probe):
    """See Probe. `headers` are metadata."""

    def __init__(
        self,
        dialect: Dialect,
        target: Endpoint,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None,
        timeout_s: float,
        redact: Redactor,
    ) -> None:
        super().__init__(dialect, target, dict(headers), tls, timeout_s, redact)
        client = client_of(target, {}, None if tls is None else lambda: tls, timeout_s)
        lines = {"Host": target.host_header, "User-Agent": "inferometer"} | grpc_fields(timeout_s)
        self._calls = GrpcClient(
            client, target.scheme, lines | dict(headers), timeout_s=timeout_s, largest=LARGEST
        )

    def models(self) -> Listing:
        """See Probe."""
        dialect = self._dialect
        health = self._call(HEALTH, framed(b""), LISTING_S)
        if not health.status.code and _field(health, key(1, VARINT)) == _NOT_SERVING:
            raise PeerError(f"{self.endpoint.url}: the server reports that it is not serving ({HEALTH[1:]}).")
        called = self._call(dialect.models_path, framed(b""), LISTING_S)
        place = f"{self.endpoint.url}{dialect.models_path}"
        if called.status.name in _NO_KEY:
            words = f"{place}: {self._words(called)}, the server wants a key."
            raise PeerError(words, KEY_ADVICE, _LIKE_HTTP[called.status.name])
        server, missing = self._server(called), f"is {self._words(called)}"
        if not called.status.code:
            try:
                return Listing(self._redacted(dialect.read_models(_message(called))), server)
            except ValueError as cause:
                missing = f"is no model's description ({cause})"
        return Listing(Models(), server, f"what {dialect.models_path} answers {missing}")

    @property
    def cheapest(self) -> str:
        """See Probe."""
        return f"{HEALTH[1:]}, each over its own connection"

    def touch(self, timeout_s: float) -> None:
        """See Probe."""
        called = self._call(HEALTH, framed(b""), timeout_s)
        if called.status.code:
            raise PeerError(f"what {HEALTH} answers is {self._words(called)}")

    def _server(self, listed: Called) -> str | None:
        """What the server says it is, by its own call, or by the Server header."""
        dialect, said = self._dialect, listed.server
        if dialect.server_path is not None:
            called = self._call(dialect.server_path, framed(b""), LISTING_S)
            if not called.status.code:
                with contextlib.suppress(ValueError):  # what it is called is no reason not to measure it
                    said = dialect.read_server(_message(called)) or said
        return self._redact(said) or None

    def takes_ids(self, model: str, ids: list[int]) -> bool:
        """See Probe."""
        body = self._dialect.body(GenerationRequest(model, ids, 1, stream=False))
        return not self._call(self._dialect.interface.path, body).status.code

    def tokenizer(
        self,
        model: str,  # noqa: ARG002 - see the table above
        patience_s: float = 0,  # noqa: ARG002
    ) -> Callable[[str, JsonObject], JsonObject]:
        """See Probe: there is none to ask."""
        return lambda _path, _question: {}

    def try_out(self, wanted: GenerationRequest, length_field: str | None = None) -> Reply:
        """See Probe. There is one field for the length."""
        dialect = self._dialect
        path, (field,) = dialect.interface.path, dialect.length_fields
        called = self._call(path, dialect.body(replace(wanted, length_field=length_field or field)))
        place = f"{self.endpoint.url}{path}"
        if called.status.code:
            advised = _LIKE_HTTP.get(called.status.name)
            words = f"{place}: the server answered {self._words(called).rstrip('.')}."
            if called.status.name == "UNIMPLEMENTED" and (offered := self._offered()):
                words += f" It offers {offered}."
            raise PeerError(words, ADVICE.get(advised or 0, ""), advised)
        answer = Answer()
        dialect.read_whole(answer, called.body, 0)
        if answer.error is not None or answer.malformed is not None:
            words = self._redact.short(answer.error or answer.malformed or "", 300)
            raise PeerError(f"{place}: the server answered with an error: {words}")
        if not answer.done:
            raise PeerError(f"{place}: the answer ended without {dialect.end}.")
        tokens = answer.input_tokens
        return Reply(field, tokens if tokens is not None and tokens > 0 else None)

    def _offered(self) -> str:
        """The services that the server has; nothing if it does not say."""
        with contextlib.suppress(PeerError, ValueError):
            for path in REFLECTION:
                called = self._call(path, framed(piece(7, "*")), LISTING_S)
                if not called.status.code:
                    names = services(_message(called))
                    more = len(names) - _SERVICES_MOST
                    listed = ", ".join(names[:_SERVICES_MOST]) + (f" and {more} more" if more > 0 else "")
                    return self._redact.short(listed, 600)
        return ""

    def _call(self, path: str, body: bytes, at_most_s: float | None = None) -> Called:
        limit = self._timeout_s if at_most_s is None else min(at_most_s, self._timeout_s)
        try:
            return self._calls.call(self.endpoint.base + path, body, limit)
        except Unanswered as cause:
            words = f"{self.endpoint.url}{path}: {self._redact.short(str(cause), 300)}"
            if cause.reason != "timeout":
                raise PeerError(words) from cause
            advice = TIMEOUT_ADVICE if limit == self._timeout_s else ""
            raise PeerError(f"{words} ({limit:g} s).", advice) from cause

    def _words(self, called: Called) -> str:
        return self._redact.short(str(called.status), 300)


def services(message: bytes) -> list[str]:
    """ServerReflectionResponse: the names of its list_services_response. Raises ValueError."""
    (listed,) = [value for tag, value in read(message) if tag == key(6, BYTES)] or [b""]
    each = [value for tag, value in read(_bytes(listed)) if tag == key(1, BYTES)]
    names = (value for one in each for tag, value in read(_bytes(one)) if tag == key(1, BYTES))
    return [_bytes(name).decode("utf-8", "replace") for name in names]


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes), "its tag says so"
    return value


def _message(called: Called) -> bytes:
    """The one message of a response. Raises ValueError."""
    decoder = GrpcDecoder(LARGEST)
    try:
        messages = decoder.feed(called.body)
    except EventTooLarge as cause:
        raise BadMessage(str(cause)) from None
    if len(messages) != 1 or decoder.unfinished:
        raise BadMessage("it is not one message")
    return messages[0]


def _field(called: Called, wanted: int) -> int | bytes | None:
    """The value of a field of the one message, if there is any."""
    try:
        return dict(read(_message(called))).get(wanted)
    except (Malformed, BadMessage):
        return None
