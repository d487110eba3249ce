"""What counts as evidence for a rule: which runs, which workloads, what is observed against what is declared."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from judge.compliant import (
    CLOSED,
    EVERY,
    FILTERS_OFF,
    NO_WARM_UP,
    RUN,
    UNNAMED,
    buckets,
    changed,
    deviating,
    perfect,
)

from inferometer.documents.run_facts import RoundTrips, TripTimes
from inferometer.judge.compliance.evidence import (
    ShownTable,
)
from inferometer.judge.compliance.latency_rules import ITL_ROWS
from inferometer.judge.compliance.statement import (
    Finding,
    comply,
)
from inferometer.measure.less_round_trip import LessRoundTrip
from inferometer.measure.measurement import Refusals
from inferometer.plan.lengths import lognormal
from inferometer.plan.request_class import RequestClass
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.plan.workload import MixtureWorkload
from inferometer.report.compliance_notes import worded
from inferometer.telemetry.clock_state import ChronyTracking, ClockSynchronisation, KernelClock

SLO = Slo.model_validate("ttft_p99<500ms")


def test_only_first_warm_ups_count() -> None:
    """Levels after the first rely on its warm-up; after a switch there is another first."""
    none = {"runs.1.summary.warm_up": NO_WARM_UP}
    assert deviating(changed(perfect("itl"), none)) == set()
    assert "D-4.5.1-volume" in deviating(changed(perfect("guardrail"), none))
    assert deviating(changed(perfect("prefix-cache"), none)) == set()


def test_a_run_that_only_warms_up_is_no_level_and_warms_what_follows() -> None:
    """Its warm-up is the test's, its load is not; the document's states say where the next one begins."""
    alone = perfect("tradeoff")
    first = changed(alone, {f"{RUN}.plan.load": CLOSED}).runs[0]
    warmed = dataclasses.replace(
        alone, runs=(dataclasses.replace(first, name="first", part="warm-up"), *alone.runs)
    )
    without = changed(warmed, {"runs.1.summary.warm_up": NO_WARM_UP})
    assert deviating(without) == set()
    assert "D-4.5.1-volume" in deviating(changed(warmed, {"runs.0.summary.warm_up": NO_WARM_UP}))
    switched = tuple(
        dataclasses.replace(one, state={"server": "started"}) if i else one
        for i, one in enumerate(without.runs)
    )
    assert "D-4.5.1-volume" in deviating(dataclasses.replace(without, runs=switched))


def test_classes_of_skewed_lengths_are_of_synthetic_skewed() -> None:
    """Q-fairness-classes: its two log-normals, within the bounds of each class; others are none of it."""
    lengths = [lognormal(5.5, 1, min=low, max=2 * low) for low in (64, 1024)]
    drawn = tuple(
        RequestClass(name=str(i), input_tokens=one, output_tokens=lognormal(4.5, 1.2, max=9))
        for i, one in enumerate(lengths)
    )
    changes = {f"{EVERY}.plan.workload": MixtureWorkload(classes=drawn)}
    assert deviating(changed(perfect("fairness"), changes)) == set()
    other = drawn[0].model_copy(update={"input_tokens": lognormal(5.5, 1.5)})
    changes = {f"{EVERY}.plan.workload": MixtureWorkload(classes=(other, drawn[1]))}
    assert deviating(changed(perfect("fairness"), changes)) == {"D-5.6.2-workload"}


@pytest.mark.parametrize(
    ("test", "standard"), [("prefix-cache", "code-completion"), ("guardrail", "conversation")]
)
def test_a_stand_in_is_not_the_recommended_workload_and_the_note_says_what_it_lacks(
    test: str, standard: str
) -> None:
    """Q-datasets: without the dataset of the draft it has the lengths and not the name. Other lengths are another workload."""
    rule = {"prefix-cache": "D-5.7.2-workload", "guardrail": "D-5.10.2-workload"}[test]

    def found(**workload: object) -> tuple[str, str]:
        made = Plan.model_validate({"workload": {"name": standard, **workload}}).workload
        changes = {f"{EVERY}.plan.workload": made, f"{RUN}.sut.boundary": "engine"}
        findings = comply(changed(perfect(test), changes)).findings
        return next((one.state, one.note.code) for one in findings if one.rule.id == rule)

    assert found() == ("violated", "stand_in")
    assert found(output_tokens=100) == ("violated", "other_workload")
    assert found(dataset="data") == ("satisfied", "workload")


def test_prompts_of_one_range_need_no_table_by_range() -> None:
    """Draft 5.1.4.2 asks for it where lengths vary."""
    changes = {
        f"{RUN}.ttft_by_input": buckets((256, 9), (512, 0)),
        "shown.tables": {"ttft": ShownTable("5.1.5.2", 3)},
    }
    assert deviating(changed(perfect("ttft"), changes)) == set()


def test_a_cell_that_the_draft_does_not_ask_for_may_be_empty() -> None:
    """An interval that could not be worked out is no deviation from Table 5; a missing P99 is."""

    def levels(*empty: str) -> set[str]:
        return deviating(changed(perfect("tradeoff"), {"shown.tables.levels.empty": empty}))

    assert levels("low", "high") == set()
    assert levels("ttft_p99") == {"D-5.3.5-table"}


OBSERVED: list[tuple[dict[str, Any], str]] = [
    # What is declared, and what is seen against it
    ({f"{RUN}.sut.guardrails": FILTERS_OFF, f"{RUN}.refusals": Refusals(3, {"finish_reason": 3})}, "D-4.8-account"),
    ({f"{RUN}.sut.prefix_caching": "disabled"}, "D-5.1.2-cache"),
    ({f"{RUN}.verdict.checks.token_counts.status": "fail"}, "D-4.4.2-declare"),
    ({f"{RUN}.sut.boundary": "engine"}, "D-4.8-account"),
    ({f"{RUN}.sut.boundary": "engine", "plan.target.url": None, "plan.declared.same_machine": False},
     "D-4.7.1-same-machine"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), OBSERVED, ids=lambda part: str(part)[:60])
def test_what_is_seen_beats_what_is_declared(changes: dict[str, Any], rule: str) -> None:
    """A contradiction breaks the rule."""
    found = {one.rule.id: one.state for one in comply(changed(perfect("ttft"), changes)).findings}
    assert found[rule] == "violated"


@pytest.mark.parametrize(
    ("url", "declared", "states"),
    [
        ("http://localhost:8000", None, ("satisfied", "not applicable")),
        ("http://127.0.0.7:8000", None, ("satisfied", "not applicable")),
        ("http://[::1]:8000", None, ("satisfied", "not applicable")),
        ("http://localhost:8000", False, ("violated", "declared")),  # a tunnel
        ("http://10.0.0.7:8000", None, ("violated", "declared")),
        ("http://10.0.0.7:8000", True, ("declared", "not applicable")),
        (None, None, ("satisfied", "not applicable")),
    ],
)
def test_one_machine_is_seen_by_its_address_or_declared(
    url: str | None, declared: bool | None, states: tuple[str, str]
) -> None:
    """Draft 4.7.1 for engines, and 4.7.2 for clocks that are then two."""
    changes = {
        f"{RUN}.sut.boundary": "engine",
        "plan.target.url": url,
        "plan.declared.same_machine": declared,
    }
    found = {one.rule.id: one.state for one in comply(changed(perfect("ttft"), changes)).findings}
    assert (found["D-4.7.1-same-machine"], found["D-4.7.2-ntp"]) == states


SYNCHRONISED = ClockSynchronisation(KernelClock(True, 2.5, 0.4, 0.0), timesyncd=True)
LOOSE = ClockSynchronisation(KernelClock(True, 10.5, 0.4, 0.0))
AT_LIMIT = ClockSynchronisation(KernelClock(True, 10.0, 0.4, 0.0))
FREE = ClockSynchronisation(KernelClock(synchronised=False))
PTP = ClockSynchronisation(chrony=ChronyTracking(True, 1, "PHC0", 0.0, 0.0, 0.002))
NEITHER: dict[str, Any] = {"plan.declared.clock_accuracy_ms": None, "plan.declared.clock_sync": None}
ACCURACY: dict[str, Any] = {"plan.declared.clock_accuracy_ms": None}


@pytest.mark.parametrize(
    ("state", "changes", "states"),
    [
        (None, {}, ("declared", "not applicable", "satisfied")),
        (None, NEITHER, ("unknown", "not applicable", "violated")),
        (ClockSynchronisation(), NEITHER, ("unknown", "not applicable", "violated")),
        (SYNCHRONISED, {}, ("satisfied", "not applicable", "satisfied")),
        (SYNCHRONISED, NEITHER, ("satisfied", "not applicable", "satisfied")),
        (SYNCHRONISED, ACCURACY, ("satisfied", "not applicable", "satisfied")),
        (SYNCHRONISED, {"plan.declared.clock_accuracy_ms": 11.0}, ("violated", "not applicable", "satisfied")),
        (AT_LIMIT, NEITHER, ("satisfied", "not applicable", "satisfied")),
        (LOOSE, NEITHER, ("unknown", "not applicable", "satisfied")),
        (LOOSE, {}, ("declared", "not applicable", "satisfied")),
        (FREE, NEITHER, ("violated", "not applicable", "violated")),
        (FREE, ACCURACY, ("violated", "not applicable", "violated")),
        (FREE, {}, ("declared", "not applicable", "satisfied")),
        (PTP, NEITHER, ("satisfied", "satisfied", "satisfied")),
    ],
)  # fmt: skip
def test_the_clients_clock_is_read_rather_than_declared(
    state: ClockSynchronisation | None, changes: dict[str, Any], states: tuple[str, str, str]
) -> None:
    """Draft 4.7.2: up to and including 10 ms (Q-clock-sync). What is declared stays a declaration, and a clock that nothing
    synchronises is said to be one."""
    statement = comply(changed(perfect("ttft"), {f"{EVERY}.instrument.clock_state": state, **changes}))
    found = {one.rule.id: one for one in statement.findings}
    rules = [found[f"D-4.7.2-{name}"] for name in ("ntp", "ptp", "report")]
    assert tuple(one.state for one in rules) == states
    assert all(worded(one.note) for one in rules)
    if state is FREE:
        assert "no time service" in worded(rules[0].note)


def test_the_run_that_knew_the_least_of_its_clock_decides() -> None:
    """Of several runs of a test."""
    changes = {f"{EVERY}.instrument.clock_state": SYNCHRONISED, "runs.1.summary.instrument.clock_state": FREE}
    (found,) = (
        one
        for one in comply(changed(perfect("throughput"), changes | NEITHER)).findings
        if one.rule.id == "D-4.7.2-ntp"
    )
    assert (found.state, found.run) == ("violated", perfect("throughput").runs[1].name)


SEEN = TripTimes(10, 20.1, 20.4, 23.0)
TRIPS = RoundTrips("kernel", SEEN, SEEN, SEEN)


def findings(changes: dict[str, Any]) -> dict[str, Finding]:
    """What comes of every rule."""
    return {one.rule.id: one for one in comply(changed(perfect("ttft"), changes)).findings}


def test_the_round_trip_to_a_gateway_is_that_which_was_measured() -> None:
    """Draft 4.7.3: before, while and behind; though no connection was opened while measuring."""
    changes = {f"{EVERY}.metrics.connect_ms": None, "plan.declared.network_rtt": "about 1 ms"}
    assert findings(changes)["D-4.7.3-rtt"].state == "declared"
    found = findings(changes | {f"{EVERY}.round_trips": TRIPS})["D-4.7.3-rtt"]
    assert found.state == "satisfied"
    assert worded(found.note) == (
        "round trips of TCP handshakes, P50: 20.4 ms before, 20.4 ms while measuring, 20.4 ms behind"
    )
    nothing = RoundTrips("kernel", TripTimes(0, None, None, None, failed=1))
    assert findings(changes | {f"{EVERY}.round_trips": nothing})["D-4.7.3-rtt"].state == "declared"


def test_the_instruments_own_adjustment_needs_nobodys_word() -> None:
    """Draft 4.7.3: it is named where it was made, with how much it was, and beside the tester's words."""
    stats = perfect("ttft").runs[0].summary.metrics.ttft_ms
    assert stats is not None
    less = {f"{RUN}.ttft_less_round_trip": LessRoundTrip(20.1, stats, 0)}
    by_hand = {"plan.declared.latency_adjustment": "less 3 ms of a proxy"}
    rule = "D-4.7.3-document"
    assert findings({})[rule].note.code == "no_adjustment"
    made = findings(less)[rule]
    assert made.state == "satisfied"
    assert "at most 20.1 ms" in worded(made.note)
    both = findings(less | by_hand)[rule]
    assert both.state == "declared"
    assert "20.1 ms" in worded(both.note)
    assert "less 3 ms of a proxy" in worded(both.note)
    assert findings(by_hand)[rule].note.code == "latency_adjustment"


