"""report.html of a campaign: one file without network, and with the whole document in it, for `inferometer rerun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Campaign, ProcedureDocument, ReportedTable
from inferometer.documents.part import to_data
from inferometer.report.campaign import compliance, contents, deviations, overview, pictures
from inferometer.report.campaign.cells import ROUGH, heading, labelled, numeric, texts
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.figures import MARK, UNMEASURED, clean, moment
from inferometer.report.html_page import Cell, Picture, Table, check_table, render_page, table

MANY = 10
"""Tables of more columns have smaller figures."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of a test with its title and notes."""

    title: str
    section: str
    cells: Table
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Article:
    """One test on the page. `measured`, `runs`: None where there are none."""

    about: contents.Detail
    measured: Table | None
    tables: list[Sheet]
    figures: list[Picture]
    runs: Table | None


def render_html(campaign: Campaign) -> str:
    """The whole of report.html.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    status = campaign.verdict.status
    banners = overview.banners(campaign, campaign.redacted)
    tests = overview.in_order(campaign)
    context = {
        "version": clean(campaign.version),
        "name": clean(campaign.name),
        "id": clean(campaign.id),
        "started": moment(campaign.started),
        "page_title": ", ".join([*(word for word, _ in banners), f"{status}: {clean(campaign.name)}"]),
        "banners": banners,
        "status": status,
        "meaning": overview.meaning(campaign),
        "compliance": deviations.label(campaign),
        "reasons": overview.across(campaign),
        "lede": contents.lede(campaign),
        "overview": (rows := [overview.row(test) for test in tests]),
        "no_interval": overview.NO_INTERVAL,
        "front": pictures.front(campaign),
        "rough": ROUGH if any(MARK in row.value for row in rows) else "",
        "sections": contents.SECTIONS,
        "system": contents.system(campaign),
        "configuration": contents.configuration(campaign),
        "summaries": contents.summaries(campaign),
        "details": [_article(test) for test in tests],
        "performed": _performed(tests),
        "findings": _findings(findings) if (findings := deviations.findings(campaign)) else None,
        "limitations": contents.limitations(campaign),
        "reproduction": contents.reproduction(campaign),
        "minimum": render_minimum(campaign),
    }
    return render_page("campaign.html.j2", to_data(campaign), context, "campaign.css")


def _article(test: ProcedureDocument) -> Article:
    about = contents.detail(test)
    return Article(
        about,
        _measured(about) if about.values else None,
        [_sheet(one) for one in test.tables],
        [pictures.drawn(one) for one in test.figures],
        _runs(about) if about.runs else None,
    )


def _number(text: str) -> Cell:
    return Cell(text, kind="absent" if text == UNMEASURED else "")


def _measured(about: contents.Detail) -> Table:
    rows = [(Cell(one.label, note=one.note), _number(one.value), one.interval) for one in about.values]
    head = ("Measured", "Value", "95\u00a0%\u00a0interval")
    return table(f"What {about.title} measured", head, rows)


def _sheet(one: ReportedTable) -> Sheet:
    title, width = labelled(one.title, one.at), len(one.columns)
    cells = table(
        title,
        [heading(column) for column in one.columns],
        [[_number(text) for text in row] for row in texts(one)],
        [numeric(one, index) for index in range(width)],
        "results many" if width > MANY else "results",
    )
    return Sheet(title, clean(one.section), cells, [clean(note.message) for note in one.notes])


def _runs(about: contents.Detail) -> Table:
    rows = [
        (run.run, run.part, run.at, run.verdict, Cell(run.requests, kind="code"), run.why)
        for run in about.runs
    ]
    head = ("Run", "Part", "At", "Verdict", "Requests", "Why")
    return table(f"Runs of {about.title}", head, rows, [False] * len(head), kind="")


def _performed(tests: Sequence[ProcedureDocument]) -> Table:
    shown = [(overview.row(test), compliance.tally(test.compliance)) for test in tests]
    rows = [(row.title, row.compliance, tally or "none") for row, tally in shown]
    head = ("Test performed", "Compliance", "Findings")
    return table("Tests performed", head, rows, [False] * len(head), kind="")


def _findings(shared: Sequence[deviations.SharedFinding]) -> Table:
    findings = [(one.finding, one.tests) for one in shared]
    rows = [(Cell(one.state, kind="tag"), one.id, one.level, one.text, tests) for one, tests in findings]
    return check_table(
        "Deviations and declarations",
        ("State", "Rule", "Level", "In words", "Tests"),
        rows,
        ("", "", "", "words", ""),
        [one.tone for one, _ in findings],
    )
