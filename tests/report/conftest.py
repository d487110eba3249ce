"""Three hand-made runs: a rich valid one, an invalid one from a hostile server, and one in which nothing was measured."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from inferometer.metrics import catalogue as metrics
from inferometer.plan.length_histogram import histogram
from inferometer.report.run.summary import compose

Summary = dict[str, Any]
Series = dict[str, Any]

HOSTILE = "</script><img src=x onerror=alert(1)>|`**_\x1b[31m\u202e"
"""A model name a server may send: markup for HTML, Markdown and terminals, and a direction override."""


def quantile(ordered: list[float], p: float) -> float:
    at = p * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def stats(values: list[float]) -> dict[str, Any]:
    """The statistics of the contract; intervals are only plausible, not right."""
    n, ordered = len(values), sorted(values)
    mean = sum(values) / n
    std = (sum((value - mean) ** 2 for value in values) / max(n - 1, 1)) ** 0.5
    points = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
    found = {name: quantile(ordered, p) for name, p in points.items()}
    ci: dict[str, Any] = {"mean": [mean - 2 * std / n**0.5, mean + 2 * std / n**0.5]}
    for name in ("p50", "p90", "p95", "p99"):
        half = (points[name] * (1 - points[name]) / n) ** 0.5 * 2
        ci[name] = [
            quantile(ordered, max(points[name] - half, 0)),
            quantile(ordered, min(points[name] + half, 1)),
        ]
    return {"n": n, "mean": mean, "std": std, "min": ordered[0], "max": ordered[-1], **found, "ci95": ci}


def quantiles(values: list[float]) -> dict[str, Any]:
    """Quantiles for pictures; fewer than the program's."""
    ordered = sorted(values)
    points = [0, 25, 50, 75, 90, 99, 99.5, 100]
    return {"q": points, "v": [float(f"{quantile(ordered, p / 100):.4g}") for p in points]}


def drawn(values: list[float]) -> dict[str, Any]:
    """The statistics of drawn lengths."""
    ordered = sorted(values)
    points = {name: quantile(ordered, p) for name, p in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return {"mean": sum(values) / len(values), **points, "min": int(ordered[0]), "max": int(ordered[-1])}


def distribution(values: list[float], bins: int = 48) -> dict[str, Any]:
    ordered = sorted(values)
    width = (ordered[-1] - ordered[0]) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(int((value - ordered[0]) / width), bins - 1)] += 1
    points = [i / 199 for i in range(200)]
    cdf = {"x": [quantile(ordered, p) for p in points], "p": points}
    return {
        "hist": {"edges": [ordered[0] + width * i for i in range(bins + 1)], "counts": counts},
        "cdf": cdf,
    }


def check(
    code: str, status: str, value: Any = None, limit: Any = None, unit: str | None = None, **facts: Any
) -> dict[str, Any]:
    return {"code": code, "status": status, "value": value, "limit": limit, "unit": unit, "facts": facts}


