"""Scheduling Fairness (draft 5.6): at its full size, on an engine without contention and on one with head-of-line blocking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from procedures.alone import Alone, Floats, alone
from procedures.driving import IDS, Silent, carried_out
from procedures.summaries import simulated
from pydantic import ValidationError

from benchmarks.headlines.fairness import ONE_AT_A_TIME
from inferometer.errors import PeerError
from inferometer.measure.length_cost import by_length, cost_of
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures import fairness
from inferometer.procedures.setup import Setup, workload_key
from inferometer.procedures.step import KnownLimits, Measured, Run
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

PER_TOKEN_MS = 0.0005
FREE = Settings(
    jitter=0,
    step_base_ns=250,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=PER_TOKEN_MS * 1e6,
    draft_tokens=15,
    acceptance=1,
)
"""Sixteen tokens a step, so that there are few steps to simulate.
TTFT is a step and the prompt's tokens; at a request in 5 s nobody meets another, whose prompt takes 2 ms at most."""
BLOCKED = Settings(
    jitter=0,
    max_batch=4,
    step_base_ns=5_000_000,
    prefill_base_ns=0,
    prefill_per_token_ns=200_000,
    chunked_prefill=False,
    token_budget=8192,
)
"""Four places, and a prompt is computed whole: who comes behind a long one waits 0.2 to 0.8 s for it."""
CLASSES = {"short": ((64, 256), (32, 128)), "long": ((1024, 4096), (256, 1024))}


def mix_of(tests: Tests, plan: Plan = IDS) -> Plan:
    return fairness.mix(Setup(plan, tests))


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """At the draft's size, at a request in 5 s."""
    return alone(tmp_path_factory.mktemp("free"), "fairness", FREE, mix_of(Tests()), 0.25, plan=IDS)


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """At the draft's size, near what the engine carries."""
    return alone(tmp_path_factory.mktemp("blocked"), "fairness", BLOCKED, mix_of(Tests()), 2.0, plan=IDS)


def conditional(mu: float, sigma: float, low: int, high: int) -> tuple[Floats, Floats]:
    """Token counts and their chances: the log-normal rounded, given that it lies within the bounds."""
    cdf = NormalDist(mu, sigma).cdf
    edges = [cdf(math.log(low - 0.5 + step)) for step in range(high - low + 2)]
    chance = np.array([b - a for a, b in pairwise(edges)])
    return np.arange(low, high + 1, dtype=float), chance / chance.sum()


@pytest.mark.parametrize("name", ["free", "blocked"])
def test_each_class_stays_within_its_ranges_and_has_its_requests(
    name: str, request: pytest.FixtureRequest
) -> None:
    """At least 500 requests of each class, at least 300 s of mix, 80 % of them short; every length within its class's range."""
    ran: Alone = request.getfixturevalue(name)
    mixed = ran.of("mixed")
    record = ran.record(mixed)
    assert (mixed.step.plan.load.duration_s or 0) >= 300
    for number, (prompts, answers) in enumerate(CLASSES.values()):
        mine = record["request_class"] == number
        assert mine.sum() >= 500
        for column, (low, high) in (("input_tokens_asked", prompts), ("output_tokens_asked", answers)):
            assert low <= record[column][mine].min() <= record[column][mine].max() <= high
    short = (record["request_class"] == 0).mean()
    assert abs(short - 0.8) < 4 * math.sqrt(0.16 / len(record["ttft"]))
    assert [row["count"] for row in ran.rows("classes")] == [
        int((record["request_class"] == number).sum()) for number in (0, 1)
    ]


def test_isolated_runs_offer_the_same_tokens_a_second(free: Alone) -> None:
    """Rate times the mean of input and output tokens is that of the mix, by the exact means of the conditional log-normals."""
    means = []
    for prompts, answers in CLASSES.values():
        sides = (conditional(5.5, 1.0, *prompts), conditional(4.5, 1.2, *answers))
        means.append(sum(float(tokens @ chance) for tokens, chance in sides))
    mixed = free.of("mixed").step.at.rate
    assert mixed == pytest.approx(0.25 * 0.8)
    whole = 0.2 * (0.8 * means[0] + 0.2 * means[1])
    for (name, mean), row in zip(zip(CLASSES, means, strict=True), free.rows("isolated"), strict=True):
        rate = free.of("isolated", class_name=name).step.at.rate
        assert float(rate or 0) * mean == pytest.approx(whole, rel=1e-3)
        assert (row["rate"], row["tokens"]) == (rate, pytest.approx(whole, rel=1e-3))
        assert row["count"] >= 500


