"""A compliance statement in words: as a document, and for people in 80 columns (the label, the counts, what deviates, then
every rule)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from inferometer.documents.statement import ComplianceLabel, ComplianceStatement, RuleFinding
from inferometer.judge.compliance.evidence import DRAFT, TESTS, Rule, catalogue
from inferometer.judge.compliance.statement import Finding, Statement
from inferometer.report.compliance_notes import worded
from inferometer.report.figures import clean

WIDTH = 80
COLUMNS = (22, 12, 15)
"""Of a rule's id, its level and how it stands; the rest is for words."""
STATES = ("satisfied", "declared", "violated", "unknown", "not applicable")
MEANS: Mapping[ComplianceLabel, str] = {
    "unconditionally compliant": "Every MUST and every SHOULD that applies is kept.",
    "conditionally compliant": "Every MUST that applies is kept, not every SHOULD.",
    "not compliant": "Not every MUST that applies is kept.",
    "not a measurement": "Simulated: no server was measured, so no compliance is claimed.",
}
PLAIN = "states: said without a word in capitals; it leaves the label alone."
WORK = "work in progress, revision -00, January 2026"


def unmet_limits(deviations: Iterable[str]) -> list[str]:
    """Of the rules that are broken or unknown, those that are plain limits in numbers: they leave the label alone, and a
    reader would miss them."""
    numeric = {rule.id for rule in catalogue() if rule.numeric}
    return [name for name in deviations if name in numeric]


def limits_in_words(unmet: int) -> str:
    """`2 numeric limits not met`, or nothing."""
    return f"{unmet} numeric limit{'' if unmet == 1 else 's'} not met" if unmet else ""


def statement_document(statement: Statement) -> ComplianceStatement:
    """A statement with its words: a member `compliance` of a test's document, a campaign's or a comparison's."""
    findings = tuple(map(_finding, statement.findings))
    return ComplianceStatement(
        draft=DRAFT,
        test=statement.test,
        section=TESTS.get(statement.test),
        label=statement.label,
        counts=statement.counts,
        deviations=tuple(map(_finding, statement.deviations)),
        limitations=_taken_on_trust(findings, statement.label, statement.cut),
        findings=findings,
    )


def _finding(finding: Finding) -> RuleFinding:
    rule, note = finding.rule, finding.note
    return RuleFinding(
        id=rule.id,
        section=rule.section,
        level=rule.level,
        text=rule.text,
        state=finding.state,
        note=worded(note),
        run=finding.run,
        code=note.code,
        facts=note.facts,
        capacity=note.capacity,
    )


def _taken_on_trust(
    findings: Sequence[RuleFinding], label: ComplianceLabel, cut: str | None
) -> tuple[str, ...]:
    """What a reader has to take on trust, in sentences."""
    lines = [
        f"{one.id}: {one.note} (declared by the tester, not observed)"
        for one in findings
        if one.state == "declared"
    ]
    if cut is not None:
        lines.insert(0, f"The test did not come to its end, so it complies with nothing: {cut}")
    if label == "not a measurement":
        lines.insert(0, MEANS[label])
    return tuple(lines)


def lines(statement: ComplianceStatement) -> list[str]:
    """A statement on one test, or on a campaign."""
    test, section = clean(statement.test), statement.section
    title = f"{test} (draft {section})" if section else f"{test}, all tests together"
    return [
        f"{title}: {statement.label.upper()}",
        MEANS[statement.label],
        *_limits(statement.deviations),
        f"By {clean(statement.draft)},",
        f"{WORK}.",
        "",
        *_counts(statement.counts),
        PLAIN,
        "",
        *_deviations(statement.deviations),
        *_limitations(statement.limitations),
        "All rules:",
        *_table((one.id, one.level, one.state, one.note or "") for one in statement.findings),
    ]


def _limits(deviations: Sequence[RuleFinding]) -> list[str]:
    unmet = unmet_limits(one.id for one in deviations)
    return _wrapped(f"{limits_in_words(len(unmet))}: {', '.join(unmet)}.", "") if unmet else []


def _counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    head = f"{'':8}" + "".join(f"{state:>{len(state) + 2}}" for state in STATES)
    rows = [
        f"{weight:8}" + "".join(f"{states.get(state, 0):>{len(state) + 2}}" for state in STATES)
        for weight, states in counts.items()
    ]
    return [head, *rows]


def _deviations(findings: Sequence[RuleFinding]) -> list[str]:
    if not findings:
        return ["No deviations.", ""]
    lines = [f"Deviations ({len(findings)}):"]
    for one in findings:
        lines.append(f"  {one.id}  {one.level}, draft {one.section}: {one.state}")
        lines += _wrapped(one.text, "    ")
        where = f" (run {clean(one.run)})" if one.run else ""
        lines += _wrapped(f"seen: {one.note}{where}", "    ")
    return [*lines, ""]


def _limitations(limitations: Sequence[str]) -> list[str]:
    if not limitations:
        return []
    return ["Taken on trust:", *(line for one in limitations for line in _wrapped(one, "    ", "  - ")), ""]


def catalogue_lines(rules: Sequence[Rule]) -> list[str]:
    """The rules themselves."""
    lines = [f"{len(rules)} rules", ""]
    return lines + _table(
        (one.id, one.level, " ".join(one.tests), f"{one.text} Checked on {one.how}.") for one in rules
    )


def _table(rows: Iterable[tuple[str, str, str, str]]) -> list[str]:
    indent = sum(COLUMNS)
    lines: list[str] = []
    for *cells, words in rows:
        head = "".join(f"{clean(cell):{width}}" for cell, width in zip(cells, COLUMNS, strict=True))
        if len(head) > indent:  # a long name: the words begin on a line of their own
            lines.append(head.rstrip())
            head = " " * indent
        lines += _wrapped(words, " " * indent, head)
    return lines


def _wrapped(words: str, indent: str, first: str | None = None) -> list[str]:
    begin = indent if first is None else first
    return textwrap.wrap(clean(words), WIDTH, initial_indent=begin, subsequent_indent=indent) or [
        begin.rstrip()
    ]
