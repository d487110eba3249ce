"""vLLM's own gRPC service, on the server's side: `vllm.grpc.engine.VllmEngine`, and the standard services of health and
reflection. Pure.

| method                        | request                          | response                                             |
| ----------------------------- | -------------------------------- | ---------------------------------------------------- |
| `VllmEngine/Generate`         | text or token ids, `max_tokens`  | a message a token, then one that says how it ended   |
| `VllmEngine/HealthCheck`      | nothing                          | healthy, unless the model is loaded at the start     |
| `VllmEngine/GetModelInfo`     | nothing                          | name, context and vocabulary of the one model        |
| `VllmEngine/GetServerInfo`    | nothing                          | what is under way, and which server this is          |
| `grpc.health.v1.Health/Check` | a service's name, or nothing     | SERVING, or NOT_SERVING while the model is loaded    |
| `grpc.reflection.v1.ServerReflection/ServerReflectionInfo`       | the names of these services, for a call of one       |
|                               | `list_services`                  | message; no descriptors                              |

Field numbers are those of `vllm_engine.proto` in the package smg-grpc-proto 0.4.28. As vLLM does, the message that ends a
stream repeats the ids of the last one, and a whole answer is that message alone, with all ids. Ids are cl100k's.

Errors are statuses in a response without messages:

| HTTP's          | 400                | 401               | 404         | 413, 429             | 503           | others     |
| --------------- | ------------------ | ----------------- | ----------- | -------------------- | ------------- | ---------- |
| gRPC's          | INVALID_ARGUMENT   | UNAUTHENTICATED   | NOT_FOUND   | RESOURCE_EXHAUSTED   | UNAVAILABLE   | INTERNAL   |

A method that there is not is UNIMPLEMENTED.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferometer.protocol import grpc
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.grpc import CODES, CONTENT_TYPE, Status, framed, status_fields
from inferometer.protocol.http_request import Request
from inferometer.protocol.protobuf import (
    BYTES,
    VARINT,
    Field,
    Malformed,
    integer,
    key,
    numbers,
    piece,
    read,
    varint,
)
from inferometer.server.event_writer import Telling, Voice
from inferometer.server.filler_ids import IDS
from inferometer.server.http_reply import SERVER, Reply
from inferometer.server.openai import DEFAULT_COMPLETION_TOKENS, ApiError, Ask, Reader, head_of

API = "vllm-grpc"
"""What this interface is called in an Ask and in the truth log."""
_SERVICE = "vllm.grpc.engine.VllmEngine"
PREFIX = f"/{_SERVICE}/"
GENERATE = f"{PREFIX}Generate"
HEALTH_PREFIX = "/grpc.health.v1."
REFLECTION_PREFIX = "/grpc.reflection.v1."
_SERVICES = (_SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection")
VOCABULARY = 100_256
"""Ids of cl100k without its special ones."""
NOT_HTTP2 = 505
"""The status of a call that comes over HTTP/1.1: the one error that HTTP itself says."""

_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_TYPE = CONTENT_TYPE.encode()
_SERVING, _NOT_SERVING = 1, 2
_END = b"".join(b"%b: %b\r\n" % field for field in status_fields(Status(0)))


def is_call(path: str) -> bool:
    """Whether what is at this path is asked and answered by gRPC."""
    return path.startswith((PREFIX, HEALTH_PREFIX, REFLECTION_PREFIX))


def error_reply(error: ApiError) -> Reply:
    """An error as a response without messages."""
    missing = error.status == 405 or error.code == "not_found"
    name = "UNIMPLEMENTED" if missing else _CODES.get(error.status, "INTERNAL")
    status = Status(CODES[name], str(error))
    return Reply(200, b"", _TYPE, tuple(status_fields(status)))


def replied(message: bytes) -> Reply:
    """A response of one message."""
    return Reply(200, framed(message), _TYPE, trailers=_END)


def _message(request: Request) -> bytes:
    """The one message of a call. Raises ApiError."""
    check_transport(request)
    return _unframed(request.body)


def check_transport(request: Request) -> None:
    """Raises ApiError for a call that does not come over HTTP/2."""
    if request.version != "2":
        raise ApiError(NOT_HTTP2, "gRPC needs HTTP/2")


def _unframed(body: bytes) -> bytes:
    decoder = grpc.GrpcDecoder(len(body))
    try:
        messages = decoder.feed(body)
    except (grpc.BadMessage, EventTooLarge) as cause:
        raise ApiError(400, str(cause)) from None
    if len(messages) != 1 or decoder.unfinished:
        raise ApiError(400, "a call has one message")
    return messages[0]


def _fields(message: bytes) -> list[Field]:
    try:
        return read(message)
    except Malformed as cause:
        raise ApiError(400, f"the message is not as it should be: {cause}") from None


class VllmReader(Reader):
    """Reads GenerateRequest."""

    def generate(self, body: bytes) -> Ask:
        """What a framed message asks for. Raises ApiError."""
        prompt: str | list[int] | None = None
        stream, limit = False, None
        for tag, value in _fields(_unframed(body)):
            if tag == key(2, BYTES) and isinstance(value, bytes):
                prompt = _ids(value)
            elif tag == key(3, BYTES) and isinstance(value, bytes):
                prompt = value.decode("utf-8", "replace")
            elif tag == key(4, BYTES) and isinstance(value, bytes):
                limit = _limit(value)
            elif tag == key(5, VARINT):
                stream = bool(value)
        if prompt is None:
            raise ApiError(400, "the request has neither token ids nor text", "input")
        ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        if not ids:
            raise ApiError(400, "the prompt has no token", "input")
        limit = DEFAULT_COMPLETION_TOKENS if limit is None else limit
        if not limit:
            raise ApiError(400, "max_tokens must be at least 1", "max_tokens")
        self._check_fit(len(ids), limit, "input")
        return Ask(API, stream, False, len(ids), limit, head_of(prompt), hashes=self._hashes(ids))


def _ids(tokenized: bytes) -> list[int]:
    """The ids of a TokenizedInput, packed or one by one."""
    found: list[int] = []
    for tag, value in _fields(tokenized):
        if tag == key(2, VARINT) and isinstance(value, int):
            found.append(value & 0xFFFF_FFFF)
        elif tag == key(2, BYTES) and isinstance(value, bytes):
            try:
                found += numbers(value)
            except Malformed as cause:
                raise ApiError(400, f"the token ids are not as they should be: {cause}") from None
    return found


def _limit(sampling: bytes) -> int | None:
    """`max_tokens` of SamplingParams. Raises ApiError for more than one answer."""
    limit = None
    for tag, value in _fields(sampling):
        if tag == key(8, VARINT) and isinstance(value, int):
            limit = value & 0xFFFF_FFFF
        elif tag == key(15, VARINT) and isinstance(value, int) and value > 1:
            raise ApiError(400, "this server generates one answer a request: n must be 1", "n")
    return limit


class Messages(Voice):
    """One answer: a GenerateResponse for each token, with its one id, and one for the end."""

    content_type = body_type = _TYPE
    trailers = _END

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._place = telling.passage.start
        self._behind = integer(2, telling.ask.prompt_tokens) + integer(3, 1)

    def _ids(self, first: int, count: int) -> bytes:
        """Of `count` tokens from this one on, packed."""
        start = self._place + first
        return b"".join(varint(IDS[at % len(IDS)]) for at in range(start, start + count))

    def token(self, index: int, at: int) -> bytes:  # noqa: ARG002 - no field holds the instant
        """One message."""
        return framed(piece(1, piece(1, self._ids(index, 1)) + self._behind))

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - nor any the load
        """The message that ends a stream: as vLLM has it, with the last token's id once more."""
        return framed(self._complete(len(instants) - 1, 1))

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The one message of an answer that is not streamed."""
        return framed(self._complete(0, len(instants)))

    def _complete(self, first: int, count: int) -> bytes:
        counts = (
            integer(3, self._telling.ask.prompt_tokens),
            integer(4, count),
            integer(5, self.cached or None),
        )
        reason = piece(2, "content_filter" if self._refused else "length")
        return piece(2, piece(1, self._ids(first, count)) + reason + b"".join(counts))


class Calls:
    """The calls that generate nothing. `limit`: the longest prompt and answer together, now; `starting`: the model is being
    loaded; `running`: requests under way."""

    def __init__(
        self, model: str, limit: Callable[[], int], starting: Callable[[], bool], running: Callable[[], int]
    ) -> None:
        self._model = model
        self._limit, self._starting, self._running = limit, starting, running
        self.by_path: dict[str, Callable[[Request], Reply]] = {
            f"{PREFIX}HealthCheck": self._healthy,
            f"{PREFIX}GetModelInfo": self._model_info,
            f"{PREFIX}GetServerInfo": self._server_info,
            f"{HEALTH_PREFIX}Health/Check": self._check,
            f"{REFLECTION_PREFIX}ServerReflection/ServerReflectionInfo": self._reflect,
        }

    def _healthy(self, request: Request) -> Reply:
        _message(request)
        starting = self._starting()
        words = "the model is being loaded" if starting else "Health"
        return replied(integer(1, not starting) + piece(2, words))

    def _model_info(self, request: Request) -> Reply:
        _message(request)
        limit = self._limit()
        return replied(
            b"".join(
                (
                    piece(1, self._model),
                    integer(2, 1),
                    integer(3, limit),
                    integer(4, VOCABULARY),
                    piece(6, self._model),
                    piece(8, "reference"),
                    integer(13, limit),
                )
            )
        )

    def _server_info(self, request: Request) -> Reply:
        _message(request)
        return replied(integer(1, self._running()) + piece(5, SERVER))

    def _reflect(self, request: Request) -> Reply:
        asked = _message(request)
        if all(tag != key(7, BYTES) for tag, _ in _fields(asked)):
            refused = integer(1, CODES["UNIMPLEMENTED"]) + piece(
                2, "this server lists its services, and no more"
            )
            return replied(piece(2, asked) + piece(7, refused))
        listed = b"".join(piece(1, piece(1, name)) for name in _SERVICES)
        return replied(piece(2, asked) + piece(6, listed))

    def _check(self, request: Request) -> Reply:
        named = [value for tag, value in _fields(_message(request)) if tag == key(1, BYTES)]
        if named and named[-1] not in (b"", _SERVICE.encode()):
            raise ApiError(404, "there is no such service")
        return replied(integer(1, _NOT_SERVING if self._starting() else _SERVING))
