"""Traces in all four formats, plain and gzipped: as many arrivals as rows were counted, in order, or a list of problems."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

from inferometer.errors import PlanError, Problem
from inferometer.plan.schema import Trace
from inferometer.workload.traces.survey import Survey, replay, survey

FORMATS = ("auto", "mooncake", "azure", "burstgpt", "jsonl")
FILE = Path(tempfile.mkdtemp(prefix="inferometer-fuzz-")) / "trace"


def check(data: bytes) -> None:
    """The first byte chooses the format that a plan names; the rest is the file."""
    if not data:
        return
    FILE.write_bytes(data[1:])
    trace = Trace.model_validate({"file": str(FILE), "format": FORMATS[data[0] % len(FORMATS)]})
    found = surveyed(trace)
    if isinstance(found, list):
        assert found
        return
    arrivals = list(replay(trace, found))
    assert len(arrivals) == found.facts.rows
    assert all(before.due_ns <= after.due_ns for before, after in pairwise(arrivals))


def surveyed(trace: Trace) -> Survey | list[Problem]:
    """The survey, or what is wrong with the file."""
    try:
        return survey(trace)
    except PlanError as error:
        return error.problems
