"""Summaries with just what procedures read of them, for tests of what they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inferometer.errors import PlanError
from inferometer.procedures.step import (
    Done,
    DoneRefused,
    DoneRun,
    Refused,
    Run,
    Seen,
    Step,
    Steps,
    Switched,
)

Answer = Callable[[Step], Mapping[str, Any] | Switched | PlanError]


def summary(
    *,
    ttft: Mapping[str, Any] | None = None,
    tokens: float | None = None,
    sent: int = 100,
    failed: int = 0,
    output_tok_s: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Of a run with these statistics of TTFT in ms."""
    share = (sent - failed) / sent
    rates = {"output_tok_s": output_tok_s, "input_tok_s": None, "request_s": None}
    return {
        "metrics": {
            "ttft_ms": None if ttft is None else {"n": sent - failed, "ci95": {}, **ttft},
            "tpot_ms": None,
            "e2e_ms": None,
            "input_tokens": None if tokens is None else {"mean": tokens, "n": sent},
        },
        "throughput": {**rates, "ci95": {}, "whole_run": rates, "cached_input_share": None},
        "requests": {
            "sent": sent,
            "completed": sent - failed,
            "failed": failed,
            "cancelled": 0,
            "by_error": {},
        },
        "success_rate": {"value": share, "ci95": None, "succeeded": sent - failed, "ended": sent},
        "slos": [],
        **more,
    }


def played(steps: Steps, answer: Answer, most: int = 200) -> list[Done]:
    """A procedure's steps, each answered by a function: a summary, a Switched, or a PlanError that is thrown into it."""
    done: list[Done] = []
    came: Any = None
    for number in range(most):
        try:
            step = steps.throw(came) if isinstance(came, PlanError) else steps.send(came)
        except StopIteration:
            return done
        came = answer(step)
        if isinstance(came, PlanError):
            assert isinstance(step, Run)
            done.append(DoneRefused(step, Refused(str(came))))
        elif isinstance(step, Run):
            assert not isinstance(came, Switched)
            came = Seen(f"run-{number}", came)
            done.append(DoneRun(step, came))
        else:
            done.append(Done(step, came))
    raise AssertionError(f"a procedure without end: {most} steps")
