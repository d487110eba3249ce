"""`inferometer compliance`: of a run, of a campaign, of nothing, and the rules themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import campaigns
import jsonschema
import pytest
from msgspec.structs import replace
from shipped_schemas import shipped

from inferometer.cli.app import run
from inferometer.documents.campaign import Conditions, ProcedureRun, ProcedureVerdict
from inferometer.documents.part import from_data, to_json
from inferometer.documents.statement import ComplianceStatement
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.judge.compliance.evidence import catalogue
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

VALID = ProcedureVerdict("VALID", ())


class Nobody:
    """A Ui that tells nobody."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short simulated run."""
    flags: dict[str, object] = {"--rate": "40", "--requests": "60", "--warmup": "10", "--output-tokens": "9"}
    plan = build(None, flags | {"--declare": ["terminology_read"]})
    return simulate(plan, choose(None, ()), tmp_path_factory.mktemp("runs"), Nobody()).folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What the command prints."""
    assert run(["compliance", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Why it does not."""
    assert run(["compliance", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def measured(folder: Path) -> Path:
    """The run as if a server had been measured, in place."""
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    summary["run"]["simulated"] = False
    summary["instrument"]["timestamp_source"] = "kernel"
    path.write_text(json.dumps(summary))
    return folder


def campaign_of(folder: Path, where: Path, compliance: ComplianceStatement | None = None) -> Path:
    """A campaign's folder with one test of one run, as another version wrote it: what that reckoned is not held to its runs."""
    (where / "runs").mkdir(parents=True)
    shutil.copytree(
        folder, where / "runs" / "one", ignore=shutil.ignore_patterns("journal", "*.arrow*", "*.html")
    )
    empty = campaigns.empty()
    test = replace(
        empty.tests[0],
        ended_by=None,
        problem=None,
        parameters={"requests": 60},
        plan=json.loads((folder / "plan.json").read_text()),
        runs=(ProcedureRun("one", "level", Conditions(), "", {}, "VALID", None),),
        verdict=VALID,
        compliance=compliance,
    )
    whole = replace(empty, version="0.0.1", tests=(test,), verdict=VALID, compliance=compliance)
    (where / "campaign.json").write_text(to_json(whole))
    return where


def test_a_run_is_judged_rule_by_rule(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Label, counts and deviations come first; every line fits 80 columns; JSON has the same findings."""
    run_folder = measured(shutil.copytree(folder, tmp_path / "run"))
    text = said(capsys, run_folder)
    assert text.startswith("ttft (draft 5.1): NOT COMPLIANT\n")
    assert "work in progress, revision -00, January 2026" in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.index("Deviations") < text.index("Taken on trust") < text.index("All rules")
    data = json.loads(said(capsys, run_folder, "--json"))
    (statement,) = data["tests"]
    assert data["campaign"] is None
    assert {one["id"] for one in statement["findings"]} == {
        rule.id for rule in catalogue() if rule.about("ttft")
    }
    assert all(one["id"] in text for one in statement["findings"])
    broken = {one["id"] for one in statement["deviations"]}
    assert {"D-5.1.2-count-p99", "D-4.5.1-volume", "D-4.6.1-grpc-engine"} <= broken
    assert "D-1-terms" not in broken


def test_a_summary_carries_the_label_and_the_ids(folder: Path) -> None:
    """Few words, that agree with the schema; a simulated run is no measurement."""
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, shipped("summary"))
    assert summary["compliance"]["label"] == "not a measurement"
    assert "D-5.1.2-count-p999" in summary["compliance"]["deviations"]


def test_a_simulated_run_has_findings_about_its_plan_and_no_label(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so in its first lines."""
    text = said(capsys, folder)
    assert text.startswith("ttft (draft 5.1): NOT A MEASUREMENT\nSimulated: no server was measured")
    assert "D-5.1.2-count-p99 " in text


def test_a_campaign_is_judged_from_its_folder_or_its_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both give the same; a statement that is stored is printed as it stands, without run folders."""
    whole = campaign_of(folder, tmp_path / "campaign")
    data = json.loads(said(capsys, whole, "--json"))
    assert data == json.loads(said(capsys, whole / "campaign.json", "--json"))
    assert [one["test"] for one in data["tests"]] == ["ttft"]
    assert data["campaign"]["test"] == "campaign"
    assert "campaign, all tests together" in said(capsys, whole)
    assert "all tests together" not in said(capsys, whole, "--test", "ttft")
    stored = campaign_of(folder, tmp_path / "stored", from_data(data["tests"][0], ComplianceStatement))
    shutil.rmtree(stored / "runs")
    assert json.loads(said(capsys, stored, "--json"))["tests"] == data["tests"]


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """All, or of one level, in 80 columns or as JSON."""
    text = said(capsys, "--list")
    assert all(f"{rule.id} " in text for rule in catalogue())
    assert max(map(len, text.splitlines())) <= 80
    musts = json.loads(said(capsys, "--list", "--json", "--level", "MUST"))
    assert len(musts) == 86
    assert {one["level"] for one in musts} == {"MUST"}


def test_what_cannot_be_judged_is_refused_in_words(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to do."""
    assert "RUN: needs RUN, or --list" in refused(capsys)
    assert "--list" in refused(capsys, "--list", folder)
    assert "--level" in refused(capsys, folder, "--level", "MUST")
    assert "not a folder" in refused(capsys, tmp_path / "nowhere")
    (tmp_path / "died").mkdir()
    assert "not a run folder" in refused(capsys, tmp_path / "died")
    (tmp_path / "died" / "plan.json").write_text("{}")
    assert "inferometer recover" in refused(capsys, tmp_path / "died")
    assert "has ttft" in refused(capsys, folder, "--test", "itl")
    (tmp_path / "killed" / "runs").mkdir(parents=True)
    (tmp_path / "killed" / "tests.json").write_text("{}")
    of_campaign = refused(capsys, tmp_path / "killed")
    assert "ended before its first run" in of_campaign
    assert "inferometer rerun" in of_campaign
    assert "inferometer recover" not in of_campaign
    (tmp_path / "campaign.json").write_text("{}")
    assert "its format is 'None'; this version of inferometer reads" in refused(capsys, tmp_path)
    (tmp_path / "campaign.json").write_text("no")
    assert "is no JSON" in refused(capsys, tmp_path)
    (tmp_path / "died" / "summary.json").write_text('{"schema": "inferometer/summary/1"}')
    assert "inferometer report" in refused(capsys, tmp_path / "died")
