"""gRPC as the channel of HTTP/2 carries it: statuses as outcomes, and servers that break it; and grpcio as the server."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from feeding import same_however_cut
from grpc_reflection.v1alpha import reflection
from http2_partner import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    GREETING,
    RST_STREAM,
    SETTINGS,
    head,
    number,
    raw,
)
from loopback import loopback
from smg_grpc_proto import vllm_engine_pb2 as pb

from inferometer.drive import grpc_outcomes
from inferometer.drive.channel import RequestHead
from inferometer.drive.exchange import Exchange
from inferometer.drive.grpc_probe import GrpcProbe, grpc_fields, services
from inferometer.drive.http2_channel import Http2Channel, http2
from inferometer.drive.probe import endpoint
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer
from inferometer.engines.dialect import GenerationRequest
from inferometer.engines.vllm_grpc import VLLM_GRPC
from inferometer.errors import PeerError
from inferometer.journal.redact import Redactor
from inferometer.journal.schema import Outcome
from inferometer.protocol.grpc import NAMES, framed

KIND = http2(8)
PATIENCE_NS = 20_000_000_000
HEAD = [(":status", "200"), ("content-type", "application/grpc")]
OK = [("grpc-status", "0")]
SERVICE = "vllm.grpc.engine.VllmEngine"


def request_head(port: int = 1) -> bytes:
    fields = {"Host": f"127.0.0.1:{port}", **grpc_fields(20)}
    return KIND.prepare(RequestHead("POST", f"/{SERVICE}/Generate", fields))


def exchange(index: int = 0, ids: tuple[int, ...] = (5, 6), count: int = 3, port: int = 1) -> Exchange:
    body = VLLM_GRPC.body(GenerationRequest("m", list(ids), count, ident=str(index)))
    return Exchange(index, 0, 0, request_head(port), body, time.monotonic_ns() + PATIENCE_NS, VLLM_GRPC)


def chunk(*ids: int) -> bytes:
    made = pb.GenerateStreamChunk(token_ids=ids, prompt_tokens=2, completion_tokens=len(ids))
    return framed(pb.GenerateResponse(chunk=made).SerializeToString())


def complete(*ids: int, reason: str = "length") -> bytes:
    made = pb.GenerateComplete(
        output_ids=ids, finish_reason=reason, prompt_tokens=2, completion_tokens=len(ids)
    )
    return framed(pb.GenerateResponse(complete=made).SerializeToString())


def data(*messages: bytes, end: bool = False, stream: int = 1) -> bytes:
    return raw(DATA, END_STREAM if end else 0, stream, b"".join(messages))


def trailers(*fields: tuple[str, str], stream: int = 1) -> bytes:
    return head(stream, list(fields), END_HEADERS | END_STREAM)


def alone(*fields: tuple[str, str]) -> bytes:
    """A response that is one HEADERS frame."""
    return head(1, [*HEAD, *fields], END_HEADERS | END_STREAM)


GOOD = (chunk(1), chunk(2), chunk(3), complete(3))
WHOLE = head(1, HEAD) + data(*GOOD)


def ended(wire: bytes) -> tuple[str, str | None, bytes, int | None]:
    """Outcome, detail, classes and tokens of a response, however it is cut; another request on the connection goes on."""

    def feed(pieces: list[bytes]) -> tuple[str, str | None, bytes, int | None]:
        channel = Http2Channel(10)
        channel.opened()
        channel.feed(GREETING, 1, 0)
        one, other = exchange(0), exchange(1)
        for each in (one, other):
            channel.submit(each)
        for piece in pieces:
            channel.feed(piece, 7, 0)
        assert list(channel.exchanges) == [other]
        other_wire = head(3, HEAD) + data(*GOOD, stream=3) + trailers(*OK, stream=3)
        channel.feed(other_wire, 8, 0)
        assert other.outcome == "ok", other.detail
        answer = one.answer
        return one.outcome, one.detail, bytes(answer.event_class), answer.output_tokens

    return same_however_cut(wire, feed)


def test_a_whole_answer_is_a_success() -> None:
    """However it is cut, in one DATA frame or many."""
    assert ended(WHOLE + trailers(*OK))[::3] == ("ok", 3)
    assert ended(head(1, HEAD) + b"".join(map(data, GOOD)) + trailers(*OK))[::3] == ("ok", 3)
    halves = b"".join(data(bytes((byte,))) for byte in b"".join(GOOD))
    assert ended(head(1, HEAD) + halves + trailers(*OK, ("grpc-message", "")))[::3] == ("ok", 3)


@pytest.mark.parametrize(
    "kind", ["application/grpc+proto", "Application/gRPC", "application/grpc; charset=utf-8"]
)
def test_the_media_type_may_name_the_encoding(kind: str) -> None:
    """As the specification has it, in either case."""
    wire = head(1, [(":status", "200"), ("content-type", kind)]) + data(*GOOD) + trailers(*OK)
    assert ended(wire)[::3] == ("ok", 3)


@pytest.mark.parametrize("code", range(1, len(NAMES)))
def test_a_status_is_an_outcome_with_its_name(code: int) -> None:
    """Alone, behind tokens and behind a whole answer; with words and without."""
    status, words = ("grpc-status", str(code)), ("grpc-message", "no%20engine%3A%20%E2%82%AC")
    found, _ = grpc_outcomes.failure({b"grpc-status": b"%d" % code}, unfinished=False) or (Outcome.OK, "")
    assert found is not Outcome.OK
    for front in (b"", head(1, HEAD), head(1, HEAD) + data(chunk(1)), WHOLE):
        wire = front + trailers(status, words) if front else alone(status, words)
        assert ended(wire)[:2] == (found.value, f"grpc {NAMES[code]}: no engine: €")
    assert ended(alone(status))[:2] == (found.value, f"grpc {NAMES[code]}")


@pytest.mark.parametrize(
    ("wire", "outcome", "words"),
    [
        (head(1, HEAD) + data(*GOOD, end=True), "truncated", "without a grpc-status"),
        (head(1, HEAD, END_HEADERS | END_STREAM), "truncated", "without a grpc-status"),
        (head(1, [*HEAD, *OK]) + data(*GOOD, end=True), "truncated", "without a grpc-status"),
        (WHOLE + trailers(("grpc-message", "x")), "truncated", "without a grpc-status"),
        (WHOLE + trailers(("grpc-status", "x")), "bad_http", "no number"),
        (WHOLE + trailers(("grpc-status", "")), "bad_http", "no number"),
        (WHOLE + trailers(("grpc-status", "77")), "http_5xx", "grpc UNKNOWN"),
        (WHOLE + trailers(*OK, ("grpc-status", "13")), "bad_http", "no number"),
        (WHOLE + trailers(("grpc-status", "13"), *OK), "bad_http", "no number"),
        (head(1, HEAD) + data(*GOOD, chunk(4)) + trailers(*OK), "bad_event", "behind the end"),
        (head(1, HEAD) + data(*GOOD, complete(3)) + trailers(*OK), "bad_event", "behind the end"),
        (WHOLE + trailers(("grpc-status", "13")), "http_5xx", "grpc INTERNAL"),
        (head(1, HEAD) + data(chunk(1), complete(1)[:-1]) + trailers(*OK), "truncated", "inside a message"),
        (head(1, HEAD) + data(chunk(1)) + trailers(*OK), "truncated", "nor a GenerateComplete"),
        (alone(*OK), "truncated", "nor a GenerateComplete"),
        (head(1, HEAD) + data(complete()) + trailers(*OK), "empty", "no token"),
        (head(1, HEAD) + data(complete(1, reason="abort")) + trailers(*OK), "error_event", "abort"),
        (head(1, HEAD) + data(b"\1" + chunk(1)[1:]), "bad_event", "compressed"),
        (head(1, HEAD) + data(b"\7" + chunk(1)[1:]), "bad_event", "not with 0 or 1"),
        (head(1, HEAD) + data(b"\0\xff\xff\xff\xff"), "too_large", "4294967295 bytes"),
        (head(1, HEAD) + data(framed(b"\x0a\x05\x0a")) + trailers(*OK), "bad_event", "inside a field"),
        (head(1, HEAD) + data(chunk(1)) + raw(RST_STREAM, 0, 1, number(8)), "reset", "RST_STREAM CANCEL"),
        (
            head(1, [(":status", "503"), ("content-type", "text/html")]) + data(b"busy", end=True),
            "http_5xx",
            "busy",
        ),
        (
            head(1, [(":status", "200"), ("content-type", "text/html")]) + data(b"<html>", end=True),
            "not_json",
            "<html>",
        ),
        (
            head(1, [(":status", "200"), ("content-type", "application/json")]) + data(b"{}", end=True),
            "not_json",
            "{}",
        ),
        *(
            (
                head(1, [(":status", "200"), ("content-type", kind)]) + data(*GOOD) + trailers(*OK),
                "not_json",
                "",
            )
            for kind in ("application/grpc-web", "application/grpc-web+proto", "application/grpcx")
        ),
        *(
            (head(1, [(":status", "201"), *HEAD[1:]]) + data(*parts) + trailers(*OK), "http_other", "")
            for parts in (GOOD, ())
        ),
        (WHOLE + trailers(("Grpc-Status", "0")), "bad_http", "a field that no response may have"),
        (WHOLE + trailers((":status", "200"), *OK), "bad_http", "a field that no response may have"),
    ],
)
def test_what_breaks_grpc_costs_one_request(wire: bytes, outcome: str, words: str) -> None:
    """Missing, odd and doubtful statuses, messages that lie, other media types; the other on the connection is answered."""
    found = ended(wire)
    assert found[0] == outcome
    assert words in (found[1] or "")


def test_a_message_behind_which_a_part_of_the_next_came_may_have_waited_wherever_it_was_cut() -> None:
    """Law: also where that part ends like a line of text, as a message cut behind its first field's key does; a message at the
    end of its read waited for nothing, whatever its last byte."""

    class Waited:
        def waited(self, at: int) -> int:
            return at + 7

    following = chunk(10)
    assert b"\n" in following[:-1]
    for last in (9, 10):
        for cut in range(len(following)):
            one = exchange()
            one.unread = Waited()
            one.head(200, {b"content-type": b"application/grpc"})
            one.data(chunk(last) + following[:cut], 0)
            one.data(following[cut:], 1)
            assert one.merged == ([0, -7] if cut else [])


def test_a_request_says_that_it_is_grpc() -> None:
    """By the fields that the specification wants, with the deadline, and without a wish for compression."""
    fields = dict(line.split(": ", 1) for line in request_head().decode().splitlines())
    assert fields["te"] == "trailers"
    assert fields["content-type"] == "application/grpc"
    assert (fields["grpc-timeout"], fields["grpc-accept-encoding"]) == ("20000m", "identity")


def test_a_worker_imports_neither_protobuf_nor_grpcio() -> None:
    """Law: what is measured by gRPC needs nothing that an installation lacks, nor the time that importing it takes."""
    code = (
        "import sys, inferometer.drive.worker, inferometer.drive.http2_channel\n"
        "from inferometer.engines.dialect import load\n"
        "load('vllm-grpc')\n"
        "print(sorted(name for name in sys.modules if name in ('grpc', 'google.protobuf', 'smg_grpc_proto')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


# grpcio as the server.

Handler = Callable[[Any, Any], Any]


@contextlib.contextmanager
def grpcio_server(generate: Handler, **unary: Handler) -> Iterator[int]:
    """A server of gRPC's own implementation, with these methods of the service; gives its port."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    methods = {
        name: grpc.unary_unary_rpc_method_handler(call, None, lambda answer: answer.SerializeToString())
        for name, call in unary.items()
    }
    methods["Generate"] = grpc.unary_stream_rpc_method_handler(
        generate, pb.GenerateRequest.FromString, pb.GenerateResponse.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)


