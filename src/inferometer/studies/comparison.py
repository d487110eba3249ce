"""Sides from run folders to a comparison, and live systems measured in turn so that there is something to compare.

    run folders -> measure (samples) -> judge (comparison) -> report
    plans -> run, round by round -> run folders

A round of `interleave` measures every plan once. Round k gives all of them the seed of the first plan plus k, and begins with
another plan than the round before (draft 6.4: systems that share something are tested at the same time), so that what drifts
meets all alike. Plans with a workload file keep the seed of the file in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from inferometer import __version__, whole_file
from inferometer.documents.comparison import ComparisonDocument, Outcome
from inferometer.documents.outcomes import distributions, outcomes
from inferometer.documents.part import from_json
from inferometer.documents.summary import SCHEMA as SUMMARY_SCHEMA
from inferometer.documents.summary import Summary
from inferometer.documents.workload import UNDECLARED_KINDS
from inferometer.errors import PeerError, PlanError, Problem, RecordError
from inferometer.journal import tasks
from inferometer.journal.documents import holds, not_elsewhere
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE
from inferometer.journal.seal import read_table, record_parts
from inferometer.judge.comparison.bootstrap import Pooled, Sampled
from inferometer.judge.comparison.compare import FIGURES, OF_SESSIONS, Criteria, Run, compare
from inferometer.judge.comparison.equivalence import Declared, Instrument, RunFacts, TokenCounting, forbidden
from inferometer.judge.compliance.of_comparison import complied
from inferometer.measure.large_arrays import held, kept_in
from inferometer.measure.record import COLUMNS, Floats, Record
from inferometer.measure.samples import Samples, values_of
from inferometer.measure.tasks import task_successes
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS, TASK_SUCCESS, stem
from inferometer.metrics.statistics import Interval
from inferometer.plan import saved
from inferometer.plan.schema import Plan
from inferometer.plan.workload import FileWorkload, reseeded
from inferometer.report.comparison.document import compose
from inferometer.report.compliance import statement_document
from inferometer.run.conduct import conduct
from inferometer.run.evaluate import RunResult
from inferometer.run.facts import check_of_one_run, read_facts
from inferometer.run.ui import Ui
from inferometer.studies.certificate import cited_certificate

EXIT_CODES: dict[Outcome, int] = {
    "no_regression": 0,
    "regression": 6,
    "no_claim": 4,
    "invalid": 3,
    "not_comparable": 3,
}
"""A comparison that must not be made is as INVALID as one of numbers that must not be believed: both are 3."""

Measure = Callable[[Plan, Path, Ui], RunResult]
"""Carries a plan out, as `conduct` does."""


def _measured(plan: Plan, out: Path, ui: Ui) -> RunResult:
    return conduct(plan, out, ui, certificate=cited_certificate(plan))


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of sides, as the command line gives it. `prices`: `LABEL=AMOUNT`; `threshold` in per cent."""

    metrics: tuple[str, ...] = ()
    threshold: float = 0.0
    noise: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    price_source: str | None = None
    production: bool = False
    shared_resources: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison's document, whether measuring was interrupted, and the folder of what was measured, if that was done."""

    document: ComparisonDocument
    interrupted: bool = False
    folder: Path | None = None

    @property
    def exit_code(self) -> int:
        """0 no regression, 3 not comparable or a run is INVALID, 4 no claim can be made, 6 regression, 130 interrupted."""
        return 130 if self.interrupted else EXIT_CODES[self.document.outcome]


def label(at: int) -> str:
    """A, B, C ... of the sides in their order; the baseline is A."""
    return chr(ord("A") + at)


def compare_folders(sides: Sequence[str], question: Question, names: Sequence[str] | None = None) -> Compared:
    """Compare sides, each a run folder, several with commas between, or a folder that holds run folders.

    `names`: what to call them, if not after their folders.

    Raises PlanError for what cannot be compared, RecordError for folders that cannot be read.
    """
    criteria = check(question, len(sides))
    paths = [folders(side) for side in (*sides, *question.noise)]
    refuse_twice(paths)
    with kept_in(paths[0][0]):
        runs = [[read(path) for path in side] for side in paths]
        refuse_copies([[run.facts for run in side] for side in runs])
        noise = tuple(tuple(side) for side in runs[len(sides) :])
        wanted = Criteria(criteria.deciding, criteria.threshold, noise, criteria.declared, question.seed)
        comparison = compare(runs[: len(sides)], wanted)
    called = [*(names or map(name_of, sides)), *map(name_of, question.noise)]
    statement = statement_document(complied(comparison))
    return Compared(compose(__version__, called, runs[: len(sides)], wanted, comparison, statement))


