"""HTTP/1.1 requests, on the reference server's side: the same values however cut, and nothing after a bad one."""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.protocol.http_request import BadRequest, Request, RequestDecoder


def check(data: bytes) -> None:
    """Feed a decoder."""
    items = same_however_cut(data, decoded)
    assert all(isinstance(item, Request) for item in items[:-1])
    for item in items:
        if isinstance(item, BadRequest):
            assert 400 <= item.status < 600
            assert item.reason
        else:
            assert item.version != "1.1" or item.header(b"host") or (b"host", b"") in item.headers


def decoded(pieces: list[bytes]) -> list[Request | BadRequest]:
    """What comes out of a fresh decoder; of a bad request the status alone, since llhttp's words depend on the cut."""
    decoder = RequestDecoder(body_limit=1 << 10)
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return [BadRequest(item.status, "bad") if isinstance(item, BadRequest) else item for item in items]
