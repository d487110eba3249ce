"""The load the server really saw: who was in flight when, and which part of the run counts as steady.

Let b_i be the beginnings and d_i the ends of the measured requests that were sent. A request begins with its first
byte (t_send), or, if a connection was opened for it, when connecting began (t_connect): from then on its slot is taken, and
the server, or a plan that asks for new connections, takes the time. Requests in flight at t: N(t) = #{b_i <= t} - #{d_i <= t}.
Its integral from the start to t is G(t) = sum over b_i <= t of (t - b_i) - sum over d_i <= t of (t - d_i), so the mean in
[x, y] is (G(y) - G(x)) / (y - x).

| span    | from                                              | to            | what it is for                      |
| ------- | ------------------------------------------------- | ------------- | ----------------------------------- |
| run     | first send                                        | last end      | the article's whole-run rates       |
| load    | open: first send; closed: the send that filled    | last send     | the load was on; no ramp, no drain  |
|         | the last of the slots asked for                   |               |                                     |
| steady  | 10 % into the load span                           | last send     | throughput (draft 5.2.3)            |

Nothing is steady before the first requests could have ended: a load span shorter than the median request has no steady part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.units import NS_PER_S

RAMP_SHARE = 0.1
"""The first tenth of the load span is ramp (draft 5.2.3, the last 90 % count)."""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of the run, ns on its monotonic clock."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Length in s."""
        return (self.end - self.start) / NS_PER_S


@dataclass(frozen=True, slots=True)
class Spans:
    """The three spans above; None where a run has none."""

    run: Span | None
    load: Span | None
    steady: Span | None


class Sweep:
    """N(t) of the measured requests that were sent; `sends` are their send times, in order."""

    def __init__(self, record: Record) -> None:
        rows = record.measured & record.t_submit.valid
        self.sends: Ints = np.sort(record.t_submit.values[rows])
        self.begins: Ints = np.sort(
            np.where(record.opened, record.t_connect.values, record.t_send.values)[rows]
        )
        self.ends: Ints = np.sort(record.t_end[rows])
        self._origin = int(self.begins[0]) if len(self.begins) else 0
        self._begin_sums = _sums(self._since(self.begins))
        self._end_sums = _sums(self._since(self.ends))

    def _since(self, t_ns: Ints) -> Floats:
        return (t_ns - self._origin) / NS_PER_S

    def integral(self, t_ns: Ints) -> Floats:
        """G(t) in request-seconds at each of `t_ns`."""
        t = self._since(t_ns)
        begun = np.searchsorted(self.begins, t_ns, side="right")
        ended = np.searchsorted(self.ends, t_ns, side="right")
        area: Floats = begun * t - self._begin_sums[begun] - (ended * t - self._end_sums[ended])
        return area

    def mean(self, span: Span | None) -> float | None:
        """Time-weighted mean number in flight; None for an empty span."""
        if span is None or span.end <= span.start:
            return None
        low, high = self.integral(np.array([span.start, span.end], np.int64))
        return float(high - low) / span.seconds

    def maximum(self) -> int:
        """Most requests in flight at once. One that begins the instant another ends replaces it."""
        ended = np.searchsorted(self.ends, self.begins, side="right")
        return int((np.arange(1, len(self.begins) + 1) - ended).max(initial=0))


def _sums(values: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))


def spans(record: Record, sweep: Sweep, slots: int | None, typical_ms: float | None) -> Spans:
    """The run's spans. `slots`: the concurrency asked for, None in open loop; `typical_ms`: the median request's length."""
    if not record.measured.any():
        return Spans(None, None, None)
    begun = record.measured & record.t_send.valid
    starts = record.t_send.values[begun] if begun.any() else record.t_intended[record.measured]
    run = Span(int(starts.min()), int(record.t_end[record.measured].max()))
    full = 0 if slots is None else slots - 1
    if len(sweep.sends) <= full or sweep.sends[full] >= sweep.sends[-1]:
        return Spans(run, None, None)
    load = Span(int(sweep.sends[full]), int(sweep.sends[-1]))
    if typical_ms is None or load.seconds * 1_000 < typical_ms:
        return Spans(run, load, None)
    steady = Span(load.start + round(RAMP_SHARE * (load.end - load.start)), load.end)
    return Spans(run, load, steady)


def thirds(span: Span) -> tuple[Span, Span, Span]:
    """The span in three equal parts."""
    first, second = (span.start + round(part * (span.end - span.start) / 3) for part in (1, 2))
    return Span(span.start, first), Span(first, second), Span(second, span.end)


def within(t_ns: Ints, span: Span) -> Mask:
    """Which instants fall in [start, end)."""
    mask: Mask = (t_ns >= span.start) & (t_ns < span.end)
    return mask
