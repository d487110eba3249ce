"""Arrow and Parquet files: what they come to once unpacked is found out before anything is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inferometer.foreign_tables.arrow import check_arrow
from inferometer.foreign_tables.cells import as_values
from inferometer.foreign_tables.limits import TooLarge
from inferometer.foreign_tables.pages import Reading, footer
from inferometer.foreign_tables.parquet import check_parquet

LIMIT = 1 << 20
SMALL = pa.table({"text": ["x" * 100] * 100})
LARGE = pa.table({"text": ["x" * 1_000] * 2_000})
LARGE_DICTIONARY = pa.table({"text": pa.array(["x" * 2_000_000]).dictionary_encode()})
NESTED = pa.table({"talk": [[{"from": "human", "value": "x" * 1_000}] * 2_000]})
EMPTY = pa.table({"none": pa.nulls(200_000, pa.int64())})
PLAIN: dict[str, Any] = {"use_dictionary": False}


def written(path: Path, table: pa.Table, form: str, compression: str | None) -> Path:
    """A file or a stream of it."""
    new: Any = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(SMALL if table.schema.equals(SMALL.schema) else table)
        writer.write_table(table)
    return path


def parquet(path: Path, table: pa.Table, **settings: Any) -> Path:
    pq.write_table(table, path, **settings)
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
        check_arrow(path, LIMIT)
    check_arrow(written(tmp_path / "plain", table, form, None), LIMIT)
    check_arrow(written(tmp_path / "small", SMALL, form, compression), LIMIT)


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_damaged_file_is_left_to_its_reader(tmp_path: Path, form: str) -> None:
    """Whatever its bytes are, looking at them ends, and says nothing but that it is too large."""
    path = written(tmp_path / "packed", SMALL, form, "zstd")
    for _ in damaged(path, 400):
        try:
            check_arrow(path, LIMIT)
        except TooLarge:
            continue


def damaged(path: Path, times: int) -> Any:
    """The file cut off and overwritten in other ways each time."""
    whole, chance = path.read_bytes(), random.Random(7)
    for number in range(times):
        data = bytearray(whole[: chance.randrange(len(whole))] if number % 2 else whole)
        for _ in range(chance.choice((1, 4, 16)) if data else 0):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        path.write_bytes(data)
        yield number


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        (LARGE, PLAIN),
        (LARGE, {}),
        (LARGE, PLAIN | {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}}),
        (NESTED, {}),
        (EMPTY, {}),
    ],
    ids=["plain", "dictionary", "prefixes", "one row", "nulls"],
)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_row_group_that_comes_to_more_is_refused(
    tmp_path: Path, table: pa.Table, settings: dict[str, Any], version: str
) -> None:
    """However few bytes its pages have: a text of a dictionary is in every cell, and a null is a cell too."""
    path = parquet(tmp_path / "a.parquet", table, compression="zstd", data_page_version=version, **settings)
    assert path.stat().st_size < LIMIT // 10
    with pytest.raises(TooLarge, match=r"a row group of it comes to more than 0\.0 GiB once unpacked"):
        check_parquet(path, most_group=LIMIT)
    check_parquet(path)


def test_rows_without_bounds_are_refused(tmp_path: Path) -> None:
    """More than the limit, and more than a byte each; by the footer or by the groups, whichever is more."""
    path = parquet(tmp_path / "a.parquet", LARGE)
    with pytest.raises(TooLarge, match="has 2,000 rows: at most 1,999"):
        check_parquet(path, most_rows=1_999)
    many = parquet(tmp_path / "many.parquet", pa.table({"none": pa.nulls(2_000_000, pa.bool_())}))
    with pytest.raises(TooLarge, match="has 2,000,000 rows: at most 1,000,000, in a file of its size"):
        check_parquet(many)


def test_a_file_is_refused_as_a_whole_where_it_is_read_as_a_whole(tmp_path: Path) -> None:
    """Groups that each are within the limit."""
    talk = pa.table({"talk": [[{"value": "x" * 1_000}] * 900]})
    path = parquet(
        tmp_path / "a.parquet", pa.concat_tables([talk] * 40), row_group_size=1, write_statistics=False
    )
    check_parquet(path, rows=256, always=LIMIT)
    with pytest.raises(TooLarge, match=r"^comes to more than 0\.0 GiB once unpacked"):
        check_parquet(path, always=LIMIT)


def test_texts_are_looked_up_before_a_file_is_refused(tmp_path: Path) -> None:
    """One long text among many short ones is not taken for all of them; nor are columns and rows that are not read."""
    mixed = pa.table({"text": ["x" * 100_000, *["y"] * 5_000], "other": ["z" * 1_000] * 5_001})
    path = parquet(tmp_path / "a.parquet", mixed)
    check_parquet(path, ["text"], most_group=LIMIT)
    with pytest.raises(TooLarge):
        check_parquet(path, most_group=LIMIT)
    with pytest.raises(TooLarge):
        check_parquet(path, ["other"], most_group=LIMIT)
    check_parquet(path, ["other"], 256, most_group=LIMIT)


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize(
    "encoding", ["RLE_DICTIONARY", "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_row_group_comes_to_more_than_is_said(
    tmp_path: Path, codec: str, encoding: str, version: str
) -> None:
    """Law: what pyarrow makes of a group is no larger, whatever it is packed by."""
    chance = random.Random(11)
    texts = [chance.choice(("", "a", "b" * 3_000, chance.randbytes(40).hex(), None)) for _ in range(3_000)]
    table = pa.table(
        {
            "text": texts,
            "number": pa.array(range(3_000), pa.int64()),
            "list": [[chance.randrange(9)] * chance.randrange(5) for _ in texts],
            "inner": [{"text": text, "fixed": b"1234"} for text in texts],
        }
    )
    given: dict[str, Any] = {"column_encoding": {"text": encoding, "inner.text": encoding}}
    settings = PLAIN | given if encoding != "RLE_DICTIONARY" else {}
    path = parquet(
        tmp_path / "a.parquet", table, compression=codec, row_group_size=1_000, data_page_version=version,
        data_page_size=2_000, **settings,
    )  # fmt: skip
    with path.open("rb") as file, pq.ParquetFile(path) as reader:
        about = footer(file)
        assert about is not None
        assert about.rows == 3_000
        for group in range(3):
            said = Reading(path, None, about.rows).unpacked(file, about, group, 1 << 40)
            assert reader.read_row_group(group).nbytes <= said < 1 << 40


def test_damaged_parquet_is_named_or_left_to_its_reader(tmp_path: Path) -> None:
    """Whatever its bytes are, looking at them ends, with pyarrow's kind of error or ours."""
    path = parquet(
        tmp_path / "a.parquet", pa.concat_tables([NESTED] * 3), compression="none", row_group_size=1
    )
    ended = set()
    for _ in damaged(path, 400):
        try:
            check_parquet(path, most_group=LIMIT)
        except (TooLarge, pa.ArrowException, OSError) as cause:
            ended.add(type(cause).__name__)
    assert {"TooLarge", "Damaged"} <= ended


