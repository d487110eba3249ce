"""Engines are found by asking, over sockets: the reference server with an engine's routes, and what else listens on ports."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable

import pytest
from engine_replies import replies
from peers import Script, Seen, scripted, whole
from serving import serving

from inferometer.documents.detection import SCHEMA, Detection
from inferometer.documents.part import from_json, to_json
from inferometer.engines.adapters.adapter import Replies
from inferometer.engines.adapters.registry import ADAPTERS, ports
from inferometer.server.engine_routes import ENGINES
from inferometer.studies.detection import Detected, Local, Places, detect, document, places
from inferometer.studies.engine_client import LARGEST, EngineClient
from inferometer.telemetry.processes import Listening

MODEL = "house/model:1b"
NOBODY = Local((), Listening((), complete=True))
"""A machine that shows no processes."""


def at(*numbers: int, budget_s: float = 5.0) -> tuple[Detected, ...]:
    """What is at these ports."""
    return detect(Places((), numbers), NOBODY, budget_s=budget_s)


def one_at(number: int) -> Detected:
    """What is at this port, as a port and as a URL: the same."""
    (found,) = at(number)
    (given,) = detect(Places((f"http://127.0.0.1:{number}",), ()), NOBODY)
    assert given == found
    return found


def answering(known: Replies) -> Callable[[Seen], Script]:
    """A scripted server with these replies by path."""

    def answer(seen: Seen) -> Script:
        reply = known.get(seen.target)
        if reply is None:
            return Script(whole(404, b"{}"))
        lines = [f"{name}: {value}".encode() for name, value in reply.headers.items() if name == "server"]
        return Script(whole(reply.status, json.dumps(reply.body).encode(), *lines))

    return answer


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("key", sorted(ENGINES))
def test_an_engine_is_found_by_its_routes_with_its_model(key: str) -> None:
    """Each engine's documented routes, served over a socket, are that engine and nothing else."""
    with serving(routes=key, model=MODEL) as port:
        found = one_at(port)
    one = found.endpoint
    assert (one.state, one.engine, one.others, one.detail) == ("engine", key, (), None)
    assert (one.title, one.interface, one.tried) == (
        ADAPTERS[key].title,
        ADAPTERS[key].interface,
        ADAPTERS[key].tried,
    )
    assert [model.name for model in one.models] == [MODEL]
    assert found.adapter is ADAPTERS[key]
    assert found.facts is not None


def test_every_engine_with_an_adapter_has_routes_to_be_tested_by() -> None:
    """The reference server can describe itself as each of them."""
    assert set(ENGINES) == set(ADAPTERS) - {"reference"}


def test_the_reference_server_is_found_as_itself() -> None:
    """Though it answers the routes of Ollama too."""
    with serving(model=MODEL) as port:
        one = one_at(port).endpoint
    assert (one.engine, [model.name for model in one.models]) == ("reference", [MODEL])


@pytest.mark.parametrize(
    "key", sorted(key for key, one in ADAPTERS.items() if one.unload and key != "llamacpp")
)
def test_an_engine_unloads_and_loads_by_its_adapters_calls(key: str) -> None:
    """Over a socket: loaded, unloaded, loaded again, as its next description shows."""
    adapter = ADAPTERS[key]
    assert adapter.load is not None
    assert adapter.unload is not None
    routes = None if key == "reference" else key
    with serving(routes=routes, model=MODEL) as port, EngineClient(f"http://127.0.0.1:{port}") as client:
        shown = [_loaded(port)]
        for ask in (adapter.unload(MODEL), adapter.load(MODEL)):
            assert client.call(ask).ok
            shown.append(_loaded(port))
    assert shown == [True, False, True]


def _loaded(port: int) -> bool | None:
    (found,) = at(port)
    assert found.facts is not None
    model = found.facts.model(MODEL)
    assert model is not None
    return model.loaded


def test_a_llama_cpp_of_one_model_is_known_not_to_unload() -> None:
    """Its calls are a router's, and are refused otherwise."""
    with serving(routes="llamacpp", model=MODEL) as port, EngineClient(f"http://127.0.0.1:{port}") as client:
        (found,) = at(port)
        assert found.facts is not None
        assert not found.facts.manages_models
        assert ADAPTERS["llamacpp"].unload is not None
        assert client.call(ADAPTERS["llamacpp"].unload(MODEL)).status == 404


def test_a_model_that_an_engine_does_not_have_is_refused() -> None:
    """With its reply, which is no exception."""
    with serving(routes="lmstudio", model=MODEL) as port, EngineClient(f"http://127.0.0.1:{port}") as client:
        unload = ADAPTERS["lmstudio"].unload
        assert unload is not None
        assert client.call(unload("another")).status == 404


def test_two_engines_behind_one_port_are_a_proxy() -> None:
    """Both are named, and neither is taken for the engine."""
    with scripted(answering({**replies("ollama"), **replies("sglang")})) as peer:
        one = one_at(peer.port)
    assert (one.endpoint.state, one.endpoint.engine, one.endpoint.others) == (
        "proxy",
        None,
        ("ollama", "sglang"),
    )
    assert one.adapter is None


