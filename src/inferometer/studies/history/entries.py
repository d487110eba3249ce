"""Results as entries of the history: what their documents say, cut down to figures and to what makes them comparable.

| kind       | an entry for              | its figures                                                                   |
| ---------- | ------------------------- | ----------------------------------------------------------------------------- |
| run        | the run                   | P50 and P99 of the metrics that a comparison shows, rates of the result table |
| test       | each test of a campaign   | those that a comparison of campaigns shows, without bounds                    |
| bench      | each engine of it         | those that it is ranked by                                                    |
| comparison | the comparison            | the change of each deciding figure, by side                                   |

A run has its success rate too. What decides is what decides a comparison of such results.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from datetime import datetime

from inferometer.documents.bench import Bench, EngineResult
from inferometer.documents.bench import Figure as BenchFigure
from inferometer.documents.bench_comparison import BenchComparison
from inferometer.documents.campaign import ProcedureDocument
from inferometer.documents.campaign_comparison import CampaignComparison
from inferometer.documents.comparison import ComparisonDocument, Difference
from inferometer.documents.history import ENTRY_SCHEMA, HistoryEntry, HistoryFigure, Scale
from inferometer.documents.outcomes import outcomes
from inferometer.documents.part import to_json
from inferometer.documents.summary import Summary
from inferometer.judge.bench import HIGHER_IS_BETTER, Ranked
from inferometer.judge.comparison.campaign_figures import (
    figures_of,
    headline_among,
    is_bound,
    successes_of,
)
from inferometer.judge.comparison.campaigns import Repeat
from inferometer.judge.comparison.compare import DECIDING
from inferometer.judge.comparison.loads import loads_of
from inferometer.judge.history.regression import Sensitivity
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS, TASK_SHARE, TASK_SUCCESS, Better, stem
from inferometer.metrics.statistics import STATISTICS, Interval
from inferometer.studies.comparison import bounds_of
from inferometer.studies.history import conditions

SHOWN = ("p50", "p99")
"""Statistics of a run's metrics that are kept."""
LARGEST = 1e100
"""Of a figure: sums and squares of what is larger are no numbers."""
DAY_S = 86_400
AnyComparison = ComparisonDocument | CampaignComparison | BenchComparison
_BENCH: Mapping[Ranked, tuple[str, str]] = {
    "tok_per_sec": ("Output speed", "tok/s"),
    "ttft_client_ms": ("Time to First Token", "ms"),
}


def of_run(summary: Summary, folder: str | None) -> HistoryEntry:
    """The entry of a run."""
    return HistoryEntry(
        schema=ENTRY_SCHEMA,
        kind="run",
        id=summary.run.id,
        part="",
        name=summary.run.name,
        started=summary.run.started,
        verdict=summary.verdict.status,
        reasons=tuple(one.code for one in summary.verdict.reasons),
        interrupted=summary.run.interrupted,
        folder=folder,
        seed=summary.plan.workload.seed,
        fingerprint=summary.workload.fingerprint,
        conditions=conditions.of_run(summary),
        versions=conditions.versions_of_run(summary),
        figures=tuple(_run_figures(summary)),
    )


def of_campaign(repeat: Repeat, folder: str | None) -> Iterator[HistoryEntry]:
    """The entries of a campaign's tests."""
    prints = {one.test: one.fingerprint for one in repeat.document.reproduction.workloads}
    for test in repeat.document.tests:
        named = list(figures_of(test))
        headline = headline_among(test.test, [one.name for one in named])
        figures = tuple(
            HistoryFigure(
                name=one.name.partition(".")[2],
                title=f"{one.value.label}{', ' + one.value.at if one.value.at else ''}",
                unit=one.value.unit,
                better="more" if one.kind.more else "less",
                scale="points"
                if one.kind.points
                else "ratio"
                if one.kind.least == "above 0"
                else "difference",
                deciding=one.name in (headline, f"{test.test}.{TASK_SHARE}"),
                value=one.number,
                ci95=one.value.ci,
                loads=loads_of(test, one.kind.loads),
            )
            for one in named
            if not is_bound(test, one.name)
            and math.isfinite(one.number)
            and (one.kind.pattern != TASK_SHARE or _known(_shares(test)))
        )
        yield HistoryEntry(
            schema=ENTRY_SCHEMA,
            kind="test",
            id=repeat.document.id,
            part=test.test,
            name=repeat.document.name,
            started=test.started or repeat.document.started or "",
            verdict=test.verdict.status,
            reasons=tuple(one.code for one in test.verdict.reasons),
            interrupted=test.ended_by is not None,
            folder=folder,
            seed=repeat.facts.seed,
            fingerprint=prints.get(test.test),
            conditions=conditions.of_test(repeat, test.test),
            versions=conditions.versions_of_test(repeat),
            figures=figures,
        )


def of_bench(bench: Bench, folder: str | None) -> Iterator[HistoryEntry]:
    """The entries of a benchmark's engines."""
    for engine in bench.engines:
        measured = engine.ended == "measured"
        yield HistoryEntry(
            schema=ENTRY_SCHEMA,
            kind="bench",
            id=bench.id,
            part=engine.label,
            name=bench.id,
            started=bench.started,
            verdict=engine.status or "INCONCLUSIVE",
            reasons=engine.reasons if measured else (engine.ended, *engine.reasons),
            interrupted=not measured,
            folder=folder,
            seed=None,
            fingerprint=None,
            conditions=conditions.of_bench(bench, engine),
            versions=conditions.versions_of_bench(bench, engine),
            figures=tuple(_bench_figures(engine)),
        )


