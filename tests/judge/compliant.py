"""Evidence of tests in which nothing is amiss: the summary of a simulated run with other values, of which a test of the
statement changes one at a time."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel

from inferometer.documents.campaign import Conditions, StateSwitch
from inferometer.documents.results import Cell
from inferometer.documents.summary import (
    ClassAccount,
    DeclaredGuardrails,
    RequestCounts,
    Summary,
    TtftBucket,
    WarmUp,
    WarmUpCount,
    WarmUpProbes,
    WarmUpVolume,
)
from inferometer.documents.verdict import CheckResult, CheckStatus, RunVerdict
from inferometer.documents.workload import Dataset, DisclosureItem, TextSource
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.judge.compliance.evidence import TESTS, Evidence, MeasuredRun, Shown, ShownTable
from inferometer.judge.compliance.latency_rules import ITL_ROWS
from inferometer.judge.compliance.statement import comply
from inferometer.measure.itl_shape import ItlShape
from inferometer.measure.measurement import Refusals
from inferometer.metrics.statistics import Stats
from inferometer.plan.procedure_parameters import NAMES, Parameters, Tests
from inferometer.plan.schema import Load, Plan
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

ALONE = [test for test in TESTS if test != "compare"]
RUN = "runs.0.summary"
EVERY = "runs.*.summary"
UNNAMED = DeclaredGuardrails(True, True, ())
FILTERS_OFF = DeclaredGuardrails(False, False, ())
CLOSED = Load(model="closed", concurrency=8, duration_s=300.0)
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
TABLES = {
    "ttft": [("ttft", "5.1.5.2"), ("ttft_by_input", "5.1.5.3")],
    "throughput": [("summary", "5.2.5.1"), ("latency", "5.2.5.2"), ("levels", "5.2.3")],
    "tradeoff": [("levels", "5.3.5")],
    "itl": [("itl", "5.4.5"), ("per_request", "5.4.4.2"), ("shape", "5.4.4.3")],
    "capacity": [("levels", "5.5.5")],
    "fairness": [("classes", "5.6.5"), ("fairness", "5.6.5")],
    "prefix-cache": [("cache", "5.7.5"), ("throughput", "5.7.4")],
    "memory-pressure": [("levels", "5.8.5")],
    "long-context": [("lengths", "5.9.5")],
    "guardrail": [("latency_50", "5.10.5")],
    "cold-start": [("starts", "4.5.3")],
}
ALL = tuple(TABLES)
"""Every test that can carry a statement."""
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
}
GUARDRAILS = {"input_filter": True, "output_filter": True, "names": ("Llama Guard",)}
CODES = (
    "load_exact",
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


class Quiet:
    """A Ui that shows nothing."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


@functools.cache
def simulated() -> Summary:
    """The summary of a short run in virtual time, of two classes of requests."""
    classes = [{"name": name, "input_tokens": 50, "output_tokens": 60} for name in ("short", "long")]
    plan = Plan.model_validate(
        {"load": {"rate": 40.0, "requests": 60, "warmup": 5}, "workload": {"classes": classes}}
    )
    with tempfile.TemporaryDirectory() as folder:
        return simulate(plan, choose(None, ()), Path(folder), Quiet()).summary


@functools.cache
def stats() -> Stats:
    """Statistics of so many samples that each of the draft's numbers is reached."""
    measured = simulated().metrics.e2e_ms
    assert measured is not None
    hundred = dict.fromkeys(("mean", "p50", "p75", "p90", "p95", "p99", "p99_9"), 100.0)
    return dataclasses.replace(measured, n=20_000, std=5.0, min=60.0, max=400.0, **hundred)  # type: ignore[arg-type]


@functools.cache
def plan(
    test: str, rate: float | None = 10.0, concurrency: int | None = None, duration_s: float | None = None
) -> Plan:
    """The plan of one measurement of this test."""
    load = {"rate": rate} if concurrency is None else {"concurrency": concurrency}
    name = WORKLOADS.get(test, "conversation")
    workload: dict[str, Any] = {"name": name, "seed": 42} | ({"dataset": "data"} if name in DATASETS else {})
    workload |= {"output_tokens": 256} if test == "capacity" else {}
    return Plan.model_validate(
        {
            "target": {"url": "https://gateway.example.org", "model": "m"},
            "load": load | {"requests": 20_000 if duration_s is None else None, "duration_s": duration_s},
            "workload": workload,
            "sut": SUT | {"guardrails": GUARDRAILS},
            "declared": DECLARED,
        }
    )


