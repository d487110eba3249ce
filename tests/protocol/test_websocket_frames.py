"""WebSocket frames: `websockets` and `wsproto` as independent readers and writers, and peers that break RFC 6455."""

from __future__ import annotations

import os
import tracemalloc

import pytest
from feeding import same_however_cut, split_at
from hypothesis import given, settings
from hypothesis import strategies as st
from websocket_partner import BINARY, CLOSE, PING, PONG, TEXT, by_websockets, by_wsproto, closing, raw

from inferometer.protocol.websocket_frames import (
    MOST_IDLE,
    Close,
    MessageReader,
    close_frame,
    frame,
    masked,
)

LIMIT = 1 << 16
Result = tuple[list[bytes], bytes | None, Close | None, Close | None]


def read(pieces: list[bytes], *, from_client: bool = False, limit: int = LIMIT) -> Result:
    """Messages, the latest ping, the close and the fault."""
    reader = MessageReader(limit, from_client=from_client)
    messages = [message for piece in pieces for message in reader.feed(piece)]
    return messages, reader.pong, reader.closed, reader.fault


SIZES = st.one_of(
    st.integers(0, 300), st.sampled_from([124, 125, 126, 127, 128, 65_535, 65_536, 65_537, 70_000])
)
TEXTS = SIZES.flatmap(lambda size: st.text(min_size=0, max_size=6).map(lambda seed: (seed or "a") * size))
LONGEST = 100_000
"""Below the largest message that `websockets` takes, 1 MiB."""
PAYLOADS = st.one_of(TEXTS.map(lambda text: text.encode()[:LONGEST]), st.binary(max_size=300))


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[bytes], list[tuple[int, bytes, bool]]]:
    """Messages, and the frames that carry them: whole or in fragments, with control frames between any two."""
    messages, wire = [], []
    for _ in range(draw(st.integers(1, 5))):
        is_text = draw(st.booleans())
        payload = draw(TEXTS).encode() if is_text else draw(PAYLOADS)
        payload = payload[:70_000]
        if is_text:
            payload = payload.decode("utf-8", "ignore").encode()
        messages.append(payload)
        places = draw(st.lists(st.integers(0, 1 << 20), max_size=3))
        parts = split_at(payload, places)
        for number, part in enumerate(parts):
            opcode = (TEXT if is_text else BINARY) if not number else 0
            wire.append((opcode, part, number == len(parts) - 1))
            if draw(st.booleans()):
                wire.append((draw(st.sampled_from([PING, PONG])), draw(st.binary(max_size=125)), True))
    return messages, wire


@settings(max_examples=60, deadline=None)
@given(session=sessions(), places=st.lists(st.integers(0, 1 << 20), max_size=8), client=st.booleans())
def test_any_session_is_read_as_two_others_read_it(
    session: tuple[list[bytes], list[tuple[int, bytes, bool]]], places: list[int], client: bool
) -> None:
    """Law: the messages are those that were sent, those of `websockets` and those of `wsproto`, however the bytes are cut, and
    the latest ping is the one to be answered; as a client and as a server."""
    messages, frames = session
    wire = b"".join(
        raw(opcode, part, fin=fin, mask=b"" if client else os.urandom(4)) for opcode, part, fin in frames
    )
    pings = [part for opcode, part, _ in frames if opcode == PING]
    found, pong, closed, fault = read(split_at(wire, places), from_client=not client, limit=1 << 20)
    assert (found, closed, fault) == (messages, None, None)
    assert pong == (pings[-1] if pings else None)
    for heard in (by_websockets(wire, client=client), by_wsproto(wire, client=client)):
        assert (heard.messages, heard.pings, heard.failed) == (messages, pings, False)


