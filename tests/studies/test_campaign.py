"""Campaigns: nothing measured is lost, whatever ends a test, and what was done can be done again."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from procedures.driving import Failing, Silent

from inferometer.cli.procedure import told
from inferometer.documents.part import to_data
from inferometer.documents.schemas.__main__ import generated
from inferometer.errors import CannotSwitch, PlanError, RecordError
from inferometer.plan.campaign import Campaign, campaign, to_json
from inferometer.plan.reach import reach
from inferometer.plan.rerun import Simulated, again
from inferometer.plan.schema import Plan
from inferometer.procedures.step import Switched
from inferometer.run.evaluate import RunResult
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import SHAREABLE, Tested, carry_out, foreseen
from inferometer.studies.campaign_runs import rewritten
from inferometer.studies.stand import Virtual

SCHEMA = json.loads(generated("campaign"))
ENGINE = Settings(step_base_ns=5e6, max_batch=16)
SMALL = ["ttft.requests=40", "ttft.rates=[5, 10]", "capacity.maximum=16"]


def carried(folder: Path, whole: Campaign, stand: Virtual | None = None) -> Tested:
    folder.mkdir(exist_ok=True)
    return carry_out(
        whole, stand or Virtual(Chosen("tiny-cpu", ENGINE), Silent()), folder, Silent(), "inferometer test"
    )


def small(*names: str, **options: Any) -> Campaign:
    """Their parameters are few and small; of other tests none may be named."""
    sizes = [size for size in SMALL if size.partition(".")[0] in names]
    return campaign(names, None, None, sizes, simulated=True, quick=True, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tested:
    """Two tests, with a redacted copy."""
    return carried(tmp_path_factory.mktemp("campaign"), small("ttft", "capacity", redact=("capacity",)))


def test_a_campaigns_document_keeps_to_its_schema(whole: Tested) -> None:
    """As it is, redacted, and as it lies on disk."""
    on_disk = json.loads((whole.folder / "campaign.json").read_bytes())
    assert on_disk == to_data(whole.document)
    for document in (on_disk, json.loads((whole.folder / SHAREABLE / "campaign.json").read_bytes())):
        jsonschema.validate(document, SCHEMA)


def test_a_campaign_leaves_its_plan_its_reports_and_the_runs_it_made(whole: Tested) -> None:
    """Each run that a test names is there, whole."""
    names = {path.name for path in whole.folder.iterdir()}
    assert {
        "tests.json",
        "campaign.json",
        "report.md",
        "report.html",
        "minimum.txt",
        "runs",
        SHAREABLE,
    } <= names
    for test in whole.document.tests:
        assert test.runs
        for run in test.runs:
            assert (whole.folder / "runs" / run.run / "summary.json").is_file()


def test_tests_are_carried_out_in_the_order_in_which_one_needs_the_other(whole: Tested) -> None:
    """Whatever their order on the command line."""
    assert [test.test for test in whole.document.tests] == ["capacity", "ttft"]


def test_every_test_of_the_draft_has_a_statement_and_a_simulation_claims_nothing(whole: Tested) -> None:
    """By the judge's rules, not by hand."""
    for test in whole.document.tests:
        assert test.compliance is not None
        assert test.compliance.label == "not a measurement"
        assert test.compliance.findings


@pytest.mark.parametrize("what", ["", "tests.json", "campaign.json", "report.html"])
def test_what_a_report_says_was_done_can_be_done_again(whole: Tested, what: str) -> None:
    """From the folder and from each of its files."""
    found = again(whole.folder / what)
    assert found == again(whole.folder)
    assert isinstance(found, Campaign)
    assert found.names == ("capacity", "ttft")


def test_the_same_campaign_again_comes_to_the_same(whole: Tested, tmp_path: Path) -> None:
    """In virtual time to the last digit."""
    found = again(whole.folder)
    assert isinstance(found, Campaign)
    second = carried(tmp_path / "again", found)
    for before, after in zip(whole.document.tests, second.document.tests, strict=True):
        assert before.values == after.values
        assert before.tables == after.tables


