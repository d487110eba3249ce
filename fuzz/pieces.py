"""Input cut into pieces, as a network may deliver it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Whole, byte by byte, and in pieces of 3 and of 7 bytes."""
    yield [data]
    for size in (1, 3, 7):
        yield [data[at : at + size] for at in range(0, len(data), size)]


def same_however_cut(data: bytes, decode: Callable[[list[bytes]], T]) -> T:
    """The result of decoding, which is the same for every cut."""
    first, *others = (decode(pieces) for pieces in cuts(data))
    for other in others:
        assert first == other, f"whole: {first!r:.500}, cut: {other!r:.500}"
    return first