@pytest.mark.parametrize("name", ["free", "blocked"])
def test_what_rests_on_ttft_has_an_interval(name: str, request: pytest.FixtureRequest) -> None:
    """Jain's indices, slowdowns and inflations: each interval holds its value, and none passes an index's bounds."""
    ran: Alone = request.getfixturevalue(name)
    intervals = {one.name: (one.value, one.ci) for one in ran.results.values if one.ci is not None}
    of_classes = {f"{figure}_{which}" for figure in ("slowdown", "inflation") for which in CLASSES}
    assert intervals.keys() == {"jain", "jain_alone"} | of_classes
    for figure, (value, ci) in intervals.items():
        assert ci is not None
        assert 0 <= ci[0] <= float(value or 0) <= ci[1]
        assert ci[1] <= 1 or not figure.startswith("jain")


def truth(ran: Alone) -> dict[str, Any]:
    """J, starvation and inflation out of the records alone."""
    record = ran.record(ran.of("mixed"))
    found: dict[str, Any] = {}
    shares = []
    for number, name in enumerate(CLASSES):
        lone = ran.record(ran.of("isolated", class_name=name))["ttft"]
        mine = record["ttft"][record["request_class"] == number]
        isolated = ran.record(ran.of("isolated", class_name=name))
        cost = cost_of(by_length(isolated["usage_input"], isolated["ttft"]))
        assert cost is not None
        lengths = record["usage_input"][record["request_class"] == number]
        shares.append(mine / np.array([cost.ms(one) for one in lengths]))
        found[f"slowdown_{name}"] = shares[-1].mean()
        found[f"starvation_{name}"] = 100 * float((mine > 5 * np.median(mine)).mean())
        found[f"against_{name}"] = 100 * float((mine > 5 * np.median(lone)).mean())
        found[f"inflation_{name}"] = {
            "mean": mine.mean() / lone.mean(),
            **{f"p{p}": np.percentile(mine, p) / np.percentile(lone, p) for p in (50, 95, 99)},
        }
    x = np.concatenate(shares)
    per_token = record["e2e"] / record["usage_output"]
    found["jain"] = x.sum() ** 2 / (len(x) * (x**2).sum())
    found["jain_e2e"] = per_token.sum() ** 2 / (len(per_token) * (per_token**2).sum())
    return found


@pytest.mark.parametrize("name", ["free", "blocked"])
def test_every_figure_is_that_of_the_records(name: str, request: pytest.FixtureRequest) -> None:
    """J and starvation as the formulas have them, worked out here from requests.parquet; percentiles by either rule."""
    ran: Alone = request.getfixturevalue(name)
    true = truth(ran)
    assert ran.value("jain") == pytest.approx(true["jain"], abs=0.002)  # prompts are grouped by length
    assert ran.value("jain_e2e") == pytest.approx(true["jain_e2e"], rel=1e-6)
    metrics = {row["metric"]: row["value"] for row in ran.rows("fairness")}
    for label, row in zip(CLASSES, ran.rows("inflation"), strict=True):
        title = label.capitalize()
        assert ran.value(f"slowdown_{label}") == pytest.approx(true[f"slowdown_{label}"], rel=0.005)
        assert ran.value(f"starvation_{label}") == pytest.approx(true[f"starvation_{label}"], abs=1e-9)
        against = metrics[f"{title} Class Starvation against its median alone"]
        assert against == pytest.approx(true[f"against_{label}"], abs=1.0)
        for statistic, value in true[f"inflation_{label}"].items():
            assert row[statistic] == pytest.approx(value, rel=0.03 if statistic == "p99" else 0.01)
    assert metrics["Jain's Fairness Index"] == ran.value("jain")


def test_without_contention_the_index_is_that_of_a_fair_engine(free: Alone) -> None:
    """TTFT = a + b tokens, whoever asks: what lengths cost is no unfairness. No inflation, next to no starvation."""
    assert free.value("jain") > 0.98
    assert free.value("jain_alone") > 0.98
    assert free.value("jain_classes") > 0.999
    for name in CLASSES:
        assert free.value(f"inflation_{name}") == pytest.approx(1, abs=0.1)
        assert free.value(f"slowdown_{name}") == pytest.approx(1, abs=0.01)
        assert free.value(f"starvation_{name}") < 0.5
    assert {note.code for note in free.results.notes} == {"mix_offered", "classes_drawn"}


