"""The agentic benchmark on real engines: what each was started with is what is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import run

from inferometer.documents.schemas.__main__ import generated
from scripts.engines.launch import RunningEngine, running

SMALL = ("--agentic", "--force")
"""Another instance of the engine on this machine is no reason to refuse: reuse is counted here, not timed."""


def measured(engine: RunningEngine, out: Path) -> dict[str, Any]:
    """The engine's result: the long message was made to fit its context, all phases were answered, and nothing of the cold ones
    was in a cache."""
    words = ("--url", f"{engine.name}={engine.url}", *SMALL)
    _, stdout, stderr = run("bench", *words, "--json", out=out)
    document = json.loads(stdout)
    jsonschema.validate(document, json.loads(generated("agentic")))
    result: dict[str, Any] = document["engines"][0]
    assert result["ended"] == "measured", stderr
    assert [one["outcome"] for one in result["samples"]] == ["ok"] * 8
    assert {one["code"] for one in result["remarks"]} >= {"long_shortened", "unload_none"}
    shares = {one["phase"]: one["cached_share"] for one in result["samples"]}
    assert max(shares["cold"], shares["cold-prefix"]) < 0.01
    return result


@pytest.mark.parametrize("name", ["vllm", "llamacpp"])
def test_a_real_prefix_cache_is_found(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Both have one unless it is turned off, and report what they took from it."""
    reuse = measured(request.getfixturevalue(name), tmp_path)["prefix_cache_reuse"]
    assert (reuse["verdict"], reuse["source"]) == ("yes", "cached_tokens")
    assert reuse["value"] > 0.9


def test_a_real_engine_without_its_prefix_cache_is_found_out(vllm: RunningEngine, tmp_path: Path) -> None:
    """The same vLLM with the cache turned off: the very prompts that the other reuses are computed anew each time."""
    assert vllm.url
    with running("vllm", tmp_path / "log", ("--no-enable-prefix-caching",)) as other:
        result = measured(other, tmp_path / "out")
    reuse = result["prefix_cache_reuse"]
    assert (reuse["verdict"], reuse["source"], reuse["value"]) == ("no", "cached_tokens", 0.0)
    assert {one["cached_tokens"] for one in result["samples"]} == {0}
