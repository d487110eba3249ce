"""Draft 5.4: tables out of summaries, and gaps in virtual time whose truth follows from the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from procedures.driving import Silent
from procedures.modelled import System, carried, results, rows, summary, value
from procedures.summaries import changed, stats

from inferometer.documents.note import Note
from inferometer.documents.summary import Summary
from inferometer.measure.itl_shape import ItlShape
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup, variant, workload_key
from inferometer.procedures.step import KnownLimits, PerformedRun, runs
from inferometer.report.campaign.notes import worded
from inferometer.report.campaign.titles import headline_of
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.procedure_document import values as reported
from inferometer.studies.stand import Virtual

BASE = 10.0


def asked(plan: Plan | None = None, base: float = BASE, **parameters: Any) -> Setup:
    """The saturation rate is known already."""
    plan = plan or Plan()
    lengths = {name: parameters[name] for name in ("output_tokens",) if name in parameters}
    known = KnownLimits(saturation={workload_key(variant(plan, workload=lengths)): base})
    return Setup(plan, Tests.model_validate({"itl": parameters}), known)


def gaps(short: int = 0, answers: int = 1_000, method: str = "direct") -> System:
    """Answers of 101 tokens, and some that are short."""

    def answer(plan: Plan) -> Summary:
        shape = ItlShape(
            least_output_tokens=50,
            answers=answers,
            short_answers=short,
            short_share=short / (answers + short),
            itl_ms=stats(10.0, 40.0, n=100 * answers),
            jitter_ms=stats(3.0, 9.0, n=answers),
            max_pause_ms=stats(41.0, 81.0, n=answers),
            modes_ms=(10.2, 40.6),
            modality="multimodal",
            tail_ratio=4.0,
            tail="exponential or lighter",
        )
        rate = plan.load.rate or 0.0
        return summary(plan, request_s=rate, shape=shape, itl_method=method, single=0.5, per_event=1.8)

    return answer


def test_levels_are_shares_of_saturation_in_open_loop() -> None:
    done = carried("itl", asked(), gaps())
    plans = [one.step.plan for one in runs(done, "level")]
    assert [plan.load.rate for plan in plans] == [2.5, 5, 7.5, 9]
    assert {(plan.load.model, plan.load.requests, plan.load.duration_s) for plan in plans} == {
        ("open", 1_000, None)
    }
    assert [one.step.part for one in runs(done)] == ["warm-up"] + ["level"] * 4
    assert [one.step.plan.load.warmup_probes > 0 for one in runs(done)] == [True] + [False] * 4


def test_the_draft_rows_are_there_with_a_column_a_level() -> None:
    found = results("itl", asked(), carried("itl", asked(), gaps()))
    table = rows(found, "itl")
    wanted = ["Samples", "P50", "P90", "P95", "P99", "P99.9", "Mean", "Std Dev"]
    assert [row["metric"] for row in table] == [*(f"ITL {name}" for name in wanted), "P99/P50 Ratio"]
    assert list(table[0]) == ["metric", "unit", "at_25", "at_50", "at_75", "at_90"]
    assert (table[0]["at_25"], table[1]["at_50"], table[-1]["at_90"]) == (100_000, 10.0, 4.0)
    assert rows(found, "per_request")[0] == {
        "percent": 25, "jitter_p50": 3.0, "jitter_p95": 6.0, "jitter_p99": 9.0,
        "max_pause_p50": 41.0, "max_pause_p95": 61.0, "max_pause_p99": 81.0, "answers": 1_000,
    }  # fmt: skip
    assert rows(found, "shape")[0]["modes"] == "10.2, 40.6"
    assert [len(series.x) for series in found.figures[0].series] == [0] * 4  # there were no quantiles
    assert found.notes == (Note("itl_method", {"method": "direct"}),)


def test_gaps_between_chunks_are_called_so() -> None:
    found = results("itl", asked(), carried("itl", asked(), gaps(method="chunk")))
    assert all(row["metric"].startswith(("Time Between Chunks", "P99/P50")) for row in rows(found, "itl"))
    assert rows(found, "shape")[0]["tokens_per_event"] == 1.8
    assert found.notes[0].facts == {"method": "chunk"}
    assert "Time Between Chunks" in found.figures[0].title


@pytest.mark.parametrize("method", ["direct", "chunk"])
def test_the_headline_is_the_p99_whatever_gaps_are_called(method: str) -> None:
    """Law: P99 at the first level stands for the test, be its gaps of tokens or of chunks; never the load it was made at, not
    even where no answer was long enough for a gap."""
    found = results("itl", asked(), carried("itl", asked(), gaps(method=method)))
    values = list(reported(found))
    first = headline_of("itl", values)
    assert first is not None
    assert first.name == "itl_p99_25"
    nothing = [replace(one, value=None) if one.name.startswith("itl_") else one for one in values]
    unknown = headline_of("itl", nothing)
    assert unknown is not None
    assert (unknown.name, unknown.value) == ("itl_p99_25", None)


def test_gaps_by_the_servers_stamps_have_a_table_of_their_own() -> None:
    """Law: where the server stamps its tokens, its figures stand beside Table 6, which stays what the client measured; where it
    does not, there is no table."""
    plain = gaps(method="chunk")

    def stamped(plan: Plan) -> Summary:
        found = plain(plan)
        return changed(found, metrics=changed(found.metrics, itl_server_ms=stats(7.0, 9.0, n=77)))

    without = results("itl", asked(), carried("itl", asked(), plain))
    found = results("itl", asked(), carried("itl", asked(), stamped))
    assert "itl_server" not in [table.name for table in without.tables]
    assert rows(found, "itl") == rows(without, "itl")
    assert [row["at_50"] for row in rows(found, "itl_server")][:2] == [77, 7.0]
    assert rows(found, "itl_server")[0]["metric"] == "ITL Samples"


@pytest.mark.parametrize(
    ("short", "answers", "said"), [(0, 1_000, 0), (0, 60, 1), (0, 40, 1), (25, 1_000, 1)]
)
def test_short_answers_and_few_gaps_are_told(short: int, answers: int, said: int) -> None:
    setup = asked(percent=(50,))
    found = results("itl", setup, carried("itl", setup, gaps(short, answers)))
    assert len(found.notes) == 1 + said
    if short:
        assert "2.44 % of the answers have fewer than 50 tokens" in worded(found.notes[1])


def test_nothing_streamed_is_not_measured() -> None:
    setup = asked(percent=(50,))
    found = results("itl", setup, carried("itl", setup, lambda plan: summary(plan, request_s=5)))
    assert {row["at_50"] for row in rows(found, "itl")} == {None}
    assert value(found, "itl_p50_50").value is None
    assert value(found, "itl_p50_50").note.code == "no_long_answer_streamed"


@pytest.mark.parametrize("most", range(4))
def test_a_test_cut_short_gives_what_it_has(most: int) -> None:
    found = results("itl", asked(), carried("itl", asked(), gaps(), most=most + 1))
    assert found.undecided
    if most:
        assert len(rows(found, "per_request")) == most


# In virtual time: 10 ms a step, 0.1 ms more for each answer in it, and 30 ms and a little for a prompt between two.

STEP_MS, EACH_MS, PROMPT_MS, TOKENS = 10.0, 0.1, 30 + 64 * 0.012, 60
PLACES = 16
SATURATION = 1_000 / (PROMPT_MS + (TOKENS - 1) * (STEP_MS + PLACES * EACH_MS) / PLACES)
"""Requests a second when all places are full: each prompt stops all, and a step serves all at once."""
WORDS = Plan.model_validate({"workload": {"name": "custom", "input_tokens": "64", "output_tokens": "8"}})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, list[PerformedRun]]:
    engine = Settings(
        max_batch=PLACES, step_base_ns=STEP_MS * 1e6, step_per_request_ns=EACH_MS * 1e6, prefill_base_ns=30e6
    )
    stand, folder = Virtual(Chosen("tiny-cpu", engine), Silent()), Path(tmp_path_factory.mktemp("itl"))
    setup = asked(WORDS, SATURATION, output_tokens=str(TOKENS), requests=400)
    done = carried("itl", setup, lambda plan: stand.measure(plan, folder).summary)
    return results("itl", setup, done), runs(done, "level")


def test_full_size_gaps_are_enough_and_none_is_left_out(whole: tuple[Results, list[PerformedRun]]) -> None:
    found, _ = whole
    assert len(found.notes) == 1  # the method
    assert set(rows(found, "itl")[0].values()) == {"ITL Samples", "", 400 * (TOKENS - 1)}


def test_full_size_the_mean_gap_follows_from_the_engine(whole: tuple[Results, list[PerformedRun]]) -> None:
    """Of a gap of m ms, r m is spent on the prompts that came in it; n = r m (tokens - 1) answers are under way (Little)."""
    found, _ = whole
    for row in rows(found, "shape"):
        rate = SATURATION * row["percent"] / 100 / 1_000
        mean = STEP_MS
        for _ in range(50):
            under_way = min(rate * mean * (TOKENS - 1), PLACES)
            mean = (STEP_MS + EACH_MS * max(1.0, under_way)) / (1 - rate * PROMPT_MS)
        seen = next(line for line in rows(found, "itl") if line["metric"] == "ITL Mean")
        assert seen[f"at_{row['percent']:g}"] == pytest.approx(mean, rel=0.08), row["percent"]


def test_full_size_prompts_between_steps_are_a_mode_of_their_own(
    whole: tuple[Results, list[PerformedRun]],
) -> None:
    found, _ = whole
    for row in rows(found, "shape"):
        assert row["modality"] == "multimodal"
        first, second = (float(mode) for mode in row["modes"].split(", ")[:2])
        assert STEP_MS < first < 1.02 * (STEP_MS + PLACES * EACH_MS)
        assert STEP_MS + PROMPT_MS < second < 1.02 * (STEP_MS + PROMPT_MS + PLACES * EACH_MS)


def test_full_size_answers_of_one_length_have_the_mean_gap_as_their_mean_pace(
    whole: tuple[Results, list[PerformedRun]],
) -> None:
    """TPOT is taken from each answer's ends, gaps from its events: two ways to the same mean, and TTFT is in neither."""
    _, done = whole
    for one in done:
        seen = one.outcome.summary
        shape, tpot = seen.itl_shape, seen.metrics.tpot_ms
        assert shape is not None
        assert tpot is not None
        assert shape.itl_ms is not None
        assert shape.max_pause_ms is not None
        assert shape.itl_ms.mean == pytest.approx(tpot.mean, rel=1e-6)
        assert shape.max_pause_ms.max == shape.itl_ms.max


