"""Draft 5.8 on engines whose KV cache is the limit. Preemptions are counted here from the gaps that clients saw."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from procedures.driving import IDS, Failing, Ran, Silent, carried_out
from procedures.scripted import played
from procedures.summaries import changed, stats, summary

from inferometer.calibration.certificate import NO_CERTIFICATE
from inferometer.documents.summary import Preemption, Summary
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.plan import procedure_parameters
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.procedures.memory_pressure import results, steps
from inferometer.procedures.setup import Setup, variant
from inferometer.procedures.step import PerformedRun, Run, Step, runs
from inferometer.report.campaign.notes import worded
from inferometer.run.conduct import conduct
from inferometer.server.embedded import Embedded
from inferometer.server.engine.settings import Settings

STEP_MS = 100.0

PROMPT, ANSWER = 256, 16
PLACES = 5
FOOTPRINT = -(-(PROMPT + ANSWER - 1) // 16)
"""Blocks of one request at its end: the last token's keys and values are never written."""
CROWDED = Settings(
    jitter=0.0,
    step_base_ns=STEP_MS * 1e6,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=0,
    token_budget=20_000,
    kv_blocks=PLACES * FOOTPRINT,
)
"""An iteration takes 100 ms whatever is in it, and five requests fit into the cache. A prompt needs all but one block of what
its request ever needs, so a sixth stands in line until one of the five has ended."""

