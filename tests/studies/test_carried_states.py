"""What a campaign knows of the state that an earlier test left the system in."""

from __future__ import annotations

from pathlib import Path

import pytest
from procedures.driving import Silent, carried_out

from inferometer.errors import CannotSwitch
from inferometer.procedures.step import Switched
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

TESTS = {
    "ttft": {"rates": [2], "requests": 30},
    "prefix-cache": {"requests": 30, "throughput_s": 2, "output_tokens": 8},
    "search": {"level_s": 5, "pilot_requests": 32},
}


class Undeclared(Virtual):
    """A system of which nobody knows the usual state; `stuck`: a cache that is on stays on."""

    def __init__(self, *, stuck: bool = False) -> None:
        self._stuck, self.switched = stuck, list[str]()
        super().__init__(Chosen("tiny-cpu", Settings(prefix_caching=True)), Silent())

    def usual(self, what: str) -> str | None:  # noqa: ARG002 - as a Stand has it
        """See Stand."""
        return None

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        if (
            self._stuck
            and what == "prefix_cache"
            and state == "disabled"
            and self.switched[-1:] == ["flushed"]
        ):
            raise CannotSwitch("it stays as it is")
        super().switch(what, state)
        if what == "prefix_cache":
            self.switched.append(state)
        return Switched("declared", "a command")


@pytest.mark.parametrize(("stuck", "state"), [(False, "disabled"), (True, "flushed")])
def test_a_later_test_records_the_state_that_an_earlier_one_left(
    tmp_path: Path, stuck: bool, state: str
) -> None:
    """Law: where the usual state is not known the cache is switched off again, and if that fails later runs are of one that is
    on; either is recorded with them."""
    stand = Undeclared(stuck=stuck)
    ran = carried_out(tmp_path, "prefix-cache", "ttft", tests=TESTS, quick=True, stand=stand)
    assert [run["state"] for run in ran.test("ttft")["runs"]] == [{"prefix_cache": state}] * 2
    assert stand.switched[-1] == state


def test_a_system_that_is_back_in_its_usual_state_has_none_to_record(tmp_path: Path) -> None:
    """As it was before."""
    ran = carried_out(
        tmp_path, "prefix-cache", "ttft", tests=TESTS, quick=True, engine=Settings(prefix_caching=True)
    )
    assert {str(run["state"]) for run in ran.test("ttft")["runs"]} == {"{}"}
