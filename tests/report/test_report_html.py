"""report.html: one file that loads nothing, runs nothing foreign, and says everything without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from html_page import LOADING, Page
from msgspec.structs import replace

from inferometer.documents.summary import Summary
from inferometer.measure.series import RunSeries
from inferometer.metrics.statistics import STATISTICS
from inferometer.plan.saved import resolved
from inferometer.report import checks
from inferometer.report.figures import figure, table_of
from inferometer.report.html_page import embedded_json
from inferometer.report.run.charts import by_server, distributions, over_time
from inferometer.report.run.html import pace_metric, render_html


def test_the_page_loads_nothing(sample: Any) -> None:
    """No attribute or style that makes a browser fetch points anywhere but inside the file."""
    html = render_html(*sample)
    for tag, attributes in Page(html).tags:
        assert not LOADING & set(attributes), (tag, attributes)
        if tag in ("link", "use", "image"):
            assert (attributes.get("href") or "").startswith("data:")
        if tag == "a":
            assert (attributes["href"] or "").startswith("#")
    styles = "".join(re.findall(r"<style>(.*?)</style>", html, re.S))
    assert "@import" not in styles
    assert "url(" not in styles


def test_the_policy_names_exactly_the_scripts_that_are_there(sample: Any) -> None:
    """Every script that runs is allowed by its SHA-256 and nothing else is: an injected one would not run."""
    page = Page(render_html(*sample))
    policy = next(
        a["content"] or ""
        for t, a in page.tags
        if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    named = set(re.findall(r"'sha256-([^']+)'", policy))
    running = [body for attributes, body in page.scripts if not attributes]
    assert named == {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in running}
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_a_hostile_name_is_only_ever_text(invalid: Summary, series: RunSeries, hostile: str) -> None:
    """Markup in a model name, a note, a failure class makes no element and no attribute, and can still be read."""
    page = Page(render_html(invalid, series))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert len(page.scripts) == 2
    assert "</script><img src=x onerror=alert(1)>" in page.text


def test_embedded_data_cannot_close_its_element(valid: Summary, series: RunSeries, hostile: str) -> None:
    """The embedded JSON has no sign HTML could act on and reads back as it was."""
    named = valid.plan.model_copy(update={"name": hostile + "<!--\u2028"})
    page = Page(render_html(replace(valid, plan=named), series))
    data = next(body for attributes, body in page.scripts if attributes.get("type") == "application/json")
    assert not set("<>&\u2028") & set(data)
    assert json.loads(data) == {"plan": resolved(named)}


def test_a_number_json_cannot_spell_is_refused() -> None:
    """NaN in chart data would break the page silently; it is an error instead."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json({"x": float("nan")})


def test_every_tag_is_closed_and_every_link_lands(sample: Any) -> None:
    """The page is well formed, ids are unique, and in-page links have a target."""
    page = Page(render_html(*sample))
    assert not page.open
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for t, a in page.tags if t == "a"} <= set(ids)


def test_the_page_is_small(sample: Any) -> None:
    """At most 1.5 MB, charts included."""
    assert len(render_html(*sample).encode()) < 1_500_000


def test_the_first_screen_says_verdict_meaning_reasons_and_numbers_before_anything_else(sample: Any) -> None:
    """Status, its meaning, each reason and six numbers stand before the first heading of the detail."""
    summary, series = sample
    first = Page(render_html(summary, series).split("<nav")[0]).text
    assert summary.verdict.status in first
    assert checks.VERDICTS[summary.verdict.status] in first
    for reason in summary.verdict.reasons:
        assert " ".join(reason.message.split()) in first
    assert re.findall(r"TTFT P50|TTFT P99|(?:ITL|TPOT) P50|(?:ITL|TPOT) P99|Output|Requests", first)


def test_everything_is_there_without_javascript(sample: Any) -> None:
    """Each check's sentence, each definition and each statistic of the table is plain HTML, and charts are SVG."""
    summary, series = sample
    page = Page(render_html(summary, series))
    for check in summary.verdict.checks:
        assert " ".join(check.message.split()) in page.text
    for means in summary.definitions.values():
        assert means in page.text
    for heading in STATISTICS.values():
        assert heading in page.text


def test_every_chart_has_words_for_those_who_cannot_see_it(sample: Any) -> None:
    """Each chart has the image role and a label, and each figure a title."""
    tags = Page(render_html(*sample)).tags
    charts = [attributes for _, attributes in tags if attributes.get("class") == "chart"]
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in charts)
    drawn = sample[1].timeline is not None
    assert len(charts) == (14 + len(sample[1].server) if drawn else 0)
    figures = [tag for tag, _ in tags if tag == "figure"]
    assert len(figures) == len([1 for tag, _ in tags if tag == "figcaption"]) >= max(len(charts), 8)


def test_every_chart_over_time_has_the_same_axis(valid: Summary, series: RunSeries) -> None:
    """So that they can be held beside each other; a point outside of it is left out."""
    drawn = [*over_time(valid, series), *by_server(valid, series)]
    assert len({chart.within for chart in drawn}) == 1
    low, high = drawn[0].within or (0, 0)
    assert all(low <= float(x) <= high for chart in drawn for one in chart.series for x in one.x)


@pytest.mark.parametrize("name", ["ttft_ms", "itl_ms", "e2e_ms"])
def test_a_distributions_charts_hold_every_sample(valid: Summary, series: RunSeries, name: str) -> None:
    """The histogram's heights add up to the samples, the other ends at 100 %, and both have one axis."""
    histogram, share = distributions(valid, series, name)
    assert sum(y or 0 for y in histogram.series[0].y) == getattr(valid.metrics, name).n
    assert share.series[0].y[-1] == 100
    assert histogram.within == share.within
    assert [mark.label for mark in share.marks] == ["P50", "P99"]


def test_pace_is_itl_only_where_every_gap_was_seen(valid: Summary, invalid: Summary, empty: Summary) -> None:
    """Chunked streams are judged by TPOT, which does not depend on chunking."""
    assert [pace_metric(summary) for summary in (valid, invalid, empty)] == ["itl_ms", "tpot_ms", "tpot_ms"]


def test_every_row_of_the_table_shows_its_median(valid: Summary, series: RunSeries) -> None:
    """The numbers in the page are the summary's."""
    text = Page(render_html(valid, series)).text
    for name in table_of(valid):
        assert figure(getattr(valid.metrics, name).p50).replace("\u202f", " ") in text
