"""Recorded sessions of agents as a workload: the steps of each session are its requests (workload/agent_sessions/)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from inferometer.plan.lengths import Distribution, Length
from inferometer.plan.part import HARMLESS, Option, Sha256
from inferometer.plan.workload_kind import KIND, UNNAMED, OneClass, PrefixSharing, Recorded, Text

SessionFormat = Literal["auto", "inferometer", "mlperf", "aiperf", "weka", "otel"]


def _recorded(value: Any) -> Any:
    """`recorded` says that nothing stands in place of what was recorded."""
    return None if isinstance(value, str) and value.strip() == "recorded" else value


Delays = Annotated[Length | None, BeforeValidator(_recorded)]
"""Lengths of time in ms, in the notation of lengths; None: as recorded."""


class SessionsWorkload(Recorded, OneClass):
    """A file of recorded sessions, taken in this `order`, each of which is sent as steps that wait for each other.

    `replies`: what later steps repeat. With the server's, the text of its answer stands in place of the recorded one, and
    recorded tool calls remain, because recorded results answer them. A step without a recorded reply repeats the server's.
    `tool_ms` stands before steps that add results of tools, `think_ms` before the others that wait for a step; None: both as
    recorded. `output_tokens` are for steps that record none. `sessions_sha256` is the file's: filled in when a run begins, and
    demanded from then on.
    """

    chosen_by: ClassVar[str] = "workload.sessions"
    noun: ClassVar[str] = "a file of sessions"
    decides: ClassVar[str] = "the file of sessions determines what is sent ({workload.sessions})"
    turns: ClassVar[Distribution | None] = None
    file: ClassVar[None] = None
    file_sha256: ClassVar[None] = None

    kind: Annotated[Literal["sessions"], KIND, HARMLESS] = "sessions"
    name: Annotated[Literal["custom"], UNNAMED, HARMLESS] = "custom"
    sessions: Annotated[
        Text,
        Field(
            examples=["sessions.jsonl"],
            description="File of recorded agent sessions, whose steps are sent as requests.",
        ),
        Option(
            "--sessions", "Workload", "FILE", drops=("workload.sessions_format", "workload.sessions_sha256")
        ),
    ]
    sessions_format: Annotated[
        SessionFormat,
        Field(
            description="auto (recognised by the file's beginning), inferometer, mlperf, aiperf, weka or otel."
        ),
        Option("--sessions-format", "Workload", "FORMAT"),
        HARMLESS,
    ] = "auto"
    sessions_sha256: Annotated[
        Sha256 | None, Field(description="The file's SHA-256; filled in when a run begins.")
    ] = None
    order: Annotated[
        Literal["file", "shuffled", "sampled"],
        Field(description="Order of the sessions: file, shuffled, or sampled (with replacement)."),
        HARMLESS,
    ] = "file"
    replies: Annotated[
        Literal["server", "recorded"],
        Field(description="What later steps repeat as answers: recorded ones, or the server's own."),
        HARMLESS,
    ] = "recorded"
    tool_ms: Annotated[
        Delays,
        Field(
            description="Time of tools before each step that adds their results, in ms, in the notation of lengths."
        ),
        Option("--tool-ms", "Workload", "MS", default="as recorded"),
        HARMLESS,
    ] = None
    think_ms: Annotated[
        Delays,
        Field(
            description="Time before each other step that waits for an answer, in ms, in the notation of lengths."
        ),
        HARMLESS,
    ] = None
    output_tokens: Annotated[
        Length | None, Field(description="Answer lengths of steps without one."), HARMLESS
    ] = None
    prompt_format: Annotated[
        Literal["auto", "text"],
        Field(description="auto or text: a file holds no token ids."),
        HARMLESS,
    ] = "auto"
    prefix_sharing: PrefixSharing = None