def test_a_port_of_another_http_server_is_unknown() -> None:
    """With what it calls itself."""
    page = b"<html><title>Printer</title></html>"
    with scripted(lambda _: Script(whole(200, page, b"Server: printerd/2", kind=b"text/html"))) as peer:
        one = one_at(peer.port).endpoint
    assert (one.state, one.detail) == ("unknown", "printerd/2")


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_requires_a_key_is_locked(status: int) -> None:
    """And is no engine until it has the key."""
    with scripted(lambda _: Script(whole(status, b'{"error": "key"}'))) as peer:
        assert one_at(peer.port).endpoint.state == "locked"


def test_a_key_goes_to_the_urls_that_were_given_and_to_no_port() -> None:
    """What merely listens on this machine is not to be trusted with it."""
    line = {"Authorization": "Bearer secret-of-mine"}
    with (
        scripted(lambda _: Script(whole(401, b"{}"))) as given,
        scripted(lambda _: Script(whole(401, b"{}"))) as found,
    ):
        detect(Places((f"http://127.0.0.1:{given.port}",), (found.port,)), NOBODY, headers=line)
    assert {seen.headers.get("authorization") for seen in given.seen} == {"Bearer secret-of-mine"}
    assert {seen.headers.get("authorization") for seen in found.seen} == {None}


@pytest.mark.parametrize(
    ("pieces", "then", "state"),
    [
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "close", "not_http"),
        ([b"\x15\x03\x01\x00\x02\x02\x46"], "close", "not_http"),
        ([], "close", "closed"),
        ([], "reset", "closed"),
    ],
    ids=["ssh", "tls-alert", "closed", "reset"],
)
def test_a_port_taken_by_something_else_is_named(pieces: list[bytes], then: str, state: str) -> None:
    """By what it does."""
    with scripted(lambda _: Script(pieces, then)) as peer:
        assert one_at(peer.port).endpoint.state == state


def test_a_port_that_hangs_is_named_and_does_not_hold_up_the_others() -> None:
    """One budget for all: the engine beside it is found, though the other never answers."""
    with scripted(lambda _: Script((), "hang")) as peer, serving(routes="vllm") as port:
        hanging, engine = at(peer.port, port)
    assert (hanging.endpoint.state, engine.endpoint.engine) == ("hangs", "vllm")


def test_a_server_that_hangs_at_some_paths_is_read_from_the_others() -> None:
    """A reply that does not come is unknown."""
    known = answering(replies("ollama"))
    with scripted(lambda seen: Script((), "hang") if seen.target == "/info" else known(seen)) as peer:
        (found,) = at(peer.port)
    assert found.endpoint.engine == "ollama"


def test_a_reply_beyond_the_limit_is_unknown() -> None:
    """Its bytes are not read to the end."""
    endless = b'{"models": "' + b"x" * LARGEST + b'"}'
    known = answering(replies("ollama"))
    with scripted(
        lambda seen: Script(whole(200, endless)) if seen.target == "/api/ps" else known(seen)
    ) as peer:
        (found,) = at(peer.port)
    assert found.endpoint.engine == "ollama"
    assert {model.loaded for model in found.endpoint.models} == {None}


def test_a_port_without_a_listener_is_left_out_and_a_url_without_one_is_named() -> None:
    """The user asked for the URL."""
    port = free_port()
    assert at(port) == ()
    (found,) = detect(Places((f"http://127.0.0.1:{port}",), ()), NOBODY)
    assert (found.endpoint.state, found.endpoint.url) == ("refused", f"http://127.0.0.1:{port}")


def test_the_process_of_a_port_is_named_where_the_system_shows_it() -> None:
    """Here this process, which serves."""
    with serving(routes="vllm") as port:
        here = Local.now()
        if here.listeners(port) is None:
            pytest.skip("this system shows no owners of ports")
        (found,) = detect(Places((), (port,)), here)
    assert found.endpoint.processes is not None
    assert [one.pid for one in found.endpoint.processes] == [os.getpid()]


def test_without_arguments_the_known_ports_are_looked_at() -> None:
    """With URLs, those alone; what is named twice is looked at once."""
    assert places((), None, NOBODY) == Places((), ports())
    assert places(("http://a", "http://a"), None, NOBODY) == Places(("http://a",), ())
    assert places((), (8000, 8000, 1), NOBODY) == Places((), (8000, 1))
    assert {1234, 8000, 8080, 11434, 30000} <= set(ports())


def test_a_detection_is_read_back_the_same() -> None:
    """From its JSON."""
    with serving(routes="lmstudio", model=MODEL) as port:
        where = Places((), (port,))
        made = document(where, detect(where, NOBODY))
    assert from_json(to_json(made), Detection, SCHEMA, "it") == made
