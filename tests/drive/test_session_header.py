"""The header line that keeps a session's requests together."""

from __future__ import annotations

import h11

from inferometer.drive.channel import RequestHead
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1, Http1Channel
from inferometer.drive.session_header import SessionHeader
from inferometer.engines.openai import CHAT


def test_a_session_keeps_its_value_and_no_other_has_it() -> None:
    """Law: over phases, sessions, cycles, single requests and runs."""
    header, other = SessionHeader("X-Session-ID", "salt"), SessionHeader("X-Session-ID", "other")
    values = {
        made.field(phase, session, row, cycle)
        for made in (header, other)
        for phase in (0, 1)
        for session in (0, 1, None)
        for cycle in (0, 1)
        for row in (5,)
    }
    assert len(values) == 2 * (2 * 2 * 2 + 2)
    assert header.field(1, 3, 40, 0) == header.field(1, 3, 41, 0)
    assert header.field(1, None, 40, 0) != header.field(1, None, 41, 0)


def test_another_reader_finds_the_line_behind_those_of_the_class() -> None:
    own = SessionHeader("X-Session-ID", "salt").field(1, 3, 40, 0)
    prepared = HTTP1.prepare(RequestHead("POST", "/v1/x", {"Host": "h"}))
    channel = Http1Channel()
    channel.opened()
    channel.submit(Exchange(0, 0, 0, prepared, b"{}", 0, CHAT, own_field=own))
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(channel.outgoing[0][0])
    request, body = reader.next_event(), reader.next_event()
    assert isinstance(request, h11.Request)
    assert isinstance(body, h11.Data)
    assert dict(request.headers)[b"x-session-id"] == own[1]
    assert bytes(body.data) == b"{}"
