"""Guardrail Overhead (draft 5.10), at its full size in virtual time, on an engine whose checks take known times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from procedures.alone import Alone, Floats, alone
from procedures.driving import IDS
from procedures.summaries import changed, stats, steady, summary

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.measure.measurement import Refusals
from inferometer.measure.request_times import RequestTimes
from inferometer.plan.campaign import campaign, of_values, to_json
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures import guardrail
from inferometer.procedures.guarded_maximum import Maximum, lost, measure, reduction
from inferometer.procedures.plateau import Climb, capacity, rungs
from inferometer.procedures.setup import Setup, another_workload, variant
from inferometer.procedures.step import (
    Measured,
    Performed,
    PerformedRun,
    Refused,
    Run,
    Switch,
    Switched,
    runs,
)
from inferometer.server.engine.settings import Settings

INPUT_MS, OUTPUT_MS, STEP_MS = 120.0, 300.0, 10.0
ENGINE = Settings(
    jitter=0,
    step_base_ns=STEP_MS * 1e6,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=1_000,
    input_check_ns=INPUT_MS * 1e6,
    output_check_tokens=64,
    output_check_ns=OUTPUT_MS * 1e6,
)
"""64 tokens take over 640 ms, so a check is over before the next full batch is there; a last, smaller batch may wait for it."""
SMALL: dict[str, Any] = {"percent": [50], "duration_s": 8, "throughput_s": 2, "concurrency": 4}
NAMES = ("baseline", "input", "output", "full")
SHARES = (25.0, 50.0, 75.0)


def talk(plan: Plan = IDS) -> Plan:
    return guardrail.workload(Setup(plan, Tests()))


def bare() -> Plan:
    """As the baseline is: without filters."""
    return variant(talk(), sut={"guardrails": {"input_filter": False, "output_filter": False}})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """Four configurations, three levels of 60 s each, and throughput with 64 in flight."""
    wanted = {"guardrail": {"concurrency": 64}}
    return alone(tmp_path_factory.mktemp("guard"), "guardrail", ENGINE, bare(), 4.0, wanted, IDS)


def test_every_configuration_meets_the_same_load(ran: Alone) -> None:
    """In the draft's order, with a warm-up after each switch, at the baseline's rates; each declares its filters."""
    seen = [
        one.step.state if isinstance(one.step, Switch) else (one.step.part, one.step.at.configuration)
        for one in ran.done
    ]
    expected: list[Any] = []
    for name in NAMES:
        expected += [name, ("warm-up", None), *[("level", name)] * 3, *[("throughput", name)] * 2]
    assert seen == [*expected, "baseline", ("warm-up", None), ("again", "baseline")]
    for share in SHARES:
        levels = [ran.of("level", configuration=name, percent=share) for name in NAMES]
        assert [one.step.at.rate for one in levels] == [4.0 * share / 100] * 4
        assert [one.step.plan.load.duration_s for one in levels] == [max(60.0, 100 / (4.0 * share / 100))] * 4
        assert not any(one.step.plan.load.warmup for one in levels)
        records = [ran.record(one) for one in levels]
        for record in records[1:]:
            for column in ("input_tokens_asked", "output_tokens_asked"):
                assert np.array_equal(record[column], records[0][column])
        filters = [one.step.plan.sut.guardrails for one in levels]
        assert [(one.input_filter, one.output_filter) for one in filters] == [
            (False, False), (True, False), (False, True), (True, True),
        ]  # fmt: skip


def expected(name: str, record: dict[str, Floats]) -> Floats:
    """By how many ms each request's TTFT (`input`) or end (`output`, `full`) is later, from its number of tokens n alone.

    The last batch has r = (n - 1) mod 64 + 1 tokens, 10 ms each; its check begins when it is there and the check before it, of
    300 ms, is over.
    """
    if name == "input":
        return np.full(len(record["ttft"]), INPUT_MS)
    tokens = record["usage_output"]
    last = (tokens - 1) % 64 + 1
    waits = np.where(tokens > 64, np.maximum(0, OUTPUT_MS - STEP_MS * last), 0)
    found: Floats = OUTPUT_MS + waits + (INPUT_MS if name == "full" else 0)
    return found


def test_overheads_are_the_checks_times(ran: Alone) -> None:
    """The baseline's records with each request made later by its checks: statistics of that less those of the baseline. Means
    to a step of 10 ms, for steps begin elsewhere; medians to 30 ms and the tail to 60, for who meets whom changes."""
    rows = {(row["overhead"], row["percent"]): row for row in ran.rows("overhead")}
    assert len(rows) == 9
    for name, metric, words in guardrail.OVERHEADS:
        for share in SHARES:
            record = ran.record(ran.of("level", configuration="baseline", percent=share))
            without = record[metric]
            later = without + expected(name, record)
            row = rows[words, share]
            assert row["mean"] == pytest.approx(later.mean() - without.mean(), abs=10)
            for percent, tolerance in ((50, 30), (95, 60), (99, 60)):
                true = np.percentile(later, percent) - np.percentile(without, percent)
                assert row[f"p{percent}"] == pytest.approx(true, abs=10 if name == "input" else tolerance)
            assert ran.value(f"{name}_overhead_{share:g}") == row["p50"]


def test_the_planted_time_of_a_check_lies_in_the_interval_of_its_overhead(ran: Alone) -> None:
    """Of prompts, to a step of the engine; each interval holds its value, stands in the table, and is far narrower than the
    medians' own are, for both runs had the same requests."""
    rows = {(row["overhead"], row["percent"]): row for row in ran.rows("overhead")}
    for name, _, words in guardrail.OVERHEADS:
        for share in SHARES:
            (found,) = [one for one in ran.results.values if one.name == f"{name}_overhead_{share:g}"]
            assert found.ci is not None
            low, high = found.ci
            assert low <= float(found.value or 0) <= high
            assert (rows[words, share]["low"], rows[words, share]["high"]) == found.ci
            if name == "input":
                assert low - STEP_MS <= INPUT_MS <= high + STEP_MS
                assert high - low < 60


