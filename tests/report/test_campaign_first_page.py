"""A campaign's first page: a row of headline, interval, verdict and reason for each test, and the pictures of the system."""

from __future__ import annotations

import functools
import html
import io
import re
import tempfile
from pathlib import Path

import campaigns
import pytest
from msgspec.structs import replace
from procedures.driving import Silent
from rich.console import Console

from inferometer.documents.campaign import Campaign, ProcedureDocument, ProcedureReason, ProcedureVerdict
from inferometer.documents.note import WITHHELD
from inferometer.documents.results import Axis, Figure, Series
from inferometer.documents.statement import RuleFinding, RuleState
from inferometer.plan.campaign import campaign
from inferometer.report.campaign import deviations, overview, pictures, titles
from inferometer.report.campaign.cells import ROUGH
from inferometer.report.campaign.console import EARLY, render_campaign
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.redaction import redact
from inferometer.report.figures import MARK, THIN, ascii_only
from inferometer.simulation.engine import Chosen
from inferometer.studies.campaign import carry_out
from inferometer.studies.stand import Virtual

SMALL = [
    "tradeoff.capacity_rate=20",
    "tradeoff.percent=[50, 100]",
    "tradeoff.most_percent=100",
    "tradeoff.duration_s=4",
    "long-context.lengths=[64, 128, 256]",
    "long-context.requests=5",
    "ttft.requests=40",
    "itl.percent=[50]",
    "itl.requests=20",
]


@functools.cache
def pictured() -> Campaign:
    """Each test whose picture is on the first page, in virtual time."""
    whole = campaign(tuple(pictures.CHOSEN), None, None, SMALL, simulated=True, quick=True)
    with tempfile.TemporaryDirectory() as folder:
        stand = Virtual(Chosen("tiny-cpu", campaigns.ENGINE), Silent())
        return carry_out(whole, stand, Path(folder), Silent(), "inferometer test all").document


def first_page(document: Campaign) -> str:
    """Of report.html: all before its contents."""
    return render_html(document).partition("<main>")[2].partition("<nav")[0]


def printed(document: Campaign, width: int = 120, encoding: str = "utf-8") -> str:
    out = io.BytesIO()
    file = io.TextIOWrapper(out, encoding=encoding)
    render_campaign(document, Console(file=file, width=width))
    file.flush()
    return out.getvalue().decode(encoding)


def with_interval(test: ProcedureDocument, ci: tuple[float, float] | None) -> ProcedureDocument:
    """The test with this interval of its headline."""
    headline = titles.headline(test)
    values = tuple(replace(one, ci=ci) if one is headline else one for one in test.values)
    return replace(test, values=values)


def test_an_interval_in_the_document_is_on_the_first_page() -> None:
    """Of any test, without a word about the test here; where there is none, that is said and no cell is blank."""
    document = campaigns.measured()
    given = {test.test: (1000.5 + at, 2000.5 + at) for at, test in enumerate(document.tests)}
    known = replace(document, tests=tuple(with_interval(test, given[test.test]) for test in document.tests))
    unknown = replace(document, tests=tuple(with_interval(test, None) for test in document.tests))
    for render in (first_page, render_markdown, printed):
        text = render(known).replace(THIN, "")
        for low, high in given.values():
            assert f"{low:.0f}\u2013{high:.0f}" in text or f"{low:.1f}\u2013{high:.1f}" in text, render
        assert overview.NO_INTERVAL in render(unknown)
    assert overview.NO_INTERVAL not in first_page(known)


def test_a_verdict_stands_with_its_reason() -> None:
    """The first sentence of the worst one; how many there are beside it; none of a VALID test."""
    document = campaigns.measured()
    reasons = tuple(
        ProcedureReason(code, "INVALID", None, f"{code} went wrong: 5.2 of 7. Do this.", capacity=False)
        for code in ("first", "second", "third")
    )
    failed = ProcedureVerdict("INVALID", reasons)
    row = overview.row(replace(document.tests[0], verdict=failed))
    assert (row.reason, row.more) == ("first went wrong: 5.2 of 7.", 2)
    page = first_page(replace(document, tests=(replace(document.tests[0], verdict=failed),)))
    assert "first went wrong: 5.2 of 7." in page
    assert "2 more" in page
    assert "Do this." not in page
    sound = overview.row(replace(document.tests[0], verdict=ProcedureVerdict("VALID", ())))
    assert (sound.reason, sound.more) == ("", 0)


