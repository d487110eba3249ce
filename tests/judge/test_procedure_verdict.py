"""The verdict of a test out of those of its runs, and of a campaign out of those of its tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from judge.compliant import changed, check, perfect

from inferometer.documents.campaign import Conditions, ProcedureReason, ProcedureVerdict
from inferometer.documents.note import Note
from inferometer.documents.verdict import CheckStatus
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.procedure_verdict import (
    ProcedureJudgement,
    contradictions,
    verdict_of_campaign,
    verdict_of_test,
)
from inferometer.measure.measurement import Refusals


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
        ("unsure", "stationary", "VALID"),
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
