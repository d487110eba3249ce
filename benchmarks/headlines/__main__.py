"""`python -m benchmarks.headlines TEST PRESET SEED...`: a line of JSON a search.

`--truth` prints the truth alone. `--lines FILE...` makes a table of lines that were printed before, so that seeds can be run in
several processes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, grids, notes, rows
from benchmarks.headlines.headline import Answer, Search, Truth, searched
from benchmarks.headlines.tables import figures
from benchmarks.headlines.tests import HEADLINES
from inferometer.server.presets import PRESETS


def line(test: str, preset: str, truths: Mapping[str, Truth], found: Search) -> dict[str, Any]:
    """One search as JSON has it."""
    answers = {
        name: {
            "truth": truth.value,
            "error": truth.error,
            "answer": found.answers[name].value if name in found.answers else None,
            "interval": found.answers[name].interval if name in found.answers else None,
        }
        for name, truth in truths.items()
    }
    head = {"test": test, "preset": preset, "seed": found.seed, "runs": found.runs}
    return head | {"answers": answers, "verdict": found.verdict, "reasons": found.reasons}


def read(lines: Sequence[str]) -> tuple[dict[str, Truth], list[Search]]:
    """What `line` wrote."""
    truths: dict[str, Truth] = {}
    found = []
    for row in map(json.loads, lines):
        truths = {name: Truth(one["truth"], one["error"]) for name, one in row["answers"].items()}
        answers = {
            name: Answer(one["answer"], tuple(one["interval"]) if one["interval"] else None)
            for name, one in row["answers"].items()
        }
        found.append(Search(row["seed"], row["runs"], answers, row["verdict"], tuple(row["reasons"])))
    return truths, found


def show(grid: str, truths: Mapping[str, Truth], found: Sequence[Search]) -> None:
    """The table."""
    made = list(figures(grid, truths, found))
    print(grids(rows("headlines", [[one for one in made if isinstance(one, Figure)]])), end="")
    print("\n".join(f"  {note.text}" for note in notes([made])))


def main(argv: Sequence[str]) -> None:
    """One test and preset."""
    flags = argparse.ArgumentParser(prog="python -m benchmarks.headlines")
    flags.add_argument("test", choices=sorted(HEADLINES))
    flags.add_argument("preset", choices=sorted(PRESETS))
    flags.add_argument("seeds", nargs="*", type=int)
    flags.add_argument("--quick", action="store_true")
    flags.add_argument("--truth", action="store_true")
    flags.add_argument("--table", action="store_true")
    flags.add_argument("--lines", nargs="+", type=Path, default=(), metavar="FILE")
    asked = flags.parse_args(argv)
    headline, grid = HEADLINES[asked.test], f"{asked.test}, {asked.preset}"
    if asked.lines:
        written = [row for path in asked.lines for row in path.read_text("utf-8").splitlines() if row]
        show(grid, *read(written))
        return
    truths = headline.truths(asked.preset, asked.quick)
    if asked.truth:
        print(json.dumps({name: asdict(truth) for name, truth in truths.items()}), flush=True)
    found = []
    for seed in asked.seeds:
        found.append(searched(headline, asked.preset, seed, quick=asked.quick))
        print(json.dumps(line(asked.test, asked.preset, truths, found[-1])), flush=True)
    if asked.table:
        show(grid, truths, found)


if __name__ == "__main__":
    main(sys.argv[1:])
