"""Runs of tasks on a simulated system of several steps, with a defect of the system, of what decides its answers, of what it
wrote of its steps, or of the files of the run.

The product simulates the system, judges its answers and joins its spans; then the defect is planted in the run's folder, and
the product judges and measures that folder again, as `inferometer recover` and `report` do. What decides answers (a judge, a
command) is real: an HTTP server on the loopback interface, a process.

The headlines are those of tasks: the share that succeeded, successes a second, the latencies of all and of successes, and the
first of the answer; beside them what the system says of its steps, which nobody outside can check. Where that is bent, the
report has to say so.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.trial.agents import Silent
from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.judges import SAYS, judging
from benchmarks.trial.records import OF_SYSTEM, Headline, bent
from inferometer.documents.summary import Summary
from inferometer.errors import RecordError
from inferometer.journal import tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.measure.tasks import TaskGroup
from inferometer.metrics.statistics import Stats
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.plan.workload import TasksWorkload
from inferometer.run.evaluate import evaluate
from inferometer.run.simulate import simulate
from inferometer.run.task_judging import judge_tasks
from inferometer.simulation.engine import choose

FAMILY = "tasks"
TASKS, WARM, REQUESTS = 275, 100, 1_100
"""Each task four times: a tenth more requests than P99 asks for."""
WRONG = 5
"""One task in so many has a criterion that no answer of the system meets."""
LIMIT_S = 1.0
"""Ten times what the system takes."""
MS = 1_000_000
Row = dict[str, Any]
Plant = Callable[[RunFolder], None]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is asked of which system, and what goes wrong. `settings`: of the system and its engine; `judge`: how a judge
    behaves that decides the answers (judges.py); `before`, `behind`: what is done to the run's folder before its answers are
    judged once more, and after that; `alone`: the run has a file of tasks of its own."""

    system: str = "agent"
    settings: tuple[str, ...] = ()
    flags: Mapping[str, object] = field(default_factory=dict)
    limit_s: float | None = None
    criterion: Callable[[int], Row] | None = None
    judge: str | None = None
    before: Plant | None = None
    behind: Plant | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the product says of a folder. `summary`: None: it refused it, in these words."""

    summary: Summary | None
    notes: tuple[str, ...]

    @property
    def status(self) -> str:
        """The verdict in a word."""
        return "refused" if self.summary is None else str(self.summary.verdict.status)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The checks that decided."""
        if self.summary is None:
            return ()
        return tuple(dict.fromkeys(reason.code for reason in self.summary.verdict.reasons))


def file_of(situation: Situation, judge_url: str) -> Iterator[Row]:
    """The tasks: sums and questions in turn, one in WRONG of which has a criterion that nothing meets."""
    for at in range(TASKS):
        row: Row = {"task": f"t{at}", "class": "sum" if at % 2 else "search", "output_tokens": 30}
        one, other = 12 + at, 3 + at % 7
        right: Row = {"number": 1 if at % WRONG == 0 else one * other}
        row["input"] = f"What is {one}*{other}?"
        if not at % 2:
            row["input"] = f"Question {at}: explain Little's law."
            right = {"regex": "never said" if at % WRONG == 0 else "Little"}
        if situation.criterion is not None:
            right = situation.criterion(at)
        elif situation.judge is not None:
            right = {"judge": SAYS[situation.judge].asked(judge_url, wrong=at % WRONG == 0), "timeout_s": 2}
        row["criterion"] = right
        if situation.limit_s is not None:
            row["timeout_s"] = situation.limit_s
        yield row


