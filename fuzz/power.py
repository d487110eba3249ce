"""What power meters print and answer: watts that a machine can draw, the same however cut, or MeterFailed in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fuzz.pieces import same_however_cut
from inferometer.printable import printable
from inferometer.telemetry.power.http import watts_of
from inferometer.telemetry.power.powermetrics import documents, sample
from inferometer.telemetry.power.readings import LARGEST_W, MeterFailed, number

T = TypeVar("T")


def check(data: bytes) -> None:
    """As a stream of property lists, as a bare number, and as JSON whose first line is the path of the number."""
    for watts in same_however_cut(data, streamed):
        assert watts != "unprintable"
        assert isinstance(watts, str) or all(0 <= one <= LARGEST_W for one in watts)
    path, _, body = data.partition(b"\n")
    names = path.decode("utf-8", "replace").split(".")
    for read in (
        lambda: number("command", data.decode("utf-8", "replace")),
        lambda: watts_of(body, names),
        lambda: watts_of(data, []),
    ):
        found = or_code(read)
        assert found != "unprintable"
        assert isinstance(found, str) or 0 <= found <= LARGEST_W


def streamed(pieces: list[bytes]) -> list[tuple[float, ...] | str]:
    """The watts of each sample, up to the first that is none."""
    left = iter([*(piece for piece in pieces if piece), b""])
    found: list[tuple[float, ...] | str] = []
    for document in documents(lambda: next(left)):
        found.append(or_code(lambda document=document: tuple(sample(document).watts.values())))  # type: ignore[misc]  # mypy cannot infer the default's type
    return found


def or_code(read: Callable[[], T]) -> T | str:
    """What is read, or the code of the failure."""
    try:
        return read()
    except MeterFailed as failure:
        return failure.code if printable(str(failure)) == str(failure) else "unprintable"
