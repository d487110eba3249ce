"""HTTP/2 on the client's side, with h2 as the independent partner, and peers that break RFC 9113."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from feeding import same_however_cut, split_at
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, WindowUpdated
from hpack import Encoder
from http2_faults import BOTH_TOO_LARGE, FAULTS, HEADED
from http2_partner import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    EVENTS,
    GOAWAY,
    GREETING,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Server,
    head,
    number,
    raw,
)
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.http2_client import GIVE_BACK, Http2Client
from inferometer.protocol.http2_events import End, Event, Head, Stream
from inferometer.protocol.http2_frames import HEAD_BYTES, MOST_FRAME, MOST_WINDOW

FIELDS = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/x"), (b":authority", b"test")]


def client(
    streams: int = 2, *, greeting: bytes = GREETING, body: bytes = b"{}", give_back: int = GIVE_BACK
) -> Http2Client:
    """A connection that stands, with requests on streams 1, 3 and so on, whose owners are these numbers."""
    made = Http2Client(100, give_back)
    made.open()
    made.receive(greeting)
    for place in range(streams):
        made.request(FIELDS, body, 2 * place + 1)
    return made


@dataclass
class Answers:
    """What came of each stream, by the number of its request."""

    heads: dict[int, tuple[int, dict[bytes, bytes]]] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, str] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)

    def take(self, events: list[Event]) -> None:
        """More of it. A stream has one end, and nothing before its head or behind its end."""
        for event in events:
            stream = event if isinstance(event, Stream) else event.stream
            assert stream.number not in self.ends
            if isinstance(event, Stream):
                assert stream.number in self.heads
                self.bodies[stream.number] = self.bodies.get(stream.number, b"") + event.take()
            elif isinstance(event, Head):
                assert stream.number not in self.heads
                self.heads[stream.number] = event.status, dict(event.headers)
            elif isinstance(event, End):
                self.ends[stream.number] = "end"
            else:
                self.ends[stream.number] = event.why
                self.words[stream.number] = event.words


def answers(made: Http2Client, *pieces: bytes) -> Answers:
    """Feed it these pieces, one that is a lone frame of a body by the short way, as a channel does."""
    found = Answers()
    for piece in pieces:
        stream = made.sole(piece)
        if stream is None:
            found.take(made.receive(piece))
        else:
            assert made.tail is stream
            stream.parts.append(piece[HEAD_BYTES:])
            found.take([stream])
    return found


def frames_of(wire: bytes) -> list[bytes]:
    """The frames of bytes that hold whole ones."""
    found, at = [], 0
    while at < len(wire):
        end = at + HEAD_BYTES + int.from_bytes(wire[at : at + 3], "big")
        found.append(wire[at:end])
        at = end
    return found


def sent(made: Http2Client) -> bytes:
    """All that it has sent since the last look."""
    data = b"".join(data for data, _, _ in made.outgoing)
    made.outgoing.clear()
    return data


# The splitter and its state, against h2 on both sides.

STEP = st.one_of(
    st.tuples(st.just("data"), st.binary(max_size=40), st.none() | st.integers(0, 20)),
    st.tuples(st.just("interim"), st.just(b""), st.none()),
    st.tuples(st.just("ping"), st.binary(min_size=8, max_size=8), st.none()),
    st.tuples(st.just("settings"), st.just(b""), st.none()),
    st.tuples(st.just("end"), st.binary(max_size=20), st.sampled_from([None, 0, 7])),
    st.tuples(st.just("trailers"), st.just(b""), st.none()),
    st.tuples(st.just("reset"), st.just(b""), st.none()),
)
SCRIPT = st.lists(st.tuples(st.sampled_from([1, 3, 5]), STEP), max_size=40)


def play(script: list[tuple[int, tuple[str, bytes, int | None]]], lengths: bool) -> tuple[bytes, Answers]:
    """What h2 as a server writes for this script, and what h2 as a client makes of it. `lengths`: heads of stream 3 declare
    the length of the body, which is known from the script."""
    oracle, server = H2Connection(H2Configuration(header_encoding=None)), Server()
    oracle.initiate_connection()
    for stream in (1, 3, 5):
        oracle.send_headers(stream, FIELDS, end_stream=True)
    server.receive(oracle.data_to_send())
    begun: set[int] = set()
    over: set[int] = set()
    until = [
        place for place, (stream, step) in enumerate(script) if stream == 3 and step[0] in ("end", "trailers")
    ]
    of_three = (
        [step[1] for stream, step in script[: until[0] + 1] if stream == 3 and step[0] in ("data", "end")]
        if until
        else []
    )
    length = sum(map(len, of_three))
    for stream, (what, payload, pad) in script:
        if what == "ping":
            server.h2.ping(payload)
        elif what == "settings":
            server.h2.update_settings({})
        elif stream in over:
            continue
        elif what == "interim" and stream not in begun:
            server.h2.send_headers(stream, [(":status", "103")])
        elif what == "reset":
            server.h2.reset_stream(stream, 2)
            over.add(stream)
        elif what != "interim":
            if stream not in begun:
                begun.add(stream)
                declared = [("content-length", str(length))] if lengths and stream == 3 and until else []
                server.h2.send_headers(stream, EVENTS + declared)
            if what == "trailers":
                server.h2.send_headers(stream, [("x-after", "all")], end_stream=True)
                over.add(stream)
            else:
                server.h2.send_data(stream, payload, end_stream=what == "end", pad_length=pad)
                if what == "end":
                    over.add(stream)
    wire, found = server.take(), Answers()
    for event in oracle.receive_data(wire):
        if isinstance(event, ResponseReceived):
            status, *fields = event.headers or []
            found.heads[event.stream_id] = int(status[1]), dict(fields)
        elif isinstance(event, DataReceived) and event.data:
            found.bodies[event.stream_id] = found.bodies.get(event.stream_id, b"") + event.data
        elif isinstance(event, StreamEnded):
            found.ends[event.stream_id] = "end"
    for stream in over - found.ends.keys():
        found.ends[stream] = "reset"
    return wire, found


@given(SCRIPT, st.booleans(), st.lists(st.integers(0, 2000), max_size=8))
def test_any_frames_in_any_pieces_are_what_h2_makes_of_them(
    script: list[tuple[int, tuple[str, bytes, int | None]]], lengths: bool, places: list[int]
) -> None:
    """Heads, bodies and ends of three interleaved streams: whole, byte by byte, in odd pieces, cut at random, and with the
    beginning of a further frame behind them."""
    wire, expected = play(script, lengths)

    def decode(pieces: list[bytes]) -> Answers:
        made = client(3, body=b"")
        found = answers(made, *pieces)
        assert made.fault == ""
        return found

    found = same_however_cut(wire, decode)
    assert (found.heads, found.bodies, found.ends) == (expected.heads, expected.bodies, expected.ends)
    for pieces in (split_at(wire, places), frames_of(wire), [wire, raw(PING, 0, 0, b"12345678")[:12]]):
        assert decode(pieces) == found


def test_a_head_may_be_padded_carry_a_priority_and_come_in_parts() -> None:
    """Law: what RFC 9113 ignores in a HEADERS frame changes nothing of the head, and interim heads go before it."""
    block = bytes(Encoder().encode(EVENTS, huffman=False))
    padded = raw(
        HEADERS, PADDED | 0x20 | END_STREAM, 1, b"\x03" + number(1) + b"\x05" + block[:4] + b"\0\0\0"
    )
    rest = [raw(CONTINUATION, 0, 1), raw(CONTINUATION, END_HEADERS, 1, block[4:])]

    def decode(pieces: list[bytes]) -> Answers:
        return answers(client(), *pieces)

    found = same_however_cut(b"".join([head(1, [(":status", "103")]), padded, *rest]), decode)
    assert (found.heads, found.ends) == ({1: (200, {b"content-type": b"text/event-stream"})}, {1: "end"})


def test_a_body_of_a_stream_is_given_once_a_read() -> None:
    """Frames of one stream that a read brings are one piece, whatever lies between them; so one stamp is asked about once."""
    made = client()
    answers(made, head(1), head(3))
    wire = b"".join(raw(DATA, 0, stream, b"%d" % place) for place in range(3) for stream in (1, 3))
    events = made.receive(wire)
    assert [event.number for event in events if isinstance(event, Stream)] == [1, 3]
    assert [event.take() for event in events if isinstance(event, Stream)] == [b"012", b"012"]


# What it sends.


@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    window=st.integers(0, 400),
    grants=st.lists(st.integers(1, 200), max_size=40),
)
def test_requests_keep_to_the_windows_of_the_server_and_arrive_whole(
    bodies: list[bytes], window: int, grants: list[int]
) -> None:
    """h2 as the server refuses what exceeds a window. Every body arrives, and exactly one write ends each request: the last
    of it."""
    server = Server(initial_window_size=window)
    made = Http2Client(100)
    made.open()
    made.receive(server.take())
    server.receive(sent(made))
    last: dict[int, bool] = {}
    for place, body in enumerate(bodies):
        made.request(FIELDS, body, place)

    def pass_on() -> None:
        for data, owner, ends in made.outgoing:
            before = set(server.whole)
            server.receive(data)
            if owner is not None:
                assert not last.get(owner)
                last[owner] = ends
                assert (2 * owner + 1 in set(server.whole) - before) == ends
        made.outgoing.clear()

    pass_on()
    for grant in [*grants, *[100] * 20]:
        for stream in [one for one in server.bodies if one not in server.whole]:
            server.h2.increment_flow_control_window(grant, stream)
        made.receive(server.take())
        pass_on()
    assert [server.bodies[2 * place + 1] for place in range(len(bodies))] == bodies
    assert list(last.values()) == [True] * len(bodies)
    fields = {name.decode(): value.decode() for name, value in FIELDS}
    assert server.heads[1] == {**fields, "content-length": str(len(bodies[0]))}


def test_a_window_of_the_connection_lets_those_go_on_that_wait_for_it() -> None:
    """Law: whatever held a body back, a stream's window or the connection's, its opening sends it on, and nothing is left."""
    made = client(3, greeting=raw(SETTINGS, 0, 0, b"\0\4" + number(MOST_WINDOW)), body=b"x" * 40_000)
    sent(made)  # 65,535 bytes: the connection's window is used up by the second body
    made.receive(raw(WINDOW_UPDATE, 0, 3, number(1)))
    assert sent(made) == b""
    made.receive(raw(WINDOW_UPDATE, 0, 0, number(1)))
    assert sent(made) == raw(DATA, 0, 3, b"x")
    made.receive(raw(WINDOW_UPDATE, 0, 0, number(100_000)))
    assert not any(stream.rest for stream in made.streams.values())
    narrow = client(2, greeting=raw(SETTINGS, 0, 0, b"\0\4" + number(0)), body=b"abc")
    sent(narrow)
    narrow.receive(raw(WINDOW_UPDATE, 0, 0, number(9)) + raw(WINDOW_UPDATE, 0, 3, number(2)))
    assert sent(narrow) == raw(DATA, 0, 3, b"ab")
    narrow.receive(raw(SETTINGS, 0, 0, b"\0\4" + number(3)))
    assert raw(DATA, END_STREAM, 1, b"abc") + raw(DATA, END_STREAM, 3, b"c") in sent(narrow)


def test_a_body_larger_than_a_frame_and_the_window_of_the_connection_goes_out_in_parts() -> None:
    """A megabyte: frames of the largest size that is allowed, and no more of them than the connection's window admits."""
    server, body = Server(initial_window_size=MOST_WINDOW), b"x" * 1_000_000
    made = Http2Client(100)
    made.open()
    made.receive(server.take())
    made.request(FIELDS, body, "one")
    for _ in range(40):
        server.receive(sent(made))
        server.h2.increment_flow_control_window(50_000)
        made.receive(server.take())
    assert server.bodies[1] == body
    sizes = [len(event.data) for event in server.seen if isinstance(event, DataReceived)]
    assert max(sizes) == MOST_FRAME


