"""What the requests that failed say of the latencies of those that did not.

Latencies are those of successes (draft 4.2.6). A request that failed after waiting for w without a token had a TTFT longer
than w, and likewise a latency: a censored observation. Those that waited longer than the P99 of the successes would have been
beyond it, so it is at least the P99 of the successes and of these waits together. A request that failed sooner says nothing.

    share = P99(successes and longer waits) / P99(successes) - 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.record import Floats, Mask, Record, between_ms
from inferometer.measure.stats import percentile


@dataclass(frozen=True, slots=True)
class Censored:
    """P99 of what was waited for (`series`: `first_token` or `request`) among the successes, and with the `failed` requests
    that waited longer, in ms."""

    series: str
    p99: float
    p99_with: float
    failed: int

    @property
    def share(self) -> float:
        """By how much it would be longer at least, as a share."""
        return self.p99_with / self.p99 - 1.0


def censored(record: Record, *, streamed: bool) -> Censored | None:
    """The P99 that the failed requests lengthen most; None where there is none. What a person cut short does not count."""
    failed = record.measured & ~record.ok & record.t_submit.valid
    if record.interrupted:
        failed &= ~record.outcome.are(Outcome.CANCELLED)
    if not failed.any() or not record.samples.any():
        return None
    found = [_of("request", between_ms(record.t_submit, record.t_end), record.samples, failed)]
    if streamed:
        found.append(_of("first_token", _to_first_ms(record), record.samples, failed))
    return max((one for one in found if one is not None), key=lambda one: one.share, default=None)


def _of(series: str, waits: Floats, ok: Mask, failed: Mask) -> Censored | None:
    seen = np.sort(waits[ok & ~np.isnan(waits)])
    if not len(seen) or (p99 := percentile(seen, 0.99)) <= 0:
        return None
    longer = waits[failed & (waits > p99)]
    together = np.sort(np.concatenate((seen, longer)))
    return Censored(series, p99, percentile(together, 0.99), len(longer))


def _to_first_ms(record: Record) -> Floats:
    """From sending to the first visible token, or to the end of a request that had none, ms."""
    ends = record.t_end.copy()
    some = record.first_visible >= 0
    ends[some] = record.event_ns[record.event_offsets[:-1][some] + record.first_visible[some]]
    return between_ms(record.t_submit, ends)
