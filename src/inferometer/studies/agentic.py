"""The agentic benchmark: the eight phases of asiai's Agentic Mode, carried out on one engine after the other.

    duplicates -> gate -> restart -> prepare (load, one short generation) -> the phases, as one run -> facts -> cool-down

All phases of all repetitions are one run: one prompts file in the order of the phases, one request at a time. What is reported
is read from the run's sealed record. An engine that fails ends its own turn and no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inferometer import __version__, whole_file
from inferometer.addresses import is_loopback
from inferometer.documents.agentic import (
    SCHEMA,
    Agentic,
    AgenticEngine,
    AgenticProtocol,
    AgenticSizes,
    Restart,
)
from inferometer.documents.bench import Remark
from inferometer.documents.part import from_json, to_json
from inferometer.documents.verdict import RunStatus
from inferometer.errors import RecordError, TokenizerGone
from inferometer.journal.folder import RunFolder
from inferometer.judge.procedure_verdict import worst
from inferometer.report.agentic.files import write_reports
from inferometer.report.run.composition import moment
from inferometer.run.ui import Ui
from inferometer.studies.agentic_results import AgenticTurn, agentic_result
from inferometer.studies.bench_engine import Engine, Prepared
from inferometer.studies.bench_gate import Clock, Machine
from inferometer.studies.bench_results import client_of, exit_code
from inferometer.studies.bench_turn import BenchTurn
from inferometer.studies.engine_tokens import TokenCounter
from inferometer.studies.engine_turns import Standing, in_turn
from inferometer.telemetry.machine_readings import Swap
from inferometer.telemetry.swap_watch import SwapAccount, SwapAlert, SwapWatch
from inferometer.workload.agentic_prompts import (
    CHARACTERS_A_TOKEN,
    LONG_MAX_TOKENS,
    LONG_TOKENS,
    PHASES,
    SHORTEST_LONG,
    AgenticPrompts,
    Count,
    agentic_prompts,
)

FILE = "agentic.json"
WARM_UP = "one generation of one token for the prompt Hello, unrelated to the phases"
FOLLOWS = ("asiai Benchmark Methodology, Agentic Mode",)
TEMPLATE_TOKENS = 64
"""Room for what a chat template puts around a prompt."""
UNWATCHED = SwapAccount(0, None, None, None)
BY_CHARACTERS = f"{CHARACTERS_A_TOKEN} characters a token"
UNSURE_SHARE = 1.25
"""A prompt sized by characters may have so many times its tokens by the model's own tokenizer."""


