"""Which checks of its runs count in the verdict of a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from judge.compliant import changed, check, perfect

from inferometer.documents.campaign import Conditions
from inferometer.documents.verdict import CheckStatus
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.counted_checks import ESTIMATES, NOT_COUNTED, OF_SESSIONS, OF_STEADINESS
from inferometer.judge.judge import CHECKS, OF_THE_INSTRUMENT
from inferometer.judge.procedure_verdict import verdict_of_test
from inferometer.measure.breakdown import Conversations
from inferometer.procedures.full_again import PART

WARM = {"prefix_cache": "enabled"}


def run(
    code: str,
    status: CheckStatus,
    part: str = "level",
    *,
    state: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] | None = None,
    at: Conditions | None = None,
    name: str = "a",
) -> MeasuredRun:
    """A run in which nothing is amiss but this check."""
    found = msgspec.structs.replace(check(code, status), facts=dict(facts or {}))
    summary = changed(perfect("ttft"), {"runs.0.summary.verdict.checks": (found,)}).runs[0].summary
    return MeasuredRun(name, part, at or Conditions(), summary, dict(state or {}))


def codes(test: str, *runs: MeasuredRun) -> list[str]:
    """What is held against a test with these runs."""
    return [one.code for one in verdict_of_test(test, runs, None, ()).objections]


def test_every_check_counts_or_has_a_reason_why_it_does_not() -> None:
    """Law: none is forgotten, and none is in two places but `error_rate`, which counts where it is the client's own."""
    every = {entry.code for entry in CHECKS}
    sometimes = {*OF_STEADINESS, *OF_SESSIONS, "cache_hits", "filling"}
    assert {*OF_THE_INSTRUMENT, *sometimes, *NOT_COUNTED} == every
    assert not set(NOT_COUNTED) & {*OF_THE_INSTRUMENT, *sometimes}
    assert not set(OF_STEADINESS) & OF_THE_INSTRUMENT


def of_sessions(one: MeasuredRun) -> MeasuredRun:
    """The same of conversations of two turns."""
    sent = one.summary.requests.sent
    talks = Conversations(sent // 2, sent // 2, 0, 0, 0, ())
    return replace(one, summary=msgspec.structs.replace(one.summary, conversations=talks))


@pytest.mark.parametrize("code", sorted(OF_SESSIONS))
def test_what_an_overload_does_to_sessions_counts_where_latencies_are_the_headline(code: str) -> None:
    """Law: a level of a search cuts sessions short on purpose; one whose latencies are shown does not."""
    assert codes("ttft", of_sessions(run(code, "unsure"))) == [code]
    assert codes("throughput", of_sessions(run(code, "unsure"))) == []


def test_a_run_that_its_sessions_never_filled_has_no_latencies_of_them() -> None:
    """Law: `filling` counts of sessions where latencies are the headline, and of levels of 5.3 that are to be carried; never of
    single requests."""
    assert codes("ttft", run("filling", "unsure")) == []
    assert codes("ttft", of_sessions(run("filling", "unsure"))) == ["filling"]
    light, heavy = Conditions(percent=50, rate=1), Conditions(percent=110, rate=2)
    assert codes("tradeoff", of_sessions(run("filling", "unsure", at=light))) == ["filling"]
    assert codes("tradeoff", of_sessions(run("filling", "unsure", at=heavy))) == []
    assert codes("throughput", of_sessions(run("filling", "unsure"))) == []
    assert codes("ttft", of_sessions(run("filling", "unsure", "session-length"))) == []


@pytest.mark.parametrize("test", ["ttft", "throughput", "capacity", "itl", "long-context", "memory-pressure"])
def test_hits_of_a_cache_that_was_to_find_nothing_count_in_every_test(test: str) -> None:
    """Law: prompts that a cache answers are no prompts, whatever is headlined; a pilot headlines nothing."""
    assert codes(test, run("cache_hits", "fail")) == ["cache_hits"]
    assert codes(test, run("cache_hits", "fail", "pilot")) == []
    assert verdict_of_test(test, [run("cache_hits", "unsure")], None, ()).status == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("state", "expected"),
    [({}, ["cache_hits"]), ({"prefix_cache": "disabled"}, ["contradicted", "cache_hits"]), (WARM, [])],
)
def test_hits_of_a_cache_that_was_switched_on_are_the_tests_own_subject(
    state: Mapping[str, str], expected: list[str]
) -> None:
    """Law: what counts is the state that the run was made in."""
    assert codes("prefix-cache", run("cache_hits", "fail", "warm", state=state)) == expected


