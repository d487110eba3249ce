"""The load as the server saw it: requests and tokens in flight, lateness, and the spans of a run.

Let b_i be the beginnings and d_i the ends of the requests that were sent, those of the lead-in and lead-out included. A
request begins with its first byte (t_send), or, if a connection was opened for it, when connecting began (t_connect): from then
on its slot is taken, and the server, or a plan that asks for new connections, takes the time. Requests in flight at t:
N(t) = #{b_i <= t} - #{d_i <= t}.
Its integral from the start to t is G(t) = sum over b_i <= t of (t - b_i) - sum over d_i <= t of (t - d_i), so the mean in
[x, y] is (G(y) - G(x)) / (y - x).

| span    | from                                              | to            | what it is for                      |
| ------- | ------------------------------------------------- | ------------- | ----------------------------------- |
| run     | first send                                        | last end      | the article's whole-run rates       |
| load    | open: first send; closed: the first measured one, | last measured | the load was on; no ramp, no drain  |
|         | or that which filled the last slot, if later      | send          |                                     |
| steady  | 10 % into the load span                           | last send     | throughput (draft 5.2.3)            |

Nothing is steady before the first requests could have ended: a load span shorter than the median request has no steady part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.journal.schema import Outcome
from inferometer.measure.large_arrays import held, order_by, pieces, times_in_order
from inferometer.measure.record import Floats, Ints, Mask, Record, between_ms, counted, is_text
from inferometer.measure.stats import describe
from inferometer.measure.tokens import count
from inferometer.metrics.statistics import Stats
from inferometer.units import NS_PER_MS, NS_PER_S

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
    """N(t) of the requests that were sent; `sends` are the send times of the measured ones, in order, `all_sends` of all.

    `until`: the instant at which each row of the record stops counting; by default its end.
    """

    def __init__(self, record: Record, until: Ints | None = None) -> None:
        rows = record.of_load & record.t_submit.valid
        self.all_sends: Ints = held(times_in_order(record.t_submit.values[rows]))
        measured = rows & record.measured
        self.sends: Ints = (
            self.all_sends
            if np.array_equal(rows, measured)
            else held(times_in_order(record.t_submit.values[measured]))
        )
        self.begins: Ints = held(times_in_order(_begins(record)[rows]))
        self.ends: Ints = held(times_in_order((record.t_end if until is None else until)[rows]))
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
    return held(np.concatenate(([0.0], np.cumsum(values))))


def _begins(record: Record) -> Ints:
    """When each request of the record began, of those that were sent."""
    return np.where(record.opened, record.t_connect.values, record.t_send.values)


def spans(record: Record, sweep: Sweep, slots: int | None, typical_ms: float | None) -> Spans:
    """The run's spans. `slots`: the concurrency asked for, None in open loop; `typical_ms`: the median request's length."""
    if not record.measured.any():
        return Spans(None, None, None)
    begun = record.measured & record.t_send.valid
    starts = record.t_send.values[begun] if begun.any() else record.t_intended[record.measured]
    run = Span(int(starts.min()), int(record.t_end[record.measured].max()))
    full = 0 if slots is None else slots - 1
    if not len(sweep.sends) or len(sweep.all_sends) <= full:
        return Spans(run, None, None)
    load = Span(max(int(sweep.sends[0]), int(sweep.all_sends[full])), int(sweep.sends[-1]))
    if load.end <= load.start:
        return Spans(run, None, None)
    if typical_ms is None or load.seconds * 1_000 < typical_ms:
        return Spans(run, load, None)
    steady = Span(load.start + round(RAMP_SHARE * (load.end - load.start)), load.end)
    return Spans(run, load, steady)


def concurrency_but_for_failures(record: Record, span: Span) -> float | None:
    """Mean number in flight over a span had each request that the server failed lasted as long as a successful one does on
    average, and no shorter than it did: what the slots would have held of a server that ended none early. None: nothing failed.
    More than the slots there are is more than enough to fill them; where nothing succeeded nobody knows what else would have
    been: infinite.
    """
    rows = record.of_load & record.t_submit.valid
    ours = record.outcome.are(Outcome.CANCELLED) | record.outcome.are(Outcome.CLIENT_LIMIT)
    failed = rows & ~record.ok & ~ours
    if not failed.any():
        return None
    begins = _begins(record)
    answered = rows & record.ok
    if not answered.any():
        return float("inf")
    usual = round(float((record.t_end - begins)[answered].mean()))
    return Sweep(record, np.where(failed, np.maximum(record.t_end, begins + usual), record.t_end)).mean(span)


WAVE_SHARE = 0.05
"""What a first wave may change of a headline: the instrument promises no headline that is further off."""


def first_wave(record: Record, slots: int | None) -> int | None:
    """Measured requests that were sent before all `slots` of a closed loop were in use, by whatever requests: they met a server
    that was filling up. A slot whose answer has ended is in use while its next request is on its way: of several answers that
    end together, the first is replaced before the others are. None without slots; all of them if the slots were never all in
    use. A request that the server turned away at once is in use after its sending as any other is."""
    if slots is None:
        return None
    return _sent_before_full(_in_flight_when_sent(record, slots), slots)


def _sent_before_full(in_flight: Ints, slots: int) -> int:
    full = in_flight >= slots
    return int(np.argmax(full)) if full.any() else len(full)


def first_wave_of_users(record: Record, latencies: Floats) -> int:
    """The same of users most of whom wait for their answers; the slots are as many as they typically have in flight. Users may
    begin so far apart that no burst comes of it: 0 where mean and P99 without the wave are the same within 5 %.

    `latencies`: of the successful requests, in order of sending; NaN where there is none.
    """
    in_flight = _in_flight_when_sent(record)
    wave = _sent_before_full(in_flight, int(np.median(in_flight))) if len(in_flight) else 0
    every, later = latencies[~np.isnan(latencies)], latencies[wave:][~np.isnan(latencies[wave:])]
    if not wave or not len(later):
        return wave
    bent = (every.mean() / later.mean(), np.percentile(every, 99) / np.percentile(later, 99))
    return wave if max(abs(ratio - 1) for ratio in bent) > WAVE_SHARE else 0


def _in_flight_when_sent(record: Record, slots: int | None = None) -> Ints:
    """Requests in flight right after each measured one was sent, in order of sending. With `slots`, those of the load that come
    after the first of each slot count from the instant at which they were due, which is when their slot was free."""
    sent = np.flatnonzero(record.t_submit.valid)
    order = sent[np.argsort(record.t_submit.values[sent], kind="stable")]
    sends = record.t_submit.values[order]
    ends = np.sort(
        np.maximum(record.t_end[order], sends + 1)
    )  # in flight right after it was sent, however short
    begins = sends.copy()
    if slots is not None:
        next_ones = np.flatnonzero(record.of_load[order])[slots:]
        begins[next_ones] = np.minimum(sends, record.t_intended[order])[next_ones]
    begun = np.searchsorted(times_in_order(begins), sends, side="right")
    in_flight: Ints = begun - np.searchsorted(ends, sends, side="right")
    return in_flight[record.measured[order]]


def thirds(span: Span) -> tuple[Span, Span, Span]:
    """The span in three equal parts."""
    first, second = (span.start + round(part * (span.end - span.start) / 3) for part in (1, 2))
    return Span(span.start, first), Span(first, second), Span(second, span.end)


def within(t_ns: Ints, span: Span) -> Mask:
    """Which instants fall in [start, end)."""
    mask: Mask = (t_ns >= span.start) & (t_ns < span.end)
    return mask


# Why requests left late. Lateness is t_submit - t_intended, and three parts add up to it, nanosecond for nanosecond:
#
# | part          | from       | to       | the request waited for                                        | through     |
# | ------------- | ---------- | -------- | ------------------------------------------------------------- | ----------- |
# | scheduling    | t_intended | t_taken  | the worker, which took it up late                             | us          |
# | socket        | t_taken    | t_send   | a connection: the TCP and TLS handshakes; its bytes' making   | see below   |
# | back_pressure | t_send     | t_submit | the socket, which took its first byte and not yet its last    | the server  |
#
# A connection opened for the request is the plan's or the server's time (`connecting`), a part of `socket`. What else a request
# waits before its first byte is ours. So what counts against the instrument is lateness - connecting - back_pressure.


PARTS = ("scheduling", "socket", "back_pressure")


@dataclass(frozen=True, slots=True)
class Causes:
    """One distribution (ms) a part, over the requests that `lateness_ms` is of."""

    scheduling: Stats
    socket: Stats
    back_pressure: Stats


def lateness_ms(record: Record) -> Floats:
    """t_submit - t_intended in ms, one entry a measured request that was sent, in order of t_submit."""
    rows = record.sent_rows
    return between_ms(record.t_intended[rows], record.t_submit[rows])


def parts_ns(record: Record) -> dict[str, Ints]:
    """The PARTS of `lateness_ms` in ns, in its order."""
    rows = record.sent_rows
    marks = (
        record.t_intended[rows],
        record.t_taken[rows],
        record.t_send.values[rows],
        record.t_submit.values[rows],
    )
    return {
        name: later - marks[place] for place, (name, later) in enumerate(zip(PARTS, marks[1:], strict=True))
    }


def causes(record: Record) -> tuple[Causes | None, dict[str, float] | None]:
    """The parts' distributions, and each part's share of all lateness; None where nothing was sent, or nothing was late."""
    parts = parts_ns(record)
    found = [stats for name in PARTS if (stats := describe(parts[name] / NS_PER_MS)) is not None]
    if len(found) < len(PARTS):
        return None, None
    total = sum(int(part.sum()) for part in parts.values())
    shares = {name: int(part.sum()) / total for name, part in parts.items()} if total > 0 else None
    return Causes(*found), shares


def connecting_ms(record: Record) -> Floats:
    """Time spent on connect and TLS by the requests of `lateness_ms`, in its order; 0 where none was opened for the request."""
    return connecting_of(record, record.sent_rows)


def connecting_of(record: Record, rows: Ints) -> Floats:
    """The same of these rows."""
    opened = record.opened[rows]
    here, found = rows[opened], np.zeros(len(rows))
    plain = between_ms(record.t_connect[here], record.t_connected[here])
    secured = between_ms(record.t_connect[here], record.t_tls[here])
    found[opened] = np.nan_to_num(np.fmax(plain, secured), nan=0.0)
    return found


def excused_ms(record: Record) -> Floats:
    """What of `lateness_ms`, in its order, is the plan's or the server's time: connecting and back-pressure."""
    excused: Floats = connecting_ms(record) + parts_ns(record)["back_pressure"] / NS_PER_MS
    return excused


# Tokens in flight: what the server held, about, in prompts and half-made answers (draft 5.5.4).
#
# T(t) = sum over the requests in flight at t of (input tokens + output tokens that had arrived by t). A request is in flight as
# in measure/load.py, whatever becomes of it. Its output tokens come spread evenly over its events with text; those of an answer
# that comes whole are made when nobody sees it, and do not count. Where the server did not count a request, as one that failed,
# it has what was sent and what its text amounts to (measure/tokens.py).
#
# With w_j tokens that come at t_j and leave at d_j, the mean over [x, y] is sum w_j |[t_j, d_j] in [x, y]| / (y - x).


@dataclass(frozen=True, slots=True)
class TokensInFlight:
    """Time average and peak over a span."""

    mean: float
    peak: float


def tokens_in_flight(record: Record, span: Span | None, *, reference: bool) -> TokensInFlight | None:
    """Tokens in flight over the span; None for an empty one, and where some are not known. `reference`: see `tokens.count`."""
    if span is None or span.end <= span.start:
        return None
    holding = _Holding(record, reference=reference)
    if not holding.known:
        return None
    seconds, first = zip(*(holding.over(part, span) for part in holding.parts), strict=True)
    later = [min(first[number:], default=_NEVER) for number in range(1, len(first) + 1)]
    return TokensInFlight(sum(seconds) / span.seconds, _peak(holding, later, span))


_NEVER = int(np.iinfo(np.int64).max)


Part = tuple[slice, slice]
"""Rows of a record, and their events."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Changes of the tokens in flight, and when they come."""

    at: Ints
    tokens: Floats

    def only(self, these: Mask) -> Steps:
        """Those of them."""
        return Steps(self.at[these], self.tokens[these])

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        """All of them, one part behind the other."""
        return cls(np.concatenate([one.at for one in parts]), np.concatenate([one.tokens for one in parts]))


