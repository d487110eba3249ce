"""Requests that were refused on grounds of policy, by what said so (draft 4.8.1).

| signal          | is                                                                                        |
| --------------- | ----------------------------------------------------------------------------------------- |
| `finish_reason` | the answer ended for `content_filter` or `refusal`                                        |
| `refusal_field` | text came in the `refusal` field of a delta or message                                    |
| `policy_status` | a status that is not 2xx, with an error code that names a policy (drive/exchange.py)      |

Only structured signals count; text is never guessed at. A request counts once, by the first of the three that it gave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.record import Record

REASONS = ("content_filter", "refusal")
"""Finish reasons of a refusal."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Measured requests that were refused: all, and by signal."""

    requests: int
    by_signal: dict[str, int]


def refusals(record: Record) -> Refusals:
    """Count them; every signal is there, if only with 0."""
    refused = record.measured & record.outcome.are(Outcome.REFUSED)
    by_status = refused & record.status.valid & ((record.status.values < 200) | (record.status.values >= 300))
    by_reason = refused & ~by_status & np.any([record.finish_reason.are(name) for name in REASONS], axis=0)
    by_signal = {
        "finish_reason": int(by_reason.sum()),
        "refusal_field": int((refused & ~by_reason & ~by_status).sum()),
        "policy_status": int(by_status.sum()),
    }
    return Refusals(int(refused.sum()), by_signal)
