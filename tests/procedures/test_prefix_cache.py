"""Prefix Cache Effectiveness (draft 5.7), at its full size in virtual time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from msgspec import structs
from procedures.alone import Alone, alone
from procedures.driving import Silent
from procedures.summaries import changed, simulated

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.summary import Summary
from inferometer.errors import CannotSwitch
from inferometer.judge.procedure_verdict import contradictions
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures import prefix_cache
from inferometer.procedures.setup import Setup, another_workload, variant, workload_key
from inferometer.procedures.step import KnownLimits, Measured, Performed, PerformedRun, Run, Switch, Switched
from inferometer.report.compliance_notes import worded
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

PER_TOKEN_MS = 0.2
ENGINE = Settings(
    jitter=0,
    step_base_ns=4_000_000,
    step_per_request_ns=100_000,
    prefill_base_ns=0,
    prefill_per_token_ns=PER_TOKEN_MS * 1e6,
    token_budget=8192,
    draft_tokens=15,
    acceptance=1,
)
"""Sixteen tokens a step, so that there are few steps to simulate.
A cached token saves 0.2 ms of prefill; at a request in four seconds most requests are alone."""


def code(plan: Plan | None = None) -> Plan:
    return prefix_cache.workload(Setup(plan or Plan(), Tests()))


def bare() -> Plan:
    """As the base is searched for: without cache."""
    return variant(code(), sut={"prefix_caching": "disabled"})


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """1,000 requests a pass, at the draft's size."""
    return alone(tmp_path_factory.mktemp("cache"), "prefix-cache", ENGINE, bare(), 0.5)


def test_the_three_passes_are_one_workload_in_three_states(ran: Alone) -> None:
    """Disabled, cold, warm: the same lengths, sharing and instants request by request. Each declares its state, and
    only the warm one's warm-up holds the prefixes."""
    passes = [ran.of(part) for part in ("disabled", "cold", "warm")]
    assert [one.step.at for one in passes] == [
        Conditions(cache=part, rate=0.25) for part in ("disabled", "cold", "warm")
    ]
    declared = [(one.step.plan.sut.prefix_caching, one.step.plan.sut.cache_state) for one in passes]
    assert declared == [("disabled", "cold"), ("enabled", "cold"), ("enabled", "warm")]
    assert [one.step.plan.load.warmup_prefixes for one in passes] == [False, False, True]
    assert [one.outcome.summary.warm_up.prefixes for one in passes] == [
        "not populated",
        "not populated",
        "populated",
    ]
    records = [ran.record(one) for one in passes]
    assert len(records[0]["ttft"]) == 1_000
    first = records[0]["t_intended"] - records[0]["t_intended"][0]
    for record in records[1:]:
        for column in ("input_tokens_asked", "output_tokens_asked", "input_tokens_shared"):
            assert np.array_equal(record[column], records[0][column])
        assert np.array_equal(record["t_intended"] - record["t_intended"][0], first)
    assert len({one.outcome.summary.workload.fingerprint for one in passes}) == 1


def test_ttft_falls_by_the_prefill_of_the_cached_tokens(ran: Alone) -> None:
    """The same request without and with cache: 0.2 ms a cached token, for nine requests in ten to a step's length; the
    means and Table 10 agree with the records."""
    without = ran.record(ran.of("disabled"))["ttft"]
    rows = {row["configuration"]: row for row in ran.rows("cache")}
    reductions = {row["configuration"]: row for row in ran.rows("reduction")}
    for part, label in (("cold", "Cache (Cold)"), ("warm", "Cache (Warm)")):
        record = ran.record(ran.of(part))
        saved = PER_TOKEN_MS * record["usage_cached"]
        assert np.quantile(np.abs(without - record["ttft"] - saved), 0.9) < 5.0
        mean = without.mean() - record["ttft"].mean()
        assert mean == pytest.approx(saved.mean(), rel=0.03)
        assert reductions[label]["mean"] == pytest.approx(100 * mean / without.mean(), rel=1e-6)
        median = 100 * (1 - np.median(record["ttft"]) / np.median(without))
        assert reductions[label]["p50"] == pytest.approx(median, rel=0.01)
        assert ran.value(f"ttft_reduction_{part}") == reductions[label]["p50"]
        assert rows[label]["n"] == 1_000
    assert rows["Cache (Warm)"]["ttft_p95"] < rows["Cache (Cold)"]["ttft_p95"] + 0.5
    assert rows["Cache (Cold)"]["ttft_p50"] < rows["Cache Disabled"]["ttft_p50"] / 2