NO_BYTES = pa.ListArray.from_arrays(pa.array([0, 1 << 30], pa.int32()), pa.nulls(1 << 30))
TEXT = "x" * 10_000
VIEWS = pa.array([TEXT] * 200, pa.string_view())


@pytest.mark.parametrize(
    "cells",
    [
        NO_BYTES,
        pa.array([TEXT] * 200).dictionary_encode(),
        VIEWS,
        pa.array([[{"value": TEXT}] * 200]),
        pa.array([TEXT] * 200, pa.large_binary()),
    ],
    ids=["list of nulls", "dictionary", "views", "structs", "binary"],
)
def test_rows_that_come_to_more_as_values_are_refused(cells: pa.Array) -> None:
    """A table may hold once, or in no bytes at all, what every value of Python has of its own."""
    with pytest.raises(TooLarge, match=r"rows of it come to more than 0\.0 GiB"):
        list(as_values(pa.record_batch({"a": cells}), most=LIMIT))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_rows_that_do_not_are_what_pyarrow_makes_of_them(kind: pa.DataType, at_once: int) -> None:
    """Law: the same values, slices and nulls included."""
    texts = pa.array(["a", None, "", TEXT, "ü"] * 3).cast(kind)
    talk = pa.array([[{"n": 1, "x": None}], [], None] * 5)
    batch = pa.record_batch({"text": texts, "talk": talk, "number": list(range(15))}).slice(2, 11)
    assert list(as_values(batch, at_once)) == batch.to_pylist()


def test_columns_whose_cells_are_not_values_of_their_own_are_refused() -> None:
    """By their type."""
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 20], pa.int32()), pa.array(["x"]))
    with pytest.raises(pa.ArrowInvalid, match=r"a column of type run_end_encoded.* is not read"):
        list(as_values(pa.record_batch({"a": runs.slice(0, 5)})))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_rows_without_bytes_are_refused(tmp_path: Path, form: str) -> None:
    """Nulls need none in the file; more rows than bytes are too many where they are many."""
    path = written(tmp_path / "nulls", pa.table({"none": pa.nulls(600_000)}), form, None)
    with pytest.raises(
        TooLarge, match="has 1,200,000 rows or more: at most 1,000,000, in a file of its size"
    ):
        check_arrow(path)
