"""From an engine's sealed record to its part of the benchmark's document."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inferometer.addresses import is_loopback
from inferometer.documents.agentic import Agentic
from inferometer.documents.bench import (
    Bench,
    Client,
    Ended,
    EngineMetadata,
    EngineResult,
    PromptResult,
    Remark,
    Sample,
    Spread,
)
from inferometer.documents.summary import Summary
from inferometer.engines.adapters.adapter import EngineFacts
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.judge.bench import CACHED_SHARE, figure, verdict
from inferometer.measure.bench_metrics import monotone_fall, pooled
from inferometer.measure.energy_figure import EnergyFigure
from inferometer.measure.generation_checks import (
    clocks_apart,
    early_text_ms,
    faster_later,
    held_back_ms,
    late_end_ms,
    repeated,
    sooner_later,
)
from inferometer.measure.generations import Generation, generations, of_prompt
from inferometer.studies.bench_engine import EngineProcesses, OneToken
from inferometer.studies.bench_gate import Machine
from inferometer.telemetry.machines.meters import names_of
from inferometer.telemetry.power.readings import Scope
from inferometer.workload.bench_prompts import BenchPrompt

EXIT_CODES = {"VALID": 0, "INVALID": 3, "INCONCLUSIVE": 4}
FULL_SPEED_PERCENT = 100.0
FILL_MISS, TEMPLATE_TOKENS = 0.1, 64
"""A context fill is of another size than planned beyond this share and what a chat template puts around it."""

Limits = Sequence[tuple[int, float]]
"""Instants (ns, monotonic) and the processor's speed limit then, in percent."""


def exit_code(document: Bench | Agentic) -> int:
    """130 interrupted, 5 an engine failed, 3 a gate refused, else by the status."""
    if document.interrupted:
        return 130
    ended = {one.ended for one in document.engines}
    if "failed" in ended:
        return 5
    return 3 if "refused" in ended else EXIT_CODES[document.status]


@dataclass(frozen=True, slots=True)
class Turn:
    """What an engine's turn came to. `folder`: of its run; None: there is none. `fast_is_odd`: see measure/generations.py;
    `one_token`: None: not asked for, or not answered; `meters`: see Prepared."""

    label: str
    name: str
    url: str | None
    model: str | None
    prompts: tuple[BenchPrompt, ...]
    runs: int
    folder: Path | None
    summary: Summary | None
    facts: EngineFacts | None
    process: EngineProcesses | None
    limits: Limits
    remarks: tuple[Remark, ...]
    fast_is_odd: bool
    one_token: OneToken | None = None
    interrupted: bool = False
    refused: bool = False
    meters: tuple[str, ...] = ()


def engine_result(turn: Turn, machine: Machine) -> EngineResult:
    """The document of one engine. Raises RecordError."""
    found = generations_of(turn)
    speeds = {one.name: _values(found, at, "speed") for at, one in enumerate(turn.prompts)}
    waits = {one.name: _values(found, at, "ttft") for at, one in enumerate(turn.prompts)}
    planned = len(turn.prompts) * turn.runs
    answered = sum(one.outcome == "ok" for one in found)
    ended = _ended(turn, whole=planned > 0 and answered == planned)
    remarks = (*turn.remarks, *_observed(turn, found, planned))
    against = [one.code for one in remarks]
    status, reasons = verdict(turn.summary, speeds, against, finished=ended == "measured")
    counted = bool(any(speeds.values()))
    speed = figure(speeds) if counted else None
    watts = metadata_of(turn, machine).power_watts
    return EngineResult(
        label=turn.label,
        url=turn.url,
        ended=ended,
        metadata=metadata_of(turn, machine),
        status=status if turn.summary is not None else None,
        reasons=reasons,
        runs=() if turn.folder is None else (f"runs/{turn.folder.name}",),
        tok_per_sec=speed,
        ttft_client_ms=figure(waits) if counted else None,
        tok_per_sec_per_watt=None if speed is None else per_watt(speed.median, watts),
        spread=_spread(speeds) if counted else None,
        prompts=tuple(_prompt(one, at, found) for at, one in enumerate(turn.prompts)) if found else (),
        samples=tuple(_sample(one, turn) for one in found),
        remarks=remarks,
    )


