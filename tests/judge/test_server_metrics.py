"""The server's own metrics: figures over the measured phase, and the checks that hold the client against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.documents.workload import PrefixHits, RequestStatistics, SharedPrefixes
from inferometer.judge.judge import judge
from inferometer.judge.server_metrics import TOKENS_SHARE
from inferometer.judge.verdict import Check
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.measure.server import server_series, track
from inferometer.plan.schema import Plan
from inferometer.telemetry.metrics.normalised import Grown, Track, Translated

MS, S = 1_000_000, 1_000_000_000
LES = ("0.02", "0.04", "0.06", "0.1", "0.5", "+Inf")
Run = Callable[..., tuple[Plan, Measurement, Record]]


def instants(record: Record, step: int = 333 * MS) -> Any:
    """Scrapes from a second before the load to one after it."""
    return np.arange(int(record.t_taken.min()) - S, int(record.t_end.max()) + S, step)


def server(
    record: Record, *, extra: float = 0.0, way_ms: float = 2.0, seen: bool = True, own: bool = True
) -> Translated:
    """A server that saw the record's requests and counts each when it ends; `extra` is the share of other people's tokens, and
    its TTFT is the client's less `way_ms`."""
    times = instants(record)
    order = np.argsort(record.t_end)
    done = np.searchsorted(record.t_end[order], times, "right")

    def counted(each: Any) -> Any:
        return np.concatenate(([0.0], np.cumsum(each[order] * 1.0)))[done]

    first = record.event_ns[record.event_offsets[:-1] + record.first_text]
    ttft_s = (first - record.t_submit.values) / S - way_ms / 1_000
    tracks = {
        "prompt_tokens": counted(record.usage_input.values) * (1 + extra),
        "generation_tokens": counted(record.usage_output.values) * (1 + extra),
        "running": np.full(len(times), 3.0),
        "kv_usage": np.linspace(0.1, 0.6, len(times)),
        "preemptions": np.zeros(len(times)),
    }
    buckets = np.column_stack([counted(ttft_s <= float(le)) for le in LES])
    grown = Grown(times, counted(np.ones(len(record))), counted(ttft_s), buckets, LES)
    return Translated(
        url="http://h/metrics",
        engine="vLLM",
        verified=seen,
        own=own,
        times=times,
        dropped=0,
        resets=0,
        tracks={name: Track(times, values) for name, values in tracks.items()},
        histograms={"ttft": grown},
    )


def cut(told: Translated, first: int = 0, last: int | None = None) -> Translated:
    """Only some of its scrapes."""
    chosen = slice(first, last)
    tracks = {name: Track(one.times[chosen], one.values[chosen]) for name, one in told.tracks.items()}
    grown = {
        name: Grown(one.times[chosen], one.counts[chosen], one.sums[chosen], one.buckets[chosen], one.les)
        for name, one in told.histograms.items()
    }
    return replace(told, times=told.times[chosen], tracks=tracks, histograms=grown)


def found(plan: Plan, record: Record, *told: Translated) -> dict[str, Check]:
    """The three checks."""
    verdict = judge(plan, measure(plan, record, told=told), record)
    return {name: verdict.check(f"server_{name}") for name in ("tokens", "ttft", "queue")}


def test_a_server_that_served_us_alone_agrees_to_the_token(run: Run) -> None:
    """Warm-up included; TTFT differs by the way."""
    plan, _, record = run()
    seen = found(plan, record, server(record))
    assert (seen["tokens"].status, seen["tokens"].value) == ("pass", 0)
    assert seen["tokens"].facts["output_server"] == record.usage_output.values.sum()
    assert seen["ttft"].status == "pass"
    assert seen["ttft"].value == pytest.approx(2.0, abs=1e-6)


@given(extra=st.floats(-0.3, 0.3), known=st.booleans())
@settings(max_examples=30)
def test_more_tokens_than_ours_are_somebody_else_s(run: Run, extra: float, known: bool) -> None:
    """Undecided beyond the limit if the names are known; fewer are worth a note; within, nothing."""
    plan, _, record = run(n=200, warm=20)
    check = found(plan, record, server(record, extra=extra, seen=known))["tokens"]
    assert check.limit is not None
    assert check.limit >= TOKENS_SHARE
    wanted = "pass" if abs(extra) <= check.limit else "unsure" if extra > 0 and known else "note"
    assert check.status == wanted or abs(abs(extra) - check.limit) < 1e-9
    assert check.value == pytest.approx(abs(extra), abs=1e-9)


