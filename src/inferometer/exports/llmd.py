"""A run as a Benchmark Report of llm-d, schema 0.2: what llm-d-benchmark and its consumers read.

The schema is that of `llmd-benchmark-report` 0.2.1 (PyPI, Apache-2.0), which a test holds a report to. It has no member for a
verdict and closes most objects to further ones, so the verdict stands where free text and further members are allowed:

| member                               | holds                                                                  |
| ------------------------------------ | ---------------------------------------------------------------------- |
| `run.description`                    | begins with the verdict, and says if the run was simulated             |
| `run.keywords`                       | `verdict:INVALID`, `reason:lateness` ..., `simulated`, `interrupted`   |
| `results.observability.inferometer`  | the verdict with its reasons in words, and the definition of each metric |

Latencies are in ms, as in summary.json. `inter_token_latency` is there only where it was measured token by token. The report
says nothing of what the schema cannot hold unknown: the system under test is a `generic` component, since an
`inference_engine` must name its accelerators and how the model is split over them. What is undefined is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import yaml

from inferometer.documents.part import to_data, to_json
from inferometer.documents.summary import Summary
from inferometer.documents.verdict import Reason
from inferometer.documents.workload import Lengths
from inferometer.exports.exported_run import ExportedRun, marks_of, whole_duration
from inferometer.exports.formats import Wanted
from inferometer.measure.server import Level
from inferometer.metrics.catalogue import RATES
from inferometer.metrics.statistics import Stats
from inferometer.printable import printable

VERSION = "0.2.1"
UNKNOWN = "unknown"
"""For a text that the schema requires and the run does not know."""
SUT = "sut-0"


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a report. What is None is left out: the schema's optional members are absent or have a value."""


class Statistics(_Part, frozen=True, rename={"p99_9": "p99p9"}):
    """Statistics of one quantity. `mean` is the one that the schema requires."""

    units: str
    mean: float
    stddev: float | None = None
    min: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class RunTime(_Part, frozen=True):
    """ISO 8601 instants, and the time between them."""

    start: str
    end: str | None = None
    duration: str | None = None


class RunPart(_Part, frozen=True):
    """`run`."""

    uid: str
    time: RunTime
    description: str
    keywords: tuple[str, ...]


class SequenceLength(_Part, frozen=True):
    """Lengths requested, in tokens: `value` is the fixed one or the mean."""

    distribution: Literal["fixed", "other"]
    value: float
    min: int | None = None
    max: int | None = None


class MultiTurn(_Part, frozen=True):
    """That requests are turns of conversations."""

    enabled: bool


class LoadStandardized(_Part, frozen=True):
    """The load in the schema's terms. `parallelism`: processes that send. `rate_qps` per second."""

    tool: str
    tool_version: str
    parallelism: int
    source: Literal["random", "sampled", "unknown"]
    input_seq_len: SequenceLength
    output_seq_len: SequenceLength | None = None
    multi_turn: MultiTurn | None = None
    rate_qps: float | None = None
    concurrency: int | None = None


class Native(_Part, frozen=True):
    """What a tool is configured with, in its own terms."""

    config: Any = None


class Metadata(_Part, frozen=True):
    """`cfg_id`: a hash of the configuration."""

    cfg_id: str
    label: str | None = None
    description: str | None = None


class Load(_Part, frozen=True):
    """`scenario.load`."""

    metadata: Metadata
    standardized: LoadStandardized
    native: Native


class System(_Part, frozen=True):
    """The system under test; the members after `tool_version` are ours, as a `generic` component allows."""

    kind: Literal["generic"]
    tool: str
    tool_version: str
    model: str | None = None
    model_version: str | None = None
    quantization: str | None = None
    accelerator: str | None = None
    accelerator_count: int | None = None
    boundary: str | None = None
    api: str | None = None
    url: str | None = None


class Component(_Part, frozen=True):
    """An entry of `scenario.stack`."""

    metadata: Metadata
    standardized: System
    native: Native


class Scenario(_Part, frozen=True):
    """`scenario`."""

    stack: tuple[Component, ...]
    load: Load | None = None


