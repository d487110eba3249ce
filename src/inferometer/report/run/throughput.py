"""Throughput over the steady window and over the whole run, as the reports and the console show it."""

from __future__ import annotations

from dataclasses import dataclass

from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.report.figures import figure, interval, rates_of
from inferometer.report.run import disclosure

RATE_HEAD = ("Throughput", "Steady window", "95 % interval", "Whole run")
DIVIDED = "output_tok_s"
"""The rate that is also given for each accelerator (draft 5.2.4)."""


@dataclass(frozen=True, slots=True)
class RateRow:
    """A rate under RATE_HEAD: its name and unit, and the cells behind them."""

    title: str
    unit: str
    cells: tuple[str, str, str]


def rate_rows(summary: Summary) -> list[RateRow]:
    """Every rate over the steady window, with its interval, and over the whole run; that of the output tokens by each of the
    accelerators too, where the plan declares how many there are."""
    rates, count = summary.throughput, summary.sut.accelerator_count
    rows = []
    for name, rate, value in rates_of(summary):
        unit = disclosure.unit_of(summary, rate)
        ci, whole = getattr(rates.ci95, name), getattr(rates.whole_run, name)
        rows.append(RateRow(rate.title, unit, _cells(value, ci, whole)))
        if name == DIVIDED and count:
            rows.append(RateRow(f"{rate.title}, per accelerator", unit, _cells(value, ci, whole, count)))
    return rows


def _cells(
    value: float | None, ci: Interval | None, whole: float | None, by: int = 1
) -> tuple[str, str, str]:
    ends = None if ci is None else (ci[0] / by, ci[1] / by)
    return (
        figure(None if value is None else value / by),
        interval(ends),
        figure(None if whole is None else whole / by),
    )


def whole_run_line(summary: Summary) -> str | None:
    """The rates of the console's table over the whole run instead of the steady window; None where there are none."""
    found = [
        f"{rate.title} {figure(value)} {disclosure.unit_of(summary, rate)}"
        for name, rate, _ in rates_of(summary)
        if rate.row and (value := getattr(summary.throughput.whole_run, name)) is not None
    ]
    return f"Over the whole run, from first send to last end: {', '.join(found)}." if found else None
