"""A reference system in a server: in its engine's place, and at the paths that a system has.

| path                      | methods     | answers                                         |
| ------------------------- | ----------- | ----------------------------------------------- |
| `/v1/chat/completions`    | POST        | a task                                          |
| `/inferometer/steps`      | GET, DELETE | the steps of tasks (step_log.py); forgets them  |

The list of models, health, metrics, the tokenizer, the truth log and the state are those of every server; nothing else is
there, since a system has one interface. Of the state, guardrails and prefix cache can be changed (controls.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inferometer.protocol.http_request import Request
from inferometer.server.answers import Answer
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.http_reply import Reply
from inferometer.server.openai import Ask, Reader
from inferometer.server.systems.chat import read_task, task_of
from inferometer.server.systems.compound import Compound
from inferometer.server.systems.settings import SystemSettings
from inferometer.server.systems.step_log import StepLog
from inferometer.server.systems.task import Trace, read_traceparent

STEPS = "/inferometer/steps"
_KEPT = (
    "/v1/models", "/health", "/metrics", "/tokenize",
    "/inferometer/state", "/inferometer/truth", "/inferometer/truth/reset",
)  # fmt: skip


def _trace(request: Request) -> Trace | None:
    return read_traceparent(request.header(b"traceparent"))


Handler = Callable[[Request], Reply | Ask]
Routes = dict[str, dict[str, Handler]]


class System(Compound[Answer]):
    """The system of one server, and its log."""

    def __init__(
        self, name: str, engine: Settings, settings: SystemSettings, seed: int, log: StepLog
    ) -> None:
        super().__init__(name, Engine(engine, seed), settings, seed, task_of, log.add)
        self.log = log

    def routes(self, reader: Reader, served: Mapping[str, dict[str, Handler]]) -> Routes:
        """The table above, with what is kept of what a server has."""
        return {
            **{path: served[path] for path in _KEPT},
            "/v1/chat/completions": {
                "POST": lambda request: read_task(reader, request.body, _trace(request))
            },
            STEPS: {"GET": self._steps, "DELETE": self._forget},
        }

    def _steps(self, _: Request) -> Reply:
        forgotten = (b"X-Inferometer-Forgotten", b"%d" % self.log.forgotten)
        return Reply(200, self.log.json_lines(), b"application/jsonl", (forgotten,))

    def _forget(self, _: Request) -> Reply:
        self.log.reset()
        return Reply(200, b"{}")
