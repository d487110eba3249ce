"""What a report says of compliance: the label in words, and each rule that was not simply kept.

judge/compliance works the statement out; here it is read. A test without one claims nothing, and the report says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.statement import ComplianceStatement, RuleFinding, RuleState
from inferometer.report.compliance import limits_in_words, unmet_limits
from inferometer.report.figures import clean

NONE_CLAIMED = "none claimed"
WORDS: dict[RuleState, str] = {
    "violated": "violated",
    "unknown": "unknown",
    "declared": "kept by the tester's word",
    "satisfied": "satisfied",
    "not applicable": "not applicable",
}
Tone = Literal["fail", "unsure", "note"]
TONES: dict[RuleState, Tone] = {"violated": "fail", "unknown": "unsure"}


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding in words. `tone`: how it is shown."""

    state: str
    tone: Tone
    id: str
    level: str
    text: str


def label(statement: ComplianceStatement | None) -> str:
    """`unconditionally compliant`, `conditionally compliant`, `not compliant`, or that none is claimed."""
    return NONE_CLAIMED if statement is None else statement.label


def limits(statement: ComplianceStatement | None) -> int:
    """How many plain limits in numbers were not met."""
    return len(unmet_limits(one.id for one in statement.deviations)) if statement else 0


def labelled(statement: ComplianceStatement | None) -> str:
    """The label with that count, where there is one: `conditionally compliant, 2 numeric limits not met`."""
    return ", ".join(filter(None, (label(statement), limits_in_words(limits(statement)))))


def findings(statement: ComplianceStatement | None) -> list[FindingRow]:
    """Each finding that is not simply in order: deviations in the judge's order, then what is taken on trust."""
    declared = [one for one in statement.findings if one.state == "declared"] if statement else []
    return [*deviations(statement), *map(_row, declared)]


def deviations(statement: ComplianceStatement | None) -> list[FindingRow]:
    """What is broken or unknown, in the judge's order."""
    return [_row(one) for one in statement.deviations] if statement else []


def _row(finding: RuleFinding) -> FindingRow:
    tone = TONES.get(finding.state, "note")
    return FindingRow(WORDS[finding.state], tone, clean(finding.id), clean(finding.level), sentence(finding))


def sentence(finding: RuleFinding) -> str:
    """The rule, then what was found, with the first run that shows it."""
    run = f" (run {finding.run})" if finding.run else ""
    return clean(" ".join(filter(None, (finding.text, finding.note))) + run)


def limitations(statement: ComplianceStatement | None) -> list[str]:
    """What a reader has to take on trust."""
    return [clean(one) for one in statement.limitations] if statement else []


def tally(statement: ComplianceStatement | None) -> str:
    """`41 satisfied, 2 violated`: how many findings there are of each state."""
    counts = Counter(one.state for one in statement.findings) if statement else Counter[RuleState]()
    return ", ".join(f"{counts[name]} {words}" for name, words in WORDS.items() if counts[name])
