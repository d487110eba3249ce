"""The rules held against campaigns as they are carried out: documents and summaries of real steps, in virtual time."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import campaigns
import pytest
from judge.compliant import changed, perfect
from procedures.driving import Silent

from inferometer.documents.part import from_json
from inferometer.documents.statement import RuleState
from inferometer.documents.summary import SCHEMA, DeclaredGuardrails, Summary
from inferometer.judge.compliance.evidence import Evidence, of_run, of_test
from inferometer.judge.compliance.statement import comply
from inferometer.plan.campaign import campaign
from inferometer.plan.schema import Plan
from inferometer.run.simulate import simulate
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Virtual

GUARDED = Settings(
    step_base_ns=5e6, max_batch=16, input_check_ns=8e6, output_check_tokens=16, output_check_ns=4e6
)
SMALL = ["prefix-cache.requests=10", "prefix-cache.concurrency=2", "prefix-cache.throughput_s=1"]
MEASURED = {"virtual": False, "runs.*.summary.run.simulated": False}


@functools.cache
def caching() -> Evidence:
    """The evidence of a test of prefix caching, as if it had been measured."""
    whole = campaign(("prefix-cache",), None, None, SMALL, simulated=True, quick=True)
    with tempfile.TemporaryDirectory() as folder:
        stand = Virtual(Chosen("tiny-cpu", Settings(step_base_ns=20e6, max_batch=4)), Silent())
        document = carry_out(whole, stand, Path(folder), Silent(), "inferometer test").document
        files = Path(folder).glob("runs/*/summary.json")
        summaries = {file.parent.name: from_json(file.read_bytes(), Summary, SCHEMA, "") for file in files}
    return changed(of_test(document.tests[0], summaries), MEASURED)


def stands(evidence: Evidence, rule: str) -> tuple[RuleState, str | None]:
    """How a rule stands, and the run that breaks it."""
    (found,) = (one for one in comply(evidence).findings if one.rule.id == rule)
    return found.state, found.run


def test_a_warm_pass_that_its_own_warm_up_filled_is_filled() -> None:
    """Draft 4.5.1: nothing is switched between the pass over an emptied cache and the one over a full one, so what the second
    relies on is its own warm-up, and not that of the first."""
    evidence = caching()
    parts = [run.part for run in evidence.runs]
    assert stands(evidence, "D-4.5.1-prefix") == ("satisfied", None)
    assert stands(evidence, "D-4.5.1-volume")[0] == "satisfied"
    warm = parts.index("warm")
    empty = changed(evidence, {f"runs.{warm}.summary.warm_up.prefixes": "not populated"})
    assert stands(empty, "D-4.5.1-prefix") == ("violated", evidence.runs[warm].name)
    unwarmed = changed(evidence, {f"runs.{warm}.summary.warm_up.completed": 0})
    assert stands(unwarmed, "D-4.5.1-volume") == ("violated", evidence.runs[warm].name)
    cold = changed(evidence, {f"runs.{parts.index('cold')}.summary.warm_up.completed": 0})
    assert stands(cold, "D-4.5.1-volume") == ("satisfied", None)


def test_the_search_for_100_percent_is_shown_level_by_level() -> None:
    """A row for each run that looked for it, with what refused it where it was not sustained."""
    evidence = caching()
    searched = [run for run in evidence.runs if run.part in ("base-level", "base-confirm")]
    assert evidence.shown is not None
    rows = evidence.shown.tables["base_levels"].cells
    assert searched
    assert [row["rate"] for row in rows if row["rate"]] == [run.at.rate for run in searched]
    assert all(row["because"] for row in rows if row["sustained"] == "no")


WORKED_OUT = {"cells_of_runs", "rows_of_runs", "point_follows"}


@pytest.mark.parametrize("column", [1, 2])
def test_a_table_of_a_campaign_is_held_against_its_runs(column: int) -> None:
    """What procedures write is right; one cell that is off by a thousandth is of no run."""
    evidence = caching()
    codes = {one.note.code for one in comply(evidence).findings if one.rule.id.startswith("D-5.7.4")}
    assert codes & WORKED_OUT
    assert stands(evidence, "D-5.7.4-ttft")[0] == "satisfied"
    assert evidence.shown is not None
    row = evidence.shown.tables["cache"].cells[column]
    value = row["ttft_p95"]
    assert isinstance(value, float)
    wrong = changed(evidence, {f"shown.tables.cache.cells.{column}.ttft_p95": 1.001 * value})
    assert stands(wrong, "D-5.7.4-ttft")[0] == "violated"


def test_no_statement_is_broken_by_what_procedures_write() -> None:
    """Statements on what is reported, of three tests as they are carried out: none is broken but by what was not measured."""
    for document in campaigns.simulated().tests:
        assert document.compliance is not None
        of_report = [one for one in document.compliance.deviations if one.level == "states"]
        broken = {one.code for one in of_report if one.state == "violated"}
        assert broken <= {"parameter", "parameters_missing", "not_measured", "other_tokens"}, (
            document.test,
            broken,
        )


def test_filters_of_a_simulated_engine_are_disclosed_as_its_settings_have_them(tmp_path: Path) -> None:
    """Draft 4.8.1: a run of each configuration has the filters that were on in it, and no other."""
    stand = Virtual(Chosen("tiny-cpu", GUARDED), Silent())
    plan = Plan.model_validate({"load": {"rate": 5.0, "requests": 2, "warmup": 0}})

    def disclosed(state: str) -> tuple[bool | None, bool | None, tuple[str, ...]]:
        stand.switch("guardrails", state)
        rails = stand.measure(plan, tmp_path / state).summary.sut.guardrails
        return rails.input_filter, rails.output_filter, rails.names

    assert disclosed("baseline") == (False, False, ())
    assert disclosed("input") == (True, False, ("simulated input filter",))
    assert disclosed("output") == (False, True, ("simulated output filter",))
    assert disclosed("full") == (True, True, ("simulated input filter", "simulated output filter"))


def test_a_campaign_discloses_every_configuration_of_its_guardrails(tmp_path: Path) -> None:
    """Draft 4.8.1, C.1: runs with filters on are not reported as runs without; the rules say so, and the minimum report."""
    small = ["guardrail.duration_s=1", "guardrail.throughput_s=1", "guardrail.concurrency=2"]
    plan = tmp_path / "plan.yaml"
    plan.write_text("workload: {input_tokens: 30, output_tokens: 20}")
    whole = campaign(("guardrail",), plan, None, small, simulated=True, quick=True)
    tested = carry_out(
        whole, Virtual(Chosen("tiny-cpu", GUARDED), Silent()), tmp_path, Silent(), "x"
    ).document
    (test,) = tested.tests
    filters = {
        "baseline": (False, False),
        "input": (True, False),
        "output": (False, True),
        "full": (True, True),
    }
    for run in test.runs:
        summary = from_json((tmp_path / "runs" / run.run / "summary.json").read_bytes(), Summary, SCHEMA, "")
        rails = summary.sut.guardrails
        assert (rails.input_filter, rails.output_filter) == filters[run.state["guardrails"]]
    assert {run.state["guardrails"] for run in test.runs} == set(filters)
    assert "with the input filter, the output filter, all filters" in tested.minimum.notes[-1]
    files = (tmp_path / "runs").glob("*/summary.json")
    summaries = {file.parent.name: from_json(file.read_bytes(), Summary, SCHEMA, "") for file in files}
    found = {one.rule.id: one.note.code for one in comply(of_test(test, summaries)).findings}
    assert (found["D-4.8.1-input"], found["D-4.8.1-names"]) == ("filter_switched", "filter_names")


def test_filters_of_a_simulated_engine_are_inside_no_engines_boundary(tmp_path: Path) -> None:
    """Draft 4.1.1: with filters it is no plain engine, and never said to have none."""
    plan = Plan.model_validate({"load": {"rate": 5.0, "requests": 2, "warmup": 0}})
    evidence = of_run(simulate(plan, Chosen("tiny-cpu", GUARDED), tmp_path, Silent()).summary)
    found = {one.rule.id: (one.state, one.note.code) for one in comply(evidence).findings}
    assert found["D-4.8-account"] == ("violated", "filter_inside_engine")
    assert found["D-4.8.1-input"] == ("satisfied", "filter")
    assert found["D-4.8.1-names"] == ("satisfied", "filter_names")


@pytest.mark.parametrize("rule", ["D-4.8-account", "D-5.10.2-configs", "D-4.1.1-excluded"])
def test_refusals_of_filters_that_the_test_switched_on_contradict_nothing(rule: str) -> None:
    """The rules stand as without them, while those of a run with filters off break them."""
    off = DeclaredGuardrails(False, False, ())
    engine = {"runs.0.summary.sut.boundary": "engine", "runs.0.summary.sut.guardrails": off,
              "plan.target.url": "http://localhost"}  # fmt: skip
    states = ("baseline", "input", "output", "full")
    states_of = {f"runs.{i}.state": {"guardrails": state} for i, state in enumerate(states)}

    def refused(configuration: str, count: int = 3) -> Evidence:
        at = f"runs.{states.index(configuration)}.summary.refusals.by_signal.policy_status"
        return changed(perfect("guardrail"), engine | states_of | {at: count})

    assert stands(refused("input"), rule) == stands(refused("input", 0), rule)
    assert stands(refused("baseline"), rule) == ("violated", "run-0")
