"""Recordings whose every request holds its whole conversation: which earlier request each goes on with.

A request goes on with an earlier one if it begins with all messages of that one and an assistant's message behind them, which
then is that one's reply. What is sent is exactly what was recorded: where two requests repeat different replies of one, only
the first goes on with it, and the other is a conversation of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec

from inferometer.workload.agent_sessions.session import NONE, MessageObject

_MOST_ALIKE = 64
"""Requests with the same messages that are looked at, the latest first."""
_encode = msgspec.json.Encoder(order="sorted").encode


class Histories:
    """The requests of a session, taken in its order."""

    def __init__(self) -> None:
        self._ends: dict[bytes, list[int]] = {}
        self._replies: list[bytes | None] = []

    def add(self, messages: Sequence[MessageObject], ended: Callable[[int], bool]) -> tuple[int, int]:
        """The request that this one goes on with, of those that had ended, and how many messages of this one it accounts for,
        its reply included; NONE and 0 where there is no such request."""
        digests = _digests(messages)
        found, count = NONE, 0
        for at in range(len(messages) - 2, 0, -1):
            if messages[at]["role"] == "assistant" and digests[at] in self._ends:
                found = self._fitting(digests[at], digests[at + 1], ended)
                if found != NONE:
                    self._replies[found], count = digests[at + 1], at + 1
                    break
        self._ends.setdefault(digests[-1], []).append(len(self._replies))
        self._replies.append(None)
        return found, count

    def _fitting(self, before: bytes, with_reply: bytes, ended: Callable[[int], bool]) -> int:
        for number in reversed(self._ends[before][-_MOST_ALIKE:]):
            if self._replies[number] in (None, with_reply) and ended(number):
                return number
        return NONE


def _digests(messages: Sequence[MessageObject]) -> list[bytes]:
    """Of the first 0, 1, 2... messages."""
    found = [b""]
    for message in messages:
        found.append(hashlib.blake2b(found[-1] + _encode(message), digest_size=16).digest())
    return found
