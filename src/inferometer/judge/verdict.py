"""Checks and the verdict that follows from them, before they have words (documents/verdict.py says what a status means)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inferometer.documents.verdict import CheckStatus, RunStatus

Facts = dict[str, Any]
"""Further plain values that a check's sentence rests on: the one open place, since each check has its own."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was found (`value`) against what is allowed (`limit`), in `unit` ("" for a share or a plain number).

    `facts` are further plain values (numbers, names, small dicts) that a sentence about the check may need.
    """

    code: str
    status: CheckStatus
    value: float | None
    limit: float | None
    unit: str = ""
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to believe a run. `reasons` are the checks that decided against VALID, failures first."""

    status: RunStatus
    checks: tuple[Check, ...]

    @property
    def reasons(self) -> tuple[Check, ...]:
        """Checks that failed, then those that are unsure, each in the order of the checks."""
        return tuple(
            check for status in ("fail", "unsure") for check in self.checks if check.status == status
        )

    def check(self, code: str) -> Check:
        """The check named `code`; KeyError if there is none."""
        for check in self.checks:
            if check.code == code:
                return check
        raise KeyError(code)


def verdict_of(checks: Iterable[Check]) -> Verdict:
    """The run's status from its checks."""
    checks = tuple(checks)
    statuses = {check.status for check in checks}
    status: RunStatus = (
        "INVALID" if "fail" in statuses else "INCONCLUSIVE" if "unsure" in statuses else "VALID"
    )
    return Verdict(status, checks)