def carried_out(situation: Situation) -> Outcome:
    """The run of a situation, and what the product says of its folder."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        if situation.judge is None and situation.criterion is None and not situation.alone:
            known = _simulated(situation.system, situation.settings, situation.limit_s, *_kept(situation))
            shutil.copytree(known, Path(name) / known.name)
            folder = RunFolder(Path(name) / known.name)
        else:
            url = "" if situation.judge is None else stack.enter_context(judging(SAYS[situation.judge]))
            folder = RunFolder(_made(situation, Path(name), url))
        try:
            return _judged(situation, folder)
        except RecordError as cause:
            return Outcome(None, (str(cause),))


def _judged(situation: Situation, folder: RunFolder) -> Outcome:
    notes: list[str] = []
    if situation.before is not None:
        situation.before(folder)
        folder.tasks.unlink()
        notes += judge_tasks(saved.read(folder.plan), folder, lambda _: None, folder.system_spans)
    if situation.behind is not None:
        situation.behind(folder)
    result = evaluate(folder)
    return Outcome(result.summary, (*notes, *result.notes))


def _kept(situation: Situation) -> tuple[tuple[str, object], ...]:
    return tuple(situation.flags.items())


@functools.lru_cache(maxsize=16)
def _simulated(
    system: str, settings: tuple[str, ...], limit_s: float | None, *flags: tuple[str, object]
) -> Path:
    """The folder of a run in which nothing was planted; it and its file of tasks stay until the end."""
    place = Path(tempfile.mkdtemp(prefix="trial-tasks-", dir=_places().name))
    return _made(Situation(system, settings, dict(flags), limit_s), place, "")


@functools.lru_cache(maxsize=1)
def _places() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _made(situation: Situation, place: Path, judge_url: str) -> Path:
    file = place / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in file_of(situation, judge_url)))
    flags: dict[str, object] = {
        "--tasks": str(file), "--rate": "5", "--requests": str(REQUESTS), "--warmup": str(WARM),
        "--task-commands": True, "--prompts-order": "shuffled", **situation.flags,
    }  # fmt: skip
    engine = choose(None, situation.settings, situation.system)
    return simulate(build(None, flags), engine, place, Silent()).folder


def headlines(summary: Summary) -> dict[str, Headline]:
    """Those of tasks, and of the whole run; none that the run does not have."""
    account = summary.tasks
    assert account is not None, "the runs of this part have tasks"
    every = account.all
    found: dict[str, float | None] = {"share succeeded": every.success, "successes/s": account.succeeded_s}
    found |= {"output tokens/s": summary.throughput.output_tok_s, "requests/s": summary.throughput.request_s}
    for name, stats in _latencies(every).items():
        if stats is not None:
            found |= {f"{name} P50": stats.p50, f"{name} P99": stats.p99}
    if account.traced is not None:
        for kind in account.traced.kinds:
            found[f"{OF_SYSTEM}{kind.kind} steps"] = None if kind.steps is None else kind.steps.mean
            found[f"{OF_SYSTEM}{kind.kind} time"] = None if kind.ms is None else kind.ms.mean
            found[f"{OF_SYSTEM}share of {kind.kind}"] = kind.share
        stats = account.traced.model_output_tokens
        found[f"{OF_SYSTEM}model tokens"] = None if stats is None else stats.mean
    return {name: Headline(value, None) for name, value in found.items() if value is not None}


def _latencies(every: TaskGroup) -> dict[str, Stats | None]:
    return {
        "latency": every.latency_ms,
        "latency of successes": every.success_ms,
        "first answer": every.first_answer_ms,
    }


# Of the record.


def record(change: Callable[[Row, int], Row | None]) -> Plant:
    """Each measured request's row, and its number in order, becomes what `change` makes of it; None: it is dropped."""

    def plant(folder: RunFolder) -> None:
        table = pq.read_table(folder.record)
        rows = sorted(table.to_pylist(), key=lambda row: row["t_submit"])
        number, kept = 0, []
        for row in rows:
            if row["phase"] == Phase.MEASURE:
                made = change(dict(row), number)
                number += 1
                if made is None:
                    continue
                row = made
            kept.append(row)
        pq.write_table(pa.Table.from_pylist(kept, table.schema), folder.record)

    return plant


def thought(row: Row, number: int) -> Row:
    """One answer in three says in its reasoning alone what was asked for."""
    return row if number % 3 else row | {"content": "I do not know."}


def unsaid(row: Row, number: int) -> Row:
    """As it is: one in three says that it does not know."""
    return row if number % 3 else row | {"text": "I do not know."}


def cut_off(row: Row, number: int) -> Row:
    """One answer in three ends behind its number, by the length limit."""
    said: str = row["text"]
    return row if number % 3 else row | {"text": said[: max(said.find("."), 40)], "finish_reason": "length"}


def from_cache(row: Row, number: int) -> Row:
    """From the second pass over the file on, each answer comes at once, and is the first one's text."""
    if number < TASKS:
        return row
    at = row["t_submit"] + 100_000
    return row | {"event_ns": [at] * len(row["event_ns"]), "t_first_byte": at, "t_end": at}


def all_from_cache(row: Row, number: int) -> Row:
    """Every answer does."""
    return from_cache(row, number + TASKS)


def one_word_first(row: Row, number: int) -> Row:
    """A word after a millisecond, all else at the end."""
    early, times = row["t_submit"] + MS, row["event_ns"]
    return row | {"event_ns": [early, early, *[row["t_end"]] * (len(times) - 2)], "t_first_byte": early}


def gone(row: Row, number: int) -> Row | None:
    """One request in ten is on no record."""
    return None if number % 10 == 3 else row


