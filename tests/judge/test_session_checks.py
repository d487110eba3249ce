"""The checks of recorded agent sessions: what a right client leaves passes, and each planted fault flips its verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_play import FAN_OUT, Faults, Played, Step, play

from inferometer.cluster.merging import moved_outcomes
from inferometer.judge.judge import judge
from inferometer.judge.session_checks import (
    SessionEvidence,
    session_cache,
    session_context,
    session_ends,
    session_gaps,
    session_steps,
)
from inferometer.judge.verdict import Check, Verdict
from inferometer.measure.agent_sessions import agent_sessions
from inferometer.measure.load_hosts import HostClock, LoadHost
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import Death, Ints
from inferometer.plan.schema import Plan
from inferometer.telemetry.host import environment

MS = 1_000_000
SESSIONS = [FAN_OUT] * 6
CODES = ("session_steps", "session_gaps", "session_context", "session_cache")


def plan_of(**parts: Any) -> Plan:
    """Sessions in an open loop, ten a second."""
    given = {"load": {"model": "open", "rate": 10.0, "requests": 30}, "tokenizer": {"name": "cl100k_base"}}
    return Plan.model_validate(given | parts)


def evidence_of(played: Played, plan: Plan | None = None, **more: Any) -> SessionEvidence:
    """What a run folder with this record leaves."""
    plan = plan or plan_of()
    runs = played.runs(**more)
    samples = samples_of(plan, runs.record)
    window = measure(plan, runs.record, samples).window
    return SessionEvidence(runs, agent_sessions(runs, samples, window), played.bodies())


def checks_of(played: Played, plan: Plan | None = None, **more: Any) -> dict[str, Check]:
    """The four checks by their codes."""
    plan = plan or plan_of()
    evidence = evidence_of(played, plan, **more)
    made = (
        session_steps(plan, evidence),
        session_gaps(evidence),
        session_context(evidence),
        session_cache(plan, evidence),
    )
    return {check.code: check for check in made}


def failed(found: dict[str, Check]) -> set[str]:
    return {code for code, check in found.items() if check.status == "fail"}


def verdict_of(played: Played, **parts: Any) -> Verdict:
    """Of all checks of a run."""
    plan = plan_of(**parts)
    evidence = evidence_of(played, plan)
    assert evidence.runs is not None
    record = evidence.runs.record
    return judge(plan, measure(plan, record), record, sessions=evidence)


steps_of_sessions = st.lists(
    st.tuples(
        st.lists(st.integers(0, 5), max_size=3),
        st.integers(0, 5),
        st.floats(0, 300),
        st.floats(0, 300),
        st.floats(0, 200),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


def session_of(drawn: list[Any]) -> tuple[Step, ...]:
    """A session of which each step waits for steps before it, and goes on with one of these, or with none."""
    made: list[Step] = []
    for number, (before, with_, think, tool, slow, recorded, ok) in enumerate(drawn):
        after = tuple(sorted({one % number for one in before})) if number else ()
        extends = after[with_ % len(after)] if after and with_ else None
        reply = b'{"role":"assistant","content":"as recorded"}' if recorded else None
        made.append(Step(after, extends, think, tool, reply, slow=slow, ok=ok or number == 0))
    return tuple(made)


@given(st.lists(steps_of_sessions.map(session_of), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_a_client_that_does_as_it_should_passes_whatever_the_sessions(
    sessions: list[tuple[Step, ...]],
) -> None:
    """Law: for any graph of steps, delays, answers and failures; what waits for a failed step is left out."""
    found = checks_of(play(sessions))
    assert failed(found) == set()
    assert found["session_steps"].status == "pass"
    assert found["session_context"].status == "pass"


@pytest.mark.parametrize(
    ("faults", "code", "words"),
    [
        (Faults(dropped={(2, 2)}), "session_steps", "step 2 (s2) of session 2"),
        (Faults(dropped={(0, 4)}), "session_steps", "step 4 (s4) of session 0"),
        (Faults(undelayed={(3, 1)}), "session_gaps", "step 1 (s1) of session 3"),
        (Faults(early={(1, 4): 0.5}), "session_gaps", "step 4 (s4) of session 1"),
        (Faults(wrong_branch={(4, 4): 3}), "session_context", "step 4 (s4) of session 4"),
    ],
)
def test_a_fault_of_the_client_fails_the_run_and_its_step_is_named(
    faults: Faults, code: str, words: str
) -> None:
    """Law: a dropped subagent, a last step left out, a delay ignored, a step sent early, a reply of the wrong branch: each
    makes the run INVALID by its own check and by none of the others; without it the run passes all of them."""
    assert failed(checks_of(play(SESSIONS))) == set()
    found = checks_of(play(SESSIONS, faults))
    assert failed(found) == {code}
    assert found[code].facts["where"] == words
    verdict = verdict_of(play(SESSIONS, faults))
    assert verdict.status == "INVALID"
    assert code in {reason.code for reason in verdict.reasons}


def test_a_step_off_by_more_than_rounding_is_found_and_by_how_much() -> None:
    """To 4 ns: a tenth of a microsecond is a fault; the record's own instants decide."""
    played = play(SESSIONS)
    moved = [dict(one) for one in played.rows]
    moved[4]["t_intended"] += 1e-4
    check = session_gaps(evidence_of(Played(played.schedule, played.steps, tuple(moved))))
    assert (check.status, check.value, check.facts["later"]) == ("fail", 1.0, 1)
    assert check.facts["worst_ms"] == pytest.approx(1e-4)


