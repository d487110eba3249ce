"""The reference server over a WebSocket, with `websockets` as the client, and clients that break RFC 6455."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
import websockets.sync.client as sockets
from server.interfaces import PROMPT, USER, get, objects, post, truth
from serving import QUICK, serving
from websocket_partner import PING, TEXT, by_websockets, raw
from websockets.exceptions import ConnectionClosed, InvalidStatus

from inferometer.engines.answer import Answer
from inferometer.engines.dialect import load
from inferometer.protocol import websocket_handshake as handshake
from inferometer.server import tls
from inferometer.server.answer_parts import Parts
from inferometer.server.engine.settings import Settings
from inferometer.server.websocket_session import MOST_WAITING

Serve = Callable[..., int]

PATIENCE_S = 30
PATH = "/v1/ws"
SLOW = Settings(
    prefill_base_ns=1, prefill_per_token_ns=0, step_base_ns=20_000_000, step_per_request_ns=0, jitter=0
)
NONCE = bytes(16)


def asked(count: int = 3, **fields: Any) -> str:
    return json.dumps({"messages": USER, "max_tokens": count, "stream": True, **fields})


connect = functools.partial(sockets.connect, compression=None, open_timeout=PATIENCE_S, proxy=None)


def answer(client: sockets.ClientConnection) -> list[dict[str, Any]]:
    """The messages up to the end of an answer."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] not in ("end", "error", "answer"):
        found.append(json.loads(client.recv(timeout=PATIENCE_S)))
    return found


def shaken(port: int) -> socket.socket:
    """A socket on which the handshake is over."""
    sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    sock.sendall(handshake.request(PATH, {"Host": "test"}, NONCE))
    opening, head = handshake.ClientHandshake(NONCE), b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1)
    opening.feed(head)
    assert opening.done
    return sock


def until_the_end(sock: socket.socket) -> bytes:
    """All that the server sends before it closes."""
    found = b""
    while data := sock.recv(65536):
        found += data
    return found


def test_an_answer_is_the_same_as_by_post(serve: Serve) -> None:
    """Two servers with one seed: the same messages, one a line there; begin, one a token, end with counts."""
    ports = [serve(seed=3) for _ in range(2)]
    with connect(f"ws://127.0.0.1:{ports[0]}{PATH}") as client:
        client.send(asked(5))
        found = answer(client)
    assert found == objects(post(ports[1], PATH, asked(5).encode()))
    assert [one["type"] for one in found] == ["begin", *["token"] * 5, "end"]
    assert found[0]["id"] == truth(ports[0])[0]["id"]
    assert (found[-1]["finish_reason"], found[-1]["usage"]["completion_tokens"]) == ("length", 5)


def test_a_connection_has_one_answer_after_the_other(serve: Serve) -> None:
    """Also of requests that did not wait for it, whole ones and refusals; the connection goes on."""
    port = serve()
    with connect(f"ws://127.0.0.1:{port}{PATH}") as client:
        for message in (asked(2), asked(2, stream=False), "{", asked(2, model="other"), asked(2)):
            client.send(message)
        found = [answer(client) for _ in range(5)]
    assert [one[-1]["type"] for one in found] == ["end", "answer", "error", "error", "end"]
    assert [one[-1]["status"] for one in found[2:4]] == [400, 404]
    assert len(str(found[1][0]["text"]).split()) == 2
    assert [row["outcome"] for row in truth(port)] == ["finished"] * 3


