"""The samples: what each successful, measured request says about latency, one array entry a request.

Times are those of the record; e_first, e_visible, e_answer and e_last are arrivals of the request's first text event, the
first that is not white space, the first such of class content, and the last with text. n is the output token count, m the
part of it from e_first to e_last (span_tokens.py); what is said of chunks leaves out reasoning tokens that were not sent
(tokens.py).

| array                 | formula                                   | undefined (NaN) when                         |
| --------------------- | ----------------------------------------- | -------------------------------------------- |
| ttft                  | e_visible - t_submit  (draft 5.1.3, B.1.1)| no visible text, or not streamed             |
| ttft_any              | e_first - t_submit                        | no text, or not streamed                     |
| ttfo                  | e_answer - t_submit                       | no answer content, or not streamed           |
| ttfe                  | first event of any class - t_submit       | no event, or not streamed                    |
| load_server           | server_load_ns, the answer's word         | the answer does not say                      |
| prefill_server        | server_prefill_ns, likewise               | the answer does not say                      |
| ttft_outside          | ttft - load_server - prefill_server       | as ttft and prefill_server, or less than 0   |
| second_token          | the first of its gaps                     | as gaps                                      |
| ttft_from_intended    | e_visible - t_intended                    | as ttft                                      |
| e2e                   | e_last - t_submit                         | never; not streamed: t_end - t_submit        |
| e2e_from_intended     | the same from t_intended                  | never                                        |
| stream_end            | t_end - t_submit                          | never                                        |
| tpot                  | (e_last - e_first) / (m - 1)              | m < 2 or not known, all text came at one     |
|                       |                                           | instant, or too much of it at the first      |
|                       |                                           | (delivery.py)                                |
| gaps: ITL             | e_(i+1) - e_i over text events (5.4.3)    | the method is `chunk`; under two text events |
| gaps: chunk_gap       | the same over chunks (4.6.3, delivery.py) | it is not; under two chunks                  |
| itl_server            | gaps of the server's stamps (4.6.3, C)    | a text event without a stamp, stamps that go |
|                       |                                           | back; or the events hold several tokens      |
| itl_distributed       | chunk_gap, and m less the number of       | the method is `direct`; m by the server is   |
|                       | chunks zeros an answer (4.6.3, B)         | not known                                    |
| jitter                | standard deviation (n - 1) of its gaps    | fewer than two gaps (draft 5.4.3)            |
| max_pause             | its largest gap (draft 5.4.4.2)           | no gap                                       |
| request_output_tok_s  | n / e2e: the article's per-request TPS    | e2e = 0                                      |
| connect               | t_connected - t_connect                   | a connection was reused                      |
| tls                   | t_tls - t_connected                       | reused, or no TLS                            |

TTFT is no part of TPOT, gaps, jitter or pauses. Gaps are differences of recorded arrivals; none is interpolated. Jitter and
pauses are of the gaps that the run has: between tokens, or between chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from inferometer.measure.delivery import (
    DIRECT_SHARE,
    Chunks,
    Delivery,
    ItlMethod,
    bent_pace,
    delivery,
    itl_method,
    late_ms,
)
from inferometer.measure.event_gaps import divide, gap_ends, gap_offsets, gaps_ms, spread
from inferometer.measure.large_arrays import (
    chosen,
    held,
    held_property,
    in_one,
    joined,
    order_by,
    ordered,
    pieces,
    times_in_order,
)
from inferometer.measure.load_states import LoadStates, load_states
from inferometer.measure.record import Column, Floats, Ints, Mask, Record, between_ms, counted
from inferometer.measure.span_tokens import span_tokens
from inferometer.measure.stats import describe, describe_at
from inferometer.measure.tokens import Counts, count, single_token_share
from inferometer.measure.zeros import Zeros
from inferometer.metrics.catalogue import stem
from inferometer.metrics.statistics import Stats
from inferometer.plan.slo import Slo
from inferometer.units import NS_PER_MS

MS_PER_S = 1_000.0


class Samples:
    """The samples of a record: `rows` are their rows in it. Every array has one entry a sample, in ms where not said otherwise.

    `streamed`: the plan requests a stream; otherwise no event time means anything, and what rests on one is NaN. `counts`: the
    token counts of each sample. `native`: the tokenizer at hand is the model's own, so that its counts can stand in for the
    server's. `objectives`: the plan's, which goodput is about. Properties are worked out when they are read, and kept where
    much reads them: kept, each would take eight bytes a sample or an event. A metric of metrics/catalogue.py has one here,
    named like it without its unit.
    """

    def __init__(
        self,
        record: Record,
        *,
        streamed: bool,
        reference: bool = False,
        native: bool = False,
        objectives: Sequence[Slo] = (),
        rows: Ints | None = None,
    ) -> None:
        self.record = record
        self.streamed = streamed
        self.native = native
        self.objectives = objectives
        self._reference = reference
        self.rows: Ints = held(np.flatnonzero(record.samples)) if rows is None else rows
        self.counts: Counts = count(record, self.rows, reference=reference)
        submit = record.t_submit[self.rows]
        self._submit = Column(held(submit.values), submit.valid)
        self._intended, self._end = held(record.t_intended[self.rows]), held(record.t_end[self.rows])
        self._text_ns, self.text_offsets, self._text_wait_ns = _text_events(record, self.rows)
        self.text_events: Ints = held(np.diff(self.text_offsets))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def around(self) -> Samples | None:
        """The successful requests of the lead-in and lead-out, which are no samples: their tokens arrive between the others and
        count in throughput. None: there are none."""
        rows = np.flatnonzero(self.record.lead & self.record.ok)
        if not len(rows):
            return None
        return Samples(
            self.record,
            streamed=self.streamed,
            reference=self._reference,
            native=self.native,
            objectives=self.objectives,
            rows=rows,
        )

    @held_property
    def first_text_ns(self) -> Ints:
        """Arrival of the first text event; of an answer without one, its end."""
        return np.where(self.text_events > 0, _pick(self._text_ns, self.text_offsets[:-1]), self._end)

    @held_property
    def last_text_ns(self) -> Ints:
        """Arrival of the last text event; of an answer without one, its end."""
        return np.where(self.text_events > 0, _pick(self._text_ns, self.text_offsets[1:] - 1), self._end)

    @held_property
    def order(self) -> Ints:
        """The samples in order of sending."""
        return order_by(self._submit.values, self._intended, self._end)

    @cached_property
    def states(self) -> LoadStates:
        """The states of the load that the samples met, by the number of requests in flight right after each send."""
        sent, measured = self.record.t_submit.valid, self.record.measured[self.record.t_submit.valid]
        begins, ends = self.record.t_submit.values[sent], self.record.t_end[sent]
        sends = times_in_order(begins[measured])
        in_flight = np.searchsorted(times_in_order(begins), sends, "right") - np.searchsorted(
            times_in_order(ends), sends, "right"
        )
        lives = (ends - begins)[measured].astype(np.float64)
        span = float(sends[-1] - sends[0]) if len(sends) else 0.0
        return load_states(in_flight.astype(np.float64), lives, span)

    @cached_property
    def wait_ms(self) -> float:
        """How much longer the longest wait for the server was than the mean one: to the first token, or, where that is not
        known, to the end."""
        known = self.ttft[~np.isnan(self.ttft)]
        waits = known if len(known) else self.e2e
        return float(waits.max() - waits.mean()) if len(waits) else 0.0

    def described(self, values: Floats, these: Mask | None = None, *, waits: bool = False) -> Stats | None:
        """Statistics of one value a sample (NaN: undefined), of all or of `these`. `waits`: a wait for the server is part of
        the value, in ms."""
        order = self.order if these is None else self.order[these[self.order]]
        return describe(values[order], self.states, self.wait_ms if waits else 0.0)

    def pooled_described(self, name: str) -> Stats | None:
        """Statistics of a pooled metric, by its name without unit."""
        if name == ("itl" if self.itl_method == "direct" else "chunk_gap"):
            return self._all_gaps_described
        values, at_ns = self.pooled[name]
        zeros = self._distributed_gaps[1] if name == "itl_distributed" else None
        return describe_at(values, at_ns, self.states, zeros=zeros)

    def gaps_described(self, these: Mask) -> Stats | None:
        """Statistics of the gaps of these samples, pooled."""
        if these.all():
            return self._all_gaps_described
        mine = np.repeat(these, np.diff(self.gap_offsets))
        return describe_at(chosen(self.gaps, mine), chosen(self.gap_ns, mine), self.states)

    @cached_property
    def _all_gaps_described(self) -> Stats | None:
        return describe_at(self.gaps, self.gap_ns, self.states, self.ordered_gaps)

    @cached_property
    def _visible(self) -> Column:
        return self._nth_event(self.record.first_visible)

    def _nth_event(self, nth: Ints) -> Column:
        return _nth_event(self.record, self.rows, nth, self.streamed)

    @held_property
    def ttft(self) -> Floats:
        """Draft 5.1.3.1."""
        return between_ms(self._submit, self._visible)

    @property
    def ttft_any(self) -> Floats:
        """To the first text, white space included."""
        return between_ms(self._submit, self._nth_event(self.record.first_text))

    @property
    def ttfo(self) -> Floats:
        """To the first answer content."""
        return between_ms(self._submit, self._nth_event(self.record.first_answer))

    @property
    def ttfe(self) -> Floats:
        """To the first event of any class."""
        return between_ms(self._submit, self._nth_event(np.zeros_like(self.record.index)))

    @property
    def load_server(self) -> Floats:
        """Draft 5.1.4.2."""
        return _of_answers(self.record.server_load_ns, self.rows)

    @property
    def prefill_server(self) -> Floats:
        """Draft 5.1.4.2."""
        return _of_answers(self.record.server_prefill_ns, self.rows)

    @property
    def ttft_outside(self) -> Floats:
        """What neither explains; a load that the answer does not mention takes no time."""
        rest = self.ttft - np.nan_to_num(self.load_server) - self.prefill_server
        return np.where(rest >= 0, rest, np.nan)

    @property
    def second_token(self) -> Floats:
        """Each sample's first gap."""
        gaps = np.full(len(self), np.nan)
        some = np.diff(self.gap_offsets) > 0
        gaps[some] = self.gaps[self.gap_offsets[:-1][some]]
        return gaps

    @property
    def ttft_from_intended(self) -> Floats:
        """TTFT from the due instant."""
        return between_ms(self._intended, self._visible)

    @held_property
    def e2e(self) -> Floats:
        """To the last text event."""
        return between_ms(self._submit, self.last_text_ns)

    @property
    def e2e_from_intended(self) -> Floats:
        """The same from the due instant."""
        return between_ms(self._intended, self.last_text_ns)

    @property
    def stream_end(self) -> Floats:
        """To the end of the response."""
        return between_ms(self._submit, self._end)

    @held_property
    def tpot(self) -> Floats:
        """Time per output token."""
        if not self.streamed:
            return np.full(len(self), np.nan)
        paces = _tpot(self.first_text_ns, self.last_text_ns, self.span_tokens)
        return np.where(bent_pace(self.chunks), np.nan, paces)

    @held_property
    def span_tokens(self) -> Floats:
        """Output tokens from each sample's first text event to its last; NaN where it cannot be told."""
        return span_tokens(self.record, self.rows, self.counts.streamed, self.counts.source)

    @cached_property
    def chunks(self) -> Chunks:
        """What arrived together."""
        return Chunks(self._text_ns, self.text_offsets)

    @held_property
    def event_gaps(self) -> Floats:
        """Gaps between neighbouring text events of one answer, whatever they hold."""
        return gaps_ms(self._text_ns, self.text_offsets)

    @held_property
    def ordered_event_gaps(self) -> Floats:
        """The same in ascending order."""
        return ordered(self.event_gaps)

    @cached_property
    def _late_ms(self) -> tuple[float, float]:
        return late_ms(self.ordered_event_gaps)

    @held_property
    def read_late(self) -> Mask:
        """Which samples the client read so late that tokens may have been merged. Where the record says which reads held
        several packets, a late read of one packet is none of them: its stamp is the kernel's."""
        waits = self._longest_wait_ns
        if not self.record.waits_known:
            waits = np.maximum(self.record.lag_ns[self.rows], waits)
        late: Mask = waits > self._late_ms[0] * NS_PER_MS
        return late

    @property
    def _longest_wait_ns(self) -> Ints:
        """Of the text events of each sample that were read together with a later one."""
        longest = np.zeros(len(self), np.int64)
        if not self._text_wait_ns.any():
            return longest
        for rows, events in pieces(self.text_offsets):
            at, ends = self._text_ns[events], self.text_offsets[rows.start + 1 : rows.stop + 1] - events.start
            some = self.text_events[rows] > 0
            together = np.append(np.diff(at) == 0, False)
            together[ends[some] - 1] = False  # what follows is another answer's
            waits = np.where(together, self._text_wait_ns[events], 0)
            if some.any():
                starts = self.text_offsets[rows] - events.start
                longest[rows][some] = np.maximum.reduceat(waits, starts[some])
        return longest

    @cached_property
    def delivery(self) -> Delivery:
        """How the answers arrived."""
        to_text = between_ms(self._submit, self.first_text_ns)
        unnoticed = 0.0 if self.record.waits_known else self._late_ms[1]
        return delivery(self.chunks, self.counts.server_streamed, to_text, self.read_late, unnoticed)

    @cached_property
    def single_token_share(self) -> float | None:
        """Least share of text events that hold one token; None where it is not known, or nothing was streamed."""
        return single_token_share(self.text_events, self.carried) if self.streamed else None

    @held_property
    def carried(self) -> Floats:
        """The tokens that each sample's events carry; NaN where not known. That is the server's doing, so its own count says
        it, where there is one; but they are never fewer than its text has words."""
        known = self.counts.server_streamed
        if self.native:  # only the model's own tokenizer can stand in for the server's count
            known = np.where(np.isnan(known), self.counts.local_output, known)
        least: Floats = np.maximum(known, self.record.text_words[self.rows])
        return least

    @cached_property
    def itl_method(self) -> ItlMethod:
        """What the gaps of this run are."""
        return itl_method(self.single_token_share, self.delivery)

    @held_property
    def gaps(self) -> Floats:
        """Gaps of all samples, pooled, between tokens or between chunks by `itl_method`: sample i owns
        `gaps[gap_offsets[i]:gap_offsets[i + 1]]`."""
        return self.event_gaps if self.streamed and self.itl_method == "direct" else gaps_ms(*self._between)

    @held_property
    def ordered_ttft(self) -> Floats:
        """Known values of `ttft` in ascending order; of the next two likewise."""
        return ordered(self.ttft)

    @held_property
    def ordered_tpot(self) -> Floats:
        """See above."""
        return ordered(self.tpot)

    @held_property
    def ordered_e2e(self) -> Floats:
        """See above."""
        return ordered(self.e2e)

    @held_property
    def ordered_gaps(self) -> Floats:
        """`gaps` in ascending order."""
        return self.ordered_event_gaps if self.gaps is self.event_gaps else ordered(self.gaps)

    @held_property
    def gap_offsets(self) -> Ints:
        """Whose gaps are whose: see gaps."""
        return gap_offsets(self._between[1])

    @held_property
    def gap_ns(self) -> Ints:
        """When each of the gaps in `gaps` ended, on the run's clock."""
        return gap_ends(*self._between)

    @property
    def _between(self) -> tuple[Ints, Ints]:
        """Between which instants the gaps lie, and whose each is by their offsets."""
        if not self.streamed:
            return np.zeros(0, np.int64), np.zeros_like(self.text_offsets)
        if self.itl_method == "direct":
            return self._text_ns, self.text_offsets
        return self.chunks.arrived, self.chunks.chunk_offsets

    @property
    def gap_waits(self) -> tuple[Ints, Ints]:
        """How much earlier than its stamp each event or chunk may have come between which the gaps lie (ns); their offsets."""
        if self.itl_method == "direct":
            return self._text_wait_ns, self.text_offsets
        return chosen(self._text_wait_ns, self.chunks.begins), self.chunks.chunk_offsets

    @property
    def first_wait_ns(self) -> Ints:
        """How much earlier than its stamp each sample's first visible token may have come."""
        record = self.record
        at = _nth_place(record, self.rows, record.first_visible)
        return np.where(at >= 0, _pick(record.event_wait_ns, at), 0)

    @property
    def last_wait_ns(self) -> Ints:
        """The same of each sample's last text event."""
        return np.where(self.text_events > 0, _pick(self._text_wait_ns, self.text_offsets[1:] - 1), 0)

    @property
    def arrival_wait_ns(self) -> Ints:
        """The same of each of `arrival_ns`. An answer that came whole came with its last packet."""
        return joined(self._text_wait_ns, np.zeros(int((self.text_events == 0).sum()), np.int64))

    @property
    def itl(self) -> Floats:
        """The gaps, if they are gaps between tokens; else none."""
        return self.gaps if self.itl_method == "direct" else np.zeros(0)

    @property
    def chunk_gap(self) -> Floats:
        """The gaps, if they are times between chunks; else none (draft 4.6.3, option A)."""
        return np.zeros(0) if self.itl_method == "direct" else self.gaps

    @property
    def pooled(self) -> dict[str, tuple[Floats, Ints]]:
        """Of each pooled metric, by its name without unit: its values, and when each was observed (ns, the run's clock);
        of `itl_distributed` those that are no zeros by the server's count."""
        return {
            "itl": (self.itl, self.gap_ns),
            "chunk_gap": (self.chunk_gap, self.gap_ns),
            "itl_server": self._server_gaps,
            "itl_distributed": self._distributed_gaps[0],
        }

    @property
    def itl_server(self) -> Floats:
        """Gaps between tokens by the server's stamps (draft 4.6.3, option C)."""
        return self._server_gaps[0]

    @cached_property
    def _server_gaps(self) -> tuple[Floats, Ints]:
        """A stamp is an event's: only where an event is a token is it the token's."""
        share = self.single_token_share
        if share is None or share <= DIRECT_SHARE:
            return np.zeros(0), np.zeros(0, np.int64)
        stamps, offsets = _ragged_rows(self.record.emitted_ns, self.record.emitted_offsets, self.rows)
        gaps, sizes = gaps_ms(stamps, offsets), np.diff(gap_offsets(offsets))
        stamped = np.diff(offsets) == self.text_events
        stamped &= (
            counted(gaps < 0, gap_offsets(offsets)) == 0
        )  # stamps of a clock that was set back are none
        arrivals, arrival_offsets = _ragged_rows(self._text_ns, self.text_offsets, np.flatnonzero(stamped))
        kept = np.repeat(stamped, sizes)
        return chosen(gaps, kept), gap_ends(arrivals, arrival_offsets)

    @cached_property
    def _distributed_gaps(self) -> tuple[tuple[Floats, Ints], Zeros]:
        """An answer of m tokens in c chunks has m - 1 gaps: the c - 1 between its chunks, and zeros (draft 4.6.3, option B)."""
        if not self.streamed or self.itl_method == "direct":
            none = np.zeros(0, np.int64)
            return (np.zeros(0), none), Zeros(none, none)
        chunks = self.chunks
        tokens = span_tokens(
            self.record, self.rows, self.counts.server_streamed, np.zeros(len(self), np.int64)
        )
        zeros = np.nan_to_num(tokens).astype(np.int64) - chunks.of_sample
        known = (zeros >= 0) & (chunks.of_sample > 0)
        of_known = np.repeat(known, np.diff(self.gap_offsets))
        gaps, at = chosen(self.gaps, of_known), chosen(self.gap_ns, of_known)
        some = known & (zeros > 0)
        return (gaps, at), Zeros(self.first_text_ns[some], zeros[some])

    @cached_property
    def _spreads(self) -> tuple[Floats, Floats]:
        jitter, longest = spread(self.gaps, self.gap_offsets)
        return held(jitter), held(longest)

    @property
    def jitter(self) -> Floats:
        """Standard deviation of a sample's gaps."""
        return self._spreads[0]

    @property
    def max_pause(self) -> Floats:
        """A sample's largest gap."""
        return self._spreads[1]

    @property
    def request_output_tok_s(self) -> Floats:
        """Output tokens over request latency, per second."""
        return divide(self.counts.output * MS_PER_S, self.e2e)

    @property
    def input_tokens(self) -> Floats:
        """Prompt tokens."""
        return self.counts.input

    @property
    def output_tokens(self) -> Floats:
        """Output tokens."""
        return self.counts.output

    @property
    def connect(self) -> Floats:
        """TCP handshake, of the requests that opened a connection."""
        return between_ms(self.record.t_connect, self.record.t_connected)[self.rows]

    @property
    def tls(self) -> Floats:
        """TLS handshake, likewise."""
        return between_ms(self.record.t_connected, self.record.t_tls)[self.rows]

    @held_property
    def arrival_ns(self) -> Ints:
        """Arrivals of output tokens: a request's n tokens spread evenly over its text events, or all at its end when it was not
        streamed."""
        return joined(self._text_ns, self._end[self.text_events == 0])

    @held_property
    def arrival_tokens(self) -> Floats:
        """How many tokens arrived at each of `arrival_ns`."""
        return _arrival_tokens(self.text_offsets, self.counts.output)


