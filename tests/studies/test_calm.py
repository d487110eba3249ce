"""Waiting for a machine that is on time again: with looks and a clock that are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.documents.doctor import TimerSeries
from inferometer.studies.calm import CALM_MS, INSTANTS, PATIENCE_S, await_calm, tried


class Machine:
    """Each look takes five seconds and shows the next P99."""

    def __init__(self, late_ms: list[float]) -> None:
        self.now, self._late = 0.0, iter([*late_ms, *[late_ms[-1]] * 1_000])
        self.looks = 0

    def look(self) -> TimerSeries:
        """The next."""
        self.now += 5.0
        self.looks += 1
        late = next(self._late)
        return TimerSeries(INSTANTS, late, late, late)


@given(st.lists(st.floats(CALM_MS + 0.001, 20.0), max_size=50))
def test_it_looks_until_the_machine_is_on_time_and_no_longer(late: list[float]) -> None:
    machine = Machine([*late, CALM_MS])
    assert await_calm(machine.look, lambda: machine.now).p99_ms == CALM_MS
    assert machine.looks == len(late) + 1


@pytest.mark.parametrize("late", [0.6, 50.0])
def test_a_machine_that_is_never_on_time_is_not_waited_for_for_ever(late: float) -> None:
    machine = Machine([late])
    assert await_calm(machine.look, lambda: machine.now).p99_ms == late
    assert PATIENCE_S <= machine.now <= PATIENCE_S + 5.0


def test_a_look_is_at_this_machines_timer() -> None:
    seen = tried()
    assert seen.n == INSTANTS
    assert 0 <= seen.p50_ms <= seen.p99_ms <= seen.max_ms