def late(row: Row, number: int) -> Row:
    """One answer in 120 did not end before its time limit."""
    return row | {"outcome": "timeout", "finish_reason": None} if number % 120 == 7 else row


def lasting(row: Row, number: int) -> Row:
    """One complete answer in four ended after its time limit."""
    return row | {"t_end": row["t_submit"] + 2_000 * MS} if number % 4 == 1 else row


def lasting_and_wrong(row: Row, number: int) -> Row:
    """The same, as one that does not meet its criterion."""
    return lasting(row, number) | ({"text": "I do not know."} if number % 4 == 1 else {})


def doubled(folder: RunFolder) -> None:
    """One request in ten is on record twice."""
    table = pq.read_table(folder.record)
    measured = np.flatnonzero(np.asarray(table.column("phase")) == Phase.MEASURE)
    order = np.sort(np.concatenate([np.arange(len(table)), measured[::10]]))
    pq.write_table(table.take(pa.array(order)), folder.record)


# Of what was judged.


def results(change: Callable[[list[Row]], list[Row]]) -> Plant:
    """tasks.arrow holds other rows."""

    def plant(folder: RunFolder) -> None:
        with pa.OSFile(str(folder.tasks)) as source:
            table = pa.ipc.open_file(source).read_all()
        made = pa.Table.from_pylist(change(table.to_pylist()), table.schema)
        with pa.OSFile(str(folder.tasks), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
            writer.write_table(made)

    return plant


def all_passed(rows: list[Row]) -> list[Row]:
    """Each answer that was not complete is said to have passed."""
    return [
        row | {"state": tasks.PASSED} if row["reason"] == "not complete: timeout" else row for row in rows
    ]


def exchanged(rows: list[Row]) -> list[Row]:
    """Neighbours have each other's results."""
    keys = [(row["index"], row["cycle"]) for row in rows]
    moved = [*rows[1:], rows[0]]
    return [row | {"index": index, "cycle": cycle} for row, (index, cycle) in zip(moved, keys, strict=True)]


def without_failures(rows: list[Row]) -> list[Row]:
    """The results of all that failed are missing."""
    return [row for row in rows if row["state"] == tasks.PASSED]


def twice(rows: list[Row]) -> list[Row]:
    """Each result that failed stands there again, as passed."""
    return rows + [row | {"state": tasks.PASSED} for row in rows if row["state"] == tasks.FAILED]


def anothers_results(folder: RunFolder) -> None:
    """tasks.arrow is that of another run of the same tasks."""
    other = _simulated("agent", ("wrong_answer=1",), None)
    shutil.copyfile(RunFolder(other).tasks, folder.tasks)


def other_file(folder: RunFolder) -> None:
    """The file of tasks was written anew, with criteria that everything meets, before the answers were judged."""
    workload = saved.read(folder.plan).workload
    assert isinstance(workload, TasksWorkload), "the runs of this part have tasks"
    path = Path(workload.tasks)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"criterion": {"regex": ""}}) + "\n" for row in rows))


# Of the spans.


