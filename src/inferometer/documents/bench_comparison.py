"""Two benchmarks compared: each engine and prompt that both have, by the rules of a comparison of runs."""

from __future__ import annotations

from typing import Final, Literal

from inferometer.documents.bench import Ended, Figure
from inferometer.documents.comparison import FigureVerdict, Held, NoiseFloor, Outcome
from inferometer.documents.part import Part
from inferometer.documents.verdict import RunStatus
from inferometer.metrics.statistics import Interval

SCHEMA: Final = "inferometer/bench-comparison/1"
Compared = Literal["tok_per_sec", "ttft_client_ms"]


class ComparedEngine(Part, frozen=True):
    """An engine's result on one side: whether its figures can be relied on, and the codes of what speaks against it."""

    engine: str
    ended: Ended
    status: RunStatus | None
    reasons: tuple[str, ...]


class BenchSide(Part, frozen=True):
    """A benchmark that is compared; `A/A` is one of the baseline's own engines, for the noise floor."""

    label: Literal["A", "B", "A/A"]
    name: str
    id: str
    started: str
    status: RunStatus
    engines: tuple[ComparedEngine, ...]


class ComparedFigure(Part, frozen=True):
    """A figure of one engine and prompt on both sides. `change`: of the mean, as a share of A's; `ci95`: Welch's interval of
    it; `p`: of the same test, `p_holm` corrected over the figures that decide, or apart from them over the others;
    `detectable`: the change that the test would have found four times out of five; `equivalent`: the whole interval lies
    within the threshold, None without one; `held`: what kept it from being called better or worse."""

    engine: str
    prompt: str
    figure: Compared
    deciding: bool
    baseline: Figure
    side: Figure
    change: float | None
    ci95: Interval | None
    p: float | None
    p_holm: float | None
    detectable: float | None
    floor: NoiseFloor | None
    equivalent: bool | None
    held: tuple[Held, ...]
    verdict: FigureVerdict


class MetadataDifference(Part, frozen=True):
    """A member of an engine's metadata, or of a prompt's result, that differs: its value on A and on B."""

    engine: str
    name: str
    baseline: str | float | None
    side: str | float | None


class NoiseMove(Part, frozen=True):
    """A figure in which benchmarks of the baseline's own engines differ beyond chance."""

    engine: str
    prompt: str
    figure: Compared


class BenchMethod(Part, frozen=True):
    """How the verdicts come about. `metrics`: the figures that decide; `threshold`: a share of one; `tests`: how many figures
    that decide were tested, which Holm's correction is over; `noise_moves`: see NoiseMove."""

    confidence: float
    least_runs: int
    metrics: tuple[Compared, ...]
    threshold: float
    tests: int
    power: float
    noise_moves: tuple[NoiseMove, ...]


class BenchComparison(Part, frozen=True):
    """B against the baseline A. `noise`: A/A sides; `invalid`: engines that are INVALID on a side; `unmatched`: engines of one
    side only."""

    schema: Literal["inferometer/bench-comparison/1"]
    version: str
    metrics_version: Literal["0.4.0"]
    outcome: Outcome
    sides: tuple[BenchSide, BenchSide]
    noise: tuple[BenchSide, ...]
    figures: tuple[ComparedFigure, ...]
    differences: tuple[MetadataDifference, ...]
    invalid: tuple[str, ...]
    unmatched: tuple[str, ...]
    method: BenchMethod