ENGINE: dict[str, Any] = {
    f"{RUN}.sut.boundary": "engine",
    f"{EVERY}.sut.guardrails": FILTERS_OFF,
    "plan.target.url": "http://localhost",
}


def test_an_engine_is_conditionally_compliant_at_best() -> None:
    """Q-protocols: it is recommended to stream from engines over gRPC, which nothing here speaks."""
    statement = comply(changed(perfect("ttft"), ENGINE))
    assert statement.label == "conditionally compliant"
    assert [one.rule.id for one in statement.deviations] == ["D-4.6.1-grpc-engine"]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"plan.target.url": "https://localhost"}, "https"),
        ({"plan.target.url": "http://10.0.0.7:8000"}, "network"),
        ({"plan.declared.same_machine": False}, "network"),
        ({"plan.target.api_key_env": "KEY"}, "api_key"),
        ({f"{RUN}.requests.by_error": {"http_429": 2}}, "rate_limit"),
        ({f"{RUN}.sut.guardrails": UNNAMED}, "filter"),
        ({f"{RUN}.refusals": Refusals(3, {"finish_reason": 3})}, "filter"),
    ],
)
def test_what_an_engine_leaves_out_contradicts_its_boundary(changes: dict[str, Any], part: str) -> None:
    """Draft 4.1.1: transport, authentication, rate limits and filters; a gateway has them all. It is only stated, so the
    label stands unless a filter is there, which has a rule of its own (Q-engine-guardrails)."""

    def ruling(*more: dict[str, Any]) -> Finding:
        evidence = changed(perfect("ttft"), {key: value for one in more for key, value in one.items()})
        (found,) = (one for one in comply(evidence).findings if one.rule.id == "D-4.1.1-excluded")
        return found

    assert ruling(ENGINE).state == "satisfied"
    found = ruling(ENGINE, changes)
    assert (found.state, found.note.facts["parts"]) == ("violated", (part,))
    assert ruling(changes).state == "not applicable"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "not applicable"),
        ({f"{RUN}.sut.software": "Ollama 0.5"}, "unknown"),
        ({f"{RUN}.sut.accelerator": "Apple M3 Max"}, "unknown"),
        ({f"{RUN}.sut.software": "Ollama 0.5", "plan.target.url": "http://10.0.0.7"}, "not applicable"),
        ({f"{RUN}.sut.software": "Ollama 0.5", "plan.target.url": None}, "not applicable"),
    ],
)
def test_what_may_be_out_of_scope_is_said_and_not_claimed(changes: dict[str, Any], state: str) -> None:
    """Draft 3: a server for one user's machine, on the client's own, may be on-device inference; elsewhere it is none."""
    found = comply(changed(perfect("ttft"), ENGINE | changes)).findings
    assert {one.state for one in found if one.rule.id == "D-3-out-of-scope"} == {state}


