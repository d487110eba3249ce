"""Calls of an engine's own interface: an adapter's `Ask` sent, and its `Reply`. Untimed, bounded in time and bytes."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

from inferometer.client.http_client import Client, Response
from inferometer.client.trust import context
from inferometer.drive.credentials import merged
from inferometer.drive.probe import Endpoint, endpoint
from inferometer.engines.adapters.adapter import Ask, Reply

LARGEST = 2 << 20
"""Bytes of a reply; a thousand models of Ollama take 400 kB."""
_LONGEST_TEXT = 4_096


class EngineClient:
    """One server's own interface. `headers` may hold a key, and go to this server alone. Raises PlanError for what is no name
    of a host."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = 10.0
    ) -> None:
        self.endpoint: Endpoint = endpoint(url)
        self._timeout_s = timeout_s
        lines = {"Host": self.endpoint.host_header, "User-Agent": "inferometer", "Accept": "*/*"}
        self._client = Client(
            self.endpoint.host,
            self.endpoint.port,
            merged(lines, headers or {}),
            timeout_s=timeout_s,
            base=self.endpoint.base,
            tls=functools.partial(context, True, None) if self.endpoint.scheme == "https" else None,
            largest=LARGEST,
        )

    def __enter__(self) -> EngineClient:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the connections."""
        self._client.close()

    def call(self, ask: Ask, timeout_s: float | None = None) -> Reply:
        """Send it; what came back, whatever its status. Raises Unanswered."""
        body = None if ask.body is None else json.dumps(ask.body, ensure_ascii=False).encode()
        limit = self._timeout_s if timeout_s is None else timeout_s
        return reply_of(self._client.request(ask.method, ask.path, body, limit))


def reply_of(response: Response) -> Reply:
    """A response as adapters read it."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers.items()}
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = response.text()[:_LONGEST_TEXT]
    return Reply(response.status, headers, body)
