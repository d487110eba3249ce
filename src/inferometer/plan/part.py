"""What the parts of a plan are made of: their base, and the spellings of numbers and times."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Part(BaseModel):
    """Base of every part of a plan: immutable, and a misspelled key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    return value


def _seconds(value: Any) -> Any:
    """`90`, `90s`, `500ms`, `5m` or `1h` in seconds; anything else is left to pydantic to refuse."""
    form = re.fullmatch(r"\s*([0-9.]+)\s*(ms|s|m|min|h)\s*", value) if isinstance(value, str) else None
    if form is None:
        return _number(value)
    try:
        return float(form[1]) * {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}[form[2]]
    except ValueError:
        return value


NUMBER = BeforeValidator(_number)
SECONDS = BeforeValidator(_seconds)