def values_of(samples: Samples, name: str) -> Floats:
    """The values of a metric of metrics/catalogue.py, by its name; NaN where it is undefined."""
    values: Floats = getattr(samples, stem(name))
    return values


def _text_events(record: Record, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Arrivals of the text events of `rows`, their offsets, and how much earlier each may have come."""
    wanted = np.zeros(len(record), np.bool_)
    wanted[rows] = True
    keep = record.event_is_text
    keep &= np.repeat(wanted, np.diff(record.event_offsets))
    counts = counted(keep, record.event_offsets)[rows]
    offsets = held(np.concatenate(([0], np.cumsum(counts))))
    return chosen(record.event_ns, keep), offsets, chosen(record.event_wait_ns, keep)


def _ragged_rows(values: Ints, offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The values of these rows, in order, and their offsets."""
    wanted = np.zeros(len(offsets) - 1, np.bool_)
    wanted[rows] = True
    sizes = np.diff(offsets)
    return chosen(values, np.repeat(wanted, sizes)), np.concatenate(([0], np.cumsum(sizes[rows])))


def _pick(values: Ints, at: Ints) -> Ints:
    """`values[at]`, or 0 where `at` lies outside: the caller masks those."""
    inside = (at >= 0) & (at < len(values))
    return values[np.where(inside, at, 0)] * inside if len(values) else np.zeros_like(at)


def _nth_event(record: Record, rows: Ints, nth: Ints, streamed: bool) -> Column:
    """Arrival of each row's event number `nth`; null where it has no such event (-1) or was not streamed."""
    at = np.where(streamed, _nth_place(record, rows, nth), -1)
    return Column(_pick(record.event_ns, at), at >= 0)


def _nth_place(record: Record, rows: Ints, nth: Ints) -> Ints:
    """Where each row's event number `nth` is among all; -1 where it has no such event."""
    at, starts = nth[rows], record.event_offsets[:-1][rows]
    valid = (at >= 0) & (at < np.diff(record.event_offsets)[rows])
    return np.where(valid, starts + at, -1)


def _of_answers(durations: Column, rows: Ints) -> Floats:
    """What answers say of themselves, in ms; NaN where one does not."""
    return np.where(durations.valid[rows], durations.values[rows] / NS_PER_MS, np.nan)


def _tpot(first: Ints, last: Ints, tokens: Floats) -> Floats:
    """(e_last - e_first) / (m - 1) in ms. Text that came all at once has no duration: undefined, not zero."""
    return np.where(last > first, divide((last - first) / NS_PER_MS, np.maximum(tokens - 1.0, 0.0)), np.nan)


def _arrival_tokens(offsets: Ints, tokens: Floats) -> Floats:
    """How many output tokens arrived at each event, and with each whole answer: token sums are kept."""
    events = np.diff(offsets)
    each = divide(tokens, events.astype(np.float64))
    shares = (np.repeat(each[rows], events[rows]) for rows, _ in pieces(offsets))
    return in_one(np.float64, chain(shares, [tokens[events == 0]]))
