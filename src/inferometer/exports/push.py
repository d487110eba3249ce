"""One request that carries an export to the URL that was given, and to no other place.

| limit            | is                                                                                |
| ---------------- | --------------------------------------------------------------------------------- |
| time             | one deadline for name look-up, connection, TLS, sending and the answer            |
| request          | `LARGEST_REQUEST` bytes                                                           |
| answer           | `LARGEST_ANSWER` bytes                                                            |
| redirects        | none is followed: the answer is an error, since it may lead a token elsewhere     |
| attempts         | one: a receiver may have taken what it did not confirm                            |
| secrets          | from a variable or a file, or in the URL; sent, never shown and never written,    |
|                  | however the answer spells them (journal/redact.py)                                |
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from inferometer import whole_file
from inferometer.addresses import secrets_of, shown
from inferometer.client.http_client import Client, Response, Unanswered
from inferometer.client.trust import context
from inferometer.errors import PeerError, PlanError, Problem, in_words
from inferometer.exports.formats import Push
from inferometer.journal.redact import Redactor
from inferometer.printable import printable

LARGEST_REQUEST = 16 << 20
LARGEST_ANSWER = 1 << 20
LARGEST_TOKEN = 1 << 16
SAID = 200
"""Characters of an answer that an error repeats."""
SEARCHED = 1 << 14
"""Characters of an answer that are searched for secrets before that, since each may be spelled by several."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an export goes. `headers`: further lines; `token`: a bearer token. Neither it nor `url` is shown as it is."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 10.0
    ca_file: str | None = None
    tls_verify: bool = True


def read_token(variable: str | None, file: Path | None, environ: Mapping[str, str]) -> str | None:
    """The token of an environment variable or of a file; None: neither is named. Raises PlanError, which never repeats it."""
    if variable is not None and file is not None:
        raise PlanError([Problem("--token-file", "--token-env names a token already")])
    if variable is None and file is None:
        return None
    where, words = "--token-env", f"the environment variable {variable} is not set"
    token = environ.get(variable or "", "").strip()
    if file is not None:
        where, words = "--token-file", "the file is empty"
        try:
            token = whole_file.read(file, LARGEST_TOKEN).decode().strip()
        except (OSError, UnicodeDecodeError) as cause:
            reason = in_words(cause) if isinstance(cause, OSError) else "it is not text"
            raise PlanError([Problem(where, f"the file cannot be read: {reason}")]) from cause
    if not token:
        raise PlanError([Problem(where, words)])
    if not token.isascii() or not token.isprintable():
        raise PlanError([Problem(where, "the token holds characters that a header cannot")])
    return token


def send(body: bytes, push: Push, to: Destination) -> str:
    """Send one request; its answer in words. Raises PlanError for a URL that is none, PeerError for no success."""
    parts = _parts(to.url)
    name = shown(to.url)
    if len(body) > LARGEST_REQUEST:
        raise PlanError([Problem("--endpoint", f"the export has more than {LARGEST_REQUEST >> 20} MiB")])
    with _client(parts, push, to) as client:
        try:
            answer = client.request("POST", _target(parts), body)
        except Unanswered as failure:
            raise PeerError(f"{name}: {_without_secrets(str(failure), to)}") from None
        except (OSError, ssl.SSLError) as cause:  # of the certificates to trust
            raise PlanError([Problem("--ca-file", in_words(cause))]) from cause
    if 300 <= answer.status < 400:
        raise PeerError(f"{name}: answered {answer.status}, a redirect, which is not followed")
    if not 200 <= answer.status < 300:
        raise PeerError(f"{name}: answered {answer.status}{_said(answer, to)}", status=answer.status)
    refused = push.refused(answer.body)
    if refused is not None:
        raise PeerError(f"{name}: {_without_secrets(refused, to)}", status=answer.status)
    return f"{name}: answered {answer.status}"


def _parts(url: str) -> SplitResult:
    """Messages do not repeat the URL, which may hold a password."""
    try:
        parts = urlsplit(url)
        wrong = parts.port == 0 or not parts.hostname
    except ValueError:
        wrong = True
    if (
        wrong
        or parts.scheme not in ("http", "https")
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        example = "a URL with scheme and path is needed, such as http://localhost:4318/v1/metrics"
        raise PlanError([Problem("--endpoint", example)])
    return parts


def _client(parts: SplitResult, push: Push, to: Destination) -> Client:
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    lines = {
        "Host": parts.netloc.rpartition("@")[2],
        "User-Agent": "inferometer",
        **to.headers,
        **push.headers,
    }
    if to.token is not None:
        lines["Authorization"] = f"Bearer {to.token}"
    elif parts.username is not None:
        lines["Authorization"] = f"Basic {_basic(parts)}"
    return Client(
        host,
        parts.port or (443 if secure else 80),
        lines,
        timeout_s=to.timeout_s,
        tls=partial(context, to.tls_verify, to.ca_file) if secure else None,
        largest=LARGEST_ANSWER,
    )


def _basic(parts: SplitResult) -> str:
    """User and password of a URL as RFC 7617, 2 has them."""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _said(answer: Response, to: Destination) -> str:
    """How the answer's text begins."""
    words = _without_secrets(answer.text()[:SEARCHED], to)
    return f": {words}" if words else ""


def _without_secrets(words: str, to: Destination) -> str:
    """How words begin, in one line. A receiver may repeat what it was sent, in any spelling: so its words are searched as they
    came, before anything is dropped from them or cut off."""
    parts = urlsplit(to.url)
    written = secrets_of(to.url)
    basic = [] if parts.username is None else [_basic(parts)]
    secrets = filter(None, (to.token, *basic, *written, *map(unquote, written)))
    return printable(Redactor(secrets).line(words, SAID))
