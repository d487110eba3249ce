"""A campaign.json that was changed by hand: what follows from the rest of the document follows, or the file is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import only

from inferometer.cli.app import run
from inferometer.errors import RecordError
from inferometer.studies.campaign_file import read_campaign

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a quick simulated campaign, with a copy for sharing."""
    out = tmp_path_factory.mktemp("campaigns")
    words = ["test", "throughput", "ttft", "--quick", "--simulate", "--preset", "tiny-cpu"]
    run([*words, "--redact", "capacity", "--quiet", "--out", str(out)])
    return only(out) / "campaign.json"


def first(document: dict[str, Any]) -> dict[str, Any]:
    """The test of throughput."""
    test: dict[str, Any] = document["tests"][0]
    return test


def second(document: dict[str, Any]) -> dict[str, Any]:
    """The test of TTFT."""
    test: dict[str, Any] = document["tests"][1]
    return test


def turned(value: dict[str, Any]) -> None:
    """Its interval the other way round."""
    value["ci"] = [2.0, 1.0]


CHANGES: dict[str, tuple[Change, str]] = {
    "the headline": (lambda one: first(one)["values"][0].update(value=99_999.0), "max_output_tok_s"),
    "a negative headline": (
        lambda one: second(one)["values"][0].update(value=-1.0),
        "nothing measured can be",
    ),
    "a headline of 0": (lambda one: second(one)["values"][0].update(value=0), "nothing measured can be"),
    "a text for a headline": (
        lambda one: second(one)["values"][0].update(value="fast"),
        "'fast', which nothing measured can be",
    ),
    "the minimum report": (lambda one: one["minimum"].update(max_throughput_tok_s=1.0), "minimum report"),
    "an interval": (lambda one: turned(first(one)["values"][0]), "ends before it begins"),
    "no finite number": (lambda one: first(one)["values"][0].update(value=float("nan")), "no finite number"),
    "the verdict of a test": (
        lambda one: first(one)["verdict"].update(status="INVALID"),
        "the verdict of 'throughput' is INVALID",
    ),
    "the verdict of all": (
        lambda one: one["verdict"].update(status="INVALID"),
        "the verdict of the campaign is INVALID",
    ),
    "a label": (
        lambda one: first(one)["compliance"].update(label="unconditionally compliant"),
        "it is labelled unconditionally compliant",
    ),
    "the label of all": (
        lambda one: one["compliance"].update(label="conditionally compliant"),
        "the compliance of the campaign",
    ),
    "a finding": (
        lambda one: [finding.update(state="satisfied") for finding in first(one)["compliance"]["findings"]],
        "its counts are not those of its findings",
    ),
    "a deviation": (
        lambda one: first(one)["compliance"]["deviations"].clear(),
        "its deviations are not those of its findings",
    ),
    "not simulated": (lambda one: one.update(simulated=False), "not both simulated"),
    "not quick": (lambda one: one.update(quick=False), "not both quick"),
    "a test twice": (lambda one: one["tests"].append(first(one)), "is in it twice"),
    "an instant": (lambda one: one.update(started="yesterday"), "no instant"),
    "a row": (lambda one: first(one)["tables"][0]["rows"].append(["x"]), "a cell for each column"),
    "a point": (lambda one: first(one)["figures"][0]["series"][0]["x"].append(1.0), "a y for each x"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_does_not_follow_from_the_rest_is_refused(what: str, campaign: Path, tmp_path: Path) -> None:
    """Each command that reads the document refuses it with the file's name and the contradiction."""
    change, said = CHANGES[what]
    document = json.loads(campaign.read_text())
    change(document)
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps(document))
    with pytest.raises(RecordError, match=said) as refused:
        read_campaign(path)
    assert str(path) in str(refused.value)
    assert run(["report", str(tmp_path)]) == 2
    assert run(["compliance", str(tmp_path)]) == 2
    assert run(["compare", str(campaign.parent), str(tmp_path)]) == 2


HALF = "\ud83d"
PLACES: dict[str, Change] = {
    r"tests\[0\]\.compliance\.findings\[0\]\.facts\.x": lambda one: first(one)["compliance"]["findings"][
        0
    ].update(facts={"x": HALF}),
    r"tests\[0\]\.compliance\.findings\[0\]\.facts\.\?": lambda one: first(one)["compliance"]["findings"][
        0
    ].update(facts={HALF: 1}),
    r"tests\[0\]\.figures\[0\]\.series\[0\]\.name": lambda one: first(one)["figures"][0]["series"][0].update(
        name=HALF
    ),
    r"reproduction\.plan_file\.plan\.name": lambda one: one["reproduction"]["plan_file"]["plan"].update(
        name=HALF
    ),
    r"id": lambda one: one.update(id=HALF),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_text_is_refused_with_its_place(place: str, campaign: Path, tmp_path: Path) -> None:
    """Law: half of a surrogate pair anywhere in a document ends no command in a traceback."""
    document = json.loads(campaign.read_text())
    PLACES[place](document)
    path = tmp_path / "campaign.json"
    path.write_text(json.dumps(document))
    with pytest.raises(RecordError, match=f"half of a surrogate pair at {place}, which is no text"):
        read_campaign(path)
    for command in (["report"], ["compliance"], ["rerun"], ["compare", str(campaign.parent)]):
        assert run([*command, str(tmp_path)]) == 2


def test_what_the_program_wrote_is_read(campaign: Path) -> None:
    """A campaign and its redacted copy contradict themselves nowhere."""
    assert read_campaign(campaign).redacted is None
    assert read_campaign(campaign.parent / "shareable" / "campaign.json").redacted == ("capacity",)
