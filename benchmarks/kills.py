"""What a SIGKILL costs: `python -m benchmarks.kills [--kills N] [--seed S]`.

Each kill ends one process of a fresh run, at an instant drawn evenly from the life of such a process in a run that nobody
disturbed: before, during and after the load. Then the run is left to end and, if it has left no summary, recovered. The victims
take turns:

| victim    | the run measures                                       | a finished request is one that                       |
| --------- | ------------------------------------------------------ | ---------------------------------------------------- |
| conductor | a reference server that outlives it                    | that server's truth log says it had sent whole       |
| worker    | the same                                               | the same                                             |
| scraper   | the same                                               | the same                                             |
| lane      | the same, with prompts that take lanes to make         | the same: none, since nothing is sent before         |
| server    | the embedded one, whose truth log ends with it         | the worker's counters, read just before, had counted |

A finished request is lost if the record does not have it. Its age is the time from its end to the kill: the counters do not say
it, and then the age is not known. A verdict claims too much if it is VALID, and the record lacks a request of the plan.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.server_capacity import server
from inferometer.calibration import join
from inferometer.drive.progress_counters import Counters
from inferometer.errors import InferometerError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams
from inferometer.run.evaluate import recover

VICTIMS = {
    "conductor": None,
    "worker": "inferometer.drive.worker",
    "scraper": "inferometer.telemetry.metrics.scraper",
    "lane": "inferometer.workload.lane",
    "server": "inferometer.server",
}
"""Each kind of process, and the module by which a child of the conductor is known."""
REQUESTS = 1_020
LOAD = [
    "--rate",
    "400",
    "--requests",
    str(REQUESTS),
    "--warmup",
    "20",
    "--input-tokens",
    "20",
    "--output-tokens",
    "5",
]
"""Long enough that the record could be VALID: 1,000 requests make a P99."""
LONG_PROMPTS = ["--input-tokens", "2500", "--tokenizer", "cl100k_base"]
"""So many tokens are made by lanes (workload/parallel.py)."""
PATIENCE_S = 90.0
LOOK_S = 0.05
_COMMAND = [sys.executable, "-c", "from inferometer.cli.main import main; main()"]


@dataclass(frozen=True, slots=True)
class Losses:
    """What one kill cost. `ages_s`: of the lost requests, where known."""

    finished: int
    lost: int
    ages_s: tuple[float, ...] = ()


def losses(ended_ns: Mapping[str, int], recorded: Iterable[str], killed_ns: int) -> Losses:
    """The requests that had ended before the kill, by their nonces, held against those on record."""
    finished = {key: ended for key, ended in ended_ns.items() if ended < killed_ns}
    lost = sorted((killed_ns - finished[key]) / 1e9 for key in finished.keys() - set(recorded))
    return Losses(len(finished), len(lost), tuple(lost))


def claims_too_much(verdict: str | None, recorded: int, planned: int) -> bool:
    """Whether a verdict vouches for a record that lacks requests of the plan."""
    return verdict == "VALID" and recorded < planned


@dataclass(slots=True)
class Tally:
    """All kills of one kind of process. `misses`: instants at which there was no such process, or none any more."""

    kills: int = 0
    misses: int = 0
    under_load: int = 0
    finished: int = 0
    lost: int = 0
    ages_s: list[float] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    too_much: int = 0
    hung: int = 0
    left: int = 0


def _load(victims: Sequence[str]) -> list[str]:
    """The load of a run with these victims."""
    return [*LOAD, *(LONG_PROMPTS if "lane" in victims else [])]


def _find(process: subprocess.Popen[bytes], victim: str) -> psutil.Process | None:
    """The process to kill, if it is there now."""
    module = VICTIMS[victim]
    with contextlib.suppress(psutil.Error):
        conductor = psutil.Process(process.pid)
        if module is None:
            return conductor if process.poll() is None else None
        return next((child for child in conductor.children() if module in child.cmdline()), None)
    return None


def _counted(out: Path) -> tuple[int, int]:
    """What the worker's counters say in a run under way: requests in flight or to come, and those that have ended."""
    for live in out.glob("*/journal/live"):
        with contextlib.suppress(OSError, ValueError):
            progress = Counters.attach(live.parent.parent, 0, 1).progress()
            return progress.in_flight, progress.ok + progress.failed
    return 0, 0


