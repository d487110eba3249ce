"""The pictures of an agentic benchmark: TTFT by phase, and what the engines report as cached."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.agentic import Agentic, AgenticEngine
from inferometer.documents.results import Axis, Series
from inferometer.judge.agentic_means import mean_known, ttft_of
from inferometer.report.agentic.contents import phases
from inferometer.report.bench.names import Names
from inferometer.report.charts import STYLES, Chart

LONG = ("long-context", "long-prefix")
"""Phases with a picture of their own: beside their TTFT nothing is to be seen of the others'."""


def pictures(document: Agentic, names: Names) -> list[Chart]:
    """All pictures; of more engines than can be told apart, several of each kind."""
    engines = [one for one in document.engines if one.samples]
    every = phases(document)
    short, long = ([one for one in every if (one in LONG) is side] for side in (False, True))
    charts = []
    for at in range(0, len(engines), STYLES):
        mine = engines[at : at + STYLES]
        words = f", engines {at + 1} to {at + len(mine)} of {len(engines)}" if len(engines) > STYLES else ""
        charts += [_waits(f"TTFT by phase{words}", mine, short, names)]
        charts += [_waits(f"TTFT of the long phases{words}", mine, long, names)] if long else []
        # A picture has no bar for "not reported"; the verdict of such an engine says so.
        report = [one for one in mine if any(sample.cached_share is not None for sample in one.samples)]
        charts += (
            [_cached(f"Reported as cached, of the prompt{words}", report, every, names)] if report else []
        )
    return charts


def _waits(title: str, engines: Sequence[AgenticEngine], shown: Sequence[str], names: Names) -> Chart:
    found = [[ttft_of(one.samples, (phase,)) for phase in shown] for one in engines]
    repeated = any(wait is not None and wait.ci95 is not None for waits in found for wait in waits)
    return Chart(
        f"{title}: mean, and its 95 % interval" if repeated else title,
        "bars",
        Axis("phase"),
        Axis("TTFT", "ms"),
        tuple(
            Series(
                names[one.label],
                tuple(map(_words, shown)),
                tuple(None if wait is None else wait.mean for wait in waits),
            )
            for one, waits in zip(engines, found, strict=True)
        ),
        spans=tuple(tuple(None if wait is None else wait.ci95 for wait in waits) for waits in found),
    )


def _cached(title: str, engines: Sequence[AgenticEngine], shown: Sequence[str], names: Names) -> Chart:
    return Chart(
        title,
        "bars",
        Axis("phase"),
        Axis("Cached", "%"),
        tuple(
            Series(
                names[one.label], tuple(map(_words, shown)), tuple(_percent(one, phase) for phase in shown)
            )
            for one in engines
        ),
    )


def _percent(one: AgenticEngine, phase: str) -> float | None:
    mean = mean_known(sample.cached_share for sample in one.samples if sample.phase == phase)
    return None if mean is None else 100 * mean


def _words(phase: str) -> str:
    """With a blank, at which a name is folded that has no room on one line."""
    return phase.replace("-", " ", 1)
