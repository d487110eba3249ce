"""From a measured run to an engine like the one it measured: read the record, fit, and try the fit on the run's own plan.

    journal, measure -> simulation (iterations, fit) -> simulator -> comparison -> fit.json

What is estimated, and how, is in simulation/iterations.py and simulation/fit.py; here is what belongs around it: whether the
run can tell anything, with which reservations, and how far the simulated run is from the measured one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from inferometer import __version__, whole_file
from inferometer.documents.fit import (
    SCHEMA,
    ComparedFigure,
    FitDocument,
    FittedBatch,
    FittedEngine,
    FittedParameter,
    FittedRun,
    HeldOut,
    IterationAccount,
    NoiseQuantile,
    Reservation,
    ReservationCode,
    SimulatedRun,
)
from inferometer.documents.part import from_json, to_json
from inferometer.documents.run_facts import RunFacts
from inferometer.documents.summary import SCHEMA as SUMMARY_SCHEMA
from inferometer.documents.summary import Summary
from inferometer.errors import PlanError, Problem, RecordError, check_machine
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import PULSE, EventClass
from inferometer.journal.seal import read_table, record_parts
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import COLUMNS, Record
from inferometer.plan import saved
from inferometer.plan.reach import refuse
from inferometer.plan.rerun import Simulated
from inferometer.plan.schema import Plan
from inferometer.run.evaluate import RunResult
from inferometer.run.facts import check_of_one_run, read_facts
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.server.engine.noise import PROBABILITIES
from inferometer.server.engine.settings import FIELDS, Settings, words
from inferometer.simulation.client import PERFECT, ClientModel
from inferometer.simulation.engine import choose
from inferometer.simulation.fit import COSTS, Fit, Parameter, TooFewError, fit
from inferometer.simulation.iterations import Iterations, Limits, Streams, batch_limit, reconstruct

FILE = "fit.json"
KEYS = {field: key for key, field in FIELDS.items()}
"""By the field of `Settings`: what `--set` calls it."""

REGULAR_LEAST = 0.5
"""With fewer of its tokens an iteration apart, a server is not one that batches by iteration."""
REGULAR_GOOD = 0.9
TOKENS_PER_EVENT_MOST = 1.1
STALLED_MOST = 0.05
FAILED_MOST = OVER_MOST = CACHED_MOST = 0.01

METRICS = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
PERCENTILES: tuple[Literal["p50", "p90", "p99"], ...] = ("p50", "p90", "p99")
RATES = ("output_tok_s", "request_s")


@dataclass(frozen=True, slots=True)
class Fitted:
    """The simulated run, in whose folder fit.json lies, and what that holds."""

    finding: RunResult
    document: FitDocument


def fit_run(
    run: Path,
    preset: str | None,
    given: Sequence[str],
    out: Path,
    ui: Ui,
    client: ClientModel = PERFECT,
    permit: Callable[[Simulated], None] = refuse,
) -> Fitted:
    """Fit an engine to the run in folder `run`, and simulate its plan with it. Raises PlanError, RecordError.

    `preset` and `given` (`key=value`) say what the run does not: limits and policies; a cost among `given` is kept as it is.
    Costs that the run cannot tell are those of the preset, and 0 where none is named. `client`: of the simulated run. `permit`
    raises PlanError if the plan, which may be a stranger's, reaches more than it may.
    """
    folder = RunFolder.open(run)
    facts, plan = read_facts(folder), saved.read(folder.plan)
    check_of_one_run(folder, plan, facts)
    chosen = choose(preset, given)
    permit(Simulated(plan, chosen.preset, dataclasses.asdict(chosen.settings), dataclasses.asdict(client)))
    if not plan.target.stream:
        raise _unfit("its answers were not streamed, so nothing tells when their tokens came")
    fields = {FIELDS[word.partition("=")[0]] for word in given}
    record = Record.from_tables(
        record_parts(folder.record, COLUMNS),
        read_table(folder.pulse, PULSE),
        interrupted=facts.interrupted,
        timestamp_source=facts.timestamp_source,
        classes=facts.classes,
    )
    ui.note(f"fitting {folder.path.name}")
    settings = chosen.settings if preset is not None else _without_costs(chosen.settings, fields)
    iterations = _iterations(record, settings, "max_batch" in fields)
    _refuse(record, iterations, settings)
    try:
        found = fit(iterations, settings, fields, plan.workload.seed)
    except TooFewError as cause:
        raise _unfit(f"{cause}: measure for longer") from cause
    # Through the words that are told, so that who types them gets this very engine.
    all_words = (*given, *words(found.values()))
    finding = simulate(plan, choose(preset, all_words), out, ui, _lengths(record), client)
    document = FitDocument(
        schema=SCHEMA,
        version=__version__,
        run=FittedRun(facts.id, facts.plan_hash, facts.model, bool(facts.simulated)),
        simulation=SimulatedRun(finding.folder.name),
        engine=FittedEngine(chosen.preset, tuple(all_words)),
        parameters=tuple(_parameter(one) for one in found.parameters),
        batch=FittedBatch(
            max_batch=found.max_batch if found.max_batch is not None else settings.max_batch,
            seen=found.max_batch is not None,
            largest=found.largest_batch,
        ),
        iterations=IterationAccount(
            seen=len(iterations),
            used=found.used,
            stalled=found.stalled,
            within_ms=iterations.within_ns / 1e6,
            regular=iterations.regular,
        ),
        held_out=HeldOut(
            found.held_out.iterations, found.held_out.median, found.held_out.p90, found.held_out.r2
        ),
        comparison=_comparison(_measured(plan, record), finding.summary),
        reservations=_reservations(folder, facts, record, iterations, found, settings),
        noise=tuple(map(NoiseQuantile, PROBABILITIES, found.noise)) if found.noise else (),
    )
    whole_file.write(finding.folder / FILE, to_json(document).encode())
    return Fitted(finding, document)


def _unfit(why: str) -> PlanError:
    return PlanError([Problem("--fit", f"this run cannot be fitted: {why}")])


def _without_costs(settings: Settings, given: set[str]) -> Settings:
    """The toy that is the default says nothing of the engine that was measured."""
    nothing = {name: 1.0 if name == "step_base_ns" else 0.0 for name in COSTS if name not in given}
    return dataclasses.replace(settings, **nothing)  # type: ignore[arg-type]  # all are costs


def _iterations(record: Record, settings: Settings, batch_given: bool) -> Iterations:
    """With the batch that the run shows, if it does: who waited for a place was not being computed."""
    streams = streams_of(record)
    limits = Limits(settings.token_budget, settings.chunked_prefill, settings.max_batch)
    try:
        iterations = reconstruct(streams, limits)
    except ValueError as cause:
        raise _unfit(str(cause)) from cause
    seen = None if batch_given else batch_limit(iterations)
    return iterations if seen is None else reconstruct(streams, dataclasses.replace(limits, max_batch=seen))


def streams_of(record: Record) -> Streams:
    """When each token came, of all requests that got any, warm-up included.

    Events with text are tokens. Where the server counted more of them, so are those without text, for a token may be a part of
    a character; and where it counted more still, the event with the finish reason.
    """
    owner = np.repeat(np.arange(len(record)), np.diff(record.event_offsets))
    keep = record.event_is_text.copy()
    for silent in (EventClass.EMPTY, EventClass.FINISH):
        more = record.event_class == silent
        total = np.bincount(owner[keep | more], minlength=len(record))
        keep |= more & (total <= record.usage_output.values)[owner]
    counts = np.bincount(owner[keep], minlength=len(record))
    rows = counts > 0
    told = record.usage_input.values
    return Streams(
        submit=record.t_submit.values[rows],
        prompt=np.where(told > 0, told, record.input_tokens_sent)[rows],
        cached=np.minimum(record.usage_cached.values, np.maximum(told - 1, 0))[rows],
        measured=record.measured[rows],
        offsets=np.concatenate(([0], np.cumsum(counts[rows]))),
        token_ns=record.event_ns[keep],
    )


def _lengths(record: Record) -> dict[int, tuple[int, int]]:
    """By row of the schedule, the tokens of prompt and answer where the server counted them and the request succeeded."""
    told = (record.usage_input.values > 0) & (record.usage_output.values > 0) & record.ok
    counts = zip(
        record.usage_input.values[told].tolist(), record.usage_output.values[told].tolist(), strict=True
    )
    return dict(zip(record.index[told].tolist(), counts, strict=True))


def _tokens_per_event(record: Record) -> float:
    """Of the answers whose tokens the server counted; 1 where it counted none."""
    streams = streams_of(record)
    return (
        float(record.usage_output.values.sum() / len(streams.token_ns))
        if record.usage_output.valid.all()
        else 1.0
    )


def _refuse(record: Record, iterations: Iterations, settings: Settings) -> None:
    """Raises PlanError where the model's kind of engine cannot have made this record."""
    several = _tokens_per_event(record)
    if several > TOKENS_PER_EVENT_MOST and not settings.draft_tokens:
        raise _unfit(
            f"an event holds {several:.2f} tokens on average, and which came when is not known. If the engine drafts,"
            " say how: --set draft_tokens=3 --set acceptance=0.7"
        )
    if iterations.regular < REGULAR_LEAST:
        raise _unfit(
            f"only {iterations.regular:.0%} of its tokens came one iteration after the one before, so the server does not"
            " batch by iteration, or the client could not follow"
        )


