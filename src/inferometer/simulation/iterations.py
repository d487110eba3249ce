"""The iterations of an engine, read back from the arrivals of the tokens.

All tokens of one iteration leave at almost one instant, and a request that is decoded gets one in each. So

- **where an iteration ends** is seen in the arrivals: those that follow each other within `within_ns` belong together. The
  width is the one under which the most tokens come exactly one iteration after the one before them in their stream
  (`regular`), of a grid of widths; where several do, the middle one. An iteration ended when its first token came.
- **what was decoded** in iteration k: the requests with their first token before k and their last in k or later, each with its
  prompt and the tokens it has got as context.
- **when it began**: when the one before ended; or, if nobody was being decoded then and nobody waited, when the first request
  came (`woken`).
- **which prompts were computed** cannot be seen, but for the iteration in which a prompt is finished, where its first token
  comes. Of the rest the scheduler's rules tell (server/engine/scheduler.py): all in that iteration, unless the token budget
  makes it begin earlier; then it took what was left of the budget in each iteration since it came. If nobody is decoded,
  iterations that finish no prompt cannot be seen, so that one interval holds several `steps`: as many as the budget makes.

- **what lies before the engine** shows where requests join others: one that was sent `a` and whose prompt was computed in
  iteration k needed less than begin(k) - a to get there, and if there was room for it in k - 1, more than begin(k - 1) - a
  (`joins`). Times are those at which tokens arrive, so the way back to the client is in this too.

Not every interval can be used: not where more than half of the streams contradict it (none or several tokens), not where more
was computed than the budget allows, and not the first behind an idle engine if the request came while it was still at work:
what passes between a server's door and its engine then hides in the iteration before, or does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

WIDTHS = 60
NARROWEST_NS = 1_000.0
MAJORITY = 0.5
"""Of the streams in an iteration: more must have exactly one token there."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Requests that got tokens, one entry each: when it was sent (ns), tokens of its prompt and how many of these were cached.

    Request i got its tokens at `token_ns[offsets[i]:offsets[i + 1]]`, at least one, in order. `measured`: not of the warm-up.
    """

    submit: Ints
    prompt: Ints
    cached: Ints
    measured: Mask
    offsets: Ints
    token_ns: Ints

    def __len__(self) -> int:
        return len(self.submit)


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides which prompts are computed together (settings.py); no record shows the budget."""

    token_budget: int
    chunked: bool
    max_batch: int


@dataclass(frozen=True, slots=True)
class Iterations:
    """One entry an iteration, in order. The first columns are those of server/engine/costs.py.

    steps     iterations the interval holds: 1, unless some could not be seen
    decodes   requests decoded;  context  tokens in their context
    begun     prompts begun;  tokens  prompt tokens computed;  pairs  of these with those before
    woken     whether the engine was idle and began when a request was sent
    ns        how long it took;  end_ns  when it ended
    running   requests in the batch;  queued  requests that have waited outside of it for more than an iteration
    over      whether more tokens were computed than the budget allows
    usable    whether it is understood and of the measured phase

    Of all: `within_ns`, `regular`, and a row a request in `joins` (R x 2, ns), see above.
    """

    steps: Ints
    decodes: Ints
    context: Ints
    begun: Ints
    tokens: Ints
    pairs: Ints
    woken: Mask
    ns: Ints
    end_ns: Ints
    running: Ints
    queued: Ints
    over: Mask
    usable: Mask
    within_ns: float
    regular: float
    joins: Ints

    def __len__(self) -> int:
        return len(self.ns)


