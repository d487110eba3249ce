"""What a folder without a plan is, in words that follow "not a run folder": it may hold runs, of a campaign or another study
that is under way or was killed before it had a result, or be a run that was killed before it had a plan.

Nothing is written in the middle of a test: what was measured is in the folders of its runs, and which test it was follows from
`tests.json` and from the documents that are not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inferometer import foreign_json, whole_file
from inferometer.errors import RecordError
from inferometer.journal import hold
from inferometer.journal.documents import holds

MOST = 8
"""Runs that are listed."""


def unfinished(path: Path) -> str:
    """What lies there, and what to do with it; empty where it is nothing of ours."""
    if not path.is_dir():
        return "" if path.exists() else ". There is no such folder"
    campaign = (path / "tests.json").is_file()
    runs = sorted(plan.parent for plan in path.glob("runs/*/plan.json"))
    if campaign and (path / "campaign.json").is_file():
        return f". It is a campaign's: `inferometer report {path}` reads it"
    if campaign and not runs and not hold.held(path):
        return f". It was ended before its first run; `inferometer rerun {path}` carries its tests out"
    if campaign or runs:
        return _study(path, runs, campaign=campaign)
    if (path / "journal").is_dir():
        return (
            ". Its run was ended before the plan was written, and so before anything was measured: there is nothing to "
            "recover. Remove it, and give the run's command again"
        )
    return ""


def tests_of(path: Path) -> tuple[str, ...]:
    """The tests that a campaign's folder was made for, in their order; empty where it says of none."""
    try:
        found = foreign_json.loads(whole_file.read(path / "tests.json")) if holds(path, "tests.json") else {}
    except (OSError, RecordError, foreign_json.NotJSON):
        return ()
    names = found.get("names") if isinstance(found, dict) else None
    return tuple(filter(lambda name: isinstance(name, str), names)) if isinstance(names, list) else ()


def how_to_read(runs: Sequence[Path], *, going: bool) -> str:
    """Which command reads which run: those that have a summary, and those that were cut off, or are under way."""
    whole = [run for run in runs if (run / "summary.json").is_file()]
    cut = [run for run in runs if run not in whole]
    parts = [f"`inferometer report` reads each run that is over: {_listed(whole)}"] if whole else []
    if cut:
        how = "not over yet" if going else "`inferometer recover` rebuilds each that was cut off"
        parts.append(f"{how}: {_listed(cut)}")
    return "; ".join(parts)


def _study(path: Path, runs: Sequence[Path], *, campaign: bool) -> str:
    going = hold.held(path) or any(hold.held(run / "journal") for run in runs)
    first = next(iter(tests_of(path)), None)
    what = "This campaign" if campaign else "It"
    within = "" if first is None else f" within its first test, {first}"
    said = (
        f". {what} is under way{within}" if going else f". {what} was ended{within}, before it had a result"
    )
    said = "; ".join(filter(None, [said, how_to_read(runs, going=going)]))
    if campaign and not going:
        said += f"; `inferometer rerun {path}` carries all of it out again"
    return said


def _listed(runs: Sequence[Path]) -> str:
    more = f" and {len(runs) - MOST} more" if len(runs) > MOST else ""
    return ", ".join(map(str, runs[:MOST])) + more
