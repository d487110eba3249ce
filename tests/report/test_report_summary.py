"""The summary and its schema: what ships is valid and strict, and what is composed fits."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
from sample_runs import simulated
from shipped_schemas import shipped

from inferometer.documents.part import to_json
from inferometer.report import checks

SHIPPED = shipped("summary")
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
    FULL.validate(json.loads(to_json(sample[0])))


def test_every_check_and_reason_carries_its_words() -> None:
    """The judge's checks carry no words; the summary's do, and its reasons are the checks that decided."""
    verdict = simulated("closed").summary.verdict
    assert all(check.message == checks.message(check) for check in verdict.checks)
    deciding = {check.code: check.message for check in verdict.checks if check.status in ("fail", "unsure")}
    assert {reason.code: reason.message for reason in verdict.reasons} == deciding
