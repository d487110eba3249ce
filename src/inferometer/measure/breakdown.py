"""The measurement by part of the load: by class of requests, by turn of conversations, and users who waited.

Classes are those of a plan's mixture or of a file's prompts. Requests without a class, which a file may have, are in none.

A request's wait is its TTFT, or the time from its submission to its end if it never got a first token. It starved if that is
over STARVED times the median TTFT of its class in this run (draft 5.6.4); so one that never got a first token counts once it is
past that. A request that never reached the server has no wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.distributions import Quantiles, quantiles
from inferometer.measure.length_cost import LengthGroup, by_length
from inferometer.measure.record import Floats, Ints, Mask, Record, between_ms
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats
from inferometer.units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class MeanLengths:
    """Mean tokens of a class's samples: asked for, by the declared tokenizer (of a prompt: as sent), and by the server."""

    asked_mean: float | None
    local_mean: float | None
    server_mean: float | None


STARVED = 5.0
"""Waits over so many medians of their class are starvation (draft 5.6.4)."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The median TTFT of a class's samples in ms, and of its requests with a wait those that starved. None: it has no TTFT."""

    median_ms: float | None
    starved: int | None
    of: int
    starved_share: float | None


@dataclass(frozen=True, slots=True)
class OfClass:
    """One class in the measured phase: its requests counted, its latencies in ms, its lengths in tokens.

    `e2e_per_token_ms` is a request's end-to-end latency over its output tokens.
    """

    name: str
    sent: int
    completed: int
    failed: int
    cancelled: int
    ttft_ms: Stats | None
    tpot_ms: Stats | None
    e2e_ms: Stats | None
    e2e_per_token_ms: Stats | None
    input_tokens: Stats | None
    output_tokens: Stats | None
    prompt: MeanLengths
    output: MeanLengths
    waits: Waits
    ttft_quantiles: Quantiles | None
    ttft_by_length: tuple[LengthGroup, ...]


def by_class(record: Record, samples: Samples) -> tuple[OfClass, ...]:
    """Every class in the order of the plan, also those of which nothing was sent."""
    waits = waits_ms(record)
    return tuple(
        _of_class(record, samples, number, waits) for number in range(len(record.request_class.names))
    )


def waits_ms(record: Record) -> Floats:
    """How long each request waited for its first token, or for nothing; NaN where it never reached the server."""
    first = record.event_offsets[:-1] + record.first_visible
    served = record.first_visible >= 0
    until = record.t_end.copy()
    until[served] = record.event_ns[first[served]]
    return between_ms(record.t_submit, until)


def _of_class(record: Record, samples: Samples, number: int, waits: Floats) -> OfClass:
    sent = record.measured & (record.request_class.codes == number)
    cancelled = int((sent & record.outcome.are(Outcome.CANCELLED)).sum())
    mine = record.request_class.codes[samples.rows] == number
    rows, counts, ttft = samples.rows[mine], samples.counts, samples.described(samples.ttft, mine, waits=True)

    def requested(values: Ints) -> Floats:
        chosen: Floats = values[rows].astype(np.float64)
        return np.where(
            chosen > 0, chosen, np.nan
        )  # nobody asks for none: a recorded step asks for no length

    return OfClass(
        name=record.request_class.names[number],
        sent=int(sent.sum()),
        completed=len(rows),
        failed=int(sent.sum()) - len(rows) - cancelled,
        cancelled=cancelled,
        ttft_ms=ttft,
        tpot_ms=samples.described(samples.tpot, mine),
        e2e_ms=samples.described(samples.e2e, mine, waits=True),
        e2e_per_token_ms=samples.described(_per_token(samples.e2e, counts.output), mine),
        input_tokens=describe(counts.input[mine]),
        output_tokens=describe(counts.output[mine]),
        prompt=MeanLengths(
            _mean(requested(record.input_tokens_asked)),
            _mean(record.input_tokens[rows]),
            _mean(counts.server_input[mine]),
        ),
        output=MeanLengths(
            _mean(requested(record.output_tokens_asked)),
            _mean(counts.local_output[mine]),
            _mean(counts.server_output[mine]),
        ),
        waits=_waits(waits[sent & ~np.isnan(waits)], None if ttft is None else ttft.p50),
        ttft_quantiles=quantiles(samples.ttft[mine]),
        ttft_by_length=by_length(counts.input[mine], samples.ttft[mine]),
    )


def _waits(waits: Floats, median: float | None) -> Waits:
    if median is None:
        return Waits(None, None, len(waits), None)
    starved = int((waits > STARVED * median).sum())
    return Waits(median, starved, len(waits), starved / len(waits) if len(waits) else None)


def _per_token(ms: Floats, tokens: Floats) -> Floats:
    found: Floats = np.divide(ms, tokens, out=np.full(len(ms), np.nan), where=tokens > 0)
    return found


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


# What became of conversations of several turns, and of users who wait for their answers.
#
# | a conversation | when                                                                                         |
# | -------------- | -------------------------------------------------------------------------------------------- |
# | finished       | all its turns were sent, and the last was answered                                           |
# | broken         | a turn failed, so that nobody knows what a later one would have repeated: those are left out |
# | cut            | the load ended before its last turn                                                          |
#
# A user's request is held where the answer to the one before it had not come at its own instant; it is then due when that
# answer has come, and the think time has passed.


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
    """All conversations of the measured phase. `left_out`: turns that were planned in those begun, and not sent. `turns_std`:
    standard deviation of the turns planned in one; None in files of earlier versions."""

    begun: int
    finished: int
    broken: int
    cut: int
    left_out: int
    by_turn: tuple[OfTurn, ...]
    turns_std: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Requests that had to wait for an answer to the same user. `ms`: for how long, of those held."""

    requests: int
    of: int
    ms: Stats | None

    @property
    def mostly(self) -> bool:
        """More often than not: the users are a closed loop in effect, and their rate is the server's."""
        return 2 * self.requests > self.of


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
        turns_std=float(planned.std()),
    )


def _by_turn(record: Record, samples: Samples) -> tuple[OfTurn, ...]:
    mine = record.measured & record.session.valid
    highest = min(int(record.turn[mine].max()) + 1, MOST_TURNS)
    return tuple(
        _of_turn(record, samples, mine, turn, last=turn == MOST_TURNS - 1) for turn in range(highest)
    )


def _of_turn(record: Record, samples: Samples, selected: Mask, turn: int, *, last: bool) -> OfTurn:
    meant = selected & ((record.turn >= turn) if last else (record.turn == turn))
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
        ttft_ms=samples.described(samples.ttft, chosen, waits=True),
        e2e_ms=samples.described(samples.e2e, chosen, waits=True),
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
