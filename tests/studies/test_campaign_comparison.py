"""Campaigns compared: planted differences are found in their direction, and nothing else; what cannot be claimed is not."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import junit_schema
import numpy as np
import pytest
from campaigns import simulated
from commands import finish
from msgspec.structs import replace
from planted_campaigns import NAMES, Values, a_campaign, a_test, compared, figure, saved
from procedures.driving import Silent
from rich.console import Console

from inferometer.documents.campaign import (
    ProcedureVerdict,
)
from inferometer.documents.note import WordedNote
from inferometer.documents.part import to_data, to_json
from inferometer.documents.schemas.__main__ import generated
from inferometer.errors import PlanError, RecordError
from inferometer.judge.comparison.campaign_figures import HEADLINES, KINDS
from inferometer.judge.comparison.campaigns import CampaignCriteria, Repeat, compare_campaigns
from inferometer.judge.comparison.differences import of_two
from inferometer.plan.campaign import campaign
from inferometer.report.campaign.comparison import console, html, junit, markdown
from inferometer.report.campaign.redaction import redact
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.campaign_comparison import read
from inferometer.studies.repeats import repeat_of
from inferometer.studies.stand import Virtual

LESS = {"ttft", "itl", "long-context", "guardrail", "cold-start"}
"""Tests of latencies and times: less is better."""


def side(
    folder: Path, values: Values, factor: float = 1.0, *, seeds: int = 3, first: int = 0, **changes: Any
) -> str:
    """Campaigns of a system whose values are these times `factor`, with 0.5 % of chance."""
    chance = np.random.default_rng([first, seeds])
    found = [
        a_campaign(
            first + at,
            at + 1,
            [
                a_test(
                    name,
                    {key: one * factor * (1 + 0.005 * chance.normal()) for key, one in test.items()},
                    **changes,
                )
                for name, test in values.items()
            ],
        )
        for at in range(seeds)
    ]
    return saved(folder, found)


@pytest.mark.parametrize("test", sorted(NAMES))
def test_each_headline_is_better_in_its_own_direction(test: str, tmp_path: Path) -> None:
    """Half as much again of a latency or a time is worse, of anything else better; and the other way round."""
    values = {test: {NAMES[test]: 40.0}}
    a, b = side(tmp_path / "a", values), side(tmp_path / "b", values, 1.5, first=10)
    for sides, more in (((a, b), True), ((b, a), False)):
        document = compared(*sides)
        wanted = "worse" if (test in LESS) is more else "better"
        assert figure(document, f"{test}.{NAMES[test]}").verdict == wanted
        assert document.outcome == ("regression" if wanted == "worse" else "no_regression")


def test_every_test_of_the_draft_has_figures_and_one_that_stands_for_it() -> None:
    """The catalogue names all tests, and each headline is a figure that is compared."""
    assert set(KINDS) == set(HEADLINES) == set(NAMES)
    for test, name in NAMES.items():
        assert any(kind.matches(name) for kind in KINDS[test])


VALUES: Values = {
    "throughput": {"max_output_tok_s": 1_600.0, "max_request_s": 10.0},
    "ttft": {"ttft_p50": 36.0, "ttft_p99": 60.0},
    "capacity": {"max_concurrency": 64.0},
}


def test_a_system_is_not_told_from_itself(tmp_path: Path) -> None:
    """Law of Holm's correction: of 60 comparisons of a system with itself in three deciding figures, about 5 % or fewer find a
    difference."""
    read_one = read(next(Path(side(tmp_path, VALUES, seeds=1)).glob("*/campaign.json")))
    chance, found = np.random.default_rng(3), 0

    def drawn(seed: int) -> Repeat:
        tests = [
            a_test(name, {key: one * (1 + 0.02 * chance.normal()) for key, one in test.items()})
            for name, test in VALUES.items()
        ]
        document = replace(read_one.document, tests=tuple(tests))
        return Repeat(dataclasses.replace(read_one.facts, seed=seed), document, {})

    for _ in range(60):
        sides = [[drawn(seed) for seed in range(3)] for _ in range(2)]
        figures = compare_campaigns(sides, CampaignCriteria()).contrasts[0]
        found += any(one.verdict in ("better", "worse") for one in figures if one.deciding)
    assert found <= 6


def test_threshold_and_noise_floor_hold_a_small_difference(tmp_path: Path) -> None:
    """6 % is found; below the threshold, or below what A/A campaigns differ, nothing is claimed."""
    a, b = side(tmp_path / "a", VALUES, seeds=5), side(tmp_path / "b", VALUES, 1.06, first=10, seeds=5)
    again = side(tmp_path / "again", VALUES, 1.1, first=20, seeds=5)
    assert figure(compared(a, b), "ttft.ttft_p50").verdict == "worse"
    assert figure(compared(a, b, threshold=10.0), "ttft.ttft_p50").verdict == "no_difference"
    noisy = compared(a, b, noise=(again,))
    assert figure(noisy, "ttft.ttft_p50").held == ("noise",)
    assert "ttft.ttft_p50" in noisy.method.noise_moves


def test_single_campaigns_claim_nothing_and_say_what_their_intervals_hint_at(tmp_path: Path) -> None:
    """Draft 6.3: at least three; the change has the interval of the values' own."""
    a, b = side(tmp_path / "a", VALUES, seeds=1), side(tmp_path / "b", VALUES, 1.1, first=10, seeds=1)
    document = compared(a, b)
    assert document.outcome == "no_claim"
    assert "--repeats 3" in document.conclusion
    differing = document.conclusion.partition("B differs from A in ")[2]
    assert all(f"{test}: " in differing for test in VALUES)
    one = figure(document, "ttft.ttft_p50")
    assert one.own is not None
    assert one.relative is not None
    assert one.own[0] < one.relative < one.own[1]
    assert (one.verdict, one.test) == ("no_claim", None)


