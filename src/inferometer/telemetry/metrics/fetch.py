"""One endpoint's metrics over a connection that is kept: the text and when it came, or a named reason why there is none.

| reason        | means                                                                            |
| ------------- | -------------------------------------------------------------------------------- |
| `unresolved`, `refused`, `unreachable`, `tls`, `timeout`, `closed`, `not_http`: no response, see client/http_client.py |
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

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from inferometer.client.http_client import Addresses, Client, Unanswered
from inferometer.client.trust import context
from inferometer.telemetry.metrics.scraper_messages import Endpoint

TIMEOUT_S = 5.0
"""A server that needs longer to tell how it is says with that how it is; and a run must not wait for it at its end."""
LARGEST = 8 << 20
"""Bytes. 2,000 series are a quarter of a megabyte."""
UNANSWERED = frozenset({"unresolved", "refused", "unreachable", "tls", "timeout", "closed", "not_http"})
"""Reasons that say nothing of what is served there."""

_FIRST_LINE = re.compile(r'#|[A-Za-z_:][\w:.]*\s*(\{|[ \t][-+]?(\d|\.\d|inf|nan))|\{\s*"', re.IGNORECASE)


class Failed(Exception):
    """There is no body; `reason` is of the table above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole body. Monotonic ns: when its response's first byte came; ns: from the request's start to its last byte."""

    first_byte_ns: int
    latency_ns: int
    content_type: str | None
    text: str


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
            timeout_s=timeout_s,
            tls=partial(context, endpoint.tls_verify, endpoint.tls_ca_file) if endpoint.tls else None,
            largest=LARGEST,
            resolve=resolve,
        )
        self.path = endpoint.path

    def get(self) -> Fetched:
        """The endpoint's text now. Raises Failed."""
        try:
            found = self._client.get(self.path)
            kind = found.header(b"content-type")
            text = judged(found.status, kind, found.header(b"content-encoding"), found.body)
        except Unanswered as failure:
            raise Failed(failure.reason) from None
        except Failed:
            self.close()
            raise
        return Fetched(found.first_byte_ns, found.latency_ns, kind or None, text)

    def close(self) -> None:
        """End the connection, if there is one."""
        self._client.close()


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
