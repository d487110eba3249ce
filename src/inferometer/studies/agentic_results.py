"""From an engine's sealed record to its part of the agentic benchmark's document."""

from __future__ import annotations

from dataclasses import dataclass

from inferometer.documents.agentic import (
    AgenticEngine,
    AgenticSample,
    AgenticSizes,
    DuplicateProcesses,
    MemoryPressure,
    QualityGates,
    Restart,
)
from inferometer.documents.bench import Ended, Remark
from inferometer.judge.agentic import early_stop, is_short, prefix_cache_reuse, status
from inferometer.judge.agentic_evidence import contradictions
from inferometer.judge.bench import of_the_run
from inferometer.measure.generation_checks import early_text_ms
from inferometer.measure.generations import Generation
from inferometer.studies.bench_gate import Machine
from inferometer.studies.bench_results import Turn, generations_of, metadata_of
from inferometer.telemetry.swap_watch import SwapAccount


@dataclass(frozen=True, slots=True)
class AgenticTurn:
    """What an engine's turn came to. `phases`: of one repetition; `several`: processes of the engine's instances, if there are
    two or more, None if nobody knows."""

    turn: Turn
    phases: int
    sizes: AgenticSizes | None
    restart: Restart | None
    swap: SwapAccount
    several: tuple[int, ...] | None


def agentic_result(whole: AgenticTurn, machine: Machine) -> AgenticEngine:
    """The document of one engine. Raises RecordError."""
    turn = whole.turn
    found = generations_of(turn)
    samples = tuple(_sample(one, whole) for one in found)
    pauses = {one.row: pause for one in found if (pause := early_text_ms([one])) is not None}
    ended = _ended(whole, samples)
    reuse = prefix_cache_reuse(samples)
    gates = QualityGates(
        early_stop(samples),
        MemoryPressure(
            whole.swap.alert is not None if whole.swap.readings else None,
            whole.swap.readings,
            whole.swap.grown_bytes,
            whole.swap.swapped_out_pages,
        ),
        DuplicateProcesses(None if whole.several is None else bool(whole.several), whole.several or ()),
    )
    remarks = [*turn.remarks, *contradictions(samples, reuse, pauses)]
    failed = [one for one in samples if one.outcome != "ok"]
    if failed:
        phases = ", ".join(dict.fromkeys(one.phase for one in failed))
        outcomes = ", ".join(sorted({one.outcome for one in failed}))
        facts = {"phases": phases, "outcomes": outcomes}
        remarks.append(Remark("phases_failed", facts))
    judged, reasons = status(of_the_run(turn.summary), reuse, gates, remarks, finished=ended == "measured")
    return AgenticEngine(
        label=turn.label,
        url=turn.url,
        ended=ended,
        metadata=metadata_of(turn, machine),
        status=judged if turn.summary is not None else None,
        reasons=reasons,
        restart=whole.restart,
        runs=() if turn.folder is None else (f"runs/{turn.folder.name}",),
        sizes=whole.sizes,
        prefix_cache_reuse=reuse,
        quality_gates=gates,
        samples=samples,
        remarks=tuple(remarks),
    )


def _ended(whole: AgenticTurn, samples: tuple[AgenticSample, ...]) -> Ended:
    turn = whole.turn
    if turn.refused:
        return "refused"
    if samples and len(samples) == len(turn.prompts) and all(one.outcome == "ok" for one in samples):
        return "measured"
    return "interrupted" if turn.interrupted else "failed"


def _sample(one: Generation, whole: AgenticTurn) -> AgenticSample:
    prompt = whole.turn.prompts[one.prompt]
    client = one.client
    counted = one.tokens if one.tokens_counted else None
    known = one.cached_tokens is not None and bool(one.prompt_tokens)
    return AgenticSample(
        phase=prompt.name,
        repeat=one.prompt // whole.phases + 1,
        row=one.row,
        max_tokens=prompt.max_tokens,
        outcome=one.outcome,
        ttft_ms=None if client is None else client.ttft_ms,
        total_ms=None if client is None else client.total_ms,
        prompt_tokens=one.prompt_tokens,
        cached_tokens=one.cached_tokens,
        cached_share=(one.cached_tokens or 0) / (one.prompt_tokens or 1) if known else None,
        completion_tokens=counted,
        finish_reason=one.finish_reason,
        short=is_short(counted, prompt.max_tokens),
    )
