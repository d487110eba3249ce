"""Each check, shown able to pass and to fail, on a whole run of which one thing is changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from inferometer.judge import checks
from inferometer.judge.judge import CHECKS, arrival_comparison, judge
from inferometer.judge.verdict import Check, Verdict, verdict_of
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.machine_figures import Accelerator, Heat, MachineSeen
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Death, OwnCpu
from inferometer.telemetry.host import environment
from inferometer.telemetry.machines.tracks import THIS_MACHINE
from inferometer.telemetry.slowdowns import Slowed

MS = 1_000_000

CODES = {
    *(
        "workers_alive",
        "interrupted",
        "error_rate",
        "few_samples",
        "lateness",
        "load_exact",
        "arrival_rate",
        "arrival_dispersion",
    ),
    *(
        "arrival_lag1",
        "concurrency_held",
        "first_wave",
        "filling",
        "users_held",
        "receive_lag",
        "error_bound",
        "worker_cpu",
        "own_cpu",
        "clock_step",
        "calibration",
        "prompt_length",
        "output_length",
    ),
    *(
        "token_counts",
        "answered_as",
        "cache_hits",
        "workload_lengths",
        "samples_p99",
        "samples_p99_9",
        "tokens_per_event",
        "ttft_variants",
        "throttled",
        "warmup",
    ),
    "round_trip",
    "host_clocks",
    "host_lateness",
    *("session_steps", "session_gaps", "session_context", "session_ends", "session_cache", "task_results"),
    *("streamed", "drift", "stationary", "stale_connections", "server_tokens", "server_ttft", "server_queue"),
}

NATIVE = {"tokenizer": {"method": "native"}, "workload": {"count_template": False}}


@pytest.fixture(scope="module")
def good(run: Any) -> Verdict:
    return judge(*run())


def some(share: float) -> Any:
    """A function that changes the first `share` of a list of outcomes to timeouts, after the warm-up of 100."""

    def change(values: list[str]) -> list[str]:
        bad = round(share * (len(values) - 100))
        return values[:100] + ["timeout"] * bad + values[100 + bad :]

    return change


def two_at_once(times: Any) -> list[Any]:
    """Every request's last two tokens under one stamp, as when one read finds both."""
    return [np.r_[each[:-2], each[-1], each[-1]] for each in times]


def merged(waits_ms: dict[int, float], share: float) -> dict[str, Any]:
    """Columns of requests of which this share had some events in one read with the next, and how long each may have waited."""

    def some(values: list[Any], of: Any) -> list[Any]:
        return [list(of) if row % 1000 < 1000 * share else [] for row in range(len(values))]

    def together(times: list[Any]) -> list[Any]:
        times = [np.array(each) for each in times]
        for row, each in enumerate(times):
            for event in waits_ms if row % 1000 < 1000 * share else ():
                each[event] = each[event + 1]
        return times

    return {
        "merged_event": lambda v: some(v, waits_ms),
        "merged_ns": lambda v: some(v, [int(wait * MS) for wait in waits_ms.values()]),
        "event_ns": together,
    }


def unknown(values: Any) -> list[None]:
    """The column of an earlier version, which did not say which reads held several packets."""
    return [None] * len(values)


def test_the_value_of_a_check_is_in_a_unit_of_its_entry(good: Verdict) -> None:
    """Shares and plain numbers have no unit of their own; a share is at most 1."""
    units = {one.code: one.units for one in CHECKS}
    for check in good.checks:
        if check.value is not None:
            allowed = {"" if unit in ("share", "number") else unit for unit in units[check.code]}
            assert check.unit in allowed, check.code
            assert units[check.code] != ("share",) or check.value <= 1.0, check.code


def test_a_good_run_is_valid_and_meets_every_check(good: Verdict) -> None:
    """Law: nothing fails without a cause; each check appears once; what is thin is only noted."""
    assert good.status == "VALID"
    assert good.reasons == ()
    assert {check.code for check in good.checks} == CODES
    assert len(good.checks) == len(CODES)
    notes = {check.code for check in good.checks if check.status == "note"}
    assert notes == {"samples_p99_9", "warmup"}
    assert good.check("concurrency_held").status == "na"


def test_each_entry_of_the_table_is_of_the_check_that_it_makes(good: Verdict) -> None:
    """In the order in which a report lists them; no code stands twice."""
    assert [entry.code for entry in CHECKS] == [check.code for check in good.checks]
    assert len({entry.code for entry in CHECKS}) == len(CHECKS)