class _Holding:
    """When tokens of the requests of a record come and go, for some of its rows at a time."""

    def __init__(self, record: Record, *, reference: bool) -> None:
        self._record = record
        self._mine = record.of_load & record.t_submit.valid
        rows = np.flatnonzero(self._mine)
        counts = count(record, rows, reference=reference)
        events = counted(record.event_is_text, record.event_offsets)[rows]
        self.known = not bool(np.isnan(counts.input).any() or np.isnan(counts.output[events > 0]).any())
        self._begins = held(_begins(record))
        self._input = self._of_all(rows, counts.input)
        self._output = self._of_all(rows, np.where(events > 0, counts.output, 0.0))
        self._each = self._of_all(rows, counts.output / np.maximum(events, 1))
        self.parts: list[Part] = list(pieces(record.event_offsets))

    def _of_all(self, rows: Ints, values: Floats) -> Floats:
        found = np.zeros(len(self._record))
        found[rows] = values
        return held(found)

    def steps(self, part: Part) -> tuple[Steps, Steps, Steps]:
        """Requests that end, requests that begin, and text that comes."""
        rows, mine = part[0], self._mine[part[0]]
        prompts, answers = self._input[rows][mine], self._output[rows][mine]
        events, owners = self._texts(part)
        return (
            Steps(self._record.t_end[rows][mine], -(prompts + answers)),
            Steps(self._begins[rows][mine], prompts),
            Steps(events, self._each[rows][owners]),
        )

    def _texts(self, part: Part) -> tuple[Ints, Ints]:
        """Instants of text events, and the number of each one's row within the part."""
        rows, events = part
        sizes = np.diff(self._record.event_offsets[rows.start : rows.stop + 1])
        owners = np.repeat(np.arange(rows.stop - rows.start, dtype=np.int32), sizes)
        texts = is_text(self._record.event_class[events]) & self._mine[rows][owners]
        return self._record.event_ns[events][texts], owners[texts]

    def over(self, part: Part, span: Span) -> tuple[float, int]:
        """Tokens times the seconds for which they were there within the span; and the first instant of the part."""
        rows, mine = part[0], self._mine[part[0]]
        begins, ends = self._begins[rows], self._record.t_end[rows]
        at, owners = self._texts(part)
        prompts = float(self._input[rows][mine] @ _seconds(begins[mine], ends[mine], span))
        answers = float(self._each[rows][owners] @ _seconds(at, ends[owners], span))
        first = min(int(one.min(initial=_NEVER)) for one in (begins[mine], ends[mine], at))
        return prompts + answers, first


