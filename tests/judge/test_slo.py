"""Service level objectives: decided by the whole interval, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.judge.slo import SloOutcome, slo_outcomes, wilson


def outcome(run: Any, expr: str, **changes: Any) -> SloOutcome:
    """The outcome of one objective on the good run with changes."""
    (found,) = slo_outcomes(*run(plan={"slos": [expr]}, **changes))
    assert found.expr == expr
    return found


def test_an_objective_is_met_missed_or_undecided_by_its_interval(run: Any) -> None:
    """Law: clear of the limit on either side decides; the limit inside the interval does not."""
    assert outcome(run, "ttft_p99<500ms").met is True
    assert outcome(run, "ttft_p99<20ms").met is False
    value = outcome(run, "ttft_p99<500ms").value
    assert value is not None
    close = outcome(run, f"ttft_p99<{value:.3f}ms")
    assert close.met is None
    assert close.ci is not None
    assert close.ci[0] < value < close.ci[1]


def test_too_few_samples_leave_a_percentile_undecided(run: Any) -> None:
    """Law: no interval, no decision, however far the value is from the limit."""
    found = outcome(run, "ttft_p99<5000ms", n=200)
    assert (found.met, found.ci) == (None, None)
    assert found.value is not None


@pytest.mark.parametrize(
    "expr", ["ttft_p75<500ms", "e2e_mean<500ms", "itl_p99<50ms", "tpot_p50<=40ms", "e2e_p95<500ms"]
)
def test_every_statistic_with_an_interval_can_be_decided(run: Any, expr: str) -> None:
    """Law: percentiles and means of requests and of pooled gaps carry intervals."""
    found = outcome(run, expr)
    assert found.met is True
    assert found.ci is not None


def test_facts_about_the_run_need_no_interval(run: Any) -> None:
    """Law: a maximum and a throughput are what they were."""
    for expr in ("ttft_max<5000ms", "output_tok_s>10", "request_s>=20"):
        found = outcome(run, expr)
        assert (found.met, found.ci) == (True, None)
    assert outcome(run, "output_tok_s>100000").met is False


def test_a_success_rate_is_decided_by_wilsons_interval(run: Any) -> None:
    """Law: 1,200 successes of 1,200 show more than 99 %, but not more than 99.9 %."""
    assert outcome(run, "success_rate>0.99").met is True
    assert outcome(run, "success_rate>0.999").met is None
    failing = {"outcome": lambda v: [*v[:100], *["timeout"] * 600, *v[700:]]}
    assert outcome(run, "success_rate>0.99", **failing).met is False


def test_wilsons_interval_is_the_textbooks() -> None:
    """Law: 8 of 10 gives [0.490, 0.943]; nothing tried gives nothing."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) is None


def test_an_undefined_metric_leaves_its_objective_undecided(run: Any) -> None:
    """Law: no TTFT without a stream: no value, no verdict."""
    (found,) = slo_outcomes(*run(plan={"slos": ["ttft_p99<1s"], "target": {"stream": False}}))
    assert (found.value, found.met, found.ci) == (None, None, None)
