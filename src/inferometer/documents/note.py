"""A note: something a reader has to know, as a code and plain values. Only `report/` has words for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from inferometer.documents.part import Part

Fact = float | int | str | bool | tuple[float | int | str, ...] | None

Withheld = Literal["withheld (capacity)"]
WITHHELD: Final = "withheld (capacity)"
"""Stands in a redacted document where something was left out (draft 7.1)."""


class Note(Part, frozen=True):
    """What happened (`code`, a stable name) and with what values. `capacity`: it tells how much the system can take, so
    `--redact capacity` leaves it out."""

    code: str
    facts: Mapping[str, Fact] = {}
    capacity: bool = False


class WordedNote(Part, frozen=True):
    """A note in a document: with its sentence, so that every reader says the same. A redacted one has no facts."""

    code: str
    facts: Mapping[str, Fact]
    capacity: bool
    message: str
