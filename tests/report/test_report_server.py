"""The server by its own metrics: words of its checks, one line for the console, tables and charts of what it shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from html_page import Page
from msgspec.structs import replace

from inferometer.documents.summary import Lost, MetricsEndpointAccount, Summary
from inferometer.documents.verdict import CheckResult
from inferometer.measure.series import RunSeries
from inferometer.report import checks
from inferometer.report.run import rows
from inferometer.report.run.html import render_html
from inferometer.report.run.markdown import render_markdown

SIDES = {
    ("server_tokens", "more"): ("unsure", "note"),
    ("server_tokens", "fewer"): ("note",),
    ("server_ttft", "below"): ("unsure", "note"),
    ("server_ttft", "above"): ("note",),
    ("server_ttft", "others"): ("note",),
    ("server_ttft", "bounded"): ("pass",),
}


def check(code: str, status: Any, **facts: Any) -> CheckResult:
    value, limit = (None, None) if facts.get("side") == "others" else (0.1234, 0.05)
    return CheckResult(code, status, value, limit, None, facts, "")


@pytest.mark.parametrize(
    ("code", "side", "status"),
    [(*named, status) for named, statuses in SIDES.items() for status in statuses],
)
def test_each_side_on_which_a_check_can_miss_has_words_of_its_own(code: str, side: str, status: str) -> None:
    """More and fewer, above and below mean different things; what is unsure says what to do."""
    facts = {"side": side, "client_n": 30, "server_n": 20}
    said = checks.message(check(code, status, **facts))
    plain = checks.message(check(code, status))
    assert said != plain
    assert said.endswith(".")
    assert "{" not in said
    assert status != "unsure" or checks.advice(check(code, status, **facts))
    assert side == "others" or checks.value(check(code, status, **facts)) in said


@pytest.mark.parametrize("code", ["server_tokens", "server_ttft", "server_queue"])
@pytest.mark.parametrize("status", ["pass", "na"])
def test_without_a_side_there_are_words_too(code: str, status: str) -> None:
    """The general sentence is for codes nobody knows."""
    said = checks.message(check(code, status))
    assert "{" not in said
    assert "as it should be" not in said
    assert "does not apply" not in said


def test_the_line_names_what_the_server_shows_and_nothing_else(valid: Summary) -> None:
    """Queue, KV cache, preemptions; a server that shows no cache has no cache in its line."""
    assert valid.server is not None
    assert rows.server_line(valid.server) == (
        "By the server's own metrics: 41.7 running (at most 60), 0.21 waiting (at most 4), KV cache 31\u202f% in use "
        "(at most 44\u202f%), 3 preemptions, prefix hits 2.1\u202f%."
    )
    less = dataclasses.replace(valid.server, kv_usage=None, preemptions=None, prefix_hit_share=None)
    assert (
        rows.server_line(less)
        == "By the server's own metrics: 41.7 running (at most 60), 0.21 waiting (at most 4)."
    )


def test_both_sides_stand_in_the_tables(valid: Summary) -> None:
    """TTFT by server and client; totals with a range where a request's usage is not known."""
    assert valid.server is not None
    assert valid.metrics.ttft_ms is not None
    times = {title: (theirs, ours) for title, theirs, ours in rows.server_times(valid)}
    assert list(times) == ["Time to First Token", "Inter-Token Latency", "Time in the queue"]
    assert times["Time to First Token"][0][1] == "78.10"
    assert times["Time to First Token"][0][2:] == [
        "~76.20 [60\u202f\u2013\u202f80]",
        "~104 [> 100]",
        "\u2013",
    ]
    assert times["Time to First Token"][1][0] == str(valid.metrics.ttft_ms.n)
    assert rows.server_counts(valid.server)[1] == (
        "Output tokens",
        "164\u202f744",
        "164\u202f262 to 164\u202f742",
    )
    markdown = render_markdown(valid)
    assert "## Server metrics" in markdown
    assert "~ is an estimate" in markdown
    assert "## Server metrics" not in render_markdown(replace(valid, server=None))


ENDPOINTS = (
    MetricsEndpointAccount("http://a:1/metrics", True, "vLLM", 30, (), (), 0, 0.4, None, None),
    MetricsEndpointAccount(
        "http://b:2/metrics",
        False,
        None,
        1,
        (Lost("timeout", 28, "connected, but no answer in time"), Lost("http_503", 1, "busy <b>")),
        (Lost("bad_line", 2, "garbage at line 3: '@'"),),
        5,
        61.5,
        "/b",
        None,
    ),
    MetricsEndpointAccount("http://c:3/metrics", False, None, 12, (), (), 0, 1.0, None, None),
    MetricsEndpointAccount("http://d:4/metrics", True, None, 0, (), (), 0, None, None, "http_404"),
)


def test_every_endpoint_is_in_the_reports_and_those_that_lost_anything_on_the_console(
    valid: Summary, series: RunSeries
) -> None:
    """Scrapes, losses by reason with their first words, the longest gap; also where no endpoint's metrics are known."""
    for server in (valid.server, None):
        summary = replace(valid, server=server, metrics_endpoints=ENDPOINTS)
        text = Page(render_html(summary, series)).text
        for report in (render_markdown(summary), text):
            assert all(one.url in report for one in ENDPOINTS)
            assert "61.5" in report
            assert "28 timeout (connected, but no answer in time)" in report
        assert "<b>" not in render_markdown(summary)
    assert rows.lost_lines(replace(valid, metrics_endpoints=ENDPOINTS)) == [
        "http://b:2/metrics: 1 scrape, no metrics that are known; 28 timeout (connected, but no answer in time); "
        "1 http_503 (busy <b>); 2 lines that are no sample (garbage at line 3: '@').",
        "http://c:3/metrics: 12 scrapes, no metrics that are known.",
    ]


def test_a_chart_stands_for_what_is_shown_and_for_nothing_else(valid: Summary, series: RunSeries) -> None:
    """The page has a chart for each series there is; without any, not even a heading."""
    text = Page(render_html(valid, series)).text
    assert "Requests running at the server" in text
    assert "Prompt tokens found in the prefix cache" in text
    assert "KV cache in use" not in text
    none = Page(render_html(replace(valid, server=None), dataclasses.replace(series, server={})))
    assert "By the server's own metrics" not in none.text
    assert "server" not in {attributes.get("id") for _, attributes in none.tags}
