"""The reactor over real loopback sockets: every way a server can behave ends in one outcome, and none is lost."""

from __future__ import annotations

import gc
import json
import socket
import ssl
import struct
import threading
import time

import pytest
import trustme
from driving import PATIENCE_NS, exchange, exchange_all
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import serving

from inferometer.client.trust import context
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1
from inferometer.drive.keep_alive import KeepAlive
from inferometer.drive.probe import endpoint, resolve
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer
from inferometer.errors import PeerError
from inferometer.journal.schema import EventClass
from inferometer.server.filler_text import PIECES

GOOD = chunked(*tokens(" one", " two", " three"))

FAULTS = {
    "reset:after=0,skip=2": "reset",
    "reset:after=2,skip=2": "reset",
    "status:404=1,skip=2": "http_4xx",
    "status:429=1,skip=2": "http_429",
    "status:503=1,skip=2": "http_5xx",
    "html:skip=2": "not_json",
    "html:status=502,skip=2": "http_5xx",
    "malformed-json:skip=2": "bad_event",
    "broken-chunk:skip=2": "bad_http",
    "invalid-utf8:skip=2": "bad_event",
    "huge-event:bytes=10000000,skip=2": "too_large",
}
"""Of the reference server."""

SCRIPTS: dict[str, tuple[Script, str]] = {
    "closed before any byte": (Script([], "close"), "reset"),
    "closed inside a chunk": (Script([GOOD[0], GOOD[1][:9]], "close"), "reset"),
    "closed inside the head": (Script([b"HTTP/1.1 200 OK\r\nContent-"], "close"), "reset"),
    "ended without finish or done": (
        Script(chunked(*tokens("a", finish=None, done=False))),
        "truncated",
    ),
    "a redirect": (Script(whole(302, b"", b"Location: /elsewhere")), "http_other"),
    "JSON cut short": (Script(whole(200, b'{"choices":[{"te')), "bad_event"),
    "not HTTP": (Script([b"SSH-2.0-OpenSSH_9.2\r\n"], "close"), "bad_http"),
    "a body of 70 MB": (
        Script(
            [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", *[b" " * 1_000_000] * 70], "close"
        ),
        "too_large",
    ),
    "headers without end": (
        Script([b"HTTP/1.1 200 OK\r\n", *[b"X-Filler: abcdefgh\r\n" * 100] * 60]),
        "too_large",
    ),
    "an error event inside a 200": (
        Script(chunked(*tokens("a")[:2], b'data: {"error":{"message":"out of memory"}}\n\n')),
        "error_event",
    ),
    "an error event that carries choices too": (
        Script(
            chunked(
                *tokens("a")[:2],
                b'data: {"error":{"message":"no"},"choices":[{"delta":{"content":"x"}}]}\n\n',
            )
        ),
        "error_event",
    ),
    "an answer that says it ended in an error": (
        Script(chunked(*tokens("a", finish="error"))),
        "error_event",
    ),
    "an event nested a hundred thousand deep": (
        Script(chunked(b"data: " + b'{"x":' + b"[" * 100_000 + b"\n\n", *tokens("a"))),
        "bad_event",
    ),
    "an error body of brackets": (Script(whole(500, b"[" * 5000)), "http_5xx"),
    "nothing but white space": (Script(chunked(*tokens(" ", "\n", finish="stop"))), "empty"),
    "a refusal": (Script(chunked(*tokens("no", finish="content_filter"))), "refused"),
    "a refusal by status": (
        Script(whole(400, b'{"error":{"message":"flagged","code":"content_policy_violation"}}')),
        "refused",
    ),
    "a refusal by an inner code": (
        Script(whole(400, b'{"error":{"code":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}')),
        "refused",
    ),
    "an error whose words sound like a refusal": (
        Script(whole(400, b'{"error":{"message":"content_filter","code":["content_filter"]}}')),
        "http_4xx",
    ),
}


def asking(count: int) -> bytes:
    """A request to the reference server for a stream of `count` tokens."""
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": count, "stream": True}
    return json.dumps(body).encode()


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_the_reference_server_is_one_outcome(fault: str) -> None:
    """After good requests faulty ones are counted by their class, each with a detail, and none is lost."""
    with serving(fault) as port:
        ended = exchange_all(port, 4, body=asking(5))
    assert [one.outcome for one in ended] == ["ok", "ok", FAULTS[fault], FAULTS[fault]]
    assert [bool(one.detail) for one in ended] == [False, False, True, True]


@pytest.mark.parametrize("fault", SCRIPTS)
def test_every_other_fault_is_one_outcome_and_the_next_requests_go_on(fault: str) -> None:
    """Between good requests a faulty one is counted by its class; the others succeed and none is lost."""
    script, outcome = SCRIPTS[fault]

    def answer(seen: Seen) -> Script:
        return script if seen.body == b"fault" else Script(GOOD)

    with scripted(answer) as peer:
        assert [one.outcome for one in exchange_all(peer.port, 2)] == ["ok", "ok"]
        faulty = exchange_all(peer.port, 2, body=b"fault")
    assert [one.outcome for one in faulty] == [outcome, outcome]
    assert all(one.detail for one in faulty)


def test_a_server_that_hangs_ends_in_a_timeout() -> None:
    """A request that gets no complete answer ends at its deadline, with the tokens it had seen."""
    with serving("hang:after=2") as port:
        (one,) = exchange_all(port, 1, timeout_ns=1_000_000_000, body=asking(5))
    assert one.outcome == "timeout"
    assert one.answer.texts == list(PIECES[:2])


def test_what_one_read_holds_before_broken_http_is_kept() -> None:
    """Good events and a bad chunk size that arrive together: the request is bad_http and has the tokens it got."""
    with scripted(lambda seen: Script([b"".join([*GOOD[:4], b"zz\r\n"])])) as peer:
        (one,) = exchange_all(peer.port, 1)
    assert one.outcome == "bad_http"
    assert one.answer.texts == [" one", " two"]


def test_a_closed_port_is_refused_at_once() -> None:
    """No listener: connect_refused for each request."""
    with scripted(lambda seen: Script()) as peer:
        port = peer.port
    assert [one.outcome for one in exchange_all(port, 3, at_once=3)] == ["connect_refused"] * 3


def test_a_connection_closed_at_the_moment_of_reuse_costs_one_more_attempt_and_no_request() -> None:
    """A kept-alive connection that the server drops is replaced; the record says attempts = 2."""

    def answer(seen: Seen) -> Script:
        return Script([], "close") if seen.place == 1 else Script(GOOD)

    with scripted(answer) as peer:
        ended = exchange_all(peer.port, 4)
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1), ("ok", 2), ("ok", 2), ("ok", 2)]
    assert [seen.connection for seen in peer.seen] == [0, 0, 1, 1, 2, 2, 3]