def _seconds(begins: Ints, ends: Ints, span: Span) -> Floats:
    """How long each was there within the span."""
    lasted = np.minimum(ends, span.end)
    lasted -= np.maximum(begins, span.start)
    return np.maximum(lasted, 0, out=lasted) / NS_PER_S


def _peak(holding: _Holding, later: Sequence[int], span: Span) -> float:
    """The most at any instant of the span. What begins the instant another ends takes its place: ends come first.

    `later`: of each part, the first instant of those behind it. What comes before is put in order and left behind: as rows are
    in the order in which they were due, that is nearly all of the part.
    """
    waiting = [Steps(np.zeros(0, np.int64), np.zeros(0))] * 3
    now, most, done = 0.0, 0.0, 0
    for part, following in zip(holding.parts, later, strict=True):
        if done >= span.end:
            break
        found = [Steps.joined(pair) for pair in zip(waiting, holding.steps(part), strict=True)]
        waiting = [steps.only(steps.at >= following) for steps in found]
        due = Steps.joined([steps.only(steps.at < following) for steps in found])
        order = order_by(due.at)
        levels = np.cumsum(np.append(now, due.tokens[order]))
        begun, ended = np.searchsorted(due.at[order], (span.start, span.end - 1), side="right")
        if following > span.start:
            most = max(most, float(levels[begun : ended + 1].max()))
        now, done = float(levels[-1]), following
    return most
