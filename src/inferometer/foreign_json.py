"""JSON that somebody else wrote, as plain values, or why it is none, in words.

| refused                                        | because                                                                   |
| ---------------------------------------------- | ------------------------------------------------------------------------- |
| more than DEEPEST levels                       | whatever walks through the values afterwards would run out of stack       |
| a whole number of more digits than Python takes| turning it into a number takes time with the square of its length         |
"""

from __future__ import annotations

import json
import sys
from typing import Any

DEEPEST = 100
"""Levels. Documents, plans and bodies of requests have a tenth of it."""


class NotJSON(ValueError):
    """The words go after the name of what was read: `is no JSON: ...`."""


def loads(text: str | bytes, **hooks: Any) -> Any:
    """As `json.loads`, with its hooks. Raises NotJSON, and whatever a hook raises that is no ValueError."""
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
    return value


def check_depth(value: object) -> None:
    """That plain data is no deeper than DEEPEST levels. Raises NotJSON."""
    level = [value]
    for _ in range(DEEPEST + 1):
        holders = [one for one in level if isinstance(one, dict | list)]
        if not holders:
            return
        level = [inner for one in holders for inner in (one.values() if isinstance(one, dict) else one)]
    raise _too_deep()


def _too_deep() -> NotJSON:
    return NotJSON(f"is nested more than {DEEPEST} levels deep")