def check(question: Question, sides: int) -> Criteria:
    """The question without its A/A runs, with all of its mistakes at once. Raises PlanError."""
    problems = [
        Problem("--metric", f"there is no {name!r}; there are {', '.join(FIGURES)}")
        for name in question.metrics
        if name not in FIGURES
    ]
    declared = declared_by(question, sides, problems)
    return Criteria(tuple(dict.fromkeys(question.metrics)), question.threshold / 100, (), declared)


def declared_by(question: Question, sides: int, problems: list[Problem]) -> Declared:
    """What a question declares of its sides, runs or campaigns. Raises PlanError with `problems` and all of its mistakes."""
    if not 2 <= sides <= 26:
        problems.insert(0, Problem("SIDES", "name a baseline and at least one side to compare with it"))
    if not 0 <= question.threshold < 1_000:
        problems.append(Problem("--threshold", "must be a percentage from 0 up"))
    prices: dict[int, float] = {}
    labels = [label(at) for at in range(sides)]
    for text in question.prices:
        side, _, amount = text.partition("=")
        try:
            value = float(amount)
        except ValueError:
            value = 0.0
        if side.upper() not in labels or not 0 < value < float("inf"):
            problems.append(
                Problem(
                    "--price", f"{text!r} is no price: write A=2.5 for side A (sides: {', '.join(labels)})"
                )
            )
        else:
            prices[labels.index(side.upper())] = value
    if question.prices and not question.price_source:
        problems.append(Problem("--price-source", "say where the prices are from (draft 6.2)"))
    if problems:
        raise PlanError(problems)
    return Declared(prices, question.price_source, question.production, question.shared_resources)


def folders(side: str) -> list[Path]:
    """The run folders of a side. Raises RecordError."""
    paths: list[Path] = []
    for text in filter(None, (part.strip() for part in side.split(","))):
        path = Path(text)
        if holds(path, "plan.json"):
            paths.append(path)
            continue
        inside = sorted(not_elsewhere(one.parent, path) for one in path.glob("*/plan.json"))
        if not inside:
            raise RecordError(f"{path}: neither a run folder nor a folder that holds run folders")
        paths += inside
    if not paths:
        raise RecordError(f"{side!r}: names no run folder")
    return paths


def name_of(side: str) -> str:
    """What to call a side: after its first folder."""
    first, *others = [Path(part.strip()).resolve().name for part in side.split(",") if part.strip()]
    return f"{first} and {len(others)} more" if others else first


def refuse_twice(sides: Sequence[Sequence[Path]]) -> None:
    """No run or campaign may stand against itself, nor count twice. Raises PlanError."""
    places = [path.resolve() for side in sides for path in side]
    twice = dict.fromkeys(path.name for path in places if places.count(path) > 1)
    if twice:
        raise PlanError(
            [Problem("SIDES", f"{name} is named twice: it counts once, on one side") for name in twice]
        )


def refuse_copies(sides: Sequence[Sequence[RunFacts]]) -> None:
    """A copy of a folder, and a second simulation of one plan, are the same run or campaign: their figures would have no spread
    at all. Raises PlanError."""
    known = [(run.id, run.started_ns) for side in sides for run in side]
    if twice := dict.fromkeys(name for name, started in known if known.count((name, started)) > 1):
        raise PlanError(
            [Problem("SIDES", f"{name} is in two folders: it counts once, on one side") for name in twice]
        )
    for side in sides:
        seeds = [run.seed for run in side if run.simulated]
        if len(set(seeds)) < len(seeds):
            raise PlanError(
                [
                    Problem(
                        "SIDES",
                        f"simulations of one seed are the same run again ({side[0].id}): give each its --seed",
                    )
                ]
            )