TAKEN = {"own": True, "seen": True, "endpoints": 1, "resets": 0}
VALID_CHECKS = [
    check("error_rate", "pass", 0.003, 0.01, "share", by_error={"timeout": 2, "http_5xx": 1}),
    check("prompt_length", "pass", 0.0, 0.05, "share", asked_mean=319.4, counted_mean=319.4),
    check(
        "output_length",
        "pass",
        0.004,
        0.05,
        "share",
        asked_mean=160.2,
        counted_mean=160.1,
        finish_reasons={"length": 1006},
    ),
    check("token_counts", "pass", 0.0007, 0.05, "share", server=159620, events=156612, against="tokenizer"),
    check("lateness", "pass", 0.41, 4.08, "ms", loop="open", p50=0.07, p99=0.41),
    check("receive_lag", "pass", 0.0004, 0.01, "", source="kernel", p99=0.188, max=0.4),
    check("worker_cpu", "pass", 0.31, 0.9, "share"),
    check("arrival_rate", "pass", 20.31, 21.3, "1/s", expected=20, low=18.7, high=21.3),
    check("arrival_dispersion", "pass", 1.04, 1.19, "", low=0.83, high=1.19),
    check("arrival_lag1", "pass", 0.012, 0.062, "", low=-0.062, high=0.062),
    check("concurrency_held", "na"),
    check("users_held", "na"),
    check("cache_hits", "pass", 0.0, 0.05, "share"),
    check("server_tokens", "pass", 0.0, 0.01, "", prompt_server=338949.0, prompt_client=338949.0),
    check("server_ttft", "pass", 3.7, 16.3, "ms", client=81.7, server=78.0, client_n=1027, server_n=1027),
    check(
        "server_queue", "pass", 0.1, 2.0, "", mean=0.21, max=4.0, end=0.0, preemptions=3.0, kv_max_share=0.44
    ),
    check("samples_p99", "pass", 1006, 1000),
    check("samples_p99_9", "note", 1006, 10000),
    check("tokens_per_event", "pass", 0.981, 0.9, "share", method="direct"),
    check("clock_step", "pass", 0.02, 1, "ms"),
    check("workers_alive", "pass", 0, 0, "share"),
    check("interrupted", "pass"),
    check("warmup", "note", 20, 100, None, output_tokens=3204),
    check("ttft_variants", "note", 0.997, 0.0, "share", ttft=81.6, ttft_any=81.6, ttfo=81.6, ttfe=78.5),
    check("few_samples", "pass", 1006, 2),
]


def server_told() -> dict[str, Any]:
    """What a vLLM says of itself in 1,009 requests."""
    timed = {"n": 1009, "mean": 78.1, "p50": 76.2, "p90": 104.0, "p95": 110.0, "p99": None}
    return {
        "engine": "vLLM",
        "seen": True,
        "endpoints": [
            {
                "url": "http://10.0.3.7:8000/metrics",
                "engine": "vLLM",
                "own": True,
                "scrapes": 171,
                "dropped": 2,
                "longest_gap_s": 0.71,
                "resets": 0,
            }
        ],
        "running": {"mean": 41.7, "max": 60.0, "end": 3.0},
        "queue": {"mean": 0.21, "max": 4.0, "end": 0.0},
        "queue_thirds": [0.1, 0.3, 0.2],
        "kv_usage": {"mean": 0.31, "max": 0.44, "end": 0.02},
        "preemptions": 3.0,
        "prefix_hit_share": 0.021,
        "prompt_tokens": 332361.0,
        "generation_tokens": 161540.0,
        "succeeded": 1006.0,
        "failed": 3.0,
        "ttft_ms": timed,
        "itl_ms": timed | {"n": 158614, "mean": 14.4},
        "tpot_ms": None,
        "e2e_ms": None,
        "queue_ms": timed | {"mean": 0.4},
        "whole": {
            "prompt_tokens": {"server": 338949.0, "low": 338949.0, "high": 339937.0, "taken": TAKEN},
            "generation_tokens": {"server": 164744.0, "low": 164262.0, "high": 164742.0, "taken": TAKEN},
            "server_ttft_ms": 78.0,
            "server_n": 1027,
            "client_ttft_ms": 81.7,
            "client_n": 1027,
            "ttft_taken": TAKEN,
            "went_back": None,
        },
    }


OFFERED = dict.fromkeys(("rate", "rate_of", "concurrency", "users", "user_rate", "arrival", "burstiness"))


