"""The workload in pictures: the data a chart draws, the words beside it, and the page of a workload that was not run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from html_page import LOADING, Page

from inferometer.plan.length_histogram import histogram
from inferometer.report.run.markdown import render_markdown
from inferometer.report.workload_charts import MOST_BARS, of_run, section
from inferometer.report.workload_page import page

STATISTICS = {"mean": 320.0, "p50": 300.0, "p95": 500.0, "p99": 510.0, "min": 128, "max": 512}


def facts(groups: list[int], alone: int) -> dict[str, Any]:
    """An account of requests of which so many begin with each prefix, and so many with none."""
    ordered = sorted(groups, reverse=True)
    curve = [[k, sum(ordered[:k])] for k in range(len(ordered) + 1)]
    lengths = [128, 300, 512]
    return {
        "requests": sum(groups) + alone,
        **dict.fromkeys(
            ("input_tokens", "unshared_input_tokens", "sent_tokens", "output_tokens"), STATISTICS
        ),
        "shared": {
            "requests": sum(groups),
            "fraction": sum(groups) / (sum(groups) + alone),
            "tokens": STATISTICS if groups else None,
            "groups": groups,
            "curve": curve,
        },
        "prefix_hits": {"exact": 0.62, "blocks": 0.58, "block_tokens": 16},
        "published": [],
        "histograms": {
            "input_tokens": histogram({"asked": lengths, "sent": lengths}),
            "output_tokens": histogram({"asked": [7, 7]}),
        },
    }


def data(text: str) -> Any:
    found = next(
        body for attributes, body in Page(text).scripts if attributes.get("type") == "application/json"
    )
    return json.loads(found)["workload"]


def test_a_workload_that_was_not_run_has_a_page_that_loads_nothing() -> None:
    """Closed tags, no fetching attribute, the title as text, and the very histograms of the account to draw."""
    given = facts([30, 10], 60)
    text = page("<img src=x onerror=alert(1)>", given)
    found = Page(text)
    assert not found.open
    assert not [tag for tag, attributes in found.tags if tag == "img" or LOADING & set(attributes)]
    assert "<img src=x onerror=alert(1)>" in found.text
    assert data(text) == {"lengths": given["histograms"], "curve": None}
    assert "counted" not in found.text.lower()
    assert "40 requests, 40\u202f% of all, begin with one of 2 prefixes" in " ".join(text.split(" "))


def test_few_prefixes_have_a_bar_each_and_many_a_curve() -> None:
    """Bars add up to all requests, the most used first; a curve ends at all prefixes and all that share."""
    few = section(facts([3] * MOST_BARS, 4)["histograms"], facts([3] * MOST_BARS, 4), None, None, None)
    assert few["curve"] is few["data"]["curve"] is None
    assert len(few["bars"]) == MOST_BARS + 1
    assert sum(bar["share"] for bar in few["bars"]) == pytest.approx(1)
    many_facts = facts([5, *[1] * MOST_BARS], 0)
    many = section(many_facts["histograms"], many_facts, None, None, None)
    assert many["bars"] == []
    prefixes, carried = many["data"]["curve"]
    assert (prefixes[0], carried[0], prefixes[-1], carried[-1]) == (0, 0, 100, 100)
    assert carried[1] == pytest.approx(100 * 5 / (5 + MOST_BARS))


@pytest.mark.parametrize(("cached", "said"), [(0.41, "41\u202f%"), (0.0, "0\u202f%"), (None, "not reported")])
def test_the_best_hits_stand_beside_what_the_server_says(
    valid: dict[str, Any], series: dict[str, Any], cached: float | None, said: str
) -> None:
    """Exact, in blocks, and the server's: a rate that nobody knows has no bar and says so, a zero is a zero."""
    valid["workload"]["prefix_hits"] = {"exact": 0.5, "blocks": 0.48, "block_tokens": 16}
    valid["throughput"]["cached_input_share"] = cached
    rows = of_run(valid, series["lengths"])["hits"]
    assert [row["share"] for row in rows] == [0.5, 0.48, cached]
    assert rows[-1]["value"] == said
    text = render_markdown(valid)
    assert f"| Reported by the server | {said} |" in text


def test_a_run_shows_asked_sent_and_counted(valid: dict[str, Any], series: dict[str, Any]) -> None:
    """Five rows of lengths, in HTML and Markdown alike; without an account only what was counted."""
    labels = [label for label, _ in of_run(valid, series["lengths"])["lengths"]]
    sides = ("Input tokens asked", "Input tokens sent", "Input tokens counted")
    assert labels == [*sides, "Output tokens asked", "Output tokens counted"]
    assert all(f"| {label} |" in render_markdown(valid) for label in labels)
    valid["workload"]["drawn"] = valid["workload"]["prefix_hits"] = None
    bare = of_run(valid, None)
    assert [label for label, _ in bare["lengths"]] == ["Input tokens counted", "Output tokens counted"]
    assert bare["hits"][0]["value"] == "not known"
