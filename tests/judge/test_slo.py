"""Service level objectives: decided by the whole interval, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferometer.judge.checks import error_rate
from inferometer.judge.slo import Observed, SloOutcome, decided, slo_outcomes
from inferometer.measure.load_states import INDEPENDENT, LoadStates
from inferometer.measure.stats import describe, describe_at, wilson
from inferometer.plan.slo import Slo


def outcome(run: Any, expr: str, **changes: Any) -> SloOutcome:
    """The outcome of one objective on the good run with changes."""
    (found,) = slo_outcomes(*run(plan={"slos": [expr]}, **changes))
    assert found.expr == expr
    return found


def test_an_objective_is_met_missed_or_undecided_by_its_interval(run: Any) -> None:
    """Law: clear of the limit on either side decides; the limit inside the interval does not."""
    assert outcome(run, "ttft_p99<500ms").met is True
    assert outcome(run, "ttft_p99<20ms").met is False
    value = outcome(run, "ttft_p90<500ms").value
    assert value is not None
    close = outcome(run, f"ttft_p90<{value:.2f}ms")
    assert close.met is None
    assert close.ci is not None
    assert close.ci[0] < value < close.ci[1]


@pytest.mark.parametrize("requests", [30, 100, 300, 1000])
def test_a_run_without_a_failure_never_misses_a_success_rate(requests: int, run: Any) -> None:
    """Law: it cannot show that all requests succeed, but nothing speaks against it."""
    found = outcome(run, "success_rate>=1", n=requests)
    assert (found.value, found.met) == (1.0, None)


def test_too_few_samples_leave_a_percentile_undecided(run: Any) -> None:
    """Law: no interval, no decision, however far the value is from the limit."""
    found = outcome(run, "ttft_p99<5000ms", n=200)
    assert (found.met, found.ci) == (None, None)
    assert found.value is not None


def test_a_percentile_without_an_interval_is_decided_by_the_share_beyond_its_limit(run: Any) -> None:
    """Law: where P99 has no interval, none of enough values beyond the limit shows that it is met, half of them that it is
    missed, and about as many as a P99 allows decides nothing."""
    far, near = (outcome(run, expr, n=490) for expr in ("ttft_p99<5000ms", "ttft_p99<1ms"))
    assert (far.met, far.ci, near.met) == (True, None, False)
    assert far.value is not None
    assert outcome(run, f"ttft_p99<{far.value:.3f}ms", n=490).met is None


def test_a_percentile_of_pooled_gaps_is_decided_by_the_share_too() -> None:
    """Law: where P99 of gaps has no interval, none beyond the limit shows that it is met, half that it is missed, and about as
    many as a P99 allows decides nothing."""
    random = np.random.default_rng(5)
    gaps, at_ns = random.gamma(4, 1, 8000), np.arange(8000, dtype=np.int64) * 1000
    stats = describe_at(gaps, at_ns)
    assert stats is not None
    unknown = replace(stats, ci95=replace(stats.ci95, p99=None))
    observed = Observed(unknown, gaps, at_ns, INDEPENDENT, 0.0, 9.0)
    outcomes = [decided(Slo.parse(f"itl_p99<{limit:.3f}ms"), observed) for limit in (50, 4, stats.p99)]
    assert outcomes == [(True, None), (False, None), (None, None)]


def test_a_wait_that_was_not_met_leaves_a_near_limit_undecided() -> None:
    """Law: with values just below the limit of a P99, states that were not met decide whether it can be called met;
    one that a wait of a request's whole life does not reach is met all the same."""
    values = np.random.default_rng(6).gamma(100, 0.1, 1000)
    stats = describe(values)
    assert stats is not None
    limit = Slo.parse(f"ttft_p99<{values.max() + 0.1:.3f}ms")
    calm, unsure = (
        Observed(stats, values, None, LoadStates(200.0, True, unseen), 5.0, 1.0) for unseen in (0.0, 0.02)
    )
    unknown = replace(stats, ci95=replace(stats.ci95, p99=None))
    assert decided(limit, replace(calm, stats=unknown)) == (True, None)
    assert decided(limit, replace(unsure, stats=unknown)) == (None, None)
    far = Slo.parse("ttft_p99<40ms")
    assert decided(far, replace(unsure, stats=unknown)) == (True, None)
    assert decided(far, replace(unsure, stats=unknown, life=35.0)) == (None, None)


@pytest.mark.parametrize(
    "expr",
    [
        "ttft_p75<500ms",
        "e2e_mean<500ms",
        "itl_p75<50ms",
        "itl_p99<50ms",
        "itl_p99_9<500ms",
        "tpot_p50<=40ms",
        "e2e_p95<500ms",
    ],
)
def test_every_statistic_with_an_interval_can_be_decided(run: Any, expr: str) -> None:
    """Law: percentiles and means of requests and of pooled gaps carry intervals."""
    found = outcome(run, expr)
    assert found.met is True
    assert found.ci is not None


def test_facts_about_the_run_need_no_interval(run: Any) -> None:
    """Law: a maximum is what it was."""
    found = outcome(run, "ttft_max<5000ms")
    assert (found.met, found.ci) == (True, None)


def test_a_throughput_is_decided_by_its_batch_means(run: Any) -> None:
    """Law: clear of the interval decides, the value itself as the limit does not, and a short run has no interval."""
    for metric, low, high in (("output_tok_s", 10, 100_000), ("request_s", 20, 1_000)):
        assert outcome(run, f"{metric}>{low}").met is True
        assert outcome(run, f"{metric}>{high}").met is False
        found = outcome(run, f"{metric}>{low}")
        assert found.ci is not None
        assert outcome(run, f"{metric}>={found.value:.3f}").met is None
    short = outcome(run, "request_s>20", n=30)
    assert short.value is not None
    assert (short.met, short.ci) == (None, None)


def test_a_success_rate_is_decided_by_wilsons_interval(run: Any) -> None:
    """Law: 1,200 successes of 1,200 show more than 99 %, but not more than 99.9 %."""
    assert outcome(run, "success_rate>0.99").met is True
    assert outcome(run, "success_rate>0.999").met is None
    failing = {"outcome": lambda v: [*v[:100], *["timeout"] * 600, *v[700:]]}
    assert outcome(run, "success_rate>0.99", **failing).met is False


def test_a_success_rate_and_the_error_rate_have_one_denominator(run: Any) -> None:
    """Law: what the drain limit cancelled failed in both; what a person cancelled ended in neither; they add up to 1."""
    cancelled = {"outcome": lambda v: [*v[:100], *["timeout"] * 60, *["cancelled"] * 240, *v[400:]]}
    for interrupted, good in ((False, 900 / 1200), (True, 900 / 960)):
        more = {"interrupted": interrupted}
        found = outcome(run, "success_rate>0.5", more=more, **cancelled)
        made = run(more=more, **cancelled)
        errors = error_rate(*made)
        assert found.value == pytest.approx(good)
        assert errors.value == pytest.approx(1 - good)


def test_wilsons_interval_is_the_textbooks() -> None:
    """Law: 8 of 10 gives [0.490, 0.943]; nothing tried gives nothing."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) is None


def test_an_undefined_metric_leaves_its_objective_undecided(run: Any) -> None:
    """Law: no TTFT without a stream: no value, no verdict."""
    (found,) = slo_outcomes(*run(plan={"slos": ["ttft_p99<1s"], "target": {"stream": False}}))
    assert (found.value, found.met, found.ci) == (None, None, None)
