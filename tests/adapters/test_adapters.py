"""Each engine is recognised by its own replies and by no other's, and its facts are what those replies say."""

from __future__ import annotations

import re

import pytest
from engine_replies import KEYS, replies, source

from inferometer.engines.adapters.adapter import Adapter, Ask, EngineFacts, Reply, ServedModel
from inferometer.engines.adapters.ollama import runner_of
from inferometer.engines.adapters.registry import ADAPTERS, asks, ports, recognised
from inferometer.engines.interface import INTERFACES

VLLM_VERSION = "0.32.0"
EVERY = list(ADAPTERS.values())


def facts(key: str) -> EngineFacts:
    """What the adapter reads from its engine's replies."""
    return ADAPTERS[key].read(replies(key))


@pytest.mark.parametrize("key", KEYS)
def test_an_engine_is_recognised_by_its_replies_and_as_nothing_else(key: str) -> None:
    """Of all adapters, its own alone, whatever it imitates."""
    assert [one.key for one in recognised(replies(key))] == [key]


@pytest.mark.parametrize("key", KEYS)
def test_an_adapter_was_tried_on_what_its_replies_come_from(key: str) -> None:
    """`real` needs replies recorded from the real engine."""
    assert source(key).startswith("recorded" if ADAPTERS[key].tried == "real" else "documented")


def test_replies_of_two_engines_at_one_place_are_recognised_as_both() -> None:
    """A proxy in front of Ollama and vLLM shows both, in the order of the registry."""
    assert [one.key for one in recognised({**replies("sglang"), **replies("tgi")})] == ["sglang", "tgi"]


def test_what_an_engine_imitates_is_not_a_second_engine() -> None:
    """The reference server answers Ollama's routes too."""
    own = {"/inferometer/state": Reply(200, {}, {"loaded": True, "truth": {}})}
    assert [one.key for one in recognised({**replies("ollama"), **own})] == ["reference"]


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.key)
def test_an_adapter_is_complete(one: Adapter) -> None:
    """It names an interface that can be measured, ports, processes, and asks with GET alone, since asking changes nothing."""
    assert one.interface in INTERFACES
    assert one.ports
    assert set(one.ports) <= set(ports())
    assert one.processes
    assert one.asks
    assert all(ask.method == "GET" and ask.body is None and ask.path.startswith("/") for ask in one.asks)
    assert set(one.asks) <= set(asks())
    assert set(one.imitates) <= set(ADAPTERS)
    assert (one.load is None) == (one.unload is None)


def test_ollama_reports_what_is_loaded_and_its_memory() -> None:
    """Of its documented replies: one model in memory, 5.3 of 6.6 GB of it on the accelerator, one on disk."""
    found = facts("ollama")
    assert (found.engine, found.version, found.runner) == ("ollama", "0.12.6", None)
    assert found.model("gemma3:latest") == ServedModel(
        "gemma3:latest", "gguf", "Q4_K_M", "4.3B", 4096, 6591830464, 5333539264, True
    )
    stored = ServedModel("qwen3.5:nvfp4", "safetensors", "NVFP4", "35B", loaded=False)
    assert found.model("qwen3.5:nvfp4") == stored
    described = ADAPTERS["ollama"].describe(stored, replies("ollama"))
    assert described.context == 262144


def test_an_ollama_that_does_not_list_what_runs_leaves_loaded_unknown() -> None:
    """Unknown is not false."""
    without = {path: reply for path, reply in replies("ollama").items() if path != "/api/ps"}
    assert {model.loaded for model in ADAPTERS["ollama"].read(without).models} == {None}


@pytest.mark.parametrize(
    ("commands", "runner"),
    [
        (["/usr/local/bin/ollama serve"], None),
        (["ollama serve", "/usr/local/bin/ollama runner --mlx-engine --model qwen3.5 --port 50001"], "mlx"),
        (["/usr/bin/ollama runner --ollama-engine --model /blobs/sha256-a --port 4"], "ollama"),
        (["/usr/bin/ollama runner --model /blobs/sha256-a --port 4"], "llama.cpp"),
        (["/usr/lib/ollama/llama-server --model /blobs/sha256-a"], "llama.cpp"),
        (["llama-server --model a.gguf"], None),
        (["ollama runner --mlx-engine", "ollama runner --model b"], "llama.cpp, mlx"),
        ([], None),
    ],
)
def test_ollamas_runner_follows_from_command_lines(commands: list[str], runner: str | None) -> None:
    """asiai's methodology, Environment Safety 4."""
    assert runner_of(commands) == runner


def test_lm_studio_reports_state_format_and_quantization() -> None:
    """v1 adds the number of parameters; the runner follows from the format of what is loaded."""
    found = facts("lmstudio")
    assert (found.version, found.runner) == (None, "llama.cpp")
    assert found.models == (
        ServedModel("qwen2-vl-7b-instruct", "mlx", "4bit", None, 32768, loaded=False),
        ServedModel("meta-llama-3.1-8b-instruct", "gguf", "Q4_K_M", "8B", 4096, loaded=True),
    )


def test_omlx_reports_the_memory_of_what_is_loaded() -> None:
    """A model that is not loaded uses none that is known."""
    found = facts("omlx")
    assert (found.version, found.runner) == ("0.6.4", "mlx")
    assert found.models == (
        ServedModel("Qwen3-8B-4bit", "mlx", None, None, 32768, 5100000000, None, True),
        ServedModel("Qwen3-27B-4bit", "mlx", None, None, 262144, None, None, False),
    )


