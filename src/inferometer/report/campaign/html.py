"""report.html of a campaign: one file without network, and with the whole document in it, for `inferometer rerun`."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from inferometer.documents.campaign import Campaign, ProcedureDocument, ReportedTable
from inferometer.documents.note import WITHHELD
from inferometer.documents.part import to_data
from inferometer.documents.results import Figure, Series
from inferometer.report.campaign import compliance, contents, overview
from inferometer.report.campaign.cells import heading, labelled, numeric, texts
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.charts import of_figure
from inferometer.report.figures import UNMEASURED, clean, moment
from inferometer.report.html_page import Picture, picture, render_page


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading. `number`: its cells are set to the right."""

    heading: str
    number: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of the page: (text, whether it is a number) in each cell."""

    title: str
    section: str
    columns: list[Heading]
    rows: list[list[tuple[str, bool]]]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Article:
    """One test on the page."""

    about: contents.Detail
    tables: list[Sheet]
    figures: list[Picture]


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
        "meaning": overview.MEANINGS[status],
        "compliance": compliance.label(campaign.compliance),
        "reasons": overview.reasons(campaign.verdict),
        "lede": contents.lede(campaign),
        "overview": [overview.row(test) for test in tests],
        "sections": contents.SECTIONS,
        "system": contents.system(campaign),
        "configuration": contents.configuration(campaign),
        "summaries": contents.summaries(campaign),
        "details": [_article(test) for test in tests],
        "performed": [(overview.row(test), compliance.tally(test.compliance)) for test in tests],
        "findings": contents.findings(campaign),
        "limitations": contents.limitations(campaign),
        "reproduction": contents.reproduction(campaign),
        "minimum": render_minimum(campaign),
    }
    return render_page("campaign.html.j2", to_data(campaign), context, "campaign.css")


def _article(test: ProcedureDocument) -> Article:
    return Article(
        contents.detail(test), [_table(one) for one in test.tables], [_figure(one) for one in test.figures]
    )


def _table(one: ReportedTable) -> Sheet:
    return Sheet(
        title=labelled(one.title, one.at),
        section=clean(one.section),
        columns=[Heading(heading(column), numeric(one, index)) for index, column in enumerate(one.columns)],
        rows=texts(one),
        notes=[clean(note.message) for note in one.notes],
    )


def _figure(one: Figure) -> Picture:
    named = replace(one, series=tuple(_named(line) for line in one.series))
    missing = WITHHELD if one.capacity and not one.series else UNMEASURED
    return picture(of_figure(named), missing)


def _named(line: Series) -> Series:
    return replace(line, label=labelled(line.label, line.at))