def parts() -> dict[str, Any]:
    """Everything but the verdict of a run of 1,000 requests at 20 requests/s."""
    rng = random.Random(7)  # seeded: the sample is the same everywhere
    n = 1006
    lengths = [float(rng.randint(128, 512)) for _ in range(n)]
    outputs = [float(rng.randint(64, 256)) for _ in range(n)]
    ttft = [38 + 0.11 * length + rng.lognormvariate(1.8, 0.9) for length in lengths]
    tpot = [14.2 + rng.gauss(0, 0.6) + (rng.random() < 0.03) * 4 for _ in range(n)]
    itl = [rng.lognormvariate(2.65, 0.12) + (rng.random() < 0.01) * rng.uniform(15, 90) for _ in range(20000)]
    e2e = [first + each * (count - 1) for first, each, count in zip(ttft, tpot, outputs, strict=True)]
    late = [0.02 + rng.expovariate(12) for _ in range(n)]
    values = {
        "ttft_ms": ttft,
        "ttft_any_ms": ttft,
        "ttfo_ms": ttft,
        "ttfe_ms": [value - 3.1 for value in ttft],
        "ttft_from_intended_ms": [value + extra for value, extra in zip(ttft, late, strict=True)],
        "e2e_from_intended_ms": [value + extra for value, extra in zip(e2e, late, strict=True)],
        "itl_ms": itl,
        "tpot_ms": tpot,
        "e2e_ms": e2e,
        "stream_end_ms": [value + 0.4 for value in e2e],
        "connect_ms": [0.2 + rng.random() / 10 for _ in range(61)],
        "input_tokens": lengths,
        "output_tokens": outputs,
        "request_output_tok_s": [count / value * 1000 for count, value in zip(outputs, e2e, strict=True)],
        "jitter_ms": [1.5 + rng.random() for _ in range(n)],
        "max_pause_ms": [20 + rng.expovariate(0.1) for _ in range(n)],
    }
    buckets = [(1, 256), (256, 512), (512, 1024), (1024, 2048), (2048, 4096), (4096, None)]
    by_input = []
    for low, high in buckets:
        inside = [t for t, length in zip(ttft, lengths, strict=True) if low <= length < (high or 1e9)]
        found = stats(inside) if inside else {}
        by_input.append(
            {"from": low, "to": high, "n": len(inside)}
            | {k: found.get(k) for k in ("p50", "p90", "p95", "p99", "p99_9")}
        )
    return {
        "run": {
            "id": "20260801T101112Z-chat-20rps",
            "name": "chat-20rps",
            "started": "2026-08-01T10:11:12.482Z",
            "ended": "2026-08-01T10:12:06.911Z",
            "interrupted": False,
            "simulated": False,
            "plan_hash": "sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
        },
        "sut": {
            "boundary": "engine",
            "model_version": "main@5f0b02c",
            "quantization": "bf16",
            "software": "vLLM 0.10.1",
            "accelerator": "NVIDIA H100 SXM",
            "accelerator_count": 1,
            "accelerator_memory": "80 GB",
            "prefix_caching": "disabled",
            "cache_state": "cold",
            "guardrails": {"input_filter": False, "output_filter": False, "names": []},
            "notes": "Clocks locked at 1,980 MHz.",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "url": "http://10.0.3.7:8000",
            "api": "chat",
            "stream": True,
            "protocol": "HTTP/1.1 SSE",
            "observed": {"server": "uvicorn", "models": ["meta-llama/Llama-3.1-8B-Instruct"]},
        },
        "environment": {
            "os": "Ubuntu 24.04.2 LTS",
            "kernel": "6.8.0-60-generic",
            "machine": "x86_64",
            "cpu": "AMD EPYC 9354 32-Core Processor",
            "cores": 64,
            "memory_bytes": 270582939648,
            "python": "3.12.3",
            "inferometer": "0.1.0",
            "hostname": None,
        },
        "plan": {
            "schema": "inferometer/plan/1",
            "name": "chat-20rps",
            "target": {
                "url": "http://10.0.3.7:8000",
                "model": "meta-llama/Llama-3.1-8B-Instruct",
                "api": "chat",
            },
            "load": {
                "model": "open",
                "rate": 20.0,
                "arrival": "poisson",
                "burstiness": 1.0,
                "requests": 1000,
                "drain_s": 30.0,
            },
            "workload": {
                "name": "synthetic-uniform",
                "input_tokens": "uniform(128,512)",
                "output_tokens": "uniform(64,256)",
                "seed": 42,
                "ignore_eos": True,
                "min_tokens": False,
                "temperature": 0.0,
                "repeatable_prompts": False,
                "prompt_format": "auto",
            },
            "tokenizer": {"name": "cl100k_base", "method": "reference"},
        },
        "requests": {
            "sent": 1009,
            "completed": n,
            "failed": 3,
            "cancelled": 0,
            "by_error": {"timeout": 2, "http_5xx": 1},
            "failed_share_ci95": [0.001, 0.0087],
            "warmup": {"sent": 20, "completed": 20},
        },
        "success_rate": {"value": n / 1009, "ci95": [0.9913, 0.999], "succeeded": n, "ended": 1009},
        "refusals": {
            "requests": 1,
            "by_signal": {"finish_reason": 1, "refusal_field": 0, "policy_status": 0},
        },
        "warm_up": {
            "asked": {"requests": 20, "output_tokens": 3000},
            "requests": 20,
            "completed": 20,
            "output_tokens": 3204,
            "reached": True,
            "drained": True,
            "waiting": 0.0,
            "running": 0.0,
            "prefixes": "populated",
            "probes": {
                "most": 12,
                "input_tokens": 319,
                "output_tokens": 161,
                "before_ms": 2210.5,
                "after_ms": [1714.2, 1702.9, 1709.8],
                "variation": 0.0066,
                "limit": 0.1,
                "stable": True,
            },
            "skipped": False,
        },
        "window": {
            "start": "2026-08-01T10:11:14.021Z",
            "duration_s": 52.63,
            "definition": "From the first measured request's due time to the end of the last one; nothing was cut off.",
            "steady_start_s": 5.263,
            "steady_end_s": 52.63,
        },
        "metrics": {name: stats(values[name]) if name in values else None for name in metrics.METRICS},
        "distributions": {
            name: quantiles(values[name]) for name in ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms")
        },
        "itl_shape": {
            "least_output_tokens": 50,
            "answers": n,
            "short_answers": 0,
            "short_share": 0.0,
            **{name: stats(values[name]) for name in ("itl_ms", "jitter_ms", "max_pause_ms")},
            "modes_ms": [14.1, 41.5],
            "modality": "multimodal",
            "tail_ratio": 2.9,
            "tail": "exponential or lighter",
        },
        "first_wave": {"requests": 16, "ttft_p99_ms": 118.2, "ttft_p99_ci95": [108.1, 140.9], "n": n - 16},
        "ttft_by_input": by_input,
        "workload": {
            "items": [
                {"id": "D-4.3.1-input", "name": "Input lengths", "value": "uniform(128,512)"},
                {"id": "D-4.3.1-domain", "name": "Domain", "value": None},
            ],
            "missing": ["D-4.3.1-domain"],
            "fingerprint": None,
            "made": None,
            "prompts": {
                "file": "own.jsonl",
                "format": "jsonl",
                "sha256": "5f" * 32,
                "bytes": 81234,
                "rows": 400,
                "with_system_prompt": 12,
                "input_tokens": {"n": 1000, "mean": 320.5, "std": 10.5, "min": 128, "max": 512},
            },
            "deviations": [],
            "texts": None,
            "drawn": {
                "requests": 1009,
                "input_tokens": drawn(lengths),
                "unshared_input_tokens": drawn(lengths),
                "repeated_input_tokens": drawn(lengths),
                "sent_tokens": drawn(lengths),
                "output_tokens": drawn(outputs),
                "shared": {"requests": 0, "fraction": 0.0, "tokens": None, "groups": [], "curve": [[0, 0]]},
                "prefix_hits": {"exact": 0.0, "blocks": 0.0, "block_tokens": 16},
                "published": [],
            },
            "prefix_hits": {"exact": 0.0, "blocks": 0.0, "block_tokens": 16},
        },
        "by_class": [
            {
                "name": name,
                "requests": {"sent": count + 1, "completed": count, "failed": 1, "cancelled": 0},
                "ttft_ms": stats(ttft[first : first + count]),
                "tpot_ms": None,
                "e2e_ms": stats(e2e[first : first + count]),
                "e2e_per_token_ms": stats(
                    [ms / n for ms, n in zip(e2e, outputs, strict=True)][first : first + count]
                ),
                "input_tokens": stats(lengths[first : first + count]),
                "output_tokens": stats(outputs[first : first + count]),
                "prompt": {"asked_mean": 310.0, "sent_mean": 310.1, "server_mean": None},
                "output": {"asked_mean": 160.0, "local_mean": None, "server_mean": 159.0},
                "waits": {"median_ms": 80.2, "starved": 2, "of": count + 1, "starved_share": 2 / (count + 1)},
                "distributions": {"ttft_ms": quantiles(ttft[first : first + count])},
            }
            for name, first, count in (("chat", 0, 900), ("batch", 900, 106))
        ],
        "conversations": {
            "begun": 403,
            "finished": 396,
            "broken": 3,
            "cut": 4,
            "left_out": 11,
            "by_turn": [
                {
                    "turn": turn,
                    "and_later": turn == 3,
                    "sent": 336,
                    "completed": 335,
                    "ttft_ms": stats(ttft[turn::3]),
                    "e2e_ms": stats(e2e[turn::3]),
                    "input_tokens": stats(lengths[turn::3]),
                    "repeated_mean": 350.5 * (turn - 1),
                    "cached_share": None if turn == 1 else 0.61,
                }
                for turn in (1, 2, 3)
            ],
        },
        "throughput": {
            "output_tok_s": 3118.2,
            "input_tok_s": 6240.9,
            "request_s": 19.47,
            "goodput_request_s": None,
            "whole_run": {
                "output_tok_s": 3033.4,
                "input_tok_s": 6071.2,
                "request_s": 18.96,
                "goodput_request_s": None,
            },
            "cached_input_share": 0.0,
            "cached_prefix_share": None,
            "ci95": {
                "output_tok_s": [2987.0, 3249.5],
                "input_tok_s": None,
                "request_s": [18.3, 20.6],
                "goodput_request_s": None,
            },
        },
        "steady": {
            "duration_s": 47.37,
            "arrivals": 962,
            "completions": 924,
            "completion_ratio": 0.9605,
            "completion_ratio_ci95": [0.931, 0.99],
            "queue": {
                "source": "in_flight",
                "thirds": [44.1, 45.3, 44.2],
                "rise_share": 0.0023,
                "growing": False,
            },
            "output_thirds_tok_s": [3080.5, 3122.0, 3152.1],
            "stable": True,
        },
        "in_flight_tokens": {"mean": 17804.0, "peak": 25120.0},
        "preemption": {
            "source": "server metrics",
            "events": 3.0,
            "requests": None,
            "finished": None,
            "discarded": None,
        },
        "load": {
            "model": "open",
            "offered": {
                **OFFERED,
                "rate": 20.0,
                "rate_of": "requests",
                "arrival": "poisson",
                "burstiness": 1.0,
            },
            "trace": None,
            "held": {"requests": 12, "of": 1009, "ms": stats(late)},
            "achieved": {"request_s": 20.31, "concurrency_mean": 44.9, "concurrency_max": 63},
            "lateness_ms": stats(late),
            "lateness_causes_ms": {
                "scheduling": stats([value * 0.75 for value in late]),
                "socket": stats([value * 0.2 for value in late]),
                "back_pressure": stats([value * 0.05 for value in late]),
            },
            "lateness_shares": {"scheduling": 0.75, "socket": 0.2, "back_pressure": 0.05},
            "arrival_check": {
                "rate": 20.31,
                "rate_expected": 20.0,
                "dispersion": 1.04,
                "dispersion_expected": [0.83, 1.19],
                "lag1": 0.012,
                "lag1_limit": 0.062,
            },
        },
        "tokens": {
            "count_source": "server usage",
            "tokenizer": {
                "kind": "shipped",
                "name": "cl100k_base",
                "version": "tiktoken 0.12.0",
                "vocab_size": 100277,
                "source": "shipped with inferometer",
                "method": "reference",
            },
            "itl_method": "direct",
            "single_token_share": 0.981,
            "events": 156612,
            "tokens": 159620,
            "tokens_per_event": 1.0192,
            "prompt": {
                "asked_mean": 319.4,
                "sent_mean": 319.4,
                "server_mean": 329.4,
                "misses": 0,
                "template": None,
                "counted": {
                    "n": 1000,
                    "mean": 329.4,
                    "p50": 330.0,
                    "p95": 500.0,
                    "p99": 520.0,
                    "min": 138,
                    "max": 522,
                },
            },
            "output": {
                "asked_mean": 160.2,
                "server_mean": 160.1,
                "local_mean": 159.99,
                "misses": 4,
                "counted": None,
            },
        },
        "slos": [
            {"expr": "ttft_p99<500ms", "value": 121.4, "limit": 500.0, "met": True, "ci": [109.2, 140.9]},
            {"expr": "itl_p99<50ms", "value": 47.1, "limit": 50.0, "met": None, "ci": [43.0, 54.8]},
            {"expr": "e2e_p95<2s", "value": 3699.0, "limit": 2000.0, "met": False, "ci": [3610.0, 3741.0]},
        ],
        "server": server_told(),
        "instrument": {
            "timestamp_source": "kernel",
            "workers": 1,
            "merged_share": 0.0,
            "receive_lag_ms": stats([0.02 + rng.expovariate(25) for _ in range(n)]),
            "cpu_fraction": [0.31],
            "run_delay_fraction": [0.002],
            "stall_max_ms": 1.9,
            "clock_step_ms": 0.02,
            "dead_workers": [],
            "calibration": None,
        },
    }


