"""report.html of a campaign: one file without network, and with the whole document in it, for `inferometer rerun`.

html_page.py makes it safe; pictures are SVG in the page (drawing.py), so that a report reads the same without scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from inferometer.errors import PlanError, Problem
from inferometer.report.campaign import compliance, compliance_summary, contents, drawing
from inferometer.report.campaign.cells import WITHHELD, heading, numeric
from inferometer.report.campaign.contents import Campaign
from inferometer.report.campaign.document import whole
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.figures import clean, moment
from inferometer.report.html_page import render_page
from inferometer.report.run.disclosure import UNMEASURED

SCRIPTS = ("templates/charts.js",)
STYLES = ("templates/report.css", "templates/campaign.css")
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
    return render_page("campaign.html.j2", document, context, SCRIPTS, STYLES)


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


def _figure(one: Mapping[str, Any]) -> dict[str, Any]:
    # Both are SVG of drawing.py, which escapes what came from outside.
    from markupsafe import Markup

    svg = drawing.drawn(one)
    return {
        "title": clean(one["title"]),
        "missing": WITHHELD if one["capacity"] and not one["series"] else UNMEASURED,
        "svg": None if svg is None else Markup(svg),  # noqa: S704 - escaped in drawing.py
        "legend": [(Markup(sample), name) for sample, name in drawing.legend(one)],  # noqa: S704 - our own shapes
    }
