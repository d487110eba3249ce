"""The front desk: a request in, a complete reply or a generation to start out. No sockets, no clock.

| path                                      | methods    | answers                                                       |
| ----------------------------------------- | ---------- | ------------------------------------------------------------- |
| `/v1/chat/completions`, `/v1/completions` | POST       | a generation, streamed or whole                               |
| `/v1/responses`                           | POST       | the same in other words (responses.py)                        |
| `/v1/messages`                            | POST       | the same in Anthropic's (anthropic.py)                        |
| `/api/generate`, `/api/chat`              | POST       | the same in Ollama's (ollama.py)                              |
| `/api/tags`, `/api/ps`, `/api/version`    | GET        | the model, the model while it is loaded, a version            |
| `/vllm.grpc.engine.VllmEngine/...`,       | POST       | vLLM's gRPC, over HTTP/2 alone (vllm_grpc.py)                 |
| `/grpc.health.v1.Health/Check`            |            |                                                               |
| `/v1/ws`                                  | GET, POST  | a WebSocket whose messages generate (websocket_messages.py)   |
| `/v1/realtime`                            | GET, POST  | the same in OpenAI's events (realtime.py)                     |
| `/v1/models`                              | GET        | the one model served                                          |
| `/tokenize`                               | POST       | ids and count of `prompt` or `messages`, as vLLM has it       |
| `/health`                                 | GET        | 200 and nothing; 503 while the model is loaded at the start   |
| `/metrics`                                | GET        | gauges.py                                                     |
| `/inferometer/truth`                      | GET/DELETE | truth.py, and forgetting it                                   |
| `/inferometer/truth/reset`                | POST       | the same as DELETE                                            |
| `/inferometer/state`                      | GET/PATCH  | controls.py; PUT is the same as PATCH                         |

Where a key is set, `/v1/` requires `Authorization: Bearer KEY`, like vLLM, or `x-api-key: KEY`, like Anthropic; so do `/api/`,
`/inferometer/state` and vLLM's gRPC. Errors under `/api/` are worded as Ollama words them, those of `/v1/messages` as Anthropic
does, those of gRPC are statuses. With `--routes ENGINE` the table is that engine's (engine_routes.py), with
`--system` that of a reference system (systems/system_routes.py).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import msgspec

from inferometer.protocol import websocket_handshake as handshake
from inferometer.protocol.http_request import Request
from inferometer.server import anthropic, engine_routes, ollama, realtime, vllm_grpc, websocket_messages
from inferometer.server.answer_parts import Parts
from inferometer.server.controls import State
from inferometer.server.engine.engine import Engine
from inferometer.server.fixed_script import Metronome
from inferometer.server.gauges import Gauges
from inferometer.server.http_reply import Reply
from inferometer.server.openai import ApiError, Ask, Reader, Tokenizer, error_body, queue_full
from inferometer.server.responses import ResponsesReader
from inferometer.server.systems.system_routes import System
from inferometer.server.truth_log import TruthLog

_Handler = Callable[[Request], Reply | Ask]
_GUARDED = ("/v1/", "/api/", "/inferometer/state", vllm_grpc.PREFIX)


class Readers:
    """Who reads which body: each interface's reader of the one model. `max_model_len`: the option, whatever the cache holds."""

    def __init__(
        self, model: str, max_model_len: int, tokenizer: Tokenizer, parts: Parts, block_tokens: int
    ) -> None:
        known = model, max_model_len, tokenizer, parts, block_tokens
        self.openai = Reader(*known)
        self.responses = ResponsesReader(*known)
        self.anthropic = anthropic.AnthropicReader(*known)
        self.ollama = ollama.OllamaReader(*known)
        self.vllm = vllm_grpc.VllmReader(*known)
        self.websocket = websocket_messages.WebSocketReader(*known)
        self.realtime = realtime.RealtimeReader(*known)
        self._max_model_len = max_model_len

    def fit(self, capacity: int | None) -> int:
        """Take no prompt and answer together beyond the option and `capacity` tokens; what that comes to."""
        limit = self._max_model_len if capacity is None else min(self._max_model_len, capacity)
        readers = (
            *(self.openai, self.responses, self.anthropic, self.ollama),
            *(self.vllm, self.websocket, self.realtime),
        )
        for reader in readers:
            reader.max_model_len = limit
        return limit


