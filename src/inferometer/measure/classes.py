"""What each class of requests met: a fair share of the service, or not.

Classes are those of a plan's mixture or of a file's prompts. Requests without a class, which a file may have, are in none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import Stats, describe


@dataclass(frozen=True, slots=True)
class MeanLengths:
    """Mean tokens of a class's samples: asked for, by the declared tokenizer (of a prompt: as sent), and by the server."""

    asked_mean: float | None
    local_mean: float | None
    server_mean: float | None


@dataclass(frozen=True, slots=True)
class OfClass:
    """One class in the measured phase: its requests counted, its latencies in ms, its lengths in tokens."""

    name: str
    sent: int
    completed: int
    failed: int
    cancelled: int
    ttft_ms: Stats | None
    tpot_ms: Stats | None
    e2e_ms: Stats | None
    input_tokens: Stats | None
    output_tokens: Stats | None
    prompt: MeanLengths
    output: MeanLengths


def by_class(record: Record, samples: Samples) -> tuple[OfClass, ...]:
    """Every class in the order of the plan, also those of which nothing was sent."""
    return tuple(_of(record, samples, number) for number in range(len(record.request_class.names)))


def _of(record: Record, samples: Samples, number: int) -> OfClass:
    sent = record.measured & (record.request_class.codes == number)
    cancelled = int((sent & record.outcome.are(Outcome.CANCELLED)).sum())
    mine = record.request_class.codes[samples.rows] == number
    rows, counts = samples.rows[mine], samples.counts

    def asked(values: Ints) -> Floats:
        chosen: Floats = values[rows].astype(np.float64)
        return chosen

    return OfClass(
        name=record.request_class.names[number],
        sent=int(sent.sum()),
        completed=len(rows),
        failed=int(sent.sum()) - len(rows) - cancelled,
        cancelled=cancelled,
        ttft_ms=describe(samples.ttft[mine]),
        tpot_ms=describe(samples.tpot[mine]),
        e2e_ms=describe(samples.e2e[mine]),
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
    )


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
