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

from inferometer.documents.run_facts import RunFacts
from inferometer.drive.trace_context import TraceContext
from inferometer.errors import PlanError, Problem
from inferometer.journal import tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.redact import encodable
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Outcome, Phase
from inferometer.journal.seal import record_parts
from inferometer.journal.tasks import FAILED, PASSED, UNJUDGED, TaskSteps, exceeds, of_usage
from inferometer.plan import saved
from inferometer.plan.schema import Plan
from inferometer.plan.task_rules import place_to_listen
from inferometer.plan.workload import TasksWorkload
from inferometer.run.criterion_process import Decision
from inferometer.run.facts import read_facts
from inferometer.run.task_criteria import Criteria
from inferometer.telemetry import task_spans
from inferometer.units import seconds_to_ns
from inferometer.workload import prompt_file_requests
from inferometer.workload.prompt_file import PromptFile
from inferometer.workload.sources import rows_of
from inferometer.workload.task_file import TaskRow

_COLUMNS = ["index", "cycle", "phase", "outcome", "text", "content", "t_submit", "t_end", "usage_steps"]
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
    path = workload.spans if spans is None else spans
    steps, notes = ({}, []) if path is None else judging.joined(path, note)
    return notes + judging.judged(steps, note)


def judge_again(
    folder: RunFolder, tasks_file: str, spans: str | None, note: Callable[[str], None], *, commands: bool
) -> Callable[[], list[str]]:
    """What judges the answers of a run that ended before all of them were, by the files of tasks and spans that the user names:
    the folder may be a stranger's, and what it names is not opened. Called once the run is sealed; notes as of `judge_tasks`.

    Without `spans`, those in the folder are joined, or what was joined before is kept. Raises PlanError for a file that is not
    the run's, and one that names commands or judges without `commands`; RecordError.
    """
    plan, facts = saved.read(folder.plan), read_facts(folder)
    workload = plan.workload
    if not isinstance(workload, TasksWorkload):
        raise PlanError([Problem("--tasks", "this run has no tasks")])
    if _answers_are_filler(facts):
        raise PlanError(
            [Problem("--tasks", "the answers of a simulated engine are filler, and are not judged")]
        )
    named = workload.model_copy(update={"tasks": tasks_file, "task_commands": commands})
    file = rows_of(plan, named)
    if workload.prompts_sha256 not in (None, file.sha256):
        words = f"is not the run's file of tasks: its SHA-256 is {file.sha256}, not {workload.prompts_sha256}"
        raise PlanError([Problem(f"--tasks {file.name}", words)])

    def judge() -> list[str]:
        judging = _Judging(named, file, folder)
        path = folder.system_spans if spans is None else Path(spans)
        if spans is not None or path.is_file():
            steps, notes = judging.joined(path, note)
        else:
            kept = tasks.read(folder.tasks, facts.id) if folder.tasks.is_file() else None
            steps, notes = {} if kept is None else tasks.steps_in(kept), []
        return notes + judging.judged(steps, note)

    return judge


def _answers_are_filler(facts: RunFacts) -> bool:
    return facts.simulated and (facts.engine is None or facts.engine.system is None)


def not_judged(plan: Plan, folder: RunFolder) -> list[str]:
    """What to say of a run whose answers were never judged, though it has tasks."""
    if not isinstance(plan.workload, TasksWorkload) or folder.tasks.is_file():
        return []
    if _answers_are_filler(read_facts(folder)):
        return []
    more = " --task-commands" if plan.workload.task_commands else ""
    spans = plan.workload.spans
    more += "" if spans is None or place_to_listen(spans) is not None else " --spans FILE"
    return [
        "the answers to the tasks are not judged, since a folder's words open no file: "
        f"`inferometer recover {folder.path} --tasks FILE{more}` judges them"
    ]


@dataclass(frozen=True, slots=True)
class _Answer:
    """One request of the measured phase that has ended. `text`: what a user sees of the answer, without reasoning and tool
    calls; None: the record holds none. `steps`: those that its usage lists, as the record has them."""

    index: int
    cycle: int
    outcome: str
    text: str | None
    lasted_ns: int
    steps: str | None


