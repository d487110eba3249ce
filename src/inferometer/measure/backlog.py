"""Whether requests pile up: how many wait at the beginning, in the middle and at the end of the load.

| source      | counts                                                                          | used where               |
| ----------- | ------------------------------------------------------------------------------- | ------------------------ |
| `server`    | the server's own gauge of waiting requests, mean of its scrapes                 | scraped in each part     |
| `waiting`   | requests that were sent and have no text yet; mean over time                    | streamed                 |
| `in_flight` | requests that were sent and have not ended; mean over time                      | not streamed             |

The parts are the first, the middle and the last tenth of the load span. Requests in flight rise at the beginning of every run,
until the first answers end; requests that wait do so only if a queue forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.measure.load import Span, Sweep, within
from inferometer.measure.record import Ints, Record
from inferometer.measure.server import track
from inferometer.telemetry.metrics.normalised import Track, Translated

PARTS = ((0.0, 0.1), (0.45, 0.55), (0.9, 1.0))


@dataclass(frozen=True, slots=True)
class Backlog:
    """Mean requests waiting in the first, the middle and the last tenth of the load."""

    source: Literal["server", "waiting", "in_flight"]
    first: float
    middle: float
    last: float

    @property
    def rise(self) -> float:
        """From the first tenth to the last."""
        return self.last - self.first


def backlogs(
    record: Record, sweep: Sweep, load: Span | None, gauges: Sequence[Translated], *, streamed: bool
) -> tuple[Backlog, ...]:
    """The client's backlog and, where it was scraped, the server's; empty without a load span."""
    if load is None or load.end <= load.start:
        return ()
    length = load.end - load.start
    parts = [Span(load.start + round(low * length), load.start + round(high * length)) for low, high in PARTS]
    found = []
    if streamed:
        sweep = Sweep(record, until=first_texts(record))
    means = [sweep.mean(part) for part in parts]
    known = [mean for mean in means if mean is not None]
    if len(known) == len(parts):
        found.append(Backlog("waiting" if streamed else "in_flight", *known))
    waiting = track(gauges, "waiting")
    if waiting is not None and all(within(waiting.times, part).any() for part in parts):
        found.append(Backlog("server", *(_mean(waiting, part) for part in parts)))
    return tuple(found)


def _mean(gauge: Track, part: Span) -> float:
    return float(gauge.values[within(gauge.times, part)].mean())


def first_texts(record: Record) -> Ints:
    """When each request of the record got its first text, or, without any, ended."""
    some = record.first_text >= 0
    at = np.where(some, record.event_offsets[:-1] + record.first_text, 0)
    found: Ints = record.t_end.copy()
    found[some] = record.event_ns[at[some]]
    return found
