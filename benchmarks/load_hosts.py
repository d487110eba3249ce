"""`python -m benchmarks.load_hosts [--hosts 8] [--runs 20]`: several load hosts against one machine with as many workers.

Each load host is a network namespace on a bridge whose processes have a monotonic clock of their own, ahead of this machine's
by a known number of hours. The two ways to send the same Poisson load take turns, against the reference server, whose log is
the truth:

| figure                | what is compared                                                                       |
| --------------------- | -------------------------------------------------------------------------------------- |
| arrivals              | the share of runs whose merged arrivals pass all three checks (rate, dispersion, lag 1) |
| lateness              | P99 over all requests, on the hosts' own clocks                                        |
| error of mean TTFT    | the report's mean against the log's                                                    |
| error of the clocks   | what the report says of each host's offset against the truth, and its bound            |

Needs root, on Linux. All hosts share this machine's cores, so that lateness is that of a crowded machine in both columns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import native, reference
from benchmarks.busy import Others
from benchmarks.figure import Figure, Note, at_least, at_most, notes, rows, table
from benchmarks.instrument import COMMAND, COUNTING, JUDGED, Run
from benchmarks.namespaces import CONDUCTOR, bridged, why_not, within
from inferometer.journal.folder import RunFolder

RATE, SECONDS = 100, 10
AHEAD_S = 3600
"""The K-th host's clock is ahead by K + 1 times as much."""
SCRIPT = ("--ttft-us", "30000", "--ttft-spread-us", "10000", "--interval-us", "5000")
ARRIVALS = ("arrival_rate", "arrival_dispersion", "arrival_lag1")
TOKEN = re.compile(r"INFEROMETER_JOIN_TOKEN=(\S+) inferometer worker --join (\S+)")


@dataclass(frozen=True, slots=True)
class Load:
    """How much is sent, by how many."""

    hosts: int
    rate: int
    seconds: int
    seed: int

    def flags(self, url: str, out: Path) -> list[str]:
        """Of the command, but for who sends."""
        return [
            *(
                "run",
                "--url",
                url,
                *COUNTING,
                "--rate",
                str(self.rate),
                "--requests",
                str(self.rate * self.seconds),
            ),
            *("--seed", str(self.seed), "--warmup", "20", "--input-tokens", "64", "--output-tokens", "10"),
            *("--out", str(out), "--index", "none", "--json"),
        ]


def by_one(load: Load, url: str, out: Path) -> Run:
    """One machine sends it, with as many workers as there are hosts."""
    command = [str(COMMAND), *load.flags(url, out), "--workers", str(load.hosts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=native.TIMEOUT_S, check=False)
    return _finished(done.returncode, done.stdout, done.stderr, out, command)


def by_hosts(load: Load, url: str, out: Path, namespaces: Sequence[str]) -> Run:
    """Each namespace is a load host with one worker."""
    command = [
        *(str(COMMAND), *load.flags(url, out)),
        *("--hosts", str(load.hosts), "--listen", f"{CONDUCTOR}:0"),
    ]
    conductor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert conductor.stderr is not None
    said = ""
    while (found := TOKEN.search(said)) is None:
        line = conductor.stderr.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)}: {said}")
        said += line
    environment = {**os.environ, "INFEROMETER_JOIN_TOKEN": found[1]}
    hosts = [
        subprocess.Popen(
            within(
                name, str(COMMAND), "worker", "--join", found[2], "--name", f"host-{number + 1}",
                "--folder", str(out / "hosts" / name), ahead_s=(number + 1) * AHEAD_S,
            ),
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for number, name in enumerate(namespaces)
    ]  # fmt: skip
    try:
        stdout, stderr = conductor.communicate(timeout=native.TIMEOUT_S)
    finally:
        for one in hosts:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=10)
            one.kill()
    return _finished(conductor.returncode, stdout, said + stderr, out, command)


