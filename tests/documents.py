"""Hand-made documents of tests and campaigns: the draft's own example numbers, tables 1 to 14, and cases that go wrong."""

from __future__ import annotations

import copy
import math
from typing import Any

from inferometer.report.campaign.titles import WORDS

Document = dict[str, Any]

PLAN_HASH = "sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab"
REASON = {
    "code": "error_rate",
    "message": "Failed requests: 18.2 % of the requests failed, the limit is 1 %.",
    "run": "20260801T111500Z-memory-pressure-6",
}


def value(
    name: str, label: str, amount: Any, unit: str = "", ci: Any = None, note: str = "", capacity: bool = False
) -> Document:
    return {
        "name": name,
        "label": label,
        "value": amount,
        "unit": unit,
        "ci": ci,
        "note": note,
        "capacity": capacity,
    }


def table(
    name: str,
    title: str,
    section: str,
    columns: list[tuple[str, str, str]],
    rows: list[list[Any]],
    notes: list[str] | None = None,
    capacity: bool = False,
) -> Document:
    heads = [{"name": key, "label": label, "unit": unit} for key, label, unit in columns]
    return {
        "name": name,
        "title": title,
        "section": section,
        "columns": heads,
        "rows": rows,
        "notes": notes or [],
        "capacity": capacity,
    }


def axis(label: str, unit: str = "", log: bool = False) -> Document:
    return {"label": label, "unit": unit, "log": log}


def mark(label: str, x: float | None = None, y: float | None = None) -> Document:
    return {"label": label, "x": x, "y": y}


def figure(
    name: str,
    title: str,
    kind: str,
    x: Document,
    y: Document,
    series: list[tuple[str, list[Any], list[Any]]],
    marks: list[Document] | None = None,
    capacity: bool = False,
) -> Document:
    lines = [{"label": label, "x": xs, "y": ys} for label, xs, ys in series]
    return {
        "name": name,
        "title": title,
        "kind": kind,
        "x": x,
        "y": y,
        "series": lines,
        "marks": marks or [],
        "capacity": capacity,
    }


METRIC_VALUE = [("metric", "Metric", ""), ("value", "Value", "")]
PERCENTILES = [("p50", "P50", "ms"), ("p95", "P95", "ms"), ("p99", "P99", "ms")]
LATENCIES = [
    ("ttft_p50", "TTFT P50", "ms"),
    ("ttft_p99", "TTFT P99", "ms"),
    ("tpot_p50", "TPOT P50", "ms"),
    ("tpot_p99", "TPOT P99", "ms"),
]


def ttft() -> Document:
    rows = [["Requests", 10_000], ["TTFT P50", 127], ["TTFT P90", 245], ["TTFT P95", 312], ["TTFT P99", 524]]
    rows += [["TTFT P99.9", 891], ["TTFT Mean", 156], ["TTFT Min", 89], ["TTFT Max", 1243]]
    lengths = [["0-256", 95, 198, 312], ["256-512", 142, 287, 445], ["512-1024", 198, 412, 623]]
    lengths += [["1024-2048", 312, 587, 891], ["2048+", 523, 912, 1243], ["4096+", None, None, None]]
    shares = [i / 60 for i in range(61)]
    curve = [89 + 38 * (-math.log2(max(1 - share, 1e-3))) ** 1.1 for share in shares]
    return {
        "values": [
            value("ttft_p50", "TTFT P50", 127.2, "ms", [124.9, 129.8]),
            value("ttft_p99", "TTFT P99", 524.31, "ms", [501.2, 548.0], "10,000 samples"),
            value("queue_wait", "Queue wait", None, "ms", note="the server reports none"),
        ],
        "tables": [
            table("results", "TTFT results", "5.1.5.2", [METRIC_VALUE[0], ("value", "Value", "ms")], rows),
            table(
                "by_length",
                "TTFT by input length",
                "5.1.5.3",
                [("input", "Input tokens", ""), *PERCENTILES],
                lengths,
            ),
        ],
        "figures": [
            figure(
                "cdf",
                "Distribution of TTFT",
                "cdf",
                axis("TTFT", "ms", log=True),
                axis("Share of requests at or below"),
                [("10 req/s", curve, shares)],
                [mark("P50", x=127.2), mark("P99", x=524.3)],
            )
        ],
        "notes": ["Lengths of the prompts vary, so TTFT is given by length as well."],
    }