class Requests(_Part, frozen=True):
    """Requests of the measured phase, and their lengths in tokens."""

    total: int
    failures: int
    incomplete: int
    input_length: Statistics | None = None
    output_length: Statistics | None = None


class Latency(_Part, frozen=True):
    """Latencies of successful requests."""

    time_to_first_token: Statistics | None = None
    time_per_output_token: Statistics | None = None
    inter_token_latency: Statistics | None = None
    request_latency: Statistics | None = None


class Throughput(_Part, frozen=True):
    """Rates over the steady span."""

    input_token_rate: Statistics | None = None
    output_token_rate: Statistics | None = None
    request_rate: Statistics | None = None


class Aggregate(_Part, frozen=True):
    """`results.request_performance.aggregate`."""

    requests: Requests
    latency: Latency
    throughput: Throughput


class RequestPerformance(_Part, frozen=True):
    """`results.request_performance`."""

    aggregate: Aggregate


class Resources(_Part, frozen=True):
    """The server by its own metrics: a share of the KV cache, and requests."""

    kv_cache_usage: Statistics | None = None
    running_requests: Statistics | None = None
    waiting_requests: Statistics | None = None


class Observed(_Part, frozen=True):
    """An entry of `results.observability.components`."""

    component_label: str
    aggregate: Resources


class Judgement(_Part, frozen=True):
    """What decides whether the report's figures may be believed, and what each of them means. `measured_phase_s`: from
    its first request to its last answer; of a simulated run in the time of the simulation."""

    verdict: str
    reasons: tuple[Reason, ...]
    simulated: bool
    interrupted: bool
    definitions: Mapping[str, str]
    measured_phase_s: float | None = None


class Observability(_Part, frozen=True):
    """`results.observability`, which allows further members."""

    inferometer: Judgement
    components: tuple[Observed, ...] | None = None


class Results(_Part, frozen=True):
    """`results`."""

    request_performance: RequestPerformance
    observability: Observability


class BenchmarkReport(_Part, frozen=True):
    """The report."""

    version: str
    run: RunPart
    scenario: Scenario
    results: Results


def render_yaml(run: ExportedRun, _wanted: Wanted) -> bytes:
    """As llm-d-benchmark writes it. All but ASCII is escaped: words of others steer no terminal that shows the file."""
    written: str = yaml.safe_dump(to_data(report(run.summary)), sort_keys=False, width=120)
    return written.encode()


def render_json(run: ExportedRun, _wanted: Wanted) -> bytes:
    """The same as JSON."""
    return to_json(report(run.summary)).encode()


def report(summary: Summary) -> BenchmarkReport:
    """The report of a run."""
    return BenchmarkReport(
        version=VERSION, run=_run(summary), scenario=_scenario(summary), results=_results(summary)
    )


def _run(summary: Summary) -> RunPart:
    marks, run = marks_of(summary), summary.run
    took = whole_duration(summary)
    made = "simulated, no server was measured: " if run.simulated else ""
    flags = [
        word for word, given in (("simulated", run.simulated), ("interrupted", run.interrupted)) if given
    ]
    return RunPart(
        uid=marks.run,
        time=RunTime(run.started, run.ended, None if took is None else f"PT{took.total_seconds():.3f}S"),
        description=f"{marks.verdict}: {made}{marks.name}, {marks.model or 'model not known'}",
        keywords=(
            "inferometer",
            f"verdict:{marks.verdict}",
            *(f"reason:{code}" for code in marks.reasons),
            *flags,
        ),
    )


def _scenario(summary: Summary) -> Scenario:
    sut = summary.sut
    software = sut.software or sut.observed.server
    system = System(
        kind="generic",
        tool=UNKNOWN if software is None else printable(software),
        tool_version=UNKNOWN,
        model=marks_of(summary).model,
        model_version=sut.model_version,
        quantization=sut.quantization,
        accelerator=sut.accelerator,
        accelerator_count=sut.accelerator_count,
        boundary=sut.boundary,
        api=sut.api,
        url=sut.url,
    )
    digest = hashlib.sha256(msgspec.json.encode(system)).hexdigest()
    what = (
        "a model of a system; none was measured"
        if summary.run.simulated
        else "the system under test, as declared"
    )
    component = Component(Metadata(digest, SUT, what), system, Native())
    return Scenario((component,), _load(summary))


