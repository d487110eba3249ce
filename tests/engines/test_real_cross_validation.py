"""An engine's own figures beside the client's, on a real engine."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from commands import run

from inferometer.documents.schemas.__main__ import generated
from scripts.engines.launch import RunningEngine


def test_the_counters_of_a_real_engine_are_of_these_requests(llamacpp: RunningEngine, tmp_path: Path) -> None:
    """Its tokens by its counters are those of its answers, so that its speed stands beside the client's; its answers have its
    own durations."""
    short = ("--prompt", "tool-call", "--runs", "2")
    arguments = ("--url", llamacpp.url, "--model", llamacpp.model, *short)
    code, stdout, stderr = run("cross-validate", *arguments, "--json", out=tmp_path)
    document = json.loads(stdout)
    jsonschema.validate(document, json.loads(generated("cross-validation")))
    assert (code, document["engine"]) == (0, "llamacpp"), stderr
    speeds = document["tables"][0]
    methods = [row["method"] for row in speeds["rows"]]
    assert methods == ["timings", "counters", "streamed", "whole"], document["remarks"]
    assert document["overhead"]["streaming_ms"] is not None
