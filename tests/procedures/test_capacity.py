"""Draft 5.5: the search on systems whose capacity is known, in closed form and in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import IDS, Ran, carried_out
from procedures.modelled import System, carried, results, rows, summary, value

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures import concurrency
from inferometer.procedures.capacity import sought
from inferometer.procedures.setup import Setup, another_workload, workload_key
from inferometer.procedures.step import KnownLimits, Run, runs
from inferometer.server.engine.settings import Settings

SERVICE_S = 0.5
MS = 1_000_000


def system(room: int, *, service_s: float = SERVICE_S, by_error: str | None = None) -> System:
    """`room` requests are served at once; more wait in line, or, with `by_error`, one in fifty of them ends so."""

    def answer(plan: Plan) -> Summary:
        slots = plan.load.concurrency or 1
        over = max(0, slots - room)
        request_s = min(slots, room) / service_s
        count = plan.load.requests or int(request_s * (plan.load.duration_s or 0))
        wait_ms = 0.0 if by_error else 1_000 * over * service_s / room
        failed = -(-count // 50) if over and by_error else 0
        return summary(
            plan,
            request_s=request_s if count else 0.0,  # nothing ended within the pilot
            ttft=(20 + wait_ms, 30 + wait_ms),
            by_error={by_error: failed} if failed and by_error else {},
            completed=count - failed,
            seconds=count / request_s,
            width=0.001,
        )

    return answer


def asked(**parameters: Any) -> Setup:
    return Setup(
        Plan(), Tests.model_validate({"capacity": {"ttft_p99_ms": 30.5, "duration_s": 10.0, **parameters}})
    )


@settings(max_examples=25)
@given(st.integers(1, 600), st.integers(1, 64))
def test_the_capacity_is_found_to_a_gap_of_one_or_five_percent(room: int, initial: int) -> None:
    setup = asked(initial=initial, maximum=1_000)
    found = results("capacity", setup, carried("capacity", setup, system(room)))
    answer = value(found, "max_concurrency").value
    assert answer <= room < answer + max(1, 0.05 * answer) + 1e-9
    assert not found.undecided
    last = rows(found, "levels")[-1]
    assert (last["concurrency"], last["status"]) == (answer, "Pass (confirmed)")


@settings(max_examples=25)
@given(st.integers(1, 600), st.sampled_from([0.001, 0.02, 0.1, 0.3]))
def test_the_interval_goes_from_the_last_level_surely_within_to_below_the_first_surely_beyond(
    room: int, width: float
) -> None:
    """Law: it holds the answer, and the truth where levels are measured right; the less levels settle, the wider it is."""
    setup = asked(maximum=1_000, ttft_p99_ms=130.0)

    def answer(plan: Plan) -> Summary:
        slots = plan.load.concurrency or 1
        count = plan.load.requests or 1
        p99 = 130.0 * (slots / (room + 0.5)) ** 2
        seconds = max(20.0, count / slots)
        return summary(
            plan, request_s=slots, ttft=(p99 / 2, p99), completed=count, seconds=seconds, width=width
        )

    found = results("capacity", setup, carried("capacity", setup, answer))
    top = value(found, "max_concurrency")
    if top.ci is not None:
        low, high = top.ci
        assert low <= top.value <= high
        assert low <= room <= high
        tried = {row["concurrency"] for row in rows(found, "levels")}
        assert low in tried
        assert high == top.value or high + 1 in tried


def test_a_capacity_that_no_level_settles_has_no_interval() -> None:
    """Without an interval of P99 at any level, where the criterion stops being met is chance."""
    setup = asked(maximum=64)
    found = results("capacity", setup, carried("capacity", setup, unsure))
    assert value(found, "max_concurrency").ci is None


def unsure(plan: Plan) -> Summary:
    """P99 rises past the threshold at 20 in flight, by less than any run is certain to."""
    slots, count = plan.load.concurrency or 1, plan.load.requests or 1
    p99 = 30.5 * (0.95 if slots < 20 else 1.05)
    seconds = max(20.0, count / slots)
    return summary(plan, request_s=slots, ttft=(p99 / 2, p99), completed=count, seconds=seconds, width=0.3)


@pytest.mark.parametrize("room", [1, 77])
@pytest.mark.parametrize("error", concurrency.SYSTEM_ERRORS)
def test_any_system_error_ends_a_level_without_a_threshold(room: int, error: str) -> None:
    setup = asked(ttft_p99_ms=None, maximum=1_000)
    found = results("capacity", setup, carried("capacity", setup, system(room, by_error=error)))
    answer = value(found, "max_concurrency").value
    assert answer <= room < answer + max(1, 0.05 * answer) + 1e-9
    failed = [row for row in rows(found, "levels") if row["status"] == "Fail"]
    assert failed
    assert all(row["errors"] > 0 and "errors" in row["because"] for row in failed)
    assert "no_ttft_threshold" in {note.code for note in found.notes}


def test_timeouts_lower_completion_and_are_no_errors() -> None:
    setup = asked(ttft_p99_ms=None)
    found = results("capacity", setup, carried("capacity", setup, system(20, by_error="timeout")))
    failed = next(row for row in rows(found, "levels") if row["status"] == "Fail")
    assert failed["errors"] == 0
    assert failed["completion"] < 99
    assert "success" in failed["because"]


@settings(max_examples=25)
@given(st.floats(0.05, 100), st.integers(1, 200), st.floats(1, 300))
def test_each_level_has_its_seconds_and_its_completions(service_s: float, slots: int, seconds: float) -> None:
    setup = asked(duration_s=seconds, initial=slots, maximum=4 * slots)
    done = carried("capacity", setup, system(3 * slots, service_s=service_s))
    counted = [one for one in concurrency.levels(sought(setup), done) if not one.short]
    for one in counted:
        found = one.done.outcome.summary
        assert (found.window.duration_s or 0) >= seconds
        assert found.requests.completed >= 100 * one.concurrency
    assert len(done) == len(counted) + 1, "beside the pilot, none was too short"


def test_the_first_run_alone_has_a_warm_up_and_a_confirmation_has_other_requests() -> None:
    done = carried("capacity", asked(), system(20))
    plans = [one.step.plan for one in runs(done)]
    assert plans[0].load.warmup_probes > 0
    assert all(plan.load.warmup == plan.load.warmup_probes == 0 for plan in plans[1:])
    assert [one.step.part for one in runs(done)] == ["pilot", *["level"] * (len(done) - 2), "confirm"]
    assert len({plan.workload.seed for plan in plans}) == len(plans)
    assert plans[-1].workload.seed != plans[0].workload.seed
    assert all(str(plan.workload.output_tokens) == "256" for plan in plans)
    assert all(plan.workload.input_tokens == Plan().workload.input_tokens for plan in plans)


def test_levels_that_never_fail_leave_the_capacity_open() -> None:
    setup = asked(maximum=64)
    found = results("capacity", setup, carried("capacity", setup, system(1_000)))
    assert value(found, "max_concurrency").value == 64
    assert found.undecided[0].code == "capacity_above_maximum"
    assert not found.known.capacity


def test_without_any_level_that_passes_there_is_no_capacity() -> None:
    setup = asked(ttft_p99_ms=5.0)
    found = results("capacity", setup, carried("capacity", setup, system(20)))
    assert value(found, "max_concurrency").value is None
    assert found.undecided[0].code == "one_request_failed_the_criteria"


@pytest.mark.parametrize("most", range(6))
def test_a_search_cut_short_gives_what_it_has(most: int) -> None:
    setup = asked()
    found = results("capacity", setup, carried("capacity", setup, system(100), most=most + 1))
    assert found.undecided
    if most:  # 8, 16, 32, 64, 128
        assert value(found, "max_concurrency").value == min(64, 8 * 2 ** (most - 1))


def test_what_is_known_is_not_searched_for_again() -> None:
    setup = asked(ttft_p99_ms=None)
    done = carried("capacity", setup, system(20, by_error="http_5xx"))
    known = results("capacity", setup, done).known
    assert known.capacity == {workload_key(sought(setup).plan): 20}
    again = concurrency.find_capacity(Setup(Plan(), setup.tests, known), sought(setup))
    with pytest.raises(StopIteration) as ended:
        next(again)
    assert ended.value.value == 20
    held = asked()  # with a threshold, what was found without one says nothing
    step = next(concurrency.find_capacity(Setup(Plan(), held.tests, known), sought(held)))
    assert isinstance(step, Run)
    assert concurrency.capacity_of(Setup(Plan(), Tests(), KnownLimits()), sought(held), ()) is None


@pytest.fixture(scope="module")
def by_batch(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Four are served at once; a fifth waits until one of them ends: for all of an answer's 5 s where they began together."""
    engine = Settings(max_batch=4, step_base_ns=20 * MS)
    parameters = {"capacity": {"ttft_p99_ms": 1_000, "initial": 4, "maximum": 6}}
    return carried_out(
        tmp_path_factory.mktemp("batch"),
        "capacity",
        engine=engine,
        plan=IDS,
        tests=parameters,
    )