def test_the_hit_rate_is_of_prefix_tokens(ran: Alone) -> None:
    """sum min(cached, prefix) / sum prefix over the records; cold it is the best possible but for blocks of 16, warm it
    is nearly all, and without cache none."""
    rows = {row["configuration"]: row for row in ran.rows("cache")}
    for part, label in (("disabled", "Cache Disabled"), ("cold", "Cache (Cold)"), ("warm", "Cache (Warm)")):
        record = ran.record(ran.of(part))
        shared = record["input_tokens_shared"]
        true = 100 * np.minimum(record["usage_cached"], shared).sum() / shared.sum()
        assert rows[label]["hit_rate"] == pytest.approx(true, abs=1e-9)
        sharing = (shared > 0).mean()
        assert abs(sharing - 0.8) < 0.06
    assert rows["Cache Disabled"]["hit_rate"] == 0
    assert (
        rows["Cache (Cold)"]["best_hit_rate"] - 2
        < ran.value("hit_rate_cold")
        <= rows["Cache (Cold)"]["best_hit_rate"]
    )
    assert ran.value("hit_rate_cold") < ran.value("hit_rate_warm") <= rows["Cache (Warm)"]["best_hit_rate"]
    assert ran.value("hit_rate_warm") > 98


def test_reductions_and_hit_rates_have_intervals(ran: Alone) -> None:
    """Each holds its value. Of passes with the same requests those are compared one with the other, so that the interval of
    the reduction is narrower than of passes that are independent."""
    values = {one.name: one for one in ran.results.values}
    for part in ("cold", "warm"):
        for name in (f"ttft_reduction_{part}", f"hit_rate_{part}"):
            low, high = values[name].ci or (math.inf, -math.inf)
            assert low <= (ran.value(name) or 0.0) <= high <= 100
    assert values["throughput_improvement"].ci is None  # 60 s are few requests of this engine
    low, high = values["ttft_reduction_warm"].ci or (0.0, 0.0)
    apart = [
        PerformedRun(one.step, replace(one.outcome, summary=other_requests(one.outcome.summary)))
        if isinstance(one, PerformedRun) and one.step.part == "warm"
        else one
        for one in ran.done
    ]
    unpaired = prefix_cache.results(ran.setup, apart).values
    [(least, most)] = [one.ci for one in unpaired if one.name == "ttft_reduction_warm" and one.ci]
    assert high - low < most - least


def test_the_gain_in_throughput_is_as_sure_as_both_rates(ran: Alone) -> None:
    """Of two rates that are known to 3 and 4 %, their ratio is known to 5 %; without an interval of either it has none."""

    def known_to(share: float, caching: str) -> Summary:
        summary = ran.of("throughput", cache=caching).outcome.summary
        found = summary.throughput.output_tok_s or 0.0
        ends = structs.replace(
            summary.throughput.ci95, output_tok_s=(found * math.exp(-share), found * math.exp(share))
        )
        return structs.replace(summary, throughput=structs.replace(summary.throughput, ci95=ends))

    rates: dict[str, Summary | None] = {
        "disabled": known_to(0.03, "disabled"),
        "warm": known_to(0.04, "enabled"),
    }
    low, high = prefix_cache.improvement_interval(rates) or (0.0, 0.0)
    ratio = 1 + (prefix_cache.improvement(rates) or 0.0) / 100
    assert (1 + low / 100, 1 + high / 100) == pytest.approx((ratio * math.exp(-0.05), ratio * math.exp(0.05)))
    assert prefix_cache.improvement_interval(rates | {"warm": None}) is None


