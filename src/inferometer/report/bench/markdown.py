"""bench.md: verdict and order first, then figures, warnings, metadata, definitions. The pictures are in bench.html."""

from __future__ import annotations

from inferometer.documents.bench import Bench
from inferometer.report.bench import contents
from inferometer.report.figures import clean, moment
from inferometer.report.tables import bullets
from inferometer.report.tables import escaped as safe
from inferometer.report.tables import markdown_table as table


def render_markdown(document: Bench) -> str:
    """The whole of bench.md."""
    prompts = contents.prompt_rows(document)
    answers = contents.answer_rows(document)
    warnings = contents.warnings(document)
    machines = contents.machines(document)
    parts = [
        *(f"**{safe(words)}**" for words in contents.titles(document)),
        f"# Engines side by side: {safe(document.id)}",
        f"**{document.status}.** {contents.MEANINGS[document.status]}",
        safe(contents.condition(document)),
        safe(
            f"{moment(document.started)}, Inferometer {clean(document.version)}{machines and f', {machines}'}."
        ),
        *_orders(document),
        "## Engines",
        table(contents.engine_head(document), contents.engine_rows(document), [False, *[True] * 5]),
        "## Prompts" if prompts else "",
        table(contents.PROMPT_HEAD, prompts, [False, False, *[True] * 8]) if prompts else "",
        "Charts are in bench.html." if prompts else "",
        "## Answers" if answers else "",
        table(contents.ANSWER_HEAD, answers, [False] * 3 + [True] * 5) if answers else "",
        "## Warnings" if warnings else "",
        bullets(f"{whose}: {words}" for whose, words in warnings),
        "## Metadata",
        table(contents.metadata_head(document), contents.metadata_rows(document)),
        "## Protocol",
        table(("Item", "Value"), contents.protocol_rows(document)),
        f"## {contents.definitions_title()}",
        table(("Term", "Definition"), contents.DEFINITIONS),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _orders(document: Bench) -> list[str]:
    parts = []
    for one in contents.orders(document):
        parts += [
            f"## {one.title}",
            "  \n".join(map(_place, one.places)) or "None.",
            bullets((*one.pairs, *one.reasons)),
        ]
    return parts


def _place(text: str) -> str:
    """A place as text: Markdown would number a list anew."""
    number, _, names = text.partition(". ")
    return f"**{number}.** {safe(names)}"
