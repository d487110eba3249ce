"""Autobahn's cases for a WebSocket client, and tables as exhaustive for what it samples; `websockets` and `wsproto` as oracles.

Pings: of each read the latest is answered (RFC 6455, 5.5.3), so that cases which count pongs are read byte by byte.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from feeding import same_however_cut
from websocket_partner import BINARY, CLOSE, PING, PONG, TEXT, by_websockets, by_wsproto, closing, raw

from inferometer.protocol.websocket_frames import NORMAL, Close, MessageReader

CASES = Path(__file__).resolve().parents[1] / "vectors" / "websocket" / "autobahn.jsonl"


@dataclass(frozen=True)
class Read:
    """What the reader made of some bytes: messages, every ping, the close and the fault."""

    messages: tuple[bytes, ...]
    pings: tuple[bytes, ...]
    closed: Close | None
    fault: Close | None

    @property
    def left_with(self) -> int:
        """The code with which this side leaves; 1000: it is the peer that would end it now."""
        ending = self.fault or self.closed
        return NORMAL if ending is None else ending.code


def read(pieces: list[bytes]) -> Read:
    """The reader's account of these pieces."""
    reader, messages, pings = MessageReader(), [], []
    for piece in pieces:
        messages += reader.feed(piece)
        if reader.pong is not None:
            pings.append(reader.pong)
            reader.pong = None
    return Read(tuple(messages), tuple(pings), reader.closed, reader.fault)


def in_bytes(wire: bytes) -> Read:
    return read([wire[at : at + 1] for at in range(len(wire))])


def expanded(text: str) -> bytes:
    """Bytes in hex, of which parts are repeated: `00 2a*125`."""
    parts = (part.partition("*") for part in text.split())
    return b"".join(bytes.fromhex(part) * int(times or 1) for part, _, times in parts)


def cases() -> list[Any]:
    return [json.loads(line) for line in CASES.read_text().splitlines()]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["case"])
def test_a_case_of_autobahns_comes_to_what_it_expects(case: dict[str, Any]) -> None:
    """Law: messages and pongs are those of one of its expectations, and the code with which this side leaves is one it allows,
    or there is none; `websockets` or `wsproto` reads the same."""
    wire = expanded(case["wire"])
    found = in_bytes(wire)
    expected = [
        (tuple(map(expanded, one["messages"])), tuple(map(bytes.fromhex, one["pongs"])))
        for one in case["expected"]
    ]
    assert (found.messages, found.pings) in expected, case["what"]
    assert found.left_with in {*case["close"], 1005}
    others = [
        (tuple(one.messages), tuple(one.pings), one.failed) for one in (by_websockets(wire), by_wsproto(wire))
    ]
    assert (found.messages, found.pings, found.fault is not None) in others


CODE = (3137).to_bytes(2, "big")  # of a close, and text in any other frame
SIZES = {126: (126, b"\x00\x7e"), 127: (1 << 16, (1 << 16).to_bytes(8, "big"))}
HEADS = list(itertools.product(range(256), (0, 1, 2, 125, 126, 127, 128, 129, 253, 254, 255)))


def test_every_head_of_a_frame_is_a_fault_where_it_is_one_to_another() -> None:
    """Law: of reserved bits and opcodes, masks, fragments of control frames and their lengths, within a message or not."""
    for before in (b"", raw(TEXT, b"a", fin=False)):
        for first, second in HEADS:
            size, length = SIZES.get(second & 0x7F, (second & 0x7F, b""))
            mask = bytes(4) if second & 0x80 else b""
            wire = before + bytes((first, second)) + length + mask + (CODE + b"x" * size)[:size]
            found, heard = read([wire]), by_websockets(wire)
            if before and first == 0x88 and not found.fault:
                assert (
                    heard.failed
                )  # to which a close within a message is a fault; the RFC has no word against it
                continue
            assert (found.fault is not None) is heard.failed, (before, first, second)
            assert list(found.messages) == heard.messages


@pytest.mark.parametrize("size", [0, 1, 124, 125, 126, 127, 255, 256, 65_534, 65_535, 65_536, 65_537])
def test_a_length_in_more_bytes_than_it_needs_is_a_fault(size: int) -> None:
    """Law: of each width exactly the lengths that need it are taken (5.2), as by `wsproto`; `websockets` takes the others."""
    shortest = 1 if size <= 125 else 3 if size < 1 << 16 else 9
    for width, lead in ((3, b"\x7e"), (9, b"\x7f")):
        if width < shortest:
            continue
        wire = raw(BINARY, b"x" * size, length=lead + size.to_bytes(width - 1, "big"))
        found = read([wire])
        assert (found.fault is None) is (width == shortest)
        assert by_wsproto(wire).failed is (width != shortest)
        assert found.messages == ((b"x" * size,) if width == shortest else ())


