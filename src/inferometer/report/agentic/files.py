"""Writes an agentic benchmark's reports into its folder, beside agentic.json: agentic.md, agentic.html, card.svg, card.png."""

from __future__ import annotations

from pathlib import Path

from inferometer.documents.agentic import Agentic
from inferometer.errors import InstrumentError
from inferometer.report.agentic.card import render_card
from inferometer.report.agentic.html import render_html
from inferometer.report.agentic.markdown import render_markdown
from inferometer.report.card_picture import picture
from inferometer.report.run.files import replace

PAGE = "agentic.html"


def write_reports(folder: Path, document: Agentic) -> None:
    """Render all, then write: a folder never holds reports of two different results.

    Raises:
        InstrumentError: a value cannot be written as JSON. Nothing is written then.
        OSError: the folder cannot be written to.
    """
    try:
        card = render_card(document)
        files: dict[str, str | bytes] = {
            "agentic.md": render_markdown(document),
            PAGE: render_html(document),
            "card.svg": card,
            "card.png": picture(card),
        }
    except (TypeError, ValueError) as cause:
        raise InstrumentError(f"the report holds a value that JSON cannot: {cause}") from cause
    for name, content in files.items():
        replace(folder / name, content)