GROWING = Settings(
    jitter=0.0,
    step_base_ns=STEP_MS * 1e6,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=0,
    token_budget=20_000,
    kv_blocks=8 * -(-(160 + 256 - 1) // 16),
)
"""The same with short prompts and long answers: more than eight are let in, and preempted when they have grown."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The draft's durations: 60 s and 100 completions a slot in the search, 120 s a level, 110, 125 and 150 %."""
    parameters = {
        "input_tokens": PROMPT,
        "output_tokens": ANSWER,
        "ttft_p99_ms": 350,
    }
    return carried_out(
        tmp_path_factory.mktemp("crowded"),
        "memory-pressure",
        engine=CROWDED,
        plan=IDS,
        tests={"memory-pressure": parameters},
    )


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """Levels of 8, 12 and 16 requests, which are 12 half grown and more: with ten the cache has room, since slots are out of
    step. The search is told to look at eight alone."""
    parameters = {
        "input_tokens": 160,
        "output_tokens": 256,
        "initial": 8,
        "maximum": 8,
        "completions_per_slot": 10,
        "percent": [150, 200],
    }
    folder = tmp_path_factory.mktemp("growing")
    plan = variant(IDS, load={"drain_s": 600})
    ran = carried_out(
        folder, "memory-pressure", engine=GROWING, plan=plan, tests={"memory-pressure": parameters}
    )
    return ran, folder / "runs"


def test_the_base_is_what_fits_into_the_cache(crowded: Ran) -> None:
    """floor(tokens of the cache / tokens of a request), found by the search; levels are that times their percentage, rounded
    up; each lasts 120 s at least."""
    assert CROWDED.kv_blocks * 16 // (PROMPT + ANSWER - 1) == PLACES
    assert crowded.value("memory-pressure", "base_concurrency") == PLACES
    base = crowded.test("memory-pressure")["values"][0]
    assert base["ci"][0] <= PLACES <= base["ci"][1]
    rows = crowded.rows("memory-pressure", "levels")
    assert [(row["percent"], row["concurrency"]) for row in rows] == [
        (100, 5),
        (110, 6),
        (125, 7),
        (150, 8),
    ]
    assert all(row["seconds"] >= 120 for row in rows)
    assert crowded.test("memory-pressure")["ended_by"] is None
    assert not crowded.test("memory-pressure")["undecided"]


def test_the_interval_of_the_base_holds_the_truth(crowded: Ran) -> None:
    """Its search has levels on both sides that settle it. One that ends at its maximum has seen no upper side, and no
    interval."""
    base = next(one for one in crowded.test("memory-pressure")["values"] if one["name"] == "base_concurrency")
    low, high = base["ci"]
    assert low <= PLACES <= high < 2 * PLACES


def test_beyond_it_requests_wait_and_throughput_stays(crowded: Ran) -> None:
    """Nobody is preempted where a prompt takes all the room at once. Slots are out of step, so a sixth request waits for the
    next of five answers to end, a fifth of 1.5 s, and each further one as much again; as much comes out as before, but for the
    iterations in which a place stands empty."""
    base, *others = crowded.rows("memory-pressure", "levels")
    assert base["ttft_p99"] <= 350
    for more, row in enumerate(others, 1):
        assert row["ttft_p99"] > base["ttft_p99"] + more * (ANSWER - 1) * STEP_MS / PLACES / 2
        assert row["output_tok_s"] == pytest.approx(base["output_tok_s"], rel=0.1)
    for row in (base, *others):
        assert (row["completion"], row["failed"], row["errors"]) == (100, 0, 0)
        assert (row["events"], row["preempted"], row["recovered"], row["lost"]) == (
            0,
            0,
            *["nobody preempted"] * 2,
        )
    assert crowded.value("memory-pressure", "degradation") == "graceful"
    assert crowded.value("memory-pressure", "completion_below_99") == "never"


def gaps(folder: Path) -> tuple[int, list[tuple[int, list[int]]]]:
    """Of a run's load, lead-in and lead-out included: how many requests it has, and of each with pauses its prompt's tokens and
    how many tokens it had put out before each pause. Every iteration takes one step, so whoever waited longer had lost its
    place."""
    rows = read_table(RunFolder.open(folder).record, RECORD).to_pylist()
    load = [row for row in rows if row["phase"] in (Phase.MEASURE, Phase.LEAD)]
    found = []
    for row in load:
        assert row["usage_output"] == 256 or row["phase"] == Phase.LEAD
        times = row["event_ns"][row["first_text"] :][: row["usage_output"]]  # an event a token
        after = [
            number
            for number, (one, other) in enumerate(pairwise(times), 1)
            if other - one > 1.5 * STEP_MS * 1e6
        ]
        if after:
            found.append((row["usage_input"], after))
    return len(load), found


def test_preemption_is_what_clients_saw_of_it(growing: tuple[Ran, Path]) -> None:
    """Each preemption is a pause of its request, and a pause says how many tokens the cache had of it: rate, recovery, events
    and loss are those counted from the pauses of every request."""
    ran, folder = growing
    rows = ran.rows("memory-pressure", "levels")
    names = [run["run"] for run in ran.test("memory-pressure")["runs"] if run["part"] == "level"]
    assert [row["concurrency"] for row in rows] == [8, 12, 16]
    for row, name in zip(rows, names, strict=True):
        sent, paused = gaps(folder / name)
        events = sum(len(after) for _, after in paused)
        lost = sum(prompt + emitted - 1 for prompt, after in paused for emitted in after)
        assert row["cancelled"] == 0
        assert 0 < row["requests"] < sent
        assert row["events"] == events
        assert row["preempted"] == pytest.approx(100 * len(paused) / sent)
        assert row["recovered"] == (100 if paused else "nobody preempted")
        assert row["lost"] == (pytest.approx(lost / events) if events else "nobody preempted")
    assert rows[0]["events"] == 0
    assert rows[1]["preempted"] > 0
    assert rows[2]["preempted"] > rows[1]["preempted"]


def test_a_search_that_ends_at_its_maximum_is_told(growing: tuple[Ran, Path]) -> None:
    """The levels are measured; what they are percentages of lies above, and the test is inconclusive."""
    document = growing[0].test("memory-pressure")
    assert document["verdict"]["status"] == "INCONCLUSIVE"
    assert any("above the maximum of 8" in words for words in document["undecided"])
    assert next(one["ci"] for one in document["values"] if one["name"] == "base_concurrency") is None


def test_a_system_that_falls_over_leaves_the_levels_before(tmp_path: Path) -> None:
    """The pilot, 5 and 5 again, then 100 %: the next run finds nobody."""
    parameters = {
        "input_tokens": PROMPT, "output_tokens": ANSWER, "initial": 5, "maximum": 5, "level_s": 1,
        "completions_per_slot": 2, "duration_s": 10,
    }  # fmt: skip
    stand = Failing(CROWDED, after=4)
    ran = carried_out(
        tmp_path, "memory-pressure", plan=IDS, stand=stand, tests={"memory-pressure": parameters}
    )
    document = ran.test("memory-pressure")
    assert document["ended_by"] == "server"
    assert [row["percent"] for row in ran.rows("memory-pressure", "levels")] == [100]
    assert any("3 of 4 levels" in words for words in document["undecided"])


def test_the_reference_server_tells_the_same_live(tmp_path: Path) -> None:
    """A cache for two of four: by its /metrics, requests were preempted, all have ended since, and tokens were lost. The server
    puts 7 tokens around a chat's message."""
    plan = build(
        None,
        {
            "--input-tokens": "40", "--output-tokens": "60", "--concurrency": "4", "--requests": "12", "--warmup": "0",
        },
    )  # fmt: skip
    with Embedded(tmp_path / "server.txt", "--set", "kv_blocks=14") as server:
        summary = conduct(
            plan, tmp_path / "runs", Silent(), certificate=NO_CERTIFICATE, embedded=server
        ).summary
    found, sent = summary.preemption, summary.requests
    assert found is not None
    assert found.source == "server metrics"
    assert found.requests is not None
    assert found.discarded is not None
    assert 0 < found.requests <= min(found.events, sent.sent + sent.lead_in + sent.lead_out)
    assert found.finished == found.requests
    assert found.events * 40 <= found.discarded <= found.events * (40 + 7 + 60)


def _setup(**parameters: Any) -> Setup:
    return Setup(Plan(), procedure_parameters.Tests.model_validate({"memory-pressure": parameters}))


def _play(setup: Setup, answer: Any) -> list[PerformedRun]:
    def answered(step: Step) -> Any:
        assert isinstance(step, Run)
        return answer(step.at.concurrency or 0, step)

    return runs(played(steps(setup), answered))


def _level(failed: int = 0, output_tok_s: float = 1000.0, **members: Any) -> Summary:
    found = summary(
        ttft=stats(50.0, 100.0),
        seconds=1e6,
        completed=100 - failed,
        failed=failed,
        output_tok_s=output_tok_s,
        **members,
    )
    whole_run = changed(found.throughput.whole_run, output_tok_s=1000.0, request_s=5.0)
    return changed(found, throughput=changed(found.throughput, whole_run=whole_run))


@given(capacity=st.integers(1, 200), shares=st.sets(st.integers(101, 400), min_size=1, max_size=5))
def test_levels_are_percentages_of_the_capacity_rounded_up(capacity: int, shares: set[int]) -> None:
    """Whatever the capacity: it is found, 100 % comes first, and each level has the fewest requests that reach its share."""
    setup = _setup(maximum=256, percent=sorted(shares))
    done = _play(setup, lambda slots, _: _level(failed=0 if slots <= capacity else 30))
    levels = [one.step.at for one in done if one.step.part == "level"]
    assert [at.percent for at in levels] == [100, *sorted(shares)]
    found = levels[0].concurrency
    assert isinstance(found, int)
    assert capacity - max(1, 0.06 * capacity) <= found <= capacity
    for at in levels:
        slots, share = at.concurrency, at.percent
        assert isinstance(slots, int)
        assert isinstance(share, float | int)
        assert 100 * slots >= share * found > 100 * (slots - 1)


@given(requests=st.integers(1, 5_000), seconds=st.floats(1, 3_600), capacity=st.integers(1, 200))
def test_a_level_lasts_for_the_requests_that_its_p99_takes(
    requests: int, seconds: float, capacity: int
) -> None:
    """Law: by the rate at the capacity, 5 requests/s here, a level has time for `requests`, and at least `duration_s`."""
    setup = _setup(initial=capacity, maximum=capacity, requests=requests, duration_s=seconds)
    levels = [one.step.plan.load for one in _play(setup, lambda *_: _level()) if one.step.part == "level"]
    assert all(load.duration_s is not None for load in levels)
    assert min(load.duration_s or 0 for load in levels) >= max(seconds, requests / 5) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("failing", "slow", "pattern", "below"),
    [
        ({}, {}, "graceful", None),
        ({150: 18}, {}, "graceful", 150),  # the draft's own example: two of three fit, and more complete
        ({125: 21}, {}, "cliff", 125),  # 80 % fit, and fewer complete
        ({150: 40}, {}, "cliff", 150),
        ({}, {125: 0.49}, "cliff", None),
        ({}, {125: 0.51}, "graceful", None),
    ],
)
def test_a_cliff_is_where_less_completes_than_fits(
    failing: dict[int, int], slow: dict[int, float], pattern: str, below: int | None
) -> None:
    """Completion against 100 / level, throughput against half."""
    setup = _setup(initial=8, maximum=8, percent=[110, 125, 150])

    def answer(_: int, step: Run) -> Any:
        share = int(step.at.percent or 0)
        return _level(failing.get(share, 0), 1000.0 * slow.get(share, 1.0))

    values = {value.name: value for value in results(setup, _play(setup, answer)).values}
    assert values["degradation"].value == pattern
    assert values["completion_below_99"].value == (below or "never")
    assert values["degradation"].capacity


