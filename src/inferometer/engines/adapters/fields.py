"""Members of an engine's reply, whatever the reply is: of another type than documented, they are unknown.

| function     | gives                                                                  | else  |
| ------------ | ---------------------------------------------------------------------- | ----- |
| `body`       | the object at a path that answered with success                        | empty |
| `rows`       | the objects of a list, 1,000 at most                                   | none  |
| `inner`      | a member that is an object                                             | empty |
| `text`       | text without blanks around it, not empty, 500 characters at most       | None  |
| `count`      | a whole number from 0 to 2^63 - 1                                      | None  |
| `number`     | a finite number of 0 or more                                           | None  |
| `bytes_of`   | a `number` times a unit, as whole bytes from 0 to 2^63 - 1             | None  |
| `parameters` | their number: a `count`, as its digits, or `text`; of text in digits   | None  |
|              | alone that of a `count`                                                |       |

What is read here is calculated with and shown elsewhere, where nothing is larger than these limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from inferometer.engines.adapters.adapter import Replies, ServedModel

MODELS = "/v1/models"
MOST_ROWS = 1_000
LONGEST = 500
_MOST = (1 << 63) - 1
"""Of what is counted: as much as documents and other programs can hold."""

Fields = Mapping[str, object]
_NONE: Fields = {}


def body(replies: Replies, path: str) -> Fields:
    """See the table above."""
    reply = replies.get(path)
    return reply.body if reply is not None and reply.ok and isinstance(reply.body, dict) else _NONE


def rows(fields: Fields, name: str) -> tuple[Fields, ...]:
    """See the table above."""
    value = fields.get(name)
    return tuple(row for row in value[:MOST_ROWS] if isinstance(row, dict)) if isinstance(value, list) else ()


def inner(fields: Fields, name: str) -> Fields:
    """See the table above."""
    value = fields.get(name)
    return value if isinstance(value, dict) else _NONE


def text(value: object) -> str | None:
    """See the table above. Half of a surrogate pair, which no file can hold, becomes a question mark."""
    if not isinstance(value, str):
        return None
    stripped = value.strip()
    return stripped.encode("utf-8", "replace").decode() if 0 < len(stripped) <= LONGEST else None


def count(value: object) -> int | None:
    """See the table above."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and isinstance(value, int) and 0 <= value <= _MOST else None


def number(value: object) -> float | None:
    """See the table above."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        given = float(value)
    except OverflowError:
        return None
    return given if math.isfinite(given) and given >= 0 else None


def bytes_of(value: object, unit: float = 1) -> int | None:
    """See the table above."""
    given = number(value)
    return round(given * unit) if given is not None and given * unit < _MOST else None


def parameters(value: object) -> str | None:
    """See the table above."""
    written = text(value)
    if written is not None and not written.isdecimal():
        return written
    if written is not None:
        value = int(written)  # LONGEST digits at most
    known = count(value)
    return None if known is None else str(known)


def owned_by(replies: Replies, owner: str) -> bool:
    """Whether a model of `/v1/models` names this owner. vLLM, SGLang and others write their own names there."""
    return any(row.get("owned_by") == owner for row in rows(body(replies, MODELS), "data"))


def listed(replies: Replies) -> tuple[ServedModel, ...]:
    """The models of `/v1/models`: a name, and the context as vLLM and its relatives report it (`max_model_len`)."""
    found = ((text(row.get("id")), row) for row in rows(body(replies, MODELS), "data"))
    return tuple(ServedModel(name, context=count(row.get("max_model_len"))) for name, row in found if name)


def version(replies: Replies, path: str) -> str | None:
    """The member `version` of the object at a path."""
    return text(body(replies, path).get("version"))
