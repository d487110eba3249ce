"""`python -m inferometer.telemetry.span_receiver HOST PORT FILE`: takes a system's spans while a load runs (OTLP over HTTP).

A process of its own, so that it takes no time from those that measure; it ends when its input does. It says `listening PORT` or
`failed WORDS` first. Each request's spans become a line of OTLP JSON in the file, with what task_spans.py reads of them and
nothing else: a span may hold what a user asked, or a key.

| limit                             | value                | beyond it                                                     |
| --------------------------------- | -------------------- | ------------------------------------------------------------- |
| a body, unpacked                  | LARGEST_BODY         | 413                                                           |
| spans                             | MOST_SPANS           | rejected, which the answer states (`partialSuccess`)          |
| values of a body                  | MOST_FIELDS          | 400                                                           |
| connections at once               | MOST_CONNECTIONS     | the one that has waited longest for its client is closed      |
| seconds for a request             | PATIENCE_S           | closed                                                        |
| spans a line of the file          | SPANS_A_LINE         | another line                                                  |
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from inferometer import foreign_json
from inferometer.isolation import undisturbed
from inferometer.protocol import otlp_traces
from inferometer.protocol.protobuf import Malformed
from inferometer.telemetry.bounded_server import BoundedRequest, BoundedServer
from inferometer.telemetry.task_spans import ATTRIBUTES, MOST_SPANS

PATH = "/v1/traces"
LARGEST_BODY = 16 << 20
MOST_CONNECTIONS = 32
PATIENCE_S = 10.0
MOST_FIELDS = 2_000_000
"""Of a message of protobuf; JSON has a limit of its own (foreign_json.py)."""
SPANS_A_LINE = 1_000
"""So that no line has more than task_spans.py reads, whatever is in the spans."""
NICE = 10
JSON, PROTOBUF = "application/json", "application/x-protobuf"
_TRACE, _SPAN = re.compile("[0-9a-fA-F]{32}"), re.compile("[0-9a-fA-F]{16}")
_NUMBER = re.compile("[0-9]{1,19}")
_LONGEST_VALUE = 64


class Refused(Exception):
    """A request that is answered with a status that is no success."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body without its compression. Raises Refused."""
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise Refused(415, f"the content encoding {encoding[:40]!r} is not gzip")
    try:
        made = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found = made.decompress(body, LARGEST_BODY + 1)
    except zlib.error as cause:
        raise Refused(400, "the body is not gzip") from cause
    if len(found) > LARGEST_BODY:
        raise Refused(413, f"more than {LARGEST_BODY >> 20} MiB")
    return found


