"""inference-perf 0.7: `summary_lifecycle_metrics.json`, in seconds. Its ITL is each gap.

Random prompts go to the completions interface only. It has no warm-up: every request it sends is measured.
"""

from __future__ import annotations

import json

import msgspec

from benchmarks.peers.adapter import MODEL, Adapter, Job, Reported, milliseconds


class Spread(msgspec.Struct):
    """One metric, in seconds."""

    mean: float | None = None
    p99: float | None = None


class Latency(msgspec.Struct):
    """Metrics are null where there is nothing to say."""

    time_to_first_token: Spread | None = None
    inter_token_latency: Spread | None = None


class Successes(msgspec.Struct):
    """The requests that succeeded."""

    count: int
    latency: Latency


class Summary(msgspec.Struct):
    """The result file."""

    successes: Successes


def command(job: Job) -> list[str]:
    """Its settings as flags; lengths are fixed, and token counts the server's, as its page on comparing says."""
    load = job.load
    stage = [{"num_requests": load.requests, "concurrency_level": load.streams}]
    return [
        *("--api.type", "completion", "--api.streaming", "true", "--data.type", "random"),
        *_length("input", load.input_tokens, load.requests),
        *_length("output", load.output_tokens, load.requests),
        *("--load.type", "concurrent", "--load.stages", json.dumps(stage)),
        *("--server.type", "vllm", "--server.model_name", MODEL, "--server.base_url", job.url),
        *("--server.ignore_eos", "true", "--report.request_lifecycle.use_server_output_tokens", "true"),
        *("--tokenizer.pretrained_model_name_or_path", str(job.tokenizer)),
        *("--storage.local_storage.path", str(job.out)),
    ]


def _length(side: str, tokens: int, requests: int) -> list[str]:
    flag = f"--data.{side}_distribution"
    return [
        *(f"{flag}.type", "fixed", f"{flag}.mean", str(tokens), f"{flag}.total_count", str(requests)),
        *(f"{flag}.min", "1"),  # its own least length is 10
    ]


def read(result: bytes) -> Reported:
    """Errors: msgspec's, if it is no such file."""
    found = msgspec.json.decode(result, type=Summary).successes
    ttft = found.latency.time_to_first_token or Spread()
    gap = found.latency.inter_token_latency or Spread()
    return Reported(found.count, milliseconds(ttft.mean), milliseconds(ttft.p99), milliseconds(gap.p99))


ADAPTER = Adapter(command, "summary_lifecycle_metrics.json", read, api="completions")
