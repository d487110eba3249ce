"""Every metric's title, unit and one-sentence definition, and which of them the result table shows.

Tools disagree about where TTFT starts and stops and what ITL is, so a report that does not say it cannot be compared.
Where the IETF draft (draft-gaikwad-llm-benchmarking-methodology-00) defines a quantity, that definition is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """`short` fits a narrow terminal; `means` is one sentence."""

    title: str
    short: str
    unit: Literal["ms", "tokens", "tokens/s", "req/s"]
    means: str


METRICS: dict[str, Metric] = {
    "ttft_ms": Metric(
        "Time to First Token",
        "TTFT",
        "ms",
        "From the moment the kernel took the last byte of the request to the arrival of the first generated token that is not "
        "white space, be it answer, reasoning or tool call (draft 5.1.3.1, B.1.1).",
    ),
    "e2e_ms": Metric(
        "Request Latency",
        "Latency",
        "ms",
        "From the moment the kernel took the last byte of the request to the arrival of the last generated token.",
    ),
    "itl_ms": Metric(
        "Inter-Token Latency",
        "ITL",
        "ms",
        "Every single gap between neighbouring tokens of one answer, all answers pooled (draft 4.6.3); an article's or tool's "
        '"ITL" that is a mean per request is TPOT here.',
    ),
    "tpot_ms": Metric(
        "Time per Output Token",
        "TPOT",
        "ms",
        "One figure a request: time from its first to its last token, divided by the number of tokens less one; "
        "undefined for answers of one token or one event.",
    ),
    "request_output_tok_s": Metric(
        "Per-Request Output Token Throughput",
        "tok/s each",
        "tokens/s",
        "One figure a request: its output tokens divided by its request latency, TTFT included.",
    ),
    "input_tokens": Metric(
        "Input Sequence Length",
        "Input",
        "tokens",
        "Prompt tokens a request, by the count source the report names; a chat template's special tokens are the server's.",
    ),
    "output_tokens": Metric(
        "Output Sequence Length",
        "Output",
        "tokens",
        "Generated tokens a request, reasoning included, by the count source the report names; never the number of events.",
    ),
    "ttft_any_ms": Metric(
        "Time to First Text", "TTFT any", "ms", "As TTFT, but white space counts as a first token too."
    ),
    "ttfo_ms": Metric(
        "Time to First Output",
        "TTFO",
        "ms",
        "As TTFT, but only answer content counts: reasoning and tool calls do not.",
    ),
    "ttfe_ms": Metric(
        "Time to First Event",
        "TTFE",
        "ms",
        "As TTFT, but the first stream event of any kind counts, an empty role event too.",
    ),
    "ttft_from_intended_ms": Metric(
        "TTFT from Due Time",
        "TTFT due",
        "ms",
        "As TTFT, but the clock starts when the request was due, so that a late client cannot flatter the server.",
    ),
    "e2e_from_intended_ms": Metric(
        "Latency from Due Time",
        "Latency due",
        "ms",
        "As request latency, but the clock starts when the request was due.",
    ),
    "stream_end_ms": Metric(
        "Time to Stream End",
        "Stream end",
        "ms",
        "From the request's last byte to the end of the response, trailing usage events included.",
    ),
    "connect_ms": Metric(
        "Connect Time",
        "Connect",
        "ms",
        "TCP handshake of the requests that opened a connection; not part of TTFT.",
    ),
    "tls_ms": Metric(
        "TLS Time", "TLS", "ms", "TLS handshake of the requests that opened a connection; not part of TTFT."
    ),
    "jitter_ms": Metric(
        "Jitter", "Jitter", "ms", "One figure a request: the standard deviation of its inter-token gaps."
    ),
    "max_pause_ms": Metric(
        "Longest Pause", "Max pause", "ms", "One figure a request: its longest inter-token gap."
    ),
}

TABLE = ("ttft_ms", "e2e_ms", "itl_ms", "tpot_ms", "request_output_tok_s", "input_tokens", "output_tokens")
"""Rows with a distribution, in the order of the result table; the two run-level rates follow."""

RATES: dict[str, Metric] = {
    "output_tok_s": Metric(
        "Output Token Throughput",
        "tok/s all",
        "tokens/s",
        "Output tokens that arrived in the steady window, divided by the window's length.",
    ),
    "request_s": Metric(
        "Request Throughput",
        "req/s all",
        "req/s",
        "Requests completed in the steady window, divided by the window's length.",
    ),
    "input_tok_s": Metric(
        "Input Token Throughput",
        "in tok/s all",
        "tokens/s",
        "Prompt tokens of the requests whose first token arrived in the steady window, divided by its length, cached ones too.",
    ),
}

STATISTICS = {
    "mean": "Mean",
    "min": "Min",
    "max": "Max",
    "std": "Std",
    "p50": "P50",
    "p75": "P75",
    "p90": "P90",
    "p95": "P95",
    "p99": "P99",
    "p99_9": "P99.9",
}
"""Keys of the statistics in the order of the result table, with their headings."""

CONVENTIONS = {
    "samples": "Only successful requests of the measured window are samples; failed, refused, cancelled and warm-up "
    "requests are counted but have no latency here.",
    "percentiles": "Percentiles interpolate linearly between the two nearest ordered samples.",
    "std": "Standard deviations divide by n - 1.",
    "ci95": "Intervals hold the true value with 95 % confidence: percentiles from order statistics without assuming a "
    "distribution.",
    "throughput": "Throughput counts what arrived in the steady window only: the last 90 % of the sending time, or in a closed "
    "loop of the time in which concurrency was full; the figures of the whole run stand beside it.",
}


def definitions() -> dict[str, str]:
    """Every metric, rate and convention with its one-sentence meaning: the `definitions` of summary.json."""
    named = METRICS | RATES
    return {name: metric.means for name, metric in named.items()} | CONVENTIONS
