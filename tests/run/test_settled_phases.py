"""`recover` on a run whose journal is gone settles the phases of its sealed record: whatever that is, it ends in words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import SMALL, finish, only, run

from inferometer.foreign_tables import limits
from inferometer.journal import schedule
from inferometer.journal.schema import SCHEDULE


@pytest.fixture(scope="module")
def unkept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured run that keeps no text: its metrics were scraped, and its journal removed when it was sealed."""
    out = tmp_path_factory.mktemp("unkept")
    few = ["--requests", "12", "--warmup", "4", "--concurrency", "2", "--keep-text", "none", "--quiet"]
    assert run("run", *few, *SMALL, out=out)[0] in (0, 3, 4)
    return only(out)


def changed(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """The record with other columns."""

    def rewrite(record: Path) -> None:
        pq.write_table(change(pq.read_table(record)), record)

    return rewrite


def replaced(name: str, kind: pa.DataType, value: object) -> Callable[[Path], None]:
    """The record with this value in each row of a column."""

    def column(table: pa.Table) -> pa.Table:
        made = pa.array([value] * len(table), kind)
        return table.set_column(table.schema.get_field_index(name), name, made)

    return changed(column)


def of_many_rows(record: Path) -> None:
    """So many rows of one value that they take next to no bytes."""
    part = pa.table({"phase": pa.array([1] * 1_000_000, pa.int8())})
    with pq.ParquetWriter(record, part.schema, compression="zstd") as writer:
        for _ in range(limits.MOST_ROWS // 1_000_000 + 1):
            writer.write_table(part)


DAMAGED: dict[str, Callable[[Path], object]] = {
    "garbage": lambda record: record.write_bytes(b"PAR1" + b"x" * 500 + b"PAR1"),
    "empty": lambda record: record.write_bytes(b""),
    "cut": lambda record: os.truncate(record, 2000),
    "column missing": changed(lambda table: table.drop_columns(["t_taken"])),
    "nulls": replaced("t_taken", pa.int64(), None),
    "text for a time": replaced("t_taken", pa.string(), "a"),
    "text for a phase": replaced("phase", pa.string(), "a"),
    "many rows": of_many_rows,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_record_without_a_journal_ends_in_words(unkept: Path, tmp_path: Path, damage: str) -> None:
    """Law: exit 2, one line that names the file, and the facts of the run as they were."""
    folder = tmp_path / "run"
    shutil.copytree(unkept, folder)
    before = (folder / "run.json").read_bytes()
    DAMAGED[damage](folder / "requests.parquet")
    code, _, stderr = finish("recover", str(folder))
    assert code == 2, stderr
    assert "requests.parquet" in stderr
    assert "Traceback" not in stderr
    assert (folder / "run.json").read_bytes() == before


def test_the_phases_of_a_record_that_is_whole_are_found_again(unkept: Path, tmp_path: Path) -> None:
    """Law: settling a sealed run again gives the facts that it has."""
    folder = tmp_path / "run"
    shutil.copytree(unkept, folder)
    code, _, stderr = finish("recover", str(folder))
    assert code in (0, 3, 4), stderr
    assert (folder / "run.json").read_bytes() == (unkept / "run.json").read_bytes()


def test_a_schedule_of_other_types_is_refused_in_words(unkept: Path, tmp_path: Path) -> None:
    """Law: `workload show` reads a run's schedule by the door that looks at its columns."""
    folder = tmp_path / "run"
    shutil.copytree(unkept, folder)
    assert finish("workload", "show", str(folder))[0] == 0
    at = SCHEDULE.get_field_index("phase")
    with pa.OSFile(str(folder / "requests.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    other = table.set_column(at, "phase", pa.array(["a"] * len(table)))
    with pa.ipc.new_file(str(folder / "requests.arrow"), other.schema) as writer:
        writer.write_table(other, schedule.BATCH)
    code, _, stderr = finish("workload", "show", str(folder))
    assert (code, "requests.arrow: not a schedule" in stderr) == (2, True), stderr