def test_windows_are_as_large_as_can_be_and_given_back_as_they_are_used() -> None:
    """h2 as the server counts: after any number of bytes its windows are nearly what they were,
    so flow control never makes a server wait."""
    server = Server()
    made = client(2, greeting=server.take(), give_back=1000)
    server.receive(sent(made))
    assert server.h2.local_flow_control_window(1) == server.h2.outbound_flow_control_window == MOST_WINDOW
    server.h2.send_headers(1, EVENTS)
    server.h2.send_headers(3, EVENTS)
    for _ in range(50):
        server.h2.send_data(1, b"x" * 100)
        server.h2.send_data(3, b"y" * 100)
        found = Answers()
        events = made.receive(server.take())
        found.heads = {1: (200, {}), 3: (200, {})}
        found.take([event for event in events if isinstance(event, Stream)])
        server.receive(sent(made))
    assert server.h2.outbound_flow_control_window >= MOST_WINDOW - 1000
    assert server.h2.streams[1].outbound_flow_control_window >= MOST_WINDOW - 1000
    given = [event for event in server.seen if isinstance(event, WindowUpdated) and not event.stream_id]
    assert sum(event.delta or 0 for event in given[1:]) == 10_000


def test_a_cancelled_stream_is_reset_and_what_is_on_its_way_is_dropped() -> None:
    """The server is told; DATA that comes all the same, and the rest of a frame that had begun, change nothing else."""
    made = client()
    found = answers(made, head(1), head(3), raw(DATA, 0, 1, b"abc", length=10))
    made.cancel(made.streams[1])
    assert raw(RST_STREAM, 0, 1, number(8)) in sent(made)
    found.take(made.receive(b"defghij" + raw(DATA, 0, 1, b"more") + raw(DATA, END_STREAM, 3, b"all")))
    assert (found.bodies, found.ends, made.fault) == ({1: b"abc", 3: b"all"}, {3: "end"}, "")
    assert sent(made) == b""