def test_a_fresh_connection_that_dies_is_not_tried_again() -> None:
    """Only the race at reuse is retried: a server that drops fresh connections is counted as such."""
    with scripted(lambda seen: Script([], "reset")) as peer:
        (one,) = exchange_all(peer.port, 1)
    assert (one.outcome, one.attempts, len(peer.seen)) == ("reset", 1, 1)


def test_connections_are_reused_unless_new_ones_are_asked_for() -> None:
    """`reuse` carries all requests over one connection, `new` each over its own, with its connect times."""
    for reuse, expected in ((True, [0, 0, 0]), (False, [0, 1, 2])):
        with scripted(lambda seen: Script(GOOD)) as peer:
            ended = exchange_all(peer.port, 3, reuse=reuse)
        assert [seen.connection for seen in peer.seen] == expected
        assert [bool(one.t_connected) for one in ended] == [True, not reuse, not reuse]


def test_times_stand_in_the_order_of_cause_and_effect() -> None:
    """intended <= send <= submit <= first byte <= events, ascending <= end, for every request."""
    with scripted(lambda seen: Script(GOOD)) as peer:
        ended = exchange_all(peer.port, 20, at_once=4)
    for one in ended:
        times = [one.t_intended, one.t_send, one.t_submit, one.t_first_byte, *one.answer.event_ns, one.t_end]
        assert times == sorted(times)
        assert one.lag_ns >= 0


def test_events_are_classed_and_the_first_tokens_found() -> None:
    """Role, content, finish, usage and done come out in order; the first text is the first word."""
    with scripted(lambda seen: Script(chunked(b": hello\n\n", *tokens(" ", "one")))) as peer:
        (one,) = exchange_all(peer.port, 1)
    answer = one.answer
    names = [EventClass(kind).name.lower() for kind in answer.event_class]
    assert names == ["comment", "role", "content", "content", "finish", "usage", "done"]
    assert (answer.first_text, answer.first_visible, answer.first_answer) == (2, 3, 3)
    assert (answer.input_tokens, answer.output_tokens, answer.finish_reason) == (7, 2, "length")


def test_retry_after_is_kept() -> None:
    """A 429's Retry-After stands in the record."""
    with serving("status:429=1,retry-after=3") as port:
        (one,) = exchange_all(port, 1, body=asking(5))
    assert (one.status, one.retry_after_s) == (429, 3.0)


def test_a_whole_response_is_read_as_one_event() -> None:
    """Not streamed: text, usage and one event at the end."""
    body = (
        b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}'
    )
    with scripted(lambda seen: Script(whole(200, body))) as peer:
        (one,) = exchange_all(peer.port, 1)
    assert (one.outcome, one.answer.texts, list(one.answer.event_ns)) == ("ok", ["hi"], [one.t_end])


def test_more_requests_at_once_than_connections_open_more_connections() -> None:
    """Nothing caps what is in flight: 50 at once are carried by 50 connections."""
    with scripted(lambda seen: Script(GOOD), limit=60) as peer:
        ended = exchange_all(peer.port, 50, at_once=50)
    assert [one.outcome for one in ended] == ["ok"] * 50
    assert len({seen.connection for seen in peer.seen}) == 50


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority of this test's own."""
    return trustme.CA()


