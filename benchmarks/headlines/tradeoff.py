"""Draft 5.3: knee, saturation point and optimum, against long runs of the same levels.

100 % is given to all searches, so that each tries the same levels. The draft's points are levels. The true knee is the first
level whose true P99 is above twice the least true one, the true optimum the level of the highest throughput among those that
truly meet the objectives. Where throughput levels off, as it does on these engines, there is no true fall: a saturation point
is then chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.headline import Headline, Truth, long_runs
from benchmarks.played import CAPACITY
from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.knee import KNEE
from inferometer.procedures.setup import open_loop, without_warm_up
from inferometer.procedures.summary_access import stat

OBJECTIVE_MS = 100.0
"""P99 of TTFT, of the optimum."""
BELOW = 95.0
"""Per cent: levels above have no P99 that a longer run would find again."""
TRUTH_REQUESTS, QUICK_REQUESTS = 10_000, 1_500


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default levels of 60 s, and 100 %."""
    wanted: dict[str, Any] = {"capacity_rate": CAPACITY[preset]}
    return {"tradeoff": wanted | ({"duration_s": 20.0} if quick else {})}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The rates of two levels; their errors are 0 where the P99s of levels on either side are clear of the limits."""
    requests = QUICK_REQUESTS if quick else TRUTH_REQUESTS
    p99s: dict[float, float] = {}
    for percent in Tests().tradeoff.percent:
        rate = float(f"{CAPACITY[preset] * percent / 100:.6g}")
        if percent > BELOW:
            continue

        def load(plan: Plan, rate: float = rate) -> Plan:
            return open_loop(without_warm_up(plan), rate, requests=requests)

        def p99(summary: Summary) -> Mapping[str, float | None]:
            return {"p99": stat(summary, "ttft", "p99")}

        p99s[rate] = long_runs(preset, load, p99, quick=True)["p99"].value
    least = min(p99s.values())
    beyond = [rate for rate, value in p99s.items() if value > KNEE * least]
    within = [rate for rate, value in p99s.items() if value <= OBJECTIVE_MS]
    found = {"knee": min(beyond)} if beyond else {}
    return {
        name: Truth(rate) for name, rate in (found | ({"optimum": max(within)} if within else {})).items()
    }


HEADLINE = Headline("tradeoff", parameters, truths, slos=(f"ttft_p99<{OBJECTIVE_MS:g}ms",))
