"""The receiver of spans: held to the published messages and to the SDK's own exporter, over sockets of the kernel's choice."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from inferometer import foreign_json
from inferometer.isolation import Child
from inferometer.journal.tasks import TaskSteps
from inferometer.protocol import otlp_traces
from inferometer.protocol.protobuf import Malformed, piece
from inferometer.telemetry import span_receiver
from inferometer.telemetry.span_receiver import (
    JSON,
    MOST_CONNECTIONS,
    MOST_FIELDS,
    PROTOBUF,
    Receiver,
    Refused,
    Store,
    kept,
    unpacked,
)
from inferometer.telemetry.task_spans import LONGEST_LINE, join

SECRET = "sk-canary-of-a-prompt"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A receiver in this process: its port and its file."""
    path = tmp_path / "spans.jsonl"
    with path.open("ab") as file, Receiver("127.0.0.1", 0, Store(file)) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made.server_address[1], path
        made.shutdown()
        thread.join(10)


def post(
    port: int, body: bytes, kind: str = JSON, path: str = "/v1/traces", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, body, {"Content-Type": kind, **named})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def message(operation: str = "chat", trace: str = TRACE, more: int = 0) -> ExportTraceServiceRequest:
    """A request of the published messages, with words of a user in all places that have any."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = SECRET
    scope = resource.scope_spans.add()
    for at in range(1 + more):
        span = scope.spans.add(
            trace_id=bytes.fromhex(trace), span_id=(at + 1).to_bytes(8, "big"), parent_span_id=bytes.fromhex(PARENT),
            name=SECRET, start_time_unix_nano=10, end_time_unix_nano=30,
        )  # fmt: skip
        span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
        span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 7
        span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 3
        span.attributes.add(key="gen_ai.input.messages").value.string_value = SECRET
        span.attributes.add(key="x").value.array_value.values.add().string_value = SECRET
        span.events.add(name=SECRET)
        span.status.code = 2
        span.status.message = SECRET
    return request


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """The same in OTLP's JSON, written by its documentation."""
    spans = [
        {
            "traceId": one.trace_id.hex(), "spanId": one.span_id.hex(), "parentSpanId": one.parent_span_id.hex(),
            "name": one.name, "startTimeUnixNano": str(one.start_time_unix_nano),
            "endTimeUnixNano": str(one.end_time_unix_nano), "status": {"code": one.status.code, "message": SECRET},
            "attributes": [
                {"key": tag.key, "value": {"intValue": str(tag.value.int_value)} if tag.value.HasField("int_value")
                 else {"stringValue": tag.value.string_value}} for tag in one.attributes
            ],
        }
        for one in request.resource_spans[0].scope_spans[0].spans
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_what_is_read_is_kept_in_either_form_and_nothing_else(
    kind: str, packed: bool, receiver: tuple[int, Path]
) -> None:
    """Law: JSON and protobuf, packed or not, leave the same steps; no word of a user reaches the disk."""
    port, path = receiver
    body = as_json(message()) if kind == JSON else message().SerializeToString()
    headers = {"Content_Encoding": "gzip"} if packed else {}
    status, answer = post(port, gzip.compress(body) if packed else body, kind, **headers)
    assert (status, answer) == (200, b"{}" if kind == JSON else b"")
    assert SECRET not in path.read_text()
    found = join(path, [TRACE]).traces[TRACE]
    kinds = dict.fromkeys(("model", "tool", "retrieval", "rerank", "guardrail"), 0)
    assert found == TaskSteps(
        1, kinds | {"model": 1}, kinds | {"model": 20}, 7, 3, failed_steps=1, end_ns=kinds | {"model": 20}
    )


def test_the_sdks_own_exporter_is_understood(receiver: tuple[int, Path]) -> None:
    """Law: spans that OpenTelemetry's SDK makes and sends are joined to the caller's trace. (It needs opentelemetry-sdk and
    opentelemetry-exporter-otlp-proto-http.)"""
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    http_exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    port, path = receiver
    provider = trace.TracerProvider()
    processor = pytest.importorskip("opentelemetry.sdk.trace.export").BatchSpanProcessor(
        exporters.OTLPSpanExporter(
            f"http://127.0.0.1:{port}/v1/traces", compression=http_exporter.Compression.Gzip, timeout=10
        )
    )
    provider.add_span_processor(processor)
    caller = TraceContextTextMapPropagator().extract({"traceparent": f"00-{TRACE}-{PARENT}-01"})
    tracer = provider.get_tracer("a system")
    with tracer.start_as_current_span("invoke_agent", context=caller):
        for operation in ("chat", "execute_tool", "chat"):
            with tracer.start_as_current_span(operation) as span:
                span.set_attribute("gen_ai.operation.name", operation)
                span.set_attribute("gen_ai.usage.input_tokens", 5)
                span.set_attribute("gen_ai.usage.output_tokens", 2)
                span.set_attribute("gen_ai.input.messages", SECRET)
    provider.shutdown()
    found = join(path, [TRACE]).traces[TRACE]
    assert (found.spans, found.steps["model"], found.steps["tool"]) == (4, 2, 1)
    assert (found.input_tokens, found.output_tokens) == (10, 4)
    assert SECRET not in path.read_text()


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status"),
    [
        (b"{", JSON, {}, 400),
        (b"[]", JSON, {}, 400),
        (b'{"resourceSpans": [1]}', JSON, {}, 400),
        (b'{"resourceSpans": {"a": 1}}', JSON, {}, 400),
        (b"\xff\xff", PROTOBUF, {}, 400),
        (b"{}", "text/plain", {}, 415),
        (b"{}", JSON, {"Content_Encoding": "br"}, 415),
        (b"{}", JSON, {"Content_Encoding": "gzip"}, 400),
        (gzip.compress(bytes(20 << 20)), JSON, {"Content_Encoding": "gzip"}, 413),
        (b"", JSON, {"Content_Length": "99999999"}, 413),
        (b"", JSON, {"Content_Length": "-1"}, 411),
        (b"", JSON, {"Transfer_Encoding": "chunked"}, 411),
    ],
)  # fmt: skip
def test_what_is_no_export_is_answered_and_leaves_nothing(
    body: bytes, kind: str, headers: dict[str, str], status: int, receiver: tuple[int, Path]
) -> None:
    """Law: a status in words, no line in the file, and the receiver goes on."""
    port, path = receiver
    assert post(port, body, kind, **headers)[0] == status
    assert post(port, b"{}", path="/v1/metrics")[0] == 404
    assert path.read_bytes() == b""
    assert post(port, as_json(message()))[0] == 200


