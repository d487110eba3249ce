"""The tests of draft 5.2 to 5.5 as a campaign carries them out: what one finds out, the next ones know; and a system that falls
over."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from procedures.driving import Ran, Silent, carried_out

from inferometer.conductor import Finding
from inferometer.errors import PeerError
from inferometer.plan.campaign import Campaign
from inferometer.plan.schema import Plan
from inferometer.plan.testing import Tests, quickened
from inferometer.procedures.results import Results
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.stands import Virtual
from inferometer.tester import carry_out

ENGINE = Settings(max_batch=32, step_base_ns=20_000_000)
PLAN = Plan.model_validate({"workload": {"name": "custom", "input_tokens": "64", "output_tokens": "50"}})
NAMES = ("throughput", "tradeoff", "itl")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("loads"), *NAMES, engine=ENGINE, plan=PLAN, quick=True)


def test_the_saturation_rate_is_searched_for_once(campaign: Ran) -> None:
    base = campaign.value("throughput", "sustainable_rate")
    for name, of in (("tradeoff", "capacity_rate"), ("itl", "saturation_rate")):
        runs = campaign.test(name)["runs"]
        assert {run["part"] for run in runs} == {"level"}
        assert campaign.value(name, of) == base
        for run in runs:
            assert run["at"]["rate"] == pytest.approx(base * run["at"]["percent"] / 100, rel=1e-5)
        warmed = [summary["plan"]["load"]["warmup"] > 0 for summary in campaign.of(name)]
        assert warmed == [True] + [False] * (len(runs) - 1)


def test_without_an_earlier_test_the_rate_is_searched_for_first(tmp_path: Path) -> None:
    parameters = {"tradeoff": {"percent": (50,), "most_percent": 50}}
    ran = carried_out(tmp_path, "tradeoff", engine=ENGINE, plan=PLAN, tests=parameters, quick=True)
    runs = ran.test("tradeoff")["runs"]
    assert [runs[0]["part"], runs[-1]["part"]] == ["base-pilot", "level"]
    assert {run["part"] for run in runs[1:-1]} == {"base-level", "base-confirm"}
    assert [summary["plan"]["load"]["warmup"] > 0 for summary in ran.of("tradeoff")] == [True] + [False] * (
        len(runs) - 1
    )
    # No more than the places make of the steps; and not much less.
    most = 32 / (50 * (0.020 + 32 * 25e-6))
    assert 0.5 * most < ran.value("tradeoff", "capacity_rate") <= most


def test_documents_hold_numbers_where_a_column_has_a_unit(campaign: Ran) -> None:
    for test in campaign.document["tests"]:
        for table in test["tables"]:
            for index, column in enumerate(table["columns"]):
                cells = [row[index] for row in table["rows"]]
                if column["unit"]:
                    assert all(cell is None or isinstance(cell, int | float) for cell in cells), column
        for figure in test["figures"]:
            assert all(len(series["x"]) == len(series["y"]) for series in figure["series"])
            assert figure["series"]


class FallsOver(Virtual):
    """Answers no more after so many runs."""

    def __init__(self, runs: int) -> None:
        super().__init__(Chosen("tiny-cpu", ENGINE), Silent())
        self.left = runs

    def measure(self, plan: Plan, out: Path) -> Finding:
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
@pytest.mark.parametrize("after", [0, 2])
def test_a_system_that_falls_over_leaves_what_was_learned(
    tmp_path: Path, name: str, parameters: dict[str, Any], after: int
) -> None:
    tests = Tests.model_validate(quickened({name: parameters}))
    whole = Campaign(names=(name,), plan=PLAN, tests=tests, simulated=True, quick=True)
    tested = carry_out(whole, FallsOver(after), tmp_path, Silent(), "inferometer test")
    document = tested.document["tests"][0]
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
    assert bool(measured) == (after > 0 and name != "itl")  # its second run is still of the search for 100 %
    assert all(math.isfinite(cell) for cell in measured)


@pytest.mark.parametrize("name", ["tradeoff", "itl", "capacity", "throughput"])
def test_nothing_measured_is_no_result(name: str) -> None:
    from inferometer.procedures.every import PROCEDURES
    from inferometer.procedures.setup import Setup

    found: Results = PROCEDURES[name].results(Setup(PLAN, Tests()), ())
    assert found.undecided
    assert not found.values
