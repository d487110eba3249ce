"""Evidence of tests in which nothing is amiss, as plain data, of which a test of the statement spoils one fact at a time."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.judge.compliance.evidence import Evidence, Ran, Sheet, Shown
from inferometer.plan.procedure_parameters import NAMES, Tests
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan

Spec = dict[str, Any]
"""plan, parameters, runs ([{part, at, summary}]), switches, values, tables ({name: [section, rows, empty]}), figures."""

ITEMS = ("input", "output", "control", "domain", "language", "system-prompt", "prefix")
WORKLOADS = {
    "capacity": "synthetic-uniform",
    "fairness": "synthetic-skewed",
    "prefix-cache": "code-completion",
    "memory-pressure": "long-context",
    "long-context": "long-context",
}
"""All others: conversation, as gateways have it."""
DATASETS = {"conversation": "sharegpt", "code-completion": "the-stack"}
SHEETS = {
    "ttft": [("ttft", "5.1.5.2"), ("ttft_by_input", "5.1.5.3")],
    "throughput": [("summary", "5.2.5.1"), ("latency", "5.2.5.2")],
    "tradeoff": [("levels", "5.3.5")],
    "itl": [("itl", "5.4.5"), ("per_request", "5.4.4.2")],
    "capacity": [("search", "5.5.5")],
    "fairness": [("classes", "5.6.5")],
    "prefix-cache": [("caches", "5.7.5")],
    "memory-pressure": [("pressure", "5.8.5")],
    "long-context": [("contexts", "5.9.5")],
    "guardrail": [("rails", "5.10.5")],
    "cold-start": [("starts", "4.5.3")],
}
FIGURES = {"ttft": ["ttft_cdf"], "tradeoff": ["curve"]}
PARAMETERS: dict[str, dict[str, Any]] = {"capacity": {"ttft_p99_ms": 500.0}}
"""What the defaults leave out and the draft asks for."""
DECLARED = {
    "model_loaded": True,
    "clock_sync": "ntp, time.example.org",
    "clock_accuracy_ms": 2.0,
    "production_representative": True,
    "isolated": True,
    "recovery_ready": True,
    "monitored": True,
    "workloads_varied": True,
    "publication_considered": True,
    "terminology_read": True,
}
SUT = {
    "boundary": "gateway",
    "model_version": "1.0",
    "quantization": "fp8",
    "software": "gateway 3",
    "accelerator": "H100",
    "accelerator_count": 4,
    "accelerator_memory": "80GB",
    "prefix_caching": "enabled",
    "guardrails": {"input_filter": True, "output_filter": True, "names": ["Llama Guard"]},
}
STATS = {"n": 20_000, "mean": 100.0, "std": 5.0, "min": 60.0, "max": 400.0} | dict.fromkeys(
    ("p50", "p75", "p90", "p95", "p99", "p99_9"), 100.0
)


def plan(
    test: str, rate: float | None = 10.0, concurrency: int | None = None, duration_s: float | None = None
) -> Spec:
    """The plan of one measurement of this test, resolved."""
    load = {"rate": rate} if concurrency is None else {"concurrency": concurrency}
    name = WORKLOADS.get(test, "conversation")
    workload: Spec = {"name": name, "seed": 42} | ({"dataset": "data"} if name in DATASETS else {})
    workload |= {"output_tokens": 256} if test == "capacity" else {}
    made = Plan.model_validate(
        {
            "target": {"url": "https://gateway.example.org", "model": "m"},
            "load": load | {"requests": 20_000 if duration_s is None else None, "duration_s": duration_s},
            "workload": workload,
            "sut": SUT,
            "declared": DECLARED,
        }
    )
    return resolved(made)


def summary(of: Spec, test: str, part: str = "first") -> Spec:
    """What such a measurement comes to: the members that rules look at. A start's second request is no cold one."""
    name = of["workload"]["name"]
    dataset = {"name": "d", "version": "1", "revision": None, "preprocessing": "whole", "subset": None}
    load = of["load"]
    cold = test == "cold-start"
    probes = {"before_ms": 50.0, "after_ms": [50.0, 50.0, 50.0], "variation": 0.0, "stable": True, "most": 10}
    return {
        "run": {"simulated": False, "interrupted": False, "started": "2026-01-02T03:04:05.678Z"},
        "verdict": {"checks": [check(code) for code in CODES]},
        "sut": SUT
        | {
            "model": "m",
            "url": of["target"]["url"],
            "stream": True,
            "protocol": "HTTP/1.1 with server-sent events",
        },
        "plan": of,
        "requests": {
            "sent": 20_000,
            "completed": 20_000,
            "failed": 0,
            "cancelled": 0,
            "by_error": {},
            "warmup": {"sent": 0 if cold else 120, "completed": 0 if cold else 120},
        },
        "window": {"duration_s": 400.0},
        "metrics": dict.fromkeys(
            ("ttft_ms", "ttft_any_ms", "itl_ms", "e2e_ms", "stream_end_ms", "connect_ms", "input_tokens"),
            STATS,
        )
        | {"output_tokens": STATS | {"min": 60}},
        "ttft_by_input": [{"from": at, "n": 9} for at in (0, 256, 512, 1024, 2048, 4096)],
        "by_class": [{"name": name, "requests": {"completed": 600}} for name in ("short", "long")],
        "workload": {
            "items": [{"id": f"D-4.3.1-{item}", "name": item, "value": "told"} for item in ITEMS],
            "fingerprint": "f" * 64,
            "texts": {"dataset": dataset} if name in DATASETS else None,
        },
        "throughput": {"cached_input_share": 0.3},
        "load": {
            "model": load["model"],
            "offered": {"rate": load["rate"], "concurrency": load["concurrency"]},
        },
        "tokens": {
            "count_source": "server usage",
            "tokenizer": {
                "kind": "file",
                "name": "t",
                "version": "1",
                "vocab_size": 1000,
                "source": "file",
                "method": "native",
            },
            "itl_method": "direct",
            "single_token_share": 1.0,
            "events": 100_000,
        },
        "instrument": {"timestamp_source": "kernel"},
        "warm_up": {
            "requests": 120,
            "completed": 120,
            "output_tokens": 12_000,
            "drained": True,
            "prefixes": "populated" if test == "prefix-cache" else None,
            "probes": probes,
            "skipped": cold and part == "first",
        },
        "itl_shape": {
            "least_output_tokens": 50,
            "short_share": 0.0,
            "modality": "unimodal",
            "tail": "exponential",
        },
        "refusals": {
            "requests": 0,
            "by_signal": {"finish_reason": 0, "refusal_field": 0, "policy_status": 0},
        },
    }