@pytest.mark.parametrize("counted", [None, Preemption("server metrics", 7.0, None, None, None)])
def test_what_nobody_counts_is_not_measured(counted: Preemption | None) -> None:
    """No counts at all, or vLLM's events alone: empty cells and a note why, no 0."""
    setup = _setup(initial=8, maximum=8, percent=[150])
    found = results(setup, _play(setup, lambda *_: _level(preemption=counted)))
    table = found.tables[0]
    names = [column.name for column in table.columns]
    for row in table.rows:
        cells = dict(zip(names, row, strict=True))
        assert (cells["preempted"], cells["recovered"], cells["lost"]) == (None, None, None)
        assert cells["events"] == (counted and 7.0)
    codes = [note.code for note in found.notes if note.code.startswith("preemption_")]
    assert codes == ["preemption_events_only" if counted else "preemption_not_measured"]


def test_nothing_measured_yields_nothing() -> None:
    """Before the first run, and in words."""
    found = results(_setup(), [])
    assert found.undecided
    assert not found.tables[0].rows
    assert all(value.value is None for value in found.values)
    assert json.dumps([series.y for series in found.figures[0].series]) == "[[], [], [], []]"


def _growth(base: tuple[float, float | None], top: tuple[float, float | None]) -> Any:
    """The value of the growth, of two levels whose P99 and its interval's half-width as a share these are."""

    def answer(_: int, step: Run) -> Summary:
        value, width = top if step.at.percent == 150 else base
        ttft = stats(value / 2, value, n=1_000, width=width)
        return changed(_level(), metrics=changed(_level().metrics, ttft_ms=ttft))

    setup = _setup(initial=8, maximum=8, percent=[150])
    found = results(setup, _play(setup, answer)).values
    return next(one for one in found if one.name == "ttft_p99_growth")


@settings(max_examples=30, deadline=None)
@given(*[st.tuples(st.floats(1, 1e4), st.floats(0.01, 0.9)) for _ in range(2)])
def test_the_growth_of_p99_has_an_interval_that_holds_every_ratio_of_values_within_both(
    base: tuple[float, float], top: tuple[float, float]
) -> None:
    """Law: whatever the two P99s are within their intervals, their ratio is within its own."""
    found = _growth(base, top)
    low, high = found.ci
    assert found.value == pytest.approx(top[0] / base[0])
    for first in (1 - base[1], 1.0, 1 + base[1]):
        for last in (1 - top[1], 1.0, 1 + top[1]):
            ratio = top[0] * last / (base[0] * first)
            assert low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9)


@pytest.mark.parametrize("widths", [(None, 0.1), (0.1, None), (None, None)])
def test_a_growth_of_p99s_without_intervals_says_that_it_has_none(
    widths: tuple[float | None, float | None],
) -> None:
    """Law: no interval is made up of one."""
    found = _growth((10.0, widths[0]), (20.0, widths[1]))
    assert (found.value, found.ci) == (2.0, None)
    assert worded(found.note).startswith("without an interval")