@pytest.mark.parametrize("drift_ppm", [-80.0, 0.4, 80.0])
@pytest.mark.parametrize(
    ("faults", "failing"), [(Faults(), set()), (Faults(undelayed={(3, 1)}), {"session_gaps"})]
)
def test_gaps_hold_on_a_load_host_whose_clock_runs_at_another_rate(
    drift_ppm: float, faults: Faults, failing: set[str]
) -> None:
    """Each row is moved by what the clock was off when it was due: a step and the one before it by different amounts."""

    def offsets(at: Ints) -> Ints:
        moved: Ints = np.rint(at * drift_ppm * 1e-6).astype(np.int64)
        return moved

    slow = [tuple(replace(step, slow=40.0) for step in FAN_OUT)] * 6
    played = play(slow, faults)
    moved = [moved_outcomes(batch, offsets) for batch in played.table().combine_chunks().to_batches()]
    host = LoadHost("east", 0, 1, environment(), HostClock(0, drift_ppm, 1000, 1000, 30, False))
    evidence = evidence_of(played, table=pa.Table.from_batches(moved), hosts=[host])
    assert {one.code for one in (session_gaps(evidence),) if one.status == "fail"} == failing


def test_what_is_due_after_the_end_of_the_load_need_not_be_sent() -> None:
    """With a duration steps are left out from its end on, and only from then on."""
    played = play(SESSIONS)
    last = max(int(one["t_intended"]) for one in played.rows)
    kept = tuple(one for one in played.rows if one["t_intended"] < last)
    cut = Played(played.schedule, played.steps, kept)

    def load(seconds: float) -> Plan:
        return plan_of(load={"model": "open", "rate": 10.0, "duration_s": seconds})

    assert failed(checks_of(cut)) == {"session_steps"}
    assert failed(checks_of(cut, load(last / 1000))) == set()
    assert failed(checks_of(cut, load(last / 1000 + 5))) == {"session_steps"}


def test_steps_of_a_worker_that_died_and_of_a_run_that_was_stopped_are_other_checks_matters() -> None:
    """What died with a worker is `workers_alive`'s; behind a person's stop nothing is due any more."""
    dropped = play(SESSIONS, Faults(dropped={(5, 4)}))
    assert failed(checks_of(dropped)) == {"session_steps"}
    assert failed(checks_of(dropped, deaths=[Death(0, 1, -9, 3, 1.0, None)])) == set()
    assert failed(checks_of(dropped, interrupted=True)) == set()


def test_a_step_that_is_there_twice_or_follows_a_failure_is_found() -> None:
    """Each step is sent once, and none although what it waits for had failed."""
    played = play(SESSIONS)
    again = Played(played.schedule, played.steps, (*played.rows, played.rows[7]))
    check = session_steps(plan_of(), evidence_of(again))
    assert (check.status, check.facts["twice"]) == ("fail", 1)
    failing = [dict(one) for one in played.rows]
    failing[0] |= {"outcome": "timeout"}
    check = session_steps(plan_of(), evidence_of(Played(played.schedule, played.steps, tuple(failing))))
    assert (check.status, check.facts["unready"]) == ("fail", 2)


WARM = {"sut": {"cache_state": "warm"}}
ENABLED, DISABLED = ({"sut": {"prefix_caching": state}} for state in ("enabled", "disabled"))


