"""What a compound system says of its tokens is its own word: no figure of what its user sees rests on it (draft 4.1.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from inferometer.judge.judge import judge
from inferometer.measure.measurement import measure
from inferometer.measure.series import series
from inferometer.plan.schema import Plan

OPEN = {"load": {"model": "open", "rate": 100, "requests": 40}}
COMPOUND = OPEN | {"sut": {"boundary": "compound"}}
INSIDE = {"prompt_length", "output_length", "token_counts", "cache_hits"}
seeds = st.integers(0, 2**32)


def figures(of: Any) -> Iterator[Any]:
    """Every leaf of a tree."""
    if isinstance(of, dict | list | tuple):
        for one in of.values() if isinstance(of, dict) else of:
            yield from figures(one)
    else:
        yield of


def measured(
    build: Any, plan: Plan, rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """What the user sees, what the system says, and the statuses of the checks."""
    record = build(*rows).apart_from_system()
    found = measure(plan, record)
    seen = to_builtins(found) | {"series": to_builtins(series(plan, record))}
    system = seen["tokens"].pop("system")
    return seen, system, {one.code: one.status for one in judge(plan, found, record).checks}


@given(seeds, st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_a_lie_in_usage_moves_no_figure_that_the_user_sees(
    build: Any, plan_of: Any, random_rows: Any, seed: int, times: int
) -> None:
    """Law: figures, curves and checks are functions of the streams and their text alone, whatever usage says."""
    rows = random_rows(seed, 40)
    lies = [row | {"usage_output": times * (row["usage_output"] or 1), "usage_cached": times} for row in rows]
    plan = plan_of(**COMPOUND)
    honest, lied = measured(build, plan, rows), measured(build, plan, lies)
    assert repr(honest[0]) == repr(lied[0])
    assert honest[2] == lied[2]
    assert {honest[2][code] for code in INSIDE} <= {"na"}
    assert not any(isinstance(one, float) and math.isnan(one) for one in figures(honest[0]))


def test_the_systems_word_is_reported_apart(build: Any, plan_of: Any, random_rows: Any) -> None:
    """Law: what usage says of all steps is kept, per request, as the system's own."""
    rows = [
        {"index": at, "t_intended": at * 9.0, "t_submit": at * 9.0, "events": [(at * 9.0 + 3, 1)]}
        for at in range(3)
    ]
    said = [row | {"usage_input": 10 + at, "usage_output": 100 * at or None} for at, row in enumerate(rows)]
    _, system, _ = measured(build, plan_of(**COMPOUND), said)
    assert (system["requests"], system["reported"], system["cached_tokens"]) == (3, 3, None)
    assert (system["input_tokens"]["mean"], system["output_tokens"]["mean"]) == (11, 150)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_tokens_that_nobody_counted_are_unknown(
    build: Any, plan_of: Any, random_rows: Any, seed: int
) -> None:
    """Law: without a tokenizer nothing per token is known, all else is as with one, and no figure is NaN."""
    rows = random_rows(seed, 40)
    silent = [row | {"output_tokens_local": None} for row in rows]
    plan = plan_of(**COMPOUND)
    seen, _, _ = measured(build, plan, silent)
    of_text = measured(build, plan, [row | {"output_tokens_local": 5} for row in rows])[0]
    assert seen["metrics"]["tpot_ms"] is seen["metrics"]["output_tokens"] is seen["tokens"]["tokens"] is None
    assert seen["tokens"]["count_source"] is None
    assert seen["throughput"]["whole_run"]["output_tok_s"] is None
    for name in ("ttft_ms", "e2e_ms", "chunk_gap_ms", "input_tokens"):
        assert repr(seen["metrics"][name]) == repr(of_text["metrics"][name])
    assert repr(seen["throughput"]["whole_run"]["request_s"]) == repr(
        of_text["throughput"]["whole_run"]["request_s"]
    )
    assert not any(isinstance(one, float) and math.isnan(one) for one in figures(seen))


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_prompts_that_nobody_counted_have_no_length(
    build: Any, plan_of: Any, random_rows: Any, seed: int
) -> None:
    """Law: a prompt that neither server nor client counted, as a recorded step's, is of unknown length and never of none."""
    rows = [row | {"input_tokens_sent": 0, "input_tokens_asked": 0} for row in random_rows(seed, 40)]
    plan = plan_of(**OPEN)
    record = build(*rows)
    found = to_builtins(measure(plan, record))
    curves = to_builtins(series(plan, record))
    assert found["metrics"]["input_tokens"] is found["throughput"]["whole_run"]["input_tok_s"] is None
    assert found["in_flight_tokens"] is None
    assert all(one["n"] == 0 for one in found["ttft_by_input"])
    assert curves["lengths"]["input_tokens"] is None
    assert not any(isinstance(one, float) and math.isnan(one) for one in figures(found))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("cl100k_base", "reference")),
        ({"tokenizer": {"name": "auto"}}, ("cl100k_base", "reference")),
        ({"tokenizer": {"name": "o200k_base"}}, ("o200k_base", "reference")),
        ({"tokenizer": {"name": "none"}}, ("none", "native")),
        ({"tokenizer": {"name": "server"}}, ("server", "native")),
    ],
)
def test_a_compound_systems_answers_are_counted_by_the_reference_tokenizer(
    given: dict[str, Any], expected: tuple[str, str]
) -> None:
    """Law: where it is left open who counts, the draft's recommendation does (4.4.2, option B), not usage."""
    plan = Plan.model_validate({"sut": {"boundary": "compound"}, "load": {"rate": 1, "requests": 2}} | given)
    assert (plan.tokenizer.name, plan.tokenizer.method) == expected
