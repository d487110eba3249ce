"""The way to the server before the load against that behind it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from inferometer.documents.run_facts import RoundTrips, TripTimes
from inferometer.judge.round_trip import round_trip


def times(p50_ms: float | None) -> TripTimes:
    return TripTimes(0 if p50_ms is None else 10, p50_ms, p50_ms, p50_ms)


def trips(before: float | None, after: float | None, during: float | None = None) -> RoundTrips:
    return RoundTrips("kernel", times(before), None if during is None else times(during), times(after))


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (0.01, 0.9, "pass"),  # less than a millisecond hardly shows in a TTFT
        (0.01, 1.1, "note"),
        (20.0, 29.0, "pass"),
        (20.0, 31.0, "note"),
        (31.0, 20.0, "note"),
        (None, 20.0, "na"),
        (20.0, None, "na"),
    ],
)
def test_a_way_that_changed_is_noted(before: float | None, after: float | None, status: str) -> None:
    """Beyond a millisecond and half of the shorter; either way; and only where both are known."""
    check = round_trip(trips(before, after))
    assert check.status == status
    assert (check.value is None) == (status == "na")


def test_it_says_what_it_was_while_measuring_and_judges_nothing_by_it() -> None:
    """A load that fills a link makes its round trips longer: that is what it does, and it ends with it."""
    check = round_trip(trips(20.0, 20.0, during=200.0))
    assert (check.status, check.facts["during"]) == ("pass", 200.0)


def test_a_run_without_round_trips_is_not_judged() -> None:
    """Records of earlier versions; a run that a person ended has none behind the load."""
    assert round_trip(None).status == "na"
    assert round_trip(replace(trips(20.0, 20.0), after=None)).status == "na"


def test_the_least_round_trip_is_that_of_all_handshakes() -> None:
    """Of each request it is then at least so much."""
    assert trips(20.0, 19.0, during=18.0).least_ms == 18.0
    assert trips(None, 19.0).least_ms == 19.0
    assert trips(None, None).least_ms is None
