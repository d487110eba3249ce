"""GuideLLM 0.8: the JSON output, one benchmark in it; each metric has a spread of the requests that succeeded, in ms.

Its `inter_token_latency_ms` is a mean over each request, so that it has no figure for the gaps.
"""

from __future__ import annotations

import msgspec

from benchmarks.peers.adapter import MODEL, Adapter, Job, Reported


class Percentiles(msgspec.Struct):
    """Those of one metric."""

    p99: float


class Spread(msgspec.Struct):
    """One metric over some requests."""

    mean: float
    percentiles: Percentiles


class Metric(msgspec.Struct):
    """One metric over the requests that succeeded."""

    successful: Spread


class Totals(msgspec.Struct):
    """Requests by outcome."""

    successful: int


class Metrics(msgspec.Struct):
    """The metrics wanted."""

    request_totals: Totals
    time_to_first_token_ms: Metric


class Benchmark(msgspec.Struct):
    """One load."""

    metrics: Metrics


class Output(msgspec.Struct):
    """The result file."""

    benchmarks: list[Benchmark]


def command(job: Job) -> list[str]:
    """Synthetic prompts, so many streams, until so many requests have ended."""
    load = job.load
    return [
        "run",
        *("--backend", f"kind=openai_http,target={job.url},model={MODEL}"),
        *("--tokenizer", f"kind=huggingface_auto,model={job.tokenizer}"),
        *("--profile", f"kind=concurrent,streams={load.streams}"),
        *("--constraint", f"kind=max_requests,count={load.requests}"),
        *(
            "--data",
            f"kind=synthetic_text,prompt_tokens={load.input_tokens},output_tokens={load.output_tokens}",
        ),
        *("--output", f"kind=json,path={job.out / RESULT}", "--disable-console"),
    ]


def read(result: bytes) -> Reported:
    """Errors: msgspec's, if it is no such file; ValueError if there is not just one benchmark."""
    (benchmark,) = msgspec.json.decode(result, type=Output).benchmarks
    ttft = benchmark.metrics.time_to_first_token_ms.successful
    return Reported(benchmark.metrics.request_totals.successful, ttft.mean, ttft.percentiles.p99, None)


RESULT = "benchmarks.json"
ADAPTER = Adapter(command, RESULT, read)
