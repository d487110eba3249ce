"""The climb to what a system can do at all, and the search about it, on systems in closed form."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import Silent
from procedures.modelled import FellOver, System, carried, results, rows, summary, value
from procedures.summaries import changed, steady

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.latency_limit import PART
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import runs
from inferometer.run.simulate import simulate
from inferometer.server.presets import PRESETS
from inferometer.simulation.engine import Chosen

TOKENS = 50.0


def open_system(most: float, places: float, overloaded: float | None = None) -> System:
    """Does `most` requests a second with `places` in flight or more, fewer in proportion; `overloaded`: what is left of it in
    open loop at more than a tenth above that."""

    def answer(plan: Plan) -> Summary:
        slots, offered = plan.load.concurrency, plan.load.rate or 0.0
        able = most if overloaded is None or offered <= 0.7 * most else overloaded
        done = most * min(1.0, slots / places) if slots is not None else min(offered, able)
        ratio = 1.0 if slots is not None else done / offered
        late = 1000.0 if slots is None and offered > 0.8 * most else 20.0
        seen = summary(plan, request_s=done, ttft=(10.0, late), tokens=TOKENS)
        told = steady(TOKENS * done, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=False)
        return changed(seen, steady=told)

    return answer


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 500), st.integers(1, 400))
def test_the_maximum_is_found_whatever_the_system_has_places(most: float, places: int) -> None:
    """In closed form, where nothing is left to chance: exactly, with both sides shown."""
    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, open_system(most, places)))
    assert value(found, "max_output_tok_s").value == pytest.approx(TOKENS * most, rel=1e-6)
    assert value(found, "sustainable_rate").value == pytest.approx(most, rel=1e-6)
    assert found.known.saturation
    tried = [row for row in rows(found, "levels") if row["rate"] != ""]
    assert {row["sustained"][:3] for row in tried if row["rate"] < most} == {"yes"}
    assert any(row["because"] for row in tried if row["rate"] > most)


def test_a_system_that_collapses_under_load_has_the_highest_rate_that_it_keeps_up_with() -> None:
    """With many in flight it makes 10 a second, but beyond 7 a second of arrivals only 3: the answer is 7."""
    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, open_system(10, 8, overloaded=3)))
    assert value(found, "sustainable_rate").value == pytest.approx(7, rel=0.05)
    assert value(found, "max_output_tok_s").value == pytest.approx(7 * TOKENS, rel=0.05)
    low, high = value(found, "max_output_tok_s").ci
    assert low <= 7 * TOKENS <= high
    assert "capacity_not_sustained" in [note.code for note in found.notes]


def failing(plan: Plan) -> Summary:
    """A system that makes 10 a second with all in flight, and in open loop fails more the more arrive: 1 % at 7 a second. Of
    400 requests that is 4, give or take chance."""
    if plan.load.rate is None:
        return open_system(10, 10)(plan)
    failed = round(4 * (plan.load.rate / 7) ** 2)
    made = plan.load.rate * (400 - failed) / 400
    return summary(plan, request_s=made, tokens=TOKENS, completed=400 - failed, by_error={"http_5xx": failed})


def test_a_level_that_its_values_decided_is_no_end_of_an_interval() -> None:
    """Law: the interval goes from a level that was surely kept up with to one that surely was not, not from one of two
    neighbours that chance told apart to the other; so it is too wide for a verdict, or there is none."""
    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, failing))
    most = value(found, "sustainable_rate")
    assert most.value == pytest.approx(7, rel=0.1)
    rates = [row["rate"] for row in rows(found, "levels") if row["rate"] != "" and row["sustained"] == "no"]
    assert most.ci is None or (most.ci[0] <= 7 <= most.ci[1] and most.ci[1] > min(rates))


def crowded(plan: Plan) -> Summary:
    """A system that makes 10 a second with up to 16 in flight, and 6 with more."""
    slots = plan.load.concurrency
    more = slots is not None and slots > 16
    return open_system(6.0 if more else 10.0, 6.0 if more else 10.0, overloaded=3)(plan)


def test_a_system_that_more_requests_make_slower_has_no_certain_maximum() -> None:
    """In open loop the number in flight is anybody's guess, and so is what the system does; no doubling would add to it."""
    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, crowded))
    assert [note.code for note in found.undecided] == ["throughput_collapses"]
    assert found.undecided[0].facts == {"concurrency": 16, "more": 32, "left": pytest.approx(0.6)}


