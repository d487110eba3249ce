"""The one way every decoder is fed in tests: whole, byte by byte, cut at random places, and with a tail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Several ways to cut the same bytes into pieces: whole, single bytes, and pieces of growing odd sizes."""
    yield [data]
    yield [data[i : i + 1] for i in range(len(data))]
    for step in (2, 3, 7, 64):
        yield [data[i : i + step] for i in range(0, len(data), step)]


def split_at(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Cut at these offsets (any order, any value)."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def same_however_cut(data: bytes, decode: Callable[[list[bytes]], T]) -> T:
    """Decode all cuts of `data`, demand one and the same result, and return it."""
    results = [decode(pieces) for pieces in cuts(data)]
    assert all(result == results[0] for result in results)
    return results[0]
