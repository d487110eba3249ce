"""What became of conversations of several turns, and of users who wait for their answers.

| a conversation | when                                                                                         |
| -------------- | -------------------------------------------------------------------------------------------- |
| finished       | all its turns were sent, and the last was answered                                           |
| broken         | a turn failed, so that nobody knows what a later one would have repeated: those are left out |
| cut            | the load ended before its last turn                                                          |

A user's request is held where the answer to the one before it had not come at its own instant; it is then due when that
answer has come, and the think time has passed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats, Mask, Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats
from inferometer.units import NS_PER_MS

MOST_TURNS = 16
"""Turns told apart; those from the last of them on are taken together."""


@dataclass(frozen=True, slots=True)
class OfTurn:
    """The requests that are the `turn`-th of their conversation (from 1), or of the last one listed, also all later ones.

    Latencies in ms, lengths in tokens. `cached_share` of the prompt tokens, where the server told what it took from a cache.
    """

    turn: int
    and_later: bool
    sent: int
    completed: int
    ttft_ms: Stats | None
    e2e_ms: Stats | None
    input_tokens: Stats | None
    repeated_mean: float | None
    cached_share: float | None


@dataclass(frozen=True, slots=True)
class Conversations:
    """All conversations of the measured phase. `left_out`: turns that were planned in those begun, and not sent."""

    begun: int
    finished: int
    broken: int
    cut: int
    left_out: int
    by_turn: tuple[OfTurn, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Requests that had to wait for an answer to the same user. `ms`: for how long, of those held."""

    requests: int
    of: int
    ms: Stats | None


def conversations(record: Record, samples: Samples) -> Conversations | None:
    """None where there were none."""
    rows = np.flatnonzero(record.measured & record.session.valid)
    if not len(rows):
        return None
    # A session is gone through once a cycle; both are far below 2^31.
    key = record.session.values[rows].astype(np.int64) << 32 | record.cycle[rows]
    _, which = np.unique(key, return_inverse=True)
    begun = int(which.max()) + 1
    answered = np.bincount(which, weights=record.ok[rows], minlength=begun)
    sent = np.bincount(which, minlength=begun)
    planned = np.zeros(begun, np.int64)
    planned[which] = record.turns[rows]
    finished, broken = answered == planned, answered < sent
    return Conversations(
        begun=begun,
        finished=int(finished.sum()),
        broken=int(broken.sum()),
        cut=int((~finished & ~broken).sum()),
        left_out=int((planned - sent).sum()),
        by_turn=_by_turn(record, samples),
    )


def _by_turn(record: Record, samples: Samples) -> tuple[OfTurn, ...]:
    mine = record.measured & record.session.valid
    highest = min(int(record.turn[mine].max()) + 1, MOST_TURNS)
    return tuple(_of(record, samples, mine, turn, last=turn == MOST_TURNS - 1) for turn in range(highest))


def _of(record: Record, samples: Samples, mine: Mask, turn: int, *, last: bool) -> OfTurn:
    meant = mine & ((record.turn >= turn) if last else (record.turn == turn))
    chosen = meant[samples.rows]
    rows = samples.rows[chosen]
    server, cached = samples.counts.server_input[chosen], record.usage_cached
    told = cached.valid[rows] & ~np.isnan(server)
    read = float(server[told].sum())
    return OfTurn(
        turn=turn + 1,
        and_later=last,
        sent=int(meant.sum()),
        completed=len(rows),
        ttft_ms=describe(samples.ttft[chosen]),
        e2e_ms=describe(samples.e2e[chosen]),
        input_tokens=describe(samples.counts.input[chosen]),
        repeated_mean=float(record.input_tokens_repeated[rows].mean()) if len(rows) else None,
        cached_share=float(cached.values[rows][told].sum()) / read if read else None,
    )


def held(record: Record) -> Held | None:
    """None where there were no users."""
    rows = np.flatnonzero(record.measured & record.user.valid & record.due_ns.valid)
    if not len(rows):
        return None
    # Everybody's first request is due at its own instant, so the least difference is the start.
    behind = record.t_intended[rows] - record.due_ns.values[rows]
    waited: Floats = (behind - behind.min()) / NS_PER_MS
    kept = waited[waited > 0]
    return Held(len(kept), len(rows), describe(kept))
