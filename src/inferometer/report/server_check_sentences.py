"""The sentences of the checks that hold the client against the server's own metrics; see `check_sentences`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["share", "ms", "number"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one check. `clauses` maps the names of the facts that a clause needs to the clause."""

    title: str
    kind: Kind
    says: Mapping[str, str]
    advice: Mapping[str, str] = field(default_factory=dict)
    clauses: Mapping[tuple[str, ...], str] = field(default_factory=dict)


_NONE = "The server's own metrics, where it has any, do not say it."
_TOKENS: Mapping[tuple[str, ...], str] = {
    (
        "prompt_server",
        "prompt_client",
    ): "Prompt tokens: {prompt_server} by the server, {prompt_client} by its usage.",
    (
        "output_server",
        "output_client",
    ): "Output tokens: {output_server} by the server, {output_client} by its usage.",
    ("resets",): "Counters that went back: {resets}.",
    ("endpoints",): "Endpoints added up: {endpoints}.",
}
_MEANS: Mapping[tuple[str, ...], str] = {
    (
        "server",
        "client",
        "server_n",
        "client_n",
    ): "Mean: {client} ms at the client (first text of {client_n} answers), {server} ms at the server ({server_n}).",
}

SERVER: dict[str, Wording] = {
    "server_tokens": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "pass": "The server's counters and the usage it reported agree: they differ by {value}, up to {limit} is accepted.",
            "na": _NONE,
        },
        {},
        _TOKENS,
    ),
    "server_tokens:more": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "unsure": "The server worked on {value} more tokens than this client's requests, where {limit} is accepted: "
            "somebody else used it meanwhile, and every figure has that load in it.",
            "note": "The server's counters have {value} more tokens than this client's requests, where {limit} is accepted: "
            "somebody else may have used it, or it counts otherwise than its documentation lets expect.",
        },
        {
            "unsure": "See that nobody else uses the server, then run again.",
            "note": "See whether anybody else uses the server.",
        },
        _TOKENS,
    ),
    "server_tokens:several": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters, added up over several endpoints, have {value} more tokens than this client's "
            "requests, where {limit} is accepted: workers that share a request (prefill and decode) may both have counted it, "
            "or somebody else used the server.",
        },
        {
            "note": "Name the metrics of workers that count no request twice, and see that nobody else uses the server."
        },
        _TOKENS,
    ),
    "server_tokens:replicas": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters went back again and again, as where a balancer lets now one replica answer and now "
            "another: no totals come of them.",
        },
        {"note": "Name the metrics of every replica (--server-metrics URL)."},
        _TOKENS,
    ),
    "server_tokens:fewer": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters lack {value} of the tokens it reported as usage, where {limit} is accepted: "
            "these metrics are not of the whole server, or it began anew meanwhile.",
        },
        {"note": "Name the metrics of every replica (--server-metrics URL)."},
        _TOKENS,
    ),
    "server_ttft": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "pass": "Mean TTFT at the client is {value} more than by the server's own metrics; up to {limit} is accepted.",
            "na": _NONE,
        },
        {},
        _MEANS,
    ),
    "server_ttft:above": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "note": "Mean TTFT at the client is {value} more than by the server's own metrics, where {limit} is usual: "
            "that time passes before the engine's queue or behind it, in the network, a proxy or the front end.",
        },
        {"note": "Measure beside the server, or blame that part of TTFT on the way and not on the engine."},
        _MEANS,
    ),
    "server_ttft:below": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "unsure": "Mean TTFT at the client is {value} against the server's own metrics (bound {limit}), and no token is "
            "seen before it is made: one of the two is wrong.",
            "note": "Mean TTFT at the client is {value} against the server's own metrics (bound {limit}); its documentation "
            "may mean another span by it.",
        },
        {"unsure": "See whether others use the server, and what its TTFT is from."},
        _MEANS,
    ),
    "server_ttft:others": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "note": "The server's metrics have more or fewer first tokens than the client, and one request can move a mean "
            "by any amount, so means are not compared.",
        },
        {},
        {("server_n", "client_n"): "First tokens: {server_n} at the server, {client_n} at the client."},
    ),
    "server_queue": Wording(
        "Queue by the server's metrics",
        "number",
        {
            "pass": "From the first third of the load to the last the server's queue changed by {value} requests on average.",
            "note": "From the first third of the load to the last the server's queue grew by {value} requests on average "
            "(more than {limit}), and without a pause: it may be saturated.",
            "na": _NONE,
        },
        {"note": "Lower the rate, or run longer to see where it ends."},
        {
            ("mean", "max", "end"): "Waiting: {mean} on average, {max} at most, {end} at the end.",
            ("kv_max_share",): "KV cache: {kv_max_share} at most.",
            ("preemptions",): "Preempted: {preemptions} requests, which were then worked on again.",
        },
    ),
}
