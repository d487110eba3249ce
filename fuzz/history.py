"""Lines of results that another machine exported: entries, as they were written, or refused with their line."""

from __future__ import annotations

from fuzz.bounds import bounded_memory
from fuzz.place import FOLDER
from inferometer.documents.history import NumberedEntry
from inferometer.errors import RecordError
from inferometer.studies.history.conditions import engine_name
from inferometer.studies.history.lines import as_line, read, table

NOW_S = 2_000_000_000.0
"""What is dated a day later is refused: the same on every day."""


def check(data: bytes) -> None:
    """What is read is written down again the same, and makes a table of as many rows as there are figures."""
    path = FOLDER / "there.jsonl"
    path.write_bytes(data)
    with bounded_memory():
        try:
            entries = read(path, NOW_S)
        except RecordError:
            return
    path.write_text("".join(map(as_line, entries)), encoding="utf-8")
    assert read(path, NOW_S) == entries
    rows = table(NumberedEntry(at, one) for at, one in enumerate(entries)).encode("utf-8")
    assert rows.count(b"\r\n") == 1 + sum(len(one.figures) for one in entries)
    for one in entries:
        engine_name(one.conditions.get("sut.engine", ""))
