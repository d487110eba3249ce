"""Conversations of several turns, and users who wait, for the console, Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.report.figures import ABSENT, figure, marked, share

Facts = Mapping[str, Any]

HEAD = ("Turn", "Sent", "Completed", "Prompt tokens", "of them repeated", "From cache")
LATENCIES = tuple((name, key) for name in ("ttft_ms", "e2e_ms") for key in ("p50", "p90", "p99"))
LATENCY_HEAD = tuple(f"{words} {key}" for words in ("TTFT", "Latency") for key in ("P50", "P90", "P99"))


def sentence(told: Facts) -> str:
    """How many there were, and how they ended. `told`: the summary's `conversations`."""
    ends = [f"{figure(told['finished'])} had all their turns"]
    if told["broken"]:
        ends.append(f"{figure(told['broken'])} ended with a turn that failed")
    if told["cut"]:
        ends.append(f"{figure(told['cut'])} {_were(told['cut'])} still going on when the load ended")
    left = f"; so {figure(told['left_out'])} turns were not sent" if told["left_out"] else ""
    many = "conversation" if told["begun"] == 1 else "conversations"
    return f"{figure(told['begun'])} {many}: {', '.join(ends)}{left}."


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def rows(told: Facts) -> list[tuple[list[str], list[tuple[str, bool]]]]:
    """For each turn its counts under HEAD, and its latencies in ms under LATENCY_HEAD, each with whether samples are few."""
    return [(_counts(one), [marked(one[name], key) for name, key in LATENCIES]) for one in told["by_turn"]]


def _counts(one: Facts) -> list[str]:
    tokens = one["input_tokens"]
    cached = one["cached_share"]
    return [
        f"{figure(one['turn'])}{' and later' if one['and_later'] else ''}",
        figure(one["sent"]),
        figure(one["completed"]),
        ABSENT if tokens is None else figure(tokens["mean"]),
        figure(one["repeated_mean"]),
        ABSENT if cached is None else share(cached),
    ]


def ttft_by_turn(told: Facts, most: int = 6) -> str:
    """The median TTFT of the first turns in one line, in ms."""
    turns: Sequence[Facts] = told["by_turn"][:most]
    seen = [f"{one['turn']}: {figure(one['ttft_ms']['p50'])}" for one in turns if one["ttft_ms"] is not None]
    return ", ".join(seen)
