"""The swap gate: growth since the baseline decides, not the amount; unknown readings raise nothing and clear nothing."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry.machine_readings import Swap
from inferometer.telemetry.swap_watch import (
    GROWN_BYTES,
    SWAPPED_OUT_PAGES,
    SwapAccount,
    SwapAlert,
    SwapGate,
    SwapWatch,
)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 10**9), st.integers(0, 10**4))
def test_growth_over_a_limit_alerts_and_nothing_else(used: int, pages: int, grown: int, out: int) -> None:
    """More than 500 MB or more than 1,000 pages, whatever the baseline; at the limit itself there is none."""
    gate = SwapGate(Swap(used, pages, 4096), 100.0)
    alert = gate.take(Swap(used + grown, pages + out, 4096), 115.0)
    assert (alert is not None) == (grown > GROWN_BYTES or out > SWAPPED_OUT_PAGES)
    assert alert is None or alert == SwapAlert(15.0, grown, out)


def test_the_limits_are_not_over_themselves() -> None:
    """500 MB and 1,000 pages are the most that passes."""
    gate = SwapGate(Swap(0, 0), 0.0)
    assert gate.take(Swap(500_000_000, 1000), 15.0) is None
    assert gate.take(Swap(500_000_001, 1000), 30.0) == SwapAlert(30.0, 500_000_001, 1000)


def test_the_first_alert_stays_and_the_largest_growth_too() -> None:
    """Swap that is read back later was written all the same."""
    gate = SwapGate(Swap(0, 0), 0.0)
    for at, used in ((15.0, 600_000_000), (30.0, 900_000_000), (45.0, 0)):
        gate.take(Swap(used, 0), at)
    assert gate.account == SwapAccount(3, 900_000_000, 0, SwapAlert(15.0, 600_000_000, 0))


def test_unknown_readings_are_no_readings() -> None:
    """A gate that could read nothing reports that it did not run; one of two readings is enough."""
    gate = SwapGate(Swap(None, None), 0.0)
    assert gate.take(Swap(10**12, 10**9), 15.0) is None
    assert gate.account == SwapAccount(0, None, None, None)
    half = SwapGate(Swap(None, 5), 0.0)
    assert half.take(Swap(None, 2000), 15.0) is not None


def test_a_watch_reads_at_its_start_and_its_end() -> None:
    """However short: growth between the two is seen, announced once, and the thread is gone."""
    readings = iter([Swap(0, 0), Swap(600_000_000, 0)])
    announced: list[SwapAlert] = []
    with SwapWatch(lambda: next(readings), announced.append) as watch:
        pass
    account = watch.stop()
    assert account.readings == 1
    assert account.alert is not None
    assert announced == [account.alert]
    assert "swap-watch" not in {thread.name for thread in threading.enumerate()}


def test_a_watch_reads_while_it_runs() -> None:
    """At its interval, in its own thread."""
    third = threading.Event()
    count = 0

    def read() -> Swap:
        nonlocal count
        count += 1
        if count == 3:
            third.set()
        return Swap(0, count)

    watch = SwapWatch(read, every_s=0.001)
    watch.start()
    assert third.wait(10)
    assert watch.stop().readings >= 2
