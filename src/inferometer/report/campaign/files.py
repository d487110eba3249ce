"""Writes a campaign's reports into its folder: campaign.json, report.md, report.html, minimum.txt."""

from __future__ import annotations

from pathlib import Path

from inferometer.documents.campaign import Campaign
from inferometer.documents.part import to_json
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.run.files import write_all


def write_reports(folder: Path, campaign: Campaign) -> None:
    """See `write_all`."""
    write_all(
        folder,
        lambda: {
            "campaign.json": to_json(campaign),
            "report.md": render_markdown(campaign),
            "report.html": render_html(campaign),
            "minimum.txt": render_minimum(campaign),
        },
    )
