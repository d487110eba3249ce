"""Sections that only some runs have, as sentences and rows for the console, Markdown and HTML alike.

They are on the server's own metrics and on conversations.
"""

from __future__ import annotations

from inferometer.documents.summary import Server, Summary
from inferometer.measure.breakdown import Conversations, OfTurn
from inferometer.measure.server import Timed
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import Stats
from inferometer.report.figures import ABSENT, clean, figure, marked, share, statistic

TURN_HEAD = ("Turn", "Sent", "Completed", "Prompt tokens", "of them repeated", "From cache")
_TURN_LATENCIES = tuple((name, key) for name in ("ttft_ms", "e2e_ms") for key in ("p50", "p90", "p99"))
TURN_LATENCY_HEAD = tuple(f"{words} {key}" for words in ("TTFT", "Latency") for key in ("P50", "P90", "P99"))

_SERVER_TIMES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms")
_SERVER_POINTS = ("mean", "p50", "p90", "p99")
SERVER_HEAD = ("n", "Mean", "P50", "P90", "P99")


def conversations_line(conversations: Conversations) -> str:
    """How many conversations there were, and how they ended."""
    ends = [f"{figure(conversations.finished)} had all their turns"]
    if conversations.broken:
        ends.append(f"{figure(conversations.broken)} ended with a turn that failed")
    if conversations.cut:
        were = "was" if conversations.cut == 1 else "were"
        ends.append(f"{figure(conversations.cut)} {were} still going on when the load ended")
    left = f"; so {figure(conversations.left_out)} turns were not sent" if conversations.left_out else ""
    many = "conversation" if conversations.begun == 1 else "conversations"
    return f"{figure(conversations.begun)} {many}: {', '.join(ends)}{left}."


def turn_rows(conversations: Conversations) -> list[tuple[list[str], list[tuple[str, bool]]]]:
    """For each turn its counts under TURN_HEAD, and its latencies in ms under TURN_LATENCY_HEAD, each with whether samples are
    few."""
    return [
        (_turn_counts(turn), [marked(getattr(turn, name), key) for name, key in _TURN_LATENCIES])
        for turn in conversations.by_turn
    ]


def _turn_counts(turn: OfTurn) -> list[str]:
    return [
        f"{figure(turn.turn)}{' and later' if turn.and_later else ''}",
        figure(turn.sent),
        figure(turn.completed),
        ABSENT if turn.input_tokens is None else figure(turn.input_tokens.mean),
        figure(turn.repeated_mean),
        share(turn.cached_share),
    ]


def ttft_by_turn(conversations: Conversations, most: int = 6) -> str:
    """The median TTFT of the first turns in one line, in ms."""
    return ", ".join(
        f"{turn.turn}: {figure(turn.ttft_ms.p50)}"
        for turn in conversations.by_turn[:most]
        if turn.ttft_ms is not None
    )


def server_line(server: Server) -> str:
    """Queue, KV cache and preemptions in a sentence."""
    parts = [
        f"{figure(level.mean, 3, trim=True)} {word} (at most {figure(level.max)})"
        for level, word in ((server.running, "running"), (server.queue, "waiting"))
        if level is not None
    ]
    if server.kv_usage is not None:
        parts.append(f"KV cache {share(server.kv_usage.mean)} in use (at most {share(server.kv_usage.max)})")
    if server.preemptions is not None:
        parts.append(f"{figure(server.preemptions)} preemption{'' if server.preemptions == 1 else 's'}")
    if server.prefix_hit_share is not None:
        parts.append(f"prefix hits {share(server.prefix_hit_share)}")
    return f"By the server's own metrics: {', '.join(parts) or 'nothing of its load'}."


def server_times(summary: Summary) -> list[tuple[str, list[str], list[str]]]:
    """(metric, the server's figures, the client's), under SERVER_HEAD and in ms, for what the server times. The client's are
    empty where it has none."""
    found = []
    for name in _SERVER_TIMES:
        timed = getattr(summary.server, name)
        if timed is not None:
            title = METRICS[name].title if name in METRICS else "Time in the queue"
            found.append((title, _cells(timed), _cells(getattr(summary.metrics, name, None))))
    return found


def _cells(stats: Timed | Stats | None) -> list[str]:
    return (
        []
        if stats is None
        else [figure(stats.n), *(figure(statistic(stats, point)) for point in _SERVER_POINTS)]
    )


def server_counts(server: Server) -> list[tuple[str, str, str]]:
    """(what, by the server, by the client) of everything that was sent, warm-up included."""
    whole = server.whole
    if whole is None:
        return []
    found = []
    for pair, title in ((whole.prompt_tokens, "Prompt tokens"), (whole.generation_tokens, "Output tokens")):
        if pair is not None:
            ends = [pair.low] if pair.low == pair.high else [pair.low, pair.high]
            found.append((title, figure(pair.server), " to ".join(map(figure, ends))))
    if whole.server_n:
        found.append(("First tokens", figure(whole.server_n), figure(whole.client_n)))
    return found


def endpoint_lines(server: Server) -> list[str]:
    """Each endpoint in a line."""
    return [
        f"{clean(one.url)}: {clean(one.engine)}'s names, {figure(one.scrapes)} scrapes"
        + (f", {figure(one.dropped)} without metrics" if one.dropped else "")
        + (f", counters went back {figure(one.resets)} times" if one.resets else "")
        + ("" if one.longest_gap_s is None else f", longest gap {figure(one.longest_gap_s, 3)} s")
        for one in server.endpoints
    ]