def rich_series() -> Series:
    rng = random.Random(8)  # seeded: the sample is the same everywhere
    whole = parts()
    ttft = [whole["metrics"]["ttft_ms"]["p50"] * rng.lognormvariate(0, 0.25) for _ in range(1000)]
    itl = [rng.lognormvariate(2.65, 0.12) + (rng.random() < 0.01) * rng.uniform(15, 90) for _ in range(20000)]
    t = [0.25 * i for i in range(220)]
    ramp = [min(1.0, at / 4) * max(0.0, min(1.0, (55 - at) / 3)) for at in t]
    return {
        "ttft_ms": distribution(ttft),
        "itl_ms": distribution(itl, 80),
        "tpot_ms": distribution([14.2 + rng.gauss(0, 0.6) for _ in range(1000)]),
        "e2e_ms": distribution([2300 + rng.gauss(0, 600) for _ in range(1000)]),
        "timeline": {
            "t_s": t,
            "output_tok_s": [3100 * r * (1 + rng.gauss(0, 0.06)) for r in ramp],
            "in_flight": [round(45 * r + rng.gauss(0, 4) * (r > 0.2)) for r in ramp],
            "requests_s": [20 * r * (1 + rng.gauss(0, 0.2)) for r in ramp],
            "ttft_p50_ms": [77 + rng.gauss(0, 3) if at < 52 else None for at in t],
            "ttft_p99_ms": [112 + abs(rng.gauss(0, 12)) if at < 52 else None for at in t],
            "errors": [2 if i == 90 else 1 if i == 141 else 0 for i in range(220)],
        },
        "lateness": {
            "t_s": [i * 0.0525 for i in range(1000)],
            "ms": [0.02 + rng.expovariate(12) for _ in range(1000)],
        },
        "server": {
            "running": {"t_s": [-0.2, *t, 56.0], "values": [0.0, *(44 * r for r in ramp), 0.0]},
            "waiting": {"t_s": t, "values": [0.0 for _ in t]},
            "prefix_hit_share": {"t_s": [1.0], "values": [0.02]},
        },
        "lengths": {
            "input_tokens": histogram({name: [128, 320, 512] for name in ("asked", "sent", "counted")}),
            "output_tokens": histogram({"asked": [16, 2048], "counted": [15, 2049]}),
        },
    }


