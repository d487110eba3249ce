"""The result in a terminal: what was measured, the table, the verdict in one strong line with its reasons, the report's path.

On a narrow terminal statistics are dropped in the order of `_RANK`, and what was left out is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from inferometer.documents.summary import Objective, Summary
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import STATISTICS
from inferometer.report import checks
from inferometer.report.figures import (
    MARK,
    THIN,
    figure,
    interval,
    marked,
    rates_of,
    stats_of,
    table_of,
    text,
    with_mark,
)
from inferometer.report.run import agent_sessions, disclosure, round_trip, rows, system_tokens, tasks
from inferometer.report.run.error_bounds import error_line
from inferometer.report.run.throughput import whole_run_line
from inferometer.report.tables import VERDICT_STYLES, Screen

_RANK = ("mean", "p50", "p99", "p95", "p90", "max", "std", "min", "p99_9", "p75")
"""Statistics, the ones a narrow terminal keeps first. Mean is always kept: the rates stand there."""

_WIDE = 76
"""Columns from which the full titles fit."""


def render_console(summary: Summary, console: Console, report: str | None = None) -> None:
    """Print the result. `report` is where report.html lies, or None when none was written."""
    screen = Screen(console)
    screen.say("")
    for word, means in checks.marks(summary):
        _banner(screen, word, means)
    screen.say(disclosure.measured(summary))
    screen.say(disclosure.requests(summary) + ".")
    screen.say("")
    missing = _results(summary, screen)
    rough = _classes(summary, screen)
    _footnotes(summary, missing, screen, rough=rough)
    if (adjusted := round_trip.line(summary)) is not None:
        screen.say(adjusted)
    for objective in summary.slos:
        screen.say(_objective(objective))
    if (about := tasks.line(summary)) is not None:
        screen.say("")
        screen.say(about)
    if (about := system_tokens.line(summary)) is not None:
        screen.say(about)
    if summary.agent_sessions is not None:
        screen.say("")
        screen.say(agent_sessions.line(summary.agent_sessions))
        for line in agent_sessions.brief(summary.agent_sessions):
            screen.say(line)
    elif summary.conversations:
        screen.say("")
        screen.say(rows.conversations_line(summary.conversations))
        if by_turn := rows.ttft_by_turn(summary.conversations):
            screen.say(f"TTFT P50 by turn, ms: {by_turn}")
    if summary.server is not None:
        screen.say("")
        screen.say(rows.server_line(summary.server))
    for line in rows.lost_lines(summary):
        screen.say(f"Server metrics of {line}")
    screen.say("")
    _verdict(summary, screen)
    if report is not None:
        screen.say("")
        screen.path("Report", text(report))


def _results(summary: Summary, screen: Screen) -> list[str]:
    """The table of results; returns the headings of the statistics that have no room."""
    long = screen.width >= _WIDE
    rows = []
    for name in table_of(summary):
        metric, stats = METRICS[name], stats_of(summary, name)
        unit = disclosure.unit_of(summary, metric)
        label = f"{metric.title} ({unit})" if long else f"{metric.short} {_short_unit(unit)}"
        rows.append([label, *(with_mark(stats, key) for key in STATISTICS)])
    for _, rate, value in rates_of(summary):
        if rate.row:  # of the whole run, so it stands under Mean alone
            unit = disclosure.unit_of(summary, rate)
            label = f"{rate.title} ({unit})" if long else f"{rate.short} {_short_rate(unit)}".strip()
            rows.append([label, *(figure(value) if key == "mean" else "" for key in STATISTICS)])
    columns = list(STATISTICS)
    longest = max(len(row[0]) for row in rows)
    # A title may wrap at its unit's bracket.
    enough = min(longest, 36) if _WIDE <= screen.width < 120 else longest
    rank = [0, *(columns.index(key) + 1 for key in _RANK)]
    return screen.table(["", *STATISTICS.values()], rows, words=0, rank=rank, least=enough)


def _short_unit(unit: str) -> str:
    return unit.removeprefix("tokens/s").removeprefix(", ")


def _short_rate(unit: str) -> str:
    return unit.partition(", ")[2]


def _classes(summary: Summary, screen: Screen) -> bool:
    """A line for each class of requests, further figures being in the report. Whether a figure carries MARK."""
    if not summary.by_class:
        return False
    shown = [("TTFT P50", "ttft_ms", "p50"), ("P99", "ttft_ms", "p99"), ("TPOT P50", "tpot_ms", "p50")]
    if screen.width >= _WIDE:
        shown += [("P99", "tpot_ms", "p99"), ("Latency P50", "e2e_ms", "p50"), ("P99", "e2e_ms", "p99")]
    rows = [
        [
            text(one.name),
            figure(one.requests.sent),
            *(with_mark(getattr(one, name), key) for _, name, key in shown),
        ]
        for one in summary.by_class
    ]
    screen.say("")
    screen.table(["Class, ms", "Sent", *(words for words, _, _ in shown)], rows, words=0)
    return any(marked(getattr(one, name), key)[1] for one in summary.by_class for _, name, key in shown)


def _objective(objective: Objective) -> str:
    met = {True: "met", False: "not met", None: "undecided"}[objective.met]
    value = figure(objective.value)
    if objective.ci:
        value += f", 95{THIN}% interval {interval(objective.ci)}"
    return f"Objective {text(objective.expr)}: {met} ({value})"


def _footnotes(summary: Summary, missing: Sequence[str], screen: Screen, *, rough: bool) -> None:
    shown = [key for key, heading in STATISTICS.items() if heading not in missing]
    if rough or any(marked(stats_of(summary, name), key)[1] for name in table_of(summary) for key in shown):
        screen.say(f"{MARK} fewer samples than this percentile needs: a rough figure", "dim")
    if missing:
        screen.say(f"{', '.join(missing)}: in the report", "dim")
    if whole := whole_run_line(summary):
        screen.say(whole, "dim")
    if line := error_line(summary):
        screen.say(line, "dim")


def _banner(screen: Screen, word: str, means: str) -> None:
    """The word alone on its line, in a frame: what follows is not to be taken for something else."""
    frame = "*" * (len(word) + 8)
    for line in (frame, f"*   {word}   *", frame, means):
        screen.say(line, "bold magenta")
    screen.say("")


def _verdict(summary: Summary, screen: Screen) -> None:
    status = summary.verdict.status
    over = "".join(f"{word}, " for word, _ in checks.marks(summary))
    screen.say(f"{over}{status}  {checks.meaning(summary)}", VERDICT_STYLES[status])
    for shown in ("fail", "unsure", "note"):
        for check in summary.verdict.checks:
            if check.status == shown:
                line = f"{checks.title(check)}: {checks.sentence(check)}"
                screen.say(line, first=f"  {checks.STATUS[shown]:6}  ")
                hint = checks.advice(check)
                # A note decides nothing, so its advice can wait for the report.
                if hint and shown != "note":
                    screen.say(hint, "dim", first="      ->  ")
