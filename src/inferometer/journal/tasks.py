"""`tasks.arrow`: of a run of tasks, how each answer was judged, and what the system recorded of its steps; one row a request of
the measured phase. Written once, after the load; reports are made from it without the task file, a judge or a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa

from inferometer.errors import RecordError
from inferometer.journal.schema import of_run
from inferometer.journal.versions import read_whole
from inferometer.whole_file import replacing

FILE = "tasks.arrow"
PASSED, FAILED, UNJUDGED = "passed", "failed", "unjudged"
STATES = (PASSED, FAILED, UNJUDGED)
STEP_KINDS = ("model", "tool", "retrieval", "rerank", "guardrail")
"""What a step of a compound system does."""
KINDS: Mapping[str, str] = {
    "chat": "model", "text_completion": "model", "generate_content": "model", "execute_tool": "tool",
    "retrieval": "retrieval", "embeddings": "retrieval", "rerank": "rerank", "guardrail": "guardrail",
    "apply_guardrail": "guardrail", "llm": "model", "tool": "tool", "retriever": "retrieval", "embedding": "retrieval",
    "reranker": "rerank",
}  # fmt: skip
"""What a step does, by the words of OpenTelemetry and OpenInference; the usage of a system has the same."""
SPANS, USAGE = "spans", "usage"
"""Where what is known of a request's steps is from."""

TASKS = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),  # the schedule's row
        pa.field("cycle", pa.int32(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("criterion", pa.string()),  # its kind; null: to be complete is enough
        pa.field(
            "state", pa.string(), nullable=False
        ),  # of the criterion; of an answer that is not complete: failed
        pa.field("reason", pa.string()),  # why it is unjudged, or what failed
        pa.field("timeout_ns", pa.int64()),
        pa.field("steps_from", pa.string()),  # spans or usage, which tells less; null: neither tells of steps
        pa.field("spans", pa.int32()),  # of its trace; null: no trace was found, or none was looked for
        *(pa.field(f"{kind}_steps", pa.int32()) for kind in STEP_KINDS),
        *(pa.field(f"{kind}_ns", pa.int64()) for kind in STEP_KINDS),  # time in which one at least ran
        *(
            pa.field(f"{kind}_end_ns", pa.int64()) for kind in STEP_KINDS
        ),  # from the trace's begin to the last one's end
        pa.field("model_input_tokens", pa.int64()),  # of all its model steps, where each reports them
        pa.field("model_output_tokens", pa.int64()),
        pa.field("failed_steps", pa.int32()),  # whose spans state an error
        pa.field("resends", pa.int32()),  # requests inside the system that were sent once more
    ],
    metadata={"inferometer": "tasks/4"},
)
_VERSION_3 = pa.schema(
    [one for one in TASKS if not one.name.endswith("_end_ns")], metadata={"inferometer": "tasks/3"}
)