def test_an_engine_whose_cache_thrashes_has_no_certain_maximum() -> None:
    """Short prompts, long answers and a small KV cache: the model of an engine takes them all in, and then swaps most of the
    time. With 32 in flight it does half of what it does with 16, and an open loop of nine tenths of that may end so."""
    changes: dict[str, Any] = {
        "max_batch": 256,
        "kv_blocks": 400,
        "preemption": "swap",
        "swap_per_block_ns": 20_000_000,
    }
    engine = Chosen(
        "testbed", replace(PRESETS["testbed"], prefix_caching=False, output_check_tokens=0, **changes)
    )
    words = {"name": "custom", "input_tokens": "uniform(8,16)", "output_tokens": "uniform(300,500)"}
    tests = {
        "search": {"pilot_concurrency": 8, "pilot_requests": 64, "least_requests": 30},
        "throughput": quick(),
    }

    def system(plan: Plan) -> Summary:
        if plan.load.model == "open":
            raise FellOver
        with tempfile.TemporaryDirectory() as folder:
            return simulate(plan, engine, Path(folder), Silent()).summary

    setup = Setup(Plan.model_validate({"workload": words}), Tests.model_validate(tests))
    found = results("throughput", setup, carried("throughput", setup, system))
    assert "throughput_collapses" in [note.code for note in found.undecided]


def quick() -> dict[str, Any]:
    return {"duration_s": 6, "saturated_runs": 1, "limit_requests": 30}


def test_a_range_that_ends_below_the_capacity_settles_nothing() -> None:
    """Draft 5.2.2.2's range: its end was kept up with, so the maximum lies above."""
    setup = Setup(
        Plan(), Tests.model_validate({"throughput": {"min_rate": 1, "max_rate": 5, "rate_step": 1}})
    )
    found = results("throughput", setup, carried("throughput", setup, open_system(10, 8)))
    assert [note.code for note in found.undecided] == ["maximum_above_highest_load"]
    assert not found.known.saturation


def test_the_answer_under_a_limit_lies_where_latency_passes_it() -> None:
    """P99 of TTFT jumps from 20 to 1,000 ms at 8 requests a second, of 10 at most: both limits lie there."""
    setup = Setup(Plan(), Tests())
    found = results("throughput", setup, carried("throughput", setup, open_system(10, 8)))
    assert value(found, "limited_rate").value == pytest.approx(8, rel=0.1)
    assert value(found, "throughput_at_ttft_limit").value == pytest.approx(8 * TOKENS, rel=0.1)
    assert value(found, "limited_rate").note.facts["binding"] == "latency"


@pytest.mark.parametrize("loop", ["open", "closed"])
def test_an_objective_that_no_level_measured_is_not_met_by_that(loop: str) -> None:
    """Law: where answers have no pace between tokens no load is known to keep to one, however well others are met."""
    plan = Plan.model_validate({"slos": ["ttft_p99<9s", "tpot_p99<50ms"]})

    def at_once(plan: Plan) -> Summary:
        seen = open_system(10, 8)(plan)
        slos = (changed(one, value=None, met=None) if "tpot" in one.expr else one for one in seen.slos)
        return changed(seen, slos=tuple(slos))

    setup = Setup(plan, Tests.model_validate({"throughput": {"loop": loop}}))
    found = results("throughput", setup, carried("throughput", setup, at_once))
    assert value(found, "limited_output_tok_s").value is None
    assert value(found, "throughput_at_ttft_limit").value is None
    assert value(found, "max_output_tok_s").value == pytest.approx(10 * TOKENS, rel=1e-6)
    assert [note.code for note in found.undecided] == ["objectives_not_measured"]
    assert found.undecided[0].facts == {"objectives": ("tpot_p99<50ms",)}


def test_a_limit_that_nothing_meets_or_everything_does_is_said() -> None:
    """Missed at a tenth of the capacity already; or met at the highest load that was tried, which is the answer."""
    tests = Tests()
    for limit, code in (("ttft_p99<1ms", "missed_at_least_load"), ("ttft_p99<9s", "held_at_highest")):
        setup = Setup(Plan.model_validate({"slos": [limit]}), tests)
        done = carried("throughput", setup, open_system(10, 8))
        found = results("throughput", setup, done)
        assert value(found, "limited_output_tok_s").note.code == code
    tried = max(one.step.at.rate or 0.0 for one in runs(done, PART))
    assert value(found, "limited_rate").value == tried < value(found, "sustainable_rate").value