def counting(request: Any, _context: Any) -> Iterator[Any]:
    """As many tokens as are wanted."""
    ids = list(request.tokenized.input_ids)
    for at in range(request.sampling_params.max_tokens):
        made = pb.GenerateStreamChunk(token_ids=[at + 1], prompt_tokens=len(ids), completion_tokens=1)
        yield pb.GenerateResponse(chunk=made)
    done = pb.GenerateComplete(output_ids=[at + 1], finish_reason="length", prompt_tokens=len(ids))
    yield pb.GenerateResponse(complete=done)


def measured(port: int, exchanges: list[Exchange], *, cancel_after: int | None = None) -> list[Exchange]:
    """These exchanges on the reactor, until each has ended; given up once one has so many events."""
    over: list[Exchange] = []
    reactor = Reactor(Peer(2, ("127.0.0.1", port)), KIND, over.append)
    try:
        for one in exchanges:
            reactor.submit(one, time.monotonic_ns())
        until = time.monotonic_ns() + PATIENCE_NS
        while len(over) < len(exchanges):
            now = time.monotonic_ns()
            assert now < until
            reactor.wait(now + 5_000_000, exact=False)
            if cancel_after is not None and len(exchanges[0].answer.event_ns) >= cancel_after:
                reactor.cancel(now, "cancelled")
        if cancel_after is not None:  # what cancels is sent
            reactor.wait(time.monotonic_ns() + 5_000_000, exact=False)
    finally:
        reactor.close()
    return over


