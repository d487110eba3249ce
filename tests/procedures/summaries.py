"""Summaries for tests of what is decided by them: a simulated run's, with other figures in the places that matter."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from procedures.driving import Silent

from inferometer.documents.summary import Objective, Summary
from inferometer.measure.distributions import Distributions, Quantiles
from inferometer.measure.steady import Queue, Steady
from inferometer.metrics.statistics import Interval, Intervals, Stats
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

T = TypeVar("T")

LATENCIES = ("ttft", "tpot", "e2e")
NO_INTERVALS = Intervals(None, None, None, None, None)


@functools.cache
def simulated() -> Summary:
    """The summary of a small run in virtual time."""
    plan = Plan.model_validate({"load": {"requests": 20, "warmup": 0}})
    with tempfile.TemporaryDirectory() as folder:
        return simulate(plan, choose("tiny-cpu"), Path(folder), Silent()).summary


def changed(part: T, **members: Any) -> T:
    """A part of a summary with other members."""
    if isinstance(part, msgspec.Struct):
        return msgspec.structs.replace(part, **members)
    return dataclasses.replace(part, **members)  # type: ignore[type-var]  # what is measured is a dataclass


def around(value: float, width: float) -> Interval:
    """An interval of so much on either side, as a share."""
    return value * (1 - width), value * (1 + width)


def stats(
    p50: float, p99: float, n: int = 1_000, width: float | None = 0.01, **points: float | None
) -> Stats:
    """Statistics with these two points, and intervals `width` on either side; None: no intervals."""
    at = {"p50": p50, "p75": p50, "p90": p50, "p95": (p50 + p99) / 2, "p99": p99, "p99_9": p99}
    ends = {name: around(at[name], width) for name in ("p50", "p90", "p95", "p99")} if width else {}
    found = dataclasses.replace(
        Stats(n=n, mean=p50, std=0.0, min=p50, max=p99, **at, ci95=NO_INTERVALS),
        **points,  # type: ignore[arg-type]
    )
    return dataclasses.replace(found, ci95=dataclasses.replace(NO_INTERVALS, **ends))  # type: ignore[arg-type]


def quantiles(*steps: tuple[float, float]) -> Quantiles:
    """Of (per cent, value)."""
    return Quantiles(tuple(q for q, _ in steps), tuple(value for _, value in steps))


def steady(
    output: float = 100.0,
    *,
    completions: int = 1_000,
    ratio: float | None = 1.0,
    ratio_ci: Interval | None = (0.99, 1.01),
    growing: bool | None = None,
    rise: float = 0.0,
    seconds: float = 60.0,
    thirds: tuple[float, ...] | None = None,
    source: Literal["server", "in_flight"] = "in_flight",
) -> Steady:
    """A steady span with this many output tokens a second. `rise`: of a queue of 100 requests in flight, or waiting at the
    server (`source`)."""
    return Steady(
        duration_s=seconds,
        arrivals=completions,
        completions=completions,
        completion_ratio=ratio,
        completion_ratio_ci95=ratio_ci,
        queue=Queue(source, (100.0, 100.0 + rise * 50, 100.0 + rise * 100), rise, growing),
        output_thirds_tok_s=thirds or (output,) * 3,
        stable=None,
    )


def summary(
    *,
    ttft: Stats | None = None,
    tpot: Stats | None = None,
    e2e: Stats | None = None,
    input_tokens: Stats | None = None,
    output_tokens: Stats | None = None,
    output_tok_s: float | None = None,
    request_s: float | None = None,
    width: float | None = None,
    completed: int = 100,
    failed: int = 0,
    by_error: Mapping[str, int] | None = None,
    seconds: float = 600.0,
    **members: Any,
) -> Summary:
    """A summary with these figures, and without those that are not given. `width`: of the rates' intervals, on either side,
    as a share."""
    whole = simulated()
    rates: dict[str, float | None] = {
        "output_tok_s": output_tok_s,
        "input_tok_s": output_tok_s,
        "request_s": request_s,
    }
    ends = {name: None if at is None or width is None else around(at, width) for name, at in rates.items()}
    throughput = whole.throughput
    failures = dict(by_error or {})
    lost = failed + sum(failures.values())
    ended = completed + lost
    metrics = {"ttft_ms": ttft, "tpot_ms": tpot, "e2e_ms": e2e, "input_tokens": input_tokens}
    parts: dict[str, Any] = {
        "metrics": changed(whole.metrics, **metrics, output_tokens=output_tokens),
        "throughput": changed(
            throughput,
            **rates,
            whole_run=changed(throughput.whole_run, **rates),
            cached_input_share=None,
            cached_prefix_share=None,
            ci95=changed(throughput.ci95, **ends),
        ),
        "requests": changed(
            whole.requests, sent=ended, completed=completed, failed=lost, cancelled=0, by_error=failures
        ),
        "success_rate": changed(
            whole.success_rate,
            value=completed / ended if ended else None,
            ci95=None,
            succeeded=completed,
            ended=ended,
        ),
        "window": changed(whole.window, duration_s=seconds),
        "distributions": Distributions(None, None, None, None),
        "steady": None,
        "in_flight_tokens": None,
        "itl_shape": None,
        "ttft_by_input": (),
        "slos": (),
    }
    return changed(whole, **(parts | members))


def objective(slo: Slo, value: float, width: float) -> Objective:
    """The outcome of an objective by a value and an interval `width` on either side."""
    met = {slo.met_by(end) for end in around(value, width)}
    return Objective(str(slo), value, slo.limit, met.pop() if len(met) == 1 else None, None)
