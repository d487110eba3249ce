"""Parquet files: refused before anything is unpacked, with the limit in words."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from inferometer.foreign_tables.limits import (
    FEW_ROWS,
    MOST_BATCH,
    MOST_GROUP,
    MOST_ROWS,
    MOST_TIMES,
    TooLarge,
    gib,
)
from inferometer.foreign_tables.pages import Reading, footer


def check_parquet(
    path: Path,
    columns: Collection[str] | None = None,
    rows: int | None = None,
    *,
    always: int = MOST_BATCH,
    most_group: int = MOST_GROUP,
    most_rows: int = MOST_ROWS,
) -> None:
    """That a file comes to no more than the limits. What is no Parquet file, or encrypted, is left to the reader.

    `columns`: what is read of it, all if None. `rows`: how many at once, None if it is read as a whole. `always`: what a file
    of any size may come to.

    Raises TooLarge, OSError, and pa.ArrowInvalid for what is not laid out as it should be.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        about = footer(file)
        if about is None:
            return
        most = min(most_rows, max(FEW_ROWS, size))
        if about.rows > most:
            raise TooLarge(f"has {about.rows:,} rows: at most {most:,}, in a file of its size")
        whole = max(always, MOST_TIMES * size)
        limit = min(most_group, whole)
        reading = Reading(path, columns, about.rows if rows is None else rows)
        total = 0
        for group in range(len(about.groups)):
            found = reading.unpacked(file, about, group, limit)
            if found > limit:
                raise TooLarge(f"a row group of it comes to more than {gib(limit)} once unpacked")
            total += found
            if rows is None and total > whole:
                raise TooLarge(f"comes to more than {gib(whole)} once unpacked")