def other_requests(summary: Summary) -> Summary:
    """The same, as if the run had sent others."""
    return structs.replace(summary, workload=structs.replace(summary.workload, fingerprint="sha256:other"))


def test_throughput_improves_in_closed_loop(ran: Alone) -> None:
    """By what the two runs' rates say, 32 in flight; fewer prompt tokens to compute let more answers through."""
    rates = []
    for caching in ("disabled", "enabled"):
        one = ran.of("throughput", cache=caching)
        assert (one.step.plan.load.model, one.step.plan.load.concurrency) == ("closed", 32)
        rates.append(one.outcome.summary.throughput.output_tok_s or 0.0)
    assert ran.value("throughput_improvement") == pytest.approx(100 * (rates[1] / rates[0] - 1))
    assert ran.value("throughput_improvement") > 20
    assert [row["output_tok_s"] for row in ran.rows("throughput")] == rates


def test_results_come_of_whatever_was_done(ran: Alone) -> None:
    """What was not measured is None and named, never 0."""
    for count in range(len(ran.done) - 3):
        found = prefix_cache.results(ran.setup, ran.done[:count])
        values = {one.name: one.value for one in found.values}
        assert values["throughput_improvement"] is None
        assert bool(found.undecided) == (count < 6)
        if count < 6:
            assert values["hit_rate_warm"] is None
            assert values["ttft_reduction_warm"] is None
    assert not ran.results.undecided


def test_without_a_way_to_flush_enabled_will_do() -> None:
    """A server that is restarted for it, say. Without a way to disable it there is no test."""
    known = KnownLimits({workload_key(bare()): 8.0})
    steps, asked = prefix_cache.steps(Setup(Plan(), Tests(), known)), []
    came: Any = None
    while True:
        try:
            step = steps.throw(came) if isinstance(came, CannotSwitch) else steps.send(came)
        except StopIteration:
            break
        asked.append(step.state if isinstance(step, Switch) else step.part)
        came = Measured("run", simulated()) if isinstance(step, Run) else Switched("declared", "a hook")
        if asked[-1] == "flushed":
            came = CannotSwitch("nobody knows how")
    passes = [
        "disabled",
        "throughput",
        "flushed",
        "enabled",
        "cold",
        "warm",
        "throughput",
        "disabled",
        "again",
    ]
    assert asked == ["disabled", *passes]
    steps = prefix_cache.steps(Setup(Plan(), Tests(), known))
    next(steps)
    with pytest.raises(CannotSwitch):
        steps.throw(CannotSwitch("nobody knows how"))


def test_a_cache_that_was_not_switched_off_contradicts(tmp_path: Path, ran: Alone) -> None:
    """The server's usage tells, and the judge says so; an honest pass contradicts nothing."""
    stand = Virtual(Chosen("tiny-cpu", ENGINE), Silent())
    stand.switch("prefix_cache", "enabled")  # whoever was told to disable it did not
    plan = variant(ran.of("disabled").step.plan, load={"requests": 60})
    liar = stand.measure(plan, tmp_path).summary
    for part, summary, wrong in (
        ("disabled", liar, True),
        ("disabled", ran.of("disabled").outcome.summary, False),
        ("cold", ran.of("cold").outcome.summary, False),
        ("warm", ran.of("warm").outcome.summary, False),
    ):
        state = {"prefix_cache": "disabled" if part == "disabled" else "flushed"}
        assert len(contradictions(part, state, summary)) == wrong


def test_a_warm_cache_without_a_hit_contradicts(ran: Alone) -> None:
    """A flushed cache counts as enabled."""
    one = ran.of("disabled")  # nothing cached, as seen
    (said,) = contradictions("warm", {"prefix_cache": "flushed"}, one.outcome.summary)
    assert said.code == "cache_unused_while_on"
    drawn = one.outcome.summary.workload.drawn
    assert drawn is not None
    assert drawn.shared.tokens is not None
    assert f"{drawn.shared.tokens.max:,} tokens" in worded(said)
    assert "fewer tokens than one" in worded(Note(said.code, {"tokens": None}))