def test_a_redacted_report_cannot_be_done_again(whole: Tested) -> None:
    """And says why."""
    with pytest.raises(RecordError, match="redacted"):
        again(whole.folder / SHAREABLE / "campaign.json")


def test_a_run_of_a_campaign_can_be_done_again_by_itself(whole: Tested) -> None:
    """On the engine that it was simulated on."""
    run = whole.document.tests[1].runs[-1].run
    found = again(whole.folder / "runs" / run)
    assert isinstance(found, Simulated)
    assert Settings(**found.settings) == Virtual(Chosen("tiny-cpu", ENGINE), Silent())._engine.settings
    with pytest.raises(RecordError, match="simulated"):
        again(whole.folder / "runs" / run / "summary.json")


@pytest.mark.parametrize("text", ["", "{}", "[1]", "<html></html>", '{"schema": "inferometer/other/1"}'])
def test_what_holds_no_plan_is_refused_in_words(tmp_path: Path, text: str) -> None:
    """No traceback for any file."""
    file = tmp_path / "report.html"
    file.write_text(text)
    with pytest.raises(RecordError):
        again(file)


def test_reports_can_be_written_again_and_redacted_later(whole: Tested, tmp_path: Path) -> None:
    """Out of campaign.json, beside the same runs."""
    (tmp_path / "campaign.json").write_bytes((whole.folder / "campaign.json").read_bytes())
    shutil.copytree(whole.folder / "runs", tmp_path / "runs")
    assert rewritten(tmp_path, ("capacity",)).document == whole.document
    assert (tmp_path / "report.html").read_bytes() == (whole.folder / "report.html").read_bytes()
    shared = (tmp_path / SHAREABLE / "campaign.json").read_bytes()
    assert shared == (whole.folder / SHAREABLE / "campaign.json").read_bytes()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_system_that_falls_over_ends_its_test_with_what_was_learned(tmp_path: Path, after: int) -> None:
    """Exit code 5, the runs before, partial results, and the next test is still tried."""
    tested = carried(tmp_path / "c", small("ttft", "capacity"), Failing(ENGINE, after))
    assert tested.exit_code == 5
    assert rewritten(tested.folder, ()).document == tested.document
    first, second = tested.document.tests
    assert [len(first.runs), len(second.runs)] == [after, 0]
    for test in (first, second):
        assert test.ended_by == "server"
        assert "no connection" in (test.problem or "")
        assert test.verdict.status != "VALID"
        assert "partial" in {reason.code for reason in test.verdict.reasons}
    jsonschema.validate(json.loads((tested.folder / "campaign.json").read_bytes()), SCHEMA)
    assert "no connection" in (tested.folder / "report.md").read_text()


def test_a_test_whose_requests_do_not_fit_ends_alone(tmp_path: Path) -> None:
    """The campaign goes on, with what the others measured; by itself it is a plan that cannot be carried out."""
    engine = Settings(step_base_ns=5e6, max_batch=16, kv_blocks=256)
    names = ("ttft", "memory-pressure", "cold-start")
    tested = carried(tmp_path / "c", small(*names), Virtual(Chosen("tiny-cpu", engine), Silent()))
    assert [test.ended_by for test in tested.document.tests] == [None, "plan", None]
    crowded = tested.document.tests[1]
    assert "the model takes 4,096 in all" in (crowded.problem or "")
    assert (crowded.verdict.status, tested.exit_code) == ("INCONCLUSIVE", 2)
    jsonschema.validate(json.loads((tested.folder / "campaign.json").read_bytes()), SCHEMA)
    with pytest.raises(PlanError, match="takes 4,096"):
        carried(tmp_path / "d", small("memory-pressure"), Virtual(Chosen("tiny-cpu", engine), Silent()))