def _ended(turn: Turn, *, whole: bool) -> Ended:
    if turn.refused:
        return "refused"
    if whole:
        return "measured"
    return "interrupted" if turn.interrupted else "failed"


def generations_of(turn: Turn) -> tuple[Generation, ...]:
    """The measured requests of its record. Raises RecordError."""
    if turn.folder is None:
        return ()
    path = RunFolder.open(turn.folder).record
    return generations(read_table(path, RECORD), len(turn.prompts), fast_is_odd=turn.fast_is_odd)


def _values(found: Sequence[Generation], prompt: int, name: str) -> list[float]:
    counting = of_prompt(found, prompt)
    if name == "speed":
        return [one.speed for one in counting if one.speed is not None]
    return [one.client.ttft_ms for one in counting if one.client is not None]


def _spread(speeds: dict[str, list[float]]) -> Spread:
    whole = pooled(speeds)
    return Spread(whole.bessel, whole.population, whole.cv, whole.stability)


def _prompt(prompt: BenchPrompt, at: int, found: Sequence[Generation]) -> PromptResult:
    mine = [one for one in found if one.prompt == at]
    counted = [one.prompt_tokens for one in mine if one.prompt_tokens is not None]
    shares = [
        one.cached_tokens / one.prompt_tokens
        for one in mine
        if one.cached_tokens is not None and one.prompt_tokens
    ]
    speeds = _values(found, at, "speed")
    return PromptResult(
        prompt=prompt.name,
        max_tokens=prompt.max_tokens,
        sized_to=prompt.tokens,
        sized_tokens=prompt.counted,
        prompt_tokens=max(counted) if counted else None,
        cached=statistics.fmean(shares) if shares else None,
        tok_per_sec=figure({prompt.name: speeds}),
        ttft_client_ms=figure({prompt.name: _values(found, at, "ttft")}),
        drift=monotone_fall(speeds),
    )


def _sample(one: Generation, turn: Turn) -> Sample:
    by, client = one.by, one.client
    return Sample(
        prompt=turn.prompts[one.prompt].name,
        run=one.run,
        row=one.row,
        tok_per_sec=one.speed,
        tok_per_sec_source=None if by is None else by.source,
        ttft_ms=None if by is None else by.ttft_ms,
        ttft_source=None if by is None else by.source,
        ttft_client_ms=None if client is None else client.ttft_ms,
        total_duration_ms=None if by is None else by.total_ms,
        total_client_ms=None if client is None else client.total_ms,
        generation_duration_ms=None if by is None else by.generation_ms,
        load_ms=None if by is None else by.load_ms,
        tokens_generated=one.tokens,
        tokens_source=None if one.tokens is None else "server" if one.tokens_counted else "estimate",
        prompt_tokens=one.prompt_tokens,
        cached_tokens=one.cached_tokens,
        finish_reason=one.finish_reason,
        outcome=one.outcome,
        discarded=one.discarded,
        warnings=one.warnings,
        thermal_speed_limit=_limit(one, turn.limits),
    )


def _limit(one: Generation, limits: Limits) -> float | None:
    """The lowest limit read while it ran, or the last one before."""
    begun = one.ended_ns if one.submitted_ns is None else one.submitted_ns
    during = [percent for at, percent in limits if begun <= at <= one.ended_ns]
    before = [percent for at, percent in limits if at < begun]
    return min(during) if during else before[-1] if before else None


