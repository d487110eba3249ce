"""Whether the server and its queue were the same from the beginning of a run to its end.

Otherwise percentiles describe a mixture of states and depend on the length of the run: INCONCLUSIVE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.backlog import Backlog
from inferometer.measure.drift import Change, Drift, Source
from inferometer.measure.filling import Filling
from inferometer.measure.record import Record
from inferometer.measure.steady import Steady
from inferometer.metrics.statistics import Stats
from inferometer.plan.schema import Load

CHANCE = 0.0005
"""Up to three series have two tests each, so that at most 3 in 1,000 runs of a steady server raise an alarm by chance; up to 5
in 1,000 are accepted, because the load explains a latency only approximately, and the long-run variance is an estimate."""

DRIFT_LIMIT = math.sqrt(math.log(2 / CHANCE) / 2)
"""Pettitt's statistic that a steady server exceeds with probability CHANCE: 2 exp(-2 z^2) (measure/drift.py)."""

SWING_LIMIT = 3.29
"""Standard deviations that a normal variable exceeds with probability CHANCE: the limit of von Neumann's ratio."""

ARRIVALS_LIMIT = 1.36
"""Pettitt's statistic that independent gaps between arrivals exceed with probability 5 %."""

LOAD_ERROR: dict[Source, float] = {"first_token": 1.0, "token_gap": 1.0, "request": 0.25}
"""By what part of the spread of the load's effect the limit of a series grows. TTFT and gaps have a load at one instant, and a
crude model of it; end-to-end time has what the engine did for the request and beside it, and follows from that more closely."""

DRIFT_SHARE = 0.05
"""A lesser change bends a mean by less than a fortieth, which is less than the intervals of most runs are wide."""

BUSY = 0.85
"""A queue at 85 % of capacity is 7 % longer for each per cent of load (1 / (1 - BUSY)). The busier the server, the longer the
run until the queue has reached its mean; above this, percentiles of an ordinary run depend on its length."""

QUEUE_CHANCE = 0.001
"""How rarely a queue at BUSY may be as long as the limit of `stationary`."""

IN_SERVICE = 3.1
"""Standard deviations that a normal variable exceeds with probability QUEUE_CHANCE."""

GROWTH_SHARE, GROWTH_REQUESTS = 0.1, 2.0
"""A queue that grows: by more than a tenth and by two requests."""

LEVELLED_SHARE = 0.25
"""Steady growth adds half of its rise after the middle of the load; the ramp at a run's start adds next to nothing. Where a
server first fills its batch the share may be lower, so that half of the limit counts too."""


FILLING_SHARE = 0.05
"""The instrument promises no headline that is further off, and nothing else is known to be wrong with such a throughput."""


def drift(found: Drift | None, steady: Steady | None, *, trace: bool) -> Check:
    """Did the server's speed, given its load, change? Value: Pettitt's statistic of the series that decides.

    Where no series changed once, von Neumann's ratio of the one that came and went most (not in a trace, whose load does).
    A note where it did not and output tokens per second still differ between thirds of the run (`steady.stable`), and where the
    load of a trace changed too: its effect is not known well enough over a wide range.
    """
    if found is None:
        return Check("drift", "na", None, DRIFT_LIMIT)
    if not found.conclusive and not any(map(drifted, found.changes)):
        return Check("drift", "unsure", None, DRIFT_LIMIT, facts={"of": "short"})
    if not trace and not any(map(drifted, found.changes)) and any(map(swung, found.changes)):
        return _swings(max(filter(swung, found.changes), key=lambda one: one.swing / swing_limit(one)))
    worst = max(found.changes, key=lambda one: (drifted(one), one.statistic / drift_limit(one)))
    facts: Facts = {"series": worst.source, "change_share": worst.share, "at_s": worst.at_s}
    status: CheckStatus = "pass"
    if drifted(worst):
        by_plan = trace and found.arrivals > ARRIVALS_LIMIT
        status = "note" if by_plan else "unsure"
        facts |= {"of": "trace"} if by_plan else {}
    elif steady is not None and steady.stable is False:
        status = "note"
        facts |= {"of": "output", "output_tok_s": list(steady.output_thirds_tok_s)}
    return Check("drift", status, worst.statistic, drift_limit(worst), facts=facts)


def _swings(change: Change) -> Check:
    facts: Facts = {"of": "swings", "series": change.source, "swing_share": change.swing_share}
    return Check("drift", "unsure", change.swing, swing_limit(change), facts=facts)


def drift_limit(change: Change) -> float:
    """The limit of a series' statistic: DRIFT_LIMIT, and more by two factors.

    The long-run variance is an estimate, and requests in flight together share what happens to them, so it is known about as
    well as from one value a generation: Student's quantile takes the place of the normal one, at CHANCE on both sides. The
    effect of the load is estimated with a simple model of a server. Its error varies as slowly as the load does, and so looks
    like a change of the server; it is taken to be proportional to what the load explains (LOAD_ERROR).
    """
    from scipy import special  # here, since it takes longer to import than all the rest

    level = 1 - CHANCE / 2
    estimated = special.stdtrit(max(change.generations, 1.0), level) / special.ndtri(level)
    return float(DRIFT_LIMIT * estimated * (1 + LOAD_ERROR[change.source] * change.load_spread))


