"""What a compound system says of the tokens of a task: prompts and answers of all its model calls, by its own `usage`.

Its user sees none of these steps but the answer (draft 4.1.3), and nobody outside can count them. So these are reported as the
system's word, and no figure of what the user sees rests on them (record.Record.apart_from_system).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Column, Ints, Record
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats


@dataclass(frozen=True, slots=True)
class SystemTokens:
    """Of `reported` of the `requests` that succeeded: tokens a request of all prompts and answers of its steps, and of those
    prompts what the system's caches held."""

    requests: int
    reported: int
    input_tokens: Stats | None
    output_tokens: Stats | None
    cached_tokens: Stats | None


def system_tokens(record: Record, rows: Ints) -> SystemTokens | None:
    """Of these rows; None where the record is of no compound system."""
    usage = record.system_usage
    if usage is None:
        return None
    told = usage.input.valid[rows] | usage.output.valid[rows]
    return SystemTokens(
        len(rows),
        int(told.sum()),
        *(_described(one[rows]) for one in (usage.input, usage.output, usage.cached)),
    )


def _described(column: Column) -> Stats | None:
    return describe(np.where(column.valid, column.values.astype(np.float64), np.nan))