def metadata_of(turn: Turn, machine: Machine) -> EngineMetadata:
    """What is stored with its result."""
    facts, thermal = turn.facts, machine.thermal()
    here = turn.url is None or is_loopback(
        turn.url
    )  # of another machine, this one's chip and heat say nothing
    model = facts.model(turn.model) if facts is not None and turn.model is not None else None
    percents = [percent for _, percent in turn.limits]
    memory, by = _memory(turn, None if model is None else model.memory_bytes)
    runner = None if facts is None else facts.runner
    spent = power_of(_energies(turn))
    return EngineMetadata(
        engine=turn.name if facts is None else facts.engine,
        engine_version=None if facts is None else facts.version,
        runner=runner or (None if turn.process is None else turn.process.runner),
        model=turn.model,
        model_format=None if model is None else model.format,
        model_quantization=None if model is None else model.quantization,
        memory_bytes=memory,
        memory_source=by,
        hw_chip=machine.chip() if here else None,
        os_version=machine.os_version() if here else None,
        thermal_level=thermal.level if here else None,
        thermal_speed_limit=None if not here else min(percents) if percents else thermal.speed_limit_percent,
        power_watts=None if spent is None else spent.mean_w,
        power_source=None if spent is None else f"{spent.meter}, {spent.scope}: {', '.join(spent.devices)}",
    )


def _energies(turn: Turn) -> list[EnergyFigure]:
    """Those of this machine's meters that can be the engine's: of its own ones alone, if some were named so."""
    if turn.summary is None:
        return []
    found = [one for seen in turn.summary.machines if seen.own for one in seen.energy]
    own = _own_meters(turn)
    return found if own is None else [one for one in found if one.meter in own]


def _own_meters(turn: Turn) -> frozenset[str] | None:
    """The names that the readings of its own meters have; None: no meter was named so, and any may be its own."""
    if turn.summary is None or not turn.meters:
        return None
    return names_of(turn.meters, turn.summary.plan.host_telemetry.power)


def power_of(energies: Sequence[EnergyFigure]) -> EnergyFigure | None:
    """What an engine's power is told by (M6): a valid figure of the meters of its run, of accelerators if there is one, else of
    processor packages, else of what is behind a plug. None also where several meters have one of that scope: nothing says which
    of them the engine's is, or whether it takes the sum."""
    closest = _closest(energies)
    same = len(closest) == 1 or {one.meter for one in closest} <= CROSS_CHECKED
    return closest[0] if closest and same else None


def _closest(energies: Sequence[EnergyFigure]) -> list[EnergyFigure]:
    """The valid figures of the scope that is closest to an engine."""
    valid = [one for one in energies if one.valid and one.mean_w]
    return next((found for scope in SCOPES if (found := [one for one in valid if one.scope == scope])), [])


def per_watt(speed: float | None, watts: float | None) -> float | None:
    """Tokens per second per watt (M7), which are tokens per joule."""
    return None if speed is None or not watts else speed / watts


def client_of(machine: Machine) -> Client:
    """The machine that measures."""
    return Client(machine.chip(), machine.os_version())


def _memory(turn: Turn, own: int | None) -> tuple[int | None, Literal["engine", "estimate"] | None]:
    """By the engine's own word, else the memory of its processes."""
    if own is not None:
        return own, "engine"
    shown = None if turn.process is None else turn.process.memory_bytes
    return shown, None if shown is None else "estimate"


def _missed(wanted: int, counted: int) -> bool:
    """Whether a context fill has another size by the engine's count than it was made for, the chat template aside."""
    return not (1 - FILL_MISS) * wanted <= counted <= (1 + FILL_MISS) * wanted + TEMPLATE_TOKENS


SCOPES: tuple[Scope, ...] = ("accelerator", "package", "machine")
"""Scopes that can stand for an engine, the closest to it first."""
CROSS_CHECKED = frozenset({"ioreport", "powermetrics"})
"""Two ways to read the same counters, of which either will do."""