def _parameter(one: Parameter) -> FittedParameter:
    return FittedParameter(
        key=KEYS[one.field],
        unit="ns" if one.field.endswith("_ns") else None,
        value=one.value,
        low=one.low,
        high=one.high,
        status=one.status,
        moves_with=None if one.moves_with is None else KEYS[one.moves_with],
    )


def _measured(plan: Plan, record: Record) -> Measurement:
    """The run's measurement in the tokens that the engine makes, not in a yardstick's."""
    native = plan.tokenizer.model_copy(update={"method": "native"})
    return measure(plan.model_copy(update={"tokenizer": native}), record)


def _comparison(measured: Measurement, simulated: Summary) -> tuple[ComparedFigure, ...]:
    """A row a figure: percentiles of the latencies, and rates of the whole run."""
    rows = []
    for metric in METRICS:
        measured_values, simulated_values = (
            getattr(measured.metrics, metric),
            getattr(simulated.metrics, metric),
        )
        rows += [
            _compared(metric, at, getattr(measured_values, at, None), getattr(simulated_values, at, None))
            for at in PERCENTILES
        ]
    measured_values, simulated_values = measured.throughput.whole_run, simulated.throughput.whole_run
    rows += [
        _compared(rate, None, getattr(measured_values, rate), getattr(simulated_values, rate))
        for rate in RATES
    ]
    return tuple(rows)


