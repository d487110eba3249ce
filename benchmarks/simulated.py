"""Benchmarks of simulations: what one costs, whether two are the same, and how near they come to the embedded server."""

from __future__ import annotations

import json
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, Note, at_least, at_most
from benchmarks.instrument import COMMAND, JUDGED
from benchmarks.loads import Bench
from benchmarks.native import on_core
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

PLANS = {
    "open loop, 10/s": ["--rate", "10", "--requests", "400"],
    "open loop, 20/s, completions": ["--rate", "20", "--requests", "600", "--api", "completions"],
    "closed loop, 16": ["--concurrency", "16", "--requests", "800"],
}
QUICK = {"open loop, 20/s": ["--rate", "20", "--requests", "40", "--warmup", "10"]}


def _run(command: str, out: Path, *flags: str) -> tuple[Path, dict[str, Any]]:
    """The folder and the summary of one `inferometer` command. Raises RuntimeError with its words."""
    before = set(out.iterdir())
    words = [str(COMMAND), command, *flags, "--out", str(out), "--index", "none", "--json", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode not in JUDGED:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    (folder,) = set(out.iterdir()) - before
    return folder, json.loads(done.stdout)


def _cpu_s() -> float:
    """Seconds of CPU of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(bench: Bench) -> Iterator[Figure | Note]:
    """10,000 requests of the default workload on one core, from the command to the report; then the same again."""
    flags = ["--requests", "500" if bench.quick else "10000"]
    with bench.scratch() as out, on_core(bench.cores.client):
        began, spent = time.monotonic(), _cpu_s()
        folder, summary = _run("simulate", out, *flags)
        seconds, spent = time.monotonic() - began, _cpu_s() - spent
        again, _ = _run("simulate", out, *flags)
        records = [read_table(RunFolder(each).record, RECORD) for each in (folder, again)]
    simulated = summary["window"]["duration_s"]
    yield Figure(f"{flags[1]} requests, from command to report", seconds, "s", at_most(10.0), 2)
    yield Figure("of that, CPU time", spent, "s", at_most(10.0), 2)
    yield Figure("time simulated by time taken", simulated / seconds, "", digits=0)
    yield Figure(
        "two of them have the same record (1: yes)", float(records[0].equals(records[1])), "", at_least(1), 0
    )


def agreement(bench: Bench) -> Iterator[Figure | Note]:
    """Median TTFT of a simulation less that of a run on the embedded server, as a share of the latter.

    Of requests sent, and of requests due: in closed loop a run sends a little after a slot is free, within an operation of the
    engine, and waits that much less for its end.
    """
    for name, flags in (QUICK if bench.quick else PLANS).items():
        with bench.scratch() as out:
            _, real = _run("run", out, *flags)
            _, virtual = _run("simulate", out, *flags)
        for label, metric in (("TTFT P50", "ttft_ms"), ("TTFT P50 from due", "ttft_from_intended_ms")):
            medians = [summary["metrics"][metric]["p50"] for summary in (real, virtual)]
            yield Figure(f"{name}: {label}", 100 * (medians[1] / medians[0] - 1), "%", at_most(2.0), 2)
        late = real["load"]["lateness_ms"]["p50"]
        yield Figure(f"{name}: lateness of the run P50", late, "ms")
