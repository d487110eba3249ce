"""The charts of a benchmark: speed by prompt, TTFT by context, speed over the runs."""

from __future__ import annotations

from collections.abc import Callable

from inferometer.documents.bench import Bench, EngineResult, Figure, PromptResult
from inferometer.documents.results import Axis, Series
from inferometer.report.charts import Chart, Spans

LOW = 250
"""Height of a chart over the runs: there is one for each prompt."""


def speeds(document: Bench) -> Chart:
    """Tokens per second of each prompt and engine: the mean with its interval."""
    engines = [one for one in document.engines if one.prompts]
    series = tuple(_series(one, one.prompts, lambda prompt: prompt.prompt, _speed) for one in engines)
    return Chart(
        "Tokens per second by prompt: mean, and its 95 % interval",
        "bars",
        Axis("prompt"),
        Axis("tokens/s"),
        series,
        spans=tuple(_spans(one.prompts, _speed) for one in engines),
    )


def contexts(document: Bench) -> Chart:
    """Client TTFT against the size of the context fill: the mean with its interval."""
    kept = [(one, [prompt for prompt in one.prompts if prompt.sized_to]) for one in document.engines]
    kept = [(one, sorted(fills, key=lambda fill: fill.sized_to or 0)) for one, fills in kept if fills]
    return Chart(
        "Client TTFT by context length: mean, and its 95 % interval",
        "lines",
        Axis("Context fill", "tokens"),
        Axis("Client TTFT", "ms"),
        tuple(_series(one, fills, lambda fill: fill.sized_to or 0, _wait) for one, fills in kept),
        spans=tuple(_spans(fills, _wait) for _, fills in kept),
    )


def over_runs(document: Bench) -> list[Chart]:
    """Tokens per second over the runs, a chart for each prompt: drift is a line that falls."""
    if document.protocol.runs < 2:
        return []
    return [
        Chart(
            f"{name}: tokens per second over the runs",
            "timeline",
            Axis("Run"),
            Axis("tokens/s"),
            series,
            height=LOW,
        )
        for name in document.protocol.prompts
        if (series := tuple(_runs(one, name) for one in document.engines if one.samples))
    ]


def _runs(engine: EngineResult, name: str) -> Series:
    mine = [one for one in engine.samples if one.prompt == name and one.discarded is None]
    return Series(engine.label, tuple(one.run for one in mine), tuple(one.tok_per_sec for one in mine))


def _speed(prompt: PromptResult) -> Figure:
    return prompt.tok_per_sec


def _wait(prompt: PromptResult) -> Figure:
    return prompt.ttft_client_ms


Prompts = list[PromptResult] | tuple[PromptResult, ...]


def _series(
    engine: EngineResult,
    prompts: Prompts,
    place: Callable[[PromptResult], str | int],
    shown: Callable[[PromptResult], Figure],
) -> Series:
    return Series(
        engine.label, tuple(place(one) for one in prompts), tuple(shown(one).mean for one in prompts)
    )


def _spans(prompts: Prompts, shown: Callable[[PromptResult], Figure]) -> Spans:
    return tuple(shown(one).ci95 for one in prompts)
