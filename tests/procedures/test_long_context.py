"""Draft 5.9 on engines whose prefill is known in closed form, and on scripted answers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures import summaries
from procedures.driving import IDS, Failing, Ran, Silent, carried_out
from procedures.scripted import played
from scipy import stats

from inferometer.errors import PeerError, PlanError, Problem
from inferometer.measure.scaling import Model
from inferometer.plan import procedure_parameters
from inferometer.plan.schema import Plan
from inferometer.procedures.long_context import fitted, results, steps
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Run, Step, runs
from inferometer.run.evaluate import RunResult
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

TARGETS = (8192, 16384, 32768, 65536, 131072)
LINEAR = Settings(jitter=0.0, step_base_ns=2e6, prefill_base_ns=2e6, prefill_per_token_ns=12e3)
QUADRATIC = Settings(
    jitter=0.0, step_base_ns=2e6, prefill_base_ns=2e6, prefill_per_token_ns=12e3, prefill_attention_ns=0.5
)
EIGHT = tuple(1024 * 2**power for power in range(8))


def prefill_ms(engine: Settings, tokens: int) -> float:
    """How long the model of docs/engine.md takes for one prompt with nothing else to do."""
    iterations = math.ceil(tokens / engine.token_budget)
    pairs = tokens * (tokens + 1) / 2
    return (
        iterations * engine.step_base_ns
        + engine.prefill_base_ns
        + tokens * engine.prefill_per_token_ns
        + pairs * engine.prefill_attention_ns
    ) / 1e6


def true_exponent(ran: Ran, engine: Settings) -> float:
    """The slope of the logarithms of the model's own times at the lengths that were sent."""
    tokens = [row["input_tokens"] for row in ran.rows("long-context", "lengths")]
    times = [prefill_ms(engine, one) for one in tokens]
    slope: float = stats.linregress([math.log(one) for one in tokens], [math.log(one) for one in times]).slope
    return slope


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The draft's own sizes: A.5.1's lengths, 20 requests each, 256 tokens of output."""
    return carried_out(tmp_path_factory.mktemp("linear"), "long-context", engine=LINEAR)


@pytest.fixture(scope="module")
def quadratic(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """5.9.2's example, 1K to 128K, with attention."""
    return carried_out(
        tmp_path_factory.mktemp("quadratic"),
        "long-context",
        engine=QUADRATIC,
        tests={"long-context": {"lengths": EIGHT}},
    )


def test_every_length_has_its_requests_and_the_warm_up_is_short_and_verified(linear: Ran) -> None:
    """Draft 5.9.2 and 5.9.3: ascending, 20 requests, 256 tokens, one in flight; 4.5's warm-up on short prompts."""
    document = linear.test("long-context")
    assert [run["part"] for run in document["runs"]] == ["warm-up", *["level"] * len(TARGETS), "again"]
    warm, *levels, again = linear.of("long-context")
    assert again["workload"]["fingerprint"] == levels[0]["workload"]["fingerprint"]
    assert len({level["plan"]["workload"]["seed"] for level in levels}) == len(levels)
    assert warm["requests"]["warmup"]["completed"] >= 100
    assert warm["plan"]["load"]["warmup_probes"] >= 3
    assert warm["metrics"]["input_tokens"]["max"] < 600
    for target, level in zip(TARGETS, levels, strict=True):
        assert level["requests"]["warmup"]["sent"] == 0
        assert level["requests"]["completed"] == level["requests"]["sent"] == 20
        assert level["plan"]["workload"]["based_on"] == "long-context"
        assert level["plan"]["load"]["concurrency"] == 1
        assert level["tokens"]["prompt"]["sent_mean"] == target
        assert level["metrics"]["output_tokens"]["min"] == level["metrics"]["output_tokens"]["max"] == 256


