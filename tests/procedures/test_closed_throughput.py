"""Draft 5.2 in closed loop: where throughput stops rising, in closed form and in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import IDS, Ran, carried_out
from procedures.modelled import System, carried, results, rows, summary, value

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup, another_workload
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
@given(st.integers(2, 400))
def test_the_answer_is_what_the_full_system_does(room: int) -> None:
    """However many places there are: with twice as many requests as fit, or nearly, throughput is that of all places."""
    setup = asked(min_concurrency=1, max_concurrency=2_000)
    found = results("throughput", setup, carried("throughput", setup, system(room)))
    assert value(found, "max_output_tok_s").value == pytest.approx(100 * room)
    assert value(found, "sustainable_concurrency").value >= room
    assert value(found, "max_output_tok_s").note.facts == {"binding": "gain"}
    assert not found.undecided


def test_without_runs_of_a_full_system_the_climb_answers() -> None:
    """As in a quick campaign, which confirms nothing by another run."""
    setup = asked(min_concurrency=1, max_concurrency=2_000, saturated_runs=0)
    found = results("throughput", setup, carried("throughput", setup, system(100)))
    assert value(found, "max_output_tok_s").value == pytest.approx(100 * 100)
    assert not found.undecided


def test_a_system_that_scales_is_never_full() -> None:
    """Beyond the highest concurrency that was to be tried nobody knows."""
    setup = asked(max_concurrency=512)
    found = results("throughput", setup, carried("throughput", setup, system(1_000)))
    assert value(found, "sustainable_concurrency").value == 512
    assert found.undecided[0].code == "throughput_still_rose"


def test_an_objective_gives_a_second_answer_and_leaves_the_first() -> None:
    """P99 of TTFT is 30 ms as long as all fit and 2 ms more for each that waits: within 1 of where the objective puts it."""
    setup = asked("ttft_p99<33ms", min_concurrency=4)
    over = results("throughput", setup, carried("throughput", setup, system(19)))
    assert value(over, "max_output_tok_s").value == pytest.approx(1_900)
    assert value(over, "limited_concurrency").value == 20
    assert value(over, "limited_output_tok_s").value == pytest.approx(1_900)
    assert value(over, "limited_output_tok_s").note.facts == {"binding": "objective ttft_p99<33ms"}


def test_an_objective_that_one_request_misses_has_no_answer() -> None:
    """Not even one at a time meets it; the maximum is none the less what it is."""
    setup = asked("ttft_p99<29ms")
    found = results("throughput", setup, carried("throughput", setup, system(100)))
    assert value(found, "limited_output_tok_s").value is None
    assert value(found, "limited_output_tok_s").note.code == "missed_at_least_load"
    assert value(found, "max_output_tok_s").value == pytest.approx(10_000)


def test_failing_fast_is_no_throughput() -> None:
    """The climb ends where requests fail, and the level before it is the answer."""
    setup = asked()
    found = results("throughput", setup, carried("throughput", setup, system(40, by_error="http_5xx")))
    assert value(found, "sustainable_concurrency").value == 32
    assert [row["concurrency"] for row in rows(found, "levels") if row["because"] == "success"] == [64]


@pytest.mark.parametrize("most", range(4))
def test_a_search_cut_short_gives_what_it_has(most: int) -> None:
    """Its levels; but no answer."""
    setup = asked()
    found = results("throughput", setup, carried("throughput", setup, system(100), most=most))
    assert found.undecided
    if most:
        assert [row["concurrency"] for row in rows(found, "levels")][:2] == [8, 16][:most]


PLACES, STEP_MS, ANSWER = 4, 100, 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    plan = another_workload(IDS, name="custom", input_tokens="64", output_tokens=str(ANSWER))
    parameters = {"loop": "closed", "min_concurrency": 1, "concurrency_step": 1, "max_concurrency": 12}
    return carried_out(
        tmp_path_factory.mktemp("closed"),
        "throughput",
        engine=Settings(max_batch=PLACES, step_base_ns=STEP_MS * 1_000_000),
        plan=plan,
        tests={"throughput": parameters},
    )


def test_full_size_the_answer_is_the_engines(whole: Ran) -> None:
    """A step makes a token for each of the places, and computes the prompts, 2 ms + 64 * 12 us, of an eighth as many. As many
    requests as places lose a step at each answer, for a replacement comes when the next one has begun."""
    assert whole.test("throughput")["verdict"]["status"] == "VALID"
    step_ms = STEP_MS + PLACES * 0.025 + 2.768 * PLACES / ANSWER
    assert whole.value("throughput", "max_output_tok_s") == pytest.approx(PLACES / step_ms * 1_000, rel=0.01)
    for row in whole.rows("throughput", "levels"):
        slots = row["concurrency"]
        served = 1 if slots == 1 else slots * ANSWER / (ANSWER + 1) if slots <= PLACES else PLACES
        step_ms = STEP_MS + served * 0.025 + 2.768 * served / ANSWER
        assert row["achieved"] == pytest.approx(served / step_ms * 1_000, rel=0.01), slots
        assert row["seconds"] >= 300


def test_full_size_the_latencies_are_those_of_the_confirming_run(whole: Ran) -> None:
    """Table 4 of draft 5.2.5.2; Table 3 has the answer that the values have."""
    test = whole.test("throughput")
    last = [run["run"] for run in test["runs"] if run["part"] == "confirm"][-1]
    metrics = whole.summaries[last]["metrics"]
    rows_ = {row["metric"]: row for row in whole.rows("throughput", "summary")}
    assert rows_["Max Output Throughput"]["value"] == whole.value("throughput", "max_output_tok_s")
    assert rows_["Sustainable Load"]["unit"] == "in flight"
    assert "Tokens per GPU-second" not in rows_  # no accelerator is declared
    seen = {row["metric"]: row["p99"] for row in whole.rows("throughput", "latency")}
    assert seen == {
        "TTFT": metrics["ttft_ms"]["p99"],
        "TPOT": metrics["tpot_ms"]["p99"],
        "End-to-End": metrics["e2e_ms"]["p99"],
    }