def test_vllm_mlx_reports_the_memory_of_its_server() -> None:
    """5.2 of 10^9 bytes."""
    (model,) = facts("vllm-mlx").models
    assert (model.memory_bytes, model.accelerator_bytes, model.loaded) == (5_200_000_000, 5_200_000_000, True)


def test_sglang_reports_its_version_and_quantization() -> None:
    """From its server's arguments; the context from the list of models."""
    found = facts("sglang")
    assert found.version == "0.5.9"
    assert found.models == (ServedModel("qwen/qwen2.5-0.5b-instruct", None, "fp8", None, 32768, loaded=True),)


def test_tgi_is_not_its_relative_for_embeddings() -> None:
    """That one has no maximum of all tokens, and another router."""
    assert facts("tgi") == EngineFacts(
        "tgi", "3.3.6", None, (ServedModel("mistralai/Mistral-7B-Instruct-v0.1", context=2048, loaded=True),)
    )
    embeddings = {"model_id": "BAAI/bge", "max_input_length": 512, "version": "1.2.0"}
    assert recognised({"/info": Reply(200, {}, embeddings)}) == ()
    assert (
        recognised({"/info": Reply(200, {}, {**embeddings, "max_total_tokens": 1, "router": "other"})}) == ()
    )


def test_tensorrt_llm_reports_its_version() -> None:
    """And the names of its models, and no more."""
    found = facts("tensorrt-llm")
    assert (found.version, [one.name for one in found.models]) == ("1.1.0", ["TinyLlama-1.1B-Chat-v1.0"])


def test_llama_cpp_reports_its_build_and_the_type_of_its_file() -> None:
    """As recorded: a server of one model, whose context is that of a slot."""
    found = facts("llamacpp")
    assert found.models == (ServedModel("tiny", "gguf", "all F32", "1344128", 8192, loaded=True),)
    assert (found.runner, found.manages_models) == ("llama.cpp", False)
    assert found.version == "b1-0c1e570"


def test_a_router_of_llama_cpp_manages_its_models() -> None:
    """As recorded: loaded, its facts are the model's own; a model that is not loaded has a name alone."""
    known = dict(replies("more/llamacpp-router"))
    router = ADAPTERS["llamacpp"].read(known)
    assert [one.key for one in recognised(known)] == ["llamacpp"]
    assert router.manages_models
    assert router.models == (ServedModel("tiny", "gguf", "all F32", "1344128", 1024, loaded=True),)
    unloaded = {"id": "tiny", "owned_by": "llamacpp", "status": {"value": "unloaded"}}
    known["/v1/models"] = Reply(200, {}, {"data": [unloaded]})
    assert ADAPTERS["llamacpp"].read(known).models == (ServedModel("tiny", "gguf", loaded=False),)


def test_vllm_reports_its_version_and_context() -> None:
    """As recorded."""
    assert facts("vllm") == EngineFacts(
        "vllm", VLLM_VERSION, None, (ServedModel("tiny", context=8192, loaded=True),)
    )


def test_mlx_lm_reports_a_name_and_no_more() -> None:
    """As recorded: neither a version nor what is loaded."""
    assert facts("mlx-lm") == EngineFacts("mlx-lm", None, "mlx", (ServedModel("/engines/model", "mlx"),))


@pytest.mark.parametrize(
    ("key", "load", "unload"),
    [
        (
            "ollama",
            Ask("/api/generate", "POST", {"model": "a/b", "stream": False}),
            Ask("/api/generate", "POST", {"model": "a/b", "keep_alive": 0, "stream": False}),
        ),
        (
            "lmstudio",
            Ask("/api/v1/models/load", "POST", {"model": "a/b"}),
            Ask("/api/v1/models/unload", "POST", {"instance_id": "a/b"}),
        ),
        (
            "omlx",
            Ask("/v1/models/a%2Fb/load", "POST", {}),
            Ask("/v1/models/a%2Fb/unload", "POST", {}),
        ),
    ],
)
def test_the_calls_that_load_and_unload_are_those_documented(key: str, load: Ask, unload: Ask) -> None:
    """Path, method and body."""
    one = ADAPTERS[key]
    assert one.load is not None
    assert one.unload is not None
    assert (one.load("a/b"), one.unload("a/b")) == (load, unload)


@pytest.mark.parametrize("one", ADAPTERS.values(), ids=lambda one: one.key)
def test_patterns_of_processes_take_time_in_proportion_to_a_line(one: Adapter) -> None:
    """Law: a pattern that repeats any character without limit is tried at the line's beginning only, and does not try each of
    its words anew: other users write these lines."""
    for pattern in one.processes:
        if ".*" in pattern:
            assert pattern.startswith("^")
            assert pattern.count(".*") == pattern.count("(?!.*") + pattern.count("(?>.*?") + 1


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("/usr/lib/ollama/llama-server --model a", True),
        ("env ollama/ollama llama-server", True),
        ("llama-server --model a", False),
        ("llama-server --model ollama", False),
        ("/usr/bin/ollama-run llama-servers", False),
        ("ollama " * 2000, False),
    ],
)
def test_ollamas_llama_server_is_ollamas(line: str, fits: bool) -> None:
    """Its name stands in front."""
    assert any(re.search(one, line) is not None for one in ADAPTERS["ollama"].processes) == fits