@pytest.mark.parametrize("opcode", [PING, PONG])
def test_a_control_frame_of_any_size_is_read(opcode: int) -> None:
    """Law: from 0 to 125 bytes, of which a ping's are those to be answered; any more are a fault."""
    for size in range(126):
        payload = bytes(range(size))
        found = in_bytes(raw(opcode, payload))
        assert found == Read((), (payload,) if opcode == PING else (), None, None)
    for size in (126, 127, 65_536):
        assert in_bytes(raw(opcode, b"x" * size)[:20]).left_with == 1002


def test_control_frames_may_stand_at_every_cut_of_a_message() -> None:
    """Law: the message is the same, each ping is met, and a close there ends it without the message."""
    text = "aé€\U0001f600z".encode()
    for cuts in itertools.combinations(range(len(text) + 1), 2):
        parts = [text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]]
        frames = [raw(TEXT if not at else 0, part, fin=at == 2) for at, part in enumerate(parts)]
        for between in (raw(PING, b"p"), raw(PONG, b"q"), raw(PING) + raw(PONG) + raw(PING, b"p" * 125)):
            wire = between.join(frames)
            found, heard = in_bytes(wire), by_websockets(wire)
            assert found.messages == (text,)
            assert list(found.pings) == heard.pings == by_wsproto(wire).pings
            assert found.fault is None
        left = in_bytes(closing(1000).join(frames))
        assert (left.messages, left.closed, left.fault) == ((), Close(1000), None)


INVALID = [
    b"\x80", b"\xbf", b"\xc0\xaf", b"\xc1\x81", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf0\x80\x80\xaf", b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80", b"\xfe", b"\xff", b"\xc2", b"\xe2\x82", b"\xf0\x9f\x98",
]  # fmt: skip


@pytest.mark.parametrize("odd", INVALID, ids=bytes.hex)
def test_text_with_invalid_utf8_at_any_place_is_a_fault_however_it_is_in_fragments(odd: bytes) -> None:
    """Law: 1007, at the latest with the message's last byte, and no message; in the words of others too. As a binary message
    the same bytes are one."""
    text = "aé€\U0001f600z"
    for at in range(len(text) + 1):
        payload = text[:at].encode() + odd + text[at:].encode()
        for cut in range(len(payload) + 1):
            wire = raw(TEXT, payload[:cut], fin=False) + raw(0, payload[cut:])
            found = in_bytes(wire)
            assert (found.messages, found.left_with) == ((), 1007)
            assert by_wsproto(wire).failed
        whole = raw(TEXT, payload)
        assert in_bytes(whole).left_with == read([whole]).left_with == 1007
        assert by_websockets(whole).messages == [payload]  # which checks it only where a text is asked for
        assert in_bytes(raw(BINARY, payload)).messages == (payload,)


def test_every_close_code_is_one_or_a_fault_as_others_have_it() -> None:
    """Law: those that a peer may send (7.4.1, and the registry since), and 3000 to 4999."""
    for code in (*range(5_200), 65_535):
        found, heard = read([closing(code, b"why")]), by_websockets(closing(code, b"why"))
        assert (found.fault is not None) is heard.failed, code
        assert heard.failed or found.closed == Close(code, "why")


@pytest.mark.parametrize("odd", INVALID, ids=bytes.hex)
def test_a_reason_of_a_close_that_is_no_utf8_is_a_fault(odd: bytes) -> None:
    """Law: 1007, at any place."""
    for reason in (odd, b"why " + odd, odd + b" why"):
        assert read([closing(1000, reason)]).left_with == 1007
        assert by_websockets(closing(1000, reason)).failed


@pytest.mark.parametrize(
    "behind",
    [
        b"",
        raw(TEXT, b"more"),
        raw(PING, b"p"),
        closing(1011),
        raw(TEXT, b"\xff"),
        b"\xff\xff",
        raw(CLOSE, b"x"),
    ],
)
def test_what_follows_a_close_is_not_read(behind: bytes) -> None:
    """Law: whatever it is, in the same read or later; a close within a message ends it."""
    for before, messages in ((raw(TEXT, b"a"), (b"a",)), (raw(TEXT, b"a", fin=False), ())):
        wire = before + closing(1001, b"bye") + behind
        assert same_however_cut(wire, read) == Read(messages, (), Close(1001, "bye"), None)