def valid_summary() -> Summary:
    return compose(version="0.1.0", status="VALID", checks=copy.deepcopy(VALID_CHECKS), **parts())


def inconclusive_summary() -> Summary:
    undecided = {
        "token_counts": check("token_counts", "unsure"),
        "samples_p99": check("samples_p99", "unsure", 412, 1000),
    }
    checks = [undecided.get(c["code"], c) for c in copy.deepcopy(VALID_CHECKS)]
    return compose(version="0.1.0", status="INCONCLUSIVE", checks=checks, **parts())


def invalid_summary() -> Summary:
    """A closed loop against a server that fails, answers short, caches, and calls itself something vile."""
    whole = copy.deepcopy(parts())
    whole["sut"] |= {
        "model": HOSTILE,
        "url": "http://h/?a=<b>&c=\"d'",
        "software": HOSTILE,
        "boundary": None,
        "notes": HOSTILE,
    }
    whole["sut"]["observed"] = {"server": HOSTILE, "models": [HOSTILE, "b"]}
    whole["sut"]["guardrails"] = {"input_filter": None, "output_filter": True, "names": [HOSTILE]}
    whole["plan"]["target"]["model"] = HOSTILE
    whole["requests"] |= {
        "completed": 812,
        "failed": 180,
        "cancelled": 8,
        "by_error": {"reset": 131, "http_429": 49},
    }
    whole["run"]["interrupted"] = True
    whole["load"] |= {"model": "closed", "offered": {**OFFERED, "concurrency": 64}, "arrival_check": None}
    whole["tokens"] |= {"itl_method": "chunk", "single_token_share": 0.12}
    whole["server"] |= {"engine": HOSTILE, "seen": False}
    whole["server"]["endpoints"][0]["url"] = HOSTILE
    failing = {
        "error_rate": check(
            "error_rate", "fail", 0.1815, 0.01, "share", by_error={"reset": 131, "http_429": 49, HOSTILE: 1}
        ),
        "output_length": check(
            "output_length",
            "fail",
            0.61,
            0.05,
            "share",
            asked_mean=160.2,
            counted_mean=71.3,
            finish_reasons={"stop": 500},
        ),
        "cache_hits": check("cache_hits", "fail", 0.88, 0.05, "share"),
        "concurrency_held": check("concurrency_held", "fail", 0.81, 0.95, "share", mean=51.9, asked=64),
        "interrupted": check("interrupted", "unsure"),
        "tokens_per_event": check("tokens_per_event", "note", 0.12, 0.9, "share", method="chunk"),
        "lateness": check("lateness", "pass", 0.0004, 0.01, "", loop="closed", p50=0.05, p99=0.41),
        "arrival_rate": check("arrival_rate", "na"),
        "arrival_dispersion": check("arrival_dispersion", "na"),
        "arrival_lag1": check("arrival_lag1", "na"),
    }
    checks = [failing.get(c["code"], c) for c in copy.deepcopy(VALID_CHECKS)]
    return compose(version="0.1.0", status="INVALID", checks=checks, **whole)


