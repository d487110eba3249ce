"""The statement: every rule that is about a test, how it stands, and the label that follows (draft 2).

| label                      | when                                                       |
| -------------------------- | ---------------------------------------------------------- |
| unconditionally compliant  | every MUST and every SHOULD that applies is kept           |
| conditionally compliant    | every MUST is, some SHOULD is broken or unknown            |
| not compliant              | some MUST is broken or unknown, or the test did not come   |
|                            | to its end                                                 |
| not a measurement          | simulated: rules about measuring do not apply to it        |

Kept is `satisfied`, which was seen, or `declared`, which is the tester's word and passes with a mark (Q-unverifiable).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from inferometer.judge.compliance import (
    instrument_rules,
    procedure_rules,
    report_rules,
    state_rules,
    sut_rules,
    workload_rules,
)
from inferometer.judge.compliance.evidence import Check, Evidence, Seen, State, beside, broken, met, unknown
from inferometer.judge.compliance.rule import DRAFT, TESTS, WEIGHTS, Rule, Weight, catalogue

Label = Literal["unconditionally compliant", "conditionally compliant", "not compliant", "not a measurement"]
LABELS: tuple[Label, ...] = get_args(Label)
"""From best to none."""
STATES: tuple[State, ...] = get_args(State)
OPEN: tuple[State, ...] = ("violated", "unknown")
UNSEEN = unknown("nothing that was measured or shown tells")
UNMEASURED = beside("simulated: nothing was measured")
ENGINES_WORKLOAD = "D-4.3.2.1-required"

CHECKS: dict[str, Check] = {
    **instrument_rules.CHECKS,
    **sut_rules.CHECKS,
    **workload_rules.CHECKS,
    **procedure_rules.CHECKS,
    **state_rules.CHECKS,
    **report_rules.CHECKS,
}
"""By the id of the rule. Those of kind `campaign` and `comparison` have none: they are about several tests."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one rule stands. `run`: the first that breaks it."""

    rule: Rule
    state: State
    note: str
    run: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        rule = self.rule
        about = {"id": rule.id, "section": rule.section, "level": rule.level, "text": rule.text}
        return about | {"state": self.state, "note": self.note, "run": self.run}


@dataclass(frozen=True, slots=True)
class Statement:
    """What the rules come to for one test."""

    test: str
    label: Label
    findings: tuple[Finding, ...]
    cut: str | None = None

    @property
    def counts(self) -> dict[Weight, dict[State, int]]:
        """How many rules of a weight stand how."""
        counts: dict[Weight, dict[State, int]] = {
            weight: dict.fromkeys(STATES, 0) for weight in dict.fromkeys(WEIGHTS.values())
        }
        for one in self.findings:
            counts[one.rule.weight][one.state] += 1
        return counts

    @property
    def deviations(self) -> tuple[Finding, ...]:
        """What is broken or unknown: MUST first, then SHOULD, then what the draft only states."""
        weights: list[Weight] = list(dict.fromkeys(WEIGHTS.values()))
        found = [one for one in self.findings if one.state in OPEN]
        return tuple(sorted(found, key=lambda one: (weights.index(one.rule.weight), OPEN.index(one.state))))

    @property
    def limitations(self) -> list[str]:
        """What a reader has to take on trust, in sentences."""
        word = [one for one in self.findings if one.state == "declared"]
        found = [f"{one.rule.id}: {one.note} (declared by the tester, not observed)" for one in word]
        if self.cut is not None:
            found.insert(0, f"The test did not come to its end, so it complies with nothing: {self.cut}")
        if self.label == "not a measurement":
            found.insert(0, "Simulated: no server was measured, so no compliance is claimed.")
        return found

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON: a member `compliance` of a test's document."""
        return {
            "draft": DRAFT,
            "test": self.test,
            "section": TESTS.get(self.test),
            "label": self.label,
            "counts": {weight: dict(counts) for weight, counts in self.counts.items()},
            "deviations": [one.as_dict() for one in self.deviations],
            "limitations": self.limitations,
            "findings": [one.as_dict() for one in self.findings],
        }

    def brief(self) -> dict[str, Any]:
        """The same in few words: the member `compliance` of a run's summary."""
        counts = {
            weight: {state: n for state, n in counts.items() if n} for weight, counts in self.counts.items()
        }
        deviations = [one.rule.id for one in self.deviations]
        return {
            "draft": DRAFT,
            "test": self.test,
            "label": self.label,
            "counts": counts,
            "deviations": deviations,
        }


