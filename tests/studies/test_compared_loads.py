"""Campaigns compared at the absolute loads of their runs: the same percentage of two maxima is not the same load."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from campaigns import simulated
from commands import finish
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planted_campaigns import NAMES, a_campaign, a_test, compared, figure, saved
from procedures.driving import Silent
from rich.console import Console

from inferometer.documents.campaign import Conditions, ProcedureDocument
from inferometer.judge.comparison.campaign_figures import HEADLINES, KINDS
from inferometer.judge.comparison.loads import SHARE, apart
from inferometer.plan.campaign import campaign
from inferometer.report.campaign.comparison import console, html, junit, markdown
from inferometer.report.campaign.comparison.words import at_loads
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.repeats import repeat_of
from inferometer.studies.stand import Virtual

LEVELS: Mapping[str, tuple[tuple[str, Conditions], ...]] = {
    "ttft": (("level", Conditions(percent=50.0)),),
    "itl": (("level", Conditions(percent=25.0)), ("level", Conditions(percent=75.0))),
    "tradeoff": (("level", Conditions(percent=40.0)), ("level", Conditions(percent=130.0))),
    "fairness": (("isolated", Conditions(class_name="short")), ("mixed", Conditions(percent=80.0))),
    "prefix-cache": tuple((one, Conditions(cache=one)) for one in ("disabled", "cold", "warm")),
    "guardrail": (("level", Conditions(configuration="baseline", percent=50.0)),),
}
"""By test, the parts and conditions of its runs, all but the rate."""


def at_rate(test: str, rate: float, number: float, **changes: Any) -> ProcedureDocument:
    """A test with this headline, whose levels are at shares of `rate`; its search went elsewhere."""
    template = simulated().tests[0].runs[0]
    levels = [
        replace(template, part=part, at=replace(at, rate=rate * (at.percent or 100) / 100))
        for part, at in LEVELS[test]
    ]
    searched = replace(template, part="base-level", at=Conditions(rate=1 / rate))
    return a_test(test, {NAMES[test]: number}, runs=(searched, *levels), **changes)


def side(
    folder: Path, test: str, rates: Sequence[float], number: float, first: int = 0, **more: float
) -> str:
    """Campaigns of a test at levels of these rates. `more`: headlines of tests without a load."""
    others = [a_test(name, {NAMES[name]: one}) for name, one in more.items()]
    found = [
        a_campaign(first + at, at, [at_rate(test, rate, number * (1 + 0.001 * at)), *others])
        for at, rate in enumerate(rates)
    ]
    return saved(folder, found)


def test_every_headline_is_known_to_depend_on_a_load_or_not() -> None:
    """Those that are the load or that nothing else runs beside do not; all others name parts of their test."""
    free = {"throughput", "capacity", "memory-pressure", "long-context", "cold-start"}
    for test in HEADLINES:
        kind = next(one for one in KINDS[test] if one.matches(NAMES[test]))
        assert bool(kind.loads) is (test not in free)


@pytest.mark.parametrize("test", sorted(LEVELS))
def test_a_figure_at_another_absolute_load_is_neither_better_nor_worse_nor_the_same(
    test: str, tmp_path: Path
) -> None:
    """Whichever way it moved, and whichever side is the baseline; the item and the conclusion name both loads."""
    a = side(tmp_path / "a", test, (10.0, 10.1, 9.9), 40.0)
    for name, factor, first in (("more", 1.5, 10), ("less", 0.5, 20), ("equal", 1.0, 30)):
        b = side(tmp_path / name, test, (4.0, 4.1, 3.9), 40.0 * factor, first)
        for sides in ((a, b), (b, a)):
            document = compared(*sides, threshold=1.0)
            one = figure(document, f"{test}.{NAMES[test]}")
            assert (one.verdict, one.barred, document.outcome) == ("no_claim", ("load",), "no_claim")
            assert one.loads is not None
            item = next(item for item in document.checklist if item.code == "load")
            assert (item.section, item.status, item.forbids) == ("6.1", "violated", False)
            low, high = sorted(load for load in one.loads.values if load is not None)
            assert high / low == pytest.approx(2.5)
            for text in (item.message, document.conclusion):
                assert f"{low:.4g}" in text
                assert f"{high:.4g}" in text
            assert "ttft.rates" in (item.advice or "")
            assert "ttft.rates" in document.conclusion


@pytest.mark.parametrize("test", sorted(LEVELS))
def test_loads_that_agree_but_for_a_per_cent_change_nothing(test: str, tmp_path: Path) -> None:
    """As maxima differ that are found for one system: means over repeats, where single ones may be farther apart."""
    a = side(tmp_path / "a", test, (10.0, 10.3, 9.7), 40.0)
    b = side(tmp_path / "b", test, (9.7, 10.2, 10.3), 60.0, 10)
    document = compared(a, b)
    item = next(item for item in document.checklist if item.code == "load")
    assert (item.status, item.message, item.advice) == ("satisfied", "The same.", None)
    one = figure(document, f"{test}.{NAMES[test]}")
    # A knee is known to the next level only, and these are farther apart than the sides are.
    assert one.verdict in (("no_difference",) if test == "tradeoff" else ("better", "worse"))
    assert (one.barred, one.loads) == ((), None)


@pytest.mark.parametrize(("factor", "outcome"), [(1.2, "no_regression"), (0.8, "regression")])
def test_a_maximum_keeps_its_claim_beside_a_latency_at_another_load(
    factor: float, outcome: str, tmp_path: Path
) -> None:
    """The maximum is what moved the load. It decides alone where it is asked for; a loss of it is a regression at any rate; a
    gain beside a latency without a claim is no success."""
    a = side(tmp_path / "a", "ttft", (10.0,) * 3, 40.0, throughput=1_000.0, capacity=64.0)
    b = side(
        tmp_path / "b", "ttft", (10.0 * factor,) * 3, 30.0, 10, throughput=1_000.0 * factor, capacity=64.0
    )
    assert compared(a, b, metrics=("throughput",)).outcome == outcome
    document = compared(a, b)
    assert document.outcome == ("regression" if factor < 1 else "no_claim")
    assert figure(document, "ttft.ttft_p50").verdict == "no_claim"
    assert figure(document, "capacity.max_concurrency").verdict == "no_difference"


def test_a_single_campaign_hints_at_nothing_at_another_load(tmp_path: Path) -> None:
    """The values' own intervals are apart, and are of other loads."""
    a, b = side(tmp_path / "a", "ttft", (10.0,), 40.0), side(tmp_path / "b", "ttft", (4.0,), 60.0, 10)
    conclusion = compared(a, b).conclusion
    assert "differs from A" not in conclusion
    assert "ttft at 50 %: A 5, B 2 requests/s" in conclusion


