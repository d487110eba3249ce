"""Percentiles of too few samples in the reports of a campaign."""

from __future__ import annotations

import campaigns
from msgspec.structs import replace

from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.metrics.statistics import ENOUGH, RoughPercentile, percentile_of
from inferometer.report.campaign.cells import ROUGH, texts
from inferometer.report.campaign.contents import summaries
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.campaign.redaction import redact
from inferometer.report.figures import MARK


def of(campaign: Campaign, name: str) -> ProcedureDocument:
    return next(test for test in campaign.tests if test.test == name)


def test_a_percentile_is_rough_below_its_number_of_samples_and_no_other_statistic_ever_is() -> None:
    """Ten samples beyond it: 1,000 for a P99 (draft 5.1.2.1)."""
    for name, least in ENOUGH.items():
        assert isinstance(percentile_of(1.0, name, least - 1), RoughPercentile)
        assert not isinstance(percentile_of(1.0, name, least), RoughPercentile)
    assert not isinstance(percentile_of(1.0, "mean", 1), RoughPercentile)
    assert percentile_of(None, "p99", 1) is None


def test_each_percentile_of_a_table_is_marked_by_its_own_number_of_samples() -> None:
    """Of 40 requests P50 is sound; P90, P95, P99 and P99.9 are rough, and no mean, least or greatest value is."""
    table = of(campaigns.simulated(), "ttft").tables[0]
    marked = {str(row[0]) for row, words in zip(table.rows, texts(table), strict=True) if MARK in words[1]}
    assert marked == {"TTFT P90", "TTFT P95", "TTFT P99", "TTFT P99.9"}


def test_every_table_with_percentiles_of_a_small_campaign_has_marks() -> None:
    """Whatever the test: the levels of a search, and lengths one after the other."""
    for test in campaigns.simulated().tests:
        for table in test.tables:
            columns = [
                at
                for at, column in enumerate(table.columns)
                if "P95" in column.label or "P99" in column.label
            ]
            rows = [
                at for at, row in enumerate(table.rows) if any(row[column] is not None for column in columns)
            ]
            assert {
                (row, column) for row in rows for column in columns if table.rows[row][column] is not None
            } <= set(table.few)


def test_reports_say_what_the_mark_means_and_only_where_it_stands() -> None:
    """In Markdown and in HTML; a campaign without a rough percentile has neither."""
    small = campaigns.simulated()
    sound = replace(
        small,
        minimum=replace(small.minimum, few=()),
        tests=tuple(
            replace(
                test,
                values=tuple(replace(one, few=False) for one in test.values),
                tables=tuple(replace(one, few=()) for one in test.tables),
            )
            for test in small.tests
        ),
    )
    for render in (render_markdown, render_html):
        assert ROUGH in render(small)
        assert MARK not in render(sound)


def test_what_is_withheld_is_not_marked() -> None:
    """A mark beside no number would say how many requests there were."""
    for test in redact(campaigns.simulated(), "capacity").tests:
        assert not any(value.few for value in test.values if value.capacity)
        for table in test.tables:
            assert not table.few or not table.capacity
            assert not any(table.columns[column].capacity for _, column in table.few)


def test_the_minimum_report_and_the_rows_of_tpot_have_the_mark() -> None:
    """Of 40 requests P99 is rough and P50 is sound; the lines say what the mark means, and a sound report has neither."""
    small = campaigns.simulated()
    assert small.minimum.few == ("ttft_p99_ms", "tpot_p99_ms")
    lines = render_minimum(small).splitlines()
    marked = {line.partition(":")[0] for line in lines if f" ms{MARK}" in line}
    assert {"- TTFT P99", "- TPOT P99"} <= marked
    assert not {"- TTFT P50", "- TPOT P50"} & marked
    assert f"- {ROUGH}" in lines
    latency = dict(summaries(small)["Latency"])
    assert latency["TPOT P99"].endswith(MARK)
    assert not latency["TPOT P50"].endswith(MARK)
    assert redact(small, "capacity").minimum.few == small.minimum.few
    sound = replace(small, minimum=replace(small.minimum, few=()))
    assert f"- {ROUGH}" not in render_minimum(sound).splitlines()
