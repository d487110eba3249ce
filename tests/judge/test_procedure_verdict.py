"""The verdict of a test out of those of its runs, and of a campaign out of those of its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from judge.compliant import changed, check, perfect

from inferometer.documents.campaign import (
    TEST_SCHEMA,
    Conditions,
    ProcedureDocument,
    ProcedureReason,
    ProcedureRun,
    ProcedureVerdict,
    ReportedValue,
)
from inferometer.documents.note import Note, WordedNote
from inferometer.documents.summary import Summary
from inferometer.documents.verdict import CheckStatus
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.procedure_verdict import (
    ProcedureJudgement,
    contradictions,
    of_maximum,
    verdict_of_campaign,
    verdict_of_test,
)
from inferometer.measure.breakdown import Conversations
from inferometer.measure.measurement import Refusals
from inferometer.report.campaign.verdict import verdict_of


def run(changes: Mapping[str, Any] | None = None, part: str = "level") -> MeasuredRun:
    """The run of a test in which nothing is amiss, with these changes to its summary."""
    paths = {f"runs.0.summary.{path}": value for path, value in (changes or {}).items()}
    return changed(perfect("ttft"), paths | {"runs.0.part": part}).runs[0]


def judged(
    *runs: MeasuredRun, problem: str | None = None, undecided: tuple[Note, ...] = ()
) -> ProcedureJudgement:
    return verdict_of_test("ttft", runs, problem, undecided)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ("pass", "lateness", "VALID"),
        ("fail", "lateness", "INVALID"),
        ("unsure", "receive_lag", "INCONCLUSIVE"),
        ("note", "lateness", "VALID"),
        ("fail", "error_rate", "VALID"),
        ("unsure", "filling", "VALID"),
        ("unsure", "samples_p99", "VALID"),
    ],
)
def test_what_a_run_says_of_the_instrument_counts_and_what_it_says_of_the_system_does_not(
    status: CheckStatus, code: str, expected: str
) -> None:
    """A test drives a system where it fails, on purpose."""
    assert judged(run({"verdict.checks": (check(code, status),)})).status == expected


def test_a_test_of_which_nothing_was_answered_says_nothing() -> None:
    """However well the instrument worked; one run with answers will do."""
    none = run({"requests.completed": 0})
    assert judged(none).status == "INCONCLUSIVE"
    assert judged(none, none).objections[0].code == "unanswered"
    assert judged(none, run()).status == "VALID"


def test_a_test_that_was_cut_short_or_left_open_is_inconclusive() -> None:
    """Each open question is a reason of its own; one that several runs show is one reason, and says of how many."""
    assert [one.code for one in judged(run(), problem="it broke").objections] == ["partial"]
    questions = (Note("search_not_ended"), Note("no_pilot_measured"))
    open_ = judged(run(), undecided=questions)
    assert (open_.status, [one.reason for one in open_.objections]) == ("INCONCLUSIVE", [*questions])
    late = run({"verdict.checks": (check("lateness", "fail"),)})
    assert [(one.code, one.runs) for one in judged(late, late).objections] == [("lateness", 2)]


def test_a_run_that_only_estimates_does_not_count() -> None:
    """A pilot says where to look, and nothing else."""
    late = {"verdict.checks": (check("lateness", "fail"),)}
    assert judged(run(late, "pilot")).status == "VALID"


@pytest.mark.parametrize(
    ("part", "state", "cached", "signals", "expected"),
    [
        ("disabled", {"prefix_cache": "disabled"}, 0.4, {}, "INVALID"),
        ("disabled", {"prefix_cache": "disabled"}, 0.0, {}, "VALID"),
        ("disabled", {"prefix_cache": "disabled"}, None, {}, "VALID"),
        ("warm", {"prefix_cache": "enabled"}, 0.0, {}, "INVALID"),
        ("warm", {"prefix_cache": "enabled"}, None, {}, "VALID"),
        ("cold", {"prefix_cache": "enabled"}, 0.0, {}, "VALID"),
        ("level", {"guardrails": "baseline"}, None, {"finish_reason": 3}, "INVALID"),
        ("level", {"guardrails": "baseline"}, None, {"refusal_field": 3}, "VALID"),  # the model itself did
        ("level", {"guardrails": "full"}, None, {"finish_reason": 3}, "VALID"),
    ],
)
def test_a_state_that_the_system_contradicts_makes_the_test_invalid(
    part: str, state: Mapping[str, str], cached: float | None, signals: Mapping[str, int], expected: str
) -> None:
    """Whoever declared it; what was switched is asked for by its name."""
    refusals = Refusals(sum(signals.values()), dict(signals))
    observed = run({"throughput.cached_input_share": cached, "refusals": refusals}, part)
    of = MeasuredRun(observed.name, part, Conditions(), observed.summary, state)
    found = judged(of)
    assert found.status == expected
    assert ("contradicted" in {one.code for one in found.objections}) == (expected == "INVALID")
    assert bool(contradictions(part, state, observed.summary, *state)) == (expected == "INVALID")
    assert not contradictions(part, state, observed.summary, "another")


def test_a_campaign_is_as_good_as_its_worst_test() -> None:
    """And names it."""
    why = ProcedureReason("undecided", "INCONCLUSIVE", None, "why")
    tests = [("a", "A", ProcedureVerdict("VALID", ())), ("b", "B", ProcedureVerdict("INCONCLUSIVE", (why,)))]
    found = verdict_of_campaign(tests)
    assert found.status == "INCONCLUSIVE"
    assert [(one.code, one.message) for one in found.reasons] == [("b", "B: why")]
    assert verdict_of_campaign(tests[:1]).status == "VALID"


RATE = 20.0
"""Requests per second that 5.2 came to, give or take 2 %."""


def _campaign(
    seen: float, maximum: float, **changes: Any
) -> tuple[list[ProcedureDocument], dict[str, Summary]]:
    """Documents of 5.2 with a maximum and of 5.3 with one run, each with its run's summary."""
    given = {"success_rate.value": 1.0, "throughput.output_tok_s": seen, "throughput.ci95.output_tok_s": None}
    states, loop = changes.pop("state", {}), changes.pop("loop", "open")
    mine, other = run(), run(given | changes)
    ends = 0.9 * maximum, 1.1 * maximum
    values = (
        ReportedValue("max_output_tok_s", "Max", maximum, "tok/s", ends, None, True),
        ReportedValue("max_request_s", "Max", RATE, "req/s", (0.98 * RATE, 1.02 * RATE), None, True),
    )
    document = simulated_test()
    ran = [
        ProcedureRun(name, "level", Conditions(), "why", state, "VALID", None)
        for name, state in (("a", {}), ("b", states))
    ]
    tests = [
        msgspec.structs.replace(
            document, test="throughput", parameters={"loop": loop}, values=values, runs=(ran[0],)
        ),
        msgspec.structs.replace(document, test="tradeoff", values=(), runs=(ran[1],)),
    ]
    return tests, {"a": mine.summary, "b": other.summary}


