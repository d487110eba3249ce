"""`python -m benchmarks.against COMMIT [LOAD...]`: what HTTP/1.1 costs per token and per request, against an earlier commit.

The commit is checked out beside this tree, and both run in turns on one server, which is written in C, the earlier one first
and then the later one first. A ratio is later / earlier within a pair; shown is the median, with its range. Both use the
installed packages of this tree.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import instrument, native
from benchmarks.busy import Others
from benchmarks.figure import Figure, Note, at_most, notes, rows, table
from benchmarks.loads import INTERVAL_US, TTFT_US, closed

ROOT = Path(__file__).parent.parent
PAIRS = 8
SLOWER = at_most(1.03)


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent, and to what a worker's CPU time is put in relation: the `unit` that a run does `per_s` of."""

    times: tuple[int, int]
    flags: Sequence[str]
    unit: str
    per_s: Callable[[instrument.Run], float]


def _streams(count: int, rounds: int) -> Load:
    return Load((TTFT_US, INTERVAL_US), closed(count, count * rounds), "token", lambda run: run.tokens_s)


_SHORT = ("--concurrency", "64", "--warmup", "1000", "--input-tokens", "16", "--output-tokens", "1")
LOADS = {
    "one-token": Load((0, 0), (*_SHORT, "--requests", "50000"), "request", lambda run: run.requests_s),
    "streams-1000": _streams(1_000, 5),
    "saturation": _streams(3_000, 5),
    "quick": _streams(20, 2),
}
"""`quick` is to see that it works."""


@contextlib.contextmanager
def checked_out(commit: str, place: Path) -> Iterator[Path]:
    """The tree of that commit, until the block ends. Raises RuntimeError with git's words."""
    _git("worktree", "add", "--detach", str(place), commit)
    try:
        yield place
    finally:
        _git("worktree", "remove", "--force", str(place))


def _git(*words: str) -> None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.strip()}")


def with_package(tree: Path) -> Mapping[str, str]:
    """The environment in which the command and its workers come from this tree. Raises RuntimeError if they do not."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    ask = [sys.executable, "-P", "-c", "import inferometer; print(inferometer.__file__)"]
    said = subprocess.run(ask, env=env, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(said).is_relative_to(tree / "src"):
        raise RuntimeError(f"the package comes from {said}, not from {tree}")
    return env


def compared(
    name: str, pairs: int, cores: native.Cores, binaries: native.Binaries, earlier: Path
) -> Iterator[Figure | Note]:
    """One load, in pairs."""
    load = LOADS[name]
    trees = {"earlier": with_package(earlier), "later": with_package(ROOT)}
    for number in range(pairs):
        order = ("earlier", "later") if number % 2 == 0 else ("later", "earlier")
        costs: dict[str, float] = {}
        others = Others()
        for which in order:
            with native.serving(binaries, cores, *load.times) as server, native.scratch() as out:
                run = instrument.measure(server, cores.client, Path(out), *load.flags, env=trees[which])
            costs[which] = run.cpu / load.per_s(run) * 1e6
            yield Note(f"{which}: verdict", run.verdict)
        for which in ("earlier", "later"):
            yield Figure(f"{which}: CPU of the worker per {load.unit}", costs[which], "us", digits=2)
        yield Figure("later : earlier", costs["later"] / costs["earlier"], "", SLOWER, 3)
        yield Figure("cores that others kept busy meanwhile", others.cores(), "", at_most(0.1), 2)


def main(argv: Sequence[str]) -> int:
    """Compare; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against", description=(__doc__ or "").partition("\n")[2]
    )
    parser.add_argument("commit", metavar="COMMIT", help="the earlier commit, as git names it")
    parser.add_argument(
        "loads", nargs="*", metavar="LOAD", help=f"which: {', '.join(LOADS)}; default all but quick"
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"of runs (default {PAIRS})")
    given = parser.parse_args(argv)
    if unknown := set(given.loads) - set(LOADS):
        parser.error(f"no such load: {', '.join(sorted(unknown))}; there are {', '.join(LOADS)}")
    cores, binaries = native.Cores.of_this_machine(), native.build()
    with native.scratch() as place, checked_out(given.commit, Path(place) / "earlier") as earlier:
        for name in given.loads or [one for one in LOADS if one != "quick"]:
            found = list(compared(name, given.pairs, cores, binaries, earlier))
            print(f"\n{name}")
            print(table([row.cells() for row in rows(name, [found])]))
            print("\n".join(f"  {note.label}: {note.text}" for note in notes([found])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
