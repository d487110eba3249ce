"""The measure of what a SIGKILL costs (benchmarks/kills.py) counts right."""

from __future__ import annotations

import pytest

from benchmarks.kills import claims_too_much, losses


def test_only_what_had_ended_before_the_kill_can_be_lost() -> None:
    """Law: finished = ended before it; lost = finished and not on record, each with its age at the kill."""
    ended = {"a": 1_000_000_000, "b": 1_600_000_000, "c": 2_000_000_000, "d": 2_400_000_000}
    found = losses(ended, ["a", "d"], killed_ns=2_100_000_000)
    assert (found.finished, found.lost) == (3, 2)
    assert found.ages_s == pytest.approx((0.1, 0.5))


def test_a_verdict_claims_too_much_only_if_it_vouches_for_an_incomplete_record() -> None:
    """A whole record may be VALID, and an incomplete one anything else."""
    assert claims_too_much("VALID", 9, 10)
    assert not claims_too_much("VALID", 10, 10)
    assert not claims_too_much("INVALID", 9, 10)
    assert not claims_too_much(None, 0, 10)
