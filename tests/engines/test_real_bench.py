"""The benchmark on real engines: each is recognised, measured by its own counts, and ranked or tied."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from commands import run

from inferometer.documents.schemas.__main__ import generated
from scripts.engines.launch import RunningEngine

RUNS = 2


def test_real_engines_are_measured_side_by_side(
    llamacpp: RunningEngine, mlx: RunningEngine, tmp_path: Path
) -> None:
    """Version, runner and tokens are the engines' own words; every planned generation is a sample or says why it is none."""
    addresses = ("--url", f"llamacpp={llamacpp.url}", "--url", f"mlx-lm={mlx.url}")
    models = ("--model", f"llamacpp={llamacpp.model}", "--model", f"mlx-lm={mlx.model}")
    small = ("--prompts", "tool-call", "--runs", str(RUNS))
    _, stdout, stderr = run("bench", *addresses, *models, *small, "--json", out=tmp_path)
    document = json.loads(stdout)
    jsonschema.validate(document, json.loads(generated("bench")))
    assert [one["ended"] for one in document["engines"]] == ["measured"] * 2, stderr
    for engine in document["engines"]:
        assert engine["metadata"]["engine"] == engine["label"]
        assert engine["metadata"]["runner"] == {"llamacpp": "llama.cpp", "mlx-lm": "mlx"}[engine["label"]]
        assert len(engine["samples"]) == RUNS
        for sample in engine["samples"]:
            assert sample["tokens_source"] == "server"
            assert 0 < sample["ttft_client_ms"] <= sample["total_duration_ms"]
    placed = [label for place in document["rankings"][0]["places"] for label in place["labels"]]
    assert sorted(placed) == ["llamacpp", "mlx-lm"]
