"""After the load of a run of tasks: each answer is held to its criterion, and the system's spans are joined to the requests.

    record (texts) + task file -> criteria -> tasks.arrow <- spans by trace id

Nothing here is measured, and nothing runs while anything is. Whatever goes wrong leaves answers unjudged, with a note; it never
costs the measurement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from inferometer.drive.trace_context import TraceContext
from inferometer.errors import PlanError
from inferometer.journal import tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import encodable
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Outcome, Phase
from inferometer.journal.seal import record_parts
from inferometer.journal.tasks import FAILED, PASSED, UNJUDGED, TaskSteps
from inferometer.plan.schema import Plan
from inferometer.plan.workload import TasksWorkload
from inferometer.run.criterion_process import Decision
from inferometer.run.task_criteria import Criteria
from inferometer.telemetry import task_spans
from inferometer.units import seconds_to_ns
from inferometer.workload import prompt_file_requests
from inferometer.workload.prompt_file import PromptFile
from inferometer.workload.sources import rows_of
from inferometer.workload.task_file import TaskRow

_COLUMNS = ["index", "cycle", "phase", "outcome", "text"]
LONGEST_REASON = 200


def judge_tasks(
    plan: Plan, folder: RunFolder, note: Callable[[str], None], spans: Path | None = None
) -> list[str]:
    """Judge a sealed run's answers and write tasks.arrow; notes on what was not judged. `spans`: where the system's spans are,
    if not where the plan says. Raises RecordError."""
    workload = plan.workload
    if not isinstance(workload, TasksWorkload):
        return []
    try:
        file = rows_of(plan, workload)
    except PlanError as cause:
        return [f"the answers are not judged: {cause}"]
    if workload.prompts_sha256 not in (None, file.sha256):
        return [f"the answers are not judged: {file.name} has changed since the run began"]
    judging = _Judging(workload, file, folder)
    steps, notes = judging.joined(workload.spans if spans is None else spans, note)
    note("judging the answers to the tasks")
    rows, interrupted = judging.rows(steps)
    tasks.write(folder.tasks, rows)
    unjudged = sum(row.state == UNJUDGED for row in rows)
    if interrupted:
        notes.append("judging was interrupted: the answers behind it are not judged")
    if unjudged:
        first = next(row.reason for row in rows if row.state == UNJUDGED)
        notes.append(f"{unjudged} of {len(rows)} answers are not judged; the first: {first}")
    return notes


@dataclass(frozen=True, slots=True)
class _Answer:
    """One request of the measured phase that has ended."""

    index: int
    cycle: int
    outcome: str
    text: str | None


class _Judging:
    """The answers of one run, and the tasks that they answer."""

    def __init__(self, workload: TasksWorkload, file: PromptFile, folder: RunFolder) -> None:
        self._file, self._folder = file, folder
        phases = Schedule(folder.schedule).table.column("phase")
        measured = pc.indices_nonzero(pc.equal(phases, int(Phase.MEASURE))).to_pylist()
        numbers = islice(prompt_file_requests.numbers(workload, len(file)), len(measured))
        self._task_of = dict(zip(measured, numbers, strict=True))

    def joined(
        self, path: str | Path | None, note: Callable[[str], None]
    ) -> tuple[Mapping[tuple[int, int], TaskSteps], list[str]]:
        """What the system recorded of each request in this file; notes on what is wrong with that."""
        if path is None:
            return {}, []
        note("reading the system's spans")
        context = TraceContext(self._folder.path.name)
        wanted = {context.trace_id(one.index, one.cycle): (one.index, one.cycle) for one in self._answers()}
        try:
            found = task_spans.join(Path(path).expanduser(), wanted)
        except PlanError as cause:
            return {}, [f"the system's spans are left out: {cause}"]
        notes = []
        if len(found.traces) < len(wanted):
            notes.append(
                f"{found.spans:,} spans read: {len(wanted) - len(found.traces):,} of {len(wanted):,} requests have none "
                "(the system has to take over the traceparent header, and to have written its spans by now)"
            )
        return {wanted[trace]: steps for trace, steps in found.traces.items()}, notes

    def rows(self, steps: Mapping[tuple[int, int], TaskSteps]) -> tuple[list[tasks.TaskRow], bool]:
        """Every request of the measured phase with its task; whether Ctrl-C ended the judging."""
        found: list[tasks.TaskRow] = []
        interrupted = False
        with Criteria() as criteria:
            for answer, row in self._pairs():
                decision = Decision(None, "judging was interrupted")
                if not interrupted:
                    try:
                        decision = _decided(criteria, row, answer)
                    except KeyboardInterrupt:
                        interrupted = True
                state = {True: PASSED, False: FAILED, None: UNJUDGED}[decision.passed]
                found.append(
                    tasks.TaskRow(
                        answer.index,
                        answer.cycle,
                        row.task,
                        None if row.criterion is None else row.criterion.kind,
                        state,
                        None if decision.why is None else encodable(decision.why)[:LONGEST_REASON],
                        None if row.timeout_s is None else seconds_to_ns(row.timeout_s),
                        steps.get((answer.index, answer.cycle)),
                    )
                )
        return found, interrupted

    def _pairs(self) -> Iterator[tuple[_Answer, TaskRow]]:
        """Answers with their tasks, one after the other: all texts at once might not fit into memory."""
        read = deque[_Answer]()

        def numbers() -> Iterator[int]:
            for answer in self._answers():
                read.append(answer)
                yield self._task_of[answer.index]

        for row in self._file.rows(numbers()):
            assert isinstance(row, TaskRow), "the file is one of tasks"
            yield read.popleft(), row

    def _answers(self) -> Iterator[_Answer]:
        for part in record_parts(self._folder.record, _COLUMNS):
            assert isinstance(part, pa.Table), "a record comes in tables"
            measured = part.filter(pc.equal(part.column("phase"), int(Phase.MEASURE)))
            for one in measured.to_pylist():
                yield _Answer(one["index"], one["cycle"], one["outcome"], one["text"])


def _decided(criteria: Criteria, row: TaskRow, answer: _Answer) -> Decision:
    if answer.outcome != Outcome.OK:
        return Decision(False, f"not complete: {answer.outcome}")
    if row.criterion is None:
        return Decision(True)
    if answer.text is None:
        return Decision(None, "the record holds no text")
    return criteria.decide(row.criterion, row.task, row.input, answer.text)
