"""What a saved plan reaches: whatever text of it names something outside is on the list, and nothing of it is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from inferometer.plan.campaign import Campaign
from inferometer.plan.reach import reach
from inferometer.plan.rerun import Simulated
from inferometer.plan.schema import Plan

URL = "http://host:1"
MARK = "somewhere-else"
"""In the place of a name of something outside."""
TARGET: dict[str, object] = {"url": URL, "model": "m"}


def at_server(**more: object) -> dict[str, object]:
    """A plan for a server."""
    return {"target": TARGET | more}


FORM: dict[str, object] = {"request": {"a": "{prompt}", "b": "{max_tokens}"}, "text": "t", "end": "e"}
"""Messages of a WebSocket server."""


def switched(way: dict[str, object]) -> dict[str, object]:
    """A campaign's ways to switch."""
    return {"switch": {"prefix_cache": {"disabled": way}}}


CLASS = {"name": "c", "input_tokens": 10, "output_tokens": 5}
_PARTS: dict[str, dict[str, object]] = {
    "plan.target.url": {"target": {"url": f"http://{MARK}", "model": "m"}},
    "plan.target.headers": at_server(headers={"X-Some": MARK}),
    "plan.target.extra_body": at_server(extra_body={"some": MARK}),
    "plan.target.websocket.path": at_server(websocket=FORM | {"path": f"/{MARK}"}),
    "plan.target.websocket.request": at_server(
        websocket=FORM | {"request": {"a": "{prompt}", "b": "{max_tokens}", "c": MARK}}
    ),
    "plan.target.api_key_env": {"target": {"api_key_env": "SOMEWHERE_ELSE"}},
    "plan.target.api_key_file": {"target": {"api_key_file": MARK}},
    "plan.target.tls_ca_file": at_server(tls_ca_file=MARK),
    "plan.workload.classes.headers": at_server()
    | {"workload": {"classes": [CLASS | {"headers": {"X-Some": MARK}}]}},
    "plan.workload.classes.extra_body": at_server()
    | {"workload": {"classes": [CLASS | {"extra_body": {"some": MARK}}]}},
    "plan.target.session_header": at_server(session_header=MARK) | {"workload": {"turns": 2}},
    "plan.workload.prompts": {"workload": {"prompts": MARK}},
    "plan.workload.sessions": {"workload": {"sessions": MARK}},
    "plan.workload.tasks": {"workload": {"tasks": MARK}},
    "plan.workload.spans": {"workload": {"tasks": "t", "spans": MARK}},
    "plan.workload.dataset": {"workload": {"name": "conversation", "dataset": MARK}},
    "plan.workload.dataset_subset": {
        "workload": {"name": "conversation", "dataset": "d", "dataset_subset": MARK}
    },
    "plan.workload.file": {"workload": {"file": MARK}},
    "plan.trace.file": {"trace": {"file": MARK}},
    "plan.tokenizer.name": {"tokenizer": {"name": MARK}},
    "plan.server_metrics.urls": {"server_metrics": {"urls": [MARK]}},
    "plan.server_metrics.endpoints.url": {"server_metrics": {"endpoints": [{"url": MARK}]}},
    "plan.host_telemetry.power": {"host_telemetry": {"power": [f"command:{MARK}"]}},
}
_READ: dict[str, dict[str, object]] = {
    f"plan.server_metrics{place}.{name}": {"server_metrics": given}
    for name, value in {
        "headers": {"X-Some": MARK},
        "ca_file": MARK,
        "token_env": "SOMEWHERE_ELSE",
        "token_header": MARK,
        "cert_file": MARK,
        "key_file": MARK,
    }.items()
    for place, given in {
        "": {"urls": ["h:1"], "token_env": "T", "cert_file": "c", name: value},
        ".endpoints": {"endpoints": [{"url": "h:1", "token_env": "T", "cert_file": "c", name: value}]},
    }.items()
}
REACHING = _PARTS | _READ
INERT = {
    # Names, numbers with units, and digests.
    "engine.preset", "engine.system", "engine.settings", "names", "plan.name", "plan.target.api", "plan.trace.sha256",
    "plan.slos.metric", "plan.slos.unit", "plan.server_metrics.formats", "plan.workload.file_sha256",
    "plan.workload.prompts_sha256",
    "plan.workload.sessions_sha256",
    "plan.workload.classes.name", "tests.fairness.classes.name",
    # Places in messages that come.
    *(f"plan.target.websocket.{name}.{part}" for name in ("text", "end", "error") for part in ("path", "where")),
    *(f"plan.target.websocket.{name}" for name in ("prompt_tokens", "completion_tokens", "finish_reason")),
    # What is declared.
    "plan.declared.bos_eos", "plan.declared.clock_sync", "plan.declared.latency_adjustment", "plan.declared.network_rtt",
    "plan.declared.system_prompt", "plan.declared.tools", "plan.sut.accelerator", "plan.sut.accelerator_memory",
    "plan.sut.guardrails.names", "plan.sut.model_version", "plan.sut.notes", "plan.sut.quantization", "plan.sut.software",
    "plan.workload.classes.language", "plan.workload.dataset_version", "plan.workload.language",
    "plan.workload.prefix_sharing",
    # What a request to the server on the list asks for.
    "plan.target.model", "plan.workload.classes.sampling.stop",
}  # fmt: skip