def spans(change: Callable[[Row], list[Row]]) -> Plant:
    """Each span in the system's file becomes these."""

    def plant(folder: RunFolder) -> None:
        lines = []
        for line in folder.system_spans.read_text().splitlines():
            document = json.loads(line)
            for resource in document["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    scope["spans"] = [made for span in scope["spans"] for made in change(span)]
            lines.append(json.dumps(document) + "\n")
        folder.system_spans.write_text("".join(lines))

    return plant


def of_another_run(span: Row) -> list[Row]:
    """Its traces are others."""
    return [span | {"traceId": span["traceId"][::-1]}]


def _model_call(span: Row) -> bool:
    return bool(span["name"].startswith("chat"))


def forged(span: Row) -> list[Row]:
    """Beside each model call stand two that somebody else wrote with its trace id."""
    if not _model_call(span):
        return [span]
    return [span, *(span | {"spanId": f"{at}{span['spanId'][1:]}", "parentSpanId": "f" * 16} for at in "ab")]


def outlasting(span: Row) -> list[Row]:
    """Model calls end a second after the answer."""
    later = str(int(span["endTimeUnixNano"]) + 1_000 * MS)
    return [span | {"endTimeUnixNano": later}] if _model_call(span) else [span]


def repeated(span: Row) -> list[Row]:
    """Each is there twice."""
    return [span, span]


def absurd(span: Row) -> list[Row]:
    """A model call has a thousand million tokens."""
    if not _model_call(span):
        return [span]
    attributes = [
        one | {"value": {"intValue": "1000000000"}} if one["key"].startswith("gen_ai.usage") else one
        for one in span["attributes"]
    ]
    return [span | {"attributes": attributes}]


def usage(factor: float) -> Plant:
    """The system's usage is so many times what it was."""
    names = ("usage_input", "usage_output")
    return record(lambda row, _: row | {name: round(factor * row[name]) for name in names})


def clean() -> Iterator[tuple[str, Callable[[], tuple[str, tuple[str, ...]]]]]:
    """Names and verdicts of runs in which nothing is wrong."""
    situations = {
        "agent": Situation(),
        "rag": Situation("rag"),
        "agent, time limits": Situation(limit_s=1.0),
        "agent, closed loop": Situation(flags={"--rate": None, "--concurrency": "4"}),
        "agent, a judge": Situation(judge="as it should"),
    }
    for name, situation in situations.items():
        yield f"{FAMILY}, {name}", partial(_said, situation)


def _said(situation: Situation) -> tuple[str, tuple[str, ...]]:
    said = carried_out(situation)
    return said.status, said.reasons


def hanging(at: int) -> Row:
    """A command that never ends."""
    return {"command": ["/bin/sleep", "600"], "timeout_s": 0.2}


def _planted() -> Iterator[tuple[str, tuple[str, ...], Situation, Situation]]:
    """Name, the checks whose matter it is, what is wrong, and the truth."""
    true = Situation()
    yield "one answer in three is right in its reasoning alone", (), Situation(
        before=record(thought)
    ), Situation(before=record(unsaid))  # fmt: skip
    yield "one answer in three is cut off by the length limit, and right", (), Situation(
        before=record(cut_off)
    ), true  # fmt: skip
    judged = Situation(judge="as it should")
    for says, one in SAYS.items():
        if says != "as it should":
            yield f"a judge that {says}", one.expects, Situation(judge=says), judged
    yield "a command that hangs", ("task_results",), Situation(criterion=hanging), true
    yield "judged by another file of tasks", ("task_results",), Situation(before=other_file, alone=True), true
    for name, plant, checks in (
        ("results of another run of the same tasks", anothers_results, ()),
        ("results of neighbours exchanged", results(exchanged), ()),
        ("results that failed stand there again as passed", results(twice), ()),
        ("results that failed are missing", results(without_failures), ("task_results",)),
    ):
        yield name, checks, Situation(behind=plant), true
    yield "time-outs that are said to have passed", (), Situation(
        before=record(late), behind=results(all_passed)
    ), Situation(before=record(late))  # fmt: skip
    yield "answers that were complete, but after the time limit", (), Situation(
        limit_s=LIMIT_S, before=record(lasting)
    ), Situation(limit_s=LIMIT_S, before=record(lasting_and_wrong))  # fmt: skip
    for name, change in (
        ("spans of another run", of_another_run),
        ("spans of others with the trace ids of this run", forged),
        ("spans that outlast their requests", outlasting),
        ("spans that are there twice", repeated),
        ("spans with absurd tokens", absurd),
    ):
        yield name, (), Situation(before=spans(change)), true
    yield "usage of the system ten times what it was", (), Situation(behind=usage(10.0)), true
    yield "usage of the system a tenth of what it was", (), Situation(behind=usage(0.1)), true
    yield (
        "answers from a cache from the second pass on",
        ("drift",),
        Situation(behind=record(from_cache)),
        true,
    )
    yield "every answer from a cache", ("streamed",), Situation(behind=record(all_from_cache)), true
    yield "one word at once, and the rest at the end", ("tokens_per_event",), Situation(
        behind=record(one_word_first)
    ), true  # fmt: skip
    yield "one task in ten is dropped", ("load_exact",), Situation(behind=record(gone)), true
    yield "one task in ten is sent twice", ("load_exact",), Situation(behind=doubled), true


QUICK = ("results that failed are missing", "one task in ten is dropped")


def defects() -> Iterator[Defect]:
    """All of this file."""

    def defect(name: str, checks: tuple[str, ...], wrong: Situation, true: Situation) -> Defect:
        def carry_out() -> Case:
            said = carried_out(wrong)
            told = {} if said.summary is None else headlines(said.summary)
            return Case(said.status, said.reasons, lambda: bent(told, _truth(true)), said.notes)

        return Defect(name, FAMILY, checks, carry_out, name in QUICK)

    for planted in _planted():
        yield defect(*planted)


def _truth(situation: Situation) -> Mapping[str, Headline]:
    said = carried_out(situation).summary
    assert said is not None, "a run in which nothing is wrong is read"
    return headlines(said)
