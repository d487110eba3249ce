"""The reference server over HTTP/2, with h2 as the client, and clients that break RFC 9113."""

from __future__ import annotations

import functools
import json
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes
from http2_partner import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    REQUEST,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    block,
    head,
    number,
    raw,
)
from serving import QUICK

from inferometer.server import tls
from inferometer.server.engine.settings import Settings

Serve = Callable[..., int]

PATIENCE_S = 30
CHAT = "/v1/chat/completions"
SLOW = Settings(
    prefill_base_ns=1, prefill_per_token_ns=0, step_base_ns=20_000_000, step_per_request_ns=0, jitter=0
)


def chat_body(**fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "hello hello hello"}], **fields}).encode()


class Client:
    """h2's side of one connection. Windows are opened again as bodies come, unless `greedy` is off."""

    def __init__(self, sock: socket.socket, *, greedy: bool = True, window: int | None = None) -> None:
        self.sock = sock
        self.greedy = greedy
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        if window is not None:
            self.h2.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = window
            self.h2.local_settings.acknowledge()
        self.h2.initiate_connection()
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}
        self.over: dict[int, str] = {}
        self.gone: ConnectionTerminated | None = None
        self.flush()

    def flush(self) -> None:
        """Send what h2 has."""
        self.sock.sendall(self.h2.data_to_send())

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> int:
        """Send a request; its stream."""
        stream = self.h2.get_next_available_stream_id()
        fields = [
            (":method", method),
            (":scheme", "http"),
            (":path", path),
            (":authority", "test"),
            *headers.items(),
        ]
        self.h2.send_headers(stream, fields, end_stream=not body)
        self.bodies[stream] = b""
        while body:
            room = min(self.h2.local_flow_control_window(stream), 16_384)
            self.h2.send_data(stream, body[:room], end_stream=len(body) <= room)
            body = body[room:]
            self.flush()
            if body and self.h2.local_flow_control_window(stream) < 16_384:
                self.read()
        self.flush()
        return stream

    def read(self) -> bool:
        """Take in what the next read brings; False at the end of the connection."""
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            return False
        for event in self.h2.receive_data(data):
            if isinstance(event, ResponseReceived):
                self.heads[event.stream_id] = {str(name): str(value) for name, value in event.headers or []}
            elif isinstance(event, DataReceived):
                self.bodies[event.stream_id] += event.data
                if self.greedy:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.over[event.stream_id] = "end"
            elif isinstance(event, StreamReset):
                self.over[event.stream_id] = f"reset {int(event.error_code)}"
            elif isinstance(event, ConnectionTerminated):
                self.gone = event
        if self.gone is None:
            self.flush()
        return True

    def until(self, holds: Callable[[], bool]) -> None:
        """Read until this is so."""
        while not holds():
            assert self.read(), "the connection ended"

    def answer(self, stream: int) -> tuple[int, bytes]:
        """Status and body of a whole answer."""
        self.until(lambda: stream in self.over)
        assert self.over[stream] == "end"
        return int(self.heads[stream][":status"]), self.bodies[stream]