def test_filters_that_a_test_switches_on_are_no_part_of_an_engine() -> None:
    """Drafts 4.1.1 and 4.8: the first run of 5.10 has none, and the later ones break the boundary all the same."""
    off = changed(perfect("guardrail"), ENGINE)
    on = changed(off, {"runs.-1.summary.sut.guardrails": UNNAMED})
    for evidence, broken in ((off, False), (on, True)):
        found = [one for one in comply(evidence).findings if one.state == "violated"]
        rules = {
            one.rule.id: one
            for one in found
            if one.note.code in ("outside_the_engine", "filter_inside_engine")
        }
        assert bool(rules) is broken
        if broken:
            assert {one.note.code for one in rules.values()} == {"outside_the_engine", "filter_inside_engine"}
            assert {one.run for one in rules.values()} == {evidence.runs[-1].name}


def test_what_nobody_can_check_says_so() -> None:
    """And counts for nothing: prompts of a file, and whether a system recognises a benchmark."""
    found = {one.rule.id: one for one in comply(perfect("ttft")).findings}
    gaming = found["D-7.2-gaming"]
    assert (gaming.state, gaming.note.code) == ("not applicable", "cannot_be_checked")
    evidence = changed(perfect("guardrail"), {f"{EVERY}.plan.workload.file": "prompts.jsonl"})
    (benign,) = (one for one in comply(evidence).findings if one.rule.id == "D-5.10.2-benign")
    assert (benign.state, benign.note.code) == ("not applicable", "cannot_be_checked")