WARM: dict[str, Any] = {"workload": {"repeatable_prompts": True}, "sut": {"cache_state": "warm"}}
"""Prompts of an earlier run, in a cache that is said to hold them."""


def failing_after(ms: float, count: int = 9) -> dict[str, Any]:
    """That many measured requests fail so long after they were sent, without a token."""

    def some(values: Any, other: Any) -> Any:
        return [other if 200 <= at < 200 + count else value for at, value in enumerate(values)]

    return {
        "outcome": lambda v: some(v, "timeout"),
        "first_visible": lambda v: np.array(some(v, -1)),
        "first_text": lambda v: np.array(some(v, -1)),
        "first_answer": lambda v: np.array(some(v, -1)),
        "event_ns": lambda v: some(v, np.zeros(0, np.int64)),
        "event_class": lambda v: some(v, b""),
        "t_end": lambda v: np.where(
            (np.arange(len(v)) >= 200) & (np.arange(len(v)) < 200 + count), v + ms * MS, v
        ),
    }


@pytest.mark.parametrize(("ms", "status"), [(-60.0, "pass"), (5_000.0, "unsure")])
def test_the_waits_of_the_few_that_failed_are_not_left_out_of_p99(run: Any, ms: float, status: str) -> None:
    """Law: requests that failed after a wait beyond P99 would have lengthened it; those that failed early say nothing."""
    check = judge(*run(**failing_after(ms))).check("error_rate")
    assert check.status == status
    assert check.facts["failed"] == 9