class Desk:
    """Answers requests for one server. `engine` is asked for its queue, never changed. How long a request may be follows the
    engine's cache. `routes`: of which engine, None for all of the reference server's.
    """

    def __init__(
        self,
        readers: Readers,
        lists: ollama.Lists,
        engine: Engine[Any] | Metronome[Any] | System,
        gauges: Gauges,
        truth: TruthLog,
        state: State,
        key: str | None,
        born: int,
        routes: str | None = None,
        *,
        sockets: bool = True,
    ) -> None:
        reader = self._reader = readers.openai
        self._engine = engine
        self._gauges = gauges
        self._truth = truth
        self._key = None if key is None else f"Bearer {key}".encode()
        self._born = born
        self._state = state
        self._readers = readers
        self._lists = lists
        self._fit()
        self._routes: dict[str, dict[str, _Handler]] = {
            "/v1/chat/completions": {"POST": lambda request: reader.chat(request.body)},
            "/v1/completions": {"POST": lambda request: reader.completion(request.body)},
            "/v1/responses": {"POST": lambda request: readers.responses.responses(request.body)},
            anthropic.PATH: {"POST": lambda request: readers.anthropic.messages(request.body)},
            websocket_messages.PATH: {
                "GET": _switch,
                "POST": lambda request: readers.websocket.message(request.body),
            },
            realtime.PATH: {"GET": _switch, "POST": lambda request: readers.realtime.event(request.body)},
            "/v1/models": {"GET": self._models},
            "/api/generate": {"POST": lambda request: readers.ollama.generate(request.body)},
            "/api/chat": {"POST": lambda request: readers.ollama.converse(request.body)},
            vllm_grpc.GENERATE: {"POST": self._generate},
            "/api/tags": {"GET": lambda _: Reply(200, lists.tags())},
            "/api/ps": {"GET": lambda _: Reply(200, lists.running())},
            "/api/version": {"GET": lambda _: Reply(200, lists.version())},
            "/tokenize": {"POST": self._tokenize},
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/inferometer/truth": {"GET": self._tell_truth, "DELETE": self._forget},
            "/inferometer/truth/reset": {"POST": self._forget},
            "/inferometer/state": {"GET": self._show, "PATCH": self._change, "PUT": self._change},
        }
        calls = vllm_grpc.Calls(
            reader.model, lambda: reader.max_model_len, lambda: state.starting, lambda: engine.running
        )
        for path, call in calls.by_path.items():
            self._routes[path] = {"POST": call}
        if not sockets:
            for path in (websocket_messages.PATH, realtime.PATH):
                del self._routes[path]["GET"]
        if routes is not None:
            self._serve_as(routes)
        if isinstance(engine, System):
            self._routes = engine.routes(reader, self._routes)

    def _serve_as(self, engine: str) -> None:
        """Leave the routes of this engine alone, and add those that only it has."""
        served = engine_routes.Served(
            self._reader.model,
            self._born,
            limit=lambda: self._reader.max_model_len,
            loaded=lambda: self._state.loaded,
            switch=self._state.switch,
        )
        own = {
            path: methods for path, methods in self._routes.items() if not engine_routes.hidden(engine, path)
        }
        further: dict[str, dict[str, _Handler]] = {
            path: dict(methods) for path, methods in engine_routes.routes(engine, served).items()
        }
        self._routes = {**own, **further}

    def answer(self, request: Request) -> Reply | Ask:
        """The reply to a request, or the generation it asks for. Never raises ApiError: that is a reply too."""
        try:
            return self._route(request)(request)
        except ApiError as error:
            return refusal(error, request.target)

    def _route(self, request: Request) -> _Handler:
        path = request.target.partition("?")[0]
        if path.startswith(_GUARDED) and self._key is not None:
            bearer = request.header(b"authorization").encode("latin-1")
            given = bearer or b"Bearer " + request.header(b"x-api-key").encode("latin-1")
            if not hmac.compare_digest(given, self._key):
                raise ApiError(
                    401,
                    "a valid API key is needed: Authorization: Bearer KEY",
                    code="invalid_api_key",
                    headers=((b"WWW-Authenticate", b"Bearer"),),
                )
        methods = self._routes.get(path)
        if methods is None:
            raise ApiError(404, f"there is nothing at {path!r}", code="not_found")
        handler = methods.get(request.method)
        if handler is None:
            allowed = ", ".join(methods)
            raise ApiError(
                405,
                f"{path} takes {allowed}, not {request.method}",
                code="method_not_allowed",
                headers=((b"Allow", allowed.encode()),),
            )
        return handler

    def _generate(self, request: Request) -> Ask:
        vllm_grpc.check_transport(request)
        return self._readers.vllm.generate(request.body)

    def _models(self, _: Request) -> Reply:
        model = {
            "id": self._reader.model,
            "object": "model",
            "created": self._born,
            "owned_by": "inferometer",
            "max_model_len": self._reader.max_model_len,
        }
        return Reply(200, msgspec.json.encode({"object": "list", "data": [model]}))

    def _health(self, _: Request) -> Reply:
        if self._state.starting:
            raise ApiError(503, "the model is being loaded", code="unavailable")
        return Reply(200, b"")

    def _tokenize(self, request: Request) -> Reply:
        return Reply(200, msgspec.json.encode(self._reader.tokenize(request.body)))

    def _metrics(self, _: Request) -> Reply:
        text = self._gauges.render(self._engine)
        return Reply(200, text, b"text/plain; version=0.0.4; charset=utf-8")

    def _show(self, _: Request) -> Reply:
        return Reply(200, msgspec.json.encode(self._state.show(self._engine.running, self._engine.waiting)))

    def _change(self, request: Request) -> Reply:
        self._state.change(request.body)
        self._fit()
        return self._show(request)

    def _fit(self) -> None:
        self._lists.max_model_len = self._readers.fit(self._state.capacity)

    def _tell_truth(self, _: Request) -> Reply:
        forgotten = (b"X-Inferometer-Forgotten", b"%d" % self._truth.forgotten)
        return Reply(200, self._truth.json_lines(), b"application/jsonl", (forgotten,))

    def _forget(self, _: Request) -> Reply:
        self._truth.reset()
        return Reply(200, b"{}")


