"""Scrapes and vectors for the tests of server metrics."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from inferometer.telemetry.metrics import four_phase
from inferometer.telemetry.metrics.document import Period, Wanted
from inferometer.telemetry.metrics.exports import export
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.series import Store, collect
from inferometer.telemetry.metrics.statistics import Estimator

VECTORS = Path(__file__).parent.parent / "vectors" / "server_metrics"
SECOND = 1_000_000_000
START = 1_750_000_000 * SECOND
URL = "http://localhost:8000/metrics"


def vector(name: str) -> dict[str, Any]:
    """One recorded case."""
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


def scrapes_of(case: dict[str, Any]) -> list[Scrape]:
    """A case's scrapes, with the latency that the recording had."""
    return [
        Scrape(one["url"], at, body, 1_500_000, one["content_type"], phase)
        for one in case["endpoints"]
        for (at, body), phase in zip(one["scrapes"], one["phases"], strict=True)
    ]


def wanted_of(case: dict[str, Any]) -> Wanted:
    """What a case was exported with."""
    window, warmup = case["window"], case["warmup_window"]
    return Wanted(
        Period(window["start_ns"], window["end_ns"]),
        four_phase.estimate,
        int((case["slice_duration"] or 0) * 1e9),
        Period(warmup["start_ns"], warmup["end_ns"]) if warmup else None,
        benchmark_id="0123456789ab",
    )


def exported(
    scrapes: Iterable[Scrape],
    folder: Path,
    start: float = 0,
    end: float = 100,
    slice_s: float = 2,
    estimator: Estimator = four_phase.estimate,
    formats: Sequence[str] = ("json",),
) -> dict[str, Any]:
    """The JSON export of scrapes over a period in seconds from START."""
    period = Period(START + int(start * SECOND), START + int(end * SECOND))
    export(collect(scrapes), Wanted(period, estimator, int(slice_s * SECOND)), formats, folder)
    return read_json(folder)


def read_json(folder: Path) -> dict[str, Any]:
    """The JSON export of a folder."""
    found: dict[str, Any] = json.loads((folder / "server_metrics_export.json").read_text())
    return found


def at(second: float, body: str, url: str = URL, **more: Any) -> Scrape:
    """A scrape at so many seconds from START."""
    return Scrape(url, START + int(second * SECOND), body, **more)


def store_of(*bodies: str) -> Store:
    """A scrape a second."""
    return collect(at(second, body) for second, body in enumerate(bodies))


def steps(call: Callable[[], object]) -> int:
    """Lines of the metrics' code that a call carries out, each turn of a loop counted: its cost without a clock."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def entered(frame: FrameType, _event: str, _argument: object) -> Any:
        return line if "telemetry/metrics" in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
