"""The standing trial of campaigns: when a statement counts as false, and its short form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks.trial.campaigns import counts, situations
from benchmarks.trial.campaigns.situation import (
    CAMPAIGN,
    NO_TRUTH,
    Outcome,
    Situation,
    Statement,
    Truth,
    Truths,
    found,
)

PAGE = Path(__file__).parent.parent / "docs" / "trial.md"
QUICK = [one for one in situations() if one.quick]


def outcome(
    truths: Truths,
    *said: Statement,
    says: tuple[str, ...] = (),
    never: tuple[str, ...] = (),
    clean: bool = False,
) -> Outcome:
    """Of a situation in which this was said."""
    situation = Situation("name", "family", lambda: said, lambda: truths, ("code",), says, never, clean)
    return found(situation)


def ttft(value: float | None, status: str = "VALID", *notes: str) -> Statement:
    return Statement("ttft", status, value, None, () if status == "VALID" else ("code",), notes)


def whole(status: str = "VALID") -> Statement:
    return Statement(CAMPAIGN, status, None, None, ())


@pytest.mark.parametrize(
    ("truth", "said", "false"),
    [
        (Truth(100.0), ttft(109.0), False),
        (Truth(100.0), ttft(111.0), True),
        (Truth(100.0), ttft(89.0), True),
        (Truth(100.0), ttft(200.0, "INCONCLUSIVE"), False),
        (Truth(0.0, apart=10.0), ttft(-9.0), False),
        (Truth(0.0, apart=10.0), ttft(11.0), True),
        (NO_TRUTH, ttft(100.0), True),
        (NO_TRUTH, ttft(100.0, "INVALID"), False),
        (Truth(100.0), ttft(None), True),
    ],
)
def test_a_headline_far_from_the_truth_is_false_where_it_is_valid(
    truth: Truth, said: Statement, false: bool
) -> None:
    """By a share of the truth or by a distance, whichever is more; without a truth every VALID answer is false."""
    assert bool(outcome({"ttft": truth}, said).false_statements) is false


def test_a_headline_whose_interval_holds_the_truth_claims_no_more_than_it_knows() -> None:
    """However far off it is."""
    for interval, false in (((90.0, 140.0), False), ((105.0, 140.0), True)):
        said = Statement("ttft", "VALID", 120.0, interval, ())
        assert bool(outcome({"ttft": Truth(100.0)}, said).false_statements) is false


def test_a_test_whose_truth_is_not_known_says_nothing_false() -> None:
    """Nor does its campaign."""
    assert not outcome({}, ttft(1.0), whole()).false_statements


def test_a_campaign_that_is_believed_though_it_must_not_be_is_false() -> None:
    """The system changed between two tests, each of which is true of it as it was."""
    truths = {CAMPAIGN: NO_TRUTH}
    assert outcome(truths, ttft(1.0), whole()).false_statements == (whole(),)
    assert not outcome(truths, ttft(1.0), whole("INCONCLUSIVE")).false_statements


def test_what_has_to_be_said_and_what_must_not_be_count_by_their_notes() -> None:
    """A VALID campaign without the one is false, and so is a test with the other, whatever its verdict."""
    assert outcome({}, ttft(1.0), whole(), says=("unfair",)).false_statements == (whole(),)
    assert not outcome({}, ttft(1.0, "VALID", "unfair"), whole(), says=("unfair",)).false_statements
    assert not outcome({}, ttft(1.0), whole("INVALID"), says=("unfair",)).false_statements
    said = ttft(1.0, "INCONCLUSIVE", "unfair")
    assert outcome({}, said, whole("INCONCLUSIVE"), never=("unfair",)).false_statements == (said,)


def test_the_counts_tell_false_named_and_strict_apart() -> None:
    """One of each, beside a clean campaign that is believed."""
    every = (
        outcome({"ttft": Truth(1.0)}, ttft(2.0)),
        outcome({"ttft": Truth(1.0)}, ttft(2.0, "INVALID")),
        outcome({"ttft": Truth(1.0)}, ttft(1.0), clean=True),
        outcome({"ttft": Truth(1.0)}, ttft(1.0, "INCONCLUSIVE"), clean=True),
    )
    numbers = [line.split(" | ")[1].removesuffix(" |") for line in counts(every)][2:]
    assert numbers == ["2", "1", "1", "1", "2", "0", "1"]


def test_every_situation_has_a_name_of_its_own() -> None:
    """Law: at least 40 of them, and some with nothing wrong."""
    every = [*situations()]
    names = [(one.family, one.name) for one in every]
    assert len({*names}) == len(names) >= 40
    assert any(one.clean for one in every)


def test_the_page_has_a_row_for_every_situation() -> None:
    """Law: docs/trial.md shows what came of each, and of no other."""
    rows = [line.removeprefix("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    shown = {(cells[0], cells[1]) for cells in rows if len(cells) == 7 and cells[0] not in ("family", "---")}
    assert shown == {(one.family, one.name) for one in situations()}


@pytest.mark.parametrize("situation", QUICK, ids=lambda one: one.name)
def test_nothing_false_is_said_of_a_planted_situation(situation: Situation) -> None:
    """Law: a campaign is not VALID with a headline far from the truth; and where nothing is wrong, it is VALID."""
    one = found(situation)
    assert not one.false_statements
    assert not one.strict
