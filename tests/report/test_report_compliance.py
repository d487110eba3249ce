"""A statement in words: of any run, in 80 columns, whatever a server calls itself."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.judge.compliance.rule import DRAFT
from inferometer.judge.compliance.sources import brief_of, of_run
from inferometer.judge.compliance.statement import comply
from inferometer.plan.parse import build
from inferometer.plan.saved import resolved
from inferometer.report.compliance import WIDTH, lines

PLANS: dict[str, dict[str, object]] = {
    "closed": {"--concurrency": "4"},
    "open": {"--rate": "5", "--url": "https://gateway.example.org"},
    "users": {"--users": "3", "--user-rate": "1"},
    "trace": {"--trace": "azure.csv"},
    "whole": {"--no-stream": True, "--tokenizer": "none"},
    "prompts": {"--prompts": "own.jsonl", "--concurrency": "2"},
}


@pytest.mark.parametrize("plan", PLANS)
def test_any_run_has_a_statement_that_fits(sample: tuple[dict[str, Any], Any], plan: str) -> None:
    """Also one in which nothing was measured: then little is kept, and nothing is thrown."""
    summary = sample[0] | {"plan": resolved(build(None, PLANS[plan]))}
    statement = comply(of_run(summary)).as_dict()
    said = lines(statement)
    assert max(map(len, said)) <= WIDTH
    assert said[0] == f"ttft (draft 5.1): {statement['label'].upper()}"
    assert not any(set(line) & set("\x1b\u202e") for line in said)
    assert brief_of(summary)["label"] == statement["label"]


def test_without_samples_nothing_that_they_would_show_is_kept(empty: dict[str, Any]) -> None:
    """Neither latencies nor their table."""
    summary = empty | {"plan": resolved(build(None, {"--rate": "5"}))}
    found = {one.rule.id: one.state for one in comply(of_run(summary)).findings}
    names = (
        "D-4.2.6-first",
        "D-5.1.4.1-percentiles",
        "D-5.1.4.3-samples",
        "D-5.1.5.2-table",
        "D-5.1.5.4-plot",
    )
    assert {found[name] for name in names} == {"violated"}


def test_the_draft_is_cited_as_work_in_progress(valid: dict[str, Any]) -> None:
    """With its revision and month, and no expiry date (Q-expiry)."""
    summary = valid | {"plan": resolved(build(None, {}))}
    text = "\n".join(lines(comply(of_run(summary)).as_dict()))
    assert DRAFT in text
    assert "work in progress, revision -00, January 2026" in text
