"""The checks of how text arrives: does the server stream, and is a gap between events a gap between tokens?

What makes an answer held back or lumped stands in measure/delivery.py. The share of answers held back decides what a headline
is worth:

| share            | TTFT and TPOT                                                                 | `streamed` |
| ---------------- | ----------------------------------------------------------------------------- | ---------- |
| up to HELD_SHARE | no percentile printed is moved, unless P99 of TTFT is longer by BENT_SHARE     | pass       |
|                  | with them than without them                                                   | (unsure)   |
| up to half       | medians are the server's; of P99 it cannot be told whose waiting it is         | unsure     |
| more than half   | TTFT is the time of a later token, TPOT that of the last few                   | fail       |

Where too few answers were read promptly, those read late count too: with a kernel's stamps, reading late puts events
together and parts none, so that an answer that does not look held back is not. The share can only be smaller than it looks, so
this settles `pass` alone.

TTFT is what a user of this path sees in each case; who held the text back, the engine or something in front of it, cannot be
seen from here. A share is taken to be above a limit if its 95 % interval is, so that a few answers decide nothing.

Text that was held and then sent on at a pace of its own does not arrive together. It shows where TTFT grows with the length of
the answer that follows (measure/length_wait.py). That is evidence of a whole set of answers and of none of them, and a server
that admits requests by the length they ask for may look like it: unsure, whatever the share.

An output filter holds answers back until it has checked them: that is what it is for, and what draft 5.10 measures. Where the
plan discloses one (draft 4.8.1), answers that arrive together are noted with it: TTFT is the time to the first text that it
lets through. Where most are, TPOT is not the pace of the model: unsure.
"""

from __future__ import annotations

import math
from dataclasses import replace

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.delivery import BENT_SHARE, DIRECT_SHARE, HELD_SHARE, LUMPED_SHARE
from inferometer.measure.measurement import Measurement
from inferometer.measure.stats import wilson
from inferometer.plan.schema import Plan

AT_ONCE_SHARE = 0.5
"""A proxy that buffers holds back every answer; a quick server may write some short ones in one go."""


def streamed(plan: Plan, measurement: Measurement) -> Check:
    """Share of the answers of several tokens, read promptly, that were held back, but for those that we may have merged."""
    found = _streamed(plan, measurement)
    if (
        not plan.sut.guardrails.output_filter
        or found.value is None
        or found.facts.get("of", "p99") not in ("p99", "few")
    ):
        return found
    facts = found.facts | {"of": "filter"}
    if found.status == "fail":  # explained, and still: between lumps, TPOT is not the pace
        return replace(found, status="unsure", facts=facts)
    return replace(found, status="note", facts=facts) if found.status == "unsure" else found


def _streamed(plan: Plan, measurement: Measurement) -> Check:
    """The same, whatever filters are disclosed."""
    seen = measurement.tokens.delivery
    facts: Facts = {
        "held": seen.held,
        "at_once": seen.at_once,
        "judged": seen.prompt,
        "several": seen.several,
    }
    if not plan.target.stream or not seen.several:
        return Check("streamed", "na", None, HELD_SHARE, facts=facts)
    theirs, judged = max(0, seen.held - math.ceil(seen.merged)), seen.prompt
    interval = wilson(theirs, judged)
    few = interval is None or interval[1] > AT_ONCE_SHARE
    if few and measurement.instrument.timestamp_source in ("kernel", "modelled"):
        worst, total = seen.held + seen.late_held, seen.several
        if (every := wilson(worst, total)) is not None and every[0] <= HELD_SHARE:
            theirs, judged, interval = worst, total, every
            facts |= {"judged": total, "held": worst}
    if interval is None:
        return Check("streamed", "unsure", None, HELD_SHARE, facts=facts)
    share, (low, high) = theirs / judged, interval
    if low > AT_ONCE_SHARE:
        return Check("streamed", "fail", share, AT_ONCE_SHARE, facts=facts)
    if high > AT_ONCE_SHARE:
        return Check("streamed", "unsure", share, AT_ONCE_SHARE, facts=facts | {"of": "few"})
    if low > HELD_SHARE:
        return Check("streamed", "unsure", share, HELD_SHARE, facts=facts)
    if theirs and seen.moved > BENT_SHARE:
        return Check("streamed", "unsure", seen.moved, BENT_SHARE, facts=facts | {"of": "p99"})
    if (waits := measurement.tokens.length_wait) is not None:
        facts |= {"of": "length", "token_ms": waits.token_ms, "pace_ms": waits.pace_ms, "z": waits.statistic}
        return Check("streamed", "unsure", waits.share, HELD_SHARE, facts=facts)
    return Check("streamed", "pass", share, HELD_SHARE, facts=facts)


def tokens_per_event(plan: Plan, measurement: Measurement) -> Check:
    """Share of events holding one token (draft B.2.1), or of those that arrive alone; or of lumped answers. At or beyond its
    limit gaps are times between chunks: a note."""
    tokens = measurement.tokens
    seen, share = tokens.delivery, tokens.single_token_share
    facts: Facts = {
        "method": tokens.itl_method,
        "events": tokens.events,
        "tokens": tokens.tokens,
        "tokens_per_event": tokens.tokens_per_event,
        "itl_zero_share": tokens.itl_zero_share,
    }
    if tokens.chunk_tokens is not None:
        facts |= {
            f"chunk_{name}": getattr(tokens.chunk_tokens, name) for name in ("mean", "p50", "p99", "max")
        }
    if not plan.target.stream or measurement.requests.completed == 0:
        return Check("tokens_per_event", "na", None, DIRECT_SHARE, facts=facts)
    if share is not None and share > DIRECT_SHARE and tokens.itl_method == "chunk":
        if seen.alone_share is not None and seen.alone_share <= DIRECT_SHARE:
            facts |= {"of": "alone"}
            return Check("tokens_per_event", "note", seen.alone_share, DIRECT_SHARE, facts=facts)
        facts |= {"of": "lumped"}
        return Check("tokens_per_event", "note", seen.lumped_share, LUMPED_SHARE, facts=facts)
    if share is None and tokens.system is not None:
        return Check("tokens_per_event", "note", None, DIRECT_SHARE, facts=facts | {"of": "inside"})
    status: CheckStatus = "unsure" if share is None else "pass" if share > DIRECT_SHARE else "note"
    return Check("tokens_per_event", status, share, DIRECT_SHARE, facts=facts)
