"""A host's rows on the conductor's clock: all instants of a row move together, so no difference within it changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inferometer.cluster.merging import move, moved_outcomes, moved_pulses
from inferometer.errors import RecordError
from inferometer.journal.schema import OUTCOME, PULSE, TIMES
from inferometer.journal.seal import read_stream

INSTANTS = st.integers(0, 2**60)


def outcomes(rows: list[tuple[int, list[int], int | None]]) -> pa.RecordBatch:
    """Rows of so many: due, the events' delays, and the connection's begin before it, where there was one."""
    columns = {
        "t_intended": [due for due, _, _ in rows],
        "event_ns": [[due + one for one in delays] for due, delays, _ in rows],
        "t_connect": [None if before is None else due - before for due, _, before in rows],
    }
    filled = []
    for field in OUTCOME:
        if field.name in columns:
            values = columns[field.name]
        elif field.name in TIMES:
            values = [due + 5 for due, _, _ in rows]
        elif pa.types.is_list(field.type):
            values = [[] for _ in rows]
        elif pa.types.is_string(field.type) or pa.types.is_binary(field.type):
            values = ["ok" if pa.types.is_string(field.type) else b"" for _ in rows]
        else:
            values = [0 for _ in rows]
        filled.append(pa.array(values, field.type))
    return pa.record_batch(filled, schema=OUTCOME)


def shifted(at: NDArray[np.int64]) -> NDArray[np.int64]:
    """A clock that is a million seconds behind, and slow by 50 ppm."""
    return 10**15 + (at * 5) // 100_000


@given(
    st.lists(
        st.tuples(INSTANTS, st.lists(st.integers(0, 10**9), max_size=4), st.none() | st.integers(0, 1000)),
        max_size=5,
    )
)
def test_a_row_moves_as_a_whole(rows: list[tuple[int, list[int], int | None]]) -> None:
    batch = outcomes(rows)
    moved = moved_outcomes(batch, shifted)
    assert moved.schema == batch.schema
    moved.validate(full=True)
    for name in batch.schema.names:
        before, after = batch.column(name).to_pylist(), moved.column(name).to_pylist()
        if name == "event_ns":
            expected: list[object] = [
                [one + int(shifted(np.array([due]))[0]) for one in events]
                for due, events in zip(batch.column("t_intended").to_pylist(), before, strict=True)
            ]
        elif name in TIMES:
            expected = [
                None if one is None else one + int(shifted(np.array([due]))[0])
                for due, one in zip(batch.column("t_intended").to_pylist(), before, strict=True)
            ]
        else:
            expected = before
        assert after == expected, name


@given(st.lists(INSTANTS, max_size=5))
def test_a_pulse_keeps_its_wall_time(at: list[int]) -> None:
    columns = [pa.array(at if field.name == "t_ns" else [7] * len(at), field.type) for field in PULSE]
    batch = pa.record_batch(columns, schema=PULSE)
    moved = moved_pulses(batch, shifted)
    wall = [
        a + b for a, b in zip(batch["t_ns"].to_pylist(), batch["clock_offset_ns"].to_pylist(), strict=True)
    ]
    again = [
        a + b for a, b in zip(moved["t_ns"].to_pylist(), moved["clock_offset_ns"].to_pylist(), strict=True)
    ]
    assert again == wall


@pytest.mark.parametrize("lost", [0, 1, 8, 9, 200])
def test_a_stream_that_was_cut_stays_cut(tmp_path: Path, lost: int) -> None:
    """As many batches as its reader gives before are there after, and it is whole only if it was."""
    raw, target = tmp_path / "raw.arrows", tmp_path / "worker-0.arrows"
    with pa.OSFile(str(raw), "wb") as sink, pa.ipc.new_stream(sink, OUTCOME) as writer:
        for number in range(3):
            writer.write_batch(outcomes([(number, [1, 2], None)]))
    data = raw.read_bytes()
    raw.write_bytes(data[: len(data) - lost])
    move(raw, target, shifted)
    before, after = read_stream(raw, OUTCOME), read_stream(target, OUTCOME)
    assert len(after) == len(before)
    assert after["index"].to_pylist() == before["index"].to_pylist()


def test_what_is_no_stream_of_ours_is_refused(tmp_path: Path) -> None:
    raw = tmp_path / "raw.arrows"
    schema = pa.schema([pa.field("x", pa.int64())])
    with pa.OSFile(str(raw), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array([1])], schema=schema))
    with pytest.raises(RecordError, match="no stream of this version"):
        move(raw, tmp_path / "out.arrows", shifted)
