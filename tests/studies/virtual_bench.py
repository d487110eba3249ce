"""A benchmark in virtual time: engines with planted truths, a planted machine, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from procedures.driving import Silent

from inferometer.documents.bench import EngineResult, Remark
from inferometer.drive.progress_counters import Progress
from inferometer.engines.adapters.adapter import EngineFacts, ServedModel
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table, write_table
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.bench import Benched, Question, carry_out
from inferometer.studies.bench_engine import Anew, EngineProcesses, LiveEngine, OneToken, Prepared
from inferometer.studies.engine_tokens import TokenCounter
from inferometer.workload.bench_prompts import BenchPrompt

PROMPTS = (BenchPrompt("code", "Write a loop.", 40), BenchPrompt("long", "Write a book.", 60))
QUESTION = Question(PROMPTS)
ENGINE = Settings(step_base_ns=5e6, prefill_base_ns=20e6, jitter=0)
Change = Callable[[dict[str, Any], int], None]
"""Changes a row of the record, whose run is given, from 1."""


@dataclass
class Level:
    """A reading."""

    level: str | None = None
    speed_limit_percent: float | None = 100.0


@dataclass
class PlantedMachine:
    """A machine whose memory pressure follows a list, and stays at its last entry."""

    pressures: list[str | None] = field(default_factory=lambda: ["normal"])
    limit: float | None = 100.0

    def memory_pressure(self) -> Level:
        """As of the real one."""
        return Level(self.pressures.pop(0) if len(self.pressures) > 1 else self.pressures[0])

    def thermal(self) -> Level:
        """As of the real one."""
        return Level("nominal", self.limit)

    def chip(self) -> str | None:
        """As of the real one."""
        return "Planted M1"

    def os_version(self) -> str | None:
        """As of the real one."""
        return "PlantedOS 1"


@dataclass
class VirtualClock:
    """Time that passes by sleeping only."""

    at_ns: int = 0

    def now_ns(self) -> int:
        """As of the real one."""
        return self.at_ns

    def sleep(self, seconds: float) -> None:
        """As of the real one."""
        self.at_ns += round(seconds * 1e9)


@dataclass
class VirtualEngine:
    """An engine's model in virtual time. `change` plants a truth in its record; `fails`: what a step raises, by its name."""

    label: str
    settings: Settings = ENGINE
    change: Change | None = None
    fails: dict[str, BaseException] = field(default_factory=dict)
    context: int | None = None
    refuses_unload: bool = False
    steps: list[str] = field(default_factory=list)
    one_token_ms: float | None = 6.0
    url: str | None = None
    model: str | None = None

    @property
    def name(self) -> str:
        """As of the real one."""
        return self.label

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self.fails:
            raise self.fails[name]

    def counting(self, model: str | None = None) -> AbstractContextManager[TokenCounter | None]:
        """As of one without."""
        del model
        return nullcontext()

    def prepare(self) -> Prepared:
        """As of the real one."""
        self._step("prepare")
        return Prepared("tiny", self.context, ())

    def measure(
        self, prepared: Prepared, prompts: tuple[BenchPrompt, ...], runs: int, out: Path, ui: Ui
    ) -> RunResult:
        """As of the real one."""
        self._step("measure")
        ui.watch(Phase.MEASURE, Progress(0, 0, 0, 0, 0), None)
        plans = LiveEngine(self.label, self.label, "http://127.0.0.1:1")
        plan = plans.planned(prepared.model, prompts, runs, out.parent)
        result = simulate(plan, Chosen("tiny-cpu", self.settings), out, ui)
        if self.change is not None:
            planted(result.folder, self.change, len(prompts))
        return result

    def one_token(self, prepared: Prepared, prompt: BenchPrompt) -> OneToken | None:  # noqa: ARG002
        """As of the real one."""
        self._step("one_token")
        if self.one_token_ms is None:
            return None
        anew = Anew(40, self.one_token_ms + 39 * self.settings.step_base_ns / 1e6)
        return OneToken(prompt.name, self.one_token_ms, anew)

    def facts(self, model: str) -> EngineFacts | None:
        """As of the real one."""
        self._step("facts")
        served = ServedModel(model, "gguf", "Q4_K_M", memory_bytes=1 << 30)
        return EngineFacts(self.label, "1.2", "llama.cpp", (served,))

    def process(self) -> EngineProcesses | None:
        """As of the real one."""
        return EngineProcesses(None, 2 << 30)

    def unload(self, model: str) -> Remark | None:
        """As of the real one."""
        self._step("unload")
        return Remark("unload_refused", {"model": model, "why": "busy"}) if self.refuses_unload else None


def planted(folder: Path, change: Change, prompts: int) -> None:
    """Change the sealed record of a run."""
    path = RunFolder.open(folder).record
    table = read_table(path, RECORD)
    rows = table.to_pylist()
    for row in rows:
        change(row, row["index"] // prompts + 1)
    write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def slower_by(share: float) -> Change:
    """Each run's generation lasts so much longer that its speed is lower by `share` than in the run before."""

    def change(row: dict[str, Any], run: int) -> None:
        first = row["event_ns"][row["first_text"]]
        row["t_end"] = first + round((row["t_end"] - first) / (1 - share) ** (run - 1))

    return change


def times_itself(decode: float = 1.0) -> Change:
    """An engine that reports its durations, as long as the client saw them but for `decode`, by this factor."""

    def change(row: dict[str, Any], run: int) -> None:
        first = row["event_ns"][row["first_text"]]
        span = round((row["t_end"] - first) * decode)
        row |= {"server_prefill_ns": first - row["t_submit"], "server_decode_ns": span}
        row["server_total_ns"] = row["server_prefill_ns"] + span

    return change


def says_something_first(row: dict[str, Any], run: int) -> None:
    """The first text is sent a third of a second before the answer begins."""
    first = row["first_text"]
    late = [at + 333_000_000 for at in row["event_ns"][first + 1 :]]
    row |= {"event_ns": [*row["event_ns"][: first + 1], *late], "t_end": row["t_end"] + 333_000_000}


def held_back(row: dict[str, Any], run: int) -> None:
    """The answer is kept until it is whole, and then sent on at three times the speed."""
    begun, end = row["event_ns"][row["first_text"]], row["t_end"]
    later = [end + (at - begun) // 3 for at in row["event_ns"]]
    row |= {"event_ns": later, "t_end": end + (end - begun) // 3}


def ends_late(row: dict[str, Any], run: int) -> None:
    """The stream stays open for a third of a second."""
    row["t_end"] += 333_000_000


def repeats_itself(row: dict[str, Any], run: int) -> None:
    """Answers of the first run are kept, and sent again ten times as fast."""
    if run > 1:
        for name in ("t_end", "event_ns"):
            at = row[name]
            begun = row["t_submit"]
            row[name] = (
                [begun + (one - begun) // 10 for one in at]
                if name == "event_ns"
                else begun + (at - begun) // 10
            )


def kept_from_before(row: dict[str, Any], run: int) -> None:
    """All answers were kept by something before the benchmark began, and come ten times as fast."""
    repeats_itself(row, 2)


def uncounted(row: dict[str, Any], run: int) -> None:
    """No usage at all."""
    row["usage_output"] = row["usage_input"] = None


def benched(
    folder: Path, *engines: VirtualEngine, machine: PlantedMachine | None = None, **more: Any
) -> Benched:
    folder.mkdir(exist_ok=True)
    question = Question(PROMPTS, **more)
    return carry_out(question, engines, machine or PlantedMachine(), VirtualClock(), folder, Silent())


def codes(result: EngineResult) -> set[str]:
    return {one.code for one in result.remarks}
