"""`python -m benchmarks [NAME...]`: measure the instrument on this machine.

Every benchmark runs a server written in C on one core and the real command `inferometer` on another, and where there is
a floor (the least a client in C can do) measures that in the same run: trust the ratios, not the absolute times. The numbers
inform: the exit code is 0 whether goals are met or missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import inferometer
from benchmarks import (
    agent_sessions,
    arrival_power,
    comparison_null,
    costs,
    coverage,
    fit_tails,
    histogram_accuracy,
    history_power,
    loads,
    long_record,
    maximum,
    native,
    objectives,
    prepare,
    scrape,
    server_metrics,
    simulated,
    traces,
    transports,
    trial,
)
from benchmarks.busy import Others
from benchmarks.figure import Figure, Note, Row, at_most, grids, notes, rows, table
from benchmarks.headlines.tables import headlines
from benchmarks.loads import Bench
from benchmarks.peers import comparison

Benchmark = Callable[[Bench], Iterator[Figure | Note]]

ALL: dict[str, Benchmark] = {
    "streams-1000": partial(loads.streams, count=1000),
    "streams-2000": partial(loads.streams, count=2000),
    "saturation": partial(loads.streams, count=3000),
    "one-token": loads.one_token,
    "tls-500": loads.tls,
    "open-loop": loads.open_loop,
    "transports": transports.transports,
    "start": costs.start,
    "report": costs.report,
    "memory": costs.memory,
    "peers": comparison.peers,
    "long-record": long_record.long_record,
    "prepare": prepare.prepare,
    "scrape": scrape.scrape,
    "simulate": simulated.cost,
    "simulate-agreement": simulated.agreement,
    "fit-tails": fit_tails.tails,
    "trace-start": traces.start,
    "agent-sessions": agent_sessions.agents,
    "histogram-accuracy": histogram_accuracy.accuracy,
    "metrics-hour": server_metrics.hour,
    "comparison-null": comparison_null.null,
    "coverage": coverage.coverage,
    "trial": trial.trial,
    "objectives": objectives.objectives,
    "arrival-power": arrival_power.power,
    "maximum": maximum.maximum,
    "history-power": history_power.power,
    "headlines": headlines,
}
QUIET = at_most(0.1)
"""More than this of a core spent on other things, and latencies say more about them than about the instrument."""
ONCE = frozenset(
    {
        "start",
        "memory",
        "peers",
        "transports",
        "trace-start",
        "agent-sessions",
        "histogram-accuracy",
        "metrics-hour",
        "comparison-null",
        "coverage",
        "objectives",
        "arrival-power",
        "history-power",
        "fit-tails",
        "long-record",
        "maximum",
        "headlines",
    }
)
"""Repeats within itself, or takes too long to repeat."""


def machine(binaries: native.Binaries, cores: native.Cores) -> dict[str, Any]:
    """What the numbers were measured on, with what."""
    cc = subprocess.run([native.compiler(), "--version"], capture_output=True, text=True, check=False)
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "pinned": f"server on {cores.server}, client on {cores.client}"
        if cores.client is not None
        else "nothing",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "inferometer": inferometer.__version__,
        "packages": ", ".join(
            f"{name} {version(name)}" for name in ("httptools", "msgspec", "numpy", "pyarrow")
        ),
        "compiler": cc.stdout.partition("\n")[0] + " " + " ".join(native.FLAGS),
        "tls": "OpenSSL" if binaries.tls else "none (no OpenSSL headers)",
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
        "load average at start": f"{os.getloadavg()[0]:.2f}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _short(words: str) -> str:
    """The first and the last line: the command and the reason."""
    lines = words.strip().splitlines() or [""]
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1].strip()}"


def run(name: str, bench: Bench, repeat: int) -> tuple[list[Row], list[Note]]:
    """One benchmark, several times over; what goes wrong becomes a note."""
    repetitions: list[list[Figure | Note]] = []
    for _ in range(1 if name in ONCE else repeat):
        found: list[Figure | Note] = []
        others = Others()
        try:
            found.extend(ALL[name](bench))
        except (RuntimeError, OSError, subprocess.SubprocessError) as cause:
            found.append(Note("failed", _short(str(cause))))
        found.append(Figure("cores that others kept busy meanwhile", others.cores(), "", QUIET, 2))
        repetitions.append(found)
    return rows(name, repetitions), notes(repetitions)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[2]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(ALL)}; default all")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; the median is shown (default 3)")
    parser.add_argument("--rounds", type=int, default=5, help="requests a stream (default 5)")
    parser.add_argument("--minutes", type=float, default=2.0, help="length of the memory run (default 2)")
    parser.add_argument("--quick", action="store_true", help="small loads, once: to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(ALL):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    return given


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks named; the exit code."""
    given = arguments(argv)
    cores = native.Cores.of_this_machine()
    try:
        binaries = native.build()
    except native.NoCompiler as missing:
        print(missing, file=sys.stderr)
        return 0
    rounds, minutes = (2, 0.25) if given.quick else (given.rounds, given.minutes)
    bench = Bench(binaries, cores, rounds, minutes, given.quick)
    facts = machine(binaries, cores)
    if not given.json:
        print("\n".join(f"{name:<22}{value}" for name, value in facts.items()))
    shown: list[dict[str, Any]] = []
    said: dict[str, list[list[str]]] = {}
    for name in given.names or ALL:
        found, remarks = run(name, bench, 1 if given.quick else given.repeat)
        shown += [row.data() for row in found]
        said[name] = [[note.label, note.text] for note in remarks]
        if not given.json:
            print(f"\n{name}")
            print(grids(found), end="")
            print(table([row.cells() for row in found if not row.figure.grid]))
            print("\n".join(f"  {note.label}: {note.text}" for note in remarks), flush=True)
    if given.json:
        print(json.dumps({"machine": facts, "figures": shown, "notes": said}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
