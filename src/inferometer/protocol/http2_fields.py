"""The fields of a response over HTTP/2: what makes a head or trailers malformed (RFC 9113, sections 8.1 to 8.3).

Each function raises ValueError, in words, for what is no part of a well-formed response: that costs one stream. Words quote the
peer whole: what is cut before its secrets are struck out (journal/redact.py) may hold the beginning of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Fields = Sequence[tuple[bytes, bytes]]
"""Header fields in order, names in lower case, pseudo-header fields first."""

_OF_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
_NAME = re.compile(rb"[!-9;-@\[-~]+")
"""Visible, without capitals and colons (8.2.1)."""
_STATUS = re.compile(rb"[1-9][0-9][0-9]")
_LENGTH = re.compile(rb"[0-9]{1,18}")
SWITCHING = 101
"""There is no such thing in HTTP/2 (8.6)."""


def read_response(fields: Fields) -> tuple[int, dict[bytes, bytes]]:
    """The status, interim ones included, and the first value of each header."""
    if not fields or fields[0][0] != b":status":
        raise ValueError("the head does not begin with :status")
    status = fields[0][1]
    if _STATUS.fullmatch(status) is None or int(status) == SWITCHING:
        raise ValueError(f"a :status that no response may have: {status!r}")
    headers: dict[bytes, bytes] = {}
    for name, value in fields[1:]:
        _check(name, value)
        headers.setdefault(name, value)
    return int(status), headers


def read_trailers(fields: Fields) -> dict[bytes, bytes]:
    """The value of each, of several with commas between (RFC 9110, 5.3): of two statuses neither is to be picked. They have no
    pseudo-header fields (8.1)."""
    trailers: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        _check(name, value)
        trailers.setdefault(name, []).append(value)
    return {name: b", ".join(values) for name, values in trailers.items()}


def _check(name: bytes, value: bytes) -> None:
    if _NAME.fullmatch(name) is None or name in _OF_CONNECTION:
        raise ValueError(f"a field that no response may have: {name!r}")
    if b"\0" in value or b"\r" in value or b"\n" in value:
        raise ValueError(f"the value of {name!r} holds a character that no field may")


def body_length(fields: Fields) -> int | None:
    """What Content-Length declares; None where there is none. Several have to agree."""
    declared = {value for name, value in fields if name == b"content-length"}
    if not declared:
        return None
    value = min(declared)
    if len(declared) > 1 or _LENGTH.fullmatch(value) is None:
        words = " and ".join(repr(one) for one in sorted(declared)[:2])
        raise ValueError(f"a Content-Length that is none: {words}")
    return int(value)