def simulated_test() -> ProcedureDocument:
    """A test's document without runs, values and tables."""
    return ProcedureDocument(
        schema=TEST_SCHEMA, version="0", test="ttft", section="5.1", title="A test", objective="", started=None, ended=None,
        simulated=True, quick=False, ended_by=None, problem=None, parameters={}, plan={}, plan_hash=None,
        verdict=ProcedureVerdict("VALID", ()), compliance=None, switches=(), runs=(), values=(), tables=(), figures=(),
        notes=(), undecided=(),
    )  # fmt: skip


def test_a_maximum_that_another_test_exceeded_is_none() -> None:
    """Beyond the maximum's interval, with requests that succeeded, on the same workload and in the same state."""
    (found,) = of_maximum(*_campaign(1200.0, 1000.0))
    assert (found.code, found.status, found.run) == ("maximum_exceeded", "INCONCLUSIVE", "b")
    verdict = verdict_of(*_campaign(1200.0, 1000.0))
    assert verdict.status == "INCONCLUSIVE"
    assert "1,200" in verdict.reasons[-1].message
    assert verdict_of(*_campaign(1050.0, 1000.0)).status == "VALID"


def test_a_maximum_is_exceeded_by_what_sessions_brought_in_as_it_was_measured() -> None:
    """Law: output tokens a second are those of all requests, however many of them an arrival brings; the run that is named is
    the one that saw most of them."""
    of_five = Conversations(10, 10, 0, 0, 0, ())
    tests, summaries = _campaign(1200.0, 1000.0, **{"requests.sent": 50, "conversations": of_five})
    assert summaries["b"].requests_each == 5.0
    (found,) = of_maximum(tests, summaries)
    assert isinstance(found.reason, Note)
    assert found.reason.facts["output_tok_s"] == 1200.0


