"""The result in a terminal: what was measured, the table, the verdict in one strong line with its reasons, the report's path.

The width decides what is shown, never whether a line breaks in the middle of a number: statistics are dropped in the order
of `_RANK` until the rest fits, and what was left out is named. Nothing but our own text is ever read as markup, and an
encoding that is not Unicode gets ASCII only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferometer.metrics.catalogue import METRICS, RATES, TABLE
from inferometer.metrics.statistics import STATISTICS
from inferometer.report import wording
from inferometer.report.figures import MARK, THIN, ascii_only, figure, interval, marked
from inferometer.report.run import conversations, disclosure, server

_RANK = ("p50", "p99", "mean", "p95", "p90", "max", "std", "min", "p99_9", "p75")
"""Statistics, the ones a narrow terminal keeps first."""

RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
"""One line under the heading and nothing else: the same in Unicode, ASCII, and a pipe. A blank column parts the cells."""

_WIDE = 76
"""Columns from which the full titles fit."""


class Say(Protocol):
    """Prints one wrapped paragraph."""

    def __call__(self, text: str, style: str = "", first: str = "") -> None:
        """`first` opens the first line; the others are indented by its width."""


STYLE = {"VALID": "bold green", "INVALID": "bold red", "INCONCLUSIVE": "bold yellow"}
"""Of a verdict."""


def is_ascii(console: Console) -> bool:
    """Whether what is printed must be ASCII only."""
    return not console.encoding.lower().startswith("utf")


def _rows(summary: Mapping[str, Any], long: bool) -> list[tuple[str, dict[str, str]]]:
    """(label, {statistic: text}) for each row of the table; a rate of the whole run stands under Mean alone."""
    rows = []
    for name in TABLE:
        metric, stats = METRICS[name], summary["metrics"][name]
        texts = {}
        for key in STATISTICS:
            value, few = marked(stats, key)
            texts[key] = value + (MARK if few else "")
        rows.append(
            (
                f"{metric.title} ({metric.unit})" if long else f"{metric.short} {_short_unit(metric.unit)}",
                texts,
            )
        )
    for name, rate in RATES.items():
        if not rate.row or (rate.optional and summary["throughput"][name] is None):
            continue
        rows.append(
            (
                f"{rate.title} ({rate.unit})" if long else rate.short,
                {"mean": figure(summary["throughput"][name])},
            )
        )
    return rows


def _short_unit(unit: str) -> str:
    return {"tokens/s": "", "tokens": "tokens"}.get(unit, unit)


def _fitting(rows: Sequence[tuple[str, dict[str, str]]], width: int, label: int) -> list[str]:
    """The statistics that fit beside a label column, in table order. Mean always does: the rates stand there."""
    free = width - label
    kept: list[str] = []
    for key in ("mean", *(key for key in _RANK if key != "mean")):
        free -= 2 + max(len(STATISTICS[key]), *(len(texts.get(key, "")) for _, texts in rows))
        if free < 0 and kept:
            break
        kept.append(key)
    return [key for key in STATISTICS if key in kept]


def _table(summary: Mapping[str, Any], width: int, ascii_: bool) -> tuple[Table, list[str]]:
    long = width >= _WIDE
    rows = _rows(summary, long)
    longest = max(len(label) for label, _ in rows)
    # A title may wrap at the unit's bracket, a number never.
    label = longest if width >= 120 or not long else 36
    keys = _fitting(rows, width, label)
    # No cell wraps: rich would break a number before it would drop a column.
    table = Table(box=RULE, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("", max_width=label, overflow="fold")
    for key in keys:
        table.add_column(STATISTICS[key], justify="right", no_wrap=True)
    for title, texts in rows:
        table.add_row(*(plain(text, ascii_) for text in (title, *(texts.get(key, "") for key in keys))))
    return table, [STATISTICS[key] for key in STATISTICS if key not in keys]


def plain(text: str, ascii_: bool, style: str = "") -> Text:
    """Text as the console can show it."""
    # Figures go without thin spaces here: they would let a number break at a line's end and would defeat grep.
    text = text.replace(THIN, "")
    return Text(ascii_only(text) if ascii_ else text, style=style)


def render_console(summary: Mapping[str, Any], console: Console, report: str | None = None) -> None:
    """Print the result. `report` is where report.html lies, or None when none was written."""
    ascii_ = is_ascii(console)

    def say(text: str, style: str = "", first: str = "") -> None:
        """Print wrapped text; `first` opens the first line, the others are indented by its width."""
        for line in plain(text, ascii_, style).wrap(console, max(console.width - len(first), 10)):
            line.rstrip()
            console.print(Text.assemble(first, line), soft_wrap=True)
            first = " " * len(first)

    say("")
    for word, means in wording.marks(summary):
        _mark(say, word, means)
    say(disclosure.measured(summary))
    say(disclosure.requests(summary) + ".")
    say("")
    table, missing = _table(summary, console.width, ascii_)
    console.print(table)
    rough = _classes(summary, console, ascii_)
    _footnotes(summary, missing, say, rough=rough)
    for slo in summary["slos"]:
        met = {True: "met", False: "not met", None: "undecided"}[slo["met"]]
        found = (
            f"{figure(slo['value'])}, 95{THIN}% interval {interval(slo['ci'])}"
            if slo["ci"]
            else figure(slo["value"])
        )
        say(f"Objective {disclosure.text(slo['expr'])}: {met} ({found})")
    if told := summary["conversations"]:
        say("")
        say(conversations.sentence(told))
        if by_turn := conversations.ttft_by_turn(told):
            say(f"TTFT P50 by turn, ms: {by_turn}")
    if (told_of := server.line(summary)) is not None:
        say("")
        say(told_of)
    say("")
    _verdict(summary, say)
    if report is not None:
        say("")
        # A path must survive copying: it is never wrapped.
        console.print(plain(f"Report: {disclosure.text(report)}", ascii_), soft_wrap=True)


def _classes(summary: Mapping[str, Any], console: Console, ascii_: bool) -> bool:
    """A line for each class of requests, further figures being in the report. Whether a figure carries MARK."""
    if not summary["by_class"]:
        return False
    shown = [("TTFT P50", "ttft_ms", "p50"), ("P99", "ttft_ms", "p99"), ("TPOT P50", "tpot_ms", "p50")]
    if console.width >= _WIDE:
        shown += [("P99", "tpot_ms", "p99"), ("Latency P50", "e2e_ms", "p50"), ("P99", "e2e_ms", "p99")]
    table = Table(box=RULE, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("Class, ms", max_width=20, overflow="fold")
    for heading in ("Sent", *(words for words, _, _ in shown)):
        table.add_column(heading, justify="right", no_wrap=True)
    rough = False
    for one in summary["by_class"]:
        found = [marked(one[name], key) for _, name, key in shown]
        rough = rough or any(few for _, few in found)
        cells = [value + (MARK if few else "") for value, few in found]
        row = (disclosure.text(one["name"]), figure(one["requests"]["sent"]), *cells)
        table.add_row(*(plain(text, ascii_) for text in row))
    console.print()
    console.print(table)
    return rough


def _footnotes(summary: Mapping[str, Any], missing: Sequence[str], say: Say, *, rough: bool) -> None:
    shown = [summary["metrics"][name] for name in TABLE]
    left_out = {heading: key for key, heading in STATISTICS.items() if heading in missing}
    if rough or any(
        marked(stats, key)[1] for stats in shown for key in STATISTICS if key not in left_out.values()
    ):
        say(f"{MARK} fewer samples than this percentile needs: a rough figure", "dim")
    if missing:
        say(f"{', '.join(missing)}: in the report", "dim")


def _mark(say: Say, word: str, means: str) -> None:
    """The word alone on its line, in a frame: nobody is to take what follows for something else."""
    frame = "*" * (len(word) + 8)
    for line in (frame, f"*   {word}   *", frame, means):
        say(line, "bold magenta")
    say("")


def _verdict(summary: Mapping[str, Any], say: Say) -> None:
    verdict = summary["verdict"]
    status = verdict["status"]
    said = "".join(f"{word}, " for word, _ in wording.marks(summary)) + status
    say(f"{said}  {wording.meaning(summary)}", STYLE[status])
    for status_ in ("fail", "unsure", "note"):
        for check in verdict["checks"]:
            if check["status"] == status_:
                say(
                    f"{wording.title(check)}: {wording.sentence(check)}",
                    first=f"  {wording.STATUS[status_]:6}  ",
                )
                hint = wording.advice(check)
                # A note decides nothing, so its advice can wait for the report.
                if hint and status_ != "note":
                    say(hint, "dim", first="      ->  ")