@pytest.mark.parametrize(
    ("test", "changes", "rule", "states"),
    [
        ("ttft", {f"{RUN}.server": None}, "D-5.1.4.2-components", {"not applicable"}),
        ("throughput", {f"{EVERY}.plan.slos": ()}, "D-5.2.2-slo-meaning", {"not applicable"}),
        ("throughput", {f"{RUN}.sut.accelerator_count": 0}, "D-5.2.4.2-gpu", {"not applicable"}),
        ("throughput", {}, "D-5.2.4.2-batch", {"not applicable"}),
        ("throughput", {"shown.values.batch_utilisation": True}, "D-5.2.4.2-batch", {"satisfied"}),
        ("tradeoff", {}, "D-5.3.4-optimal", {"not applicable"}),
        ("tradeoff", {f"{EVERY}.plan.slos": (SLO,)}, "D-5.3.4-optimal", {"violated"}),
        ("throughput", {f"{EVERY}.plan.slos": (SLO,)}, "D-5.2.2-slo-meaning", {"satisfied"}),
    ],
)
def test_a_statement_about_what_can_be_measured_holds_where_it_can(
    test: str, changes: dict[str, Any], rule: str, states: set[str]
) -> None:
    """The queue's wait where the server tells it, tokens by GPU where there are any, an optimum where there are objectives."""
    found = comply(changed(perfect(test), changes)).findings
    assert {one.state for one in found if one.rule.id == rule} == states


