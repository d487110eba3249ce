"""Runs at one load held against each other, and the full system once more at the end of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from procedures.modelled import System, carried, results, summary

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.results import Results
from inferometer.procedures.same_load import changes
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import KnownLimits, Measured, Performed, PerformedRun, Run, runs

PLACES, SERVICE_S = 16, 0.5


def system(factor: Callable[[int], float], *, width: float = 0.01) -> System:
    """PLACES requests are served at once, in open loop as many as come; by its number each run takes so many times as long."""
    made = [0]

    def answer(plan: Plan) -> Summary:
        slower = factor(made[0])
        made[0] += 1
        most = PLACES / SERVICE_S / slower
        slots = plan.load.concurrency
        offered = most * min(slots, PLACES) / PLACES if slots is not None else plan.load.rate or 0.0
        done = min(most, offered)
        count = plan.load.requests or int(done * (plan.load.duration_s or 0))
        waiting = 0.0 if slots is None else max(0.0, slots - PLACES)
        return summary(
            plan, request_s=done, ttft=(20 + waiting, 30 + waiting), completed=count, seconds=count / done, width=width,
        )  # fmt: skip

    return answer


def setup(test: str, *, quick: bool = False, known: KnownLimits | None = None) -> Setup:
    tests = {
        "capacity": {"ttft_p99_ms": 33.5, "duration_s": 10.0},
        "ttft": {"percent": [80], "requests": 400},
    }
    return Setup(Plan(), Tests.model_validate({test: tests[test]}), known=known or KnownLimits(), quick=quick)


def undecided(found: Results) -> list[str]:
    return [note.code for note in found.undecided]


def parts(done: list[Performed]) -> list[str]:
    return [one.step.part for one in runs(done)]


@pytest.mark.parametrize(("factor", "changed"), [(1.0, False), (1.04, False), (1.2, True), (0.8, True)])
def test_a_search_on_a_system_that_comes_and_goes_is_undecided(factor: float, changed: bool) -> None:
    """Law: every second run is slower or faster by a factor; beyond 5 % levels at one load say so, with both values."""
    asked = setup("capacity")
    done = carried("capacity", asked, system(lambda number: factor if number % 2 else 1.0))
    found = results("capacity", asked, done)
    assert ("changed_at_equal_load" in undecided(found)) is changed
    for note in found.undecided:
        if note.code == "changed_at_equal_load":
            first, then = (float(note.facts[name] or 0) for name in ("first", "then"))  # type: ignore[arg-type]  # numbers
            assert max(first, then) / min(first, then) == pytest.approx(max(factor, 1 / factor))
            assert isinstance(note.facts["concurrency"], int)
            assert note.facts["rate"] is None


def test_intervals_that_meet_say_nothing() -> None:
    """A fifth more, by runs that are uncertain by an eighth."""
    asked = setup("capacity")
    done = carried("capacity", asked, system(lambda number: 1.2 if number % 2 else 1.0, width=0.125))
    assert "changed_at_equal_load" not in undecided(results("capacity", asked, done))


@pytest.mark.parametrize(
    ("longer", "arrival", "changed"), [(1, "poisson", False), (10, "poisson", True), (1, "constant", True)]
)
def test_in_open_loop_the_number_that_came_may_differ_by_chance(
    longer: int, arrival: str, changed: bool
) -> None:
    """Law: a system that keeps up does what came. 526 requests in 120 s and 923 in 240 s are one rate of Poisson arrivals by
    chance, though a full system did as much in each third of the first; ten times as many are not, and constant ones never."""
    plan = Plan.model_validate({"load": {"rate": 4.0, "arrival": arrival, "requests": 100}})
    done = [
        PerformedRun(
            Run(plan, "level", Conditions(rate=4.0), Note("warming_up")),
            Measured(
                "run", summary(plan, request_s=count / seconds, completed=count, seconds=seconds, width=0.005)
            ),
        )
        for count, seconds in ((526 * longer, 120.0 * longer), (923 * longer, 240.0 * longer))
    ]
    assert [one.code for one in changes(done)] == ["changed_at_equal_load"] * changed


def test_a_run_that_lost_requests_says_nothing_of_its_load() -> None:
    """A system that fails one request in twenty in every second run is slow by that, and other rules are about it."""
    usual = system(lambda number: 1.2 if number % 2 else 1.0)

    def losing(plan: Plan) -> Summary:
        made = usual(plan)
        lost.append(len(lost))
        if lost[-1] % 2:
            count = made.requests.completed
            return summary(
                plan, request_s=made.throughput.request_s or 0.0, completed=count, by_error={"http_4xx": count // 10}
            )  # fmt: skip
        return made

    lost: list[int] = []
    asked = setup("capacity")
    assert "changed_at_equal_load" not in undecided(
        results("capacity", asked, carried("capacity", asked, losing))
    )


@pytest.mark.parametrize("factor", [1.5, 0.7])
def test_percentages_of_a_system_that_was_another_are_undecided(factor: float) -> None:
    """Law: the search for 100 % met a slower or faster system than the level; the full system at the end shows it."""
    asked = setup("ttft")

    def until_the_level(plan: Plan) -> Summary:
        level = plan.load.model == "open" and plan.load.requests == 400
        later.append(level or (bool(later) and later[-1]))
        return system(lambda _: 1.0 if later[-1] else factor)(plan)

    later: list[bool] = []
    done = carried("ttft", asked, until_the_level)
    assert parts(done)[-2:] == ["level", "full-again"]
    assert "changed_at_equal_load" in undecided(results("ttft", asked, done))


def test_a_system_that_stays_as_it_is_keeps_its_percentages() -> None:
    """With the run at the end, whose requests are no other run's; it enters no value."""
    asked = setup("ttft")
    done = carried("ttft", asked, system(lambda _: 1.0))
    found = results("ttft", asked, done)
    assert undecided(found) == []
    seeds = [one.step.plan.workload.seed for one in runs(done)]
    assert len(set(seeds)) == len(seeds) - 1  # the climb and the warm-up behind it begin alike
    assert found.values == results("ttft", asked, done[:-1]).values


def test_the_full_system_is_measured_again_where_the_test_measured_it() -> None:
    """Not in a quick campaign, nor in a test of one load, nor of closed loops alone."""
    for asked, name in ((setup("ttft", quick=True), "ttft"), (setup("capacity"), "capacity")):
        assert "full-again" not in parts(carried(name, asked, system(lambda _: 1.0)))
    one = Setup(Plan(), Tests.model_validate({"ttft": {"rates": [1], "requests": 90}}))
    assert parts(carried("ttft", one, system(lambda _: 1.0))) == ["warm-up", "level"]


def test_a_level_within_the_base_has_to_be_kept_up_with() -> None:
    """Law: at 80 % of a base of which the system does half, the test is undecided, by that level's own requests."""
    asked = setup("ttft")
    done = carried("ttft", asked, system(lambda _: 1.0))
    for ratio, held in (((0.97, 0.99), True), ((0.6, 0.7), False), ((0.85, 0.95), True)):
        found = results("ttft", asked, [_completing(one, ratio) for one in done])
        assert ("base_not_held" not in undecided(found)) is held


def _completing(one: Performed, ratio: tuple[float, float]) -> Performed:
    if not isinstance(one, PerformedRun) or one.step.part != "level":
        return one
    steady = one.outcome.summary.steady
    assert steady is not None
    behind = replace(steady, completion_ratio=sum(ratio) / 2, completion_ratio_ci95=ratio)
    return replace(
        one, outcome=replace(one.outcome, summary=msgspec.structs.replace(one.outcome.summary, steady=behind))
    )
