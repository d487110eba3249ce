"""A campaign's document beside its runs: it is what they come to, or it is refused; without them it is unchecked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import only

from inferometer.cli.app import run
from inferometer.documents.part import to_json
from inferometer.errors import RecordError
from inferometer.studies.campaign_file import contradictions_of, read_campaign
from inferometer.studies.campaign_runs import read_held

Change = Callable[[dict[str, Any]], object]
WORDS = (
    "test ttft guardrail long-context cold-start --quick --simulate --preset tiny-cpu --set input_check=5ms "
    "--set load=1s --param ttft.requests=40 --param long-context.lengths=[64,128,256,100000] --redact capacity "
    "--rate 20 --quiet"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick simulated campaign in which states, lengths and levels were refused, with a copy for sharing."""
    out = tmp_path_factory.mktemp("campaigns")
    run([*WORDS.split(), "--out", str(out)])
    return only(out)


@pytest.fixture
def changed(folder: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """A campaign beside the same runs, with its document changed."""

    def change(how: Change) -> Path:
        document = json.loads((folder / "campaign.json").read_text())
        how(document)
        (tmp_path / "campaign.json").write_text(json.dumps(document))
        shutil.copytree(folder / "runs", tmp_path / "runs", copy_function=os.link)
        return tmp_path

    return change


def test_what_the_program_wrote_is_what_its_runs_come_to(folder: Path) -> None:
    """Also tests by single requests, with refused steps, and of starts: to the last word."""
    document = read_held(folder / "campaign.json")
    assert document.unchecked is None
    assert document == read_campaign(folder / "campaign.json")
    refused = [one for test in document.tests for one in test.refused]
    assert refused
    assert [one.seconds for one in document.tests[-1].switches][1::2] == [1.0, 1.0]


def of(test: str, part: str, change: Callable[[Any], object]) -> Change:
    """A change of a part of a test."""
    return lambda document: change(next(one for one in document["tests"] if one["test"] == test)[part])


def named(values: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The value, table or figure of this name."""
    return next(one for one in values if one["name"] == name)


CHANGES: dict[str, tuple[Change, str]] = {
    "a headline": (of("ttft", "values", lambda all_: all_[0].update(value=1.0)), "ttft_p50].value is 1.0, by the runs"),
    "an interval": (of("ttft", "values", lambda all_: all_[0].update(ci=[1.0, 2.0])), "ttft_p50].ci"),
    "a load time": (of("cold-start", "values", lambda all_: all_[0].update(value=0.5)), "load_time].value"),
    "an interval by requests": (
        of("guardrail", "values", lambda all_: all_[0].update(ci=[4.9, 5.1])), "overhead_50].ci"
    ),
    "a cell": (of("long-context", "tables", lambda all_: all_[0]["rows"][0].__setitem__(2, 7.0)), "rows[0][2] is 7.0"),
    "a point": (of("long-context", "figures", lambda all_: all_[0]["series"][0]["y"].__setitem__(0, 1.0)), "figures"),
    "a note": (of("long-context", "notes", lambda all_: all_[0].update(message="All is well.")), "notes"),
    "the load of a run": (of("ttft", "runs", lambda all_: all_[-1]["at"].update(rate=1000.0)), "rate"),
    "the verdict of a run": (of("ttft", "runs", lambda all_: all_[0].update(verdict="INVALID")), "verdict"),
    "a parameter": (of("ttft", "parameters", lambda one: one.update(requests=10_000)), "parameters.requests"),
    "the plan": (lambda one: one["reproduction"]["plan_file"]["plan"]["workload"].update(seed=9), "plan"),
    "a rule": (
        of("ttft", "compliance", lambda one: one["findings"][0].update(note="seen")), "compliance.findings"
    ),
    "the minimum report": (lambda one: one["minimum"].update(ttft_p99_ms=1.0), "minimum.ttft_p99_ms"),
    "the system": (lambda one: one["sut"].update(accelerator="H100"), "sut.accelerator"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_the_runs_do_not_come_to_is_refused(what: str, changed: Callable[[Change], Path]) -> None:
    """By the place, what stands there, and what the runs say; these changes contradict nothing else in the document."""
    change, said = CHANGES[what]
    path = changed(change) / "campaign.json"
    assert not list(contradictions_of(read_campaign(path)))
    with pytest.raises(RecordError, match="is not what its runs come to") as refused:
        read_held(path)
    assert said in str(refused.value)


def test_each_command_refuses_a_changed_headline(folder: Path, changed: Callable[[Change], Path]) -> None:
    """`report`, `compliance` and `compare` end with exit code 2 and write nothing."""
    where = changed(CHANGES["a headline"][0])
    assert run(["report", str(where)]) == 2
    assert run(["compliance", str(where)]) == 2
    assert run(["compare", str(folder), str(where)]) == 2
    assert not (where / "report.md").exists()


def test_a_document_without_its_runs_is_unchecked_on_every_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures are shown, with the sentence that nothing was held against them; beside its runs again it is checked."""
    said = "Figures are as campaign.json has them and were not held against the runs: not all run folders"
    shutil.copy(folder / "campaign.json", tmp_path)
    before = (tmp_path / "campaign.json").read_bytes()
    run(["report", str(tmp_path)])
    assert said in " ".join(capsys.readouterr().out.split())
    for page in ("report.md", "report.html", "minimum.txt"):
        assert said in (tmp_path / page).read_text()
        assert said not in (folder / page).read_text()
    assert run(["compliance", str(tmp_path)]) == 0
    assert said in capsys.readouterr().out
    run(["compare", str(folder), str(tmp_path / "campaign.json")])
    (tmp_path / "runs").symlink_to(folder / "runs")
    assert read_held(tmp_path / "campaign.json").unchecked == "runs_missing"
    (tmp_path / "runs").unlink()
    shutil.copytree(folder / "runs", tmp_path / "runs")
    assert to_json(read_held(tmp_path / "campaign.json")).encode() == before


def test_what_cannot_be_worked_out_says_why(changed: Callable[[Change], Path], folder: Path) -> None:
    """A copy for sharing, and a document of another version."""
    assert read_held(folder / "shareable" / "campaign.json").unchecked == "redacted"
    assert (
        read_held(changed(lambda one: one.update(version="0.0.9")) / "campaign.json").unchecked == "version"
    )


def planned(*keys: str, value: object) -> Change:
    """A value in the plan that the document says it is of."""

    def change(document: dict[str, Any]) -> None:
        part = document["reproduction"]["plan_file"]
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value

    return change


IMPOSSIBLE: dict[str, tuple[Change, str]] = {
    "a count": (
        planned("tests", "throughput", "reference_requests", value=10**30),
        "tests.throughput.reference_requests: must be at most 10,000,000, not 1000000",
    ),
    "a duration": (planned("tests", "throughput", "duration_s", value=10**30), "tests.throughput.duration_s"),
    "a load": (planned("plan", "load", "rate", value=-1), "plan.load.rate: must be at least"),
    "a rule": (planned("plan", "load", "concurrency", value=5), "reproduction.plan_file: plan.load."),
    "a key": (planned("tests", "ttft", "colour", value="blue"), "tests.ttft.colour"),
    "a name": (planned("names", value=["nope"]), "reproduction.plan_file: nope: is not a test"),
    "no plan": (planned("schema", value=None), "reproduction.plan_file: its schema is 'None'"),
    "a withheld plan": (
        lambda one: one["reproduction"].update(plan_file="withheld (capacity)"), "is no redacted copy"
    ),
    "a withheld condition": (
        of("ttft", "runs", lambda all_: all_[0].update(at="withheld (capacity)")), "is no redacted copy"
    ),
    "a switch without a place": (
        of("cold-start", "switches", lambda all_: all_[0].update(runs_before=None)), "the switch of 'server'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_this_version_never_writes_is_no_reason_to_check_nothing(
    what: str, changed: Callable[[Change], Path]
) -> None:
    """Law: a document of this version is held to its runs or is refused, with the place; UNCHECKED by another version's hand is
    only one that names another version."""
    change, said = IMPOSSIBLE[what]
    where = changed(change)
    with pytest.raises(RecordError, match="damaged or changed") as refused:
        read_held(where / "campaign.json")
    assert said in str(refused.value)
    assert run(["report", str(where)]) == 2
    document = json.loads((where / "campaign.json").read_text()) | {"version": "0.0.9"}
    (where / "campaign.json").write_text(json.dumps(document))
    assert read_held(where / "campaign.json").unchecked == "version"


@pytest.mark.parametrize("run_id", ["..", "../../elsewhere", "/etc", "nothing"])
def test_a_run_is_looked_for_beside_the_document_only(run_id: str, changed: Callable[[Change], Path]) -> None:
    """A name that leads elsewhere is a run that is not there."""
    where = changed(of("ttft", "runs", lambda all_: all_[0].update(run=run_id)))
    assert read_held(where / "campaign.json").unchecked == "runs_missing"
