"""Draft 5.3: the derived points on curves that are known, and the whole of it in virtual time."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import Ran, carried_out
from procedures.modelled import System, carried, results, rows, summary, value
from procedures.summaries import changed, steady
from scipy import stats

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.knee import knee_interval
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Measured, runs
from inferometer.procedures.thirds import interval_of_thirds
from inferometer.procedures.tradeoff import Point, _per_user
from inferometer.report.campaign.notes import worded
from inferometer.server.engine.settings import Settings

CAPACITY = 20.0
TOKENS = 100.0


def asked(slos: Sequence[str] = (), **parameters: Any) -> Setup:
    tests = Tests.model_validate({"tradeoff": {"capacity_rate": CAPACITY, **parameters}})
    return Setup(Plan.model_validate({"slos": list(slos)}), tests)


def curve(achieved: Sequence[float], p99: Sequence[float], width: float = 0.001) -> System:
    """A system with these requests a second, and this P99 of TTFT, at one level after the other."""
    levels = iter(zip(achieved, p99, strict=True))

    def answer(plan: Plan) -> Summary:
        if plan.load.warmup:
            return summary(plan, request_s=1)
        request_s, ttft = next(levels)
        return summary(plan, request_s=request_s, ttft=(ttft / 2, ttft), width=width)

    return answer


def queue(width: float = 0.001) -> System:
    """One that carries CAPACITY, loses 2 % of it for each 10 % beyond, and waits as M/M/1 does below."""

    def answer(plan: Plan) -> Summary:
        share = (plan.load.rate or 0.0) / CAPACITY
        achieved = CAPACITY * (share if share <= 1 else 1 - (share - 1) * 0.2)
        p99 = 100 / max(1 - share, 0.02)
        return summary(plan, request_s=achieved, ttft=(p99 / 3, p99), width=width)

    return answer


def test_levels_ascend_in_open_loop_and_go_on_until_throughput_falls() -> None:
    setup = asked()
    done = carried("tradeoff", setup, queue())
    shares = [one.step.at.percent for one in runs(done, "level")]
    assert shares == [*range(10, 121, 10)]  # it fell at 110 % already
    for one in runs(done, "level"):
        load = one.step.plan.load
        assert (load.model, load.arrival, load.duration_s) == ("open", "poisson", 60)
        assert load.rate == pytest.approx(CAPACITY * (one.step.at.percent or 0) / 100)
    later = asked(percent=(50, 30, 70), most_percent=150)
    done = carried("tradeoff", later, queue())
    assert [one.step.at.percent for one in runs(done, "level")] == [30, 50, 70, 80, 90, 100, 110]


def test_without_a_fall_the_most_is_the_end() -> None:
    setup = asked(percent=(100,), most_percent=130)
    found = results("tradeoff", setup, carried("tradeoff", setup, curve((20, 21, 22, 23), (9, 9, 9, 9))))
    assert [row["percent"] for row in rows(found, "levels")] == [100, 110, 120, 130]
    point = value(found, "saturation")
    assert point.value is None
    assert point.note.code == "not_reached_saturation"
    assert "throughput_did_not_fall" in {note.code for note in found.notes}


def test_the_drafts_own_example_has_its_knee_and_peak_where_the_draft_says() -> None:
    """Table 5: the knee at 14 req/s; throughput still rises at the last level, where the draft's words see no saturation."""
    setup = asked(percent=(10, 30, 50, 70, 90, 110), most_percent=110)
    tokens = [284, 852, 1420, 1988, 2534, 2712]
    p99 = [142, 178, 267, 512, 1234, 3456]
    system = curve([one / TOKENS for one in tokens], p99)
    found = results("tradeoff", setup, carried("tradeoff", setup, system))
    assert value(found, "knee").value == 14
    assert "512 ms, exceeds 2 x 142 ms" in worded(value(found, "knee").note)
    assert value(found, "saturation").value is None
    assert value(found, "peak_rate").value == 22
    assert value(found, "peak_output_tok_s").value == pytest.approx(2712)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(1, 50), st.floats(10, 1_000)), min_size=2, max_size=15))
def test_points_are_the_drafts_definitions(levels: list[tuple[float, float]]) -> None:
    percent = tuple(10 * (number + 1) for number in range(len(levels)))
    setup = asked(percent=percent, most_percent=percent[-1], slos=["ttft_p99<500ms"])
    achieved, p99 = np.array(levels).T
    found = results("tradeoff", setup, carried("tradeoff", setup, curve(achieved.tolist(), p99.tolist())))
    rates = CAPACITY * np.array(percent) / 100

    def first(where: Any) -> float | None:
        return float(rates[where][0]) if where.any() else None

    assert value(found, "knee").value == pytest.approx(first(p99 > 2 * p99.min()))
    assert value(found, "saturation").value == pytest.approx(first(np.append([False], np.diff(achieved) < 0)))
    meeting = p99 * 1.001 < 500
    best = rates[meeting][np.argmax(achieved[meeting])] if meeting.any() else None
    assert value(found, "optimum").value == pytest.approx(best)
    assert value(found, "peak_rate").value == pytest.approx(rates[np.argmax(achieved)])


