"""The request decoder: grammar, limits, cuts, and agreement with h11 as an independent partner."""

from __future__ import annotations

from collections.abc import Sequence

import h11
import pytest
from feeding import same_however_cut, split_at
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.http_request import BadRequest, Request, RequestDecoder

Item = Request | BadRequest
GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /b?c=d HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n"


def decode_pieces(
    pieces: Sequence[bytes], head_limit: int = 1 << 16, body_limit: int = 1 << 25
) -> list[Item]:
    """What comes out of a fresh decoder fed with these pieces in turn."""
    decoder = RequestDecoder(head_limit, body_limit)
    return [item for piece in pieces for item in decoder.feed(piece)]


def decode_every_way(data: bytes, head_limit: int = 1 << 16, body_limit: int = 1 << 25) -> list[Item]:
    """What these bytes decode to, however they are cut."""
    return same_however_cut(data, lambda pieces: decode_pieces(pieces, head_limit, body_limit))


def bodies(items: list[Item]) -> list[bytes]:
    return [item.body for item in items if isinstance(item, Request)]


def only_bad(items: list[Item]) -> BadRequest:
    (item,) = items
    assert isinstance(item, BadRequest)
    return item


def test_a_request_comes_out_with_its_parts() -> None:
    """Method, target, headers (names in lower case, values as sent) and body are those of the bytes."""
    (request,) = decode_every_way(POST)
    assert request == Request("POST", "/b?c=d", [(b"host", b"h"), (b"content-length", b"5")], b"hello", True)


def test_a_chunked_body_is_joined_and_its_trailers_are_dropped() -> None:
    """RFC 9112 section 7.1: chunk extensions and trailers are no part of the body or of the headers."""
    (request,) = decode_every_way(CHUNKED)
    assert isinstance(request, Request)
    assert request.body == b"abcde"
    assert request.header(b"t") == ""


def test_pipelined_requests_come_out_in_order() -> None:
    """RFC 9112 section 9.3.2: several requests in one read are several requests."""
    assert bodies(decode_every_way(GET + POST + CHUNKED + GET)) == [b"", b"hello", b"abcde", b""]


def test_a_request_with_a_tail_is_complete_before_the_tail_is() -> None:
    """The first bytes of the next request neither delay nor change this one."""
    decoder = RequestDecoder()
    assert bodies(list(decoder.feed(POST + GET[:9]))) == [b"hello"]
    assert bodies(list(decoder.feed(GET[9:]))) == [b""]


@given(st.lists(st.sampled_from([GET, POST, CHUNKED]), max_size=4), st.binary(max_size=30), st.data())
def test_the_cuts_do_not_change_what_is_read(requests: list[bytes], junk: bytes, data: st.DataObject) -> None:
    """However the network cuts a byte sequence, even one that ends in junk, the same values come out."""
    stream = b"".join(requests) + junk
    pieces = split_at(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    assert decode_pieces(pieces) == decode_pieces([stream])


@given(
    st.sampled_from(["POST", "PUT"]),
    st.text("abcXYZ019-_./?=&%", max_size=40).map(lambda text: "/" + text),
    st.lists(
        st.tuples(st.from_regex(r"x-[a-z]{1,8}", fullmatch=True), st.text("abc 012;,=\"'", max_size=20)),
        max_size=6,
    ),
    st.lists(st.binary(min_size=1, max_size=60), max_size=4),
    st.booleans(),
)
def test_what_h11_writes_is_what_we_read(
    method: str, target: str, headers: list[tuple[str, str]], parts: list[bytes], chunked: bool
) -> None:
    """h11, which shares no code with llhttp, writes a request; every part of it arrives as given."""
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(b"".join(parts))))
    given_headers = [("Host", "example"), framing, *((name, value.strip()) for name, value in headers)]
    client = h11.Connection(h11.CLIENT)
    wire = client.send(h11.Request(method=method, target=target, headers=given_headers)) or b""
    for part in parts:
        wire += client.send(h11.Data(part)) or b""
    wire += client.send(h11.EndOfMessage()) or b""
    (request,) = decode_every_way(wire)
    assert isinstance(request, Request)
    assert (request.method, request.target, request.body) == (method, target, b"".join(parts))
    assert request.headers == [(name.lower().encode(), value.encode()) for name, value in given_headers]


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",  # a TLS handshake on a plain port
        b"GET / HTTP/1.1\r\nHost h\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ],
)
def test_bytes_that_break_the_grammar_are_a_bad_request(data: bytes) -> None:
    """RFC 9112: such a message is answered with 400, never guessed at (two framings are how requests are smuggled)."""
    assert only_bad(decode_every_way(data)).status == 400


def test_a_bad_request_is_the_last_value_and_keeps_those_before_it() -> None:
    """What was complete before the fault is still answered; what follows is not read."""
    items = decode_every_way(GET + b"\x00\x00\x00" + GET)
    assert [type(item) for item in items] == [Request, BadRequest]


@pytest.mark.parametrize("spare", [0, 1])
def test_the_head_may_have_its_limit_and_not_a_byte_more(spare: int) -> None:
    """Target, names and values together: the limit itself passes, one byte more is 431."""
    size = len(b"/a") + len(b"Host") + len(b"h") + len(b"X") + 500
    data = b"GET /a HTTP/1.1\r\nHost: h\r\nX: %b\r\n\r\n" % (b"v" * 500)
    items = decode_every_way(data, head_limit=size - spare)
    assert [type(item) for item in items] == ([BadRequest] if spare else [Request])
    if spare:
        assert only_bad(items).status == 431