PREFIXES: dict[str, Literal["populated"]] = {"warm": "populated"}


def warm_up(test: str, part: str) -> WarmUp:
    """A warm-up as draft 4.5 wants it. A start's second request is no cold one."""
    cold = test == "cold-start"
    probes = WarmUpProbes(10, 500, 90, 50.0, (50.0, 50.0, 50.0), 0.0, 0.1, True)
    return WarmUp(
        asked=WarmUpVolume(100, 0),
        requests=120,
        completed=120,
        output_tokens=12_000,
        reached=True,
        drained=True,
        waiting=None,
        running=None,
        prefixes=PREFIXES.get(part, "not populated") if test == "prefix-cache" else None,
        probes=probes,
        skipped=cold and part == "first",
    )


NO_WARM_UP = replace(
    warm_up("ttft", "level"),
    requests=0,
    completed=0,
    output_tokens=0,
    drained=False,
    probes=WarmUpProbes(0, None, None, None, (), None, 0.1, None),
)


def buckets(*counts: tuple[int, int]) -> tuple[TtftBucket, ...]:
    """TTFT by input length: where each bucket begins, and its samples."""
    return tuple(TtftBucket(at, None, n, None, None, None, None, None) for at, n in counts)


def classes(*counts: tuple[str, int]) -> tuple[ClassAccount, ...]:
    """What classes met: their names, and requests that were completed."""
    first = simulated().by_class[0]
    return tuple(
        replace(first, name=name, requests=replace(first.requests, completed=n)) for name, n in counts
    )


def summary(of: Plan, test: str, part: str = "first") -> Summary:
    """What such a measurement comes to, in all that rules look at."""
    base, name, cold = simulated(), of.workload.name, test == "cold-start"
    dataset = Dataset(
        "sharegpt", "d", None, None, (), "0" * 64, rows=9, texts=9, sampled=9, left_out={}, preprocessing="whole", version="1"
    )  # fmt: skip
    sut = replace(
        base.sut,
        **SUT,
        guardrails=replace(base.sut.guardrails, **GUARDRAILS),
        model="m",
        url=of.target.url,
        stream=True,
        protocol="HTTP/1.1 with server-sent events",
    )
    offered = replace(base.load.offered, rate=of.load.rate, concurrency=of.load.concurrency)
    tokenizer = replace(
        base.tokens.tokenizer, kind="file", name="t", version="1", vocab_size=1000, source="file", method="native"
    )  # fmt: skip
    warmed = WarmUpCount(0, 0) if cold else WarmUpCount(120, 120)
    metrics = replace(
        base.metrics,
        **dict.fromkeys(
            ("ttft_ms", "ttft_any_ms", "itl_ms", "e2e_ms", "stream_end_ms", "connect_ms", "input_tokens"),
            stats(),
        ),
        output_tokens=stats(),
    )
    return replace(
        base,
        run=replace(base.run, simulated=False, interrupted=False, started="2026-01-02T03:04:05.678Z"),
        verdict=RunVerdict("VALID", (), tuple(check(code) for code in CODES)),
        sut=sut,
        plan=of,
        requests=RequestCounts(20_000, 20_000, 0, 0, {}, None, warmed),
        window=replace(base.window, duration_s=400.0),
        metrics=metrics,
        ttft_by_input=buckets(*((at, 9) for at in (0, 256, 512, 1024, 2048, 4096))),
        by_class=classes(("short", 600), ("long", 600)),
        workload=replace(
            base.workload,
            items=tuple(DisclosureItem(f"D-4.3.1-{item}", item, "given") for item in ITEMS),
            fingerprint="f" * 64,
            texts=TextSource(None, dataset) if name in DATASETS else None,
        ),
        throughput=replace(base.throughput, cached_input_share=0.3),
        load=replace(base.load, model=of.load.model, offered=offered),
        tokens=replace(
            base.tokens,
            output=replace(base.tokens.output, asked_mean=None),
            count_source="server usage",
            tokenizer=tokenizer,
            itl_method="direct",
            single_token_share=1.0,
            events=100_000,
        ),
        instrument=replace(base.instrument, timestamp_source="kernel"),
        warm_up=warm_up(test, part),
        itl_shape=ItlShape(50, 20_000, 0, 0.0, stats(), None, None, (), "unimodal", None, "exponential or lighter"),
        refusals=Refusals(0, {"finish_reason": 0, "refusal_field": 0, "policy_status": 0}),
    )  # fmt: skip