def test_places_are_those_of_the_server_and_ours() -> None:
    """None before its SETTINGS; then the fewer of both, less what is under way; none after GOAWAY."""
    made = Http2Client(3)
    assert made.places == 0
    made.open()
    assert made.places == 0
    made.receive(raw(SETTINGS, 0, 0, b"\0\3" + number(2)))
    assert made.places == 2
    made.request(FIELDS, b"", 1)
    assert made.places == 1
    made.receive(raw(SETTINGS, 0, 0, b"\0\3" + number(1000)))
    assert made.places == 2
    made.receive(raw(GOAWAY, 0, 0, number(1) + number(0)))
    assert (made.places, made.closing) == (0, True)


# Peers that break the protocol.


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_the_streams_concerned_by_name_and_no_other(name: str) -> None:
    """Where the fault is of one stream, the other goes on to its end; else both end, the server is told by GOAWAY, and the
    connection is of no more use."""
    wire, expected = FAULTS[name]

    def decode(pieces: list[bytes]) -> tuple[dict[int, str], bool, bytes]:
        made = client()
        sent(made)
        found = answers(made, *pieces)
        told = sent(made)
        if not made.fault and 3 not in found.ends:
            found.take(made.receive((b"" if 3 in found.heads else head(3)) + raw(DATA, END_STREAM, 3, b"x")))
            assert found.ends.pop(3) == "end"
        return found.ends, bool(made.fault), told

    ends, broken, told = same_however_cut(wire, decode)
    assert ends == expected
    connection = ("malformed" in expected.values() and len(expected) == 2) or "too_large" in expected.values()
    assert broken == connection
    assert (b"\0\0\x08\x07\0\0\0\0\0" in told) == broken


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", raw(PING, 0, 0, b"12345678"), b"\x16\x03\x01\x00\x05hello"],
)
def test_a_peer_that_does_not_begin_with_settings_speaks_no_http2(greeting: bytes) -> None:
    """What it says instead is quoted."""
    made = Http2Client(10)
    made.open()
    assert made.receive(greeting) == []
    assert (made.closing, made.places) == (True, 0)
    assert made.fault.startswith("the server does not speak HTTP/2: what it sends begins b")


