"""How tests stand, at a glance: headline, interval, verdict and label of each in one row, and the words that belong over every
page of a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import (
    Campaign,
    ProcedureDocument,
    ProcedureVerdict,
    ReportedValue,
    Unchecked,
)
from inferometer.documents.note import WITHHELD
from inferometer.report import checks
from inferometer.report.campaign import compliance, titles
from inferometer.report.campaign.cells import amount, bounds, is_number, labelled
from inferometer.report.figures import clean

QUICK = ("QUICK", "Shortened for trying out: sizes are below the draft's, and the deviations list where.")
REDACTED = (
    "REDACTED",
    "Figures that reveal how much load the system sustains are omitted (draft 7.1), so this report cannot be repeated.",
)
UNCHECKED: dict[Unchecked, str] = {
    "redacted": "a copy for sharing names no runs",
    "version": "another version of the instrument wrote them",
    "runs_missing": "not all run folders lie beside it",
    "runs_unreadable": "a run beside it cannot be read",
}
MEANINGS = {
    "VALID": "Every search was settled, and no check that counts in these tests failed in any of their runs.",
    "INVALID": "At least one test rests on runs that failed their checks: do not rely on its numbers.",
    "INCONCLUSIVE": "Nothing failed, but at least one answer is missing or rests on too little evidence.",
}
UNCOUNTED = (
    "The checks that {they} not pass have no bearing on these tests' answers: a step of a search may be short, for example, "
    "and a load past the system's limits makes its queue grow."
)
"""Why runs of a campaign that is VALID need not be (judge/counted_checks.py)."""
PARTIAL = "Ended early"
NO_INTERVAL = "no interval"
ENDS = {
    "interrupted": "interrupted by the tester",
    "server": "the server could not go on",
    "plan": "the plan cannot be carried out",
    "instrument": "the instrument could not go on",
}


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """A test in one row: its headline value, whether that may be believed, whether it was done by the rules.

    `interval`: NO_INTERVAL for a number without one, nothing where there is no number; `reason`: the first sentence of the
    worst reason of a verdict that is not VALID, and `more` how many reasons there are beside it.
    """

    test: str
    title: str
    section: str
    label: str
    value: str
    interval: str
    verdict: str
    reason: str
    more: int
    partial: str
    compliance: str
    label_alone: str


def in_order(campaign: Campaign) -> list[ProcedureDocument]:
    """The tests in the draft's order: a campaign carries them out in another."""
    return sorted(campaign.tests, key=lambda test: [int(part) for part in re.findall(r"\d+", test.section)])


def banners(
    document: Campaign | ProcedureDocument, redacted: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """What nobody may overlook, each with its meaning: simulated, unchecked, redacted, quick."""
    simulated = (checks.SIMULATED, checks.SIMULATED_MEANS)
    why = unchecked(document.unchecked) if isinstance(document, Campaign) else ""
    return [
        *([simulated] if document.simulated else []),
        *([("UNCHECKED", why)] if why else []),
        *([REDACTED] if redacted else []),
        *([QUICK] if document.quick else []),
    ]


def unchecked(why: Unchecked | None) -> str:
    """That a campaign's figures were held against nothing, in a sentence; empty: they were."""
    if why is None:
        return ""
    return f"Figures are as campaign.json has them and were not held against the runs: {UNCHECKED[why]}."


def meaning(campaign: Campaign) -> str:
    """What the campaign's verdict means. Of one that is VALID, how many of its runs are not, for not all that a run's verdict
    counts is counted in a test's."""
    said = MEANINGS[campaign.verdict.status]
    verdicts = [run.verdict for test in campaign.tests for run in test.runs]
    others = sum(verdict != "VALID" for verdict in verdicts)
    if campaign.verdict.status != "VALID" or not others:
        return said
    these = f"{others:,} of the {len(verdicts):,} runs" if len(verdicts) > 1 else "the only run"
    they = "it does" if others == 1 else "they do"
    return f"{said} Taken alone, {these} would not be VALID. {UNCOUNTED.format(they=they)}"


def row(test: ProcedureDocument) -> OverviewRow:
    """The row of a test."""
    first = titles.headline(test)
    why = reasons(test.verdict)
    return OverviewRow(
        test=clean(test.test),
        title=title(test),
        section=clean(test.section),
        label=labelled(first.label, first.at) if first else "",
        value=amount(first) if first else "not measured",
        interval=_interval(first) if first else "",
        verdict=test.verdict.status,
        reason=_sentence(test.verdict.reasons[0].message) if why else "",
        more=max(len(why) - 1, 0),
        partial=PARTIAL if test.problem else "",
        compliance=compliance.labelled(test.compliance),
        label_alone=compliance.label(test.compliance),
    )


def _interval(value: ReportedValue) -> str:
    return bounds(value) or (NO_INTERVAL if is_number(value.value) else "")


def _sentence(text: str) -> str:
    """The first sentence; numbers and advice follow in the test's own section."""
    return re.split(r"(?<=\.) (?=[A-Z])", clean(text), maxsplit=1)[0]


def title(test: ProcedureDocument) -> str:
    """The test's title."""
    return clean(test.title or test.test)


def problem(test: ProcedureDocument) -> str:
    """Why the test is partial, or nothing."""
    if not test.problem and test.ended_by is None:
        return ""
    why = f", {ENDS[test.ended_by]}" if test.ended_by is not None else ""
    return f"{PARTIAL}{why}. {clean(test.problem or '')}".strip()


def tally(campaign: Campaign) -> str:
    """`10 tests: 8 VALID, 1 INVALID, 1 INCONCLUSIVE`."""
    counts = Counter(test.verdict.status for test in campaign.tests)
    listed = ", ".join(f"{count} {name}" for name in MEANINGS for count in [counts[name]] if count)  # type: ignore[index]  # its keys are the statuses
    return f"{len(campaign.tests)} test{'' if len(campaign.tests) == 1 else 's'}: {listed}"


def runs(test: ProcedureDocument) -> str:
    """`12 runs: 11 VALID, 1 INVALID`."""
    counts = Counter(run.verdict for run in test.runs)
    number = len(test.runs)
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{number} run{'' if number == 1 else 's'}{': ' if listed else ''}{listed}"


def across(campaign: Campaign) -> list[str]:
    """Reasons of the campaign's verdict that are no single test's: what its tests say of each other."""
    tests = {test.test for test in campaign.tests}
    verdict = campaign.verdict
    own = tuple(reason for reason in verdict.reasons if reason.code not in tests)
    return reasons(ProcedureVerdict(verdict.status, own))


def reasons(verdict: ProcedureVerdict) -> list[str]:
    """Each reason in words, with the run that it came from."""
    lines = []
    for reason in verdict.reasons:
        run = f" (run {clean(reason.run)})" if reason.run else ""
        message = clean(reason.message)
        lines.append(message if message == WITHHELD else f"{message}{run}")
    return list(dict.fromkeys(lines))