def _load(summary: Summary) -> Load | None:
    """None where no input length is known, which the schema requires."""
    drawn, metrics, offered = summary.workload.drawn, summary.metrics, summary.load.offered
    asked = None if drawn is None else drawn.input_tokens
    lengths = _lengths(asked, metrics.input_tokens)
    if lengths is None:
        return None
    texts = summary.workload.texts is not None or summary.workload.prompts is not None
    turns = summary.conversations is not None
    standardized = LoadStandardized(
        tool="inferometer",
        tool_version=summary.version,
        parallelism=max(1, summary.instrument.workers or 1),
        source="sampled" if texts else "unknown" if drawn is None else "random",
        input_seq_len=lengths,
        output_seq_len=_lengths(None if drawn is None else drawn.output_tokens, metrics.output_tokens),
        multi_turn=MultiTurn(enabled=True) if turns else None,
        rate_qps=offered.rate if offered.rate_of == "requests" else None,
        concurrency=offered.concurrency,
    )
    plan = to_data(summary.plan)
    return Load(Metadata(summary.run.plan_hash or UNKNOWN), standardized, Native(config=plan))


def _lengths(drawn: Lengths | None, measured: Stats | None) -> SequenceLength | None:
    """The lengths requested, else those that were counted."""
    source = measured if drawn is None else drawn
    if source is None:
        return None
    least, most = int(source.min), int(source.max)
    if least == most:
        return SequenceLength("fixed", least)
    return SequenceLength("other", source.mean, least, most)


def _results(summary: Summary) -> Results:
    requests, metrics, run = summary.requests, summary.metrics, summary.run
    aggregate = Aggregate(
        Requests(
            total=requests.sent,
            failures=requests.failed,
            incomplete=requests.cancelled,
            input_length=_statistics(metrics.input_tokens, "count"),
            output_length=_statistics(metrics.output_tokens, "count"),
        ),
        Latency(
            time_to_first_token=_statistics(metrics.ttft_ms, "ms"),
            time_per_output_token=_statistics(metrics.tpot_ms, "ms/token"),
            inter_token_latency=_statistics(metrics.itl_ms, "ms/token"),
            request_latency=_statistics(metrics.e2e_ms, "ms"),
        ),
        Throughput(
            input_token_rate=_rate(summary, "input_tok_s", "tokens/s"),
            output_token_rate=_rate(summary, "output_tok_s", "tokens/s"),
            request_rate=_rate(summary, "request_s", "queries/s"),
        ),
    )
    judgement = Judgement(
        summary.verdict.status,
        summary.verdict.reasons,
        run.simulated,
        run.interrupted,
        summary.definitions,
        summary.window.duration_s,
    )
    return Results(RequestPerformance(aggregate), Observability(judgement, _observed(summary)))


def _statistics(stats: Stats | None, units: str) -> Statistics | None:
    if stats is None:
        return None
    return Statistics(
        units=units,
        mean=stats.mean,
        stddev=stats.std,
        min=stats.min,
        p50=stats.p50,
        p75=stats.p75,
        p90=stats.p90,
        p95=stats.p95,
        p99=stats.p99,
        p99_9=stats.p99_9,
        max=stats.max,
    )


def _rate(summary: Summary, name: str, units: str) -> Statistics | None:
    """A rate has one value, which the schema calls the mean."""
    assert name in RATES, "a rate of the catalogue"
    value: float | None = getattr(summary.throughput, name)
    return None if value is None else Statistics(units, value)


def _observed(summary: Summary) -> tuple[Observed, ...] | None:
    server = summary.server
    if server is None:
        return None
    resources = Resources(
        _level(server.kv_usage, "fraction"), _level(server.running, "count"), _level(server.queue, "count")
    )
    return (Observed(SUT, resources),)


def _level(level: Level | None, units: str) -> Statistics | None:
    return None if level is None else Statistics(units, level.mean, max=level.max)
