"""A recorded agent session on vLLM: what its prefix cache gave to each step, against the counters of its own /metrics.

The session has twenty steps that call a tool and go on with its result, alone on the engine, so that whatever the counters
rise by between two scrapes around a step is that step's.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from commands import run

from scripts.engines.launch import RunningEngine

BLOCK = 128
"""Tokens in a block of vLLM's prefix cache on a CPU."""
STEPS, SYSTEM_WORDS, RESULT_WORDS = 20, 300, 60
TOOL_MS = 800
"""Several scrapes long: the counters before and after a step are both seen."""
SCRAPE = ("--server-metrics-interval", "100ms", "--server-metrics-formats", "jsonl")
HITS, QUERIES = "vllm:prefix_cache_hits", "vllm:prefix_cache_queries"
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}


def _words(count: int, topic: int) -> str:
    return " ".join(f"line {topic}.{at} of the file" for at in range(count // 5))


def _step(at: int) -> dict[str, Any]:
    """Step `at` shows the result of the tool that the step before has called, and calls it again."""
    call = {"id": f"c{at}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    reply = {"content": f"I read part {at}.", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": f"c{at - 1}", "content": _words(RESULT_WORDS, at)}
    opening = {"role": "user", "content": _words(SYSTEM_WORDS, 0)}
    last: dict[str, Any] = {} if at == STEPS - 1 else {"reply": reply}
    return {
        "messages": [opening if at == 0 else result],
        "tool_ms": 0 if at == 0 else TOOL_MS,
        "output_tokens": 8,
        "fields": {"tool_choice": "none"},
        **last,
    }


def _session(path: Path) -> Path:
    session = {"session": "reader", "tools": [TOOL], "steps": [_step(at) for at in range(STEPS)]}
    path.write_text(json.dumps(session) + "\n", encoding="utf-8")
    return path


def _rises(folder: Path) -> list[tuple[int, int]]:
    """Prompt tokens looked up in the cache and found there, between each two scrapes between which any were."""
    lines = (folder / "server_metrics_export.jsonl").read_text(encoding="utf-8").splitlines()
    scrapes = [json.loads(line)["metrics"] for line in lines]
    counted = [
        tuple(int(sum(one["value"] for one in scrape[name])) for name in (QUERIES, HITS))
        for scrape in scrapes
    ]
    pairs = itertools.pairwise(counted)
    return [(new[0] - old[0], new[1] - old[1]) for old, new in pairs if new[0] > old[0]]


def test_hits_of_each_step_are_those_that_the_engine_counted(vllm: RunningEngine, tmp_path: Path) -> None:
    """Each step's prompt and cached tokens, and that the cache gave what its blocks can: all whole ones of the step before."""
    load = ("--sessions", str(_session(tmp_path / "sessions.jsonl")), "--concurrency", "1", "--warmup", "0")
    target = ("--url", vllm.url, "--model", vllm.model, "--tokenizer", str(vllm.tokenizer_dir))
    _, stdout, _ = run("run", *target, *load, *SCRAPE, "--json", out=tmp_path / "out")
    summary = json.loads(stdout)
    folder = tmp_path / "out" / summary["run"]["id"]
    steps = sorted(pq.read_table(folder / "requests.parquet").to_pylist(), key=lambda row: row["turn"])
    assert [row["outcome"] for row in steps] == ["ok"] * STEPS
    said = [(row["usage_input"], row["usage_cached"]) for row in steps]
    assert _rises(folder) == said
    for (before, _), (_, cached) in itertools.pairwise(said):
        assert before - BLOCK <= cached <= before
    reused = summary["agent_sessions"]["reused_tokens"]
    assert reused["found"] == sum(cached for _, cached in said)
    assert reused["beyond"] == reused["first_cached"] == 0
    status = {check["code"]: check["status"] for check in summary["verdict"]["checks"]}
    assert [status[code] for code in ("session_steps", "session_gaps", "session_context")] == ["pass"] * 3
