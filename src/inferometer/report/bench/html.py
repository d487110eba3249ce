"""bench.html: one page without network, with the whole document in it as data."""

from __future__ import annotations

from inferometer.documents.bench import Bench
from inferometer.documents.part import to_data
from inferometer.report.bench import charts, contents
from inferometer.report.figures import clean, moment
from inferometer.report.html_page import Cell, picture, render_page, table

NO_CONTEXTS = "not measured: no context fills (--contexts)"


def render_html(document: Bench) -> str:
    """The whole of bench.html.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    prompts = contents.prompt_rows(document)
    context = {
        "version": clean(document.version),
        "page_title": f"{document.status}: engines side by side",
        "name": "Engines side by side",
        "id": clean(document.id),
        "started": moment(document.started),
        "banners": contents.titles(document),
        "status": document.status,
        "meaning": contents.MEANINGS[document.status],
        "lede": contents.condition(document),
        "machines": contents.machines(document),
        "orders": contents.orders(document),
        "engines": _engines(document),
        "pictures": [picture(charts.speeds(document)), picture(charts.contexts(document), NO_CONTEXTS)],
        "drifts": [picture(one) for one in charts.over_runs(document)],
        "prompts": table("Prompts", contents.PROMPT_HEAD, prompts, [False, False, *[True] * 8])
        if prompts
        else None,
        "warnings": contents.warnings(document),
        "metadata": table(
            "Metadata",
            contents.metadata_head(document),
            contents.metadata_rows(document),
            [False] * (len(document.engines) + 1),
        ),
        "protocol": contents.protocol_rows(document),
        "definitions_title": contents.definitions_title(),
        "definitions": contents.DEFINITIONS,
    }
    return render_page("bench.html.j2", to_data(document), context, "campaign.css", "bench.css")


def _engines(document: Bench) -> object:
    rows = [
        (*row[:-1], Cell(row[-1], kind=row[-1].lower() + " tone")) for row in contents.engine_rows(document)
    ]
    return table("Engines", contents.ENGINE_HEAD, rows, [False, *[True] * 6, False])
