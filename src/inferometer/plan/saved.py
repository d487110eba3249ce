"""The plan on disk: `plan.json`, resolved, canonical and hashed.

Canonical means: UTF-8, keys sorted, two spaces a level, unprintable characters escaped, one newline at the end. The hash is
SHA-256 over exactly those bytes, so `sha256sum plan.json` shows it too. A saved plan given as a plan file resolves to the same
bytes and the same hash; one of version 1 resolves to the bytes of this version.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from inferometer import foreign_json, whole_file
from inferometer.errors import RecordError
from inferometer.plan.document import MOST_BYTES
from inferometer.plan.parse import build
from inferometer.plan.part import Part, Values
from inferometer.plan.schema import READABLE, Plan
from inferometer.printable import printable_json


def resolved(plan: Plan) -> Values:
    """The plan as JSON-ready values, every default written out; lengths and objectives are their canonical strings."""
    return part_values(plan)


def part_values(part: BaseModel) -> Values:
    """A part of a plan, as `resolved` has it."""
    return part.model_dump(mode="json", by_alias=True)


def to_json(plan: Plan) -> bytes:
    """The canonical bytes of `plan.json`."""
    text = json.dumps(resolved(plan), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return printable_json((text + "\n").encode())


def plan_hash(plan: Plan) -> str:
    """`sha256:` and the hash of `to_json(plan)` in hexadecimal."""
    return "sha256:" + hashlib.sha256(to_json(plan)).hexdigest()


def file_hash(path: Path) -> str:
    """As `plan_hash`, of the bytes that are there; a plan of version 1 is hashed so in its run.json."""
    return "sha256:" + hashlib.sha256(whole_file.read(path, MOST_BYTES)).hexdigest()


def read(path: Path) -> Plan:
    """Read a saved plan.

    Raises RecordError when the file is missing, is no JSON or has a schema this version does not know, and PlanError when its
    values cannot be carried out.
    """
    try:
        data = foreign_json.loads(whole_file.read(path, MOST_BYTES))
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {(error.strerror or 'unknown error').lower()}") from error
    except foreign_json.NotJSON as error:
        raise RecordError(f"{path}: {error}, so not a saved plan") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema not in READABLE:
        raise RecordError(
            f"{path}: its schema is {str(schema)[:60]!r}; this version of inferometer reads "
            f"{' and '.join(map(repr, READABLE))}"
        )
    return build(path)


def restored(data: object) -> Plan:
    """The plan that `resolved` wrote, without a look at the files and variables it names.

    Raises:
        ValueError: the data is no resolved plan.
    """
    return Plan.model_validate(data)


class _Schema(GenerateJsonSchema):
    """Shows the default of a part that is a field of another one, which its class makes."""

    def get_default_value(self, schema: WithDefaultSchema) -> object:
        """See GenerateJsonSchema."""
        factory = schema.get("default_factory")
        if isinstance(factory, type) and issubclass(factory, Part):
            return factory()
        return super().get_default_value(schema)


def json_schema() -> Values:
    """The JSON Schema of a plan file, for editors and for checking saved plans."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Plan.model_json_schema(by_alias=True, schema_generator=_Schema),
    }
