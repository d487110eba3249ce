"""Two benchmarks compared: each engine and prompt that both have, by the figures of each side with their intervals."""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.bench import Figure
from inferometer.documents.comparison import Outcome
from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus

SCHEMA: Final = "inferometer/bench-comparison/1"
Verdict = Literal["better", "worse", "no_difference", "no_claim", "not_comparable"]


class BenchSide(Part, frozen=True):
    """A benchmark that is compared."""

    label: Literal["A", "B"]
    name: str
    id: str
    started: str
    status: RunStatus


class ComparedFigure(Part, frozen=True):
    """A figure of one engine and prompt on both sides. `change`: of the mean, as a share of A's. `verdict`: better or worse
    only if the intervals do not overlap."""

    engine: str
    prompt: str
    figure: Literal["tok_per_sec", "ttft_client_ms"]
    baseline: Figure
    side: Figure
    change: float | None
    verdict: Verdict


class MetadataDifference(Part, frozen=True):
    """A member of an engine's metadata that differs: its value on A and on B."""

    engine: str
    name: str
    baseline: str | float | None
    side: str | float | None


class BenchComparison(Part, frozen=True):
    """B against the baseline A. `invalid`: engines that are INVALID on a side; `unmatched`: engines of one side only."""

    schema: Literal["inferometer/bench-comparison/1"]
    version: str
    metrics_version: Literal["0.4.0"]
    outcome: Outcome
    sides: tuple[BenchSide, BenchSide]
    figures: tuple[ComparedFigure, ...]
    differences: tuple[MetadataDifference, ...]
    invalid: tuple[str, ...]
    unmatched: tuple[str, ...]
