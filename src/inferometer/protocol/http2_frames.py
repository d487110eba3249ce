"""HTTP/2 frames as bytes (RFC 9113, section 4.1), and the bound on frames that bring nothing.

h2 keeps the state of a connection on either side. Three things are done here, in front of it:

| what                              | why                                                                                    |
| --------------------------------- | -------------------------------------------------------------------------------------- |
| DATA frames are cut and made      | h2 takes some 10 us for one, as long as all else that is done for a token              |
| GOAWAY is read                    | h2 takes nothing more after it, but streams up to the last one named go on (6.8)       |
| frames that bring nothing count   | h2 acknowledges every PING and SETTINGS, and does not mind how many there are          |
"""

from __future__ import annotations

import struct

from h2.errors import ErrorCodes
from h2.exceptions import NoSuchStreamError, ProtocolError

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
MOST_FRAME = 1 << 14
"""Bytes of a frame that is taken: what every peer may send unless it is told otherwise (SETTINGS_MAX_FRAME_SIZE)."""
MOST_HEADERS = 1 << 16
"""Bytes of a list of headers, as SETTINGS_MAX_HEADER_LIST_SIZE counts them."""
MOST_BLOCK = 2 * MOST_HEADERS
"""Bytes of a block of headers as it is sent, its CONTINUATION frames included: compression makes it no longer than that."""
MOST_WINDOW = (1 << 31) - 1
STREAM_BITS = 0x7FFF_FFFF
UNREADABLE = "a header block that does not decode"

_HEAD = struct.Struct("!BHBBL")  # length in 24 bits, type, flags, stream
read_head = _HEAD.unpack_from
_GOAWAY = struct.Struct("!LL")
_INCREMENT = struct.Struct("!L")
NO_INCREMENT = (bytes(4), b"\x80" + bytes(3))
"""What a WINDOW_UPDATE of nothing holds: its first bit is reserved."""


class PeerFault(Exception):
    """What the peer sent ends the connection: the code that it is told, and words. `too_large`: it was over a limit of ours."""

    def __init__(self, code: ErrorCodes, words: str, *, too_large: bool = False) -> None:
        super().__init__(words)
        self.code = code
        self.too_large = too_large


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    size = len(payload)
    return _HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def fragment_of(flags: int, payload: bytes) -> bytes:
    """What a HEADERS frame holds of a header block: without padding, and without the priority that RFC 9113 ignores. Raises
    PeerFault (6.2)."""
    begin = 5 if flags & WITH_PRIORITY else 0
    end = len(payload)
    if flags & PADDED:
        begin += 1
        end -= payload[0] if payload else 0
    if begin > end:
        raise PeerFault(ErrorCodes.PROTOCOL_ERROR, "a HEADERS frame that is shorter than its padding")
    return payload[begin:end]


def window_update(stream: int, increment: int) -> bytes:
    """So many more bytes may be sent on this stream; 0: on the connection."""
    return frame(WINDOW_UPDATE, 0, stream, _INCREMENT.pack(increment))


def goaway(last: int, code: ErrorCodes) -> bytes:
    """No stream above `last` has been or will be begun."""
    return frame(GOAWAY, 0, 0, _GOAWAY.pack(last, code))


def read_goaway(stream: int, payload: bytes) -> tuple[int, int, bytes]:
    """The last stream that the peer has begun or may begin, why it leaves, and what it adds. Raises PeerFault."""
    if stream or len(payload) < _GOAWAY.size:
        raise PeerFault(ErrorCodes.PROTOCOL_ERROR, "a GOAWAY frame that is none (6.8)")
    last, code = _GOAWAY.unpack_from(payload)
    return last & STREAM_BITS, code, payload[_GOAWAY.size :]


def name_of(code: int) -> str:
    """An error code as RFC 9113, section 7, names it."""
    try:
        return ErrorCodes(code).name
    except ValueError:
        return f"error {code:#x}"


def words_of(fault: ProtocolError) -> str:
    """What h2 found wrong, and its code. Of a block that it cannot decode, its words hold an address in memory; of a stream
    that is closed or never was, its number alone."""
    words = str(fault)
    if isinstance(fault, NoSuchStreamError):  # StreamClosedError is one
        words = f"a frame on stream {fault.stream_id}, which is not open"
    return f"{UNREADABLE if 'decoding header block' in words else words} ({name_of(fault.error_code)})"


class Patience:
    """How many more frames are taken that bring nothing. What brings something gives one back, up to where it began.

    An honest peer sends a PING in seconds and a WINDOW_UPDATE for what it took; without end they would keep us busy, and our
    answers to them would fill the memory where the peer does not read.
    """

    __slots__ = ("_left", "_most", "spent")

    def __init__(self, most: int = 10_000) -> None:
        self._most = self._left = most
        self.spent = False
        """Some of it may be given back."""

    def spend(self, count: int = 1) -> None:
        """A frame has come that brings nothing. Raises PeerFault."""
        self._left -= count
        self.spent = True
        if self._left < 0:
            words = f"more than {self._most} frames that bring nothing"
            raise PeerFault(ErrorCodes.ENHANCE_YOUR_CALM, words, too_large=True)

    def gain(self, count: int = 1) -> None:
        """Something has come, or could be sent."""
        self._left = min(self._most, self._left + count)
        self.spent = self._left < self._most
