"""Hosts in namespaces of network and time, whose offset is known: the bound holds over every kind of route.

`benchmarks/clocks.py` does the same two hundred times. Needs root.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))  # `benchmarks` is not installed

from benchmarks.clocks import ROUTES, Host, against, host, lacking, trial
from inferometer.cluster.clock_fit import ClockProbe, fit


@pytest.fixture(scope="module")
def other() -> Iterator[Host]:
    why = lacking()
    if why is not None:
        pytest.skip(why)
    with host(1) as one:
        yield one


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("ahead_s", [0, 100_000])
def test_the_offset_of_a_host_lies_within_the_bound(other: Host, route: str, ahead_s: int) -> None:
    """At the first probe, at the last, and 2 s later."""
    found = trial(other, ROUTES[route], ahead_s, seed=ahead_s + len(route), bursts=3)
    assert found is not None
    assert found.within
    assert not found.fit.stepped


def test_asymmetry_is_inside_the_bound_by_construction(other: Host) -> None:
    """5 ms there and 0.2 ms back put the offset 2.4 ms wrong at least, and the bound is beyond that."""
    found = trial(other, ROUTES["asymmetric"], 1_000, seed=1, bursts=3)
    assert found is not None
    assert 2_300_000 < found.error_ns <= found.fit.bound_ns


def test_an_error_beyond_the_bound_is_counted_as_one() -> None:
    """The trials can fail."""
    found = fit([ClockProbe(0, 0, 10)])
    assert against(found, 0).within
    assert not against(found, 100).within