def test_a_limit_of_a_tail_has_no_answer_by_levels_that_have_none() -> None:
    """A P99 of 60 requests is about their maximum; that a limit is missed at the least load they can tell."""
    tests = Tests()

    def short(plan: Plan) -> Summary:
        seen = open_system(10, 8)(plan)
        return changed(seen, requests=changed(seen.requests, completed=60))

    for limit, code in (("ttft_p99<9s", "limit_levels_too_short"), ("ttft_p50<9s", "held_at_highest")):
        setup = Setup(Plan.model_validate({"slos": [limit]}), tests)
        found = results("throughput", setup, carried("throughput", setup, short))
        assert value(found, "limited_output_tok_s").note.code == code
        assert value(found, "throughput_at_ttft_limit").value is None
        assert not found.undecided


def refusing(most: int) -> System:
    """Turns away most requests where more than `most` are in flight, as a server with a short queue does; else does one a
    second for each, and in open loop 10."""

    def answer(plan: Plan) -> Summary:
        slots = plan.load.concurrency
        if slots is None or slots <= most:
            return open_system(10, 10)(plan)
        return summary(plan, request_s=3.0, tokens=TOKENS, completed=400, by_error={"http_5xx": 600})

    return answer


@pytest.mark.parametrize("most", [1, 2, 5, 7])
def test_a_climb_that_begins_beyond_a_short_queue_goes_down_first(most: int) -> None:
    """Law: whatever few requests in flight a system turns away, the maximum in open loop is found."""
    setup = Setup(Plan(), Tests())
    done = carried("throughput", setup, refusing(most))
    climbed = [one.step.at.concurrency for one in runs(done, "pilot")]
    assert climbed[:2] == [8, 4]
    found = results("throughput", setup, done)
    assert value(found, "max_output_tok_s").value == pytest.approx(10 * TOKENS, rel=1e-6)
    low, high = value(found, "sustainable_rate").ci
    assert low <= 10 <= high
    assert not found.undecided


def test_what_few_in_flight_give_is_no_certain_maximum_of_a_server_that_turns_more_away() -> None:
    """Levels too short to tell 90 % from 120 % do not contradict it, and settle nothing."""

    def unsettled(plan: Plan) -> Summary:
        seen = refusing(2)(plan)
        told = steady(20 * TOKENS, completions=30, ratio=0.93, ratio_ci=(0.8, 1.06), growing=False)
        return seen if plan.load.concurrency else changed(seen, steady=told)

    setup = Setup(Plan(), Tests.model_validate({"search": {"longer": 0}}))
    found = results("throughput", setup, carried("throughput", setup, unsettled))
    assert [note.code for note in found.undecided] == ["system_never_full"]


def test_a_system_that_fails_requests_even_one_at_a_time_is_said_to() -> None:
    """The search did come to its end: there is nothing fewer to try."""
    for loop, fewest in (("open", 1), ("closed", 8)):
        setup = Setup(Plan(), Tests.model_validate({"throughput": {"loop": loop}}))
        found = results("throughput", setup, carried("throughput", setup, refusing(0)))
        assert [note.code for note in found.undecided] == ["fewest_in_flight_failed"]
        assert found.undecided[0].facts == {"concurrency": fewest}


def test_in_closed_loop_requests_that_are_turned_away_bind() -> None:
    """What refuses more in flight than the answer is the success rate, and not that throughput rose no more."""
    setup = Setup(Plan(), Tests.model_validate({"throughput": {"loop": "closed"}}))
    found = results("throughput", setup, carried("throughput", setup, refusing(8)))
    assert value(found, "max_output_tok_s").note.facts == {"binding": "success"}


def by_chance(plan: Plan) -> Summary:
    """Does 10 a second with 32 in flight and more, but for stalls: the first short run with 32 met none, and those with more
    met many."""
    slots = plan.load.concurrency
    if slots is None:
        return open_system(10, 32)(plan)
    first = {8: 5.0, 16: 7.5, 32: 14.0}.get(slots, 9.2)
    return open_system(10.0 if plan.load.duration_s is not None else first, 1)(plan)


def test_a_climb_that_chance_led_on_blames_neither_a_rise_nor_a_collapse() -> None:
    """Law: what the runs with a full system gave decides whether more in flight did less; a step back to fewer is no rise."""
    setup = Setup(Plan(), Tests())
    done = carried("throughput", setup, by_chance)
    assert [one.step.at.concurrency for one in runs(done, "pilot")] == [8, 16, 32, 128, 64]
    found = results("throughput", setup, done)
    assert value(found, "max_output_tok_s").value == pytest.approx(10 * TOKENS, rel=0.05)
    assert {note.code for note in found.undecided} <= {"changed_at_equal_load"}  # these runs vary by nothing
