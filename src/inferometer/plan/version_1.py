"""Workloads of version 1 documents, which have the keys of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from inferometer.plan.workload import KINDS, kind_of, kinds_with


def own_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """The workload of a version 1 document, which has the keys of every kind, without the defaults of other kinds."""
    given = {key: value for key, value in values.items() if (key, value) != ("classes", [])}
    kind = KINDS.get(kind_of(given))
    return (
        given
        if kind is None
        else {key: value for key, value in given.items() if not _unset(kind, key, value)}
    )


def _unset(kind: type[BaseModel], key: str, value: object) -> bool:
    """Whether a key that only other kinds have is at its default."""
    if key in kind.model_fields:
        return False
    return any(
        value == one.model_fields[key].get_default(call_default_factory=True) for one in kinds_with(key)
    )