FLOODS = {
    "PING": raw(PING, 0, 0, b"12345678"),
    "acknowledged PING": raw(PING, ACK, 0, b"12345678"),
    "SETTINGS": raw(SETTINGS, 0, 0, b"\0\1" + number(100)),
    "PRIORITY": raw(PRIORITY, 0, 1, number(3) + b"\x05"),
    "WINDOW_UPDATE": raw(WINDOW_UPDATE, 0, 0, number(1)),
    "WINDOW_UPDATE on a stream": raw(WINDOW_UPDATE, 0, 1, number(1)),
    "empty DATA": raw(DATA, 0, 1),
    "padding": raw(DATA, PADDED, 1, b"\x03\0\0\0"),
    "unknown frames": raw(0xEE, 0, 0, b"x"),
    "heads before the head": head(3, [(":status", "103")]),
    "GOAWAY": raw(GOAWAY, 0, 0, number(3) + number(0)),
    "heads behind a reset": raw(RST_STREAM, 0, 3, number(7)) + head(3),
}


@pytest.mark.parametrize("name", FLOODS)
def test_frames_that_bring_nothing_do_not_come_for_ever(name: str) -> None:
    """The connection ends, whatever they are, and what was answered to them is bounded."""
    made = client()
    found = answers(made, head(1))
    size = turns = 0
    while not made.fault:
        found.take(made.receive(FLOODS[name] * 1000))
        size += len(sent(made))
        turns += 1
        assert turns < 30
    assert found.ends == BOTH_TOO_LARGE | ({3: "unbegun"} if name == "heads behind a reset" else {})
    assert size < 1 << 20