def of_requests(ttft: Floats, fingerprint: str) -> Measured:
    """A run with these times to first tokens, in order of arrival."""
    nothing = np.full(len(ttft), np.nan)
    index = np.arange(len(ttft))
    times = RequestTimes(index, index - index - 1, nothing, ttft, ttft, nothing, nothing)
    whole = summary(ttft=stats(float(np.median(ttft)), float(ttft.max())))
    return Measured("r", changed(whole, workload=changed(whole.workload, fingerprint=fingerprint)), times)


def test_the_same_requests_are_compared_in_pairs() -> None:
    """What a request's length makes of its latency is in both runs and cancels: of requests that differ by hundreds of ms an
    overhead of 8 ms is known to one. Of other requests it is not; and of too few there is no interval."""
    drawn = np.random.default_rng(3)
    without = drawn.uniform(50, 500, 400)
    with_ = without + 8 + drawn.normal(0, 1, 400)
    made = {("baseline", 50.0): of_requests(without, "a"), ("input", 50.0): of_requests(with_, "a")}
    ends = guardrail.overhead_interval(made, "input", 50.0, "ttft")
    assert ends is not None
    assert ends[0] <= 8 <= ends[1]
    assert ends[1] - ends[0] < 5
    other = guardrail.overhead_interval(
        {**made, ("input", 50.0): of_requests(with_, "b")}, "input", 50.0, "ttft"
    )
    assert other is not None
    assert other[1] - other[0] > 40
    few = {at: of_requests(one.requests.ttft_ms[:19], "a") for at, one in made.items() if one.requests}
    assert guardrail.overhead_interval(few, "input", 50.0, "ttft") is None