def throughput() -> Document:
    rows = [["Max Output Throughput", "tok/s", 2847], ["Max Request Throughput", "req/s", 18.2]]
    rows += [["Max Input Throughput", "tok/s", 5123], ["Sustainable Load", "req/s", 20]]
    rows += [["Tokens per GPU-second", "tok/s/GPU", 356]]
    latency = [
        ["TTFT, ms", 312, 687, 1124],
        ["TPOT, ms", 42, 78, 134],
        ["End-to-End, ms", 6200, 11400, 18700],
    ]
    probes = [10, 12.5, 15, 17.5, 20, 22.5, 21.25, 20.6]
    return {
        "values": [
            value("max_output", "Max output throughput", 2847.4, "tok/s", [2790.3, 2901.6], capacity=True),
            value("sustainable", "Sustainable load", 20.04, "req/s", [19.55, 20.61], capacity=True),
            value("batch_utilisation", "Batch utilisation", None, "%", note="no gauge of batch size"),
        ],
        "tables": [
            table(
                "summary",
                "Throughput summary",
                "5.2.5.1",
                [METRIC_VALUE[0], ("unit", "Unit", ""), ("value", "Value", "")],
                rows,
                ["Unconstrained by latency."],
                capacity=True,
            ),
            table(
                "latency",
                "Latency at maximum throughput",
                "5.2.5.2",
                [
                    METRIC_VALUE[0],
                    *((name, label, "") for name, label in (("p50", "P50"), ("p95", "P95"), ("p99", "P99"))),
                ],
                latency,
                capacity=True,
            ),
        ],
        "figures": [
            figure(
                "search",
                "The search, probe by probe",
                "points",
                axis("Probe"),
                axis("Offered load", "req/s"),
                [
                    ("sustained", [1, 2, 3, 4, 5], probes[:5]),
                    ("not sustained", [6, 7, 8], probes[5:]),
                ],
                [mark("sustainable load", y=20.04)],
                capacity=True,
            )
        ],
        "notes": ["The search ended at 20.04 req/s, between a level that held and one that did not."],
    }


def tradeoff() -> Document:
    rows: list[list[Any]] = [
        [2, 284, 95, 142, 32, 41, 100],
        [6, 852, 102, 178, 34, 48, 100],
        [10, 1420, 128, 267, 38, 62, 100],
        [14, 1988, 198, 512, 48, 98, 100],
        [18, 2534, 378, 1234, 72, 198, 99.8],
        [22, 2712, 823, 3456, 142, 523, 94.1],
        [26, 2604, 1911, 8123, 188, 911, None],
    ]
    columns = [
        ("offered", "Offered", "req/s"),
        ("achieved", "Achieved", "tok/s"),
        *LATENCIES,
        ("success", "Success", "%"),
    ]
    return {
        "values": [
            value("knee", "Knee point", 14, "req/s", note="TTFT P99 exceeds 2x minimum", capacity=True),
            value("saturation", "Saturation point", 26, "req/s", note="throughput falls", capacity=True),
            value("optimal", "Optimal operating point", None, "req/s", note="no objective was declared"),
        ],
        "tables": [
            table("levels", "Throughput and latency by load", "5.3.5", columns, rows, capacity=True),
        ],
        "figures": [
            figure(
                "curve",
                "Throughput and latency",
                "lines",
                axis("Achieved throughput", "tok/s"),
                axis("TTFT", "ms", log=True),
                [
                    ("TTFT P99", [row[1] for row in rows], [row[3] for row in rows]),
                    ("TTFT P50", [row[1] for row in rows], [row[2] for row in rows]),
                ],
                [mark("knee, 14 req/s", 1988, 512), mark("saturation, 26 req/s", 2604, 8123)],
                capacity=True,
            )
        ],
        "notes": [],
    }