def test_every_output_names_both_loads(tmp_path: Path) -> None:
    """Beside the figure that has no claim because of them."""
    a, b = side(tmp_path / "a", "itl", (10.0,) * 3, 40.0), side(tmp_path / "b", "itl", (4.0,) * 3, 30.0, 10)
    document = compared(a, b)
    out = io.StringIO()
    console.render(document, Console(file=out, width=100))
    for text in (
        out.getvalue(),
        html.render(document),
        markdown.render(document),
        junit.render(document).decode(),
    ):
        assert "2.500 requests/s of the baseline, 1 of this side" in " ".join(text.split())


RATES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=4)


@given(RATES, RATES)
def test_loads_are_apart_by_their_means_whichever_side_is_the_baseline(
    one: list[float], other: list[float]
) -> None:
    """Law: larger mean / smaller mean - 1 above SHARE; the sides' order does not matter, and a side agrees with itself."""
    sides = [[at_rate("ttft", rate, 1.0) for rate in rates] for rates in (one, other)]
    low, high = sorted(sum(rates) / len(rates) for rates in (one, other))
    found = [apart("ttft", pair, ("level",)) for pair in (sides, sides[::-1])]
    if abs(high / low - 1 - SHARE) > 1e-9:
        assert [load is not None for load in found] == [high / low - 1 > SHARE] * 2
    assert apart("ttft", [sides[0], sides[0]], ("level",)) is None


@pytest.mark.parametrize(
    ("workload", "unit"),
    [
        ({"kind": "sessions"}, "sessions"),
        ({"turns": "4", "kind": "standard"}, "conversations"),
        ({"turns": None}, "requests"),
    ],
)
def test_loads_are_named_by_what_they_count(workload: Mapping[str, Any], unit: str) -> None:
    """Law: a load of sessions or conversations is no load of requests in any sentence about it."""
    sides = [[at_rate("ttft", rate, 1.0, plan={"workload": workload})] for rate in (10.0, 4.0)]
    found = apart("ttft", sides, {"level"})
    assert found is not None
    assert found.of == unit
    assert at_loads(found) == f"ttft at 50 %: A 5, B 2 {unit}/s"