@pytest.mark.parametrize(
    ("code", "status", "changes"),
    [
        ("error_rate", "fail", {"outcome": some(0.02)}),
        ("error_rate", "pass", {"outcome": some(0.005)}),
        ("error_rate", "fail", {"outcome": lambda v: [*v[:1200], *["cancelled"] * 100]}),
        ("prompt_length", "fail", {"input_tokens_sent": lambda v: v + 3}),
        ("prompt_length", "pass", {"input_tokens_sent": lambda v: v + 2}),
        ("prompt_length", "fail", {"plan": NATIVE, "usage_input": lambda v: v + np.arange(len(v)) % 9}),
        ("prompt_length", "pass", {"plan": NATIVE}),
        ("output_length", "fail", {"usage_output": lambda v: v - 2}),
        ("output_length", "pass", {"usage_output": lambda v: v + 1}),
        (
            "output_length",
            "pass",
            {
                "plan": {"workload": {"ignore_eos": False}},
                "usage_output": lambda v: v - 2,
                "finish_reason": lambda v: ["stop"] * len(v),
            },
        ),
        (
            "output_length",
            "unsure",  # cut for their length before the requested one
            {"plan": {"workload": {"ignore_eos": False}}, "output_tokens_asked": lambda v: v + 2},
        ),
        (
            "output_length",
            "fail",
            {"plan": {"workload": {"ignore_eos": False}}, "usage_output": lambda v: v + 2},
        ),
        ("token_counts", "fail", {"usage_output": lambda v: v - 1}),
        ("token_counts", "unsure", {"usage_output": lambda v: v + 4, "output_tokens_asked": lambda v: v + 4}),
        (
            "token_counts",
            "pass",
            {"usage_output": lambda v: v + 4, "output_tokens_local": lambda v: v + 4, "plan": NATIVE},
        ),
        ("token_counts", "fail", {"usage_output": lambda v: v + 4, "plan": NATIVE}),
        ("token_counts", "unsure", {"usage_output": lambda v: [None] * len(v)}),
        (
            "token_counts",
            "pass",
            {"usage_output": lambda v: v + 1, "finish_reason": lambda v: ["stop"] * len(v)},
        ),
        ("lateness", "fail", {"t_intended": lambda v: v - 3 * MS}),
        ("lateness", "fail", {"t_intended": lambda v: v - MS}),
        ("lateness", "pass", {"t_intended": lambda v: v - MS // 2}),
        ("load_exact", "fail", {"plan": {"load": {"requests": 1201}}}),
        ("receive_lag", "pass", {"lag_ns": lambda v: v + 50 * MS}),
        ("receive_lag", "pass", {"event_ns": two_at_once}),
        ("receive_lag", "pass", {"lag_ns": lambda v: v + 5 * MS, "event_ns": two_at_once}),
        (
            "receive_lag",
            "fail",
            {"lag_ns": lambda v: v + 5 * MS, "event_ns": two_at_once, "merged_event": unknown},
        ),
        ("receive_lag", "fail", {"lag_ns": lambda v: v + 4 * MS, "more": {"timestamp_source": "user"}}),
        ("receive_lag", "fail", {"merged": ({3: 10.0}, 1.0)}),
        ("error_bound", "pass", {"lag_ns": lambda v: v + 50 * MS}),
        ("error_bound", "pass", {"merged": ({1: 10.0}, 0.005)}),
        ("error_bound", "fail", {"merged": ({1: 10.0}, 0.1)}),
        ("error_bound", "fail", {"merged": ({1: 1.0}, 0.3)}),
        ("error_bound", "pass", {"merged": ({1: 0.1}, 1.0)}),
        ("error_bound", "fail", {"lag_ns": lambda v: v + 4 * MS, "more": {"timestamp_source": "user"}}),
        ("error_bound", "fail", {"submit_ns": lambda v: v + 2 * MS}),
        ("error_bound", "na", {"merged_event": unknown}),
        ("worker_cpu", "fail", {"pulse": {"cpu_ns": np.linspace(0, 30e9, 100)}}),
        ("worker_cpu", "na", {"pulse": {"t_ns": np.zeros(100)}}),
        ("own_cpu", "na", {}),
        ("own_cpu", "pass", {"more": {"own_cpu": OwnCpu(10.0, 0.1, 0.1, 1)}}),
        ("own_cpu", "note", {"more": {"own_cpu": OwnCpu(10.0, 0.1, 0.11, 1)}}),
        ("own_cpu", "note", {"more": {"own_cpu": OwnCpu(10.0, 3.0, None, 1)}}),
        ("own_cpu", "pass", {"more": {"own_cpu": OwnCpu(10.0, 3.0, None, 2)}}),
        ("clock_step", "fail", {"pulse": {"clock_offset_ns": np.where(np.arange(100) < 50, 0, 2 * MS)}}),
        ("clock_step", "pass", {"pulse": {"clock_offset_ns": np.arange(100) * MS // 2}}),
        (
            "clock_step",
            "pass",
            {
                "pulse": {"clock_offset_ns": np.where(np.arange(100) < 50, 0, 900 * MS)},
                "more": {"timestamp_source": "user"},
            },
        ),
        (
            "clock_step",
            "unsure",
            {
                "pulse": {"clock_offset_ns": np.where(np.arange(100) < 50, 0, 60_000 * MS)},
                "more": {"timestamp_source": "user"},
            },
        ),
        ("cache_hits", "fail", {"usage_cached": lambda v: v + np.arange(len(v)) % 60}),
        ("cache_hits", "pass", {"usage_cached": lambda v: v + np.arange(len(v)) % 12}),
        (
            "cache_hits",
            "na",
            {"usage_cached": lambda v: v + 90, "plan": {"workload": {"repeatable_prompts": True}}},
        ),
        (
            "cache_hits",
            "pass",
            {"usage_cached": lambda v: np.maximum(60, np.arange(len(v)) % 119), "plan": WARM},
        ),
        ("cache_hits", "fail", {"usage_cached": lambda v: v, "plan": WARM}),
        ("cache_hits", "na", {"usage_cached": lambda v: [None] * len(v), "plan": WARM}),
        ("cache_hits", "na", {"usage_cached": lambda v: [None] * len(v)}),
        ("cache_hits", "note", {"usage_cached": lambda v: v + 1_000_000}),
        ("cache_hits", "note", {"usage_cached": lambda v: v + 1_000_000 * (np.arange(len(v)) == len(v) - 1)}),
        ("samples_p99", "unsure", {"n": 999}),
        ("samples_p99", "pass", {"n": 1000}),
        ("few_samples", "unsure", {"n": 1}),
        ("tokens_per_event", "note", {"usage_output": lambda v: v + 1}),
        ("tokens_per_event", "unsure", {"usage_output": lambda v: [None] * len(v)}),
        ("tokens_per_event", "na", {"plan": {"target": {"stream": False}}}),
        ("workers_alive", "fail", {"more": {"deaths": [Death(1, 1, -9, 3, 0.5, 1)]}}),
        ("interrupted", "unsure", {"more": {"interrupted": True}}),
        ("warmup", "pass", {"usage_output": lambda v: v + 96}),
        ("warmup", "note", {"warm": 99, "usage_output": lambda v: v + 200}),
        ("arrival_rate", "fail", {"plan": {"load": {"rate": 60}}}),
        ("arrival_rate", "fail", {"plan": {"load": {"requests": 1201}}}),
        ("arrival_rate", "pass", {"plan": {"load": {"requests": 1201}}, "more": {"interrupted": True}}),
        ("arrival_dispersion", "fail", {"plan": {"load": {"arrival": "constant"}}}),
        ("arrival_dispersion", "fail", {"plan": {"load": {"arrival": "gamma", "burstiness": 0.25}}}),
        ("arrival_lag1", "na", {"plan": {"load": {"arrival": "constant"}}}),
        ("arrival_rate", "na", {"n": 99}),
    ],
)
def test_a_check_follows_the_one_thing_that_was_changed(
    run: Any, code: str, status: str, changes: dict[str, Any]
) -> None:
    """Law: each check has a side on either of its limit, and lands on the right one."""
    if "merged" in changes:
        changes = merged(*changes["merged"])
    verdict = judge(*run(**changes))
    assert verdict.check(code).status == status
    assert verdict.status == {"fail": "INVALID", "unsure": "INCONCLUSIVE"}.get(status, verdict.status)


def test_a_second_attempt_is_no_excuse_for_a_late_first_one(run: Any) -> None:
    """Law: t_submit is the first attempt's, so lateness counts a request that was sent twice like any other."""
    late = {"t_intended": lambda v: v - 30 * MS}
    once = judge(*run(**late)).check("lateness")
    assert once.status == "fail"
    assert judge(*run(**late, attempts=lambda v: v * 0 + 2)).check("lateness") == once


def test_an_interrupted_run_does_not_blame_the_server_for_what_was_cancelled(run: Any) -> None:
    """Law: cancelled by a person is no error; cancelled at the drain limit is."""
    cancelled = {"outcome": lambda v: [*v[:1200], *["cancelled"] * 100]}
    stopped = judge(*run(more={"interrupted": True}, **cancelled))
    assert stopped.check("error_rate").status == "pass"
    drained = judge(*run(**cancelled)).check("error_rate")
    assert drained.status == "fail"
    assert drained.facts["by_error"] == {"cancelled": 100}


def test_a_run_without_an_answer_does_not_ask_for_usage(run: Any) -> None:
    """Law: where no request completed, no count is missing, and the failures alone are told."""
    nothing = {"outcome": lambda v: ["timeout"] * len(v), "usage_output": lambda v: [None] * len(v)}
    judged = judge(*run(**nothing))
    assert (judged.check("token_counts").status, judged.check("error_rate").status) == ("na", "fail")


@pytest.mark.parametrize(
    ("n", "late", "status"), [(55, 0, "pass"), (55, 1, "unsure"), (55, 2, "fail"), (1200, 1, "pass")]
)
def test_a_single_late_request_may_be_chance(run: Any, n: int, late: int, status: str) -> None:
    """Law: where requests are so few that one of them is what P99 is made of, one late one leaves the run undecided, and two
    do not; among many, one is within what is accepted."""
    delay = {
        name: lambda v: v + 3 * MS * (np.arange(len(v)) >= len(v) - late)
        for name in ("t_taken", "t_send", "t_submit")
    }
    assert judge(*run(n=n, **delay)).check("lateness").status == status


def test_connecting_anew_is_not_the_clients_lateness(run: Any) -> None:
    """Law: setting up a connection for a request is the plan's or the server's time; one opened ahead excuses nothing."""
    _, _, record = run()
    start = record.t_intended - 5 * MS
    connect = {"t_intended": start, "t_connect": start, "t_connected": start + 5 * MS}
    connect |= {"t_taken": start}
    assert judge(*run(plan={"target": {"connection": "new"}}, **connect)).check("lateness").status == "pass"
    assert judge(*run(**connect)).check("lateness").status == "pass"
    ahead = connect | {"t_connect": start - 1, "t_connected": start + 5 * MS}
    assert judge(*run(**ahead)).check("lateness").status == "fail"
    late = connect | {"t_connect": start + 5 * MS - 1, "t_connected": start + 5 * MS}
    assert judge(*run(**late)).check("lateness").status == "fail"


def test_refused_connections_are_errors_and_not_missing_arrivals(run: Any) -> None:
    """Law: a request the server would not take was offered all the same: the arrival process holds, the error rate does not."""
    _, _, record = run()
    refused = np.arange(len(record)) % 2 == 0
    submit = [None if bad else int(t) for bad, t in zip(refused, record.t_submit.values, strict=True)]
    outcome = ["connect_refused" if bad else "ok" for bad in refused]
    verdict = judge(*run(t_submit=submit, outcome=outcome))
    assert verdict.check("error_rate").status == "fail"
    assert verdict.check("arrival_rate").status == "pass"
    assert verdict.check("arrival_dispersion").status == "pass"


def test_a_run_without_any_success_is_invalid_and_says_why(run: Any) -> None:
    """Law: no sample makes no check crash; the error rate decides."""
    verdict = judge(*run(outcome=lambda v: ["http_5xx"] * len(v)))
    assert verdict.status == "INVALID"
    assert verdict.reasons[0].code == "error_rate"
    assert verdict.check("error_rate").facts["by_error"] == {"http_5xx": 1200}
    assert {check.code for check in verdict.checks} == CODES


def test_the_variants_of_ttft_are_noted_where_they_clearly_part(run: Any, good: Verdict) -> None:
    """Law: a role event 1 ms before a first token at 40 ms is no news; one half-way there is, with both medians."""
    assert (good.check("ttft_variants").status, good.check("ttft_variants").value) == ("pass", 0.0)
    early = judge(*run(event_ns=lambda v: [np.r_[each[0] - 20 * MS, each[1:]] for each in v])).check(
        "ttft_variants"
    )
    assert (early.status, early.value, early.facts["first_event_classes"]) == ("note", 1.0, {"role": 1200})
    assert early.facts["ttft"] - early.facts["ttfe"] == pytest.approx(21.0)
    assert early.facts["ttft"] == early.facts["ttfo"]


def test_what_the_report_prints_of_arrivals_is_what_was_checked(run: Any) -> None:
    """Law: the numbers of the arrival check are those its three checks were decided by."""
    made = run()
    found, verdict = arrival_comparison(*made), judge(*made)
    assert found is not None
    assert verdict.check("arrival_dispersion").value == found.dispersion
    facts = verdict.check("arrival_rate").facts
    assert (facts["low"], facts["high"]) == found.rate_limits
    assert (
        arrival_comparison(*run(plan={"load": {"model": "closed", "concurrency": 5, "rate": None}})) is None
    )


def test_one_failure_outweighs_any_number_of_doubts() -> None:
    """Law: INVALID over INCONCLUSIVE over VALID; reasons list failures first; notes decide nothing."""
    doubt, failure = Check("a", "unsure", None, None), Check("b", "fail", None, None)
    note = Check("c", "note", None, None)
    assert verdict_of([note]).status == "VALID"
    assert verdict_of([doubt, note]).status == "INCONCLUSIVE"
    both = verdict_of([doubt, note, failure])
    assert both.status == "INVALID"
    assert both.reasons == (failure, doubt)
    with pytest.raises(KeyError):
        both.check("no such check")


def test_back_pressure_is_the_servers_and_scheduling_is_ours(run: Any) -> None:
    """Law: 30 ms between first and last byte are excused; the same before taking up are not, nor on a connection that stood.
    The check names the main cause of what counts, and the shares of all lateness."""
    slow = {name: lambda v: v - 30 * MS for name in ("t_intended", "t_taken", "t_send")}
    excused = judge(*run(**slow)).check("lateness")
    assert excused.status == "pass"
    assert excused.facts["back_pressure_share"] > 0.99
    for part, names in (("socket", ("t_intended", "t_taken")), ("scheduling", ("t_intended",))):
        found = judge(*run(**{name: slow[name] for name in names})).check("lateness")
        assert (found.status, found.facts["cause"]) == ("fail", part)
        assert found.facts["cause_share"] > 0.99
        assert found.facts[f"{part}_share"] > 0.99


def test_back_pressure_moves_no_arrival(run: Any) -> None:
    """Law: arrivals are judged by first bytes: sends in step through the server break no process, the same through us do."""
    _, _, record = run()
    grid = -(-record.t_submit.values // (100 * MS)) * 100 * MS
    late = {"t_submit": grid, "event_ns": lambda v: [each + 100 * MS for each in v], "t_end": grid + 10**9}
    assert judge(*run(**late)).check("arrival_dispersion").status == "pass"
    assert judge(*run(**late, t_send=grid)).check("arrival_dispersion").status == "fail"


def test_one_request_that_this_machine_could_not_connect_makes_a_run_invalid(run: Any) -> None:
    """Law: it was never sent, so the load was not the requested one, however few there are."""
    check = judge(*run(outcome=lambda v: [*v[:600], "client_limit", *v[601:]])).check("error_rate")
    assert (check.status, check.limit, check.facts["of"]) == ("fail", 0.0, "own")


def test_a_death_is_named_with_its_share_and_its_losses(run: Any) -> None:
    """Law: lost = its requests by the schedule less its rows, or what it had sent less its rows where there is no schedule."""
    known = judge(*run(more={"deaths": [Death(0, 1, -9, 5, 0.5, 1_300)]})).check("workers_alive")
    assert (known.facts["kept"], known.facts["lost"], known.facts["theirs"]) == (1200, 100, 1300)
    assert known.value == pytest.approx(100 / 1300)
    counted = judge(*run(more={"deaths": [Death(0, 1, -9, 1_307, 0.5, None)]})).check("workers_alive")
    assert (counted.facts["kept"], counted.facts["lost"]) == (1200, 7)
    assert "theirs" not in counted.facts
    early = judge(*run(more={"deaths": [Death(1, 0, -9, 40, 0.5, None)]})).check("workers_alive")
    assert (early.status, early.value, early.facts["lost"]) == ("fail", 0.0, 0)
    assert judge(*run()).check("workers_alive").status == "pass"


def seen(url: str, *, accelerators: tuple[bool | None, ...] = (), limit: float | None = None) -> MachineSeen:
    """A machine by whether each accelerator is slow, None: it does not say, and by the speed limit of its processors."""
    found = [
        Accelerator(
            str(number), None, None, None, None, 0.5, None, None, None,
            None if slow is None else (("hw_thermal", float(slow)),), None,
        )
        for number, slow in enumerate(accelerators)
    ]  # fmt: skip
    heat = None if limit is None else Heat(None, None, limit, None, None, None, ())
    return MachineSeen(url, "x", 9, 0, 1.0, None, None, (), None, heat, (), (), tuple(found), ())


def throttling(*machines: MachineSeen) -> tuple[str, str | None, str | None]:
    """The status of the check, the reasons, and what did not say."""
    found = checks.throttled(cast(Measurement, SimpleNamespace(machines=machines)), ())
    reasons, silent = found.facts.get("reasons"), found.facts.get("silent")
    return found.status, cast(str | None, reasons), cast(str | None, silent)


def test_no_machine_was_slowed_down_only_if_each_part_of_each_says_so() -> None:
    """Law: one that says nothing is not vouched for by another; one that was slow is enough for a note."""
    cool = seen("http://a", accelerators=(False, False), limit=1.0)
    assert throttling() == ("na", None, None)
    assert throttling(cool) == ("pass", None, None)
    mute = seen("http://b", accelerators=(False, None))
    assert throttling(cool, mute) == ("na", None, "accelerator 1 of http://b")
    slow = seen(THIS_MACHINE, limit=0.0)
    assert throttling(slow, mute) == ("note", "cpu_limit", "accelerator 1 of http://b")
    assert throttling(seen("http://c", accelerators=(True,))) == ("note", "hw_thermal", None)


def test_a_load_host_that_was_slowed_down_is_named() -> None:
    """Law: by heat or by its CPU limit, beside machines that were not; one that does not know is not named."""
    slowed = {
        "a": Slowed(0, 0.0),
        "b": Slowed(3, None),
        "c": Slowed(None, 12.5),
        "d": Slowed(None, None),
        "e": None,
    }
    hosts = [
        LoadHost(name, at, 1, environment(), slowed=one) for at, (name, one) in enumerate(slowed.items())
    ]
    cool = cast(Measurement, SimpleNamespace(machines=(seen("http://a", limit=1.0),)))
    found = checks.throttled(cool, hosts)
    assert (found.status, found.value, found.facts["slow_hosts"]) == ("note", 2.0, ["b", "c"])
    assert checks.throttled(cool, hosts[:1]).status == "pass"