def reconstruct(streams: Streams, limits: Limits) -> Iterations:
    """The iterations behind at least two tokens of one request. Raises ValueError where there are none."""
    within_ns, regular, at = _clusters(streams)
    owner = np.repeat(np.arange(len(streams)), np.diff(streams.offsets))
    ends = np.full(int(at.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(ends, at, streams.token_ns)
    first, last = at[streams.offsets[:-1]], at[streams.offsets[1:] - 1]
    decodes, context = _decoded(streams, at, first, last, len(ends))
    begins, woken, known = _begins(streams, first, ends, decodes)
    prompts = _prompts(streams, limits, first, begins, ends, decodes)
    finished = np.bincount(first, minlength=len(ends))
    sound = _sound(at, owner, decodes + finished)
    sound[1:] &= sound[:-1]  # its beginning is the end of the one before
    since = streams.submit[streams.measured].min() if streams.measured.any() else 0
    running = decodes + finished
    room = np.where(running < limits.max_batch, limits.token_budget - decodes - prompts[3], 0)
    over = (prompts[3] > limits.token_budget - decodes) & (decodes > 0) & limits.chunked
    return Iterations(
        steps=prompts[0],
        decodes=decodes,
        context=context,
        begun=prompts[1],
        tokens=prompts[3],
        pairs=prompts[2],
        woken=woken,
        ns=ends - begins,
        end_ns=ends,
        running=running,
        queued=_queued(streams, first, begins),
        over=over,
        usable=sound & known & ~over & (begins >= since) & (ends > begins),
        within_ns=within_ns,
        regular=regular,
        joins=_joins(streams, first, begins, sound & known & ~woken, room),
    )


def _clusters(streams: Streams) -> tuple[float, float, Ints]:
    """(within_ns, regular, iteration of each token)."""
    times = streams.token_ns
    if len(times) < 2:
        raise ValueError("no request got a second token")
    order = np.argsort(times, kind="stable")
    gaps = np.diff(times[order])
    same = np.ones(
        len(times) - 1, np.bool_
    )  # whether a token's successor in the flat array is of the same stream
    same[streams.offsets[1:-1] - 1] = False
    if not same.any():
        raise ValueError("no request got a second token")
    widest = float(np.quantile(np.diff(times)[same], 0.9))
    widths = np.geomspace(NARROWEST_NS, max(widest, 2 * NARROWEST_NS), WIDTHS)

    def assign(width: float) -> Ints:
        numbers = np.empty(len(times), np.int64)
        numbers[order] = np.concatenate(([0], np.cumsum(gaps > width)))
        return numbers

    scores = np.array([float((np.diff(assign(width))[same] == 1).mean()) for width in widths])
    best = np.flatnonzero(scores == scores.max())
    chosen = int(best[len(best) // 2])
    return float(widths[chosen]), float(scores[chosen]), assign(float(widths[chosen]))


def _decoded(streams: Streams, at: Ints, first: Ints, last: Ints, count: int) -> tuple[Ints, Ints]:
    """Requests decoded in each iteration, and the tokens in their context."""
    decodes, context = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    np.add.at(decodes, first + 1, 1)
    np.add.at(decodes, last + 1, -1)
    np.add.at(context, first + 1, streams.prompt)
    np.add.at(context, at + 1, 1)
    np.add.at(context, last + 1, -(streams.prompt + np.diff(streams.offsets)))
    return np.cumsum(decodes)[:count], np.cumsum(context)[:count]


def _begins(streams: Streams, first: Ints, ends: Ints, decodes: Ints) -> tuple[Ints, Mask, Mask]:
    """When each iteration began; whether the engine was idle before; and whether this is certain."""
    count = len(ends)
    earliest = np.full(count, np.iinfo(np.int64).max)  # sent, of the requests with their first token here
    np.minimum.at(earliest, first, streams.submit)
    earliest = np.minimum.accumulate(earliest[::-1])[::-1]  # ... or later
    before = np.concatenate(([np.iinfo(np.int64).min], ends[:-1]))
    woken = (decodes == 0) & (earliest >= before)
    begins = np.where(woken, earliest, before)
    waited = earliest < np.concatenate(([np.iinfo(np.int64).min], begins[:-1]))
    return begins, woken, (decodes > 0) | woken | waited


def _prompts(
    streams: Streams, limits: Limits, first: Ints, begins: Ints, ends: Ints, decodes: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """(steps, begun, pairs, tokens) of each iteration. Prompts are finished in the order of their first tokens."""
    count = len(begins)
    steps = np.ones(count, np.int64)
    begun, pairs, tokens = (np.zeros(count, np.int64) for _ in range(3))
    computed = streams.cached.copy()
    under_way = np.zeros(len(streams), np.bool_)
    order = np.lexsort((streams.submit, first))
    head = 0

    def compute(k: int, i: int, some: int) -> None:
        begun[k] += not under_way[i]
        under_way[i] = True
        tokens[k] += some
        pairs[k] += some * computed[i] + some * (some + 1) // 2
        computed[i] += some

    for k in range(count):
        running = int(decodes[k])
        while head < len(order) and first[order[head]] == k:
            compute(k, order[head], int(streams.prompt[order[head]] - computed[order[head]]))
            head += 1
            running += 1
        left, began = limits.token_budget - int(decodes[k]) - int(tokens[k]), int(begins[k])
        if left < 0 and not decodes[k] and limits.chunked:
            steps[k] = hidden = -(-int(tokens[k]) // limits.token_budget)
            left += (hidden - 1) * limits.token_budget
            began += (int(ends[k]) - began) * (hidden - 1) // hidden  # the last of them, about
        if head < len(order) and limits.chunked and left > 0 and running < limits.max_batch:
            after = order[head]
            # Had it fitted, it would have been finished here: it was not there yet.
            if streams.submit[after] < began and streams.prompt[after] - computed[after] > left:
                compute(k, after, left)
    return steps, begun, pairs, tokens


def _sound(at: Ints, owner: Ints, running: Ints) -> Mask:
    """Iterations in which most of the streams that take part have exactly one token."""
    _, index, counts = np.unique(owner * (len(running) + 1) + at, return_index=True, return_counts=True)
    single = np.bincount(at[index[counts == 1]], minlength=len(running))
    mask: Mask = single > MAJORITY * running
    return mask


def _joins(streams: Streams, first: Ints, begins: Ints, clear: Mask, room: Ints) -> Ints:
    """(more than, at most) ns from sending a request to the beginning of its iteration, of those that joined others.

    `room`: tokens of the budget left in each iteration, 0 where the batch was full. Who had no room before says nothing.
    """
    at = np.maximum(first, 1)
    fits = streams.prompt - streams.cached <= room[at - 1]
    rows = (first > 0) & fits & clear[at] & clear[at - 1] & streams.measured
    sent = streams.submit[rows]
    return np.column_stack([begins[at[rows] - 1] - sent, begins[at[rows]] - sent])


def _queued(streams: Streams, first: Ints, begins: Ints) -> Ints:
    """Requests that were sent before the iteration before this one began, and still have to wait for their first token."""
    change = np.zeros(len(begins) + 1, np.int64)
    since = np.searchsorted(np.maximum.accumulate(begins), streams.submit, side="right") + 1
    waits = since < first
    np.add.at(change, since[waits], 1)
    np.add.at(change, first[waits], -1)
    return np.cumsum(change)[:-1]


def batch_limit(iterations: Iterations) -> int | None:
    """The largest number of requests in the batch, if some waited while it was reached; None if no such queue was seen."""
    queue = iterations.queued > 0
    most = int(iterations.running.max())
    reached = iterations.running[queue] >= most
    return most if len(reached) >= QUEUE_ITERATIONS and reached.mean() > MAJORITY else None


QUEUE_ITERATIONS = 20
