"""A reference system of several steps in virtual time: the server's own model of it (server/systems/), without its sockets.

The system stands in the engine's place, its tasks are read and worded as the server reads and words them, and its log and spans
are the server's. So what is told of a task, and when, is what `inferometer serve --system` would tell of it, with an engine
and steps that take the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.drive.exchange import DECODERS, Exchange, outcome_of_status
from inferometer.drive.pacer import Hit
from inferometer.drive.trace_context import TraceContext
from inferometer.server.dialects import Dialects
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.openai import Ask, Reader
from inferometer.server.options import Options
from inferometer.server.systems.chat import TaskAsk, failed_events, failure, read_task
from inferometer.server.systems.compound import FAILED, Compound
from inferometer.server.systems.settings import SystemSettings
from inferometer.server.systems.step_log import StepLog
from inferometer.server.systems.task import Task, Trace, read_traceparent
from inferometer.simulation.generation import Generation, Open, Voiced
from inferometer.simulation.reading import Encoder


@dataclass(frozen=True, slots=True)
class ChosenSystem:
    """The system to simulate: `agent` or `rag`, and its settings."""

    name: str
    settings: SystemSettings = field(default_factory=SystemSettings)


class SimulatedSystem:
    """One run's system. `model`: the name served; `spans`: the file that its spans are appended to; `wall_offset_ns`: wall
    clock minus virtual time; `traces`: of the requests, None where they carry none. Raises OSError for a file that cannot be
    opened."""

    def __init__(
        self,
        chosen: ChosenSystem,
        engine: Settings,
        seed: int,
        model: str,
        spans: Path,
        wall_offset_ns: int,
        traces: TraceContext | None,
    ) -> None:
        self.log = StepLog(chosen.name, model, spans, lambda: wall_offset_ns)
        self.compound = Compound[Generation](
            chosen.name, Engine(engine, seed), chosen.settings, seed, _task_of, self.log.add
        )
        self._model = model
        self._limit = min(Options().max_model_len, engine.capacity_tokens)
        self._traces = traces

    def reader(self, tokenizer: Encoder) -> Callable[[Hit, bytes], Ask]:
        """What the system makes of the body of a request that is due; may raise ApiError. `tokenizer`: the server's."""
        made = Reader(self._model, self._limit, tokenizer)

        def ask(hit: Hit, body: bytes) -> Ask:
            return read_task(made, body, self._trace(hit))

        return ask

    def _trace(self, hit: Hit) -> Trace | None:
        if self._traces is None:
            return None
        _, value = self._traces.field(hit.row, hit.cycle)
        return read_traceparent(value.decode())

    def opener(self) -> Open:
        """Begins a task's answer."""
        dialects, begun = Dialects(self._model, stamped=False), 0

        def begin(exchange: Exchange, ask: Ask, start: int) -> Generation:
            nonlocal begun
            assert isinstance(ask, TaskAsk), "the reader of a system reads tasks"
            ask.task.ident = dialects.ident(ask.api, f"{begun:032x}")
            begun += 1
            return TaskGeneration(dialects, exchange, ask, start)

        return begin


def _task_of(generation: Generation) -> Task:
    assert isinstance(generation.ask, TaskAsk), "the opener of a system begins tasks"
    return generation.ask.task


class TaskGeneration(Voiced):
    """A task's answer, or the error that came in its place."""

    __slots__ = ()

    def put(self, count: int, end: int, at: int) -> None:
        """See Generation. A failure brings no token."""
        if end == FAILED:
            self.end = end
        else:
            super().put(count, end, at)

    def finish(self, at: int) -> int:
        """See Generation."""
        if self.end != FAILED or self.ask.stream:
            return super().finish(at)
        self.ended = True
        exchange, error = self.exchange, failure(_task_of(self))
        exchange.t_first_byte = exchange.t_end = at
        exchange.status = error.status
        exchange.fail(outcome_of_status(error.status), str(error))
        return 0

    def _stream(self, at: int, *, ended: bool) -> int:
        if self.end != FAILED:
            return super()._stream(at, ended=ended)
        events = super()._stream(at, ended=False)
        exchange = self.exchange
        for payload in DECODERS[exchange.dialect.interface.framing]().feed(failed_events(_task_of(self))):
            if isinstance(payload, bytes):
                exchange.dialect.read_event(exchange.answer, payload, at)
        return events