@pytest.mark.parametrize(
    ("state", "hit", "status"),
    [("cold", 0.9, "unsure"), ("cold", 0.2, "pass"), ("warm", 0.9, "pass"), ("warm", 0.2, "unsure")],
)
def test_hits_that_only_the_servers_counters_show_are_held_to_the_declared_state(
    run: Run, state: str, hit: float, status: str
) -> None:
    """Where usage has no cached tokens: prompts of 400, of which the engine found that share, a template of 80 included. Names
    known from documents alone say nothing, nor does usage that has them, nor an engine that preempted requests."""
    total = np.full(1300, 400)
    lengths = {"input_tokens_asked": total, "input_tokens_sent": total, "usage_input": total}
    plan, _, record = run(
        plan={"sut": {"cache_state": state}, "workload": {"repeatable_prompts": True}},
        usage_cached=[None] * 1300,
        **lengths,
    )
    told = server(record)
    queries = told.tracks["prompt_tokens"]
    nothing_shared = RequestStatistics(
        1300,
        None,
        None,
        None,
        None,
        None,
        SharedPrefixes(0, None, None, None, ()),
        PrefixHits(0.0, None, 16),
        (),
    )
    hits = {"prefix_queries": queries, "prefix_hits": Track(queries.times, queries.values * hit)}
    told = replace(told, tracks=told.tracks | hits)

    def judged(one: Translated) -> Check:
        measurement = measure(plan, record, told=(one,))
        return judge(plan, measurement, record, drawn=nothing_shared).check("cache_hits")

    check = judged(told)
    assert check.status == status
    assert check.value == pytest.approx(hit if state == "warm" else max(0, hit - 0.32))
    assert judged(replace(told, verified=False)).status == "na"
    preempted = {"preemptions": Track(queries.times, np.linspace(0.0, 5.0, len(queries.times)))}
    assert judged(replace(told, tracks=told.tracks | preempted)).status == "na"


def test_what_failed_requests_cost_is_not_somebody_else_s(run: Run) -> None:
    """A request without usage may have been worked on to its end, or not at all."""

    def some_lost(values: Any) -> list[Any]:
        return [None if at % 50 == 0 else value for at, value in enumerate(values)]

    plan, _, whole = run()

    def outcomes(values: Any) -> list[str]:
        return ["timeout" if at % 50 == 0 else one for at, one in enumerate(values)]

    _, _, record = run(usage_input=some_lost, usage_output=some_lost, outcome=outcomes)
    assert found(plan, record, server(whole))["tokens"].status == "pass"
    assert found(plan, record, server(record))["tokens"].status == "pass"
    assert found(plan, record, server(whole, extra=0.05))["tokens"].status == "unsure"


@pytest.mark.parametrize(
    ("way_ms", "status", "side"), [(-3.0, "unsure", "below"), (0.0, "pass", None), (20.0, "note", "above")]
)
def test_ttft_is_longer_at_the_client_and_not_by_much(
    run: Run, way_ms: float, status: str, side: str | None
) -> None:
    """No token is seen before it is made; what is on the way is no queue."""
    plan, _, record = run()
    check = found(plan, record, server(record, way_ms=way_ms))["ttft"]
    assert (check.status, check.facts.get("side")) == (status, side)
    assert check.value == pytest.approx(way_ms, abs=1e-6)


def with_others(told: Translated, others: int, ttft_s: float) -> Translated:
    """The server with so many more first tokens after the load, each that late."""
    ttft = told.histograms["ttft"]
    last = np.arange(len(ttft.times)) == len(ttft.times) - 1
    into = np.array([ttft_s <= float(le) for le in LES])
    more = replace(
        ttft,
        counts=ttft.counts + others * last,
        sums=ttft.sums + others * ttft_s * last,
        buckets=ttft.buckets + others * np.outer(last, into),
    )
    return replace(told, histograms={"ttft": more})


@pytest.mark.parametrize("others", [1, 2, 5])
@pytest.mark.parametrize("ttft_s", [0.0, 0.01, 0.4])
@pytest.mark.parametrize(("way_ms", "side"), [(-10.0, "below"), (2.5, "bounded"), (20.0, "above")])
def test_a_health_check_more_does_not_silence_the_comparison(
    run: Run, others: int, ttft_s: float, way_ms: float, side: str
) -> None:
    """Law: a few first tokens that only the server has leave bounds, within which the true difference lies; what holds at both
    is said."""
    plan, _, record = run()
    check = found(plan, record, with_others(server(record, way_ms=way_ms), others, ttft_s))["ttft"]
    assert check.facts["side"] == side
    low, high = check.facts["gap_low"], check.facts["gap_high"]
    assert low - 1e-9 <= way_ms <= high + 1e-9
    assert check.value == (low if side == "above" else high)


