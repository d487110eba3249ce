"""One endpoint's metrics over a connection that is kept: the text and when it came, or a named reason why there is none.

| reason        | means                                                                            |
| ------------- | -------------------------------------------------------------------------------- |
| `unresolved`  | the host's name has no address                                                   |
| `refused`     | nothing listens there                                                            |
| `unreachable` | no connection for another reason                                                 |
| `tls`         | no TLS session: a certificate that is not trusted, or no TLS at all              |
| `timeout`     | not whole within TIMEOUT_S, looking up the name and connecting included          |
| `closed`      | the connection ended inside the response, or without one                         |
| `not_http`    | the bytes break HTTP                                                             |
| `redirect`    | any 3xx: it is not followed, for it may lead a password elsewhere                |
| `http_NNN`    | another status than 200                                                          |
| `too_large`   | more than LARGEST bytes, or declared so                                          |
| `encoded`     | compressed, though that was not asked for                                        |
| `empty`       | nothing but white space                                                          |
| `html`        | a page for people                                                                |
| `json`        | JSON, and none of Prometheus's text at `/prometheus/metrics` either              |
| `garbage`     | not UTF-8, or not beginning as Prometheus's text does                            |

Bodies are looked at no further while the load runs; what is wrong further down is found when they are read.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from inferometer.protocol.http_response import BadResponse, HeadTooLarge, ResponseDecoder
from inferometer.telemetry.metrics.scraper_messages import Endpoint

TIMEOUT_S = 5.0
"""A server that needs longer to tell how it is says with that how it is; and a run must not wait for it at its end."""
LARGEST = 8 << 20
"""Bytes. 2,000 series are a quarter of a megabyte."""
UNANSWERED = frozenset({"unresolved", "refused", "unreachable", "tls", "timeout", "closed", "not_http"})
"""Reasons that say nothing of what is served there."""
READ_BYTES = 1 << 18

_FIRST_LINE = re.compile(r'#|[A-Za-z_:][\w:.]*\s*(\{|[ \t][-+]?(\d|\.\d|inf|nan))|\{\s*"', re.IGNORECASE)


Addresses = list[tuple[Any, ...]]
"""As `socket.getaddrinfo` gives them."""


class Failed(Exception):
    """There is no body; `reason` is of the table above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Stale(Exception):
    """The kept connection had been closed before anything came: the server's right, and no failure."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole body. Monotonic ns: when its response's first byte came; ns: from the request's start to its last byte."""

    first_byte_ns: int
    latency_ns: int
    content_type: str | None
    text: str