def itl() -> Document:
    rows = [["ITL Samples", 15_234], ["ITL P50", 38], ["ITL P90", 52], ["ITL P95", 67], ["ITL P99", 124]]
    rows += [["ITL P99.9", 312], ["ITL Mean", 42], ["ITL Std Dev", 28], ["P99/P50 Ratio", 3.26]]
    shares = [i / 80 for i in range(81)]
    curve = [30 + 9 * (-math.log(max(1 - share, 4e-4))) ** 1.3 for share in shares]
    per_request = [["Jitter", 11.2, 24.8, 41.5], ["Maximum pause", 86.1, 188.4, 310.9]]
    return {
        "values": [
            value("ratio", "ITL P99/P50", 3.263, "", [3.11, 3.42]),
            value("modality", "Modality", "multimodal: 2 modes"),
            value("tail", "Tail", "heavy-tailed"),
            value("direct", "Every gap seen", True),
        ],
        "tables": [
            table(
                "results", "ITL results", "5.4.5", METRIC_VALUE, rows, ["In ms, but for samples and ratio."]
            ),
            table(
                "per_request",
                "By request",
                "5.4.4.2",
                [METRIC_VALUE[0], *PERCENTILES],
                per_request,
            ),
        ],
        "figures": [
            figure(
                "cdf",
                "Distribution of ITL",
                "cdf",
                axis("ITL", "ms"),
                axis("Share of gaps at or below"),
                [
                    (f"{percent} %", [x * factor for x in curve], shares)
                    for percent, factor in ((25, 1.0), (50, 1.2), (75, 1.6), (90, 2.4))
                ],
                [mark("P99 at 25 %", x=124)],
            )
        ],
        "notes": ["3 % of the requests had fewer than 50 output tokens and are left out."],
    }


def capacity() -> Document:
    columns = [
        ("concurrency", "Concurrency", ""),
        ("completion", "Completion", "%"),
        ("ttft_p99", "TTFT P99", "ms"),
        ("tpot_p99", "TPOT P99", "ms"),
        ("errors", "Errors", ""),
        ("status", "Status", ""),
    ]
    rows = [
        [8, 100, 142, 38, 0, "Pass"],
        [16, 100, 178, 42, 0, "Pass"],
        [32, 100, 267, 52, 0, "Pass"],
        [64, 99.7, 523, 78, 0, "Pass"],
        [128, 97.2, 1234, 156, 3, "Fail"],
    ]
    return {
        "values": [
            value("max", "Maximum concurrent requests", 64, "", [64, 68], capacity=True),
            value("throughput", "Output throughput there", 2611.7, "tok/s", capacity=True),
            value("in_flight", "Tokens in flight there, mean", 38_452.1, "tokens", capacity=True),
        ],
        "tables": [
            table("search", "Capacity search results", "5.5.5", columns, rows, capacity=True),
        ],
        "figures": [
            figure(
                "search",
                "Latency by concurrency",
                "lines",
                axis("Concurrency", "", log=True),
                axis("P99", "ms", log=True),
                [
                    ("TTFT", [row[0] for row in rows], [row[2] for row in rows]),
                    ("TPOT", [row[0] for row in rows], [row[3] for row in rows]),
                ],
                [mark("maximum", x=64)],
                capacity=True,
            )
        ],
        "notes": ["No threshold of TTFT was declared, so none was held."],
    }


def fairness() -> Document:
    columns = [("class", "Class", ""), ("count", "Count", ""), *LATENCIES]
    rows = [["Short", 4012, 89, 234, 35, 67], ["Long", 988, 312, 1234, 42, 89]]
    metrics = [["Jain's Fairness Index", 0.87], ["Short Class Starvation, %", 0.3]]
    metrics += [["Long Class Starvation, %", 2.1]]
    inflation = [["Short", 41.3, 89, 2.155], ["Long", 287.4, 312, 1.086]]
    return {
        "values": [
            value("jain", "Jain's Fairness Index", 0.8712, "", [0.861, 0.882], "below 0.9: unfair"),
            value("inflation_short", "Inflation, short", 2.155, "x", [2.04, 2.28]),
            value("inflation_long", "Inflation, long", 1.086, "x", [0.97, 1.21]),
        ],
        "tables": [
            table("classes", "Results by class", "5.6.5", columns, rows),
            table("metrics", "Fairness metrics", "5.6.5", METRIC_VALUE, metrics),
            table(
                "inflation",
                "Latency inflation",
                "5.6.4",
                [
                    ("class", "Class", ""),
                    ("isolated", "Alone", "ms"),
                    ("mixed", "Mixed", "ms"),
                    ("x", "Inflation", "x"),
                ],
                inflation,
            ),
        ],
        "figures": [
            figure(
                "classes",
                "TTFT P50 of each class, alone and mixed",
                "bars",
                axis("Class"),
                axis("TTFT P50", "ms"),
                [("alone", ["Short", "Long"], [41.3, 287.4]), ("mixed", ["Short", "Long"], [89, 312])],
            )
        ],
        "notes": [],
    }


