"""Procedures carried out on a script: a function from a plan to a summary takes the place of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Done, DoneRun, Run, Seen

System = Callable[[Plan], dict[str, Any]]


class FellOver(Exception):
    """The system does not answer any more."""


def carried(name: str, setup: Setup, system: System, *, most: int = 200) -> list[Done]:
    """What a procedure did with a system, until its end, or until the system fell over or `most` runs were made."""
    done: list[Done] = []
    steps = PROCEDURES[name].steps(setup)
    came: Seen | None = None
    while len(done) < most:
        try:
            step = steps.send(came)
            assert isinstance(step, Run)
            came = Seen(f"run-{len(done)}", system(step.plan))
        except (StopIteration, FellOver):
            return done
        done.append(DoneRun(step, came))
    return done


def results(name: str, setup: Setup, done: list[Done]) -> Results:
    """What came of it."""
    return PROCEDURES[name].results(setup, done)


def value(found: Results, name: str) -> Any:
    """One of the values."""
    return next(one for one in found.values if one.name == name)


def rows(found: Results, name: str) -> list[dict[str, Any]]:
    """The rows of one of the tables, by the names of the columns."""
    table = next(one for one in found.tables if one.name == name)
    assert all(len(row) == len(table.columns) for row in table.rows)
    return [
        {column.name: cell for column, cell in zip(table.columns, row, strict=True)} for row in table.rows
    ]


def stats(p50: float, p99: float, n: int = 1_000, width: float = 0.01) -> dict[str, Any]:
    """Statistics with these two points, and intervals of so much on either side."""
    points = {"p50": p50, "p75": p50, "p90": p50, "p95": (p50 + p99) / 2, "p99": p99, "p99_9": p99}
    ends = {name: [at * (1 - width), at * (1 + width)] for name, at in points.items()}
    return {"n": n, "mean": p50, "std": 0.0, "min": p50, "max": p99, **points, "ci95": ends}


def summary(
    plan: Plan,
    *,
    request_s: float,
    ttft: tuple[float, float] = (20.0, 30.0),
    tpot: tuple[float, float] = (10.0, 12.0),
    e2e: tuple[float, float] = (200.0, 300.0),
    tokens: float = 100.0,
    width: float = 0.01,
    completed: int = 1_000,
    by_error: Mapping[str, int] | None = None,
    seconds: float = 600.0,
    shape: dict[str, Any] | None = None,
    growing: bool | None = None,
) -> dict[str, Any]:
    """A summary, as far as procedures read it. `width`: of all intervals, on either side, as a share."""
    failed = sum((by_error or {}).values())
    ended = completed + failed
    latencies = {"ttft": ttft, "tpot": tpot, "e2e": e2e}
    metrics = {f"{name}_ms": stats(*points, n=completed, width=width) for name, points in latencies.items()}
    output = tokens * request_s
    return {
        "requests": {"completed": completed, "failed": failed, "by_error": dict(by_error or {})},
        "success_rate": {"value": completed / ended if ended else None, "ci95": None, "succeeded": completed, "ended": ended},
        "window": {"duration_s": seconds},
        "metrics": {**metrics, "output_tokens": {"n": completed, "mean": tokens, "std": 0.0, "min": tokens}},
        "throughput": {
            "output_tok_s": output,
            "input_tok_s": output,
            "request_s": request_s,
            "whole_run": {"output_tok_s": output, "input_tok_s": output, "request_s": request_s},
            "cached_input_share": None,
            "ci95": {name: [at * (1 - width), at * (1 + width)] for name, at in
                     (("output_tok_s", output), ("input_tok_s", output), ("request_s", request_s))},
        },
        "steady": {
            "completions": completed,
            "completion_ratio": 1.0,
            "completion_ratio_ci95": [0.99, 1.01],
            "queue": {"growing": growing, "rise_share": 0.0},
            "output_thirds_tok_s": [output] * 3,
        },
        "in_flight_tokens": {"mean": 1.0, "peak": 2.0},
        "first_wave": {"ttft_p99_ms": ttft[0]},
        "slos": [_outcome(slo, metrics, width) for slo in plan.slos],
        "tokens": {"itl_method": "direct", "single_token_share": 1.0, "tokens_per_event": 1.0},
        "itl_shape": shape,
        "distributions": {
            f"{name}_ms": {"q": [0.0, 50.0, 99.0, 100.0], "v": [low, low, high, high]}
            for name, (low, high) in latencies.items()
        },
    }  # fmt: skip


def _outcome(slo: Slo, metrics: dict[str, Any], width: float) -> dict[str, Any]:
    found = metrics[f"{slo.metric}_ms"][slo.stat]
    ends = {slo.met_by(found * (1 + side)) for side in (-width, width)}
    return {
        "expr": str(slo),
        "value": found,
        "limit": slo.limit,
        "met": ends.pop() if len(ends) == 1 else None,
    }
