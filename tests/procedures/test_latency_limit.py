"""The search under a limit of latency, on systems in closed form whose P99 varies by chance."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from procedures.modelled import System, carried, results, summary, value
from procedures.summaries import changed, steady

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import runs
from inferometer.report.campaign.notes import worded

MOST, TOKENS = 10.0, 50.0
LIMITED = (("limited_rate", 1.0), ("limited_output_tok_s", TOKENS), ("throughput_at_ttft_limit", TOKENS))


def noisy(edge: float, steep: float, noise: list[float]) -> System:
    """Does MOST requests a second; P99 of TTFT passes 500 ms at `edge` a second, times exp(noise) of each open loop in turn."""
    made = 0

    def answer(plan: Plan) -> Summary:
        nonlocal made
        slots, offered = plan.load.concurrency, plan.load.rate or 0.0
        done = MOST * min(1.0, slots / 8) if slots is not None else min(offered, MOST)
        p99 = 500.0 * math.exp(steep * (offered - edge) / MOST + noise[made % len(noise)])
        made += slots is None
        ratio = 1.0 if slots is not None else done / offered
        told = steady(TOKENS * done, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=False)
        return changed(summary(plan, request_s=done, ttft=(p99 / 4, p99), tokens=TOKENS), steady=told)

    return answer


@settings(max_examples=40, deadline=None)
@example(6.0, 0.5, [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, -0.5])  # a line that is nearly level
@given(st.floats(0.5, 9.5), st.floats(0.5, 8.0), st.lists(st.floats(-1.2, 1.2), min_size=3, max_size=9))
def test_no_interval_under_a_limit_goes_below_the_least_load_that_was_run(
    edge: float, steep: float, noise: list[float]
) -> None:
    """Law: an end that lies where no level was run is no end; such an answer has no interval, and says why."""
    setup = Setup(Plan.model_validate({"slos": ["ttft_p99<500ms"]}), Tests())
    done = carried("throughput", setup, noisy(edge, steep, noise))
    found = results("throughput", setup, done)
    least = min(one.step.at.rate or 0.0 for one in runs(done, "reference", "limit"))
    for name, by in LIMITED:
        one = value(found, name)
        if one.ci is not None:
            assert one.ci[0] >= by * least * (1 - 1e-9) > 0
            assert one.value >= by * least * (1 - 1e-9)
        elif one.value is not None and one.note.code.startswith("bound_by"):
            assert one.note.code == "bound_by_from_below"
            assert "without an interval" in worded(one.note)


@pytest.mark.parametrize(
    ("edge", "steep", "noise", "code"),
    [
        (1.5, 2.0, [0.3, 0.6, 0.5, -0.6], "bound_by_from_below"),
        (3.0, 2.0, [0.6, 0.9, 1.1, 0.0], "bound_below_levels"),
    ],
)
def test_an_answer_that_may_lie_below_every_level_says_so(
    edge: float, steep: float, noise: list[float], code: str
) -> None:
    """Law: levels that contradict each other near the least load leave the lower end open, or the answer itself."""
    setup = Setup(Plan.model_validate({"slos": ["ttft_p99<500ms"]}), Tests())
    found = results("throughput", setup, carried("throughput", setup, noisy(edge, steep, noise)))
    one = value(found, "limited_rate")
    assert (one.ci, one.note.code) == (None, code)
    assert (one.value is None) == (code == "bound_below_levels")
    assert "1 requests/s, the least load" in worded(one.note)