@pytest.mark.parametrize(
    ("width", "words"), [(0.001, "more than their widths"), (0.05, "a decrease within them")]
)
def test_a_fall_within_the_intervals_is_told_apart(width: float, words: str) -> None:
    setup = asked(percent=(90, 100, 110), most_percent=110)
    system = curve((18, 20, 19.8), (9, 9, 9), width)
    found = results("tradeoff", setup, carried("tradeoff", setup, system))
    point = value(found, "saturation")
    assert point.value == pytest.approx(22)
    assert words in worded(point.note)


@pytest.mark.parametrize(
    ("spread", "words"), [(0.1, "more than their widths"), (20.0, "a decrease within them")]
)
def test_without_intervals_of_its_own_a_run_has_that_of_its_thirds(spread: float, words: str) -> None:
    setup = asked(percent=(90, 100, 110), most_percent=110)
    system = curve((18, 20, 19.8), (9, 9, 9))

    def long_answers(plan: Plan) -> Summary:
        found = system(plan)
        throughput = found.throughput
        tokens = throughput.output_tok_s or 0.0
        return changed(
            found,
            throughput=changed(throughput, ci95=changed(throughput.ci95, output_tok_s=None)),
            steady=steady(thirds=(tokens - spread, tokens, tokens + spread)),
        )

    found = results("tradeoff", setup, carried("tradeoff", setup, long_answers))
    assert words in worded(value(found, "saturation").note)
    last = rows(found, "levels")[-1]
    low, high = np.exp(stats.t.interval(0.95, 2, loc=math.log(1980), scale=spread / 1980 / 3**0.5))
    assert (last["low"], last["high"]) == pytest.approx((low, high), rel=1e-4)
    assert "intervals_by_thirds" in {note.code for note in found.notes}


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3))
def test_an_interval_of_thirds_is_of_a_rate_that_is_possible(thirds: list[float]) -> None:
    """However the thirds differ: above zero, about the rate; and there is none of no output."""
    rate = statistics.fmean(thirds)
    ends = interval_of_thirds(rate, thirds)
    assert (ends is None) == (rate == 0)
    if ends is not None:
        assert 0 < ends[0] <= rate <= ends[1] < math.inf


@pytest.mark.parametrize(
    ("p99", "width", "codes"),
    [
        ((10, 30, 60), 0.001, set()),
        ((10, 20.1, 20.1), 0.1, {"knee_not_settled"}),
        ((9, 9, 9), 0.001, set()),
        ((9, 9, 9), 0.2, {"fall_not_settled"}),
    ],
)
def test_a_point_that_may_be_chance_leaves_the_test_undecided(
    p99: Sequence[float], width: float, codes: set[str]
) -> None:
    """The one that stands for it: the knee, and where there is none the fall of throughput."""
    setup = asked(percent=(90, 100, 110), most_percent=110)
    found = results("tradeoff", setup, carried("tradeoff", setup, curve((18, 20, 18.5), p99, width)))
    assert {note.code for note in found.undecided} == codes


@settings(max_examples=40, deadline=None)
@given(st.floats(1.0, 19.0), st.sampled_from([0.001, 0.05, 0.2, 0.4]))
def test_the_knees_interval_goes_from_a_level_surely_below_to_one_surely_beyond(
    at: float, width: float
) -> None:
    """Law: where P99 stays at its least and rises from a load on, the interval holds the load at which it has doubled; the
    less the levels' intervals settle, the fewer of its ends there are."""
    setup = asked(most_percent=120)
    rates = [CAPACITY * percent / 100 for percent in setup.tests.tradeoff.percent]
    p99 = [100.0 * (1 + max(0.0, rate - at)) for rate in rates]
    achieved = [min(rate, CAPACITY) for rate in rates]
    done = carried("tradeoff", setup, curve(achieved, p99, width))
    knee = value(results("tradeoff", setup, done), "knee")
    if knee.ci is not None:
        low, high = knee.ci
        assert low <= at + 1 <= high
        assert {low, high} <= {*rates}
    assert (knee.ci is not None) or width > 0.001 or knee.value is None or at + 1 < rates[0]


