"""vLLM's `bench serve` 0.32: a flat JSON object of figures, in ms. Its ITL is each gap."""

from __future__ import annotations

import msgspec

from benchmarks.peers.adapter import MODEL, Adapter, Job, Reported


class Result(msgspec.Struct):
    """The result file."""

    completed: int
    mean_ttft_ms: float
    p99_ttft_ms: float
    p99_itl_ms: float
    total_output_tokens: int


def command(job: Job) -> list[str]:
    """Random prompts; the chat interface, as the other tools have it."""
    load = job.load
    return [
        *("bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
        *("--base-url", job.url, "--model", MODEL, "--tokenizer", str(job.tokenizer)),
        *("--dataset-name", "random", "--random-input-len", str(load.input_tokens)),
        *("--random-output-len", str(load.output_tokens), "--ignore-eos"),
        *("--num-prompts", str(load.requests), "--max-concurrency", str(load.streams)),
        *("--num-warmups", str(load.warmup), "--disable-tqdm"),
        *("--save-result", "--result-dir", str(job.out), "--result-filename", RESULT),
    ]


def read(result: bytes) -> Reported:
    """Where no answer has a second token it writes 0 for the gaps. Errors: msgspec's, if it is no such file."""
    found = msgspec.json.decode(result, type=Result)
    gaps = found.total_output_tokens > found.completed
    return Reported(
        found.completed, found.mean_ttft_ms, found.p99_ttft_ms, found.p99_itl_ms if gaps else None
    )


RESULT = "result.json"
ADAPTER = Adapter(command, RESULT, read)
