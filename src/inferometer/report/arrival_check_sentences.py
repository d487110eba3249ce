"""Sentences of the checks of when requests were sent: what is said at each status, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import Wording

_OPEN_ONLY = "Arrivals are judged only in an open loop with at least 100 requests."
_PROVED = ": each arrival was sent for its own instant (see Load as planned), so the load stands."
_ACCEPTED = "Simulations of the requested process stay between {low} and {high}."

_LATE: Mapping[tuple[str, ...], str] = {
    ("cause", "cause_share"): "Main cause: {cause} ({cause_share} of the lateness that counts).",
    (
        "unprepared",
        "unprepared_ms",
    ): "Not yet generated when due: {unprepared} requests, by up to {unprepared_ms} ms; lower --trace-speed, or replay "
    "a shorter or sparser part.",
    (
        "scheduling_share",
        "socket_share",
        "back_pressure_share",
    ): "Of all lateness {scheduling_share} was scheduling, {socket_share} waiting for a connection, "
    "{back_pressure_share} back-pressure.",
}
_OF_A_TRACE = (
    "The arrivals are a trace's: each is compared with its own instant (see Lateness), not with a process."
)
LATE_CAUSES = {
    "preparation": "the trace's requests were not generated in time",
    "scheduling": "the client started requests late",
    "socket": "the client was slow to hand requests to their connections",
}

ARRIVALS: dict[str, Wording] = {
    "lateness": Wording(
        "Lateness",
        "ms",
        {
            "pass": "99\u202f% of the requests were sent at most {value} after they were due; up to {limit} is accepted.",
            "fail": "One request in a hundred was sent {value} or more after it was due, more than the accepted {limit}: the "
            "load was not the requested load.",
            "unsure": "A single request was sent more than the accepted {limit} after it was due, which may be chance; of so "
            "few requests it is more than one in a hundred (P99 {value}).",
            "na": "No request was sent, so none was late.",
        },
        {
            "unsure": "Send more requests; if some are late again, use more workers (--workers), lower the rate, or give the "
            "client a dedicated machine.",
            "fail": "Use more workers (--workers), lower the rate, or give the client a dedicated machine.",
        },
        _LATE,
    ),
    "lateness:closed": Wording(
        "Lateness",
        "share",
        {
            "pass": "A free slot waited for the client {value} of the time; up to {limit} is accepted.",
            "fail": "A free slot waited for the client {value} of the time, more than the accepted {limit}: the server "
            "received a lighter load than the plan specifies.",
            "na": "No request ended, so lateness is unknown.",
        },
        {"fail": "Use more workers (--workers) or give the client a dedicated machine."},
        {("p50", "p99"): "Lateness: P50 {p50} ms, P99 {p99} ms.", **_LATE},
    ),
    "load_exact": Wording(
        "Load as planned",
        "number",
        {
            "pass": "Each request that was due was sent, once, for its own instant: {value} arrivals differ from the plan's.",
            "fail": "{value} arrivals differ from the plan's ({limit} may): the server received another load than the plan "
            "specifies.",
            "na": "Only an open loop has instants that the plan fixes.",
        },
        {"fail": "Use more workers (--workers) or lower the rate, and look for what stopped the client."},
        {
            ("planned", "arrivals"): "Planned: {planned} arrivals; on record: {arrivals}.",
            (
                "missing",
                "added",
                "moved",
                "early",
            ): "Missing {missing}, added {added}, moved {moved}, early {early}.",
            (
                "late_p50_ms",
                "late_p99_ms",
                "late_max_ms",
            ): "From the due instant to the first byte: P50 {late_p50_ms} ms, P99 {late_p99_ms} ms, at most {late_max_ms} ms.",
            ("overtaken",): "Left after a request that was due later: {overtaken}.",
        },
    ),
    "load_exact:unrecorded": Wording(
        "Load as planned",
        "number",
        {"na": "This record is of an earlier version, which did not keep the instants of the schedule."},
    ),
    "load_exact:twice": Wording(
        "Load as planned",
        "number",
        {
            "fail": "{value} requests are on record more than once ({limit} may): the server received another load than the "
            "plan specifies, or answers were counted twice.",
        },
        {"fail": "Keep the run folder and report it: each request of a plan is sent once."},
        {("requests",): "On record: {requests} requests."},
    ),
    "arrival_rate": Wording(
        "Arrival rate",
        "number",
        {
            "pass": "Requests were sent at the requested rate: {value} per second, bound {limit}.",
            "note": "The rate of sending, {value} per second, is beyond {limit}, to which one run in a thousand comes by chance"
            + _PROVED,
            "fail": "Requests were not sent at the requested rate: {value} per second, bound {limit}.",
            "na": _OPEN_ONLY,
        },
        {
            "fail": "Use more workers (--workers) or lower the rate; the numbers describe the achieved rate, not the "
            "requested one."
        },
        {("expected",): "Requested: {expected} per second.", ("low", "high"): _ACCEPTED},
    ),
    "arrival_rate:trace": Wording(
        "Arrivals",
        "number",
        {
            "pass": "{value} of the trace's {limit} arrivals were sent, each with its own instant.",
            "fail": "Only {value} of the trace's {limit} arrivals were sent: the server received a different load than was "
            "recorded.",
            "na": "The run was stopped before the trace's end.",
        },
        {"fail": "Read log.txt in the run folder, then run again."},
    ),
    "arrival_dispersion:trace": Wording("Arrival spread", "number", {"na": _OF_A_TRACE}),
    "arrival_lag1:trace": Wording("Arrival independence", "number", {"na": _OF_A_TRACE}),
    "arrival_dispersion": Wording(
        "Arrival spread",
        "number",
        {
            "pass": "Arrivals are as bursty as the requested process: dispersion {value}, bound {limit}.",
            "note": "The arrivals have dispersion {value}, beyond {limit}, to which one run in a thousand comes by chance"
            + _PROVED,
            "fail": "Arrivals are not as bursty as the requested process: dispersion {value}, bound {limit}.",
            "na": _OPEN_ONLY,
        },
        {
            "fail": "See the lateness figure; a client that falls behind sends in bursts. Use more workers or lower the rate."
        },
        {("low", "high"): _ACCEPTED},
    ),
    "arrival_lag1": Wording(
        "Arrival independence",
        "number",
        {
            "pass": "Gaps between arrivals do not depend on one another: lag-1 correlation {value}, bound {limit}.",
            "note": "The gaps have lag-1 correlation {value}, beyond {limit}, to which one run in a thousand comes by chance"
            + _PROVED,
            "fail": "Gaps between arrivals depend on one another: lag-1 correlation {value}, bound {limit}.",
            "na": _OPEN_ONLY,
        },
        {
            "fail": "See the lateness figure; something delays sends. Use more workers (--workers) or lower the rate."
        },
        {("low", "high"): _ACCEPTED},
    ),
}
