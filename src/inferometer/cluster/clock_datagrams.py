"""The datagrams of clock probes, signed and numbered. No socket, no clock.

    magic (4)  kind (1)  zeros (3)  key's name (8)  session (8)  number (8)  body  signature (16)

| kind      | from      | body                                                | bytes |
| --------- | --------- | --------------------------------------------------- | ----- |
| probe     | host      | zeros: as long as both answers together             | 120   |
| reply     | conductor | none                                                | 48    |
| follow-up | conductor | arrival of the probe, departure of the reply, slack | 72    |

The signature is BLAKE2b under the run's key (RFC 7693, keyed), over all before it. Who has no key can make no datagram that is
answered or believed, and sees none amplified: answers are no longer than the question. `session` is drawn by the prober and
`number` counts its probes, so that a datagram that comes twice, late or from another session can be told.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

KEY_BYTES = 32
NAME_BYTES = 8
SESSION_BYTES = 8
MOST_BYTES = 120
_MAGIC = b"ICk1"
_SIGNATURE_BYTES = 16
_HEADER = struct.Struct("!4sB3x8s8sQ")
_STAMPS = struct.Struct("!qqq")


class Kind(IntEnum):
    """What a datagram is."""

    PROBE = 1
    REPLY = 2
    FOLLOW_UP = 3


BODY_BYTES = {
    Kind.PROBE: _HEADER.size + _SIGNATURE_BYTES + _STAMPS.size,
    Kind.REPLY: 0,
    Kind.FOLLOW_UP: _STAMPS.size,
}


class ConductorStamps(NamedTuple):
    """Of one probe, on the conductor's monotonic clock in ns: `arrived` is at least as late as it arrived, `departed` at most
    as late as the reply left, except for `slack_ns`, by which either may be wrong."""

    arrived: int
    departed: int
    slack_ns: int


class Datagram(NamedTuple):
    """One that bears the signature of a known key. `stamps`: of a follow-up."""

    kind: Kind
    key: bytes
    session: bytes
    number: int
    stamps: ConductorStamps | None


def key_name(key: bytes) -> bytes:
    """What a key is called in the clear. Raises ValueError for a key of another length than KEY_BYTES."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key for clock probes has {KEY_BYTES} bytes, not {len(key)}")
    return blake2b(b"name", digest_size=NAME_BYTES, key=key, person=b"ifm-clock").digest()


def sealed(
    kind: Kind, key: bytes, session: bytes, number: int, stamps: ConductorStamps | None = None
) -> bytes:
    """A datagram, signed."""
    body = bytes(BODY_BYTES[kind]) if stamps is None else _STAMPS.pack(*stamps)
    text = _HEADER.pack(_MAGIC, kind, key_name(key), session, number) + body
    return text + _signature(key, text)


def opened(data: bytes, keys: Mapping[bytes, bytes]) -> Datagram | None:
    """What a datagram says; None for one that no key of `keys` (by name) has signed, or that is of no known form."""
    if len(data) < _HEADER.size + _SIGNATURE_BYTES:
        return None
    text, signature = data[:-_SIGNATURE_BYTES], data[-_SIGNATURE_BYTES:]
    magic, kind, name, session, number = _HEADER.unpack_from(text)
    key = keys.get(name)
    if magic != _MAGIC or key is None or not hmac.compare_digest(_signature(key, text), signature):
        return None
    body = text[_HEADER.size :]
    if kind not in set(Kind) or len(body) != BODY_BYTES[kind]:
        return None
    stamps = ConductorStamps(*_STAMPS.unpack(body)) if kind == Kind.FOLLOW_UP else None
    return Datagram(Kind(kind), key, session, number, stamps)


def _signature(key: bytes, text: bytes) -> bytes:
    return blake2b(text, digest_size=_SIGNATURE_BYTES, key=key, person=b"ifm-clock").digest()
