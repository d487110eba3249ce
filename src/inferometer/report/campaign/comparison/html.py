"""A comparison of campaigns as one HTML page that needs no network, with the whole document in it."""

from __future__ import annotations

from inferometer.documents.campaign_comparison import CampaignComparison, CampaignContrast
from inferometer.documents.part import to_data
from inferometer.report import checks
from inferometer.report.campaign.comparison import markdown, words
from inferometer.report.campaign.overview import QUICK
from inferometer.report.comparison import words as shared
from inferometer.report.figures import clean, moment
from inferometer.report.html_page import Cell, Table, check_table, render_page, table

_KINDS = {"worse": "bad", "better": "good"}
_TONES = {"satisfied": "pass", "declared": "pass", "unknown": "unsure", "violated": "fail"}
_STATUS = {
    "regression": "INVALID",
    "invalid": "INVALID",
    "not_comparable": "INVALID",
    "no_regression": "VALID",
}
"""The sign and colour of an outcome, as those of a verdict."""


def render(document: CampaignComparison) -> str:
    """The page.

    Raises:
        ValueError: the document holds NaN or an infinity.
    """
    campaigns = [one for side in document.sides for one in side.campaigns]
    simulated = any(one.simulated for one in campaigns)
    banners = [
        *([(checks.SIMULATED, checks.SIMULATED_MEANS)] if simulated else []),
        *([QUICK] if any(one.quick for one in campaigns) else []),
    ]
    outcome = shared.OUTCOMES[document.outcome]
    names = ", ".join(f"{side.label}: {clean(side.name)}" for side in document.sides)
    context = {
        "version": clean(document.version),
        "started": moment(document.sides[0].campaigns[0].started),
        "page_title": f"{outcome}: {names}",
        "banners": banners,
        "name": "Campaigns compared",
        "names": names,
        "status": _STATUS.get(document.outcome, "INCONCLUSIVE"),
        "outcome": outcome,
        "conclusion": document.conclusion,
        "sides": markdown.sides(document),
        "contrasts": [
            (one.side, _figures(one, deciding=True), _figures(one, deciding=False))
            for one in document.contrasts
        ],
        "remarks": [document.method.decides, document.method.multiplicity, *markdown.remarks(document)],
        "checklist": _checklist(document),
        "complied": shared.complied(document.compliance),
        "differences": _differences(document),
    }
    return render_page("campaign_comparison.html.j2", to_data(document), context, "campaign.css")


def _figures(contrast: CampaignContrast, *, deciding: bool) -> Table | None:
    """The figures that decide, or the others; None: there are none."""
    found = [one for one in contrast.figures if one.deciding is deciding]
    if not found:
        return None
    head = (
        "Figure",
        "A",
        contrast.side,
        "Change",
        "95\u00a0% interval",
        "p\u00a0(Holm)",
        "Floor",
        "Could see",
        "Verdict",
    )
    rows = []
    for one in found:
        base, side, change, interval, _, p, floor, seen, _ = markdown.cells(one)
        verdict = Cell(
            shared.verdict_word(one.verdict, one.held), kind=_KINDS.get(one.verdict, ""), note=words.held(one)
        )
        named = Cell(
            clean(one.title), note=" · ".join(filter(None, (words.heading(one.procedure), clean(one.unit))))
        )
        rows.append((named, base, side, change, interval, p, floor, seen, verdict))
    label = f"{contrast.side} against A, {'what decides' if deciding else 'other figures'}"
    return table(label, head, rows, [False, *[True] * 7, False], "results many")


def _checklist(document: CampaignComparison) -> Table:
    rows = [
        (
            Cell(one.status, kind="tag"),
            Cell(one.title),
            f"{one.section} {one.level if one.level != 'checklist' else ''}".strip(),
            Cell(one.message, advice=one.advice or ""),
        )
        for one in document.checklist
    ]
    tones = [_TONES[one.status] for one in document.checklist]
    return check_table("Checklist", ("Status", "Item", "Draft", "Found"), rows, ("", "", "", "words"), tones)


def _differences(document: CampaignComparison) -> Table | None:
    rows = [(Cell(key, kind="code"), *values) for key, values in markdown.differences(document)]
    head = ("Key", *(side.label for side in document.sides))
    return table("Differences in configuration", head, rows, [False] * len(head), kind="") if rows else None