def test_a_level_that_is_not_kept_up_with_is_surely_beyond_the_knee() -> None:
    """Its queue grows for as long as it lasts, whatever the interval of its P99."""
    setup = asked(percent=(50, 100), most_percent=100)
    done = carried("tradeoff", setup, curve((10, 20), (100, 190), 0.01))
    assert value(results("tradeoff", setup, done), "knee").ci is None
    last = done[-1].outcome
    assert isinstance(last, Measured)
    slow = changed(last.summary, steady=steady(2_000.0, ratio=0.8, ratio_ci=(0.7, 0.9)))
    levels = [(one.step.at.rate or 0.0, one.outcome.summary) for one in runs(done, "level")]
    assert knee_interval([levels[0], (20.0, slow)], "ttft") == (10.0, 20.0)


def test_the_optimums_interval_ends_at_the_lowest_level_that_misses_an_objective() -> None:
    """From the level itself, which meets them by its intervals; without a level that surely misses one there is none."""
    setup = asked(percent=(50, 80, 100), most_percent=100, slos=["ttft_p99<500ms"])
    clear = carried("tradeoff", setup, curve((10, 16, 20), (100, 300, 900), 0.05))
    assert value(results("tradeoff", setup, clear), "optimum").ci == pytest.approx((16.0, 20.0))
    unclear = carried("tradeoff", setup, curve((10, 16, 20), (100, 300, 501), 0.05))
    assert value(results("tradeoff", setup, unclear), "optimum").ci is None


def test_an_objective_that_the_intervals_do_not_settle_is_named() -> None:
    setup = asked(percent=(50, 100), most_percent=100, slos=["ttft_p99<500ms"])
    system = curve((10, 20), (100, 498), 0.05)
    point = value(results("tradeoff", setup, carried("tradeoff", setup, system)), "optimum")
    assert point.value == pytest.approx(10)
    assert "20 requests/s the intervals do not settle it" in worded(point.note)


def test_without_objectives_there_is_no_optimum_to_ask_for() -> None:
    setup = asked()
    found = results("tradeoff", setup, carried("tradeoff", setup, queue()))
    assert value(found, "optimum").value is None
    assert value(found, "optimum").note.code == "not_asked_without_objectives"


def test_the_most_of_levels_that_were_all_kept_up_with_is_no_peak() -> None:
    """Law: what a test says is the system's peak lies below a load that it could not keep up with."""
    setup = asked(percent=[30, 50], most_percent=50)
    done = carried("tradeoff", setup, curve([6.0, 10.0], [50.0, 52.0]))
    found = results("tradeoff", setup, done)
    assert [note.code for note in found.undecided] == ["peak_not_reached"]
    assert "50 %" in worded(found.undecided[0])
    last = done[-1].outcome
    assert isinstance(last, Measured)
    slow = changed(last.summary, steady=steady(1_000.0, ratio=0.8, ratio_ci=(0.7, 0.9)))
    full = [*done[:-1], dataclasses.replace(done[-1], outcome=dataclasses.replace(last, summary=slow))]
    assert not results("tradeoff", setup, full).undecided


@pytest.mark.parametrize("most", range(4))
def test_a_test_cut_short_gives_what_it_has(most: int) -> None:
    setup = asked()
    found = results("tradeoff", setup, carried("tradeoff", setup, queue(), most=most + 1))
    assert found.undecided
    if most:
        assert len(rows(found, "levels")) == most
        assert value(found, "knee").value is None


# At full size: answers of 8 tokens at 100 ms a step; eight places.

