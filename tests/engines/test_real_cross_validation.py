"""An engine's own figures beside the client's, on real engines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from commands import run

from inferometer.documents.schemas.__main__ import generated
from scripts.engines.launch import RunningEngine


@pytest.mark.parametrize(
    ("name", "speeds", "waits"),
    [("llamacpp", ["timings", "counters"], ["timings"]), ("vllm", ["counters"], ["counters"])],
)
def test_the_counters_of_a_real_engine_are_of_these_requests(
    name: str, speeds: list[str], waits: list[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Its tokens by its counters are those of its answers, so that its figures stand beside the client's; and llama.cpp's
    counters and the durations in its answers agree."""
    engine: RunningEngine = request.getfixturevalue(name)
    arguments = ("--url", engine.url, "--model", engine.model, "--prompt", "tool-call", "--runs", "2")
    code, stdout, stderr = run("cross-validate", *arguments, "--json", out=tmp_path)
    document = json.loads(stdout)
    jsonschema.validate(document, json.loads(generated("cross-validation")))
    assert (code, document["engine"]) == (0, name), stderr
    tables = {one["figure"]: one["rows"] for one in document["tables"]}
    for figure, own in (("tok_per_sec", speeds), ("ttft_ms", waits)):
        methods = [row["method"] for row in tables[figure]]
        assert methods[: len(own)] == own, document["remarks"]
        assert {"streamed", "whole"} >= set(methods[len(own) :])
    if name == "llamacpp":
        by_timings, by_counters, *_ = tables["tok_per_sec"]
        assert by_counters["mean"] == pytest.approx(by_timings["mean"], rel=0.01)
    assert document["overhead"]["ttft_ms"] is not None
    assert document["overhead"]["streaming_ms"] is not None