def test_the_interval_of_a_difference_is_as_far_off_as_both_values_are() -> None:
    """MOVER: with equal symmetric intervals the root of two as wide; a certain value adds nothing."""
    low, high = of_two(10.0, 12.0, ((9.0, 11.0), (11.0, 13.0)))
    assert (low, high) == pytest.approx((2 - 2**0.5, 2 + 2**0.5))
    assert of_two(10.0, 12.0, ((10.0, 10.0), (11.5, 14.0))) == pytest.approx((1.5, 4.0))


BOUND = WordedNote("capacity_above_maximum", {}, True, "The capacity lies above.")


@pytest.mark.parametrize(
    ("changes", "bar", "outcome"),
    [
        ({"verdict": ProcedureVerdict("INVALID", ())}, "invalid", "invalid"),
        ({"ended_by": "server"}, "partial", "no_claim"),
        ({"undecided": (BOUND,)}, "bound", "no_claim"),
        ({"parameters": {"duration_s": 5}}, "parameters", "not_comparable"),
    ],
    ids=["invalid", "partial", "bound", "parameters"],
)
def test_what_cannot_be_claimed_says_why(
    changes: dict[str, Any], bar: str, outcome: str, tmp_path: Path
) -> None:
    """However large the difference is, nothing is called better or worse."""
    values = {"capacity": {"max_concurrency": 64.0}}
    a, b = side(tmp_path / "a", values), side(tmp_path / "b", values, 2.0, first=10, **changes)
    document = compared(a, b)
    one = figure(document, "capacity.max_concurrency")
    assert one.barred == (bar,)
    assert one.verdict in ("no_claim", "not_comparable")
    assert document.outcome == outcome


def test_a_level_is_known_to_the_next_level_only(tmp_path: Path) -> None:
    """Three campaigns that all stop at 64 and three at 65 differ by the luck of a step, where 65 was the next level."""
    template = next(test for test in simulated().tests if test.test == "capacity").runs[0]
    runs = tuple(replace(template, at=replace(template.at, concurrency=level)) for level in (64, 65))  # type: ignore[type-var]
    sides = [
        saved(
            tmp_path / name,
            [
                a_campaign(
                    first + at,
                    at,
                    [a_test("capacity", {"max_concurrency": level}, runs=runs)],
                    simulated=False,
                )
                for at in range(3)
            ],
        )
        for name, level, first in (("a", 64.0, 0), ("b", 65.0, 10))
    ]
    one = figure(compared(*sides), "capacity.max_concurrency")
    assert (one.verdict, one.held) == ("no_difference", ("noise",))


def test_a_test_that_the_candidate_left_out_is_no_success(tmp_path: Path) -> None:
    """A gate must not pass by measuring less; a test of the candidate alone is listed; --metric says what matters."""
    less = {"ttft": VALUES["ttft"]}
    a, b = side(tmp_path / "a", VALUES), side(tmp_path / "b", less, first=10)
    document = compared(a, b)
    assert document.outcome == "no_claim"
    assert set(document.method.unmatched) == {"throughput", "capacity"}
    assert compared(b, a).outcome == "no_regression"
    assert compared(a, b, metrics=("ttft",)).outcome == "no_regression"
    assert compared(a, b, metrics=("ttft.ttft_p99",)).method.deciding == ("ttft.ttft_p99",)


def test_quick_against_full_other_seeds_and_simulations_are_refused(tmp_path: Path) -> None:
    """6.1: the same requests under the same load; and a simulation is no measurement."""
    a = side(tmp_path / "a", VALUES)
    kinds = {
        "size": {"quick": not simulated().quick},
        "one_kind": {"simulated": True},
        "workload": {},
    }
    for number, (item, changes) in enumerate(kinds.items(), start=1):
        seeds = range(10, 13) if item == "workload" else range(1, 4)
        tests = [a_test(name, values) for name, values in VALUES.items()]
        other = saved(
            tmp_path / item, [a_campaign(20 * number + seed, seed, tests, **changes) for seed in seeds]
        )
        document = compared(a, other)
        assert document.outcome == "not_comparable"
        assert [one.code for one in document.checklist if one.forbids] == [item]
        assert not any("--interleave" in (one.advice or "") for one in document.checklist)