def test_full_size_a_batch_is_the_capacity_with_a_threshold(by_batch: Ran) -> None:
    assert by_batch.test("capacity")["verdict"]["status"] == "VALID"
    assert by_batch.value("capacity", "max_concurrency") == 4
    said = {row["concurrency"]: row["status"] for row in by_batch.rows("capacity", "levels")}  # the last word
    assert said == {6: "Fail", 5: "Fail", 4: "Pass (confirmed)"}
    for row in by_batch.rows("capacity", "levels"):
        assert row["completed"] >= 100 * row["concurrency"]
        assert row["seconds"] >= 60
        assert row["errors"] == 0


def test_full_size_throughput_and_tokens_at_the_capacity_follow_from_the_engine(by_batch: Ran) -> None:
    step_ms = 20 + 4 * 0.025
    assert by_batch.value("capacity", "throughput_at_max") == pytest.approx(4 / step_ms * 1_000, rel=0.02)
    # Inputs of 320 tokens on average and half of an answer's 256, four times.
    assert by_batch.value("capacity", "tokens_in_flight_mean") == pytest.approx(4 * (320 + 128), rel=0.05)
    assert 4 * 320 < by_batch.value("capacity", "tokens_in_flight_peak") <= 4 * (512 + 256)


def test_full_size_the_cache_is_the_capacity_where_it_is_the_smaller(tmp_path: Path) -> None:
    """A request of 256 tokens in and 16 out fills 17 blocks; the cache has room for five, and the batch for many. A sixth waits
    for the next answer to end, a fifth of 800 ms."""
    plan = another_workload(IDS, name="custom", input_tokens="256", output_tokens="16")
    engine = Settings(kv_blocks=5 * 17 + 10, step_base_ns=50 * MS)
    parameters = {"capacity": {"ttft_p99_ms": 200, "output_tokens": 16, "initial": 4, "maximum": 6}}
    ran = carried_out(tmp_path, "capacity", engine=engine, plan=plan, tests=parameters)
    assert ran.value("capacity", "max_concurrency") == 5
    assert {row["concurrency"] for row in ran.rows("capacity", "levels") if "Fail" in row["status"]} == {6}