def test_a_filter_that_refuses_long_prompts_costs_what_it_costs_the_others() -> None:
    """Law: value and interval are of the requests answered in both runs, however many a filter refuses. A median of all
    without it, and of the short ones with it, are of different prompts: here 125 ms lower, where the filter takes 100 ms."""
    drawn = np.random.default_rng(3)
    without = drawn.uniform(50, 500, 600)
    with_ = without + 100 + drawn.normal(0, 1, 600)
    baseline, filtered = of_requests(without, "a"), of_requests(with_, "a")
    assert filtered.requests is not None
    short = filtered.requests.where(np.flatnonzero(without < 275))
    of_short = stats(float(np.median(short.ttft_ms)), float(short.ttft_ms.max()))
    measured = Measured("r", changed(filtered.summary, metrics=summary(ttft=of_short).metrics), short)
    made = {("baseline", 50.0): baseline, ("input", 50.0): measured}
    ends = guardrail.overhead_interval(made, "input", 50.0, "ttft")
    assert ends is not None
    assert ends[0] <= 100 <= ends[1] < 105
    for name in ("mean", "p50", "p95", "p99"):
        found = guardrail.overhead(made, "input", 50.0, "ttft", name)
        assert found == pytest.approx(100, abs=3)
    assert ends[0] <= (guardrail.overhead(made, "input", 50.0, "ttft", "p50") or 0) <= ends[1]
    known = filtered.requests.where(np.flatnonzero(without > 600))
    none = {**made, ("input", 50.0): Measured("r", filtered.summary, known)}
    assert guardrail.overhead(none, "input", 50.0, "ttft", "p50") is None


def test_tables_are_those_of_the_records(ran: Alone) -> None:
    """Draft Table 13 for each level, from requests.parquet."""
    for share in SHARES:
        rows = ran.rows(f"latency_{share:g}")
        assert [row["configuration"] for row in rows] == [
            "Baseline",
            "Input Filter",
            "Output Filter",
            "Full Filter",
        ]
        for name, row in zip(NAMES, rows, strict=True):
            record = ran.record(ran.of("level", configuration=name, percent=share))
            assert row["n"] == len(record["ttft"])
            assert row["ttft_p50"] == pytest.approx(np.percentile(record["ttft"], 50), rel=0.05)
            assert row["e2e_p50"] == pytest.approx(np.percentile(record["e2e"], 50), rel=0.02)
            assert (row["refused"], row["success"]) == (0, 100.0)


def test_throughput_falls_as_answers_take_longer(ran: Alone) -> None:
    """With 64 in flight and room for all of them, throughput is 64 over the time of a request (Little): it falls by 1 - E2E
    (baseline) / E2E (configuration), to 3 points. The table has the change, which is negative; the value the reduction."""
    rows = {row["configuration"]: row for row in ran.rows("throughput")}
    base = ran.of("throughput", configuration="baseline").outcome.summary
    for name in NAMES[1:]:
        summary = ran.of("throughput", configuration=name).outcome.summary
        mean = [one.metrics.e2e_ms.mean for one in (base, summary) if one.metrics.e2e_ms]
        expected = 100 * (1 - mean[0] / mean[1])
        found = ran.value(f"throughput_reduction_{name}")
        assert found == pytest.approx(expected, abs=3)
        assert rows[guardrail.LABELS[name]]["change"] == -found
    assert ran.value("throughput_reduction_full") > ran.value("throughput_reduction_output") > 3
    assert rows["Baseline"]["change"] == ""  # of itself there is none


def test_results_come_of_whatever_was_done(ran: Alone) -> None:
    """Cut short anywhere: what is missing is named, and None. One run with a full system is enough for a figure."""
    for count in range(len(ran.done) - 5):
        found = guardrail.results(ran.setup, ran.done[:count])
        values = {one.name: one.value for one in found.values}
        assert values["throughput_reduction_full"] is None
        assert found.undecided
    assert not guardrail.results(ran.setup, ran.done[:-4]).undecided
    assert not ran.results.undecided


