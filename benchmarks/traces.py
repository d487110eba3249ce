"""Benchmarks of trace replay: how soon a long trace starts, in how much memory, and whether its requests are made in time."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks import instrument, native
from benchmarks.costs import MIB
from benchmarks.figure import Figure, Note, at_most
from benchmarks.loads import Bench

ROWS = 1_000_000
GAP_MS = 5.0
"""200 requests a second on average, Poisson."""
ON_S = 15.0
"""How long a replay is watched from its first request on; its trace would last for 83 minutes."""


def start(bench: Bench) -> Iterator[Figure | Note]:
    """From the command to the first traced request at the server, and memory, for a million rows of two formats."""
    rows = ROWS // 20 if bench.quick else ROWS
    for name, write in (("Mooncake", _mooncake), ("Azure", _azure)):
        with native.serving(bench.binaries, bench.cores, 1_000, 100) as server, bench.scratch() as out:
            trace = out / f"trace-{name.lower()}"
            write(trace, rows)
            size = trace.stat().st_size / MIB
            runs = out / "runs"
            flags = ["--trace", str(trace), "--warmup", "0", "--drain", "1"]
            command = instrument.command_for(server, runs, *flags)
            began = time.monotonic_ns()
            with native.on_core(bench.cores.client):
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            most = _watched(process, server, 3.0 if bench.quick else ON_S)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=native.TIMEOUT_S)
            if process.returncode != 130 or not stdout:
                raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{stderr}")
            # The probe says hello before; planned requests begin with a nonce, which is nine digits.
            planned = min(row.arrived_ns for row in server.truth() if row.id[:9].isdecimal())
            summary = json.loads(stdout)
        seconds = (planned - began) / 1e9
        yield Figure(f"{name}, {rows:,} rows: command to first request", seconds, "s", at_most(10.0), 1)
        yield Figure(f"{name}: size of the file", size, "MiB", digits=0)
        yield Figure(f"{name}: largest memory of the command", most[0] / MIB, "MiB", digits=0)
        yield Figure(f"{name}: largest memory of its worker", most[1] / MIB, "MiB", digits=0)
        yield Figure(f"{name}: requests sent meanwhile", summary["requests"]["sent"], "", digits=0)
        late = summary["load"]["trace"]["unprepared"]
        yield Figure(f"{name}: requests not yet made when due", late, "", at_most(0), 0)
        yield Note(f"{name}: verdict", ", ".join(one["code"] for one in summary["verdict"]["reasons"]))


def _watched(process: subprocess.Popen[str], server: native.Server, seconds: float) -> tuple[int, int]:
    """Wait until the server has had requests for so long; the largest resident bytes of the command and of its worker."""
    most, until, give_up = (0, 0), None, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < (until or give_up):
        time.sleep(0.25)
        try:
            own = psutil.Process(process.pid)
            sizes = [child.memory_info().rss for child in own.children()]
            most = max(most[0], own.memory_info().rss), max([most[1], *sizes])
        except psutil.Error:
            continue
        if until is None and int(server.stats()["requests"]) > 1:
            until = time.monotonic() + seconds
    return most


def _mooncake(path: Path, rows: int) -> None:
    """Prompts of up to 4,096 tokens: one of fifty shared blocks in front, the rest their own."""
    rng, at, free = random.Random(1), 0.0, 50
    with path.open("w", encoding="ascii") as file:
        for _ in range(rows):
            at += rng.expovariate(1 / GAP_MS)
            blocks = rng.randint(1, 8)
            ids = [rng.randrange(50), *range(free, free + blocks - 1)]
            free += blocks - 1
            length = 512 * blocks - rng.randrange(512)
            file.write(
                f'{{"timestamp": {at:.0f}, "input_length": {length}, "output_length": {rng.randint(1, 20)}, '
                f'"hash_ids": {ids}}}\n'
            )


def _azure(path: Path, rows: int) -> None:
    """Dates of one morning."""
    rng, at = random.Random(1), 0.0
    with path.open("w", encoding="ascii") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for _ in range(rows):
            at += rng.expovariate(1 / GAP_MS) / 1000
            hours, rest = divmod(at, 3600)
            minutes, seconds = divmod(rest, 60)
            when = f"2023-11-16 {int(hours):02d}:{int(minutes):02d}:{int(seconds):02d}.{int(seconds % 1 * 1e7):07d}"
            file.write(f"{when},{rng.randint(10, 4000)},{rng.randint(1, 20)}\n")
