"""The summary and its schema: what ships is valid, what is composed fits, and our checker agrees with a full one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import InstrumentError
from inferometer.report import schema
from inferometer.report.summary import compose, summary_schema, validate

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


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*at, key)
        yield from places(part, (*at, key))


def test_the_shipped_schema_is_a_valid_schema() -> None:
    """Draft 2020-12's own meta-schema accepts it."""
    jsonschema.Draft202012Validator.check_schema(SHIPPED)


def test_the_shipped_schema_uses_only_keywords_our_checker_knows() -> None:
    """A keyword the checker skipped silently would be a rule nobody enforces."""
    used = {keyword for node in nodes(SHIPPED) for keyword in node}
    assert used <= schema.KEYWORDS | schema.ANNOTATIONS


def test_every_fixed_set_of_names_is_closed_and_required() -> None:
    """Where properties are listed nothing else may stand: a misspelled member is found at once."""
    for node in nodes(SHIPPED):
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert set(node["required"]) <= set(node["properties"])


def test_every_sample_fits_the_schema(sample: Any) -> None:
    """Both the full validator and ours accept it, also after a trip through JSON."""
    summary = json.loads(json.dumps(sample[0], allow_nan=False))
    FULL.validate(summary)
    validate(summary)


_MISFITS = st.sampled_from(
    [None, True, -1, 0, 1.5, "word", [], {}, [1.0, 2.0], [1.0], {"n": 1}, float("inf")]
)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_our_checker_and_a_full_one_agree_on_damaged_summaries(
    summary_text: str, data: st.DataObject
) -> None:
    """Replace or remove any member, or add one: both accept or both refuse. (Infinity is no JSON number: ours refuses.)"""
    damaged = json.loads(summary_text)
    *path, last = data.draw(st.sampled_from(list(places(damaged))))
    holder = damaged
    for key in path:
        holder = holder[key]
    change = data.draw(st.sampled_from(["replace", "remove", "add"]))
    infinite = False
    if change == "remove":
        del holder[last]
    elif change == "add" and isinstance(holder, dict):
        holder["misspelled"] = 1
    else:
        holder[last] = data.draw(_MISFITS)
        infinite = holder[last] == float("inf")
    refused = bool(list(schema.problems(damaged, SHIPPED)))
    if infinite:
        # Inside plan, facts and calibration anything may stand; json.dumps refuses infinities there.
        assert refused or FULL.is_valid(damaged)
    else:
        assert refused != FULL.is_valid(damaged)


def test_a_summary_that_breaks_the_schema_is_our_fault_and_names_the_place(valid: dict[str, Any]) -> None:
    """InstrumentError with the path of what is wrong."""
    valid["metrics"]["ttft_ms"]["p50"] = "fast"
    valid["load"]["model"] = "ajar"
    with pytest.raises(
        InstrumentError,
        match=r"\.metrics\.ttft_ms\.p50.*\.load\.model|\.load\.model.*\.metrics\.ttft_ms\.p50",
    ):
        validate(valid)


def test_true_is_not_one() -> None:
    """JSON tells booleans and numbers apart, so does the checker."""
    assert list(schema.problems(True, {"type": "number"}))
    assert list(schema.problems(1, {"enum": [True]}))
    assert not list(schema.problems(1.0, {"type": "integer"}))


def test_compose_words_the_checks_and_orders_the_members(valid: dict[str, Any]) -> None:
    """The judge's checks carry no words; the summary's do, and its members stand in the schema's order."""
    bare = [{k: v for k, v in check.items() if k != "message"} for check in valid["verdict"]["checks"]]
    parts = {k: v for k, v in valid.items() if k not in ("schema", "version", "verdict", "definitions")}
    assert compose(version="0.1.0", status="VALID", checks=bare, **parts) == valid
    assert list(valid) == list(SHIPPED["properties"])
