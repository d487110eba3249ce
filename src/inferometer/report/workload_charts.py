"""The section on the workload in words and rows, for pages with its pictures: lengths, and prefixes that requests share.

| picture            | of                                                               |
| ------------------ | ---------------------------------------------------------------- |
| lengths            | what was asked, sent and counted, in the same bins               |
| requests a prefix  | a bar for each prefix, where there are at most MOST_BARS         |
| sharing            | a curve over the prefixes, the most used first, where there are more |
| prefix hits        | the best rate possible, and beside it what the server reports    |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import ABSENT, figure, share

Facts = Mapping[str, Any]
Context = dict[str, Any]

MOST_BARS = 12
_POINTS = ("mean", "p50", "p95", "p99", "max")
POINT_NAMES = ("Mean", "P50", "P95", "P99", "Max")
SETS = {
    "asked": "what the workload says each request should have",
    "sent": "tokens of the prompt as it was written, by the client's tokenizer",
    "counted": "by the server, its chat template included; of answers that it did not count, by the client",
}


def section(
    lengths: Facts,
    drawn: Facts | None,
    counted: Mapping[str, Facts | None] | None,
    best: Facts | None,
    cached: float | None,
) -> Context:
    """What the template of the section needs, its chart data under `data`.

    `lengths`: histograms by `input_tokens` and `output_tokens`, each None where there is nothing to draw. `drawn`: the account
    of the requests, None where none was taken. `counted`: statistics of the counted lengths by the same names, None for a
    workload that was not run. `best`: the best possible prefix-hit rates, None where nobody knows them. `cached`: the share
    of prompt tokens that the server says it took from a cache.
    """
    shared = drawn["shared"] if drawn else None
    curve = _curve(shared)
    ran = counted is not None
    return {
        "plots": [_plot(name, lengths[name]) for name in ("input_tokens", "output_tokens")],
        "sets": [(name, means) for name, means in SETS.items() if ran or name != "counted"],
        "points": POINT_NAMES,
        "lengths": length_rows(drawn, counted),
        "bars": _bars(drawn),
        "curve": _curve_words(shared) if curve else None,
        "sharing": _sharing(shared),
        "hits": _hits(best, cached, ran=ran),
        "hits_words": _hits_words(best),
        "data": {"lengths": lengths, "curve": curve},
    }


def of_run(summary: Facts, lengths: Facts | None) -> Context:
    """The section of a run, from its summary and its histograms, if there are any."""
    nothing = {"input_tokens": None, "output_tokens": None}
    counted = {
        f"{side}_tokens": summary["tokens"][of]["counted"]
        for side, of in (("input", "prompt"), ("output", "output"))
    }
    about, cached = summary["workload"], summary["throughput"]["cached_input_share"]
    drawn = about["drawn"]
    if drawn is not None and about["prompts"] is not None:
        drawn = {**drawn, "shared": None}  # what the prompts of a file have in common only their owner knows
    return section(lengths or nothing, drawn, counted, about["prefix_hits"], cached)


def length_rows(
    drawn: Facts | None, counted: Mapping[str, Facts | None] | None
) -> list[tuple[str, list[str]]]:
    """Mean, percentiles and maximum of what was asked, sent and counted: a label and POINT_NAMES' figures each."""
    found: list[tuple[str, Facts | None]] = []
    for side, name in (("Input", "input_tokens"), ("Output", "output_tokens")):
        if drawn is not None:
            found.append((f"{side} tokens asked", drawn[name]))
            found += [("Input tokens sent", drawn["sent_tokens"])] if side == "Input" else []
        if counted is not None:
            found.append((f"{side} tokens counted", counted[name]))
    return [(label, _cells(stats)) for label, stats in found]


def _cells(stats: Facts | None) -> list[str]:
    return [ABSENT if stats is None else figure(stats[point]) for point in _POINTS]


