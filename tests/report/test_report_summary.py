"""The summary and its schema: what ships is valid and strict, and what is composed fits."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

import jsonschema

from inferometer.report.run.summary import compose, summary_schema

SHIPPED = summary_schema()
FULL = jsonschema.Draft202012Validator(SHIPPED)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every subschema of a schema."""
    yield value
    for inside in (
        *value.get("properties", {}).values(),
        *value.get("$defs", {}).values(),
        *value.get("anyOf", []),
    ):
        yield from nodes(inside)
    for name in ("items", "additionalProperties"):
        if isinstance(value.get(name), dict):
            yield from nodes(value[name])


def test_the_shipped_schema_is_a_valid_schema() -> None:
    """Draft 2020-12's own meta-schema accepts it."""
    jsonschema.Draft202012Validator.check_schema(SHIPPED)


def test_no_name_stands_twice_in_one_object_of_the_schema() -> None:
    """Of two definitions under one name JSON keeps the last, and says nothing."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
        return dict(pairs)

    shipped = importlib.resources.files("inferometer.documents.schemas").joinpath("summary.schema.json")
    json.loads(shipped.read_text("utf-8"), object_pairs_hook=once)


def test_every_fixed_set_of_names_is_closed_and_required() -> None:
    """Where properties are listed nothing else may stand: a misspelled member is found at once."""
    for node in nodes(SHIPPED):
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert set(node["required"]) <= set(node["properties"])


def test_every_sample_fits_the_schema(sample: Any) -> None:
    """An independent validator accepts it, also after a trip through JSON."""
    summary = json.loads(json.dumps(sample[0], allow_nan=False))
    FULL.validate(summary)


def test_compose_words_the_checks_and_orders_the_members(valid: dict[str, Any]) -> None:
    """The judge's checks carry no words; the summary's do, and its members stand in the schema's order."""
    bare = [{k: v for k, v in check.items() if k != "message"} for check in valid["verdict"]["checks"]]
    parts = {k: v for k, v in valid.items() if k not in ("schema", "version", "verdict", "definitions")}
    assert compose(version="0.1.0", status="VALID", checks=bare, **parts) == valid
    assert list(valid) == list(SHIPPED["properties"])