def test_spans_that_are_none_and_those_beyond_the_limit_are_rejected_in_numbers(tmp_path: Path) -> None:
    """Law: the answer states how many, in either form; what was taken stays whole."""
    bad = json.loads(as_json(message(more=2)))
    spans = bad["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[0]["traceId"], spans[1]["endTimeUnixNano"] = "zz", "5"
    good, rejected = kept(json.dumps(bad).encode(), JSON)
    assert (len(good), rejected) == (1, 2)
    path = tmp_path / "s"
    with path.open("ab") as file:
        store = Store(file, most=5)
        three = kept(message(more=2).SerializeToString(), PROTOBUF)[0]
        assert [store.add(three) for _ in range(3)] == [0, 1, 3]
    assert join(path, [TRACE]).spans == 5
    answer = ExportTraceServiceResponse.FromString(otlp_traces.reply(3, "full"))
    assert (answer.partial_success.rejected_spans, answer.partial_success.error_message) == (3, "full")


def test_whatever_is_taken_can_be_read(tmp_path: Path) -> None:
    """Law: one sender's spans never cost another's: neither attributes without number, nor marks in them that would count as
    values, nor characters that JSON writes in six, make a line that is not read."""
    path = tmp_path / "s"
    hostile = message(trace="f" * 32, more=4_000)
    for span in hostile.resource_spans[0].scope_spans[0].spans:
        for text in (",[{" * 30, "\x01" * 90):
            for _ in range(15):
                span.attributes.add(key="gen_ai.operation.name").value.string_value = text
    assert len(hostile.SerializeToString()) < span_receiver.LARGEST_BODY
    with path.open("ab") as file:
        store = Store(file)
        for one in (hostile, message()):
            assert store.add(kept(one.SerializeToString(), PROTOBUF)[0]) == 0
    found = join(path, [TRACE])
    assert (found.spans, found.traces[TRACE].steps["model"]) == (4_002, 1)
    lines = path.read_bytes().splitlines()
    assert max(map(len, lines)) < LONGEST_LINE / 4
    assert all(max(line.count(mark) for mark in b",[{") < foreign_json.MOST_VALUES / 10 for line in lines)


@pytest.mark.parametrize("inner", [b"\x12\x00", b"\x12\x02\x4a\x00", b"\x12\x04\x4a\x02\x12\x00"])
def test_a_message_of_nothing_but_fields_is_refused(inner: bytes) -> None:
    """Law: empty scopes, spans and attributes cost memory by their number, so there is a bound on it."""
    body = piece(1, piece(2, inner * MOST_FIELDS))
    assert len(body) < span_receiver.LARGEST_BODY
    with pytest.raises(Refused) as caught:
        kept(body, PROTOBUF)
    assert caught.value.status == 400


def test_slow_senders_shut_nobody_out(receiver: tuple[int, Path]) -> None:
    """Law: whoever sends a whole request at once is served, however many send theirs a byte at a time."""
    port, path = receiver
    head = b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(2 * MOST_CONNECTIONS)]
    try:
        for one in slow:
            with contextlib.suppress(OSError):
                one.sendall(head)
        assert post(port, as_json(message()))[0] == 200
    finally:
        for one in slow:
            one.close()
    assert join(path, [TRACE]).spans == 1


