"""What the decoders of event streams have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

LINE_END = 0x0A
BOM = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, which may begin a body."""


class EventTooLarge(ValueError):
    """One event outgrew the limit. The decoder is of no use afterwards."""


class NamedEvent(bytes):
    """The data of an event with a name that the data does not repeat, so that its reader needs the name."""

    name: bytes

    def __new__(cls, data: bytes, name: bytes) -> NamedEvent:
        """Bytes are fixed when they are made; the name is an attribute of theirs."""
        event = super().__new__(cls, data)
        event.name = name
        return event


class EventDecoder(Protocol):
    """Cuts a body into events; made with a limit in bytes for one event."""

    CONTENT_TYPES: ClassVar[tuple[str, ...]]
    """The media types of such a body, the one to ask for first."""
    STARTS: ClassVar[tuple[bytes, ...]]
    """How such a body may begin, for servers that give it another type."""
    LAST: ClassVar[int]
    """The byte that every event ends with: what ends so brought nothing behind them, or hardly ever. -1: there is none."""

    def __init__(self, limit: int = 1 << 20) -> None: ...

    @property
    def unfinished(self) -> bool:
        """True if the stream would end inside an event, which is then dropped."""

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """The payloads of the events that `chunk` completes, in order, some of them a NamedEvent; None for a comment. Raises
        EventTooLarge."""

    def end(self) -> Sequence[bytes]:
        """The body has ended: the payloads that its end completes."""
