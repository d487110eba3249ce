"""A reference system's side of OpenAI's chat: the request read as a task, the answer worded, an error where a step failed.

In a stream an error comes as an event with OpenAI's error object, since the head has been sent; then `[DONE]`, as vLLM does.
Not streamed it is a reply with status 502.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from inferometer.server.answers import Answer
from inferometer.server.connection import Connection
from inferometer.server.event_writer import Telling
from inferometer.server.http_reply import JsonObject, Reply, chunk, last_chunk
from inferometer.server.openai import ApiError, Ask, Message, Reader, error_body
from inferometer.server.openai_events import Chat
from inferometer.server.systems.compound import FAILED
from inferometer.server.systems.scripts import Question
from inferometer.server.systems.task import Task, Trace
from inferometer.server.truth_log import Entry
from inferometer.server.voiced_answers import Spoken, SpokenUnstreamed, Voiced

API = "chat"
"""The one interface of a system."""
_FAILURE = 502


class TaskAsk(Ask, frozen=True, kw_only=True):
    """A chat that is a task."""

    task: Task


class _Messages(msgspec.Struct):
    messages: list[Message]


_MESSAGES = msgspec.json.Decoder(_Messages)


def read_task(reader: Reader, body: bytes, trace: Trace | None) -> TaskAsk:
    """The task that the body of a chat asks for, in the caller's `trace`. Raises ApiError."""
    ask = reader.chat(body)
    if ask.parts:
        raise ApiError(
            400, "a reference system calls its own tools: tool_choice cannot ask for others", "tool_choice"
        )
    messages = _MESSAGES.decode(body).messages
    users = [message for message in messages if message.role == "user"]
    if not users:
        raise ApiError(400, "messages has no message of the user", "messages")
    dialogue = "\n".join(f"{message.role}: {_text(message)}" for message in messages)
    question = Question(_text(users[-1]), dialogue, ask.max_tokens)
    task = Task(question, trace, reader.encode)
    known = {name: getattr(ask, name) for name in Ask.__struct_fields__}
    return TaskAsk(**known, task=task)


def _text(message: Message) -> str:
    content = message.content
    return "".join(part.text for part in content) if isinstance(content, list) else content or ""


class TaskChat(Chat):
    """The words of a task's answer: its pieces, one an event; `usage` is that of all its calls."""

    def __init__(self, telling: Telling, task: Task) -> None:
        super().__init__(telling)
        self._task = task

    def token(self, index: int, at: int) -> bytes:
        """One event."""
        last = index == len(self._task.pieces) - 1
        delta: JsonObject = {"delta": {"content": self._task.pieces[index]}}
        return self._event(delta, self._reason if last else None, at)

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - OpenAI tells no durations
        """The body."""
        return self._completed({"message": {"role": "assistant", "content": "".join(self._task.pieces)}})

    def _usage(self, tokens: int) -> JsonObject:  # noqa: ARG002 - those of the answer alone
        return self._task.usage()


def failure(task: Task) -> ApiError:
    """What a task is answered that ended at a step."""
    failed = next((record for record in task.steps if record.error is not None), None)
    name, why = ("a step", "it failed") if failed is None else (failed.step.name, failed.error)
    return ApiError(_FAILURE, f"the task failed at {name}: {why}", code="step_failed")


def failed_events(task: Task) -> bytes:
    """The last events of a stream whose task has failed."""
    return b"data: %b\n\ndata: [DONE]\n\n" % error_body(failure(task))


class _OfTask(Voiced):
    """An answer as any other, but for a task that failed."""

    __slots__ = ()

    def put(self, count: int, end: int, at: int) -> None:
        """See Answer."""
        if end != FAILED:
            super().put(count, end, at)
            return
        self.entry.fault = "step_failed"
        self.connection.post(self._failed(task_of(self)), self.entry.ended)
        self.done = True

    def _failed(self, task: Task) -> bytes:
        """What stands in the answer's place."""
        raise NotImplementedError


class TaskSpoken(_OfTask, Spoken):
    """A streamed answer, or the error event in its place."""

    __slots__ = ()

    def _failed(self, task: Task) -> bytes:
        return chunk(failed_events(task)) + last_chunk()


class TaskWhole(_OfTask, SpokenUnstreamed):
    """An answer in one body, or the error in its place."""

    __slots__ = ()

    def _failed(self, task: Task) -> bytes:
        return Reply(_FAILURE, error_body(failure(task))).encode(self.keep_alive)


def task_answer(
    connection: Connection, telling: Telling, ask: TaskAsk, entry: Entry, *, keep_alive: bool
) -> Answer:
    """The answer to a task."""
    ask.task.ident = entry.id
    made = TaskSpoken if ask.stream else TaskWhole
    return made(connection, TaskChat(telling, ask.task), ask, entry, keep_alive=keep_alive)


def task_of(answer: Answer) -> Task:
    """The task of an answer that `task_answer` made."""
    assert isinstance(answer.ask, TaskAsk)
    return answer.ask.task
