"""Checks of what all tests of a campaign have to show together: an engine's workload (draft 4.3.2.1), and what the minimum
and the full report hold (appendix C)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    Ruling,
    not_applicable,
    note,
    satisfied,
    violated,
)

CampaignCheck = Callable[[Sequence[Evidence]], Ruling]


def uniform_once(tests: Sequence[Evidence]) -> Ruling:
    """Draft 4.3.2.1 (Q-engine-workload): a test of an engine has Synthetic-Uniform."""
    engines = [one for one in tests if one.system.boundary == "engine"]
    if not engines:
        return not_applicable(note("no_engine"))
    used = tuple(one.test for one in engines if _uses_uniform(one))
    return satisfied(note("uniform_in", tests=used)) if used else violated(note("uniform_nowhere"))


def _uses_uniform(evidence: Evidence) -> bool:
    return any(workload.name == "synthetic-uniform" for workload, _ in evidence.workloads)


def _levels(tests: Sequence[Evidence]) -> list[MeasuredRun]:
    return [run for test in tests for run in test.levels]


def identification(tests: Sequence[Evidence]) -> Ruling:
    """Draft C.1: four lines, by the first run of the campaign."""
    run = next((run for test in tests for run in test.runs), None)
    if run is None:
        return violated(note("nothing_shown"))
    sut = run.summary.sut
    lines = {
        "model": sut.model,
        "hardware": sut.accelerator,
        "software": sut.software,
        "boundary": sut.boundary,
    }
    return _complete(lines)


def configuration(tests: Sequence[Evidence]) -> Ruling:
    """Draft C.1: workload, load, requests and duration of a level."""
    levels = _levels(tests)
    if not levels:
        return violated(note("nothing_shown"))
    first = levels[0]
    offered = first.summary.load.offered
    lines = {
        "workload": first.summary.plan.workload.name,
        "load_model": offered.rate if offered.concurrency is None else offered.concurrency,
        "request_count": first.summary.requests.sent,
        "test_duration_s": first.summary.window.duration_s,
    }
    return _complete(lines)


def latencies(tests: Sequence[Evidence]) -> Ruling:
    """Draft C.1: TTFT and TPOT of some level."""
    levels = _levels(tests)
    lines = {
        name: next((stats for run in levels if (stats := run.measured(name)) is not None), None)
        for name in ("ttft_ms", "tpot_ms")
    }
    return _complete(lines)


def _complete(lines: Mapping[str, object]) -> Ruling:
    missing = tuple(name for name, value in lines.items() if value is None)
    return (
        violated(note("lines_missing", lines=missing))
        if missing
        else satisfied(note("lines", lines=tuple(lines)))
    )


def throughput(value: str) -> CampaignCheck:
    """Draft C.1: a value of the throughput test."""

    def check(tests: Sequence[Evidence]) -> Ruling:
        shown = [one.shown.values.get(value) for one in tests if one.test == "throughput" and one.shown]
        if any(shown):
            return satisfied(note("values", names=(value,)))
        return violated(note("not_measured", names=(value,)))

    return check


def written(kept: Note) -> CampaignCheck:
    """What reports are made of, whatever was measured."""
    return lambda _: satisfied(kept)


CHECKS: dict[str, CampaignCheck] = {
    "D-4.3.2.1-required": uniform_once,
    "D-C.1-format": written(note("minimum_report")),
    "D-C.1-system": identification,
    "D-C.1-test": configuration,
    "D-C.1-latency": latencies,
    "D-C.1-throughput": throughput("max_output_tok_s"),
    "D-C.1-slo": throughput("throughput_at_ttft_limit"),
    "D-C.1-notes": written(note("minimum_notes")),
    "D-C.2-first-half": written(note("full_report")),
    "D-C.2-second-half": written(note("full_report")),
}