def test_a_configuration_that_cannot_be_had_is_left_out(tmp_path: Path) -> None:
    """An engine without filters of answers: its rows are empty and say why, and the rest of the test goes on."""
    engine = replace(ENGINE, output_check_tokens=0)
    wanted = {"guardrail": {**SMALL, "configurations": ["output", "full"]}}
    found = alone(tmp_path, "guardrail", engine, bare(), 4.0, wanted, IDS)
    (refused,) = [one for one in found.done if isinstance(one.outcome, Refused)]
    assert isinstance(refused.step, Switch)
    assert refused.step.state == "output"
    rows = {row["configuration"]: row for row in found.rows("latency_50")}
    assert {value for key, value in rows["Output Filter"].items() if key != "configuration"} == {None}
    assert (found.value("output_overhead_50"), found.value("throughput_reduction_output")) == (None, None)
    assert found.value("full_overhead_50") == pytest.approx(INPUT_MS, abs=10)
    left_out = next(note for note in found.results.notes if note.code == "configuration_not_measured")
    assert left_out.facts["configuration"] == "Output Filter"
    assert not found.results.undecided


def test_without_any_guardrail_nothing_was_compared(ran: Alone) -> None:
    """A system that can be brought into none of them says nothing of their cost."""
    switches = [place for place, one in enumerate(ran.done) if isinstance(one.step, Switch)]
    refused = [Performed(Switch("guardrails", name), Refused("it has none")) for name in NAMES[1:]]
    found = guardrail.results(ran.setup, [*ran.done[: switches[1]], *refused])
    assert found.undecided[0].code == "no_configuration_with_guardrails"
    again = [*ran.done[: switches[2]], *refused[1:]]
    assert not guardrail.results(ran.setup, again).undecided


def declared(
    ran: Alone, unfiltered: tuple[str, ...] = (), refused: Mapping[str, int] | None = None
) -> list[Note]:
    """What is left open where the system confirmed no switch. `unfiltered`: configurations in which the baseline was measured
    once more; `refused`: requests, by configuration, that a filter refused at a level."""
    done: list[Performed] = []
    for one in ran.done:
        if not isinstance(one, PerformedRun):
            done.append(replace(one, outcome=Switched("declared", "a command")))
            continue
        found, at = one.outcome, one.step.at
        if one.step.part == "level" and at.configuration in unfiltered:
            found = ran.of("level", configuration="baseline", percent=at.percent).outcome
        count = (refused or {}).get(at.configuration or "", 0)
        stopped = changed(found.summary, refusals=Refusals(count, {"policy_status": count}))
        done.append(PerformedRun(one.step, replace(found, summary=stopped)))
    return [one for one in guardrail.results(ran.setup, done).undecided if one.code == "filters_not_shown"]


def test_filters_that_cost_nothing_have_to_show_that_they_were_switched(ran: Alone) -> None:
    """By the system's own word, by what they cost, or by what they refuse in their configuration alone; a switch that does
    nothing costs nothing, too."""
    assert not ran.results.undecided
    assert not declared(ran)
    (note,) = declared(ran, ("input", "full"))
    assert note.facts["configurations"] == ("Input Filter", "Full Filter")
    (note,) = declared(ran, ("input", "full"), {"input": 2})
    assert note.facts["configurations"] == ("Full Filter",)
    assert declared(ran, ("input",), {"input": 1})
    assert declared(ran, ("input",), {"input": 2, "baseline": 1})


def test_refusals_are_seen(tmp_path: Path) -> None:
    """A filter that refuses one benign request in four: the table counts them, the notes name the configurations."""
    wanted = {"guardrail": {**SMALL, "configurations": ["baseline", "input"]}}
    found = alone(tmp_path, "guardrail", replace(ENGINE, refusal_share=0.25), bare(), 4.0, wanted, IDS)
    rows = {row["configuration"]: row["refused"] for row in found.rows("latency_50")}
    assert rows["Baseline"] == 0
    assert rows["Input Filter"] > 0
    refused = [note.facts for note in found.results.notes if note.code == "benign_requests_refused"]
    assert {one["configuration"] for one in refused} == {"Input Filter"}


