"""The charts of a benchmark: speed by prompt, TTFT by context, speed over the runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inferometer.documents.bench import Bench, EngineResult, Figure, PromptResult
from inferometer.documents.results import Axis, Series
from inferometer.report.bench.names import Names
from inferometer.report.charts import STYLES, Chart, Spans

LOW = 250
"""Height of a chart over the runs: there is one for each prompt."""


@dataclass(frozen=True, slots=True)
class Part:
    """The engines of one picture, as many as have a colour, a dash and a marker of their own. `words`: which of all, in the
    order of the table; empty if they are all."""

    engines: tuple[EngineResult, ...]
    words: str = ""


def parts(document: Bench) -> list[Part]:
    """The engines of a benchmark, as many to a picture as can be told apart."""
    every = document.engines
    if len(every) <= STYLES:
        return [Part(every)]
    return [
        Part(mine, f", engines {at + 1} to {at + len(mine)} of {len(every)}")
        for at in range(0, len(every), STYLES)
        if (mine := every[at : at + STYLES])
    ]


def speeds(part: Part, names: Names) -> Chart:
    """Tokens per second of each prompt and engine: the mean with its interval."""
    engines = [one for one in part.engines if one.prompts]
    series = tuple(_series(names[one.label], one.prompts, _words, _speed) for one in engines)
    return Chart(
        f"Tokens per second by prompt: mean, and its 95 % interval{part.words}",
        "bars",
        Axis("prompt"),
        Axis("tokens/s"),
        series,
        spans=tuple(_spans(one.prompts, _speed) for one in engines),
    )


def contexts(part: Part, names: Names) -> Chart:
    """Client TTFT against the size of the context fill: the mean with its interval."""
    kept = [(one, [prompt for prompt in one.prompts if prompt.sized_to]) for one in part.engines]
    kept = [(one, sorted(fills, key=lambda fill: fill.sized_to or 0)) for one, fills in kept if fills]
    return Chart(
        f"Client TTFT by context length: mean, and its 95 % interval{part.words}",
        "lines",
        Axis("Context fill", "tokens"),
        Axis("Client TTFT", "ms"),
        tuple(
            _series(names[one.label], fills, lambda fill: fill.sized_to or 0, _wait) for one, fills in kept
        ),
        spans=tuple(_spans(fills, _wait) for _, fills in kept),
    )


def over_runs(document: Bench, part: Part, names: Names) -> list[Chart]:
    """Tokens per second over the runs, a chart for each prompt: drift is a line that falls."""
    if document.protocol.runs < 2:
        return []
    return [
        Chart(
            f"{name}: tokens per second over the runs{part.words}",
            "timeline",
            Axis("Run"),
            Axis("tokens/s"),
            series,
            height=LOW,
            within=(1, document.protocol.runs),
        )
        for name in document.protocol.prompts
        if (series := tuple(_runs(one, name, names) for one in part.engines if one.samples))
    ]


def _words(prompt: PromptResult) -> str:
    """Its name with a blank, at which it is folded where it has no room on one line."""
    return prompt.prompt.replace("-", " ", 1)


def _runs(engine: EngineResult, name: str, names: Names) -> Series:
    mine = [one for one in engine.samples if one.prompt == name and one.discarded is None]
    return Series(names[engine.label], tuple(one.run for one in mine), tuple(one.tok_per_sec for one in mine))


def _speed(prompt: PromptResult) -> Figure:
    return prompt.tok_per_sec


def _wait(prompt: PromptResult) -> Figure:
    return prompt.ttft_client_ms


Prompts = list[PromptResult] | tuple[PromptResult, ...]


def _series(
    label: str,
    prompts: Prompts,
    place: Callable[[PromptResult], str | int],
    shown: Callable[[PromptResult], Figure],
) -> Series:
    return Series(label, tuple(place(one) for one in prompts), tuple(shown(one).mean for one in prompts))


def _spans(prompts: Prompts, shown: Callable[[PromptResult], Figure]) -> Spans:
    return tuple(shown(one).ci95 for one in prompts)
