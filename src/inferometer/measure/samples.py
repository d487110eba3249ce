"""The samples: what each successful, measured request says about latency, one array entry a request.

Times are those of the record; e_first, e_visible, e_answer and e_last are arrivals of the request's first text event, the
first that is not white space, the first such of class content, and the last with text. n is the output token count.

| array                 | formula                                   | undefined (NaN) when                         |
| --------------------- | ----------------------------------------- | -------------------------------------------- |
| ttft                  | e_visible - t_submit  (draft 5.1.3, B.1.1)| no visible text, or not streamed             |
| ttft_any              | e_first - t_submit                        | no text, or not streamed                     |
| ttfo                  | e_answer - t_submit                       | no answer content, or not streamed           |
| ttfe                  | first event of any class - t_submit       | no event, or not streamed                    |
| ttft_from_intended    | e_visible - t_intended                    | as ttft                                      |
| e2e                   | e_last - t_submit                         | never; not streamed: t_end - t_submit        |
| e2e_from_intended     | the same from t_intended                  | never                                        |
| stream_end            | t_end - t_submit                          | never                                        |
| tpot                  | (e_last - e_first) / (n - 1)              | n < 2, or all text came at one instant       |
| gaps (ITL)            | e_(i+1) - e_i over text events (5.4.3)    | fewer than two text events                   |
| jitter                | standard deviation (n - 1) of its gaps    | fewer than two gaps (draft 5.4.3)            |
| max_pause             | its largest gap (draft 5.4.4.2)           | no gap                                       |
| request_output_tok_s  | n / e2e: the article's per-request TPS    | e2e = 0                                      |
| connect               | t_connected - t_connect                   | a connection was reused                      |
| tls                   | t_tls - t_connected                       | reused, or no TLS                            |

TTFT is no part of TPOT, ITL, jitter or pauses. Gaps are differences of recorded arrivals; none is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Column, Floats, Ints, Record, between_ms
from inferometer.measure.tokens import Counts, count
from inferometer.units import NS_PER_MS

MS_PER_S = 1_000.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Arrays of one entry a sample (`rows` are their rows in the record), in ms where not said otherwise.

    `gaps` are pooled: sample i owns `gaps[gap_offsets[i]:gap_offsets[i + 1]]`. `arrival_ns` and `arrival_tokens` say when
    output tokens came: a request's n tokens spread evenly over its text events, or all at t_end when it was not streamed.
    """

    rows: Ints
    counts: Counts
    ttft: Floats
    ttft_any: Floats
    ttfo: Floats
    ttfe: Floats
    ttft_from_intended: Floats
    e2e: Floats
    e2e_from_intended: Floats
    stream_end: Floats
    tpot: Floats
    jitter: Floats
    max_pause: Floats
    request_output_tok_s: Floats
    connect: Floats
    tls: Floats
    gaps: Floats
    gap_offsets: Ints
    text_events: Ints
    first_text_ns: Ints
    arrival_ns: Ints
    arrival_tokens: Floats

    def __len__(self) -> int:
        return len(self.rows)


def take(record: Record, *, streamed: bool, reference: bool = False) -> Samples:
    """The samples of a record. `streamed`: the plan asked for a stream; otherwise no event time means anything.

    `reference`: the declared tokenizer counts the tokens, as a yardstick; else the server does, where it says.
    """
    rows = np.flatnonzero(record.samples)
    submit, intended, end = record.t_submit[rows], record.t_intended[rows], record.t_end[rows]
    text_ns, offsets = _text_events(record, rows)
    events = np.diff(offsets)
    first = np.where(events > 0, _pick(text_ns, offsets[:-1]), end)
    last = np.where(events > 0, _pick(text_ns, offsets[1:] - 1), end)
    counts = count(record, rows, reference=reference)
    e2e = between_ms(submit, last)
    visible = _nth_event(record, rows, record.first_visible, streamed)
    gaps, gap_offsets = _gaps(text_ns, offsets) if streamed else (np.zeros(0), np.zeros_like(offsets))
    jitter, max_pause = _spread(gaps, gap_offsets)
    arrival_ns, arrival_tokens = _arrivals(text_ns, events, end, counts.output)
    return Samples(
        rows=rows,
        counts=counts,
        ttft=between_ms(submit, visible),
        ttft_any=between_ms(submit, _nth_event(record, rows, record.first_text, streamed)),
        ttfo=between_ms(submit, _nth_event(record, rows, record.first_answer, streamed)),
        ttfe=between_ms(submit, _nth_event(record, rows, np.zeros_like(record.index), streamed)),
        ttft_from_intended=between_ms(intended, visible),
        e2e=e2e,
        e2e_from_intended=between_ms(intended, last),
        stream_end=between_ms(submit, end),
        tpot=_tpot(first, last, counts.output) if streamed else np.full(len(rows), np.nan),
        jitter=jitter,
        max_pause=max_pause,
        request_output_tok_s=_divide(counts.output * MS_PER_S, e2e),
        connect=between_ms(record.t_connect, record.t_connected)[rows],
        tls=between_ms(record.t_connected, record.t_tls)[rows],
        gaps=gaps,
        gap_offsets=gap_offsets,
        text_events=events,
        first_text_ns=first,
        arrival_ns=arrival_ns,
        arrival_tokens=arrival_tokens,
    )


