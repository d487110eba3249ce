"""The history in a terminal or a pipe: a list, one entry, a check, and a plot of characters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from inferometer.documents.history import (
    CheckedFigure,
    CheckedResult,
    CheckMethod,
    CheckOutcome,
    HistoryCheck,
    HistoryEntry,
    NumberedEntry,
    Trend,
    TrendPoint,
)
from inferometer.report.figures import ABSENT, clean, figure, interval, moment
from inferometer.report.history import words
from inferometer.report.tables import VERDICT_STYLES, Screen

_STYLES: dict[CheckOutcome, str] = {"regression": "bold red", "no_regression": "bold green"}
_SHOWN = 2
"""Figures of an entry in a list."""
HEIGHT = 12
"""Lines of a plot."""
BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
BARS_ASCII = "_.-=+*%#"


def render_list(entries: Sequence[NumberedEntry], hidden: int, console: Console) -> None:
    """Print entries, the newest last. `hidden`: older ones that the list leaves out."""
    screen = Screen(console)
    if not entries:
        screen.say("No results.")
        return
    head = ("N", "Started (UTC)", "Kind", "Name", "Verdict", "Figures", "Model", "Engine")
    rows = [_row(one) for one in entries]
    left = screen.table(
        head, rows, right=[True, *[False] * 7], words=5, rank=(0, 2, 3, 4, 1, 5, 6, 7), least=24
    )
    if left:
        screen.say(f"Not shown for lack of room: {', '.join(left)}.", "dim")
    if hidden:
        screen.say(f"{hidden} older: --last {len(entries) + hidden} shows all.", "dim")


def _row(one: NumberedEntry) -> tuple[str, ...]:
    entry = one.entry
    shown = [each for each in entry.figures if each.deciding][:_SHOWN]
    figures = ", ".join(
        f"{clean(each.name)} {figure(each.value)} {clean(each.unit)}".strip() for each in shown
    )
    started = moment(entry.started).removesuffix(" UTC")
    said = entry.conditions.get
    return (
        str(one.number),
        started[:16],
        entry.kind,
        words.name_of(one),
        words.verdict_of(entry),
        figures or ABSENT,
        clean(said("sut.model", ABSENT)),
        clean(said("sut.engine", ABSENT)),
    )


def render_entry(one: NumberedEntry, console: Console) -> None:
    """Print one entry, whole."""
    screen, entry = Screen(console), one.entry
    screen.say(f"Entry {one.number}: {entry.kind} {words.name_of(one)}", "bold")
    for name, value in _facts(entry):
        screen.say(value, first=f"{name:12} ")
    screen.say("")
    rows = [
        (
            clean(each.name),
            figure(each.value),
            interval(each.ci95),
            clean(each.unit),
            each.better or ABSENT,
            "yes" if each.deciding else "",
        )
        for each in entry.figures
    ]
    if rows:
        head = ("Figure", "Value", "95 % interval", "Unit", "Better", "Decides")
        screen.table(head, rows, right=[False, True, True, False, False, False], rank=(0, 1, 2, 3, 5, 4))
    for title, values in (("What makes it comparable", entry.conditions), ("Versions", entry.versions)):
        if values:
            screen.say("")
            screen.say(f"{title}:")
            for key, value in values.items():
                screen.say(clean(value), first=f"  {clean(key)}  ")


def _facts(entry: HistoryEntry) -> list[tuple[str, str]]:
    reasons = f" ({', '.join(map(clean, entry.reasons))})" if entry.reasons else ""
    return [
        ("Started", moment(entry.started)),
        ("Verdict", f"{words.verdict_of(entry)}{reasons}"),
        ("Id", clean(entry.id)),
        ("Folder", ABSENT if entry.folder is None else clean(entry.folder)),
        ("Seed", ABSENT if entry.seed is None else str(entry.seed)),
        ("Fingerprint", clean(entry.fingerprint or ABSENT)),
    ]


def render_check(document: HistoryCheck, console: Console) -> None:
    """Print a check."""
    screen = Screen(console, most=100)
    for one in document.results:
        _checked(one, document.method, screen)
        screen.say("")
    screen.say(words.method(document), "dim")
    screen.say("")
    style = _STYLES.get(document.outcome, VERDICT_STYLES["INCONCLUSIVE"])
    screen.say(f"{words.OUTCOMES[document.outcome]}  {words.conclusion(document)}", style)


def _checked(one: CheckedResult, method: CheckMethod, screen: Screen) -> None:
    screen.say(words.heading(one), "bold")
    screen.say(words.against(one))
    for line in words.remarks(one, method):
        screen.say(line, "dim", first="  ")
    claimed = [each for each in one.figures if each.usual is not None]
    for deciding, title in ((True, "Deciding"), (False, "Other")):
        figures = [each for each in claimed if each.deciding is deciding]
        if figures:
            screen.say("")
            _figures(figures, title, screen)
    by_name = {each.name: each for each in one.figures}
    for each in claimed:
        if each.verdict in ("worse", "better") and each.deciding:
            screen.say(words.recent(each), first="  ")
    for change in one.changes:
        screen.say(words.level_change(change, by_name), first="  ")


def _figures(figures: Sequence[CheckedFigure], title: str, screen: Screen) -> None:
    head = (title, "Newest", "Usual", "Expected", "Unit", "Change", "p (Holm)", "Could see", "Verdict")
    rows = [
        (
            clean(one.name),
            figure(one.newest),
            figure(one.usual),
            words.span(one.expected),
            clean(one.unit),
            words.change(one.change, one.scale, one.unit),
            words.least_p(one),
            words.width(one.detectable, one.scale, one.unit),
            words.VERDICTS[one.verdict],
        )
        for one in figures
    ]
    screen.table(
        head, rows, right=[False, *[True] * 3, False, *[True] * 3, False], rank=(0, 8, 5, 1, 2, 3, 7, 4, 6)
    )


def render_trend(trend: Trend, console: Console) -> None:
    """Print a figure over time: a plot, a line of bars, and what is left out."""
    screen = Screen(console)
    unicode = console.encoding.lower().startswith("utf")
    about = ", ".join(filter(None, (clean(trend.model or ""), clean(trend.engine or ""))))
    part = f"{clean(trend.part)}: " if trend.part else ""
    unit = f" ({clean(trend.unit)})" if trend.unit else ""
    screen.say(f"{part}{clean(trend.title)}{unit}{', ' + about if about else ''}", "bold")
    shown = trend.points[-max(10, screen.width - 14) :]
    for line in plot(shown, trend.changes, HEIGHT, unicode=unicode):
        console.print(screen.text(line), soft_wrap=True)
    screen.say("")
    console.print(screen.text(sparkline([one.value for one in shown], unicode=unicode)), soft_wrap=True)
    first, last = shown[0], shown[-1]
    screen.say(
        f"{len(shown)} results, entries {first.number} to {last.number}, "
        f"{moment(first.started)} to {moment(last.started)}; newest {figure(last.value)}."
    )
    if any(not one.valid for one in shown):
        screen.say("x: not VALID, or cut short.")
    if trend.changes:
        screen.say(f"^: the level changed, at entries {', '.join(map(str, trend.changes))}.")
    if len(trend.points) > len(shown):
        screen.say(f"{len(trend.points) - len(shown)} older results do not fit: --html shows them.", "dim")
    if trend.incomparable:
        screen.say(f"{trend.incomparable} results under other conditions are left out.", "dim")
    if trend.elsewhere:
        screen.say(f"{trend.elsewhere} results at other absolute loads are left out.", "dim")


def plot(
    points: Sequence[TrendPoint], changes: Sequence[int], height: int, *, unicode: bool = True
) -> list[str]:
    """The lines of a plot: a column for each result, the axis at the left, and a line with the changes of level below."""
    values = [one.value for one in points]
    low, high = min(values), max(values)
    if low == high:
        low, high = (low - abs(low) * 0.05, high + abs(high) * 0.05) if low else (-1.0, 1.0)
    rows = [round((one.value - low) / (high - low) * (height - 1)) for one in points]
    labels = {0: figure(low, 3), height - 1: figure(high, 3), (height - 1) // 2: figure((low + high) / 2, 3)}
    widest = max(map(len, labels.values()))
    bar, dot = ("\u2502", "\u2022") if unicode else ("|", "o")
    lines = []
    for row in range(height - 1, -1, -1):
        cells = "".join(
            (dot if one.valid else "x") if at == row else " " for one, at in zip(points, rows, strict=True)
        )
        lines.append(f"{labels.get(row, ''):>{widest}} {bar}{cells}".rstrip())
    marks = "".join("^" if one.number in changes else " " for one in points)
    return [*lines, f"{'':{widest}}  {marks}".rstrip()] if changes else lines


def sparkline(values: Sequence[float], *, unicode: bool = True) -> str:
    """The values as bars of eight heights, a character each."""
    bars = BARS if unicode else BARS_ASCII
    low, high = min(values), max(values)
    if low == high:
        return bars[3] * len(values)
    return "".join(bars[round((one - low) / (high - low) * (len(bars) - 1))] for one in values)