def overloaded(ask: Ask, status: int) -> Reply:
    """The reply to a request that finds the queue full."""
    error = queue_full(status)
    return refusal(error, _PATHS.get(ask.api, ""))


_PATHS = {
    ollama.GENERATE: "/api/generate",
    ollama.CHAT: "/api/chat",
    anthropic.API: anthropic.PATH,
    vllm_grpc.API: vllm_grpc.GENERATE,
    websocket_messages.API: websocket_messages.PATH,
    realtime.API: realtime.PATH,
}
_ERROR_BODIES = {
    anthropic.PATH: anthropic.error_body,
    websocket_messages.PATH: websocket_messages.error_body,
    realtime.PATH: realtime.error_body,
}


def _switch(request: Request) -> Reply:
    """A client's handshake. Raises ApiError."""
    if not handshake.asks_to_switch(request):
        headers = (*handshake.UPGRADE, (b"Sec-WebSocket-Version", handshake.VERSION))
        raise ApiError(426, "this path takes WebSockets", code="upgrade_required", headers=headers)
    if fault := handshake.refused(request):
        raise ApiError(400, fault, code="bad_handshake")
    return Reply(handshake.SWITCHING, b"", headers=handshake.switching(request))


def refusal(error: ApiError, path: str = "") -> Reply:
    """An error as a reply, worded as the interface at this path words it."""
    if vllm_grpc.is_call(path) and error.status != vllm_grpc.NOT_HTTP2:
        return vllm_grpc.error_reply(error)
    if path.startswith("/api/"):
        body = ollama.error_body(error)
    else:
        found = (own for start, own in _ERROR_BODIES.items() if path.startswith(start))
        body = next(found, error_body)(error)
    return Reply(error.status, body, headers=error.headers)