def prefix_cache() -> Document:
    rows = [
        ["Cache Disabled", 312, 423, 534],
        ["Cache (Cold)", 134, 198, 267],
        ["Cache (Warm)", 98, 156, 212],
    ]
    columns = [
        ("configuration", "Configuration", ""),
        *((name, f"TTFT {label}", unit) for name, label, unit in PERCENTILES),
    ]
    names = [row[0] for row in rows]
    return {
        "values": [
            value("reduction", "TTFT reduction, P50", 68.6, "%", [66.9, 70.1]),
            value("hit_rate", "Cache hit rate", None, "%", note="the server does not report cached tokens"),
            value("improvement", "Throughput improvement", 23.4, "%", [19.8, 27.2]),
        ],
        "tables": [table("effect", "Cache effectiveness", "5.7.5", columns, rows)],
        "figures": [
            figure(
                "cold_warm",
                "TTFT by state of the cache",
                "bars",
                axis("State"),
                axis("TTFT", "ms"),
                [
                    (label, names, [row[i] for row in rows])
                    for i, label in ((1, "P50"), (2, "P95"), (3, "P99"))
                ],
            )
        ],
        "notes": [],
    }


def memory_pressure() -> Document:
    columns = [
        ("level", "Oversub Level", ""),
        ("complete", "Complete", "%"),
        ("preempt", "Preempt", "%"),
        ("fail", "Fail Rate", "%"),
        ("ttft_p99", "TTFT P99", "ms"),
    ]
    rows = [
        ["100% (base)", 99.7, 0, 0.3, 523],
        ["110%", 98.2, 5.2, 1.8, 789],
        ["125%", 94.5, None, 5.5, 1456],
        ["150%", 82.3, None, 17.7, 3234],
    ]
    return {
        "values": [
            value("completion_worst", "Completion at 150 %", 82.3, "%", [80.6, 83.9], capacity=True),
            value("recovery", "Preemption recovery", None, "%", note="counters tell no requests", capacity=True),
        ],
        "tables": [table("levels", "Degradation by level", "5.8.5", columns, rows, capacity=True)],
        "figures": [
            figure(
                "pressure",
                "Completion and failure under pressure",
                "lines",
                axis("Concurrency as a share of capacity", "%"),
                axis("Requests", "%"),
                [("complete", [100, 110, 125, 150], [99.7, 98.2, 94.5, 82.3]),
                 ("failed", [100, 110, 125, 150], [0.3, 1.8, 5.5, 17.7]),
                 ("preempted", [100, 110, 125, 150], [0, 5.2, None, None])],
                capacity=True,
            )
        ],
        "notes": ["At 150 % the server answered 429 to one request in five."],
    }  # fmt: skip


def long_context() -> Document:
    columns = [
        ("context", "Context", "tokens"),
        ("mean", "TTFT Mean", "ms"),
        ("p95", "TTFT P95", "ms"),
        ("per_1k", "ms/1K tokens", ""),
    ]
    rows = [[1024, 89, 112, 76], [4096, 289, 367, 63], [16384, 1023, 1287, 59], [65536, 4234, 5123, 62]]
    rows += [[131072, 9123, 11234, 68]]
    lengths = [row[0] for row in rows]
    return {
        "values": [
            value("exponent", "Scaling exponent k", 0.9871, "", [0.961, 1.013]),
            value("fit", "Best fit", "linear"),
            value("r2", "R\u00b2", 0.9987),
            value("per_token", "Time per input token", 69.2, "\u00b5s", [67.9, 70.4]),
        ],
        "tables": [table("lengths", "Long context scaling", "5.9.5", columns, rows)],
        "figures": [
            figure(
                "scaling",
                "TTFT by context length",
                "lines",
                axis("Context", "tokens", log=True),
                axis("TTFT mean", "ms", log=True),
                [
                    ("measured", lengths, [row[1] for row in rows]),
                    ("linear fit", lengths, [0.0692 * length + 18 for length in lengths]),
                    ("power law", lengths, [0.0961 * length**0.971 for length in lengths]),
                ],
            )
        ],
        "notes": ["Lengths asked for: 1024, 4096, 16384, 65536, 131072."],
    }


