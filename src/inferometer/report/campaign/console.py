"""A test's result in a terminal: what it came to, its main table, the verdict and the label, and where the report lies.

Narrow terminals lose columns from the right, and what was left out is named; numbers never break. A pipe gets the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferometer.report.campaign import compliance, compliance_summary, contents
from inferometer.report.campaign.cells import amount, bounds, heading, numeric
from inferometer.report.campaign.document import whole
from inferometer.report.figures import clean
from inferometer.report.run.console import RULE, STYLE, is_ascii, plain

MOST_DEVIATIONS = 3
MOST_VALUES = 6


class _Printer:
    """Prints wrapped paragraphs and tables as wide as the console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.ascii = is_ascii(console)

    def say(self, text: str, style: str = "", first: str = "") -> None:
        """`first` opens the first line, the others are indented by its width; where it leaves no room, it has a line."""
        first = plain(first, self.ascii).plain
        if len(first) > self.console.width / 2:
            self.say(first.rstrip())
            first = "  "
        for line in plain(text, self.ascii, style).wrap(
            self.console, max(self.console.width - len(first), 10)
        ):
            line.rstrip()
            self.console.print(Text.assemble(first, line), soft_wrap=True)
            first = " " * len(first)

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        right: Sequence[bool],
        words: int | None = None,
    ) -> list[str]:
        """Print as many columns as fit; returns the headings of those that do not. Column `words` gets what room the others
        leave, and wraps."""
        cells = [[plain(one, self.ascii).plain for one in row] for row in (head, *rows)]
        numbers = [max((len(row[i]) for row in cells[1:]), default=0) for i in range(len(head))]
        # A heading may wrap at a blank, a number never.
        folded = [max(map(len, [*one.split(), ""])) for one in cells[0]]
        whole = [max(len(one), number) for one, number in zip(cells[0], numbers, strict=True)]
        least = [max(one, number) for one, number in zip(folded, numbers, strict=True)]
        widths = whole if sum(whole) + 2 * (len(head) - 1) <= self.console.width else least
        if words is not None:
            others = sum(widths) - widths[words] + 2 * (len(head) - 1)
            least_words = max(len(word) for row in cells for word in (*row[words].split(), ""))
            widths[words] = max(min(numbers[words], self.console.width - others), least_words)
        kept = [i for i in range(len(head)) if sum(widths[: i + 1]) + 2 * i <= self.console.width] or [0]
        table = Table(box=RULE, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
        for i in kept:
            title = plain(head[i], self.ascii)
            table.add_column(title, justify="right" if right[i] else "left", width=widths[i])
        for row in cells[1:]:
            table.add_row(*(Text(row[i]) for i in kept))
        self.console.print(table)
        return [cells[0][i] for i in range(len(head)) if i not in kept]


def render_test(test: Mapping[str, Any], console: Console, report: str | None = None) -> None:
    """Print one test's result. `report`: where report.html lies, or None when none was written."""
    printer = _Printer(console)
    say = printer.say
    say("")
    say(f"{compliance_summary.title(test)} (draft {clean(test['section'])})", "bold")
    for word, means in compliance_summary.banners({**test, "redacted": None}):
        say(f"{word}  {means}", "bold magenta")
    if problem := compliance_summary.problem(test):
        say(problem, "bold red")
    say("")
    _values(test, say)
    _main_table(test, printer)
    say("")
    status = clean(test["verdict"]["status"])
    say(f"{status}  {compliance_summary.runs(test)}", STYLE.get(status, "bold"))
    for reason in dict.fromkeys(
        (*compliance_summary.reasons(test["verdict"]), *map(clean, test["undecided"]))
    ):
        say(reason, first="  ")
    _compliance(test, say)
    _path(report, printer)


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


def _main_table(test: Mapping[str, Any], printer: _Printer) -> None:
    table = next((one for one in test["tables"] if one["rows"]), None)
    if table is None:
        return
    printer.say("")
    rows = [[text for text, _ in row] for row in contents.cells_of(table)]
    right = [numeric(table, index) for index in range(len(table["columns"]))]
    missing = printer.table([heading(column) for column in table["columns"]], rows, right)
    if missing:
        printer.say(f"{', '.join(missing)}: in the report", "dim")


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
    campaign, printer = whole(campaign), _Printer(console)
    printer.say("")
    for word, means in compliance_summary.banners(campaign):
        printer.say(f"{word}  {means}", "bold magenta")
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
    missing = printer.table(head, rows, [False, False, True, False, False], words=3)
    if any(row["partial"] for row in compliance_summary.overview(campaign)):
        printer.say("* ended early", "dim")
    if missing:
        printer.say(f"{', '.join(missing)}: in the report", "dim")
    printer.say("")
    status = clean(campaign["verdict"]["status"])
    printer.say(f"{status}  {compliance_summary.MEANINGS.get(status, '')}", STYLE.get(status, "bold"))
    for reason in compliance_summary.reasons(campaign["verdict"]):
        printer.say(reason, first="  ")
    _path(report, printer)
    if copy is not None:
        printer.console.print(plain(f"To be shared: {clean(copy)}", printer.ascii), soft_wrap=True)


def _path(report: str | None, printer: _Printer) -> None:
    if report is not None:
        printer.say("")
        # A path must survive copying: it is never wrapped.
        printer.console.print(plain(f"Report: {clean(report)}", printer.ascii), soft_wrap=True)
