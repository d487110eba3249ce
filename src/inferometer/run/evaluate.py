"""From the journal to the report, without a server: journal -> seal -> measure -> judge -> report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from inferometer.cluster import fetched
from inferometer.documents.certificate import CertificateLookup
from inferometer.documents.run_facts import RunFacts
from inferometer.documents.summary import Summary
from inferometer.documents.workload import TraceFacts
from inferometer.errors import InstrumentError, MachineError, PeerError, RecordError, in_words, shortage_of
from inferometer.journal import hold, tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE, Phase
from inferometer.journal.seal import read_table, record_parts, seal
from inferometer.judge.checks import CLIENT_LIMIT
from inferometer.judge.compliance.statement import brief_of
from inferometer.judge.judge import arrival_comparison, judge
from inferometer.judge.slo import slo_outcomes
from inferometer.measure.large_arrays import kept_in
from inferometer.measure.lengths import Probed
from inferometer.measure.less_round_trip import LessRoundTrip, less_round_trip
from inferometer.measure.measurement import Measurement, measure, samples_of
from inferometer.measure.record import COLUMNS, Record, Replay
from inferometer.measure.request_times import RequestTimes, request_times
from inferometer.measure.samples import Samples
from inferometer.measure.series import RunSeries, series
from inferometer.measure.tasks import TasksAccount, tasks_account
from inferometer.plan import saved
from inferometer.plan.schema import Plan
from inferometer.plan.workload import TasksWorkload
from inferometer.report.run.composition import summarise
from inferometer.report.run.files import write_reports
from inferometer.run.facts import as_measured, check_of_one_run, read_facts, write_facts
from inferometer.run.memory_need import check_memory
from inferometer.run.scraping import Scrapes, exported, settle
from inferometer.run.session_evidence import session_evidence
from inferometer.run.task_judging import not_judged
from inferometer.run.warmup import WARM_UP_COLUMNS, warm_up_summary
from inferometer.telemetry.metrics.normalised import Translated
from inferometer.workload import tokenizers


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: its folder, its summary (the data of summary.json), notes on what went wrong on the way, and its
    successful requests."""

    folder: Path
    summary: Summary
    notes: list[str]
    requests: RequestTimes

    @property
    def exit_code(self) -> int:
        """The exit code: 0 VALID, 3 INVALID, 4 INCONCLUSIVE, 130 interrupted; 5 nothing succeeded, or 71 where this machine
        could connect nothing."""
        if self.summary.run.interrupted:
            return 130
        requests = self.summary.requests
        if requests.sent and not requests.completed:
            return MachineError.exit_code if set(requests.by_error) == {CLIENT_LIMIT} else PeerError.exit_code
        return {"VALID": 0, "INVALID": 3, "INCONCLUSIVE": 4}[self.summary.verdict.status]


def conclude(
    folder: RunFolder,
    tokenizer: tokenizers.Tokenizer,
    scrapes: Scrapes | None = None,
    judging: Callable[[], list[str]] = list,
) -> RunResult:
    """Seal the journal, end the scraping and evaluate the record. `judging`: what is done with the answers in between, with
    notes on it. Raises RecordError."""
    try:
        notes = _seal(folder, tokenizer)
        if scrapes is not None:
            settle(folder, scrapes.end(interrupted=read_facts(folder).interrupted))
        notes += judging()
        result = evaluate(folder)
        result.notes.extend(notes)
        return result
    except (OSError, MemoryError, KeyboardInterrupt) as cause:
        why = "interrupted" if isinstance(cause, KeyboardInterrupt) else in_words(cause)
        raise _ended(
            f"measured, but not reported: {why}. Nothing is lost: `inferometer recover {folder.path}` continues from here",
            cause,
        ) from cause


def _ended(said: str, cause: BaseException) -> RecordError | MachineError:
    shortage = shortage_of(cause)
    return RecordError(said) if shortage is None else MachineError(said, shortage)


