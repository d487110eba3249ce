"""A comparison of campaigns as Markdown, and its figures as rows: conclusion first, then figures, checklist, differences."""

from __future__ import annotations

from collections.abc import Iterable

from inferometer.documents.campaign_comparison import CampaignComparison, CampaignFigure
from inferometer.report.campaign.comparison import words
from inferometer.report.comparison import words as shared
from inferometer.report.figures import clean, figure
from inferometer.report.tables import Escaped, bullets, escaped, markdown_table

HEAD = ("figure", "A", "", "change", "95 % interval", "test", "p (Holm)", "floor", "could see", "verdict")
"""Of the figures; the third is the side's letter."""


def render(document: CampaignComparison) -> str:
    """The page."""
    parts = [
        f"# {shared.OUTCOMES[document.outcome]}",
        escaped(document.conclusion),
        bullets(sides(document)),
    ]
    for contrast in document.contrasts:
        head = heads(contrast.side)
        rows = [_row(one) for one in in_order(contrast.figures)]
        right = [False, *[True] * (len(head) - 2), False]
        parts += [f"## {contrast.side} against A", markdown_table(head, rows, right)]
    parts += [f"Bold figures decide. {document.method.decides}", document.method.multiplicity]
    parts += [escaped(line) for line in remarks(document)]
    items = [
        (one.title, section, one.status, f"{one.message} {one.advice or ''}".strip())
        for one in document.checklist
        for section in [f"{one.section} {one.level if one.level != 'checklist' else ''}".strip()]
    ]
    parts += ["## Checklist", markdown_table(["item", "draft", "status", "found"], items)]
    parts += [escaped(shared.complied(document.compliance)), "## Differences in configuration"]
    table = [[key, *values] for key, values in differences(document)]
    heading = ["key", *(side.label for side in document.sides)]
    parts += [markdown_table(heading, table) if table else "None."]
    return "\n\n".join(part for part in parts if part) + "\n"


def sides(document: CampaignComparison) -> list[str]:
    """The sides, and what is not VALID of them."""
    lines = [
        ", ".join(filter(None, (words.side_line(one.label, one.name, one.campaigns), words.cost(one))))
        for one in document.sides
    ]
    lines += [words.side_line("A/A", one.name, one.campaigns) for one in document.noise]
    return lines + [line for one in document.sides for line in words.reservations(one.label, one.campaigns)]


def remarks(document: CampaignComparison) -> list[str]:
    """Threshold, prices, and whether the system holds still."""
    method = document.method
    return [
        *([f"Threshold: {figure(method.threshold * 100)} %."] if method.threshold else []),
        *([f"Prices: {clean(method.price_source)}. {method.normalisation}"] if method.price_source else []),
        *([words.moving(method.noise_moves)] if method.noise_moves else []),
    ]


def differences(document: CampaignComparison) -> list[tuple[str, list[str]]]:
    """Each key in which configurations differ, with each side's values."""
    return [
        (
            one.key,
            [
                " or ".join("not declared" if value is None else clean(str(value)) for value in found)
                for found in one.values
            ],
        )
        for one in document.differences
    ]


def heads(side: str) -> tuple[str, ...]:
    """The headings of a side's figures."""
    return tuple(name or side for name in HEAD)


def in_order(figures: Iterable[CampaignFigure]) -> list[CampaignFigure]:
    """What decides first."""
    return sorted(figures, key=lambda one: not one.deciding)


def cells(one: CampaignFigure) -> tuple[str, ...]:
    """The cells of a figure's row behind its name."""
    points = one.change == "points"
    floor = shared.percent(None if one.floor is None else one.floor.value).lstrip("+")
    seen = shared.could_see(one)
    why = words.held(one)
    return (
        words.amount(one.baseline),
        words.amount(one.side),
        words.change(one, one.relative),
        shared.span(words.interval(one)),
        {"paired": "pairs", "welch": "Welch's"}[one.test] if one.test else "own" if one.own else "-",
        "-" if one.p_holm is None else f"{one.p_holm:.4f}",
        floor.replace(" %", " points") if points else floor,
        seen.replace(" %", " points") if points else seen,
        shared.verdict_word(one.verdict, one.held) + (f" ({why})" if why else ""),
    )


def name(one: CampaignFigure) -> str:
    """A figure with its test and unit."""
    unit = f", {clean(one.unit)}" if one.unit else ""
    return f"{words.title(one)}{unit}"


def _row(one: CampaignFigure) -> tuple[str, ...]:
    shown = escaped(name(one))
    return (Escaped(f"**{shown}**" if one.deciding else shown), *cells(one))
