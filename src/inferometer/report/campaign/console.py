"""A test's result in a terminal: what it came to, its main table, the verdict and the label, and where the report lies.

Narrow terminals lose columns from the right, and what was left out is named; numbers never break. A pipe gets the same text.
"""

from __future__ import annotations

from rich.console import Console

from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.report.campaign import compliance, overview
from inferometer.report.campaign.cells import ROUGH, amount, bounds, heading, labelled, numeric, rough, texts
from inferometer.report.figures import MARK, clean
from inferometer.report.tables import VERDICT_STYLES, Screen

EARLY = "!"
"""Behind the verdict of a test that ended early. MARK is shown as * where there is only ASCII."""
MOST_DEVIATIONS = 3
MOST_VALUES = 6
LABEL = 12
"""Room for the label of a headline; the interval gives way before it."""


def render_test(test: ProcedureDocument, console: Console, report: str | None = None) -> None:
    """Print one test's result. `report`: where report.html lies, or None when none was written."""
    screen = Screen(console)
    say = screen.say
    say("")
    say(f"{overview.title(test)} (draft {clean(test.section)})", "bold")
    for word, means in overview.banners(test):
        say(f"{word}  {means}", "bold magenta")
    if problem := overview.problem(test):
        say(problem, "bold red")
    say("")
    _values(test, screen)
    _main_table(test, screen)
    for line in rough(test):
        say(line, "dim")
    say("")
    status = test.verdict.status
    say(f"{status}  {overview.runs(test)}", VERDICT_STYLES.get(status, "bold"))
    undecided = [clean(one.message) for one in test.undecided]
    for reason in dict.fromkeys((*overview.reasons(test.verdict), *undecided)):
        say(reason, first="  ")
    _compliance(test, screen)
    _path(report, screen)


def _values(test: ProcedureDocument, screen: Screen) -> None:
    shown = [(labelled(one.label, one.at), one) for one in test.values[:MOST_VALUES]]
    width = max((len(label) for label, _ in shown), default=0)
    for label, one in shown:
        interval = f"  95 % {bounds(one)}" if bounds(one) else ""
        note = f"  ({clean(one.note.message)})" if one.note else ""
        screen.say(f"{amount(one)}{interval}{note}", first=f"{label:{width}}  ")
    if len(test.values) > MOST_VALUES:
        screen.say(f"{len(test.values) - MOST_VALUES} more in the report", "dim")
    if not shown:
        screen.say("Nothing was measured.")


def _main_table(test: ProcedureDocument, screen: Screen) -> None:
    table = next((one for one in test.tables if one.rows), None)
    if table is None:
        return
    screen.say("")
    rows = texts(table)
    right = [numeric(table, index) for index in range(len(table.columns))]
    missing = screen.table([heading(column) for column in table.columns], rows, right)
    if missing:
        screen.say(f"{', '.join(missing)}: in the report", "dim")


def _compliance(test: ProcedureDocument, screen: Screen) -> None:
    findings = compliance.deviations(test.compliance)
    number = f", {len(findings)} deviation{'' if len(findings) == 1 else 's'}" if findings else ""
    screen.say(f"Compliance: {compliance.labelled(test.compliance)}{number}")
    for one in findings[:MOST_DEVIATIONS]:
        screen.say(f"{one.id}: {one.text}", first="  ")
    if len(findings) > MOST_DEVIATIONS:
        screen.say(f"{len(findings) - MOST_DEVIATIONS} more in the report", "dim", first="  ")


def render_campaign(
    campaign: Campaign, console: Console, report: str | None = None, copy: str | None = None
) -> None:
    """Print how the tests of a campaign stand, a row each. `report` and `copy`: where its report.html and the one to be shared
    lie."""
    screen = Screen(console)
    screen.say("")
    for word, means in overview.banners(campaign, campaign.redacted):
        screen.say(f"{word}  {means}", "bold magenta")
    tests = [overview.row(test) for test in overview.in_order(campaign)]
    rows = [
        [
            row.test,
            row.verdict + (EARLY if row.partial else ""),
            row.value,
            row.interval,
            row.label,
            row.label_alone,
        ]
        for row in tests
    ]
    head = ["Test", "Verdict", "Headline", "95 % interval", "Which is", "Compliance"]
    right = [False, False, True, True, False, False]
    missing = screen.table(head, rows, right, words=4, rank=(0, 1, 2, 4, 3, 5), least=LABEL)
    limits = [
        f"{row.test} {count}"
        for row, test in zip(tests, overview.in_order(campaign), strict=True)
        if (count := compliance.limits(test.compliance))
    ]
    if limits:
        screen.say(f"Numeric limits of the draft not met: {', '.join(limits)}")
    if any(row.partial for row in tests):
        screen.say(f"{EARLY} ended early", "dim")
    if any(MARK in row.value for row in tests):
        screen.say(ROUGH, "dim")
    if missing:
        screen.say(f"{', '.join(missing)}: in the report", "dim")
    screen.say("")
    status = campaign.verdict.status
    screen.say(f"{status}  {overview.meaning(campaign)}", VERDICT_STYLES.get(status, "bold"))
    for reason in overview.reasons(campaign.verdict):
        screen.say(reason, first="  ")
    _path(report, screen)
    if copy is not None:
        screen.path("To be shared", clean(copy))


def _path(report: str | None, screen: Screen) -> None:
    if report is not None:
        screen.say("")
        screen.path("Report", clean(report))
