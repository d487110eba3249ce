"""The record as numpy columns: exact, and refused when damaged."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from inferometer.errors import RecordError
from inferometer.journal.schema import PULSE, RECORD, EventClass
from inferometer.journal.text_counts import NAMES, text_counts
from inferometer.measure.measurement import measure
from inferometer.measure.record import MOST_COUNTED, REST, Column, Labels, Record, between_ms

CONTENT = EventClass.CONTENT


def test_nanoseconds_survive_at_an_uptime_where_doubles_lose_them(build: Any) -> None:
    """Law: differences are taken in integers: 1 ns apart at 1e16 ns is 1e-6 ms, not 0 or 2e-6."""
    record = build({"t_intended": 0.0, "t_submit": 0.000001, "events": [(5.0, CONTENT)]})
    assert between_ms(record.t_intended, record.t_submit).tolist() == [1e-6]


def test_nulls_become_masks_and_nan(build: Any) -> None:
    """Law: what the request never reached is no time at all."""
    record = build({"t_submit": None}, {"t_submit": 3.0})
    assert record.t_submit.valid.tolist() == [False, True]
    assert np.isnan(between_ms(record.t_intended, record.t_submit)).tolist() == [True, False]


def test_more_cached_tokens_than_the_prompt_has_are_counted_and_no_count(build: Any) -> None:
    """Law: a part that is claimed to be larger than its whole enters no figure, and does not go unseen."""
    claims = [(10, 30), (10, 10), (None, 30), (10, None), (0, 1)]
    record = build(*({"usage_input": prompt, "usage_cached": cached} for prompt, cached in claims))
    assert record.usage_cached.valid.tolist() == [False, True, True, False, False]
    assert record.usage_cached.values.tolist() == [0, 10, 30, 0, 0]
    assert record.cached_overstated == 2


def test_slices_and_chunks_of_a_table_read_the_same(table_of: Any, plan_of: Any, random_rows: Any) -> None:
    """Law: how Arrow happens to lay a table out (offset slices, many chunks) changes no number."""
    rows = random_rows(3, 30)
    table = table_of(*rows)
    layouts = {
        "whole": table_of(*rows[10:]),
        "sliced": table.slice(10),
        "chunked": pa.concat_tables([table.slice(10, 7), table.slice(17, 1), table.slice(18)]),
    }
    assert layouts["chunked"].column("event_ns").num_chunks == 3
    seen = [
        to_builtins(measure(plan_of(), Record.from_tables(one, PULSE.empty_table())))
        for one in layouts.values()
    ]
    assert seen[0]["requests"]["sent"] > 5
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]


@given(st.integers(0, 99), st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_a_record_in_parts_is_the_record(
    table_of: Any, random_rows: Any, seed: int, cuts: list[int], counted: bool
) -> None:
    """Law: how a record is cut into parts changes no column, whether its texts were counted when it was sealed or not."""
    rows = [
        row
        | {
            "text": f"a\u200b \ufffd {row['index']}" * (row["index"] % 3) or None,
            "merged_event": [0],
            "merged_ns": [5],
        }
        for row in random_rows(seed, 30)
    ]
    table = whole = table_of(*rows)
    if counted:
        for name, column in zip(NAMES, text_counts(table.column("text").combine_chunks()), strict=True):
            table = table.set_column(table.schema.get_field_index(name), RECORD.field(name), column)
        table = table.drop_columns(["text"])
    edges = sorted({0, *cuts, 30})
    parts = [table.slice(start, end - start) for start, end in pairwise(edges)]
    pulse = PULSE.empty_table()
    one, other = (
        fields(Record.from_tables(made, pulse, timestamp_source="kernel")) for made in (whole, parts)
    )
    assert one.keys() == other.keys()
    for name, column in one.items():
        assert np.array_equal(column, other[name]), name


def fields(record: Record) -> dict[str, Any]:
    """The columns of a record, each an array, those with two parts as two."""
    found: dict[str, Any] = {}
    for name in (one.name for one in dataclasses.fields(record)):
        value = getattr(record, name)
        if isinstance(value, Column):
            found |= {f"{name}.values": value.values, f"{name}.valid": value.valid}
        elif isinstance(value, Labels):
            found |= {f"{name}.codes": value.codes, f"{name}.names": np.array(value.names)}
        elif isinstance(value, np.ndarray):
            found[name] = value
    return found


def test_an_empty_table_is_an_empty_record(plan_of: Any) -> None:
    """Law: a run stopped before its first end measures to nothing, without an error."""
    for table in (RECORD.empty_table(), pa.Table.from_batches([], RECORD)):
        record = Record.from_tables(table, PULSE.empty_table())
        assert len(record) == 0
        assert measure(plan_of(), record).metrics.ttft_ms is None


def test_event_times_are_not_copied_out_of_arrow(table_of: Any) -> None:
    """Law: a record of a million events costs no second copy of them."""
    table = table_of({"events": [(1.0, CONTENT), (2.0, CONTENT)]})
    buffer = table.column("event_ns").chunk(0).values.buffers()[1]
    record = Record.from_tables(table, PULSE.empty_table())
    assert record.event_ns.ctypes.data == buffer.address


def test_damage_is_refused(table_of: Any) -> None:
    """Law: a record that contradicts itself raises RecordError instead of measuring nonsense."""
    table = table_of({"events": [(1.0, CONTENT), (2.0, CONTENT)]})
    short = pa.array([b"\x01"], pa.binary())
    at = table.schema.get_field_index("event_class")
    pulse = PULSE.empty_table()
    with pytest.raises(RecordError, match="event classes"):
        Record.from_tables(table.set_column(at, RECORD.field("event_class"), short), pulse)
    with pytest.raises(RecordError, match="first_text"):
        Record.from_tables(table_of({"events": [(1.0, CONTENT)], "first_text": 1}), pulse)
    with pytest.raises(RecordError, match="usage_input"):
        Record.from_tables(table.drop_columns(["usage_input"]), pulse)


def test_the_timestamp_source_is_read_off_the_pulses(build: Any) -> None:
    """Law: reads counted with a kernel stamp mean kernel time."""
    assert build({}, pulse=({"reads": 5},)).timestamp_source == "kernel"
    assert build({}, pulse=({"reads": 0},)).timestamp_source == "user"
    assert build({}, pulse=({"reads": 5},), timestamp_source="user").timestamp_source == "user"


@given(st.lists(st.integers(0, 40), max_size=300))
def test_labels_beyond_those_that_are_told_are_counted_together(codes: list[int]) -> None:
    """Law: no count is lost; MOST_COUNTED labels have their own, and none of the others is more frequent."""
    labels = Labels(np.array(codes, np.int64), tuple(f"reason {code}" for code in range(41)))
    found = labels.counts(np.ones(len(codes), np.bool_))
    assert sum(found.values()) == len(codes)
    assert len(found) <= MOST_COUNTED + 1
    told = [name for name in found if name != REST]
    untold = [codes.count(code) for code in range(41) if f"reason {code}" not in told]
    assert all(found[name] >= most for name in told for most in untold)
    assert found.get(REST, 0) == sum(untold)
