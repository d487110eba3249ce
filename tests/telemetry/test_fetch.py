"""One endpoint's answers, good and bad: the text, or the reason by its name. The partner sends scripted bytes."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from peers import Script, Seen, chunked, scripted, whole

from inferometer.telemetry.metrics import fetch
from inferometer.telemetry.metrics.fetch import LARGEST, TIMEOUT_S, Failed, Fetcher, judged
from inferometer.telemetry.metrics.scraper_messages import Endpoint

TEXT = b'# HELP up Whether it is.\n# TYPE up gauge\nup{a="b"} 1\n'
KIND = b"text/plain; version=0.0.4"


def endpoint(port: int, host: str = "127.0.0.1", **more: object) -> Endpoint:
    fields = {"headers": {"Host": f"{host}:{port}"}, "path": "/metrics", "own": False, **more}
    return Endpoint(shown=f"http://{host}:{port}/metrics", host=host, port=port, **fields)  # type: ignore[arg-type]  # of one dict


def answered(*scripts: Script) -> Callable[[Seen], Script]:
    """The scripts in order, the last again and again."""
    left = list(scripts)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def reason(fetcher: Fetcher) -> str:
    with pytest.raises(Failed) as caught:
        fetcher.get()
    return caught.value.reason


def exposition(body: bytes = TEXT, kind: bytes = KIND) -> Script:
    return Script(whole(200, body, kind=kind))


def test_a_scrape_is_the_text_and_its_stamps() -> None:
    """The first byte lies between the request and the last byte; headers go out as given; the connection is kept."""
    with scripted(answered(exposition())) as peer:
        fetcher = Fetcher(endpoint(peer.port, headers={"Host": "h", "X-A": "b"}))
        found = [fetcher.get(), fetcher.get()]
    assert [one.text for one in found] == [TEXT.decode()] * 2
    assert found[0].content_type == KIND.decode()
    assert found[0].first_byte_ns < found[1].first_byte_ns
    assert all(0 < one.latency_ns < TIMEOUT_S * 1e9 for one in found)
    assert {seen.connection for seen in peer.seen} == {0}
    assert peer.seen[0].headers["x-a"] == "b"


def test_a_body_in_chunks_is_the_same_text() -> None:
    """However it is cut."""
    with scripted(answered(Script(chunked(TEXT[:7], TEXT[7:])))) as peer:
        assert Fetcher(endpoint(peer.port)).get().text == TEXT.decode()


def test_a_kept_connection_that_the_server_closed_is_no_failure() -> None:
    """It is the server's right: the question is put again on a new one."""
    with scripted(answered(Script(whole(200, TEXT, kind=KIND), "close"), exposition())) as peer:
        fetcher = Fetcher(endpoint(peer.port))
        assert [fetcher.get().text for _ in range(2)] == [TEXT.decode()] * 2
    assert [seen.connection for seen in peer.seen] == [0, 1]


