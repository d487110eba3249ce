"""Systems that do less the more is in flight: what the tests say whose loads are shares of what such a system sustains."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import Silent
from procedures.modelled import System, carried, results, summary
from procedures.scripted import played
from procedures.summaries import changed, steady

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.collapse import base_collapse, unsure_loads
from inferometer.procedures.saturation import base_of, find_base
from inferometer.procedures.setup import Setup, workload_key
from inferometer.procedures.step import Performed, Run, Step
from inferometer.report.campaign.notes import worded
from inferometer.run.simulate import simulate
from inferometer.server.presets import PRESETS
from inferometer.simulation.engine import Chosen

TOKENS, MOST, FULL = 50.0, 10.0, 16
BASES = ("ttft", "itl", "tradeoff")


def crowding(left: float) -> System:
    """Does MOST requests a second with FULL in flight, and a share of it with more; open loops up to MOST are kept up with."""

    def answer(plan: Plan) -> Summary:
        slots, offered = plan.load.concurrency, plan.load.rate or 0.0
        done = min(offered, MOST) if slots is None else MOST * (slots / FULL if slots <= FULL else left)
        ratio = 1.0 if slots is not None else done / offered
        told = steady(TOKENS * done, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=False)
        return changed(summary(plan, request_s=done, tokens=TOKENS), steady=told)

    return answer


def searched(setup: Setup, system: System) -> list[Performed]:
    """The search for 100 % alone."""

    def answer(step: Step) -> Summary:
        assert isinstance(step, Run)
        return system(step.plan)

    return played(find_base(setup, setup.plan), answer)  # type: ignore[arg-type]  # it returns a rate, too


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 1.0), st.lists(st.floats(1, 100), min_size=1, max_size=5))
def test_loads_above_what_a_collapsed_system_does_are_unsure_and_no_others(
    left: float, percents: list[float]
) -> None:
    """Law: the search sees the collapse if it is one; a load is unsure exactly if it is more than the system then does."""
    setup = Setup(Plan(), Tests())
    done = searched(setup, crowding(left))
    base, collapse = base_of(setup, setup.plan, done), base_collapse(setup, setup.plan, done)
    assert base == pytest.approx(MOST, rel=0.04)
    if collapse is None:
        assert left > 0.85
        return
    assert base == pytest.approx(MOST)
    assert left < 0.9
    assert collapse.arrival_s == pytest.approx(left * MOST)
    assert collapse.seen.facts["concurrency"] == FULL
    unsure: list[Any] = []
    for note in unsure_loads(collapse, base, percents):
        unsure += note.facts["percents"]  # type: ignore[arg-type]  # a tuple
    edge = pytest.approx(100 * left, rel=1e-9)
    assert {one for one in percents if one > 100 * left and one != edge} <= set(unsure)
    assert all(one > 100 * left or one == edge for one in unsure)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("left", [0.95, 0.6])
def test_a_test_says_that_its_100_percent_collapses(name: str, left: float) -> None:
    """Law: in the notes, with what is left; and the verdict is not VALID where a load is beyond that."""
    parameters: dict[str, Any] = {} if name == "tradeoff" else {"percent": [25, 50, 80]}
    setup = Setup(Plan(), Tests.model_validate({name: parameters}))
    found = results(name, setup, carried(name, setup, crowding(left)))
    seen = [note for note in found.notes if note.code == "throughput_collapses"]
    unsure = [note for note in found.undecided if note.code == "loads_beyond_collapse"]
    assert bool(seen) == bool(unsure) == (left < 0.9)
    if left > 0.9:
        return
    assert "it does 60 % of what it does with 16" in worded(seen[0])
    assert "no more than 60 % of the rate that is 100 %" in worded(unsure[0])
    if name != "tradeoff":
        assert unsure[0].facts["percents"] == (80,)


def test_loads_that_even_a_collapsed_system_carries_are_measured() -> None:
    """Law: a note, and nothing undecided, at 25 and 50 % of a system that keeps 60 %."""
    setup = Setup(Plan(), Tests.model_validate({"ttft": {"percent": [25, 50]}}))
    found = results("ttft", setup, carried("ttft", setup, crowding(0.6)))
    assert [note.code for note in found.notes if note.code == "throughput_collapses"]
    assert found.undecided == ()


def test_what_5_2_saw_of_a_collapse_is_said_by_the_tests_after_it() -> None:
    """Law: a base that is known already brings its collapse with it, and no number in flight that would fill the system."""
    setup = Setup(Plan(), Tests())
    known = results("throughput", setup, carried("throughput", setup, crowding(0.6))).known
    assert list(known.collapses) == list(known.saturation) == [workload_key(setup.plan)]
    assert known.full is None
    after = Setup(Plan(), Tests.model_validate({"ttft": {"percent": [80]}}), known)
    found = results("ttft", after, carried("ttft", after, crowding(0.6)))
    assert [note.code for note in found.undecided] == ["loads_beyond_collapse"]


def test_an_open_loop_whose_backlog_slows_the_system_below_its_capacity_is_seen() -> None:
    """Law: a level of nine tenths that is not kept up with, and does 40 % in the end, is a collapse of the 100 % found below
    it; one that merely is not kept up with is none."""

    def backlogged(left: float) -> System:
        def answer(plan: Plan) -> Summary:
            offered = plan.load.rate or 0.0
            found = crowding(1.0)(plan)
            if plan.load.concurrency is not None or offered <= 0.5 * MOST:
                return found
            thirds = (TOKENS * offered, TOKENS * offered, TOKENS * left * MOST)
            told = steady(
                TOKENS * offered,
                completions=10_000,
                ratio=0.8,
                ratio_ci=(0.8, 0.8),
                growing=True,
                thirds=thirds,
            )
            return changed(found, steady=told)

        return answer

    setup = Setup(Plan(), Tests())
    done = searched(setup, backlogged(0.4))
    assert base_of(setup, setup.plan, done) == pytest.approx(0.5 * MOST, rel=0.1)
    collapse = base_collapse(setup, setup.plan, done)
    assert collapse is not None
    assert collapse.seen.code == "throughput_collapses_with_backlog"
    assert collapse.arrival_s == pytest.approx(0.4 * MOST)
    assert base_collapse(setup, setup.plan, searched(setup, backlogged(0.9))) is None


def test_in_closed_loop_a_collapse_is_a_note() -> None:
    """Law: its clients hold requests back, so the maximum stands."""
    setup = Setup(Plan(), Tests.model_validate({"throughput": {"loop": "closed"}}))
    found = results("throughput", setup, carried("throughput", setup, crowding(0.6)))
    (note,) = [one for one in found.notes if one.code == "slower_with_more_in_flight"]
    assert worded(note).startswith("More requests in flight make the system slower: with ")
    assert note.facts["left"] == pytest.approx(0.6)
    assert found.undecided == ()
    steady_one = results("throughput", setup, carried("throughput", setup, crowding(1.0)))
    assert not [one for one in steady_one.notes if one.code == "slower_with_more_in_flight"]


THRASHING = replace(
    PRESETS["testbed"],
    prefix_caching=False,
    output_check_tokens=0,
    max_batch=256,
    kv_blocks=400,
    preemption="swap",
    swap_per_block_ns=20_000_000,
)


@pytest.mark.parametrize(("engine", "collapses"), [(THRASHING, True), (PRESETS["testbed"], False)])
def test_the_climb_to_100_percent_sees_an_engine_thrash_and_blames_no_other(
    engine: Any, collapses: bool
) -> None:
    """In virtual time: a small KV cache and long answers make the engine swap; the testbed itself only queues."""
    words = {"name": "custom", "input_tokens": "uniform(8,16)", "output_tokens": "uniform(300,500)"}
    tests = {"search": {"pilot_concurrency": 8, "pilot_requests": 64}}
    setup = Setup(Plan.model_validate({"workload": words}), Tests.model_validate(tests))

    def system(step: Step) -> Summary:
        assert isinstance(step, Run)
        if step.plan.load.model == "open":
            return crowding(1.0)(step.plan)
        with tempfile.TemporaryDirectory() as folder:
            return simulate(step.plan, Chosen("testbed", engine), Path(folder), Silent()).summary

    done = played(find_base(setup, setup.plan), system)  # type: ignore[arg-type]  # it returns a rate, too
    assert (base_collapse(setup, setup.plan, done) is not None) == collapses
