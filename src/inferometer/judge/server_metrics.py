"""The server's own metrics against what the client saw. Where a server shows none, or a run scraped none, these do not apply.

Both sides are compared over everything that was sent between the scrapes that enclose it, warm-up included. An engine's names
that are from its documentation alone decide nothing: what would be unsure is a note then.
"""

from __future__ import annotations

import math

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.steadiness import GROWTH_REQUESTS, GROWTH_SHARE
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.measurement import Measurement
from inferometer.measure.server import Pair, Server, Whole
from inferometer.plan.schema import Plan

TOKENS_SHARE, TOKENS_FEW = 0.01, 10.0
"""Both count the same tokens, so that a quiet server agrees to the token. A hundredth, or ten, leaves room for a health check
and an engine that counts a moment late; more is load that the plan does not name."""

RANK: tuple[CheckStatus, ...] = ("pass", "note", "unsure")
"""Statuses, the gravest last."""

TTFT_BELOW_MS, TTFT_BELOW_SHARE = 1.0, 0.02
"""No token is seen before it is made, and the client's clock starts first: just before it hands the request over. An engine may
count a request as arrived before its body is whole."""

TTFT_ABOVE_MS, TTFT_ABOVE_SHARE = 5.0, 0.2
"""An HTTP front end, a tokenizer and a hop in a data centre take a few milliseconds. More than that, and more than a fifth of
TTFT, is time that no scheduler of the engine can answer for."""


def server_tokens(measurement: Measurement) -> Check:
    """The gap between the server's counters and the sum of the usage that the client was told, as a share of the latter.

    Of prompt and output tokens the one that says more, and of equals the one further off for its limit. More on the server:
    somebody else used it, or, where endpoints were added up, two of them counted the same. Fewer: these metrics are not all of
    the server, or it began anew.
    """
    server, totals = _server_totals(measurement)
    pairs = {"prompt": totals.prompt_tokens, "output": totals.generation_tokens} if totals is not None else {}
    facts: Facts = {}
    found = []
    for name, pair in pairs.items():
        if pair is not None:
            facts |= {f"{name}_server": pair.server, f"{name}_client": pair.low}
            limit = max(TOKENS_SHARE, TOKENS_FEW / max(pair.low, 1.0))
            found.append((*_deviation(pair, limit), _gap(pair), limit, pair.taken))
    if totals is not None and totals.went_back is not None:
        facts |= {"side": "replicas", "resets": totals.went_back}
        return Check("server_tokens", "note", None, TOKENS_SHARE, facts=facts)
    if server is None or not found:
        return Check("server_tokens", "na", None, TOKENS_SHARE, facts=facts)
    status, side, gap, limit, taken = max(found, key=lambda one: (RANK.index(one[0]), abs(one[2]) / one[3]))
    facts["resets"] = taken.resets or None
    if side is not None:
        facts["side"] = side
    if side == "several":
        facts["endpoints"] = taken.endpoints
    return Check("server_tokens", status, abs(gap), limit, facts=facts)


def _deviation(pair: Pair, limit: float) -> tuple[CheckStatus, str | None]:
    """What one total says, and in which way it is off."""
    gap, taken = _gap(pair), pair.taken
    if abs(gap) <= limit:
        return "pass", None
    if gap < 0:
        return "note", "fewer"
    if taken.endpoints > 1:
        return "note", "several"
    return ("unsure" if taken.seen and not taken.resets else "note"), "more"


def _gap(pair: Pair) -> float:
    """How far the server's total lies outside the client's, as a share of it; below 0: the server has fewer."""
    beyond = max(0.0, pair.server - pair.high) + min(0.0, pair.server - pair.low)
    return beyond / max(pair.low, 1.0)


def server_ttft(measurement: Measurement) -> Check:
    """The client's mean TTFT (to the first text of any kind) less the server's, over the first tokens of both, in ms.

    Where one side has more, the gap has bounds (measure/ttft_gap.py), and only what holds at both is said: a single request
    that one side has and the other has not, such as one given up after seconds, can move a mean by any amount.
    """
    metrics, totals = _server_totals(measurement)
    if metrics is None or totals is None or totals.server_ttft_ms is None or totals.client_ttft_ms is None:
        return Check("server_ttft", "na", None, None, "ms")
    client, server = totals.client_ttft_ms, totals.server_ttft_ms
    facts: Facts = {
        "client": client,
        "server": server,
        "client_n": totals.client_n,
        "server_n": totals.server_n,
    }
    below, limit = (
        -max(TTFT_BELOW_MS, TTFT_BELOW_SHARE * client),
        max(TTFT_ABOVE_MS, TTFT_ABOVE_SHARE * client),
    )
    low, high = totals.ttft_gap_ms or (-math.inf, math.inf)
    if totals.client_n != totals.server_n and math.isfinite(low) and math.isfinite(high):
        facts |= {"gap_low": low, "gap_high": high}
    if high < below:
        status: CheckStatus = "unsure" if totals.ttft_taken is not None and totals.ttft_taken.seen else "note"
        return Check("server_ttft", status, high, below, "ms", facts | {"side": "below"})
    if low > limit:
        return Check("server_ttft", "note", low, limit, "ms", facts | {"side": "above"})
    if low < below or high > limit:
        return Check("server_ttft", "note", None, None, "ms", facts | {"side": "others"})
    if totals.client_n != totals.server_n:
        facts["side"] = "bounded"
    return Check("server_ttft", "pass", high, limit, "ms", facts)


def server_queue(plan: Plan, measurement: Measurement) -> Check:
    """The server's queue depth, from its own gauge. Value: its mean in the last third of the load less that in the first.

    A note in open loop if it rose from third to third, by GROWTH_REQUESTS and GROWTH_SHARE of the last: draft 5.2.3.1's first
    sign of saturation, of which `stationary` is to decide.
    """
    server = measurement.server
    if server is None or server.queue is None:
        return Check("server_queue", "na", None, GROWTH_REQUESTS)
    facts: Facts = {
        "mean": server.queue.mean,
        "max": server.queue.max,
        "end": server.queue.end,
        "preemptions": server.preemptions or None,
        "kv_max_share": None if server.kv_usage is None else server.kv_usage.max,
    }
    if server.queue_thirds is None:
        return Check("server_queue", "na", None, GROWTH_REQUESTS, facts=facts)
    first, second, last = server.queue_thirds
    grew = first < second < last and last - first > max(GROWTH_REQUESTS, GROWTH_SHARE * last)
    status: CheckStatus = "note" if grew and plan.load.model == "open" and plan.trace is None else "pass"
    return Check("server_queue", status, last - first, GROWTH_REQUESTS, facts=facts)


def _server_totals(measurement: Measurement) -> tuple[Server | None, Whole | None]:
    server = measurement.server
    return server, None if server is None else server.whole
