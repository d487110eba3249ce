"""What the findings on the rules come to: the label of a test, of a campaign and of a comparison."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.compliant import (
    ALONE,
    EVERY,
    RUN,
    changed,
    perfect,
)

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    Rule,
    Shown,
    catalogue,
    note,
    satisfied,
    unknown,
)
from inferometer.judge.compliance.statement import (
    LABELS,
    OPEN,
    STATES,
    Finding,
    campaign,
    comparison,
    comply,
    label_of,
)

NOTE = Note("none")

RULES = [rule for rule in catalogue() if rule.kind not in ("campaign", "comparison")]


@given(st.lists(st.tuples(st.sampled_from(RULES), st.sampled_from(STATES)), max_size=30))
def test_the_label_is_that_of_the_weightiest_open_rule(found: list[tuple[Rule, Any]]) -> None:
    """Whatever else there is: what does not apply, what is only stated, and what is kept never count; declared is kept."""
    findings = [Finding(rule, state, NOTE) for rule, state in found]
    open_ = {one.rule.weight for one in findings if one.state in OPEN}
    expected = LABELS[2] if "MUST" in open_ else LABELS[1] if "SHOULD" in open_ else LABELS[0]
    assert label_of(findings) == expected
    counting = [one for one in findings if one.state in OPEN and one.rule.weight != "states"]
    assert label_of(counting) == expected
    assert label_of(findings, simulated=True) == "not a measurement"


@given(
    st.lists(st.tuples(st.sampled_from(RULES), st.sampled_from(STATES)), max_size=20), st.sampled_from(RULES)
)
def test_one_more_open_rule_never_betters_the_label(found: list[tuple[Rule, Any]], rule: Rule) -> None:
    """Labels are ordered: unknown is as bad as violated."""
    findings = [Finding(one, state, NOTE) for one, state in found]
    before = LABELS.index(label_of(findings))
    after = {LABELS.index(label_of([*findings, Finding(rule, state, NOTE)])) for state in OPEN}
    assert len(after) == 1
    assert after.pop() >= before


def test_an_unknown_must_blocks_and_a_declared_one_passes_with_a_mark() -> None:
    """Q-unverifiable: silence is no evidence, a word is one that is told as such."""
    silent = comply(changed(perfect("ttft"), {"plan.declared.model_loaded": None}))
    (missing,) = silent.deviations
    assert (missing.rule.id, missing.state, silent.label) == ("D-4.5.1-load", "unknown", "not compliant")
    states = {one.rule.id: one.state for one in comply(perfect("ttft")).findings}
    assert states["D-4.5.1-load"] == "declared"


@pytest.mark.parametrize("test", ALONE)
def test_what_has_not_run_is_not_kept(test: str) -> None:
    """Without runs, tables and figures nothing that they would show is satisfied."""
    statement = comply(dataclasses.replace(perfect(test), runs=(), shown=Shown()))
    assert statement.label == "not compliant"
    shown = [
        one for one in statement.findings if one.rule.kind in ("program", "runs") and one.state == "satisfied"
    ]
    assert shown == []


@pytest.mark.parametrize("test", ALONE)
def test_a_simulation_is_no_measurement(test: str) -> None:
    """It carries no label of the draft's, however well it went; what it says of the plan is still there."""
    changes = {f"{EVERY}.run.simulated": True, "plan.declared.model_loaded": None}
    statement = comply(changed(perfect(test), changes))
    assert statement.label == "not a measurement"
    measuring = {one.state for one in statement.findings if one.rule.kind in ("program", "runs")}
    assert measuring == {"not applicable"}
    assert test == "cold-start" or {one.rule.id for one in statement.deviations} == {"D-4.5.1-load"}


def test_the_first_run_that_breaks_a_rule_is_named() -> None:
    """Of several levels, the third and the fourth fall short."""
    short = {f"runs.{place}.summary.itl_shape.itl_ms.n": 4_000 + place for place in (2, 3)}
    (found,) = comply(changed(perfect("itl"), short)).deviations
    assert found.run == "run-2"
    few = note("too_few_samples", capacity=True, n=4_002, metric="itl_ms", limit=5_000)
    assert found.note == few


