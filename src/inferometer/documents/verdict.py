"""Checks and the verdict that follows from them.

| status of a check | means                                                   | makes the run |
| ----------------- | ------------------------------------------------------- | ------------- |
| pass              | looked at, and good                                     |               |
| fail              | the numbers are wrong, or are not about what was asked  | INVALID       |
| unsure            | the evidence does not reach                             | INCONCLUSIVE  |
| note              | a reader should know; the numbers stand                 |               |
| na                | the check does not apply to this run                    |               |

One fail outweighs any number of unsure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from inferometer.documents.part import Part

CheckStatus = Literal["pass", "fail", "unsure", "note", "na"]
RunStatus = Literal["VALID", "INVALID", "INCONCLUSIVE"]


class CheckResult(Part, frozen=True):
    """One check of a run: the value observed, the limit it is held to, the unit of both, and the sentence for it.

    `facts`: further plain values (numbers, names, small tables) that the sentence rests on.
    """

    code: str
    status: CheckStatus
    value: float | tuple[float, ...] | None
    limit: float | tuple[float, ...] | None
    unit: str | None
    facts: Mapping[str, Any]
    message: str


class Reason(Part, frozen=True):
    """A check that decided against VALID."""

    code: str
    message: str
    value: float | tuple[float, ...] | None
    limit: float | tuple[float, ...] | None


class RunVerdict(Part, frozen=True):
    """Whether to believe a run. `reasons`: the checks that decided against VALID, failures first."""

    status: RunStatus
    reasons: tuple[Reason, ...]
    checks: tuple[CheckResult, ...]
