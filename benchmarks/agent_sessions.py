"""Benchmarks of recorded agent sessions: how soon a large file starts, in how much memory, and how late steps are sent."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil

from benchmarks import instrument, native
from benchmarks.costs import MIB
from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import Bench
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

SESSIONS, STEPS = 10_000, 20
IN_FLIGHT, STEP_MS = 1_000, 5_000
"""Sessions at once, of which each sends a step every five seconds: 200 requests a second."""
SHORT = 6
"""Steps of a session of which 1,000 are in flight after half a minute."""
ON_S = 30.0
"""How long a load is watched from its first request on."""
_WORDS = ["river", "stone", "house", "tree", "light", "cloud", "market", "engine", "paper", "garden"]
_TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


def agents(bench: Bench) -> Iterator[Figure | Note]:
    """From the command to the first step, and memory then and after a while, of 200,000 steps; then lateness of steps."""
    sessions = SESSIONS // 20 if bench.quick else SESSIONS
    with native.serving(bench.binaries, bench.cores, 1_000, 20) as server, bench.scratch() as out:
        file = out / "sessions.jsonl"
        write(file, sessions, STEPS, 1_000)
        yield Figure(f"{sessions:,} sessions: size of the file", file.stat().st_size / MIB, "MiB", digits=0)
        flags = ["--sessions", str(file), "--rate", "10", "--warmup", "0", "--drain", "1"]
        watched = _watch(bench, server, out / "runs", flags, 3.0 if bench.quick else ON_S)
    what = f"{sessions * STEPS:,} steps"
    yield Figure(f"{what}: command to first step", watched.first_s, "s", at_most(5.0), 2)
    yield Figure(f"{what}: CPU time of the command until then", watched.cpu_s, "s", digits=2)
    for name, sizes in (("command", watched.command), ("worker", watched.worker)):
        yield Figure(f"{what}: memory of the {name} at the first step", sizes[0] / MIB, "MiB", digits=0)
        yield Figure(f"{what}: memory of the {name} at the end", sizes[-1] / MIB, "MiB", digits=0)
    yield from _lateness(bench)


def _lateness(bench: Bench) -> Iterator[Figure | Note]:
    """Of steps that wait for others, with IN_FLIGHT sessions at once."""
    rate = IN_FLIGHT * 1_000 / (SHORT * STEP_MS)
    seconds = 10.0 if bench.quick else 2 * SHORT * STEP_MS / 1_000
    with native.serving(bench.binaries, bench.cores, 1_000, 20) as server, bench.scratch() as out:
        file = out / "sessions.jsonl"
        write(file, round(rate * seconds), SHORT, STEP_MS)
        flags = [
            "--sessions",
            str(file),
            "--rate",
            f"{rate:g}",
            "--duration",
            f"{seconds:g}",
            "--warmup",
            "0",
        ]
        run = instrument.measure(server, bench.cores.client, out / "runs", *flags)
        rows = read_table(RunFolder.open(run.folder).record, RECORD)
        alone = _alone(bench, server, out / "alone", rate * SHORT, seconds / 2)
    waited = rows.filter(np.asarray(rows.column("turn")) > 0)
    late = np.asarray(waited.column("t_submit")) - np.asarray(waited.column("t_intended"))
    begun = np.sort(np.asarray(rows.filter(np.asarray(rows.column("turn")) == 0).column("t_submit")))
    busy = waited.filter(
        np.asarray(waited.column("t_intended")) > begun[0] + (SHORT - 1) * STEP_MS * 1_000_000
    )
    full = np.asarray(busy.column("t_submit")) - np.asarray(busy.column("t_intended"))
    for name, values in (("all steps", late), (f"{IN_FLIGHT:,} sessions in flight", full)):
        if len(values):
            p50, p99 = np.percentile(values, (50, 99)) / 1e6
            yield Figure(f"lateness of steps, {name}: P50", float(p50), "ms")
            yield Figure(f"lateness of steps, {name}: P99", float(p99), "ms", at_most(0.2))
            yield Note(f"steps, {name}", f"{len(values):,}")
            yield Figure(
                f"lateness of steps, {name}: P99, times that of requests", float(p99) / alone, "", digits=2
            )
    yield Figure("lateness of requests that wait for nothing, at that rate: P99", alone, "ms")
    yield Note("lateness: verdict", run.verdict)


def _alone(bench: Bench, server: native.Server, out: Path, rate: float, seconds: float) -> float:
    """P99 of the lateness of single requests at this rate, in ms: what is the machine's and no matter of steps."""
    flags = ["--rate", f"{rate:g}", "--duration", f"{seconds:g}", "--warmup", "0"]
    lengths = ["--input-tokens", "300", "--output-tokens", "20"]
    run = instrument.measure(server, bench.cores.client, out, *flags, *lengths)
    rows = read_table(RunFolder.open(run.folder).record, RECORD)
    late = np.asarray(rows.column("t_submit")) - np.asarray(rows.column("t_intended"))
    return float(np.percentile(late, 99)) / 1e6


class _Watched:
    """From the command to the first step, CPU time until then, and the resident bytes from then on."""

    def __init__(self) -> None:
        self.first_s = self.cpu_s = float("nan")
        self.command: list[int] = []
        self.worker: list[int] = []


def _watch(bench: Bench, server: native.Server, runs: Path, flags: Sequence[str], seconds: float) -> _Watched:
    command = instrument.command_for(server, runs, *flags)
    found, began, until = _Watched(), time.monotonic_ns(), None
    with native.on_core(bench.cores.client):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < (until or give_up):
        time.sleep(0.1)
        try:
            own = psutil.Process(process.pid)
            sizes = [child.memory_info().rss for child in own.children()]
            if until is None and int(server.stats()["requests"]) > 1:  # the probe's was the first
                until = time.monotonic() + seconds
                found.cpu_s = sum(own.cpu_times()[:2])
            if until is not None:
                found.command.append(own.memory_info().rss)
                found.worker.append(max(sizes, default=0))
        except psutil.Error:
            continue
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=native.TIMEOUT_S)
    if process.returncode != 130 or not stdout:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{stderr}")
    (folder,) = runs.iterdir()
    sent = np.asarray(read_table(RunFolder.open(folder).record, RECORD).column("t_send"))
    found.first_s = (int(sent.min()) - began) / 1e9
    return found


def write(path: Path, sessions: int, steps: int, tool_ms: int) -> None:
    """A file of sessions of an agent that calls a tool in each step but the last; its tools take `tool_ms` on average."""
    rng = random.Random(1)

    def words(count: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(count))

    with path.open("w", encoding="ascii") as file:
        for number in range(sessions):
            made = []
            for step in range(steps):
                first = [{"role": "system", "content": words(40)}, {"role": "user", "content": words(30)}]
                result = [{"role": "tool", "tool_call_id": f"c{step - 1}", "content": words(40)}]
                call = {"name": "search", "arguments": json.dumps({"q": words(3)})}
                calls = [{"id": f"c{step}", "type": "function", "function": call}]
                reply = {"reply": {"content": None, "tool_calls": calls}} if step < steps - 1 else {}
                delay = {"tool_ms": round(rng.uniform(0.5, 1.5) * tool_ms)}
                made.append({"messages": result if step else first, "output_tokens": 20} | delay | reply)
            made[0]["tool_ms"] = 0
            file.write(json.dumps({"session": f"s{number}", "tools": _TOOLS, "steps": made}) + "\n")
