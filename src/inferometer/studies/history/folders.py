"""From the folders of results to entries: the truth that the index repeats.

| a folder that holds | is                                                            |
| ------------------- | ------------------------------------------------------------- |
| `campaign.json`     | a campaign: an entry for each test; its runs are parts of it  |
| `bench.json`        | a benchmark: an entry for each engine                         |
| `tests.json` alone, `agentic.json`, `cross-validation.json` | passed over                     |
| `plan.json`, `summary.json` | a run                                                 |
| none of these       | searched, DEEPEST levels deep: repeats, interleaved comparisons |

Results that no folder here holds, comparisons and those of other machines, are lines of `history.jsonl` beside the index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from inferometer.documents.history import HistoryEntry
from inferometer.errors import RecordError
from inferometer.journal.documents import holds, in_text
from inferometer.journal.folder import RunFolder
from inferometer.studies import bench
from inferometer.studies.campaign_comparison import repeat_of
from inferometer.studies.campaign_file import read_campaign
from inferometer.studies.comparison import summary_of
from inferometer.studies.history import entries

DEEPEST = 4
PASSED = ("tests.json", "agentic.json", "cross-validation.json")
Note = Callable[[str], None]
"""Takes one line about a folder that cannot be read."""


def results_in(folder: Path, home: Path, note: Note, deep: int = DEEPEST) -> Iterator[HistoryEntry]:
    """The entries of a folder and of those inside it, in the order of names. `home`: the index's folder, which the entries'
    folders are relative to. What cannot be read is noted and passed over; links are not followed."""
    try:
        found = _entries(folder, str(in_text(Path(os.path.relpath(folder, home)))))
        for one in found or ():
            if (why := entries.fault(one)) is not None:
                raise RecordError(f"{folder}: {why}")
    except RecordError as cause:
        note(f"not in the history: {cause}")
        return
    if found is not None:
        yield from found
        return
    if not deep:
        return
    try:
        inside = sorted(one.path for one in os.scandir(folder) if one.is_dir(follow_symlinks=False))
    except OSError as cause:
        note(f"not in the history: {folder}: {cause.strerror}")
        return
    for path in inside:
        yield from results_in(Path(path), home, note, deep - 1)


def _entries(folder: Path, shown: str) -> list[HistoryEntry] | None:
    """Those of this folder; None: it is no result's. Raises RecordError."""
    try:
        if holds(folder, "campaign.json"):
            document = read_campaign(folder / "campaign.json")
            return list(entries.of_campaign(repeat_of(document, folder / "campaign.json"), shown))
        if holds(folder, bench.FILE):
            return list(entries.of_bench(bench.read(folder / bench.FILE), shown))
        if any(holds(folder, name) for name in PASSED):
            return []
        if holds(folder, "plan.json"):
            return [entries.of_run(summary_of(RunFolder.open(folder)), shown)] if _over(folder) else []
    except (ArithmeticError, ValueError) as cause:  # figures and instants of documents that others wrote
        raise RecordError(f"{folder}: cannot be read ({cause})") from cause
    return None


def _over(folder: Path) -> bool:
    """Whether a run has its result."""
    return holds(folder, "summary.json")