def _compared(
    metric: str,
    statistic: Literal["p50", "p90", "p99"] | None,
    measured: float | None,
    simulated: float | None,
) -> ComparedFigure:
    difference = simulated / measured - 1 if simulated is not None and measured else None
    return ComparedFigure(metric, statistic, measured, simulated, difference)


def _reservations(
    folder: RunFolder,
    facts: RunFacts,
    record: Record,
    iterations: Iterations,
    fitted: Fit,
    settings: Settings,
) -> tuple[Reservation, ...]:
    """What makes the fit, or the comparison, worth less than it looks."""
    sent, ok = record.measured, record.samples
    prompts = np.maximum(record.usage_input.values, record.input_tokens_sent)[ok].sum()
    cached = (
        record.usage_cached.values[ok].sum() / max(int(prompts), 1) if not settings.prefix_caching else 0.0
    )
    measures: tuple[tuple[ReservationCode, float, float], ...] = (
        ("irregular", 1 - iterations.regular, 1 - REGULAR_GOOD),
        ("stalled", fitted.stalled, STALLED_MOST),
        ("over_budget", float(iterations.over.mean()), OVER_MOST),
        ("failed", 1 - float(ok.sum()) / max(int(sent.sum()), 1), FAILED_MOST),
        ("cached", float(cached), CACHED_MOST),
    )
    found: list[Reservation] = []
    if facts.simulated:
        found.append(Reservation("simulated"))
    if facts.interrupted or facts.dead_workers:
        found.append(Reservation("incomplete"))
    if _verdict(folder) == "INVALID":
        found.append(Reservation("invalid"))
    found += [Reservation(code, value, limit) for code, value, limit in measures if value > limit]
    return tuple(found)


def _verdict(folder: RunFolder) -> str | None:
    """The run's own verdict; None: its summary is missing or of another version, and tells nothing."""
    path = folder.path / "summary.json"
    try:
        return from_json(whole_file.read(path), Summary, SUMMARY_SCHEMA, str(path)).verdict.status
    except (OSError, RecordError) as cause:
        check_machine(cause)
        return None
