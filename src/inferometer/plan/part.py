"""What the parts of a plan are made of: their base, and the spellings of numbers and times."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


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


def _digest(digest: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError("must be the 64 hexadecimal digits of the file's SHA-256; or leave it out")
    return digest


NUMBER = BeforeValidator(_number)
SECONDS = BeforeValidator(_seconds)
Sha256 = Annotated[str, AfterValidator(_digest)]
"""Of a file that a plan names."""