def texts(kind: type[BaseModel], before: str = "") -> Iterator[str]:
    """The members of a part that hold text, by their place."""
    for name, field in kind.model_fields.items():
        yield from _inside(field.annotation, f"{before}{field.alias or name}")


def _inside(annotation: object, place: str) -> Iterator[str]:
    if annotation is str or annotation is Any:
        yield place
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from texts(annotation, f"{place}.")
    else:
        for one in get_args(annotation):
            yield from _inside(one, place)


def test_every_text_of_a_plan_is_on_the_list_or_reaches_nothing() -> None:
    """Law: a new member that holds text is one or the other, by decision."""
    found = {place for place in texts(Campaign) if not place.startswith("switch.")}
    assert found == REACHING.keys() | INERT
    ways = {place.rsplit(".", 1)[-1] for place in texts(Campaign) if place.startswith("switch.")}
    assert ways == {"command", "ask", "url", "body"}


@pytest.mark.parametrize("place", REACHING)
def test_what_a_plan_names_outside_itself_is_on_the_list(place: str) -> None:
    """Law: as it stands in the plan, whole."""
    reached = reach(Plan.model_validate(REACHING[place]))
    assert any(MARK in what or "SOMEWHERE_ELSE" in what for _, what in reached), reached


@pytest.mark.parametrize(
    "way",
    [
        {"command": MARK},
        {"ask": MARK},
        {"http": {"url": f"http://{MARK}"}},
        {"http": {"url": URL, "body": {"some": MARK}}},
    ],
)
def test_each_way_to_switch_is_on_the_list(way: dict[str, object]) -> None:
    """Law: commands, calls with their bodies, and what a person is asked."""
    found = reach(Campaign.model_validate({"names": ["ttft"], **switched(way)}))
    assert [place for place, what in found if MARK in what] == ["switch.prefix_cache.disabled"]


def test_the_reference_engine_alone_is_reached_without_a_word() -> None:
    """Law: nothing is listed of a plan that names nothing, measured or simulated."""
    plan = Plan()
    assert reach(plan) == reach(Simulated(plan, "tiny-cpu", {}, {})) == []
    assert reach(Campaign(names=("ttft",), plan=plan)) == []


@pytest.mark.parametrize("place", REACHING)
def test_a_simulation_reaches_files_and_nobody(place: str) -> None:
    """Law: in virtual time what becomes prompts is read and tokenizers are fetched; no server is contacted and no key read."""
    plan = Plan.model_validate(REACHING[place])
    read = place in {
        "plan.workload.prompts",
        "plan.workload.sessions",
        "plan.workload.tasks",
        "plan.workload.spans",
        "plan.workload.dataset",
        "plan.workload.dataset_subset",
        "plan.workload.file",
        "plan.trace.file",
        "plan.tokenizer.name",
    }
    assert bool(reach(Simulated(plan, "tiny-cpu", {}, {}))) == read
    assert bool(reach(Campaign(names=("ttft",), plan=plan, simulated=True))) == read


@pytest.mark.parametrize("hidden", ["\n", "\r", "\x1b[2K", "\x08", "\u202e", "\u200b", "\u2028"])
def test_nothing_of_a_command_is_hidden(hidden: str) -> None:
    """Law: a line of the list shows all of a text: what breaks a line, moves the cursor or does not show has an escape."""
    given = {"names": ["ttft"], **switched({"command": f"true {hidden}rm -r /"})}
    ((_, what),) = reach(Campaign.model_validate(given))
    assert what.isprintable()
    assert what.endswith("rm -r /")
    assert "\\" in what
