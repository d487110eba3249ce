"""A test's result in a terminal: what it came to, its main table, the verdict and the label, and where the report lies.

Narrow terminals lose columns from the right, and what was left out is named; numbers never break. A pipe gets the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from inferometer.report.campaign import compliance, compliance_summary, contents
from inferometer.report.campaign.cells import amount, bounds, heading, numeric
from inferometer.report.campaign.document import whole
from inferometer.report.figures import clean
from inferometer.report.screen import VERDICT_STYLES, Screen

MOST_DEVIATIONS = 3
MOST_VALUES = 6


def render_test(test: Mapping[str, Any], console: Console, report: str | None = None) -> None:
    """Print one test's result. `report`: where report.html lies, or None when none was written."""
    screen = Screen(console)
    say = screen.say
    say("")
    say(f"{compliance_summary.title(test)} (draft {clean(test['section'])})", "bold")
    for word, means in compliance_summary.banners({**test, "redacted": None}):
        say(f"{word}  {means}", "bold magenta")
    if problem := compliance_summary.problem(test):
        say(problem, "bold red")
    say("")
    _values(test, say)
    _main_table(test, screen)
    say("")
    status = clean(test["verdict"]["status"])
    say(f"{status}  {compliance_summary.runs(test)}", VERDICT_STYLES.get(status, "bold"))
    for reason in dict.fromkeys(
        (*compliance_summary.reasons(test["verdict"]), *map(clean, test["undecided"]))
    ):
        say(reason, first="  ")
    _compliance(test, say)
    _path(report, screen)


def _values(test: Mapping[str, Any], say: Any) -> None:
    shown = test["values"][:MOST_VALUES]
    width = max((len(clean(one["label"])) for one in shown), default=0)
    for one in shown:
        interval = f"  95 % {bounds(one)}" if bounds(one) else ""
        note = f"  ({clean(one['note'])})" if one["note"] else ""
        say(f"{amount(one)}{interval}{note}", first=f"{clean(one['label']):{width}}  ")
    if len(test["values"]) > MOST_VALUES:
        say(f"{len(test['values']) - MOST_VALUES} more in the report", "dim")
    if not shown:
        say("Nothing was measured.")


def _main_table(test: Mapping[str, Any], screen: Screen) -> None:
    table = next((one for one in test["tables"] if one["rows"]), None)
    if table is None:
        return
    screen.say("")
    rows = [[text for text, _ in row] for row in contents.cells_of(table)]
    right = [numeric(table, index) for index in range(len(table["columns"]))]
    missing = screen.table([heading(column) for column in table["columns"]], rows, right)
    if missing:
        screen.say(f"{', '.join(missing)}: in the report", "dim")


def _compliance(test: Mapping[str, Any], say: Any) -> None:
    found = compliance.deviations(test["compliance"])
    number = f", {len(found)} deviation{'' if len(found) == 1 else 's'}" if found else ""
    label = compliance.label(test["compliance"])
    say(f"Compliance: {label}{number}")
    for one in found[:MOST_DEVIATIONS]:
        say(f"{one['id']}: {one['text']}", first="  ")
    if len(found) > MOST_DEVIATIONS:
        say(f"{len(found) - MOST_DEVIATIONS} more in the report", "dim", first="  ")


def render_campaign(
    campaign: Mapping[str, Any], console: Console, report: str | None = None, copy: str | None = None
) -> None:
    """Print how the tests of a campaign stand, a row each. `report` and `copy`: where its report.html and the one to be shared
    lie."""
    campaign, screen = whole(campaign), Screen(console)
    screen.say("")
    for word, means in compliance_summary.banners(campaign):
        screen.say(f"{word}  {means}", "bold magenta")
    rows = [
        [
            row["test"],
            row["verdict"] + ("*" if row["partial"] else ""),
            row["value"],
            row["label"],
            row["compliance"],
        ]
        for row in compliance_summary.overview(campaign)
    ]
    head = ["Test", "Verdict", "Headline", "Which is", "Compliance"]
    missing = screen.table(head, rows, [False, False, True, False, False], words=3)
    if any(row["partial"] for row in compliance_summary.overview(campaign)):
        screen.say("* ended early", "dim")
    if missing:
        screen.say(f"{', '.join(missing)}: in the report", "dim")
    screen.say("")
    status = clean(campaign["verdict"]["status"])
    screen.say(f"{status}  {compliance_summary.MEANINGS.get(status, '')}", VERDICT_STYLES.get(status, "bold"))
    for reason in compliance_summary.reasons(campaign["verdict"]):
        screen.say(reason, first="  ")
    _path(report, screen)
    if copy is not None:
        screen.path("To be shared", clean(copy))


def _path(report: str | None, screen: Screen) -> None:
    if report is not None:
        screen.say("")
        screen.path("Report", clean(report))
