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

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import get_args

from inferometer.documents.note import Note
from inferometer.documents.statement import ComplianceLabel, ComplianceStatement, RuleState
from inferometer.documents.summary import ComplianceBrief, Summary
from inferometer.judge.compliance import (
    campaign_rules,
    compound_rules,
    contrast_rules,
    instrument_rules,
    latency_rules,
    load_rules,
    procedure_rules,
    report_rules,
    scope_rules,
    sut_rules,
    workload_rules,
)
from inferometer.judge.compliance.evidence import (
    DRAFT,
    TESTS,
    WEIGHTS,
    Evidence,
    Rule,
    RuleCheck,
    Ruling,
    Weight,
    ahead_of,
    catalogue,
    not_applicable,
    note,
    of_run,
    unknown,
)
from inferometer.plan.procedure_parameters import Parameters
from inferometer.plan.schema import Plan

LABELS: tuple[ComplianceLabel, ...] = get_args(ComplianceLabel)
"""From best to none."""
STATES: tuple[RuleState, ...] = get_args(RuleState)
OPEN: tuple[RuleState, ...] = ("violated", "unknown")

CHECKS: dict[str, RuleCheck] = {
    **instrument_rules.CHECKS,
    **scope_rules.CHECKS,
    **compound_rules.CHECKS,
    **sut_rules.CHECKS,
    **workload_rules.CHECKS,
    **procedure_rules.CHECKS,
    **latency_rules.CHECKS,
    **load_rules.CHECKS,
    **contrast_rules.CHECKS,
    **report_rules.CHECKS,
}
"""By the id of the rule. Those of kind `campaign` are in campaign_rules.py, those of kind `comparison` are judged by its
checklist: they are about several tests."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How one rule stands. `run`: the first that breaks it."""

    rule: Rule
    state: RuleState
    note: Note
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """What the rules come to for one test. `cut`: what ended the test before its end."""

    test: str
    label: ComplianceLabel
    findings: tuple[Finding, ...]
    cut: str | None = None

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many rules of a weight stand how."""
        counts: dict[str, dict[str, int]] = {
            weight: dict.fromkeys(STATES, 0) for weight in dict.fromkeys(WEIGHTS.values())
        }
        for one in self.findings:
            counts[one.rule.weight][one.state] += 1
        return counts

    @property
    def deviations(self) -> tuple[Finding, ...]:
        """What is violated or unknown: MUST first, then SHOULD, then what the draft only states."""
        weights: list[Weight] = list(dict.fromkeys(WEIGHTS.values()))
        found = [one for one in self.findings if one.state in OPEN]
        return tuple(sorted(found, key=lambda one: (weights.index(one.rule.weight), OPEN.index(one.state))))

    def brief(self) -> ComplianceBrief:
        """The member `compliance` of a run's summary: label, counts and ids."""
        counts = {
            weight: {state: n for state, n in states.items() if n} for weight, states in self.counts.items()
        }
        deviations = tuple(one.rule.id for one in self.deviations)
        return ComplianceBrief(DRAFT, self.test, self.label, counts, deviations)


def brief_of(summary: Summary) -> ComplianceBrief:
    """The member `compliance` of a run's summary."""
    return comply(of_run(summary)).brief()


def label_of(findings: Sequence[Finding], *, simulated: bool = False, cut: bool = False) -> ComplianceLabel:
    """The label that findings give; `cut`: of a test that did not come to its end."""
    return _label({one.rule.weight for one in findings if one.state in OPEN}, simulated=simulated, cut=cut)


def _label(standing: Set[Weight], *, simulated: bool, cut: bool) -> ComplianceLabel:
    """`standing`: the weights of rules that are violated or unknown."""
    if simulated:
        return "not a measurement"
    if cut or "MUST" in standing:
        return "not compliant"
    return "conditionally compliant" if "SHOULD" in standing else "unconditionally compliant"


