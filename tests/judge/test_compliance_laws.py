"""The statement from the evidence: nothing amiss is compliance, and one thing amiss breaks exactly the rules about it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from judge.compliant import (
    ALONE,
    CLOSED,
    EVERY,
    FILTERS_OFF,
    NO_WARM_UP,
    RUN,
    UNNAMED,
    buckets,
    changed,
    classes,
    deviating,
    perfect,
)

from inferometer.documents.campaign import Conditions
from inferometer.documents.summary import DeclaredGuardrails, RequestCounts, WarmUpCount
from inferometer.judge.compliance.evidence import (
    TESTS,
    Shown,
    ShownTable,
    catalogue,
)
from inferometer.judge.compliance.statement import (
    CHECKS,
    comply,
)
from inferometer.plan.lengths import uniform
from inferometer.plan.procedure_parameters import FairnessClass

VECTORS = Path(__file__).parent.parent / "vectors" / "compliance"

BINDING = VECTORS / "binding.txt"
"""The draft's binding rules, id and level."""

PLAIN = VECTORS / "plain.txt"
"""What sections 3 to 7 and appendix C state without a word in capitals, id and section."""


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
    assert len(told) == 150
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


UNFILTERED = DeclaredGuardrails(None, None, ())

RAILS = {
    "D-4.8-account",
    "D-4.8.1-input",
    "D-4.8.1-output",
    "D-4.8.1-names",
    "D-4.8.2-default",
    "D-4.8.2-disabled",
}

SHORT = FairnessClass(name="short", input_tokens=(64, 256), output_tokens=(32, 128), share=1.0)

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
    ("ttft", f"{EVERY}.sut.boundary", "compound", {"D-4.1.3-included", "D-4.1.3-task"}),
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
    ("itl", f"{RUN}.itl_shape.itl_ms.n", 4_999, {"D-5.4.2-count"}),
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
    ("itl", f"{RUN}.metrics.itl_ms", None, {"D-4.2.6-each", "D-5.4.3-no-ttft", "D-5.4.3-formula"}),
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