def planted(
    folder: Path, policy: str, lengths: Sequence[tuple[int, int]], percent: float = 90, plan: Plan = IDS
) -> Alone:
    """One prompt at a time, so that a class's share of the engine is known: 100 % is where prompts take all of its time. The
    first class is served whenever any of it waits, with the policy `priority`."""
    classes = [
        {
            "name": name,
            "input_tokens": prompt,
            "output_tokens": (16, 32),
            "share": share,
            "priority": priority,
        }
        for name, prompt, share, priority in zip(
            ("first", "second"), lengths, (0.8, 0.2), (0, 1), strict=True
        )
    ]
    tests = Tests.model_validate({"fairness": {"classes": classes, "percent": percent}})
    means = [one.lengths[0].mean() for one in tests.fairness.classes]
    full = 1e9 / (
        ONE_AT_A_TIME.prefill_per_token_ns * (0.8 * means[0] + 0.2 * means[1])
        + 2 * ONE_AT_A_TIME.step_base_ns
    )
    return alone(
        folder,
        "fairness",
        replace(ONE_AT_A_TIME, policy=policy),
        mix_of(tests, plan),
        full,
        {"fairness": tests.fairness.model_dump()},
        plan,
    )


def test_priority_to_short_requests_is_found(tmp_path: Path) -> None:
    """Long requests wait for every short one: the class behind is named, and the index is below 0.9."""
    ran = planted(tmp_path, "priority", [(128, 256), (256, 512)], 95, Plan())
    notes = {note.code: note.facts for note in ran.results.notes}
    assert ran.value("jain") < 0.9
    assert notes["class_behind"]["class"] == "Second"
    assert "significantly_unfair" in notes


def test_a_class_that_overloads_the_system_alone_gives_no_reading(tmp_path: Path) -> None:
    """One answer at a time, in steps of 20 ms: short requests alone, at the mix's tokens a second, are more than the engine
    makes. The test is undecided, and blames nobody."""
    slow = replace(ONE_AT_A_TIME, step_base_ns=20_000_000, prefill_per_token_ns=10_000)
    tests = Tests.model_validate({"fairness": {"duration_s": 60, "requests_per_class": 60}})
    ran = alone(
        tmp_path, "fairness", slow, mix_of(tests), 9.0, {"fairness": tests.fairness.model_dump()}, IDS
    )
    assert [(note.code, note.facts["class"]) for note in ran.results.undecided] == [
        ("class_alone_overloaded", "short")
    ]
    codes = {note.code for note in ran.results.notes}
    assert not codes & {"significantly_unfair", "unfair_alone", "class_behind", "class_starved"}
    [index] = [one for one in ran.results.values if one.name == "jain"]
    assert index.note is not None
    assert index.note.code == "isolated_overloaded"


def test_a_class_that_may_overload_the_system_alone_gives_no_reading_either(tmp_path: Path) -> None:
    """Law: five per cent more than the engine makes is a queue of 30 and more from the first third on, though completions seem
    to keep up: the cost of its prompts is not known, and no figure that rests on it has a reading."""
    slow = replace(ONE_AT_A_TIME, step_base_ns=20_000_000, prefill_per_token_ns=10_000)
    tests = Tests.model_validate({"fairness": {"duration_s": 60, "requests_per_class": 60}})
    ran = alone(
        tmp_path, "fairness", slow, mix_of(tests), 6.5, {"fairness": tests.fairness.model_dump()}, IDS
    )
    short = ran.of("isolated", class_name="short").outcome.summary.steady
    assert short is not None
    assert short.queue is not None
    assert min(short.queue.thirds) > 30
    assert short.completion_ratio_ci95 is not None
    assert short.completion_ratio_ci95[1] > 1
    assert [(note.code, note.facts["class"]) for note in ran.results.undecided] == [
        ("class_alone_unsettled", "short")
    ]
    rests = ("jain", "jain_alone", "jain_classes", "slowdown_short", "inflation_long")
    notes = {one.name: one.note for one in ran.results.values}
    assert {note.code for name in rests if (note := notes[name]) is not None} == {"isolated_overloaded"}
    assert all(notes[name] is not None for name in rests)


def test_a_class_that_starves_is_found(tmp_path: Path) -> None:
    """Two classes of the same requests: in turn they meet the same; with priority to one the other is named, and starves."""
    fair, unfair = (
        planted(tmp_path / policy, policy, [(256, 1024), (256, 1024)]) for policy in ("fcfs", "priority")
    )
    assert fair.value("slowdown_first") == pytest.approx(fair.value("slowdown_second"), rel=0.2)
    notes = {note.code: note.facts for note in unfair.results.notes}
    assert "significantly_unfair" not in {note.code for note in fair.results.notes}
    assert unfair.value("jain") < fair.value("jain") - 0.1
    assert "significantly_unfair" in notes
    assert notes["class_behind"]["class"] == "Second"