@settings(deadline=None)
@given(payload=PAYLOADS, key=st.binary(min_size=4, max_size=4), client=st.booleans())
def test_what_is_written_is_read_by_others(payload: bytes, key: bytes, client: bool) -> None:
    """Law: a message of ours, with a mask or without, has the bytes that were written for both of them."""
    wire = frame(BINARY, payload, key if client else b"")
    for heard in (by_websockets(wire, client=not client), by_wsproto(wire, client=not client)):
        assert (heard.messages, heard.failed) == ([payload], False)


@given(payload=st.binary(max_size=100), key=st.binary(min_size=4, max_size=4))
def test_a_mask_is_the_standards_and_its_own_inverse(payload: bytes, key: bytes) -> None:
    """Law: octet i is XORed with octet i mod 4 of the key (5.3)."""
    under = masked(payload, key)
    assert under == bytes(byte ^ key[place % 4] for place, byte in enumerate(payload))
    assert masked(under, key) == payload


WHOLE = raw(TEXT, b"before")
BAD = [
    (raw(TEXT, b"x", bits=0x40), 1002),
    (raw(TEXT, b"x", bits=0x20), 1002),
    (raw(TEXT, b"x", bits=0x10), 1002),
    *[(raw(opcode, b"x"), 1002) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)],
    (raw(TEXT, b"x", mask=b"1234"), 1002),
    (raw(0, b"x"), 1002),
    (raw(TEXT, b"x", fin=False) + raw(TEXT, b"y"), 1002),
    (raw(PING, b"x", fin=False), 1002),
    (raw(CLOSE, b"", fin=False), 1002),
    (raw(PING, b"x" * 126), 1002),
    (raw(CLOSE, b"\x03\xe8" + b"x" * 124), 1002),
    (raw(CLOSE, b"\x03"), 1002),
    *[(closing(code), 1002) for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2999, 5000, 65_535)],
    (closing(1000, b"\xff"), 1007),
    (raw(TEXT, b"\xce\xba\xff"), 1007),
    (raw(TEXT, b"\xed\xa0\x80"), 1007),
    (raw(TEXT, b"\xce", fin=False) + raw(0, b""), 1007),
    (raw(TEXT, b"x" * (LIMIT + 1)), 1009),
    (raw(TEXT, b"x" * LIMIT, fin=False) + raw(0, b"x"), 1009),
    (raw(TEXT, b"", length=b"\x7f" + (1 << 62).to_bytes(8, "big")), 1009),
    (raw(TEXT, b"", length=b"\x7f" + (1 << 63).to_bytes(8, "big")), 1002),
    (raw(TEXT, b"x", length=b"\x7e\x00\x01"), 1002),
    (raw(TEXT, b"x" * 125, length=b"\x7e\x00\x7d"), 1002),
    (raw(TEXT, b"x", length=b"\x7f" + (1).to_bytes(8, "big")), 1002),
    (raw(PING, b"x") * (MOST_IDLE + 1), 1008),
    (raw(TEXT, b"", fin=False) + raw(0, b"", fin=False) * (MOST_IDLE + 1), 1008),
]


@pytest.mark.parametrize(("wire", "code"), BAD, ids=range(len(BAD)))
def test_what_breaks_the_rfc_or_a_limit_is_a_fault_behind_what_came_before(wire: bytes, code: int) -> None:
    """Law: the message before it is read, the fault has the code that the RFC names, and nothing follows."""
    assert read([WHOLE + wire + WHOLE])[0] == [b"before"]
    messages, _, closed, fault = read([WHOLE, *[wire[i : i + 97] for i in range(0, len(wire), 97)], WHOLE])
    assert (messages, closed) == ([b"before"], None)
    assert fault is not None
    assert fault.code == code
    assert fault.reason


@pytest.mark.parametrize(("wire", "code"), BAD[:-2], ids=range(len(BAD) - 2))
def test_what_is_a_fault_here_is_one_to_another(wire: bytes, code: int) -> None:
    """Law: `websockets` or `wsproto` refuses the same bytes, but for limits of ours."""
    assert by_websockets(wire, limit=LIMIT).failed or by_wsproto(wire).failed


