"""The server by its own metrics, in words and rows: beside the client's figures, and which of its gauges can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.metrics.catalogue import METRICS
from inferometer.report.figures import clean, figure, share

Facts = Mapping[str, Any]
Context = dict[str, Any]

TIMES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "queue_ms")
POINTS = ("mean", "p50", "p90", "p99")
HEAD = ("n", "Mean", "P50", "P90", "P99")
PLOTS = {
    "running": ("server-running", "Requests running at the server"),
    "waiting": ("server-waiting", "Requests waiting at the server (queue depth)"),
    "kv_usage": ("server-kv", "KV cache in use, %"),
    "generation_tok_s": ("server-tokens", "Output tokens per second by the server's counter"),
    "prefix_hit_share": ("server-hits", "Prompt tokens found in the prefix cache, %"),
}
"""What is drawn where the server shows it: the element of its chart, and its title."""


def line(summary: Facts) -> str | None:
    """Queue, KV cache and preemptions in a sentence; None where the server told nothing."""
    told = summary["server"]
    if told is None:
        return None
    said = []
    for name, word in (("running", "running"), ("queue", "waiting")):
        if told[name] is not None:
            said.append(
                f"{figure(told[name]['mean'], 3, trim=True)} {word} (at most {figure(told[name]['max'])})"
            )
    if told["kv_usage"] is not None:
        said.append(
            f"KV cache {share(told['kv_usage']['mean'])} in use (at most {share(told['kv_usage']['max'])})"
        )
    if told["preemptions"] is not None:
        said.append(f"{figure(told['preemptions'])} preemption{'' if told['preemptions'] == 1 else 's'}")
    if told["prefix_hit_share"] is not None:
        said.append(f"prefix hits {share(told['prefix_hit_share'])}")
    return f"By the server's own metrics: {', '.join(said) or 'nothing of its load'}."


def section(summary: Facts, drawn: Facts | None) -> Context | None:
    """What the page has of it: charts that there is something for, and the tables; None where the server told nothing."""
    told = summary["server"]
    if told is None:
        return None
    plots = [
        {"id": place, "title": title, "caption": title, "name": name}
        for name, (place, title) in PLOTS.items()
        if drawn and name in drawn
    ]
    return {
        "line": line(summary),
        "plots": plots,
        "head": HEAD,
        "times": times(summary),
        "counts": counts(summary),
        "endpoints": endpoints(summary),
        "seen": told["seen"],
        "engine": clean(told["engine"]),
    }


def times(summary: Facts) -> list[tuple[str, list[str], list[str]]]:
    """(metric, the server's figures, the client's), HEAD's each, in ms, for what the server times; none of a client's that has
    none."""
    found = []
    for name in TIMES:
        told = summary["server"][name]
        if told is not None:
            title = METRICS[name].title if name in METRICS else "Time in the queue"
            found.append((title, _cells(told), _cells(summary["metrics"].get(name))))
    return found


def _cells(stats: Facts | None) -> list[str]:
    return [] if stats is None else [figure(stats["n"]), *(figure(stats[point]) for point in POINTS)]


def counts(summary: Facts) -> list[tuple[str, str, str]]:
    """(what, by the server, by the client) of everything that was sent, warm-up included."""
    whole = summary["server"]["whole"]
    found = []
    for name, title in (("prompt_tokens", "Prompt tokens"), ("generation_tokens", "Output tokens")):
        pair = whole and whole[name]
        if pair is not None:
            ends = (
                [figure(pair["low"])]
                if pair["low"] == pair["high"]
                else [figure(pair[end]) for end in ("low", "high")]
            )
            found.append((title, figure(pair["server"]), " to ".join(ends)))
    if whole is not None and whole["server_n"]:
        found.append(("First tokens", figure(whole["server_n"]), figure(whole["client_n"])))
    return found


def endpoints(summary: Facts) -> list[str]:
    """Each endpoint in a line."""
    return [
        f"{clean(one['url'])}: {clean(one['engine'])}'s names, {figure(one['scrapes'])} scrapes"
        + (f", {figure(one['dropped'])} without metrics" if one["dropped"] else "")
        + (f", counters went back {figure(one['resets'])} times" if one["resets"] else "")
        + ("" if one["longest_gap_s"] is None else f", longest gap {figure(one['longest_gap_s'], 3)} s")
        for one in summary["server"]["endpoints"]
    ]
