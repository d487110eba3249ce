"""AIPerf 0.13: `profile_export_aiperf.json`, whose metrics are objects with `avg` and percentiles, in ms.

Its `inter_token_latency` is a mean over each request; `inter_chunk_latency` is each gap, and the server sends a token a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from benchmarks.peers.adapter import MODEL, Adapter, Job, Reported


class Spread(msgspec.Struct):
    """One metric."""

    avg: float
    p99: float | None = None


class Export(msgspec.Struct):
    """The result file. A run of single tokens has no gaps."""

    request_count: Spread
    time_to_first_token: Spread | None = None
    inter_chunk_latency: Spread | None = None


def command(job: Job) -> list[str]:
    """`--ui none`: it draws nothing while it measures."""
    load = job.load
    return [
        *("profile", "--model", MODEL, "--url", job.url, "--endpoint-type", "chat", "--streaming"),
        *("--tokenizer", str(job.tokenizer)),
        *("--concurrency", str(load.streams), "--request-count", str(load.requests)),
        *(("--warmup-request-count", str(load.warmup)) if load.warmup else ()),
        *("--synthetic-input-tokens-mean", str(load.input_tokens), "--synthetic-input-tokens-stddev", "0"),
        *("--output-tokens-mean", str(load.output_tokens), "--extra-inputs", "ignore_eos:true"),
        *("--ui", "none", "--artifact-dir", str(job.out)),
    ]


def read(result: bytes) -> Reported:
    """Errors: msgspec's, if it is no such file."""
    export = msgspec.json.decode(result, type=Export)
    ttft, gap = export.time_to_first_token, export.inter_chunk_latency
    return Reported(
        int(export.request_count.avg),
        ttft.avg if ttft else None,
        ttft.p99 if ttft else None,
        gap.p99 if gap else None,
    )


# It fails on the folder of a tokenizer when told to stay offline; it needs no network all the same.
ENVIRONMENT: Mapping[str, str] = {}
ADAPTER = Adapter(command, "profile_export_aiperf.json", read, env=ENVIRONMENT)
