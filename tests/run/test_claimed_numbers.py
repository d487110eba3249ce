"""Numbers that a server claimed, or that stand in a record of somebody's, cost no memory and no time in proportion.

`python tests/run/test_claimed_numbers.py FOLDER` is the process with little memory that reads the records.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from commands import SMALL, only

from inferometer.cli.app import run
from inferometer.documents.part import to_data
from inferometer.errors import RecordError
from inferometer.journal.folder import RunFolder
from inferometer.run.evaluate import evaluate

MEMORY = 4 << 30
"""Bytes of addresses: libraries reserve more than a third of it, and the claims of one column would take four times as much."""
PATIENCE_S = 20
"""Of one record of a few requests, which takes a fifth of a second."""
CLAIM = 2**31 - 1
"""The most that the journal keeps of a server's count."""


def integers(table: pa.Table) -> Iterator[tuple[str, int]]:
    """The columns of integers and of lists of them, with the width of one in bits."""
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_list(field.type) else field.type
        if pa.types.is_integer(kind):
            yield field.name, kind.bit_width


def replaced(table: pa.Table, name: str, value: int, rows: Sequence[int]) -> pa.Table:
    """The table with this value in place of these rows' in one column."""
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    values = table.column(place).to_pylist()
    for row in rows:
        values[row] = [value] * len(values[row] or []) if pa.types.is_list(field.type) else value
    return table.set_column(place, field, pa.array(values, field.type))


def cases(table: pa.Table) -> Iterator[tuple[str, int, Sequence[int]]]:
    """Every column with the ends of its type in one row, and with the claim in all rows."""
    middle = range(len(table) // 2, len(table) // 2 + 1)
    for name, bits in integers(table):
        yield name, -(1 << bits - 1), middle
        yield name, (1 << bits - 1) - 1, middle
        if bits >= 32:
            yield name, CLAIM, range(len(table))


def judged(folder: Path) -> str:
    """What becomes of the record of a folder: a verdict, or that it is refused."""
    try:
        summary = evaluate(RunFolder.open(folder)).summary
        json.dumps(to_data(summary))
    except RecordError:
        return "refused"
    except Exception:
        return traceback.format_exc()
    return summary.verdict.status


def read_each(folder: Path) -> None:
    """Print a line of JSON a case: the column, the value, what became of it, and how long that took."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    path = folder / "requests.parquet"
    table = pq.read_table(path)
    for name, value, rows in cases(table):
        pq.write_table(replaced(table, name, value, rows), path)
        begun = time.monotonic()
        found = judged(folder)
        sys.stdout.write(json.dumps((name, value, found, time.monotonic() - begun)) + "\n")
        sys.stdout.flush()


def test_no_number_of_a_record_costs_in_proportion_to_it(tmp_path: Path) -> None:
    """Law: with the largest and the smallest value in any integer column, a report ends in little memory and at once, with a
    verdict or in words; and a count that no answer can hold is not VALID."""
    load = [*SMALL, "--requests", "12", "--warmup", "2", "--quiet", "--out"]
    run(["simulate", "--seed", "1", *load, str(tmp_path / "run")])
    folder = only(tmp_path / "run")
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        ended = subprocess.run(
            [sys.executable, __file__, str(folder)],
            env=paths,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(late.stdout) from late
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [one for one in found if one[2] not in ("refused", "VALID", "INVALID", "INCONCLUSIVE")] == []
    assert [one for one in found if one[3] > PATIENCE_S] == []
    claimed = {name: what for name, value, what, _ in found if value == CLAIM}
    assert claimed["usage_output"] in ("INVALID", "INCONCLUSIVE")


if __name__ == "__main__":
    read_each(Path(sys.argv[1]))
