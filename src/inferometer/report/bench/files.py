"""Writes a benchmark's reports into its folder, beside bench.json: bench.md, bench.html, card.svg, card.png."""

from __future__ import annotations

from pathlib import Path

from inferometer.documents.bench import Bench
from inferometer.report.bench.card import render_card
from inferometer.report.bench.html import render_html
from inferometer.report.bench.markdown import render_markdown
from inferometer.report.card_picture import picture
from inferometer.report.run.files import write_all

PAGE = "bench.html"


def write_reports(folder: Path, document: Bench) -> None:
    """See `write_all`."""

    def render() -> dict[str, str | bytes]:
        card = render_card(document)
        return {
            "bench.md": render_markdown(document),
            PAGE: render_html(document),
            "card.svg": card,
            "card.png": picture(card),
        }

    write_all(folder, render)