@pytest.mark.parametrize(
    "changes",
    [
        {"success_rate.value": 0.5},
        {"throughput.ci95.output_tok_s": (1000.0, 1400.0)},
        {"state": {"prefix_cache": "enabled"}},
        {"state": {"guardrails": "full"}},
        {"sut.guardrails.output_filter": False},
    ],
)
def test_more_tokens_by_failures_by_chance_or_in_another_state_refute_no_maximum(
    changes: dict[str, Any],
) -> None:
    """Nor does a system whose cache saves it the prompts, or one that discloses other filters."""
    assert not [*of_maximum(*_campaign(1200.0, 1000.0, **changes))]


def _offered(rate: float, ratio: tuple[float, float], **changes: Any) -> list[str]:
    """What a run of another test at this rate, of which so many requests ended, says against the maximum."""
    load = {"plan.load.model": "open", "plan.load.rate": rate, "steady.completion_ratio_ci95": ratio}
    return [one.code for one in of_maximum(*_campaign(500.0, 1000.0, **load, **changes))]


def test_a_maximum_below_which_another_test_was_not_kept_up_with_is_none() -> None:
    """At no more than nine tenths of it, of which surely fewer than nine tenths ended: the tests are not of one system."""
    assert _offered(0.85 * RATE, (0.5, 0.7)) == ["maximum_not_sustained"]
    load = {
        "plan.load.rate": 0.85 * RATE,
        "plan.load.model": "open",
        "steady.completion_ratio_ci95": (0.5, 0.7),
    }
    verdict = verdict_of(*_campaign(500.0, 1000.0, **load))
    assert (verdict.status, verdict.reasons[-1].code) == ("INCONCLUSIVE", "maximum_not_sustained")
    assert "17" in verdict.reasons[-1].message


@pytest.mark.parametrize(
    ("rate", "ratio", "changes"),
    [
        (0.95 * RATE, (0.5, 0.7), {}),
        (0.85 * RATE, (0.8, 0.95), {}),
        (0.85 * RATE, (0.5, 0.7), {"state": {"guardrails": "full"}}),
        (0.85 * RATE, (0.5, 0.7), {"loop": "closed"}),
    ],
)
def test_load_near_the_maximum_chance_another_state_and_a_closed_loop_refute_no_maximum(
    rate: float, ratio: tuple[float, float], changes: dict[str, Any]
) -> None:
    """In closed loop the maximum is that of a client that holds requests back."""
    assert _offered(rate, ratio, **changes) == []


def test_what_kept_a_test_from_its_answer_is_said_first() -> None:
    """Before what a run of it is unsure of, which follows from the same; a fault of the instrument comes before both."""
    open_end = (Note("no_length_measured"),)
    unsure = judged(run({"verdict.checks": (check("streamed", "unsure"),)}), undecided=open_end)
    assert [one.code for one in unsure.objections] == ["undecided", "streamed"]
    faulty = judged(run({"verdict.checks": (check("lateness", "fail"),)}), undecided=open_end)
    assert [one.code for one in faulty.objections] == ["lateness", "undecided"]


