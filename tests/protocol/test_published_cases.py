"""What the tests of llhttp say of requests and responses, at its strict settings (github.com/nodejs/llhttp, test/)."""

from __future__ import annotations

import pytest
from feeding import same_however_cut

from inferometer.protocol.http_request import BadRequest, RequestDecoder
from inferometer.protocol.http_response import BadResponse, ResponseDecoder

GET = b"GET / HTTP/1.1\r\nHost: h\r\n"
POST = b"POST / HTTP/1.1\r\nHost: h\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
OK_CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "stream",
    [
        b"GET /m ICE/1.0\r\nHost: h\r\n\r\n",
        b"GET /m IHTTP/1.0\r\n\r\n",
        b"PUT /m RTSP/1.0\r\n\r\n",
        b"ANNOUNCE /m HTTP/1.0\r\n\r\n",
        b"MKCOLA / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/5.6\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: h\r\n\r\n",
        b"POST / HTTP/1.1\nHost: h\r\n\r\n",
        GET + b"a: 1\rb: 2\r\n\r\n",
        GET + b"\rZGET /evil: HTTP/1.1\r\nHost: h\r\n\r\n",
        GET + b"a@: b\r\n\r\n",
        GET + b"a\x01b: c\r\n\r\n",
        GET + b": b\r\n\r\n",
        GET + b"name\r\n : v\r\n\r\n",
        POST + b"x:x\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"x:\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"x: y\r\n Content-Length: 38\r\n\r\n",
        POST + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: +4\r\n\r\nabcd",
        POST + b"Content-Length: 4 2\r\n\r\nabcd",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Content-Length:\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, deflate\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunkedchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: deflate\r\n\r\n",
        POST + b"Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"a a\r\n",
        CHUNKED + b"3\nabc\r\n0\r\n\r\n",
        CHUNKED + b"3;\r\nabc\r\n0\r\n\r\n",
        CHUNKED + b'3;a="b\r\nabc\r\n0\r\n\r\n',
        CHUNKED + b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    ],
)
def test_a_request_that_llhttp_refuses_is_refused(stream: bytes) -> None:
    """Smuggling in all its forms: nothing of such bytes is a request, however cut."""

    def decode(pieces: list[bytes]) -> list[int]:
        decoder = RequestDecoder()
        items = [item for piece in pieces for item in decoder.feed(piece)]
        return [item.status if isinstance(item, BadRequest) else 200 for item in items]

    assert same_however_cut(stream, decode) == [400]


@pytest.mark.parametrize(
    ("stream", "body"),
    [
        (OK_CHUNKED + b"5;a;b=c\r\nhello\r\n0\r\n\r\n", b"hello"),
        (OK_CHUNKED + b'5;i="a; b";c\r\nhello\r\n0\r\n\r\n', b"hello"),
        (OK_CHUNKED + b"5;\r\nhello\r\n0\r\n\r\n", None),
        (OK_CHUNKED + b'5;i="a; b\r\nhello\r\n0\r\n\r\n', None),
        (OK_CHUNKED + b"3  \r\nabc\r\n0\r\n\r\n", None),
        (OK_CHUNKED + b"2 er\r\naa\r\n0\r\n\r\n", None),
        (OK + b"Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello", None),
        (OK + b"Transfer-Encoding: chunked, deflate\r\n\r\nWorld", None),
        (OK + b"Transfer-Encoding: chunkedchunked\r\n\r\n2\r\nOK\r\n0\r\n\r\n", None),
        (OK + b"Transfer-Encoding: chunked\r\n  abc\r\n\r\n5\r\nWorld\r\n0\r\n\r\n", None),
        (OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
        (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", None),
        (OK + b" a: b\r\n\r\n", None),
        (OK + b"a: 1\rb: 2\r\n\r\n", None),
        (b"HTTP/1.1 2000 OK\r\n\r\n", None),
        (b"HTTP/1.1 20 OK\r\n\r\n", None),
        (b"HTTP/1.01 200 OK\r\n\r\n", None),
        (b"HTTP/1.1  200 OK\r\n\r\n", None),
        (b"HTTPS/1.1 200 OK\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\n\n", None),
        (b"HTTP/1.1 204 N\r\n\r\n", b""),
        (b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n", b""),
    ],
)
def test_a_response_is_read_or_refused_as_llhttp_does(stream: bytes, body: bytes | None) -> None:
    """The body of a complete response; None: BadResponse."""

    def decode(pieces: list[bytes]) -> bytes | None:
        decoder = ResponseDecoder()
        try:
            for piece in pieces:
                decoder.feed(piece)
        except BadResponse:
            return None
        assert decoder.complete
        return b"".join(decoder.body)

    assert same_however_cut(stream, decode) == body
