"""The engine benchmark: asiai's protocol, carried out on one engine after the other.

    gate -> prepare (model, load, one generation) -> measure -> facts -> unload -> cool-down -> the next

What an engine does wrong ends its own turn and no other. The document is written anew after each turn, so that nothing measured
is ever lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inferometer import __version__, whole_file
from inferometer.addresses import is_loopback
from inferometer.documents.bench import SCHEMA, Bench, BenchProtocol, Client, EngineResult, Remark
from inferometer.documents.part import from_json, to_json
from inferometer.drive.probe import endpoint
from inferometer.drive.progress_counters import Progress
from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.judge.bench import overall, ranking
from inferometer.report.bench.files import write_reports
from inferometer.report.run.composition import moment
from inferometer.run.ui import Ui
from inferometer.studies.bench_answers import checked
from inferometer.studies.bench_engine import Engine, Prepared
from inferometer.studies.bench_gate import COOLDOWN_S, Clock, Machine
from inferometer.studies.bench_results import client_of, engine_result, exit_code
from inferometer.studies.bench_turn import BenchTurn
from inferometer.studies.detection import Local
from inferometer.studies.engine_turns import Standing, in_turn
from inferometer.studies.local_engines import duplicate_instances
from inferometer.workload.bench_prompts import BenchPrompt, easiest

FILE = "bench.json"
WARM_UP = "one generation of one token for the prompt Hello"
FOLLOWS = ("asiai Benchmark Methodology", "asiai Benchmark Metrics Specification 0.4.0")
LOOK_NS = 5_000_000_000
"""Between two looks at the processor's speed limit while an engine is measured."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to measure. `sized_by`: whose tokens the context fills were sized in; `force`: measure even where the gate refuses;
    `fast_is_odd`: of an engine on this machine, more than 500 tokens a second are worth a warning. `answers`: check the
    engines' answers, against these by prompt, else against each other's; None: do not."""

    prompts: tuple[BenchPrompt, ...]
    runs: int = 3
    sized_by: str | None = None
    force: bool = False
    fast_is_odd: bool = False
    answers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Benched:
    """A benchmark so far: its folder and its document."""

    folder: Path
    document: Bench

    @property
    def exit_code(self) -> int:
        """See bench_results.exit_code."""
        return exit_code(self.document)


def conduct_bench(
    question: Question, engines: Sequence[Engine], machine: Machine, clock: Clock, out: Path, ui: Ui
) -> Benched:
    """A benchmark in a folder of its own under `out`. Raises RecordError and InstrumentError after what was measured has been
    written."""
    folder = RunFolder.create(out, "bench", time.time_ns()).path
    (folder / "journal").rmdir()
    here = {one.name for one in engines if one.url is not None and is_loopback(one.url)}
    competing = tuple(duplicate_instances(Local.now(), here)) if here else ()
    return carry_out(question, engines, machine, clock, folder, ui, competing)


def carry_out(
    question: Question,
    engines: Sequence[Engine],
    machine: Machine,
    clock: Clock,
    folder: Path,
    ui: Ui,
    before: Sequence[Remark] = (),
) -> Benched:
    """All turns of a benchmark, into `folder`, which exists. `before`: what there is to say of the machine before the first."""
    started = moment(time.time_ns())

    def write(standing: Standing[EngineResult]) -> Benched:
        results = standing.results
        shown = results if question.answers is None else checked(results, folder, question.answers)
        document = _document(
            question,
            shown,
            standing.remarks,
            folder.name,
            started,
            client_of(machine),
            interrupted=standing.cut_short,
        )
        whole_file.write(folder / FILE, to_json(document).encode())
        if standing.over:
            write_reports(folder, document)
        return Benched(folder, document)

    def begin(engine: Engine) -> _Turn:
        return _Turn(
            engine=engine,
            machine=machine,
            folder=folder,
            ui=ui,
            force=question.force,
            question=question,
            clock=clock,
        )

    noted = (*before, *_shared_addresses(engines))
    return in_turn(engines, begin, write, machine, clock, ui, noted)


def rewritten(folder: Path) -> Benched:
    """A benchmark's reports, written again out of its document. Raises RecordError, InstrumentError and OSError."""
    document = read(folder / FILE)
    try:
        write_reports(folder, document)
    except ArithmeticError as cause:  # a figure of 1e300 overflows its square
        raise RecordError(
            f"{folder / FILE}: holds figures that cannot be calculated with ({cause})"
        ) from cause
    return Benched(folder, document)


