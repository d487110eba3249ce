"""The statement from the evidence: nothing amiss is compliance, and one thing amiss breaks exactly the rules about it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge.compliant import NO_WARM_UP, buckets, changed, classes, perfect

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.summary import DeclaredGuardrails, RequestCounts, WarmUpCount
from inferometer.judge.compliance.evidence import (
    TESTS,
    Evidence,
    Rule,
    Shown,
    ShownTable,
    catalogue,
    note,
    satisfied,
    unknown,
)
from inferometer.judge.compliance.statement import (
    CHECKS,
    LABELS,
    OPEN,
    STATES,
    Finding,
    campaign,
    comparison,
    comply,
    label_of,
)
from inferometer.measure.measurement import Refusals
from inferometer.plan.lengths import lognormal, uniform
from inferometer.plan.procedure_parameters import FairnessClass
from inferometer.plan.request_class import RequestClass
from inferometer.plan.schema import Load, Plan
from inferometer.plan.slo import Slo
from inferometer.plan.workload import MixtureWorkload

VECTORS = Path(__file__).parent.parent / "vectors" / "compliance"
BINDING = VECTORS / "binding.txt"
"""The draft's binding rules, id and level."""
PLAIN = VECTORS / "plain.txt"
"""What sections 3 to 7 and appendix C state without a word in capitals, id and section."""
ALONE = [test for test in TESTS if test != "compare"]


def deviating(evidence: Evidence) -> set[str]:
    """The rules that are broken or unknown."""
    return {one.rule.id for one in comply(evidence).deviations}


def test_the_catalogue_has_every_binding_rule_once() -> None:
    """126 of them, each at its level; no id stands twice, and every id has a check but those about several tests."""
    told = [line.split() for line in BINDING.read_text().splitlines()]
    bound = sorted([rule.id, rule.level] for rule in catalogue() if rule.weight != "states")
    assert len(told) == 126
    assert bound == sorted(told)
    ids = [rule.id for rule in catalogue()]
    assert len(set(ids)) == len(ids)
    assert {rule.id for rule in catalogue() if rule.kind not in ("campaign", "comparison")} == set(CHECKS)
    assert {test for rule in catalogue() for test in rule.tests} <= {*TESTS, "all", "campaign"}
    assert all(rule.text.endswith(".") and rule.how and rule.section for rule in catalogue())


def test_the_catalogue_has_every_plain_statement_once() -> None:
    """Those of sections 5, 6 and C all; of 3, 4 and 7 those that a run can contradict, or that are the tester's."""
    told = [line.split() for line in PLAIN.read_text().splitlines()]
    stated = sorted(
        [rule.id, rule.section.replace(" ", "")] for rule in catalogue() if rule.weight == "states"
    )
    assert stated == sorted(told)
    assert len(told) == 148
    sections = [section.partition(".")[0] for _, section in told]
    assert {name: sections.count(name) for name in ("5", "6", "C")} == {"5": 126, "6": 9, "C": 9}


@pytest.mark.parametrize("test", ALONE)
def test_nothing_amiss_is_unconditional_compliance(test: str) -> None:
    """And nobody has to be believed but where a client cannot see."""
    statement = comply(perfect(test))
    assert statement.label == "unconditionally compliant"
    assert statement.deviations == ()
    believed = {one.rule.id for one in statement.findings if one.state == "declared"}
    assert all(
        one.rule.kind in ("declared", "report") for one in statement.findings if one.rule.id in believed
    )


RUN = "runs.0.summary"
EVERY = "runs.*.summary"
UNNAMED = DeclaredGuardrails(True, True, ())
UNFILTERED = DeclaredGuardrails(None, None, ())
FILTERS_OFF = DeclaredGuardrails(False, False, ())
RAILS = {
    "D-4.8-account",
    "D-4.8.1-input",
    "D-4.8.1-output",
    "D-4.8.1-names",
    "D-4.8.2-default",
    "D-4.8.2-disabled",
}
SHORT = FairnessClass(name="short", input_tokens=(64, 256), output_tokens=(32, 128), share=1.0)
CLOSED = Load(model="closed", concurrency=8, duration_s=300.0)
SLO = Slo.model_validate("ttft_p99<500ms")
P999 = {"D-5.1.2-count-p999", "D-5.1.4.3-accuracy"}

OF_LEVELS = {
    "D-5.2.3-formula", "D-5.2.3-percentiles", "D-5.2.3-search", "D-5.2.3-unconstrained", "D-5.2.3.1-queue",
    "D-5.2.3.1-completion", "D-5.2.3.1-p99",
}  # fmt: skip
"""Rules on the table of a search for the highest throughput."""

