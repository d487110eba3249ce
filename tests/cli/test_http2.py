"""Runs over HTTP/2 as people make them: the embedded server and others, with and without TLS."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
import trustme
from commands import SMALL, finish, only, run
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import QUICK, serving

from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.server import tls

MODELS = whole(200, b'{"data":[{"id":"m"}]}')
HELLO = whole(
    200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}'
)


def serve_good(seen: Seen) -> Script:
    """A good server of HTTP/1.1: models, a probe, streams."""
    if seen.method == "GET":
        return Script(MODELS)
    if seen.method != "POST":  # the preface of HTTP/2, read as a request
        return Script(whole(405, b"{}"), then="close")
    body = json.loads(seen.body)
    return Script(chunked(*tokens(*[" word"] * body["max_tokens"])) if body["stream"] else HELLO)


@pytest.mark.parametrize(
    ("load", "sent", "connections"),
    [
        (["--concurrency", "12", "--requests", "60"], 60, 1),
        (["--concurrency", "12", "--requests", "60", "--streams-per-connection", "4"], 60, 3),
        (["--concurrency", "3", "--requests", "30", "--no-stream"], 30, 1),
        (["--concurrency", "3", "--requests", "30", "--connection", "new"], 30, 30),
        (["--rate", "200", "--requests", "40"], 40, None),
    ],
)
def test_requests_share_connections_as_asked(
    load: list[str], sent: int, connections: int | None, tmp_path: Path
) -> None:
    """All succeed; the report names the protocol and how many share a connection; the record shows which opened one."""
    arguments = ["--http", "2", *load, "--warmup", "0", *SMALL, "--workers", "1", "--json"]
    code, stdout, stderr = run("run", *arguments, out=tmp_path)
    summary = json.loads(stdout)
    assert (summary["requests"]["sent"], summary["requests"]["completed"]) == (sent, sent), stderr
    assert code in (0, 3, 4)
    most = 1 if "new" in load else 4 if "4" in load else 100
    framing = "" if "--no-stream" in load else " with server-sent events"
    shared = f", at most {most} requests at once on a connection"
    assert summary["sut"]["protocol"] == f"HTTP/2{framing}, uncompressed{shared}"
    assert summary["metrics"]["output_tokens"]["mean"] == 5
    record = read_table(RunFolder.open(only(tmp_path)).record, RECORD)
    assert set(record.column("outcome").to_pylist()) == {"ok"}
    opened = {at for at in record.column("t_connect").to_pylist() if at is not None}
    if connections is not None and "new" in load:
        assert len(opened) >= connections


def test_a_run_over_tls_agrees_on_http2(tmp_path: Path) -> None:
    """By ALPN, on the port where the probe speaks HTTP/1.1."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    made = tls.context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    with serving(wrap=functools.partial(tls.TlsSocket, made=made), engine=QUICK) as port:
        arguments = [
            "--url",
            f"https://localhost:{port}",
            "--ca-file",
            str(tmp_path / "ca.pem"),
            "--http",
            "2",
        ]
        load = ["--requests", "30", "--concurrency", "6", "--warmup", "0", *SMALL, "--json"]
        _, stdout, stderr = run("run", *arguments, *load, out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert summary["requests"]["completed"] == 30, stderr


def test_a_server_of_http1_alone_fails_every_request_by_name(tmp_path: Path) -> None:
    """The probe succeeds, the load does not, and the outcome says why."""
    with scripted(serve_good, limit=300) as peer:
        arguments = [
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--http",
            "2",
            "--requests",
            "4",
            "--concurrency",
            "2",
        ]
        _, stdout, _ = run("run", *arguments, "--warmup", "0", *SMALL, "--json", out=tmp_path)
    assert json.loads(stdout)["requests"]["by_error"] == {"connect_error": 4}


def test_a_server_of_http2_alone_is_told_from_no_server(tmp_path: Path) -> None:
    """Before anything is timed: requests of ours beside the load are HTTP/1.1."""
    settings = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    with scripted(lambda seen: Script([settings], then="close")) as peer:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{peer.port}", "--http", "2", out=tmp_path)
    assert code == 5
    assert "the server speaks HTTP/2 only" in stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--streams-per-connection", "4"],
            "--streams-per-connection: only HTTP/2 carries several requests at once",
        ),
        (["--http", "3"], "--http: must be 1.1 or 2"),
        (["--http", "2", "--connection", "new", "--streams-per-connection", "4"], "choose one"),
        (["--http", "2", "--streams-per-connection", "0"], "--streams-per-connection"),
    ],
)
def test_what_goes_against_the_version_is_refused_in_words(
    flags: list[str], words: str, tmp_path: Path
) -> None:
    """Before a server is asked for anything."""
    code, _, stderr = finish("run", *flags, "--out", str(tmp_path))
    assert code == 2
    assert words in stderr


def test_a_plan_file_may_write_the_version_as_a_number(tmp_path: Path) -> None:
    """YAML reads `http: 2` as one."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "target: {http: 2, streams_per_connection: 3}\nload: {requests: 6, concurrency: 2, warmup: 0}\n"
    )
    _, stdout, stderr = run("run", str(plan), *SMALL, "--json", out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert (summary["requests"]["completed"], summary["plan"]["target"]["http"]) == (6, "2"), stderr
