"""Where a campaign parts from the methodology: each finding once with the tests that share it, and draft C.1's notes.

The notes are made of the document alone, so those of a redacted document tell no more than that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Campaign
from inferometer.documents.statement import ComplianceStatement, RuleState
from inferometer.documents.summary import Summary
from inferometer.judge.compliance.statement import weight_of
from inferometer.report.campaign import compliance, overview
from inferometer.report.campaign.compliance import FindingRow
from inferometer.report.campaign.disclosure import WORKLOAD_DEVIATION, method
from inferometer.report.figures import clean
from inferometer.report.run.disclosure import of_those_answered

MOST_NAMED = 3
"""Rules behind a label, by their ids; the report's section on compliance has all."""
WORST_FIRST = {"fail": 0, "unsure": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class SharedFinding:
    """A finding with the tests that share it."""

    finding: FindingRow
    tests: str


def label(campaign: Campaign) -> str:
    """The campaign's label, and of one that is not compliant the rules of MUST weight behind it, each once:
    `not compliant: 2 MUST rules violated (D-4.8-account, D-5.2.2-duration), 1 unknown`."""
    said = compliance.label(campaign.compliance)
    if said != "not compliant":
        return said
    states: dict[str, set[RuleState]] = {}
    for _, statement in _statements(campaign):
        for one in statement.deviations if statement else ():
            if weight_of(one.level) == "MUST":
                states.setdefault(clean(one.id), set()).add(one.state)
    violated = [rule for rule, found in states.items() if "violated" in found]
    unknown = len(states) - len(violated)
    ended = sum(test.compliance is not None and test.ended_by is not None for test in campaign.tests)
    parts = [_named(violated)] if violated else []
    if unknown:
        parts.append(f"{unknown} {'' if violated else _rules(unknown)}unknown")
    if ended:
        parts.append(f"{ended} test{'' if ended == 1 else 's'} ended early")
    return f"{said}: {', '.join(parts)}" if parts else said


def _named(violated: Sequence[str]) -> str:
    more = len(violated) - MOST_NAMED
    names = [*violated[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"{len(violated)} {_rules(len(violated))}violated ({', '.join(names)})"


def _rules(number: int) -> str:
    return f"MUST rule{'' if number == 1 else 's'} "


def _statements(campaign: Campaign) -> list[tuple[str, ComplianceStatement | None]]:
    """The campaign's own, and those of its tests, each with its name."""
    tests = [(clean(test.test), test.compliance) for test in overview.in_order(campaign)]
    return [("campaign", campaign.compliance), *tests]


def findings(campaign: Campaign) -> list[SharedFinding]:
    """What is not simply in order, worst first; what several tests share stands once, with their names."""
    tests: dict[FindingRow, list[str]] = {}
    for name, statement in _statements(campaign):
        for one in compliance.findings(statement):
            tests.setdefault(one, []).append(name)
    every = len(campaign.tests)
    return [
        SharedFinding(one, "all tests" if len(names) == every > 1 else ", ".join(names))
        for one, names in sorted(tests.items(), key=lambda item: WORST_FIRST[item[0].tone])
    ]


def of_workloads(tests: Mapping[str, Sequence[Summary]]) -> dict[str, tuple[str, ...]]:
    """How the workloads of tests, each with the summaries of its runs, differ from the standard ones they are based on: each
    sentence with the tests that it is about."""
    found: dict[str, dict[str, None]] = {}
    for test, summaries in tests.items():
        for sentence in (part for one in summaries for part in one.workload.deviations):
            found.setdefault(sentence, {})[test] = None
    return {sentence: tuple(names) for sentence, names in found.items()}


def notes(campaign: Campaign) -> tuple[str, ...]:
    """The notes of draft C.1: every deviation from the methodology, then the configuration of the guardrails.

    A simulated, shortened, INVALID or INCONCLUSIVE campaign and a test that ended early deviate, and so does each rule that
    is broken or not known to be kept, and each workload that differs from the standard one it is based on.
    """
    lines = [f"{word}: {means}" for word, means in overview.banners(campaign, campaign.redacted)]
    if campaign.verdict.status != "VALID":
        lines.append(f"{campaign.verdict.status}: {overview.meaning(campaign)}")
        lines += overview.reasons(campaign.verdict)
    lines += [
        f"{overview.title(test)}: {why}"
        for test in overview.in_order(campaign)
        if (why := overview.problem(test))
    ]
    lines += [
        f"{one.finding.id}, {one.finding.level}, {one.finding.state} ({one.tests}): {one.finding.text}"
        for one in findings(campaign)
        if one.finding.tone != "note"
    ]
    lines += [
        f"{overview.title(test)}: held against no rule of the draft"
        for test in overview.in_order(campaign)
        if test.compliance is None
    ]
    lines += [
        f"Workload ({clean(row.name)}): {clean(row.value)}"
        for row in campaign.disclosed
        if row.key == WORKLOAD_DEVIATION
    ]
    sent, answered = campaign.minimum.request_count, campaign.minimum.answered
    if isinstance(sent, int) and isinstance(answered, int) and answered < sent:
        lines.append(of_those_answered(sent, answered))
    return (*lines, f"Guardrails: {method(campaign, 'guardrails')}")
