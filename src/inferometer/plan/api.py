"""The names of the interfaces that can be measured, as a type of the plan."""

from __future__ import annotations

import difflib
from typing import Annotated

from pydantic import AfterValidator, Field

from inferometer.engines.interface import INTERFACES


def _registered(name: str) -> str:
    if name not in INTERFACES:
        near = difflib.get_close_matches(name.lower(), INTERFACES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"must be {' or '.join(INTERFACES)}, not {name[:60]!r}{hint}")
    return name


Api = Annotated[str, AfterValidator(_registered), Field(json_schema_extra={"enum": list(INTERFACES)})]
"""The name of a registered interface (engines/interface.py)."""