BUSY = replace(ENGINE, max_batch=4, prefill_per_token_ns=0, output_check_ns=160e6, checks_on_engine=True)
"""With 4 places always taken, an iteration of 10 ms becomes one of 10 + 4 x 160 / 64 = 20 ms where answers are checked, and a
prompt's check of 120 ms stops the other 3."""


@pytest.mark.parametrize("fixed", [None, 12])
def test_checks_on_the_engine_cost_capacity(tmp_path: Path, fixed: int | None) -> None:
    """Half of the throughput is gone with checks of answers: by the engine's time for a request with and without, to 3 points
    with 12 in flight, and to 2 where the most is searched for; then the interval holds it. A climb begins at half of what the
    baseline's ended at. A plan that fixes the number in flight is told apart."""
    wanted = {
        "guardrail": {**SMALL, "concurrency": fixed, "throughput_s": 120},
        "search": {"pilot_requests": 64},
    }
    ran = alone(tmp_path, "guardrail", BUSY, bare(), 0.2, wanted, IDS)
    tokens = ran.of("throughput", configuration="baseline").outcome.summary.metrics.output_tokens
    assert tokens is not None
    base = 10 * tokens.mean / 4  # ms of the engine for a request
    for name, more in (("input", 120), ("output", base), ("full", base + 120)):
        true = 100 * more / (base + more)
        (found,) = [one for one in ran.results.values if one.name == f"throughput_reduction_{name}"]
        assert found.value == pytest.approx(true, abs=3 if fixed else 2)
        assert found.ci is not None
        assert found.ci[0] <= float(found.value or 0) <= found.ci[1]
        assert fixed or found.ci[0] <= true <= found.ci[1]
    (table,) = [one for one in ran.results.tables if one.name == "throughput"]
    assert table.notes[0].code == ("output_without_search" if fixed else "maximum_by_climb")
    assert any(one.name == "throughput_levels" for one in ran.results.tables) is (fixed is None)
    climbs = {
        name: [
            one.step.at.concurrency for one in runs(ran.done, "pilot") if one.step.at.configuration == name
        ]
        for name in NAMES
    }
    if fixed:
        assert not any(climbs.values())
        return
    assert all(climbs[name][0] == (climbs["baseline"][-1] or 0) // 2 for name in NAMES[1:])
    for number in range(2):  # the same requests in all, so that the chance of lengths is that of both sides
        full = [
            [one for one in runs(ran.done, "throughput") if one.step.at.configuration == name][number]
            for name in NAMES
        ]
        assert len({one.outcome.summary.workload.fingerprint for one in full}) == 1
        assert len({one.step.plan.load.requests for one in full}) == 1


def test_a_filter_that_costs_no_throughput_is_said_to_be_within_chance(tmp_path: Path) -> None:
    """A check of prompts beside the engine only makes them later: with ever more in flight nothing is lost."""
    engine = replace(BUSY, checks_on_engine=False, output_check_tokens=0)
    given = {**SMALL, "configurations": ["input"], "throughput_s": 40, "concurrency": None}
    wanted = {"guardrail": given, "search": {"pilot_requests": 32}}
    ran = alone(tmp_path, "guardrail", engine, bare(), 0.2, wanted, IDS)
    (found,) = [one for one in ran.results.values if one.name == "throughput_reduction_input"]
    assert found.value == pytest.approx(0, abs=1)
    assert found.note is not None
    assert found.note.code == "within_chance"


def test_the_drafts_own_tables_have_these_reductions_and_overheads() -> None:
    """Tables 13 and 14: what the draft prints of each configuration gives its reductions, to the digit it prints. The input
    filter's overhead is 14 ms by P50 and 33 by P99, that of all of them 0.8 and 1.5 s end to end (the formulas of 5.10.4)."""
    ttft = {"baseline": (98, 234), "input": (112, 267), "output": (101, 242), "full": (118, 289)}
    e2e = {"baseline": (4200, 8700), "input": (4300, 8900), "output": (4800, 9800), "full": (5000, 10200)}
    levels = {
        (name, 50.0): Measured("r", summary(ttft=stats(*ttft[name]), e2e=stats(*e2e[name]))) for name in NAMES
    }
    overheads = {
        (name, metric, at): guardrail.overhead(levels, name, 50.0, metric, at)
        for name, metric, _ in guardrail.OVERHEADS
        for at in ("p50", "p99")
    }
    assert overheads == {
        ("input", "ttft", "p50"): 14, ("input", "ttft", "p99"): 33,
        ("output", "e2e", "p50"): 600, ("output", "e2e", "p99"): 1100,
        ("full", "e2e", "p50"): 800, ("full", "e2e", "p99"): 1500,
    }  # fmt: skip
    most = {"baseline": 2867, "input": 2756, "output": 2412, "full": 2289}
    printed = [round(-lost(most["baseline"], most[name]), 1) for name in NAMES[1:]]
    assert printed == [-3.9, -15.9, -20.2]


@pytest.mark.parametrize(
    ("file", "flags", "own"),
    [
        ("", {}, False),
        ("workload: {seed: 7, temperature: 0.5}", {"--seed": "8"}, False),
        ("", {"--workload": "synthetic-uniform"}, True),
        ("workload: {name: synthetic-uniform}", {}, True),
        ("", {"--input-tokens": "300"}, True),
        ("workload: {name: synthetic-skewed}", {}, True),
    ],
)
def test_the_workload_is_the_plans_if_it_chose_one(
    tmp_path: Path, file: str, flags: dict[str, object], own: bool
) -> None:
    """Be it the one that a plan has by default; else Conversation. The saved campaign decides as the one it was saved of."""
    path = tmp_path / "plan.yaml"
    path.write_text(file)
    whole = campaign(["guardrail"], path, flags)
    for one in (whole, of_values(json.loads(to_json(whole)), "tests.json")):
        setup = Setup(one.plan, one.tests)
        found = guardrail.workload(setup).workload
        assert found == one.plan.workload if own else found.based_on == "conversation"


def test_the_workload_can_be_named_as_a_parameter() -> None:
    """Over what the plan chooses; a saved campaign without the parameter chose any workload but the default."""
    given = campaign(
        ["guardrail"], None, {"--workload": "synthetic-skewed"}, ["guardrail.workload=conversation"]
    )
    assert guardrail.workload(Setup(given.plan, given.tests)).workload.based_on == "conversation"
    assert talk().workload.based_on == "conversation"
    skewed = another_workload(Plan(), name="synthetic-skewed")
    assert talk(skewed) is skewed


def full(output: float) -> Maximum:
    """A configuration whose run with 32 in flight did this many output tokens a second in each third of a minute."""
    told = steady(output, seconds=60.0)
    seen = summary(output_tok_s=output, request_s=output / 50, output_tokens=stats(50.0, 50.0), steady=told)
    at = Conditions(concurrency=32)
    done = PerformedRun(Run(Plan(), "throughput", at, Note("climb")), Measured("one", seen))
    climbed = rungs(Climb(Plan(), 32, 32, 1, part="throughput"), [done])
    return Maximum((), (done,), capacity(climbed, climbed[0], [done]), rose=False)


@pytest.mark.parametrize("less", [0.0, 25.0])
def test_runs_that_agree_to_the_digit_are_no_certainty(less: float) -> None:
    """Three thirds of 20,000 tokens, in each of which 32 in flight have a token more or less at the border: 0.16 %, of which
    Student's t makes 0.4 points on either side."""
    found = reduction(full(1_000.0), full(1_000.0 * (1 - less / 100)))
    assert found is not None
    assert found.percent == pytest.approx(less)
    assert found.ci is not None
    assert found.ci[0] == pytest.approx(less - 0.4, abs=0.1)
    assert found.ci[1] == pytest.approx(less + 0.4, abs=0.1)


def test_a_throughput_run_with_given_requests_in_flight_sends_each_request_once() -> None:
    """It ends by time, and has more requests than the system is done with until then."""
    setup = Setup(Plan(), Tests.model_validate({"guardrail": {"concurrency": 32, "throughput_s": 60}}))
    run = next(measure(setup, bare(), "baseline", "Baseline", [], 10.0))
    assert isinstance(run, Run)
    assert (run.plan.load.duration_s, run.plan.load.requests) == (60, 720)


@pytest.mark.parametrize(("factor", "drifts"), [(1.0, False), (1.04, False), (1.3, True), (0.7, True)])
def test_a_system_that_is_another_at_the_end_leaves_the_overheads_undecided(
    ran: Alone, factor: float, drifts: bool
) -> None:
    """By the baseline's first level, made again with the same requests: all of them longer or shorter by a factor."""
    first = ran.of("level", configuration="baseline", percent=SHARES[0]).outcome
    assert ran.of("again").outcome.summary.workload.fingerprint == first.summary.workload.fingerprint
    other = _longer(first, factor)
    done = [
        PerformedRun(one.step, other) if isinstance(one, PerformedRun) and one.step.part == "again" else one
        for one in ran.done
    ]
    found = guardrail.results(ran.setup, done)
    assert [one.code for one in found.undecided] == (["drifted_between"] if drifts else [])
    assert "not_repeated" not in {one.code for one in found.notes}


def test_a_test_that_repeats_nothing_says_that_a_change_would_be_unseen(ran: Alone) -> None:
    """As of a system that cannot be switched back."""
    done = [one for one in ran.done if not (isinstance(one, PerformedRun) and one.step.part == "again")]
    assert "not_repeated" in {one.code for one in guardrail.results(ran.setup, done).notes}


def _longer(run: Measured, factor: float) -> Measured:
    """The same run with all latencies so much longer."""
    assert run.requests is not None
    metrics = run.summary.metrics
    longer = changed(
        metrics, **{name: _with_p50(getattr(metrics, name), factor) for name in ("ttft_ms", "e2e_ms")}
    )
    return replace(
        run,
        requests=replace(
            run.requests, ttft_ms=factor * run.requests.ttft_ms, e2e_ms=factor * run.requests.e2e_ms
        ),
        summary=changed(run.summary, metrics=longer),
    )


def _with_p50(stats: Any, factor: float) -> Any:
    """The same with another median."""
    return changed(stats, p50=factor * stats.p50)


def test_medians_without_an_interval_are_said_to_be_too_short_to_tell(ran: Alone) -> None:
    """Requests each slower than the one before: the load of such a run is one state, of which nothing follows. The overhead
    stands, without an interval, and a change of the system at the end could not be told."""
    done = [
        PerformedRun(one.step, _sinking(one.outcome)) if isinstance(one, PerformedRun) else one
        for one in ran.done
    ]
    found = guardrail.results(ran.setup, done)
    overheads = [one for one in found.values if one.name.startswith("input_overhead")]
    assert len(overheads) == len(SHARES)
    for one in overheads:
        assert one.value is not None
        assert one.ci is None
        assert one.note == Note("medians_not_told_apart", one.note.facts if one.note else {})
    assert "repeated_too_short" in {one.code for one in found.notes}


def _sinking(run: Measured) -> Measured:
    """The same run with its latencies in order of size."""
    times = run.requests
    if times is None:
        return run
    return replace(run, requests=replace(times, ttft_ms=np.sort(times.ttft_ms), e2e_ms=np.sort(times.e2e_ms)))
