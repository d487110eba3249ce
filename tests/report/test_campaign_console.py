"""A test's result in a terminal: within its width, never a number broken, the same in a pipe."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TypeVar

import campaigns
import pytest
from msgspec.structs import replace
from rich.console import Console

from inferometer.documents.campaign import ReportedValue
from inferometer.documents.note import WordedNote
from inferometer.report.campaign.cells import amount, cell
from inferometer.report.campaign.console import render_campaign, render_test
from inferometer.report.figures import THIN, ascii_only

T = TypeVar("T")


def printed(
    render: Callable[[T, Console, str | None], None],
    document: T,
    width: int = 80,
    encoding: str = "utf-8",
    report: str | None = None,
) -> str:
    out = io.BytesIO()
    file = io.TextIOWrapper(out, encoding=encoding, errors="strict")
    render(document, Console(file=file, width=width), report)
    file.flush()
    return out.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [200, 80, 40])
@pytest.mark.parametrize("name", campaigns.NAMES)
def test_lines_fit_and_numbers_are_whole(name: str, width: int) -> None:
    """Every number of the main table's first columns is there as one word, in every width; nothing is wider."""
    test = next(one for one in campaigns.measured().tests if one.test == name)
    text = printed(render_test, test, width)
    assert max(map(len, text.splitlines())) <= width
    shown = text.split()
    for row in test.tables[0].rows:
        number = next((one for one in row if isinstance(one, int | float)), None)
        assert number is None or cell(number).replace(THIN, "") in shown
    left_out = re.search(r"^(.*): in the\s+report$", text, re.MULTILINE | re.DOTALL)
    assert width < 200 or left_out is None


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_a_campaign_has_a_line_for_each_test(name: str) -> None:
    """With verdict and label, and the worst of the verdicts below."""
    document = campaigns.SAMPLES[name]()
    text = printed(render_campaign, document, report="runs/a b/report.html")
    for test in document.tests:
        assert re.search(rf"^{test.test} .*{test.verdict.status}", text, re.MULTILINE)
    assert "\nReport: runs/a b/report.html\n" in text


def test_a_pipe_that_is_not_unicode_gets_ascii() -> None:
    """All of it."""
    for test in campaigns.measured().tests:
        text = printed(render_test, test, encoding="ascii")
        assert ascii_only(text) == text


def test_verdict_label_and_first_deviations_are_told() -> None:
    """Of the test that went wrong: why it ended, the reason, and the worst deviations with their number."""
    test = next(one for one in campaigns.measured().tests if one.test == "capacity")
    text = " ".join(printed(render_test, test).split())
    assert test.compliance is not None
    deviations = test.compliance.deviations
    label = f"not compliant, 1 numeric limit not met, {len(deviations)} deviations"
    for words in ("Ended early, the server could not go on. The server refused connections at 150 %", "INVALID",
                  "Failed requests: 18.2", label, deviations[0].id):  # fmt: skip
        assert words in text


def test_an_empty_test_says_that_nothing_was_measured() -> None:
    """And a simulated one that it is no measurement."""
    assert "Nothing was measured." in printed(render_test, campaigns.empty().tests[0])
    assert "SIMULATED" in printed(render_test, campaigns.simulated().tests[0])


def test_a_campaigns_headlines_say_what_they_are() -> None:
    """A number without a name says nothing; names wrap where the terminal is narrow, and give way where it is more so."""
    campaign = campaigns.measured()
    for width in (200, 80):
        text = printed(render_campaign, campaign, width)
        assert "Which is" in text
        assert max(map(len, text.splitlines())) <= width
    assert "Compliance: in the report" in " ".join(printed(render_campaign, campaign, 40).split())


def test_what_was_looked_for_and_is_not_there_is_not_called_unmeasured() -> None:
    """A knee beyond the last level was measured not to be there; without a level it was not measured."""
    note = WordedNote("not_reached", {}, True, "not reached: P99 never doubles")
    knee = ReportedValue("knee", "Knee point", None, "req/s", None, note, True)
    assert amount(knee) == "not reached"
    assert amount(replace(knee, note=replace(note, code="not_measured"))) == "not measured"