def test_frames_that_bring_nothing_among_those_that_do_are_borne() -> None:
    """A server that sends a PING for each token is odd, and no attack."""
    made = client()
    found = answers(made, head(1))
    for _ in range(300):
        found.take(made.receive((FLOODS["PING"] + raw(DATA, 0, 1, b"x")) * 100))
        sent(made)
    assert (made.fault, len(found.bodies[1])) == ("", 30_000)


def test_continuation_without_end_is_cut_off() -> None:
    """Within a hundred frames, and what is kept of them is bounded."""
    made = client()
    found = answers(made, raw(HEADERS, 0, 1, b"\x88"))
    for _ in range(100):
        found.take(made.receive(raw(CONTINUATION, 0, 1, b"\x40\x01a\x01b" * 1000)))
        if made.fault:
            break
    assert found.ends == BOTH_TOO_LARGE


FRAME = st.builds(
    raw,
    st.integers(0, 12),
    st.sampled_from([0, 1, 4, 5, 8, 9, 12, 13, 0x20, 0x24, 0x25]),
    st.sampled_from([0, 1, 1, 2, 3, 3, 5, 7]),
    st.binary(max_size=12) | st.sampled_from([b"\x88", b"\x88\x5f\x01a", number(1), number(7) + number(2)]),
)


@given(st.lists(FRAME | st.just(head(1)) | st.just(head(3)), max_size=25), st.booleans())
def test_no_frames_whatever_raise_or_grow_without_bound(frames: list[bytes], greeted: bool) -> None:
    """Frames of every type, with any flags, at any state: no exception, one end a stream, what is sent is in proportion to
    what came, and a broken connection is quiet."""
    wire = b"".join(frames)

    def decode(pieces: list[bytes]) -> tuple[Answers, str]:
        made = client(3 if greeted else 0, greeting=GREETING if greeted else b"")
        sent(made)
        found = answers(made, *pieces)
        assert len(sent(made)) <= 100 + 4 * len(wire)
        assert set(made.streams).isdisjoint(found.ends)
        if made.fault:
            assert not made.streams
            assert made.receive(head(1)) == []
        return found, made.fault

    same_however_cut(wire, decode)


def test_an_answer_to_half_a_request_ends_it_and_stops_its_body() -> None:
    """The server wants no more of the request: it is told so, and the connection goes on (8.1)."""
    made = client(1, greeting=raw(SETTINGS, 0, 0, b"\0\4" + number(5)), body=b"much longer")
    sent(made)
    found = answers(made, head(1, EVENTS, END_HEADERS | END_STREAM))
    assert (found.ends, made.fault) == ({1: "end"}, "")
    assert raw(RST_STREAM, 0, 1, number(0)) in sent(made)
    made.receive(raw(WINDOW_UPDATE, 0, 0, number(100)))
    assert sent(made) == b""