class Fetcher:
    """Asks one endpoint, over and over. `path` may be changed between two questions. Not for two threads at once. `resolve`
    finds a host's addresses, and may hang."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float = TIMEOUT_S,
        resolve: Callable[..., Addresses] = socket.getaddrinfo,
    ) -> None:
        self._endpoint = endpoint
        self._resolve = resolve
        self._lookup: Future[Addresses] | None = None
        self._timeout_ns = int(timeout_s * 1e9)
        self._sock: socket.socket | None = None
        self._decoder = ResponseDecoder()
        self.path = endpoint.path

    def get(self) -> Fetched:
        """The endpoint's text now. Raises Failed."""
        began = time.monotonic_ns()
        until = began + self._timeout_ns
        try:
            with contextlib.suppress(_Stale):
                return self._ask(began, until)
            return self._ask(began, until)
        except Failed:
            self.close()
            raise

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.close()
        self._sock = None

    def _ask(self, began: int, until: int) -> Fetched:
        kept = self._sock is not None
        sock = self._sock = self._sock or self._connected(until)
        decoder = self._decoder = self._decoder if kept else ResponseDecoder()
        decoder.next()
        first = None
        try:
            sock.settimeout(self._left(until))
            sock.sendall(self._request())
            for data in self._reads(sock, until):
                first = first or time.monotonic_ns()
                decoder.feed(data)
        except TimeoutError:
            raise Failed("timeout") from None
        except (BadResponse, HeadTooLarge):
            raise Failed("not_http") from None
        except OSError:
            if kept and first is None:
                self.close()
                raise _Stale from None
            raise Failed("closed") from None
        assert first is not None
        ended = time.monotonic_ns()
        body = b"".join(decoder.body)
        text = judged(
            decoder.status, decoder.header(b"content-type"), decoder.header(b"content-encoding"), body
        )
        if not decoder.keep_alive:
            self.close()
        return Fetched(first, ended - began, decoder.header(b"content-type") or None, text)

    def _reads(self, sock: socket.socket, until: int) -> Iterator[bytes]:
        """The response's bytes until it is whole, to be fed to the decoder one by one. OSError if it ends too early."""
        decoder, taken = self._decoder, 0
        while not decoder.complete:
            sock.settimeout(self._left(until))
            data = sock.recv(READ_BYTES)
            if not data:
                if decoder.eof():
                    return
                raise ConnectionResetError
            yield data
            taken += len(data)
            declared = decoder.header(b"content-length")
            if taken > LARGEST or (declared.isdigit() and int(declared) > LARGEST):
                raise Failed("too_large")

    def _left(self, until: int) -> float:
        left = (until - time.monotonic_ns()) / 1e9
        if left <= 0:
            raise Failed("timeout")
        return left

    def _request(self) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._endpoint.headers.items())
        return f"GET {self.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")

    def _connected(self, until: int) -> socket.socket:
        """A new connection to the first address that takes one."""
        wanted = self._endpoint
        reason = "unreachable"
        for family, kind, proto, _, address in self._addresses(until):
            sock = socket.socket(family, kind, proto)
            try:
                sock.settimeout(self._left(until))
                sock.connect(address)
                return self._wrapped(sock)
            except TimeoutError:
                reason = "timeout"
            except ConnectionRefusedError:
                reason = "refused"
            except (ssl.SSLError, ssl.CertificateError):
                reason = "tls"
            except OSError:
                reason = "tls" if wanted.tls and reason == "tls" else "unreachable"
            except Failed:
                sock.close()
                raise
            sock.close()
        raise Failed(reason)

    def _addresses(self, until: int) -> Addresses:
        """Of the host. The system's call takes no limit of time, so a thread makes it; one that hangs is waited for again by
        the next question, so that there is never more than one."""
        lookup = self._lookup
        if lookup is None:
            lookup = self._lookup = Future()
            threading.Thread(target=self._look_up, args=(lookup,), daemon=True).start()
        failure: BaseException | None
        try:
            failure = lookup.exception(self._left(until))
        except TimeoutError:
            raise Failed("timeout") from None
        self._lookup = None
        if failure is None:
            return lookup.result()
        if isinstance(failure, OSError | UnicodeError):
            raise Failed("unresolved") from None
        raise failure

    def _look_up(self, lookup: Future[Addresses]) -> None:
        try:
            found = self._resolve(self._endpoint.host, self._endpoint.port, type=socket.SOCK_STREAM)
        except Exception as failure:
            lookup.set_exception(failure)
        else:
            lookup.set_result(found)

    def _wrapped(self, sock: socket.socket) -> socket.socket:
        wanted = self._endpoint
        if not wanted.tls:
            return sock
        context = ssl.create_default_context(cafile=wanted.tls_ca_file)
        if not wanted.tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(sock, server_hostname=wanted.host)


def judged(status: int, content_type: str, encoding: str, body: bytes) -> str:
    """The body as text, if it may be Prometheus's. Raises Failed."""
    if 300 <= status < 400:
        raise Failed("redirect")
    if status != 200:
        raise Failed(f"http_{status}")
    if encoding.strip().lower() not in ("", "identity"):
        raise Failed("encoded")
    begin, end = body[:256].lstrip() or body.lstrip()[:256], body[-256:].rstrip() or body.rstrip()[-256:]
    if not begin:
        raise Failed("empty")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/html" or begin.startswith(b"<"):
        raise Failed("html")
    # UTF-8 names stand in braces too, but a sample's line ends with its value.
    if kind.endswith("json") or (begin[:1] in (b"{", b"[") and end[-1:] in (b"}", b"]")):
        raise Failed("json")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Failed("garbage") from None
    if "\0" in text or not _FIRST_LINE.match(text.lstrip()):
        raise Failed("garbage")
    return text