def _truth(port: int, method: str = "GET") -> dict[str, int]:
    """When each generation ended, by how its prompt began; `DELETE` forgets them."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/inferometer/truth", method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        rows = [json.loads(line) for line in response.read().splitlines()] if method == "GET" else []
    return {row["prompt_head"]: row["ended_ns"] for row in rows if row["outcome"] == "finished"}


def _recorded(folder: RunFolder) -> tuple[list[str], list[str], int]:
    """The nonces of the schedule, those on record, and how many of these are of the measurement."""
    try:
        schedule = Schedule(folder.schedule)
    except InferometerError:
        return [], [], 0
    names = join.nonces(schedule.table, schedule.body)
    rows = streams(folder, "worker", OUTCOME)
    measured = sum(phase == Phase.MEASURE for phase in rows["phase"].to_pylist())
    return names, [names[index] for index in rows["index"].to_pylist()], measured


def _verdict(path: Path) -> str | None:
    """The verdict of a run, rebuilt where the run left none; None where nothing was measured."""
    summary = path / "summary.json"
    if not summary.exists():
        with contextlib.suppress(InferometerError):
            recover(RunFolder.open(path))
    if not summary.exists():
        return None
    status: str = json.loads(summary.read_bytes())["verdict"]["status"]
    return status


def one(victim: str, after_s: float, port: int, tally: Tally) -> None:
    """One run, one kill, and what came of it."""
    _truth(port, "DELETE")
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        out, log = Path(place, "runs"), Path(place, "log")
        target = [] if victim == "server" else ["--url", f"http://127.0.0.1:{port}"]
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*_COMMAND, "run", *target, *_load([victim]), "--quiet", "--out", str(out)],
                stdout=sink,
                stderr=sink,
            )
        time.sleep(after_s)
        children = _children(process)
        found, (in_flight, counted) = _find(process, victim), _counted(out)
        if found is None:
            tally.misses += 1
        else:
            killed = time.monotonic_ns()
            found.send_signal(signal.SIGKILL)
            tally.kills += 1
            tally.under_load += in_flight > 0
        _wait(process, children, tally)
        if found is None:
            return
        tally.codes[process.returncode] = tally.codes.get(process.returncode, 0) + 1
        if b"Traceback" in log.read_bytes():
            print(log.read_text(errors="replace"), file=sys.stderr)
        folders = [path for path in out.glob("*") if (path / "run.json").exists()]
        if not folders:
            _count(tally, None, Losses(0, 0), 0)
            return
        verdict = _verdict(folders[0])
        names, recorded, measured = _recorded(RunFolder(folders[0]))
        if victim == "server":
            cost = Losses(counted, max(0, counted - len(recorded)))
        else:
            width = len(names[0]) if names else 0
            known = set(names)
            ended = {head[:width]: at for head, at in _truth(port).items() if head[:width] in known}
            cost = losses(ended, recorded, killed)
        if cost.lost and "--keep" in sys.argv:
            shutil.copytree(folders[0], Path(tempfile.gettempdir(), f"kill-{victim}-{killed}"))
        oldest = f"oldest {max(cost.ages_s, default=0.0):.2f} s"
        found_words = f"{cost.lost} of {cost.finished} lost, {oldest}, {verdict}"
        print(f"{victim} after {after_s:.2f} s: {found_words}", flush=True)
        _count(tally, verdict, cost, measured)


def _count(tally: Tally, verdict: str | None, cost: Losses, measured: int) -> None:
    word = verdict or "none"
    tally.verdicts[word] = tally.verdicts.get(word, 0) + 1
    tally.finished += cost.finished
    tally.lost += cost.lost
    tally.ages_s += cost.ages_s
    tally.too_much += claims_too_much(verdict, measured, REQUESTS)


def _children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def _wait(process: subprocess.Popen[bytes], children: Sequence[psutil.Process], tally: Tally) -> None:
    """Until the run and all that it started have ended; what does not is counted and ended."""
    try:
        process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        tally.hung += 1
        process.kill()
        process.wait()
    _, left = psutil.wait_procs(children, timeout=PATIENCE_S)
    tally.left += len(left)
    for child in left:
        with contextlib.suppress(psutil.Error):
            child.kill()


def _lives(victims: Sequence[str], port: int) -> dict[str, tuple[float, float]]:
    """From when to when each kind of process lives in a run that nobody disturbs, s after its start."""
    began = time.monotonic()
    target = [] if "server" in victims else ["--url", f"http://127.0.0.1:{port}"]
    lives: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        command = [*_COMMAND, "run", *target, *_load(victims), "--quiet", "--out", place]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                now = time.monotonic() - began
                for victim in victims:
                    if _find(process, victim) is not None:
                        lives[victim] = (lives.get(victim, (now, now))[0], now)
                time.sleep(LOOK_S)
        summary = json.loads(next(iter(Path(place).glob("*/summary.json"))).read_bytes())
    status, length = summary["verdict"]["status"], time.monotonic() - began
    print(f"without a kill: {length:.1f} s, exit code {process.returncode}, {status}; {lives}", flush=True)
    return lives


def _line(victim: str, tally: Tally) -> str:
    ages = sorted(tally.ages_s)
    middle = f"{ages[len(ages) // 2]:.2f}" if ages else "-"
    worst = f"{ages[-1]:.2f}" if ages else "-"
    verdicts = ", ".join(f"{count} {word}" for word, count in sorted(tally.verdicts.items()))
    codes = ", ".join(f"{count} x {code}" for code, count in sorted(tally.codes.items()))
    return (
        f"| {victim} | {tally.kills} | {tally.under_load} | {tally.finished} | {tally.lost} | {middle} | {worst} | "
        f"{verdicts} | {tally.too_much} | {codes} | {tally.hung} | {tally.left} |"
    )


def main() -> int:
    """Carry out the kills and print a table; 1 if a verdict claimed too much, or a loss was older than a second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="how many, over all kinds (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the instants (default 1)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of runs that lost requests")
    given = parser.parse_args()
    drawn = random.Random(given.seed)
    tallies = {victim: Tally() for victim in VICTIMS}
    print(
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    with server() as (port, _):
        lives = _lives(["conductor", "worker", "scraper"], port)
        lives |= _lives(["lane"], port) | _lives(["server"], port)
        while (done := sum(tally.kills for tally in tallies.values())) < given.kills:
            victim = list(VICTIMS)[done % len(VICTIMS)]
            one(victim, drawn.uniform(*lives[victim]), port, tallies[victim])
    print(
        "| killed | kills | under load | finished | lost | median age s | worst age s | verdicts | VALID wrongly | "
        "exit codes | hung | processes left |"
    )
    print("|" + " --- |" * 12)
    print("\n".join(_line(victim, tally) for victim, tally in tallies.items()))
    print(
        f"misses: {sum(tally.misses for tally in tallies.values())} instants at which there was no such process"
    )
    return int(any(tally.too_much or max(tally.ages_s, default=0.0) > 1.0 for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
