"""Is each headline right? The instrument's own error, bounded from the events that each headline rests on.

`receive_lag` judges all gaps of a run together; but the first tokens of a wave come at once, so that one gap in a hundred may
be most of what a P99 of TTFT is made of. Here each headline has a bound of its own (measure/error_bound.py) and a limit of its
own: LIMIT_SHARE of it or LIMIT_MS, whichever is larger.

| headline                                     | judged                                                                   |
| -------------------------------------------- | ------------------------------------------------------------------------ |
| TTFT, E2E, TPOT, ITL or time between chunks  | mean and percentiles                                                     |
| TTFT and E2E from the due instant            | the same in open loop; in closed loop `lateness` judges what a slot waits |
| output and request throughput                | the steady rate                                                          |
"""

from __future__ import annotations

from typing import NamedTuple

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.error_bound import STATISTICS_BOUND, Bound
from inferometer.measure.measurement import Measurement
from inferometer.plan.schema import Plan

LIMIT_MS = 0.2
"""Between what a certificate allows a mean first token and its P99 (calibration/ladder.py); a hop of a network takes it."""

LIMIT_SHARE = 0.01
"""A hundredth is less than runs of one system differ by."""

LATENCIES = ("ttft_ms", "e2e_ms", "tpot_ms", "itl_ms", "chunk_gap_ms")
FROM_DUE = ("ttft_from_intended_ms", "e2e_from_intended_ms")
RATES = ("output_tok_s", "request_s")


class _Headline(NamedTuple):
    """A figure, its bound and what is allowed, in its unit."""

    name: str
    statistic: str
    value: float
    bound: float
    limit: float

    @property
    def words(self) -> str:
        """Its name and statistic."""
        return f"{self.name} {self.statistic}".strip()

    @property
    def used(self) -> float:
        """The bound as a share of what is allowed."""
        return self.bound / self.limit


def error_bound(plan: Plan, measurement: Measurement) -> Check:
    """The headline whose bound uses most of what it is allowed: fails beyond. Value and limit are that headline's, in ms, or
    for a rate as shares of it. `na` without bounds or samples."""
    headlines = _headlines(plan, measurement)
    if not headlines:
        return Check("error_bound", "na", None, None, "ms")
    worst = max(headlines, key=lambda one: one.used)
    beyond = [one for one in headlines if one.used > 1.0]
    facts: Facts = {
        "headline": worst.words,
        "stated": worst.value,
        "beyond": [one.words for one in beyond],
    }
    status: CheckStatus = "fail" if beyond else "pass"
    if worst.name in RATES:
        share = worst.bound / worst.value
        return Check("error_bound", status, share, LIMIT_SHARE, "", facts | {"of": "rate"})
    return Check("error_bound", status, worst.bound, worst.limit, "ms", facts)


def _headlines(plan: Plan, measurement: Measurement) -> list[_Headline]:
    bounds, metrics = measurement.instrument.error_bounds, measurement.metrics
    if bounds is None:
        return []
    found: list[_Headline] = []
    names = LATENCIES + (FROM_DUE if plan.load.model == "open" else ())
    for name in names:
        bound: Bound | None = getattr(bounds, name)
        stats = getattr(metrics, name)
        if bound is None or stats is None:
            continue
        for statistic in STATISTICS_BOUND:
            value = getattr(stats, statistic)
            limit = max(LIMIT_MS, LIMIT_SHARE * value)
            found.append(_Headline(name, statistic, value, getattr(bound, statistic), limit))
    for name in RATES:
        rate, wrong = getattr(measurement.throughput.steady, name), getattr(bounds, name)
        if rate and wrong is not None:
            found.append(_Headline(name, "", rate, wrong, LIMIT_SHARE * rate))
    return found
