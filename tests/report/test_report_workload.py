"""The workload in pictures: the data a chart draws, the words beside it, and the page of a workload that was not run."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from html_page import LOADING, Page
from msgspec.structs import replace

from inferometer.documents.part import from_data
from inferometer.documents.summary import Summary
from inferometer.documents.workload import DrawnRequests, PrefixHits, RequestStatistics
from inferometer.measure.series import LengthHistograms, RunSeries
from inferometer.plan.length_histogram import LengthHistogram, histogram
from inferometer.report.run.markdown import render_markdown
from inferometer.report.workload import MOST_BARS, WorkloadSection, of_run, page, section

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
        "repeated_input_tokens": None,
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
            "input_tokens": dataclasses.asdict(drawn({"asked": lengths, "sent": lengths})),
            "output_tokens": dataclasses.asdict(drawn({"asked": [7, 7]})),
        },
    }


def drawn(lengths: dict[str, list[int]]) -> LengthHistogram:
    found = histogram(lengths)
    assert found is not None
    return found


def shown(given: dict[str, Any]) -> WorkloadSection:
    """The section of a workload that was not run."""
    account = {name: value for name, value in given.items() if name != "histograms"}
    return section(
        from_data(given["histograms"], LengthHistograms),
        from_data(account, RequestStatistics),
        None,
        None,
        None,
    )


def test_a_workload_that_was_not_run_has_a_page_that_loads_nothing() -> None:
    """Closed tags, no fetching attribute, the title as text, and the histograms of the account drawn."""
    given = facts([30, 10], 60)
    text = page("<img src=x onerror=alert(1)>", from_data(given, DrawnRequests))
    found = Page(text)
    assert not found.open
    assert not [tag for tag, attributes in found.tags if tag == "img" or LOADING & set(attributes)]
    assert "<img src=x onerror=alert(1)>" in found.text
    assert text.count('class="chart"') == 2
    assert "asked, 3 requests" in found.text
    assert "counted" not in found.text.lower()
    assert "40 requests, 40\u202f% of all, begin with one of 2 prefixes" in " ".join(text.split(" "))


def test_few_prefixes_have_a_bar_each_and_many_a_curve() -> None:
    """Bars add up to all requests, the most used first; a curve ends at all prefixes and all that share."""
    few = shown(facts([3] * MOST_BARS, 4))
    assert few.curve is None
    assert len(few.bars) == MOST_BARS + 1
    assert sum(bar.share or 0 for bar in few.bars) == pytest.approx(1)
    many = shown(facts([5, *[1] * MOST_BARS], 0))
    assert many.bars == []
    assert many.curve is not None
    assert many.curve.svg is not None
    assert f"The 1 most used of {MOST_BARS + 1} prefixes are in " in many.curve_words


@pytest.mark.parametrize(("cached", "said"), [(0.41, "41\u202f%"), (0.0, "0\u202f%"), (None, "not reported")])
def test_the_best_hits_stand_beside_what_the_server_says(
    valid: Summary, series: RunSeries, cached: float | None, said: str
) -> None:
    """Exact, in blocks, and the server's: a rate that nobody knows has no bar and says so, a zero is a zero."""
    run = replace(
        valid,
        workload=replace(valid.workload, prefix_hits=PrefixHits(0.5, 0.48, 16)),
        throughput=replace(valid.throughput, cached_input_share=cached),
    )
    bars = of_run(run, series.lengths).hits
    assert [bar.share for bar in bars] == [0.5, 0.48, cached]
    assert bars[-1].value == said
    line = next(
        line for line in render_markdown(run).splitlines() if line.startswith("| Reported by the server")
    )
    assert line.split("|")[2].strip() == said


def test_a_run_shows_asked_sent_and_counted(valid: Summary, series: RunSeries) -> None:
    """Five rows of lengths, in HTML and Markdown alike; without an account only what was counted."""
    labels = [label for label, _ in of_run(valid, series.lengths).lengths]
    sides = ("Input tokens asked", "Input tokens sent", "Input tokens counted")
    assert labels == [*sides, "Output tokens asked", "Output tokens counted"]
    assert all(f"| {label} " in render_markdown(valid) for label in labels)
    without = replace(valid, workload=replace(valid.workload, drawn=None, prefix_hits=None))
    bare = of_run(without, LengthHistograms())
    assert [label for label, _ in bare.lengths] == ["Input tokens counted", "Output tokens counted"]
    assert bare.hits[0].value == "not known"