@pytest.mark.parametrize("others", [1, 30])
def test_means_that_the_others_could_have_moved_are_not_judged(run: Run, others: int) -> None:
    """Law: where a request of any duration may be among the others, nothing is claimed."""
    plan, _, record = run()
    check = found(plan, record, with_others(server(record), others, 10.0))["ttft"]
    assert (check.status, check.value, check.facts["side"]) == ("note", None, "others")


@pytest.mark.parametrize("factor", [0.0, -1.0, -1e6])
def test_a_sum_that_no_durations_have_gives_no_mean(run: Run, factor: float) -> None:
    """Law: a server whose sum of TTFT stands still or falls said nothing of it, and no time is put down to the way there."""
    plan, _, record = run()
    told = server(record)
    grown = told.histograms["ttft"]
    fallen = Grown(grown.times, grown.counts, grown.sums * factor, grown.buckets, grown.les)
    told = replace(told, histograms={"ttft": fallen})
    seen = found(plan, record, told)
    assert (seen["ttft"].status, seen["tokens"].status) == ("na", "pass")


@pytest.mark.parametrize("first_last", [(5, None), (0, -10)])
def test_scrapes_that_do_not_enclose_the_load_decide_nothing(
    run: Run, first_last: tuple[int, int | None]
) -> None:
    """Neither a first scrape in the middle of the load nor a last one before its end tells totals."""
    plan, _, record = run()
    seen = found(plan, record, cut(server(record), *first_last))
    assert {seen["tokens"].status, seen["ttft"].status} == {"na"}


def test_without_metrics_nothing_applies(run: Run) -> None:
    """Most servers of the world show nothing we know."""
    plan, measurement, record = run()
    assert measurement.server is None
    assert {check.status for check in found(plan, record).values()} == {"na"}


@pytest.mark.parametrize(
    ("depth", "status"),
    [(lambda u: 0 * u, "pass"), (lambda u: 30 * u, "note"), (lambda u: 20 - 10 * u, "pass"), (lambda u: 1.5 * u, "pass")],
)  # fmt: skip
def test_a_queue_that_grows_by_the_server_s_own_gauge_is_noted(
    run: Run, depth: Callable[[Any], Any], status: str
) -> None:
    """From third to third, and by more than two requests; the sentence has its mean, maximum and end."""
    plan, _, record = run()
    told = server(record)
    begin, end = record.t_taken.min(), record.t_end.max()
    values = depth(np.clip((told.times - begin) / (end - begin), 0, 1))
    told.tracks["waiting"] = Track(told.times, values)
    check = found(plan, record, told)["queue"]
    assert check.status == status
    kept = track([told], "waiting")
    assert kept is not None
    assert kept.values.tolist() == values.tolist()


def test_levels_are_of_the_measured_phase_alone(run: Run) -> None:
    """Mean and maximum over its scrapes, each counted alike; what the warm-up did is not in it."""
    plan, _, record = run(warm=400)
    told = server(record)
    begin, end = record.t_taken[record.measured].min(), record.t_end[record.measured].max()
    inside = told.tracks["kv_usage"].values[(told.times >= begin) & (told.times <= end)]
    seen = measure(plan, record, told=[told]).server
    assert seen is not None
    assert seen.kv_usage is not None
    assert (seen.kv_usage.mean, seen.kv_usage.max) == pytest.approx((inside.mean(), inside.max()))
    base = told.tracks["prompt_tokens"].values[told.times <= begin][-1]
    assert seen.prompt_tokens == pytest.approx(record.usage_input.values.sum() - base)
    assert seen.ttft_ms is not None
    assert seen.ttft_ms.p50 == pytest.approx(38, rel=0.1)


def test_replicas_add_up_and_the_target_s_own_word_counts_alone(run: Run) -> None:
    """Two halves behind a balancer make the whole; a target that shows its own totals is not counted twice."""
    plan, _, record = run()
    half = server(record, own=False)
    for name in ("prompt_tokens", "generation_tokens"):
        one = half.tracks[name]
        half.tracks[name] = Track(one.times, one.values / 2)
    later = replace(half, url="http://h2/metrics", tracks={
        name: Track(one.times + 70 * MS, one.values) for name, one in half.tracks.items()
    })  # fmt: skip
    assert found(plan, record, half, later)["tokens"].value == 0
    assert found(plan, record, server(record), half, later)["tokens"].value == 0
    assert found(plan, record, half)["tokens"].facts["side"] == "fewer"
    both = measure(plan, record, told=[half, later]).server
    assert both is not None
    assert both.running is not None
    assert both.running.mean == 6


