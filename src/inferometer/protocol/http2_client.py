"""HTTP/2 on the client's side, sans-IO: many requests on one connection (RFC 9113).

h2 keeps the state. The body of an answer bypasses it:

| frame                                                           | goes to                                                    |
| --------------------------------------------------------------- | ---------------------------------------------------------- |
| DATA without padding, on a stream whose final head has come and | its stream at once, as much as is there; h2 gets an empty  |
| declares no Content-Length                                      | DATA frame in its place where it ends the stream           |
| DATA on a stream that we have reset                             | nobody: it was on its way (5.1)                            |
| DATA that contradicts the head, or comes before it              | nobody: that stream is reset, the others go on (8.1.1)     |
| HEADERS and CONTINUATION                                        | decoded here, with h2's table; h2 gets a head that says    |
|                                                                 | 200, and of one that is malformed nothing: that stream is  |
|                                                                 | reset, the others go on (8.1.1)                            |
| of an extension (ALTSVC, ORIGIN, ...)                           | nobody (5.5)                                               |
| WINDOW_UPDATE of nothing, on a stream                           | nobody: that stream is reset, the others go on (6.9)       |
| GOAWAY                                                          | `closing`, and the streams that it says are not begun      |
| any other                                                       | h2, whole                                                  |

Windows. Ours are as large as the protocol allows, and given back when an eighth of one is used up: no server waits for us. What
bypasses h2 is given back by frames of our own, the rest by h2's. The peer's bound our bodies: what does not fit waits for
WINDOW_UPDATE or SETTINGS.

What ends one stream or all is a `Failed` each, and nothing is raised:

| `why`       | because                                                                                                   |
| ----------- | --------------------------------------------------------------------------------------------------------- |
| `unbegun`   | the peer says that it has not begun this request: GOAWAY with an earlier stream, RST_STREAM REFUSED_STREAM |
| `reset`     | the peer reset it, for another reason                                                                      |
| `malformed` | its frames break the protocol                                                                             |
| `too_large` | they are over a limit: of a header list, of frames that bring nothing                                     |
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from h2 import events as h2_events
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import HPACKError, OversizedHeaderListError

from inferometer.protocol.http2_connection import Connection
from inferometer.protocol.http2_events import End, Event, Failed, Head, Stream, Why
from inferometer.protocol.http2_fields import Fields, body_length, read_response, read_trailers
from inferometer.protocol.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEAD_BYTES,
    HEADERS,
    MOST_BLOCK,
    MOST_FRAME,
    MOST_HEADERS,
    MOST_WINDOW,
    NO_INCREMENT,
    PADDED,
    RST_STREAM,
    SETTINGS,
    STREAM_BITS,
    UNREADABLE,
    WINDOW_UPDATE,
    Patience,
    PeerFault,
    fragment_of,
    frame,
    goaway,
    name_of,
    read_goaway,
    read_head,
    window_update,
    words_of,
)
from inferometer.protocol.http2_request_heads import RequestHeads

GIVE_BACK = 1 << 28
"""Bytes taken in after which windows are opened again: an eighth of one."""
DROPPED = 1024
"""Streams that were reset and of which frames may still be on their way. Those of an older one are h2's to refuse."""
LAST_STREAM = MOST_WINDOW - 2
_FIRST_FRAME = 267
"""Bytes of a SETTINGS frame with every setting that there is, and some: the first frame of a server."""
_OK = b"\x88"  # `:status: 200` of the static table, which changes no other
_NAMES = {DATA: "DATA", HEADERS: "HEADERS", RST_STREAM: "RST_STREAM", WINDOW_UPDATE: "WINDOW_UPDATE"}


