"""agentic.html: one page without network, with the whole document in it as data."""

from __future__ import annotations

from inferometer.documents.agentic import Agentic
from inferometer.documents.part import to_data
from inferometer.report.agentic import charts, contents
from inferometer.report.bench import contents as bench
from inferometer.report.figures import clean, moment
from inferometer.report.html_page import Cell, Table, picture, render_page, table


def render_html(document: Agentic) -> str:
    """The whole of agentic.html.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    phases, repeats = contents.phase_rows(document), contents.repeat_rows(document)
    context = {
        "version": clean(document.version),
        "page_title": f"{document.status}: reuse of a shared prefix",
        "name": "Reuse of a shared prefix",
        "id": clean(document.id),
        "started": moment(document.started),
        "banners": bench.titles(document),
        "status": document.status,
        "meaning": contents.MEANINGS[document.status],
        "lede": contents.condition(document),
        "machines": bench.machines(document),
        "models": bench.models(document),
        "found": contents.found(document),
        "pictures": [picture(one) for one in charts.pictures(document, bench.called(document))],
        "engines": _engines(document),
        "phases": table("Phases", contents.PHASE_HEAD, phases, [False] * 2 + [True] * 7) if phases else None,
        "repeats": table("Repetitions", contents.REPEAT_HEAD, repeats, [False, True, False, True, True, True])
        if repeats
        else None,
        "warnings": bench.warnings(document),
        "metadata": table(
            "Metadata",
            bench.metadata_head(document),
            bench.metadata_rows(document),
            [False] * (len(document.engines) + 1),
        ),
        "protocol": contents.protocol_rows(document),
        "definitions": contents.DEFINITIONS,
    }
    return render_page("agentic.html.j2", to_data(document), context, "campaign.css", "bench.css")


def _engines(document: Agentic) -> Table:
    rows = [
        (*row[:-1], Cell(row[-1], kind=row[-1].lower() + " tone")) for row in contents.engine_rows(document)
    ]
    return table("Engines", contents.ENGINE_HEAD, rows, [False] * 3 + [True] * 3 + [False] * 2)