def _finished(code: int, stdout: str, stderr: str, out: Path, command: list[str]) -> Run:
    if code not in JUDGED:
        raise RuntimeError(f"{' '.join(command)}: exit code {code}\n{stderr.strip()}")
    summary: dict[str, Any] = json.loads(stdout)
    return Run(out / summary["run"]["id"], summary, command)


def passes(run: Run) -> bool:
    """Whether the merged arrivals pass their checks."""
    found = {one["code"]: one["status"] for one in run.summary["verdict"]["checks"]}
    return all(found[code] == "pass" for code in ARRIVALS)


def clock_errors_ms(run: Run) -> list[tuple[float, float]]:
    """Of each host: how far the offset in the report is from the truth, and its bound."""
    found = []
    for one in run.summary["instrument"]["hosts"]:
        ahead_ns = int(one["name"].removeprefix("host-")) * AHEAD_S * 1_000_000_000
        clock = one["clock"]
        found.append((abs(clock["offset_ns"] + ahead_ns) / 1e6, clock["bound_ns"] / 1e6))
    return found


def measured(hosts: int, runs: int, rate: int, seconds: int) -> Iterator[Figure | Note]:
    """All runs, in turns."""
    seen: dict[str, list[tuple[Run, float]]] = {"one machine": [], f"{hosts} hosts": []}
    others = Others()
    with bridged(hosts) as namespaces:
        for number in range(runs):
            load = Load(hosts, rate, seconds, 1000 + number)
            for name in seen if number % 2 == 0 else reversed(seen):
                with (
                    native.scratch() as place,
                    reference.serving(native.Cores(None, None), SCRIPT, None, CONDUCTOR) as server,
                ):
                    out = Path(place)
                    run = (
                        by_one(load, server.url, out)
                        if name == "one machine"
                        else by_hosts(load, server.url, out, namespaces)
                    )
                    joined = reference.joined(RunFolder.open(run.folder), server)
                    seen[name].append((run, float(joined.ttft.mean() - joined.ttft_true.mean())))
    yield Figure("cores that others kept busy meanwhile", others.cores(), "", at_most(0.1), 2)
    p99 = {}
    for name, done in seen.items():
        late = [run.summary["load"]["lateness_ms"]["p99"] for run, _ in done]
        p99[name] = float(np.median(late))
        yield Figure(
            f"{name}: arrivals pass", float(np.mean([passes(run) for run, _ in done])), "", at_least(0.99), 3
        )
        yield Figure(f"{name}: P99 lateness, median", p99[name], "ms")
        yield Figure(
            f"{name}: error of mean TTFT, median", float(np.median([error for _, error in done])), "ms"
        )
        yield Figure(f"{name}: error of mean TTFT, largest", max((abs(error) for _, error in done)), "ms")
        yield Note(f"{name}: verdicts", ", ".join(run.verdict for run, _ in done))
    one, several = seen
    beyond = max(0.0, p99[several] - p99[one])
    yield Figure("P99 lateness beyond one machine's", beyond, "ms", at_most(0.1))
    errors = [pair for run, _ in seen[several] for pair in clock_errors_ms(run)]
    yield Figure(
        "clocks within their bound", float(np.mean([e <= b for e, b in errors])), "", at_least(1.0), 3
    )
    yield Figure("error of a clock, largest", max(e for e, _ in errors), "ms")
    yield Figure("bound of a clock, median", float(np.median([b for _, b in errors])), "ms", at_most(0.1))


def main(argv: Sequence[str]) -> int:
    """Measure; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load_hosts", description=(__doc__ or "").partition("\n")[2]
    )
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--runs", type=int, default=20, help="of each way to send (default 20)")
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    given = parser.parse_args(argv)
    if (why := why_not()) is not None:
        parser.error(why)
    found: list[Figure | Note] = []
    with contextlib.suppress(KeyboardInterrupt):
        found.extend(measured(given.hosts, given.runs, given.rate, given.seconds))
    print(table([row.cells() for row in rows("load hosts", [found])]))
    print("\n".join(f"  {note.label}: {note.text}" for note in notes([found])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
