"""Checks on what stands between plan and server: caches, truncation, buffering, closed connections, a growing queue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferometer.documents.workload import PrefixHits, PublishedFigure, RequestStatistics, SharedPrefixes
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check, Verdict

MS = 1_000_000
TOTAL = 1300
LENGTHS = np.random.default_rng(3).integers(128, 513, TOTAL)
"""Prompt lengths of the default workload."""


def found(run: Any, code: str, **changes: Any) -> Check:
    """The check named `code` on the good run with changes."""
    return judge(*run(**changes)).check(code)


def judged(run: Any, drawn: RequestStatistics | None, **changes: Any) -> Verdict:
    """The verdict on the good run with changes, and statistics of its requests."""
    plan, measurement, record = run(**changes)
    return judge(plan, measurement, record, drawn=drawn)


def drawn(requests: int, *published: PublishedFigure, exact: float | None = None) -> RequestStatistics:
    """Statistics of so many requests, which may find this share of their tokens in a cache."""
    shared = SharedPrefixes(0, None, None, None, ())
    hits = PrefixHits(exact, None, 16)
    return RequestStatistics(requests, None, None, None, None, None, shared, hits, published)


def prompts(server: Any, sent: Any = LENGTHS) -> dict[str, Any]:
    """Columns of prompts of these lengths and of the server's counts of them."""
    return {"input_tokens_asked": sent, "input_tokens_sent": sent, "usage_input": server}


@pytest.mark.parametrize("method", ["native", "reference"])
@pytest.mark.parametrize(
    ("status", "cached"),
    [
        ("pass", np.full(TOTAL, 32)),
        ("pass", np.where(np.arange(TOTAL) % 4 == 0, 0, 32)),  # evicted now and then
        ("pass", 30 + np.arange(TOTAL) % 8),  # a cache by tokens finds a digit or two of a nonce
        ("fail", LENGTHS // 4),
        ("fail", LENGTHS // 5),
        ("fail", np.full(TOTAL, 144)),  # too much for a template
        ("fail", np.where(np.arange(TOTAL) % 10 == 0, LENGTHS, 32)),
    ],
)
def test_the_cached_tokens_that_all_prompts_share_are_the_templates(
    run: Any, status: str, cached: Any, method: str
) -> None:
    """Law: whatever the tokenizer, a small constant is no unexpected hit, and what grows with the prompt is one."""
    columns = prompts(LENGTHS + 36) | {"usage_cached": cached}
    plan = {"tokenizer": {"method": method}}
    assert found(run, "cache_hits", **columns, plan=plan).status == status


def test_a_prompt_cached_to_its_end_is_no_template(run: Any) -> None:
    """Law: prompts of one short length, all but wholly cached, leave no room for a template of that size."""
    columns = prompts(np.full(TOTAL, 110), np.full(TOTAL, 100))
    assert found(run, "cache_hits", **columns, usage_cached=np.full(TOTAL, 96)).status == "fail"
    assert found(run, "cache_hits", **columns, usage_cached=np.full(TOTAL, 8)).status == "pass"


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.9])
@pytest.mark.parametrize("template", [0, 36, 128])
def test_a_server_that_reads_its_prompts_counts_more_for_longer_ones(
    run: Any, scale: float, template: int
) -> None:
    """Law: another tokenizer, its noise and a template convict nobody; a cut at 300 of at most 512 tokens does."""
    noise = np.random.default_rng(1).normal(0, 0.05, TOTAL)
    whole = (LENGTHS * scale * (1 + noise)).astype(np.int64) + template
    assert found(run, "prompt_length", **prompts(whole)).status == "pass"
    cut = np.minimum(whole, round(300 * scale) + template)
    check = found(run, "prompt_length", **prompts(cut))
    assert (check.status, check.facts["judged_by"]) == ("fail", "growth")
    assert found(run, "prompt_length", **prompts(np.minimum(whole, 100))).status == "fail"


def test_prompts_of_one_length_show_no_growth_and_convict_nobody(run: Any) -> None:
    """Law: without longer and shorter prompts, or without usage, nothing can be said."""
    assert found(run, "prompt_length").facts["grown_share"] is None
    silent = prompts([None] * TOTAL)
    assert found(run, "prompt_length", **silent).facts["grown_share"] is None


def bunched(share: float) -> Any:
    """A function that puts all events of the first `share` of the measured requests at their last one's instant."""

    def change(times: list[Any]) -> list[Any]:
        last = 100 + round(share * (len(times) - 100))
        return [np.full_like(each, each[-1]) if 100 <= i < last else each for i, each in enumerate(times)]

    return change


