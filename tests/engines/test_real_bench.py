"""The benchmark on real engines: each is found by its name, recognised, measured by its own counts, and ranked or left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from commands import finish, only, run

from inferometer.documents.schemas.__main__ import generated
from scripts.engines.launch import RunningEngine

RUNS = 2
RUNNERS = {"vllm": None, "llamacpp": "llama.cpp", "mlx-lm": "mlx"}


def test_three_real_engines_are_measured_by_one_command(
    vllm: RunningEngine, llamacpp: RunningEngine, mlx: RunningEngine, tmp_path: Path
) -> None:
    """Address, model, version, runner and tokens are found out; every planned generation is a sample or says why it is none;
    each engine has a place, unless its result is not VALID; and the result is read back as it was."""
    small = ("--prompts", "tool-call", "--runs", str(RUNS))
    _, stdout, stderr = run("bench", "--engines", ",".join(RUNNERS), *small, "--json", out=tmp_path)
    assert stdout, stderr
    document = json.loads(stdout)
    jsonschema.validate(document, json.loads(generated("bench")))
    assert [one["ended"] for one in document["engines"]] == ["measured"] * 3, stderr
    urls = {one["label"]: one["url"] for one in document["engines"]}
    assert urls == {"vllm": vllm.url, "llamacpp": llamacpp.url, "mlx-lm": mlx.url}
    for engine in document["engines"]:
        measured(engine)
    for ranking in document["rankings"]:
        placed = [label for place in ranking["places"] for label in place["labels"]]
        assert sorted([*placed, *ranking["left_out"]]) == sorted(RUNNERS)
        status = {one["label"]: one["status"] for one in document["engines"]}
        assert "VALID" not in {status[label] for label in ranking["left_out"]}
    _, again, _ = finish("report", str(only(tmp_path)), "--json")
    assert json.loads(again) == document


def measured(engine: dict[str, Any]) -> None:
    """One engine's result: what it says of itself, and its own counts."""
    label, metadata = engine["label"], engine["metadata"]
    assert (metadata["engine"], metadata["runner"]) == (label, RUNNERS[label])
    assert (metadata["engine_version"] is None) == (label == "mlx-lm")
    assert metadata["model"]
    assert metadata["memory_bytes"] > 1 << 20
    assert len(engine["samples"]) == RUNS
    for sample in engine["samples"]:
        assert (sample["tokens_source"], sample["ttft_source"]) == ("server", "client")
        assert sample["tokens_generated"] > 0
        assert 0 < sample["ttft_client_ms"] <= sample["total_duration_ms"]