def test_full_size_gaps_grow_with_the_load(whole: tuple[Results, list[PerformedRun]]) -> None:
    found, _ = whole
    for row in rows(found, "itl"):
        if row["metric"] in ("ITL Mean", "ITL P50", "ITL Std Dev"):
            assert row["at_25"] < row["at_50"] < row["at_75"] < row["at_90"]


@pytest.mark.parametrize(("option", "metric"), [("B", "itl_distributed_ms"), ("C", "itl_server_ms")])
def test_an_option_that_was_chosen_stands_for_the_test_or_is_refused(option: str, metric: str) -> None:
    """Draft 4.6.3, 5.4.2: by its own gaps where answers carry what it takes; else null, and the test says why."""
    setup = asked(percent=(50,), option=option)

    def system(plan: Plan) -> Summary:
        found = gaps(method="chunk")(plan)
        return changed(found, metrics=changed(found.metrics, **{metric: stats(7.0, 70.0)}))

    name = f"itl_{option.lower()}_p99_50"
    whole = results("itl", setup, carried("itl", setup, system))
    assert value(whole, name).value == 70.0
    assert not whole.undecided
    bare = results("itl", setup, carried("itl", setup, gaps(method="chunk")))
    assert value(bare, name).value is None
    assert [note.code for note in bare.undecided] == ["itl_option_not_measured"]
    assert f"option {option}" in worded(bare.undecided[0])