def label_of(findings: Sequence[Finding], *, simulated: bool = False, cut: bool = False) -> Label:
    """The label that findings give; `cut`: of a test that did not come to its end."""
    if simulated:
        return "not a measurement"
    standing = {one.rule.weight for one in findings if one.state in OPEN}
    if cut or "MUST" in standing:
        return "not compliant"
    return "conditionally compliant" if "SHOULD" in standing else "unconditionally compliant"


def comply(evidence: Evidence) -> Statement:
    """The statement on one test. Raises ValueError for a test that has none, and for `compare` (see `comparison`)."""
    if evidence.test not in TESTS or evidence.test == "compare":
        raise ValueError(f"no test of the draft: {evidence.test}")
    findings = tuple(_found(rule, evidence) for rule in catalogue() if rule.about(evidence.test))
    label = label_of(findings, simulated=evidence.simulated, cut=evidence.cut is not None)
    return Statement(evidence.test, label, findings, evidence.cut)


def _found(rule: Rule, evidence: Evidence) -> Finding:
    seen = _looked(rule, evidence)
    seen = UNSEEN if seen is None else seen
    return Finding(rule, seen.state, seen.note, seen.run)


def _looked(rule: Rule, evidence: Evidence) -> Seen | None:
    if rule.kind == "campaign":
        return beside("judged of all tests of a campaign together")
    if evidence.simulated and rule.kind in ("program", "runs"):
        return UNMEASURED
    return CHECKS[rule.id](evidence)


def foreseen(evidence: Evidence) -> tuple[Finding, ...]:
    """The deviations that are there before anything is sent: what the plan breaks, and what is not declared.

    By the same rules and checks as `comply`; `evidence` has no runs yet (`ahead_of`).
    """
    found = []
    for rule in catalogue():
        seen = CHECKS[rule.id](evidence) if rule.about(evidence.test) and rule.id in CHECKS else None
        if seen is not None and seen.state in OPEN:
            found.append(Finding(rule, seen.state, seen.note, seen.run))
    return Statement(evidence.test, "not a measurement", tuple(found)).deviations


def campaign(evidence: Sequence[Evidence]) -> Statement:
    """Rules about all tests together, and the worst of their labels: an engine's campaign has a test with Synthetic-Uniform
    (draft 4.3.2.1, Q-engine-workload)."""
    labels = [comply(one).label for one in evidence]
    rules = [rule for rule in catalogue() if rule.kind == "campaign"]
    findings = tuple(Finding(rule, *_together(evidence)) for rule in rules)
    own = label_of(findings, simulated=any(one.simulated for one in evidence))
    return Statement("campaign", max([*labels, own], key=LABELS.index), findings)


def _together(tests: Sequence[Evidence]) -> tuple[State, str]:
    engines = [one for one in tests if one.sut("boundary") == "engine"]
    if not engines:
        seen = beside("no test of an engine")
    else:
        used = [one.test for one in engines if _uses_uniform(one)]
        seen = met(f"in: {', '.join(used)}") if used else broken("no test used synthetic-uniform")
    return seen.state, seen.note


def _uses_uniform(evidence: Evidence) -> bool:
    return any(workload["name"] == "synthetic-uniform" for workload, _ in evidence.workloads)


def comparison(seen: Mapping[str, Seen], *, simulated: bool = False) -> Statement:
    """The statement on a comparison: section 6, by what was seen of each rule (by id); others are unknown.

    Raises ValueError for a rule that is none of section 6.
    """
    rules = [rule for rule in catalogue() if rule.kind == "comparison"]
    strangers = seen.keys() - {rule.id for rule in rules}
    if strangers:
        raise ValueError(f"no rules of section 6: {', '.join(sorted(strangers))}")
    looks = [seen.get(rule.id, unknown("nobody looked")) for rule in rules]
    findings = tuple(
        Finding(rule, one.state, one.note, one.run) for rule, one in zip(rules, looks, strict=True)
    )
    return Statement("compare", label_of(findings, simulated=simulated), findings)


def catalogue_data() -> list[dict[str, Any]]:
    """The catalogue for JSON."""
    return [asdict(rule) | {"tests": list(rule.tests)} for rule in catalogue()]
