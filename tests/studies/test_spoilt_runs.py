"""Runs that the client's machine spoilt are made again, shown, and held to their record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from judge.compliant import check
from procedures.driving import Silent

from inferometer.documents.part import from_json, to_json
from inferometer.documents.summary import SCHEMA, Summary
from inferometer.errors import RecordError
from inferometer.plan.campaign import Campaign, campaign
from inferometer.plan.schema import Plan
from inferometer.run.evaluate import RunResult
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import TRIES, Tested, carry_out
from inferometer.studies.campaign_runs import read_held
from inferometer.studies.stand import Virtual

SIZES = ["ttft.requests=40", "ttft.rates=[5, 10]"]


class Busy(Virtual):
    """An engine in virtual time; of the runs that count, the client's machine spoils those of these numbers, by `code`."""

    def __init__(self, spoils: set[int], code: str) -> None:
        super().__init__(Chosen("tiny-cpu", Settings(step_base_ns=5e6, max_batch=16)), Silent())
        self._spoils, self._code, self._levels = spoils, code, 0
        self.settled: list[int] = []

    def settle(self) -> None:
        """See Stand."""
        self.settled.append(self._levels)

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        made = super().measure(plan, out)
        self._levels += plan.name.endswith("level")
        if self._levels not in self._spoils or not plan.name.endswith("level"):
            return made
        verdict = made.summary.verdict
        checks = (*(one for one in verdict.checks if one.code != self._code), check(self._code, "fail"))
        bad = msgspec.structs.replace(verdict, status="INVALID", checks=checks)
        summary = msgspec.structs.replace(made.summary, verdict=bad)
        (made.folder / "summary.json").write_text(to_json(summary))
        return replace(made, summary=summary)


def wanted(quick: bool = False) -> Campaign:
    return campaign(["ttft"], None, None, SIZES, simulated=True, quick=quick)


def carried(folder: Path, stand: Virtual, quick: bool = False) -> Tested:
    folder.mkdir()
    return carry_out(wanted(quick), stand, folder, Silent(), "inferometer test")


def test_a_spoilt_run_is_made_again_and_the_answer_is_that_of_a_quiet_machine(tmp_path: Path) -> None:
    """Law: one or two spoilt runs change nothing of a test but its list of them, which names run, load and checks."""
    quiet = carried(tmp_path / "quiet", Busy(set(), "lateness")).document.tests[0]
    stand = Busy({2, 3}, "lateness")
    busy = carried(tmp_path / "busy", stand).document.tests[0]
    assert stand.settled == [2, 3], "each is made again once the machine is on time"
    assert (busy.values, busy.verdict.status) == (quiet.values, quiet.verdict.status)
    assert not quiet.spoilt
    assert [one.checks for one in busy.spoilt] == [("lateness",)] * 2
    assert {one.run for one in busy.spoilt}.isdisjoint(run.run for run in busy.runs)
    assert busy.spoilt[0].at == next(run.at for run in busy.runs[busy.spoilt[0].runs_before :])
    report = (tmp_path / "busy" / "report.md").read_text()
    assert f"spoilt {busy.spoilt[0].run}, which failed lateness and nothing else" in report


@pytest.mark.parametrize(
    ("spoils", "code", "quick", "spoilt"),
    [
        (set(range(1, 99)), "lateness", False, TRIES - 1),
        ({1}, "output_length", False, 0),
        ({1}, "lateness", True, 0),
    ],
)
def test_what_is_not_made_again_is_taken_as_it_is(
    tmp_path: Path, spoils: set[int], code: str, quick: bool, spoilt: int
) -> None:
    """Law: a machine that spoils every run is not tried for ever, and neither a fault of the system nor a quick test is."""
    test = carried(tmp_path / "made", Busy(spoils, code), quick).document.tests[0]
    assert len(test.spoilt) == spoilt
    assert test.verdict.status == "INVALID"


class MayCache(Busy):
    """Nobody knows whether its prefix cache is on."""

    def usual(self, what: str) -> str | None:
        """See Stand."""
        return None if what == "prefix_cache" else super().usual(what)


@pytest.mark.parametrize("repeatable", [False, True])
def test_a_cache_stands_in_the_way_only_of_prompts_that_it_may_know(tmp_path: Path, repeatable: bool) -> None:
    """Law: a run is made again where its prompts begin with nonces of their own, and once, on a machine that is on time, where
    a cache may have them from before."""
    stand = MayCache({2}, "lateness")
    (tmp_path / "made").mkdir()
    flags = {"--repeatable-prompts": repeatable}
    plan = campaign(["ttft"], None, flags, SIZES, simulated=True)
    assert plan.plan.workload.repeatable_prompts is repeatable
    test = carry_out(plan, stand, tmp_path / "made", Silent(), "inferometer test").document.tests[0]
    assert bool(test.spoilt) is not repeatable
    assert stand.settled


def test_a_run_that_was_not_spoilt_cannot_be_said_to_be(tmp_path: Path) -> None:
    """Law: the document is held to the spoilt runs' summaries: an unwelcome run cannot be put among them."""
    made = carried(tmp_path / "made", Busy({2}, "lateness"))
    path = made.folder / "campaign.json"
    assert read_held(path).tests[0].spoilt == made.document.tests[0].spoilt
    summary = made.folder / "runs" / made.document.tests[0].spoilt[0].run / "summary.json"
    sound = from_json(summary.read_bytes(), Summary, SCHEMA, "summary")
    kept = msgspec.structs.replace(sound, verdict=msgspec.structs.replace(sound.verdict, status="VALID"))
    summary.write_text(to_json(kept))
    with pytest.raises(RecordError, match="spoilt"):
        read_held(path)
    document = json.loads(path.read_text())
    document["tests"][0]["spoilt"][0]["run"] = document["tests"][0]["runs"][-1]["run"]
    path.write_text(json.dumps(document))
    with pytest.raises(RecordError, match="spoilt"):
        read_held(path)