@pytest.mark.parametrize(
    ("test", "state", "path", "value", "rule"),
    [
        (
            "prefix-cache",
            {"prefix_cache": "disabled"},
            "throughput.cached_input_share",
            0.4,
            "D-5.7.2-two-configs",
        ),
        ("guardrail", {"guardrails": "baseline"}, "refusals.by_signal.policy_status", 3, "D-5.10.2-configs"),
    ],
)
def test_what_runs_show_contradicts_a_state_that_was_only_declared(
    test: str, state: dict[str, str], path: str, value: object, rule: str
) -> None:
    """The word of whoever switched does not stand against what the system did."""
    changes = {f"{RUN}.{path}": value, "switches.0.status": "declared", "runs.0.state": state}
    found = comply(changed(perfect(test), changes))
    assert (rule, "violated", "run-0") in {(one.rule.id, one.state, one.run) for one in found.deviations}


def test_a_run_that_its_requests_ended_lasted_as_long_as_they_did() -> None:
    """Not as long as it might have."""
    requests = "runs.-1.summary.plan.load.requests"
    short = changed(perfect("memory-pressure"), {"runs.-1.summary.window.duration_s": 90.0})
    assert deviating(short) == set()
    assert deviating(changed(short, {requests: 20_001})) == set()
    assert deviating(changed(short, {requests: 20_000})) == {"D-5.8.3-run"}


def test_the_table_of_gaps_is_held_against_those_of_long_answers() -> None:
    """Law: where some answers are short the gaps of all of them are others, and say nothing against the table (draft 5.4.2);
    many gaps of short answers do not make up for few of long ones."""
    every = {f"{EVERY}.metrics.itl_ms.{name}": 7.0 for name in ("p50", "p90", "p95", "p99", "mean")}
    assert deviating(changed(perfect("itl"), every)) == set()
    few = {f"{EVERY}.itl_shape.itl_ms.n": 4_999, "shown.tables.itl.cells.0.at_25": 4_999}
    assert deviating(changed(perfect("itl"), few)) == {"D-5.4.2-count"}


def test_gaps_between_chunks_are_gaps() -> None:
    """Law: option A of draft 4.6.3 has them for ITL, and their rows are those that draft 5.4.4 asks for."""
    named = {
        f"shown.tables.itl.cells.{place}.metric": label.replace("ITL", "Time Between Chunks")
        for place, label in enumerate(ITL_ROWS)
    }
    assert deviating(changed(perfect("itl"), named)) == set()
    other = {"shown.tables.itl.cells.4.metric": "Time Between Packets P99"}
    assert "D-5.4.4.1-percentiles" in deviating(changed(perfect("itl"), other))


def test_a_search_of_which_nothing_passed_did_not_end_between_two_levels() -> None:
    """Law: pass and fail are both there, or all levels up to the highest allowed passed."""
    for said, open_ in (("Fail", True), ("not settled", True), ("Pass", True)):
        statuses = {f"shown.tables.levels.cells.{place}.status": said for place in (0, 1)}
        assert ("D-5.5.3-search" in deviating(changed(perfect("capacity"), statuses))) == open_
    whole = {f"shown.tables.levels.cells.{place}.status": "Pass" for place in (0, 1)}
    assert "D-5.5.3-search" not in deviating(changed(perfect("capacity"), whole | {"parameters.maximum": 16}))
