"""Words and tables about the way to the server."""

from __future__ import annotations

import dataclasses
from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from inferometer.documents.run_facts import RoundTrips, TripTimes
from inferometer.documents.summary import Summary
from inferometer.measure.less_round_trip import LessRoundTrip
from inferometer.measure.series import RunSeries
from inferometer.report.figures import figure
from inferometer.report.run import disclosure, round_trip
from inferometer.report.run.console import render_console
from inferometer.report.run.html import render_html
from inferometer.report.run.markdown import minimum_report, render_markdown

NEAR = TripTimes(10, 20.1, 20.4, 23.0)
TRIPS = RoundTrips(
    "kernel",
    NEAR,
    TripTimes(170, 20.2, 20.6, 31.5, repeated=2),
    TripTimes(0, None, None, None, failed=1, problem="Connection refused"),
    "GET /v1/models",
    TripTimes(5, 21.0, 21.9, 22.8),
)


def asking(summary: Summary) -> Summary:
    """A run whose plan asks to subtract the round trip."""
    instrument = summary.plan.instrument.model_copy(update={"subtract_rtt": True})
    return replace(
        summary, plan=summary.plan.model_copy(update={"instrument": instrument}), round_trips=TRIPS
    )


def adjusted(summary: Summary, below_zero: int = 0) -> Summary:
    """Such a run with figures: which, is shown by the report, and nothing else."""
    stats = summary.metrics.ttft_ms
    assert stats is not None
    moved = dataclasses.replace(stats, p50=61.234, p99=91.876)
    return replace(asking(summary), ttft_less_round_trip=LessRoundTrip(20.1, moved, below_zero))


def shown(summary: Summary) -> str:
    console = Console(file=StringIO(), width=200, color_system=None)
    render_console(summary, console)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_every_stage_is_told_with_what_failed_in_it(valid: Summary) -> None:
    """A row of the disclosure; what a single way takes is a bound."""
    told = dict(disclosure.method(replace(valid, round_trips=TRIPS)))["Network round trip"]
    assert "before the load 20.10/20.40/23 ms (least/P50/P99 of 10)" in told
    assert "while measuring 20.20/20.60/31.50 ms (least/P50/P99 of 170) (2 sent again)" in told
    assert "behind it none (1 failed: Connection refused)" in told
    assert "GET /v1/models" in told
    assert told.endswith("a single way takes between nothing and all of it")


def test_what_was_not_measured_is_told_as_that(valid: Summary) -> None:
    """A record of an earlier version, and a simulation."""
    assert round_trip.told(replace(valid, round_trips=None)) == "not measured"
    assert "simulated" in round_trip.told(replace(valid, run=replace(valid.run, simulated=True)))


def test_both_figures_stand_in_every_report(valid: Summary, series: RunSeries) -> None:
    """Law of draft 4.7.3: the adjusted figure never stands alone, and is named as adjusted."""
    one = adjusted(valid)
    stats = valid.metrics.ttft_ms
    assert stats is not None
    for text in (render_markdown(one), render_html(one, series), shown(one)):
        assert round_trip.TITLE in text
        assert "as measured" in text
        for value in (stats.p50, stats.p99, 61.234, 91.876):
            assert figure(value) in text
    assert "nothing else is adjusted (draft 4.7.3)" in minimum_report(one)
    assert f"- TTFT P50: {figure(stats.p50)} ms" in minimum_report(one)
    assert "nothing else is adjusted" in dict(disclosure.method(one))["Clocks"]


def test_a_ttft_below_the_round_trip_is_told(valid: Summary) -> None:
    """It is not cut off at zero."""
    assert "3 requests were answered sooner than that" in render_markdown(adjusted(valid, 3))
    assert "answered sooner" not in render_markdown(adjusted(valid))


def test_where_nothing_could_be_subtracted_the_report_says_why(valid: Summary, empty: Summary) -> None:
    """A flag that does nothing does not go unnoticed."""
    assert "Nothing was subtracted: no round trip was measured." in render_markdown(asking(valid))
    assert "Nothing was subtracted: no TTFT was measured." in shown(asking(empty))


def test_without_the_flag_no_report_has_an_adjusted_figure(valid: Summary, series: RunSeries) -> None:
    """Not even an empty table."""
    for text in (render_markdown(valid), render_html(valid, series), shown(valid)):
        assert round_trip.TITLE not in text
    assert "no adjustment was applied" in dict(disclosure.method(valid))["Clocks"]