def test_what_tests_say_of_each_other_stands_beside_the_campaigns_verdict() -> None:
    """It is no test's, so no row has it; what is a test's own stands in its row only."""
    document = campaigns.measured()
    own = ProcedureReason("ttft", "INCONCLUSIVE", None, "Time to First Token: not settled.")
    both = ProcedureReason("maximum_exceeded", "INCONCLUSIVE", None, "Another test saw more.")
    judged = replace(document, verdict=ProcedureVerdict("INCONCLUSIVE", (own, both)))
    assert overview.across(judged) == ["Another test saw more."]


def test_the_pictures_of_the_chosen_tests_are_drawn() -> None:
    """The figure that is named for each test is one that it makes, with a sentence on how to read it and a title to each
    axis."""
    shown = pictures.front(pictured())
    assert len(shown) == len(pictures.CHOSEN) == pictures.MOST
    page = first_page(pictured())
    for one in shown:
        assert one.picture.svg is not None, one.test
        assert one.picture.svg in page
        assert one.reading in page
        assert f'href="#t-{one.number}">{one.test}</a>' in page


def test_a_campaign_of_other_tests_shows_the_figures_it_has() -> None:
    """The first of each test; a campaign that measured nothing shows none."""
    document = campaigns.measured()
    alone = replace(document, tests=tuple(test for test in document.tests if test.test == "capacity"))
    (shown,) = pictures.front(alone)
    assert shown.picture.title == alone.tests[0].figures[0].title
    assert pictures.front(campaigns.empty()) == []
    assert 'class="front"' not in render_html(campaigns.empty())


def test_a_picture_of_a_test_that_is_not_valid_says_so() -> None:
    """A picture is copied without the table above it."""
    document = pictured()
    for status in ("INVALID", "INCONCLUSIVE"):
        verdict = ProcedureVerdict(status, (ProcedureReason("x", status, None, "Not settled."),))
        page = first_page(
            replace(document, tests=tuple(replace(one, verdict=verdict) for one in document.tests))
        )
        assert page.count(f'<span class="tone">{status}.</span>') == len(pictures.CHOSEN)


def test_intervals_are_drawn_and_percentiles_of_too_few_samples_are_hollow() -> None:
    """A stroke for each point that has an interval and no other, a hollow marker for each that is rough, and the legend says
    what they are only where they stand."""
    bare = Series("P99", (1.0, 2.0, 3.0), (10.0, 12.0, None))
    given = replace(bare, ci=((9.0, 11.0), None, None), few=(1, 2))
    for series, strokes, hollow in ((bare, 0, 0), (given, 1, 1)):
        figure = Figure("f", "F", "lines", Axis("Load", "req/s"), Axis("TTFT", "ms", log=True), (series,))
        shown = pictures.drawn(figure)
        assert shown.svg is not None
        assert shown.svg.count('class="span') == strokes
        assert shown.svg.count("hollow dot") == hollow
        named = [name for _, name in shown.legend]
        assert named == (["95 % interval", "too few samples for this percentile"] if strokes else [])


