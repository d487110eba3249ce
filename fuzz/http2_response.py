"""HTTP/2 on the client's side: the same answers and the same fault however cut, one end a stream, nothing raised, and no more
sent than what came asks for."""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.protocol.http2_client import Http2Client
from inferometer.protocol.http2_events import Event, Head, Stream

FIELDS = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"h")]
STREAMS = 3
BODY = b"x" * 70_000
"""More than the windows of a server that says nothing: what it opens is used."""

Outcome = tuple[dict[int, int], dict[int, bytes], dict[int, str], str]


def check(data: bytes) -> None:
    """Feed a connection that stands."""
    same_however_cut(data, lambda pieces: answered(pieces, len(data)))


def answered(pieces: list[bytes], size: int) -> Outcome:
    """Statuses, bodies and ends by stream, and the fault of the connection."""
    client = Http2Client(STREAMS)
    client.open()
    client.receive(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    for place in range(STREAMS):
        client.request(FIELDS, BODY if place else b"", place)
    client.outgoing.clear()
    statuses: dict[int, int] = {}
    bodies: dict[int, bytes] = {}
    ends: dict[int, str] = {}
    for piece in pieces:
        for event in client.receive(piece):
            _note(event, statuses, bodies, ends)
    sent = sum(len(data) for data, _, _ in client.outgoing)
    assert sent <= 100 + 4 * size + STREAMS * (len(BODY) + 100), f"{size} bytes made us send {sent}"
    assert not client.fault or not client.streams
    fault = client.fault
    client.close()
    return statuses, bodies, ends, fault


def _note(event: Event, statuses: dict[int, int], bodies: dict[int, bytes], ends: dict[int, str]) -> None:
    stream = event if isinstance(event, Stream) else event.stream
    number = stream.number
    assert number not in ends
    if isinstance(event, Stream):
        assert number in statuses
        bodies[number] = bodies.get(number, b"") + event.take()
    elif isinstance(event, Head):
        assert number not in statuses
        statuses[number] = event.status
    else:
        ends[number] = getattr(event, "why", "end")