ONE: list[tuple[str, str, Any, set[str]]] = [
    # test, what is changed, to what, and the rules that are then broken or unknown
    ("ttft", "plan.declared.terminology_read", None, {"D-1-terms"}),
    ("ttft", f"{RUN}.sut.boundary", None, {"D-4.1-boundary", "D-5.1.2-sut", "D-5.1.5.1-sut"}),
    ("ttft", f"{RUN}.instrument.timestamp_source", None, {"D-4.2.1-resolution", "D-4.7.4-precision"}),
    ("ttft", "plan.target.url", "http://gateway.example.org", {"D-4.1.1-api"}),
    ("ttft", f"{RUN}.sut.model", "diffusion-8b", {"D-3-out-of-scope"}),
    ("itl", f"{RUN}.instrument.timestamp_source", "user", {"D-4.2.1-microsecond"}),
    ("ttft", "plan.target.stream", False, {"D-4.2.2-streaming", "D-4.6.1-sse-gateway"}),
    ("ttft", f"{RUN}.sut.stream", False, {"D-4.2.2-streaming"}),
    ("ttft", f"{RUN}.tokens.events", 0, {"D-4.2.2-arrivals"}),
    ("ttft", f"{RUN}.verdict.checks.streamed.status", "fail", {"D-4.2.2-arrivals"}),
    ("ttft", f"{RUN}.verdict.checks.load_exact.status", "fail", {"D-4.2.3-open-loop", "D-5.1.3-stop"}),
    ("ttft", f"{RUN}.verdict.checks.arrival_rate.status", "fail", {"D-4.2.3-open-loop"}),
    ("ttft", f"{RUN}.verdict.checks.arrival_lag1.status", "fail", {"D-4.2.3-poisson"}),
    ("ttft", f"{RUN}.verdict.checks.lateness.status", "fail", {"D-4.2.3-open-loop", "D-4.2.5-isolation"}),
    ("capacity", f"{RUN}.verdict.checks.lateness.status", "fail", {"D-4.2.4-replace"}),
    ("capacity", f"{RUN}.verdict.checks.concurrency_held.status", "fail", {"D-4.2.4-closed-loop", "D-5.5.3-burst"}),
    ("ttft", f"{RUN}.verdict.checks.workers_alive.status", "fail", {"D-4.2.5-async"}),
    ("ttft", f"{RUN}.metrics.e2e_ms", None, {"D-4.2.6-submit"}),
    ("itl", f"{RUN}.metrics.ttft_ms", None, {"D-4.2.6-first"}),
    ("ttft", f"{RUN}.metrics.itl_ms", None, {"D-4.2.6-each"}),
    ("ttft", f"{RUN}.metrics.stream_end_ms", None, {"D-4.2.6-final"}),
    ("ttft", f"{RUN}.tokens.count_source", None, {"D-4.2.6-counts"}),
    ("ttft", f"{RUN}.requests.failed", 1, {"D-4.2.6-status"}),
    ("ttft", f"{RUN}.plan.workload.name", "custom", {"D-4.3.2.3-gateway"}),
    ("capacity", "runs.*.summary.workload.items.domain.value", None, {"D-4.3.1-domain", "D-4.3-custom-full"}),
    *(
        ("ttft", f"{EVERY}.workload.items.{item}.value", None, {f"D-4.3.1-{item}"})
        for item in ("input", "output", "control", "domain", "language", "system-prompt", "prefix")
    ),
    ("ttft", f"{RUN}.plan.workload.seed", None, {"D-4.3.3-seed", "D-4.3.3-seed-report", "D-4.3.3-publish"}),
    ("ttft", f"{RUN}.workload.texts.dataset.version", None, {"D-4.3.3-dataset"}),
    ("ttft", f"{RUN}.workload.texts.dataset.preprocessing", "", {"D-4.3.3-dataset"}),
    ("ttft", f"{RUN}.tokens.tokenizer.version", None, {"D-4.4.1-name"}),
    ("ttft", f"{RUN}.tokens.tokenizer.vocab_size", None, {"D-4.4.1-vocab"}),
    ("ttft", f"{RUN}.tokens.tokenizer.source", None, {"D-4.4.1-source"}),
    ("ttft", f"{RUN}.tokens.tokenizer.method", None, {"D-4.4.2-declare"}),
    ("ttft", f"{RUN}.verdict.checks.token_counts.status", "fail", {"D-4.4.2-declare"}),
    ("ttft", "plan.declared.model_loaded", None, {"D-4.5.1-load"}),
    ("ttft", "plan.declared.model_loaded", False, {"D-4.5.1-load"}),
    ("ttft", f"{RUN}.warm_up.completed", 99, {"D-4.5.1-volume"}),
    ("ttft", f"{RUN}.warm_up.output_tokens", 9_999, {"D-4.5.1-volume"}),
    ("ttft", f"{RUN}.warm_up.drained", False, {"D-4.5.1-drain", "D-5-configure"}),
    ("ttft", f"{RUN}.warm_up.drained", None, {"D-4.5.1-drain", "D-5-configure"}),
    ("prefix-cache", "runs.2.summary.warm_up.prefixes", "not populated", {"D-4.5.1-prefix"}),
    ("ttft", f"{RUN}.warm_up.probes.before_ms", None, {"D-4.5.2-probe"}),
    ("ttft", f"{RUN}.warm_up.probes.stable", False, {"D-4.5.2-stable"}),
    ("ttft", f"{RUN}.warm_up.probes", NO_WARM_UP.probes, {"D-4.5.2-probe", "D-4.5.2-stable"}),
    ("cold-start", f"{RUN}.requests.warmup.sent", 1, {"D-4.5.3-skip"}),
    ("cold-start", f"{RUN}.warm_up.skipped", False, {"D-4.5.3-mark"}),
    ("ttft", f"{RUN}.tokens.single_token_share", None, {"D-4.6.2-chunk"}),
    ("ttft", f"{RUN}.tokens.itl_method", None, {"D-4.6.2-multi", "D-4.6.3-declare"}),
    ("ttft", "plan.declared.clock_accuracy_ms", None, {"D-4.7.2-ntp", "D-4.7.2-report"}),
    ("ttft", "plan.declared.clock_accuracy_ms", 10.1, {"D-4.7.2-ntp"}),
    ("ttft", "plan.declared.clock_sync", None, {"D-4.7.2-report"}),
    ("ttft", f"{EVERY}.metrics.connect_ms", None, {"D-4.7.3-rtt"}),
    ("ttft", f"{RUN}.run.started", "2026-01-02T03:04:05", {"D-4.7.4-format"}),
    ("itl", f"{RUN}.sut.guardrails", UNFILTERED, RAILS),
    ("itl", f"{RUN}.sut.guardrails", UNNAMED, {"D-4.8.1-names"}),
    ("itl", f"{RUN}.sut.guardrails", FILTERS_OFF, {"D-4.8.2-default"}),
    ("guardrail", "parameters.configurations", ("full",), {"D-4.8.2-compare", "D-5.10.2-configs"}),
    ("ttft", f"{RUN}.plan.load", CLOSED.model_copy(update={"model": "users"}), {"D-5.1.2-load-model"}),
    ("ttft", f"{RUN}.plan.load.rate", None, {"D-5.1.2-rate"}),
    ("ttft", f"{RUN}.plan.load.arrival", "constant", {"D-5.1.2-arrival"}),
    ("ttft", f"{RUN}.plan.load", CLOSED.model_copy(update={"concurrency": None}), {"D-5.1.2-concurrency"}),
    ("ttft", f"{RUN}.sut.model_version", None, {"D-5.1.2-model", "D-5.1.5.1-model"}),
    ("ttft", f"{RUN}.sut.accelerator_memory", None, {"D-5.1.2-hardware", "D-5.1.5.1-model"}),
    ("ttft", f"{RUN}.sut.accelerator", None, {"D-5.1.2-hardware", "D-5.1.5.1-model"}),
    ("ttft", f"{RUN}.sut.prefix_caching", None, {"D-5.1.2-cache", "D-5.1.5.1-cache"}),
    ("ttft", f"{RUN}.sut.prefix_caching", "disabled", {"D-5.1.2-cache", "D-5.1.5.1-cache"}),
    ("ttft", "parameters.requests", 9_999, P999),
    ("ttft", "parameters.requests", 999, P999 | {"D-5.1.2-count-p99"}),
    ("ttft", f"{RUN}.metrics.ttft_ms.n", 999, P999 | {"D-5.1.2-count-p99"}),
    ("ttft", f"{RUN}.metrics.ttft_any_ms", None, {"D-5.1.3.1-noncontent"}),
    ("ttft", f"{RUN}.metrics.ttft_ms", None, P999 | {"D-4.2.6-first", "D-5.1.2-count-p99", "D-5.1.4.1-percentiles",
                                                   "D-5.1.4.1-moments", "D-5.1.4.3-samples"}),
    ("ttft", f"{RUN}.ttft_by_input", buckets((0, 9), (100, 9)), {"D-5.1.4.2-buckets"}),
    ("ttft", "shown.tables.ttft", ShownTable("5.1.5.2", 1, ("p99_9",)),
     {"D-5.1.4.1-percentiles", "D-5.1.4.3-samples", "D-5.1.5.2-table"}),
    ("ttft", "shown.tables.ttft", ShownTable("5.1.5.2", 0), {"D-5.1.4.1-percentiles", "D-5.1.4.3-samples", "D-5.1.5.2-table"}),
    ("ttft", "shown.tables.ttft_by_input", ShownTable("5.1.5.3", 0), {"D-5.1.4.2-by-length", "D-5.1.5.3-table"}),
    ("ttft", "shown.figures", frozenset(), {"D-5.1.5.4-plot"}),
    ("ttft", f"{RUN}.load.offered.rate", None, {"D-5.1.5.1-load"}),
    ("ttft", f"{RUN}.window.duration_s", None, {"D-5.1.5.1-extent"}),
    ("ttft", f"{RUN}.sut.guardrails", UNFILTERED, RAILS | {"D-5.1.5.1-guardrail"}),
    ("throughput", "parameters.duration_s", 59.0, {"D-5.2.2-duration", "D-5.2.2-duration-300"}),
    ("throughput", "parameters.duration_s", 299.0, {"D-5.2.2-duration-300"}),
    ("throughput", f"{RUN}.plan.load.duration_s", 59.0, {"D-5.2.2-duration", "D-5.2.3-level"}),
    ("throughput", f"{RUN}.plan.load.duration_s", 60.0, {"D-5.2.3-level"}),
    ("throughput", "runs.1.summary.plan.load.duration_s", 299.0, {"D-5.2.2-duration-300"}),
    ("throughput", "parameters.loop", None, {"D-5.2.2-load-model"}),
    ("throughput", "runs.2.part", "search", {"D-5.2.2-rate-range"}),
    ("throughput", f"{RUN}.plan.workload.name", "custom", {"D-4.3.2.3-gateway"}),
    ("throughput", "shown.figures", frozenset(), set()),
    ("throughput", "shown.tables", {}, {"D-5.2.4.3-latency", "D-5.2.5.1-table", *OF_LEVELS}),
    ("tradeoff", "parameters.percent", (20, 60, 120), {"D-5.3.2-levels", "D-5.3.3-steps"}),
    ("tradeoff", f"{EVERY}.plan.load.rate", 5.0, {"D-5.3.2-levels"}),
    ("tradeoff", f"{RUN}.plan.load", CLOSED, {"D-5.3.2-open-loop"}),
    ("tradeoff", f"{RUN}.plan.load.duration_s", 59.0, {"D-5.3.2-duration"}),
    ("tradeoff", "shown.figures", frozenset(), {"D-5.3.3-plot"}),
    ("tradeoff", "shown.tables", {}, {"D-5.3.5-table", "D-5.3.3-achieved", "D-5.3.4-latency", "D-5.3.4-success",
                                       "D-5.3.4-queue", "D-5.3.4-knee", "D-5.3.4-saturation"}),
    ("itl", f"{RUN}.plan.workload.name", "custom", {"D-5.4.2-workload", "D-4.3.2.3-gateway"}),
    ("itl", f"{RUN}.metrics.output_tokens.min", 49, {"D-5.4.2-min-output"}),
    ("itl", f"{RUN}.itl_shape.short_share", 0.01, {"D-5.4.2-min-output"}),
    ("itl", f"{RUN}.metrics.itl_ms.n", 4_999, {"D-5.4.2-count"}),
    ("itl", "parameters.requests", 99, {"D-5.4.2-count"}),
    ("itl", "runs.0.at", Conditions(), {"D-5.4.2-load"}),
    ("itl", "parameters.percent", (25, 50, 75), {"D-5.4.2-levels"}),
    ("itl", f"{RUN}.metrics.itl_ms.n", 3_000_000, {"D-5.4.3-no-ttft"}),
    ("itl", f"{RUN}.itl_shape.modality", "undetermined", {"D-5.4.4.3-modality"}),
    ("itl", f"{RUN}.itl_shape.tail", "undetermined", {"D-5.4.4.3-tail"}),
    ("itl", "shown.tables", {}, {"D-5.4.4.2-per-request", "D-5.4.5-table", "D-5.4.3-aggregate", "D-5.4.3-jitter",
                                 "D-5.4.3-pause", "D-5.4.4.1-moments", "D-5.4.4.1-percentiles", "D-5.4.4.3-ratio"}),
    ("capacity", f"{RUN}.plan.workload.based_on", None, {"D-5.5.2-workload"}),
    ("capacity", f"{RUN}.plan.workload.output_tokens", uniform(64, 256), {"D-5.5.2-output"}),
    ("capacity", "parameters.ttft_p99_ms", None, {"D-5.5.2-ttft"}),
    ("capacity", "parameters.success_rate", 0.98, {"D-5.5.2-completion"}),
    ("capacity", "parameters.maximum", None, {"D-5.5.2-bounds"}),
    ("capacity", f"{RUN}.requests", RequestCounts(799, 799, 0, 0, {}, None, WarmUpCount(120, 120)),
     {"D-5.5.3-duration"}),
    ("capacity", "shown.values.v", False, {"D-5.5.4-max"}),
    ("capacity", "shown.tables", {}, {"D-5.5.5-table", "D-5.5.2-oom", "D-5.5.3-record", "D-5.5.3-search"}),
    ("fairness", f"{RUN}.plan.workload.name", "custom", {"D-5.6.2-workload"}),
    ("fairness", "parameters.percent", 91.0, {"D-5.6.2-load"}),
    ("fairness", "parameters.requests_per_class", 499, {"D-5.6.2-count"}),
    ("fairness", "runs.2.summary.by_class", classes(("short", 499)), {"D-5.6.2-count"}),
    ("fairness", "runs.0.at", Conditions(), {"D-5.6.3-baseline"}),
    ("fairness", "runs.2.summary.plan.load.duration_s", 299.0, {"D-5.6.3-mixed"}),
    ("fairness", "parameters.classes", (SHORT,), {"D-5.6.2-classes", "D-5.6.2-ranges"}),
    ("fairness", "parameters.classes.short.share", 0.7, {"D-5.6.2-mix"}),
    ("fairness", "shown.values.v", False, {"D-5.6.4-inflation"}),
    ("fairness", "shown.tables", {}, {"D-5.6.5-class-table", "D-5.6.4-latency", "D-5.6.5-metric-table"}),
    ("prefix-cache", f"{RUN}.plan.workload.name", "custom", {"D-5.7.2-workload"}),
    ("prefix-cache", "switches.0.status", "contradicted", {"D-5.7.2-two-configs", "D-5.7.3-toggle"}),
    ("prefix-cache", "switches", (), {"D-5.7.2-two-configs", "D-5.7.3-toggle"}),
    ("prefix-cache", f"{RUN}.workload.fingerprint", "e" * 64, {"D-5.7.3-identical"}),
    ("prefix-cache", f"{RUN}.workload.items.prefix.value", "none", {"D-5.7.2-prefix"}),
    ("prefix-cache", "shown.values.v", False, {"D-5.7.4-reduction"}),
    ("prefix-cache", "shown.tables", {}, {"D-5.7.5-table", "D-5.7.4-ttft"}),
    ("memory-pressure", "runs.1.summary.plan.workload.name", "synthetic-uniform", {"D-5.8.2-workload"}),
    ("memory-pressure", "parameters.percent", (100,), {"D-5.8.2-levels"}),
    ("memory-pressure", "runs.0.part", "pilot", {"D-5.8.3-capacity"}),
    ("memory-pressure", "runs.1.summary.plan.load.duration_s", 119.0, {"D-5.8.3-run"}),
    ("memory-pressure", "shown.tables", {}, {"D-5.8.5-table", "D-5.8.3-monitor", "D-5.8.3-failures", "D-5.8.4-completion",
                                              "D-5.8.4-preemption", "D-5.8.4-recovery", "D-5.8.4-loss"}),
    ("memory-pressure", "plan.declared.isolated", None, {"D-7.4-isolated"}),
    ("memory-pressure", "plan.declared.recovery_ready", False, {"D-7.4-recovery"}),
    ("memory-pressure", "plan.declared.monitored", None, {"D-7.4-cascade"}),
    ("long-context", f"{RUN}.plan.workload.name", "conversation", {"D-5.9.2-workload"}),
    ("long-context", "parameters.output_tokens", 16, {"D-5.9.2-output"}),
    ("long-context", "parameters.concurrency", 5, {"D-5.9.2-load"}),
    ("long-context", f"{RUN}.plan.load.concurrency", 5, {"D-5.9.2-load"}),
    ("long-context", "parameters.requests", 19, {"D-5.9.2-count"}),
    ("long-context", f"{RUN}.metrics.e2e_ms.n", 19, {"D-5.9.2-count"}),
    ("long-context", "runs.0.at.context", 99_999, {"D-5.9.3-order", "D-5.9.4-latency", "D-5.9.4-throughput"}),
    ("long-context", "parameters.lengths", (), {"D-5.9.2-lengths"}),
    ("long-context", "shown.tables", {}, {"D-5.9.5-table", "D-5.9.4-latency", "D-5.9.4-prefill", "D-5.9.4-throughput"}),
    ("long-context", "shown.values.v", False, {"D-5.9.5-fit"}),
    ("guardrail", f"{RUN}.plan.workload.name", "custom", {"D-5.10.2-workload", "D-4.3.2.3-gateway"}),
    ("guardrail", "runs.1.at.configuration", "full", {"D-5.10.2-configs"}),
    ("guardrail", "switches.0.status", "contradicted", {"D-5.10.2-configs", "D-5.10.3-toggle"}),
    ("guardrail", "parameters.percent", (25, 75), {"D-5.10.2-levels"}),
    ("guardrail", "runs.0.at.configuration", "input", {"D-5.10.2-configs", "D-5.10.3-run"}),
    ("guardrail", "shown.tables", {}, {"D-5.10.4-throughput", "D-5.10.4-latency"}),
    ("ttft", "plan.declared.publication_considered", None, {"D-7.1-publish"}),
    ("ttft", "plan.declared.workloads_varied", False, {"D-7.2-vary"}),
]  # fmt: skip


