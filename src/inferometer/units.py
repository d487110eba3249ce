"""Units as types, and the two conversions between them. All times in the record are integer nanoseconds."""

from __future__ import annotations

from typing import NewType

Ns = NewType("Ns", int)
"""Nanoseconds, on the monotonic clock unless a name says otherwise."""

Ms = NewType("Ms", float)
"""Milliseconds: what people read."""

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def seconds_to_ns(seconds: float) -> Ns:
    """Round seconds to the nearest nanosecond."""
    return Ns(round(seconds * NS_PER_S))


def ns_to_ms(ns: int) -> Ms:
    """Nanoseconds to milliseconds."""
    return Ms(ns / NS_PER_MS)