def test_tls_carries_the_same_and_keeps_its_times_apart(
    authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over TLS every request succeeds, and connect and TLS times are kept apart from the request's own."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    ca_file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with scripted(lambda seen: Script(GOOD), tls=server) as peer:
        ended = exchange_all(peer.port, 6, at_once=2, tls=context(True, str(ca_file), HTTP1.alpn))
    assert [one.outcome for one in ended] == ["ok"] * 6
    fresh = [one for one in ended if one.t_connect]
    assert fresh
    assert all(one.t_connect < one.t_connected < one.t_tls <= one.t_send for one in fresh)


def test_a_certificate_that_does_not_verify_is_a_tls_error(authority: trustme.CA) -> None:
    """An unknown authority or a wrong name ends the request before a byte of it is sent."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    with scripted(lambda seen: Script(GOOD), tls=server) as peer:
        (distrusted,) = exchange_all(peer.port, 1, tls=context(True, None, HTTP1.alpn))
        (waved_through,) = exchange_all(peer.port, 1, tls=context(False, None, HTTP1.alpn))
    assert (distrusted.outcome, distrusted.t_submit) == ("tls_error", 0)
    assert waved_through.outcome == "ok"


def test_a_large_request_goes_out_whole_though_the_socket_takes_it_in_parts() -> None:
    """A body larger than the socket's buffer arrives complete and t_submit is set after t_send."""
    body = b"x" * 8_000_000
    with scripted(lambda seen: Script(GOOD)) as peer:
        (one,) = exchange_all(peer.port, 1, body=body)
    assert peer.seen[0].body == body
    assert one.outcome == "ok"
    assert one.t_submit > one.t_send
    assert one.t_taken <= one.t_connect <= one.t_connected <= one.t_send


def test_a_kept_connection_that_is_gone_before_the_first_byte_is_sent_costs_a_second_attempt() -> None:
    """The server resets an idle connection unseen, so that the first send already fails: the request goes out on a new one."""
    gone = threading.Event()
    reset = struct.pack("ii", 1, 0)

    def serve(listener: socket.socket) -> None:
        for last in (False, True):
            peer, _ = listener.accept()
            peer.recv(65536)
            peer.sendall(b"".join(GOOD))
            if last:
                peer.close()
                return
            answered.wait(10)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            peer.close()
            gone.set()

    answered = threading.Event()
    ended: list[Exchange] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        reactor = Reactor(
            Peer(socket.AF_INET, listener.getsockname()),
            HTTP1,
            ended.append,
            keep_alive=KeepAlive(PATIENCE_NS),
        )
        give_up = time.monotonic_ns() + 10_000_000_000
        for index in range(2):
            now = time.monotonic_ns()
            reactor.submit(exchange(index, now), now)
            while len(ended) <= index and time.monotonic_ns() < give_up:
                reactor.wait(time.monotonic_ns() + 5_000_000, exact=False)
            answered.set()
            assert gone.wait(10)
        reactor.close()
        thread.join(10)
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1), ("ok", 2)]


@pytest.mark.parametrize(
    "fault", ["closed inside a chunk", "closed before any byte", "a redirect", "not HTTP", "a refusal"]
)
def test_what_has_ended_is_freed_without_the_garbage_collector(fault: str) -> None:
    """No circle keeps an exchange, a transport or a channel: the collector, off while measuring, would find none of them."""
    script, _ = SCRIPTS[fault]
    gc.collect()
    gc.disable()
    try:
        with scripted(lambda seen: script if seen.place else Script(GOOD)) as peer:
            ended = exchange_all(peer.port, 30, at_once=3)
            del ended[:]
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            kept = [type(one).__name__ for one in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {"Exchange", "Transport", "Http1Channel", "Answer", "ResponseDecoder", "SseDecoder"} & set(
        kept
    )


def test_a_prefix_a_name_and_both_families_of_addresses_are_taken_apart() -> None:
    """The probe and the workers use one and the same spelling of host and path."""
    known = {
        "http://host:8000": ("host", 8000, "", "host:8000"),
        "http://host": ("host", 80, "", "host"),
        "https://host/proxy/v1": ("host", 443, "/proxy", "host"),
        "http://[::1]:8000": ("::1", 8000, "", "[::1]:8000"),
        "http://b\u00fccher.example/\u00fc": (
            "xn--bcher-kva.example",
            80,
            "/%C3%BC",
            "xn--bcher-kva.example",
        ),
    }
    for url, parts in known.items():
        found = endpoint(url)
        assert (found.host, found.port, found.base, found.host_header) == parts
    with pytest.raises(PeerError, match="does not resolve"):
        resolve(endpoint("http://a..b"), 1.0)


def test_a_resolver_that_does_not_answer_ends_the_look_up_in_words() -> None:
    """Law: the system's look-up has no limit of its own, and is not waited for beyond ours; the words name DNS."""
    answered_now = threading.Event()

    def hangs(*_: object, **__: object) -> list[tuple[object, ...]]:
        answered_now.wait(30)
        return []

    with pytest.raises(PeerError, match=r"the name slow\.invalid is still being looked up: DNS"):
        resolve(endpoint("http://slow.invalid"), 0.01, hangs)
    answered_now.set()
