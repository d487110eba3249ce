"""The one client of all that is not load, against servers that mean harm: each request ends in time and in bounds."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
import threading
import tracemalloc

import pytest
import trustme
from hostile import HEAD, bomb, flooding
from peers import Script, scripted, whole

from inferometer.client.http_client import Client, Unanswered
from inferometer.client.trust import context

LARGEST = 1 << 20
ENDLESS = {
    "a body without a length": (HEAD, b" " * 65_536),
    "chunks of one byte": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
    "a chunk without an end": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
        b"x" * 65_536,
    ),
    "chunk extensions": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1;" + b"e" * 8_000 + b"\r\nx\r\n",
    ),
    "header lines": (b"HTTP/1.1 200 OK\r\n", b"X-Filler: abcdefgh\r\n" * 100),
    "one header line": (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65_536),
    "interim responses": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1_000),
}


def client(port: int, **more: object) -> Client:
    settings = {"timeout_s": 20.0, "largest": LARGEST, **more}
    return Client("127.0.0.1", port, {"Host": "h"}, **settings)  # type: ignore[arg-type]  # of one dict


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_an_end_is_left_at_its_limit(what: str) -> None:
    """Whichever part of it never ends; what is held meanwhile stays near the limit."""
    first, piece = ENDLESS[what]
    with flooding(piece, first=first) as port, client(port) as one:
        tracemalloc.start()
        try:
            with pytest.raises(Unanswered) as caught:
                one.get("/")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert caught.value.reason in ("too_large", "not_http")
    assert peak < 16 * LARGEST


@pytest.mark.parametrize("first", [HEAD, b"HTTP/1.1 200 OK\r\nX: ", b""])
def test_an_answer_of_a_byte_now_and_then_ends_at_the_deadline(first: bytes) -> None:
    """Each byte is in time; the whole is not. In the body, in the head, and from the first byte on."""
    with (
        flooding(b"1", drip=True, first=first) as port,
        client(port, timeout_s=0.3) as one,
        pytest.raises(Unanswered) as caught,
    ):
        one.get("/")
    assert caught.value.reason == ("timeout" if first else "not_http")


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_peer_that_reads_slowly_does_not_hold_a_request_beyond_its_deadline(encrypted: bool) -> None:
    """Also over TLS, where each piece of what is sent would else have the whole time again."""
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        sock, _ = listener.accept()
        sock = server.wrap_socket(sock, server_side=True) if encrypted else sock
        with contextlib.suppress(OSError):
            while not over.wait(0.02) and sock.recv(16_384):
                pass
        sock.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    trusted = context(True, None)
    authority.configure_trust(trusted)
    tls = (lambda: trusted) if encrypted else None
    try:
        with (
            client(listener.getsockname()[1], timeout_s=0.5, tls=tls) as one,
            pytest.raises(Unanswered) as caught,
        ):
            one.request("POST", "/", b"x" * (64 << 20))
    finally:
        over.set()
        thread.join(20)
        listener.close()
    assert caught.value.reason == "timeout"


def test_nothing_is_decompressed() -> None:
    """What was compressed unasked arrives as it was sent: a bomb of 64 MiB is 64 kB."""
    with scripted(lambda _: Script([bomb(64 << 20)])) as peer, client(peer.port) as one:
        answer = one.get("/")
    assert answer.header(b"content-encoding") == "gzip"
    assert len(answer.body) < 128_000


@pytest.mark.parametrize("depth", [sys.getrecursionlimit() - 50, sys.getrecursionlimit() * 100])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_that_is_nested_too_deeply_is_no_json(depth: int, opening: str) -> None:
    """It raises as any other body that is none, and never RecursionError; unless the interpreter can read it."""
    with scripted(lambda _: Script(whole(200, (opening * depth).encode()))) as peer, client(peer.port) as one:
        answer = one.get("/")
    with pytest.raises(ValueError, match=r"nested|Expecting"):
        answer.json()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_and_no_proxy_of_the_environment_is_followed(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server would be asked, with the key that was meant for this one."""
    with scripted(lambda _: Script(whole(200, b"{}"))) as trap:
        elsewhere = f"http://127.0.0.1:{trap.port}"
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, elsewhere)
            monkeypatch.setenv(name.upper(), elsewhere)
        line = f"Location: {elsewhere}/".encode()
        with scripted(lambda _: Script(whole(status, b"", line))) as peer, client(peer.port) as one:
            assert one.get("/").status == status
            assert one.send_json("POST", "/", {}).status == status
        assert [len(peer.seen), len(trap.seen)] == [2, 0]


def test_a_body_of_half_a_surrogate_pair_is_json_that_its_reader_must_encode() -> None:
    """JSON can spell what no text can hold."""
    with scripted(lambda _: Script(whole(200, b'"\\ud800"'))) as peer, client(peer.port) as one:
        assert json.dumps(one.get("/").json()) == '"\\ud800"'