@pytest.mark.parametrize("which", ["linear", "quadratic"])
def test_the_table_says_what_the_model_takes(which: str, request: pytest.FixtureRequest) -> None:
    """Mean, median and P95 of TTFT are the model's prefill to a microsecond; ms per 1K tokens is TTFT / tokens * 1000."""
    ran: Ran = request.getfixturevalue(which)
    engine = {"linear": LINEAR, "quadratic": QUADRATIC}[which]
    rows = ran.rows("long-context", "lengths")
    assert len(rows) == (5 if which == "linear" else 8)
    for row in rows:
        truth = prefill_ms(engine, row["input_tokens"])
        assert row["context"] < row["input_tokens"] < row["context"] + 32  # the chat template
        for name in ("ttft_mean", "ttft_p50", "ttft_p95"):
            assert row[name] == pytest.approx(truth, abs=0.001)
        assert row["ms_per_1k"] == pytest.approx(truth / row["input_tokens"] * 1000)
        # 255 steps of one token follow the first, and nothing else is in the engine
        step_ms = (engine.step_base_ns + engine.step_per_request_ns) / 1e6
        assert row["e2e_mean"] == pytest.approx(truth + 255 * step_ms, abs=0.001)
        # over 18 of 20 answers, of whose first and last the window may cut off a prefill
        assert row["output_tok_s"] == pytest.approx(256 / row["e2e_mean"] * 1000, rel=1 / 18)


def test_a_linear_prefill_is_found_linear(linear: Ran) -> None:
    """Its slope is the cost of a token with its share of an iteration; the best fit is a line with R^2 = 1."""
    assert linear.value("long-context", "best_model") == "linear"
    assert linear.value("long-context", "r_squared") == pytest.approx(1)
    slope_us = (LINEAR.prefill_per_token_ns + LINEAR.step_base_ns / LINEAR.token_budget) / 1e3
    assert linear.value("long-context", "us_per_token") == pytest.approx(slope_us, rel=1e-3)
    # a constant share makes short prompts dearer, so k stays a little below 1
    assert linear.value("long-context", "exponent") == pytest.approx(true_exponent(linear, LINEAR), abs=1e-4)
    assert 0.98 < linear.value("long-context", "exponent") < 1


def test_attention_is_found_quadratic_and_k_is_that_of_the_logarithms(quadratic: Ran) -> None:
    """k is the slope that scipy finds in the model's own times; c of the quadratic fit is half of a pair's cost."""
    assert quadratic.value("long-context", "best_model") == "quadratic"
    fits = {row["model"]: row for row in quadratic.rows("long-context", "fits")}
    assert fits["quadratic"]["c"] == pytest.approx(QUADRATIC.prefill_attention_ns / 2 / 1e6, rel=0.01)
    truth = true_exponent(quadratic, QUADRATIC)
    assert quadratic.value("long-context", "exponent") == pytest.approx(truth, abs=1e-4)


def test_the_fitted_curves_go_through_the_means(quadratic: Ran) -> None:
    """The picture's best curve ends at the measured means of the shortest and the longest context."""
    figure = next(one for one in quadratic.test("long-context")["figures"] if one["name"] == "scaling")
    series = {one["label"]: one for one in figure["series"]}
    mean, curve = series["TTFT mean"], series["quadratic fit"]
    assert figure["x"]["log"]
    assert figure["y"]["log"]
    assert curve["x"][-1] == pytest.approx(mean["x"][-1])
    assert curve["y"][-1] == pytest.approx(mean["y"][-1], rel=0.01)


def test_what_the_model_has_no_room_for_is_left_out(tmp_path: Path) -> None:
    """An engine whose cache holds 20,000 tokens: two lengths of five, and a note; two lengths are no fit."""
    small = Settings(jitter=0.0, kv_blocks=1250, block_tokens=16)
    ran = carried_out(tmp_path, "long-context", engine=small)
    document = ran.test("long-context")
    assert [row["context"] for row in ran.rows("long-context", "lengths")] == [8192, 16384]
    assert document["ended_by"] is None
    note = next(note for note in document["notes"] if note.startswith("Left out"))
    assert "32,768, 65,536, 131,072 tokens" in note
    assert "the model takes 20,000 in all" in note
    assert ran.value("long-context", "exponent") is None
    assert ran.value("long-context", "best_model") is None