def test_head_of_line_blocking_shows(blocked: Alone, free: Alone) -> None:
    """Short requests wait behind long prompts, long ones gain: J falls, and the tail of the short ones grows."""
    assert blocked.value("jain") < min(0.5, blocked.value("jain_alone") - 0.1, free.value("jain") - 0.2)
    assert blocked.value("starvation_short") > 5
    short, long = blocked.rows("inflation")
    assert short["p99"] > 1.5
    assert long["mean"] < short["mean"]
    assert "significantly_unfair" in {note.code for note in blocked.results.notes}


def test_results_come_of_whatever_was_done(blocked: Alone) -> None:
    """After any number of steps: what is missing is named or left out, and never 0."""
    for count in range(len(blocked.done)):
        found = fairness.results(blocked.setup, blocked.done[:count])
        assert found.undecided
        assert not found.values
    assert not blocked.results.undecided
    one_alone = [one for one in blocked.done if one.step.at.class_name != "long"]  # type: ignore[union-attr]
    values = {one.name: one.value for one in fairness.results(blocked.setup, one_alone).values}
    assert (values["jain"], values["inflation_long"]) == (None, None)
    assert values["inflation_short"] == blocked.value("inflation_short")


def test_the_duration_follows_from_the_rarest_class() -> None:
    """A class of 2 % at 1 request/s needs 25,000 s and what chance may take; a mix that is quick enough lasts its 300 s."""
    for rate, least, most in ((1.0, 25_000, 31_000), (1_000.0, 300, 300)):
        classes = [
            {"name": "a", "input_tokens": [64, 256], "output_tokens": [32, 128], "share": 0.98},
            {
                "name": "b",
                "input_tokens": [1024, 4096],
                "output_tokens": [256, 1024],
                "share": 0.02,
                "priority": 9,
            },
        ]
        tests = Tests.model_validate({"fairness": {"classes": classes, "percent": 100}})
        setup = Setup(IDS, tests, KnownLimits({workload_key(mix_of(tests)): rate}))
        steps = fairness.steps(setup)
        asked, came = [], None
        for _ in range(3):
            step = steps.send(came)
            assert isinstance(step, Run)
            asked.append(step)
            came = Measured("run", simulated())
        assert [step.part for step in asked] == ["isolated", "isolated", "mixed"]
        assert least <= (asked[-1].plan.load.duration_s or 0) <= most
        assert [one.priority for one in asked[-1].plan.workload.classes] == [None, 9]
        assert [bool(step.plan.load.warmup) for step in asked] == [True, False, False]


@pytest.mark.parametrize(
    "classes",
    [
        [("a", (256, 64), (32, 128)), ("b", (1, 2000), (1, 2000))],
        [("a", (64, 256), (32, 128)), ("a", (1, 2000), (1, 2000))],
        [("a", (900_000, 1_000_000), (32, 128)), ("b", (1, 2000), (1, 2000))],
    ],
)
def test_classes_that_cannot_be_drawn_are_refused(classes: list[Any]) -> None:
    """Ends the wrong way round, a name twice, a range that Synthetic-Skewed does not reach: before anything is sent."""
    given = [
        dict(zip(("name", "input_tokens", "output_tokens"), one, strict=True), share=0.5) for one in classes
    ]
    with pytest.raises(ValidationError):
        Tests.model_validate({"fairness": {"classes": given}})


def test_a_server_that_falls_over_leaves_a_partial_test(tmp_path: Path) -> None:
    """The pilot is carried out, then nothing answers: ended by the server, inconclusive, with a document."""

    class Falls(Virtual):
        def __init__(self) -> None:
            super().__init__(Chosen("tiny-cpu", Settings()), Silent())
            self.left = 1

        def measure(self, plan: Plan, out: Path) -> Any:
            """Once."""
            self.left -= 1
            if self.left < 0:
                raise PeerError("the server is gone")
            return super().measure(plan, out)

    found = carried_out(tmp_path, "fairness", quick=True, stand=Falls()).test("fairness")
    assert (found["ended_by"], found["verdict"]["status"]) == ("server", "INCONCLUSIVE")
    assert len(found["runs"]) == 1
    assert found["undecided"]