def test_text_that_comes_all_at_once_was_not_streamed(run: Any) -> None:
    """Law: one answer in a hundred may; beyond that P99 is in doubt, and beyond half every figure is wrong. A share counts
    where its interval lies beyond the limit; answers read late decide nothing; whole ones are not looked at."""
    assert found(run, "streamed").value == 0.0
    assert found(run, "streamed", event_ns=bunched(0.01)).status == "pass"
    assert found(run, "streamed", event_ns=bunched(0.02)).status == "unsure"
    assert found(run, "streamed", event_ns=bunched(0.5)).status == "unsure"
    assert found(run, "streamed", event_ns=bunched(0.54)).status == "fail"
    late = {"lag_ns": lambda v: v + 50_000_000, "merged_event": lambda v: [None] * len(v)}
    check = found(run, "streamed", event_ns=bunched(1.0), **late)
    assert (check.status, check.value, check.facts["judged"]) == ("unsure", None, 0)
    whole = {"target": {"stream": False}}
    assert found(run, "streamed", event_ns=bunched(1.0), plan=whole).status == "na"


@pytest.mark.parametrize(
    ("share", "bare", "explained"),
    [(0.02, "unsure", "note"), (0.5, "unsure", "note"), (0.54, "fail", "unsure"), (1.0, "fail", "unsure")],
)
def test_a_disclosed_output_filter_explains_answers_that_were_held_back(
    run: Any, share: float, bare: str, explained: str
) -> None:
    """Law: where the plan says that an output filter is on, and only there, held-back answers are noted, and most of them leave
    TPOT undecided. Nothing held: pass."""
    for disclosed, status in ((True, explained), (False, bare), (None, bare)):
        plan = {"sut": {"guardrails": {"output_filter": disclosed}}}
        assert found(run, "streamed", event_ns=bunched(share), plan=plan).status == status
        assert found(run, "streamed", plan=plan).status == "pass"


@pytest.mark.parametrize(("tokens", "status"), [(1, "na"), (4, "fail"), (None, "na")])
def test_one_event_is_a_stream_only_of_one_token(run: Any, tokens: int | None, status: str) -> None:
    """Law: a single event with text that usage says holds several tokens is an answer come at once."""
    columns = {
        "event_ns": lambda v: [each[:2] for each in v],
        "event_class": lambda v: [kinds[:2] for kinds in v],
        "usage_output": lambda v: [tokens] * len(v),
    }
    assert found(run, "streamed", **columns).status == status


def test_connections_closed_at_reuse_are_noted(run: Any) -> None:
    """Law: a second attempt is told with its share; the verdict does not change."""
    assert found(run, "stale_connections").status == "pass"
    check = found(run, "stale_connections", attempts=lambda v: v + (np.arange(len(v)) % 100 == 0))
    assert (check.status, check.facts["retried"]) == ("note", 12)
    assert check.value == pytest.approx(0.01)


def test_a_server_that_keeps_no_connection_is_noted(run: Any) -> None:
    """Law: most requests opening their own although reuse was asked is told; a few, or a plan that asks for it, is not."""
    _, _, record = run()

    def opened(every: int) -> dict[str, Any]:
        own = np.arange(TOTAL) % every == 0
        starts = zip(own, record.t_intended, strict=True)
        return {"t_connect": [int(t) if mine else None for mine, t in starts]}

    check = found(run, "stale_connections", **opened(1))
    assert (check.status, check.facts["kept"], check.value) == ("note", "none", 1.0)
    assert found(run, "stale_connections", **opened(3)).status == "pass"
    new = {"target": {"connection": "new"}}
    assert found(run, "stale_connections", **opened(1), plan=new).status == "na"


def test_a_server_that_closes_after_each_answer_is_noted_with_the_connections_that_were_ready(
    run: Any,
) -> None:
    """Law: where that was found, the share of first attempts on a fresh connection from before they were due is given."""
    again = np.arange(TOTAL) % 100 == 0
    taken = run()[2].t_taken
    fresh = [None if twice else int(t) - 1 for twice, t in zip(again, taken, strict=True)]
    plan, measurement, record = run(t_connect=fresh, attempts=lambda v: v + again)
    check = judge(plan, measurement, replace(record, single_use=True)).check("stale_connections")
    assert (check.status, check.facts["kept"], check.facts["retried"]) == ("note", "single_use", 12)
    assert check.value == pytest.approx(0.99)


def queue(run: Any, seed: int, load: float, servers: float) -> Check:
    """`stationary` on Poisson arrivals: M/M/1 at `load`, or M/G/inf with `load` busy on average; TTFT ends the waiting."""
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1 / 50.0, TOTAL))
    if servers == 1:
        service = random.exponential(load / 50.0, TOTAL)
        begins, free = np.zeros(TOTAL), 0.0
        for i, at in enumerate(arrivals):
            begins[i] = max(at, free)
            free = begins[i] + service[i]
    else:
        service = random.lognormal(np.log(load / 50.0) - 0.125, 0.5, TOTAL)
        begins = arrivals + random.exponential(0.02, TOTAL)
    submit = (arrivals * 1e9).astype(np.int64) + 10**12
    first = (begins * 1e9).astype(np.int64) + 10**12 + MS
    ends = first + (service * 1e9).astype(np.int64) + MS
    times = first[:, None] + (ends - first)[:, None] * np.array([0, 0, 0.3, 0.6, 1.0])
    columns = {
        "t_intended": submit,
        "t_send": submit,
        "t_submit": submit,
        "event_ns": list(times.astype(np.int64)),
        "t_end": times[:, -1].astype(np.int64),
    }
    return judge(*run(**columns)).check("stationary")


