"""Goodput: requests per second that meet every latency objective, each request held to the limits by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.measure.measurement import measure
from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.measure.throughput import loosest, meets_objectives
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo


def request(start: float, events: list[float], **more: Any) -> dict[str, Any]:
    """A request submitted at `start` ms, with text events of one token so many ms after."""
    texts = [(start + after, EventClass.CONTENT) for after in events]
    return {"t_intended": start, "t_submit": start, "events": texts, "usage_output": len(texts)} | more


def good(record: Record, *objectives: str, streamed: bool = True) -> list[bool] | None:
    samples = Samples(record, streamed=streamed, objectives=[Slo.parse(text) for text in objectives])
    mask = meets_objectives(samples)
    return None if mask is None else mask.tolist()


@pytest.fixture
def record(build: Callable[..., Record]) -> Record:
    """TTFT 10, 20, 30 and 40 ms with gaps of 5, of 5 and 15, none, and of 10; a failed request beside them."""
    return build(
        request(0, [10, 15], index=0),
        request(100, [20, 25, 40], index=1),
        request(200, [30], index=2),
        request(300, [40, 50], index=3),
        request(400, [10, 15], index=4, outcome="timeout"),
    )


@pytest.mark.parametrize(
    ("objectives", "expected"),
    [
        (("ttft_p99<25ms",), [True, True, False, False]),
        (("ttft_p99<=20ms",), [True, True, False, False]),
        (("ttft_p99<20ms",), [True, False, False, False]),
        (("e2e_mean<35ms",), [True, False, True, False]),
        (("itl_max<12ms",), [True, False, True, True]),
        (("itl_p50<12ms",), [True, True, True, True]),
        (("itl_mean<=10ms",), [True, True, True, True]),
        (("itl_mean<8ms",), [True, False, True, False]),
        (("second_token_p90<6ms",), [True, True, True, False]),
        (("ttft_p99<35ms", "itl_max<12ms"), [True, False, True, False]),
        (("ttft_p50<15ms", "ttft_p99<25ms"), [True, True, False, False]),
    ],
)
def test_a_request_is_good_when_it_meets_every_limit_by_itself(
    record: Record, objectives: tuple[str, ...], expected: list[bool]
) -> None:
    """Worked out by hand. A single event has no pace to be too slow; of two limits on a metric the loosest holds."""
    assert good(record, *objectives) == expected


@pytest.mark.parametrize("objective", ["success_rate>99%", "output_tok_s>10", "request_s>1"])
def test_an_objective_of_the_whole_run_makes_no_request_good(record: Record, objective: str) -> None:
    """Without an objective that one request can meet there is no goodput."""
    assert good(record, objective) is None
    assert good(record) is None


def test_what_was_not_streamed_cannot_be_held_to_a_first_token(record: Record) -> None:
    """No goodput then, rather than one of zero; latency can still be held to."""
    assert good(record, "ttft_p99<25ms", streamed=False) is None
    assert good(record, "e2e_p99<1s", streamed=False) == [True] * 4


@pytest.mark.parametrize("metric", ["ttft", "ttfo", "e2e"])
def test_an_objective_that_no_request_meets_makes_none_good(
    build: Callable[..., Record], metric: str
) -> None:
    """Law: in a streamed run, a request without the text that a metric waits for does not meet it, be it one or all of them."""
    rows = [request(at, []) | {"events": [(at + 10, EventClass.REASONING)], "index": at} for at in range(3)]
    expected = [metric != "ttfo"] * 3
    assert good(build(*rows), f"{metric}_p99<1s") == expected
    assert good(build(*rows), "ttft_p99<1s", f"{metric}_p99<1s") == expected


@pytest.mark.parametrize("objective", ["tpot_p99<1ms", "itl_p99<1ms", "itl_mean<1ms", "second_token_p99<1ms"])
def test_answers_of_one_token_meet_every_objective_of_pace(
    build: Callable[..., Record], objective: str
) -> None:
    """Law: they have no pace that could be too slow, also where no answer of the run has more."""
    rows = [request(100 * n, [10], index=n) for n in range(3)]
    assert good(build(*rows), objective) == [True] * 3
    assert good(build(*rows), objective, streamed=False) is None


def test_the_loosest_limit_of_each_metric_is_kept() -> None:
    """In any order."""
    slos = [Slo.parse(text) for text in ("ttft_p99<500ms", "ttft_p50<100ms", "tpot_p50<40ms", "request_s>1")]
    expected = {("ttft", 500.0), ("tpot", 40.0)}
    assert {(one.metric, one.limit) for one in loosest(slos)} == expected
    assert {(one.metric, one.limit) for one in loosest(slos[::-1])} == expected


def test_goodput_is_the_request_rate_of_the_good_ones(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Law: every other request is slow, so goodput is half the request rate, and its interval holds it."""
    rng = np.random.default_rng(7)
    starts = np.cumsum(rng.exponential(10, 2_000))
    rows = [request(at, [5 if n % 2 else 50], index=n) for n, at in enumerate(starts.tolist())]
    plan = plan_of(load={"model": "open", "rate": 100, "requests": 2_000}, slos=("ttft_p99<20ms",))
    throughput = measure(plan, build(*rows)).throughput
    rate, share = throughput.steady.goodput_request_s, throughput.steady.request_s
    assert rate is not None
    assert share is not None
    assert rate == pytest.approx(share / 2, rel=0.01)
    interval = throughput.ci95.goodput_request_s
    assert interval is not None
    assert interval[0] < rate < interval[1]
    assert throughput.whole_run.goodput_request_s == pytest.approx(50, rel=0.1)


def test_without_objectives_no_rate_is_claimed(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """None, not zero."""
    rows = [request(10.0 * n, [5], index=n) for n in range(50)]
    plan = plan_of(load={"model": "open", "rate": 100, "requests": 50})
    assert measure(plan, build(*rows)).throughput.whole_run.goodput_request_s is None