def of_comparison(document: AnyComparison, name: str, started: str) -> HistoryEntry:
    """The entry of a comparison that was made at `started`."""
    digest = hashlib.sha256(to_json(document).encode("utf-8", "replace")).hexdigest()
    return HistoryEntry(
        schema=ENTRY_SCHEMA,
        kind="comparison",
        id=f"compare-{digest[:16]}",
        part="",
        name=name,
        started=started,
        verdict=document.outcome,
        reasons=(),
        interrupted=False,
        folder=None,
        seed=None,
        fingerprint=None,
        conditions={},
        versions={"instrument": document.version},
        figures=tuple(_changes(document)),
    )


def instant(entry: HistoryEntry) -> float:
    """When it began, in seconds since the epoch. Raises ValueError for what is no instant."""
    return datetime.fromisoformat(entry.started).timestamp()


def ahead(entry: HistoryEntry, now: float) -> bool:
    """Whether it is dated further ahead of now (seconds since the epoch) than clocks and time zones explain: it would stay the
    newest result, and hide those that are."""
    return instant(entry) > now + DAY_S


def fault(entry: HistoryEntry) -> str | None:
    """What no result can have, in words that follow the entry's place; None: it is sound. Others write entries too."""
    try:
        instant(entry)
    except (ValueError, ArithmeticError, OSError):
        return f"{entry.started[:40]!r} is no instant"
    for one in entry.figures:
        ends = (one.value, *(one.ci95 or ()))
        if not all(abs(end) <= LARGEST for end in ends) or (
            one.ci95 is not None and one.ci95[0] > one.ci95[1]
        ):
            return f"{one.name[:40]!r} is no figure with an interval, of {LARGEST:g} at most"
        if not all(0 <= load <= LARGEST for load in one.loads):
            return f"{one.name[:40]!r} has a load that is none"
    names = [one.name for one in entry.figures]
    return "names a figure twice" if len(set(names)) < len(names) else None


def _run_figures(summary: Summary) -> Iterator[HistoryFigure]:
    for name, rate in RATES.items():
        value = getattr(summary.throughput, name)
        if rate.row and value is not None:
            interval = getattr(summary.throughput.ci95, name)
            yield _figure(name, rate.title, rate.unit, rate.better, value, interval)
    for name, metric in METRICS.items():
        stats = getattr(summary.metrics, name)
        if metric.compared and metric.better is not None and stats is not None:
            for statistic in SHOWN:
                title = f"{metric.title} {STATISTICS[statistic]}"
                value, interval = getattr(stats, statistic), getattr(stats.ci95, statistic)
                yield _figure(f"{stem(name)}_{statistic}", title, metric.unit, metric.better, value, interval)
    rate_of_success = summary.success_rate
    if rate_of_success.value is not None:
        yield _figure(SUCCESS, "Success rate", "", "more", rate_of_success.value, rate_of_success.ci95)
    unclear = not _known(bounds_of(summary).get(TASK_SUCCESS))
    for one in outcomes(summary):
        if not (one.key == TASK_SUCCESS and unclear):
            yield _figure(one.key, one.title, one.unit.replace("1", ""), one.better, one.value, one.ci95)


def _shares(test: ProcedureDocument) -> Interval | None:
    percent = successes_of(test)
    return None if percent is None else (percent[0] / 100, percent[1] / 100)


def _known(bounds: Interval | None) -> bool:
    """Whether answers that could not be judged leave task success open by no more than the least change that matters."""
    return bounds is None or bounds[1] - bounds[0] <= Sensitivity().threshold


def _figure(
    name: str, title: str, unit: str, better: Better, value: float, interval: Interval | None
) -> HistoryFigure:
    return HistoryFigure(name, title, unit, better, "ratio", name in DECIDING, float(value), interval)


def _bench_figures(engine: EngineResult) -> Iterator[HistoryFigure]:
    for name, (title, unit) in _BENCH.items():
        found: BenchFigure | None = getattr(engine, name)
        if found is not None and found.median is not None:
            better: Better = "more" if HIGHER_IS_BETTER[name] else "less"
            yield HistoryFigure(name, title, unit, better, "ratio", True, found.median, found.ci95)


def _changes(document: AnyComparison) -> Iterator[HistoryFigure]:
    if isinstance(document, BenchComparison):
        for one in document.figures:
            if one.deciding and one.change is not None:
                better: Better = "more" if HIGHER_IS_BETTER[one.figure] else "less"
                name = f"{one.engine}.{one.prompt}.{one.figure}"
                yield _change(name, name, better, one.change, one.ci95)
        return
    for contrast in document.contrasts:
        differences: tuple[Difference, ...] = (
            contrast.metrics if not isinstance(document, CampaignComparison) else contrast.figures  # type: ignore[union-attr]
        )
        for each in differences:
            if each.deciding and each.relative is not None:
                interval = each.paired if each.test == "paired" else each.welch
                name = f"{contrast.side}.{each.name}"
                yield _change(name, name, each.better, each.relative, interval)


def _change(name: str, title: str, better: Better, share: float, interval: Interval | None) -> HistoryFigure:
    scale: Scale = "points"
    percent = None if interval is None else (100 * interval[0], 100 * interval[1])
    return HistoryFigure(name, f"Change of {title}", "%", better, scale, True, 100 * share, percent)
