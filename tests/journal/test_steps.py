"""Laws of `steps.arrow`."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferometer.errors import RecordError
from inferometer.journal.steps import STEPS, StepRow, read, write

ROWS = st.builds(
    StepRow,
    index=st.integers(0, 2**62),
    session=st.integers(0, 2**31 - 1),
    step=st.integers(0, 2**15 - 1),
    after=st.lists(st.integers(0, 2**62), max_size=4),
    extends=st.none() | st.integers(0, 2**62),
    tool_ns=st.integers(0, 2**62),
    visible=st.booleans(),
    name=st.none() | st.text(max_size=5),
    agent=st.none() | st.text(max_size=5),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROWS, max_size=20))
def test_what_is_read_is_what_was_written(rows: list[StepRow], tmp_path: Path) -> None:
    write(tmp_path / "steps.arrow", rows)
    found = read(tmp_path / "steps.arrow").to_pylist()
    assert [tuple(one.values()) for one in found] == [astuple(row) for row in rows]


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "steps.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(RecordError, match=r"steps\.arrow"):
        read(tmp_path / "steps.arrow")


@pytest.mark.parametrize("length", range(0, 1200, 100))
def test_a_file_that_was_cut_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "steps.arrow"
    write(path, [StepRow(0, 0, 0, (), None, 0, visible=False)])
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RecordError, match=r"steps\.arrow"):
        read(path)


def test_the_columns_are_those_of_a_row() -> None:
    assert STEPS.names == list(StepRow.__slots__)