def guardrail() -> Document:
    columns = [
        ("configuration", "Configuration", ""),
        ("ttft_p50", "TTFT P50", "ms"),
        ("ttft_p99", "TTFT P99", "ms"),
        ("e2e_p50", "E2E P50", "s"),
        ("e2e_p99", "E2E P99", "s"),
    ]
    rows = [
        ["Baseline", 98, 234, 4.2, 8.7],
        ["Input Filter", 112, 267, 4.3, 8.9],
        ["Output Filter", 101, 242, 4.8, 9.8],
        ["Full Filter", 118, 289, 5.0, 10.2],
    ]
    impact = [["Baseline", 2867, "-"], ["Input Filter", 2756, -3.9], ["Output Filter", 2412, -15.9]]
    impact += [["Full Filter", 2289, -20.2]]
    names = [row[0] for row in rows]
    return {
        "values": [
            value("overhead_total", "Total overhead, end to end, P50", 812.4, "ms", [640.1, 988.7]),
            value("overhead_input", "Input filter overhead, TTFT P50", 14.1, "ms", [9.8, 18.6]),
            value("reduction", "Throughput reduction, full", 20.2, "%", [18.4, 21.9]),
        ],
        "tables": [
            table("overhead", "Guardrail overhead at 50 % of capacity", "5.10.5", columns, rows),
            table(
                "throughput",
                "Throughput impact",
                "5.10.5",
                [
                    ("configuration", "Configuration", ""),
                    ("throughput", "Max Throughput", "tok/s"),
                    ("change", "Reduction", "%"),
                ],
                impact,
                capacity=True,
            ),
        ],
        "figures": [
            figure(
                "overhead",
                "TTFT by configuration",
                "bars",
                axis("Configuration"),
                axis("TTFT", "ms"),
                [("P50", names, [row[1] for row in rows]), ("P99", names, [row[2] for row in rows])],
            )
        ],
        "notes": [],
    }


PARTS = {
    "ttft": ("5.1", "Time to First Token", ttft),
    "throughput": ("5.2", "Output Token Throughput", throughput),
    "tradeoff": ("5.3", "Throughput-Latency Tradeoff", tradeoff),
    "itl": ("5.4", "Inter-Token Latency Distribution", itl),
    "capacity": ("5.5", "Concurrent Request Capacity", capacity),
    "fairness": ("5.6", "Scheduling Fairness", fairness),
    "prefix-cache": ("5.7", "Prefix Cache Effectiveness", prefix_cache),
    "memory-pressure": ("5.8", "Memory Pressure Behavior", memory_pressure),
    "long-context": ("5.9", "Long Context Scaling", long_context),
    "guardrail": ("5.10", "Guardrail Overhead", guardrail),
}


def finding(
    id_: str, state: str, level: str = "MUST", note: str = "as it should be", run: Any = None
) -> Document:
    section = id_.split("-")[1]
    rule = {"id": id_, "section": section, "level": level, "text": f"What draft {section} asks for."}
    return rule | {"state": state, "note": note, "run": run}


def statement(label: str, test: str = "ttft") -> Document:
    """In the form of judge/compliance."""
    findings = [finding("D-4.3.3-seed", "satisfied"), finding("D-4.1-boundary", "declared", note="engine")]
    if label != "unconditionally compliant":
        findings.append(finding("D-4.6.1-grpc-engine", "violated", "RECOMMENDED", "HTTP with SSE was used."))
    if label == "not compliant":
        run = f"20260801T101112Z-{test}-1"
        findings.append(finding("D-5.8.3-duration", "violated", "MUST", "lasted 6 s, at least 120 s", run))
        findings.append(finding("D-4.7.2-ntp", "unknown", "MUST", "nobody said how clocks were set"))
    return {
        "draft": "draft-gaikwad-llm-benchmarking-methodology-00",
        "test": test,
        "section": "5.1",
        "label": label,
        "counts": {"MUST": {"satisfied": 1, "declared": 1}},
        "deviations": [one for one in findings if one["state"] in ("violated", "unknown")],
        "limitations": ["D-4.1-boundary: engine (declared by the tester, not observed)"],
        "findings": findings,
    }


