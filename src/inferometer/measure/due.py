"""How many requests were due to end up to an instant, had none waited longer than those of the run's beginning did.

    E(t) = sum over the arrivals a of N(t - s_a),    s_a: when it began,    N(u): requests of an arrival that end within u

An arrival is a request, or a conversation or session that brings several, one after another. Where requests arrive by
themselves N is the distribution of their lengths d_j, those of the successful ones, without the wait for a slot: the length
less what its TTFT (not streamed: the length itself) is above the median one of the requests sent in the first third.

A later request of a session is not sent before the answer that it waits for, so a server that falls behind is sent less, and
ends all the same nearly as many as are sent: of sessions of 20 steps at 200 % of what it can do, 0.92. So there all requests
count from the session's beginning. That of request j without waits is

    u_j = t_end_j - s - W_j,    W_j = (its own wait) + W of the request that it followed

which is the one of its session that ended last before it was due. A session that finished or broke off brings nothing more. Of
one that was cut it is known up to c, its latest u and what passed from then to the load's end. N is the mean cumulative
function of recurrent events under such censoring (Nelson, 1988): it rises at each u_j by 1 / #{c >= u_j}. What the sessions
that were begun are to bring beyond what N saw is due as late as anything was seen to be: a server that brings none of them to
their end is behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.stats import quantiles

LENGTHS = 400
"""Quantiles that stand for more lengths than that."""


@dataclass(frozen=True, slots=True)
class Due:
    """E(t). `starts`: of the arrivals, in order, ns; N rises at each of `ages` (ns, in order) by its share of `weights`;
    `typical`: how long an arrival takes, ns, the median one of requests."""

    starts: Ints
    ages: Ints
    weights: Floats
    typical: float

    @property
    def each(self) -> float:
        """Requests that an arrival brings."""
        return float(self.weights.sum())

    def until(self, at: Ints) -> Floats:
        """E(t) at each instant."""
        before = np.searchsorted(self.starts, at[:, None] - self.ages[None, :], side="left")
        found: Floats = before @ self.weights
        return found


def due_of_requests(sends: Ints, lengths: Ints) -> Due:
    """Of requests that arrive by themselves; `lengths` without waits, ns. Of many, LENGTHS quantiles stand for all."""
    if not len(lengths):
        return Due(sends, lengths, np.zeros(0), 0.0)
    typical = float(np.median(lengths))
    if len(lengths) > LENGTHS:
        shares = (np.arange(LENGTHS) + 0.5) / LENGTHS
        lengths = np.rint(quantiles(np.sort(lengths), shares)).astype(np.int64)
    return Due(sends, np.sort(lengths), np.full(len(lengths), 1 / len(lengths)), typical)


def due_of_sessions(record: Record, rows: Ints, wait_ns: Ints, load_end: int) -> Due:
    """Of conversations and sessions. `rows`: their requests that were sent; `wait_ns`: of each, what it waited beyond the
    usual; `load_end`: from when on none is sent any more."""
    key = record.session.values[rows].astype(np.int64) << 32 | record.cycle[rows]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    starts = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(starts, which, record.t_submit.values[rows])
    ended = ~record.outcome.are(Outcome.CANCELLED)[rows]
    ends = record.t_end[rows]
    ages = np.maximum(ends - starts[which] - _along(which, record.t_intended[rows], ends, wait_ns), 0)
    known = _seen_until(record, rows, which, ages, ended, load_end)
    planned = record.turns[rows][first].astype(np.float64)
    broken = np.zeros(len(first), np.bool_)
    broken[which[ended & ~record.ok[rows]]] = True
    sent = np.bincount(which, minlength=len(first))
    each = float(np.where(broken, sent, planned).mean())
    seen = np.sort(ages[ended])
    weights = 1 / (len(known) - np.searchsorted(np.sort(known), seen, side="left"))
    if not len(seen):
        return Due(np.sort(starts), seen, weights, 0.0)
    weights[-1] += max(each - float(weights.sum()), 0.0)
    typical = float(seen[np.searchsorted(np.cumsum(weights), 0.9 * weights.sum())])
    return Due(np.sort(starts), *_fewer(seen, weights), typical)


def _seen_until(record: Record, rows: Ints, which: Ints, ages: Ints, ended: Mask, load_end: int) -> Ints:
    """c of each session."""
    count = int(which.max()) + 1
    latest, last_end = np.zeros(count, np.int64), np.full(count, load_end)
    np.maximum.at(latest, which[ended], ages[ended])
    over = np.zeros(count, np.int64)
    np.maximum.at(over, which[ended], record.t_end[rows][ended])
    last_end = np.where(over > 0, over, load_end)
    waited = np.maximum(load_end - last_end, 0)
    waited[which[~ended]] = 0  # in flight, for how long without a wait is not known
    whole = np.bincount(which, minlength=count) == record.turns[rows][np.unique(which, return_index=True)[1]]
    whole[which[~ended]] = False
    whole[which[ended & ~record.ok[rows]]] = True
    known: Ints = np.where(whole, np.iinfo(np.int64).max, latest + waited)
    return known


def _along(which: Ints, due: Ints, ends: Ints, wait: Ints) -> Ints:
    """W of each request: its own wait, and those of the requests that it followed."""
    count = len(which)
    # All ends and all instants at which requests were due, a session behind the other; of equal instants the end comes first.
    session = np.concatenate((which, which))
    instant = np.concatenate((ends, due))
    follows = np.repeat([0, 1], count)
    order = np.lexsort((follows, instant, session))
    place = np.where(order < count, np.arange(2 * count), -1)
    last = np.maximum.accumulate(place)
    before = np.full(count, -1)
    asks = np.flatnonzero(order >= count)
    found = order[np.maximum(last[asks], 0)]
    mine = order[asks] - count
    valid = (last[asks] >= 0) & (which[np.minimum(found, count - 1)] == which[mine])
    before[mine[valid]] = found[valid]
    total, before = wait.copy(), before
    while (on := before >= 0).any():  # the way back halves with each round
        total = total + np.where(on, total[before], 0)
        before = np.where(on, before[before], -1)
    return total


def _fewer(ages: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """At most LENGTHS of many ages, each with the weight of its neighbours."""
    if len(ages) <= LENGTHS:
        return ages, weights
    upto = np.cumsum(weights)
    shares = (np.arange(LENGTHS) + 0.5) / LENGTHS * upto[-1]
    places = np.minimum(np.searchsorted(upto, shares), len(ages) - 1)
    return ages[places], np.full(LENGTHS, upto[-1] / LENGTHS)