@pytest.mark.parametrize(
    ("declared", "cached", "status"),
    [
        (WARM, 0.0, "fail"),
        (WARM, 0.4, "fail"),
        (WARM, 0.9, "pass"),
        (DISABLED, 0.9, "fail"),
        (DISABLED, 0.0, "pass"),
        (ENABLED, 0.9, "pass"),
        (ENABLED, 0.0, "unsure"),
        ({"sut": {"cache_state": "warm", "prefix_caching": "disabled"}}, 0.0, "fail"),
        ({}, 0.0, "na"),
    ],
)
def test_the_cached_tokens_are_held_to_the_cache_that_was_declared(
    declared: dict[str, Any], cached: float, status: str
) -> None:
    """A cache called warm that finds nothing where everything repeats, and one called disabled that finds it, fail the run."""
    plan = plan_of(**declared)
    check = checks_of(play(SESSIONS, cached=cached), plan)["session_cache"]
    assert check.status == status
    if status == "fail":
        assert verdict_of(play(SESSIONS, cached=cached), **declared).status == "INVALID"


def test_a_cache_that_lost_the_sessions_of_the_run_before_is_not_warm() -> None:
    """With repeatable prompts first steps too come from a warm cache; those of a session hide nothing."""
    plan = plan_of(**WARM, workload={"repeatable_prompts": True})
    found = checks_of(play(SESSIONS, cached=0.9), plan)["session_cache"]
    assert (found.status, found.facts["of"]) == ("fail", "first")


def test_without_reported_tokens_the_cache_is_not_judged_and_that_is_said() -> None:
    """A note where something was declared."""
    silent = play(SESSIONS, usage_cached=None)
    assert checks_of(silent, plan_of(**WARM))["session_cache"].status == "note"
    assert checks_of(silent)["session_cache"].status == "na"


def test_runs_without_sessions_are_none_of_these_checks_matter() -> None:
    """All four do not apply."""
    record = play(SESSIONS).record()
    plan = plan_of()
    verdict = judge(plan, measure(plan, record), record)
    assert {verdict.check(code).status for code in CODES} == {"na"}


def chain(*gaps: float, failing: bool = False) -> tuple[Step, ...]:
    """Steps one after the other, behind these times of thinking in ms. `failing`: the last one does."""
    return tuple(
        Step(
            (at - 1,) if at else (),
            at - 1 if at else None,
            think=gap,
            ok=not (failing and at == len(gaps) - 1),
        )
        for at, gap in enumerate(gaps)
    )


def test_sessions_that_did_not_finish_are_no_random_choice() -> None:
    """One session in ten takes 5 s, and the load ends before any of them does; or the server breaks them all off. Finished ones
    alone say nothing of that, and the same sessions carried out pass."""
    short, long_ = chain(0, 50, 50), chain(0, 2_500, 2_500)
    mixed = [long_ if at % 10 == 4 else short for at in range(60)]
    whole = session_ends(evidence_of(play(mixed)))
    assert (whole.status, whole.value) == ("pass", 0.0)
    longs = [(at, 2) for at, one in enumerate(mixed) if one is long_]
    cut = session_ends(evidence_of(play(mixed, Faults(dropped=longs))))
    assert cut.status == "unsure"
    assert cut.value is not None
    assert cut.value > 5
    assert (cut.facts["finished"], cut.facts["unfinished"]) == (54, 6)
    broken = [chain(0, 2_500, 2_500, failing=True) if one is long_ else one for one in mixed]
    assert session_ends(evidence_of(play(broken))).status == "unsure"


def test_a_median_between_two_lengths_may_be_either() -> None:
    """Half of the sessions take twice as long: one that is cut moves the median from one to the other, and bends nothing."""
    mixed = [chain(0, 50), chain(0, 250)] * 30
    found = session_ends(evidence_of(play(mixed, Faults(dropped=[(59, 1)]))))
    assert (found.status, found.facts["unfinished"]) == ("pass", 1)


def test_sessions_of_one_length_may_be_cut_at_any_step() -> None:
    """However many: the estimate of sessions that last equally long is their duration."""
    cut = [(at, at % 3) for at in range(0, 60, 4)]
    found = session_ends(
        evidence_of(play([chain(0, 50, 50)] * 60, Faults(dropped=[one for one in cut if one[1]])))
    )
    assert found.status == "pass"
    assert found.value == pytest.approx(0.0, abs=1e-6)


def test_without_a_finished_session_there_is_nothing_to_lengthen() -> None:
    """Nor without sessions."""
    assert (
        session_ends(
            evidence_of(play([chain(0, 5)] * 3, Faults(dropped=[(at, 1) for at in range(3)])))
        ).status
        == "na"
    )
    assert session_ends(SessionEvidence()).status == "na"