def drifted(change: Change) -> bool:
    """Whether a change is beyond chance and large enough to matter."""
    return change.statistic > drift_limit(change) and abs(change.share) > DRIFT_SHARE


def swing_limit(change: Change) -> float:
    """SWING_LIMIT, and more by what the load's effect varied; see drift_limit."""
    return SWING_LIMIT * (1 + LOAD_ERROR[change.source] * change.load_spread)


def swung(change: Change) -> bool:
    """Whether latency came and went beyond chance, and enough to matter."""
    return change.swing > swing_limit(change) and change.swing_share > DRIFT_SHARE


def filled(found: Filling | None) -> Check:
    """Was the server as full as the load makes it? Value: the share of a throughput that the beginning of an open loop kept out
    of it (measure/filling.py)."""
    if found is None:
        return Check("filling", "na", None, FILLING_SHARE)
    if found.missing <= FILLING_SHARE:
        return Check("filling", "pass", found.missing, FILLING_SHARE)
    return Check("filling", "unsure", found.missing, FILLING_SHARE, facts={"series": found.rate})


def stationary(
    load: Load, backlogs: Sequence[Backlog], arrivals: float, work: float, *, trace: bool = False
) -> Check:
    """Did the queue grow or shrink through an open-loop run? Value: mean requests that wait in the last tenth of the load less
    the first. A trace's load rises and falls by itself, so its queue is not judged.

    The limit is what chance allows a server that is at most BUSY. By Kingman's approximation for heavy traffic, a queue exceeds
    q with probability exp(-2 (1 - BUSY) q / (arrivals + work)), the squared coefficients of variation of the gaps between
    arrivals and of the work per request. Chance does not explain a larger rise or fall, however long the run: a queue that was
    there at the beginning and not at the end is that of a server that was not yet ready.
    """
    if trace:
        return Check("stationary", "na", None, None, facts={"of": "trace"})
    if load.model != "open" or not backlogs:
        return Check("stationary", "na", None, None)
    queue = queue_limit(arrivals, work)
    limits = [queue + (served(one, arrivals) if one.source == "in_flight" else 0.0) for one in backlogs]
    pairs = zip(backlogs, limits, strict=True)
    backlog, limit = max(pairs, key=lambda pair: (grew(*pair) or shrank(*pair), abs(pair[0].rise)))
    facts: Facts = {"source": backlog.source, "waiting": [backlog.first, backlog.middle, backlog.last]}
    if shrank(backlog, limit):
        return Check("stationary", "unsure", -backlog.rise, limit, "", facts | {"of": "fall"})
    status: CheckStatus = "unsure" if grew(backlog, limit) else "pass"
    return Check("stationary", status, backlog.rise, limit, "", facts)


def queue_limit(arrivals: float, work: float) -> float:
    """q of `stationary` by the squared coefficients of variation of gaps and work."""
    return (arrivals + work) * -math.log(QUEUE_CHANCE) / (2 * (1 - BUSY))


def served(backlog: Backlog, arrivals: float) -> float:
    """By how much requests in flight may differ between two instants of a server that is at most BUSY and has no queue.

    With m in flight on average, their number has the variance m (1 + arrivals) / 2 where each is served by itself. Where they
    share iterations that take a + b m, each delays the others, and to first order the variance is (a + b m) / a times as large:
    deviations die out as the slope of the throughput m / (a + b m) has it. The load b m / (a + b m) is at most BUSY.
    """
    return IN_SERVICE * math.sqrt(2 * backlog.middle * (1 + arrivals) / 2 / (1 - BUSY))


def gap_variation(load: Load, record: Record) -> float:
    """The squared coefficient of variation of an open loop's gaps; 0.0 where it has no rate.

    Conversations of k turns bring requests k at a time: n / E[k] arrivals of variance E[k^2].
    """
    if load.model != "open" or load.rate is None:
        return 0.0
    variation = {"constant": 0.0, "poisson": 1.0, "gamma": 1.0 / (load.burstiness or 1.0)}[load.arrival]
    turns = record.turns[record.measured & (record.turn == 0)].astype(np.float64)
    return variation * float((turns**2).mean() / turns.mean()) if len(turns) and turns.any() else variation


def work_variation(lengths: Sequence[Stats | None]) -> float:
    """The squared coefficient of variation of the work per request: the largest of those of its lengths, and at least 1.

    1 is that of exponential work: a server's work varies with more than lengths.
    """
    known = [one for one in lengths if one is not None and one.std is not None and one.mean > 0]
    return max([1.0, *((one.std / one.mean) ** 2 for one in known if one.std is not None)])


def grew(backlog: Backlog, limit: float) -> bool:
    """Whether a backlog rose by more than the limit, and not only at the beginning."""
    rise, later = backlog.rise, backlog.last - backlog.middle
    least = max(limit, GROWTH_REQUESTS, GROWTH_SHARE * backlog.first)
    return rise > least and later > min(LEVELLED_SHARE * rise, limit / 2)


def shrank(backlog: Backlog, limit: float) -> bool:
    """Whether a backlog fell by more than the limit, at whatever time: no run begins with a queue of its own."""
    return -backlog.rise > max(limit, GROWTH_REQUESTS, GROWTH_SHARE * backlog.last)