def sut() -> Document:
    return {
        "boundary": "engine",
        "model_version": "main@5f0b02c",
        "quantization": "bf16",
        "software": "vLLM 0.10.1",
        "accelerator": "NVIDIA H100 SXM",
        "accelerator_count": 8,
        "accelerator_memory": "80 GB",
        "prefix_caching": "disabled",
        "cache_state": "cold",
        "guardrails": {"input_filter": False, "output_filter": False, "names": []},
        "notes": None,
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "url": "http://10.0.3.7:8000",
        "api": "chat",
        "stream": True,
        "protocol": "HTTP/1.1 SSE",
        "observed": {"server": "uvicorn", "models": ["meta-llama/Llama-3.1-8B-Instruct"]},
    }


def one_test(name: str, label: str = "conditionally compliant", **changes: Any) -> Document:
    """A test that went well, but for what `changes` says."""
    section, title, make = PARTS[name]
    run = f"20260801T101112Z-{name}-1"
    document: Document = {
        "schema": "inferometer/test/1",
        "version": "0.1.0",
        "test": name,
        "section": section,
        "title": title,
        "objective": WORDS[name].objective,
        "started": "2026-08-01T10:11:12.482Z",
        "ended": "2026-08-01T10:31:40.002Z",
        "simulated": False,
        "quick": False,
        "ended_by": None,
        "problem": None,
        "parameters": {"duration_s": 300.0, "percent": [25, 50], "rates": [13.37], "min_rate": None},
        "plan": {
            "schema": "inferometer/plan/1",
            "load": {"model": "open", "rate": 13.37, "arrival": "poisson"},
            "workload": {"name": "synthetic-uniform", "seed": 42, "input_tokens": "uniform(128,512)"},
            "tokenizer": {"name": "cl100k_base", "method": "reference"},
        },
        "plan_hash": PLAN_HASH,
        "verdict": {"status": "VALID", "reasons": []},
        "compliance": statement(label),
        "switches": [],
        "runs": [
            {
                "run": run,
                "part": "level",
                "at": {"rate": 13.37},
                "why": "the level that was asked for, 13.37 req/s",
                "verdict": "VALID",
                "summary_sha256": "ab" * 32,
            }
        ],
        "undecided": [],
        **make(),
    }
    return document | changes


DISCLOSED = {
    "Load": "open loop, 13.37 requests/s, Poisson arrivals",
    "Requests": "10 000 sent, 9 998 completed, 2 failed, 0 cancelled (failures: timeout 2)",
    "Token counts": "from usage; special tokens (BOS, EOS) are left out of the client's counts",
    "Chunking": "98.1 % of 1 596 120 events carry one token; mean 1.019 tokens an event",
    "ITL option": "direct: over 90 % of the events carry one token (draft B.2.1)",
    "Time stamps": "kernel receive time of the bytes that complete each event",
    "Clocks": "all latencies are differences on the client's one monotonic clock; no adjustment was applied",
    "Warm-up": "100 requests sent, 100 completed, kept apart",
    "Prefix caching": "disabled; cache before the run: cold (declared)",
    "Guardrails": "input filter off, output filter off, systems not declared, refused requests 0",
}


MINIMUM: Document = {
    "model": "meta-llama/Llama-3.1-8B-Instruct (main@5f0b02c)",
    "hardware": "NVIDIA H100 SXM x 8",
    "software": "vLLM 0.10.1",
    "boundary": "Model Engine",
    "workload": "synthetic-uniform",
    "load_model": "open-loop 13.37 req/s",
    "request_count": 10_000,
    "test_duration_s": 748.2,
    "ttft_p50_ms": 127.2,
    "ttft_p99_ms": 524.31,
    "tpot_p50_ms": 42.04,
    "tpot_p99_ms": 134.4,
    "max_throughput_tok_s": 2847.4,
    "throughput_at_p99_ttft_500ms_tok_s": None,
    "notes": ["HTTP with SSE in place of gRPC.", "Guardrails: input filter off, output filter off"],
}


