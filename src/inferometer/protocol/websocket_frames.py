"""WebSocket messages (RFC 6455), sans-IO, of either side: frames in, messages out, and frames made by hand. No extension.

| from the peer                                                       | becomes                                            |
| ------------------------------------------------------------------- | -------------------------------------------------- |
| a text or binary message, in one frame or in fragments (5.4)         | a payload; that of text is UTF-8                   |
| ping (5.5.2)                                                        | `pong`: the payload of the latest, for one answer  |
| pong (5.5.3)                                                        | nothing                                            |
| close (5.5.1)                                                       | `closed`; what follows is not read                 |
| a reserved bit, a reserved opcode, a fragment out of order          | `fault` 1002                                       |
| a control frame in fragments or of more than 125 bytes              | `fault` 1002                                       |
| a mask of a server's (5.1), none of a client's                      | `fault` 1002                                       |
| a length in more bytes than it needs, or above 2^63 (5.2)           | `fault` 1002                                       |
| a close of one byte, or with a code that no peer may send (7.4)     | `fault` 1002                                       |
| text, or the reason of a close, that is no UTF-8 (8.1)              | `fault` 1007                                       |
| a message above the limit, by its announced length                  | `fault` 1009                                       |
| MOST_IDLE frames without a message: control frames, empty fragments | `fault` 1008                                       |

After a fault nothing more is read. The messages before it stand.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80
_MASKED = 0x80
_WHOLE_TEXT = FIN | TEXT
_SHORT, _MEDIUM, _LONG = 125, 126, 127
_MOST_CONTROL = 125
MOST_IDLE = 10_000
"""Frames that bring nothing, from one message to the next."""

NORMAL, GOING_AWAY, PROTOCOL_ERROR, NO_STATUS, INVALID_DATA, POLICY, TOO_BIG, RESTART = (
    1000,
    1001,
    1002,
    1005,
    1007,
    1008,
    1009,
    1012,
)
NAMES = {
    NORMAL: "normal closure",
    GOING_AWAY: "going away",
    PROTOCOL_ERROR: "protocol error",
    1003: "unsupported data",
    NO_STATUS: "no status",
    INVALID_DATA: "invalid data",
    POLICY: "policy violation",
    TOO_BIG: "message too big",
    1010: "extension required",
    1011: "internal error",
    RESTART: "service restart",
    1013: "try again later",
    1014: "bad gateway",
}
"""Close codes by the registry of IANA, in words."""
_MAY_BE_SENT = frozenset(NAMES) - {NO_STATUS}


@dataclass(frozen=True, slots=True)
class Close:
    """A close frame. Without a code it is NO_STATUS."""

    code: int = NO_STATUS
    reason: str = ""

    def __str__(self) -> str:
        words = f"close {self.code} {NAMES.get(self.code, '')}".rstrip()
        return f"{words}: {self.reason}" if self.reason else words


class _Violation(Exception):
    """The peer breaks RFC 6455, or a limit."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def masked(data: bytes, key: bytes) -> bytes:
    """The bytes under a mask of four; the same again unmasks them (5.3)."""
    size = len(data)
    pad = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(pad, "little")).to_bytes(size, "little")


def frame(opcode: int, payload: bytes, mask: bytes = b"") -> bytes:
    """A whole message, or a control frame. `mask`: four bytes that nobody can foresee, of a client; none of a server."""
    size, bit = len(payload), _MASKED if mask else 0
    if size <= _SHORT:
        head = bytes((FIN | opcode, bit | size))
    elif size < 1 << 16:
        head = bytes((FIN | opcode, bit | _MEDIUM)) + size.to_bytes(2, "big")
    else:
        head = bytes((FIN | opcode, bit | _LONG)) + size.to_bytes(8, "big")
    return head + mask + masked(payload, mask) if mask else head + payload


def close_frame(code: int, mask: bytes = b"") -> bytes:
    """A close with this code and no reason; without a code for NO_STATUS."""
    return frame(CLOSE, b"" if code == NO_STATUS else code.to_bytes(2, "big"), mask)


