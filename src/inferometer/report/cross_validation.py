"""A cross-validation in a terminal or a pipe: a table for each figure, what the client adds, and what is left out."""

from __future__ import annotations

from rich.console import Console

from inferometer.documents.cross_validation import CrossValidation, Row, Table
from inferometer.report.bench.remarks import worded
from inferometer.report.figures import ABSENT, clean, figure, share
from inferometer.report.tables import VERDICT_STYLES, Screen

METHODS = {
    "timings": "engine, its own timings",
    "counters": "engine, its counters",
    "streamed": "client, streamed",
    "whole": "client, whole reply",
}
TITLES = {"tok_per_sec": "tokens/s", "ttft_ms": "TTFT, ms", "total_ms": "whole answer, ms"}


def render(document: CrossValidation, console: Console, file: str | None = None) -> None:
    """Print it. `file`: where the document lies."""
    screen = Screen(console, most=100)
    name = " ".join(filter(None, (document.engine, document.engine_version))) or "an unknown engine"
    screen.say("")
    screen.say(
        f"{clean(name)} at {clean(document.url)}, model {clean(document.model or 'unknown')}: {document.requests} requests "
        f"with the prompt {document.prompt}, one at a time."
    )
    for table in document.tables:
        if table.rows:
            screen.say("")
            _table(table, screen)
    if any(row.method == "whole" for table in document.tables for row in table.rows):
        screen.say(
            "The speed of a whole reply is over its whole time, the prompt's included: no first token shows.",
            "dim",
        )
    screen.say("")
    for sentence in sentences(document):
        screen.say(sentence)
    for remark in document.remarks:
        screen.say(worded(remark) + ".", first="NOTE  ")
    if document.status is not None:
        screen.say(document.status, VERDICT_STYLES[document.status], first="The streamed run is ")
    if file is not None:
        screen.path("Result", file)


def _table(table: Table, screen: Screen) -> None:
    head = ("method", TITLES[table.figure], "sd", "n", "delta")
    rows = [(METHODS[row.method], figure(row.mean), figure(row.sd, 2), str(row.n), _delta(table, row))
            for row in table.rows]  # fmt: skip
    screen.table(head, rows, right=[False, True, True, True, True])


def _delta(table: Table, row: Row) -> str:
    if row.delta is None:
        return "reference" if len(table.rows) > 1 else ABSENT
    if table.figure == "tok_per_sec":
        return signed(share(row.delta.share), row.delta.absolute)
    return signed(f"{figure(row.delta.absolute, 3)} ms", row.delta.absolute)


def signed(text: str, value: float) -> str:
    """With a plus sign before what is not negative."""
    return text if value < 0 or text == ABSENT else f"+{text}"


def sentences(document: CrossValidation) -> list[str]:
    """What the client adds to the engine's own figures; nothing of what has one side only."""
    found = document.overhead
    lines = []
    if found.ttft_ms is not None:
        lines.append(
            f"Between the engine's own TTFT and the client's lie {figure(found.ttft_ms, 3)} ms: HTTP, and what the engine "
            "does not count."
        )
    if found.speed is not None:
        lines.append(
            f"Streamed, the speed by the client differs by {signed(share(found.speed), found.speed)} from the engine's own."
        )
    if found.streaming_ms is not None:
        lines.append(
            f"An answer takes {signed(figure(found.streaming_ms, 3), found.streaming_ms)} ms streamed, on average, compared "
            "with answers in one piece."
        )
    if found.ttft_ms is None and found.speed is None:
        lines.append(
            "The engine shows nothing of its own to compare with: the overhead of the client is not known."
        )
    return lines
