"""Engines are found by asking, over sockets: the reference server with an engine's routes, and what else listens on ports."""

from __future__ import annotations

import json
import os
import socket

import pytest
from engine_replies import answering, replies
from peers import Script, scripted, whole
from serving import serving

from inferometer.documents.detection import SCHEMA, Detection, PortProcess
from inferometer.documents.part import from_json, to_json
from inferometer.engines.adapters.registry import ADAPTERS, ports
from inferometer.report.detection import sentences
from inferometer.server.engine_routes import ENGINES
from inferometer.studies.detection import PATTERNS, Detected, Local, Places, detect, document, places
from inferometer.studies.engine_client import LARGEST, EngineClient
from inferometer.telemetry.processes import Listener, Listening, Process, engine_processes

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
        ([b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n", b"a" * (LARGEST + 1)], "close", "too_large"),
    ],
    ids=["ssh", "tls-alert", "closed", "reset", "endless"],
)
def test_a_port_taken_by_something_else_is_named(pieces: list[bytes], then: str, state: str) -> None:
    """By what it does, and not by a name that it has not given."""
    with scripted(lambda _: Script(pieces, then)) as peer:
        found = one_at(peer.port).endpoint
    assert found.state == state
    assert not any("calls itself" in line for line in sentences(found))


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


