"""Evidence out of what is at hand: a run's summary, a test's document with its runs, a plan before the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.judge.compliance.evidence import Evidence, Ran, Sheet, Shown
from inferometer.judge.compliance.report_rules import shown_in
from inferometer.judge.compliance.statement import Finding, comply, foreseen
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan
from inferometer.plan.workload_disclosure import NAMES, disclosed, requirement

SINGLE = "ttft"
"""A run by itself is judged as the test of section 5.1, with its own load."""


def of_run(summary: Mapping[str, Any]) -> Evidence:
    """A run's summary as a test of TTFT: its load is the test's one level, and its report shows what 5.1.5 asks for."""
    plan, ttft = summary["plan"], summary["metrics"]["ttft_ms"]
    statistics = ("n", "p50", "p90", "p95", "p99", "p99_9", "mean", "min", "max")
    empty = tuple(name for name in statistics if ttft is None or ttft[name] is None)
    buckets = [one for one in summary["ttft_by_input"] if one["n"]]
    shown = Shown(
        tables={"ttft": Sheet("5.1.5.2", 1, empty), "ttft_by_input": Sheet("5.1.5.3", len(buckets))},
        figures=frozenset(() if ttft is None or not ttft["n"] else ("ttft_cdf",)),
    )
    level = Ran(summary["run"]["id"], "level", {}, summary)
    asked = plan["load"]["requests"]
    parameters = {} if asked is None else {"requests": asked}
    return Evidence(SINGLE, plan, parameters, (level,), shown=shown)


def brief_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The member `compliance` of a run's summary."""
    return comply(of_run(summary)).brief()


def of_test(document: Mapping[str, Any], summaries: Mapping[str, Mapping[str, Any]]) -> Evidence:
    """A test's document (inferometer/test/1) with the summaries of its runs, by the names of their folders."""
    runs = tuple(
        Ran(one["run"], one["part"], one["at"], summaries[one["run"]], one.get("state") or {})
        for one in document["runs"]
    )
    return Evidence(
        document["test"],
        document["plan"],
        document["parameters"],
        runs,
        tuple(document["switches"]),
        shown_in(document),
        cut=None
        if document.get("ended_by") is None
        else str(document.get("problem") or document["ended_by"]),
        virtual=bool(document.get("simulated")),
    )


def ahead_of(test: str, parameters: Mapping[str, Any], plan: Plan) -> Evidence:
    """A test before its start. `plan` is the one its levels will have: with their load and workload.

    Draft 4.3.1's items are known but for those that are found in a file or a trace.
    """
    items = None
    if plan.workload.prompts is None and plan.workload.file is None and plan.trace is None:
        found = disclosed(plan)
        items = {requirement(name): getattr(found, name) for name in NAMES}
    return Evidence(test, resolved(plan), parameters, items=items, ahead=True)


def deviations_of(test: str, parameters: Mapping[str, Any], plan: Plan) -> Sequence[Finding]:
    """What such a test would break before anything is sent, by the same rules as afterwards."""
    return foreseen(ahead_of(test, parameters, plan))