def check(code: str, status: CheckStatus = "pass") -> CheckResult:
    """A check of a run's verdict."""
    return CheckResult(code, status, 2.0, 1.0, "ms", {}, "")


def places(test: str) -> list[tuple[str, Conditions, dict[str, Any]]]:
    """The runs of a test: part, conditions, and what its plan's load is."""
    open_ = {"duration_s": 300.0}
    match test:
        case "throughput":
            return [(part, Conditions(rate=10.0), open_) for part in ("level", "confirm", "pilot")]
        case "tradeoff":
            return [
                ("level", Conditions(percent=10.0 * k, rate=1.0 * k), open_ | {"rate": 1.0 * k})
                for k in range(1, 13)
            ]
        case "itl":
            return [("level", Conditions(percent=float(p)), open_) for p in (25, 50, 75, 90)]
        case "capacity":
            return [("level", Conditions(concurrency=c), {"concurrency": c, **open_}) for c in (8, 16)]
        case "fairness":
            alone = [("isolated", Conditions(class_name=name), open_) for name in ("short", "long")]
            return [*alone, ("mixed", Conditions(), open_)]
        case "prefix-cache":
            return [(part, Conditions(), open_) for part in ("disabled", "cold", "warm")]
        case "memory-pressure":
            search = [("base-capacity", Conditions(concurrency=8), {"concurrency": 8, **open_})]
            return search + [
                ("level", Conditions(percent=p), {"concurrency": 12, **open_}) for p in (100.0, 125.0)
            ]
        case "long-context":
            return [("level", Conditions(context=n), {"concurrency": 1}) for n in (8192, 16384)]
        case "guardrail":
            names = ("baseline", "input", "output", "full")
            return [("level", Conditions(configuration=name, percent=50.0), open_) for name in names]
        case "cold-start":
            return [(part, Conditions(start=1), {}) for part in ("first", "second")]
        case _:
            return [("level", Conditions(rate=10.0), {})]


def parameters(test: str) -> Parameters:
    """The parameters of this test, with the draft's numbers."""
    attribute = next(key for key, name in NAMES.items() if name == test)
    defaults: Parameters = getattr(Tests(), attribute)
    return type(defaults).model_validate(defaults.model_dump() | PARAMETERS.get(test, {}))


Row = dict[str, Cell]


def hundred(*names: str) -> Row:
    """Cells of latencies, of which every statistic is 100 ms."""
    return dict.fromkeys(names, 100.0)


def row(**cells: Cell) -> Row:
    """Cells by their columns."""
    return cells


def cells(test: str) -> dict[str, tuple[Row, ...]]:
    """The rows of a test's tables, as its runs have them."""
    base = simulated()
    tok_s, tpot, share = base.throughput.output_tok_s, base.metrics.tpot_ms, base.success_rate.value
    first = base.by_class[0].ttft_ms
    assert tok_s is not None
    assert tpot is not None
    assert share is not None
    assert first is not None
    three = ("p50", "p95", "p99")
    ttft, e2e = (hundred(*(f"{metric}_{name}" for name in three)) for metric in ("ttft", "e2e"))
    tpots: Row = {f"tpot_{name}": getattr(tpot, name) for name in three}
    match test:
        case "ttft":
            bucket = row(n=9, p50=None, p95=None, p99=None)
            return {"ttft": (hundred("value"),), "ttft_by_input": (bucket, bucket)}
        case "throughput":
            level = row(rate=10.0, achieved=tok_s, ratio=1.0, queue="stable") | ttft | tpots
            held, refused = row(sustained="yes", because=""), row(sustained="no", because="queue")
            return {"levels": (level | held, level | refused)}
        case "tradeoff":
            level = row(achieved=tok_s, success=100 * share, queue="stable") | ttft | tpots | e2e
            return {"levels": tuple(row(rate=1.0 * k) | level for k in range(1, 13))}
        case "itl":
            rows = [
                row(metric=label, unit="ms", at_25=getattr(stats(), name)) for label, name in ITL_ROWS.items()
            ]
            requests = hundred(*(f"{name}_{one}" for name in ("jitter", "max_pause") for one in three))
            return {"itl": tuple(rows), "per_request": (requests,), "shape": (row(ratio=1.0),)}
        case "capacity":
            level = row(completion=100.0, errors=0) | ttft | tpots
            ends = row(concurrency=8, status="Pass"), row(concurrency=16, status="Fail")
            return {"levels": tuple(end | level for end in ends)}
        case "fairness":
            of_class: Row = {f"ttft_{name}": getattr(first, name) for name in three}
            return {"classes": (of_class, of_class), "fairness": (row(metric="Jain", value=1.0),)}
        case "prefix-cache":
            return {
                "cache": (ttft, ttft, ttft),
                "throughput": (row(output_tok_s=100.0), row(output_tok_s=110.0)),
            }
        case "memory-pressure":
            latency = hundred("completion", "ttft_p99")
            counts = hundred("preempted", "failed", "recovered", "lost", "events", "errors")
            return {"levels": (latency | counts,)}
        case "long-context":
            of_each = row(output_tok_s=tok_s) | hundred("ttft_mean", "ttft_p50", "ttft_p95")
            lengths = (row(context=n, input_tokens=float(n), ms_per_1k=1e5 / n) for n in (8192, 16384))
            return {"lengths": tuple(one | of_each for one in lengths)}
        case "guardrail":
            names = ("Baseline", "Input Filter", "Output Filter", "Full Filter")
            return {"latency_50": tuple(row(configuration=name) | ttft | e2e for name in names)}
    return {}


