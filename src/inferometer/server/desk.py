"""The front desk: a request in, a complete reply or a generation to start out. No sockets, no clock.

| path                                      | methods    | answers                                                       |
| ----------------------------------------- | ---------- | ------------------------------------------------------------- |
| `/v1/chat/completions`, `/v1/completions` | POST       | a generation, streamed or whole                               |
| `/v1/models`                              | GET        | the one model served                                          |
| `/tokenize`                               | POST       | ids and count of `prompt` or `messages`, as vLLM has it       |
| `/health`                                 | GET        | 200 and nothing                                               |
| `/metrics`                                | GET        | gauges.py                                                     |
| `/inferometer/truth`                      | GET/DELETE | truth.py, and forgetting it                                   |
| `/inferometer/truth/reset`                | POST       | the same as DELETE                                            |

Where a key is set, `/v1/` asks for `Authorization: Bearer KEY`, like vLLM.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import msgspec

from inferometer.protocol.http_request import Request
from inferometer.server.engine.engine import Engine
from inferometer.server.gauges import Gauges
from inferometer.server.metronome import Metronome
from inferometer.server.openai import ApiError, Ask, Reader, error_body
from inferometer.server.truth import TruthLog
from inferometer.server.wire import Reply

_Handler = Callable[[Request], Reply | Ask]


class Desk:
    """Answers requests for one server. `engine` is asked for its queue, never changed."""

    def __init__(
        self,
        reader: Reader,
        engine: Engine[Any] | Metronome[Any],
        gauges: Gauges,
        truth: TruthLog,
        key: str | None,
        born: int,
    ) -> None:
        self._reader = reader
        self._engine = engine
        self._gauges = gauges
        self._truth = truth
        self._key = None if key is None else f"Bearer {key}".encode()
        self._born = born
        self._routes: dict[str, dict[str, _Handler]] = {
            "/v1/chat/completions": {"POST": lambda request: reader.chat(request.body)},
            "/v1/completions": {"POST": lambda request: reader.completion(request.body)},
            "/v1/models": {"GET": self._models},
            "/tokenize": {"POST": self._tokenize},
            "/health": {"GET": lambda _: Reply(200, b"")},
            "/metrics": {"GET": self._metrics},
            "/inferometer/truth": {"GET": self._tell_truth, "DELETE": self._forget},
            "/inferometer/truth/reset": {"POST": self._forget},
        }

    def answer(self, request: Request) -> Reply | Ask:
        """The reply to a request, or the generation it asks for. Never raises ApiError: that is a reply too."""
        try:
            return self._route(request)(request)
        except ApiError as error:
            return refusal(error)

    def _route(self, request: Request) -> _Handler:
        path = request.target.partition("?")[0]
        if path.startswith("/v1/") and self._key is not None:
            given = request.header(b"authorization").encode("latin-1")
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

    def _models(self, _: Request) -> Reply:
        model = {
            "id": self._reader.model,
            "object": "model",
            "created": self._born,
            "owned_by": "inferometer",
            "max_model_len": self._reader.max_model_len,
        }
        return Reply(200, msgspec.json.encode({"object": "list", "data": [model]}))

    def _tokenize(self, request: Request) -> Reply:
        return Reply(200, msgspec.json.encode(self._reader.tokenize(request.body)))

    def _metrics(self, _: Request) -> Reply:
        text = self._gauges.render(self._engine)
        return Reply(200, text, b"text/plain; version=0.0.4; charset=utf-8")

    def _tell_truth(self, _: Request) -> Reply:
        forgotten = (b"X-Inferometer-Forgotten", b"%d" % self._truth.forgotten)
        return Reply(200, self._truth.json_lines(), b"application/jsonl", (forgotten,))

    def _forget(self, _: Request) -> Reply:
        self._truth.reset()
        return Reply(200, b"{}")


def overloaded(status: int) -> Reply:
    """The reply to a request that finds the queue full."""
    return refusal(
        ApiError(
            status,
            "the queue is full: try again later",
            code="rate_limit_exceeded" if status == 429 else "overloaded",
            headers=((b"Retry-After", b"1"),),
        )
    )


def refusal(error: ApiError) -> Reply:
    """An error as a reply."""
    return Reply(error.status, error_body(error), headers=error.headers)
