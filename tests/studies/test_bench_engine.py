"""What an engine of a benchmark says of its model, and whether it can unload it: over sockets."""

from __future__ import annotations

import json

import pytest
from engine_replies import answering, replies
from peers import scripted
from serving import serving

from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.studies.bench_engine import LiveEngine

MODEL = "tiny"
LIMIT = 2_048


def engine(port: int, key: str | None, model: str = MODEL) -> LiveEngine:
    """The engine there; without a key, nobody knows which it is."""
    adapter = None if key is None else ADAPTERS[key]
    api = "chat" if adapter is None else adapter.interface
    return LiveEngine("it", "it", f"http://127.0.0.1:{port}", model, adapter, key, api=api)


def test_ollama_is_asked_about_the_model_that_is_measured() -> None:
    """`/api/show` is asked for it by name, and has what the lists lack."""
    known = {path: reply for path, reply in replies("ollama").items() if path != "/api/ps"}
    with scripted(answering(known)) as peer:
        facts = engine(peer.port, "ollama", "qwen3.5:nvfp4").facts("qwen3.5:nvfp4")
    (asked,) = [one for one in peer.seen if one.target == "/api/show"]
    assert (asked.method, json.loads(asked.body)) == ("POST", {"model": "qwen3.5:nvfp4"})
    assert facts is not None
    (model,) = facts.models
    assert (model.format, model.quantization, model.parameters) == ("safetensors", "NVFP4", "35B")
    assert model.context == 262_144


@pytest.mark.parametrize("key", ["ollama", "lmstudio", "llamacpp", "vllm", "sglang", "tgi"])
def test_the_context_is_the_engines_own_word(key: str) -> None:
    """In the list of models, or wherever else its adapter finds it."""
    with serving(routes=key, model=MODEL, max_model_len=LIMIT) as port:
        assert engine(port, key).prepare().context == LIMIT


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("lmstudio", None),
        ("llamacpp", "unload_none"),
        ("vllm", "unload_none"),
        ("mlx-lm", "unload_none"),
        (None, "unload_unknown"),
    ],
)
def test_a_model_that_stays_in_memory_is_said_to_stay(key: str | None, code: str | None) -> None:
    """An engine that has no call for it, or was started without, refuses nothing; of an unknown one nobody can say."""
    with serving(routes=key, model=MODEL) as port:
        one = engine(port, key)
        one.prepare()
        remark = one.unload(MODEL)
    assert (None if remark is None else remark.code) == code
