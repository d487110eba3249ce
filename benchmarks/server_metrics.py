"""Benchmarks of the exports of server metrics: an hour of scrapes, from the raw record to JSON and CSV."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.figure import Figure, Note, at_most
from benchmarks.histogram_accuracy import KINDS
from benchmarks.instrument import COMMAND
from benchmarks.loads import Bench
from benchmarks.native import on_core
from inferometer.telemetry.metrics.record import Scrape, write

INTERVAL_NS = 333_000_000
HOUR = 10_800
"""Scrapes in an hour."""
REQUESTS = 7
"""Between two scrapes: 21 a second."""
COPIES = 3
"""Of the four histograms of a server like vLLM."""
GAUGES = 20
WIDE_ENDPOINTS, WIDE_SERIES, WIDE_SCRAPES = 20, 2_000, 180
"""Many endpoints with many series, for a minute."""
CHANGING = 0.1
"""The share of a wide endpoint's series that change between scrapes."""


def bodies(scrapes: int, rng: np.random.Generator) -> Iterator[str]:
    """What a server like vLLM under 20 requests a second exposes: 12 histograms, 20 gauges, 20 counters."""
    kinds = [
        (f"{number}_{at}", one) for number in range(COPIES) for at, one in enumerate(KINDS["log-normal"])
    ]
    held = {name: np.zeros(len(one.bounds) + 1) for name, one in kinds}
    sums = dict.fromkeys(held, 0.0)
    for at in range(scrapes):
        lines: list[str] = []
        for name, one in kinds:
            values = one.draw(REQUESTS, rng)
            np.add.at(held[name], np.searchsorted(one.bounds, values, "left"), 1)
            sums[name] += float(values.sum())
            metric = f"vllm:latency_{name}_seconds"
            lines += [f"# HELP {metric} Histogram of a latency in seconds.", f"# TYPE {metric} histogram"]
            cumulative = np.cumsum(held[name]).tolist()
            for le, count in zip([*map(float, one.bounds), "+Inf"], cumulative, strict=True):
                lines.append(f'{metric}_bucket{{engine="0",le="{le}",model_name="m"}} {count}')
            lines.append(f'{metric}_count{{engine="0",model_name="m"}} {cumulative[-1]}')
            lines.append(f'{metric}_sum{{engine="0",model_name="m"}} {sums[name]}')
        for number in range(GAUGES):
            lines += [f"# TYPE g{number} gauge", f'g{number}{{engine="0"}} {int(rng.integers(100))}']
            lines += [f"# TYPE c{number}_total counter", f'c{number}_total{{engine="0"}} {at * number}']
        yield "\n".join(lines) + "\n"


def wide_bodies(scrapes: int, rng: np.random.Generator) -> Iterator[str]:
    """An endpoint of many gauges, some of which change from one scrape to the next."""
    values = rng.integers(0, 1000, WIDE_SERIES)
    for _ in range(scrapes):
        changed = rng.random(WIDE_SERIES) < CHANGING
        values[changed] = rng.integers(0, 1000, int(changed.sum()))
        rows = [f'g{at % 50}{{shard="{at}",model="m"}} {value}' for at, value in enumerate(values.tolist())]
        yield "\n".join(rows) + "\n"


def _record(path: Path, endpoints: list[Iterator[str]]) -> int:
    """Write a record of these endpoints' bodies; the bytes it takes."""
    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as out:
        for at, row in enumerate(zip(*endpoints, strict=True)):
            for number, body in enumerate(row):
                time_ns = 1_750_000_000_000_000_000 + at * INTERVAL_NS + number
                out.write(
                    write(Scrape(f"http://localhost:{8000 + number}/metrics", time_ns, body, 2_000_000))
                )
    return path.stat().st_size


def _replay(record: Path, out: Path, formats: list[str]) -> tuple[float, float]:
    """Seconds and the largest memory, MB, of one `inferometer metrics replay`. Raises RuntimeError with its words."""
    words = [str(COMMAND), "metrics", "replay", str(record), "--out", str(out), "--formats", *formats]
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {process.returncode}")
    return time.monotonic() - began, used.ru_maxrss / 1024


def hour(bench: Bench) -> Iterator[Figure | Note]:
    """The command from start to end: reading the record, every statistic, timeslices of 2 s, the files."""
    rng = np.random.default_rng(1)
    scrapes, wide = (200, 20) if bench.quick else (HOUR, WIDE_SCRAPES)
    with bench.scratch() as out, on_core(bench.cores.client):
        size = _record(out / "hour.zst", [bodies(scrapes, rng)])
        sample = next(bodies(1, rng))
        samples = sum(not line.startswith("#") for line in sample.splitlines())
        label = f"{scrapes} scrapes of {samples} samples, {len(sample) / 1e3:.0f} kB: the raw record"
        yield Figure(label, size / 1e6, "MB", None, 1)
        for formats, goals in ((["json", "csv"], True), (["json", "csv", "jsonl", "parquet"], False)):
            seconds, memory = _replay(out / "hour.zst", out, formats)
            label = f"exported as {', '.join(formats)}"
            yield Figure(label, seconds, "s", at_most(20.0) if goals else None, 1)
            yield Figure(f"{label}: memory", memory, "MB", at_most(1000.0) if goals else None, 0)
        _record(out / "wide.zst", [wide_bodies(wide, rng) for _ in range(WIDE_ENDPOINTS)])
        seconds, memory = _replay(out / "wide.zst", out, ["json", "csv"])
        label = f"{WIDE_ENDPOINTS} endpoints x {WIDE_SERIES} series, {wide} scrapes each"
        yield Figure(label, seconds, "s", None, 1)
        yield Figure(f"{label}: memory", memory, "MB", None, 0)
