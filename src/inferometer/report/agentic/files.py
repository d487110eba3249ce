"""Writes an agentic benchmark's reports into its folder, beside agentic.json: agentic.md, agentic.html, card.svg, card.png."""

from __future__ import annotations

from pathlib import Path

from inferometer.documents.agentic import Agentic
from inferometer.report.agentic.card import render_card
from inferometer.report.agentic.html import render_html
from inferometer.report.agentic.markdown import render_markdown
from inferometer.report.card_picture import picture
from inferometer.report.run.files import write_all

PAGE = "agentic.html"


def write_reports(folder: Path, document: Agentic) -> None:
    """See `write_all`."""

    def render() -> dict[str, str | bytes]:
        card = render_card(document)
        return {
            "agentic.md": render_markdown(document),
            PAGE: render_html(document),
            "card.svg": card,
            "card.png": picture(card),
        }

    write_all(folder, render)
