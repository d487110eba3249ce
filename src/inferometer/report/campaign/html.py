"""report.html of a campaign: one file without network, and with the whole document in it, for `inferometer rerun`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from inferometer.documents.part import from_data
from inferometer.documents.results import Figure
from inferometer.errors import PlanError, Problem
from inferometer.report.campaign import compliance, compliance_summary, contents
from inferometer.report.campaign.cells import WITHHELD, heading, numeric
from inferometer.report.campaign.contents import Campaign
from inferometer.report.campaign.document import whole
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.charts import of_figure
from inferometer.report.figures import UNMEASURED, clean, moment
from inferometer.report.html_page import Picture, picture, render_page

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def render_html(campaign: Campaign) -> str:
    """The whole of report.html.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    document, campaign = campaign, whole(campaign)
    verdict = str(campaign["verdict"]["status"])
    marks = [word for word, _ in compliance_summary.banners(campaign)]
    context = {
        "version": clean(campaign["version"]),
        "name": clean(campaign["name"]),
        "id": clean(campaign["id"]),
        "started": moment(campaign["started"]),
        "page_title": ", ".join([*marks, f"{verdict}: {clean(campaign['name'])}"]),
        "banners": compliance_summary.banners(campaign),
        "status": clean(verdict),
        "meaning": compliance_summary.MEANINGS.get(verdict, ""),
        "compliance": compliance.label(campaign["compliance"]),
        "reasons": compliance_summary.reasons(campaign["verdict"]),
        "lede": contents.lede(campaign),
        "overview": compliance_summary.overview(campaign),
        "sections": contents.SECTIONS,
        "system": contents.system(campaign),
        "configuration": contents.configuration(campaign),
        "summaries": contents.summaries(campaign),
        "details": [_detail(test) for test in campaign["tests"]],
        "performed": contents.performed(campaign),
        "findings": contents.findings(campaign),
        "limitations": contents.limitations(campaign),
        "reproduction": contents.reproduction(campaign),
        "minimum": render_minimum(campaign),
    }
    return render_page("campaign.html.j2", document, context, "campaign.css")


def document_of(page: str) -> dict[str, Any]:
    """The campaign's document out of a report.html.

    Raises:
        PlanError: the page holds none.
    """
    found = _DATA.search(page)
    loaded = json.loads(found[1]) if found else None
    if not isinstance(loaded, dict) or "tests" not in loaded:
        raise PlanError(
            [
                Problem(
                    "report",
                    "this page holds no campaign: give the report.html that `inferometer test` wrote",
                )
            ]
        )
    return loaded


def _detail(test: Mapping[str, Any]) -> dict[str, Any]:
    return contents.detail(test) | {
        "tables": [_table(one) for one in test["tables"]],
        "figures": [_figure(one) for one in test["figures"]],
    }


def _table(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": clean(one["title"]),
        "section": clean(one["section"]),
        "columns": [
            {"heading": heading(column), "number": numeric(one, index)}
            for index, column in enumerate(one["columns"])
        ],
        "rows": contents.cells_of(one),
        "notes": [clean(note) for note in one["notes"]],
    }


def _figure(one: Mapping[str, Any]) -> Picture:
    figure = from_data(one, Figure)
    missing = WITHHELD if figure.capacity and not figure.series else UNMEASURED
    return picture(of_figure(figure), missing)