def read(path: Path) -> Run:
    """One run's folder. Raises RecordError."""
    folder = RunFolder.open(path)
    plan, run, summary = saved.read(folder.plan), read_facts(folder), summary_of(folder)
    check_of_one_run(folder, plan, run)
    if (summary.run.id, summary.run.plan_hash) != (run.id, run.plan_hash):
        raise RecordError(
            f"{path / 'summary.json'}: is of another run than {folder.facts}; {_remedy(folder)}"
        )
    verdict = summary.verdict
    facts = RunFacts(
        id=summary.run.id,
        seed=plan.workload.seed,
        started_ns=run.started_wall_ns,
        ended_ns=run.started_wall_ns if run.ended_wall_ns is None else run.ended_wall_ns,
        status=verdict.status,
        reasons=tuple(one.code for one in verdict.reasons),
        interrupted=summary.run.interrupted,
        simulated=summary.run.simulated,
        fingerprint=summary.workload.fingerprint,
        plan=plan,
        sut=summary.sut,
        tokens=counting_of(summary),
        instrument=Instrument(str(run.timestamp_source), summary.version),
    )
    record = Record.from_tables(record_parts(folder.record, COLUMNS), read_table(folder.pulse, PULSE))
    if plan.compound:
        record = record.apart_from_system()
    pa.default_memory_pool().release_unused()  # Arrow keeps the memory in which it read the file
    values = _values(summary)
    reference = summary.tokens.tokenizer.method == "reference"
    judged = tasks.read(folder.tasks, run.id) if values[TASK_SUCCESS] is not None else None
    sampled = _sampled(record, summary, values, plan.target.stream, reference, judged)
    return Run(facts, values, sampled, bounds_of(summary))


def counting_of(summary: Summary) -> TokenCounting:
    """How a run counted tokens."""
    tokens = summary.tokens
    return TokenCounting(
        tokens.tokenizer.method,
        # Whoever sized the prompts: without a declared tokenizer it is the server that counts.
        "server" if tokens.tokenizer.kind in UNDECLARED_KINDS else tokens.tokenizer.name,
        tokens.count_source,
        tokens.itl_method,
    )


def summary_of(folder: RunFolder) -> Summary:
    """The summary of a run. Raises RecordError, which names the remedy."""
    path = folder.path / "summary.json"
    try:
        return from_json(whole_file.read(path), Summary, SUMMARY_SCHEMA, str(path))
    except OSError as cause:
        raise RecordError(f"{path}: cannot be read; {_remedy(folder)}") from cause
    except RecordError as cause:
        raise RecordError(f"{cause}; {_remedy(folder)}") from cause


def _remedy(folder: RunFolder) -> str:
    return f"make it with `inferometer report {folder.path}`, or `inferometer recover` if the run died"


def _values(summary: Summary) -> dict[str, float | None]:
    """A run's figures, as its summary has them: rates of the steady span, percentiles of its own samples."""
    values: dict[str, float | None] = {
        name: getattr(summary.throughput, name) for name, rate in RATES.items() if rate.compared
    }
    for name, metric in METRICS.items():
        stats = getattr(summary.metrics, name)
        for statistic in metric.compared:
            values[f"{stem(name)}_{statistic}"] = None if stats is None else getattr(stats, statistic)
    values[SUCCESS] = summary.success_rate.value
    whole = {one.key: one.value for one in outcomes(summary)}
    for key, entry, stats in distributions(summary):
        whole |= {f"{stem(key)}_{name}": getattr(stats, name) for name in entry.compared}
    return values | {name: whole.get(name) for name in (*OF_SESSIONS, TASK_SUCCESS)}


def bounds_of(summary: Summary) -> dict[str, Interval]:
    """Task success with all answers that could not be judged as failures, and as successes: they are no random choice."""
    tasks = summary.tasks
    if tasks is None or tasks.all.succeeded is None or not tasks.all.unjudged:
        return {}
    succeeded, unjudged, ended = tasks.all.succeeded, tasks.all.unjudged, tasks.all.ended
    return {TASK_SUCCESS: (succeeded / ended, (succeeded + unjudged) / ended)}


def _sampled(
    record: Record,
    summary: Summary,
    values: dict[str, float | None],
    streamed: bool,
    reference: bool,
    judged: pa.Table | None,
) -> Sampled:
    """The samples behind the figures, request by request; failed requests have no latency."""
    samples = Samples(record, streamed=streamed, reference=reference, native=summary.plan.tokenizer.own)
    failed, good = summary.success_rate.ended - summary.success_rate.succeeded, len(samples)
    requests = good + failed

    def padded(latencies: Floats) -> Pooled:
        return Pooled.one_each(np.concatenate((latencies, np.full(failed, np.nan))))

    compared = {name: metric for name, metric in METRICS.items() if metric.compared}
    pooled = {stem(name): padded(values_of(samples, name)) for name in compared if not METRICS[name].pooled}
    ends = np.full(failed, samples.gap_offsets[-1])
    gaps = Pooled(samples.gaps, held(np.concatenate((samples.gap_offsets, ends))))
    pooled["itl" if samples.itl_method == "direct" else "chunk_gap"] = gaps
    pooled["success"] = Pooled.one_each((np.arange(requests) < good).astype(np.float64))
    if judged is not None:
        achieved = task_successes(record, samples, judged)[samples.rows]
        pooled["task_success"] = Pooled.one_each(np.concatenate((achieved, np.zeros(failed))))
    rates = {name: value for name in (*RATES, *OF_SESSIONS) if (value := values.get(name)) is not None}
    return Sampled(requests, pooled, rates)