@dataclass(frozen=True, slots=True)
class TaskSteps:
    """What one trace holds: the number of its spans; by kind the number of steps, the time in which one at least ran, and that
    from the beginning of the first span of all to the end of the last step of the kind; tokens of the model steps (None: not
    all report them); steps that failed, and requests inside that were sent once more.

    Of steps that usage lists, `spans`, `failed_steps` and `resends` are None, `ns` and `end_ns` are empty: it does not tell.
    """

    spans: int | None
    steps: dict[str, int] = field(default_factory=dict)
    ns: dict[str, int] = field(default_factory=dict)
    input_tokens: int | None = None
    output_tokens: int | None = None
    failed_steps: int | None = 0
    resends: int | None = 0
    end_ns: dict[str, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """SPANS or USAGE."""
        return USAGE if self.spans is None else SPANS


def of_usage(listed: str) -> TaskSteps:
    """The steps that the usage of an answer lists, as the record has them. Raises RecordError."""
    try:
        steps = msgspec.json.decode(listed, type=list[tuple[str | None, int | None, int | None]])
    except msgspec.MsgspecError as cause:
        raise RecordError(f"usage_steps: damaged ({cause})") from cause
    counted = {kind: sum(one[0] == kind for one in steps) for kind in STEP_KINDS}
    model = [one for one in steps if one[0] == "model"]
    tokens = _sum([one[1] for one in model]), _sum([one[2] for one in model])
    return TaskSteps(None, counted, {}, *tokens, None, None)


def _sum(values: Sequence[int | None]) -> int | None:
    """None where one is not known, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


TOLERANCE_NS = 1_000_000
"""What clocks of two machines may differ by within a request, and what a system ends behind its last byte."""


def exceeds(step_ns: float, lasted_ns: float) -> bool:
    """Whether steps ran, or were not over, for longer than the whole request lasted: they are no part of its latency."""
    return step_ns > lasted_ns + TOLERANCE_NS


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One request's task and how its answer was judged."""

    index: int
    cycle: int
    task: str
    criterion: str | None
    state: str
    reason: str | None = None
    timeout_ns: int | None = None
    steps: TaskSteps | None = None


def write(path: Path, rows: Sequence[TaskRow], run: str) -> None:
    """Write all rows of the run with this id, so that a reader sees the old file or the new one."""
    columns: dict[str, list[object]] = {
        name: [getattr(row, name) for row in rows]
        for name in TASKS.names[: TASKS.get_field_index("steps_from")]
    }
    steps = [row.steps for row in rows]
    columns["steps_from"] = [None if one is None else one.source for one in steps]
    columns["spans"] = [None if one is None else one.spans for one in steps]
    for kind in STEP_KINDS:
        columns[f"{kind}_steps"] = [None if one is None else one.steps.get(kind, 0) for one in steps]
        columns[f"{kind}_ns"] = [
            None if one is None or one.spans is None else one.ns.get(kind, 0) for one in steps
        ]
        columns[f"{kind}_end_ns"] = [
            None if one is None or one.spans is None else one.end_ns.get(kind, 0) for one in steps
        ]
    columns["model_input_tokens"] = [None if one is None else one.input_tokens for one in steps]
    columns["model_output_tokens"] = [None if one is None else one.output_tokens for one in steps]
    columns["failed_steps"] = [None if one is None else one.failed_steps for one in steps]
    columns["resends"] = [None if one is None else one.resends for one in steps]
    table = pa.table(
        {name: pa.array(columns[name], TASKS.field(name).type) for name in TASKS.names}, schema=TASKS
    )
    schema = of_run(TASKS, run)
    with replacing(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(table.cast(schema))


def steps_in(table: pa.Table) -> dict[tuple[int, int], TaskSteps]:
    """By row and cycle, what spans told of each request of which there were any."""
    return {
        (row["index"], row["cycle"]): TaskSteps(
            row["spans"],
            {kind: row[f"{kind}_steps"] for kind in STEP_KINDS},
            {kind: row[f"{kind}_ns"] for kind in STEP_KINDS},
            row["model_input_tokens"],
            row["model_output_tokens"],
            row["failed_steps"],
            row["resends"],
            {kind: row[f"{kind}_end_ns"] for kind in STEP_KINDS},
        )
        for row in table.to_pylist()
        if row["steps_from"] == SPANS
    }


def read(path: Path, run: str | None = None) -> pa.Table:
    """All rows. `run`: the id of the run that they should be of. Raises RecordError for what is no such file, of another
    version or run, or has two results of one request."""
    table = read_whole(path, TASKS, "the judged tasks of a run", run, [_VERSION_3])
    unknown = set(table.column("state").to_pylist()) - set(STATES)
    if unknown or set(table.column("steps_from").to_pylist()) - {None, SPANS, USAGE}:
        raise RecordError(f"{path.name}: damaged (states or sources that no version has)")
    if table.group_by(["index", "cycle"]).aggregate([]).num_rows < len(table):
        raise RecordError(f"{path.name}: damaged (it has two results of one request)")
    return table
