"""What a table that somebody else wrote may take. A file of some kilobytes can hold gigabytes of one byte."""

from __future__ import annotations

MOST_BATCH = 1 << 30
"""Bytes of a batch of an Arrow file, unpacked; of a group of rows of any Parquet file; of 256 rows as values of Python."""
MOST_GROUP = 4 << 30
"""Bytes of a group of rows of a Parquet file that is large enough for it: see MOST_TIMES."""
MOST_TIMES = 500
"""As often its own size a Parquet file may come to."""
MOST_ROWS = 100_000_000
"""Rows of a Parquet file."""
FEW_ROWS = 1_000_000
"""Rows of any Parquet file; more need a byte each."""


class TooLarge(Exception):
    """The words go after the name of the file."""


def gib(size: int) -> str:
    """Bytes for people."""
    return f"{size / (1 << 30):,.1f} GiB"
