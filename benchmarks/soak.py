"""A long run, watched: `python -m benchmarks.soak [--minutes N]` (`make soak`: an hour).

The reference server is measured in open loop, 200 requests per second of 100 tokens, 20,000 tokens per second, over warm
connections and with its metrics scraped. The server has the first core, who measures it the rest. Every ten seconds the
memory and the open files of each process are read: the command, its worker, its scraper, and the server. Memory is what no
file stands for: the worker also maps the file of its requests, page by page as they fall due, which the kernel can drop at any
time. Printed is of each what it had at most, and how much it grew in ten minutes (the slope by least squares, without the first
quarter, at most ten minutes); and P99 of lateness in each sixth of the run.

What the command needs to read its record afterwards is told apart: its memory then is that of a report (docs/performance.md).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks import instrument
from benchmarks.busy import Others
from benchmarks.long_record import own_bytes
from benchmarks.server_capacity import keep_off_first, server
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.journal.seal import record_parts

RATE, TOKENS = 200, 100
LOOK_S, SETTLING_S, TEN_MINUTES_S = 10.0, 600.0, 600.0
PARTS = 6
MIB = 1 << 20
GROWTH_MIB = 1e6 / MIB
"""The goal: less in ten minutes."""
ENGINE = (
    *("--set", "prefill_base=1us", "--set", "prefill_per_token=0us", "--set", "token_budget=100000"),
    *("--set", "step_per_request=0us", "--set", "step_base=10ms", "--set", "jitter=0"),
)
"""An answer takes a second: some 200 are in flight."""
NAMES = {"inferometer.drive.worker": "worker", "inferometer.telemetry.metrics.scraper": "scraper"}

Look = tuple[float, float, int]
"""Seconds since the start, MiB of memory of its own, open files."""


def looks(processes: Iterable[tuple[str, psutil.Process]], at: float) -> Iterable[tuple[str, Look]]:
    """One of each process that is there."""
    for name, process in processes:
        try:
            yield name, (at, (own_bytes(process.pid) or process.memory_info().rss) / MIB, process.num_fds())
        except psutil.Error:
            continue  # it has ended


def processes_of(command: psutil.Process, engine: psutil.Process) -> list[tuple[str, psutil.Process]]:
    """The processes of a run, by name."""
    found = [("command", command), ("server", engine)]
    try:
        for child in command.children():
            words = child.cmdline()
            found += [(name, child) for module, name in NAMES.items() if module in words]
    except psutil.Error:
        pass  # it has ended
    return found


def growth(seen: Sequence[Look], of: int, seconds: float) -> float:
    """Of a value of each look, in ten minutes."""
    settled = [one for one in seen if min(SETTLING_S, seconds / 4) < one[0] < seconds]
    at, values = [one[0] for one in settled], [one[of] for one in settled]
    return float(np.polyfit(at, values, 1)[0]) * TEN_MINUTES_S


def lateness_p99_ms(folder: RunFolder) -> list[float]:
    """Of the measured requests that were due in each part of the run."""
    columns = ("phase", "t_intended", "t_submit")
    due, late = [], []
    for part in record_parts(folder.record, columns):
        rows = part.filter(
            (part["phase"].to_numpy() == Phase.MEASURE) & np.asarray(part["t_submit"].is_valid())
        )
        due.append(rows["t_intended"].to_numpy())
        late.append(rows["t_submit"].to_numpy() - due[-1])
    at, by = np.concatenate(due), np.concatenate(late) / 1e6
    edges = np.linspace(at.min(), at.max() + 1, PARTS + 1)
    where = np.searchsorted(edges, at, "right") - 1
    return [float(np.percentile(by[where == one], 99)) for one in range(PARTS)]


def soak(minutes: float, out: Path) -> None:
    """Carries it out and prints what was seen."""
    seconds = minutes * 60
    seen: dict[str, list[Look]] = defaultdict(list)
    with server(*ENGINE) as (port, engine):
        words = ["--url", f"http://127.0.0.1:{port}", "--model", "truth", *instrument.COUNTING]
        load = [
            "--rate",
            str(RATE),
            "--duration",
            f"{seconds:.0f}s",
            "--warmup",
            "200",
            "--keep-text",
            "none",
        ]
        lengths = ["--input-tokens", "64", "--output-tokens", str(TOKENS)]
        metrics = ["--server-metrics", f"http://127.0.0.1:{port}/metrics"]
        command = [str(instrument.COMMAND), "run", *words, *load, *lengths, *metrics, "--quiet", "--json"]
        process = subprocess.Popen(
            [*command, "--out", str(out), "--index", "none"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        keep_off_first(process.pid)
        others, began, top = Others(process.pid, engine.pid), time.monotonic(), psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - began < seconds:
            for name, one in looks(processes_of(top, engine), time.monotonic() - began):
                seen[name].append(one)
            time.sleep(LOOK_S)
        busy = others.cores()
        stdout, stderr = process.communicate()
    if process.returncode not in instrument.JUDGED:
        raise RuntimeError(f"exit code {process.returncode}\n{stderr}")
    (path,) = out.iterdir()
    _show(seen, seconds, json.loads(stdout), lateness_p99_ms(RunFolder.open(path)))
    print(f"other work kept {busy:.2f} cores busy; {platform.platform()}, Python {platform.python_version()}")


def _show(
    seen: dict[str, list[Look]], seconds: float, summary: dict[str, Any], late_ms: Sequence[float]
) -> None:
    for name, of in seen.items():
        most_mib, most_files = max(one[1] for one in of), max(one[2] for one in of)
        grew = growth(of, 1, seconds)
        met = "met" if grew < GROWTH_MIB else "missed"
        print(
            f"{name}: {most_mib:.1f} MiB at most, growing by {grew:.2f} MiB in ten minutes ({met}); "
            f"{most_files} open files at most, growing by {growth(of, 2, seconds):.2f} in ten minutes"
        )
    print("P99 of lateness by sixths of the run:", ", ".join(f"{one:.3f}" for one in late_ms), "ms")
    requests, throughput = summary["requests"], summary["throughput"]
    print(f"{requests['completed']} of {requests['sent']} requests, {throughput['output_tok_s']} tokens/s")
    print("verdict:", summary["verdict"]["status"], [one["code"] for one in summary["verdict"]["reasons"]])


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inferometer-soak-") as place:
        soak(given.minutes, Path(place))


if __name__ == "__main__":
    main()
