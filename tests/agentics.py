"""Agentic benchmarks whose samples are planted."""

from __future__ import annotations

from benches import engine as benched

from inferometer.documents.agentic import (
    SCHEMA,
    Agentic,
    AgenticEngine,
    AgenticProtocol,
    AgenticSample,
    AgenticSizes,
    DuplicateProcesses,
    MemoryPressure,
    QualityGates,
    Restart,
)
from inferometer.documents.bench import Remark
from inferometer.judge.agentic import early_stop, is_short, prefix_cache_reuse, status
from inferometer.judge.agentic_evidence import contradictions
from inferometer.judge.procedure_verdict import worst

PHASES = {
    "cold": (6_440, 400), "warm": (6_440, 400), "prefix-test-1": (6_440, 400), "prefix-test-2": (6_440, 400),
    "prefix-test-3": (6_440, 400), "cold-prefix": (6_440, 400), "long-context": (56_400, 200), "long-prefix": (56_400, 200),
}  # fmt: skip
"""Prompt tokens and max_tokens of each phase."""
WARM = ("warm", "prefix-test-1", "prefix-test-2", "prefix-test-3", "long-prefix")


def engine(
    label: str,
    *,
    cold: float = 1_300.0,
    reuse: float = 0.98,
    repeats: int = 1,
    reported: bool = True,
    answer: int | None = 390,
    swapped: bool | None = False,
    model: str = "llama3.2:3b",
    remarks: tuple[Remark, ...] = (),
) -> AgenticEngine:
    """An engine that computes `1 - reuse` of a prompt which it has seen. `cold`: TTFT, ms, of 6,440 tokens; repetitions differ
    by a hundredth; `answer`: tokens of each answer, at most as many as were asked for."""
    samples = []
    for repeat in range(1, repeats + 1):
        for row, (phase, (tokens, most)) in enumerate(PHASES.items()):
            seen = reuse if phase in WARM else 0.0
            length = None if answer is None else min(answer, most)
            wait = cold * tokens / 6_440 * (1 - seen) * (1 + 0.01 * repeat) + 20
            cached = round(seen * tokens) if reported else None
            samples.append(
                AgenticSample(
                    phase=phase, repeat=repeat, row=row, max_tokens=most, outcome="ok", ttft_ms=wait, total_ms=wait + 4_000,
                    prompt_tokens=tokens, cached_tokens=cached, cached_share=None if cached is None else cached / tokens,
                    completion_tokens=length, finish_reason="length", short=is_short(length, most),
                )
            )  # fmt: skip
    found = prefix_cache_reuse(samples)
    gates = QualityGates(
        early_stop(samples),
        MemoryPressure(swapped, 9, 600_000_000 if swapped else 0, 0),
        DuplicateProcesses(False, ()),
    )
    known = (*remarks, *contradictions(samples, found))
    judged, reasons = status({}, found, gates, known, finished=True)
    return AgenticEngine(
        label=label, url="http://127.0.0.1:1", ended="measured", metadata=benched(label, {}, model=model).metadata,
        status=judged, reasons=reasons, restart=Restart(True, 12.5, None), runs=(f"runs/{label}",),
        sizes=AgenticSizes("5.3 characters a token", 6_400, 6_400, 40, 40, 50_000, 50_000),
        prefix_cache_reuse=found, quality_gates=gates, samples=tuple(samples), remarks=known,
    )  # fmt: skip


def failed(label: str) -> AgenticEngine:
    """One that could not be reached."""
    gates = QualityGates(early_stop([]), MemoryPressure(None, 0, None, None), DuplicateProcesses(None, ()))
    return AgenticEngine(
        label=label, url=None, ended="failed", metadata=benched(label, {}).metadata, status=None, reasons=("no_verdict",),
        restart=None, runs=(), sizes=None, prefix_cache_reuse=prefix_cache_reuse([]), quality_gates=gates, samples=(),
        remarks=(Remark("unreachable", {"why": "connection refused"}),),
    )  # fmt: skip


def agentic(*engines: AgenticEngine, repeats: int = 1, interrupted: bool = False) -> Agentic:
    """A benchmark of them."""
    return Agentic(
        schema=SCHEMA,
        id="20260801T101112Z-agentic",
        version="1.0",
        started="2026-08-01T10:11:12Z",
        ended="2026-08-01T10:31:12Z",
        interrupted=interrupted,
        protocol=AgenticProtocol(
            "a1b2c3",
            repeats,
            tuple(PHASES),
            0.0,
            "one generation",
            ("asiai Benchmark Methodology, Agentic Mode",),
        ),
        status=worst([one.status or "INCONCLUSIVE" for one in engines]),
        engines=engines,
        remarks=(),
    )


def usual() -> Agentic:
    """One that reuses by its own word, one by TTFT, one that does not and cuts answers off, and one that failed."""
    return agentic(
        engine("llamacpp", repeats=3),
        engine("lmstudio", repeats=3, reuse=0.7, reported=False),
        engine("vllm", repeats=3, reuse=0.0, answer=100, swapped=True),
        failed("ollama"),
        repeats=3,
    )