CODES = (
    "arrival_rate",
    "arrival_dispersion",
    "arrival_lag1",
    "lateness",
    "concurrency_held",
    "workers_alive",
    "streamed",
    "receive_lag",
    "token_counts",
    "ttft_variants",
)


def check(code: str, status: str = "pass") -> Spec:
    """A check of a run's verdict."""
    return {
        "code": code,
        "status": status,
        "value": 2.0,
        "limit": 1.0,
        "unit": "ms",
        "message": "",
        "facts": {},
    }


def places(test: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The runs of a test: part, place, and what its plan's load is."""
    open_ = {"duration_s": 300.0}
    match test:
        case "throughput":
            return [(part, {"rate": 10.0}, open_) for part in ("level", "confirm", "pilot")]
        case "tradeoff":
            return [("level", {"percent": 10.0 * k}, open_ | {"rate": 1.0 * k}) for k in range(1, 13)]
        case "itl":
            return [("level", {"percent": float(p)}, open_) for p in (25, 50, 75, 90)]
        case "capacity":
            return [("level", {"concurrency": c}, {"concurrency": c, **open_}) for c in (8, 16)]
        case "fairness":
            alone = [("isolated", {"class": name}, open_) for name in ("short", "long")]
            return [*alone, ("mixed", {}, open_)]
        case "prefix-cache":
            return [(part, {}, open_) for part in ("disabled", "cold", "warm")]
        case "memory-pressure":
            search = [("base-capacity", {"concurrency": 8}, {"concurrency": 8, **open_})]
            return search + [("level", {"percent": p}, {"concurrency": 12, **open_}) for p in (100.0, 125.0)]
        case "long-context":
            return [("level", {"context": n}, {"concurrency": 1}) for n in (8192, 16384)]
        case "guardrail":
            names = ("baseline", "input", "output", "full")
            return [("level", {"configuration": name, "percent": 50.0}, open_) for name in names]
        case "cold-start":
            return [(part, {"start": 1}, {}) for part in ("first", "second")]
        case _:
            return [("level", {"rate": 10.0}, {})]


def perfect(test: str) -> Spec:
    """Data of a test in which every rule that applies is kept: a gateway elsewhere, measured as it runs in production."""
    attribute = next(key for key, name in NAMES.items() if name == test)
    parameters = getattr(Tests(), attribute).model_dump(mode="json") | PARAMETERS.get(test, {})
    switched = {"prefix-cache": "prefix_cache", "guardrail": "guardrails"}.get(test)
    return {
        "test": test,
        "plan": plan(test),
        "parameters": parameters,
        "runs": [
            {"part": part, "at": at, "summary": copy.deepcopy(summary(plan(test, **load), test, part))}
            for part, at, load in places(test)
        ],
        "switches": [{"what": switched, "state": "on", "status": "verified"}] if switched else [],
        "values": {"v": True},
        "tables": {name: [section, 3, []] for name, section in SHEETS[test]},
        "figures": FIGURES.get(test, []),
    }


def evidence(spec: Mapping[str, Any]) -> Evidence:
    """The data as evidence."""
    runs = tuple(
        Ran(f"run-{i}", one["part"], one["at"], one["summary"]) for i, one in enumerate(spec["runs"])
    )
    tables = {
        name: Sheet(section, rows, tuple(empty)) for name, (section, rows, empty) in spec["tables"].items()
    }
    shown = Shown(spec["values"], tables, frozenset(spec["figures"]))
    return Evidence(spec["test"], spec["plan"], spec["parameters"], runs, tuple(spec["switches"]), shown)


def spoiled(spec: Spec, path: str, value: Any) -> Spec:
    """A copy in which what is at this dotted path is another; `runs.*` stands for each run, `runs.-1` for the last."""
    made = copy.deepcopy(spec)
    _put(made, path.split("."), value)
    return made


def _put(part: Any, path: list[str], value: Any) -> None:
    name, rest = path[0], path[1:]
    places: Sequence[int | str]
    if isinstance(part, list):
        at = next(
            (
                i
                for i, one in enumerate(part)
                if isinstance(one, dict) and name in (one.get("code"), one.get("name"))
            ),
            None,
        )
        places = range(len(part)) if name == "*" else [int(name) if at is None else at]
    else:
        places = [name]
    for place in places:
        if rest:
            _put(part[place], rest, value)
        else:
            part[place] = value