@pytest.mark.parametrize(
    ("test", "part", "completed", "failed", "refused", "expected"),
    [
        ("ttft", "level", 126, 174, 0, ["failures"]),
        ("ttft", "level", 290, 10, 0, ["failures"]),
        ("ttft", "level", 298, 2, 0, []),
        ("ttft", "level", 19, 1, 0, []),  # one of twenty may be one in a hundred
        ("long-context", "level", 15, 5, 0, ["failures"]),
        ("long-context", "climb-800", 15, 5, 0, []),
        ("itl", "base-level", 126, 174, 0, []),
        ("ttft", "level", 100, 50, 50, ["failures"]),
        ("long-context", "level", 150, 50, 50, ["failures"]),
        ("guardrail", "level", 100, 50, 50, ["failures"]),
        ("guardrail input", "level", 100, 50, 50, []),
        ("guardrail input", "level", 100, 50, 10, ["failures"]),
        ("throughput", "level", 100, 50, 50, []),
        ("tradeoff", "level", 126, 174, 0, []),
        ("memory-pressure", "level", 126, 174, 0, []),
    ],
)
def test_times_of_those_that_were_answered_settle_nothing_where_others_failed(
    test: str, part: str, completed: int, failed: int, refused: int, expected: list[str]
) -> None:
    """In tests at loads that a system is to carry. Only where it is sure that more than one in a hundred failed; what filters
    refuse that a test switched on is their work, and where a test looks for the load at which a system fails, it is to fail."""
    test, _, configuration = test.partition(" ")
    counts = {"requests.completed": completed, "requests.failed": failed}
    observed = run(counts | {"refusals": Refusals(refused, {})}, part)
    state = {"guardrails": configuration} if configuration else {}
    made = MeasuredRun(observed.name, part, observed.at, observed.summary, state)
    found = verdict_of_test(test, [made], None, ())
    assert [one.code for one in found.objections] == expected
    assert found.status == ("INCONCLUSIVE" if expected else "VALID")


@pytest.mark.parametrize(
    ("changes", "state", "expected"),
    [
        ({"sut.model": "another"}, {}, [("model_changed", "INVALID", 2)]),
        ({"sut.observed.server": "engine/2"}, {}, [("server_changed", "INCONCLUSIVE", 2)]),
        ({"sut.observed.server": None}, {}, []),
        ({"sut.model": "another"}, {"guardrails": "full"}, []),
        ({"sut.observed.answered_as": "another"}, {}, [("model_changed", "INVALID", 2)]),
        ({"sut.model": "another"}, {"prefix_cache": "enabled"}, [("model_changed", "INVALID", 2)]),
        (
            {"sut.observed.answered_as": "another"},
            {"prefix_cache": "enabled"},
            [("model_changed", "INVALID", 2)],
        ),
    ],
)
def test_runs_of_several_systems_have_no_answer_together(
    changes: dict[str, Any], state: dict[str, str], expected: list[tuple[str, str, int]]
) -> None:
    """Of another model none, be it one that answers to the name asked for; a server that names itself otherwise may be another.
    One that was switched may be meant to be, but for its cache alone. The same holds of runs of several tests."""
    first, other = (
        run({"sut.observed.server": "engine/1"}),
        run({"sut.observed.server": "engine/1"} | changes),
    )
    switched = MeasuredRun(other.name, other.part, other.at, other.summary, state)
    found = judged(first, switched, first, switched)
    assert [(one.code, one.status, one.runs) for one in found.objections] == expected
    document = simulated_test()
    ran = [
        ProcedureRun(name, "level", Conditions(), "why", made, "VALID", None)
        for name, made in (("a", {}), ("b", state))
    ]
    tests = [msgspec.structs.replace(document, test=one.run, runs=(one,)) for one in ran]
    verdict = verdict_of(tests, {"a": first.summary, "b": other.summary})
    assert [(one.code, one.status) for one in verdict.reasons] == [one[:2] for one in expected]


def test_a_campaign_without_tests_that_were_asked_for_is_not_whole() -> None:
    """Whatever the others came to; those that are missing are named."""
    done = [simulated_test()]
    assert verdict_of(done, {}, ["ttft"]).status == "VALID"
    verdict = verdict_of(done, {}, ["capacity", "ttft", "itl"])
    assert (verdict.status, [one.code for one in verdict.reasons]) == ("INCONCLUSIVE", ["incomplete"])
    assert "capacity, itl" in verdict.reasons[0].message


def headline(
    value: float | str | None, ci: tuple[float, float] | None, *, few: bool = False
) -> ReportedValue:
    """A value that stands for a test."""
    return ReportedValue("ttft_p50", "TTFT P50", value, "ms", ci, None, False, few=few)


def difference(value: float, ci: tuple[float, float], of: float | None) -> ReportedValue:
    """One that is a difference in a latency of `of`."""
    return msgspec.structs.replace(
        headline(value, ci), note=WordedNote("of_the_medians", {"of": of}, False, "of the medians")
    )


