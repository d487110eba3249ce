"""bench.html: one page without network, with the whole document in it as data."""

from __future__ import annotations

from itertools import zip_longest

from inferometer.documents.bench import Bench
from inferometer.documents.part import to_data
from inferometer.report.bench import charts, contents
from inferometer.report.figures import clean, moment
from inferometer.report.html_page import Cell, Picture, picture, render_page, table

NO_CONTEXTS = "not measured: no context fills (--contexts)"


def render_html(document: Bench) -> str:
    """The whole of bench.html.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    prompts, answers = contents.prompt_rows(document), contents.answer_rows(document)
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
        "pictures": _pictures(document),
        "drifts": _drifts(document),
        "prompts": table("Prompts", contents.PROMPT_HEAD, prompts, [False, False, *[True] * 8])
        if prompts
        else None,
        "answers": table("Answers", contents.ANSWER_HEAD, answers, [False] * 3 + [True] * 5)
        if answers
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


def _pictures(document: Bench) -> list[Picture]:
    names, parts = contents.called(document), charts.parts(document)
    filled = [chart for part in parts if (chart := charts.contexts(part, names)).series]
    return [
        *(picture(charts.speeds(part, names)) for part in parts),
        *(picture(chart, NO_CONTEXTS) for chart in filled or [charts.contexts(parts[0], names)]),
    ]


def _drifts(document: Bench) -> list[Picture]:
    """Prompt by prompt, the parts of the engines beside each other."""
    names = contents.called(document)
    every = [charts.over_runs(document, part, names) for part in charts.parts(document)]
    return [picture(one) for row in zip_longest(*every) for one in row if one is not None]


def _engines(document: Bench) -> object:
    rows = [
        (*row[:-1], Cell(row[-1], kind=row[-1].lower() + " tone")) for row in contents.engine_rows(document)
    ]
    head = contents.engine_head(document)
    return table("Engines", head, rows, [False, *[True] * 5, *[False] * (len(head) - 6)])
