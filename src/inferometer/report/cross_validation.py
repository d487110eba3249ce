"""A cross-validation in a terminal or a pipe: a table for each figure, what the client adds, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console

from inferometer.documents.cross_validation import CrossValidation, Difference, Row, Table
from inferometer.metrics.statistics import Interval
from inferometer.report.bench.remarks import reasons, worded
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
    number = "1 request" if document.requests == 1 else f"{document.requests} requests"
    name = " ".join(filter(None, (document.engine, document.engine_version))) or "an unknown engine"
    screen.say("")
    screen.say(
        f"{clean(name)} at {clean(document.url)}, model {clean(document.model or 'unknown')}: {number} "
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
        why = f" ({reasons(document.reasons)})" if document.reasons else ""
        screen.say(
            f"{document.status}{why}.", VERDICT_STYLES[document.status], first="The client's figures are "
        )
    if file is not None:
        screen.path("Result", file)


def _table(table: Table, screen: Screen) -> None:
    head = ("method", TITLES[table.figure], "sd", "n", "delta", "delta, 95 %")
    rows = [
        (METHODS[row.method], figure(row.mean), figure(row.sd, 2), str(row.n), *_delta(table, row))
        for row in table.rows
    ]
    screen.table(head, rows, right=[False, True, True, True, True, True])


def _delta(table: Table, row: Row) -> tuple[str, str]:
    """A row's difference from the reference, and its interval."""
    if row.delta is None:
        return "reference" if len(table.rows) > 1 else ABSENT, ABSENT
    if table.figure == "tok_per_sec":
        return _signed_share(row.delta.share), _span(row.delta.share_ci95, _signed_share)
    return _signed_ms(row.delta.absolute), _span(row.delta.ci95, _signed_ms)


def _span(bounds: Interval | None, word: Callable[[float], str]) -> str:
    return ABSENT if bounds is None else f"{word(bounds[0])} to {word(bounds[1])}"


def _signed_ms(value: float) -> str:
    return _signed(_ms(value), value)


def _signed_share(value: float | None) -> str:
    return ABSENT if value is None else _signed(share(value), value)


def _signed(text: str, value: float) -> str:
    """With a plus sign before what is above 0."""
    return f"+{text}" if value > 0 else text


def _ms(value: float) -> str:
    return f"{figure(value, 3, trim=True)} ms"


def sentences(document: CrossValidation) -> list[str]:
    """What the client adds to the engine's own figures; nothing of what has one side only."""
    found = document.overhead
    lines = []
    if found.ttft_ms is not None:
        lines.append(_of_times(found.ttft_ms, _TTFT))
    if found.tok_per_sec is not None:
        lines.append(_of_speeds(found.tok_per_sec))
    if found.streaming_ms is not None:
        unlike = any(one.code == "lengths_differ" for one in document.remarks)
        lines.append(_of_times(found.streaming_ms, _UNLIKE if unlike else _STREAMING))
    if found.ttft_ms is None and found.tok_per_sec is None:
        lines.append(
            "The engine shows nothing of its own to compare with: the overhead of the client is not known."
        )
    return lines


@dataclass(frozen=True, slots=True)
class _Pair:
    """How to speak of two times. `first`, `second`: the first is expected to be the longer one; `reason`: why; `reverse`: what
    it means where it is the shorter one."""

    first: str
    second: str
    reason: str
    reverse: str


_TTFT = _Pair(
    "the TTFT by the client",
    "the engine's own",
    "HTTP, and what the engine does not count",
    "the engine counts something that the client does not see, so this is no overhead of the client",
)
_OF_LENGTH = "their answers differ in length, which is part of it"
_STREAMING = _Pair(
    "a streamed answer",
    "one in one piece",
    "events, and their handling",
    "sending an answer in one piece costs this engine more than streaming it",
)

_UNLIKE = replace(_STREAMING, reason=_OF_LENGTH, reverse=_OF_LENGTH)


def _of_times(one: Difference, pair: _Pair) -> str:
    size = _ms(abs(one.absolute))
    first = pair.first[0].upper() + pair.first[1:]
    if one.ci95 is None:
        longer = "longer" if one.absolute >= 0 else "shorter"
        return f"{first} was {size} {longer} than {pair.second}, on average; there is no interval, so it may be chance."
    low, high = one.ci95
    if one.side == "open":
        return (
            f"Between {pair.first} and {pair.second} no difference is shown: it is {_signed_ms(one.absolute)}, 95 % interval "
            f"{_signed_ms(low)} to {_signed_ms(high)}."
        )
    if one.side == "above":
        return f"{first} is {size} longer than {pair.second}, 95 % interval {_ms(low)} to {_ms(high)}: {pair.reason}."
    return f"{first} is {size} shorter than {pair.second}, 95 % interval {_ms(-high)} to {_ms(-low)}: {pair.reverse}."


def _of_speeds(one: Difference) -> str:
    """Shares of the engine's own speed, which is above 0 wherever there is one."""
    if one.share_ci95 is None:
        side = "lower" if one.absolute < 0 else "higher"
        return (
            f"The streamed speed by the client was {share(abs(one.share or 0.0))} {side} than the engine's own; there is no "
            "interval, so it may be chance."
        )
    found = f"{_signed_share(one.share)}, 95 % interval {_span(one.share_ci95, _signed_share)}"
    if one.side == "open":
        return f"Between the streamed speed by the client and the engine's own no difference is shown: it is {found}."
    if one.side == "below":
        return f"The streamed speed by the client is lower than the engine's own: {found}."
    return (
        f"The streamed speed by the client is higher than the engine's own: {found}. The engine counts time that the client "
        "does not see, so this is no overhead of the client."
    )