class Interrupting(Virtual):
    """Somebody presses Ctrl-C in the third run."""

    runs = 0

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        finding = super().measure(plan, out)
        self.runs += 1
        if self.runs == 3:
            run = msgspec.structs.replace(finding.summary.run, interrupted=True)
            return replace(finding, summary=msgspec.structs.replace(finding.summary, run=run))
        return finding


def test_an_interrupted_campaign_reports_what_it_has_and_goes_no_further(tmp_path: Path) -> None:
    """Exit code 130."""
    tested = carried(
        tmp_path / "c", small("ttft", "capacity"), Interrupting(Chosen("tiny-cpu", ENGINE), Silent())
    )
    assert tested.exit_code == 130
    assert [test.test for test in tested.document.tests] == ["capacity"]
    assert tested.document.tests[0].ended_by == "interrupted"
    assert len(tested.document.tests[0].runs) == 2


class Stubborn(Virtual):
    """A system that cannot be switched."""

    def switch(self, what: str, state: str) -> Switched:
        """See Stand."""
        if getattr(self, "_ui", None) is not None and self.begun:
            raise CannotSwitch(f"{what} cannot be {state}")
        return super().switch(what, state)

    begun = False


def test_a_system_that_cannot_be_switched_ends_the_test_and_says_so(tmp_path: Path) -> None:
    """Exit code 5, before anything was measured."""
    stand = Stubborn(Chosen("tiny-cpu", ENGINE), Silent())
    stand.begun = True
    tested = carried(tmp_path / "c", small("prefix-cache"), stand)
    assert tested.exit_code == 5
    assert "cannot be disabled" in (tested.document.tests[0].problem or "")


def test_what_a_plan_breaks_is_told_before_anything_is_sent() -> None:
    """Each MUST by its id; a plan with the draft's numbers breaks none of them by its numbers."""
    quick = foreseen(small("ttft", "throughput"))
    assert any("ttft: deviates from MUST" in line for line in quick)
    assert any("D-5.2.2-duration" in line for line in quick)
    as_it_should = foreseen(campaign(["ttft", "throughput"], None, {"--rate": "2"}))
    assert not any("D-5.2.2-duration" in line or "D-5.1.2-count" in line for line in as_it_should)


class Unread(Virtual):
    """Somebody presses Ctrl-C while the third run, which is over, is being read; or that cannot be read at all."""

    runs, cause = 0, KeyboardInterrupt

    def measure(self, plan: Plan, out: Path) -> RunResult:
        """See Stand."""
        self.runs += 1
        if self.runs == 3:
            raise RecordError("measured, but not reported") from self.cause()
        return super().measure(plan, out)


def test_ctrl_c_while_a_run_is_read_interrupts_the_campaign_as_any_other(tmp_path: Path) -> None:
    """Exit code 130, and the two runs before are reported."""
    tested = carried(tmp_path / "c", small("ttft", "capacity"), Unread(Chosen("tiny-cpu", ENGINE), Silent()))
    assert tested.exit_code == 130
    assert [(one.test, len(one.runs)) for one in tested.document.tests] == [("capacity", 2)]


def test_a_run_that_cannot_be_read_loses_nothing_of_those_before(tmp_path: Path) -> None:
    """What was measured is reported before the error goes on its way."""
    stand = Unread(Chosen("tiny-cpu", ENGINE), Silent())
    stand.cause = OSError  # type: ignore[assignment]  # a disk that is full, say
    with pytest.raises(RecordError):
        carried(tmp_path / "c", small("ttft", "capacity"), stand)
    document = json.loads((tmp_path / "c" / "campaign.json").read_bytes())
    jsonschema.validate(document, SCHEMA)
    (only,) = document["tests"]
    assert (only["ended_by"], len(only["runs"])) == ("instrument", 2)