def test_the_rate_drawn_adds_up_to_the_tokens(run: Run) -> None:
    """Rates times the time between scrapes are the tokens counted; a scrape out of turn, at a phase's end, makes no spike."""
    _, _, record = run()
    whole = server(record)
    kept = [at for at in range(len(whole.times)) for _ in range(1 + (at == 20))]
    late = np.asarray(kept) * 0
    late[21] = 2 * MS
    generated = whole.tracks["generation_tokens"]
    told = replace(
        whole,
        tracks=whole.tracks
        | {"generation_tokens": Track(generated.times[kept] + late, generated.values[kept] + late / MS)},
    )
    drawn = server_series([told], int(record.t_taken.min()))["generation_tok_s"]
    steps = np.diff([told.times[0] / 1e9, *(np.asarray(drawn.t_s) + record.t_taken.min() / 1e9)])
    assert float(steps @ drawn.values) == pytest.approx(record.usage_output.values.sum(), rel=1e-3)
    assert max(drawn.values) < 2 * float(np.median(drawn.values))
    assert {"running", "kv_usage"} <= server_series([told], 0).keys()
    assert "waiting" not in server_series([told], 0)


def test_workers_that_both_count_a_prompt_are_not_somebody_else(run: Run) -> None:
    """Prefill and decode: twice the prompts, added up, is a note that says so; the target's own endpoint is believed."""
    plan, _, record = run()
    prefill = server(record, own=False)
    decode = replace(prefill, url="http://h2/metrics")
    del prefill.tracks["generation_tokens"]
    check = found(plan, record, prefill, replace(decode, tracks=decode.tracks | server(record).tracks))[
        "tokens"
    ]
    assert (check.status, check.facts["side"], check.facts["endpoints"]) == ("note", "several", 2)
    assert check.value == pytest.approx(1)
    own = server(record, extra=0.05)
    assert found(plan, record, own, prefill, decode)["tokens"].status == "unsure"
    assert found(plan, record, server(record, extra=1.0, own=False))["tokens"].status == "unsure"


def test_a_total_is_as_sure_as_the_names_it_came_by(run: Run) -> None:
    """Whoever else answers: names from documentation decide nothing, and those held against a server decide."""
    plan, _, record = run()
    own = replace(server(record), engine="Other", tracks={}, histograms={})
    for own_seen in (True, False):
        for seen, status in ((True, "unsure"), (False, "note")):
            told = server(record, extra=0.05, way_ms=-3.0, own=False, seen=seen)
            checks = found(plan, record, replace(own, verified=own_seen), told)
            assert (checks["tokens"].status, checks["ttft"].status) == (status, status)


@pytest.mark.parametrize(
    ("used", "elsewhere", "status"), [(0, 1, "unsure"), (1, 0, "note"), (0, 0, "unsure")]
)
def test_a_counter_that_went_back_counts_where_the_total_is_from(
    run: Run, used: int, elsewhere: int, status: str
) -> None:
    """Another endpoint that began anew says nothing of the target's own."""
    plan, _, record = run()
    own = replace(server(record, extra=0.05), resets=used)
    other = replace(server(record, own=False), url="http://h2/metrics", resets=elsewhere)
    assert found(plan, record, own, other)["tokens"].status == status


def test_of_a_balancer_s_alternating_counters_come_no_totals(run: Run) -> None:
    """Its replicas, named, make the totals; without them there are none, and a note says why. Once is a server begun anew."""
    plan, _, record = run()
    own = replace(server(record, extra=40.0), resets=9)
    half = server(record, own=False)
    for name in ("prompt_tokens", "generation_tokens"):
        one = half.tracks[name]
        half.tracks[name] = Track(one.times, one.values / 2)
    replicas = replace(half, url="http://h1/metrics"), replace(half, url="http://h2/metrics")
    assert (found(plan, record, own, *replicas)["tokens"].status, track([own], "generation_tokens")) == (
        "pass",
        None,
    )
    for others in ((), (replace(replicas[0], engine="Other"),), (replace(replicas[0], resets=9),)):
        checks = found(plan, record, own, *others)
        assert (checks["tokens"].status, checks["tokens"].facts) == (
            "note",
            {"side": "replicas", "resets": 9},
        )
        assert checks["ttft"].status == "na"
        seen = measure(plan, record, told=[own, *others]).server
        assert seen is not None
        assert (seen.prompt_tokens, seen.ttft_ms) == (None, None)
        assert seen.running is not None
    assert found(plan, record, replace(own, resets=1), *replicas)["tokens"].facts["side"] == "more"