def test_throughput_is_normalised_by_price_where_hardware_differs(tmp_path: Path) -> None:
    """Draft 6.2: twice as many tokens at three times the price are worse."""
    sut = simulated().sut
    assert sut is not None
    sides = []
    for name, gpu, factor, first in (("a", "L4", 1.0, 0), ("b", "H100", 2.0, 10)):
        declared = replace(sut, accelerator=gpu, accelerator_count=1)
        found = [
            a_campaign(
                first + at,
                at,
                [a_test("throughput", {"max_output_tok_s": 1_000 * factor * (1 + 0.001 * at)})],
                sut=declared,
            )
            for at in range(3)
        ]
        sides.append(saved(tmp_path / name, found))
    document = compared(*sides, prices=("A=1", "B=3"), price_source="a list")
    assert document.method.deciding == ("throughput.output_tok_dollar_h",)
    assert document.outcome == "regression"
    assert document.sides[1].tokens_per_dollar == pytest.approx(2_002 / 3 * 3_600)


def test_what_is_no_campaign_or_counts_twice_is_refused(tmp_path: Path) -> None:
    """A redacted campaign, a figure that does not exist, a copy, a folder without any."""
    a, b = side(tmp_path / "a", VALUES), side(tmp_path / "b", VALUES, first=10)
    tests = [a_test(name, values) for name, values in VALUES.items()]
    hidden = saved(tmp_path / "hidden", [redact(a_campaign(50, 1, tests), "capacity")])
    with pytest.raises(RecordError, match="redacted"):
        compared(a, hidden)
    for sides, asked, message in (
        ((a, b), {"metrics": ("ttft.speed",)}, "no figure of a test"),
        ((a, b), {"metrics": ("itl",)}, "did not carry that test out"),
        ((a, a), {}, "named twice"),
        ((a,), {}, "name a baseline"),
    ):
        with pytest.raises(PlanError, match=message):
            compared(*sides, **asked)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="neither a campaign"):
        compared(a, str(tmp_path / "empty"))


@pytest.mark.parametrize("width", [40, 80, 160])
def test_every_output_says_the_same(width: int, tmp_path: Path) -> None:
    """Document by its schema, console within its width, Markdown, JUnit by CI systems' schema, and a page without network."""
    a, b = side(tmp_path / "a", VALUES), side(tmp_path / "b", VALUES, 1.5, first=10)
    document = compared(a, b, threshold=1.0)
    jsonschema.validate(json.loads(to_json(document)), json.loads(generated("campaign-comparison")))
    out = io.StringIO()
    console.render(document, Console(file=out, width=width))
    assert max(map(len, out.getvalue().splitlines())) <= width
    page = html.render(document)
    for text in (out.getvalue(), markdown.render(document), page):
        assert "REGRESSION" in text
        assert "WORSE" in text
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert junit_schema.problems(junit.render(document)) == []


def test_a_slower_engine_is_found_in_virtual_time_and_the_same_engine_is_not(tmp_path: Path) -> None:
    """Three quick repeats a side, of an engine and of one that is 6 % slower: by the command, with its exit codes."""
    flags: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "8", "--rate": "10"}
    whole = campaign(["ttft"], None, flags, ["ttft.requests=60"], simulated=True, quick=True)
    for name, factor in (("old", 1.0), ("same", 1.0), ("slow", 1.06)):
        costs = Settings(step_base_ns=5e6 * factor, prefill_base_ns=8e6 * factor)
        for number in range(3):
            folder = tmp_path / name / f"{name}-{number}"
            folder.mkdir(parents=True)
            carry_out(
                repeat_of(whole, number), Virtual(Chosen("x", costs), Silent()), folder, Silent(), "test"
            )
    files = {kind: tmp_path / f"found.{kind}" for kind in ("html", "markdown", "junit")}
    written = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    old, same, slow = (str(tmp_path / name) for name in ("old", "same", "slow"))
    code, text, _ = finish("compare", old, slow, *written, COLUMNS="60")
    assert code == 6
    assert "worse in ttft: TTFT P50" in " ".join(text.split())
    assert all(path.is_file() for path in files.values())
    code, text, _ = finish("compare", old, same, "--json")
    assert code == 0
    assert json.loads(text) == to_data(compared(old, same))
    one = f"{old}/old-0/campaign.json"
    assert finish("compare", one, f"{slow}/slow-0")[0] == 4