def test_a_test_that_the_plan_cannot_be_carried_out_for_leaves_the_others(tmp_path: Path) -> None:
    """A model with room for 1,600 tokens has none for the long class; exit code 2. Where nothing can be measured at all the
    plan is refused."""
    tight = Settings(step_base_ns=5e6, max_batch=16, kv_blocks=100)
    stand = Virtual(Chosen("tiny-cpu", tight), Silent())
    tested = carried(tmp_path / "c", small("ttft", "fairness"), stand)
    assert tested.exit_code == 2
    ended = {one.test: one.ended_by for one in tested.document.tests}
    assert ended == {"ttft": None, "fairness": "plan"}
    assert {one.compliance and one.compliance.label for one in tested.document.tests} == {"not a measurement"}
    with pytest.raises(PlanError, match="the model takes"):
        carried(tmp_path / "d", small("fairness"), Virtual(Chosen("tiny-cpu", tight), Silent()))


def test_a_level_that_no_plan_can_have_ends_its_test_in_words(tmp_path: Path) -> None:
    """Law: where what is known of the system makes a level impossible, that test alone ends, with the value that no plan has;
    without any other the plan is refused."""
    tiny = ["tradeoff.capacity_rate=1e-6", "tradeoff.percent=[1]"]
    both = campaign(("ttft", "tradeoff"), None, None, [*SMALL[:2], *tiny], simulated=True, quick=True)
    tested = carried(tmp_path / "c", both)
    ended = {one.test: (one.ended_by, one.problem) for one in tested.document.tests}
    why = "a level's load.rate: must be at least 1e-06, not 1e-08"
    assert ended["ttft"] == (None, None)
    assert (ended["tradeoff"][0], tested.exit_code) == ("plan", 2)
    assert why in (ended["tradeoff"][1] or "")
    assert rewritten(tested.folder, ()).document == tested.document
    alone = campaign(("tradeoff",), None, None, tiny, simulated=True, quick=True)
    with pytest.raises(PlanError, match=re.escape(why)):
        carried(tmp_path / "d", alone)


def test_the_warm_up_that_a_report_tells_is_the_one_that_was_made(whole: Tested) -> None:
    """A test's first run warms up for the others, of which one stands for the system."""
    (row,) = (one for one in whole.document.disclosed if one.name == "Warm-up")
    assert row.value.startswith("100 requests sent")


def test_what_a_report_would_run_call_or_send_is_told(tmp_path: Path) -> None:
    """By its place, before any of it is done; a simulation without files reaches nothing."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "target: {url: 'http://host:1', model: m, api_key_env: KEY}\n"
        "switch:\n"
        "  prefix_cache: {disabled: {command: 'rm -r /'}}\n"
        "  guardrails: {full: {http: {url: 'http://host:2/on'}}, input: {ask: 'please'}}\n"
    )
    asked = campaign(("memory-pressure",), plan, own_system=True)
    places = [place for place, _ in reach(asked)]
    assert places == [
        "target.url",
        "target.api_key_env",
        "switch.prefix_cache.disabled",
        "switch.guardrails.full",
        "switch.guardrails.input",
        "memory-pressure",
    ]
    assert reach(asked.model_copy(update={"simulated": True})) == []
    assert [place for place, _ in reach(asked.plan)] == places[:2]


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ()},
        {"names": ("nope",)},
        {"own_system": False},
        {"plan": Plan.model_validate({"load": {"users": 3, "user_rate": 1}})},
    ],
)
def test_a_saved_campaign_keeps_to_the_rules_of_any_other(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Whoever wrote it, and by hand."""
    plan = tmp_path / "plan.yaml"
    plan.write_text("target: {url: 'http://host:1', model: m}\n")
    asked = campaign(("memory-pressure",), plan, own_system=True)
    file = tmp_path / "tests.json"
    file.write_bytes(to_json(asked))
    assert again(file) == asked
    file.write_bytes(to_json(asked.model_copy(update=changes)))
    with pytest.raises(PlanError):
        again(file)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": "inferometer/campaign/1"}',
        '{"schema": "inferometer/summary/1"}',
        '{"redacted": 5}',
        '{"schema": "inferometer/campaign/1", "reproduction": {"plan_file": 3}}',
    ],
)
def test_half_a_document_is_refused_in_words(tmp_path: Path, text: str) -> None:
    """To do again, and to report."""
    (tmp_path / "campaign.json").write_text(text)
    for read in (again, lambda path: rewritten(path, ())):
        with pytest.raises(RecordError):
            read(tmp_path)


