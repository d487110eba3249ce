"""Runs over WebSockets as people make them: the embedded server and others, with and without TLS."""

from __future__ import annotations

import functools
import json
import threading
from pathlib import Path

import pytest
import trustme
from commands import SMALL, only, run
from serving import QUICK, serving
from websocket_play import Conversation, websocket_server
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.server import tls

LOAD = ["--requests", "30", "--concurrency", "6", "--warmup", "0", *SMALL, "--json"]


@pytest.mark.parametrize(
    ("load", "sent", "connections"),
    [
        (["--concurrency", "6", "--requests", "30"], 30, 6),
        (["--concurrency", "3", "--requests", "20", "--no-stream"], 20, 3),
        (["--concurrency", "3", "--requests", "20", "--connection", "new"], 20, 20),
        (["--rate", "200", "--requests", "40"], 40, None),
    ],
)
def test_a_run_is_measured_as_over_http(
    load: list[str], sent: int, connections: int | None, tmp_path: Path
) -> None:
    """All succeed, with the tokens that were asked for; the report names the transport; connections are kept, unless each
    request is to have its own; instants stand in their order."""
    arguments = ["--api", "websocket", *load, "--warmup", "0", *SMALL, "--workers", "1", "--json"]
    code, stdout, stderr = run("run", *arguments, out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["requests"]["sent"], summary["requests"]["completed"]) == (sent, sent), stderr
    assert code in (0, 3, 4)
    whole = ", one message an answer" if "--no-stream" in load else ""
    assert summary["sut"]["protocol"] == f"WebSocket (RFC 6455){whole}, uncompressed"
    assert summary["metrics"]["output_tokens"]["mean"] == 5
    record = read_table(RunFolder.open(only(tmp_path)).record, RECORD)
    assert set(record.column("outcome").to_pylist()) == {"ok"}
    opened = {at for at in record.column("t_connect").to_pylist() if at is not None}
    if connections is not None:
        assert len(opened) >= connections
        assert len(opened) == connections or "new" in load
    for row in record.to_pylist():
        assert row["t_send"] <= row["t_submit"] <= row["t_first_byte"] <= row["t_end"]


def test_a_run_over_tls(tmp_path: Path) -> None:
    """`wss://` is another spelling of `https://`; load and probe verify the same authority."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    made = tls.context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    with serving(wrap=functools.partial(tls.TlsSocket, made=made), engine=QUICK) as port:
        arguments = ["--url", f"wss://localhost:{port}", "--ca-file", str(tmp_path / "ca.pem")]
        _, stdout, stderr = run("run", *arguments, "--api", "websocket", *LOAD, out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert summary["requests"]["completed"] == 30, stderr
    assert summary["sut"]["url"] == f"https://localhost:{port}"


def answer(talk: Conversation) -> None:
    """As the reference server's messages, with an answer of as many tokens as were asked for."""
    asked = json.loads(talk.requests[-1])
    words = [{"type": "token", "text": " word"}] * asked["max_tokens"]
    counts = {"prompt_tokens": 9, "completion_tokens": asked["max_tokens"]}
    end = {"type": "end", "finish_reason": "length", "usage": counts}
    talk.say(*(json.dumps(one).encode() for one in [*words, end]))


def test_a_server_of_websockets_alone_needs_a_name_for_its_model(tmp_path: Path) -> None:
    """`websockets`, which knows no other request, answers the listing as it may; with the model named, it is measured."""
    with websocket_server(answer) as peer:
        flags = ["--url", f"ws://127.0.0.1:{peer.port}", "--api", "websocket"]
        code, _, stderr = run("run", *flags, *LOAD, out=tmp_path)
        assert (code, "--model: choose a model" in stderr) == (2, True)
        _, stdout, stderr = run("run", *flags, "--model", "m", *LOAD, out=tmp_path)
    assert json.loads(stdout)["requests"]["completed"] == 30, stderr


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "handshake was refused: status 404"),
        (b"SSH-2.0\r\n", "not HTTP"),
    ],
)
def test_a_server_without_websockets_is_named_before_the_load(
    greeting: bytes, words: str, tmp_path: Path
) -> None:
    """Exit code 5, and the server's words."""
    with websocket_server(answer, greeting=greeting) as peer:
        flags = ["--url", f"ws://127.0.0.1:{peer.port}", "--api", "websocket", "--model", "m"]
        code, _, stderr = run("run", *flags, *LOAD, out=tmp_path)
    assert code == 5
    assert words in " ".join(stderr.split())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--api", "realtime", "--no-stream"], "realtime has no whole answers"),
        (["--http", "2"], "a WebSocket begins with HTTP/1.1"),
        (["--header", "Sec-WebSocket-Key: x"], "is set by inferometer itself"),
        (["--url", "wsx://h"], "must begin with http:// or https:// (of a WebSocket ws:// or wss://)"),
    ],
)
def test_what_does_not_fit_a_websocket_is_refused(flags: list[str], words: str, tmp_path: Path) -> None:
    """Before anything runs."""
    code, _, stderr = run("run", "--api", "websocket", *flags, *LOAD, out=tmp_path)
    assert code == 2
    assert words in " ".join(stderr.split())


@pytest.mark.parametrize("name", ["Sec-WebSocket-Protocol", "sec-websocket-protocol"])
def test_a_subprotocol_is_offered_however_its_header_line_is_spelled(name: str, tmp_path: Path) -> None:
    """Law: the probe and the load accept the server's choice of it; `websockets` refuses whoever offers none."""
    with serve(tokens, "127.0.0.1", 0, subprotocols=[Subprotocol("a")], compression=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        flags = [
            "--url",
            f"ws://127.0.0.1:{server.socket.getsockname()[1]}",
            "--api",
            "websocket",
            "--model",
            "m",
        ]
        _, stdout, stderr = run("run", *flags, "--header", f"{name}: a", *LOAD, out=tmp_path)
        server.shutdown()
        thread.join(10)
    assert json.loads(stdout)["requests"]["completed"] == 30, stderr


def tokens(connection: ServerConnection) -> None:
    """Answer as the reference server does."""
    for message in connection:
        count = json.loads(message)["max_tokens"]
        for text in [" word"] * count:
            connection.send(json.dumps({"type": "token", "text": text}))
        usage = {"prompt_tokens": 9, "completion_tokens": count}
        connection.send(json.dumps({"type": "end", "finish_reason": "length", "usage": usage}))


def test_a_server_that_limits_connections_turns_requests_away(tmp_path: Path) -> None:
    """Law: a 429 to the handshake is back pressure, as over HTTP, not a connection that failed; `websockets` says it here."""
    taken = threading.Event()

    def limit(connection: ServerConnection, request: Request) -> Response | None:
        if request.path != "/v1/ws":
            return None
        if not taken.is_set():  # the probe's
            taken.set()
            return None
        return connection.respond(429, "come back later")

    with serve(tokens, "127.0.0.1", 0, process_request=limit, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        flags = ["--url", url, "--api", "websocket", "--model", "m", "--rate", "100"]
        load = ["--requests", "20", "--warmup", "0", *SMALL, "--json"]
        code, stdout, stderr = run("run", *flags, *load, "--no-server-metrics", out=tmp_path)
        server.shutdown()
        thread.join(10)
    summary = json.loads(stdout)
    assert (code, summary["requests"]["by_error"]) == (5, {"http_429": 20}), stderr
    record = read_table(RunFolder.open(only(tmp_path)).record, RECORD)
    assert set(record.column("status").to_pylist()) == {429}