def test_a_redacted_first_page_has_no_picture_of_the_capacity() -> None:
    """Where it would be, it says that it is withheld; pictures of latency stay."""
    shown = {one.picture.title: one.picture for one in pictures.front(redact(pictured(), "capacity"))}
    hidden = {
        figure.title
        for test in pictured().tests
        for figure in test.figures
        if figure.capacity or figure.x.capacity or figure.y.capacity
    }
    assert {title for title, one in shown.items() if one.svg is None} == hidden & set(shown) != set()
    assert all(one.missing == WITHHELD for title, one in shown.items() if title in hidden)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_two_marks_differ_where_there_is_only_ascii(width: int) -> None:
    """One is of a percentile, one of a test that ended early; each is explained where it stands, and lines fit."""
    document = campaigns.measured()
    rough = tuple(
        replace(one, values=tuple(replace(value, few=True) for value in one.values)) for one in document.tests
    )
    text = printed(replace(document, tests=rough), width, "ascii")
    assert ascii_only(MARK) != EARLY
    assert f"INVALID{EARLY}" in text
    assert f"{EARLY} ended early" in text
    assert " ".join(ascii_only(ROUGH).split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= width
    assert ascii_only(ROUGH) not in printed(document, encoding="ascii")


def test_a_valid_campaign_says_how_many_runs_would_not_be_valid_alone() -> None:
    """Law: and that the checks they do not pass do not count, in the same words on every page; of other campaigns, and where
    all runs are VALID, nothing is said of it."""
    whole = campaigns.valid()
    (test,) = whole.tests
    runs = tuple(replace(run, verdict="VALID") for run in test.runs)
    assert len(runs) > 2

    def said(*verdicts: str, of: Campaign = whole) -> str:
        marked = [replace(run, verdict=verdict) for run, verdict in zip(runs, verdicts, strict=False)]
        return overview.meaning(replace(of, tests=(replace(test, runs=(*marked, *runs[len(marked) :])),)))

    assert "alone" not in said("VALID")
    one = said("INVALID")
    assert (
        f"Taken alone, 1 of the {len(runs)} runs would not be VALID. The checks that it does not pass" in one
    )
    assert f"Taken alone, 2 of the {len(runs)} runs would not be VALID. The checks that they do" in said(
        "INVALID", "INCONCLUSIVE"
    )
    bad = replace(whole, verdict=ProcedureVerdict("INCONCLUSIVE", ()))
    assert "alone" not in said("INVALID", of=bad)
    alone = replace(whole, tests=(replace(test, runs=(replace(runs[0], verdict="INVALID"),)),))
    assert "Taken alone, the only run would not be VALID." in overview.meaning(alone)
    words = " ".join(overview.meaning(alone).split())
    out = io.StringIO()
    render_campaign(alone, Console(file=out, width=100))
    for page in (out.getvalue(), render_markdown(alone), html.unescape(render_html(alone))):
        assert words in " ".join(page.split())


def rule(number: int, level: str, state: RuleState) -> RuleFinding:
    return RuleFinding(f"D-{number}", "5.1", level, "A rule.", state, None, None)


@pytest.mark.parametrize(
    ("own", "tests", "ended", "said"),
    [
        ([rule(1, "REQUIRED", "violated")], [rule(2, "MUST", "violated")], False, ": 2 MUST rules violated (D-1, D-2)"),
        ([], [rule(2, "MUST", "violated"), rule(3, "SHOULD", "violated")], False, ": 1 MUST rule violated (D-2)"),
        ([rule(2, "MUST", "unknown")], [rule(2, "MUST", "violated")], False, ": 1 MUST rule violated (D-2)"),
        ([], [rule(at, "MUST", "violated") for at in range(5)], False, ": 5 MUST rules violated (D-0, D-1, D-2, 2 more)"),
        ([rule(1, "MUST", "unknown")], [rule(2, "MUST", "violated")], False, ": 1 MUST rule violated (D-2), 1 unknown"),
        ([], [rule(1, "MUST", "unknown")], True, ": 1 MUST rule unknown, 1 test ended early"),
        ([], [], False, ""),
    ],
)  # fmt: skip
def test_a_campaign_that_is_not_compliant_names_the_rules_behind_it(
    own: list[RuleFinding], tests: list[RuleFinding], ended: bool, said: str
) -> None:
    """Law: each rule of MUST weight once, of the campaign's statement and its tests', in the same words on every page; another
    label stands alone."""
    whole = campaigns.valid()
    (test,) = whole.tests
    assert test.compliance is not None
    statement = replace(test.compliance, label="not compliant", deviations=tuple(tests))
    several = replace(statement, deviations=tuple(own))
    cut = replace(test, compliance=statement, ended_by="server" if ended else None)
    broken = replace(whole, tests=(cut,), compliance=several)
    assert deviations.label(broken) == f"not compliant{said}"
    for page in (render_markdown(broken), re.sub("<[^>]+>", "", html.unescape(render_html(broken)))):
        assert f"Compliance: not compliant{said}." in page
    fair = replace(broken, compliance=replace(several, label="conditionally compliant"))
    assert deviations.label(fair) == "conditionally compliant"
