"""The index kept: results added to it, read from it, and made anew where it is damaged or missing.

| the index is        | a result is added                    | it is read                                           |
| ------------------- | ------------------------------------ | ---------------------------------------------------- |
| missing             | made from the folders                | made from the folders                                |
| damaged, foreign    | set aside, made from the folders     | the same                                             |
| not to be written   | RecordError: the caller goes on      | made in memory, with a note                          |

What an index is made from is read before the index is: one that holds only a part would look whole to the next command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from inferometer.documents.history import HistoryEntry, NumberedEntry
from inferometer.errors import RecordError
from inferometer.studies.history import lines
from inferometer.studies.history.entries import instant
from inferometer.studies.history.folders import Note, results_in
from inferometer.studies.history.index import Damaged, Index, set_aside

T = TypeVar("T")


def remember(index: Path, folders: Sequence[Path], homes: Sequence[Path], now_ns: int, note: Note) -> None:
    """Add the results in these folders. `homes`: what a missing or damaged index is made from. Raises RecordError."""
    if not index.exists():
        rebuild(index, homes, note_count(note))

    def add(opened: Index) -> None:
        opened.add(one for folder in folders for one in results_in(folder, index.parent, note))

    _worked(index, homes, now_ns, note, add)


def remember_lines(index: Path, entries: Sequence[HistoryEntry], now_ns: int, note: Note) -> int:
    """Add results that no folder here holds, to the index and to the file beside it; how many were new. Raises RecordError."""

    new: list[HistoryEntry] = []

    def add(opened: Index) -> int:
        if not new:  # else they are in the file since before the index turned out to be damaged
            known = opened.keys()
            new.extend({one.key: one for one in entries if one.key not in known}.values())
            lines.append(lines.beside(index), new)
        opened.add(new)
        return len(new)

    if not index.exists():
        rebuild(index, [index.parent], note_count(note))
    return _worked(index, [index.parent], now_ns, note, add)


def recall(index: Path, now_ns: int, note: Note) -> list[NumberedEntry]:
    """All entries, by number. Raises RecordError where there is neither an index nor a folder to make it from."""
    if not index.parent.is_dir():
        raise RecordError(f"{index}: there is no index, and no folder {index.parent}: name one with --index")
    homes = [index.parent]
    try:
        if not index.exists():
            rebuild(index, homes, note_count(note))
        return _worked(index, homes, now_ns, note, Index.entries)
    except Damaged:
        raise
    except RecordError as why:
        if index.exists() and not index.is_file():
            raise
        note(f"{why}; what follows was read from the folders")
        with Index.in_memory() as made:
            made.add(_found(index, homes, note_count(note)))
            return made.entries()


def rebuild(index: Path, homes: Sequence[Path], note: Note) -> int:
    """Make the index anew from folders, in the order of time; how many entries it has. Raises Damaged and RecordError."""
    before = 0
    if index.exists():
        with Index.open(index) as opened:
            before = opened.newest()
    found = _found(index, homes, note)
    with Index.open(index) as opened:
        opened.replace(found, before)
    return len(found)


def renewed(index: Path, homes: Sequence[Path], now_ns: int, note: Note) -> int:
    """As `rebuild`, also of an index that is damaged. Raises RecordError."""
    try:
        return rebuild(index, homes, note)
    except Damaged as why:
        _put_aside(index, why, now_ns, note)
        return rebuild(index, homes, note)


def _found(index: Path, homes: Sequence[Path], note: Note) -> list[HistoryEntry]:
    """What there is, by time. A folder has the last word about its result: a line that repeats it is older, or a stranger's."""
    beside = lines.beside(index)
    # A link to what is not there now, as on a disk that is not mounted, is no file without lines.
    entries = lines.readable(beside, note) if os.path.lexists(beside) else []
    entries += (one for home in homes for one in results_in(home, index.parent, note))
    return sorted({one.key: one for one in entries}.values(), key=instant)


def _worked(index: Path, homes: Sequence[Path], now_ns: int, note: Note, work: Callable[[Index], T]) -> T:
    """What `work` makes of the index, which is made anew first if it turns out to be damaged."""
    try:
        with Index.open(index) as opened:
            return work(opened)
    except Damaged as why:
        _put_aside(index, why, now_ns, note)
    rebuild(index, homes, note_count(note))
    with Index.open(index) as opened:
        return work(opened)


def _put_aside(index: Path, why: Damaged, now_ns: int, note: Note) -> None:
    place = set_aside(index, now_ns)
    if place is not None:
        note(f"{why}. It is kept as {place.name}; the history was read anew from the folders")


def note_count(note: Note) -> Note:
    """Says once, not for each of them, that there are folders or lines that cannot be read: a rebuild that nobody asked for is
    no place for a list."""
    said: list[str] = []

    def count(text: str) -> None:
        if not said:
            note(f"{text} (`inferometer history rebuild` lists all that cannot be read)")
        said.append(text)

    return count
