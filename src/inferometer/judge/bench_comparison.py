"""Whether engines are faster or slower in one benchmark than in another, by the rules of a comparison of runs.

The values of a figure are those of an engine's generations of one prompt that count, tested by Welch's t. All figures that
decide are one family for Holm's correction, over engines and prompts, and the others another. There is no bootstrap: a
generation is one value, and three of them cannot be resampled.

| allows no claim                       | because                                                             |
| ------------------------------------- | ------------------------------------------------------------------- |
| an INVALID result on a side           | its numbers must not be relied on                                   |
| fewer than three generations on a side | draft 6.3, for runs                                                 |
| an estimate of tokens, for speed      | it may be 25 % off                                                  |
| speeds by different clocks            | the client's holds HTTP and streaming, the engine's own does not    |

A prompt is compared with itself alone: same limit of tokens, same size, sized by the same tokenizer. One that both sides were
to measure and an engine has no result of on a side is not comparable, so an engine that fails is no success.

Generations of one benchmark share what its engine's start, the hour and the machine's heat did: the test knows only how they
vary among themselves. The noise floor, from benchmarks of the baseline's own engines, is what tells how far starts differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.documents.bench import METRICS_VERSION, Bench, EngineResult, Figure, PromptResult
from inferometer.documents.bench_comparison import (
    SCHEMA,
    BenchComparison,
    BenchMethod,
    BenchSide,
    Compared,
    ComparedEngine,
    ComparedFigure,
    MetadataDifference,
    NoiseMove,
)
from inferometer.documents.comparison import FigureVerdict, NoiseFloor
from inferometer.judge.bench import CACHED_SHARE, HIGHER_IS_BETTER, figure, values_of
from inferometer.judge.comparison import rules, welch
from inferometer.measure.record import Floats
from inferometer.measure.stats import CONFIDENCE
from inferometer.metrics.statistics import Interval

FIGURES: tuple[Compared, ...] = ("tok_per_sec", "ttft_client_ms")
DIFFERENT = (
    "engine",
    "engine_version",
    "runner",
    "model",
    "model_format",
    "model_quantization",
    "hw_chip",
    "os_version",
    "thermal_speed_limit",
)
"""Members of the metadata that a comparison names where they differ."""


@dataclass(frozen=True, slots=True)
class Named:
    """A benchmark and what to call it."""

    name: str
    bench: Bench


@dataclass(frozen=True, slots=True)
class BenchCriteria:
    """What decides. `metrics`: figures, () for all; `threshold`: the least relative change that matters, as a share of one;
    `noise`: benchmarks of the baseline's own engines."""

    metrics: tuple[Compared, ...] = ()
    threshold: float = 0.0
    noise: tuple[Named, ...] = ()


def compare_benches(
    version: str, first: Named, second: Named, criteria: BenchCriteria | None = None
) -> BenchComparison:
    """The second benchmark against the first. `version`: of this program."""
    wanted = criteria or BenchCriteria()
    deciding = wanted.metrics or FIGURES
    drafts = list(_drafts(first.bench, second.bench, deciding))
    moves = _floors(drafts, first.bench, [one.bench for one in wanted.noise])
    tests = _corrected(drafts)
    figures = tuple(_compared(one, wanted.threshold) for one in drafts)
    pairs = list(_pairs(first.bench, second.bench))
    invalid = _invalid(pairs, [(a, b) for one in wanted.noise for a, b in _pairs(first.bench, one.bench)])
    matched = {a.label for a, _ in pairs}
    return BenchComparison(
        schema=SCHEMA,
        version=version,
        metrics_version=METRICS_VERSION,
        outcome=rules.outcome(
            (one.verdict for one in figures if one.deciding),
            comparable=any(one.verdict != "not_comparable" for one in figures),
            invalid=bool(invalid),
        ),
        sides=(_side("A", first), _side("B", second)),
        noise=tuple(_side("A/A", one) for one in wanted.noise),
        figures=figures,
        differences=tuple(one for a, b in pairs for one in _differences(a, b)),
        invalid=invalid,
        unmatched=tuple(
            one.label for side in (first, second) for one in side.bench.engines if one.label not in matched
        ),
        method=BenchMethod(
            CONFIDENCE, rules.LEAST_RUNS, deciding, wanted.threshold, tests, welch.POWER, moves
        ),
    )


