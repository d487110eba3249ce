"""Writes a campaign's reports into its folder: campaign.json, report.md, report.html, minimum.txt."""

from __future__ import annotations

from pathlib import Path

from inferometer.documents.campaign import Campaign
from inferometer.documents.part import to_json
from inferometer.errors import InstrumentError
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.run.files import replace


def write_reports(folder: Path, campaign: Campaign) -> None:
    """Render all, then write: a folder never holds reports of two different results.

    Raises:
        InstrumentError: a value cannot be written as JSON. Nothing is written then.
        OSError: the folder cannot be written to.
    """
    try:
        texts = {
            "campaign.json": to_json(campaign),
            "report.md": render_markdown(campaign),
            "report.html": render_html(campaign),
            "minimum.txt": render_minimum(campaign),
        }
    except (TypeError, ValueError) as cause:
        raise InstrumentError(f"the report holds a value that JSON cannot: {cause}") from cause
    for name, text in texts.items():
        replace(folder / name, text)