def kept(body: bytes, content_type: str) -> tuple[list[dict[str, object]], int]:
    """What is kept of a request's spans, and how many are none. Raises Refused."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (JSON, PROTOBUF):
        raise Refused(415, f"the content type is neither {JSON} nor {PROTOBUF}")
    try:
        found = [
            _kept(span)
            for span in (_of_json(body) if kind == JSON else otlp_traces.spans_in(body, MOST_FIELDS))
        ]
    except (foreign_json.NotJSON, Malformed, TypeError, AttributeError) as cause:
        raise Refused(400, "the body holds no traces of OTLP") from cause
    spans = [span for span in found if span is not None]
    return spans, len(found) - len(spans)


def _of_json(body: bytes) -> Iterator[dict[str, Any]]:
    for resource in foreign_json.loads(body).get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            yield from scope.get("spans") or ()


def _kept(span: dict[str, Any]) -> dict[str, object] | None:
    """As much of a span as is read of it; None: it is none."""
    trace, ident, parent = (str(span.get(name) or "") for name in ("traceId", "spanId", "parentSpanId"))
    times = [str(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano")]
    if not _TRACE.fullmatch(trace) or not _SPAN.fullmatch(ident) or (parent and not _SPAN.fullmatch(parent)):
        return None
    if not all(_NUMBER.fullmatch(one) and int(one) < 1 << 63 for one in times) or int(times[0]) > int(
        times[1]
    ):
        return None
    code = (span.get("status") or {}).get("code")
    return {
        "traceId": trace,
        "spanId": ident,
        **({"parentSpanId": parent} if parent else {}),
        "startTimeUnixNano": times[0],
        "endTimeUnixNano": times[1],
        "attributes": list(_attributes(span)),
        **({"status": {"code": code}} if code in (1, 2, "STATUS_CODE_OK", "STATUS_CODE_ERROR") else {}),
    }


def _attributes(span: dict[str, Any]) -> Iterable[dict[str, object]]:
    """Those that are read, each once: the last of a name counts."""
    found = (one for one in map(_attribute, span.get("attributes") or ()) if one is not None)
    return {one["key"]: one for one in found}.values()


def _attribute(one: dict[str, Any]) -> dict[str, object] | None:
    name, value = one.get("key"), one.get("value") or {}
    if name not in ATTRIBUTES:
        return None
    if isinstance(text := value.get("stringValue"), str):
        return {"key": name, "value": {"stringValue": text[:_LONGEST_VALUE]}}
    number = str(value.get("intValue"))
    return {"key": name, "value": {"intValue": number}} if _NUMBER.fullmatch(number) else None


def batched(spans: Sequence[dict[str, object]], size: int) -> Iterator[Sequence[dict[str, object]]]:
    """They in their order, as many at a time."""
    return (spans[at : at + size] for at in range(0, len(spans), size))


class Store:
    """The file, which grows by whole lines, from any thread."""

    def __init__(self, file: IO[bytes], most: int = MOST_SPANS) -> None:
        self._file, self._left = file, most
        self._lock = threading.Lock()

    def add(self, spans: list[dict[str, object]]) -> int:
        """Write these; how many there is no more room for."""
        with self._lock:
            taken = spans[: self._left]
            self._left -= len(taken)
            if taken:
                try:
                    for some in batched(taken, SPANS_A_LINE):
                        line = msgspec.json.encode({"resourceSpans": [{"scopeSpans": [{"spans": some}]}]})
                        self._file.write(line + b"\n")
                    self._file.flush()
                except OSError:
                    self._left = 0
                    return len(spans)
        return len(spans) - len(taken)


class Receiver(BoundedServer):
    """Listens from construction on. Raises OSError."""

    request_queue_size = MOST_CONNECTIONS

    def __init__(self, host: str, port: int, store: Store) -> None:
        self.store = store
        self._reading = threading.Lock()
        super().__init__(host, port, MOST_CONNECTIONS, _Handler)

    def take(self, body: bytes, encoding: str, kind: str) -> int:
        """Keep a request's spans; how many were none, or too many. Raises Refused.

        One at a time: a body of LARGEST_BODY may take a hundred times its size in memory for as long as it is read.
        """
        with self._reading:
            spans, rejected = kept(unpacked(body, encoding), kind)
            return rejected + self.store.add(spans)


class _Handler(BoundedRequest):
    timeout = PATIENCE_S
    server: Receiver

    def parse_request(self) -> bool:
        """See BaseHTTPRequestHandler: the first line is whole, and the rest has as long again."""
        self._reader.begin()
        return super().parse_request()

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        """Spans."""
        kind = self.headers.get("Content-Type", "")
        try:
            body = self._body()
            self.server.is_answered(self.connection)
            rejected = self.server.take(body, self.headers.get("Content-Encoding", "").strip().lower(), kind)
        except Refused as cause:
            self.close_connection = True
            self._answer(cause.status, str(cause).encode(), "text/plain")
            return
        words = "no spans, or more than are taken"
        if kind.startswith(PROTOBUF):
            self._answer(200, otlp_traces.reply(rejected, words), PROTOBUF)
        else:
            told = (
                {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": words}}
                if rejected
                else {}
            )
            self._answer(200, msgspec.json.encode(told), JSON)

    def _body(self) -> bytes:
        if self.path.partition("?")[0] != PATH:
            raise Refused(404, f"spans are taken at {PATH}")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise Refused(411, "a body needs its length")
        if len(length) > 9 or int(length) > LARGEST_BODY:
            raise Refused(413, f"more than {LARGEST_BODY >> 20} MiB")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "the body is not whole")
        return body

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.connection.settimeout(PATIENCE_S)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(host: str, port: str, path: str) -> None:
    """The process: see the head."""
    undisturbed()
    with contextlib.suppress(OSError):
        os.nice(NICE)
    try:
        with Path(path).open("ab") as file, Receiver(host, int(port), Store(file)) as receiver:
            threading.Thread(target=receiver.serve_forever, daemon=True).start()
            _say(f"listening {receiver.server_address[1]}")
            while os.read(0, 1 << 10):
                pass
            receiver.shutdown()
    except OSError as cause:
        _say(f"failed {cause.strerror or cause}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
