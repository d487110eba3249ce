"""Summaries and series of runs, made from simulated ones, for tests of what reads them.

A rich valid one, an undecided one, an invalid one from a hostile server, and one in which nothing was measured.
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from inferometer.documents.load import LatenessShares
from inferometer.documents.summary import (
    DeclaredGuardrails,
    Objective,
    Observed,
    Summary,
    Sut,
    WarmUpProbes,
)
from inferometer.documents.verdict import CheckResult, CheckStatus, Reason, RunStatus, RunVerdict
from inferometer.documents.workload import DisclosureItem, PromptFile
from inferometer.drive.progress_counters import Progress
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import Phase
from inferometer.judge.verdict import Check
from inferometer.measure.distributions import Distributions
from inferometer.measure.error_bound import Bound, ErrorBounds
from inferometer.measure.load import Causes
from inferometer.measure.measurement import Refusals
from inferometer.measure.series import LatenessPoints, RunSeries
from inferometer.measure.server import EndpointSeen, Level, Pair, Points, Server, Taken, Timed, Whole
from inferometer.metrics.catalogue import METRICS, RATES, Metrics, Rates
from inferometer.plan.parse import build
from inferometer.report import checks
from inferometer.run.evaluate import Assessment, assess
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

HOSTILE = "</script><img src=x onerror=alert(1)>|`**_\x1b[31m\u202e"
"""A model name a server may send: markup for HTML, Markdown and terminals, and a direction override."""

CLASSES = """
workload:
  classes:
    - {name: chat, weight: 3, input_tokens: "uniform(20,40)", output_tokens: 5}
    - {name: batch, input_tokens: 30, output_tokens: 3}