def unseen(ran: Alone, warm: str, status: Literal["verified", "declared"]) -> list[str]:
    """What is left open of a server that reports no cached tokens. `warm`: the pass that was the warm one."""
    last = ran.of(warm).outcome
    done: list[Performed] = []
    for one in ran.done:
        if isinstance(one, PerformedRun):
            found = last if one.step.part == "warm" else one.outcome
            silent = structs.replace(found.summary.throughput, cached_input_share=None)
            summary = structs.replace(found.summary, throughput=silent)
            done.append(PerformedRun(one.step, replace(found, summary=summary)))
        else:
            done.append(replace(one, outcome=Switched(status, "a command")))
    return [note.code for note in prefix_cache.results(ran.setup, done).undecided]


def test_a_cache_that_saves_nothing_has_to_show_that_it_was_switched(ran: Alone) -> None:
    """By the system's own word or by what it saves; a switch that does nothing saves nothing, too."""
    assert unseen(ran, "disabled", "declared") == ["cache_not_shown"]
    assert unseen(ran, "disabled", "verified") == []
    assert unseen(ran, "warm", "declared") == []


@pytest.mark.parametrize(("factor", "drifts"), [(1.0, False), (1.04, False), (1.3, True), (0.7, True)])
def test_a_system_that_is_another_at_the_end_leaves_the_test_undecided(
    ran: Alone, factor: float, drifts: bool
) -> None:
    """By the pass without a cache, made again with the same requests: all of them longer or shorter by a factor."""
    first = ran.of("disabled").outcome
    assert ran.of("again").outcome.summary.workload.fingerprint == first.summary.workload.fingerprint
    assert first.requests is not None
    assert first.summary.metrics.ttft_ms is not None
    metrics = structs.replace(
        first.summary.metrics,
        ttft_ms=replace_p50(first.summary.metrics.ttft_ms, factor),
    )
    other = replace(
        first,
        requests=replace(first.requests, ttft_ms=factor * first.requests.ttft_ms),
        summary=structs.replace(first.summary, metrics=metrics),
    )
    done = [
        PerformedRun(one.step, other) if isinstance(one, PerformedRun) and one.step.part == "again" else one
        for one in ran.done
    ]
    found = [one.code for one in prefix_cache.results(ran.setup, done).undecided]
    assert found == (["drifted_between"] if drifts else [])


def replace_p50(stats: Any, factor: float) -> Any:
    """The same with another median."""
    return changed(stats, p50=factor * stats.p50)


def test_the_workload_is_the_plans_if_it_shares() -> None:
    """Conversation does, a uniform one does not; repeatable prompts, which would be found from pass to pass, are never sent."""
    conversation = another_workload(Plan(), name="conversation")
    assert code(conversation).workload == conversation.workload
    assert code().workload.based_on == "code-completion"
    repeated = code(variant(Plan(), workload={"repeatable_prompts": True}))
    assert (repeated.workload.based_on, repeated.workload.repeatable_prompts) == ("code-completion", False)


def test_a_throughput_run_sends_each_request_once() -> None:
    """It ends by time, and has twice the requests that the system is done with until then without a cache, and some more."""
    setup = Setup(Plan(), Tests.model_validate({"prefix-cache": {"throughput_s": 60}}))
    known = workload_key(variant(prefix_cache.workload(setup), sut={"prefix_caching": "disabled"}))
    steps = prefix_cache.steps(replace(setup, known=KnownLimits(saturation={known: 10.0})))
    found: list[Run] = []
    outcome: Measured | Switched | None = None
    while len(found) < 2:
        step = steps.send(outcome)
        if isinstance(step, Switch):
            outcome = Switched("verified", "planted")
        else:
            outcome = Measured("one", simulated())
            found += [step] if step.part == "throughput" else []
    assert {(one.plan.load.duration_s, one.plan.load.requests) for one in found} == {(60, 1_440)}