def _plot(name: str, histogram: Facts | None) -> Context:
    title = f"Requests by {'input' if name == 'input_tokens' else 'output'} tokens"
    if histogram is None:
        return {"id": name.replace("_", "-"), "title": title, "caption": "No lengths."}
    edges, counts = histogram["edges"], histogram["counts"]
    sets = ", ".join(f"{set_} of {figure(sum(count))} requests" for set_, count in counts.items())
    scale = ", on a logarithmic scale" if histogram["log"] else ""
    caption = f"How many requests are how long, from {figure(edges[0])} to {figure(edges[-1] - 1)} tokens{scale}: {sets}."
    return {"id": name.replace("_", "-"), "title": title, "caption": caption}


def _bars(drawn: Facts | None) -> list[Context]:
    """A bar for each prefix, the most used first, and one for the requests without; none where a curve says it better."""
    shared = drawn["shared"] if drawn else None
    groups = sorted((count for count in (shared or {}).get("groups") or [] if count), reverse=True)
    if drawn is None or not groups or len(groups) > MOST_BARS:
        return []
    named = [(f"Prefix {place}", count, "ours") for place, count in enumerate(groups, 1)]
    named.append(("None", drawn["requests"] - sum(groups), "none"))
    return [
        {"label": label, "share": part, "value": f"{figure(count)}, {share(part)}", "whose": whose}
        for label, count, whose in named
        for part in [count / drawn["requests"]]
    ]


def _curve(shared: Facts | None) -> list[list[float]] | None:
    """[% of the prefixes, the most used first; % of the sharing requests that carry one of them], where there are too many for
    bars."""
    points = shared["curve"] if shared else []
    if not points or points[-1][0] <= MOST_BARS:
        return None
    prefixes, requests = points[-1]
    return [[100 * k / prefixes for k, _ in points], [100 * carried / requests for _, carried in points]]


def _curve_words(shared: Facts | None) -> str:
    assert shared is not None
    points, (prefixes, requests) = shared["curve"], shared["curve"][-1]
    tenth = max(1, round(prefixes / 10))
    k, carried = min(points[1:], key=lambda point: abs(point[0] - tenth))
    return (
        f"The {figure(k)} most used of {figure(prefixes)} prefixes are in {share(carried / requests)} of the requests "
        f"that share one; if all were used alike, it would be {share(k / prefixes)}."
    )


def _sharing(shared: Facts | None) -> str:
    if shared is None:
        return "Which requests share a prefix is not known of this workload."
    if not shared["requests"]:
        return "No request begins with a prefix that others were given too."
    prefixes = shared["curve"][-1][0]
    which = "the same prefix" if prefixes == 1 else f"one of {figure(prefixes)} prefixes"
    return (
        f"{figure(shared['requests'])} requests, {share(shared['fraction'])} of all, begin with {which}, "
        f"{figure(shared['tokens']['mean'])} tokens long on average."
    )


def _hits(best: Facts | None, cached: float | None, *, ran: bool) -> list[Context]:
    """Bars of the best possible prefix-hit rates and of what the server reports; a rate that nobody knows has no bar."""
    best = best or {"exact": None, "blocks": None, "block_tokens": 16}
    rates = [
        ("Best possible, token by token", best["exact"], "not known"),
        (f"Best possible, in blocks of {best['block_tokens']} tokens", best["blocks"], "not known"),
    ]
    if ran:
        rates.append(("Reported by the server", cached, "not reported"))
    return [
        {
            "label": label,
            "share": rate,
            "value": otherwise if rate is None else share(rate),
            "whose": "server" if label.startswith("Reported") else "ours",
        }
        for label, rate, otherwise in rates
    ]


def _hits_words(best: Facts | None) -> str:
    if best is None or best["exact"] is None:
        return "The best possible rate was not worked out for this workload."
    return (
        "Share of all prompt tokens. Best possible: a cache without limit that is empty at the start and forgets "
        "nothing, without the tokens of the chat template, which a server counts and finds again too."
    )
