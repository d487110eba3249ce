"""How checks of the draft's rules are combined, and checks of the simplest forms."""

from __future__ import annotations

from collections.abc import Callable

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    each_run,
    not_applicable,
    note,
    worst,
)


def both(*checks: RuleCheck) -> RuleCheck:
    """Several checks of one rule: the worst ruling counts."""
    return lambda evidence: worst(*(one(evidence) for one in checks))


def runs_of(problem: Callable[[MeasuredRun], Note | None], kept: Note, *parts: str) -> RuleCheck:
    """A rule about the runs of these parts, or about all."""
    return lambda evidence: each_run(evidence.of(*parts) if parts else evidence.runs, problem, kept)


def by_design(kept: Note) -> RuleCheck:
    """What the program does in every run, and no record shows otherwise."""
    return runs_of(lambda _: None, kept)


def nobody_checks(why: str) -> RuleCheck:
    """A statement that no observation and no declaration decides."""
    return lambda _: not_applicable(note("cannot_be_checked", why=why))


def unless(precondition: Callable[[Evidence], bool], why: str, check: RuleCheck) -> RuleCheck:
    """A rule whose precondition may not hold."""

    def held(evidence: Evidence) -> Ruling | None:
        return check(evidence) if precondition(evidence) else not_applicable(note("precondition", why=why))

    return held
