"""What the parts of a plan are made of: their base, how a field is given on the command line, and how numbers and times are
spelled.

Files that define parts do without `from __future__ import annotations`: pydantic would evaluate the text of every annotation
again for every class that inherits it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

Group = Literal[
    "Common options",
    "Server",
    "Load",
    "Warm-up",
    "Workload",
    "Trace replay",
    "Token counting",
    "Server metrics",
    "Host telemetry",
    "System under test (declared)",
    "Run",
]
"""Under which heading a flag stands in help and docs, in this order."""

Values = dict[str, Any]
"""Values by key as a file or the command line gives them, before they are checked."""


@dataclass(frozen=True, slots=True)
class Option:
    """The command line's view of a field, as metadata of it. Its help is the field's description and default.

    `help`: what to say instead, of a flag that says the opposite of its field. `default`: in words, where the field's own
    default does not tell. `repeat`: it may be given several times. `value`: it takes no text and stands for this.
    `drops`: keys of the plan file that go with what the flag overrides, beside the field itself.
    """

    flag: str
    group: Group
    metavar: str = "TEXT"
    help: str = ""
    default: str = ""
    repeat: bool = False
    value: bool | None = None
    drops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Metadata of a field: whether a redacted report withholds it, as what tells how much the system takes (draft 7.1) and
    as free text.

    A field without this mark is withheld: a new one is published only after somebody has decided that.
    """

    capacity: bool


HARMLESS = Disclosure(capacity=False)
"""What was done, nothing about how much the system takes, and no free text."""


class Part(BaseModel):
    """Base of every part of a plan: immutable, and a misspelled key is an error.

    Validators are built when they are first used: a part that is only a field of another one needs none, nor does help.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def harmless(kind: type[BaseModel]) -> frozenset[str]:
    """The fields of a part that a redacted report publishes: those marked as harmless."""
    return frozenset(
        name
        for name, field in kind.model_fields.items()
        if any(isinstance(mark, Disclosure) and not mark.capacity for mark in field.metadata)
    )


def parts_in(annotation: Any) -> Iterator[type[Part]]:
    """The parts that a field's type names."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in get_args(annotation):
        yield from parts_in(inner)


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