def _text_events(record: Record, rows: Ints) -> tuple[Ints, Ints]:
    """Arrivals of the text events of `rows`, and their offsets."""
    wanted = np.zeros(len(record), np.bool_)
    wanted[rows] = True
    keep = record.event_is_text & np.repeat(wanted, np.diff(record.event_offsets))
    before = np.concatenate(([0], np.cumsum(keep)))  # text events kept before each event
    counts = np.diff(before[record.event_offsets])[rows]
    return record.event_ns[keep], np.concatenate(([0], np.cumsum(counts)))


def _pick(values: Ints, at: Ints) -> Ints:
    """`values[at]`, or 0 where `at` lies outside: the caller masks those."""
    inside = (at >= 0) & (at < len(values))
    return values[np.where(inside, at, 0)] * inside if len(values) else np.zeros_like(at)


def _nth_event(record: Record, rows: Ints, nth: Ints, streamed: bool) -> Column:
    """Arrival of each row's event number `nth`; null where it has no such event (-1) or was not streamed."""
    at, starts = nth[rows], record.event_offsets[:-1][rows]
    valid = (at >= 0) & (at < np.diff(record.event_offsets)[rows]) & streamed
    return Column(_pick(record.event_ns, np.where(valid, starts + at, -1)), valid)


def _gaps(text_ns: Ints, offsets: Ints) -> tuple[Floats, Ints]:
    """Gaps between consecutive text events of one request, in ms (draft 5.4.3), and their offsets."""
    counts = np.maximum(np.diff(offsets) - 1, 0)
    if len(text_ns) < 2:
        return np.zeros(0), np.zeros_like(offsets)
    within = np.ones(len(text_ns), np.bool_)
    within[offsets[:-1][np.diff(offsets) > 0]] = False  # a request's first event ends no gap: TTFT stays out
    gaps = np.diff(text_ns)[within[1:]] / NS_PER_MS
    return gaps, np.concatenate(([0], np.cumsum(counts)))


def _spread(gaps: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """Each request's standard deviation (n - 1) and maximum of its gaps; NaN where undefined."""
    sizes = np.diff(offsets)
    jitter, longest = np.full(len(sizes), np.nan), np.full(len(sizes), np.nan)
    some = sizes > 0  # reduceat would give an empty request its neighbour's value
    if not some.any():
        return jitter, longest
    starts, full = offsets[:-1][some], sizes[some]
    longest[some] = np.maximum.reduceat(gaps, starts)
    mean = np.add.reduceat(gaps, starts) / full
    # Two passes: the sum of squares less the squared sum would cancel away a small jitter on a long gap.
    squares = np.add.reduceat((gaps - np.repeat(mean, full)) ** 2, starts)
    jitter[some] = np.sqrt(_divide(squares, np.where(full > 1, full - 1.0, 0.0)))
    return jitter, longest


def _tpot(first: Ints, last: Ints, tokens: Floats) -> Floats:
    """(e_last - e_first) / (n - 1) in ms. Text that came all at once has no duration: undefined, not zero."""
    return np.where(last > first, _divide((last - first) / NS_PER_MS, np.maximum(tokens - 1.0, 0.0)), np.nan)


def _arrivals(text_ns: Ints, events: Ints, end: Ints, tokens: Floats) -> tuple[Ints, Floats]:
    """When output tokens arrived, and how many: token sums are kept."""
    whole = events == 0
    share = np.repeat(_divide(tokens, events.astype(np.float64)), events)
    return np.concatenate((text_ns, end[whole])), np.concatenate((share, tokens[whole]))


def _divide(top: Floats, bottom: Floats) -> Floats:
    """Quotient, NaN where the divisor is 0."""
    quotient: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom != 0)
    return quotient