@pytest.mark.parametrize("code", sorted(OF_STEADINESS))
@pytest.mark.parametrize(
    ("test", "part", "counts"),
    [
        ("ttft", "level", True),
        ("itl", "level", True),
        ("fairness", "mixed", True),
        ("prefix-cache", "cold", True),
        ("guardrail", "again", True),
        ("long-context", "level", True),
        ("itl", "base-level", False),
        ("throughput", "level", False),
        ("capacity", "level", False),
        ("tradeoff", "level", False),
        ("memory-pressure", "level", False),
    ],
)
def test_a_system_that_changes_in_a_run_counts_where_its_latencies_are_the_headline(
    code: str, test: str, part: str, counts: bool
) -> None:
    """Law: levels beyond what a system sustains drift by design, and where they are looked for that is no objection."""
    assert codes(test, run(code, "unsure", part)) == ([code] if counts else [])


def test_a_run_too_short_to_tell_whether_the_system_changed_does_not_say_that_it_did() -> None:
    """Law: the interval says how little is known."""
    assert codes("ttft", run("drift", "unsure", facts={"of": "short"})) == []
    assert codes("ttft", run("drift", "unsure", facts={"of": "swings"})) == ["drift"]


def test_of_several_levels_only_the_headlines_has_to_be_steady() -> None:
    """Law: the first that was answered is headlined; one beyond saturation, as the plan may ask for, is not."""
    first, beyond = Conditions(percent=50, rate=5.0), Conditions(percent=120, rate=12.0)
    calm, steady = run("drift", "pass", at=first), run("drift", "pass", at=beyond, name="b")
    assert codes("ttft", calm, run("drift", "unsure", at=beyond, name="b")) == []
    assert codes("ttft", run("drift", "unsure", at=first), steady) == ["drift"]
    again = run("drift", "unsure", "again", at=first, name="c")
    assert codes("guardrail", calm, steady, again) == ["drift"]
    assert codes("long-context", calm, run("drift", "unsure", at=beyond, name="b")) == ["drift"]


@pytest.mark.parametrize("test", ["capacity", "ttft"])
def test_a_request_that_this_machine_could_not_connect_is_no_failure_of_the_system(test: str) -> None:
    """Law: failures are the subject of a test of limits, but for those that the client made."""
    assert codes(test, run("error_rate", "fail", facts={"of": "own"})) == ["error_rate"]
    assert codes(test, run("error_rate", "fail")) == []


def test_a_cache_that_was_declared_off_contradicts_that_with_one_token() -> None:
    """Law: where no test switched it, the declaration is the state; where one did, that is."""
    paths = {
        "runs.0.summary.sut.prefix_caching": "disabled",
        "runs.0.summary.throughput.cached_input_share": 0.03,
    }
    summary = changed(perfect("ttft"), paths).runs[0].summary
    assert codes("ttft", MeasuredRun("a", "level", Conditions(), summary, {})) == ["contradicted"]
    assert codes("prefix-cache", MeasuredRun("a", "cold", Conditions(), summary, WARM)) == []


def test_a_closing_look_at_the_full_system_is_an_estimate_as_the_first_one_is() -> None:
    """Law: its few requests are none of the headline's."""
    assert {"base-pilot", PART} <= set(ESTIMATES)
