"""Holds a JSON value to a JSON Schema: the part of draft 2020-12 that summary.schema.json uses, and no more.

Every run is held to the schema before its summary is written, so the check is part of the program, not of its tests; the
full validators are a compiled dependency that nothing else here needs. Keywords: type, const, enum, properties, required,
additionalProperties, items, minItems, maxItems, minimum, anyOf, $ref into #/$defs. Stricter than the standard in one
point: NaN and the infinities are not numbers, since JSON has no spelling for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "title", "description"})
KEYWORDS = frozenset(
    {
        "type",
        "const",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
    }
    | {"minimum", "anyOf", "$ref"}
)

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def problems(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, at: str = ""
) -> Iterator[str]:
    """Yield `path: what is wrong`, nothing for a value that fits. `root` holds the `$defs`; the schema itself by default."""
    root = schema if root is None else root
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    if "anyOf" in schema:
        tried = [list(problems(value, choice, root, at)) for choice in schema["anyOf"]]
        if all(tried):
            yield from max(tried, key=_depth)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is(value, name) for name in names):
        yield f"{at or '.'}: {type(value).__name__} where {' or '.join(names)} is due"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{at or '.'}: not {schema['const']!r}"
    # JSON tells 1 and true apart, Python's `in` does not.
    if "enum" in schema and not any(value == item and type(value) is type(item) for item in schema["enum"]):
        yield f"{at or '.'}: not one of {schema['enum']}"
    if "minimum" in schema and _is(value, "number") and value < schema["minimum"]:
        yield f"{at or '.'}: {value} is below {schema['minimum']}"
    if isinstance(value, dict):
        yield from _object(value, schema, root, at)
    elif isinstance(value, list):
        yield from _array(value, schema, root, at)


def _depth(found: list[str]) -> int:
    """How far down the first problem lies: the alternative that got furthest is the one that was meant."""
    return max(line.partition(":")[0].count(".") for line in found)


def _is(value: Any, name: str) -> bool:
    if name in _TYPES:
        return isinstance(value, _TYPES[name])
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return name == "number" or isinstance(value, int) or value.is_integer()


def _object(
    value: dict[Any, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str
) -> Iterator[str]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}.{name}: missing"
    for name, part in value.items():
        if name in known:
            yield from problems(part, known[name], root, f"{at}.{name}")
        elif isinstance(others, Mapping):
            yield from problems(part, others, root, f"{at}.{name}")
        elif not others:
            yield f"{at}.{name}: not a known name"


def _array(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{at or '.'}: {len(value)} items"
    for position, part in enumerate(value):
        yield from problems(part, schema.get("items", {}), root, f"{at}.{position}")