def _emptied(value: Any) -> Any:
    """Every number and name null, every list empty, every count zero, the shape unchanged."""
    if isinstance(value, dict):
        return {key: _emptied(part) for key, part in value.items()}
    return [] if isinstance(value, list) else None


def empty_summary() -> Summary:
    """Nothing ever answered: null wherever the schema allows it."""
    old = parts()
    whole = _emptied(old)
    whole["conversations"] = whole["load"]["held"] = whole["server"] = whole["preemption"] = None
    for name in ("id", "name", "started"):
        whole["run"][name] = old["run"][name]
    whole["run"] |= {"interrupted": True, "simulated": False}
    whole["sut"] |= {"api": "chat", "stream": False, "protocol": "HTTP/1.1"}
    whole["plan"] = {}
    whole["sut"]["cache_state"] = "unknown"
    whole["workload"] = {
        "fingerprint": None,
        "made": None,
        "items": [],
        "missing": [],
        "prompts": None,
        "deviations": [],
        "texts": None,
        "drawn": None,
        "prefix_hits": None,
    }
    whole["requests"] = {
        "sent": 0,
        "completed": 0,
        "failed": 0,
        "cancelled": 0,
        "by_error": {},
        "failed_share_ci95": None,
        "warmup": {"sent": 0, "completed": 0},
    }
    whole["success_rate"] = {"value": None, "ci95": None, "succeeded": 0, "ended": 0}
    signals = dict.fromkeys(("finish_reason", "refusal_field", "policy_status"), 0)
    whole["refusals"] = {"requests": 0, "by_signal": signals}
    whole["distributions"] = dict.fromkeys(whole["distributions"])
    whole["itl_shape"] = whole["first_wave"] = whole["steady"] = whole["in_flight_tokens"] = None
    nothing = {"requests": 0, "output_tokens": 0}
    whole["warm_up"] |= {**nothing, "asked": nothing, "completed": 0, "reached": True, "skipped": False}
    whole["warm_up"]["probes"] |= {"most": 0, "after_ms": [], "limit": 0.1}
    whole["window"]["definition"] = "Nothing was measured."
    for side in ("prompt", "output"):
        whole["tokens"][side]["counted"] = None
    whole["metrics"] = dict.fromkeys(metrics.METRICS)
    whole["load"] |= {"model": "closed", "offered": {**OFFERED}, "lateness_ms": None, "arrival_check": None}
    whole["load"] |= {"lateness_causes_ms": None, "lateness_shares": None}
    whole["throughput"]["ci95"] = dict.fromkeys(metrics.RATES)
    whole["instrument"]["receive_lag_ms"] = None
    checks = [check(c["code"], "na") for c in VALID_CHECKS[:-1]] + [check("few_samples", "unsure", 0, 2)]
    return compose(version="0.1.0", status="INCONCLUSIVE", checks=checks, **whole)


