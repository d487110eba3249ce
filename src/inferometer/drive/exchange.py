"""One request's life: what was sent when, what came back when, and how it ended.

A channel (channel.py) calls `head`, `data` and `end` as the response arrives, or `event` or `events` where its protocol frames
messages itself, or `fail`. No protocol is known here.

The body of a response is read in one of four ways, decided when its head is complete:

| head                                             | mode   | read as                                          |
| ------------------------------------------------ | ------ | ------------------------------------------------ |
| 2xx, the media type of the dialect's streams     | STREAM | events, as they come                             |
| 2xx, any other JSON type                         | WHOLE  | one JSON document, at the end                    |
| 2xx, anything else                               | SNIFF  | STREAM if it begins like one, else `not_json`    |
| 2xx of gRPC, which says how it ended in trailers | STREAM | messages; any other media type is SNIFF          |
| 2xx, compressed, which no request asks for       | ERROR  | nothing: `not_json`                              |
| not 2xx                                          | ERROR  | the first bytes, for the record's detail         |

Each is bounded as a whole (answer_limits.py), and nothing that a server sends raises out of here but what a channel expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inferometer.drive import grpc_outcomes
from inferometer.drive.answer_limits import LOOK_BYTES, UNLESS_SET, AnswerLimits, OverLimit, check_values
from inferometer.drive.unread import Unread
from inferometer.engines.answer import DETAIL_LIMIT, Answer, error_text, names_a_policy
from inferometer.engines.dialect import Dialect, read_named
from inferometer.engines.interface import Framing
from inferometer.journal.schema import EventClass, Outcome
from inferometer.protocol.event_decoder import EventDecoder, NamedEvent
from inferometer.protocol.grpc import OK_OF_GRPC, GrpcDecoder, speaks_grpc
from inferometer.protocol.ndjson import NdjsonDecoder
from inferometer.protocol.sse import SseDecoder

_HEAD, _STREAM, _WHOLE, _SNIFF, _ERROR = range(5)
_COMMENT = int(EventClass.COMMENT)
_OK = Outcome.OK.value  # `value` is computed anew each time

EARLY_NS = 50_000
"""What a clock that is slewed by 200 ppm goes astray between two looks at it, four a second (clock.py)."""
EARLY = "bytes of a response before its request was sent"
EVENT_LIMIT = 1 << 20
"""Bytes of one streamed event: a hundred times the largest honest one."""
ERROR_LIMIT = 1 << 14
"""Bytes kept of an error body; the rest is read and dropped."""
COMPRESSED = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})
"""Content codings in which no event can be read. Others (`identity`, and `utf-8` by mistake) change nothing."""
SNIFFED = 6
"""Bytes at the beginning of a body of a foreign type that show whether it is a stream after all."""

DECODERS: dict[Framing, type[EventDecoder]] = {
    Framing.SSE: SseDecoder,
    Framing.NDJSON: NdjsonDecoder,
    Framing.GRPC: GrpcDecoder,
    Framing.MESSAGES: NdjsonDecoder,  # where there is no WebSocket, as in a simulation
}


class Exchange:
    """One request and its response, in a dialect. Times are monotonic ns; 0 means: did not happen.

    Of a request that is sent again, all times up to `t_submit` stay those of the first attempt: the wait for the second is part
    of its latency. `sent_whole`: the socket has accepted the last byte of the attempt that is under way.
    `merged`: of each read that held several events and more than one packet, the index of the first of them, and for how long
    that may have waited before the read's stamp (ns; unread.py); below 0 where the read's last event may have waited as well.
    `submit_ns`: how long the call took at whose beginning
    `t_submit` was read; 0 on the loopback interface. `unread`: of the transport that it was sent on.

    `request_head` is as the channel's kind prepared it, the same for a class of requests; `request_body` is this one's own, as
    is `own_field`, name and value of one more header line.
    `body_crc`: CRC-32 of the body that was handed over, where it was put together from answers; -1: not taken.
    `tokens`: as many as were requested, at most; 0: not known, and then no stream overruns them.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_decoder",
        "_granted",
        "_last",
        "_left",
        "_limits",
        "_mode",
        "_over_since",
        "_read_event",
        "answer",
        "attempts",
        "body_crc",
        "cycle",
        "deadline",
        "detail",
        "dialect",
        "index",
        "lag_ns",
        "merged",
        "outcome",
        "own_field",
        "request_body",
        "request_head",
        "retry_after_s",
        "sent_whole",
        "status",
        "submit_ns",
        "t_connect",
        "t_connected",
        "t_end",
        "t_first_byte",
        "t_intended",
        "t_send",
        "t_submit",
        "t_taken",
        "t_tls",
        "tokens",
        "unread",
    )

    def __init__(
        self,
        index: int,
        cycle: int,
        t_intended: int,
        request_head: bytes,
        request_body: bytes,
        deadline: int,
        dialect: Dialect,
        *,
        tokens: int = 0,
        limits: AnswerLimits = UNLESS_SET,
        own_field: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.dialect = dialect
        self.own_field = own_field
        self.tokens = tokens
        self._limits = limits
        self._read_event = dialect.read_event
        self.index = index
        self.cycle = cycle
        self.t_intended = t_intended
        self.request_head = request_head
        self.request_body = request_body
        self.deadline = deadline
        self.t_connect = self.t_connected = self.t_tls = 0
        self.t_taken = self.t_send = self.t_submit = self.submit_ns = self.t_end = 0
        self.lag_ns = 0
        self.body_crc = -1
        self.attempts = 0
        self.outcome = ""
        self.detail: str | None = None
        self.restart()

    def restart(self) -> None:
        """Forget the response, not the first attempt's times: the request is to be sent again on another connection."""
        self.t_first_byte = 0
        self.sent_whole = False
        self.merged: list[int] = []
        self.unread: Unread | None = None
        self.status = 0
        self.retry_after_s: float | None = None
        self.attempts += 1
        self.answer = Answer()
        if self.dialect.asked is not None:
            self.answer.asked = self.dialect.asked(self.request_body)
        self._mode = _HEAD
        self._decoder: EventDecoder | None = None
        self._last = -1  # its LAST, asked for with each read
        self._body: list[bytes] = []
        self._body_bytes = 0  # of what is no stream
        # Of a stream: the bytes up to the next look at its limits, which are counted down, and those up to there in all.
        self._left, self._granted = -1, 0
        self._over_since = 0

    def head(self, status: int, headers: Mapping[bytes, bytes]) -> None:
        """The head of the response: its status, and the first value of each header by lower-case name."""
        self.status = status
        grpc = self.dialect.interface.grpc
        if not 200 <= status < 300 or (grpc and status != OK_OF_GRPC):
            self._mode = _ERROR
            self.retry_after_s = _seconds(headers.get(b"retry-after", b""))
            return
        coding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()
        if coding in COMPRESSED:
            self._mode = _ERROR
            self.fail(
                Outcome.NOT_JSON, f"the body is compressed ({coding}), which the request did not ask for"
            )
            return
        kind = headers.get(b"content-type", b"").decode("latin-1").lower()
        decoder = DECODERS[self.dialect.interface.framing]
        if speaks_grpc(kind) if grpc else kind.startswith(decoder.CONTENT_TYPES):
            self._begin(decoder)
        else:
            self._mode = _WHOLE if "json" in kind and not grpc else _SNIFF

    def _begin(self, decoder: type[EventDecoder]) -> None:
        """The body is a stream."""
        self._mode, self._left, self._decoder = _STREAM, 0, decoder(EVENT_LIMIT)
        self._last = decoder.LAST

    def data(self, data: bytes, at: int) -> None:
        """More of the body, received at `at`. Raises EventTooLarge or OverLimit, and what a decoder may raise."""
        self._left = left = self._left - len(data)
        if left < 0:  # also of whatever is no stream: one question a read, not two
            if self._mode != _STREAM:
                self._collect(data, at)
                return
            self._look()
        decoder = self._decoder
        assert decoder is not None
        answer, read_event = self.answer, self._read_event
        payloads = decoder.feed(data)
        if payloads and (len(payloads) > 1 or data[-1] != self._last):
            self._note_merged(len(payloads), at, behind=decoder.unfinished)
        for payload in payloads:
            if payload.__class__ is bytes:
                read_event(answer, payload, at)
            elif payload is None:
                answer.mark(_COMMENT, at)
            elif isinstance(payload, NamedEvent):
                read_named(self.dialect, answer, payload, payload.name.decode("utf-8", "replace"), at)

    def data_among(self, data: bytes, at: int) -> None:
        """As `data`, of a read that brought bodies of several exchanges: the last of its events may have waited too."""
        first, noted = len(self.answer.event_ns), len(self.merged)
        self.data(data, at)
        if len(self.merged) > noted:
            self.merged[-1] = -abs(self.merged[-1])
        elif len(self.answer.event_ns) > first:
            self._note_merged(1, at, behind=True, first=first)

    def _note_merged(self, events: int, at: int, *, behind: bool, first: int | None = None) -> None:
        """So many events of one read, from `first` or from the next one on, may have waited for its stamp, the last of them
        only if more came behind it."""
        if (events > 1 or behind) and self.unread is not None and (waited := self.unread.waited(at)):
            self.merged += (
                len(self.answer.event_ns) if first is None else first,
                -waited if behind else waited,
            )

    def event(self, payload: bytes, at: int) -> None:
        """One event that the protocol itself framed, received at `at`: no head and no body is needed. Raises OverLimit."""
        self.events((payload,), at)

    def events(self, payloads: Sequence[bytes], at: int, *, behind: bool = False) -> bool:
        """As `event`, of all that one read completed; whether some followed the answer's end. `behind`: more followed in that
        read, so that the last of them may have waited too."""
        if self._mode != _STREAM:
            self._mode, self._left = _STREAM, 0
        answer, read_event = self.answer, self._read_event
        if behind or len(payloads) > 1:
            self._note_merged(len(payloads), at, behind=behind)
        ended = False
        for payload in payloads:
            ended = answer.done
            self._left -= len(payload)
            if self._left < 0:
                self._look()
            read_event(answer, payload, at)
        return ended

    def _look(self) -> None:
        """Hold the stream to its limits, and say when to look again. Raises OverLimit."""
        limits = self._limits
        taken = self._granted - self._left
        if taken > limits.bytes:
            raise OverLimit(Outcome.TOO_LARGE, f"a stream of more than {limits.bytes} bytes (--max-answer)")
        if len(self.answer.event_ns) > limits.events:
            words = f"a stream of more than {limits.events} events (--max-events)"
            raise OverLimit(Outcome.TOO_MANY_EVENTS, words)
        self._left = min(LOOK_BYTES, limits.bytes - taken)
        self._granted = taken + self._left

    def overruns(self, now: int) -> bool:
        """Whether the stream has gone on for too long since it had more events with text than tokens were requested; asked a
        few times a second."""
        if not 0 < self.tokens < len(self.answer.texts):
            return False
        self._over_since = self._over_since or now
        return now - self._over_since >= self._limits.overrun_ns

    def outlived(self, now: int) -> tuple[Outcome, str] | None:
        """Whether it is to be given up now, and why."""
        if self.deadline <= now:
            return Outcome.TIMEOUT, "no complete response in time"
        if self.overruns(now):
            return Outcome.OVERRUN, f"went on behind the {self.tokens} tokens requested (--max-overrun)"
        return None

    def trailers(self, fields: Mapping[bytes, bytes] | None) -> None:
        """What stood behind the body, before `end`; None: nothing. A gRPC response says there how it ended."""
        if isinstance(self._decoder, GrpcDecoder):
            failed = grpc_outcomes.failure(fields, unfinished=self._decoder.unfinished)
            if failed is not None:
                self.fail(*failed)

    def end(self, at: int) -> None:
        """The response is complete. Never raises."""
        self.t_end = at
        try:
            self.conclude()
        except OverLimit as cause:
            self.fail(cause.outcome, str(cause))
        except Exception as cause:
            self.fail(Outcome.BAD_EVENT, f"{type(cause).__name__}: {cause}")

    def _collect(self, data: bytes, at: int) -> None:
        if self._mode == _SNIFF and self._body_bytes < SNIFFED:
            decoder = DECODERS[self.dialect.interface.framing]
            start = b"".join(self._body) + data
            if start.startswith(decoder.STARTS):
                self._body.clear()
                self._begin(decoder)
                self.data(start, at)
                return
        # An error or a foreign page is only quoted from; a whole response must be whole.
        if self._mode == _WHOLE:
            self._body.append(data)
        elif self._body_bytes < ERROR_LIMIT:
            self._body.append(data[:ERROR_LIMIT])
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.bytes:
            words = f"a body of more than {self._limits.bytes} bytes (--max-answer)"
            raise OverLimit(Outcome.TOO_LARGE, words)

    def conclude(self) -> None:
        """The response is complete: name its outcome."""
        if self._mode == _ERROR:
            body = b"".join(self._body)
            outcome = Outcome.REFUSED if names_a_policy(body) else outcome_of_status(self.status)
            self.fail(outcome, error_text(body) or f"status {self.status}")
            return
        if self._mode == _SNIFF:
            self.fail(Outcome.NOT_JSON, b"".join(self._body)[:DETAIL_LIMIT].decode("utf-8", "replace"))
            return
        if self._decoder is not None:
            for payload in self._decoder.end():
                self._read_event(self.answer, payload, self.t_end)
        elif self._mode == _WHOLE:
            whole = b"".join(self._body)
            check_values(whole)
            self.dialect.read_whole(self.answer, whole, self.t_end)
        if self._mode == _STREAM:
            self._look()
        answer = self.answer
        if answer.error is not None:
            self.fail(Outcome.ERROR_EVENT, answer.error)
        elif answer.malformed is not None:
            self.fail(Outcome.BAD_EVENT, answer.malformed)
        elif answer.refused:
            self.fail(Outcome.REFUSED, answer.finish_reason or "refusal")
        elif not answer.done and answer.finish_reason is None:
            self.fail(Outcome.TRUNCATED, f"neither a finish reason nor {self.dialect.end}")
        elif answer.first_visible < 0:
            self.fail(Outcome.EMPTY, "no token with visible text")
        elif not self.outcome:
            self.outcome = _OK

    def settle(self) -> None:
        """No transport has anything more to do with it. A success whose text came before the last byte of the request had gone
        out answers something else; an error may well come so early."""
        if self.outcome != _OK:
            return
        answer = self.answer
        if not self.sent_whole or self.t_submit - answer.event_ns[answer.first_text] > EARLY_NS:
            self.outcome, self.detail = Outcome.BAD_HTTP.value, EARLY

    def refused(self, status: int, headers: Mapping[bytes, bytes], detail: str) -> None:
        """The server declined by HTTP before the request could be sent: its outcome is that of the same response to it."""
        self.head(status, headers)
        self.fail(outcome_of_status(status), detail)

    def fail(self, outcome: Outcome, detail: str) -> None:
        """End with this class; the first cause stands."""
        if not self.outcome:
            self.outcome = outcome.value
            self.detail = detail[:DETAIL_LIMIT]


def outcome_of_status(status: int) -> Outcome:
    """The outcome of a response whose HTTP status is not 2xx."""
    if status == 429:
        return Outcome.HTTP_429
    if 400 <= status < 500:
        return Outcome.HTTP_4XX
    if 500 <= status < 600:
        return Outcome.HTTP_5XX
    return Outcome.HTTP_OTHER


def _seconds(header: bytes) -> float | None:
    """Retry-After in seconds; its date form is not worth a clock."""
    try:
        value = float(header)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