@pytest.mark.parametrize(("load", "servers"), [(0.7, 1), (0.5, 1), (10.0, np.inf), (200.0, np.inf)])
def test_a_stationary_queue_raises_no_alarm(run: Any, load: float, servers: float) -> None:
    """Law: over 40 seeds, neither one server at 70 % nor many, even through a ramp of a sixth of the run, seem to grow."""
    assert {queue(run, seed, load, servers).status for seed in range(40)} == {"pass"}


def test_a_queue_past_its_capacity_is_seen_to_grow(run: Any) -> None:
    """Law: at 1.25 times what the server can do nearly every run is INCONCLUSIVE; a closed loop is not looked at."""
    growing = [queue(run, seed, 1.25, 1).status for seed in range(40)]
    assert growing.count("unsure") >= 38
    plan = {"load": {"model": "closed", "concurrency": 5, "rate": None}}
    assert found(run, "stationary", plan=plan).status == "na"


def test_a_fast_stream_read_late_by_less_than_a_millisecond_is_noticed(run: Any) -> None:
    """Law: with tokens 0.2 ms apart, half of that is late: merged gaps of late reads fail, of prompt ones are the server's."""

    def fast(times: list[Any]) -> list[Any]:
        return [each[0] + np.array([0, 200, 400, 600, 600]) * 1_000 for each in times]

    columns = {"event_ns": fast, "t_end": lambda v: v}
    earlier = {
        "merged_event": lambda v: [None] * len(v)
    }  # a record that does not say which reads held several packets
    late = found(run, "receive_lag", **columns, **earlier, lag_ns=lambda v: v + MS // 2)
    assert late.status == "fail"
    assert late.value == pytest.approx(1 / 3)
    assert found(run, "receive_lag", **columns).status == "pass"


@pytest.mark.parametrize(("status", "cached"), [("pass", 0.30), ("pass", 0.52), ("fail", 0.60)])
def test_a_workload_that_shares_prefixes_may_find_as_much_as_there_is(
    run: Any, status: str, cached: float
) -> None:
    """Law: hits up to the best possible share and the usual twentieth are the workload's own; more was known before."""
    columns = prompts(LENGTHS) | {"usage_cached": (LENGTHS * cached).astype(np.int64)}
    plan = {"workload": {"name": "conversation"}, "tokenizer": {"method": "native"}}
    made = drawn(TOTAL, exact=0.5)
    check = judged(run, made, **columns, plan=plan).check("cache_hits")
    assert (check.status, check.limit, check.facts["of"]) == (status, 0.55, "shared")
    # A workload that shares nothing is held to nothing, whatever its account says.
    alone = judged(run, made, **columns, plan={"tokenizer": {"method": "native"}})
    assert alone.check("cache_hits").status == "fail"


@pytest.mark.parametrize("counted", [True, False])
def test_the_templates_tokens_around_a_system_message_are_told_apart(run: Any, counted: bool) -> None:
    """Law: 7 tokens around one message and 19 around two are no misses, neither for one kind of request nor for the other;
    whether the first 7 are among the tokens asked for or not."""
    shares = np.arange(TOTAL) % 2 == 0
    shared = np.where(shares, 200, 0)
    sent = LENGTHS // 4 + shared
    columns = prompts(sent + 7 + 12 * shares, sent) | {"input_tokens_shared": shared}
    columns["input_tokens_asked"] = sent + 7 * counted
    plan = {
        "workload": {"name": "conversation", "count_template": counted},
        "tokenizer": {"method": "native"},
    }
    assert judge(*run(**columns, plan=plan)).check("prompt_length").value == 0
    columns["usage_input"] = columns["usage_input"] + np.where(shares, 0, 40 * counted)
    assert judge(*run(**columns, plan=plan)).check("prompt_length").status == ("fail" if counted else "pass")


def figure(off: float) -> PublishedFigure:
    return PublishedFigure("input", "p95", 892, "draft A.3.2", 500.0, off)


@pytest.mark.parametrize(
    ("made", "status", "value"),
    [
        (None, "na", None),
        (drawn(5000), "na", None),
        (drawn(999, figure(3.0)), "na", None),
        (drawn(1000, figure(0.2), figure(0.9)), "pass", 0.9),
        (drawn(1000, figure(0.2), figure(1.1)), "note", 1.1),
    ],
)
def test_drawn_lengths_that_are_not_the_published_ones_are_told(
    run: Any, made: RequestStatistics | None, status: str, value: float | None
) -> None:
    """Law: the worst figure decides, a note at most; few draws and no figures say nothing."""
    check = judged(run, made).check("workload_lengths")
    assert (check.status, check.value) == (status, value)
