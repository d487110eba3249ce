"""Statements of compliance with the draft: how each rule stands, and the label that follows (draft 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inferometer.documents.note import Fact
from inferometer.documents.part import Part

ComplianceLabel = Literal[
    "unconditionally compliant", "conditionally compliant", "not compliant", "not a measurement"
]
RuleState = Literal["satisfied", "violated", "declared", "unknown", "not applicable"]


class RuleFinding(Part, frozen=True):
    """How one rule stands. `note`: what was observed, in words; `code`, `facts`: the same as values; `run`: the first run
    that breaks it."""

    id: str
    section: str
    level: str
    text: str
    state: RuleState
    note: str | None
    run: str | None
    code: str | None = None
    facts: Mapping[str, Fact] = {}
    capacity: bool = False


class ComplianceStatement(Part, frozen=True):
    """Every rule that is about a test. `counts`: rules by weight and by state; `deviations`: what is violated or unknown;
    `limitations`: what a reader has to take on trust, in sentences."""

    draft: str
    test: str
    section: str | None
    label: ComplianceLabel
    counts: Mapping[str, Mapping[str, int]]
    deviations: tuple[RuleFinding, ...]
    limitations: tuple[str, ...]
    findings: tuple[RuleFinding, ...]
