"""No reply makes an adapter fail or guess: wrong types, huge lists, pages of HTML, refusals."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from engine_replies import KEYS, replies
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from rich.console import Console

from inferometer.documents.detection import SCHEMA, DetectedEndpoint, DetectedModel, Detection
from inferometer.engines.adapters import fields
from inferometer.engines.adapters.adapter import Adapter, EngineFacts, Replies, Reply, ServedModel
from inferometer.engines.adapters.registry import ADAPTERS, asks, recognised
from inferometer.report.detection import render

PATHS = sorted({ask.path for ask in asks()})
NAMES = sorted(
    {
        name
        for key in KEYS
        for reply in replies(key).values()
        if isinstance(reply.body, dict)
        for name in reply.body
    }
    | {
        "id",
        "name",
        "key",
        "details",
        "meta",
        "metal",
        "state",
        "status",
        "loaded",
        "owned_by",
        "config",
        "max_model_len",
    }
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(NAMES)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)
HEADERS = st.dictionaries(
    st.just("server"),
    st.sampled_from(["llama.cpp", "BaseHTTP/0.6", "uvicorn", "inferometer-reference/x", ""]),
)
REPLY = st.builds(Reply, st.sampled_from([200, 204, 302, 401, 404, 500, 503]), HEADERS, VALUES)
ANY = st.dictionaries(st.sampled_from(PATHS), REPLY, max_size=len(PATHS))


def check(one: Adapter, given_replies: Replies) -> None:
    """Facts can be read and written as JSON, and every member has its type."""
    found = one.read(given_replies)
    assert isinstance(one.recognise(given_replies), bool)
    msgspec.json.encode(found)
    msgspec.convert(msgspec.to_builtins(found), EngineFacts)
    for model in found.models[:3]:
        assert isinstance(one.describe(model, given_replies), ServedModel)


@given(ANY)
def test_replies_of_any_shape_are_read(given_replies: dict[str, Reply]) -> None:
    """By every adapter; what is recognised is among all adapters."""
    for one in ADAPTERS.values():
        check(one, given_replies)
    assert {one.key for one in recognised(given_replies)} <= set(ADAPTERS)


@pytest.mark.parametrize("key", KEYS)
@given(data=st.data())
def test_one_member_of_another_type_is_unknown_and_no_more(key: str, data: st.DataObject) -> None:
    """Of an engine's own replies, any member replaced by any value leaves the rest readable."""
    spoilt = {path: copy.deepcopy(reply) for path, reply in replies(key).items()}
    path = data.draw(
        st.sampled_from(sorted(path for path, one in spoilt.items() if isinstance(one.body, dict)))
    )
    body: Any = spoilt[path].body
    while isinstance(body, dict) and body:
        name = data.draw(st.sampled_from(sorted(body)))
        inner = body[name]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            body[name] = data.draw(VALUES)
            break
        body = inner[0] if isinstance(inner, list) else inner
    check(ADAPTERS[key], spoilt)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, {"content-type": "text/html"}, "<html><body>models</body></html>"),
        Reply(401, {}, {"error": "invalid api key"}),
        Reply(404, {}, "Not Found"),
        Reply(503, {}, {"error": {"message": "loading"}}),
        Reply(200, {}, None),
        Reply(200, {}, []),
        Reply(200, {}, {}),
        Reply(200, {}, {"error": "unknown path"}),
    ],
    ids=["html", "401", "404", "503", "null", "list", "empty", "error"],
)
def test_a_server_that_answers_everything_alike_is_no_engine(reply: Reply) -> None:
    """It is recognised as none, and no adapter reads a version or a model from it."""
    everywhere = dict.fromkeys(PATHS, reply)
    assert recognised(everywhere) == ()
    for one in ADAPTERS.values():
        found = one.read(everywhere)
        assert (found.version, found.models) == (None, ())


def test_a_huge_list_is_read_up_to_its_limit() -> None:
    """A server cannot make a document without end."""
    row: Mapping[str, object] = {"id": "a", "owned_by": "vllm"}
    found = ADAPTERS["vllm"].read({"/v1/models": Reply(200, {}, {"data": [row] * 50_000})})
    assert len(found.models) == fields.MOST_ROWS