def test_a_disk_that_is_full_rejects(tmp_path: Path) -> None:
    """Law: no span is claimed that is not there."""
    with open("/dev/full", "ab", buffering=0) as file:
        store = Store(file)
        three = kept(message(more=2).SerializeToString(), PROTOBUF)[0]
        assert [store.add(three), store.add(three)] == [3, 3]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Law: of bytes, in any of the forms, nothing else comes out than spans or a refusal."""
    for kind in (JSON, PROTOBUF):
        for packed in ("", "gzip"):
            with contextlib.suppress(Refused):
                kept(unpacked(body, packed), kind)


IDS = st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)


@given(st.lists(st.tuples(*IDS, st.integers(0, 1 << 62), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=5))
def test_messages_of_the_published_library_are_read_as_they_are(
    spans: list[tuple[bytes, bytes, int, int]],
) -> None:
    """Law: ids, times and integers of any value."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for trace, ident, at, number in spans:
        made = scope.spans.add(
            trace_id=trace, span_id=ident, start_time_unix_nano=at, end_time_unix_nano=at + 1
        )
        made.attributes.add(key="k").value.int_value = number
    found = list(otlp_traces.spans_in(request.SerializeToString(), 1000))
    assert [(one["traceId"], one["spanId"]) for one in found] == [(t.hex(), s.hex()) for t, s, _, _ in spans]
    attributes: Any = [one["attributes"] for one in found]
    assert [int(one[0]["value"]["intValue"]) for one in attributes] == [number for *_, number in spans]
    with pytest.raises(Malformed):
        list(otlp_traces.spans_in(b"\x0a\x05x", 1000))


def test_it_is_a_process_that_says_where_it_listens_and_ends_with_its_input(tmp_path: Path) -> None:
    """Law: a port that is taken is said in words."""
    first, second = (
        Child(span_receiver.__name__, "127.0.0.1", port, str(tmp_path / "s"), called="it")
        for port in ("0", _taken())
    )
    try:
        state, port = first.stdout.readline().split()
        assert state == b"listening"
        assert post(int(port), as_json(message()))[0] == 200
        assert second.stdout.readline().startswith(b"failed ")
    finally:
        for child in (first, second):
            child.end(10)
            child.close()
    assert first.process.returncode == 0


_HELD: list[socket.socket] = []


def _taken() -> str:
    held = socket.create_server(("127.0.0.1", 0))
    _HELD.append(held)
    return str(held.getsockname()[1])