def misstated(
    stated: ComplianceStatement, *, simulated: bool, cut: bool, least: ComplianceLabel | None = None
) -> str | None:
    """What of a statement that was read is not what its own findings come to: its label, its counts or its deviations.
    `least`: the label is no better than that one."""
    open_rules = [one for one in stated.findings if one.state in OPEN]
    own = _label({weight_of(one.level) for one in open_rules}, simulated=simulated, cut=cut)
    label = own if least is None else max(own, least, key=LABELS.index)
    if stated.label != label:
        return f"it is labelled {stated.label}, its findings say {label}"
    counted = Counter((str(weight_of(one.level)), str(one.state)) for one in stated.findings)
    given = {
        (weight, state): n for weight, states in stated.counts.items() for state, n in states.items() if n
    }
    if given != dict(counted):
        return "its counts are not those of its findings"
    if sorted(one.id for one in stated.deviations) != sorted(one.id for one in open_rules):
        return "its deviations are not those of its findings"
    return None


def weight_of(level: str) -> Weight:
    """Of a rule that was read; a level that is none weighs most."""
    return next((weight for known, weight in WEIGHTS.items() if known == level), "MUST")


def comply(evidence: Evidence) -> Statement:
    """The statement on one test. Raises ValueError for a test that has none, and for `compare` (see `comparison`)."""
    if evidence.test not in TESTS or evidence.test == "compare":
        raise ValueError(f"no test of the draft: {evidence.test}")
    findings = tuple(
        _finding(rule, _ruling(rule, evidence)) for rule in catalogue() if rule.about(evidence.test)
    )
    label = label_of(findings, simulated=evidence.simulated, cut=evidence.cut is not None)
    return Statement(evidence.test, label, findings, evidence.cut)


def _finding(rule: Rule, ruling: Ruling) -> Finding:
    return Finding(rule, ruling.state, ruling.note, ruling.run)


def _ruling(rule: Rule, evidence: Evidence) -> Ruling:
    if rule.kind == "campaign":
        return not_applicable(note("judged_of_campaign"))
    if evidence.simulated and rule.kind in ("program", "runs"):
        return not_applicable(note("simulated"))
    return CHECKS[rule.id](evidence) or unknown(note("no_evidence"))


def deviations_of(test: str, parameters: Parameters, plan: Plan) -> Sequence[Finding]:
    """What such a test would break before anything is sent: what the plan breaks, and what is not declared.

    By the same rules and checks as `comply`.
    """
    evidence = ahead_of(test, parameters, plan)
    findings = []
    for rule in catalogue():
        ruling = CHECKS[rule.id](evidence) if rule.about(test) and rule.id in CHECKS else None
        if ruling is not None and ruling.state in OPEN:
            findings.append(_finding(rule, ruling))
    return Statement(test, "not a measurement", tuple(findings)).deviations


def campaign(evidence: Sequence[Evidence]) -> Statement:
    """Rules about all tests together, and the worst of their labels."""
    labels = [comply(one).label for one in evidence]
    rules = [rule for rule in catalogue() if rule.kind == "campaign"]
    findings = tuple(_finding(rule, campaign_rules.CHECKS[rule.id](evidence)) for rule in rules)
    own = label_of(findings, simulated=any(one.simulated for one in evidence))
    return Statement("campaign", max([*labels, own], key=LABELS.index), findings)


def comparison(rulings: Mapping[str, Ruling], *, simulated: bool = False) -> Statement:
    """The statement on a comparison: section 6, by the ruling on each rule (by id); others are unknown.

    Raises ValueError for a rule that is not of section 6.
    """
    rules = [rule for rule in catalogue() if rule.kind == "comparison"]
    strangers = rulings.keys() - {rule.id for rule in rules}
    if strangers:
        raise ValueError(f"no rules of section 6: {', '.join(sorted(strangers))}")
    unchecked = unknown(note("not_checked"))
    findings = tuple(_finding(rule, rulings.get(rule.id, unchecked)) for rule in rules)
    return Statement("compare", label_of(findings, simulated=simulated), findings)