def cut_short(folder: RunFolder, cause: BaseException) -> BaseException:
    """What to raise for a run that `cause` ended before its record could be read: it says how to go on from what was measured.

    A folder in which nothing was measured is removed, but for an error of ours, whose reason may be in its log.
    """
    if not folder.measured:
        if isinstance(cause, MachineError) or not isinstance(cause, InstrumentError):
            folder.remove_unmeasured()
        return cause
    if isinstance(cause, RecordError | InstrumentError):  # these say so themselves
        return cause
    saved = f"what was written until then is saved: `inferometer recover {folder.path}` rebuilds the results from it"
    if isinstance(cause, OSError | MemoryError):
        error = _ended(f"the run ended early: {in_words(cause)}; {saved}", cause)
        error.__cause__ = cause
        return error
    cause.add_note(saved)
    return cause


def _seal(
    folder: RunFolder, tokenizer: tokenizers.Tokenizer, *, keep_journal: bool = False, recovers: bool = False
) -> list[str]:
    """Seal the journal; notes on what it lacked. Where text is not to be kept, the journal, which holds it, goes: the record
    has all else of it. `keep_journal`: it stays all the same, since its text is still to be counted. `recovers`: what load
    hosts have sent stays for as long as some of them may have more."""
    plan, facts = saved.read(folder.plan), read_facts(folder)
    keep = plan.instrument.keep_text
    sealed = seal(folder, tokenizer.count_all, facts.id, keep)
    notes = [_KEPT] if sealed.kept else []
    lost = [] if sealed.kept else _lost(folder, plan.instrument.all_workers, facts, sealed.cut)
    if lost and not facts.interrupted:
        write_facts(folder, replace(facts, interrupted=True))
        notes.append(f"{', '.join(lost)}: not whole, or missing. This run counts as interrupted")
    text_stays = keep == "all" or keep_journal
    notes += _settle_fetched(folder, stays=text_stays or recovers, keep_cut=text_stays)
    if keep != "all" and not keep_journal:
        folder.remove_outcomes()
    return notes


def _settle_fetched(folder: RunFolder, *, stays: bool, keep_cut: bool) -> list[str]:
    """Remove what load hosts have sent, now that it is sealed, unless more of it may come or it could not be read to its end;
    notes on either. `stays`: its text may be kept."""
    if stays and (names := fetched.not_fetched(folder)):
        return [
            f"{', '.join(names)}: what was measured there and is not here yet may still be fetched, by "
            f"`inferometer recover {folder.path} --listen HOST:PORT`; until then {folder.fetched} keeps what was fetched"
        ]
    return [
        f"{path}: was cut off or is damaged, and only what stands before that is in the record; it stays as it came"
        for path in fetched.remove(folder, keep_cut=keep_cut)
    ]


_KEPT = "requests.parquet holds more requests than the journal still does, and stays as it is"


def _lost(folder: RunFolder, workers: int, facts: RunFacts, cut: Sequence[Path]) -> list[str]:
    """The streams of workers that lived to the end of the run, and yet are not whole. A simulation has one worker."""
    expected = [folder.journal / f"worker-{number}.arrows" for number in range(workers)]
    lacking = sorted({*cut, *(path for path in expected if not path.is_file())})
    dead = {f"{kind}-{death.worker}.arrows" for death in facts.dead_workers for kind in ("worker", "pulse")}
    return [f"journal/{path.name}" for path in lacking if path.name not in dead]