def test_a_server_that_falls_over_leaves_the_lengths_before(tmp_path: Path) -> None:
    """The fourth run finds no server: two lengths are reported, and the test says who ended it."""
    ran = carried_out(tmp_path, "long-context", engine=LINEAR, stand=Failing(LINEAR, after=3))
    document = ran.test("long-context")
    assert document["ended_by"] == "server"
    assert document["verdict"]["status"] == "INCONCLUSIVE"
    assert len(ran.rows("long-context", "lengths")) == 2


def _setup(lengths: tuple[int, ...], plan: Plan | None = None) -> Setup:
    return Setup(
        plan or Plan(), procedure_parameters.Tests.model_validate({"long-context": {"lengths": lengths}})
    )


def _answers(cost: Any, room: int = 10**9) -> Any:
    def answer(step: Step) -> Any:
        assert isinstance(step, Run)
        tokens = step.at.context or 512  # the warm-up's
        if tokens > room:
            return PlanError([Problem("--input-tokens", "the model takes less")])
        ttft = summaries.stats(cost(tokens), cost(tokens), n=20)
        return summaries.summary(ttft=ttft, input_tokens=summaries.stats(tokens, tokens, n=20), completed=20)

    return answer


def test_the_drafts_own_table_gives_a_straight_line() -> None:
    """Known vector: draft table 12. Its times give the best fit that it prints, linear; R^2 and slope are 0.9986 and 69.2 us,
    where it prints 0.9987 and 68. Its column of ms per 1K tokens (76, 63, 59, 62, 68) is not TTFT over length, which its text
    defines and which is here."""
    printed = {1024: 89.0, 4096: 289.0, 16384: 1023.0, 65536: 4234.0, 131072: 9123.0}
    setup = _setup(tuple(printed))
    found = results(setup, played(steps(setup), _answers(lambda tokens: printed.get(tokens, 40.0))))
    values = {value.name: value.value for value in found.values}
    assert values["best_model"] == "linear"
    assert values["r_squared"] == pytest.approx(0.9987, abs=2e-4)
    assert values["us_per_token"] == pytest.approx(68, rel=0.02)
    (table,) = (one for one in found.tables if one.name == "lengths")
    rows = [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]
    assert [row["ttft_mean"] for row in rows] == list(printed.values())
    assert [row["ms_per_1k"] for row in rows] == pytest.approx([86.9, 70.6, 62.4, 64.6, 69.6], abs=0.05)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.sets(st.integers(1, 200_000), min_size=1, max_size=9),
    room=st.integers(1, 250_000),
    k=st.floats(0.5, 2.5),
)
def test_lengths_ascend_until_one_has_no_room(lengths: set[int], room: int, k: float) -> None:
    """For any lengths: the longest that fits is the last one measured; a power law's exponent is found where three fit."""
    setup = _setup(tuple(lengths))
    done = played(steps(setup), _answers(lambda tokens: 0.01 * tokens**k, max(room, 512)))
    measured = [one.step.at.context for one in runs(done, "level")]
    assert measured == sorted(length for length in lengths if length <= max(room, 512))
    found = results(setup, done)
    exponent = next(value for value in found.values if value.name == "exponent")
    if len(measured) < 3:
        assert exponent.value is None
        assert exponent.note
    else:
        assert exponent.value == pytest.approx(k, abs=1e-6)
    assert bool(found.undecided) == (not measured)


def test_nothing_measured_yields_empty_tables() -> None:
    """Before the first run there is no number anywhere."""
    found = results(_setup((1024,)), [])
    assert found.undecided
    assert all(not table.rows for table in found.tables)
    assert all(value.value is None for value in found.values)