BIG = b"# " + b"x" * (50 << 20)
BAD: dict[str, tuple[Script, str]] = {
    "HTML": (exposition(b"<!doctype html><p>hello", b"text/html"), "html"),
    "HTML without a tag": (exposition(b"Not here.", b"text/html"), "html"),
    "HTML without a type": (exposition(b"\n <html>", b""), "html"),
    "JSON": (exposition(b'{"a": 1}', b"application/json"), "json"),
    "JSON called text": (exposition(b'[{"iter": 1}]\n'), "json"),
    "50 MB": (exposition(BIG), "too_large"),
    "50 MB in chunks": (Script(chunked(*[b"# " + b"x" * (1 << 20)] * 50)), "too_large"),
    "a body that never ends": (Script(chunked(*[TEXT] * 3, end=False), "hang"), "timeout"),
    "no answer": (Script([], "hang"), "timeout"),
    "a redirect": (
        Script([b"HTTP/1.1 302 F\r\nLocation: http://h/\r\nContent-Length: 0\r\n\r\n"]),
        "redirect",
    ),
    "not found": (Script(whole(404, b"no")), "http_404"),
    "busy": (Script(whole(503, b"")), "http_503"),
    "no HTTP": (Script([b"SSH-2.0-OpenSSH_9.6\r\n"]), "not_http"),
    "a head without an end": (Script([b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 20_000]), "not_http"),
    "an end in the middle": (
        Script([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nup 1"], "close"),
        "closed",
    ),
    "a reset": (Script([], "reset"), "closed"),
    "nothing": (exposition(b" \n"), "empty"),
    "bytes": (exposition(b"\x00\x01\x02\xff" * 30), "garbage"),
    "Latin-1": (exposition(b"# caf\xe9\nup 1\n"), "garbage"),
    "prose": (exposition(b"Welcome to the server!\n"), "garbage"),
    "a zero in the middle": (exposition(b"up 1\ndown\0 2\n"), "garbage"),
    "cut off": (
        Script(whole(200, gzip.compress(TEXT)[:-9], b"Content-Encoding: gzip", kind=KIND)),
        "encoded",
    ),
    "brotli": (Script(whole(200, b"\x8b\x03", b"Content-Encoding: br", kind=KIND)), "encoded"),
    "a bomb": (Script(whole(200, zlib.compress(BIG), b"Content-Encoding: deflate", kind=KIND)), "too_large"),
}


def bare_deflate(body: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(body) + made.flush()


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("identity", bytes),
    ],
)
def test_what_a_server_compressed_is_read(coding: str, packed: Callable[[bytes], bytes]) -> None:
    """Whether that was requested or not; the limit holds for what it inflates to."""
    head = f"Content-Encoding: {coding}".encode()
    with scripted(answered(Script(whole(200, packed(TEXT), head, kind=KIND)))) as peer:
        assert Fetcher(endpoint(peer.port)).get().text == TEXT.decode()
        assert Fetcher(endpoint(peer.port, largest=300)).get().text == TEXT.decode()
        assert reason(Fetcher(endpoint(peer.port, largest=40))) == "too_large"


def test_metrics_sent_as_a_page_are_metrics() -> None:
    """A web framework's default type says nothing of the text."""
    with scripted(answered(exposition(kind=b"text/html; charset=utf-8"))) as peer:
        assert Fetcher(endpoint(peer.port)).get().text == TEXT.decode()


@pytest.mark.parametrize(
    ("path", "there"),
    [("/custom/metrics?x=1", "/custom?x=1"), ("/federate?m=1", "/federate/metrics?m=1")],
)
def test_a_path_that_is_not_found_is_tried_with_and_without_metrics_behind_it(path: str, there: str) -> None:
    """What was found is asked from then on; the target's own, which nobody named, is asked once."""

    def answer(seen: Seen) -> Script:
        return exposition() if seen.target == there else Script(whole(404, b"no"))

    with scripted(answer) as peer:
        fetcher = Fetcher(endpoint(peer.port, path=path))
        assert [fetcher.get().text for _ in range(2)] == [TEXT.decode()] * 2
        assert fetcher.instead == there.partition("?")[0]
        assert [seen.target for seen in peer.seen] == [path, there, there]
        assert reason(Fetcher(endpoint(peer.port, path=path, own=True))) == "http_404"
        assert len(peer.seen) == 4


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_metrics_has_a_named_reason_and_the_next_scrape_is_whole(
    name: str,
) -> None:
    """Each reason by its name; the endpoint that then answers as it should is read again, on a new connection."""
    script, expected = BAD[name]
    tries = [script] * (2 if expected == "json" else 1)  # the text may stand elsewhere
    with scripted(answered(*tries, exposition())) as peer:
        fetcher = Fetcher(endpoint(peer.port), timeout_s=0.2 if expected == "timeout" else TIMEOUT_S)
        assert reason(fetcher) == expected
        assert fetcher.get().text == TEXT.decode()


def test_a_port_where_nothing_listens_refuses() -> None:
    """Until something does: the same fetcher then reads it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert reason(Fetcher(endpoint(taken.getsockname()[1]))) == "refused"


def test_a_name_without_an_address_is_unresolved() -> None:
    """Nothing is asked anywhere else."""
    assert reason(Fetcher(endpoint(1, host="no-such-host.invalid"))) == "unresolved"


def test_a_name_that_is_looked_up_for_long_times_out_and_is_found_in_the_end() -> None:
    """One look-up however often it is asked; what it found late is taken."""
    answered_now, asked = threading.Event(), []

    def resolve(*args: Any, **kinds: Any) -> Any:
        asked.append(args)
        answered_now.wait(30)
        return socket.getaddrinfo("127.0.0.1", *args[1:], **kinds)

    with scripted(answered(exposition())) as peer:
        slow = Fetcher(endpoint(peer.port, host="slow.invalid"), timeout_s=0.1, resolve=resolve)
        assert [reason(slow), reason(slow)] == ["timeout", "timeout"]
        assert asked == [("slow.invalid", peer.port)]
        answered_now.set()
        texts = []
        for _ in range(100):
            with contextlib.suppress(Failed):
                texts.append(slow.get().text)
                break
        assert texts == [TEXT.decode()]
        assert len(asked) == 1


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def encrypted(authority: trustme.CA) -> Iterator[int]:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(made)
    with scripted(answered(exposition()), tls=made) as peer:
        yield peer.port


def test_a_certificate_is_verified_unless_the_plan_says_otherwise(
    authority: trustme.CA, encrypted: int, tmp_path: object
) -> None:
    """The system trusts no authority made up here; the plan's file does; and no verification is no verification."""
    assert reason(Fetcher(endpoint(encrypted, tls=True))) == "tls"
    with authority.cert_pem.tempfile(dir=str(tmp_path)) as path:
        assert Fetcher(endpoint(encrypted, tls=True, tls_ca_file=path)).get().text == TEXT.decode()
    assert Fetcher(endpoint(encrypted, tls=True, tls_verify=False)).get().text == TEXT.decode()


def test_an_endpoint_that_requires_a_certificate_gets_the_clients(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """With its key in the same file or in one of its own; without one, or with another's key, there is no session."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(made)
    authority.configure_trust(made)
    made.verify_mode = ssl.CERT_REQUIRED
    mine, other = authority.issue_cert("client@example.org"), authority.issue_cert("other@example.org")
    both, cert, key, wrong = (
        str(tmp_path / name) for name in ("both.pem", "cert.pem", "key.pem", "wrong.pem")
    )
    mine.private_key_and_cert_chain_pem.write_to_path(both)
    mine.cert_chain_pems[0].write_to_path(cert)
    mine.private_key_pem.write_to_path(key)
    other.private_key_pem.write_to_path(wrong)
    with scripted(answered(exposition()), tls=made) as peer:

        def fetched(**shown: str) -> Fetcher:
            return Fetcher(endpoint(peer.port, tls=True, tls_verify=False, **shown))

        assert fetched(tls_cert_file=both).get().text == TEXT.decode()
        assert fetched(tls_cert_file=cert, tls_key_file=key).get().text == TEXT.decode()
        assert reason(fetched(tls_cert_file=cert, tls_key_file=wrong)) == "tls"
        with pytest.raises(Failed):
            fetched().get()


NAMES: Sequence[bytes] = [
    b"# HELP a b\n",
    b"up 1\n",
    b'up{a="b"} 1\n',
    b"vllm:up{} 1\n",
    b'{"dotted.name"} 1\n',
    b"# EOF\n",
]


@given(st.sampled_from(NAMES), st.sampled_from([b"", b"\n", b" \n\n"]), st.text(max_size=20).map(str.encode))
def test_text_that_begins_as_prometheus_does_is_taken_whatever_follows(
    start: bytes, before: bytes, after: bytes
) -> None:
    """What is wrong further down is for the reader to say: the record keeps what came."""
    body = before + start + after.replace(b"\0", b"") + b"\nup 1\n"
    assert judged(200, "text/plain", "", body) == body.decode()


@given(
    st.integers(100, 599),
    st.text(max_size=20),
    st.sampled_from(["", "identity", "gzip"]),
    st.binary(max_size=300),
)
def test_any_answer_is_text_or_a_named_reason(status: int, kind: str, encoding: str, body: bytes) -> None:
    """Never another exception, and never text of another status than 200."""
    try:
        text: str | None = judged(status, kind, encoding, body)
    except Failed as failure:
        text, named = None, failure.reason
    else:
        named = ""
    assert f"`{named}`" in (fetch.__doc__ or "") or named in ("", f"http_{status}")
    assert text is None or (status == 200 and (text.encode() == body or encoding == "gzip"))


def test_the_largest_body_that_is_taken_is_taken() -> None:
    """The limit is a limit, not a little less."""
    body = b"up 1\n" + b"#" * (LARGEST - (1 << 18))
    with scripted(answered(exposition(body))) as peer:
        assert len(Fetcher(endpoint(peer.port)).get().text) == len(body)