def _observed(turn: Turn, found: Sequence[Generation], planned: int) -> list[Remark]:
    """What the generations themselves give reason to say."""
    remarks: list[Remark] = []
    failures = [one for one in found if one.discarded == "failed"]
    if failures or (found and len(found) < planned):
        outcomes = sorted({one.outcome for one in failures})
        remarks.append(
            Remark(
                "generations_failed",
                {"failed": len(failures), "sent": len(found), "planned": planned, "outcomes": ", ".join(outcomes) or None},
            )
        )  # fmt: skip
    for code in ("not_streamed", "no_tokens", "too_short"):
        if many := sum(one.discarded == code for one in found):
            remarks.append(Remark("discarded", {"reason": code, "number": many, "of": len(found)}))
    for code in ("tokens_estimated", "durations_differ", "ttft_high", "speed_high"):
        if many := sum(code in one.warnings for one in found):
            remarks.append(Remark(code, {"number": many, "of": len(found)}))
    remarks += [*_against_new(turn, found), *_unread_power(turn)]
    for at, prompt in enumerate(turn.prompts):
        remarks += _contradictions(prompt.name, of_prompt(found, at))
        fall = monotone_fall(_values(found, at, "speed"))
        if fall is not None:
            remarks.append(Remark("drift", {"prompt": prompt.name, "share": fall, "runs": turn.runs}))
        counted = [one.prompt_tokens for one in found if one.prompt == at and one.prompt_tokens is not None]
        if prompt.tokens is not None and counted and _missed(prompt.tokens, max(counted)):
            size: dict[str, str | int] = {"prompt": prompt.name, "wanted": prompt.tokens}
            remarks.append(Remark("fill_missed", {**size, "counted": max(counted)}))
    percents = [percent for _, percent in turn.limits]
    if percents and min(percents) < FULL_SPEED_PERCENT:
        here = turn.url is None or is_loopback(turn.url)
        remarks.append(Remark("throttled" if here else "client_throttled", {"percent": min(percents)}))
    cached = [
        one.prompt
        for one in found
        if one.cached_tokens and one.prompt_tokens and one.cached_tokens >= CACHED_SHARE * one.prompt_tokens
    ]
    if cached:
        remarks.append(Remark("prompts_cached", {"number": len(cached), "of": len(found)}))
    sooner = [prompt.name for at, prompt in enumerate(turn.prompts) if sooner_later(of_prompt(found, at))]
    if sooner and not cached:
        remarks.append(Remark("sooner_later", {"prompts": ", ".join(sooner)}))
    return remarks


def _unread_power(turn: Turn) -> Iterable[Remark]:
    """Whether power was asked for and is not known, and why, as far as a meter says."""
    if turn.summary is None or not turn.summary.plan.host_telemetry.power:
        return
    energies = _energies(turn)
    if power_of(energies) is not None:
        return
    if closest := _closest(energies):
        yield Remark("power_of_several", {"meters": ", ".join(one.meter for one in closest)})
        return
    reasons = {f"{one.meter}: {one.reason}" for one in energies if one.reason is not None}
    own = _own_meters(turn)
    failed = {
        one.words
        for seen in turn.summary.machines
        if seen.own
        for one in seen.failed_meters
        if own is None or one.meter in own
    }
    yield Remark("power_unread", {"why": "; ".join(sorted(reasons | failed)) or "no reading in its run"})


def _against_new(turn: Turn, found: Sequence[Generation]) -> Iterable[Remark]:
    """What answers to a new text show: whether the first text came long after it could have, or answers were kept."""
    if (alone := turn.one_token) is None:
        return
    mine = next((of_prompt(found, at) for at, one in enumerate(turn.prompts) if one.name == alone.prompt), ())
    if (ttft := held_back_ms(mine, alone.ms)) is not None:
        yield Remark("held_back", {"prompt": alone.prompt, "ttft": ttft, "one_token": alone.ms})
    elif (new := alone.anew) is not None and (
        times := repeated(mine, new.tokens - 1, new.ms - alone.ms)
    ) is not None:
        yield Remark("answers_repeated", {"prompt": alone.prompt, "times": times})


def _contradictions(prompt: str, mine: Sequence[Generation]) -> Iterable[Remark]:
    """What the generations of one prompt show against the figures that follow from them."""
    if (apart := clocks_apart(mine)) is not None:
        times = {"own": apart.own_ms, "client": apart.client_ms}
        yield Remark("clocks_differ", {"prompt": prompt, "what": apart.what, **times})
    if (pause := early_text_ms(mine)) is not None:
        yield Remark("early_text", {"prompt": prompt, "pause": pause})
    if (wait := late_end_ms(mine)) is not None:
        yield Remark("late_end", {"prompt": prompt, "wait": wait})
    if (faster := faster_later(mine)) is not None:
        yield Remark("faster_later", {"prompt": prompt, "times": faster})
