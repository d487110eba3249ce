"""The statement on a comparison: draft 6's rules follow from its checklist, and each can break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from comparing import changed, planned, side
from msgspec import structs

from inferometer.judge.comparison.compare import Criteria, Run, compare
from inferometer.judge.comparison.equivalence import Declared, TokenCounting
from inferometer.judge.compliance.evidence import catalogue
from inferometer.judge.compliance.of_comparison import complied
from inferometer.judge.compliance.statement import Statement

RULES = {rule.id for rule in catalogue() if rule.kind == "comparison"}
SUT = {"accelerator_count": 4, "accelerator_memory": "80GB"}
TOKENS = TokenCounting("reference", "cl100k_base", "reference", "direct")


def declaring(runs: Sequence[Run], **more: object) -> list[Run]:
    """Runs of a side of which all is declared, counted by the reference tokenizer."""
    return changed(runs, sut=structs.replace(runs[0].facts.sut, **{**SUT, **more}), tokens=TOKENS)


def statement(a: Sequence[Run], b: Sequence[Run], **declared: object) -> Statement:
    criteria = Criteria(replicates=50, declared=Declared(production=True, **declared))  # type: ignore[arg-type]
    return complied(compare([a, b], criteria))


def broken(of: Statement) -> dict[str, str]:
    """The rules that are violated or unknown, and which."""
    return {one.rule.id: one.state for one in of.deviations}


def test_sides_that_differ_in_nothing_keep_every_must() -> None:
    """All rules of section 6 are looked at; that the sides were measured at one time is not known of runs in turn."""
    found = statement(declaring(side()), declaring(side(1.1)))
    assert {one.rule.id for one in found.findings} == RULES
    assert "not_checked" not in {one.note.code for one in found.findings}
    assert set(broken(found)) <= {"D-6.4-time"}
    assert found.label == "unconditionally compliant"


@pytest.mark.parametrize(
    ("more", "state"), [({"boundary": "gateway"}, "violated"), ({"boundary": None}, "unknown")]
)
def test_another_boundary_or_none_complies_with_nothing(more: dict[str, object], state: str) -> None:
    """What is not said is not the same."""
    found = statement(declaring(side()), declaring(side(), **more))
    assert broken(found)["D-6.1-boundary"] == state
    assert found.label == "not compliant"


def test_other_hardware_needs_a_price() -> None:
    """Accelerators make it comparable, and only a price gives throughput by cost (6.2)."""
    sides = declaring(side()), declaring(side(), accelerator="A100")
    assert broken(statement(*sides)) | {"D-6.4-time": ""} == {"D-6.2-cost": "violated", "D-6.4-time": ""}
    priced = broken(statement(*sides, prices={0: 2.0, 1: 3.0}, price_source="list"))
    assert not {"D-6.1-hardware", "D-6.2-cost", "D-6.2-method"} & set(priced)


def test_another_load_other_seeds_and_few_runs_break_their_rules() -> None:
    """Each its own."""
    whole = declaring(side())
    load = [replace(run, facts=planned(run.facts, "load", rate=99.0)) for run in whole]
    assert broken(statement(whole, load))["D-6.1-load"] == "violated"
    assert broken(statement(whole, changed(whole, seed=77)))["D-6.1-workload"] == "violated"
    assert broken(statement(whole[:2], whole[:2]))["D-6.3-runs"] == "violated"


def test_another_tokenizer_than_the_reference_is_conditional_compliance() -> None:
    """Draft 4.4.2 recommends it for comparisons."""
    native = replace(TOKENS, method="native", tokenizer="own")
    sides = [changed(declaring(side()), tokens=native) for _ in range(2)]
    found = statement(*sides)
    assert broken(found)["D-4.4.2-cl100k"] == "violated"
    assert found.label == "conditionally compliant"


def test_simulations_claim_nothing() -> None:
    """No server was measured."""
    sides = [changed(declaring(side()), simulated=True) for _ in range(2)]
    assert statement(*sides).label == "not a measurement"
