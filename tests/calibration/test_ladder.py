"""The ladder's laws: it rises, repeats once, refines once, ends, and names what ended it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from inferometer.calibration import ladder
from inferometer.calibration.ladder import Tried, ended_by, faults, next_load, plan_of, plan_rung
from inferometer.documents.certificate import ErrorSpread
from inferometer.errors import PlanError
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Plan, Trace
from inferometer.plan.target import Target
from inferometer.plan.workload import workload_of

LOADS = [64.0, 128.0, 256.0, 512.0]
GOOD = ErrorSpread(100, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def climbed(holds: float, *, server: float = float("inf"), refine: bool = True) -> list[Tried]:
    """A client that is right up to `holds`, with a server that keeps up to `server`."""
    tried: list[Tried] = []
    while (load := next_load(LOADS, tried, refine=refine)) is not None:
        tried.append(Tried(load, load <= holds, load > server))
    return tried


@given(st.floats(1, 2000), st.floats(1, 2000), st.booleans())
def test_a_ladder_ends_and_its_best_rung_has_only_good_ones_below(
    holds: float, server: float, refine: bool
) -> None:
    """At most twice each load and once (twice when bad) half-way; what is certified was reached from below."""
    tried = climbed(holds, server=server, refine=refine)
    assert len(tried) <= len(LOADS) + 3
    best = max((one.load for one in tried if one.good), default=0.0)
    assert all(one.good for one in tried if one.load < best)
    assert best <= holds
    assert refine or all(one.load in LOADS for one in tried)


def test_a_rung_is_repeated_once_before_it_counts_and_the_half_way_is_tried() -> None:
    """And a repetition that is good goes on as if nothing had been."""
    assert [one.load for one in climbed(200)] == [64, 128, 256, 256, 181]
    assert [one.load for one in climbed(150)] == [64, 128, 256, 256, 181, 181]
    assert [one.load for one in climbed(10)] == [64, 64]
    noisy = [Tried(64, True, False), Tried(128, False, False), Tried(128, True, False)]
    assert next_load(LOADS, noisy) == 256


def test_what_ended_it_is_named() -> None:
    """The instrument's own limit is only reached where a server that kept up was measured wrong."""
    assert ended_by(climbed(200)) == "instrument"
    assert ended_by(climbed(10_000)) == "ladder"
    assert [one.load for one in climbed(10_000, server=128)] == [64, 128, 256]
    assert ended_by(climbed(10_000, server=128)) == "server"
    assert ended_by(climbed(128, server=128)) == "server"
    behind = [
        Tried(64, True, False),
        Tried(128, False, True),
        Tried(128, False, True),
        Tried(91, True, False),
    ]
    assert ended_by(behind) == "server"


@pytest.mark.parametrize(
    ("broken", "changed"),
    [
        ("ttft_mean", {"ttft": replace(GOOD, mean=-0.11)}),
        ("ttft_p99", {"ttft": replace(GOOD, p99=0.6)}),
        ("itl_p99", {"itl": replace(GOOD, p99=-0.6)}),
        ("e2e_p99", {"e2e": replace(GOOD, p99=1.1)}),
        ("missing", {"missing": 1e-9}),
        ("merged", {"merged": 0.011}),
        ("verdict", {"verdict": "INVALID"}),
        ("nothing_measured", {"e2e": None}),
        ("ttft_mean", {"ttft": replace(GOOD, mean=float("nan"))}),
    ],
)
def test_each_limit_is_broken_by_itself(broken: str, changed: dict[str, object]) -> None:
    """In either direction; and NaN is within no limit."""
    rung: dict[str, object] = {
        "ttft": GOOD, "itl": GOOD, "e2e": GOOD, "missing": 0.0, "merged": 0.0, "verdict": "INCONCLUSIVE",
    }  # fmt: skip
    assert faults(**rung) == ()  # type: ignore[arg-type]  # a dict of all of them
    assert faults(**rung | {"itl": None}) == ()  # type: ignore[arg-type]  # likewise
    assert faults(**rung | changed) == (broken,)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("make", [ladder.stream_rung, ladder.request_rung, ladder.whole_rung])
def test_the_plan_of_a_rung_asks_for_its_load(quick: bool, make: Callable[..., ladder.Rung]) -> None:
    """Closed loop in streams, open in requests, ended by a count; every stream answers more than once."""
    rung = make(300.0, quick=quick)
    plan = plan_of(rung, Target(url="http://localhost:1", http="2"), Plan())
    assert (plan.target.stream, plan.target.http) == (rung.kind != "whole", "2")
    assert (plan.load.concurrency, plan.load.rate) == ((None, 300.0) if rung.open_loop else (300, None))
    assert (plan.load.requests, plan.load.duration_s) == (rung.requests, None)
    assert rung.requests >= 500 if rung.open_loop else rung.requests >= 600
    lengths = {"streams": ladder.TOKENS, "requests": 1, "whole": ladder.WHOLE_TOKENS}
    assert plan.workload.output_tokens == fixed(lengths[rung.kind])
    assert not plan.workload.repeatable_prompts


@pytest.mark.parametrize(
    ("load", "streams", "rate"),
    [
        ({"concurrency": 7, "duration_s": 3}, 7, None),
        ({"rate": 12.5, "arrival": "gamma", "burstiness": 0.5}, None, 12.5),
    ],
)
def test_the_rung_like_a_plan_has_its_load_and_lasts_a_moment(
    load: dict[str, object], streams: int | None, rate: float | None
) -> None:
    """Streams, rate, arrivals, workers, prompts and interface are the plan's; server, length and end are not."""
    base = Plan.model_validate(
        {
            "target": {"api": "completions", "url": "https://elsewhere", "stream": False},
            "load": load,
            "workload": {"output_tokens": 5000, "repeatable_prompts": True},
            "instrument": {"workers": 3},
            "slos": ["tpot_p50<40ms", "ttft_p99<1s"],
        }
    )
    rung = plan_rung(base, 150.0, ladder.interval_ms(base, 20.0))
    plan = plan_of(rung, Target(url="http://localhost:1", api="completions"), base)
    assert (plan.load.concurrency, plan.load.rate, plan.instrument.workers) == (streams, rate, 3)
    assert (plan.load.arrival, plan.load.burstiness) == (base.load.arrival, base.load.burstiness)
    assert (plan.target.url, plan.target.api) == ("http://localhost:1", "completions")
    assert not plan.target.stream
    assert plan.workload.input_tokens == base.workload.input_tokens
    assert plan.workload.output_tokens == fixed(ladder.PLAN_TOKENS)
    assert plan.load.requests == (14 if streams else 125)
    assert ladder.interval_ms(base, 20.0) == 40.0
    assert ladder.interval_ms(Plan(), 20.0) == 20.0


def test_a_trace_has_no_rung() -> None:
    """It has no one rate, and the user is told so."""
    with pytest.raises(PlanError, match="no one rate"):
        plan_rung(Plan(trace=Trace(file="t")), 150.0, 20.0)


def test_a_workload_without_one_length_is_refused() -> None:
    """A rung repeats the plan's mean answer; classes and prompts from a file have none."""
    one = {"name": "a", "input_tokens": 9, "output_tokens": 9}
    for workload in ({"classes": [one]}, {"prompts": "own.jsonl"}):
        with pytest.raises(PlanError, match="--like"):
            plan_rung(Plan(workload=workload_of(workload)), 150.0, 20.0)
