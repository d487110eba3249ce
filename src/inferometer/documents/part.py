"""A part of a document, and documents as JSON.

| rule                                      | why                                                              |
| ----------------------------------------- | ---------------------------------------------------------------- |
| members are frozen                        | a document is a value                                            |
| a member nobody defined is refused        | a reader that skips what it does not know misreads newer files   |
| a number that JSON cannot write is refused| `NaN` in a report would end every other reader                   |
| what is undefined or unknown is null      | a zero would be a measurement                                    |
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from inferometer import foreign_json
from inferometer.errors import RecordError
from inferometer.plan.saved import resolved, restored
from inferometer.plan.schema import Plan
from inferometer.printable import json_text

T = TypeVar("T")

WallNs = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""An instant, ns since the epoch: one that calendars have, until 2262."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A struct of a document: immutable, and strict about its members."""


def to_data(document: object) -> Any:
    """Dicts, lists, numbers, strings, booleans and None, in the order of the members. Strings are such as a file can hold."""
    return _listed(msgspec.to_builtins(document, enc_hook=_encode))


def _listed(value: Any) -> Any:
    """JSON has no tuples, and a document read from a file equals the one that was written. Halves of surrogate pairs, which
    arguments of a command line and JSON of servers can hold, become question marks."""
    if isinstance(value, dict):
        return {_listed(name): _listed(inner) for name, inner in value.items()}
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return [_listed(inner) for inner in value] if isinstance(value, list | tuple) else value


def to_json(document: object) -> str:
    """The document as the files hold it: one space a level, a newline at the end, unprintable characters escaped.

    Raises:
        ValueError: a number is not finite.
    """
    return json_text(to_data(document), indent=1) + "\n"


def from_data(data: object, kind: type[T]) -> T:
    """The document that plain data holds.

    Raises:
        msgspec.ValidationError: the data is no such document; the message names the path.
    """
    return msgspec.convert(data, kind, dec_hook=_decode)


def optional(data: object, kind: type[T]) -> T | None:
    """As `from_data`; None stays None."""
    return None if data is None else from_data(data, kind)


def from_json(text: bytes | str, kind: type[T], schema: str, where: str) -> T:
    """The document of a file. `schema`: the version that is read; `where`: what to call the file.

    Raises:
        RecordError: not JSON, another version, or not such a document.
    """
    version: object = _named(text)
    if version in (None, schema):
        try:
            data = foreign_json.loads(text, parse_constant=_finite, parse_float=_finite)
        except (OverflowError, foreign_json.NotJSON) as cause:
            raise RecordError(f"{where}: {cause}") from cause
        version = _schema_of(data)
    if version != schema:
        raise RecordError(
            f"{where}: its format is {str(version)[:60]!r}; this version of inferometer reads {schema!r}"
        )
    try:
        return from_data(data, kind)
    except msgspec.ValidationError as cause:
        raise RecordError(f"{where}: {cause}") from cause


def named_by_schema(text: bytes | str, kinds: Mapping[str, type[T]], where: str) -> T:
    """As `from_json`, of the kind whose schema the file names. Raises RecordError."""
    schema = _named(text)
    if schema is None:
        try:
            schema = str(_schema_of(foreign_json.loads(text)))
        except foreign_json.NotJSON as cause:
            raise RecordError(f"{where}: {cause}") from cause
    if schema not in kinds:
        known = " and ".join(map(repr, kinds))
        raise RecordError(f"{where}: its format is {schema[:60]!r}; what is read here is {known}")
    return from_json(text, kinds[schema], schema, where)


class _Named(msgspec.Struct):
    """As much of a document as its kind takes: the rest is read over, and nothing made of it."""

    schema: str | None = None


def _named(text: bytes | str) -> str | None:
    """The schema that a document names; None where it has to be read whole for it, or for what is wrong with it."""
    try:
        return msgspec.json.decode(text, type=_Named).schema
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _schema_of(data: object) -> object:
    return data.get("schema") if isinstance(data, dict) else None


def _finite(text: str) -> float:
    """A number as JSON has it. Raises OverflowError for one that is none, or is beyond what a float holds."""
    number = float(text)
    if not math.isfinite(number):
        raise OverflowError(f"{text[:20]} is no finite number")
    return number


def json_schema(kind: type, title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document. Objects are closed: no member beside those defined."""
    (schema,), definitions = msgspec.json.schema_components(
        [kind], schema_hook=_schema, ref_template="#/$defs/{name}"
    )
    top = definitions.pop(schema["$ref"].rpartition("/")[2])
    whole = {"$schema": DIALECT, **top, "title": title, "$defs": definitions}
    for part in _objects(whole):
        if "properties" in part:
            part["additionalProperties"] = False
            if "description" in part:  # a docstring, whose indentation Python 3.13 removes and others keep
                part["description"] = inspect.cleandoc(part["description"])
    return whole


def _objects(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _objects(inner)


def _encode(value: object) -> object:
    if isinstance(value, Plan):
        return resolved(value)
    if isinstance(value, float):  # one that is marked in memory (metrics/statistics.py)
        return float(value)
    raise NotImplementedError(f"no document holds a {type(value).__name__}")


def _decode(kind: type, data: object) -> object:
    if kind is Plan:
        return restored(data)
    raise NotImplementedError(f"no document holds a {kind.__name__}")


def _schema(kind: type) -> dict[str, Any]:
    if kind is Plan:
        return {"type": "object", "description": "The resolved plan, as `plan.json` has it."}
    raise NotImplementedError(f"no document holds a {kind.__name__}")
