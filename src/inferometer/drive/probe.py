"""Before anything is timed: is the server there, what does it serve, does it take this plan's requests?

One look at `/v1/models` and one short whole request, which a cold start does without. What is learned is on record; nothing
here is measured.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from inferometer.drive.exchange import error_text
from inferometer.engines import openai
from inferometer.errors import PeerError, PlanError, Problem
from inferometer.journal.redact import Redactor


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address taken apart. `base` is the path before `/v1`, `host_header` what goes into the Host field."""

    scheme: str
    host: str
    port: int
    base: str
    host_header: str

    @property
    def url(self) -> str:
        """The base URL, without credentials or query."""
        return f"{self.scheme}://{self.host_header}{self.base}"


def endpoint(url: str) -> Endpoint:
    """Take a checked base URL apart; a trailing `/v1` belongs to the dialect, not to the base."""
    parts = urlsplit(url)
    host = _ascii_host(parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    base = quote(parts.path, safe="/%:@!$&'()*+,;=~").rstrip("/").removesuffix("/v1").rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    default = port == (443 if parts.scheme == "https" else 80)
    return Endpoint(parts.scheme, host, port, base, shown if default else f"{shown}:{port}")


def _ascii_host(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as cause:
        raise PlanError([Problem("--url", f"{host!r} is no host name")]) from cause


def resolve(target: Endpoint, timeout_s: float) -> tuple[int, tuple[str | int, ...]]:
    """Family and address of the first of the host's addresses that takes a connection. Raises PeerError."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else "it is no host name"
        raise PeerError(f"{target.url}: the name {target.host} does not resolve ({why})") from cause
    tried: list[str] = []
    for family, kind, proto, _, address in found:
        with socket.socket(family, kind, proto) as sock:
            sock.settimeout(timeout_s)
            try:
                sock.connect(address)
            except OSError as cause:
                tried.append(f"{str(address[0])!s} port {target.port}: {cause.strerror or cause}")
                continue
            return int(family), tuple(part for part in address if not isinstance(part, bytes))
    raise PeerError(
        f"{target.url}: no connection. Tried "
        + "; ".join(tried)
        + ". Is the server running, and on this port?"
    )


GREETING = "Hello"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one short request told: the length field the server takes, and its count of GREETING's tokens, if it gave one."""

    length_field: str
    prompt_tokens: int | None


UNASKED = Reply("max_tokens", None)
"""What is assumed of a server that must not be asked to generate."""


class Probe:
    """Asks a server a few untimed questions. `headers` may hold a secret; what the server says passes `redact`."""

    def __init__(
        self,
        target: Endpoint,
        headers: dict[str, str],
        verify: ssl.SSLContext | bool,
        timeout_s: float,
        redact: Redactor,
    ) -> None:
        self.endpoint = target
        self._redact = redact
        self.contexts: dict[str, int] = {}
        """Tokens that a model takes, prompt and answer together, where `models` was told: vLLM's `max_model_len`."""
        self.vocabularies: dict[str, int] = {}
        """Token ids that a model knows, from 0 on, where `models` was told: llama.cpp's `meta.n_vocab`."""
        self._client = httpx.Client(
            base_url=target.url,
            headers={name.encode(): value.encode("latin-1") for name, value in headers.items()},
            verify=verify,
            timeout=timeout_s,
            trust_env=False,
        )

    def __enter__(self) -> Probe:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the connections."""
        self._client.close()

    def models(self) -> tuple[list[str], str | None]:
        """Names from `/v1/models` (empty if the server has no such list) and the Server header. Raises PeerError."""
        try:
            reply = self._client.get("/v1/models")
        except httpx.HTTPError as cause:
            raise PeerError(f"{self.endpoint.url}/v1/models: {self._redact(_why(cause))}") from cause
        if reply.status_code in (401, 403):
            raise PeerError(
                f"{self.endpoint.url}/v1/models: {reply.status_code}, the server wants a key; "
                "name its place with --api-key-env or --api-key-file"
            )
        server = reply.headers.get("server")
        server = None if server is None else self._redact(server)
        try:
            listed = reply.json()["data"]
            self.contexts = {
                self._redact(str(item["id"])): item["max_model_len"]
                for item in listed
                if type(item.get("max_model_len")) is int and item["max_model_len"] > 0
            }
            self.vocabularies = {
                self._redact(str(item["id"])): item["meta"]["n_vocab"]
                for item in listed
                if isinstance(item.get("meta"), dict) and type(item["meta"].get("n_vocab")) is int
            }
            return [self._redact(str(item["id"])) for item in listed], server
        except (ValueError, KeyError, TypeError, AttributeError):
            return [], server

    def ask(self, path: str, body: bytes) -> tuple[int, dict[str, Any], str]:
        """One whole request: status, the JSON of the reply (empty if it is none), and the error's text."""
        try:
            reply = self._client.post(path, content=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as cause:
            raise PeerError(f"{self.endpoint.url}{path}: {self._redact(_why(cause))}") from cause
        try:
            found = json.loads(reply.content)
        except ValueError:
            found = {}
        return (
            reply.status_code,
            found if isinstance(found, dict) else {},
            self._redact.short(error_text(reply.content), 300),
        )

    def takes_ids(self, model: str, ids: list[int]) -> bool:
        """True if `/v1/completions` takes these token ids as a prompt."""
        status, _, _ = self.ask(
            openai.PATHS["completions"], openai.body("completions", model, ids, 1, stream=False)
        )
        return status == 200

    def tokenizer(self, model: str) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
        """Puts questions to the server's own tokenizer: path and question in, answer out, {} for none of use."""

        def ask(path: str, question: dict[str, Any]) -> dict[str, Any]:
            body = json.dumps({"model": model, **question}).encode()
            try:
                status, found, _ = self.ask(path, body)
            except (
                PeerError
            ):  # a connection that had stood idle through the run may be gone; a second is a new one
                status, found, _ = self.ask(path, body)
            return found if status == 200 else {}

        return ask

    def try_out(self, api: str, model: str, options: dict[str, Any]) -> Reply:
        """Send one real request of GREETING. Raises PeerError with the server's words.

        Newer models of OpenAI refuse `max_tokens` and name the field they want.
        """
        path, field = openai.PATHS[api], "max_tokens"
        status, reply, error = self.ask(path, openai.body(api, model, GREETING, 1, stream=False, **options))
        if status == 400 and "max_completion_tokens" in error:
            field = "max_completion_tokens"
            body = openai.body(api, model, GREETING, 1, stream=False, length_field=field, **options)
            status, reply, error = self.ask(path, body)
        if status != 200:
            hint = {
                401: " Name the key's place with --api-key-env or --api-key-file.",
                400: " If it names a field: --no-ignore-eos and --extra-body change what is sent.",
                404: " Is the model's name right (--model), and does the server offer this interface (--api)?",
            }.get(status, "")
            raise PeerError(
                f"{self.endpoint.url}{path}: the server answered {status}: {error.rstrip('.')}.{hint}"
            )
        if "choices" not in reply:
            raise PeerError(
                f"{self.endpoint.url}{path}: the answer is not an OpenAI reply but begins {error[:80]!r}. "
                "Is this the base URL of an OpenAI-compatible server?"
            )
        usage = reply.get("usage")
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Reply(field, counted if type(counted) is int and counted > 0 else None)


def _why(cause: httpx.HTTPError) -> str:
    kinds: dict[type[httpx.HTTPError], str] = {
        httpx.ConnectTimeout: "no connection in time",
        httpx.ReadTimeout: "connected, but no answer in time",
        httpx.RemoteProtocolError: "the answer is not HTTP",
    }
    return f"{kinds.get(type(cause), 'the request failed')} ({cause or type(cause).__name__})"
