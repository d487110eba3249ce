"""Benchmarks whose samples are planted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inferometer.documents.bench import (
    SCHEMA,
    Bench,
    BenchProtocol,
    EngineMetadata,
    EngineResult,
    PromptResult,
    Remark,
    Sample,
    Spread,
)
from inferometer.documents.verdict import RunStatus
from inferometer.judge.bench import figure, overall, ranking
from inferometer.measure.bench_metrics import monotone_fall, pooled

Planted = Mapping[str, Sequence[tuple[float, float]]]
"""(tokens/s, client TTFT in ms) of each run, by prompt."""

FILLS = {"context-4k": 4000, "context-16k": 16000, "context-64k": 64000}


def sample(prompt: str, run: int, speed: float, wait: float) -> Sample:
    """A generation by the client's clock."""
    return Sample(
        prompt=prompt, run=run, row=0, tok_per_sec=speed, tok_per_sec_source="client", ttft_ms=wait, ttft_source="client",
        ttft_client_ms=wait, total_duration_ms=wait + 1e6 / speed, total_client_ms=wait + 1e6 / speed,
        generation_duration_ms=1e6 / speed, load_ms=None, tokens_generated=1000, tokens_source="server", prompt_tokens=40,
        cached_tokens=0, finish_reason="stop", outcome="ok",
    )  # fmt: skip


def engine(
    label: str,
    planted: Planted,
    *remarks: Remark,
    model: str = "llama3.2:3b",
    failing: RunStatus | None = None,
) -> EngineResult:
    """An engine with these samples; without any, one that failed. `failing`: its result, by a check of its run."""
    speeds = {prompt: [speed for speed, _ in runs] for prompt, runs in planted.items()}
    waits = {prompt: [wait for _, wait in runs] for prompt, runs in planted.items()}
    whole = pooled(speeds) if speeds else None
    sure = bool(speeds) and all(len(one) > 1 for one in speeds.values())
    return EngineResult(
        label=label, url="http://127.0.0.1:1", ended="measured" if planted else "failed",
        metadata=EngineMetadata(
            engine=label, engine_version="0.11.2", runner=None, model=model, model_format="gguf",
            model_quantization="Q4_K_M", memory_bytes=3 << 30, memory_source="engine", hw_chip="Planted M1",
            os_version="PlantedOS 15.1", thermal_level="nominal", thermal_speed_limit=100.0, power_watts=None,
            power_source=None,
        ),
        status=failing or ("VALID" if sure else "INCONCLUSIVE") if planted else None,
        reasons=("token_counts",) if failing else () if sure else ("no_interval",) if planted else (),
        runs=(f"runs/{label}",),
        tok_per_sec=figure(speeds) if planted else None,
        ttft_client_ms=figure(waits) if planted else None,
        tok_per_sec_per_watt=None,
        spread=None if whole is None else Spread(whole.bessel, whole.population, whole.cv, whole.stability),
        prompts=tuple(
            PromptResult(
                prompt=prompt, max_tokens=512, sized_to=FILLS.get(prompt), prompt_tokens=FILLS.get(prompt, 40), cached=0.0,
                tok_per_sec=figure({prompt: speeds[prompt]}), ttft_client_ms=figure({prompt: waits[prompt]}),
                drift=monotone_fall(speeds[prompt]),
            )
            for prompt in planted
        ),
        samples=tuple(
            sample(prompt, run, *one) for prompt, runs in planted.items() for run, one in enumerate(runs, 1)
        ),
        remarks=remarks,
    )  # fmt: skip


def bench(*engines: EngineResult, runs: int = 3, interrupted: bool = False) -> Bench:
    """A benchmark of them."""
    prompts = tuple(dict.fromkeys(prompt.prompt for one in engines for prompt in one.prompts))
    return Bench(
        schema=SCHEMA,
        id="20260801T101112Z-bench",
        version="1.0",
        started="2026-08-01T10:11:12Z",
        ended="2026-08-01T10:31:12Z",
        interrupted=interrupted,
        protocol=BenchProtocol(
            runs, prompts, None, 0.0, "one generation", 5.0, ("asiai Benchmark Methodology",)
        ),
        status=overall(engines),
        engines=engines,
        rankings=(ranking("tok_per_sec", engines), ranking("ttft_client_ms", engines)),
        remarks=(),
    )


def around(speed: float, wait: float, runs: int = 3) -> list[tuple[float, float]]:
    """Runs that vary by half a percent."""
    return [(speed * (1 + 0.005 * (at % 3 - 1)), wait * (1 + 0.005 * (at % 3 - 1))) for at in range(runs)]


def usual() -> Bench:
    """Two engines that tie, one at half their speed that slows down, and one that failed."""
    names = ("code", "tool-call", "context-4k", "context-16k", "context-64k")
    fast = {name: around(66.0 - at, 51.0 + 300 * at * at) for at, name in enumerate(names)}
    same = {name: around(65.9 - at, 53.0 + 310 * at * at) for at, name in enumerate(names)}
    slow = {name: [(33.0, 90.0), (31.0, 92.0), (29.0, 93.0)] for name in names[:2]}
    return bench(
        engine("ollama", fast),
        engine("lmstudio", same),
        engine("llamacpp", slow, Remark("drift", {"prompt": "code", "runs": 3, "share": 0.12})),
        engine("vllm", {}, Remark("unreachable", {"why": "connection refused"})),
    )