LEVELS, LENGTHS = "shown.tables.levels.cells", "shown.tables.lengths.cells"
WRONG: list[tuple[str, str, Any, set[str]]] = [
    # test, a cell or a value that is not what runs and table say, and the rules that see it
    ("ttft", "shown.tables.ttft_by_input.cells.0.n", 8, {"D-5.1.5.3-table"}),
    ("throughput", f"{LEVELS}.0.achieved", 1.0, {"D-5.2.3-formula"}),
    ("throughput", f"{LEVELS}.0.ttft_p99", 1.0, {"D-5.2.3-percentiles"}),
    ("throughput", f"{LEVELS}.*.sustained", "yes", {"D-5.2.3-search"}),
    ("throughput", f"{LEVELS}.1.because", "", {"D-5.2.3.1-queue", "D-5.2.3.1-completion", "D-5.2.3.1-p99"}),
    ("throughput", f"{LEVELS}.0.queue", None, {"D-5.2.3-unconstrained", "D-5.2.3.1-queue"}),
    ("throughput", "shown.numbers.max_output_tok_s", 1e6, {"D-5.2.3-sustainable", "D-5.2.4.2-gpu"}),
    ("throughput", "shown.numbers.tok_per_gpu_s", 1.0, {"D-5.2.4.2-gpu"}),
    ("throughput", "shown.values.max_output_tok_s", False, {"D-5.2.3-sustainable", "D-5.2.4.1-output"}),
    ("throughput", "shown.values.max_request_s", False, {"D-5.2.4.1-request"}),
    ("throughput", "shown.values.max_input_tok_s", False, {"D-5.2.4.1-input"}),
    ("throughput", f"{RUN}.steady", None, {"D-5.2.3.2-steady"}),
    ("throughput", f"{RUN}.window.steady_start_s", 0.0, {"D-5.2.3.2-ramp"}),
    ("tradeoff", "shown.values.capacity_rate", False, {"D-5.3.3-estimate"}),
    ("tradeoff", f"{LEVELS}.3.e2e_p95", 1.0, {"D-5.3.4-latency"}),
    ("tradeoff", f"{LEVELS}.3.success", 1.0, {"D-5.3.4-success"}),
    ("tradeoff", f"{LEVELS}.3.queue", None, {"D-5.3.4-queue"}),
    ("tradeoff", f"{LEVELS}.3.ttft_p99", 201.0, {"D-5.3.4-latency", "D-5.3.4-knee"}),
    ("tradeoff", f"{LEVELS}.3.achieved", 0.0, {"D-5.3.3-achieved", "D-5.3.4-saturation"}),
    ("tradeoff", "shown.numbers.knee", 4.0, {"D-5.3.4-knee"}),
    ("tradeoff", "shown.values", {"v": True, "capacity_rate": True}, {"D-5.3.5-points"}),
    ("itl", f"{RUN}.metrics.itl_ms", None, {"D-4.2.6-each", "D-5.4.2-count", "D-5.4.3-no-ttft", "D-5.4.3-formula"}),
    ("itl", "shown.tables.itl.cells.0.at_25", 1, {"D-5.4.3-aggregate"}),
    ("itl", "shown.tables.itl.cells.4.at_25", 1.0, {"D-5.4.4.1-percentiles"}),
    ("itl", "shown.tables.itl.cells.7.at_25", 1.0, {"D-5.4.4.1-moments"}),
    ("itl", "shown.tables.shape.cells.0.ratio", 2.0, {"D-5.4.4.3-ratio"}),
    ("itl", "shown.tables.per_request.cells.0.jitter_p50", None, {"D-5.4.3-jitter"}),
    ("itl", "shown.tables.per_request.cells.0.max_pause_p50", None, {"D-5.4.3-pause"}),
    ("capacity", f"{LEVELS}.0.errors", None, {"D-5.5.2-oom"}),
    ("capacity", f"{LEVELS}.0.ttft_p99", 1.0, {"D-5.5.3-record"}),
    ("capacity", f"{LEVELS}.*.status", "Pass (confirmed)", {"D-5.5.3-search"}),
    ("capacity", "shown.values.throughput_at_max", False, {"D-5.5.4-throughput", "D-5.5.4-max"}),
    ("capacity", "shown.values.tokens_in_flight_mean", False, {"D-5.5.4-in-flight", "D-5.5.4-max"}),
    ("fairness", "runs.2.summary.by_class", (), {"D-5.6.3-record", "D-5.6.2-count", "D-5.6.4-latency"}),
    ("fairness", "shown.tables.classes.cells.1.ttft_p95", 1.0, {"D-5.6.4-latency"}),
    ("fairness", "shown.numbers.jain", 1.2, {"D-5.6.4-jain"}),
    ("fairness", "shown.numbers.jain", 0.8, {"D-5.6.4-jain-reading"}),
    ("fairness", "shown.values.starvation_short", False, {"D-5.6.4-starvation", "D-5.6.4-inflation"}),
    ("prefix-cache", f"{RUN}.warm_up.prefixes", "populated", {"D-5.7.3-disabled"}),
    ("prefix-cache", "shown.tables.cache.cells.1.ttft_p95", 1.0, {"D-5.7.4-ttft"}),
    ("prefix-cache", "runs.1.summary.throughput.cached_prefix_share", 0.5, {"D-5.7.4-hit-rate"}),
    ("prefix-cache", "shown.numbers.throughput_improvement", 9.0, {"D-5.7.4-throughput"}),
    ("memory-pressure", f"{LEVELS}.0.completion", None, {"D-5.8.3-monitor", "D-5.8.4-completion"}),
    ("memory-pressure", f"{LEVELS}.0.failed", None, {"D-5.8.3-failures"}),
    ("memory-pressure", "shown.values.degradation", False, {"D-5.8.3-analyse"}),
    ("memory-pressure", f"{LEVELS}.0.preempted", None, {"D-5.8.4-preemption"}),
    ("memory-pressure", f"{LEVELS}.0.recovered", None, {"D-5.8.4-recovery"}),
    ("memory-pressure", f"{LEVELS}.0.lost", None, {"D-5.8.4-loss"}),
    ("long-context", f"{RUN}.warm_up.probes.input_tokens", 20_000, {"D-5.9.3-warmup"}),
    ("long-context", f"{RUN}.warm_up.probes.input_tokens", None, {"D-5.9.3-warmup"}),
    ("long-context", f"{LENGTHS}.0.ttft_p95", 1.0, {"D-5.9.4-latency"}),
    ("long-context", f"{LENGTHS}.0.ms_per_1k", 1.0, {"D-5.9.4-prefill"}),
    ("long-context", f"{LENGTHS}.0.output_tok_s", 1.0, {"D-5.9.4-throughput"}),
    ("long-context", "shown.numbers.exponent", 1.0, {"D-5.9.4-exponent"}),
    ("guardrail", "shown.tables.latency_50.cells.0.e2e_p99", 1.0, {"D-5.10.4-latency"}),
    ("guardrail", "shown.numbers.input_overhead_50", 8.0, {"D-5.10.4-input"}),
    ("guardrail", "shown.numbers.full_overhead_50", 8.0, {"D-5.10.4-total"}),
    ("ttft", f"{RUN}.metrics.ttft_ms.min", -1.0, {"D-5.1.3-formula"}),
    ("ttft", f"{RUN}.metrics.ttft_ms.mean", 99.0, {"D-5.1.3.1-content"}),
    ("ttft", f"{RUN}.requests.sent", 19_999, {"D-4.2.6-status", "D-5.1.3-stop"}),
]  # fmt: skip