def test_many_short_headers_are_counted_alike_in_every_cut() -> None:
    """Names and values count, the colons and line ends between them do not, though they are most of the bytes here."""
    head = b"GET /a HTTP/1.1\r\nHost: h\r\n" + b"X:\r\n" * 100 + b"\r\n"
    counted = len(b"/a") + len(b"Hosth") + 100
    assert len(decode_every_way(head, head_limit=counted)) == 1
    assert isinstance(decode_every_way(head, head_limit=counted)[0], Request)
    assert only_bad(decode_every_way(head, head_limit=counted - 1)).status == 431


def test_a_body_may_outgrow_the_heads_limit_in_any_cut() -> None:
    """The limits are apart: bytes of a body are not counted as a head that has not ended."""
    data = b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 300\r\n\r\n" + b"v" * 300
    assert bodies(decode_every_way(data + GET, head_limit=100)) == [b"v" * 300, b""]
    assert bodies(decode_pieces(split_at(data, [20]), head_limit=100)) == [b"v" * 300]


def test_a_head_without_end_is_cut_off() -> None:
    """A client that sends headers for ever is told 431 after a bounded number of bytes, whatever came before."""
    decoder = RequestDecoder(head_limit=1000)
    items: list[Item] = list(decoder.feed(POST + b"GET / HTTP/1.1\r\nHost: h\r\nX: "))
    sent = 0
    while len(items) < 2:
        items += decoder.feed(b"v" * 100)
        sent += 100
        assert sent <= 2100
    assert isinstance(items[0], Request)
    assert isinstance(items[1], BadRequest)
    assert items[1].status == 431


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("data", [POST, CHUNKED], ids=["declared", "chunked"])
def test_the_body_may_have_its_limit_and_not_a_byte_more(data: bytes, spare: int) -> None:
    """Both framings carry five bytes: five pass a limit of five, and not a limit of four."""
    items = decode_every_way(data, body_limit=5 - spare)
    if spare:
        assert only_bad(items).status == 413
    else:
        assert len(bodies(items)) == 1


def test_a_body_declared_too_large_is_refused_before_it_is_sent() -> None:
    """The length alone is enough: nobody has to upload what will be refused."""
    data = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"
    assert only_bad(decode_pieces([data])).status in (400, 413)  # llhttp itself refuses what needs 64 bits
    assert only_bad(decode_pieces([data.replace(b"9" * 20, b"9" * 12)])).status == 413


def test_a_client_that_waits_is_told_to_continue_once() -> None:
    """RFC 9110 section 10.1.1: 100 is due after the head, before any of the body, and only if asked for."""
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n"
    decoder = RequestDecoder()
    assert decoder.feed(head[:-1]) == []
    assert not decoder.take_continue()
    assert decoder.feed(head[-1:]) == []
    assert decoder.take_continue()
    assert not decoder.take_continue()
    assert bodies(list(decoder.feed(b"hello"))) == [b"hello"]
    decoder.feed(head + b"h")
    assert not decoder.take_continue()
    decoder = RequestDecoder()
    decoder.feed(POST[:-5])
    assert not decoder.take_continue()


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: foo, Close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_the_connection_persists_as_the_rfc_says(version: str, connection: str, kept: bool) -> None:
    """RFC 9112 section 9.3; and after a last request further bytes are dropped without complaint (9.6)."""
    data = f"GET / HTTP/{version}\r\nHost: h\r\n{connection}\r\n".encode()
    items = decode_every_way(data + data)
    assert [item.keep_alive for item in items if isinstance(item, Request)] == (
        [True, True] if kept else [False]
    )
    assert len(items) == (2 if kept else 1)


def test_an_upgrade_that_is_not_taken_is_an_ordinary_request() -> None:
    """RFC 9110 section 7.8: a server may ignore Upgrade; what follows is HTTP/1.1 still."""
    upgrade = b"GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    items = decode_every_way(upgrade + POST)
    assert [item.target for item in items if isinstance(item, Request)] == ["/up", "/b?c=d"]


def test_an_upgrade_with_a_body_is_refused_and_its_body_is_not_read_as_a_request() -> None:
    """llhttp stops before such a body; taking it for the next request would let it smuggle one in."""
    smuggler = (
        b"POST /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n"
        % len(GET)
    )
    assert only_bad(decode_every_way(smuggler + GET)).status == 501


def test_connect_ends_the_connection() -> None:
    """After CONNECT the bytes are a tunnel's, not ours."""
    (request,) = decode_every_way(b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\nGET ")
    assert isinstance(request, Request)
    assert not request.keep_alive


START = b"POST / HTTP/1.1\r\nHost: h\r\n"
FULL_WIDTH = "\uff15".encode()
"""A digit to `int`, and none to HTTP."""


@pytest.mark.parametrize(
    "data",
    [
        START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        START + b"Content-Length: " + FULL_WIDTH + b"\r\n\r\nhello",
        START + b"Content-Length: \xb2\r\n\r\nhe",
        START + b"Content-Length: 0_5\r\n\r\nhello",
        START + b"Transfer-Encoding: chunked\r\n\r\n" + FULL_WIDTH + b"\r\nhello\r\n0\r\n\r\n",
        START + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_framing_that_h11_refuses_is_a_bad_request(data: bytes) -> None:
    """Law: more than one coding, and digits that only a lenient reader takes for a length, frame nothing."""
    partner = h11.Connection(h11.SERVER)
    partner.receive_data(data)
    with pytest.raises(h11.RemoteProtocolError):
        while partner.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass
    assert only_bad(decode_every_way(data)).status == 400
