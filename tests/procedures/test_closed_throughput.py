"""Draft 5.2 in closed loop: where throughput stops rising, in closed form and in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import Ran, carried_out
from procedures.modelled import System, carried, results, rows, summary, value

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import runs
from inferometer.server.engine.settings import Settings


def asked(*slos: str, **parameters: Any) -> Setup:
    tests = Tests.model_validate({"throughput": {"loop": "closed", **parameters}})
    return Setup(Plan.model_validate({"slos": list(slos)}), tests)


def system(room: float, width: float = 0.001, *, by_error: str | None = None) -> System:
    """`room` requests are served at once, one a second each; the others wait, or, with `by_error`, fail."""

    def answer(plan: Plan) -> Summary:
        slots = plan.load.concurrency or 1
        over = max(0.0, slots - room)
        count = int(min(slots, room) * (plan.load.duration_s or 0))
        lost = {by_error: count} if over and by_error else {}
        p99 = 30 + 2 * over
        return summary(
            plan, request_s=min(slots, room), ttft=(20, p99), width=width, completed=count, by_error=lost
        )

    return answer


@settings(max_examples=15)
@given(st.integers(2, 150), st.integers(0, 16))
def test_the_answer_is_where_throughput_stops_rising(room: int, more: int) -> None:
    step = 1 + room // 20 + more
    setup = asked(min_concurrency=1, max_concurrency=2_000, concurrency_step=step)
    found = results("throughput", setup, carried("throughput", setup, system(room)))
    answer = value(found, "sustainable_concurrency").value
    # One step below the place at most, and above it as long as 5 % may be left to gain over the level below, which is the
    # highest of at most ten elevenths, so a step short of them at most. An interval of 0.1 % decides.
    assert room - step < answer <= max(1.1 * (1.002 * room / 1.05 + step), 1)
    assert value(found, "max_output_tok_s").value == pytest.approx(100 * min(answer, room))
    assert not found.undecided
    assert "confirmed" in rows(found, "levels")[-1]["sustained"]


def test_a_system_that_scales_is_never_saturated() -> None:
    setup = asked(max_concurrency=512)
    found = results("throughput", setup, carried("throughput", setup, system(1_000)))
    assert value(found, "sustainable_concurrency").value == 512
    assert found.undecided[0].code == "throughput_still_rose"


def test_an_objective_ends_it_sooner() -> None:
    setup = asked("ttft_p99<30.5ms", min_concurrency=4, concurrency_step=4)
    over = results("throughput", setup, carried("throughput", setup, system(19)))
    assert value(over, "sustainable_concurrency").value == 16
    setup = asked(min_concurrency=4, concurrency_step=4)
    free = results("throughput", setup, carried("throughput", setup, system(19)))
    assert value(free, "sustainable_concurrency").value == 20
    setup = asked("ttft_p99<29ms")
    found = results("throughput", setup, carried("throughput", setup, system(1_000)))
    assert value(found, "sustainable_concurrency").value is None
    assert found.undecided[0].code == "lowest_concurrency_not_sustained"
    assert "objective ttft_p99<29ms" in rows(found, "levels")[0]["because"]


def test_failing_fast_is_no_throughput() -> None:
    setup = asked()
    found = results("throughput", setup, carried("throughput", setup, system(40, by_error="http_5xx")))
    assert value(found, "sustainable_concurrency").value == 40
    assert "success" in next(row for row in rows(found, "levels") if row["sustained"] == "no")["because"]


def test_a_step_that_the_intervals_do_not_settle_is_run_for_longer() -> None:
    setup = asked(min_concurrency=10, concurrency_step=10, max_concurrency=20)
    done = carried("throughput", setup, system(10.6, width=0.02))  # 6 % more, or 3 to 9
    assert [one.step.plan.load.duration_s for one in runs(done)][:4] == [300, 300, 600, 1200]


@pytest.mark.parametrize("most", range(4))
def test_a_search_cut_short_gives_what_it_has(most: int) -> None:
    setup = asked()
    found = results("throughput", setup, carried("throughput", setup, system(100), most=most))
    assert found.undecided
    if most:
        assert value(found, "sustainable_concurrency").value == 8 * most


PLACES, STEP_MS, ANSWER = 4, 100, 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    plan = Plan.model_validate(
        {"workload": {"name": "custom", "input_tokens": "64", "output_tokens": str(ANSWER)}}
    )
    parameters = {"loop": "closed", "min_concurrency": 1, "concurrency_step": 1, "max_concurrency": 12}
    return carried_out(
        tmp_path_factory.mktemp("closed"),
        "throughput",
        engine=Settings(max_batch=PLACES, step_base_ns=STEP_MS * 1_000_000),
        plan=plan,
        tests={"throughput": parameters},
    )


def test_full_size_throughput_stops_rising_when_all_places_are_full_and_one_waits(whole: Ran) -> None:
    """A replacement comes when the next step has begun: a place that falls free stays empty for a step, and an answer takes
    nine steps in place of eight, unless somebody waits in line. So the places are full from one more in flight than there
    are; a single request finds the engine idle, and loses none."""
    assert whole.test("throughput")["verdict"]["status"] == "VALID"
    assert whole.value("throughput", "sustainable_concurrency") == PLACES + 1
    for row in whole.rows("throughput", "levels"):
        slots = row["concurrency"]
        served = 1 if slots == 1 else slots * ANSWER / (ANSWER + 1) if slots <= PLACES else PLACES
        # A step makes a token for each, and computes the prompts, 2 ms + 64 * 12 us, of an eighth as many.
        step_ms = STEP_MS + served * 0.025 + 2.768 * served / ANSWER
        assert row["achieved"] == pytest.approx(served / step_ms * 1_000, rel=0.01), slots
        assert row["seconds"] >= 300


def test_full_size_the_tables_are_those_of_the_confirmed_level(whole: Ran) -> None:
    test = whole.test("throughput")
    last = [run["run"] for run in test["runs"] if run["part"] == "confirm"][-1]
    summary_, metrics = whole.summaries[last], whole.summaries[last]["metrics"]
    rows_ = {row["metric"]: row for row in whole.rows("throughput", "summary")}
    assert rows_["Max Output Throughput"]["value"] == summary_["throughput"]["output_tok_s"]
    assert (rows_["Sustainable Load"]["value"], rows_["Sustainable Load"]["unit"]) == (
        PLACES + 1,
        "in flight",
    )
    assert "Tokens per GPU-second" not in rows_  # no accelerator is declared
    seen = {row["metric"]: row["p99"] for row in whole.rows("throughput", "latency")}
    assert seen == {
        "TTFT": metrics["ttft_ms"]["p99"],
        "TPOT": metrics["tpot_ms"]["p99"],
        "End-to-End": metrics["e2e_ms"]["p99"],
    }