"""


class _Silent:
    def note(self, text: str) -> None: ...

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None: ...


@functools.cache
def simulated(kind: str) -> Assessment:
    """A simulated run: `long` (1,000 requests), `classes`, `turns`, or `closed`; each is made once in a process."""
    flags: dict[str, Any] = {
        "long": {"--requests": "1000", "--rate": "20", "--warmup": "20"},
        "closed": {"--requests": "60", "--concurrency": "8", "--warmup": "4"},
        "classes": {"--requests": "60", "--rate": "20", "--warmup": "2"},
        "turns": {"--requests": "60", "--rate": "10", "--warmup": "2", "--turns": "3"},
    }[kind]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.yaml"
        file.write_text(CLASSES, encoding="utf-8")
        plan = build(file if kind == "classes" else None, flags)
        result = simulate(plan, choose("tiny-cpu"), Path(folder), _Silent())
        return assess(RunFolder.open(result.folder))


def judged(code: str, status: CheckStatus, value: Any = None, limit: Any = None, **facts: Any) -> CheckResult:
    """A check with its sentence. `unit` among the facts is its unit."""
    check = Check(code, status, value, limit, facts.pop("unit", ""), facts)
    return CheckResult(code, status, value, limit, check.unit, facts, checks.message(check))


def verdict(status: RunStatus, found: list[CheckResult]) -> RunVerdict:
    """The verdict with its reasons, failures first."""
    deciding = [check for kind in ("fail", "unsure") for check in found if check.status == kind]
    reasons = tuple(Reason(one.code, one.message, one.value, one.limit) for one in deciding)
    return RunVerdict(status, reasons, tuple(found))


def valid_checks() -> list[CheckResult]:
    """The checks of a run that may be believed: passed, to note, not applicable."""
    return [
        judged("error_rate", "pass", 0.003, 0.01, by_error={"timeout": 2, "http_5xx": 1}),
        judged("prompt_length", "pass", 0.0, 0.05, asked_mean=319.4, counted_mean=319.4),
        judged("output_length", "pass", 0.004, 0.05, asked_mean=160.2, counted_mean=160.1),
        judged("token_counts", "pass", 0.0007, 0.05, server=159620, events=156612, against="tokenizer"),
        judged("lateness", "pass", 0.41, 4.08, unit="ms", loop="open", p50=0.07, p99=0.41),
        judged("receive_lag", "pass", 0.0004, 0.01, source="kernel", p99=0.188, max=0.4),
        judged("arrival_rate", "pass", 20.31, 21.3, unit="1/s", expected=20, low=18.7, high=21.3),
        judged("concurrency_held", "na"),
        judged("cache_hits", "pass", 0.0, 0.05),
        judged("server_ttft", "pass", 3.7, 16.3, unit="ms", client=81.7, server=78.0),
        judged("samples_p99", "pass", 1006, 1000),
        judged("samples_p99_9", "note", 1006, 10000),
        judged("tokens_per_event", "pass", 0.981, 0.9, method="direct"),
        judged("interrupted", "pass"),
        judged("warmup", "note", 20, 100, output_tokens=3204),
        judged("few_samples", "pass", 1006, 2),
    ]


def error_bounds() -> ErrorBounds:
    """Of a client that read a first token late now and then."""
    small, gap = Bound(0.008, 0.006, 0.009, 0.011, 0.13), Bound(0.002, 0.0, 0.0, 0.01, 0.21)
    return ErrorBounds(small, small, gap, gap, None, small, small, 0.37, 0.0)


def server_metrics() -> Server:
    """What a vLLM reports of itself in 1,009 requests."""
    bounds = {"p50": (60.0, 80.0), "p90": (100.0, None)}
    timed = Timed(1009, 78.1, 76.2, 104.0, 110.0, None, bounds)
    taken = Taken(own=True, seen=True, endpoints=1, resets=0)
    return Server(
        engine="vLLM",
        seen=True,
        endpoints=(EndpointSeen("http://10.0.3.7:8000/metrics", "vLLM", True, 171, 2, 0.71, 0),),
        running=Level(41.7, 60.0, 3.0),
        queue=Level(0.21, 4.0, 0.0),
        queue_thirds=(0.1, 0.3, 0.2),
        kv_usage=Level(0.31, 0.44, 0.02),
        preemptions=3.0,
        prefix_hit_share=0.021,
        prompt_tokens=332361.0,
        generation_tokens=161540.0,
        succeeded=1006.0,
        failed=3.0,
        ttft_ms=timed,
        itl_ms=timed,
        tpot_ms=None,
        e2e_ms=None,
        queue_ms=timed,
        whole=Whole(
            prompt_tokens=Pair(338949.0, 338949.0, 339937.0, taken),
            generation_tokens=Pair(164744.0, 164262.0, 164742.0, taken),
            server_ttft_ms=78.0,
            server_n=1027,
            client_ttft_ms=81.7,
            client_n=1027,
            ttft_taken=taken,
            went_back=None,
        ),
    )


def declared_sut(sut: Sut) -> Sut:
    """A system of which everything is declared."""
    return replace(
        sut,
        boundary="engine",
        model_version="main@5f0b02c",
        quantization="bf16",
        software="vLLM 0.10.1",
        accelerator="NVIDIA H100 SXM",
        accelerator_count=1,
        accelerator_memory="80 GB",
        prefix_caching="disabled",
        cache_state="cold",
        guardrails=DeclaredGuardrails(False, False, ()),
        model="meta-llama/Llama-3.1-8B-Instruct",
        url="http://10.0.3.7:8000",
        protocol="HTTP/1.1 SSE",
        observed=Observed("uvicorn", ("meta-llama/Llama-3.1-8B-Instruct",)),
    )


@functools.cache
def valid_summary() -> Summary:
    """A long run against a declared server, with all sections that a report can have."""
    base = simulated("long").summary
    lateness = base.metrics.connect_ms or base.metrics.ttft_ms
    assert lateness is not None
    return replace(
        base,
        run=replace(base.run, simulated=False, name="chat-20rps"),
        verdict=verdict("VALID", valid_checks()),
        sut=declared_sut(base.sut),
        warm_up=replace(
            base.warm_up,
            probes=WarmUpProbes(12, 319, 161, 2210.5, (1714.2, 1702.9, 1709.8), 0.0066, 0.1, stable=True),
        ),
        refusals=Refusals(1, {"finish_reason": 1, "refusal_field": 0, "policy_status": 0}),
        conversations=simulated("turns").summary.conversations,
        by_class=simulated("classes").summary.by_class,
        workload=replace(
            base.workload,
            items=(
                DisclosureItem("D-4.3.1-input", "Input lengths", "uniform(128,512)"),
                DisclosureItem("D-4.3.1-domain", "Domain", None),
            ),
            missing=("D-4.3.1-domain",),
        ),
        load=replace(
            base.load,
            lateness_ms=lateness,
            lateness_causes_ms=Causes(lateness, lateness, lateness),
            lateness_shares=LatenessShares(0.75, 0.2, 0.05),
        ),
        slos=(
            Objective("ttft_p99<500ms", 121.4, 500.0, True, (109.2, 140.9)),
            Objective("itl_p99<50ms", 47.1, 50.0, None, (43.0, 54.8)),
            Objective("e2e_p95<2s", 3699.0, 2000.0, False, (3610.0, 3741.0)),
        ),
        server=server_metrics(),
        instrument=replace(
            base.instrument,
            timestamp_source="kernel",
            cpu_fraction=(0.31,),
            calibration=None,
            error_bounds=error_bounds(),
        ),
    )


def inconclusive_summary() -> Summary:
    """As the valid one, with two checks undecided."""
    undecided = {
        "token_counts": judged("token_counts", "unsure"),
        "samples_p99": judged("samples_p99", "unsure", 412, 1000),
    }
    found = [undecided.get(check.code, check) for check in valid_checks()]
    return replace(valid_summary(), verdict=verdict("INCONCLUSIVE", found))


def invalid_summary() -> Summary:
    """A closed loop against a server that fails, answers short, caches, and calls itself something vile."""
    base, closed = valid_summary(), simulated("closed").summary
    assert base.server is not None
    endpoint = base.server.endpoints[0]
    failing = {
        "error_rate": judged(
            "error_rate", "fail", 0.1815, 0.01, by_error={"reset": 131, "http_429": 49, HOSTILE: 1}
        ),
        "output_length": judged("output_length", "fail", 0.61, 0.05, finish_reasons={"stop": 500}),
        "cache_hits": judged("cache_hits", "fail", 0.88, 0.05),
        "concurrency_held": judged("concurrency_held", "fail", 0.81, 0.95, mean=51.9, asked=64),
        "interrupted": judged("interrupted", "unsure"),
        "tokens_per_event": judged("tokens_per_event", "note", 0.12, 0.9, method="chunk"),
        "lateness": judged("lateness", "pass", 0.0004, 0.01, loop="closed", p50=0.05, p99=0.41),
        "arrival_rate": judged("arrival_rate", "na"),
    }
    return replace(
        base,
        run=replace(base.run, interrupted=True),
        verdict=verdict("INVALID", [failing.get(check.code, check) for check in valid_checks()]),
        sut=replace(
            base.sut,
            model=HOSTILE,
            url="http://h/?a=<b>&c=\"d'",
            software=HOSTILE,
            boundary=None,
            notes=HOSTILE,
            observed=Observed(HOSTILE, (HOSTILE, "b")),
            guardrails=DeclaredGuardrails(None, True, (HOSTILE,)),
        ),
        plan=closed.plan,
        requests=replace(
            base.requests, completed=812, failed=180, cancelled=8, by_error={"reset": 131, "http_429": 49}
        ),
        load=closed.load,
        tokens=replace(base.tokens, itl_method="chunk", single_token_share=0.12),
        workload=replace(
            base.workload, prompts=PromptFile(f"{HOSTILE}.jsonl", "jsonl", "5f" * 32, 81234, 400, 12)
        ),
        by_class=tuple(replace(one, name=HOSTILE) for one in base.by_class),
        server=dataclasses.replace(
            base.server, engine=HOSTILE, seen=False, endpoints=(dataclasses.replace(endpoint, url=HOSTILE),)
        ),
    )


def empty_summary() -> Summary:
    """Nothing was ever answered: None wherever a document may have it."""
    base = simulated("closed").summary
    nothing = Rates(**dict.fromkeys(RATES))
    tokens = base.tokens
    lengths = dict.fromkeys(("asked_mean", "server_mean", "misses", "counted"))
    undecided = [judged(check.code, "na") for check in valid_checks()[:-1]]
    return replace(
        base,
        run=replace(base.run, interrupted=True, simulated=False, ended=None, plan_hash=None),
        verdict=verdict("INCONCLUSIVE", [*undecided, judged("few_samples", "unsure", 0, 2)]),
        sut=replace(
            base.sut,
            stream=False,
            protocol="HTTP/1.1",
            cache_state="unknown",
            model=None,
            boundary=None,
            software=None,
        ),
        requests=replace(base.requests, sent=0, completed=0, failed=0, by_error={}, failed_share_ci95=None),
        window=replace(base.window, start=None, duration_s=None, steady_start_s=None, steady_end_s=None),
        metrics=Metrics(**dict.fromkeys(METRICS)),
        distributions=Distributions(None, None, None, None),
        itl_shape=None,
        ttft_by_input=(),
        conversations=None,
        by_class=(),
        workload=replace(base.workload, items=(), missing=(), drawn=None, prefix_hits=None, fingerprint=None),
        throughput=replace(
            base.throughput,
            **dict.fromkeys((*RATES, "cached_input_share")),
            whole_run=nothing,
            ci95=nothing,
        ),
        steady=None,
        in_flight_tokens=None,
        preemption=None,
        load=replace(base.load, held=None, lateness_ms=None, lateness_causes_ms=None, lateness_shares=None),
        tokens=replace(
            tokens,
            itl_method=None,
            events=None,
            tokens=None,
            single_token_share=None,
            tokens_per_event=None,
            prompt=replace(tokens.prompt, **lengths, sent_mean=None),
            output=replace(tokens.output, **lengths, local_mean=None),
        ),
        slos=(),
        server=None,
        instrument=replace(
            base.instrument, receive_lag_ms=None, cpu_fraction=(), run_delay_fraction=(), stall_max_ms=None
        ),
        compliance=None,
    )


@functools.cache
def rich_series() -> RunSeries:
    """The series of the long run, with three of the server's own."""
    base = simulated("long").series
    assert base.timeline is not None
    at = base.timeline.t_s
    return dataclasses.replace(
        base,
        server={
            "running": Points((-0.2, *at, at[-1] + 9), (0.0, *base.timeline.in_flight, 0.0)),
            "waiting": Points(at, tuple(0.0 for _ in at)),
            "prefix_hit_share": Points((1.0,), (0.02,)),
        },
        lateness=LatenessPoints(at, tuple(0.02 + 0.001 * (i % 7) for i in range(len(at)))),
    )
