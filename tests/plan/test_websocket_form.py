"""Descriptions of messages in a plan: what is accepted is kept, and what is not is refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inferometer.engines.interface import INTERFACES
from inferometer.engines.message_form import Mark
from inferometer.errors import PlanError
from inferometer.plan.parse import build
from inferometer.plan.reach import reach
from inferometer.plan.schema import Plan

SOUND: dict[str, Any] = {
    "path": "/stream?model={model}",
    "request": {"in": "{prompt}", "n": "{max_tokens}"},
    "text": {"path": "data.text", "where": {"kind": "piece"}},
    "end": {"where": {"kind": "end"}},
    "error": "failure",
    "prompt_tokens": "usage.in",
    "greets": True,
}
NESTED = SOUND | {"request": {"a": ["{prompt}"], "o": {"n": "{max_tokens}"}, "free": "{temperature}"}}


def plan(tmp_path: Path, target: dict[str, Any]) -> Plan:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"target": target}))
    return build(path)


def test_a_description_is_an_interface_of_its_own(tmp_path: Path) -> None:
    """Law: it names the interface, its path and what its server does; a saved plan is read again as the same."""
    made = plan(tmp_path, {"url": "ws://h", "websocket": SOUND})
    target = made.target
    assert (target.api, target.transport, target.url) == ("websocket-mapped", "websocket", "http://h")
    assert target.interface.target("a b") == "/stream?model=a%20b"
    assert target.interface.greets
    assert target.form is not None
    assert target.form.text == Mark(("data", "text"), ((("kind",), "piece"),))
    assert (target.form.error, target.form.finish_reason) == (Mark(("failure",)), ())
    saved = tmp_path / "saved.json"
    saved.write_text(made.model_dump_json(by_alias=True))
    assert build(saved) == made
    assert made.workload.ignore_eos is False


def test_whoever_runs_the_plan_of_another_is_shown_what_it_sends(tmp_path: Path) -> None:
    """Law: the messages too."""
    found = dict(reach(plan(tmp_path, {"url": "ws://h", "websocket": SOUND})))
    assert "{max_tokens}" in found["target.websocket"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"request": None}, "target.websocket.request"),
        ({"request": {"n": "{max_tokens}"}}, 'request: must hold "{prompt}" once, not 0 times'),
        ({"request": {"a": "{prompt}{prompt}", "n": "{max_tokens}"}}, "once, not 2 times"),
        ({"request": {"a": "{prompt}"}}, 'request: must hold "{max_tokens}"'),
        ({"request": {"{prompt}": "a", "n": "{max_tokens}"}}, "only values are filled in"),
        ({"request": {"a": "{prompt}", "n": [{"is{max_tokens}": 1}]}}, "only values are filled in"),
        ({"request": {"a": "{prompt}", "n": "{max_tokens}", "api_key": "x"}}, "websocket: api_key looks like a secret"),
        ({"path": "/a?token=x"}, "websocket: token looks like a secret"),
        ({"path": "/a/sk-abcdefgh12/b"}, "websocket: path looks like a secret"),
        ({"path": "stream"}, "path: must begin with /"),
        ({"text": {"path": "a..b"}}, "text.path: is no path into a message"),
        ({"path": "/a b"}, "path: must begin with / and hold no spaces"),
        ({"text": "a..b"}, "text: is no path into a message"),
        ({"text": {"where": {"a": 1}}}, "websocket: text needs a path"),
        ({"text": {"path": "a", "where": {"b[": 1}}}, "is no path into a message"),
        ({"text": {"path": "a", "where": {"b": [1]}}}, "target.websocket.text.where"),
        ({"end": {}}, "end: needs a path, or values in where"),
        ({"end": "data.text"}, "websocket: end would hold for every message with text"),
        ({"error": {"where": {"kind": "piece"}}}, "websocket: error would hold for every message with text"),
        ({"completion_tokens": 'usage["in"]'}, "completion_tokens would be read where prompt_tokens is"),
        ({"finish_reason": "data.text"}, "finish_reason would be read where text is"),
        ({"prompt_tokens": ""}, "prompt_tokens: is no path into a message"),
        ({"finish": "a"}, "finish"),
        ({"greets": "maybe"}, "target.websocket.greets"),
    ],
)  # fmt: skip
def test_what_is_no_description_is_refused_by_its_name(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """Law: each problem names the field at fault."""
    form = {name: value for name, value in (SOUND | change).items() if value is not None}
    with pytest.raises(PlanError) as caught:
        plan(tmp_path, {"url": "ws://h", "websocket": form})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"api": "websocket-mapped"}, "the plan file describes: set target.websocket"),
        ({"api": "chat", "websocket": SOUND}, "is about websocket-mapped, and target.api is chat"),
        ({"stream": False, "websocket": SOUND}, "has no whole answers"),
        ({"http": "2", "websocket": SOUND}, "a WebSocket begins with HTTP/1.1"),
        ({"extra_body": {"a": "x"}, "websocket": NESTED}, "extra_body would replace a of the request"),
        ({"extra_body": {"o": None}, "websocket": NESTED}, "extra_body would replace o of the request"),
        ({"api": "realtime", "extra_body": {"conversation": "auto"}}, "extra_body cannot set conversation"),
        ({"api": "realtime", "extra_body": {"conversation": None}}, "extra_body cannot set conversation"),
        (
            {"api": "responses", "extra_body": {"conversation": "conv_1"}},
            "extra_body cannot set conversation",
        ),
    ],
)
def test_what_does_not_go_together_with_it_is_refused(
    target: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """Law: in the words of the plan's keys."""
    with pytest.raises(PlanError) as caught:
        plan(tmp_path, {"url": "http://h", **target})
    assert words in str(caught.value)