class _Judging:
    """The answers of one run, and the tasks that they answer."""

    def __init__(self, workload: TasksWorkload, file: PromptFile, folder: RunFolder) -> None:
        self._file, self._folder = file, folder
        self._run = read_facts(folder).id
        phases = Schedule(folder.schedule).table.column("phase")
        measured = pc.indices_nonzero(pc.equal(phases, int(Phase.MEASURE))).to_pylist()
        numbers = islice(prompt_file_requests.numbers(workload, len(file)), len(measured))
        self._task_of = dict(zip(measured, numbers, strict=True))

    def judged(self, steps: Mapping[tuple[int, int], TaskSteps], note: Callable[[str], None]) -> list[str]:
        """Judge all answers and write tasks.arrow; notes on what was not judged."""
        note("judging the answers to the tasks")
        rows, interrupted = self._rows(steps)
        tasks.write(self._folder.tasks, rows, self._run)
        notes = ["judging was interrupted: the answers behind it are not judged"] if interrupted else []
        if unjudged := [row for row in rows if row.state == UNJUDGED]:
            notes.append(
                f"{len(unjudged)} of {len(rows)} answers are not judged; the first: {unjudged[0].reason}"
            )
        return notes

    def joined(
        self, path: str | Path, note: Callable[[str], None]
    ) -> tuple[Mapping[tuple[int, int], TaskSteps], list[str]]:
        """What the system recorded of each request in this file; notes on what is wrong with that."""
        note("reading the system's spans")
        context = TraceContext(self._run)
        wanted: dict[str, tuple[int, int]] = {}
        lasted_ns: dict[str, int] = {}
        caller: dict[str, str] = {}
        for one in self._answers():
            trace = context.trace_id(one.index, one.cycle)
            wanted[trace], lasted_ns[trace] = (one.index, one.cycle), one.lasted_ns
            caller[trace] = context.span_id(one.index, one.cycle)
        try:
            found = task_spans.join(Path(path).expanduser(), wanted)
        except PlanError as cause:
            return {}, [f"the system's spans are left out: {cause}"]
        notes = []
        if found.spans >= task_spans.MOST_SPANS and Path(path) == self._folder.system_spans:
            notes.append(
                f"{found.spans:,} spans came, and no more are taken: those of later requests may be missing, and steps be "
                "counted too low (other traffic of the system counts too)"
            )
        if len(found.traces) < len(wanted):
            notes.append(
                f"{found.spans:,} spans read: {len(wanted) - len(found.traces):,} of {len(wanted):,} requests have none "
                "(the system has to take over the traceparent header, and to have written its spans by now)"
            )
        others = sum(callers != {caller[trace]} for trace, callers in found.callers.items())
        if others:
            notes.append(
                f"{others:,} of {len(found.traces):,} requests have spans that come neither from the request nor from another "
                "span that is there: some of their spans are missing, or others than the system wrote some"
            )
        longer = sum(
            exceeds(max(steps.end_ns.values()), lasted_ns[trace]) for trace, steps in found.traces.items()
        )
        if longer:
            notes.append(
                f"{longer:,} of {len(found.traces):,} requests ended before steps that the spans give them: the clock is "
                "wrong, or they ran behind the answer; no shares of the latency are given of such steps"
            )
        return {wanted[trace]: steps for trace, steps in found.traces.items()}, notes

    def _rows(self, steps: Mapping[tuple[int, int], TaskSteps]) -> tuple[list[tasks.TaskRow], bool]:
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
                        _steps(steps, answer),
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
                seen = one["text"] if one["content"] is None else one["content"]
                begun = one["t_end"] if one["t_submit"] is None else one["t_submit"]
                yield _Answer(
                    one["index"], one["cycle"], one["outcome"], seen, one["t_end"] - begun, one["usage_steps"]
                )


def _steps(traced: Mapping[tuple[int, int], TaskSteps], answer: _Answer) -> TaskSteps | None:
    """What the system's spans tell of a request, else what its usage does."""
    if (found := traced.get((answer.index, answer.cycle))) is not None:
        return found
    return None if answer.steps is None else of_usage(answer.steps)


def _decided(criteria: Criteria, row: TaskRow, answer: _Answer) -> Decision:
    if answer.outcome != Outcome.OK:
        return Decision(False, f"not complete: {answer.outcome}")
    if row.criterion is None:
        return Decision(True)
    if answer.text is None:
        return Decision(None, "the record holds no text")
    return criteria.decide(row.criterion, row.task, row.input, answer.text)