UNTOLD = {f"{EVERY}.plan.workload.name": "custom", f"{EVERY}.workload.items.domain.value": None}
CUSTOM = {"D-4.3-custom-full", "D-4.3.1-domain", "D-4.3.2.3-gateway"}
WITHOUT_RANGE = {"parameters.loop": "closed", "parameters.concurrency_step": None}
SEVERAL: list[tuple[str, dict[str, Any], set[str]]] = [
    ("ttft", UNTOLD, CUSTOM | {"D-5.1.2-workload", "D-5.1.5.1-workload"}),
    ("throughput", UNTOLD, CUSTOM | {"D-5.2.2-workload"}),
    ("tradeoff", UNTOLD, CUSTOM | {"D-5.3.2-workload"}),
    ("throughput", WITHOUT_RANGE, {"D-5.2.2-conc-range"}),
]
SPOILT = [*((test, {path: value}, rules) for test, path, value, rules in [*ONE, *WRONG]), *SEVERAL]


@pytest.mark.parametrize(
    ("test", "changes", "rules"),
    SPOILT,
    ids=lambda part: (", ".join(sorted(part)) if isinstance(part, set) else str(part))[:70],
)
def test_one_thing_amiss_breaks_the_rules_about_it_and_no_other(
    test: str, changes: dict[str, Any], rules: set[str]
) -> None:
    """By its weight the label follows: MUST, else SHOULD, else none of both."""
    statement = comply(changed(perfect(test), changes))
    assert {one.rule.id for one in statement.deviations} == rules
    weights = {one.rule.weight for one in statement.deviations}
    expected = (
        "not compliant" if "MUST" in weights else "conditionally compliant" if "SHOULD" in weights else None
    )
    assert statement.label == (expected or "unconditionally compliant")


