"""A comparison of campaigns as JUnit XML: a suite for each side and test of the draft, a test case for each figure."""

from __future__ import annotations

from inferometer.documents.campaign_comparison import CampaignComparison, CampaignFigure
from inferometer.report.campaign.comparison import words
from inferometer.report.comparison import words as shared
from inferometer.report.comparison.junit import Case, Suite, render_suites


def render(document: CampaignComparison) -> bytes:
    """The file."""
    started = document.sides[0].campaigns[0].started
    suites = [
        Suite(
            f"{contrast.side} against A: {words.heading(test)}",
            f"compare.{contrast.side}.{test}",
            started,
            [_case(one) for one in contrast.figures if one.procedure == test],
        )
        for contrast in document.contrasts
        for test in dict.fromkeys(one.procedure for one in contrast.figures)
    ]
    return render_suites(suites, document.outcome, document.conclusion)


def _case(one: CampaignFigure) -> Case:
    why = words.held(one)
    found = (
        f"{words.title(one)}: {words.change(one, one.relative)}, 95 % interval {shared.span(words.interval(one))}, "
        f"{shared.verdict_word(one.verdict, one.held)}{f' ({why})' if why else ''}"
    )
    return Case(one.name, found, "", one.verdict, one.deciding)
