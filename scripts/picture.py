"""The first picture of a campaign's report as a file of its own: with the sheet that the page has, and with its legend."""

from __future__ import annotations

from importlib.resources import files

from inferometer.documents.campaign import Campaign
from inferometer.report.campaign.pictures import front
from inferometer.report.html_page import Picture

WIDTH, HEIGHT = 560, 320
"""Of a chart (report/charts.py)."""
LINE = 18
SHEET = files("inferometer.report") / "templates" / "page.css"
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}">'


def first_picture(campaign: Campaign) -> str | None:
    """The SVG; None where the report has no picture."""
    drawn = [one.picture for one in front(campaign) if one.picture.svg is not None]
    return standing_alone(drawn[0]) if drawn else None


def standing_alone(picture: Picture) -> str:
    """A picture with title, legend and sheet."""
    height = LINE + HEIGHT + LINE * len(picture.legend) + LINE // 2
    title = f'<text class="name" x="8" y="{LINE - 4}">{picture.title}</text>'
    chart = f'<svg y="{LINE}" width="{WIDTH}" height="{HEIGHT}">{picture.svg}</svg>'
    legend = "".join(
        f'<g transform="translate(40 {LINE + HEIGHT + LINE * row})">{sample}'
        f'<text x="34" y="12">{name}</text></g>'
        for row, (sample, name) in enumerate(picture.legend)
    )
    paper = f'<rect width="{WIDTH}" height="{height}" style="fill: var(--paper)"/>'
    style = f"<style>{SHEET.read_text()}</style>"
    head = HEAD.format(width=WIDTH, height=height)
    return f"{head}{style}{paper}{title}{chart}{legend}</svg>\n"