def test_absolute_rates_are_compared_level_by_level() -> None:
    """Without percentages a level is known by its place; levels that one side alone has say nothing."""
    template = simulated().tests[0].runs[0]

    def measured_at(*rates: float) -> list[ProcedureDocument]:
        runs = tuple(replace(template, part="level", at=Conditions(rate=rate)) for rate in rates)
        return [a_test("ttft", {"ttft_p50": 1.0}, runs=runs)]

    assert apart("ttft", [measured_at(1.0, 8.0), measured_at(1.0, 8.0)], ("level",)) is None
    assert apart("ttft", [measured_at(1.0, 8.0), measured_at(1.0)], ("level",)) is None
    found = apart("ttft", [measured_at(1.0, 8.0), measured_at(1.0, 4.0)], ("level",))
    assert found is not None
    assert (found.percent, found.values) == (None, (8.0, 4.0))


def test_a_system_that_carries_less_is_not_better_for_being_measured_at_less(tmp_path: Path) -> None:
    """In virtual time, by the command: a batch of 4 in the place of 32 has less TTFT at half of what it carries itself."""
    flags: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "16"}
    parameters = ["ttft.requests=60", "ttft.percent=[50]"]
    whole = campaign(["ttft"], None, flags, parameters, simulated=True, quick=True)
    for name, batch in (("wide", 32), ("narrow", 4)):
        for number in range(3):
            folder = tmp_path / name / f"{name}-{number}"
            folder.mkdir(parents=True)
            stand = Virtual(Chosen("x", Settings(max_batch=batch, step_base_ns=5e6)), Silent())
            carry_out(repeat_of(whole, number), stand, folder, Silent(), "test")
    code, text, _ = finish("compare", str(tmp_path / "wide"), str(tmp_path / "narrow"))
    assert code == 4
    assert "NO CLAIM" in text
    assert "Measured at absolute loads that differ: ttft at 50 %" in " ".join(text.split())
    mixed = [
        ",".join(str(tmp_path / one) for one in side)
        for side in (("wide/wide-0", "narrow/narrow-1"), ("narrow/narrow-0", "wide/wide-1"))
    ]
    code, text, _ = finish("compare", *mixed)
    assert code == 3
    assert "Campaigns of A differ in sut.notes. Campaigns of B differ in sut.notes" in " ".join(text.split())


def a_side_of(folder: Path, first: int, declared: Sequence[Mapping[str, Any]], **changes: Any) -> str:
    """Campaigns that declare this of their system, one each."""
    sut = simulated().sut
    assert sut is not None
    found = [
        a_campaign(
            first + at,
            at,
            [a_test("throughput", {"max_output_tok_s": 1_000.0 + at})],
            sut=replace(sut, **{"software": "vLLM 0.10", "notes": None, "model": "m", **one}),
            **changes,
        )
        for at, one in enumerate(declared)
    ]
    return saved(folder, found)


@pytest.mark.parametrize(
    ("declared", "kind", "status"),
    [
        ({"software": "SGLang 0.5"}, False, "violated"),
        ({"prefix_caching": "enabled"}, False, "violated"),
        ({"notes": "max_batch 16"}, True, "violated"),
        ({"notes": "on Tuesday"}, False, "unknown"),
        ({"software": None}, False, "unknown"),
        ({"url": "http://other:1"}, False, "satisfied"),
        ({}, False, "satisfied"),
    ],
    ids=["engine", "cache", "settings", "free text", "not declared", "address", "the same"],
)
@pytest.mark.parametrize("mixed", ["A", "B"])
def test_campaigns_of_several_systems_are_no_side(
    declared: dict[str, Any], kind: bool, status: str, mixed: str, tmp_path: Path
) -> None:
    """Their mean is of no system, so nothing is claimed; saying nothing contradicts nothing."""
    usual = {"notes": "max_batch 8" if kind else "on Monday", "prefix_caching": "disabled"}
    several = a_side_of(tmp_path / "s", 0, [usual, usual, usual | declared], simulated=kind)
    one = a_side_of(tmp_path / "o", 10, [usual] * 3, simulated=kind)
    document = compared(*((several, one) if mixed == "A" else (one, several)))
    item = next(item for item in document.checklist if item.code == "one_system")
    assert item.status == status
    assert (document.outcome == "not_comparable") is (status == "violated")
    if status == "violated":
        assert f"Campaigns of {mixed} differ in sut.{next(iter(declared))}" in document.conclusion
        assert {found.verdict for found in document.contrasts[0].figures} == {"not_comparable"}