class Http2Client:
    """One connection, with `most` streams at once at most. `give_back`: bytes after which windows are opened again.

    `outgoing`: bytes to be sent, the owner of the request they belong to, and whether it ends with them. `streams`: by number.
    `fault`: why the connection is of no more use, if that is the peer's doing. `leave`: the GOAWAY that has come, in words.
    `closing`: no further request. `changed`: `places` or `closing` may be others than before. `tail`: the stream with whose
    body the bytes ended that `receive` was given last; None: with something else, before which each body may have come.
    """

    def __init__(self, most: int, give_back: int = GIVE_BACK) -> None:
        self.outgoing: list[tuple[bytes, Any, bool]] = []
        self.streams: dict[int, Stream] = {}
        self.fault = self.leave = ""
        self.closing = self.changed = False
        self.tail: Stream | None = None
        self._most, self._return_at = most, give_back
        self._greeted = False
        self._highest = 0
        self._events: list[Event] = []
        self._held = bytearray()  # of a frame that is not whole
        self._wanted = 0  # bytes that it takes to go on with what is held
        self._current: Stream | None = None  # whose frame is being handed on, with `_left` bytes to come
        self._left = self._ends = 0
        self._block = self._block_bytes = 0  # the stream of a block of headers, and how much there is of it
        self._block_ends = False  # its stream ends with it
        self._fragments: list[bytes] = []
        self._blocked: dict[int, Stream] = {}  # streams whose body waits for a window
        self._dropped: dict[int, None] = {}
        self._taken = 0
        self._asked = False  # h2 may have something to send
        self._patience = Patience()
        # What we send was checked when it was prepared; what comes is checked here, where a bad head costs one stream.
        self._h2 = Connection(
            H2Configuration(
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
            )
        )
        self._heads = RequestHeads(self._h2)

    @property
    def places(self) -> int:
        """How many more requests may be sent now: none before the peer has said how many it takes."""
        if not self._greeted or self.closing or self._highest >= LAST_STREAM:
            return 0
        return max(0, min(self._most, self._h2.remote_settings.max_concurrent_streams) - len(self.streams))

    def open(self) -> None:
        """The connection stands: say what we take."""
        connection = self._h2
        connection.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: MOST_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: MOST_HEADERS,
            },
        )
        del connection.local_settings[SettingCodes.ENABLE_CONNECT_PROTOCOL]  # a server's to say (RFC 8441)
        connection.initiate_connection()
        connection.increment_flow_control_window(MOST_WINDOW - connection.inbound_flow_control_window)
        self._flush()

    def request(
        self, fields: Fields, body: bytes, owner: Any, own: tuple[bytes, bytes] | None = None
    ) -> Stream:
        """Send a request with this body and its length, only while there are places: what the windows admit, the rest as they
        grow. `own`: a field that others of the same fields do not have."""
        self._flush()
        number = self._highest = self._highest + 2 if self._highest else 1
        stream = self.streams[number] = Stream(number, owner, body)
        data, whole = self._heads.send(number, fields, body, own)
        if whole:
            stream.rest = stream.rest[:0]
        self._send_body(stream, data)
        return stream

    def cancel(self, stream: Stream) -> None:
        """Want no more of this answer. The others go on."""
        if self.streams.get(stream.number) is stream:
            self._reset(stream, ErrorCodes.CANCEL)
            self._flush()

    def close(self) -> None:
        """Free everything: h2's connection refers to methods of its own, and no circle may be left."""
        self.closing = True
        self.streams.clear()
        self._blocked.clear()
        self._events = []
        self._current = None
        vars(self._h2).clear()

    # What comes.

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes as they came: what they mean, in order, the body of each stream once. Never raises."""
        events = self._events = []
        if self.fault:
            return events
        try:
            self._cut(data)
        except PeerFault as cause:
            self._flush()
            self.outgoing.append((goaway(0, cause.code), None, False))
            self._break(f"{cause} ({cause.code.name})", "too_large" if cause.too_large else "malformed")
        except ProtocolError as cause:
            self._break(words_of(cause), "malformed")
        except Exception as cause:
            self._break(f"{type(cause).__name__}: {cause}", "malformed")
        if self._patience.spent and events:
            self._patience.gain(sum(len(one.parts) if one.__class__ is Stream else 1 for one in events))
        if self._taken >= self._return_at:
            self._give_back()
        if self._asked:
            self._asked = False
            self._flush()
        return events

    def sole(self, data: bytes) -> Stream | None:
        """The stream of whose body these bytes are one whole frame, and nothing else, in the middle of it; the body is
        `data[HEAD_BYTES:]`, and not handed on otherwise. None: they are for `receive`. Most reads of a token are such a frame.
        """
        size = len(data) - HEAD_BYTES
        if size <= 0 or self._held or self._left or self._block or self._patience.spent or self.fault:
            return None
        high, low, kind, flags, number = read_head(data)
        if kind or flags or high << 16 | low != size or size > MOST_FRAME:
            return None
        stream = self.streams.get(number)
        if stream is None or not stream.plain or self._taken >= self._return_at:
            return None
        self._taken += size
        stream.taken += size
        self.tail = stream
        return stream

    def _cut(self, data: bytes) -> None:
        """Cut bytes into frames. The loop is hot: every DATA frame of a token passes through it, unless it is alone."""
        if self._held:
            self._held += data
            if len(self._held) < self._wanted:
                return
            data = bytes(self._held)
            self._held.clear()
        at, size = self._go_on(data) if self._left else 0, len(data)
        streams, events = self.streams, self._events
        while size - at >= HEAD_BYTES:
            high, low, kind, flags, number = read_head(data, at)
            length = high << 16 | low
            if length > MOST_FRAME or not self._greeted:
                self._check_first(length, kind, flags, data[at:])
            number &= STREAM_BITS
            start = at + HEAD_BYTES
            at = end = start + length
            if not kind and not flags & PADDED and not self._block:
                stream = streams.get(number)
                if stream is not None and stream.plain:
                    if not flags and length and end <= size:  # as `_hand_on`, in a tenth of the time
                        self._taken += length
                        stream.taken += length
                        parts = stream.parts
                        if not parts:
                            events.append(stream)
                        parts.append(data[start:end])
                        self.tail = stream
                        continue
                    if end > size:
                        at = size
                        self._left, self._ends, self._current = end - size, flags & END_STREAM, stream
                    self._hand_on(stream, data[start:at])
                    if at == end and flags & END_STREAM:
                        self._ended(stream)
                    continue
            if end > size:
                at = start - HEAD_BYTES
                self._wanted = HEAD_BYTES + length
                break
            self._whole(kind, flags, number, data[start - HEAD_BYTES : end])
        else:
            self._wanted = HEAD_BYTES
        if at < size:
            self._held += data[at:]
            self.tail = None

    def _check_first(self, length: int, kind: int, flags: int, data: bytes) -> None:
        """The first frame is SETTINGS (3.4); what is something else is often no HTTP/2 at all."""
        if not self._greeted and (kind != SETTINGS or flags & ACK or length > _FIRST_FRAME):
            words = f"the server does not speak HTTP/2: what it sends begins {data[:HEAD_BYTES]!r}"
            raise PeerFault(ErrorCodes.PROTOCOL_ERROR, words)
        if length > MOST_FRAME:
            raise PeerFault(
                ErrorCodes.FRAME_SIZE_ERROR, f"a frame of {length} bytes, where {MOST_FRAME} are allowed"
            )

    def _hand_on(self, stream: Stream, piece: bytes) -> None:
        """Some of a body. An empty frame brings nothing."""
        self.tail = stream if piece else None
        if not piece:
            if not self._left and not self._ends:
                self._patience.spend()
            return
        self._taken += len(piece)
        stream.taken += len(piece)
        if not stream.parts:
            self._events.append(stream)
        stream.parts.append(piece)

    def _go_on(self, data: bytes) -> int:
        """The rest of a frame that is handed on as it comes, or more of it; how many bytes that is."""
        stream = self._current
        assert stream is not None
        piece = data[: self._left]
        self._left -= len(piece)
        if self.streams.get(stream.number) is not stream:  # reset meanwhile
            self._taken += len(piece)
        else:
            self._hand_on(stream, piece)
            if not self._left and self._ends:
                self._ended(stream)
        if not self._left:
            self._current = None
            self._ends = 0
        return len(piece)

    def _ended(self, stream: Stream) -> None:
        """The last frame of a body has bypassed h2, which has to know that the stream has ended."""
        self._tell_h2(DATA, True, stream.number)
        self._finish(stream)

    def _whole(self, kind: int, flags: int, number: int, data: bytes) -> None:
        """A frame that does not bypass h2, or is not for it."""
        self.tail = None
        if not self._block:
            if kind == GOAWAY:
                self._patience.spend()
                self._goaway(*read_goaway(number, data[HEAD_BYTES:]))
                return
            if number and kind in _NAMES and (not number & 1 or number > self._highest):
                words = f"{_NAMES[kind]} on stream {number}, which nobody has opened"
                raise PeerFault(ErrorCodes.PROTOCOL_ERROR, words)
            if kind == DATA and self._withheld(flags, number, data[HEAD_BYTES:]):
                return
        if kind in (HEADERS, CONTINUATION) or self._block:
            self._part_of_block(kind, flags, number, data)
            return
        if kind > CONTINUATION:  # of an extension, whatever is in it (5.5)
            self._patience.spend()
            return
        if kind == WINDOW_UPDATE and number and data[HEAD_BYTES:] in NO_INCREMENT:
            self._patience.spend()
            if (stream := self.streams.get(number)) is not None:  # one stream's fault (6.9)
                self._refuse(stream, "a WINDOW_UPDATE of nothing")
            return
        self._asked = True
        found = self._h2.receive_data(data)
        if kind != DATA or not found:
            self._patience.spend()
        for event in found:
            self._on(event)

    def _part_of_block(self, kind: int, flags: int, number: int, data: bytes) -> None:
        """HEADERS and CONTINUATION. Nothing may come between the parts of a block (6.10)."""
        if kind != (CONTINUATION if self._block else HEADERS) or not number or self._block not in (0, number):
            words = (
                "a header block that another frame interrupts"
                if self._block
                else "a header block that none begins"
            )
            raise PeerFault(ErrorCodes.PROTOCOL_ERROR, words)
        self._block_bytes += len(data)
        if self._block_bytes > MOST_BLOCK:
            words = f"a header block of more than {MOST_BLOCK} bytes"
            raise PeerFault(ErrorCodes.ENHANCE_YOUR_CALM, words, too_large=True)
        payload = data[HEAD_BYTES:]
        if kind == HEADERS:
            self._block, self._block_ends = number, bool(flags & END_STREAM)
            payload = fragment_of(flags, payload)
        self._fragments.append(payload)
        if flags & END_HEADERS:
            block, self._fragments = b"".join(self._fragments), []
            self._block = self._block_bytes = 0
            self._headers(number, self._decoded(block), ends=self._block_ends)

    def _decoded(self, block: bytes) -> Fields:
        """The fields of a whole block. Whoever they are for, the table takes part in it (4.3)."""
        try:
            return [(bytes(name), bytes(value)) for name, value in self._h2.decoder.decode(block, raw=True)]
        except OversizedHeaderListError:
            words = f"a header list of more than {MOST_HEADERS} bytes"
            raise PeerFault(ErrorCodes.ENHANCE_YOUR_CALM, words, too_large=True) from None
        except (HPACKError, IndexError, TypeError, ValueError):
            raise PeerFault(ErrorCodes.COMPRESSION_ERROR, UNREADABLE) from None

    def _headers(self, number: int, fields: Fields, *, ends: bool) -> None:
        """An interim head, the final one, or trailers. What is malformed costs its stream (8.1.1)."""
        stream = self.streams.get(number)
        if stream is None:
            self._patience.spend()
            if number not in self._dropped:
                self._tell_h2(HEADERS, ends, number)  # which knows how that stream ended
            return
        try:
            if not stream.answered:
                self._head(stream, fields, ends=ends)
            elif not ends:
                raise ValueError("a head behind the head")
            else:
                stream.trailers = read_trailers(fields)
                self._tell_h2(DATA, ends, number)
                self._finish(stream)
        except ValueError as cause:
            self._refuse(stream, str(cause))

    def _tell_h2(self, kind: int, ends: bool, number: int) -> None:
        """The same as has come, without what was checked here: h2 has to know what a stream's state is."""
        self._asked = True
        flags = (END_HEADERS if kind == HEADERS else 0) | (END_STREAM if ends else 0)
        self._h2.receive_data(frame(kind, flags, number, _OK if kind == HEADERS else b""))

    def _withheld(self, flags: int, number: int, payload: bytes) -> bool:
        """Whether a DATA frame is none of h2's business: it would end the connection for what is one stream's fault."""
        stream = self.streams.get(number)
        if stream is None:
            if number not in self._dropped:
                return False
            self._taken += len(payload)
            self._patience.spend()
            return True
        if flags & PADDED and (not payload or payload[0] >= len(payload)):
            return False
        size = len(payload) - (1 + payload[0] if flags & PADDED else 0)
        stream.got += size
        if not stream.answered:
            words = "DATA before HEADERS"
        elif stream.expected is not None and (
            stream.got > stream.expected or (flags & END_STREAM and stream.got < stream.expected)
        ):
            words = f"a body of {stream.got} bytes, where Content-Length says {stream.expected}"
        else:
            if not size and not flags & END_STREAM:
                self._patience.spend()
            return False
        self._taken += len(payload)
        self._refuse(stream, words)
        return True

    def _on(self, event: h2_events.Event) -> None:
        """What h2 makes of a frame."""
        if isinstance(event, h2_events.DataReceived):
            stream = self.streams.get(event.stream_id)
            if event.flow_controlled_length:
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if stream is not None and event.data:
                self.tail = stream
                if not stream.parts:
                    self._events.append(stream)
                stream.parts.append(event.data)
        elif isinstance(event, h2_events.StreamEnded):
            if (stream := self.streams.get(event.stream_id)) is not None:
                self._finish(stream)
        elif isinstance(event, h2_events.StreamReset):
            self._was_reset(event)
        elif isinstance(event, h2_events.RemoteSettingsChanged):
            self._greeted = self.changed = True
            self._heads.forget()
            if SettingCodes.INITIAL_WINDOW_SIZE in event.changed_settings:
                self._send_bodies(tuple(self._blocked.values()))
        elif isinstance(event, h2_events.WindowUpdated):
            self._opened(event.stream_id or 0, event.delta or 0)

    def _head(self, stream: Stream, fields: Fields, *, ends: bool) -> None:
        """Raises ValueError for one that is malformed."""
        status, headers = read_response(fields)
        if status < 200:
            if ends:
                raise ValueError(f"an interim head ({status}) that ends its stream")
            self._patience.spend()
            return
        stream.expected = length = body_length(fields)
        self._tell_h2(HEADERS, ends, stream.number)
        stream.answered, stream.plain = True, length is None
        self._events.append(Head(stream, status, headers))
        if ends:
            stream.trailers = headers
            self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        """Its last frame has come."""
        if stream.expected is not None and stream.got != stream.expected:
            self._refuse(stream, f"a body of {stream.got} bytes, where Content-Length says {stream.expected}")
            return
        if stream.rest:  # an answer to half a request: the server wants no more of it (8.1)
            self._reset(stream, ErrorCodes.NO_ERROR)
        self._release(stream)
        self._events.append(End(stream))

    def _was_reset(self, event: h2_events.StreamReset) -> None:
        stream = self.streams.get(event.stream_id)
        if stream is None:
            return
        self._release(stream)
        code = event.error_code or 0
        name = name_of(code)
        if not event.remote_reset:  # by h2, on our side
            self._dropped[stream.number] = None
            self._events.append(
                Failed(stream, "malformed", f"the server broke the protocol on this stream ({name})")
            )
            return
        unbegun = code == ErrorCodes.REFUSED_STREAM and not stream.answered
        self._events.append(Failed(stream, "unbegun" if unbegun else "reset", f"RST_STREAM {name}"))

    def _goaway(self, last: int, code: int, added: bytes) -> None:
        """The peer takes no more, and says what it has begun."""
        said = added.decode("utf-8", "replace")
        self.leave = f"GOAWAY {name_of(code)}" + (f": {said}" if said else "")
        self.closing = self.changed = True
        for stream in [one for one in self.streams.values() if one.number > last]:
            self._reset(stream, ErrorCodes.CANCEL)  # it may go on sending all the same
            self._events.append(Failed(stream, "reset" if stream.answered else "unbegun", self.leave))

    def _refuse(self, stream: Stream, words: str) -> None:
        """This stream breaks the protocol; the others need not suffer for it (5.4.2)."""
        self._reset(stream, ErrorCodes.PROTOCOL_ERROR)
        self._events.append(Failed(stream, "malformed", words))

    def _break(self, words: str, why: Why) -> None:
        """A fault of the whole connection."""
        self.fault = words
        self.closing = self.changed = True
        self._current, self._left = None, 0
        self._held.clear()
        self._blocked.clear()
        for stream in self.streams.values():
            self._events.append(Failed(stream, why, words))
        self.streams.clear()

    def _release(self, stream: Stream) -> None:
        self.streams.pop(stream.number, None)
        self._blocked.pop(stream.number, None)
        self.changed = True

    def _reset(self, stream: Stream, code: ErrorCodes) -> None:
        """Close a stream from our side; what is on its way of it is dropped."""
        self._release(stream)
        self._asked = True
        with contextlib.suppress(ProtocolError):  # h2 may have closed it
            self._h2.reset_stream(stream.number, code)
        self._dropped[stream.number] = None
        if len(self._dropped) > DROPPED:
            del self._dropped[next(iter(self._dropped))]

    # What goes.

    def _send_body(self, stream: Stream, head: bytes = b"") -> None:
        """As much of a request's body as the peer's windows admit, behind this frame of its head."""
        connection, rest = self._h2, stream.rest
        while rest:
            room = min(
                connection.local_flow_control_window(stream.number), connection.max_outbound_frame_size
            )
            if room <= 0:
                break
            piece, rest = rest[:room], rest[room:]
            connection.send_data(stream.number, piece, end_stream=not rest)
        stream.rest = rest
        self._flush(stream.owner, head, last=not rest)
        if rest:
            self._blocked[stream.number] = stream
        else:
            self._blocked.pop(stream.number, None)

    def _opened(self, number: int, delta: int) -> None:
        """A window of the peer's has grown: a stream's, or that of the connection, for which bodies wait only while it is
        used up. Whoever looked at all of them each time could be kept busy with it, a byte at a time."""
        if number:
            stream = self._blocked.get(number)
            self._send_bodies((stream,) if stream is not None else ())
        elif self._h2.outbound_flow_control_window <= delta:
            self._send_bodies(tuple(self._blocked.values()))

    def _send_bodies(self, blocked: Sequence[Stream]) -> None:
        """These may be sent on, as far as the window of the connection goes."""
        if blocked:
            self._flush()
        for stream in blocked:
            if self._h2.outbound_flow_control_window <= 0:
                return
            before = len(stream.rest)
            self._send_body(stream)
            if len(stream.rest) < before:
                self._patience.gain()

    def _give_back(self) -> None:
        """Open the windows again by what has bypassed h2."""
        frames = [window_update(0, self._taken)]
        self._taken = 0
        for stream in self.streams.values():
            if stream.taken:
                frames.append(window_update(stream.number, stream.taken))
                stream.taken = 0
        self.outgoing.append((b"".join(frames), None, False))

    def _flush(self, owner: Any = None, before: bytes = b"", *, last: bool = False) -> None:
        if data := before + self._h2.data_to_send():
            self.outgoing.append((data, owner, last))