@dataclass(frozen=True, slots=True)
class AgenticQuestion:
    """What to measure. `salt`: what the prompts follow from; `counter`: a tokenizer at hand, None: each engine's own, if it can
    be asked; `force`: measure even where a gate refuses; `restart_required`: one that was not restarted is not measured."""

    salt: str
    repeats: int = 1
    long_tokens: int = LONG_TOKENS
    counter: TokenCounter | None = None
    force: bool = False
    restart_required: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the benchmark asks of this machine. `duplicates`: the processes of an engine's instances, by its name, if there are
    two or more, None if that cannot be known; `restarts`: how to restart an engine, by its label, given the folder for the
    command's output."""

    machine: Machine
    swap: Callable[[], Swap]
    duplicates: Callable[[str], tuple[int, ...] | None]
    clock: Clock
    restarts: Mapping[str, Callable[[Path], Restart]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgenticBenched:
    """A benchmark so far: its folder and its document."""

    folder: Path
    document: Agentic

    @property
    def exit_code(self) -> int:
        """See bench_results.exit_code."""
        return exit_code(self.document)


def conduct_agentic(
    question: AgenticQuestion, engines: Sequence[Engine], around: Surroundings, out: Path, ui: Ui
) -> AgenticBenched:
    """A benchmark in a folder of its own under `out`. Raises PlanError for sizes that cannot be, RecordError and
    InstrumentError after what was measured has been written."""
    agentic_prompts(question.salt, 1, question.long_tokens)  # before anything is sent
    folder = RunFolder.create(out, "agentic", time.time_ns()).path
    (folder / "journal").rmdir()
    return carry_out(question, engines, around, folder, ui)


def carry_out(
    question: AgenticQuestion, engines: Sequence[Engine], around: Surroundings, folder: Path, ui: Ui
) -> AgenticBenched:
    """All turns of a benchmark, into `folder`, which exists."""
    started = moment(time.time_ns())

    def write(standing: Standing[AgenticEngine]) -> AgenticBenched:
        document = Agentic(
            schema=SCHEMA,
            id=folder.name,
            version=__version__,
            started=started,
            ended=moment(time.time_ns()),
            interrupted=standing.cut_short,
            protocol=_protocol(question),
            status=_overall(standing.results),
            engines=tuple(standing.results),
            remarks=standing.remarks,
            client=client_of(around.machine),
        )
        whole_file.write(folder / FILE, to_json(document).encode())
        if standing.over:
            write_reports(folder, document)
        return AgenticBenched(folder, document)

    def begin(engine: Engine) -> _Turn:
        return _Turn(
            engine=engine,
            machine=around.machine,
            folder=folder,
            ui=ui,
            force=question.force,
            question=question,
            around=around,
        )

    return in_turn(engines, begin, write, around.machine, around.clock, ui)


def rewritten(folder: Path) -> AgenticBenched:
    """A benchmark's reports, written again out of its document. Raises RecordError, InstrumentError and OSError."""
    path = folder / FILE
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read ({cause.strerror})") from cause
    document = from_json(text, Agentic, SCHEMA, str(path))
    if not document.engines:
        raise RecordError(f"{path}: it has no engine, and a benchmark has at least one: the file was changed")
    if document.status != (follows := _overall(document.engines)):
        raise RecordError(
            f"{path}: its status is {document.status}, and that of its engines {follows}: the file was changed"
        )
    write_reports(folder, document)
    return AgenticBenched(folder, document)


def _overall(engines: Sequence[AgenticEngine]) -> RunStatus:
    return worst([one.status or "INCONCLUSIVE" for one in engines])


def _protocol(question: AgenticQuestion) -> AgenticProtocol:
    phases = tuple(one.name for one in PHASES)
    return AgenticProtocol(question.salt, question.repeats, phases, 0.0, WARM_UP, FOLLOWS)


@dataclass(slots=True, kw_only=True)
class _Turn(BenchTurn):
    question: AgenticQuestion
    around: Surroundings
    restart: Restart | None = None
    sizes: AgenticSizes | None = None
    several: tuple[int, ...] | None = None
    swap: SwapAccount = UNWATCHED

    @property
    def _local(self) -> bool:
        """Of a server elsewhere, neither this machine's memory nor its processes say anything."""
        return self.engine.url is None or is_loopback(self.engine.url)

    def carry_out(self) -> None:
        """See engine_turns.Turn."""
        try:
            self.several = self.around.duplicates(self.engine.name) if self._local else None
            watch = SwapWatch(self.around.swap if self._local else Swap, self._alerted)
            try:
                with watch:
                    if self._may_begin() and self._restarted():
                        self._measure()
            finally:
                self.swap = watch.account
            self.finish()
        except KeyboardInterrupt:
            self.interrupted = True

    def made(self) -> AgenticEngine:
        """See engine_turns.Turn."""
        phases = len(self.prompts) // self.question.repeats
        whole = AgenticTurn(self.turn(1), phases, self.sizes, self.restart, self.swap, self.several)
        return agentic_result(whole, self.machine)

    def _alerted(self, alert: SwapAlert) -> None:
        self.ui.note(f"memory is being swapped out, {alert.after_s:.0f} s after the start")

    def _may_begin(self) -> bool:
        if not self.several:
            return self.may_begin()
        return self.may_begin(Remark("duplicates", {"processes": ", ".join(map(str, self.several))}))

    def _restarted(self) -> bool:
        """Restart the engine, if asked to; whether to go on."""
        how = self.around.restarts.get(self.engine.label)
        if how is None:
            if not self.question.restart_required:
                return True
            self.failed(Remark("restart_missing", {"engine": self.engine.label}))
            return False
        self.ui.note(f"restarting {self.engine.label}")
        self.restart = how(self.folder)
        if self.restart.why is None:
            return True
        remark = Remark(f"restart_{self.restart.why}", {"seconds": self.restart.seconds})
        if self.question.restart_required:
            self.failed(remark)
            return False
        self.remarks.append(remark)
        return True

    def _measure(self) -> None:
        with self.failing():
            self.prepared = self.engine.prepare()
            self.remarks += self.prepared.remarks
            if self._sized(self.prepared):
                self.measure(self.prepared, 1, self.ui)

    def _sized(self, prepared: Prepared) -> bool:
        """Choose the prompts, sized in the model's own tokens where they can be counted; whether there is room for any."""
        given = self.question.counter
        if given is not None:
            return self._chosen(prepared.context, given)
        before = len(self.remarks)
        with self.engine.counting(prepared.model) as own:
            if own is not None:
                try:
                    return self._chosen(prepared.context, own)
                except TokenizerGone:
                    del self.remarks[before:]
        return self._chosen(prepared.context, None)

    def _chosen(self, context: int | None, counter: TokenCounter | None) -> bool:
        """Choose the prompts by the model's context; whether there is room for any."""
        wanted = self.question.long_tokens
        count = None if counter is None else counter.count
        made = self._made(1, wanted, count)
        slack = UNSURE_SHARE if counter is None else 1.0
        room = None if context is None else int((context - TEMPLATE_TOKENS) / slack)
        size, phases = wanted, len(PHASES)
        if context is not None and room is not None:
            if made.short_tokens > (context - TEMPLATE_TOKENS):
                self.failed(Remark("context_short", {"context": context, "needed": made.short_tokens}))
                return False
            size = min(wanted, room - made.tokens["SYS_A"] - LONG_MAX_TOKENS)
            if size < min(wanted, SHORTEST_LONG):
                size, phases = 0, len(PHASES) - 2
                self.remarks.append(Remark("long_left_out", {"context": context}))
            elif size < wanted:
                facts = {"context": context, "wanted": wanted, "tokens": size}
                self.remarks.append(Remark("long_shortened", facts))
        repeats = range(1, self.question.repeats + 1)
        every = [self._made(repeat, size or SHORTEST_LONG, count) for repeat in repeats]
        self.prompts = tuple(prompt for one in every for prompt in one.prompts[:phases])
        tokens = every[0].tokens
        self.sizes = AgenticSizes(
            sized_by=BY_CHARACTERS if counter is None else counter.name,
            system_a=tokens["SYS_A"],
            system_b=tokens["SYS_B"],
            user_x=tokens["USER_X"],
            user_y=tokens["USER_Y"],
            long_tokens=tokens["USER_L"] if size else 0,
            long_wanted=wanted,
        )
        return True

    def _made(self, repeat: int, size: int, count: Count | None) -> AgenticPrompts:
        return agentic_prompts(self.question.salt, repeat, size, count)