def test_a_refusal_of_the_warm_up_is_the_plans(tmp_path: Path) -> None:
    """What keeps even short prompts from being sent is no finding about lengths: it is told as any wrong plan is."""
    with pytest.raises(PlanError):
        carried_out(tmp_path, "long-context", engine=Settings(kv_blocks=20, block_tokens=16))


def test_a_stand_that_fails_raises_what_a_server_would() -> None:
    """The harness of the test above."""
    with pytest.raises(PeerError):
        Failing(LINEAR, after=0).measure(Plan(), Path("nowhere"))


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.integers(1, 1_000_000))
def test_a_fitted_value_is_the_correctly_rounded_sum_of_its_terms(
    coefficients: list[float], tokens: int
) -> None:
    """The sum of doubles is rounded once, so the curve has the same digits on every version of Python."""
    terms = [Fraction(one * tokens**power) for power, one in enumerate(coefficients)]
    assert fitted(Model("quadratic", tuple(coefficients), None, None), tokens) == float(sum(terms))


def test_the_maximum_throughput_of_a_length_is_that_of_a_full_engine(tmp_path: Path) -> None:
    """Four slots: full, each iteration of 5 ms writes a token for each. More in flight only
    wait, and with fewer allowed than slots no maximum is seen."""
    engine = Settings(
        jitter=0.0,
        step_base_ns=5e6,
        step_per_request_ns=0,
        prefill_base_ns=0,
        prefill_per_token_ns=0,
        max_batch=4,
    )
    sizes = {"lengths": [64], "requests": 200, "output_tokens": 64, "search": True}
    whole, cut_short = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut_short.mkdir()
    ran = carried_out(whole, "long-context", engine=engine, plan=IDS, tests={"long-context": sizes})
    (row,) = ran.rows("long-context", "maxima")
    assert not any("no maximum was looked for" in note for note in ran.test("long-context")["notes"])
    truth = 4 / (engine.step_base_ns / 1e9)
    assert row["max_output_tok_s"] == pytest.approx(truth, rel=0.05)
    assert row["concurrency"] >= 4
    cut = carried_out(
        cut_short,
        "long-context",
        engine=engine,
        plan=IDS,
        tests={"long-context": sizes | {"most_in_flight": 2}},
    )
    (row,) = cut.rows("long-context", "maxima")
    assert row["max_output_tok_s"] is None
    assert any("No maximum throughput" in note for note in cut.test("long-context")["undecided"])


@pytest.mark.parametrize(("factor", "drifts"), [(1.0, False), (1.04, False), (1.1, True), (0.9, True)])
def test_a_system_that_is_another_at_the_end_leaves_the_test_undecided(
    tmp_path: Path, factor: float, drifts: bool
) -> None:
    """Law: by the first length, made again with the same requests; the exponent is of the lengths alone."""

    class Drifting(Virtual):
        def measure(self, plan: Plan, out: Path) -> RunResult:
            usual = self._engine
            if plan.name.endswith("again"):
                times = {
                    name: getattr(LINEAR, name) * factor for name in ("step_base_ns", "prefill_per_token_ns")
                }
                self._engine = Chosen("tiny-cpu", replace(LINEAR, jitter=0.02, **times))
            try:
                return super().measure(plan, out)
            finally:
                self._engine = usual

    stand = Drifting(Chosen("tiny-cpu", replace(LINEAR, jitter=0.02)), Silent())
    sizes = {"long-context": {"lengths": (1024, 2048, 4096), "output_tokens": 4}}
    found = carried_out(tmp_path, "long-context", plan=IDS, tests=sizes, stand=stand).test("long-context")
    assert ("the system changed during the test" in " ".join(found["undecided"])) is drifts
    assert len(found["tables"][0]["rows"]) == 3