def test_frames_behind_the_end_of_a_stream_do_not_touch_the_others() -> None:
    """DATA after END_STREAM: the answer stands, and the connection goes on or ends by name."""
    made = client()
    found = answers(made, HEADED, raw(DATA, END_STREAM, 1, b"all"), raw(DATA, 0, 1, b"more"))
    assert found.ends[1] == "end"
    if not made.fault:
        found.take(made.receive(raw(DATA, END_STREAM, 3, b"x")))
        assert found.ends == {1: "end", 3: "end"}


@pytest.mark.parametrize("kind", [0x0A, 0x0C, 0x10, 0xFF])
@pytest.mark.parametrize("payload", [b"", b"\0", b"\xff\xffx", b"\0\0h2"])
def test_frames_of_extensions_are_passed_over_whatever_is_in_them(kind: int, payload: bytes) -> None:
    """RFC 9113, 5.5: ALTSVC, ORIGIN, PRIORITY_UPDATE and those to come, on the connection and on a stream."""
    made = client()
    extra = [raw(kind, 0xFF, number, payload) for number in (0, 1, 2)]
    found = answers(
        made, *extra, HEADED, *extra, raw(DATA, END_STREAM, 1, b"a"), raw(DATA, END_STREAM, 3, b"b")
    )
    assert (found.ends, made.fault) == ({1: "end", 3: "end"}, "")


def test_a_frame_on_a_closed_stream_is_named() -> None:
    """Not by the number of its stream alone."""
    made = client()
    answers(made, HEADED, raw(DATA, END_STREAM, 1, b"all"), head(1))
    assert made.fault == "a frame on stream 1, which is not open (STREAM_CLOSED)"


@pytest.mark.parametrize("more", [raw(DATA, 0, 3, b"x"), head(3), head(3) + raw(DATA, END_STREAM, 3, b"x")])
def test_what_comes_on_a_stream_that_was_said_not_to_be_begun_is_nobodys(more: bytes) -> None:
    """Law: a server that goes on behind its own GOAWAY, or says it twice, spoils nothing but the word it gave."""
    made = client(3)
    found = answers(made, head(1), raw(GOAWAY, 0, 0, number(1) + number(0)), more * 3)
    found.take(made.receive(raw(GOAWAY, 0, 0, number(5) + number(0)) + raw(DATA, END_STREAM, 1, b"all")))
    assert (found.ends, found.bodies) == ({1: "end", 3: "unbegun", 5: "unbegun"}, {1: b"all"})
    assert made.fault == ""


def test_a_failure_says_what_the_server_said() -> None:
    """The protocol's own name for it."""
    made = client(3)
    found = answers(made, raw(RST_STREAM, 0, 1, number(2)), raw(RST_STREAM, 0, 3, number(0x77)))
    found.take(made.receive(raw(GOAWAY, 0, 0, number(0) + number(11) + b"too busy")))
    assert found.words == {
        1: "RST_STREAM INTERNAL_ERROR",
        3: "RST_STREAM error 0x77",
        5: "GOAWAY ENHANCE_YOUR_CALM: too busy",
    }


# Trailers.


@pytest.mark.parametrize("body", [b"", b"abc"])
def test_trailers_are_with_the_stream_when_it_ends(body: bytes) -> None:
    """All values of each field, behind a body or none; a stream without them has none."""
    made, server = client(), Server()
    server.receive(sent(made))
    server.h2.send_headers(1, EVENTS)
    if body:
        server.h2.send_data(1, body)
    server.h2.send_headers(1, [("grpc-status", "14"), ("grpc-status", "0")], end_stream=True)
    server.answer(3, b"x")
    ends = [event for event in made.receive(server.h2.data_to_send()) if isinstance(event, End)]
    assert {end.stream.number: end.stream.trailers for end in ends} == {
        1: {b"grpc-status": b"14, 0"},
        3: None,
    }


def test_trailers_with_a_pseudo_field_cost_their_stream() -> None:
    """RFC 9113, 8.1: malformed, and no other stream's matter."""
    made = client()
    wire = head(1) + head(3) + head(1, [(":status", "200")], END_HEADERS | END_STREAM)
    found = answers(made, wire, raw(DATA, END_STREAM, 3, b"x"))
    assert found.ends == {1: "malformed", 3: "end"}