def test_the_truth_is_that_of_http(serve: Serve) -> None:
    """The message had arrived before it was read; each token left after the model had it, and was there after that."""
    port = serve(engine=SLOW)
    with connect(f"ws://127.0.0.1:{port}{PATH}") as client:
        sent = time.monotonic_ns()
        client.send(asked(3))
        instants = []
        while json.loads(client.recv(timeout=PATIENCE_S))["type"] != "end":
            instants.append(time.monotonic_ns())
    (row,) = truth(port)
    assert (row["api"], row["stream"], row["prompt_head"]) == ("websocket", True, PROMPT)
    received = row["received_ns"]
    arrived = (
        received if row["arrived_ns"] is None else row["arrived_ns"]
    )  # the kernel stamps no packet until it has begun to
    assert sent <= arrived <= received <= row["opened_ns"]
    for model, left, there in zip(row["model_ns"], row["sent_ns"], instants[1:], strict=True):
        assert model <= min(left, there)
    assert row["ended_ns"] >= row["sent_ns"][-1]


def test_realtime_is_told_in_openais_events(serve: Serve) -> None:
    """A greeting, the answer to an update, and a response in its grammar; other events are refused, and the connection goes on.
    Our own client reads the counts."""
    port = serve(parts=Parts(reasoning=1))
    create = {"type": "response.create", "response": {"input": PROMPT, "max_output_tokens": 3}}
    with connect(f"ws://127.0.0.1:{port}/v1/realtime?model=reference") as client:
        greeting = json.loads(client.recv(timeout=PATIENCE_S))
        assert (greeting["type"], greeting["session"]["model"]) == ("session.created", "reference")
        found = []
        for event in ({"type": "session.update", "session": {}}, {"type": "other"}, create):
            client.send(json.dumps(event))
            found.append(json.loads(client.recv(timeout=PATIENCE_S)))
        answer_, read = Answer(), []
        while not answer_.done:
            read.append(client.recv(timeout=PATIENCE_S))
            load("realtime").read_event(answer_, str(read[-1]).encode(), 1)
    assert [one["type"] for one in found] == ["session.updated", "error", "response.created"]
    kinds = [json.loads(one)["type"].removeprefix("response.") for one in read]
    text = ["output_item.added", "content_part.added", "output_text.delta", "output_text.delta"]
    assert kinds[-8:] == [*text, "output_text.done", "content_part.done", "output_item.done", "done"]
    assert (answer_.finish_reason, answer_.output_tokens, answer_.input_tokens) == ("length", 3, 10)
    (row,) = truth(port)
    assert (row["api"], len(row["sent_ns"]), row["outcome"]) == ("realtime", 3, "finished")


@pytest.mark.parametrize("polite", [True, False])
def test_a_client_that_leaves_ends_its_generation(serve: Serve, polite: bool) -> None:
    """With a close, which is answered, or without."""
    port = serve(engine=SLOW)
    sock = shaken(port)
    sock.sendall(raw(TEXT, asked(500).encode(), mask=b"1234"))
    assert sock.recv(65536)
    if polite:
        sock.sendall(raw(8, (1001).to_bytes(2, "big"), mask=b"1234"))
        assert by_websockets(until_the_end(sock)).close == (1001, "")
    sock.close()
    until = time.monotonic() + PATIENCE_S
    while not (rows := truth(port)) and time.monotonic() < until:
        pass
    assert (rows[0]["outcome"], len(rows[0]["sent_ns"]) < 500) == ("cancelled", True)


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (raw(TEXT, b"{}"), 1002),
        (raw(TEXT, b"{}", bits=0x40, mask=b"1234"), 1002),
        (raw(3, b"{}", mask=b"1234"), 1002),
        (raw(PING, b"", fin=False, mask=b"1234"), 1002),
        (raw(TEXT, b"\xff", mask=b"1234"), 1007),
        (b"\x81\xff" + (1 << 40).to_bytes(8, "big") + b"1234", 1009),
        (raw(PING, b"x", mask=b"1234") * 10_001, 1008),
        (raw(TEXT, asked(500).encode(), mask=b"1234") * (MOST_WAITING + 1), 1008),
        (b"GET / HTTP/1.1\r\nHost: test\r\n\r\n", 1002),
    ],
)
def test_what_breaks_the_rfc_is_closed_with_its_code(serve: Serve, wire: bytes, code: int) -> None:
    """And the next client is served."""
    port = serve(engine=SLOW)
    sock = shaken(port)
    sock.sendall(wire)
    close = by_websockets(until_the_end(sock)).close
    sock.close()
    assert close is not None
    assert close[0] == code
    with connect(f"ws://127.0.0.1:{port}{PATH}") as client:
        client.send(asked(1))
        assert answer(client)[-1]["type"] == "end"