# Live systems, in turn.


@dataclass(slots=True)
class Series:
    """What `interleave` measured: for each plan the folder of its runs, and how many rounds all of them came through."""

    sides: list[Path]
    runs: list[list[Path]] = field(default_factory=list)
    rounds: int = 0
    interrupted: bool = False

    def texts(self) -> list[str]:
        """The sides as `compare_folders` takes them: only runs of whole rounds, for only those have their pairs."""
        return [",".join(map(str, runs[: self.rounds])) for runs in self.runs]


def turns(sides: int, rounds: int) -> list[list[int]]:
    """Whose turn it is, round by round: A B C, B C A, C A B. In as many rounds as sides each is once at every place."""
    return [[(first + at) % sides for at in range(sides)] for first in range(rounds)]


def refuse_unlike(plans: Sequence[Plan]) -> None:
    """Nothing is measured that must not be compared. Raises PlanError."""
    keys = forbidden(plans)
    if keys:
        raise PlanError(
            [
                Problem(key, "differs between the plans; a comparison needs it the same (draft 6.1)")
                for key in keys
            ]
        )


def interleave(
    plans: Sequence[Plan], repeats: int, out: Path, started_ns: int, ui: Ui, measure: Measure = _measured
) -> Series:
    """Measure the plans in turn, `repeats` rounds, into a folder a plan under `out`. Ctrl-C ends it and keeps what there is.

    Raises PlanError, PeerError (what was measured before stays where the message says), RecordError, InstrumentError.
    """
    if repeats < 1:
        raise PlanError([Problem("--repeats", "must be at least 1")])
    refuse_unlike(plans)
    place = RunFolder.create(out, "compare", started_ns).path
    (place / "journal").rmdir()  # it is no run: it holds those of the sides
    series = Series([place / f"{label(at)}-{plan.name}" for at, plan in enumerate(plans)])
    series.runs = [[] for _ in plans]
    base = plans[0].workload.seed
    try:
        for number, order in enumerate(turns(len(plans), repeats)):
            for at in order:
                ui.note(f"round {number + 1} of {repeats}: {label(at)} ({plans[at].name})")
                _one(seeded(plans[at], (base + number) % 2**63), series, at, ui, measure)
            series.rounds = number + 1
    except KeyboardInterrupt:
        series.interrupted = True
    return series


def seeded(plan: Plan, seed: int) -> Plan:
    """The plan with this seed; one with a workload file unchanged, since the file decides the seed."""
    workload = plan.workload
    if isinstance(workload, FileWorkload) or workload.file is not None:
        return plan
    return plan.model_copy(update={"workload": reseeded(workload, seed)})


def _one(plan: Plan, series: Series, at: int, ui: Ui, measure: Measure) -> None:
    """One run, warm-up included. Raises what `interleave` does, and KeyboardInterrupt if it was interrupted in any way."""
    try:
        finding = measure(plan, series.sides[at], ui)
    except RecordError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # pressed while the record was read
            raise KeyboardInterrupt from error
        raise
    except PeerError as error:
        kept = sum(map(len, series.runs))
        where = f"; {kept} runs before it are in {series.sides[0].parent}" if kept else ""
        raise PeerError(f"side {label(at)}: {error}{where}") from error
    if finding.summary.run.interrupted:
        raise KeyboardInterrupt
    series.runs[at].append(finding.folder)
    if finding.exit_code == PeerError.exit_code:
        raise PeerError(f"side {label(at)}: not one request succeeded; see {finding.folder}")


def compare_live(
    plans: Sequence[Plan],
    repeats: int,
    out: Path,
    started_ns: int,
    question: Question,
    ui: Ui,
    measure: Measure = _measured,
) -> Compared:
    """Measure the plans in turn and compare what came of it. Raises what `interleave` and `compare_folders` do.

    Interrupted before the first round was through, there is nothing to compare: KeyboardInterrupt.
    """
    check(question, len(plans))
    series = interleave(plans, repeats, out, started_ns, ui, measure)
    for side in series.sides:
        ui.note(f"runs of this side: {side}")
    if not series.rounds:
        raise KeyboardInterrupt
    compared = compare_folders(series.texts(), question, [side.name for side in series.sides])
    return Compared(compared.document, series.interrupted, series.sides[0].parent)
