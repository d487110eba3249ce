"""JSON that somebody else wrote, as plain values, or why it is none, in words.

| refused                                        | because                                                                   |
| ---------------------------------------------- | ------------------------------------------------------------------------- |
| more than DEEPEST levels                       | whatever walks through the values afterwards would run out of stack       |
| more than MOST_VALUES commas and brackets      | a value of two bytes, `[]`, takes 64 in memory and more of time           |
| a whole number of more digits than Python takes| turning it into a number takes time with the square of its length         |
| half of a surrogate pair, in a name or a value | no file and no terminal can hold it: writing it down would end the program|
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

DEEPEST = 100
"""Levels. Documents, plans and bodies of requests have a tenth of it."""

MOST_VALUES = 4_000_000
"""Commas and opening brackets, which is as many values at most: each begins behind one of them. The largest documents, of
26 MiB, have a quarter of it, and the dictionaries of tokenizers half."""

LONGEST_NAME = 60
"""Characters of a member's name in a message."""
_HALF = re.compile("[\ud800-\udfff]")


class NotJSON(ValueError):
    """The words go after the name of what was read: `is no JSON: ...`."""


def loads(text: str | bytes, *, halves: bool = False, **hooks: Any) -> Any:
    """As `json.loads`, with its hooks. `halves`: those of surrogate pairs are let through, to a reader that knows more of the
    place. Raises NotJSON, and whatever a hook raises that is no ValueError."""
    check_size(text)
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError as cause:
        raise NotJSON(f"is no JSON: {cause.msg} at character {cause.pos + 1}") from None
    except UnicodeDecodeError:
        raise NotJSON("is not UTF-8 text") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise NotJSON(f"holds a number of more than {sys.get_int_max_str_digits():,} digits") from None
    check_depth(value)
    if not halves:
        check_text(value)
    return value


def check_size(text: str | bytes) -> None:
    """That a text has so many values that they fit into memory. Raises NotJSON."""
    if len(text) <= MOST_VALUES:
        return
    if isinstance(text, str):
        count = sum(text.count(mark) for mark in ",[{")
    else:
        count = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if count > MOST_VALUES:
        raise NotJSON(f"holds too much: {count:,} commas and brackets, of which {MOST_VALUES:,} are read")


def surely_shallow(text: bytes) -> bool:
    """That what is in this text cannot be deeper than DEEPEST levels, because it has no more holders than that."""
    return text.count(b"{") + text.count(b"[") <= DEEPEST


def check_depth(value: object) -> None:
    """That plain data is no deeper than DEEPEST levels. Raises NotJSON."""
    level = [value]
    for _ in range(DEEPEST + 1):
        holders = [one for one in level if isinstance(one, dict | list)]
        if not holders:
            return
        level = [inner for one in holders for inner in (one.values() if isinstance(one, dict) else one)]
    raise _too_deep()


def check_text(value: object) -> None:
    """That every name and every text in plain data is Unicode text. Raises NotJSON, with the place: `tests[0].name`."""
    place = _half(value)
    if place is not None:
        where = f" at {dotted(place)}" if place else ""
        raise NotJSON(f"holds half of a surrogate pair{where}, which is no text")


def dotted(place: Sequence[str | int]) -> str:
    """A place in plain data as people write it: `workload.classes[0].name`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _half(value: object) -> tuple[str | int, ...] | None:
    """Where half of a surrogate pair is; None: nowhere."""
    if isinstance(value, str):
        return None if value.isascii() or not _HALF.search(value) else ()
    if isinstance(value, dict):
        for name, inner in value.items():
            if (place := () if _half(name) is not None else _half(inner)) is not None:
                return (_HALF.sub("?", str(name)[:LONGEST_NAME]), *place)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            if (place := _half(inner)) is not None:
                return (at, *place)
    return None


def _too_deep() -> NotJSON:
    return NotJSON(f"is nested more than {DEEPEST} levels deep")