def test_pings_are_answered_and_fragments_are_one_request(serve: Serve) -> None:
    """As `websockets` sends them."""
    port = serve()
    with connect(f"ws://127.0.0.1:{port}{PATH}") as client:
        assert client.ping(b"x").wait(PATIENCE_S)
        message = asked(2)
        client.send(iter((message[:9], message[9:20], message[20:])))
        assert len(answer(client)) == 4


RIGHT = {
    "Upgrade": "websocket",
    "Connection": "keep-alive, Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Upgrade": ""}, 426),
        ({"Upgrade": "h2c"}, 426),
        ({"Connection": "keep-alive"}, 400),
        ({"Sec-WebSocket-Version": "8"}, 400),
        ({"Sec-WebSocket-Key": "AAAA"}, 400),
        ({"Sec-WebSocket-Key": "!" * 24}, 400),
    ],
)
def test_a_handshake_that_is_none_is_refused(serve: Serve, change: dict[str, str], status: int) -> None:
    """By its status, and the connection is one of HTTP as before."""
    port = serve()
    reply = get(port, PATH, headers={**RIGHT, **change})
    assert (reply.status_code, reply.json()["type"]) == (status, "error")
    assert get(port, "/v1/models").status_code == 200


def test_a_key_is_asked_for_in_the_handshake(serve: Serve) -> None:
    """As over HTTP."""
    port = serve(key="secret")
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{port}{PATH}")
    assert refused.value.response.status_code == 401
    lines = {"Authorization": "Bearer secret"}
    with connect(f"ws://127.0.0.1:{port}{PATH}", additional_headers=lines) as client:
        client.send(asked(1))
        assert answer(client)[-1]["type"] == "end"


def test_a_server_with_faults_does_not_speak_it() -> None:
    """As it does not speak HTTP/2: GET is not offered."""
    with serving("close") as port:
        assert get(port, PATH, headers=RIGHT).status_code == 405


def test_it_goes_through_tls(serve: Serve, tmp_path: Path) -> None:
    """Arrivals are not known then."""
    authority, cert, key = trustme.CA(), tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = authority.issue_cert("localhost")
    cert.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    port = serve(wrap=functools.partial(tls.TlsSocket, made=tls.context(str(cert), str(key))))
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    sock = socket.create_connection(("127.0.0.1", port))
    with connect(f"wss://localhost:{port}{PATH}", sock=sock, ssl=trusted) as client:
        client.send(asked(2))
        assert answer(client)[-1]["type"] == "end"


def test_a_client_that_reads_nothing_is_left(serve: Serve) -> None:
    """Within the limits of answers over HTTP, and the others are served."""
    port = serve(engine=QUICK, backlog_limit=1 << 14)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", port))
    sock.sendall(handshake.request(PATH, {"Host": "test"}, NONCE))
    assert sock.recv(64)
    sock.sendall(raw(TEXT, asked(200_000).encode(), mask=os.urandom(4)))
    until = time.monotonic() + PATIENCE_S
    while not (rows := truth(port)) and time.monotonic() < until:
        pass
    assert rows[0]["outcome"] == "overflow"
    sock.close()


def test_a_server_that_stops_says_so(serve: Serve) -> None:
    """With 1001, amid an answer."""
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(serving(engine=SLOW))
        with connect(f"ws://127.0.0.1:{port}{PATH}") as client:
            client.send(asked(500))
            assert json.loads(client.recv(timeout=PATIENCE_S))["type"] == "begin"
            stack.close()
            with pytest.raises(ConnectionClosed) as closed:
                for _ in range(600):
                    client.recv(timeout=PATIENCE_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001
