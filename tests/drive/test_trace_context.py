"""The trace of each request of a run of tasks."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from inferometer.drive.trace_context import TraceContext

FORM = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01")  # W3C Trace Context, 3.2


@given(st.text(max_size=100), st.integers(0, 2**40), st.integers(0, 1000))
def test_a_header_keeps_to_the_standard_and_names_its_trace(run: str, row: int, cycle: int) -> None:
    name, value = TraceContext(run).field(row, cycle)
    assert name == b"traceparent"
    assert FORM.fullmatch(value)
    assert value[3:35].decode() == TraceContext(run).trace_id(row, cycle)


def test_no_two_requests_and_no_two_runs_share_a_trace() -> None:
    found = [
        TraceContext(run).trace_id(row, cycle)
        for run in ("a", "b")
        for row in range(50)
        for cycle in range(50)
    ]
    assert len(set(found)) == len(found)
