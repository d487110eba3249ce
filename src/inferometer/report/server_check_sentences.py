"""The sentences of the checks that hold the client against the server's own metrics, and of that of the way to the server; see
`check_sentences`."""

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


_NONE = "The server exposes no metrics that show this."
_TOKENS: Mapping[tuple[str, ...], str] = {
    (
        "prompt_server",
        "prompt_client",
    ): "Prompt tokens: {prompt_server} by the server, {prompt_client} by its usage.",
    (
        "output_server",
        "output_client",
    ): "Output tokens: {output_server} by the server, {output_client} by its usage.",
    ("resets",): "Counters that decreased: {resets}.",
    ("endpoints",): "Endpoints combined: {endpoints}.",
}
_MEANS: Mapping[tuple[str, ...], str] = {
    (
        "server",
        "client",
        "server_n",
        "client_n",
    ): "Mean: {client} ms at the client (first text of {client_n} answers), {server} ms at the server ({server_n}).",
    (
        "gap_low",
        "gap_high",
    ): "Over the requests of both the difference lies between {gap_low} and {gap_high} ms.",
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
            "unsure": "The server processed {value} more tokens than this client's requests, more than the accepted {limit}: "
            "another client used it at the same time, and its load is part of every figure.",
            "note": "The server's counters have {value} more tokens than this client's requests, more than the accepted "
            "{limit}: another client may have used it, or it counts differently from its documentation.",
        },
        {
            "unsure": "Make sure that no other client uses the server, then run again.",
            "note": "Check whether another client uses the server.",
        },
        _TOKENS,
    ),
    "server_tokens:several": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters, summed over several endpoints, have {value} more tokens than this client's "
            "requests, more than the accepted {limit}: workers that share a request (prefill and decode) may both have "
            "counted it, or another client used the server.",
        },
        {
            "note": "Name the metrics of workers that count no request twice, and make sure that no other client uses the "
            "server."
        },
        _TOKENS,
    ),
    "server_tokens:replicas": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters decreased repeatedly, as if a load balancer let different replicas answer: no "
            "totals can be computed from them.",
        },
        {"note": "Name the metrics of every replica (--server-metrics URL)."},
        _TOKENS,
    ),
    "server_tokens:fewer": Wording(
        "Tokens by the server's metrics",
        "share",
        {
            "note": "The server's counters lack {value} of the tokens that it reported as usage, more than the accepted "
            "{limit}: these metrics do not cover the whole server, or it restarted during the run.",
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
            "note": "Mean TTFT at the client is {value} more than by the server's own metrics, more than the usual {limit}: "
            "that time passes outside the engine, in the network, a proxy or the front end.",
        },
        {
            "note": "Measure next to the server, or attribute that part of TTFT to the path and not to the engine."
        },
        _MEANS,
    ),
    "server_ttft:below": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "unsure": "Mean TTFT at the client is {value} against the server's own metrics (bound {limit}), but no token can "
            "arrive before it is produced: one of the two is wrong.",
            "note": "Mean TTFT at the client is {value} against the server's own metrics (bound {limit}); the server's "
            "metric may cover another span.",
        },
        {"unsure": "Check whether other clients use the server, and from when it measures TTFT."},
        _MEANS,
    ),
    "server_ttft:bounded": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "pass": "Mean TTFT at the client is at most {value} more than by the server's own metrics, whichever first tokens "
            "only one of them has; up to {limit} is accepted.",
        },
        {},
        _MEANS,
    ),
    "server_ttft:others": Wording(
        "TTFT by the server's metrics",
        "ms",
        {
            "note": "The server's metrics have more or fewer first tokens than the client. Depending on which these are, the "
            "means agree or not.",
        },
        {},
        _MEANS,
    ),
    "server_queue": Wording(
        "Queue by the server's metrics",
        "number",
        {
            "pass": "From the first third of the load to the last the server's queue changed by {value} requests on average.",
            "note": "From the first third of the load to the last the server's queue grew by {value} requests on average "
            "(more than {limit}), without a pause: it may be saturated.",
            "na": _NONE,
        },
        {"note": "Lower the rate, or run longer to find out where the growth ends."},
        {
            ("mean", "max", "end"): "Waiting: {mean} on average, {max} at most, {end} at the end.",
            ("kv_max_share",): "KV cache: {kv_max_share} at most.",
            ("preemptions",): "Preempted: {preemptions} requests, which were then processed again.",
        },
    ),
    "cache_hits:metrics": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "Usage does not tell cached tokens; by its own metrics the server took {value} of the prompt tokens from a "
            "cache, beyond what may be a chat template; up to {limit} is accepted.",
            "unsure": "Usage does not tell cached tokens; by its own metrics the server took {value} of the prompt tokens from "
            "a cache, beyond what may be a chat template, more than the accepted {limit}: it knew prompts from before the "
            "run, or another client had these hits.",
        },
        {
            "unsure": "Empty the server's cache before the run or turn prefix caching off, and make sure that no other client "
            "uses the server."
        },
    ),
    "cache_hits:warm_metrics": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "By its own metrics the server took {value} of the prompt tokens from a cache declared warm; at least "
            "{limit} is required.",
            "unsure": "By its own metrics the server took {value} of the prompt tokens from a cache that was declared warm, "
            "less than the required {limit}: it no longer knew the prompts of the run before, or another client's lower the "
            "share.",
        },
        {
            "unsure": "Send the same plan once before the run, or declare the cache's state as it is (--cache-state).",
        },
    ),
    "round_trip": Wording(
        "Round trip to the server",
        "ms",
        {
            "pass": "The network's median round trip changed by {value} from before the load to behind it; up to {limit} is "
            "accepted.",
            "note": "The network's median round trip changed by {value} from before the load to behind it, more than {limit}: "
            "latencies may have changed by as much without the server's doing.",
            "na": "The round trip to the server was not measured both before and behind the load.",
        },
        {"note": "Look at the path to the server (routes, tunnels, other traffic), and measure again."},
        {
            ("before", "after"): "{before} ms before, {after} ms behind.",
            ("during",): "While measuring: {during} ms.",
        },
    ),
    "cache_hits:overstated": Wording(
        "Prefix cache",
        "share",
        {
            "note": "The server claims more cached tokens than the prompt has; no figure rests on these counts.",
        },
        {"note": "Look for a gateway or an engine whose usage counts cached tokens twice."},
        {("requests",): "Measured requests with such a claim: {requests}."},
    ),
}
