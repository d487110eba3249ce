"""Procedures carried out on a script: a function from a plan to a summary takes the place of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from procedures import summaries
from procedures.summaries import changed, objective, quantiles, simulated, stats, steady

from inferometer.documents.summary import Summary
from inferometer.measure.distributions import Distributions
from inferometer.measure.itl_shape import ItlShape
from inferometer.measure.load import TokensInFlight
from inferometer.plan.schema import Plan
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run

System = Callable[[Plan], Summary]


class FellOver(Exception):
    """The system does not answer any more."""


def carried(name: str, setup: Setup, system: System, *, most: int = 200) -> list[Performed]:
    """What a procedure did with a system, until its end, or until the system fell over or `most` runs were made."""
    done: list[Performed] = []
    steps = PROCEDURES[name].steps(setup)
    came: Measured | None = None
    while len(done) < most:
        try:
            step = steps.send(came)
            assert isinstance(step, Run)
            came = Measured(f"run-{len(done)}", system(step.plan))
        except (StopIteration, FellOver):
            return done
        done.append(PerformedRun(step, came))
    return done


def results(name: str, setup: Setup, done: list[Performed]) -> Results:
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
    shape: ItlShape | None = None,
    growing: bool | None = None,
    itl_method: str = "direct",
    single: float = 1.0,
    per_event: float = 1.0,
) -> Summary:
    """The summary of a plan's run: P50 and P99 of latencies in ms. `width`: of all intervals, on either side, as a share."""
    points = {"ttft": ttft, "tpot": tpot, "e2e": e2e}
    latencies = {name: stats(*ends, n=completed, width=width) for name, ends in points.items()}
    output = tokens * request_s
    return summaries.summary(
        ttft=latencies["ttft"],
        tpot=latencies["tpot"],
        e2e=latencies["e2e"],
        output_tokens=stats(tokens, tokens, n=completed),
        output_tok_s=output,
        request_s=request_s,
        width=width,
        completed=completed,
        by_error=by_error,
        seconds=seconds,
        steady=steady(output, completions=completed, growing=growing),
        in_flight_tokens=TokensInFlight(1.0, 2.0),
        slos=tuple(objective(slo, getattr(latencies[slo.metric], str(slo.stat)), width) for slo in plan.slos),
        itl_shape=shape,
        tokens=changed(
            simulated().tokens, itl_method=itl_method, single_token_share=single, tokens_per_event=per_event
        ),
        distributions=Distributions(
            **{
                f"{name}_ms": quantiles((0.0, low), (50.0, low), (99.0, high), (100.0, high))
                for name, (low, high) in points.items()
            },
            itl_ms=None,
        ),
    )