def read(path: Path) -> Bench:
    """The document of a benchmark. Raises RecordError, also for one whose verdict is not that of its engines."""
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read ({cause.strerror})") from cause
    document = from_json(text, Bench, SCHEMA, str(path))
    if not document.engines:
        raise RecordError(f"{path}: it has no engine, and a benchmark has at least one: the file was changed")
    if document.status != (follows := overall(document.engines)):
        raise RecordError(
            f"{path}: its status is {document.status}, and that of its engines {follows}: the file was changed"
        )
    return document


def _document(
    question: Question,
    results: Sequence[EngineResult],
    remarks: Sequence[Remark],
    name: str,
    started: str,
    client: Client,
    *,
    interrupted: bool,
) -> Bench:
    return Bench(
        schema=SCHEMA,
        id=name,
        version=__version__,
        started=started,
        ended=moment(time.time_ns()),
        interrupted=interrupted,
        protocol=BenchProtocol(
            runs=question.runs,
            prompts=tuple(one.name for one in question.prompts),
            sized_by=question.sized_by,
            temperature=0.0,
            warm_up=WARM_UP,
            cooldown_s=COOLDOWN_S,
            follows=FOLLOWS,
        ),
        status=overall(results),
        engines=tuple(results),
        rankings=(ranking("tok_per_sec", results), ranking("ttft_client_ms", results)),
        remarks=tuple(remarks),
        client=client,
    )


def _shared_addresses(engines: Sequence[Engine]) -> list[Remark]:
    """Engines of different names at one address. Where two names are those of different adapters, one of them is not what it is
    called; otherwise it is one engine under two names, as in an A/A test: it should tie with itself."""
    seen: dict[tuple[str, int, str], Engine] = {}
    remarks = []
    for engine in engines:
        if engine.url is None:
            continue
        place = endpoint(engine.url)
        host = "127.0.0.1" if place.host == "localhost" else place.host
        before = seen.setdefault((host, place.port, place.base), engine)
        if before.name != engine.name:
            facts = {"first": before.label, "second": engine.label, "url": engine.url}
            unlike = {before.name, engine.name} <= ADAPTERS.keys()
            remarks.append(Remark("same_address" if unlike else "same_engine", facts))
    return remarks


@dataclass(slots=True, kw_only=True)
class _Turn(BenchTurn):
    question: Question
    clock: Clock
    limits: list[tuple[int, float]] = field(default_factory=list)

    def carry_out(self) -> None:
        """See engine_turns.Turn."""
        self.prompts = self.question.prompts
        try:
            if self.may_begin():
                self._measure()
            self.finish()
        except KeyboardInterrupt:
            self.interrupted = True

    def made(self) -> EngineResult:
        """See engine_turns.Turn."""
        local = self.engine.url is None or is_loopback(self.engine.url)
        odd = self.question.fast_is_odd and local
        return engine_result(self.turn(self.question.runs, self.limits, fast_is_odd=odd), self.machine)

    def _measure(self) -> None:
        """Protocol 2 to 4."""
        with self.failing():
            self.prepared = self.engine.prepare()
            self.remarks += self.prepared.remarks
            self.prompts = self._fitting(self.prepared)
            if self.prompts:
                watch = _Watch(self.ui, self.machine, self.clock, self.limits)
                self.measure(self.prepared, self.question.runs, watch)
                if not self.interrupted:
                    self.one_token = self.engine.one_token(self.prepared, easiest(self.prompts))

    def _fitting(self, prepared: Prepared) -> tuple[BenchPrompt, ...]:
        """The prompts that the model has room for, as far as it reports a context."""
        room = prepared.context
        if room is None:
            return self.question.prompts
        fits = []
        for one in self.question.prompts:
            if (one.tokens or 0) + one.max_tokens <= room:
                fits.append(one)
            else:
                self.remarks.append(Remark("prompt_too_long", {"prompt": one.name, "context": room}))
        return tuple(fits)


class _Watch:
    """The Ui of an engine's run, which reads the processor's speed limit now and then (Protocol 9)."""

    def __init__(self, ui: Ui, machine: Machine, clock: Clock, limits: list[tuple[int, float]]) -> None:
        self._ui, self._machine, self._clock, self.limits = ui, machine, clock, limits
        self._last: int | None = None

    def note(self, text: str) -> None:
        """See Ui."""
        self._ui.note(text)

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""
        now = self._clock.now_ns()
        if self._last is None or now - self._last >= LOOK_NS:
            self._last = now
            percent = self._machine.thermal().speed_limit_percent
            if percent is not None:
                self.limits.append((now, percent))
        self._ui.watch(phase, progress, total)