@pytest.mark.parametrize(
    ("test", "shown", "codes"),
    [
        ("ttft", headline(100.0, (95.0, 105.0)), []),
        ("guardrail", difference(0.0, (0.0, 0.0), 40.0), []),
        ("guardrail", difference(0.0, (-2.0, 2.0), 40.0), []),
        ("guardrail", difference(0.0, (-2.0, 2.1), 40.0), ["wide_interval"]),
        ("guardrail", difference(0.0, (-2.0, 2.0), None), ["wide_interval"]),
        ("guardrail", difference(30.0, (20.0, 39.0), 40.0), []),
        ("prefix-cache", difference(1.0, (-3.0, 5.0), 100.0), []),
        ("ttft", headline(100.0, (95.0, 105.0), few=True), ["few_samples"]),
        ("ttft", headline(100.0, None), ["no_interval"]),
        ("capacity", headline(8, None), ["no_interval"]),
        ("capacity", headline(8, (7.0, 9.0)), []),
        ("cold-start", headline(8.0, None), ["no_interval"]),
        ("memory-pressure", headline(8, None), ["no_interval"]),
        ("guardrail", headline(8.0, None), ["no_interval"]),
        ("guardrail", headline(8.0, (7.5, 8.5)), []),
        ("guardrail", headline(0.1, (-0.4, 0.6)), ["wide_interval"]),
        ("tradeoff", headline(8.0, None), []),
        ("ttft", headline(100.0, (60.0, 120.0)), []),
        ("ttft", headline(100.0, (60.0, 121.0)), ["wide_interval"]),
        ("long-context", headline(1.0, (-0.1, 0.1)), ["wide_interval"]),
        ("long-context", headline("linear", None), []),
        ("ttft", headline(None, None), ["unmeasured"]),
        ("long-context", headline(None, None), ["unmeasured"]),
        ("ttft", None, []),
    ],
)
def test_a_headline_that_is_hardly_known_makes_its_test_inconclusive(
    test: str, shown: ReportedValue | None, codes: list[str]
) -> None:
    """By its samples and its interval; what has no interval by nature needs none, and what is no number has neither. What was
    not measured is not known at all."""
    found = verdict_of_test(test, [run()], None, (), shown)
    assert [one.code for one in found.objections] == codes
    assert found.status == ("INCONCLUSIVE" if codes else "VALID")


@pytest.mark.parametrize(("test", "completed", "status"), [
    ("prefix-cache", 20, "VALID"), ("prefix-cache", 19, "INCONCLUSIVE"), ("capacity", 19, "VALID"),
])  # fmt: skip
def test_medians_need_twenty_requests_in_each_run(test: str, completed: int, status: str) -> None:
    """Where the headline is reckoned with them; estimates do not count."""
    few = run({"requests.completed": completed})
    pilot = run({"requests.completed": 1}, part="pilot")
    assert verdict_of_test(test, [run(), few, pilot], None, ()).status == status


@pytest.mark.parametrize(
    ("starts", "held", "test", "codes"),
    [
        (6, 0, "cold-start", []),
        (1, 0, "cold-start", ["streamed"]),
        (6, 3, "cold-start", ["streamed"]),
        (6, 0, "ttft", ["streamed"]),
    ],
)
def test_runs_of_one_request_show_together_that_answers_were_not_held_back(
    starts: int, held: int, test: str, codes: list[str]
) -> None:
    """One answer alone never shows it. All of a test's do: by Wilson's interval of their share, 0 of 6 and not 3 of 6; and
    only where each run has one answer by the test's design."""
    checks = [
        msgspec.structs.replace(
            check("streamed", "unsure"), facts={"of": "few", "held": int(at < held), "judged": 1}
        )
        for at in range(starts)
    ]
    runs = [run({"verdict.checks": (one,)}) for one in checks]
    assert [one.code for one in verdict_of_test(test, runs, None, ()).objections] == codes


@pytest.mark.parametrize(
    ("test", "of", "codes"),
    [("guardrail", "filter", []), ("guardrail", None, ["streamed"]), ("ttft", "filter", ["streamed"])],
)
def test_a_disclosed_filter_that_holds_answers_back_is_what_its_own_test_is_about(
    test: str, of: str | None, codes: list[str]
) -> None:
    """Law: only in the test of filters, and only where one is disclosed, do held-back answers leave the verdict alone."""
    held = msgspec.structs.replace(check("streamed", "unsure"), facts={"of": of})
    found = verdict_of_test(test, [run({"verdict.checks": (held,)})], None, ())
    assert [one.code for one in found.objections] == codes