def test_every_rule_can_be_broken() -> None:
    """By one of the changes above, by a run that never came, or by the boundary: no check says yes whatever there is."""
    seen = {name for _, _, rules in SPOILT for name in rules}
    for test in ALONE:
        seen |= deviating(dataclasses.replace(perfect(test), runs=()))
    seen |= deviating(changed(perfect("ttft"), {f"{EVERY}.sut.boundary": "engine"}))
    seen |= deviating(dataclasses.replace(perfect("ttft"), shown=Shown()))
    able = {rule.id for rule in catalogue() if rule.kind not in ("campaign", "comparison")}
    # What the instrument discloses of itself, and what says `not applicable` as long as nothing else is spoken.
    told = {"D-4.4.3-bos-eos", "D-4.4.3-system", "D-4.4.3-tools", "D-4.7.3-document"}
    beside = {"D-4.6.3-prefer-C", "D-4.7.2-ptp"}
    # What has a precondition that no perfect test fulfils, and what nobody can check.
    conditional = {"D-5.1.4.2-components", "D-5.2.2-slo-meaning", "D-5.2.4.2-batch", "D-5.3.4-optimal"}
    assert able - seen == told | beside | conditional | {"D-7.2-gaming", "D-5.10.2-benign"}


NOTE = Note("none")
RULES = [rule for rule in catalogue() if rule.kind not in ("campaign", "comparison")]