def _side(label: str, side: Named) -> BenchSide:
    engines = (ComparedEngine(one.label, one.ended, one.status, one.reasons) for one in side.bench.engines)
    bench = side.bench
    return BenchSide(label, side.name, bench.id, bench.started, bench.status, tuple(engines))  # type: ignore[arg-type]


def _pairs(first: Bench, second: Bench) -> Iterator[tuple[EngineResult, EngineResult]]:
    others = {one.label: one for one in second.engines}
    return ((one, others[one.label]) for one in first.engines if one.label in others)


def _invalid(*every: Sequence[tuple[EngineResult, EngineResult]]) -> tuple[str, ...]:
    found = (a.label for pairs in every for a, b in pairs if "INVALID" in (a.status, b.status))
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class _Draft:
    """A figure in the making. `allowed`: the only verdict possible, None: any."""

    engine: str
    prompt: str
    name: Compared
    deciding: bool
    base: Floats
    other: Floats
    allowed: FigureVerdict | None
    test: welch.Test | None = None
    floor: NoiseFloor | None = None
    p_holm: float | None = None
    family: int = 1

    @property
    def key(self) -> tuple[str, str, Compared]:
        return self.engine, self.prompt, self.name

    @property
    def scale(self) -> float | None:
        """What differences are divided by; None: there is nothing to compare."""
        if not len(self.base) or not len(self.other):
            return None
        return abs(float(self.base.mean())) or None


def _drafts(first: Bench, second: Bench, deciding: Sequence[Compared]) -> Iterator[_Draft]:
    sized_alike = first.protocol.sized_by == second.protocol.sized_by
    for a, b in _pairs(first, second):
        sides = [{one.prompt: one for one in engine.prompts} for engine in (a, b)]
        for prompt in first.protocol.prompts:
            mine, theirs = (side.get(prompt) for side in sides)
            if prompt not in second.protocol.prompts or (mine is None and theirs is None):
                continue
            for name in FIGURES:
                allowed = _allowed(name, (a, b), (mine, theirs), sized_alike=sized_alike)
                base, other = (_values(one, prompt, name) for one in (a, b))
                if allowed is None and min(len(base), len(other)) < rules.LEAST_RUNS:
                    allowed = "no_claim"
                yield _tested(_Draft(a.label, prompt, name, name in deciding, base, other, allowed))


def _values(engine: EngineResult, prompt: str, name: Compared) -> Floats:
    return np.array(values_of(engine, prompt, name), np.float64)


def _tested(draft: _Draft) -> _Draft:
    if draft.scale is not None and draft.allowed != "not_comparable":
        draft.test = welch.welch(draft.base, draft.other)
    return draft


def _allowed(
    name: Compared,
    engines: tuple[EngineResult, EngineResult],
    prompts: tuple[PromptResult | None, PromptResult | None],
    *,
    sized_alike: bool,
) -> FigureVerdict | None:
    mine, theirs = prompts
    if mine is None or theirs is None:
        return "not_comparable"
    if _size(mine) != _size(theirs):
        return "not_comparable"
    if mine.sized_to is not None and not sized_alike:
        return "not_comparable"
    if "INVALID" in {one.status for one in engines}:
        return "no_claim"
    estimated = any(_estimated(one, mine.prompt) for one in engines)
    clocks = {_clocks(one, mine.prompt) for one in engines}
    return "no_claim" if name == "tok_per_sec" and (estimated or len(clocks) > 1) else None


def _size(prompt: PromptResult) -> tuple[int, int | None, int | None]:
    return prompt.max_tokens, prompt.sized_to, prompt.sized_tokens


def _estimated(engine: EngineResult, prompt: str) -> bool:
    return any(
        one.tokens_source == "estimate" and one.discarded is None
        for one in engine.samples
        if one.prompt == prompt
    )


def _clocks(engine: EngineResult, prompt: str) -> str | None:
    """Whose clocks a prompt's speeds are by: `client`, `server` or both; None: no sample has a speed."""
    found = {
        one.tok_per_sec_source
        for one in engine.samples
        if one.prompt == prompt and one.discarded is None and one.tok_per_sec_source is not None
    }
    return " and ".join(sorted(found)) or None