@pytest.mark.parametrize(("api", "none"), [("realtime", "none"), ("responses", None), ("chat", "x")])
def test_what_asks_for_no_history_is_no_fault(api: str, none: str | None, tmp_path: Path) -> None:
    """Law: nor is a field of that name where it has no meaning."""
    assert plan(tmp_path, {"url": "http://h", "api": api, "extra_body": {"conversation": none}})


@pytest.mark.parametrize("scheme", ["ws", "wss", "WS", "grpc", "grpcs"])
@pytest.mark.parametrize("api", [None, "chat", "ollama-chat", "websocket", "realtime", "vllm-grpc"])
def test_a_scheme_fits_the_interface(api: str | None, scheme: str, tmp_path: Path) -> None:
    """Law: of a WebSocket or of gRPC it needs one of these interfaces; it does not become HTTP silently."""
    target = {"url": f"{scheme}://h:1", **({} if api is None else {"api": api})}
    known = INTERFACES[api or "chat"]
    if known.over_websocket if scheme.lower().startswith("ws") else known.grpc:
        assert plan(tmp_path, target).target.url == f"http{'s' if scheme in ('wss', 'grpcs') else ''}://h:1"
    else:
        with pytest.raises(PlanError, match="which is of interfaces that --api names: "):
            plan(tmp_path, target)


def test_no_class_replaces_what_the_plan_decides(tmp_path: Path) -> None:
    """Law: neither do the fields of one class; those that a plan leaves open are its own."""

    def classed(fields: dict[str, Any]) -> Plan:
        path = tmp_path / "classes.json"
        one = {"name": "x", "input_tokens": "32", "output_tokens": "8", "extra_body": fields}
        workload = {"name": "custom", "classes": [one]}
        path.write_text(json.dumps({"target": {"url": "ws://h", "websocket": NESTED}, "workload": workload}))
        return build(path)

    with pytest.raises(PlanError, match="would replace a of the request"):
        classed({"a": "always the same"})
    assert classed({"free": 0.5, "more": 1}).workload.classes[0].fields["free"] == 0.5