@given(st.lists(st.tuples(st.sampled_from(RULES), st.sampled_from(STATES)), max_size=30))
def test_the_label_is_that_of_the_weightiest_open_rule(found: list[tuple[Rule, Any]]) -> None:
    """Whatever else there is: what does not apply, what is only stated, and what is kept never count; declared is kept."""
    findings = [Finding(rule, state, NOTE) for rule, state in found]
    open_ = {one.rule.weight for one in findings if one.state in OPEN}
    expected = LABELS[2] if "MUST" in open_ else LABELS[1] if "SHOULD" in open_ else LABELS[0]
    assert label_of(findings) == expected
    counting = [one for one in findings if one.state in OPEN and one.rule.weight != "states"]
    assert label_of(counting) == expected
    assert label_of(findings, simulated=True) == "not a measurement"


@given(
    st.lists(st.tuples(st.sampled_from(RULES), st.sampled_from(STATES)), max_size=20), st.sampled_from(RULES)
)
def test_one_more_open_rule_never_betters_the_label(found: list[tuple[Rule, Any]], rule: Rule) -> None:
    """Labels are ordered: unknown is as bad as violated."""
    findings = [Finding(one, state, NOTE) for one, state in found]
    before = LABELS.index(label_of(findings))
    after = {LABELS.index(label_of([*findings, Finding(rule, state, NOTE)])) for state in OPEN}
    assert len(after) == 1
    assert after.pop() >= before


def test_an_unknown_must_blocks_and_a_declared_one_passes_with_a_mark() -> None:
    """Q-unverifiable: silence is no evidence, a word is one that is told as such."""
    silent = comply(changed(perfect("ttft"), {"plan.declared.model_loaded": None}))
    (missing,) = silent.deviations
    assert (missing.rule.id, missing.state, silent.label) == ("D-4.5.1-load", "unknown", "not compliant")
    states = {one.rule.id: one.state for one in comply(perfect("ttft")).findings}
    assert states["D-4.5.1-load"] == "declared"


@pytest.mark.parametrize("test", ALONE)
def test_what_has_not_run_is_not_kept(test: str) -> None:
    """Without runs, tables and figures nothing that they would show is satisfied."""
    statement = comply(dataclasses.replace(perfect(test), runs=(), shown=Shown()))
    assert statement.label == "not compliant"
    shown = [
        one for one in statement.findings if one.rule.kind in ("program", "runs") and one.state == "satisfied"
    ]
    assert shown == []


@pytest.mark.parametrize("test", ALONE)
def test_a_simulation_is_no_measurement(test: str) -> None:
    """It carries no label of the draft's, however well it went; what it says of the plan is still there."""
    changes = {f"{EVERY}.run.simulated": True, "plan.declared.model_loaded": None}
    statement = comply(changed(perfect(test), changes))
    assert statement.label == "not a measurement"
    measuring = {one.state for one in statement.findings if one.rule.kind in ("program", "runs")}
    assert measuring == {"not applicable"}
    assert test == "cold-start" or {one.rule.id for one in statement.deviations} == {"D-4.5.1-load"}


def test_the_first_run_that_breaks_a_rule_is_named() -> None:
    """Of several levels, the third and the fourth fall short."""
    short = {f"runs.{place}.summary.metrics.itl_ms.n": 4_000 + place for place in (2, 3)}
    (found,) = comply(changed(perfect("itl"), short)).deviations
    assert found.run == "run-2"
    few = note("too_few_samples", capacity=True, n=4_002, metric="itl_ms", limit=5_000)
    assert found.note == few


def test_only_first_warm_ups_count() -> None:
    """Levels after the first rely on its warm-up; after a switch there is another first."""
    none = {"runs.1.summary.warm_up": NO_WARM_UP}
    assert deviating(changed(perfect("itl"), none)) == set()
    assert "D-4.5.1-volume" in deviating(changed(perfect("guardrail"), none))
    assert deviating(changed(perfect("prefix-cache"), none)) == set()


def test_a_run_that_only_warms_up_is_no_level_and_warms_what_follows() -> None:
    """Its warm-up is the test's, its load is not; the document's states say where the next one begins."""
    alone = perfect("tradeoff")
    first = changed(alone, {f"{RUN}.plan.load": CLOSED}).runs[0]
    warmed = dataclasses.replace(
        alone, runs=(dataclasses.replace(first, name="first", part="warm-up"), *alone.runs)
    )
    without = changed(warmed, {"runs.1.summary.warm_up": NO_WARM_UP})
    assert deviating(without) == set()
    assert "D-4.5.1-volume" in deviating(changed(warmed, {"runs.0.summary.warm_up": NO_WARM_UP}))
    switched = tuple(
        dataclasses.replace(one, state={"server": "started"}) if i else one
        for i, one in enumerate(without.runs)
    )
    assert "D-4.5.1-volume" in deviating(dataclasses.replace(without, runs=switched))


def test_classes_of_skewed_lengths_are_of_synthetic_skewed() -> None:
    """Q-fairness-classes: its two log-normals, within the bounds of each class; others are none of it."""
    lengths = [lognormal(5.5, 1, min=low, max=2 * low) for low in (64, 1024)]
    drawn = tuple(
        RequestClass(name=str(i), input_tokens=one, output_tokens=lognormal(4.5, 1.2, max=9))
        for i, one in enumerate(lengths)
    )
    changes = {f"{EVERY}.plan.workload": MixtureWorkload(classes=drawn)}
    assert deviating(changed(perfect("fairness"), changes)) == set()
    other = drawn[0].model_copy(update={"input_tokens": lognormal(5.5, 1.5)})
    changes = {f"{EVERY}.plan.workload": MixtureWorkload(classes=(other, drawn[1]))}
    assert deviating(changed(perfect("fairness"), changes)) == {"D-5.6.2-workload"}


@pytest.mark.parametrize(
    ("test", "standard"), [("prefix-cache", "code-completion"), ("guardrail", "conversation")]
)
def test_a_stand_in_is_not_the_recommended_workload_and_the_note_says_what_it_lacks(
    test: str, standard: str
) -> None:
    """Q-datasets: without the dataset of the draft it has the lengths and not the name. Other lengths are another workload."""
    rule = {"prefix-cache": "D-5.7.2-workload", "guardrail": "D-5.10.2-workload"}[test]

    def found(**workload: object) -> tuple[str, str]:
        made = Plan.model_validate({"workload": {"name": standard, **workload}}).workload
        changes = {f"{EVERY}.plan.workload": made, f"{RUN}.sut.boundary": "engine"}
        findings = comply(changed(perfect(test), changes)).findings
        return next((one.state, one.note.code) for one in findings if one.rule.id == rule)

    assert found() == ("violated", "stand_in")
    assert found(output_tokens=100) == ("violated", "other_workload")
    assert found(dataset="data") == ("satisfied", "workload")


