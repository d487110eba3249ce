"""The bounds of the instrument's own error stand beside the headlines, in every report."""

from __future__ import annotations

import io

from msgspec.structs import replace
from rich.console import Console
from sample_runs import valid_summary

from inferometer.documents.verdict import CheckResult
from inferometer.report import checks
from inferometer.report.run.console import render_console
from inferometer.report.run.error_bounds import bound_of, error_line, error_rows, rate_bound, rounded_up
from inferometer.report.run.html import headline
from inferometer.report.run.markdown import render_markdown


def test_each_headline_has_its_bound_beside_it() -> None:
    """On the first screen of the page as a note, in the Markdown report as a table, on the console as a line."""
    summary = valid_summary()
    notes = {one.label: one.note for one in headline(summary)}
    assert "instrument's error at most 0.13 ms" in notes["TTFT P99"]
    assert "instrument's error at most 0.21 ms" in notes["ITL P99"]
    row = "| Time to First Token (ms) | 0.008 | 0.006 | 0.009 | 0.011 | 0.13 |"
    assert row in " ".join(render_markdown(summary).split())
    screen = io.StringIO()
    render_console(summary, Console(file=screen, width=200), None)
    assert "TTFT 0.006 and 0.13" in screen.getvalue()


def test_a_bound_is_never_rounded_below_itself() -> None:
    """To two digits, and to a microsecond at least."""
    shown = [rounded_up(bound) for bound in (None, 0.0, 0.0801, 0.13, 19.01, 0.000123)]
    assert shown[1:] == ["0", "0.081", "0.13", "20", "0.001"]


def test_a_run_without_bounds_has_none_beside_its_headlines() -> None:
    """As one of an earlier version, or a simulation."""
    base = valid_summary()
    bare = replace(base, instrument=replace(base.instrument, error_bounds=None))
    assert (bound_of(bare, "ttft_ms", "p99"), rate_bound(bare, "output_tok_s"), error_line(bare)) == (
        None,
        None,
        None,
    )
    assert error_rows(bare) == []
    assert not any("error at most" in one.note for one in headline(bare))
    assert "error of the instrument" not in render_markdown(bare)


def test_the_sentence_names_the_headlines_in_words() -> None:
    """Not by their names in the data."""
    facts = {
        "headline": "ttft_ms p99",
        "stated": 54.2,
        "beyond": ["ttft_ms p99", "output_tok_s"],
    }
    said = checks.message(CheckResult("error_bound", "fail", 19.8, 0.54, "ms", facts, ""))
    assert "moved a headline by 19.8 ms" in said
    assert "TTFT P99" in said
    assert "ttft_ms" not in said
