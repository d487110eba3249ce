"""The tests of draft 5.2 to 5.5 as a campaign carries them out: what one finds out, the next ones know; and a system that falls
over."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from procedures.driving import IDS, Ran, Silent, carried_out
from procedures.scripted import played
from procedures.summaries import quantiles, stats, steady, summary

from inferometer.documents.note import Note
from inferometer.documents.part import to_data
from inferometer.documents.summary import Summary
from inferometer.errors import PeerError, PlanError
from inferometer.measure.distributions import Distributions
from inferometer.plan import campaign as campaigns
from inferometer.plan.campaign import Campaign
from inferometer.plan.procedure_parameters import Tests, quickened
from inferometer.plan.schema import Plan
from inferometer.procedures import throughput, ttft
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.saturation import base_table, bracketed_level, find_base
from inferometer.procedures.search import Answer
from inferometer.procedures.setup import Setup, another_workload, reseeded, variant, workload_key
from inferometer.procedures.step import KnownLimits, Measured, Performed, PerformedRun, Run, Step
from inferometer.run.evaluate import RunResult
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Virtual

ENGINE = Settings(max_batch=8, step_base_ns=20_000_000)
PLAN = another_workload(IDS, name="custom", input_tokens="64", output_tokens="50")
NAMES = ("tradeoff", "itl")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("loads"), *NAMES, engine=ENGINE, plan=PLAN, quick=True)


def test_the_saturation_rate_is_searched_for_once(campaign: Ran) -> None:
    parts = [run["part"] for run in campaign.test("tradeoff")["runs"]]
    assert parts[:2] == ["warm-up", "base-pilot"]
    assert set(parts[1 : parts.index("level")]) == {"base-pilot", "base-level"}
    assert [run["part"] for run in campaign.test("itl")["runs"]] == ["warm-up", "level"]
    base = campaign.value("tradeoff", "capacity_rate")
    assert campaign.value("itl", "saturation_rate") == base
    # No more than the places make of the steps, prompts not counted.
    assert 0.8 < base / (8 / (50 * (0.020 + 8 * 25e-6))) <= 1


def test_levels_are_percentages_of_it_and_only_the_first_run_has_a_warm_up(campaign: Ran) -> None:
    base = campaign.value("tradeoff", "capacity_rate")
    for name in NAMES:
        runs = campaign.test(name)["runs"]
        for run in runs:
            if run["part"] == "level":
                assert run["at"]["rate"] == pytest.approx(base * run["at"]["percent"] / 100, rel=1e-5)
        warmed = [summary["plan"]["load"]["warmup"] > 0 for summary in campaign.of(name)]
        assert warmed == [True] + [False] * (len(runs) - 1)


def test_documents_hold_numbers_where_a_column_has_a_unit(campaign: Ran) -> None:
    for test in campaign.document["tests"]:
        for table in test["tables"]:
            for index, column in enumerate(table["columns"]):
                cells = [row[index] for row in table["rows"]]
                if column["unit"]:
                    assert all(cell in (None, "") or isinstance(cell, int | float) for cell in cells), column
        for figure in test["figures"]:
            assert all(len(series["x"]) == len(series["y"]) for series in figure["series"])
            assert figure["series"]


@pytest.mark.parametrize(
    ("test", "low", "high", "options"),
    [
        ("capacity", "initial=8", "maximum=4", {}),
        ("capacity", "initial=300", "maximum=256", {"quick": True}),  # a quick run's own maximum
        ("throughput", "min_rate=8", "max_rate=4", {}),
        ("throughput", "min_concurrency=600", "max_concurrency=512", {}),
    ],
)
def test_a_range_that_ends_below_its_beginning_is_refused(
    test: str, low: str, high: str, options: dict[str, Any]
) -> None:
    asked = [f"{test}.{low}"] if options else [f"{test}.{low}", f"{test}.{high}"]
    with pytest.raises(PlanError) as refused:
        campaigns.campaign([test], parameters=asked, **options)
    problem = refused.value.problems[0]
    assert problem.where == f"tests.{test}"
    assert problem.message.endswith(
        f"above {high.split('=')[0]}, {high.split('=')[1]}: lower the first or raise the second"
    )


class FallsOver(Virtual):
    """Answers no more after so many runs."""

    def __init__(self, runs: int) -> None:
        super().__init__(Chosen("tiny-cpu", ENGINE), Silent())
        self.left = runs

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        if not self.left:
            raise PeerError("connection refused")
        self.left -= 1
        return super().measure(plan, out)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("capacity", {}),
        ("tradeoff", {"capacity_rate": 10}),
        ("itl", {}),
        ("throughput", {"loop": "closed"}),
    ],
)
@pytest.mark.parametrize("after", [0, 3])
def test_a_system_that_falls_over_leaves_what_was_learned(
    tmp_path: Path, name: str, parameters: dict[str, Any], after: int
) -> None:
    tests = Tests.model_validate(quickened({name: parameters}))
    whole = Campaign(names=(name,), plan=PLAN, tests=tests, simulated=True, quick=True)
    tested = carry_out(whole, FallsOver(after), tmp_path, Silent(), "inferometer test")
    document = to_data(tested.document.tests[0])
    assert (document["ended_by"], tested.exit_code) == ("server", 5)
    assert len(document["runs"]) == after
    assert document["verdict"]["status"] == "INCONCLUSIVE"
    assert document["undecided"]
    measured = [
        cell
        for table in document["tables"]
        for row in table["rows"]
        for cell in row
        if isinstance(cell, float)
    ]
    assert bool(measured) == (after > 0)  # of a level, or of the search for 100 % that comes before
    assert all(math.isfinite(cell) for cell in measured)


@pytest.mark.parametrize("name", ["tradeoff", "itl", "capacity", "throughput"])
def test_nothing_measured_is_no_result(name: str) -> None:

    found: Results = PROCEDURES[name].results(Setup(PLAN, Tests()), ())
    assert found.undecided
    assert not found.values


@pytest.mark.parametrize(
    ("ended", "base"),
    [
        (Answer(8.0, 8.4, "bracketed"), 8.0),
        (Answer(64.0, None, "ceiling"), None),  # the system sustains more
        (Answer(3.0, 8.0, "endless"), None),
        (Answer(None, 0.1, "floor"), None),
        (None, None),
    ],
)
def test_100_percent_is_only_what_a_search_bracketed(ended: Answer | None, base: float | None) -> None:
    """Percentages of the highest load that happened to be tried would be percentages of nothing."""
    assert bracketed_level(ended) == base


def test_the_highest_rate_that_was_to_be_tried_is_no_base_for_other_tests(tmp_path: Path) -> None:
    """Throughput up to 0.5 requests/s, all sustained: the tradeoff test after it searches for itself."""
    ran = carried_out(
        tmp_path,
        "throughput",
        "itl",
        engine=ENGINE,
        plan=PLAN,
        quick=True,
        tests={
            "throughput": {"min_rate": 0.25, "max_rate": 0.5, "rate_step": 0.25},
            "itl": {"percent": [50]},
        },
    )
    assert ran.test("throughput")["verdict"]["status"] == "INCONCLUSIVE"
    assert "base-level" in [run["part"] for run in ran.test("itl")["runs"]]
    assert ran.value("itl", "saturation_rate") > 1


@pytest.mark.parametrize("parameters", [{"max_rate": 2}, {"success_rate": 0.5}])
def test_what_was_found_by_other_rules_is_no_100_percent(tmp_path: Path, parameters: dict[str, Any]) -> None:
    """The end of a range that was given, or what is left when half may fail, is not what draft 5.2's search finds."""
    tests = Tests.model_validate(quickened({"throughput": parameters}))
    assert throughput.results(Setup(PLAN, tests), _found(tests)).known == KnownLimits()


