"""Arrow and Parquet files: what they come to once unpacked is found out before anything is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inferometer import foreign_tables
from inferometer.foreign_tables import TooLarge, check_arrow, check_parquet

LIMIT = 1 << 20
SMALL = pa.table({"text": ["x" * 100] * 100})
LARGE = pa.table({"text": ["x" * 1_000] * 2_000})
LARGE_DICTIONARY = pa.table({"text": pa.array(["x" * 2_000_000]).dictionary_encode()})


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_tables, "MOST_BATCH", LIMIT)
    monkeypatch.setattr(foreign_tables, "MOST_GROUP", LIMIT)


def written(path: Path, table: pa.Table, form: str, compression: str | None) -> Path:
    """A file or a stream of it."""
    new: Any = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(SMALL if table.schema.equals(SMALL.schema) else table)
        writer.write_table(table)
    return path


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("table", [LARGE, LARGE_DICTIONARY], ids=["batch", "dictionary"])
def test_a_batch_that_unpacks_to_more_is_refused(
    tmp_path: Path, table: pa.Table, compression: str, form: str
) -> None:
    """Also behind one that does not; and what is not compressed is as large as its file."""
    path = written(tmp_path / "packed", table, form, compression)
    assert path.stat().st_size < LIMIT // 10
    with pytest.raises(TooLarge, match=r"a batch of it has 0\.0 GiB once unpacked"):
        check_arrow(path)
    check_arrow(written(tmp_path / "plain", table, form, None))
    check_arrow(written(tmp_path / "small", SMALL, form, compression))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_damaged_file_is_left_to_its_reader(tmp_path: Path, form: str) -> None:
    """Whatever its bytes are, looking at them ends, and says nothing but that it is too large."""
    path = written(tmp_path / "packed", SMALL, form, "zstd")
    whole, chance = path.read_bytes(), random.Random(7)
    for number in range(400):
        data = bytearray(whole[: chance.randrange(len(whole))] if number % 2 else whole)
        for _ in range(chance.choice((1, 4, 16)) if data else 0):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        path.write_bytes(data)
        try:
            check_arrow(path)
        except TooLarge:
            continue


def test_a_row_group_or_rows_without_bounds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the file says of itself."""
    path = tmp_path / "a.parquet"
    pq.write_table(LARGE, path, use_dictionary=False)
    with pq.ParquetFile(path) as file:
        with pytest.raises(TooLarge, match=r"a row group of it has 0\.0 GiB once unpacked"):
            check_parquet(file)
        monkeypatch.setattr(foreign_tables, "MOST_GROUP", 1 << 30)
        check_parquet(file)
        monkeypatch.setattr(foreign_tables, "MOST_ROWS", 1_999)
        with pytest.raises(TooLarge, match="has 2,000 rows: at most 1,999"):
            check_parquet(file)
