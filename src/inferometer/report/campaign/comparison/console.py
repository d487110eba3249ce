"""A comparison of campaigns in a terminal or a pipe: checklist, what decides, what else moved, one conclusion."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from inferometer.documents.campaign_comparison import CampaignComparison, CampaignContrast, CampaignFigure
from inferometer.report.campaign.comparison import words
from inferometer.report.comparison import words as shared
from inferometer.report.figures import clean
from inferometer.report.tables import Screen

_STYLES = {"regression": "bold red", "no_regression": "bold green"}
_RANK = (0, 4, 3, 1, 2)
"""Columns of a table of figures, those that are kept longest first."""


def render(document: CampaignComparison, console: Console) -> None:
    """Print the comparison."""
    screen = Screen(console, most=100)
    for side in document.sides:
        line = words.side_line(side.label, side.name, side.campaigns)
        screen.say(", ".join(filter(None, (line, words.cost(side)))))
    for noise in document.noise:
        screen.say(words.side_line("A/A", noise.name, noise.campaigns))
    for side in document.sides:
        for line in words.reservations(side.label, side.campaigns):
            screen.say(line, "dim", first="  ")
    screen.say("")
    for item in document.checklist:
        section = f"{item.section} MUST" if item.level == "MUST" else item.section
        screen.say(f"{item.title}. {item.message}", first=f"{item.status:9}  {section:8}  ")
        if item.advice:
            screen.say(item.advice, "dim", first=f"{'->':>9}  {'':8}  ")
    screen.say("")
    screen.say(shared.complied(document.compliance))
    _differences(document, screen)
    for contrast in document.contrasts:
        _contrast(contrast, screen)
    method = document.method
    if method.price_source:
        screen.say(f"Prices: {clean(method.price_source)}. {method.normalisation}")
    if method.noise_moves:
        screen.say(words.moving(method.noise_moves))
    screen.say("")
    outcome = document.outcome
    screen.say(f"{shared.OUTCOMES[outcome]}  {document.conclusion}", _STYLES.get(outcome, "bold yellow"))


def _differences(document: CampaignComparison, screen: Screen) -> None:
    if not document.differences:
        return
    screen.say("")
    screen.say("Differences in configuration:")
    for one in document.differences:
        told = shared.told_apart(one.values)
        sides = ", ".join(f"{shared.label(at)}: {found}" for at, found in enumerate(told))
        screen.say(sides, first=f"  {one.key}  ")


def _contrast(contrast: CampaignContrast, screen: Screen) -> None:
    deciding = [one for one in contrast.figures if one.deciding]
    others = [one for one in contrast.figures if not one.deciding]
    moved = [one for one in others if one.verdict in ("better", "worse")]
    screen.say("")
    _figures(f"{contrast.side} against A", deciding, contrast.side, screen)
    tests = sorted({one.test for one in deciding if one.test is not None})
    by = {"paired": "by the t-test on pairs of campaigns with one seed", "welch": "by Welch's t"}
    how = " and ".join(by[test] for test in tests) or "by the values' own intervals, where there are any"
    screen.say(f"Mean of the campaigns and half its 95 % interval; intervals of the change {how}.", "dim")
    for one in deciding:
        if (why := words.held(one)) and (one.barred or "interval" not in one.held):
            screen.say(why, first=f"{words.title(one)}: ")
    if any(one.p_holm is not None for one in deciding):
        screen.say("")
        _evidence(deciding, screen)
    if moved:
        screen.say("")
        _figures("also moved, does not decide", moved, contrast.side, screen)
    if left := len(others) - len(moved):
        screen.say(f"{left} more figures in --markdown, --html and --json.", "dim")


def _figures(head: str, figures: Sequence[CampaignFigure], side: str, screen: Screen) -> None:
    rows = [
        (
            words.title(one),
            words.amount(one.baseline),
            words.amount(one.side),
            f"{words.change(one, one.relative).removesuffix(' %')} ({shared.span(words.interval(one))})",
            shared.verdict_word(one.verdict, one.held),
        )
        for one in figures
    ]
    right = [False, True, True, True, False]
    screen.table((head, "A", side, "change in %, 95 %", "verdict"), rows, right, words=0, rank=_RANK)


def _evidence(figures: Sequence[CampaignFigure], screen: Screen) -> None:
    rows = [
        (
            clean(one.procedure if one.headline else one.name),
            "-" if one.p_holm is None else f"{one.p_holm:.3f}",
            shared.span(one.welch),
            _unsigned(None if one.floor is None else one.floor.value),
            _unsigned(one.detectable),
        )
        for one in figures
    ]
    screen.table(("evidence, in %", "p, Holm", "Welch's", "floor", "could see"), rows)


def _unsigned(share: float | None) -> str:
    return shared.percent(share).removesuffix(" %").lstrip("+")