PLACES, STEP_MS, ANSWER = 8, 100, 8
PLAN = Plan.model_validate(
    {
        "workload": {"name": "custom", "input_tokens": "64", "output_tokens": str(ANSWER)},
        "slos": ["ttft_p90<2s"],
    }
)
RATE = PLACES / (ANSWER * (STEP_MS + PLACES * 0.025 + 2.768) / 1_000)
"""Requests a second with all places full: a prompt is computed in each step of so short answers, for 2 ms + 64 * 12 us."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    engine = Settings(max_batch=PLACES, step_base_ns=STEP_MS * 1_000_000)
    return carried_out(
        tmp_path_factory.mktemp("tradeoff"),
        "tradeoff",
        engine=engine,
        plan=PLAN,
        tests={"tradeoff": {"capacity_rate": RATE}},
    )


def test_full_size_below_capacity_all_that_is_offered_is_achieved_and_beyond_it_the_capacity(
    whole: Ran,
) -> None:
    """Levels of a minute settle the objective somewhere below the capacity, and that it is missed beyond it: the optimum lies
    between, which says little or not, as the minutes happen to be."""
    verdict = whole.test("tradeoff")["verdict"]
    assert {reason["code"] for reason in verdict["reasons"]} <= {"wide_interval"}
    (best,) = (one for one in whole.test("tradeoff")["values"] if one["name"] == "optimum")
    assert best["ci"][0] == best["value"] < RATE < best["ci"][1]
    levels = whole.rows("tradeoff", "levels")
    assert [row["percent"] for row in levels][:12] == [*range(10, 121, 10)]
    for row in levels:
        offered = row["rate"] * ANSWER
        slack = 3 * (row["rate"] * 60) ** -0.5  # three standard deviations of a Poisson count over the minute
        if row["percent"] <= 80:
            assert row["achieved"] == pytest.approx(offered, rel=slack)
            assert row["queue"] == "stable"
        if row["percent"] >= 120:
            assert row["achieved"] == pytest.approx(RATE * ANSWER, rel=0.03)
            assert row["queue"] == "rising"
        assert row["success"] == 100


def test_full_size_latency_rises_with_the_load(whole: Ran) -> None:
    levels = whole.rows("tradeoff", "levels")
    for name in ("ttft_p50", "ttft_p95", "ttft_p99", "e2e_p50"):
        for one, more in pairwise(levels):
            assert more[name] >= 0.75 * one[name], (name, one["percent"])  # but for the luck of a minute
        assert levels[-1][name] > 2 * levels[0][name]
    # Answers are made at the pace of steps, however long the line: TPOT has no knee.
    assert whole.value("tradeoff", "knee_tpot") is None


def test_full_size_the_points_are_those_of_the_runs(whole: Ran) -> None:
    """Counted once more, from the summaries."""
    runs_ = [run for run in whole.test("tradeoff")["runs"] if run["part"] == "level"]
    rates = np.array([run["at"]["rate"] for run in runs_])
    found = [whole.summaries[run["run"]] for run in runs_]
    p99 = np.array([one["metrics"]["ttft_ms"]["p99"] for one in found])
    tokens = np.array([one["throughput"]["output_tok_s"] for one in found])
    assert whole.value("tradeoff", "knee") == rates[p99 > 2 * p99.min()][0]
    falls = np.flatnonzero(np.diff(tokens) < 0)
    assert all(row["low"] <= row["achieved"] <= row["high"] for row in whole.rows("tradeoff", "levels"))
    assert whole.value("tradeoff", "saturation") == (rates[falls[0] + 1] if len(falls) else None)
    meeting = [index for index, one in enumerate(found) if one["slos"][0]["met"]]
    assert whole.value("tradeoff", "optimum") == rates[max(meeting, key=lambda index: tokens[index])]
    # A wait of one free place's time doubles TTFT: where nearly all places are taken, and not at half load.
    assert 0.5 * RATE < whole.value("tradeoff", "knee") <= 1.05 * RATE


def test_full_size_the_curves_are_in_the_order_of_the_load_with_the_points_marked(whole: Ran) -> None:
    figures = {one["name"]: one for one in whole.test("tradeoff")["figures"]}
    levels = whole.rows("tradeoff", "levels")
    curve_ = figures["curve"]
    assert [series["x"] for series in curve_["series"]] == 3 * [[row["achieved"] for row in levels]]
    assert curve_["y"]["log"]
    knee = next(row for row in levels if row["rate"] == whole.value("tradeoff", "knee"))
    mark = next(mark for mark in curve_["marks"] if mark["label"] == "knee")
    assert (mark["x"], mark["y"]) == (knee["achieved"], knee["ttft_p99"])
    ideal = next(series for series in figures["offered"]["series"] if series["label"] == "ideal")
    assert ideal["y"] == pytest.approx([row["rate"] * ANSWER for row in levels])


@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e5)), min_size=1, max_size=12), st.integers(0, 8))
def test_the_front_is_what_no_level_surpasses_in_both(drawn: list[tuple[float, float]], count: int) -> None:
    """Law: a level is on the Pareto front, or another gives no less of both; and throughput is of each accelerator, where
    their number is declared."""
    plan = Plan.model_validate({"sut": {"accelerator_count": count}})
    points = [
        Point(10.0, 1.0, summary(plan, request_s=tok_s / 100.0, tpot=(1_000.0 / per_user, 2_000.0)))
        for per_user, tok_s in drawn
    ]
    figure = _per_user(Setup(plan, Tests()), points)
    levels, front = (
        [(float(x or 0), float(y or 0)) for x, y in zip(one.x, one.y, strict=True)] for one in figure.series
    )
    assert len(levels) == len(drawn)
    assert sorted(y * (count or 1) for _, y in levels) == pytest.approx(sorted(tok_s for _, tok_s in drawn))
    for x, y in levels:
        surpassed = any((a, b) != (x, y) and a >= x and b >= y for a, b in levels)
        assert surpassed != ((x, y) in front)
