"""A raw record made into exports again, over any period of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import inferometer
from inferometer.errors import PlanError, Problem, RecordError
from inferometer.telemetry.metrics.document import Period, Wanted
from inferometer.telemetry.metrics.entries import Export
from inferometer.telemetry.metrics.estimators import DEFAULT, ESTIMATORS
from inferometer.telemetry.metrics.exports import DEFAULT_FORMATS, FORMATS, export
from inferometer.telemetry.metrics.record import read
from inferometer.telemetry.metrics.series import Endpoint, Store, collect_from

SHORTEST_SLICE_S = 0.001


@dataclass(frozen=True, slots=True)
class Replay:
    """What a user asks for; times in ns since the epoch, None where nothing was said.

    The period is `start_ns` to `end_ns`, by default the scrapes tagged as profiling, or all where none is. A warm-up that ends
    after `start_ns` and says no start of its own begins there, and the period begins at its end. Where neither a warm-up nor
    a start is asked for, the scrapes tagged as warm-up are one.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    warmup_start_ns: int | None = None
    warmup_end_ns: int | None = None
    slice_duration_s: float = 2.0
    formats: Sequence[str] = DEFAULT_FORMATS
    estimator: str = DEFAULT


def replay(path: Path, options: Replay, folder: Path) -> Export:
    """Write the exports of a record; gives the JSON document. Raises PlanError for the asking, RecordError for the record."""
    _check(options)
    store = collect_from(lambda: read(path))
    _usable(path, store)
    period, warmup = periods(store, options)
    wanted = Wanted(
        period=period,
        estimator=ESTIMATORS[options.estimator],
        slice_ns=int(options.slice_duration_s * 1e9),
        warmup=warmup,
        version=inferometer.__version__,
        input_config={
            "server_metrics": list(store.endpoints),
            "server_metrics_formats": list(options.formats),
            "slice_duration": options.slice_duration_s,
            "histogram_estimator": options.estimator,
        },
    )
    return export(store, wanted, options.formats, folder)


def _check(options: Replay) -> None:
    """Raises PlanError with everything that is wrong."""
    problems = []
    if not (options.slice_duration_s == 0 or SHORTEST_SLICE_S <= options.slice_duration_s < 1e9):
        problems.append(Problem("--slice-duration", f"0 for no timeslices, or {SHORTEST_SLICE_S} s and more"))
    unknown = [name for name in options.formats if name not in FORMATS]
    if unknown or not options.formats:
        problems.append(Problem("--formats", f"any of {', '.join(FORMATS)}"))
    if options.estimator not in ESTIMATORS:
        problems.append(Problem("--histogram-estimator", f"one of {', '.join(ESTIMATORS)}"))
    if options.warmup_start_ns is not None and options.warmup_end_ns is None:
        problems.append(Problem("--warmup-start", "needs --warmup-end too"))
    for start, end, name in (
        (options.start_ns, options.end_ns, "--end"),
        (options.warmup_start_ns, options.warmup_end_ns, "--warmup-end"),
    ):
        if start is not None and end is not None and end <= start:
            problems.append(Problem(name, f"{end} is not after the start, {start}"))
    if problems:
        raise PlanError(problems)


def _usable(path: Path, store: Store) -> None:
    """Raises RecordError where there is nothing to export, with the reasons."""
    if not store.endpoints:
        raise RecordError(f"{path}: no scrapes in it")
    if not any(one.times for one in store.endpoints.values()):
        reasons = "; ".join(
            f"{one.url}: {drops.count} x {code} ({drops.first})"
            for one in store.endpoints.values()
            for code, drops in one.drops.items()
        )
        raise RecordError(f"{path}: no scrape in it can be used: {reasons}")


def periods(store: Store, options: Replay) -> tuple[Period, Period | None]:
    """The period and the warm-up. Raises PlanError for a period that ends before it begins."""
    answered = [one for one in store.endpoints.values() if one.times]
    tagged = _tagged(answered, "profiling") or [
        at for one in answered for at in (one.times[0], one.times[-1])
    ]
    start = min(tagged) if options.start_ns is None else options.start_ns
    end = max(tagged) if options.end_ns is None else options.end_ns
    warmup = None
    if options.warmup_end_ns is not None:
        first = min(one.times[0] for one in answered)
        begins = options.warmup_start_ns
        if begins is None:
            begins = start if start < options.warmup_end_ns else first
        warmup = Period(begins, options.warmup_end_ns)
        start = max(start, options.warmup_end_ns)
    elif options.start_ns is None and (warm := _tagged(answered, "warmup")):
        warmup = Period(min(warm), max(warm))
    if end < start:
        raise PlanError([Problem("--end", f"{end} is before the period's start, {start}")])
    return Period(start, end), warmup


def _tagged(endpoints: Sequence[Endpoint], wanted: str) -> list[int]:
    """The times of the scrapes of a phase, ns."""
    return [
        at for one in endpoints for at, phase in zip(one.times, one.phases, strict=True) if phase == wanted
    ]