def test_an_engines_campaign_needs_synthetic_uniform_once() -> None:
    """Q-engine-workload: and a test's own workload goes first, so one test alone is not held to it."""
    tests = [
        changed(perfect(name), {f"{EVERY}.sut.boundary": "engine"}) for name in ("fairness", "long-context")
    ]
    with_it = changed(tests[0], {f"{EVERY}.plan.workload.name": "synthetic-uniform"})
    without, found, gateway = (
        next(one for one in campaign(of).findings if one.rule.id == "D-4.3.2.1-required")
        for of in (tests, [tests[1], with_it], [perfect("ttft")])
    )
    assert [one.state for one in (without, found, gateway)] == ["violated", "satisfied", "not applicable"]
    assert without.rule.id == "D-4.3.2.1-required"
    alone = {one.rule.id: one.state for one in comply(tests[0]).findings}
    assert alone["D-4.3.2.1-required"] == "not applicable"


def test_the_minimum_report_lacks_what_no_test_measured() -> None:
    """Draft C.1: maximum throughput and the operating point of 500 ms come from test 5.2 alone; the other lines from any
    test with levels."""

    def lacking(*tests: Evidence) -> set[str]:
        return {one.rule.id for one in campaign(tests).deviations}

    of_search = {"D-C.1-throughput", "D-C.1-slo"}
    assert lacking(perfect("ttft"), perfect("throughput")) == set()
    assert lacking(perfect("ttft")) == of_search
    unnamed = changed(perfect("ttft"), {f"{RUN}.sut.software": None})
    assert lacking(unnamed) == of_search | {"D-C.1-system"}
    untimed = changed(perfect("ttft"), {f"{RUN}.window.duration_s": None, f"{RUN}.metrics.tpot_ms": None})
    assert lacking(untimed) == of_search | {"D-C.1-test", "D-C.1-latency"}
    nothing = dataclasses.replace(perfect("ttft"), runs=())
    assert lacking(nothing) == of_search | {"D-C.1-system", "D-C.1-test", "D-C.1-latency"}


def test_a_campaign_is_as_compliant_as_its_worst_test() -> None:
    """And a simulated test makes none of it a measurement."""
    good, bad = perfect("itl"), changed(perfect("ttft"), {"plan.declared.terminology_read": None})
    assert campaign([good]).label == "unconditionally compliant"
    assert campaign([good, bad]).label == "conditionally compliant"
    simulated = changed(bad, {f"{EVERY}.run.simulated": True})
    assert campaign([good, simulated]).label == "not a measurement"


def test_section_6_counts_toward_a_comparison_alone() -> None:
    """Q-verdict-scope: no test has its rules; a comparison has those and no other, and what nobody looked at is unknown."""
    rules = {rule.id for rule in catalogue() if rule.kind == "comparison"}
    of_tests = {one.rule.id for test in ALONE for one in comply(perfect(test)).findings}
    assert not of_tests & rules
    assert comparison({name: satisfied(NOTE) for name in rules}).label == "unconditionally compliant"
    assert comparison({}).label == "not compliant"
    assert {one.rule.id for one in comparison({}).deviations} == rules
    with pytest.raises(ValueError, match=r"D-4\.1-boundary"):
        comparison({"D-4.1-boundary": unknown(NOTE)})
    with pytest.raises(ValueError, match="compare"):
        comply(dataclasses.replace(perfect("ttft"), test="compare"))


def test_the_brief_form_counts_every_finding_and_names_what_is_open() -> None:
    """Counts add up to the findings, and deviations are in the order of their weight."""
    statement = comply(changed(perfect("ttft"), {"parameters.requests": 10}))
    brief = statement.brief()
    assert sum(n for counts in brief.counts.values() for n in counts.values()) == len(statement.findings)
    assert tuple(one.rule.id for one in statement.deviations) == brief.deviations
    assert brief.label == statement.label == "not compliant"
    weights = [one.rule.weight for one in statement.deviations]
    assert weights == sorted(weights, key=["MUST", "SHOULD", "states"].index)


@pytest.mark.parametrize("test", ALONE)
def test_a_test_that_did_not_come_to_its_end_complies_with_nothing(test: str) -> None:
    """Whatever it had measured until then was as it should be."""
    cut = comply(dataclasses.replace(perfect(test), cut="connection refused"))
    assert (cut.label, cut.cut) == ("not compliant", "connection refused")
    assert cut.findings == comply(perfect(test)).findings