def empty_series() -> Series:
    none: dict[str, Any] = {"hist": {"edges": [], "counts": []}, "cdf": {"x": [], "p": []}}
    names = ("t_s", "output_tok_s", "in_flight", "requests_s", "ttft_p50_ms", "ttft_p99_ms", "errors")
    return {
        **dict.fromkeys(("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"), none),
        "timeline": {name: [] for name in names},
        "lateness": {"t_s": [], "ms": []},
        "lengths": {"input_tokens": None, "output_tokens": None},
    }


SAMPLES = {
    "valid": valid_summary,
    "invalid": invalid_summary,
    "inconclusive": inconclusive_summary,
    "empty": empty_summary,
}


@pytest.fixture
def hostile() -> str:
    return HOSTILE


@pytest.fixture(params=list(SAMPLES))
def sample(request: pytest.FixtureRequest) -> tuple[Summary, Series]:
    """Each sample in turn, with its series."""
    return SAMPLES[request.param](), empty_series() if request.param == "empty" else rich_series()


@pytest.fixture
def valid() -> Summary:
    return valid_summary()


@pytest.fixture
def invalid() -> Summary:
    return invalid_summary()


@pytest.fixture
def empty() -> Summary:
    return empty_summary()


@pytest.fixture
def series() -> Series:
    return rich_series()


@pytest.fixture(scope="session")
def summary_text() -> str:
    """A summary as JSON, for tests that damage a fresh copy in every example."""
    return json.dumps(invalid_summary())