def test_prompts_of_one_range_need_no_table_by_range() -> None:
    """Draft 5.1.4.2 asks for it where lengths vary."""
    changes = {
        f"{RUN}.ttft_by_input": buckets((256, 9), (512, 0)),
        "shown.tables": {"ttft": ShownTable("5.1.5.2", 3)},
    }
    assert deviating(changed(perfect("ttft"), changes)) == set()


def test_a_cell_that_the_draft_does_not_ask_for_may_be_empty() -> None:
    """An interval that could not be worked out is no deviation from Table 5; a missing P99 is."""

    def levels(*empty: str) -> set[str]:
        return deviating(changed(perfect("tradeoff"), {"shown.tables.levels.empty": empty}))

    assert levels("low", "high") == set()
    assert levels("ttft_p99") == {"D-5.3.5-table"}


OBSERVED: list[tuple[dict[str, Any], str]] = [
    # What is declared, and what is seen against it
    ({f"{RUN}.sut.guardrails": FILTERS_OFF, f"{RUN}.refusals": Refusals(3, {"finish_reason": 3})}, "D-4.8-account"),
    ({f"{RUN}.sut.prefix_caching": "disabled"}, "D-5.1.2-cache"),
    ({f"{RUN}.verdict.checks.token_counts.status": "fail"}, "D-4.4.2-declare"),
    ({f"{RUN}.sut.boundary": "engine"}, "D-4.8-account"),
    ({f"{RUN}.sut.boundary": "engine", "plan.target.url": None, "plan.declared.same_machine": False},
     "D-4.7.1-same-machine"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule"), OBSERVED, ids=lambda part: str(part)[:60])
def test_what_is_seen_beats_what_is_declared(changes: dict[str, Any], rule: str) -> None:
    """A contradiction breaks the rule."""
    found = {one.rule.id: one.state for one in comply(changed(perfect("ttft"), changes)).findings}
    assert found[rule] == "violated"


@pytest.mark.parametrize(
    ("url", "declared", "states"),
    [
        ("http://localhost:8000", None, ("satisfied", "not applicable")),
        ("http://127.0.0.7:8000", None, ("satisfied", "not applicable")),
        ("http://[::1]:8000", None, ("satisfied", "not applicable")),
        ("http://localhost:8000", False, ("violated", "declared")),  # a tunnel
        ("http://10.0.0.7:8000", None, ("violated", "declared")),
        ("http://10.0.0.7:8000", True, ("declared", "not applicable")),
        (None, None, ("satisfied", "not applicable")),
    ],
)
def test_one_machine_is_seen_by_its_address_or_declared(
    url: str | None, declared: bool | None, states: tuple[str, str]
) -> None:
    """Draft 4.7.1 for engines, and 4.7.2 for clocks that are then two."""
    changes = {
        f"{RUN}.sut.boundary": "engine",
        "plan.target.url": url,
        "plan.declared.same_machine": declared,
    }
    found = {one.rule.id: one.state for one in comply(changed(perfect("ttft"), changes)).findings}
    assert (found["D-4.7.1-same-machine"], found["D-4.7.2-ntp"]) == states


ENGINE: dict[str, Any] = {
    f"{RUN}.sut.boundary": "engine",
    f"{RUN}.sut.guardrails": FILTERS_OFF,
    "plan.target.url": "http://localhost",
}


def test_an_engine_is_conditionally_compliant_at_best() -> None:
    """Q-protocols: it is recommended to stream from engines over gRPC, which nothing here speaks."""
    statement = comply(changed(perfect("ttft"), ENGINE))
    assert statement.label == "conditionally compliant"
    assert [one.rule.id for one in statement.deviations] == ["D-4.6.1-grpc-engine"]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"plan.target.url": "https://localhost"}, "https"),
        ({"plan.target.url": "http://10.0.0.7:8000"}, "network"),
        ({"plan.declared.same_machine": False}, "network"),
        ({"plan.target.api_key_env": "KEY"}, "api_key"),
        ({f"{RUN}.requests.by_error": {"http_429": 2}}, "rate_limit"),
        ({f"{RUN}.sut.guardrails": UNNAMED}, "filter"),
        ({f"{RUN}.refusals": Refusals(3, {"finish_reason": 3})}, "filter"),
    ],
)
def test_what_an_engine_leaves_out_contradicts_its_boundary(changes: dict[str, Any], part: str) -> None:
    """Draft 4.1.1: transport, authentication, rate limits and filters; a gateway has them all. It is only stated, so the
    label stands unless a filter is there, which has a rule of its own (Q-engine-guardrails)."""

    def ruling(*more: dict[str, Any]) -> Finding:
        evidence = changed(perfect("ttft"), {key: value for one in more for key, value in one.items()})
        (found,) = (one for one in comply(evidence).findings if one.rule.id == "D-4.1.1-excluded")
        return found

    assert ruling(ENGINE).state == "satisfied"
    found = ruling(ENGINE, changes)
    assert (found.state, found.note.facts["parts"]) == ("violated", (part,))
    assert ruling(changes).state == "not applicable"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "not applicable"),
        ({f"{RUN}.sut.software": "Ollama 0.5"}, "unknown"),
        ({f"{RUN}.sut.accelerator": "Apple M3 Max"}, "unknown"),
        ({f"{RUN}.sut.software": "Ollama 0.5", "plan.target.url": "http://10.0.0.7"}, "not applicable"),
        ({f"{RUN}.sut.software": "Ollama 0.5", "plan.target.url": None}, "not applicable"),
    ],
)
def test_what_may_be_out_of_scope_is_said_and_not_claimed(changes: dict[str, Any], state: str) -> None:
    """Draft 3: a server for one user's machine, on the client's own, may be on-device inference; elsewhere it is none."""
    found = comply(changed(perfect("ttft"), ENGINE | changes)).findings
    assert {one.state for one in found if one.rule.id == "D-3-out-of-scope"} == {state}


def test_an_engines_campaign_needs_synthetic_uniform_once() -> None:
    """Q-engine-workload: and a test's own workload goes first, so one test alone is not held to it."""
    tests = [
        changed(perfect(name), {f"{EVERY}.sut.boundary": "engine"}) for name in ("fairness", "long-context")
    ]
    with_it = changed(tests[0], {f"{EVERY}.plan.workload.name": "synthetic-uniform"})
    without, found, gateway = (
        next(one for one in campaign(of).findings if one.rule.id == "D-4.3.2.1-required")
        for of in (tests, [tests[1], with_it], [perfect("ttft")])
    )
    assert [one.state for one in (without, found, gateway)] == ["violated", "satisfied", "not applicable"]
    assert without.rule.id == "D-4.3.2.1-required"
    alone = {one.rule.id: one.state for one in comply(tests[0]).findings}
    assert alone["D-4.3.2.1-required"] == "not applicable"


