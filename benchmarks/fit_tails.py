"""How near a fitted engine's tails come to those of the engine that was measured.

The engine is the reference engine in virtual time, without HTTP, with costs as of a small model on a CPU and with noise of a
kind. Its tokens are read back into iterations and fitted (simulation/fit.py); the fitted engine then serves the same requests
with other chances. So does the true engine once more: what that differs by, no fit can know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure import Figure, Note
from benchmarks.loads import Bench
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.noise import PROBABILITIES, spelled
from inferometer.server.engine.settings import Settings, changed, words
from inferometer.simulation.fit import fit
from inferometer.simulation.iterations import Limits, Streams, reconstruct

MS = 1_000_000
REQUESTS, GAP_S, RUNS = 300, 0.5, 12
PROMPTS, OUTPUTS = (16, 500), (8, 80)
ENGINE = Settings(
    step_base_ns=12 * MS,
    step_per_request_ns=0.3 * MS,
    prefill_base_ns=3 * MS,
    prefill_per_token_ns=0.2 * MS,
    jitter=0.03,
)
UNKNOWN = Settings(
    step_base_ns=1,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=0,
    jitter=0,
    max_batch=ENGINE.max_batch,
)
PERCENTILES = (50, 90, 99)
NAMES = [f"{metric} P{p}" for metric in ("TTFT", "ITL", "latency") for p in PERCENTILES]
Floats = NDArray[np.float64]


@dataclass(eq=False)
class Asked:
    """A request, and when its tokens came (ns)."""

    prompt: int
    output: int
    at: int
    tokens: list[int]


def noises() -> dict[str, str]:
    """Noise by its kind: none; skewed, with a long tail; and a narrow one with rare stalls."""
    chance = np.random.default_rng(1)
    skewed = (chance.lognormal(0, 1, 1_000_000) - 1) * MS
    stalled = chance.normal(0, 2, 1_000_000) + np.where(
        chance.random(1_000_000) < 0.05, chance.lognormal(2.5, 0.7, 1_000_000), 0
    )
    at = [*PROBABILITIES[:-1], 0.9999]
    return {
        "no noise": "",
        "skewed noise": spelled(tuple(np.quantile(skewed, at))),
        "stalls": spelled(tuple(np.quantile(stalled * MS, at))),
    }


def load(seed: int) -> list[Asked]:
    """Poisson arrivals with uniform lengths."""
    chance = np.random.default_rng(seed)
    at = np.cumsum(chance.exponential(GAP_S * 1e9, REQUESTS)).astype(np.int64)
    lengths = zip(chance.integers(*PROMPTS, REQUESTS), chance.integers(*OUTPUTS, REQUESTS), at, strict=True)
    return [Asked(int(prompt), int(output), int(when), []) for prompt, output, when in lengths]


def served(settings: Settings, asked: Sequence[Asked], seed: int) -> list[Asked]:
    """The same requests, served by an engine."""
    found = [Asked(one.prompt, one.output, one.at, []) for one in asked]
    engine: Engine[Asked] = Engine(settings, seed)

    def until(now: int | None) -> None:
        while (due := engine.next_due()) is not None and (now is None or due <= now):
            emission = engine.advance(due)
            for one, _, count, _ in emission.tokens if emission is not None else ():
                one.tokens += [due] * count

    for one in found:
        until(one.at)
        engine.submit(one, one.prompt, one.output, one.at)
    until(None)
    return found


def streams(asked: Sequence[Asked]) -> Streams:
    """What a record of them would say."""
    return Streams(
        submit=np.array([one.at for one in asked]),
        prompt=np.array([one.prompt for one in asked]),
        cached=np.zeros(len(asked), np.int64),
        measured=np.ones(len(asked), np.bool_),
        offsets=np.cumsum([0, *(len(one.tokens) for one in asked)]),
        token_ns=np.array([at for one in asked for at in one.tokens]),
    )


def figures(asked: Sequence[Asked]) -> Floats:
    """NAMES in ms."""
    ttft = [one.tokens[0] - one.at for one in asked]
    latency = [one.tokens[-1] - one.at for one in asked]
    gaps = np.concatenate([np.diff(one.tokens) for one in asked])
    return np.concatenate([np.percentile(values, PERCENTILES) for values in (ttft, gaps, latency)]) / MS


def tails(bench: Bench) -> Iterator[Figure | Note]:
    """Medians over the runs of the difference to the measured engine, %."""
    limits = Limits(ENGINE.token_budget, ENGINE.chunked_prefill, ENGINE.max_batch)
    for kind, noise in noises().items():
        truth = dataclasses.replace(ENGINE, noise=noise)
        off: dict[str, list[Floats]] = {"fitted": [], "true, once more": []}
        for seed in range(2 if bench.quick else RUNS):
            asked = load(seed)
            measured = served(truth, asked, 2 * seed)
            found = fit(reconstruct(streams(measured), limits), UNKNOWN, (), seed)
            fitted = changed(UNKNOWN, words(found.values()))
            for name, engine in zip(off, (fitted, truth), strict=True):
                off[name].append(figures(served(engine, asked, 2 * seed + 1)) / figures(measured) - 1)
        for name, each in off.items():
            for label, middle, size in zip(
                NAMES, np.median(each, axis=0), np.abs(each).mean(axis=0), strict=True
            ):
                yield Figure(f"{label} median", 100 * middle, "%", None, 1, "fit-tails", f"{kind}, {name}")
                yield Figure(f"{label} mean size", 100 * size, "%", None, 1, "fit-tails", f"{kind}, {name}")
