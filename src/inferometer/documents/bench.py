"""The engine benchmark: engines measured one after the other by asiai's methodology and metric specification 0.4.0.

Definitions M1 to M8 and their sources are in docs/bench.md. A member is None where it was not measured; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus
from inferometer.measure.bench_metrics import Source, Stability
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/bench/1"
METRICS_VERSION: Final = "0.4.0"

TokensSource = Literal["server", "estimate"]
"""The engine's count, or a quarter of the characters (M4)."""
Ended = Literal["measured", "failed", "interrupted", "refused"]
"""How an engine's turn ended. failed: by the engine; refused: by the pre-flight gate."""


class Sample(Part, frozen=True):
    """One measured generation. `run` counts from 1 for each prompt; `row` is its place in the engine's record.

    `tok_per_sec`, `ttft_ms`, `total_duration_ms`, `generation_duration_ms` and `load_ms` are by one clock, that of
    `tok_per_sec_source` and `ttft_source`; `ttft_client_ms` and `total_client_ms` by the client's. `load_ms`: what TTFT and
    generation leave of an engine's own total: loading the model. `discarded`: the code of the reason why no statistic holds
    it; `warnings`: codes. `thermal_speed_limit`: the lowest observed meanwhile, in percent.
    """

    prompt: str
    run: int
    row: int | None
    tok_per_sec: float | None
    tok_per_sec_source: Source | None
    ttft_ms: float | None
    ttft_source: Source | None
    ttft_client_ms: float | None
    total_duration_ms: float | None
    total_client_ms: float | None
    generation_duration_ms: float | None
    load_ms: float | None
    tokens_generated: int | None
    tokens_source: TokensSource | None
    prompt_tokens: int | None
    cached_tokens: int | None
    finish_reason: str | None
    outcome: str
    discarded: str | None = None
    warnings: tuple[str, ...] = ()
    thermal_speed_limit: float | None = None


class Figure(Part, frozen=True):
    """A figure over the samples that count. `median`, `mean`: of all. `ci95`: Student's, of the mean over prompts, by the
    variance within prompts; None where a prompt has a single sample."""

    n: int
    median: float | None
    mean: float | None
    min: float | None
    max: float | None
    ci95: Interval | None


class PromptResult(Part, frozen=True):
    """One prompt's samples. `sized_to`: tokens that a context fill was made for; `sized_tokens`: what it came to, by the
    tokenizer that `sized_by` names, None if that is none; `prompt_tokens`: the engine's count, chat template included;
    `cached`: the share of those that it took from a cache. `drift`: the fall of tok/s from the first run to the last as a
    share, if it fell with every run."""

    prompt: str
    max_tokens: int
    sized_to: int | None
    prompt_tokens: int | None
    cached: float | None
    tok_per_sec: Figure
    ttft_client_ms: Figure
    drift: float | None
    sized_tokens: int | None = None


class Spread(Part, frozen=True):
    """M8: standard deviation of tok/s within prompts, pooled over the prompts with two samples or more. `bessel` divides by
    n - 1 (asiai's methodology; used), `population` by n (specification 0.4.0). `cv`: a share, of `bessel` and the mean."""

    bessel: float | None
    population: float | None
    cv: float | None
    stability: Stability | None


class EngineMetadata(Part, frozen=True):
    """What is stored with each engine's result (asiai's methodology, Metadata). `memory_source`: `engine`, or `estimate`
    for the memory of its process. Chip, system and heat are null of an engine on another machine."""

    engine: str
    engine_version: str | None
    runner: str | None
    model: str | None
    model_format: str | None
    model_quantization: str | None
    memory_bytes: int | None
    memory_source: Literal["engine", "estimate"] | None
    hw_chip: str | None
    os_version: str | None
    thermal_level: str | None
    thermal_speed_limit: float | None
    power_watts: float | None
    power_source: str | None
    metrics_version: Literal["0.4.0"] = METRICS_VERSION


class Client(Part, frozen=True):
    """The machine that measures: chip and system."""

    hw_chip: str | None
    os_version: str | None


class Remark(Part, frozen=True):
    """Something to say of an engine's turn: a code, and its facts by name; report/bench words it."""

    code: str
    facts: Mapping[str, str | float | int | None] = msgspec.field(default_factory=dict)


class AnswerCheck(Part, frozen=True):
    """The answers to one prompt. `sha256`: of each different text; `against`: the engine whose first answer they are compared
    with, or `reference file`; None: this engine's is the first. `exact`: how many of `n` are the same; `overlap`: the mean
    share of words in common; `early_stops` and `loops`: answers, by the rules of measure/answer_check.py."""

    prompt: str
    n: int
    sha256: tuple[str, ...]
    against: str | None
    exact: int | None
    overlap: float | None
    early_stops: int
    loops: int


class EngineResult(Part, frozen=True):
    """One engine with one model. `label`: its name in tables; `runs`: folders of its records, relative to the bench's; `status`
    and `reasons`: whether its figures can be relied on, and the codes of what speaks against it; `remarks`: warnings and what
    went wrong."""

    label: str
    url: str | None
    ended: Ended
    metadata: EngineMetadata
    status: RunStatus | None
    reasons: tuple[str, ...]
    runs: tuple[str, ...]
    tok_per_sec: Figure | None
    ttft_client_ms: Figure | None
    tok_per_sec_per_watt: float | None
    spread: Spread | None
    prompts: tuple[PromptResult, ...]
    samples: tuple[Sample, ...]
    remarks: tuple[Remark, ...]
    answers: tuple[AnswerCheck, ...] = ()
    """Empty unless they were to be checked."""


class Rank(Part, frozen=True):
    """A place by one figure; engines whose intervals overlap share it."""

    place: int
    labels: tuple[str, ...]
    tie: bool


class Ranking(Part, frozen=True):
    """The order of the engines by the median of one figure. `decided`: an order is claimed; false where no engine has an
    interval. It is over the `prompts` that all of them were measured with. `reasons`: for each pair of neighbours why one is
    ahead, or why not; then whose place is unsure, and why engines that were measured have none; `left_out`: all without a
    place, among them each whose result is INVALID."""

    figure: Literal["tok_per_sec", "ttft_client_ms"]
    prompts: tuple[str, ...]
    places: tuple[Rank, ...]
    decided: bool
    reasons: tuple[Remark, ...] = ()
    left_out: tuple[str, ...] = ()


class BenchProtocol(Part, frozen=True):
    """How the benchmark was carried out (asiai's methodology, Protocol). `sized_by`: whose tokens the context fills were sized
    in; `cooldown_s`: the least pause between two engines."""

    runs: int
    prompts: tuple[str, ...]
    sized_by: str | None
    temperature: float
    warm_up: str
    cooldown_s: float
    follows: tuple[str, ...]


class Bench(Part, frozen=True):
    """A whole benchmark, or what there is of it so far. `status`: VALID if every engine's is, INVALID if one's is, else
    INCONCLUSIVE. `interrupted`: it did not come to its end: a person ended it, or engines wait."""

    schema: Literal["inferometer/bench/1"]
    id: str
    version: str
    started: str
    ended: str
    interrupted: bool
    protocol: BenchProtocol
    status: RunStatus
    engines: tuple[EngineResult, ...]
    rankings: tuple[Ranking, ...]
    remarks: tuple[Remark, ...]
    client: Client | None = None