def test_grpcio_is_measured() -> None:
    """Many requests on one connection, with the tokens and the instants of each; a prompt of more than a window too."""
    with grpcio_server(counting) as port:
        found = measured(port, [exchange(index, (7,) * 30_000 * (index + 1), 20, port) for index in range(4)])
    assert [(one.outcome, one.detail) for one in found] == [("ok", None)] * 4
    for one in found:
        answer = one.answer
        assert (answer.output_tokens, answer.input_tokens) == (20, 30_000 * (one.index + 1))
        assert one.t_send <= one.t_submit < answer.event_ns[answer.first_visible] <= one.t_end


def test_a_status_of_grpcio_is_an_outcome() -> None:
    """Before any token, and behind one; an exception of the server, a method that there is not."""

    def fails(request: Any, context: Any) -> Iterator[Any]:
        if request.sampling_params.max_tokens == 1:
            raise RuntimeError("boom")
        if request.sampling_params.max_tokens == 3:
            yield pb.GenerateResponse(chunk=pb.GenerateStreamChunk(token_ids=[1]))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "zu voll: ä%")

    with grpcio_server(fails) as port:
        found = {one.index: one for one in measured(port, [exchange(n, (1,), n, port) for n in (1, 2, 3)])}
    assert found[1].outcome == "http_5xx"
    assert "boom" in (found[1].detail or "")
    for n in (2, 3):
        assert (found[n].outcome, found[n].detail) == ("http_429", "grpc RESOURCE_EXHAUSTED: zu voll: ä%")
    assert found[3].answer.output_tokens == 1


