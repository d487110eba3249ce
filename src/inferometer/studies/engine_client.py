"""Calls of an engine's own interface: an adapter's `Ask` sent, and its `Reply`. Untimed, bounded in time and bytes."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Mapping

from inferometer.client.http_client import Client, Response, Unanswered
from inferometer.client.trust import context
from inferometer.drive.credentials import merged, secrets_in
from inferometer.drive.probe import Endpoint, endpoint
from inferometer.engines.adapters.adapter import Ask, Reply
from inferometer.engines.adapters.fields import MOST_ROWS
from inferometer.journal.redact import Redactor

LARGEST = 2 << 20
"""Bytes of a reply; a thousand models of Ollama take 400 kB."""
_LONGEST_TEXT = 4_096
_LONGEST_WORDS = 300
_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")


class EngineClient:
    """One server's own interface. `headers` may hold a key, which goes to this server alone and is struck out of what it says.
    Raises PlanError for what is no name of a host."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = 10.0
    ) -> None:
        self.endpoint: Endpoint = endpoint(url)
        self._timeout_s = timeout_s
        self._redact = Redactor(secrets_in(headers or {}))
        lines = {"Host": self.endpoint.host_header, "User-Agent": "inferometer", "Accept": "*/*"}
        self._client = Client(
            self.endpoint.host,
            self.endpoint.port,
            merged(lines, headers or {}),
            timeout_s=timeout_s,
            base=self.endpoint.base,
            tls=functools.partial(context, True, None) if self.endpoint.scheme == "https" else None,
            largest=LARGEST,
            parts=True,
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
        try:
            response = self._client.request(ask.method, ask.path, body, limit)
        except Unanswered as cause:
            if cause.part is not None and (rows := first_rows(cause.part.body)):
                with contextlib.suppress(RecursionError):  # rows may be nested to the limit
                    return Reply(cause.part.status, {}, _redacted({"data": rows}, self._redact))
            raise Unanswered(cause.reason, self._redact.short(str(cause), _LONGEST_WORDS)) from cause
        return reply_of(response, self._redact)


def first_rows(text: bytes) -> list[object]:
    """The objects that the list `data` of a cut JSON object begins with, MOST_ROWS at most; empty if it is something else."""
    cut = text.decode("utf-8", "ignore")
    begins = re.match(r'\s*\{(?:\s*"object"\s*:\s*"list"\s*,)?\s*"data"\s*:\s*\[', cut)
    if begins is None:
        return []
    rows: list[object] = []
    at = begins.end()
    with contextlib.suppress(ValueError, RecursionError):
        while len(rows) < MOST_ROWS:
            row, at = _DECODER.raw_decode(cut, _BETWEEN.match(cut, at).end())  # type: ignore[union-attr]
            rows.append(row)
    return rows


def reply_of(response: Response, redact: Redactor) -> Reply:
    """A response as adapters read it. A server may repeat the key that it was sent, in whatever member."""
    headers = {
        name.decode("latin-1"): redact(value.decode("latin-1")) for name, value in response.headers.items()
    }
    try:
        body = _redacted(response.json(), redact)
    except (ValueError, RecursionError):
        body = redact.short(response.text(), _LONGEST_TEXT)
    return Reply(response.status, headers, body)


def _redacted(value: object, redact: Redactor) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(name): _redacted(inner, redact) for name, inner in value.items()}
    return [_redacted(inner, redact) for inner in value] if isinstance(value, list) else value