@pytest.mark.parametrize(
    ("wire", "close", "words"),
    [
        (closing(None), Close(1005), "close 1005 no status"),
        (closing(1000), Close(1000), "close 1000 normal closure"),
        (closing(1011, b"no memory"), Close(1011, "no memory"), "close 1011 internal error: no memory"),
        (closing(1013), Close(1013), "close 1013 try again later"),
        (closing(4001, "für uns".encode()), Close(4001, "für uns"), "close 4001: für uns"),
    ],
)
def test_a_close_has_its_code_its_name_and_its_reason(wire: bytes, close: Close, words: str) -> None:
    """Law: it is read however cut, as others read it, what follows is not read, and its words say what it is."""

    def decode(pieces: list[bytes]) -> Result:
        return read([WHOLE, *pieces, WHOLE])

    assert same_however_cut(wire, decode) == ([b"before"], None, close, None)
    assert str(close) == words
    assert by_websockets(wire).close == by_wsproto(wire).close == (close.code, close.reason)


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1005, 1007, 1009])
def test_a_close_of_ours_is_one_to_others(code: int) -> None:
    """Law: masked, as a client's."""
    wire = close_frame(code, os.urandom(4))
    assert by_websockets(wire, client=False).close == by_wsproto(wire, client=False).close == (code, "")


def test_frames_without_a_message_are_counted_from_the_last_message_on() -> None:
    """Law: a peer that pings for hours between its messages is no hostile one."""
    reader = MessageReader(LIMIT)
    for _ in range(3):
        assert reader.feed(raw(PING) * (MOST_IDLE // 2) + WHOLE) == [b"before"]
    assert reader.fault is None


def test_a_long_message_in_single_bytes_takes_the_memory_of_its_bytes() -> None:
    """Law: memory is bounded by the limit, and the time does not grow with the square of the length."""
    reader, wire = MessageReader(1 << 20), raw(TEXT, b"x" * 400_000)
    tracemalloc.start()
    try:
        found = [message for place in range(len(wire)) for message in reader.feed(wire[place : place + 1])]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(message) for message in found] == [400_000]
    assert peak < 3_000_000


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_a_long_message_in_small_fragments_takes_the_memory_of_its_bytes(size: int) -> None:
    """Law: however many fragments it comes in."""
    reader, count = MessageReader(1 << 20), 400_000 // size
    pieces = raw(0, b"x" * size, fin=False) * 100
    tracemalloc.start()
    try:
        reader.feed(raw(TEXT, b"x", fin=False))
        for _ in range(count // 100):
            reader.feed(pieces)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    assert [len(message) for message in reader.feed(raw(0, b""))] == [1 + count // 100 * 100 * size]


@pytest.mark.parametrize(
    ("rest", "behind"),
    [
        (b"", False),
        (raw(PING), True),
        (raw(TEXT, b"half")[:3], True),
        (raw(TEXT, b"a", fin=False), True),
        (closing(1000), True),
    ],
)
def test_what_follows_the_last_message_of_a_read_is_told(rest: bytes, behind: bool) -> None:
    """Law: whether in that read more followed, be it half a frame: the message may then have come before the read's stamp."""
    for last in (WHOLE, raw(BINARY, b"b"), raw(TEXT, b"a", fin=False) + raw(0, b"b")):
        reader = MessageReader(LIMIT)
        reader.feed(raw(PING) + WHOLE + last + rest)
        assert reader.behind is behind


@given(wire=st.binary(max_size=400), places=st.lists(st.integers(0, 400), max_size=6), client=st.booleans())
def test_any_bytes_mean_the_same_however_they_are_cut(wire: bytes, places: list[int], client: bool) -> None:
    """Law: nothing raises, and the messages, the close and the fault do not depend on the cuts."""
    whole = read([wire], from_client=client)
    assert read(split_at(wire, places), from_client=client) == whole