def test_giving_up_cancels_the_call_at_grpcio() -> None:
    """RST_STREAM: the server's call ends, long before it would have."""
    told = threading.Event()

    def endless(_request: Any, context: Any) -> Iterator[Any]:
        context.add_callback(told.set)
        while context.is_active():
            yield pb.GenerateResponse(chunk=pb.GenerateStreamChunk(token_ids=[1]))

    with grpcio_server(endless) as port:
        (one,) = measured(port, [exchange(0, (1,), 10**6, port)], cancel_after=5)
        assert told.wait(20)
    assert one.outcome == "cancelled"


# The probe.


def probe(port: int, patience_s: float = 20) -> GrpcProbe:
    return GrpcProbe(VLLM_GRPC, endpoint(f"http://127.0.0.1:{port}"), {}, None, patience_s, Redactor([]))


def test_the_probe_learns_what_grpcio_serves() -> None:
    """Model, context, vocabulary and server; it tries one request; a server without a health service goes on."""
    info = pb.GetModelInfoResponse(served_model_name="n", max_context_length=99, vocab_size=1000)
    server = pb.GetServerInfoResponse(server_type="vllm-grpc")
    methods = {"GetModelInfo": lambda *_: info, "GetServerInfo": lambda *_: server}
    with grpcio_server(counting, **methods) as port, probe(port) as asked:
        listing = asked.models()
        assert (listing.models.names, listing.models.contexts) == (("n",), {"n": 99})
        assert (listing.server, listing.missing) == ("vllm-grpc", None)
        reply = asked.try_out(GenerationRequest("n", "Hello", 1, stream=False))
        assert (reply.length_field, reply.model) == ("max_tokens", None)
        assert asked.takes_ids("n", [1, 2])
        assert asked.tokenizer("n")("/tokenize", {}) == {}


