"""How a check is spoken of: the shape of one entry of `sentences` and `server_sentences`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["share", "ms", "number"]


@dataclass(frozen=True, slots=True)
class Wording:
    """How one check is spoken of. `clauses` maps the fact names a clause needs to the clause."""

    title: str
    kind: Kind
    says: Mapping[str, str]
    advice: Mapping[str, str] = field(default_factory=dict)
    clauses: Mapping[tuple[str, ...], str] = field(default_factory=dict)
