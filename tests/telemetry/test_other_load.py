"""Load of others: the machine's busy time less this program's and the engines', whoever began when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.telemetry.other_load import CpuSnapshot, between, snapshot
from inferometer.telemetry.processes import Process, processes

OWN = 100


def at(second: float, busy: float, stolen: float | None = None, **cpu: float) -> CpuSnapshot:
    """Processes named after their numbers: p7 is 7. 21 is a child of 20."""
    found = [
        Process(int(name[1:]), 20 if name == "p21" else 1, name, None, 0.0, seconds)
        for name, seconds in cpu.items()
    ]
    return CpuSnapshot(second, busy, stolen, {(one.pid, one.started): one for one in found})


def test_neither_we_nor_an_engine_is_other_load() -> None:
    """An engine's children neither: 3 s busy in 2 s, of which 1 s ours, 1 s the engine's, 0.5 s its child's."""
    before = at(10.0, 50.0, p100=1.0, p20=5.0, p21=5.0, p7=1.0)
    after = at(12.0, 53.0, p100=2.0, p20=6.0, p21=5.5, p7=1.4)
    load = between(before, after, 8, engines=(20,), own=OWN)
    assert load.busy_cores == pytest.approx(0.25)
    assert load.busiest == "p7"
    assert load.busiest_cores == pytest.approx(0.2)
    assert load.stolen_cores is None


def test_a_process_that_began_meanwhile_used_all_its_time_meanwhile() -> None:
    """Also when its number was another's before."""
    load = between(at(0.0, 0.0), at(1.0, 0.5, p9=0.5), 4, own=OWN)
    assert (load.busiest, load.busiest_cores) == ("p9", 0.5)


def test_stolen_time_is_the_hypervisors() -> None:
    """It is part of the load of others."""
    load = between(at(0.0, 1.0, stolen=0.5), at(2.0, 2.0, stolen=1.5), 4, own=OWN)
    assert (load.busy_cores, load.stolen_cores, load.busiest) == (0.5, 0.5, None)


@given(st.floats(0, 100), st.floats(0, 100))
def test_the_load_is_never_below_nothing(busy: float, own: float) -> None:
    """The kernel counts the machine in hundredths of a second, and a process otherwise."""
    load = between(at(0.0, 0.0, p100=0.0), at(1.0, busy, p100=own), 4, own=OWN)
    assert load.busy_cores == pytest.approx(max(busy - own, 0.0))


def test_a_snapshot_is_of_this_machine() -> None:
    """Busy time grows, and holds at least that of this process."""
    running = processes()
    one = snapshot(running)
    assert one.busy_s > 0
    assert len(one.by_process) == len(running)
