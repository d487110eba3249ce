"""Whether engines are faster or slower in one benchmark than in another.

A figure is better or worse only if the 95 % intervals of the two sides do not overlap. A prompt is compared with itself alone:
same limit of tokens, same size, sized by the same tokenizer. An estimate of tokens allows no claim about speed.
"""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.documents.bench import METRICS_VERSION, Bench, EngineResult, Figure, PromptResult
from inferometer.documents.bench_comparison import (
    SCHEMA,
    BenchComparison,
    BenchSide,
    ComparedFigure,
    MetadataDifference,
    Verdict,
)
from inferometer.documents.comparison import Outcome
from inferometer.judge.bench import HIGHER_IS_BETTER, Ranked

DIFFERENT = (
    "engine_version",
    "runner",
    "model",
    "model_format",
    "model_quantization",
    "hw_chip",
    "os_version",
)
"""Members of the metadata that a comparison names where they differ."""


def compare_benches(version: str, names: tuple[str, str], first: Bench, second: Bench) -> BenchComparison:
    """The second benchmark against the first. `version`: of this program; `names`: of the sides."""
    pairs = list(_pairs(first, second))
    sized_alike = first.protocol.sized_by == second.protocol.sized_by
    figures = tuple(one for a, b in pairs for one in _figures(a, b, sized_alike=sized_alike))
    invalid = tuple(a.label for a, b in pairs if "INVALID" in (a.status, b.status))
    matched = {a.label for a, _ in pairs}
    return BenchComparison(
        schema=SCHEMA,
        version=version,
        metrics_version=METRICS_VERSION,
        outcome=_outcome(figures, invalid),
        sides=(
            BenchSide("A", names[0], first.id, first.started, first.status),
            BenchSide("B", names[1], second.id, second.started, second.status),
        ),
        figures=figures,
        differences=tuple(one for a, b in pairs for one in _differences(a, b)),
        invalid=invalid,
        unmatched=tuple(
            one.label for bench in (first, second) for one in bench.engines if one.label not in matched
        ),
    )


def _pairs(first: Bench, second: Bench) -> Iterator[tuple[EngineResult, EngineResult]]:
    others = {one.label: one for one in second.engines}
    return ((one, others[one.label]) for one in first.engines if one.label in others)


def _outcome(figures: tuple[ComparedFigure, ...], invalid: tuple[str, ...]) -> Outcome:
    verdicts = {one.verdict for one in figures}
    if not verdicts - {"not_comparable"}:
        return "not_comparable"
    if invalid:
        return "invalid"
    if "worse" in verdicts:
        return "regression"
    return "no_regression" if verdicts & {"better", "no_difference"} else "no_claim"


def _figures(a: EngineResult, b: EngineResult, *, sized_alike: bool) -> Iterator[ComparedFigure]:
    names: tuple[Ranked, ...] = ("tok_per_sec", "ttft_client_ms")
    others = {one.prompt: one for one in b.prompts}
    sure = "INVALID" not in (a.status, b.status)
    for mine in a.prompts:
        theirs = others.get(mine.prompt)
        for name in names if theirs is not None else ():
            assert theirs is not None
            baseline, side = _of(mine, name), _of(theirs, name)
            same = (mine.max_tokens, mine.sized_to) == (theirs.max_tokens, theirs.sized_to)
            verdict: Verdict = "not_comparable"
            if same and (sized_alike or mine.sized_to is None):
                counted = name != "tok_per_sec" or not (_estimated(a, mine) or _estimated(b, theirs))
                verdict = _verdict(name, baseline, side) if sure and counted else "no_claim"
            yield ComparedFigure(a.label, mine.prompt, name, baseline, side, _change(baseline, side), verdict)


def _of(prompt: PromptResult, name: Ranked) -> Figure:
    return prompt.tok_per_sec if name == "tok_per_sec" else prompt.ttft_client_ms


def _estimated(engine: EngineResult, prompt: PromptResult) -> bool:
    return any(
        one.tokens_source == "estimate" and one.discarded is None
        for one in engine.samples
        if one.prompt == prompt.prompt
    )


def _change(baseline: Figure, side: Figure) -> float | None:
    return side.mean / baseline.mean - 1 if side.mean is not None and baseline.mean else None


def _verdict(name: Ranked, baseline: Figure, side: Figure) -> Verdict:
    if baseline.ci95 is None or side.ci95 is None:
        return "no_claim"
    if baseline.ci95[0] <= side.ci95[1] and side.ci95[0] <= baseline.ci95[1]:
        return "no_difference"
    higher = side.ci95[0] > baseline.ci95[1]
    return "better" if higher == HIGHER_IS_BETTER[name] else "worse"


def _differences(a: EngineResult, b: EngineResult) -> Iterator[MetadataDifference]:
    for name in DIFFERENT:
        mine, theirs = getattr(a.metadata, name), getattr(b.metadata, name)
        if mine != theirs:
            yield MetadataDifference(a.label, name, mine, theirs)
