"""The agentic benchmark: whether engines reuse the long system prompt that an agent's calls share (asiai's methodology,
Agentic Mode). The phases and the rules are in docs/agentic.md. A member is None where it was not measured; nothing is guessed.
"""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.bench import Client, Ended, EngineMetadata, Remark
from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/agentic/1"

Verdict = Literal["yes", "partial", "no"]
Signal = Literal["cached_tokens", "ttft"]
"""What a verdict is by: the engine's own count of cached tokens, or the client's TTFT."""


class AgenticSample(Part, frozen=True):
    """One phase of one repetition. `row`: its place in the engine's record; `cached_share`: cached of prompt tokens.

    `ttft_ms` and `total_ms` are by the client's clock. `completion_tokens`: the engine's count; `short`: fewer than half of
    `max_tokens`, None without a count.
    """

    phase: str
    repeat: int
    row: int
    max_tokens: int
    outcome: str
    ttft_ms: float | None
    total_ms: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    cached_share: float | None
    completion_tokens: int | None
    finish_reason: str | None
    short: bool | None


class Reuse(Part, frozen=True):
    """What one repetition gives. `cached_share`: mean over the prefix tests, None unless each of them reports it;
    `ttft_ratio`: their mean TTFT over that of `cold`; `ttft_ratio_second`: over that of `cold-prefix`, which is as cold."""

    repeat: int
    verdict: Verdict | None
    source: Signal | None
    cached_share: float | None
    ttft_ratio: float | None
    ttft_ratio_second: float | None


class PrefixCacheReuse(Part, frozen=True):
    """The verdict. `value`: what it follows from, a share of tokens or a ratio of TTFT by `source`, as mean over the
    repetitions; `ci95`: Student's interval of it over the repetitions, None with a single one; `verdict_low` and
    `verdict_high`: the verdicts at its ends, the worse one first; `decided`: they are the same, None without an interval."""

    verdict: Verdict | None
    source: Signal | None
    value: float | None
    ci95: Interval | None
    verdict_low: Verdict | None
    verdict_high: Verdict | None
    decided: bool | None
    repeats: tuple[Reuse, ...]


class EarlyStop(Part, frozen=True):
    """`tripped`: two or more samples of one engine were short; None: too few had a count. `phases`: theirs; `counted`: samples
    with a count."""

    tripped: bool | None
    short: int
    counted: int
    phases: tuple[str, ...]


class MemoryPressure(Part, frozen=True):
    """`tripped`: swap in use grew by more than 500 MB, or more than 1,000 pages were swapped out; None: swap cannot be read, or
    the engine is on another machine. `readings`: comparisons with the baseline."""

    tripped: bool | None
    readings: int
    grown_bytes: int | None
    swapped_out_pages: int | None


class DuplicateProcesses(Part, frozen=True):
    """`tripped`: two instances of the engine listened before the benchmark; None: not looked at. `processes`: their numbers."""

    tripped: bool | None
    processes: tuple[int, ...]


class QualityGates(Part, frozen=True):
    """The three gates. One that did not run has None, which is neither alarm nor all-clear."""

    early_stop: EarlyStop
    memory_pressure: MemoryPressure
    duplicate_processes: DuplicateProcesses

    @property
    def tripped(self) -> tuple[str, ...]:
        """The names of the gates that tripped."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name).tripped)


class AgenticSizes(Part, frozen=True):
    """The sizes of the parts in tokens, by `sized_by`. `long_tokens`: of USER_L; `long_wanted`: as the methodology or the user
    has it."""

    sized_by: str
    system_a: int
    system_b: int
    user_x: int
    user_y: int
    long_tokens: int
    long_wanted: int


class Restart(Part, frozen=True):
    """The restart before the first phase. `restarted`: the old server was seen gone, or another process took its port;
    `seconds`: until the new one was healthy. `why`: what went wrong, else None."""

    restarted: bool
    seconds: float
    why: str | None


class AgenticEngine(Part, frozen=True):
    """One engine with one model. `sizes`: None if nothing was sent; `restart`: None if none was asked for; `runs`: folders of
    its records, relative to the benchmark's; `status` and `reasons`: whether its figures can be relied on."""

    label: str
    url: str | None
    ended: Ended
    metadata: EngineMetadata
    status: RunStatus | None
    reasons: tuple[str, ...]
    restart: Restart | None
    runs: tuple[str, ...]
    sizes: AgenticSizes | None
    prefix_cache_reuse: PrefixCacheReuse
    quality_gates: QualityGates
    samples: tuple[AgenticSample, ...]
    remarks: tuple[Remark, ...]


class AgenticProtocol(Part, frozen=True):
    """How it was carried out. `salt`: what all prompts follow from; `repeats`: of the eight phases, each with text of its
    own."""

    salt: str
    repeats: int
    phases: tuple[str, ...]
    temperature: float
    warm_up: str
    follows: tuple[str, ...]


class Agentic(Part, frozen=True):
    """A whole agentic benchmark, or what there is of it so far. `interrupted`: it did not come to its end: a person ended
    it, or engines wait."""

    schema: Literal["inferometer/agentic/1"]
    id: str
    version: str
    started: str
    ended: str
    interrupted: bool
    protocol: AgenticProtocol
    status: RunStatus
    engines: tuple[AgenticEngine, ...]
    remarks: tuple[Remark, ...]
    client: Client | None = None
