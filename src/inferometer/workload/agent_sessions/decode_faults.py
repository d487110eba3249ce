"""What is wrong with a line that was decoded into types: the field and the fault in a message of msgspec's.

A message may repeat a value, which may be somebody's words; what is said here names fields and kinds of values alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]*)`(?:, got `(?P<got>[^`]*)`)?(?P<limit>.*)", re.DOTALL)
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_LONGEST_PLACE, _LONGEST_NAME = 120, 60


def worded(message: str, otherwise: Callable[[str, str], str]) -> tuple[str | None, str]:
    """The field (None: the line itself) and what is wrong with it. `otherwise`: words for a value that is of its kind and yet
    none, from its place and msgspec's words."""
    found = _AT.fullmatch(message)
    what, place = (message, "") if found is None else (found["what"], (found["place"] or "")[:_LONGEST_PLACE])
    if (missing := _MISSING.fullmatch(what)) is not None:
        name = missing["name"][:_LONGEST_NAME]
        said = "is missing but required" if missing["how"] == "missing required" else "there is no such field"
        return (f"{place}.{name}" if place else name), said
    if (expected := _EXPECTED.fullmatch(what)) is not None:
        kinds = " or ".join(_KINDS.get(one, one) for one in expected["kinds"].split(" | "))
        got = "" if expected["got"] is None else f", not {_KINDS.get(expected['got'], expected['got'])}"
        limit = expected["limit"].replace(">=", "at least").replace("<=", "at most")
        return place or None, f"must be {kinds}{got}{limit}"
    return place or None, otherwise(place, what)