@pytest.mark.parametrize("value", [True, -1, 1 << 63, 1.0, "1", None, [], {}])
def test_what_is_no_count_is_unknown(value: object) -> None:
    """True is no number, nor are text, negative and huge numbers."""
    assert fields.count(value) is None


@pytest.mark.parametrize("value", [True, -0.1, float("nan"), float("inf"), 10**400, "1", None])
def test_what_is_no_number_is_unknown(value: object) -> None:
    """Only finite numbers from 0 on are."""
    assert fields.number(value) is None


NO_BYTES = [True, -1, float("nan"), float("inf"), 1e300, 10**400, 10**4000, "1", None, []]


@pytest.mark.parametrize("value", NO_BYTES)
def test_what_is_no_number_of_bytes_is_unknown(value: object) -> None:
    """Whatever its unit; nor is what a document cannot hold."""
    assert fields.bytes_of(value) is None
    assert fields.bytes_of(value, 1e9) is None


@pytest.mark.parametrize(
    ("value", "unit", "whole"),
    [(0, 1e9, 0), (-0.0, 1, 0), (1.05, 1e9, 1_050_000_000), (9e9, 1e9, 9 * 10**18), (1e10, 1e9, None)],
)
def test_bytes_are_whole(value: object, unit: float, whole: int | None) -> None:
    """Of any unit, up to what a document can hold."""
    assert fields.bytes_of(value, unit) == whole


@pytest.mark.parametrize(
    ("value", "number"),
    [(1344128, "1344128"), (" 4.3B ", "4.3B"), ("007", "7"), (f"{(1 << 63) - 1}", f"{(1 << 63) - 1}")]
    + [(value, None) for value in (f"{1 << 63}", "9" * 309, "9" * 500, "9" * 5000, True, -1, 1e300, None)],
)
def test_parameters_are_a_number_or_words(value: object, number: str | None) -> None:
    """Of any engine, as it spells them."""
    assert fields.parameters(value) == number


@pytest.mark.parametrize("value", [*NO_BYTES, 1e200, "9" * 309, "9" * 500])
@pytest.mark.parametrize("key", KEYS)
def test_no_number_of_an_engines_makes_detection_fail(key: str, value: object) -> None:
    """Law: whatever stands where an engine has a number, or text of one, its models can be written down and shown, and none of
    their numbers has more than 19 digits."""
    spoilt = {path: replace(reply, body=_filled(reply.body, value)) for path, reply in replies(key).items()}
    facts = ADAPTERS[key].read(spoilt)
    models = tuple(ADAPTERS[key].describe(one, spoilt) for one in facts.models)
    for one in models:
        for number in (one.context, one.memory_bytes, one.accelerator_bytes, one.parameters):
            assert len(str(number)) <= 19
    documents = tuple(convert(one, DetectedModel, from_attributes=True) for one in models)
    endpoint = DetectedEndpoint("http://127.0.0.1:1", "engine", engine=key, models=documents)
    render(Detection(SCHEMA, (), (), (endpoint,)), Console(file=io.StringIO()))


def _filled(body: object, value: object) -> object:
    """`body` with `value` for each of its numbers, and for what is the number of parameters."""
    if isinstance(body, dict):
        named = ("parameter_size", "params_string")
        return {name: value if name in named else _filled(inner, value) for name, inner in body.items()}
    if isinstance(body, list):
        return [_filled(inner, value) for inner in body]
    return value if isinstance(body, int | float) and not isinstance(body, bool) else body


@pytest.mark.parametrize(
    ("value", "text"), [("  a ", "a"), ("", None), (" ", None), ("x" * 501, None), (1, None)]
)
def test_a_text_is_short_and_not_empty(value: object, text: str | None) -> None:
    """Blanks around it go."""
    assert fields.text(value) == text


def test_half_a_surrogate_pair_can_be_written() -> None:
    """JSON can carry it, UTF-8 cannot."""
    assert fields.text("a\ud800") == "a?"
