"""Headlines against the truth: what the tables count, and that every search ends with an answer and a verdict."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks.figure import Figure, Note
from benchmarks.headlines.__main__ import line, read
from benchmarks.headlines.headline import Answer, Search, Truth, mean_of
from benchmarks.headlines.tables import figures
from benchmarks.headlines.tests import HEADLINES
from inferometer.procedures.registry import PROCEDURES

TRUTHS = {"p99": Truth(100.0, 1.0)}
FOUND = (
    Search(1, 3, {"p99": Answer(90.0, (80.0, 101.0))}, "VALID", ()),
    Search(2, 3, {"p99": Answer(104.0, (102.0, 106.0))}, "VALID", ()),
    Search(3, 3, {"p99": Answer(99.0, None)}, "INCONCLUSIVE", ("no_interval",)),
    Search(4, 3, {"p99": Answer(None, None)}, "INCONCLUSIVE", ("no_interval",)),
)


def test_a_table_counts_answers_intervals_and_those_that_hold_the_truth() -> None:
    """Of four searches three have an answer, two an interval, one of which holds the truth; the verdicts are counted."""
    made = list(figures("table", TRUTHS, FOUND))
    cells = {one.label: one.value for one in made if isinstance(one, Figure)}
    assert (cells["answers"], cells["intervals"], cells["held the truth"]) == (3, 2, 1)
    assert (cells["least"], cells["median"], cells["most"]) == (90.0, 99.0, 104.0)
    assert cells["worst error, %"] == pytest.approx(10.0)
    (note,) = (one for one in made if isinstance(one, Note))
    assert note.text == "2 VALID, 2 INCONCLUSIVE; reasons: no_interval (2)"


def test_lines_that_were_printed_make_the_same_table() -> None:
    """What one process prints another reads back whole."""
    lines = [json.dumps(line("ttft", "testbed", TRUTHS, one)) for one in FOUND]
    assert read(lines) == (TRUTHS, list(FOUND))


def test_a_truth_of_several_runs_has_the_error_of_their_mean() -> None:
    """The standard error: the spread over the root of their number; runs without the figure do not count."""
    truth = mean_of([9.0, None, 11.0])
    assert truth.value == 10.0
    assert truth.error == pytest.approx(math.sqrt(2.0) / math.sqrt(2.0))


def test_every_headline_is_of_the_test_that_it_is_named_after() -> None:
    """`python -m benchmarks.headlines TEST` finds each once, and it is a test of the draft."""
    assert all(name == one.name and one.test in PROCEDURES for name, one in HEADLINES.items())