def dial(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def connect(port: int, **how: Any) -> Client:
    return Client(dial(port), **how)


def truth(port: int) -> list[Any]:
    """The truth log, over HTTP/2 as well."""
    client = connect(port)
    status, body = client.answer(client.ask("GET", "/inferometer/truth"))
    assert status == 200
    client.sock.close()
    return [json.loads(line) for line in body.splitlines()]


def truth_of(port: int, count: int) -> list[Any]:
    """The same, once it has so many rows."""
    until = time.monotonic() + PATIENCE_S
    while len(rows := truth(port)) < count:
        assert time.monotonic() < until
    return rows


def http1(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """The body of a response over HTTP/1.1, its chunks taken apart by http.client."""
    import http.client

    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    client.request(method, path, body)
    data = client.getresponse().read()
    client.close()
    return data


def test_many_streams_of_one_connection_are_answered_side_by_side(serve: Serve) -> None:
    """Forty answers at once: every one has its tokens and its end, and the log a stamp for each token, none of them late for
    another's sake."""
    port = serve(engine=QUICK)
    client = connect(port)
    streams = [client.ask("POST", CHAT, chat_body(stream=True, max_tokens=7)) for _ in range(40)]
    for stream in streams:
        status, body = client.answer(stream)
        assert (status, body.count(b"data: ")) == (200, 9)
        assert body.endswith(b"data: [DONE]\n\n")
        assert client.heads[stream]["content-type"] == "text/event-stream; charset=utf-8"
        assert not {"transfer-encoding", "connection"} & client.heads[stream].keys()
    rows = truth_of(port, 40)
    assert [(row["outcome"], len(row["sent_ns"])) for row in rows] == [("finished", 7)] * 40
    assert all(row["sent_ns"] == sorted(row["sent_ns"]) for row in rows)


def test_both_versions_say_the_same_on_one_port(serve: Serve) -> None:
    """Whole answers, streams, lists and errors: the bodies are those of HTTP/1.1, on servers with one seed."""
    asked = [
        ("POST", CHAT, chat_body(max_tokens=5)),
        ("POST", CHAT, chat_body(max_tokens=5, stream=True)),
        (
            "POST",
            "/v1/completions",
            json.dumps({"prompt": "a b c", "max_tokens": 4, "stream": True}).encode(),
        ),
        ("POST", "/v1/responses", json.dumps({"input": "hello", "max_output_tokens": 3}).encode()),
        ("POST", CHAT, b"{"),
        ("GET", "/nothing", b""),
        ("GET", "/health", b""),
        ("POST", "/tokenize", json.dumps({"prompt": "one two"}).encode()),
    ]
    old, new = serve(engine=QUICK, seed=4), serve(engine=QUICK, seed=4)
    client = connect(new)
    for method, path, body in asked:
        mine = client.answer(client.ask(method, path, body))[1]
        theirs = http1(old, method, path, body)
        for volatile in (b'"created"', b'"created_at"', b'"completed_at"'):
            mine, theirs = (one.split(volatile)[0] for one in (mine, theirs))
        assert mine == theirs
    assert b'"data"' in http1(new, "GET", "/v1/models")


def test_a_client_that_gives_up_a_stream_leaves_the_others(serve: Serve) -> None:
    """RST_STREAM takes the generation from the engine, which logs it as cancelled; the other answer goes on to its end."""
    port = serve(engine=SLOW)
    client = connect(port)
    one, other = (client.ask("POST", CHAT, chat_body(stream=True, max_tokens=count)) for count in (5_000, 10))
    client.until(lambda: bool(client.bodies[one]))
    client.h2.reset_stream(one, 8)
    client.flush()
    assert client.answer(other)[0] == 200
    rows = truth_of(port, 2)
    assert sorted(row["outcome"] for row in rows) == ["cancelled", "finished"]


def test_a_client_that_goes_away_takes_all_its_streams_with_it(serve: Serve) -> None:
    """As a closed connection of HTTP/1.1 does."""
    port = serve(engine=SLOW)
    client = connect(port)
    streams = [client.ask("POST", CHAT, chat_body(stream=True, max_tokens=5_000)) for _ in range(3)]
    client.until(lambda: all(client.bodies[stream] for stream in streams))
    client.sock.close()
    assert [row["outcome"] for row in truth_of(port, 3)] == ["cancelled"] * 3


def test_answers_keep_to_the_windows_of_the_client(serve: Serve) -> None:
    """A window of 100 bytes, opened piece by piece: h2 refuses what exceeds it, and the answer arrives whole."""
    client = connect(serve(engine=QUICK), window=100)
    streams = [client.ask("POST", CHAT, chat_body(stream=True, max_tokens=20)) for _ in range(3)]
    for stream in streams:
        status, body = client.answer(stream)
        assert (status, body.count(b"data: ")) == (200, 22)


def test_what_a_client_leaves_unread_is_bounded(serve: Serve) -> None:
    """A window of zero that is never opened: the stream is cut where a client of HTTP/1.1 would be, and the others go on."""
    port = serve(engine=QUICK, backlog_limit=20_000)
    client = connect(port, window=0, greedy=False)
    stuck = client.ask("POST", CHAT, chat_body(stream=True, max_tokens=1_000))
    client.until(lambda: stuck in client.over)
    assert client.over[stuck].startswith("reset")
    (row,) = truth_of(port, 1)
    assert row["outcome"] == "overflow"


def test_large_requests_come_in_and_larger_ones_are_refused(serve: Serve) -> None:
    """A body of many frames is read; one over the limit is answered with 413 before its end, and its connection goes on."""
    client = connect(serve(engine=QUICK, body_limit=200_000, max_model_len=100_000))
    body = json.dumps({"prompt": [7] * 50_000, "max_tokens": 2}).encode()
    status, answer = client.answer(client.ask("POST", "/v1/completions", body))
    assert (status, json.loads(answer)["usage"]["prompt_tokens"]) == (200, 50_000)
    stream = client.h2.get_next_available_stream_id()
    client.h2.send_headers(stream, [*REQUEST[:2], (":path", CHAT), (":authority", "t")])
    client.bodies[stream] = b""
    for _ in range(20):
        client.h2.send_data(stream, b"x" * 12_000)
        client.flush()
    client.until(lambda: stream in client.over)
    assert client.heads[stream][":status"] == "413"
    assert client.answer(client.ask("GET", "/health"))[0] == 200


def test_a_server_that_stops_says_so(serve: Serve) -> None:
    """GOAWAY with the last stream that was begun; the fixture stops the server, so this one is stopped by hand."""
    from serving import serving

    with serving(engine=SLOW) as port:
        client = connect(port)
        stream = client.ask("POST", CHAT, chat_body(stream=True, max_tokens=5_000))
        client.until(lambda: bool(client.bodies[stream]))
    while client.gone is None:
        assert client.read()
    assert (client.gone.error_code, client.gone.last_stream_id) == (0, stream)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["h2"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"), ([], None)],
)
def test_over_tls_the_version_is_agreed_on(
    serve: Serve, tmp_path: Path, offered: list[str], chosen: str | None
) -> None:
    """HTTP/2 where the client offers it, HTTP/1.1 for all others."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    made = tls.context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    port = serve(wrap=functools.partial(tls.TlsSocket, made=made), engine=QUICK)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    if offered:
        trusting.set_alpn_protocols(offered)
    with trusting.wrap_socket(dial(port), server_hostname="localhost") as sock:
        assert sock.selected_alpn_protocol() == chosen
        if chosen == "h2":
            client = Client(sock)
            status, body = client.answer(client.ask("POST", CHAT, chat_body(stream=True, max_tokens=30)))
            assert (status, body.count(b"data: ")) == (200, 32)
        else:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_faults_are_those_of_http1(serve: Serve) -> None:
    """A server with faults does not speak HTTP/2: it answers the preface as a request that it cannot read."""
    from serving import serving

    with serving("reset:after=3") as port, dial(port) as sock:
        sock.sendall(PREFACE)
        assert sock.recv(12) == b"HTTP/1.1 400"


def request(stream: int, flags: int = END_HEADERS | END_STREAM) -> bytes:
    return head(stream, [*REQUEST[:2], (":path", "/health"), (":authority", "t")], flags)


HOSTILE = {
    "a preface that is none": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "DATA on a stream that is idle": raw(DATA, 0, 1, b"x"),
    "a stream of the server's": request(2),
    "a stream that was passed over": request(5) + request(3),
    "a request without a path": head(1, REQUEST[:2], END_HEADERS | END_STREAM),
    "a field in capitals": head(1, [*REQUEST, ("X", "y")], END_HEADERS | END_STREAM),
    "a body longer than declared": head(1, [*REQUEST, ("content-length", "1")]) + raw(DATA, END_STREAM, 1, b"four"),
    "a frame over the limit": raw(DATA, 0, 1, length=20_000),
    "HEADERS that do not decode": raw(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"),
    "HEADERS without end": raw(HEADERS, 0, 1, b"\x83") + raw(CONTINUATION, 0, 1, b"\x40\x01a\x01b" * 2000) * 100,
    "HEADERS over the limit": raw(HEADERS, 0, 1, block([*REQUEST, *[("x", "y" * 10_000)] * 1])) + raw(
        CONTINUATION, 0, 1, block([("x", "y" * 15_000)])) * 3 + raw(CONTINUATION, END_HEADERS, 1, block([("x", "y" * 15_000)])),
    "a window that overflows": raw(WINDOW_UPDATE, 0, 0, number((1 << 31) - 1)),
    "SETTINGS out of range": raw(SETTINGS, 0, 0, b"\0\5" + number(1)),
    "GOAWAY of another size": raw(GOAWAY, 0, 0, b"x"),
    "a PING without end": raw(PING, 0, 0, b"12345678") * 20_000,
    "PRIORITY without end": raw(PRIORITY, 0, 1, number(3) + b"\x05") * 20_000,
    "empty DATA without end": head(1, REQUEST) + raw(DATA, 0, 1) * 20_000,
    "resets without end": b"".join(
        head(stream, REQUEST) + raw(RST_STREAM, 0, stream, number(8)) for stream in range(1, 6_000, 2)
    ),
    "streams without end": b"".join(head(stream, REQUEST) for stream in range(1, 4_000, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_client_that_breaks_the_protocol_is_told_and_cut_off(serve: Serve, name: str) -> None:
    """GOAWAY, and the end of the connection; the server goes on with the next client."""
    port = serve(engine=QUICK)
    wire = HOSTILE[name]
    with dial(port) as sock:
        received = b""
        try:
            sock.sendall(wire if wire.startswith(b"PRI") else PREFACE + raw(SETTINGS, 0, 0) + wire)
            while data := sock.recv(65536):
                received += data
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            assert name.startswith("a preface") or b"\0\0\x08\x07\0\0\0\0\0" in received
    client = connect(port)
    assert client.answer(client.ask("GET", "/health"))[0] == 200
