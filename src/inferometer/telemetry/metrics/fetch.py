"""One endpoint's metrics over a connection that is kept: the text and when it came, or a named reason why there is none.

| reason        | means                                                                            |
| ------------- | -------------------------------------------------------------------------------- |
| `unresolved`, `refused`, `unreachable`, `tls`, `timeout`, `closed`, `not_http`: no response, see client/http_client.py |
| `redirect`    | any 3xx: it is not followed, for it may lead a password elsewhere                |
| `http_NNN`    | another status than 200                                                          |
| `too_large`   | more bytes than allowed, as sent or inflated, or declared so                     |
| `encoded`     | a coding other than gzip and deflate, or one that is broken                      |
| `empty`       | nothing but white space                                                          |
| `html`        | a page for people                                                                |
| `json`        | JSON                                                                             |
| `garbage`     | not UTF-8, or not beginning as Prometheus's text does                            |
| `internal`    | an error of ours, or of a library on this machine: this reading is lost, no other |

Bodies are looked at no further while the load runs; what is wrong further down is found when they are read.

No compression is requested: a server would compress every scrape on the core that serves requests, which is to be measured. A
header line of the plan may request it all the same, and some servers and proxies compress whatever was requested.

Where the URL has no metrics, another path is tried, and asked from then on if it has them:

| the answer | the path tried                                                                      |
| ---------- | ----------------------------------------------------------------------------------- |
| JSON       | `/prometheus/metrics` in place of `/metrics`, where TensorRT-LLM shows them         |
| `http_404` | of a named endpoint, the path without the `/metrics` that was appended, or with it  |
"""

from __future__ import annotations

import re
import socket
import ssl
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from inferometer.client.http_client import Client, Unanswered
from inferometer.client.name_lookup import Addresses
from inferometer.client.trust import context
from inferometer.telemetry.metrics.scraper_messages import Endpoint

TIMEOUT_S = 5.0
"""A server that needs longer to tell how it is says with that how it is; and a run must not wait for it at its end."""
LARGEST = 32 << 20
"""Bytes, unless the endpoint says otherwise. 100,000 series are 9 megabytes."""
BEGINNING = 60
"""Characters of a body that is no metrics that are shown, to recognise it by."""
HELD = 16 << 10
"""Bytes of one that are held until secrets are struck out of them: more than any secret has."""
APPENDED, ELSEWHERE = "/metrics", "/prometheus/metrics"
INTERNAL = "internal"
UNANSWERED = frozenset({"unresolved", "refused", "unreachable", "tls", "timeout", "closed", "not_http"})
"""Reasons that say nothing of what is served there."""

_FIRST_LINE = re.compile(r'#|[A-Za-z_:][\w:.]*\s*(\{|[ \t][-+]?(\d|\.\d|inf|nan))|\{\s*"', re.IGNORECASE)