def numbers(test: str) -> dict[str, Cell]:
    """The values that a test shows, as its tables have them; `v` stands for any other."""
    tok_s = simulated().throughput.output_tok_s
    assert tok_s is not None
    of_test: dict[str, dict[str, Cell]] = {
        "throughput": {
            "max_output_tok_s": tok_s, "max_request_s": 1.0, "max_input_tok_s": 1.0, "tok_per_gpu_s": tok_s / 4,
            "throughput_at_ttft_limit": tok_s,
        },
        "tradeoff": {"capacity_rate": 10.0, "knee": None, "saturation": None},
        "capacity": {"throughput_at_max": 1.0, "tokens_in_flight_mean": 1.0},
        "fairness": {"jain": 1.0, "starvation_short": 1.0},
        "prefix-cache": {"hit_rate_cold": 1.0, "hit_rate_warm": 1.0, "throughput_improvement": 10.0},
        "memory-pressure": {"degradation": "graceful"},
        "long-context": {"exponent": 0.0},
        "guardrail": {"input_overhead_50": 0.0, "full_overhead_50": 0.0},
    }  # fmt: skip
    return row(v=1.0) | of_test.get(test, {})


@functools.cache
def perfect(test: str) -> Evidence:
    """Evidence of a test in which every rule that applies is kept: a gateway elsewhere, measured as it runs in production."""
    what = {"prefix-cache": "prefix_cache", "guardrail": "guardrails"}.get(test)
    rows, values = cells(test), numbers(test)
    tables = {
        name: ShownTable(section, len(rows.get(name, ())) or 3, cells=rows.get(name, ()))
        for name, section in TABLES[test]
    }
    return Evidence(
        test,
        plan(test),
        parameters(test),
        tuple(
            MeasuredRun(f"run-{i}", part, at, summary(plan(test, **load), test, part))
            for i, (part, at, load) in enumerate(places(test))
        ),
        (StateSwitch(what, "on", "verified", None, None),) if what else (),
        Shown(
            {name: value is not None for name, value in values.items()},
            tables,
            frozenset(FIGURES.get(test, [])),
            values,
        ),
    )


def changed(evidence: Evidence, changes: Mapping[str, Any]) -> Evidence:
    """The same evidence, but with these values at these dotted paths; `runs.*` stands for each run, `runs.-1` for the last. A
    part of a list may be named by its `code`, `name` or `id`.

    Raises for a member that its type does not have.
    """
    for path, value in changes.items():
        evidence = _with(evidence, path.split("."), value)
    return evidence


def _with(part: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(part, tuple):
        return tuple(
            _with(one, rest, value) if _is(one, name, i, len(part)) else one for i, one in enumerate(part)
        )
    if isinstance(part, Mapping):
        return {**part, name: _with(part.get(name), rest, value)}
    made = {name: _with(getattr(part, name), rest, value)}
    if isinstance(part, BaseModel):
        return part.model_copy(update=made)
    return replace(part, **made) if isinstance(part, msgspec.Struct) else dataclasses.replace(part, **made)


def _is(one: Any, name: str, i: int, length: int) -> bool:
    names = {getattr(one, key, None) for key in ("code", "name")}
    return name == "*" or name in names or name in (str(i), str(i - length))


def deviating(evidence: Evidence) -> set[str]:
    """The rules that are broken or unknown."""
    return {one.rule.id for one in comply(evidence).deviations}
