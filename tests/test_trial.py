"""The short form of the standing trial (benchmarks/trial): one defect or more of each family, and twenty clean runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks.trial import cleans, defects, found
from benchmarks.trial.clean import Clean
from benchmarks.trial.defects import Defect

PAGE = Path(__file__).parent.parent / "docs" / "trial.md"
DEFECTS = [one for one in defects() if one.quick]
CLEAN = [one for one in cleans() if one.quick]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_never_valid_and_the_reason_is_its_own(defect: Defect) -> None:
    """Law: a run that a known defect has bent is not VALID, and one of the checks that decide is about that defect."""
    one = found(defect)
    assert not one.believed
    assert one.expected


@pytest.mark.parametrize("clean", CLEAN, ids=lambda clean: clean.name)
def test_a_clean_run_is_valid(clean: Clean) -> None:
    """Law: where nothing is wrong, nothing is said to be."""
    assert clean.carry_out() == ("VALID", ())


def test_the_trial_is_as_large_as_it_says() -> None:
    """Law: at least 60 defects, each with a name of its own, and at least 300 clean runs, likewise."""
    planted, clean = [one.name for one in defects()], [one.name for one in cleans()]
    assert len(set(planted)) == len(planted) >= 60
    assert len(set(clean)) == len(clean) >= 300


def test_the_page_has_a_row_for_every_defect() -> None:
    """Law: docs/trial.md shows what came of each defect that is planted, and of no other."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    shown = {cells[1] for cells in rows if len(cells) == 5 and cells[1] not in ("defect", "---")}
    assert shown == {one.name for one in defects()}
