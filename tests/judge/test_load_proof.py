"""The exact proof of the load: whatever differs from the plan's own instants is found, one arrival in a thousand too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inferometer.documents.verdict import CheckResult
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check
from inferometer.plan.arrivals import instants
from inferometer.plan.parse import build
from inferometer.plan.schema import Load
from inferometer.plan.workload_kind import DEFAULT_SEED
from inferometer.report import checks
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

MS = 1_000_000
N, WARM, RATE = 1200, 100, 50.0
NONE = np.zeros(WARM + N, np.int64)


def found(run: Any, **changes: Any) -> Check:
    return judge(*run(**changes)).check("load_exact")


def nth(change: int, *rows: int) -> Any:
    """A function that adds `change` to some measured rows of a column."""

    def changed(values: Any) -> Any:
        moved = np.array(values)
        moved[[WARM + row for row in rows]] += change
        return moved

    return changed


def lasting(arrivals: int) -> dict[str, Any]:
    """A plan that ends by time and has so many arrivals until then."""
    due = instants(Load(model="open", rate=RATE, requests=arrivals + 1), DEFAULT_SEED, arrivals + 1, None)
    return {"load": {"requests": None, "duration_s": float(due[arrivals - 1] + due[arrivals]) / 2e9}}


def test_a_good_run_differs_in_nothing(run: Any) -> None:
    """By count and by time: as many arrivals as planned, with their lateness."""
    for plan in ({}, lasting(N)):
        check = found(run, plan=plan)
        assert (check.status, check.value, check.limit) == ("pass", 0, 0)
        assert (check.facts["planned"], check.facts["arrivals"]) == (N, N)
        assert 0 < check.facts["late_p50_ms"] <= check.facts["late_max_ms"] < 0.1


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"plan": {"load": {"requests": N + 1}}}, {"missing": 1}),
        ({"plan": lasting(N + 3)}, {"missing": 3}),
        ({"plan": {"load": {"requests": N - 2}}}, {"added": 2}),
        ({"plan": lasting(N - 2)}, {"added": 2}),
        ({"due_ns": nth(1, 600), "t_intended": nth(1, 600)}, {"missing": 1, "added": 1}),
        ({"t_intended": nth(1, 7)}, {"moved": 1}),
        ({"t_intended": nth(-MS, *range(701, N))}, {"moved": N - 701}),
        ({"t_taken": nth(-1, 8), "t_send": nth(-MS, 8)}, {"early": 1}),
        ({"plan": {"load": {"rate": RATE * 1.001}}}, {}),
        ({"plan": {"workload": {"seed": DEFAULT_SEED + 1}}}, {}),
        ({"plan": {"load": {"arrival": "constant"}}}, {}),
    ],
)
def test_one_fault_is_enough(run: Any, changes: dict[str, Any], facts: dict[str, int]) -> None:
    """Law: an arrival dropped, added, moved by a nanosecond, or sent early, another rate, seed or process: INVALID, and the
    facts say how many of which kind; the sentence has them."""
    verdict = judge(*run(**changes))
    check = verdict.check("load_exact")
    assert (verdict.status, check.status) == ("INVALID", "fail")
    assert {name: check.facts[name] for name in facts} == facts
    assert check.value == sum(check.facts[name] for name in ("missing", "added", "moved", "early"))
    said = checks.message(
        CheckResult("load_exact", check.status, check.value, check.limit, "", check.facts, "")
    )
    assert "{" not in said
    assert f"{check.facts['missing']}, added" in said


def test_a_stop_by_a_person_leaves_nothing_missing(run: Any) -> None:
    """What was not sent for that is said by `interrupted`; what was sent is held to the plan all the same."""
    more = {"interrupted": True}
    assert found(run, plan={"load": {"requests": N + 50}}, more=more).status == "pass"
    assert found(run, plan={"load": {"requests": N + 50}}, more=more, t_intended=nth(1, 7)).status == "fail"


def test_requests_that_overtake_are_counted(run: Any) -> None:
    """A request late by 100 ms is overtaken at 50 a second; its order is a fact, its lateness the check's of that name."""
    before = found(run).facts["overtaken"]
    check = found(run, t_taken=nth(100 * MS, 9), t_send=nth(100 * MS, 9))
    assert check.status == "pass"
    assert check.facts["overtaken"] == before + 1
    assert check.facts["late_max_ms"] > 100


