"""The reference pages that are drawn from the code are those of the code."""

from __future__ import annotations

import json

import jsonschema

from inferometer.plan.flags import fields
from inferometer.plan.parse import build
from inferometer.plan.saved import json_schema, resolved
from scripts import reference

HOW = "write it anew: python -m scripts.reference"


def test_the_page_on_the_command_line_is_that_of_the_code() -> None:
    """docs/cli.md has every command, flag, help text and default."""
    assert (reference.DOCS / "cli.md").read_text() == reference.page(), HOW


def test_the_json_schema_of_a_plan_is_that_of_the_code() -> None:
    """docs/plan.schema.json is what editors check a plan by; a saved plan holds to it."""
    text = (reference.DOCS / "plan.schema.json").read_text()
    assert text == reference.schema(), HOW
    jsonschema.Draft202012Validator(json.loads(text)).validate(resolved(build()))


def test_every_field_of_a_plan_is_described() -> None:
    """In one place, its description: help, schema and page have it from there."""
    bare = [key for key, info in fields() if not info.description and not key.startswith("slos.")]
    assert bare == []
    assert "description" in json_schema()["properties"]["load"]