def test_what_was_found_without_range_and_objectives_is_the_100_percent() -> None:
    tests = Tests.model_validate(quickened({}))
    assert throughput.results(Setup(PLAN, tests), _found(tests)).known.saturation == {workload_key(PLAN): 4.0}


def _found(tests: Tests) -> list[Performed]:
    """A search on a system that sustains 4 requests a second, and no more."""
    return played(throughput.steps(Setup(PLAN, tests)), _sustains_4)


def _sustains_4(step: Step) -> Summary:
    assert isinstance(step, Run)
    offered = step.plan.load.rate
    ttft = stats(10.0, 20.0, n=100)
    done = 4.0 if offered is None else min(4.0, offered)
    ratio = 1.0 if offered is None else done / offered
    return summary(
        ttft=ttft,
        output_tokens=stats(50.0, 50.0, n=100),
        output_tok_s=50.0 * done,
        request_s=done,
        steady=steady(50.0 * done, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=False),
        distributions=Distributions(quantiles((0.0, 10.0), (100.0, 20.0)), None, None, None),
    )


@pytest.mark.parametrize(
    "sut",
    [
        {"prefix_caching": "enabled"},
        {"guardrails": {"input_filter": True}},
        {"guardrails": {"output_filter": True}},
    ],
)
def test_what_is_known_of_one_state_is_not_known_of_another(sut: dict[str, Any]) -> None:
    """A system with filters sustains another rate than one without, of the same words."""
    assert workload_key(variant(PLAN, sut=sut)) != workload_key(PLAN)
    assert workload_key(reseeded(PLAN, 1)) == workload_key(PLAN)


