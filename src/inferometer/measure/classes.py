"""What each class of requests met: a fair share of the service, or not.

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
from inferometer.measure.record import Floats, Ints, Record, between_ms
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats


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


def by_class(record: Record, samples: Samples) -> tuple[OfClass, ...]:
    """Every class in the order of the plan, also those of which nothing was sent."""
    waits = waits_ms(record)
    return tuple(_of(record, samples, number, waits) for number in range(len(record.request_class.names)))


def waits_ms(record: Record) -> Floats:
    """How long each request waited for its first token, or for nothing; NaN where it never reached the server."""
    first = record.event_offsets[:-1] + record.first_visible
    served = record.first_visible >= 0
    until = record.t_end.copy()
    until[served] = record.event_ns[first[served]]
    return between_ms(record.t_submit, until)


def _of(record: Record, samples: Samples, number: int, waits: Floats) -> OfClass:
    sent = record.measured & (record.request_class.codes == number)
    cancelled = int((sent & record.outcome.are(Outcome.CANCELLED)).sum())
    mine = record.request_class.codes[samples.rows] == number
    rows, counts, ttft = samples.rows[mine], samples.counts, describe(samples.ttft[mine])

    def asked(values: Ints) -> Floats:
        chosen: Floats = values[rows].astype(np.float64)
        return chosen

    return OfClass(
        name=record.request_class.names[number],
        sent=int(sent.sum()),
        completed=len(rows),
        failed=int(sent.sum()) - len(rows) - cancelled,
        cancelled=cancelled,
        ttft_ms=ttft,
        tpot_ms=describe(samples.tpot[mine]),
        e2e_ms=describe(samples.e2e[mine]),
        e2e_per_token_ms=describe(_per_token(samples.e2e[mine], counts.output[mine])),
        input_tokens=describe(counts.input[mine]),
        output_tokens=describe(counts.output[mine]),
        prompt=MeanLengths(
            _mean(asked(record.input_tokens_asked)),
            _mean(asked(record.input_tokens_sent)),
            _mean(counts.server_input[mine]),
        ),
        output=MeanLengths(
            _mean(asked(record.output_tokens_asked)),
            _mean(counts.local_output[mine]),
            _mean(counts.server_output[mine]),
        ),
        waits=_waits(waits[sent & ~np.isnan(waits)], None if ttft is None else ttft.p50),
        ttft_quantiles=quantiles(samples.ttft[mine]),
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
