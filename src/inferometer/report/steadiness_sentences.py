"""The sentences of the checks of whether a run was steady; see `check_sentences`."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import Wording

SERIES = {
    "first_token": "time to first token",
    "token_gap": "time between tokens",
    "request": "end-to-end time",
    "waiting": "requests without a first token",
    "in_flight": "requests in flight",
    "server": "the server's own queue",
    "output_tok_s": "output tokens",
    "input_tok_s": "prompt tokens",
    "request_s": "completed requests",
}
"""What the facts `series` and `source` name."""

_CHANGE: Mapping[tuple[str, ...], str] = {
    ("series", "change_share", "at_s"): "Largest change: {series} {change_share} after {at_s} s.",
    ("output_tok_s",): "Output tokens per second by thirds: {output_tok_s}.",
}
_STATISTIC = "change-point statistic {value}, limit {limit}"
_CHANGED = f"At equal load the server's latency changed during the run ({_STATISTIC})"
_UNCHANGED = (
    f"At equal load no change of the server's latency was both beyond chance ({_STATISTIC}) and above 5 %"
)

STEADINESS: dict[str, Wording] = {
    "filling": Wording(
        "Filled server",
        "share",
        {
            "pass": "About {value} of the throughput is missing because the load began with an idle server; up to {limit} is "
            "tolerated.",
            "unsure": "About {value} of the throughput is missing, more than {limit}: the load began with an idle server, and "
            "the longest requests or conversations last so long that it was filling up for much of the run.",
            "na": "Judged in an open loop with a steady part, except traces, and of users who hardly wait.",
        },
        {"unsure": "Run at least twice as long (--requests or --duration)."},
        {("series",): "Most missing: {series}."},
    ),
    "drift": Wording(
        "Steady speed",
        "number",
        {
            "pass": f"{_UNCHANGED}.",
            "note": f"{_UNCHANGED}, but a third of the run had more than 10 % more or less output per second than the mean.",
            "unsure": f"{_CHANGED}: the figures describe a mixture of speeds, and depend on the length of the run.",
            "na": "Judged only in a run with a steady part.",
        },
        {
            "note": "Run longer if throughput matters: its thirds then average over more requests.",
            "unsure": "Look for what changed on the server (clock speed, temperature, another client, a cache that filled), "
            "then run again.",
        },
        _CHANGE,
    ),
    "drift:short": Wording(
        "Steady speed",
        "number",
        {
            "unsure": "The run is too short for its requests in flight to tell whether the server's speed changed.",
        },
        {
            "unsure": "Send more requests (--requests, --duration): at least 12 times as many as are in flight. If these "
            "cannot tell either, lower the load: near its capacity a server has ever more in flight."
        },
    ),
    "drift:swings": Wording(
        "Steady speed",
        "number",
        {
            "unsure": "At equal load the server's latency came and went during the run (serial correlation of its parts, as "
            "von Neumann's ratio {value}, limit {limit}): the figures depend on which part of it is measured.",
        },
        {
            "unsure": "Look for what comes and goes on the server (another client, a periodic task, clock speed), or run over "
            "many of its periods."
        },
        {("series", "swing_share"): "Standard deviation: {series} {swing_share}."},
    ),
    "drift:trace": Wording(
        "Steady speed",
        "number",
        {
            "note": f"{_CHANGED}, but so did the load of the trace, whose effect is known only approximately.",
        },
        {"note": "Replay a part of the trace with a steady load to find out."},
        _CHANGE,
    ),
    "stationary:trace": Wording(
        "Steady queue",
        "number",
        {
            "na": "A trace's load rises and falls by design, and the queue with it: its growth says nothing about the server."
        },
    ),
    "stationary:fall": Wording(
        "Steady queue",
        "number",
        {
            "unsure": "From the first to the last tenth of the load the requests waiting fell by {value}; a server at 85 % of "
            "its capacity holds more than {limit} in 1 of 1,000 runs. The run began with a queue that went away, and "
            "percentiles depend on the length of the run.",
        },
        {"unsure": "Warm the server up first (--warmup), or find out what held the first requests."},
        {("source", "waiting"): "First, middle and last tenth ({source}): {waiting}."},
    ),
    "stationary": Wording(
        "Steady queue",
        "number",
        {
            "pass": "From the first to the last tenth of the load the requests waiting rose by {value}; up to {limit} is "
            "what a server at 85 % of its capacity may hold by chance.",
            "unsure": "From the first to the last tenth of the load the requests waiting rose by {value}; a server at 85 % of "
            "its capacity holds more than {limit} in 1 of 1,000 runs. The queue was growing, and percentiles depend on the "
            "length of the run.",
            "na": "A growing queue is judged only in an open loop that runs long enough.",
        },
        {"unsure": "Lower the rate, or run longer (--duration) if the server was only warming up."},
        {("source", "waiting"): "First, middle and last tenth ({source}): {waiting}."},
    ),
}