def test_the_probe_says_what_is_missing_or_refused() -> None:
    """Without a listing in its place, and an error in the server's words."""

    def refuses(_request: Any, context: Any) -> Iterator[Any]:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too long")
        yield

    with grpcio_server(refuses) as port, probe(port) as asked:
        assert "UNIMPLEMENTED" in (asked.models().missing or "")
        assert not asked.takes_ids("n", [1])
        with pytest.raises(PeerError, match=r"grpc INVALID_ARGUMENT: too long\."):
            asked.try_out(GenerationRequest("n", "Hello", 1, stream=False))


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (GREETING + raw(GOAWAY, 0, 0, number(0) + number(11) + b"full"), "GOAWAY ENHANCE_YOUR_CALM: full"),
        (GREETING + raw(GOAWAY, 0, 0, number(0) * 2), "takes no request (GOAWAY NO_ERROR)"),
        (raw(SETTINGS, 0, 0, b"\0\3" + number(0)), "allowed no request in time"),
        (b"", "allowed no request in time"),
    ],
)
def test_the_probe_says_why_a_server_takes_no_request(greeting: bytes, words: str) -> None:
    """Law: a server that leaves, or allows no stream, is not said to have left a request unanswered; one that leaves is not
    waited for."""

    def carry(sock: socket.socket, _index: int) -> None:
        sock.sendall(greeting)
        while sock.recv(65536):
            pass

    patience = 60 if "GOAWAY" in words else 0.3
    with loopback(carry) as port, probe(port, patience) as asked, pytest.raises(PeerError) as refused:
        asked.models()
    assert words in str(refused.value)
    assert "no answer" not in str(refused.value)


def test_the_probe_of_another_service_names_what_there_is() -> None:
    """Law: of a server that does not offer the method, it says which services there are, if the server tells by reflection."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    port = server.add_insecure_port("127.0.0.1:0")
    names = [f"some.Service{number:02}" for number in range(20)]
    reflection.enable_server_reflection(names, server)
    server.start()
    try:
        with probe(port) as asked, pytest.raises(PeerError) as refused:
            asked.try_out(GenerationRequest("n", "Hello", 1, stream=False))
    finally:
        server.stop(None)
    assert "UNIMPLEMENTED" in str(refused.value)
    assert f"It offers {', '.join(names[:16])} and 4 more." in str(refused.value)


@pytest.mark.parametrize("message", [b"", b"\x32\x00", b"\x3a\x02\x08\x0c"])
def test_a_reflection_without_services_has_none(message: bytes) -> None:
    """An empty message, an empty list, and an error in its place."""
    assert services(message) == []


def test_the_probe_of_a_server_that_wants_a_key_says_so() -> None:
    """By its status."""

    def locked(_request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you")

    with (
        grpcio_server(counting, GetModelInfo=locked) as port,
        probe(port) as asked,
        pytest.raises(PeerError, match="wants a key"),
    ):
        asked.models()