def evaluate(folder: RunFolder) -> RunResult:
    """Measure, judge and report a sealed run. Raises RecordError."""
    result = assess(folder)
    write_reports(folder.path, result.summary, result.series)
    return RunResult(folder.path, result.summary, result.notes, result.requests)


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a record amounts to: the summary, what is drawn, notes on what went wrong on the way, and the successful
    requests."""

    summary: Summary
    series: RunSeries
    notes: list[str]
    requests: RequestTimes


def assess(folder: RunFolder) -> Assessment:
    """Measure and judge a sealed run. Raises RecordError."""
    with kept_in(folder.path):
        return _assess(folder)


def _assess(folder: RunFolder) -> Assessment:
    facts = read_facts(folder)
    own = saved.read(folder.plan)
    check_of_one_run(folder, own, facts)
    check_memory(folder)
    plan = as_measured(own, facts)
    unmeasured = _Unmeasured(record_parts(folder.record, COLUMNS))
    record = _record(folder, plan, facts, unmeasured)
    scraped = exported(folder, plan, facts)
    server_metrics = scraped.translated
    samples = samples_of(plan, record)
    learned = facts.tokenizer.learned
    probed = Probed(None if learned is None else learned.template, facts.greeting)
    measurement = measure(plan, record, samples, server_metrics, probed, scraped.machines)
    warm_up = warm_up_summary(
        plan.load,
        unmeasured.rows(),
        record.t_taken,
        facts.warm_prefixes,
        server_metrics,
        usage=not plan.compound,
    )
    lookup = _lookup(folder, facts)
    arrival = arrival_comparison(plan, measurement, record)
    block = _block_tokens(facts, server_metrics)
    sessions = session_evidence(folder, plan, record, samples, measurement.window, block)
    account = _tasks(folder, facts, plan, record, samples)
    verdict = judge(
        plan, measurement, record, lookup, facts.requests, warm_up, facts.tokenizer, arrival,
        facts.answered_as or facts.model, facts.round_trips, sessions, account,
    )  # fmt: skip
    slos = slo_outcomes(plan, measurement, record, samples, account)
    less = _less_round_trip(plan, facts, measurement, samples)
    summary = summarise(plan, facts, measurement, verdict, arrival, slos, warm_up, less)
    summary = replace(
        summary,
        metrics_endpoints=scraped.endpoints,
        agent_sessions=sessions.measured,
        tasks=account,
    )
    summary = replace(summary, compliance=brief_of(summary))
    drawn = series(plan, record, samples, server_metrics, scraped.machines)
    return Assessment(summary, drawn, scraped.notes, request_times(record, samples))


def _block_tokens(facts: RunFacts, metrics: Iterable[Translated]) -> int | None:
    """Of the prefix cache, by the simulated engine's settings or the target's own metrics; None: nothing states them."""
    if facts.engine is not None:
        block = facts.engine.settings.get("block_tokens")
        return block if isinstance(block, int) and block > 0 else None
    stated = {one.block_tokens for one in metrics if one.own and one.block_tokens is not None}
    return stated.pop() if len(stated) == 1 else None


def _tasks(
    folder: RunFolder, facts: RunFacts, plan: Plan, record: Record, samples: Samples
) -> TasksAccount | None:
    """How the tasks of a run of tasks went; they may never have been judged, as in a simulation."""
    if not isinstance(plan.workload, TasksWorkload):
        return None
    judged = tasks.read(folder.tasks, facts.id) if folder.tasks.is_file() else None
    return tasks_account(record, samples, judged)


def _less_round_trip(
    plan: Plan, facts: RunFacts, measurement: Measurement, samples: Samples
) -> LessRoundTrip | None:
    """With --subtract-rtt, where there was a network and its round trip is known (draft 4.7.3)."""
    trips = facts.round_trips
    if not plan.instrument.subtract_rtt or trips is None:
        return None
    return less_round_trip(measurement.metrics.ttft_ms, samples.ordered_ttft, trips.least_ms)


def requests_of(folder: RunFolder) -> RequestTimes:
    """The successful requests of a sealed run, as `assess` has them. Raises RecordError."""
    samples = samples_in(folder)
    return request_times(samples.record, samples)


def samples_in(folder: RunFolder) -> Samples:
    """The samples of a sealed run, with its record. Raises RecordError."""
    facts = read_facts(folder)
    plan = as_measured(saved.read(folder.plan), facts)
    return samples_of(plan, _record(folder, plan, facts))


class _Unmeasured:
    """The parts of a sealed record, of which it keeps the rows sent before the measurement or around it."""

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self._parts = parts
        self._rows: list[pa.Table] = []

    def __iter__(self) -> Iterator[pa.Table]:
        measured = pc.field("phase") == int(Phase.MEASURE)
        for part in self._parts:
            self._rows.append(part.select(WARM_UP_COLUMNS).filter(~measured))
            yield part

    def rows(self) -> pa.Table:
        """Those of the parts that were gone through."""
        return pa.concat_tables(self._rows)


def _record(
    folder: RunFolder, plan: Plan, facts: RunFacts, parts: Iterable[pa.Table] | None = None
) -> Record:
    record = Record.from_tables(
        record_parts(folder.record, COLUMNS) if parts is None else parts,
        read_table(folder.pulse, PULSE),
        interrupted=facts.interrupted,
        timestamp_source=facts.timestamp_source,
        deaths=facts.dead_workers,
        replay=None if facts.trace is None else _replay(facts.trace),
        classes=facts.classes,
        single_use=facts.single_use,
        own_cpu=facts.own_cpu,
        hosts=facts.hosts,
    )
    # Arrow keeps the memory in which it read the file, which may be more than the record takes.
    pa.default_memory_pool().release_unused()
    return record.apart_from_system() if plan.compound else record


def _lookup(folder: RunFolder, facts: RunFacts) -> CertificateLookup:
    try:
        return CertificateLookup.of_facts(facts.calibration)
    except (msgspec.ValidationError, LookupError, TypeError) as cause:
        raise RecordError(f"{folder.facts}: calibration is damaged: {cause}") from cause


def _replay(trace: TraceFacts) -> Replay:
    """A run that died knows of nothing unprepared."""
    return Replay(
        trace.rows,
        trace.rate,
        trace.shares_prefixes,
        trace.unprepared,
        trace.unprepared_ms,
        None if trace.prefix_hits is None else trace.prefix_hits.exact,
    )


def recover(
    folder: RunFolder, tokenizer: str | None = None, judging: Callable[[], list[str]] | None = None
) -> RunResult:
    """Seal the journal of a run whose process was killed, and evaluate it. The folder may be a stranger's, and nothing that it
    names is contacted or opened: `tokenizer` is one that the user names (tokenizers.counter), and `judging` judges answers by
    what he names (task_judging.judge_again). Raises RecordError, also while the run is going: sealing may remove the journal;
    and PlanError for a tokenizer that is not the run's."""
    plan, why, notes = saved.read(folder.plan), None, list[str]()
    if fetched.known_hosts(folder):
        with hold.alone(folder.journal):
            facts = read_facts(folder)
            write_facts(folder, replace(facts, hosts=fetched.hosts_of(folder, facts.hosts)))
            notes = fetched.merge_left(folder)
    if any(folder.journal.glob("worker-*.arrows")):
        with hold.alone(folder.journal):
            counts, why = tokenizers.counter(plan.tokenizer, read_facts(folder).tokenizer, tokenizer)
            notes += _seal(folder, counts, keep_journal=why is not None, recovers=True)
    elif plan.instrument.keep_text == "all" or not folder.record.is_file():
        # Sealing nothing would replace a record and its reports.
        raise RecordError(f"{folder.journal}: holds no requests, so there is nothing to recover")
    settle(folder)
    notes += not_judged(plan, folder) if judging is None else judging()
    result = evaluate(folder)
    result.notes.extend(notes)
    if why is not None:
        again = f"`inferometer recover {folder.path} --tokenizer FILE` counts them"
        result.notes.append(f"the tokens of the answers are not counted: {why}; {again}")
    return result