def test_a_record_without_the_schedules_instants_is_not_judged(run: Any) -> None:
    """As those of earlier versions; closed loops have no instants."""
    check = found(run, due_ns=lambda values: [None] * len(values))
    assert (check.status, check.facts["of"]) == ("na", "unrecorded")
    closed = {"load": {"model": "closed", "rate": None, "concurrency": 4, "requests": N}}
    assert found(run, plan=closed).status == "na"


def test_statistics_that_are_off_are_a_note_where_the_load_is_proved(run: Any) -> None:
    """Law: the statistics are what an outsider could verify. One send in 120 late by 19 ms of a 20 ms gap: the load is
    the plan's and late within the limit, so it is a note; with more lateness, or without the proof, it fails the run."""
    plan = {"load": {"arrival": "constant"}}
    due = np.rint(np.arange(N) * 1e9 / RATE).astype(np.int64)
    due = np.concatenate((due[:WARM] - 3 * 10**9, due))
    at = due + 10**12
    columns = {"plan": plan, "due_ns": due, "t_intended": at, "t_taken": at}
    few, many = (at + np.where(np.arange(WARM + N) % every == 5, 19 * MS, 0) for every in (120, 60))
    proved, late = (judge(*run(**columns, t_send=sent, t_submit=sent)) for sent in (few, many))
    assert proved.check("arrival_dispersion").status == "note"
    assert "so the load stands" in checks.sentence(proved.check("arrival_dispersion"))
    assert {late.check(code).status for code in ("arrival_dispersion", "lateness")} == {"fail"}
    unproved = judge(*run(**columns | {"due_ns": [None] * len(at)}, t_send=few, t_submit=few))
    assert unproved.check("arrival_dispersion").status == "fail"


class Nobody:
    """A Ui that shows nothing."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


FLAGS: dict[str, object] = {"--input-tokens": "20", "--output-tokens": "uniform(3,9)", "--rate": "40"}


@pytest.mark.parametrize(
    "flags",
    [
        {"--requests": "150"},
        {"--duration": "4"},
        {"--requests": "500", "--duration": "3", "--arrival": "constant"},
        {"--duration": "4", "--burstiness": "0.25"},
        {"--requests": "120", "--turns": "3"},
        {"--duration": "3", "--turns": "uniform(1,4)"},
    ],
)
def test_whole_runs_are_proved(flags: dict[str, object], tmp_path: Path) -> None:
    """By count, by time, by both, of every process, and of conversations, whose first turns are the arrivals."""
    result = simulate(build(None, FLAGS | flags), choose(None, ()), tmp_path, Nobody())
    check = next(one for one in result.summary.verdict.checks if one.code == "load_exact")
    assert check.status == "pass", check
    assert check.facts["planned"] == check.facts["arrivals"] > 30


@pytest.mark.parametrize(
    "plan",
    [
        {"load": {"model": "closed", "rate": None, "concurrency": 8}},
        {"load": {"model": "closed", "rate": None, "concurrency": 8, "requests": None, "duration_s": 20.0}},
    ],
    ids=["by count", "by time"],
)
def test_a_request_that_is_on_record_twice_fails_a_closed_loop(run: Any, plan: dict[str, Any]) -> None:
    """Law: whatever fixes no instants, each request is sent once in a cycle; in the next one it may be sent again."""
    assert found(run, plan=plan).status == "na"
    check = found(run, plan=plan, index=nth(-1, 600))
    assert (check.status, check.value, check.facts["of"]) == ("fail", 1, "twice")
    assert "on record more than once" in checks.sentence(check)
    assert found(run, plan=plan, index=nth(-1, 600), cycle=nth(1, 600)(NONE)).status == "na"


def test_a_later_turn_that_is_on_record_twice_is_an_arrival_too_many(run: Any) -> None:
    """Law: in open loop the later turns of conversations have no instants of their own, and are sent once all the same."""
    turns = {"turn": nth(1, 600, 601)(NONE), "plan": {"load": {"requests": N - 2}}}
    assert found(run, **turns, index=nth(-1, 601)).facts["added"] == found(run, **turns).facts["added"] + 1