def _floors(drafts: Sequence[_Draft], first: Bench, noise: Sequence[Bench]) -> tuple[NoiseMove, ...]:
    """Give each figure its noise floor; the figures in which A/A benchmarks differ beyond chance (Holm over all of theirs)."""
    mine = {one.key: one for one in drafts}
    tests: list[tuple[tuple[str, str, Compared], float]] = []
    for bench in noise:
        for again in _drafts(first, bench, FIGURES):
            draft, scale = mine.get(again.key), again.scale
            if draft is None or scale is None or again.allowed == "not_comparable":
                continue
            shift = abs(float(again.other.mean()) - float(again.base.mean())) / scale
            if again.test is not None:
                tests.append((again.key, again.test.p))
            if draft.floor is None or shift > draft.floor.value:
                interval = None if again.test is None else _scaled(again.test.interval, scale)
                draft.floor = NoiseFloor(shift, interval)
    adjusted = welch.holm([p for _, p in tests])
    moved = dict.fromkeys(key for (key, _), p in zip(tests, adjusted, strict=True) if p < welch.ALPHA)
    return tuple(NoiseMove(*key) for key in moved)


def _corrected(drafts: Sequence[_Draft]) -> int:
    """Holm's correction in each of the two families; how many figures that decide were tested."""
    sizes = {}
    for deciding in (True, False):
        family = [one for one in drafts if one.deciding is deciding and one.allowed is None]
        tested = [(one, one.test) for one in family if one.test is not None]
        adjusted = welch.holm([test.p for _, test in tested])
        for (one, _), p in zip(tested, adjusted, strict=True):
            one.p_holm, one.family = p, len(tested)
        sizes[deciding] = len(tested)
    return sizes[True]


def _compared(draft: _Draft, threshold: float) -> ComparedFigure:
    test, scale, more = draft.test, draft.scale, HIGHER_IS_BETTER[draft.name]
    relative = None if scale is None else (float(draft.other.mean()) - float(draft.base.mean())) / scale
    interval = None if test is None or scale is None else _scaled(test.interval, scale)
    floor = None if draft.floor is None else draft.floor.value
    found = rules.held(relative, interval, draft.p_holm, agrees=True, threshold=threshold, floor=floor)
    return ComparedFigure(
        engine=draft.engine,
        prompt=draft.prompt,
        figure=draft.name,
        deciding=draft.deciding,
        baseline=_figure(draft.prompt, draft.base),
        side=_figure(draft.prompt, draft.other),
        change=relative,
        ci95=interval,
        p=None if test is None else test.p,
        p_holm=draft.p_holm,
        detectable=None
        if test is None or scale is None
        else welch.detectable(test.se / scale, test.df, welch.ALPHA / draft.family),
        floor=draft.floor,
        equivalent=None if interval is None or not threshold else max(map(abs, interval)) < threshold,
        held=found,
        verdict=rules.decided(
            relative, interval, found, draft.allowed, tested=test is not None, threshold=threshold, more=more
        ),
    )


def _figure(prompt: str, values: Floats) -> Figure:
    return figure({prompt: [float(value) for value in values]})


def _scaled(interval: Interval, by: float) -> Interval:
    return interval[0] / by, interval[1] / by


def _differences(a: EngineResult, b: EngineResult) -> Iterator[MetadataDifference]:
    for name in DIFFERENT:
        mine, theirs = getattr(a.metadata, name), getattr(b.metadata, name)
        if mine != theirs:
            yield MetadataDifference(a.label, name, mine, theirs)
    others = {one.prompt: one for one in b.prompts}
    for prompt in a.prompts:
        if (other := others.get(prompt.prompt)) is not None:
            yield from _unlike(a, b, prompt, other)


def _unlike(
    a: EngineResult, b: EngineResult, mine: PromptResult, theirs: PromptResult
) -> Iterator[MetadataDifference]:
    """What a prompt's figures are of, where that differs: the clock, the engine's count of its tokens, and whether most of it
    came from a prefix cache."""
    pairs: dict[str, tuple[str | float | None, str | float | None]] = {
        "tok_per_sec_source": (_clocks(a, mine.prompt), _clocks(b, mine.prompt)),
        "prompt_tokens": (mine.prompt_tokens, theirs.prompt_tokens),
    }
    if _mostly_cached(mine) != _mostly_cached(theirs):
        pairs["cached"] = mine.cached, theirs.cached
    for name, (first, second) in pairs.items():
        if first is not None and second is not None and first != second:
            yield MetadataDifference(a.label, f"{name} of {mine.prompt}", first, second)


def _mostly_cached(prompt: PromptResult) -> bool:
    return prompt.cached is not None and prompt.cached >= CACHED_SHARE