class Failed(Exception):
    """There is no body; `reason` is of the table above. `words`: what was met, such as how the body begins; it is the server's
    text, which may hold secrets and end in the middle of one, or the operating system's."""

    def __init__(self, reason: str, words: object = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.words = str(words)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole body. Monotonic ns: when its response's first byte came; ns: from the request's start to its last byte."""

    first_byte_ns: int
    latency_ns: int
    content_type: str | None
    text: str


def _tls(endpoint: Endpoint) -> Callable[[], ssl.SSLContext]:
    """What makes the settings; they are made anew for each connection."""
    return partial(
        context,
        endpoint.tls_verify,
        endpoint.tls_ca_file,
        cert_file=endpoint.tls_cert_file,
        key_file=endpoint.tls_key_file,
    )


class Fetcher:
    """Scrapes one endpoint, over and over. `path` may be changed between two scrapes. `resolve`: see Client."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float = TIMEOUT_S,
        resolve: Callable[..., Addresses] = socket.getaddrinfo,
    ) -> None:
        self._client = Client(
            endpoint.host,
            endpoint.port,
            endpoint.headers,
            timeout_s=endpoint.timeout_s or timeout_s,
            tls=_tls(endpoint) if endpoint.tls else None,
            largest=endpoint.largest,
            resolve=resolve,
        )
        self._own, self._largest = endpoint.own, endpoint.largest
        path, mark, query = endpoint.path.partition("?")
        self._path, self._question = path, mark + query
        self.instead: str | None = None
        """The path that is asked in place of the URL's, once one has been found."""

    def get(self) -> Fetched:
        """The endpoint's text now, if need be from another path. Raises Failed, for the URL's own."""
        if self.instead is not None:
            return self._get(self.instead)
        try:
            return self._get(self._path)
        except Failed as failure:
            other = self._other(failure.reason)
            if other is None:
                raise
            try:
                fetched = self._get(other)
            except Failed:
                raise failure from None
        self.instead = other
        return fetched

    def _other(self, reason: str) -> str | None:
        """Which other path may have the metrics; None: none."""
        base = self._path.removesuffix(APPENDED)
        if reason == "json" and not self._path.endswith(ELSEWHERE):
            return base + ELSEWHERE
        if reason != "http_404" or self._own or not base.strip("/"):
            return None
        return base if base != self._path else self._path + APPENDED

    def _get(self, path: str) -> Fetched:
        try:
            found = self._client.get(path + self._question)
            kind = found.header(b"content-type")
            coding = found.header(b"content-encoding")
            text = judged(found.status, kind, coding, found.body, self._largest)
        except Unanswered as failure:
            raise Failed(failure.reason, failure) from None
        except Failed:
            self.close()
            raise
        return Fetched(found.first_byte_ns, found.latency_ns, kind or None, text)

    def close(self) -> None:
        """End the connection, if there is one."""
        self._client.close()


def inflated(coding: str, body: bytes, largest: int) -> bytes:
    """A body without its compression; it is inflated no further than `largest` bytes. Raises Failed."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "x-gzip", "deflate"):
        raise Failed("encoded", f"Content-Encoding: {coding.strip()}")
    for window in (32 + zlib.MAX_WBITS, -zlib.MAX_WBITS):  # gzip or zlib by its head; some send deflate bare
        inflater = zlib.decompressobj(window)
        try:
            found = inflater.decompress(body, largest + 1)
        except zlib.error:
            continue
        if len(found) > largest:
            raise Failed("too_large", f"inflated, the answer has more than {largest} bytes")
        if inflater.eof:
            return found
    raise Failed("encoded", f"Content-Encoding: {coding.strip()}, damaged")


def judged(status: int, content_type: str, coding: str, body: bytes, largest: int = LARGEST) -> str:
    """The body as text of `largest` bytes at most, if it may be Prometheus's. Raises Failed."""
    if 300 <= status < 400:
        raise Failed("redirect")
    if status != 200:
        raise Failed(f"http_{status}", _beginning(body) if not coding.strip() else "")
    body = inflated(coding, body, largest)
    begin, end = body[:256].lstrip() or body.lstrip()[:256], body[-256:].rstrip() or body.rstrip()[-256:]
    if not begin:
        raise Failed("empty")
    kind = content_type.partition(";")[0].strip().lower()
    if begin.startswith(b"<"):
        raise Failed("html", _beginning(body))
    # UTF-8 names stand in braces too, but a sample's line ends with its value.
    if kind.endswith("json") or (begin[:1] in (b"{", b"[") and end[-1:] in (b"}", b"]")):
        raise Failed("json", _beginning(body))
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Failed("garbage", _beginning(body)) from None
    if "\0" in text or not _FIRST_LINE.match(text.lstrip()):
        raise Failed("html" if kind == "text/html" else "garbage", _beginning(body))
    return text


def _beginning(body: bytes) -> str:
    """How a body begins, before secrets are struck out of it and it is cut to what is shown."""
    return body[:HELD].decode("utf-8", "replace")
