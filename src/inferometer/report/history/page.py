"""A figure over time as one HTML page that needs no network, with its data in it."""

from __future__ import annotations

from inferometer import __version__
from inferometer.documents.history import Trend
from inferometer.documents.part import to_data
from inferometer.documents.results import Axis, Mark, Series
from inferometer.report.charts import Chart, Spans
from inferometer.report.figures import clean, figure, interval, moment
from inferometer.report.html_page import picture, render_page, table

_DAY_S = 86_400


def render(trend: Trend) -> str:
    """The page.

    Raises:
        ValueError: a value is NaN or infinite.
    """
    title = f"{clean(trend.part)}: {clean(trend.title)}" if trend.part else clean(trend.title)
    about = [one for one in (trend.model, trend.engine) if one]
    lede = f"{len(trend.points)} comparable results{': ' + ', '.join(map(clean, about)) if about else ''}."
    changes = [
        f"The level changed at entry {number} (E-divisive, by permutations)." for number in trend.changes
    ]
    left = {"under other conditions": trend.incomparable, "at other absolute loads": trend.elsewhere}
    notes = [*changes, *(f"{count} results {where} are left out." for where, count in left.items() if count)]
    context = {
        "title": title,
        "version": clean(__version__),
        "lede": lede,
        "by_entry": picture(_chart(trend, by_time=False)),
        "by_time": picture(_chart(trend, by_time=True)),
        "notes": notes,
        "table": _table(trend),
    }
    return render_page("history.html.j2", to_data(trend), context)


def _chart(trend: Trend, *, by_time: bool) -> Chart:
    """Values with their intervals, by the results' order or by the days since the first. VALID results are one series."""
    first = trend.points[0].at
    series, spans = [], []
    for valid, label in ((True, "VALID"), (False, "not VALID, or cut short")):
        points = [(place, one) for place, one in enumerate(trend.points, start=1) if one.valid is valid]
        if points:
            x = tuple(
                round((one.at - first) / _DAY_S, 4) if by_time else float(place) for place, one in points
            )
            series.append(Series(label, x, tuple(one.value for _, one in points)))
            found: Spans = tuple(one.ci95 for _, one in points)
            spans.append(found)
    places = {one.number: place for place, one in enumerate(trend.points, start=1)}
    marks = tuple(
        Mark(f"change at {number}", x=float(places[number]))
        for number in trend.changes
        if number in places and not by_time
    )
    axis = Axis("days since the first result") if by_time else Axis("results, oldest first")
    title = "By time" if by_time else "In order"
    return Chart(
        title, "points", axis, Axis(trend.title, trend.unit), tuple(series), marks, spans=tuple(spans)
    )


def _table(trend: Trend) -> object:
    rows = [
        (
            str(one.number),
            moment(one.started),
            figure(one.value),
            interval(one.ci95),
            "" if one.valid else "not VALID, or cut short",
        )
        for one in reversed(trend.points)
    ]
    head = ("Entry", "Started", clean(trend.unit) or "Value", "95\u00a0% interval", "")
    return table("Results, the newest first", head, rows, [True, False, True, True, False])
