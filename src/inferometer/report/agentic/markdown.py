"""agentic.md: the verdicts first, then figures, warnings, metadata, definitions. The pictures are in agentic.html."""

from __future__ import annotations

from inferometer.documents.agentic import Agentic
from inferometer.report.agentic import contents
from inferometer.report.bench import contents as bench
from inferometer.report.figures import clean, moment
from inferometer.report.tables import bullets
from inferometer.report.tables import escaped as safe
from inferometer.report.tables import markdown_table as table


def render_markdown(document: Agentic) -> str:
    """The whole of agentic.md."""
    phases, repeats = contents.phase_rows(document), contents.repeat_rows(document)
    warnings, machines = bench.warnings(document), bench.machines(document)
    parts = [
        *(f"**{safe(words)}**" for words in bench.titles(document)),
        f"# Reuse of a shared prefix: {safe(document.id)}",
        f"**{document.status}.** {contents.MEANINGS[document.status]}",
        *(part for one in contents.found(document) for part in _found(one)),
        safe(contents.condition(document)),
        safe(
            f"{moment(document.started)}, Inferometer {clean(document.version)}{machines and f', {machines}'}."
        ),
        "## Engines",
        table(contents.ENGINE_HEAD, contents.engine_rows(document), [False] * 3 + [True] * 3),
        "## Phases" if phases else "",
        table(contents.PHASE_HEAD, phases, [False] * 2 + [True] * 7) if phases else "",
        "Charts are in agentic.html." if phases else "",
        "## Repetitions" if repeats else "",
        table(contents.REPEAT_HEAD, repeats, [False, True, False, True, True, True]) if repeats else "",
        "## Warnings" if warnings else "",
        bullets(f"{whose}: {words}" for whose, words in warnings),
        "## Metadata",
        table(bench.metadata_head(document), bench.metadata_rows(document)),
        "## Protocol",
        table(("Item", "Value"), contents.protocol_rows(document)),
        "## Definitions",
        table(("Term", "Definition"), contents.DEFINITIONS),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _found(one: contents.Found) -> list[str]:
    status = f" ({one.status})" if one.status else ""
    alarms = (f"WARNING {words}" for words in one.alarms)
    head = f"**{safe(one.name)}: prefix cache reuse {safe(one.reuse)}**{status}"
    return [head, bullets((*alarms, *one.lines))]
