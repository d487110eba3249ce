"""Documents with a member that is replaced, removed or negated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REMOVED = object()
NEGATED = object()
VALUES: tuple[object, ...] = (
    REMOVED,
    NEGATED,
    None,
    "x",
    "",
    -1,
    0,
    1.5,
    10**30,
    float("nan"),
    float("-inf"),
    True,
    [],
    [1],
    ["x"],
    {},
    {"a": 1},
)


def places(value: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The members of a document; of a list, its first two."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for name, inner in members:
        yield (*before, name)
        yield from places(inner, (*before, name))


def damaged(document: Any, place: tuple[str | int, ...], value: object) -> None:
    """Put a value at a place of a document."""
    holder = document
    for name in place[:-1]:
        holder = holder[name]
    old = holder[place[-1]]
    if value is REMOVED:
        del holder[place[-1]]
    elif value is NEGATED:
        holder[place[-1]] = (
            not old if isinstance(old, bool) else -old if isinstance(old, int | float) else "-"
        )
    else:
        holder[place[-1]] = value