def test_ttft_says_which_levels_are_missing() -> None:
    tests = Tests.model_validate({"ttft": {"rates": [1, 2], "percent": [50]}})
    setup = Setup(PLAN, tests, KnownLimits(saturation={workload_key(PLAN): 4.0}))
    step = next(step for step in ttft.steps(setup) if step.part == "level")  # type: ignore[union-attr]
    done = [PerformedRun(step, Measured("run", summary(ttft=stats(10.0, 20.0))))]  # type: ignore[arg-type]
    assert ttft.results(setup, done).undecided == (Note("levels_missing", {"missing": 2}),)


def test_ttft_of_users_is_at_what_they_ask_for() -> None:
    """The draft has open and closed loop; users that never had to wait would be an open one."""
    users = variant(PLAN, load={"model": "users", "users": 10, "user_rate": 0.5, "concurrency": None})
    assert ttft.planned(Setup(users, Tests())).load.rate == 5.0


CLASSES = [
    {"name": name, "weight": 1, "input_tokens": tokens, "output_tokens": "uniform(8,16)"}
    for name, tokens in (("a", "64"), ("b", "128"))
]


@pytest.mark.parametrize("test", ["capacity", "itl"])
def test_answers_are_as_long_as_the_test_asks_whatever_the_classes_say(test: str) -> None:
    plan = Plan.model_validate({"workload": {"classes": CLASSES}})
    tests = Tests.model_validate({"capacity": {"output_tokens": 99}, "itl": {"output_tokens": 99}})
    asked = PROCEDURES[test].planned(Setup(plan, tests)).workload
    assert {str(one.output_tokens) for one in asked.classes} == {"99"}
    assert [str(one.input_tokens) for one in asked.classes] == ["64", "128"]


def test_the_search_for_100_percent_is_shown_level_by_level() -> None:
    """Each load, what was achieved, and what refused it; nothing where the rate was known already."""
    setup = Setup(PLAN, Tests.model_validate(quickened({})))
    done = played(find_base(setup, PLAN), _sustains_4)  # type: ignore[arg-type]  # it returns a rate, too
    (table,) = base_table(setup, PLAN, done)
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    assert len(rows) == len(done)
    assert [row["concurrency"] for row in rows if row["concurrency"] != ""] == [32, 64]
    assert [row["rate"] for row in rows if row["rate"] != ""] == [pytest.approx(0.9 * 4)]
    assert rows[-1]["sustained"] == "yes"
    assert base_table(setup, PLAN, ()) == ()