def test_an_engine_whose_list_of_models_is_too_long_is_recognised_by_its_beginning() -> None:
    """No more bytes are read than of any reply, and no more models than of any list."""
    row = {"id": "m" * 300, "object": "model", "owned_by": "vllm"}
    listing = json.dumps({"object": "list", "data": [row] * (2 * LARGEST // 300)}).encode()
    missing = whole(404, b"{}")
    with scripted(
        lambda seen: Script(whole(200, listing) if seen.target == "/v1/models" else missing)
    ) as peer:
        (found,) = at(peer.port)
    assert (found.endpoint.engine, len(found.endpoint.models)) == ("vllm", 1_000)


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


def process(pid: int, parent: int | None, command: str) -> Process:
    """A process as the system shows it."""
    words = tuple(command.split())
    return Process(pid, parent, words[0].rpartition("/")[2], words, None, None)


def machine(listeners: dict[int, int | None], *running: Process) -> Local:
    """A machine with these processes, which listen on ports (by port: the process)."""
    found = tuple(Listener("127.0.0.1", port, pid) for port, pid in listeners.items())
    return Local(running, Listening(found, complete=None not in listeners.values()))


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("/usr/bin/ollama runner --mlx-engine --model qwen3.5 --port 50001", "mlx"),
        ("/usr/bin/ollama runner --ollama-engine --model /blobs/a --port 50001", "ollama"),
        ("/usr/lib/ollama/llama-server --model /blobs/a --port 50001", "llama.cpp"),
    ],
)
def test_the_runner_of_an_ollama_is_that_of_the_process_below_it(command: str, runner: str) -> None:
    """Found by the port's process, whose children run the model."""
    with serving(routes="ollama", model=MODEL) as port:
        here = machine({port: 7, 50001: 8}, process(7, 1, "/usr/bin/ollama serve"), process(8, 7, command))
        (found,) = detect(Places((), (port,)), here)
    assert (found.endpoint.engine, found.endpoint.runner) == ("ollama", runner)
    assert found.endpoint.processes == (PortProcess(7, "ollama", "ollama"),)


def test_ports_of_engine_processes_are_looked_at_and_those_of_their_workers_are_not() -> None:
    """Whatever their numbers; a program that is no engine does not count, nor a port whose owner is hidden."""
    here = machine(
        {4711: 7, 50001: 8, 5432: 9, 9: None},
        process(7, 1, "/usr/bin/ollama serve"),
        process(8, 7, "/usr/bin/ollama runner --model /blobs/a --port 50001"),
        process(9, 1, "/usr/bin/postgres -D /data"),
    )
    assert here.engine_ports() == (4711,)
    assert set(places((), None, here).ports) == {*ports(), 4711}


def test_a_port_whose_owner_is_hidden_has_unknown_processes() -> None:
    """Which is not the same as none."""
    here = machine({8000: None}, process(7, 1, "vllm serve m"))
    assert here.listeners(8000) is None
    assert here.listeners(8001) is None


def test_two_processes_that_share_a_port_are_both_named() -> None:
    """As two `ollama serve` on one port."""
    both = (process(7, 1, "ollama serve"), process(8, 1, "ollama serve"))
    shared = Listening(tuple(Listener("127.0.0.1", 11434, one.pid) for one in both), complete=True)
    assert Local(both, shared).listeners(11434) == both


def test_a_server_at_another_address_of_the_same_port_is_another_server() -> None:
    """Its memory is not the engine's. Who listens on all addresses takes what nobody listens on by itself."""
    four, six, every, far = (process(pid, 1, "vllm serve m") for pid in (4, 6, 9, 12))
    at = {"127.0.0.1": 4, "::1": 6, "192.0.2.7": 12}
    apart = Listening(tuple(Listener(where, 8000, pid) for where, pid in at.items()), complete=True)
    here = Local((four, six, every, far), apart)
    assert here.listeners(8000, "127.0.0.1") == (four,)
    assert here.listeners(8000, "::1") == (six,)
    assert here.listeners(8000) == (four, six)
    assert here.listeners(8000, "127.0.0.2") is None
    shared = Listening((Listener("0.0.0.0", 8000, 9), Listener("127.0.0.1", 8000, 4)), complete=True)
    assert Local(here.running, shared).listeners(8000, "127.0.0.1") == (four,)
    assert Local(here.running, shared).listeners(8000, "127.0.0.2") == (every,)


def test_two_engines_on_one_port_are_both_found() -> None:
    """One at 127.0.0.1 and one at ::1 are two, by their processes or, where these are hidden, by what they answer; one server
    at both addresses is one."""
    owners = {"127.0.0.1": 4, "::1": 6}
    both = tuple(Listener(where, 1, pid) for where, pid in owners.items())
    for second, expected in (("vllm", 1), ("lmstudio", 2)):
        with serving(routes="vllm", model=MODEL) as port:
            if not socket.has_dualstack_ipv6():
                pytest.skip("this system has no IPv6")
            with serving(routes=second, model=MODEL, host="::1", port=port):
                hidden = at(port)
                running = tuple(process(pid, 1, "vllm serve m") for pid in owners.values())
                shown = tuple(Listener(one.address, port, one.pid) for one in both)
                known = detect(Places((), (port,)), Local(running, Listening(shown, complete=True)))
                alone = tuple(Listener(where, port, 4) for where in owners)
                same = detect(Places((), (port,)), Local(running, Listening(alone, complete=True)))
        assert (len(hidden), len(known), len(same)) == (expected, 2, 1)
        assert [one.endpoint.engine for one in known] == ["vllm", second]


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("/opt/venv/bin/python /opt/venv/bin/vllm serve m --port 8000", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server --model m", "vllm"),
        ("/opt/bin/python /opt/bin/vllm-mlx serve m", "vllm-mlx"),
        ("python -m vllm_mlx.server --model m", "vllm-mlx"),
        ("python -m mlx_lm.server --model m", "mlx-lm"),
        ("python -m mlx_lm server --model m", "mlx-lm"),
        ("python -m mlx_lm.generate --model m", None),
        ("/usr/local/bin/llama-server -m a.gguf", "llamacpp"),
        ("/home/me/.lmstudio/extensions/backends/llm-engine", "lmstudio"),
        ("llama-server -m /home/me/.lmstudio/models/a.gguf", "llamacpp"),
        ("/Applications/oMLX.app/Contents/MacOS/oMLX", "omlx"),
        ("omlx serve", "omlx"),
        ("python -m sglang.launch_server --model-path m", "sglang"),
        ("text-generation-launcher --model-id m", "tgi"),
        ("trtllm-serve m", "tensorrt-llm"),
        ("python -m inferometer.server --model m", "reference"),
        ("inferometer bench --engines ollama,vllm", None),
        ("vim notes-on-vllm.md", None),
        ("grep ollama log.txt", None),
    ],
)
def test_a_command_line_is_of_the_engine_that_it_starts(command: str, key: str | None) -> None:
    """And of none, if it only names one."""
    one = process(7, 1, command)
    found = engine_processes(PATTERNS, (one,), Listening((), complete=True))
    assert [found_one.engine for found_one in found] == ([] if key is None else [key])