def test_a_test_of_gaps_without_any_gap_is_inconclusive(tmp_path: Path) -> None:
    """Answers of 5 tokens are left out, and then there is nothing to say."""
    asked = campaign(
        ("itl",), None, None, ["itl.output_tokens=5", "itl.percent=[50]"], simulated=True, quick=True
    )
    (only,) = carried(tmp_path / "c", asked).document.tests
    assert only.verdict.status == "INCONCLUSIVE"
    assert any("its gaps are not known" in reason.message for reason in only.verdict.reasons)


def test_a_report_repeats_no_password_of_the_command_line() -> None:
    """Addresses of metrics are the only arguments that may hold one."""
    words = [
        "test",
        "ttft",
        "--server-metrics",
        "http://me:hidden@h:1/m?token=hidden",
        "--server-metrics=me:hidden@h:2",
    ]
    assert "hidden" not in told(words)
    assert told(["test", "ttft", "--name", "a b"]) == "inferometer test ttft --name 'a b'"


def test_what_a_workload_may_do_to_a_test_is_foreseen() -> None:
    """Conversations with pauses in a closed loop, a workload that another one replaces, and classes in its place."""

    def said(names: list[str], flags: dict[str, object]) -> list[str]:
        lines = foreseen(campaign(names, None, {"--rate": "2", **flags}, own_system=True))
        words = ("begin alike", "closed loops", "takes its place", "classes of its own")
        return [line for line in lines if any(word in line for word in words)]

    turns: dict[str, object] = {"--workload": "conversation", "--turns": "4"}
    (paused,) = said(["prefix-cache"], turns | {"--think-ms": "500"})
    assert "users pause" in paused
    assert not said(["prefix-cache"], turns)
    assert "Code Completion takes its place" in said(["prefix-cache"], {"--workload": "synthetic-uniform"})[0]
    assert not said(["prefix-cache"], {})
    assert not said(["prefix-cache"], {"--workload": "code-completion"})
    (classes,) = said(["all"], {"--workload": "code-completion"})
    assert classes.startswith("fairness: ")


def test_prompts_that_share_nothing_are_refused_before_the_start(tmp_path: Path) -> None:
    """Of which no two have a system prompt in common: a cache has nothing to find, and the message names what to do."""

    def foresee(*rows: dict[str, str]) -> None:
        prompts = tmp_path / "prompts.jsonl"
        prompts.write_text("".join(json.dumps(row | {"output_tokens": 5}) + "\n" for row in rows))
        foreseen(campaign(["prefix-cache"], None, {"--rate": "2", "--prompts": str(prompts)}))

    for rows in (
        [{"prompt": "a"}, {"prompt": "a"}],
        [{"prompt": "a", "system": "x"}, {"prompt": "b", "system": "y"}],
    ):
        with pytest.raises(PlanError, match=r"share a system prompt.*leave prefix-cache out"):
            foresee(*rows)
    foresee({"prompt": "a", "system": "x"}, {"prompt": "c"}, {"prompt": "b", "system": "x"})


def test_fairness_refuses_a_workload_that_it_would_not_offer() -> None:
    """Where it is named; with classes of its own given, or as one of all tests, it goes on."""
    flags: dict[str, object] = {"--rate": "2", "--workload": "conversation"}
    with pytest.raises(PlanError, match=r"tests\.fairness\.classes"):
        campaign(["fairness"], None, flags)
    campaign(["all"], None, flags, own_system=True)
    campaign(["fairness"], None, {"--rate": "2", "--seed": "4"})
    given = [
        {"name": name, "input_tokens": (64, 256), "output_tokens": (32, 64), "share": 0.5}
        for name in ("a", "b")
    ]
    campaign(["fairness"], None, flags, [f"fairness.classes={json.dumps(given)}"])
