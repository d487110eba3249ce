"""The truth about tasks: one line for each of their steps, and their spans for an OpenTelemetry reader.

`GET /inferometer/steps` has one JSON object a line for each step of each task that has ended:

| field                                | is                                                                    |
| ------------------------------------ | --------------------------------------------------------------------- |
| `id`                                 | the answer's, as the client saw it                                    |
| `trace_id`, `span_id`                | of the step; `parent_span_id` is the task's                            |
| `system`, `outcome`                  | `agent` or `rag`; of the task: `finished`, `refused`, `failed`, `cancelled` |
| `task_began_ns`, `task_ended_ns`     | of the task: its request arrived; its last token came, or it was given up |
| `step`, `kind`, `name`               | its number in the task, from 0; what it is (steps.py)                  |
| `began_ns`, `ended_ns`               | of the step                                                            |
| `first_token_ns`                     | of a call of the model: its first token; null otherwise                |
| `prompt_tokens`, `completion_tokens`, `cached_tokens` | of a call of the model, else 0                        |
| `fault`, `task_faults`, `error`      | what was injected into the step, into the task; why it failed          |

Times are those of the truth log (truth_log.py).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from inferometer.server.http_reply import JsonObject
from inferometer.server.systems.steps import StepKind
from inferometer.server.systems.task import StepRecord, Task

_KEPT = 200_000
"""Steps; some 100 MB."""
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
_OK, _ERROR = 1, 2
_OPERATIONS = {
    StepKind.LLM: "chat",
    StepKind.TOOL: "execute_tool",
    StepKind.RETRIEVAL: "retrieval",
    StepKind.RERANK: "rerank",
    StepKind.GUARDRAIL: "guardrail",
}


class StepLog:
    """Keeps the steps of tasks that have ended, the newest 200,000, and appends spans to a file, if there is one.

    `wall_offset`: what the wall clock is ahead of the server's. A span file that cannot be written any more is said once on
    standard error, and left; the server goes on.
    """

    def __init__(self, system: str, model: str, spans: Path | None, wall_offset: Callable[[], int]) -> None:
        self._system = system
        self._model = model
        self._wall_offset = wall_offset
        self._rows: deque[JsonObject] = deque(maxlen=_KEPT)
        self._added = 0
        self._spans = None if spans is None else open(spans, "ab")  # noqa: SIM115 - open for as long as the server is

    @property
    def forgotten(self) -> int:
        """Steps that are no longer kept."""
        return self._added - len(self._rows)

    def add(self, task: Task) -> None:
        """A task has ended."""
        for record in task.steps:
            self._rows.append(_row(self._system, task, record))
        self._added += len(task.steps)
        if self._spans is not None:
            try:
                self._spans.write(msgspec.json.encode(self.resource(task)) + b"\n")
                self._spans.flush()
            except OSError as error:
                sys.stderr.write(f"no more spans are written: {error.strerror}\n")
                self.close()

    def reset(self) -> None:
        """Forget all steps. The file stays."""
        self._rows.clear()
        self._added = 0

    def json_lines(self) -> bytes:
        """The steps as JSON Lines."""
        return msgspec.json.Encoder().encode_lines(list(self._rows))

    def close(self) -> None:
        """Close the file of spans."""
        file, self._spans = self._spans, None
        if file is not None:
            try:
                file.close()
            except OSError:  # what it held is lost, as was said
                return

    def resource(self, task: Task) -> JsonObject:
        """A task's spans as a line of OTLP JSON: the task and its steps, named by the GenAI semantic conventions."""
        service = _attributes({"service.name": f"inferometer-reference-{self._system}"})
        scope = {"scope": {"name": "inferometer.reference"}, "spans": list(self._spans_of(task))}
        return {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [scope]}]}

    def _spans_of(self, task: Task) -> Iterator[JsonObject]:
        offset = self._wall_offset()
        assert task.trace is not None
        usage = task.usage()
        yield {
            "traceId": task.trace.trace_id,
            "spanId": task.span_id,
            **({} if task.trace.parent is None else {"parentSpanId": task.trace.parent}),
            "name": f"invoke_agent {self._system}",
            "kind": _SERVER,
            "startTimeUnixNano": str(task.began_ns + offset),
            "endTimeUnixNano": str(task.ended_ns + offset),
            "attributes": _attributes(
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.name": self._system,
                    "gen_ai.provider.name": "inferometer",
                    "gen_ai.request.model": self._model,
                    "gen_ai.usage.input_tokens": usage["prompt_tokens"],
                    "gen_ai.usage.output_tokens": usage["completion_tokens"],
                    "inferometer.outcome": task.outcome,
                }
            ),
            "status": _status(None if task.outcome in ("finished", "refused") else task.outcome),
        }
        for record in task.steps:
            yield self._span(task, record, offset)

    def _span(self, task: Task, record: StepRecord, offset: int) -> JsonObject:
        step, operation = record.step, _OPERATIONS[record.step.kind]
        assert task.trace is not None
        told: JsonObject = {"gen_ai.operation.name": operation, "inferometer.step": step.name}
        name = f"{operation} {step.name}"
        if step.kind is StepKind.LLM:
            name = f"{operation} {self._model}"
            told |= {
                "gen_ai.provider.name": "inferometer",
                "gen_ai.request.model": self._model,
                "gen_ai.usage.input_tokens": record.prompt_tokens,
                "gen_ai.usage.output_tokens": record.completion_tokens,
            }
        elif step.kind is StepKind.TOOL:
            told |= {
                "gen_ai.tool.name": step.name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": record.span_id,
            }
        elif step.kind is StepKind.RETRIEVAL:
            name = operation
            told["gen_ai.data_source.id"] = step.name
        return {
            "traceId": task.trace.trace_id,
            "spanId": record.span_id,
            "parentSpanId": task.span_id,
            "name": name,
            "kind": _CLIENT if step.kind is StepKind.LLM else _INTERNAL,
            "startTimeUnixNano": str(record.began_ns + offset),
            "endTimeUnixNano": str(record.ended_ns + offset),
            "attributes": _attributes(told),
            "status": _status(record.error),
        }


def _attributes(told: JsonObject) -> list[JsonObject]:
    """OTLP's list of keys and typed values; 64-bit integers are text there."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)},
        }
        for key, value in told.items()
    ]


def _status(error: str | None) -> JsonObject:
    return {"code": _OK} if error is None else {"code": _ERROR, "message": error}


def _row(system: str, task: Task, record: StepRecord) -> JsonObject:
    """A line of the table above."""
    assert task.trace is not None
    return {
        "id": task.ident,
        "trace_id": task.trace.trace_id,
        "span_id": record.span_id,
        "parent_span_id": task.span_id,
        "system": system,
        "outcome": task.outcome,
        "task_began_ns": task.began_ns,
        "task_ended_ns": task.ended_ns,
        "step": record.number,
        "kind": record.step.kind.value,
        "name": record.step.name,
        "began_ns": record.began_ns,
        "ended_ns": record.ended_ns,
        "first_token_ns": record.first_token_ns,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "cached_tokens": record.cached_tokens,
        "fault": record.fault,
        "task_faults": task.faults,
        "error": record.error,
    }