@pytest.mark.parametrize(
    ("option", "arrived", "stamped", "open_"),
    [("C", 30.0, 1.0, True), ("C", 10.0, 9.5, False), ("C", 1.0, 30.0, False), ("A", 30.0, 1.0, False)],
)
def test_stamps_closer_together_than_tokens_arrive_settle_nothing(
    option: str, arrived: float, stamped: float, open_: bool
) -> None:
    """What is held back on its way comes closer together; further apart it comes only by another clock, or none. Where stamps
    do not stand for the test, they are a table of it."""
    setup = asked(percent=(50,), option=option)

    def system(plan: Plan) -> Summary:
        found = gaps()(plan)
        gap, stamp = stats(arrived, 2 * arrived), stats(stamped, 2 * stamped)
        return changed(found, metrics=changed(found.metrics, itl_ms=gap, itl_server_ms=stamp))

    found = results("itl", setup, carried("itl", setup, system))
    assert [note.code for note in found.undecided] == (["itl_stamps_disagree"] if open_ else [])
    assert not open_ or "20 %" in worded(found.undecided[0])


@pytest.mark.parametrize(
    ("api", "extra", "option", "expected"),
    [
        ("chat", {}, "C", {"timings_per_token": True}),
        ("completions", {"top_k": 3}, "C", {"timings_per_token": True, "top_k": 3}),
        ("chat", {"timings_per_token": False}, "C", {"timings_per_token": False}),
        ("chat", {}, "A", {}),
        ("ollama-chat", {}, "C", {}),
    ],
)
def test_the_servers_stamps_are_requested_where_they_are_chosen(
    api: str, extra: dict[str, Any], option: str, expected: dict[str, Any]
) -> None:
    """Of llama.cpp, whose events have no times otherwise; what the plan's extra fields say of it stands. The search for 100 %
    sends what it always does, so that it is shared with other tests."""
    plan = variant(Plan(), target={"api": api, "extra_body": extra})
    done = carried("itl", asked(plan, percent=(50,), option=option), gaps())
    assert [one.step.plan.target.extra_body for one in runs(done, "level")] == [expected]
    assert all(one.step.plan.target.extra_body == extra for one in runs(done) if one.step.part != "level")


def test_distributed_timing_of_single_tokens_is_itl() -> None:
    """Option B where each event has one token: every token has its own arrival time already."""
    setup = asked(percent=(50,), option="B")

    def system(plan: Plan) -> Summary:
        found = gaps()(plan)
        return changed(found, metrics=changed(found.metrics, itl_ms=stats(10.0, 40.0)))

    assert value(results("itl", setup, carried("itl", setup, system)), "itl_b_p99_50").value == 40.0
