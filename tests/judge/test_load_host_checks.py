"""Several hosts that sent one load: their clocks, their starts and their lateness, each named where it is not right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check
from inferometer.measure.load_hosts import HostClock, LoadHost
from inferometer.measure.record import Death
from inferometer.report import checks as worded
from inferometer.telemetry.host import environment

MS = 1_000_000
N, WARM = 1200, 100
CLOCK = HostClock(
    offset_ns=-(10**15), drift_ppm=0.0, bound_ns=20_000, round_trip_ns=40_000, probes=60, stepped=False
)
HERE = environment()


def hosts(*clocks: HostClock | None) -> list[LoadHost]:
    """As many, each with one worker."""
    return [LoadHost(f"host-{at + 1}", at, 1, HERE, clock) for at, clock in enumerate(clocks)]


def clock(**changed: Any) -> HostClock:
    return HostClock(**{name: getattr(CLOCK, name) for name in HostClock.__slots__} | changed)


def found(run: Any, known: list[LoadHost], workers: Any = None, **changes: Any) -> dict[str, Check]:
    """The checks of a run in which requests take turns between the hosts, unless `workers` says whose they are."""
    whose = np.arange(WARM + N) % len(known) if workers is None else workers
    verdict = judge(*run(more={"hosts": known}, worker=whose, **changes))
    return {
        one.code: one for one in verdict.checks if one.code in ("host_clocks", "host_lateness", "load_exact")
    }


def shifted(by: Any) -> dict[str, Any]:
    """All instants of measured rows moved by `by(due)`, of every second row."""

    def moved(values: Any) -> Any:
        given = np.array(values)
        return given + by if given.ndim == 1 else given

    names = ("t_intended", "t_taken", "t_send", "t_submit", "t_end")
    return dict.fromkeys(names, moved) | {
        "event_ns": lambda rows: [row + step for row, step in zip(rows, by, strict=True)]
    }


def test_one_machine_has_nothing_to_compare(run: Any) -> None:
    verdict = judge(*run())
    assert (verdict.check("host_clocks").status, verdict.check("host_lateness").status) == ("na", "na")


@pytest.mark.parametrize("ppm", [0.0, 20.0, -87.3, 180.0])
def test_a_host_whose_clock_runs_at_another_rate_keeps_its_schedule(run: Any, ppm: float) -> None:
    """It sends by its own clock. On the conductor's its requests lie where that clock's rate has them."""
    plan, _, record = run()
    del plan
    second = np.arange(WARM + N) % 2 == 1
    due = record.due_ns.values
    by = np.where(second, np.rint(ppm * 1e-6 * due).astype(np.int64), 0)
    seen = found(run, hosts(CLOCK, clock(drift_ppm=ppm)), **shifted(by))
    assert seen["load_exact"].status == "pass"
    assert seen["host_clocks"].status == "pass"


def test_a_host_that_began_at_another_instant_is_found(run: Any) -> None:
    """By more than is known of both clocks; less than that nobody can tell."""
    second = np.arange(WARM + N) % 2 == 1
    for late_ns, status, count in ((30_000, "pass", 0), (5 * MS, "fail", N // 2)):
        seen = found(run, hosts(CLOCK, CLOCK), **shifted(np.where(second, late_ns, 0)))
        assert (seen["load_exact"].status, seen["load_exact"].facts["moved"]) == (status, count)


def test_one_request_that_a_host_moved_is_found(run: Any) -> None:
    by = np.zeros(WARM + N, np.int64)
    by[WARM + 7] = 1000
    assert found(run, hosts(CLOCK, CLOCK), **shifted(by))["load_exact"].facts["moved"] == 1


@pytest.mark.parametrize(
    ("known", "named"),
    [
        (hosts(CLOCK, clock(bound_ns=5 * MS)), "host-2"),
        (hosts(clock(stepped=True), CLOCK), "host-1"),
        (hosts(CLOCK, None), "host-2"),
        (hosts(None, None), "host-1"),
    ],
    ids=["uncertain", "stepped", "unknown", "none known"],
)
def test_a_clock_that_is_not_known_well_enough_is_named(run: Any, known: list[LoadHost], named: str) -> None:
    check = found(run, known)["host_clocks"]
    assert check.status == "fail"
    assert named in worded.sentence(check)


def test_a_clock_at_another_rate_is_named_and_no_fault(run: Any) -> None:
    second = np.arange(WARM + N) % 2 == 1
    due = run()[2].due_ns.values
    by = np.where(second, np.rint(450e-6 * due).astype(np.int64), 0)
    check = found(run, hosts(CLOCK, clock(drift_ppm=450.0)), **shifted(by))["host_clocks"]
    assert check.status == "pass"
    assert "host-2" in worded.sentence(check)


def test_the_host_of_the_busiest_worker_is_named(run: Any) -> None:
    """Its second worker used 95 % of a core."""
    beats, span = 50, 26 * 10**9
    at = np.linspace(10**12 - MS, 10**12 + span, beats)
    pulse = {
        "worker": np.repeat([0, 1], beats),
        "t_ns": np.tile(at, 2),
        "cpu_ns": np.concatenate((np.linspace(0, 0.2 * span, beats), np.linspace(0, 0.95 * span, beats))),
        "reads": np.ones(2 * beats),
    }
    whose = np.arange(WARM + N) % 2
    check = judge(*run(more={"hosts": hosts(CLOCK, CLOCK)}, worker=whose, pulse=pulse)).check("worker_cpu")
    assert (check.status, check.facts["host"]) == ("fail", "host-2")
    assert "host-2" in worded.sentence(check)


def test_a_late_host_is_named_that_the_whole_load_hides(run: Any) -> None:
    """Five of its 110 requests are late by 3 ms: P99 of all 1,200 does not show it."""
    whose = np.zeros(WARM + N, np.int64)
    whose[WARM : WARM + 110] = 1
    by = np.zeros(WARM + N, np.int64)
    by[WARM : WARM + 5] = 3 * MS
    late: dict[str, Any] = {
        name: (lambda values: np.array(values) + by) for name in ("t_taken", "t_send", "t_submit", "t_end")
    }
    late["event_ns"] = lambda rows: [row + step for row, step in zip(rows, by, strict=True)]
    verdict = judge(*run(more={"hosts": hosts(CLOCK, CLOCK)}, worker=whose, **late))
    assert verdict.check("lateness").status == "pass"
    check = verdict.check("host_lateness")
    assert (check.status, check.facts["worst"]) == ("fail", "host-2")
    assert verdict.status == "INVALID"


def test_a_clock_that_was_not_compared_to_the_end_is_not_trusted(run: Any) -> None:
    """However well it was known before: in that time it could have been set, or the machine suspended."""
    for blind_s, status in ((3.0, "pass"), (40.0, "fail")):
        check = found(run, hosts(CLOCK, clock(uncompared_s=blind_s)))["host_clocks"]
        assert check.status == status
        assert ("host-2" in worded.sentence(check)) == (status == "fail")


def test_the_host_of_a_worker_that_died_is_named(run: Any) -> None:
    """Law: whose disk was full, or who was killed, is said by the host's name; of one machine no host is."""
    death = Death(1, 1, 120, 3, 0.5, 1, shortage="disk")
    alone = judge(*run(more={"deaths": [death]})).check("workers_alive")
    assert "load host" not in worded.sentence(alone)
    several = judge(*run(more={"deaths": [death], "hosts": hosts(CLOCK, CLOCK, CLOCK)})).check(
        "workers_alive"
    )
    said = worded.sentence(several)
    assert several.facts["on_hosts"] == ["host-2"]
    assert "host-2" in said
    assert "the disk is full" in said
