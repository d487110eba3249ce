"""Workload files, JSON Lines and Arrow: rows that come again as they were read through, or a list of problems."""

from __future__ import annotations

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from fuzz.problems import told
from inferometer.errors import PlanError
from inferometer.workload.workload_file import Made, Row, opened, read_through
from inferometer.workload.workload_file_source import sessions


def check(data: bytes) -> None:
    """Read a workload file."""
    path = lain("workload", data)
    with bounded_memory():
        try:
            made = opened(path)
        except PlanError as error:
            told(error)
            return
        seen: list[Row] = []
        reading = read_through(made, seen.append)
    assert read_through(made) == reading
    sealed = made.header.sealed()
    assert sealed.sealed() == sealed
    if reading.problems:
        "\n".join(map(str, reading.problems)).encode()
    else:
        holds(made, seen)


def holds(made: Made, seen: list[Row]) -> None:
    """What is said of a file that was found sound."""
    assert [*made.rows("warmup"), *made.rows("measure")] == seen
    for row in seen:
        row.bare()
    for warm in (True, False):
        assert all(0 < len(session) < 1 << 15 for session in sessions(made, warm=warm))