def test_the_minimum_report_lacks_what_no_test_measured() -> None:
    """Draft C.1: maximum throughput and the operating point of 500 ms come from test 5.2 alone; the other lines from any
    test with levels."""

    def lacking(*tests: Evidence) -> set[str]:
        return {one.rule.id for one in campaign(tests).deviations}

    of_search = {"D-C.1-throughput", "D-C.1-slo"}
    assert lacking(perfect("ttft"), perfect("throughput")) == set()
    assert lacking(perfect("ttft")) == of_search
    unnamed = changed(perfect("ttft"), {f"{RUN}.sut.software": None})
    assert lacking(unnamed) == of_search | {"D-C.1-system"}
    untimed = changed(perfect("ttft"), {f"{RUN}.window.duration_s": None, f"{RUN}.metrics.tpot_ms": None})
    assert lacking(untimed) == of_search | {"D-C.1-test", "D-C.1-latency"}
    nothing = dataclasses.replace(perfect("ttft"), runs=())
    assert lacking(nothing) == of_search | {"D-C.1-system", "D-C.1-test", "D-C.1-latency"}


def test_what_nobody_can_check_says_so() -> None:
    """And counts for nothing: prompts of a file, and whether a system recognises a benchmark."""
    found = {one.rule.id: one for one in comply(perfect("ttft")).findings}
    gaming = found["D-7.2-gaming"]
    assert (gaming.state, gaming.note.code) == ("not applicable", "cannot_be_checked")
    evidence = changed(perfect("guardrail"), {f"{EVERY}.plan.workload.file": "prompts.jsonl"})
    (benign,) = (one for one in comply(evidence).findings if one.rule.id == "D-5.10.2-benign")
    assert (benign.state, benign.note.code) == ("not applicable", "cannot_be_checked")


@pytest.mark.parametrize(
    ("test", "changes", "rule", "states"),
    [
        ("ttft", {f"{RUN}.server": None}, "D-5.1.4.2-components", {"not applicable"}),
        ("throughput", {f"{EVERY}.plan.slos": ()}, "D-5.2.2-slo-meaning", {"not applicable"}),
        ("throughput", {f"{RUN}.sut.accelerator_count": 0}, "D-5.2.4.2-gpu", {"not applicable"}),
        ("throughput", {}, "D-5.2.4.2-batch", {"not applicable"}),
        ("throughput", {"shown.values.batch_utilisation": True}, "D-5.2.4.2-batch", {"satisfied"}),
        ("tradeoff", {}, "D-5.3.4-optimal", {"not applicable"}),
        ("tradeoff", {f"{EVERY}.plan.slos": (SLO,)}, "D-5.3.4-optimal", {"violated"}),
        ("throughput", {f"{EVERY}.plan.slos": (SLO,)}, "D-5.2.2-slo-meaning", {"satisfied"}),
    ],
)
def test_a_statement_about_what_can_be_measured_holds_where_it_can(
    test: str, changes: dict[str, Any], rule: str, states: set[str]
) -> None:
    """The queue's wait where the server tells it, tokens by GPU where there are any, an optimum where there are objectives."""
    found = comply(changed(perfect(test), changes)).findings
    assert {one.state for one in found if one.rule.id == rule} == states


def test_a_campaign_is_as_compliant_as_its_worst_test() -> None:
    """And a simulated test makes none of it a measurement."""
    good, bad = perfect("itl"), changed(perfect("ttft"), {"plan.declared.terminology_read": None})
    assert campaign([good]).label == "unconditionally compliant"
    assert campaign([good, bad]).label == "conditionally compliant"
    simulated = changed(bad, {f"{EVERY}.run.simulated": True})
    assert campaign([good, simulated]).label == "not a measurement"


def test_section_6_counts_toward_a_comparison_alone() -> None:
    """Q-verdict-scope: no test has its rules; a comparison has those and no other, and what nobody looked at is unknown."""
    rules = {rule.id for rule in catalogue() if rule.kind == "comparison"}
    of_tests = {one.rule.id for test in ALONE for one in comply(perfect(test)).findings}
    assert not of_tests & rules
    assert comparison({name: satisfied(NOTE) for name in rules}).label == "unconditionally compliant"
    assert comparison({}).label == "not compliant"
    assert {one.rule.id for one in comparison({}).deviations} == rules
    with pytest.raises(ValueError, match=r"D-4\.1-boundary"):
        comparison({"D-4.1-boundary": unknown(NOTE)})
    with pytest.raises(ValueError, match="compare"):
        comply(dataclasses.replace(perfect("ttft"), test="compare"))


def test_the_brief_form_counts_every_finding_and_names_what_is_open() -> None:
    """Counts add up to the findings, and deviations are in the order of their weight."""
    statement = comply(changed(perfect("ttft"), {"parameters.requests": 10}))
    brief = statement.brief()
    assert sum(n for counts in brief.counts.values() for n in counts.values()) == len(statement.findings)
    assert tuple(one.rule.id for one in statement.deviations) == brief.deviations
    assert brief.label == statement.label == "not compliant"
    weights = [one.rule.weight for one in statement.deviations]
    assert weights == sorted(weights, key=["MUST", "SHOULD", "states"].index)


@pytest.mark.parametrize("test", ALONE)
def test_a_test_that_did_not_come_to_its_end_complies_with_nothing(test: str) -> None:
    """Whatever it had measured until then was as it should be."""
    cut = comply(dataclasses.replace(perfect(test), cut="connection refused"))
    assert (cut.label, cut.cut) == ("not compliant", "connection refused")
    assert cut.findings == comply(perfect(test)).findings


@pytest.mark.parametrize(
    ("test", "state", "path", "value", "rule"),
    [
        (
            "prefix-cache",
            {"prefix_cache": "disabled"},
            "throughput.cached_input_share",
            0.4,
            "D-5.7.2-two-configs",
        ),
        ("guardrail", {"guardrails": "baseline"}, "refusals.by_signal.policy_status", 3, "D-5.10.2-configs"),
    ],
)
def test_what_runs_show_contradicts_a_state_that_was_only_declared(
    test: str, state: dict[str, str], path: str, value: object, rule: str
) -> None:
    """The word of whoever switched does not stand against what the system did."""
    changes = {f"{RUN}.{path}": value, "switches.0.status": "declared", "runs.0.state": state}
    found = comply(changed(perfect(test), changes))
    assert (rule, "violated", "run-0") in {(one.rule.id, one.state, one.run) for one in found.deviations}


def test_a_run_that_its_requests_ended_lasted_as_long_as_they_did() -> None:
    """Not as long as it might have."""
    requests = "runs.-1.summary.plan.load.requests"
    short = changed(perfect("memory-pressure"), {"runs.-1.summary.window.duration_s": 90.0})
    assert deviating(short) == set()
    assert deviating(changed(short, {requests: 20_001})) == set()
    assert deviating(changed(short, {requests: 20_000})) == {"D-5.8.3-run"}
