"""The campaigns of docs/examples: their plans can be carried out, and say nothing of the machine they were made on."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from campaigns import simulated

from inferometer.plan.campaign import campaign
from scripts.campaign import latest_in
from scripts.picture import first_picture

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
PLANS = sorted(EXAMPLES.glob("*/plan.yaml"))
ONE_TEST = "grpc"


def test_one_example_is_a_test_by_grpc_of_the_size_that_its_percentiles_need() -> None:
    whole = campaign(["ttft"], EXAMPLES / ONE_TEST / "plan.yaml")
    assert whole.plan.target.interface.grpc
    assert whole.tests.ttft.requests >= 10_000


@pytest.mark.parametrize(
    "path", [path for path in PLANS if path.parent.name != ONE_TEST], ids=lambda path: path.parent.name
)
def test_the_plan_of_an_example_is_a_campaign_of_the_ten_tests(path: Path) -> None:
    """With sizes that break none of the MUSTs that a throughput test can keep, and with all of the system declared."""
    whole = campaign(["all"], path, own_system=True)
    assert len(whole.names) == 10
    assert whole.tests.throughput.duration_s >= 60
    assert whole.tests.ttft.requests >= 1_000
    assert whole.tests.capacity.ttft_p99_ms is not None
    assert not any(value is None for name, value in whole.plan.sut.model_dump().items() if name != "notes")


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_an_example_names_no_place_on_a_machine(path: Path) -> None:
    """Its commands are relative to the checkout."""
    assert not re.search(r"(^|[\s\"'=(])/(home|root|tmp|Users|opt|srv|mnt|var)/", path.read_text())


def test_the_first_picture_stands_alone() -> None:
    """It is XML, with a sheet and a legend, and loads nothing."""
    drawn = first_picture(simulated())
    assert drawn is not None
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.find("{http://www.w3.org/2000/svg}style") is not None
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_the_latest_campaign_is_found_beside_what_else_lies_in_a_folder_of_runs(tmp_path: Path) -> None:
    """The history's index, and a campaign that ended before it had anything to say."""
    assert latest_in(tmp_path) is None
    for name in ("20260101T000000Z-one", "20260102T000000Z-two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.json").touch()
    (tmp_path / "20260103T000000Z-three").mkdir()
    (tmp_path / "history.sqlite3").touch()
    assert latest_in(tmp_path) == tmp_path / "20260102T000000Z-two"
