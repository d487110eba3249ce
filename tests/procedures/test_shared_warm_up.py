"""One warm-up for each state of the system, shared by the tests of a quick campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from procedures.driving import IDS, Ran, Silent, carried_out

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.errors import CannotSwitch
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import WARMUP_PART, open_loop, warm_up_run, with_warm_up
from inferometer.procedures.shared_warm_up import sharing, warm_up
from inferometer.procedures.step import Run, Steps, Switch, Switched
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

ENGINE = Settings(step_base_ns=5e6, max_batch=16, input_check_ns=2e6)
SMALL = {
    "ttft": {"requests": 20, "rates": [20]},
    "long-context": {"lengths": [512, 1024, 2048], "requests": 2},
    "guardrail": {"configurations": ["baseline", "input"], "throughput_s": 2},
}
NAMES = ("ttft", "long-context", "guardrail")


class Restarting(Virtual):
    """A system that is switched by a command, which may have started it anew."""

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        super().switch(what, state)
        return Switched("declared", "command: restart")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Three quick tests, the last of which switches the system."""
    return carried_out(
        tmp_path_factory.mktemp("shared"), *NAMES, engine=ENGINE, plan=IDS, tests=SMALL, quick=True
    )


def warm_ups(ran: Ran) -> list[str]:
    """The warm-up runs that the tests list, in their order."""
    return [
        one["run"] for test in ran.document["tests"] for one in test["runs"] if one["part"] == WARMUP_PART
    ]


def test_each_state_of_the_system_is_warmed_up_once(shared: Ran) -> None:
    """Both tests without a switch, and the state that the engine confirms to be the same, share a run; filters have one."""
    found = warm_ups(shared)
    assert len(found) == 4
    assert len(set(found)) == 2
    assert found[0] == found[1] == found[2] != found[3]


def test_every_test_begins_with_a_warm_up_of_the_drafts_size(shared: Ran) -> None:
    """The first run of each, whoever made it: draft 4.5.1, verified by probes (4.5.2)."""
    for test in shared.document["tests"]:
        first = test["runs"][0]
        said = shared.summaries[first["run"]]["warm_up"]
        assert first["part"] == WARMUP_PART
        assert said["completed"] >= 100
        assert said["output_tokens"] >= 10_000
        assert said["probes"]["stable"] is True


def test_no_other_run_has_a_warm_up(shared: Ran) -> None:
    """It would be time spent on what is done."""
    made = set(warm_ups(shared))
    others = [one for name, one in shared.summaries.items() if name not in made]
    assert others
    assert not any(one["warm_up"]["requests"] for one in others)


def test_a_system_that_may_have_been_restarted_is_warmed_up_again(tmp_path: Path) -> None:
    """Back in a state by a command is not known to be warm."""
    stand = Restarting(Chosen("tiny-cpu", ENGINE), Silent())
    found = warm_ups(
        carried_out(tmp_path, "ttft", "guardrail", plan=IDS, tests=SMALL, quick=True, stand=stand)
    )
    assert len(found) == len(set(found)) == 3


def test_a_campaign_at_full_size_warms_up_in_each_test(tmp_path: Path) -> None:
    """Its tests stand for themselves."""
    ran = carried_out(tmp_path, "ttft", "long-context", engine=ENGINE, plan=IDS, tests=SMALL)
    assert len(set(warm_ups(ran))) == 2


def test_what_cannot_be_switched_reaches_the_test() -> None:
    """The test decides what to do then, and a new state is warmed up before its first run."""
    level = Run(
        with_warm_up(open_loop(Plan(), 5.0, requests=3)), "level", Conditions(rate=5.0), Note("ttft_level")
    )

    def test() -> Steps:
        try:
            yield Switch("guardrails", "input")
        except CannotSwitch:
            yield Switch("guardrails", "full")
        yield level

    steps = sharing(test())
    assert next(steps) == Switch("guardrails", "input")
    assert steps.throw(CannotSwitch("no")) == Switch("guardrails", "full")
    ready = steps.send(Switched("verified", "itself"))
    assert isinstance(ready, Run)
    assert ready.part == WARMUP_PART


def test_the_shared_warm_up_is_no_longer_than_the_drafts() -> None:
    """100 answers of 100 tokens: both amounts at once, and prompts below the shortest context of 5.9."""
    run = warm_up(warm_up_run(Plan()).plan)
    workload = run.plan.workload
    assert workload.model_dump()["output_tokens"] is not None
    assert run.plan.load.warmup == 100
    assert run.plan.load.warmup_tokens == 10_000
    assert not run.plan.load.warmup_prefixes
