"""HTTP/1.1 responses: the same head, body and end however cut; a fault is BadResponse or HeadTooLarge.

What stands behind a complete response may be a fault or not, by the cut: it changes nothing of the response, and the connection
is closed or found unusable.
"""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.protocol.http_response import BadResponse, HeadTooLarge, ResponseDecoder

Outcome = tuple[int, dict[bytes, bytes], bytes, bool, str]


def check(data: bytes) -> None:
    """Feed a decoder."""
    same_however_cut(data, decoded)


def decoded(pieces: list[bytes]) -> Outcome:
    """Status, headers, body, whether it is complete, and the fault of one that is not."""
    decoder, body, fault = ResponseDecoder(), b"", ""
    try:
        for piece in pieces:
            try:
                decoder.feed(piece)
            finally:
                body += b"".join(decoder.body)
                decoder.body.clear()
    except (BadResponse, HeadTooLarge) as cause:
        fault = type(cause).__name__
    status, headers = decoder.status, dict(decoder.headers)
    complete = decoder.complete
    assert decoder.eof() or not complete
    decoder.close()
    return status, headers, body, complete, "" if complete else fault
