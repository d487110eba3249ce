"""The pool of `benchmarks/campaign_comparison.py`: what is drawn of it, and what is left out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

from benchmarks.campaign_comparison import (
    FLAGS,
    POOLS,
    carry_out,
    known,
    null_sides,
    planted_sides,
    verdicts,
)
from benchmarks.played import Silent
from inferometer.plan.campaign import Campaign, EngineChoice, campaign


def short(pool: str, seed: int) -> Campaign:
    """A campaign of one test."""
    flags = FLAGS | {"--seed": str(seed)}
    engine = EngineChoice(preset="testbed", settings=POOLS[pool])
    parameters = ("ttft.requests=30",)
    return campaign(("ttft",), None, flags, parameters, quick=True, simulated=True, engine=engine)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One campaign of each pool, made after one of them was broken off."""
    place = tmp_path_factory.mktemp("pool")
    (place / "slower-1" / "runs").mkdir(parents=True)
    carry_out(place, [1], Silent(), short)
    return place


def test_a_pool_is_made_of_what_is_missing_or_was_broken_off(folder: Path) -> None:
    """Both pools have the seed afterwards; a document that is damaged later is left out, and the others stay."""
    assert {pool: list(found) for pool, found in known(folder).items()} == {pool: [1] for pool in POOLS}
    document = folder / "slower-1" / "campaign.json"
    whole = document.read_bytes()
    document.write_bytes(whole[:1000])
    assert {pool: list(found) for pool, found in known(folder).items()} == {"a": [1], "slower": []}
    document.write_bytes(whole)


def test_sides_of_one_pool_share_no_campaign_and_planted_ones_share_their_seeds(folder: Path) -> None:
    """Whatever is drawn; too small a pool gives no comparison."""
    one = known(folder)["a"][1]
    pool = [replace(one, facts=replace(one.facts, id=str(number))) for number in range(7)]
    for sides in null_sides(pool, 3):
        assert len({each.facts.id for side in sides for each in side}) == 6
        assert [[each.facts.seed for each in side] for side in sides] == [[1, 2, 3], [1, 2, 3]]
    assert next(null_sides(pool, 4), None) is None
    both = dict(enumerate(pool))
    assert all(first == second for first, second in planted_sides(both, both, 3))


def test_a_campaign_against_itself_differs_in_nothing(folder: Path) -> None:
    """No deciding figure of any test is better or worse."""
    one = known(folder)["a"][1]
    found = verdicts([([one], [one])], ())
    assert (found["comparisons"], found["any difference"]) == (1, 0)
