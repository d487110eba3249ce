"""Throughput over the steady window and over the whole run, as the reports and the console show it."""

from __future__ import annotations

from inferometer.documents.summary import Summary
from inferometer.report.figures import figure, interval, rates_of
from inferometer.report.run import disclosure

RATE_HEAD = ("Throughput", "Steady window", "95 % interval", "Whole run")


def rate_rows(summary: Summary) -> list[list[str]]:
    """Every rate over the steady window, with its interval, and over the whole run, under RATE_HEAD."""
    rates = summary.throughput
    return [
        [
            f"{rate.title} ({disclosure.unit_of(summary, rate)})",
            figure(value),
            interval(getattr(rates.ci95, name)),
            figure(getattr(rates.whole_run, name)),
        ]
        for name, rate, value in rates_of(summary)
    ]


def whole_run_line(summary: Summary) -> str | None:
    """The rates of the console's table over the whole run instead of the steady window; None where there are none."""
    found = [
        f"{rate.title} {figure(value)} {disclosure.unit_of(summary, rate)}"
        for name, rate, _ in rates_of(summary)
        if rate.row and (value := getattr(summary.throughput.whole_run, name)) is not None
    ]
    return f"Over the whole run, from first send to last end: {', '.join(found)}." if found else None