class MessageReader:
    """Feed it bytes in any pieces; it gives back the messages that these complete.

    `limit`: bytes of a message. `from_client`: whose frames they are. `pong`, `closed` and `fault` are for the owner to look at
    after each `feed` that sets `noted`, which it clears, as it does `pong`. `behind`: in the latest `feed` that completed a
    message more bytes followed. Memory held stays below twice the limit and one `feed`.
    """

    __slots__ = (
        "_from_client",
        "_held",
        "_idle",
        "_kind",
        "_limit",
        "_needed",
        "_parts",
        "_plain",
        "behind",
        "closed",
        "fault",
        "noted",
        "pong",
    )

    def __init__(self, limit: int = 1 << 20, *, from_client: bool = False) -> None:
        self._limit = limit
        self._from_client = from_client
        self._plain = (
            limit >= 1 << 16 and not from_client
        )  # short frames are within the limit, and bear no mask
        self._held = bytearray()  # of a frame that is not complete: grows in place
        self._needed = 0  # bytes of it that tell more than those held
        self._parts = bytearray()  # of a message in fragments, however small these are
        self._kind = 0  # its opcode; 0: none has begun
        self._idle = 0
        self.behind = self.noted = False
        self.pong: bytes | None = None
        self.closed: Close | None = None
        self.fault: Close | None = None

    @property
    def begun(self) -> bool:
        """Whether some of a message is here that is not complete."""
        return bool(self._kind or (self._held and self._held[0] & 0x0F < CLOSE))

    def feed(self, data: bytes) -> list[bytes]:
        """The messages completed by these bytes, in order. Never raises."""
        messages: list[bytes] = []
        if self.closed is not None or self.fault is not None:
            return messages
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return messages
            data = bytes(self._held)
            self._held.clear()
        at, edge, size, plain = 0, 0, len(data), self._plain
        try:
            while size - at >= 2:
                length, begin = data[at + 1], at + 2
                if length == _MEDIUM and size - at >= 4:
                    length, begin = data[at + 2] << 8 | data[at + 3], at + 4
                    if length < _MEDIUM:
                        length = size  # which does not fit: to be refused below
                end = begin + length
                # Nearly every message is one frame of a server's, of one of the two short forms, and is there as a whole.
                if (
                    plain
                    and data[at] == _WHOLE_TEXT
                    and end <= size
                    and data[at + 1] <= _MEDIUM
                    and not self._kind
                ):
                    payload = data[begin:end]
                    messages.append(payload if payload.isascii() else _utf8(payload))
                    at = edge = end
                    continue
                before = len(messages)
                if not (end := self._frame(data, at, messages)):
                    break
                at = end
                if len(messages) > before:
                    edge = end
                if self.closed is not None:
                    break
            else:
                self._needed = 2
            if at < size and self.closed is None:
                self._held += data[at:]
        except _Violation as cause:
            self._parts.clear()
            self.fault, self.noted = Close(cause.code, str(cause)), True
        if messages:
            self._idle = 0
            self.behind = edge < size
        return messages

    def _frame(self, data: bytes, at: int, messages: list[bytes]) -> int:
        """Take the frame that begins at `at`: the offset behind it; 0 if it is not complete. Raises _Violation."""
        first, second = data[at], data[at + 1]
        self._check(first, second)
        size, mask_at = self._length(data, at)
        if size < 0:
            return 0
        if first & 0x0F < CLOSE and len(self._parts) + size > self._limit:
            raise _Violation(TOO_BIG, f"a message of more than {self._limit} bytes")
        begin = mask_at + (4 if second & _MASKED else 0)
        end = begin + size
        if end > len(data):
            self._needed = end - at
            return 0
        payload = data[begin:end]
        if second & _MASKED:
            payload = masked(payload, data[mask_at:begin])
        opcode = first & 0x0F
        if opcode >= CLOSE:
            self._control(opcode, payload)
        else:
            self._fragment(opcode, payload, messages, whole=first >= FIN)
        return end

    def _length(self, data: bytes, at: int) -> tuple[int, int]:
        """The length that a frame announces, and the offset behind it; below 0 if it is not there yet. Raises _Violation."""
        size = data[at + 1] & ~_MASKED
        if size <= _SHORT:
            return size, at + 2
        width, least = (2, _MEDIUM) if size == _MEDIUM else (8, 1 << 16)
        behind = at + 2 + width
        if behind > len(data):
            self._needed = 2 + width
            return -1, 0
        size = int.from_bytes(data[at + 2 : behind], "big")
        if size < least or size >> 63:
            raise _Violation(PROTOCOL_ERROR, f"a length of {size} in {width} bytes")
        return size, behind

    def _check(self, first: int, second: int) -> None:
        """What a frame's first two bytes show. Raises _Violation."""
        opcode = first & 0x0F
        if first & 0x70:
            raise _Violation(PROTOCOL_ERROR, "a reserved bit, of an extension that was not offered")
        if opcode > PONG or BINARY < opcode < CLOSE:
            raise _Violation(PROTOCOL_ERROR, f"the reserved opcode {opcode}")
        if bool(second & _MASKED) is not self._from_client:
            words = "a frame without a mask" if self._from_client else "a masked frame of a server"
            raise _Violation(PROTOCOL_ERROR, words)
        if opcode >= CLOSE:
            if first < FIN:
                raise _Violation(PROTOCOL_ERROR, "a control frame in fragments")
            if second & ~_MASKED > _MOST_CONTROL:
                raise _Violation(PROTOCOL_ERROR, f"a control frame of more than {_MOST_CONTROL} bytes")
        elif opcode and self._kind:
            raise _Violation(PROTOCOL_ERROR, "a message within the fragments of another")
        elif not opcode and not self._kind:
            raise _Violation(PROTOCOL_ERROR, "a continuation of no message")

    def _fragment(self, opcode: int, payload: bytes, messages: list[bytes], *, whole: bool) -> None:
        """Part of a message, or all of one. Raises _Violation."""
        kind = self._kind = self._kind or opcode
        if not whole:
            if payload:
                self._parts += payload
            else:
                self._bring_nothing()
            return
        if self._parts:
            payload = bytes(self._parts) + payload
            self._parts.clear()
        self._kind = 0
        messages.append(_utf8(payload) if kind == TEXT else payload)

    def _control(self, opcode: int, payload: bytes) -> None:
        """Raises _Violation."""
        self._bring_nothing()
        if opcode == PING:
            self.pong, self.noted = payload, True
        elif opcode == CLOSE:
            self.closed, self.noted = _read_close(payload), True
            self._parts.clear()

    def _bring_nothing(self) -> None:
        self._idle += 1
        if self._idle > MOST_IDLE:
            raise _Violation(POLICY, f"more than {MOST_IDLE} frames without a message")


def _read_close(payload: bytes) -> Close:
    """Raises _Violation."""
    if not payload:
        return Close()
    code = int.from_bytes(payload[:2], "big")
    if len(payload) < 2 or not (code in _MAY_BE_SENT or 3000 <= code < 5000):
        raise _Violation(PROTOCOL_ERROR, f"a close with the code {code}" if payload[1:] else "half a code")
    return Close(code, _utf8(payload[2:]).decode())


def _utf8(payload: bytes) -> bytes:
    """The same, if it is UTF-8. Raises _Violation."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        raise _Violation(INVALID_DATA, "text that is no UTF-8") from None
    return payload
