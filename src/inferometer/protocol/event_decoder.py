"""What the decoders of event streams have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

BOM = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, which may begin a body."""


class EventTooLarge(ValueError):
    """One event outgrew the limit. The decoder is of no use afterwards."""


class EventDecoder(Protocol):
    """Cuts a body into events; made with a limit in bytes for one event."""

    CONTENT_TYPES: ClassVar[tuple[str, ...]]
    """The media types of such a body, the one to ask for first."""
    STARTS: ClassVar[tuple[bytes, ...]]
    """How such a body may begin, for servers that give it another type."""

    def __init__(self, limit: int = 1 << 20) -> None: ...

    @property
    def unfinished(self) -> bool:
        """True if the stream would end inside an event, which is then dropped."""

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """The payloads of the events that `chunk` completes, in order; None for a comment. Raises EventTooLarge."""

    def end(self) -> Sequence[bytes]:
        """The body has ended: the payloads that its end completes."""
