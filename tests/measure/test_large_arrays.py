"""Large arrays: what lies in a file, and is worked on piece by piece, is the same as in memory at once."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from inferometer.journal.schema import PULSE
from inferometer.measure import large_arrays
from inferometer.measure.drift import least_squares
from inferometer.measure.large_arrays import (
    Appended,
    chosen,
    held,
    joined,
    kept_in,
    order_by,
    ordered,
    pieces,
)
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import Record
from inferometer.measure.series import series
from inferometer.measure.stats import quantiles
from inferometer.plan.schema import Plan


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large, and little is worked on at once."""
    monkeypatch.setattr(large_arrays, "LARGE", 1)
    monkeypatch.setattr(large_arrays, "HUGE", 1)
    monkeypatch.setattr(large_arrays, "AT_ONCE", 7)


def close(found: object, other: object) -> None:
    """The same, but for how sums are rounded."""
    if isinstance(found, dict) and isinstance(other, dict):
        assert found.keys() == other.keys()
        for name, value in found.items():
            close(value, other[name])
    elif isinstance(found, list | tuple) and isinstance(other, list | tuple):
        assert len(found) == len(other)
        for pair in zip(found, other, strict=True):
            close(*pair)
    elif isinstance(found, float):
        assert found == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True)
    else:
        assert found == other


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_how_much_is_held_in_memory_changes_no_figure(
    table_of: Callable[..., pa.Table],
    plan_of: Callable[..., Plan],
    random_rows: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    seed: int,
    merged: bool,
) -> None:
    """Law: with every array in a file, and seven entries worked on at once, a run measures and draws as it does otherwise."""
    rows = random_rows(seed, 120)
    if merged:
        rows = [row | {"merged_event": [0], "merged_ns": [5 + row["index"]]} for row in rows]
    table, plan = table_of(*rows), plan_of()

    def measured(parts: list[pa.Table]) -> tuple[object, object]:
        record = Record.from_tables(parts, PULSE.empty_table(), timestamp_source="kernel")
        samples = samples_of(plan, record)
        return to_builtins(measure(plan, record, samples)), to_builtins(series(plan, record, samples))

    plain = measured([table])
    monkeypatch.setattr(large_arrays, "LARGE", 512)
    monkeypatch.setattr(large_arrays, "HUGE", 1)
    monkeypatch.setattr(large_arrays, "AT_ONCE", 7)
    with kept_in(tmp_path):
        close(measured([table.slice(0, 50), table.slice(50)]), plain)
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("tiny")
def test_an_array_in_a_file_is_the_array() -> None:
    """Law: its values and its kind stay; it can be written to; a view of one value stays one, and nothing is copied twice."""
    values = np.arange(10.0)
    found = held(values)
    assert found is not values
    assert held(found) is found
    assert held(found[2:]).base is not None
    found += 1
    assert found.tolist() == (values + 1).tolist()
    one = np.broadcast_to(np.int64(3), 100)
    assert held(one) is one
    grown = Appended(np.int64)
    grown.add(np.arange(3, dtype=np.int16))
    grown.add(np.broadcast_to(np.int64(9), 2))
    assert grown.whole().tolist() == [0, 1, 2, 9, 9]


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: room that the disk does not have is an OSError with its number, which says what to do."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("the system has no full device")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: full.open("wb", buffering=0))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as no:
        held(np.arange(large_arrays.LARGE, dtype=np.int64))
    assert no.value.errno == errno.ENOSPC


@given(st.lists(st.integers(0, 20)))
def test_pieces_are_all_rows_once(sizes: list[int]) -> None:
    """Law: pieces of rows and their entries follow each other from the first to the last."""
    offsets = np.concatenate(([0], np.cumsum(np.array(sizes, np.int64))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_arrays, "AT_ONCE", 7)
        found = list(pieces(offsets))
    assert [at for rows, _ in found for at in range(rows.start, rows.stop)] == list(range(len(sizes)))
    assert [at for _, mine in found for at in range(mine.start, mine.stop)] == list(range(int(offsets[-1])))
    assert all(offsets[rows.start] == mine.start and offsets[rows.stop] == mine.stop for rows, mine in found)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 1))))
def test_the_order_is_that_of_all_keys(keys: list[tuple[int, int, int]]) -> None:
    """Law: ties of the first key are decided by the others in turn, and then by their places."""
    first, second, third = np.array(keys, np.int64).reshape(-1, 3).T
    assert order_by(first, second, third).tolist() == np.lexsort((third, second, first)).tolist()
    assert order_by(first).tolist() == np.argsort(first, kind="stable").tolist()


@pytest.mark.usefixtures("tiny")
def test_parts_are_chosen_joined_and_ordered_as_by_numpy() -> None:
    """Law: the values are those that numpy gives for the whole array."""
    draw = np.random.default_rng(1)
    values, these = draw.normal(size=50), draw.random(50) < 0.5
    assert np.array_equal(chosen(values, these), values[these])
    one = chosen(np.broadcast_to(4.0, 50), these)
    assert (one.tolist(), one.strides) == ([4.0] * int(these.sum()), (0,))
    assert np.array_equal(joined(values, values[:3]), np.concatenate((values, values[:3])))
    assert joined(values, values[:0]) is values
    gaps = np.where(these, values, np.nan)
    assert np.array_equal(ordered(gaps), np.sort(values[these]))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_quantiles_are_those_of_numpy(sample: list[float]) -> None:
    """Law: to the last bit."""
    shares = np.linspace(0, 1, 101)
    assert np.array_equal(quantiles(np.sort(sample), shares), np.quantile(sample, shares))


def test_least_squares_by_parts_are_those_of_the_whole() -> None:
    """Law: how rows are cut changes no coefficient, also where a term says the same as another."""
    draw = np.random.default_rng(2)
    terms = np.column_stack((np.ones(300), draw.uniform(1, 9, (300, 2)), np.full(300, 4.0)))
    values = terms @ np.array([1.0, 2.0, -0.5, 0.25]) + draw.normal(0, 0.1, 300)
    whole = np.linalg.lstsq(terms, values, rcond=1e-8)[0]
    for cuts in ([], [3], [100, 101, 250]):
        parts = zip(np.split(terms, cuts), np.split(values, cuts), strict=True)
        assert least_squares(parts) == pytest.approx(whole, rel=1e-10)