def campaign(tests: list[Document] | None = None, **changes: Any) -> Document:
    """All ten tests, one INVALID and partial, one INCONCLUSIVE, one without a compliance statement."""
    if tests is None:
        tests = [one_test(name) for name in PARTS]
        switch = {
            "what": "prefix_cache",
            "state": "off",
            "status": "verified",
            "how": "hook",
            "evidence": "0 hits",
        }
        tests[6]["switches"] = [switch, switch | {"state": "on", "status": "declared", "evidence": None}]
        tests[7] |= {
            "ended_by": "server",
            "problem": "The server refused connections at 150 % of capacity.",
            "verdict": {"status": "INVALID", "reasons": [REASON]},
            "compliance": statement("not compliant"),
        }
        tests[8] |= {"undecided": ["Linear and power law fit equally well."]}
        tests[8]["verdict"] = {
            "status": "INCONCLUSIVE",
            "reasons": [{"code": "undecided", "message": "The best fit could not be settled.", "run": None}],
        }
        tests[9] |= {"compliance": None}
    document: Document = {
        "schema": "inferometer/campaign/1",
        "version": "0.1.0",
        "id": "20260801T101112Z-h100",
        "name": "h100",
        "started": tests[0]["started"],
        "ended": tests[-1]["ended"],
        "simulated": False,
        "quick": False,
        "sut": sut(),
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
        "tokenizer": {
            "kind": "shipped",
            "name": "cl100k_base",
            "version": "tiktoken 0.9.0",
            "vocab_size": 100277,
            "source": "tiktoken",
            "method": "reference",
        },
        "verdict": {"status": "INVALID", "reasons": [REASON]},
        "minimum": copy.deepcopy(MINIMUM),
        "disclosed": [{"name": name, "value": words} for name, words in DISCLOSED.items()],
        "tests": tests,
        "compliance": statement("not compliant", "campaign")
        | {"findings": [finding("D-4.3.2.1-required", "satisfied", "REQUIRED")], "deviations": []},
        "reproduction": {
            "command": "inferometer test all --plan test-plan.yaml --rate 13.37",
            "plan_file": {"name": "h100", "load": {"rate": 13.37}},
            "versions": {"inferometer": "0.1.0", "python": "3.12.3"},
            "seeds": [42],
            "workloads": [{"test": one["test"], "fingerprint": "sha256:" + "cd" * 32} for one in tests],
            "run_folders": [one["runs"][0]["run"] for one in tests if one["runs"]],
        },
        "redacted": None,
    }
    return document | changes


def valid() -> Document:
    """One test, alone, all in order."""
    one = one_test("ttft", "unconditionally compliant")
    return campaign([one], verdict={"status": "VALID", "reasons": []})


def simulated() -> Document:
    """Quick and in virtual time."""
    one = one_test("itl", simulated=True, quick=True, compliance=None)
    return campaign([one], simulated=True, quick=True, verdict={"status": "VALID", "reasons": []})


def empty() -> Document:
    """It ended before anything was measured."""
    one = one_test("tradeoff", ended_by="interrupted", problem="Interrupted before the first level.")
    one |= {
        "values": [],
        "tables": [],
        "figures": [],
        "runs": [],
        "notes": [],
        "compliance": None,
        "plan": {},
    }
    one["parameters"] = {}
    one["verdict"] = {"status": "INCONCLUSIVE", "reasons": []}
    document = campaign([one], verdict={"status": "INCONCLUSIVE", "reasons": []}, compliance={})
    document["minimum"] = dict.fromkeys(MINIMUM) | {"notes": []}
    del document["disclosed"]
    document["sut"] |= dict.fromkeys(("boundary", "model", "model_version", "software", "accelerator", "url"))
    document["tokenizer"] = dict.fromkeys(document["tokenizer"])
    return document


SAMPLES = {"all": campaign, "valid": valid, "simulated": simulated, "empty": empty}
