"""The sentences of a report, as data: what is said of each check at each status, and what to do about it.

    entry     = CHECKS["code:variant"] where a fact of the check picks a variant (VARIANT), else CHECKS["code"]
    sentence  = says[status] with {value} and {limit} filled in (says["status unknown"] where there is no value),
                then every clause whose facts are all present
    words     = sentence, then the advice for that status

`checks` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import SERVER
from inferometer.report.server_check_sentences import Wording as Wording

_OPEN_ONLY = "Arrivals are judged in an open loop of at least 100 requests; this run is not one."
_ACCEPTED = "Simulations of the process asked for stay between {low} and {high}."

_LATE: Mapping[tuple[str, ...], str] = {
    ("cause", "cause_share"): "Main cause: {cause} ({cause_share} of what counts).",
    (
        "unprepared",
        "unprepared_ms",
    ): "Not yet made when due: {unprepared} requests, by up to {unprepared_ms} ms; lower "
    "--trace-speed, or replay a shorter or sparser part.",
    (
        "scheduling_share",
        "socket_share",
        "back_pressure_share",
    ): "Of all lateness {scheduling_share} was scheduling, "
    "{socket_share} getting onto a connection, {back_pressure_share} back-pressure.",
}
_OF_A_TRACE = (
    "The arrivals are a trace's: each is held to its own instant (see Lateness), all together to no process."
)
LATE_CAUSES = {
    "preparation": "the trace's requests were not made in time",
    "scheduling": "the client took requests up late",
    "socket": "the client was slow to hand requests to their connections",
}
_STALL: Mapping[tuple[str, ...], str] = {("stall_max_ms",): "Longest stall of a worker: {stall_max_ms} ms."}


def _certified(what: str) -> Wording:
    """Of the load that decides; without one, there is no certificate to decide by."""
    return Wording(
        "Calibration",
        "number",
        {
            "pass": f"{{value}} {what} a second for each worker; on this machine the instrument is certified up to {{limit}}.",
            "unsure": f"{{value}} {what} a second for each worker, where on this machine the instrument is certified up to "
            "{limit}: how far its figures are off at this load is not known.",
            "note": "No certificate vouches for the instrument on this machine.",
            "na": "This run needs no certificate.",
        },
        {
            "unsure": "Use more workers, lower the load, or run inferometer calibrate where it stopped too early.",
            "note": "Run inferometer calibrate once on this machine.",
        },
        {
            ("id",): "Certificate {id}.",
            ("why", "differs"): "There is one, but it does not fit: {differs}.",
        },
    )


VARIANT = {
    "lateness": "loop",
    "warmup": "of",
    "receive_lag": "source",
    "prompt_length": "judged_by",
    "stale_connections": "kept",
    "calibration": "of",
    "arrival_rate": "of",
    "arrival_dispersion": "of",
    "arrival_lag1": "of",
    "stationary": "of",
    "cache_hits": "of",
    "server_tokens": "side",
    "server_ttft": "side",
}
"""The fact that decides what a check of two kinds measured."""

CHECKS: dict[str, Wording] = {
    "error_rate": Wording(
        "Failed requests",
        "share",
        {
            "pass": "{value} of the requests failed; up to {limit} is accepted.",
            "fail": "{value} of the requests failed, where {limit} is accepted: "
            "the latencies describe only the requests that got through.",
            "unsure": "No request ended, so there is no error rate.",
            "na": "No request was sent, so there is no error rate.",
        },
        {
            "unsure": "See whether the server answers at all, then ask for more requests or a longer run.",
            "fail": "Look at the failure classes and the server's log, then lower the load or mend the server and run again.",
        },
        {("by_error",): "By class: {by_error}."},
    ),
    "prompt_length": Wording(
        "Prompt length",
        "share",
        {
            "pass": "{value} of the prompts missed the length asked for; up to {limit} is accepted.",
            "fail": "{value} of the prompts were not as long as asked, where {limit} is accepted: "
            "the server did other prefill work than the plan names.",
            "na": "No prompt length could be counted.",
        },
        {
            "fail": "Name the model's own tokenizer (--tokenizer PATH), or use an endpoint that takes token ids."
        },
        {("asked_mean", "counted_mean"): "Asked for {asked_mean} tokens on average, counted {counted_mean}."},
    ),
    "prompt_length:growth": Wording(
        "Prompt length",
        "share",
        {
            "fail": "For the longest prompts the server counted only {value} of the tokens that its counts of the shortest "
            "let expect, where {limit} is needed: it does not read long prompts to their end.",
        },
        {
            "fail": "See whether the server cuts prompts (a context or truncation limit), or plan with shorter ones; "
            "else name the model's own tokenizer (--tokenizer PATH)."
        },
        {
            (
                "asked_mean",
                "server_mean",
            ): "Asked for {asked_mean} tokens on average, the server counted {server_mean}."
        },
    ),
    "output_length": Wording(
        "Output length",
        "share",
        {
            "pass": "{value} of the answers missed the length asked for; up to {limit} is accepted.",
            "fail": "{value} of the answers were not as long as asked, where {limit} is accepted: "
            "throughput and end-to-end latency belong to other lengths than the plan names.",
            "unsure": "{value} of the answers seem not to be as long as asked, where {limit} is accepted, "
            "but they were counted by a tokenizer that may not be the model's.",
            "na": "No answer length could be counted.",
        },
        {
            "unsure": "Name the model's own tokenizer (--tokenizer PATH), or let the server report usage.",
            "fail": "See whether the server honours ignore_eos or its equivalent and whether its context is long enough; "
            "else plan with the lengths it does write.",
        },
        {
            (
                "asked_mean",
                "counted_mean",
            ): "Asked for {asked_mean} tokens on average, counted {counted_mean}.",
            ("finish_reasons",): "Finish reasons: {finish_reasons}.",
        },
    ),
    "token_counts": Wording(
        "Token counts",
        "share",
        {
            "pass": "Server and client differ by {value} in the output tokens they counted; up to {limit} is accepted.",
            "fail": "Server and client differ by {value} in the output tokens they counted, where {limit} is accepted: "
            "one of the two counts is wrong, and every figure per token with it.",
            "unsure": "The server counted more output tokens than the stream had events ({value} more, where {limit} is "
            "accepted): either an event holds several tokens or the count is wrong.",
            "unsure unknown": "The server reported no usage to hold against the client's own count of output tokens.",
            "note": "Whole answers show no events to count, so output tokens are the server's own count, unchecked.",
            "na": "No output tokens were counted.",
        },
        {
            "note": "Name the model's own tokenizer (--tokenizer PATH), or measure streamed answers, to have them checked.",
            "fail": "Name the model's own tokenizer (--tokenizer PATH) and compare the server's usage for one answer by hand.",
            "unsure": "Let the server report usage in its streams, or name the model's own tokenizer (--tokenizer PATH).",
        },
        {
            ("server", "events"): "Server: {server} tokens; client: {events} events with text.",
            ("against",): "Compared with the client's {against}.",
        },
    ),
    "streamed": Wording(
        "Streaming",
        "share",
        {
            "pass": "{value} of the answers of several tokens came all at once; up to {limit} is accepted.",
            "fail": "{value} of the answers of several tokens came all at once, where {limit} is accepted: a proxy buffers "
            "the stream or the server does not stream, and TTFT is the end-to-end latency.",
            "na": "Too few streamed answers of several tokens were read promptly enough to tell.",
        },
        {
            "fail": "Look for a buffering proxy (nginx: proxy_buffering off) and measure beside it, or ask for whole answers "
            "(--no-stream)."
        },
        {("at_once", "judged"): "At once: {at_once} of {judged}."},
    ),
    "lateness": Wording(
        "Lateness",
        "ms",
        {
            "pass": "99\u202f% of the requests left at most {value} after they were due; up to {limit} is accepted.",
            "fail": "One request in a hundred left {value} or more after it was due, where {limit} is accepted: "
            "the load was not the load asked for.",
            "na": "No request was sent, so none was late.",
        },
        {"fail": "Use more workers (--workers), lower the rate, or give the client a machine of its own."},
        _LATE,
    ),
    "lateness:closed": Wording(
        "Lateness",
        "share",
        {
            "pass": "A free slot waited {value} of its time for the client; up to {limit} is accepted.",
            "fail": "A free slot waited {value} of its time for the client, where {limit} is accepted: "
            "the server saw a lighter load than the plan names.",
            "na": "No request came to its end, so nothing can be said of lateness.",
        },
        {"fail": "Use more workers (--workers) or give the client a machine of its own."},
        {("p50", "p99"): "Lateness: P50 {p50} ms, P99 {p99} ms.", **_LATE},
    ),
    "receive_lag": Wording(
        "Read delay",
        "ms",
        {
            "pass": "The client read 99\u202f% of the arriving data within {value}; up to {limit} is accepted.",
            "fail": "The client left arriving data unread for {value} (P99), where {limit} is accepted: "
            "without kernel time stamps that delay is part of every latency.",
            "na": "Nothing arrived, so nothing was read late.",
        },
        {"fail": "Use more workers (--workers) or give the client a machine of its own."},
        _STALL,
    ),
    "receive_lag:kernel": Wording(
        "Read delay",
        "share",
        {
            "pass": "{value} of the gaps between tokens were lost to late reading; up to {limit} is accepted.",
            "fail": "{value} of the gaps between tokens were lost to late reading, where {limit} is accepted: "
            "tokens that waited together share one time stamp.",
            "na": "No gaps between tokens were seen, so none was lost to late reading.",
        },
        {"fail": "Use more workers (--workers) or give the client a machine of its own."},
        {("p99", "max"): "Data waited {p99} ms (P99) for the client, {max} ms at most.", **_STALL},
    ),
    "worker_cpu": Wording(
        "Client CPU",
        "share",
        {
            "pass": "The busiest worker used {value} of its core; up to {limit} is accepted.",
            "fail": "The busiest worker used {value} of its core, where {limit} is accepted: "
            "the client may have been the bottleneck.",
            "na": "The workers' CPU time is not known.",
        },
        {"fail": "Use more workers (--workers), each on a core of its own."},
        {
            ("each_share",): "Each worker: {each_share}.",
            ("waited_share",): "Ready to run and without a core: {waited_share}.",
        },
    ),
    "arrival_rate": Wording(
        "Arrival rate",
        "number",
        {
            "pass": "Requests left at the rate asked for: {value} per second, bound {limit}.",
            "fail": "Requests did not leave at the rate asked for: {value} per second, bound {limit}.",
            "na": _OPEN_ONLY,
        },
        {
            "fail": "Use more workers (--workers) or lower the rate; the numbers hold for the rate reached, not the one asked."
        },
        {("expected",): "Asked for: {expected} per second.", ("low", "high"): _ACCEPTED},
    ),
    "arrival_rate:trace": Wording(
        "Arrivals",
        "number",
        {
            "pass": "{value} of the trace's {limit} arrivals were offered, each with its own instant.",
            "fail": "Only {value} of the trace's {limit} arrivals were offered: the server saw another load than was recorded.",
            "na": "The run was stopped before the trace's end.",
        },
        {"fail": "Read log.txt in the run folder, then run again."},
    ),
    "arrival_dispersion:trace": Wording("Arrival spread", "number", {"na": _OF_A_TRACE}),
    "arrival_lag1:trace": Wording("Arrival independence", "number", {"na": _OF_A_TRACE}),
    "stationary:trace": Wording(
        "Steady queue",
        "number",
        {
            "na": "A trace's load rises and falls by itself, and the queue with it: its growth says nothing of the server."
        },
    ),
    "cache_hits:trace": Wording(
        "Prefix cache",
        "share",
        {
            "na": "The trace's prompts share beginnings by its own wish; the server took {value} of the prompt tokens from a "
            "cache.",
            "na unknown": "The trace's prompts share beginnings by its own wish; the server reports no cached tokens.",
        },
    ),
    "arrival_dispersion": Wording(
        "Arrival spread",
        "number",
        {
            "pass": "Arrivals bunch as the process asked for does: dispersion {value}, bound {limit}.",
            "fail": "Arrivals bunch otherwise than the process asked for does: dispersion {value}, bound {limit}.",
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
            "fail": "Gaps between arrivals depend on one another: lag-1 correlation {value}, bound {limit}.",
            "na": _OPEN_ONLY,
        },
        {
            "fail": "See the lateness figure; something held sends back. Use more workers (--workers) or lower the rate."
        },
        {("low", "high"): _ACCEPTED},
    ),
    "concurrency_held": Wording(
        "Concurrency held",
        "share",
        {
            "pass": "On average {value} of the requests asked for were in flight; at least {limit} is needed.",
            "fail": "On average only {value} of the requests asked for were in flight, where {limit} is needed: "
            "the server saw a lighter load than the plan names.",
            "na": "Concurrency is judged in a closed loop that filled up; this run is not one.",
        },
        {
            "fail": "Ask for many more requests than the concurrency, and see whether the server refuses connections."
        },
        {("mean", "asked"): "In flight: {mean} of {asked}."},
    ),
    "users_held": Wording(
        "Users who waited",
        "share",
        {
            "pass": "{value} of the requests had to wait for the same user's answer before them; up to {limit} is overlooked.",
            "note": "{value} of the requests, more than {limit}, came later than their users meant them to, for the answer "
            "before them was still on its way: the server saw a lighter load than all users' rates make.",
            "na": "Waiting is told of users at a rate each; this run has none.",
        },
        {
            "note": "That is what these users do to this server. To offer the rate whatever is answered, use --rate."
        },
        {("held", "of"): "Held: {held} of {of}."},
    ),
    "stationary": Wording(
        "Steady queue",
        "number",
        {
            "pass": "From the first to the last third of the load the requests in flight rose by {value}, "
            "and the queue did not keep growing; a rise of up to {limit} is accepted in any case.",
            "unsure": "From the first to the last third of the load the requests in flight rose by {value}, more than the "
            "{limit} of chance, and latency with them: the queue was growing, and percentiles reflect the length of the run.",
            "na": "A growing queue is looked for in an open loop that lasts; this run is not one.",
        },
        {"unsure": "Lower the rate, or run longer (--duration) if the server was only warming to its load."},
        {
            (
                "in_flight",
                "latency_ms",
            ): "By thirds: in flight {in_flight}; median latency in ms {latency_ms}.",
        },
    ),
    "stale_connections": Wording(
        "Kept connections",
        "share",
        {
            "pass": "No request found its kept-alive connection closed.",
            "note": "{value} of the requests were sent twice, for the server closed kept-alive connections at the moment of "
            "reuse (expected: {limit}).",
            "na": "No connection was meant to be used again.",
        },
        {
            "note": "Let the server keep idle connections longer; the waiting before the second try is no part of TTFT."
        },
        {("retried", "sent"): "Sent twice: {retried} of {sent}."},
    ),
    "stale_connections:none": Wording(
        "Kept connections",
        "share",
        {
            "note": "The server does not keep connections alive: {value} of the requests had to open one of their own "
            "(more than {limit}).",
        },
        {"note": "Let the server keep connections alive, or ask for --connection new to say so in the plan."},
        {("retried", "sent"): "Sent twice: {retried} of {sent}."},
    ),
    "cache_hits": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache; up to {limit} is accepted.",
            "fail": "The server took {value} of the prompt tokens from a cache, where {limit} is accepted: "
            "TTFT is shorter than the prompts would cost.",
            "na unknown": "The server reports no cached tokens.",
            "na": "Prompts repeat or begin alike by the plan's wish, so cached tokens are expected.",
        },
        {
            "fail": "Turn prefix caching off on the server, or use --repeatable-prompts if the cache is what you measure."
        },
    ),
    "cache_hits:shared": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache; up to {limit} is accepted.",
            "fail": "The server took {value} of the prompt tokens from a cache, where {limit} is accepted: "
            "it knew prompts from before the run, and TTFT is shorter than the workload's own sharing would make it.",
        },
        {"fail": "Empty the server's cache before the run, and see what else is sent to it."},
        {("best_share",): "Requests of this run could have found {best_share} of theirs with each other."},
    ),
    "workload_lengths": Wording(
        "Drawn lengths",
        "number",
        {
            "pass": "The drawn lengths come to the figures published for the workload: the worst is off by {value} of what "
            "chance allows (up to {limit}).",
            "note": "The drawn lengths do not come to the figures published for the workload: the worst is off by {value} "
            "times what chance allows (up to {limit}).",
            "na": "Nothing is published of these lengths, or fewer than 1,000 were drawn.",
        },
        {"note": "See whether the dataset and its subset are the ones meant, and whether the tokenizer is."},
        {
            (
                "side",
                "figure",
                "published",
                "drawn",
            ): "The worst: {side} tokens, {figure}; published {published}, drawn {drawn}."
        },
    ),
    "samples_p99": Wording(
        "P99 samples",
        "number",
        {
            "pass": "{value} successful requests stand behind P99; it needs {limit}.",
            "unsure": "Only {value} successful requests stand behind P99; it needs {limit}.",
            "na": "No P99 is reported.",
        },
        {"unsure": "Run longer (--requests or --duration), or rely on the median and its interval only."},
    ),
    "samples_p99_9": Wording(
        "P99.9 samples",
        "number",
        {
            "pass": "{value} successful requests stand behind P99.9; it needs {limit}.",
            "note": "{value} successful requests stand behind P99.9, which needs {limit}: take it as a rough figure.",
            "na": "No P99.9 is reported.",
        },
    ),
    "tokens_per_event": Wording(
        "Tokens per event",
        "share",
        {
            "pass": "{value} of the stream events carried exactly one token (more than {limit} is needed), "
            "so gaps between events are gaps between tokens.",
            "note": "{value} of the stream events carried exactly one token, not more than {limit}, "
            "so gaps between events are not gaps between tokens.",
            "unsure": "How many tokens an event carries is not known, so gaps between events may not be gaps between tokens.",
            "na": "No streamed answer came to its end.",
        },
        {
            "note": "Compare TPOT between servers rather than ITL.",
            "unsure": "Name the model's own tokenizer (--tokenizer PATH), and use TPOT rather than ITL.",
        },
        {("method",): "ITL method: {method}.", ("itl_zero_share",): "Gaps of zero: {itl_zero_share}."},
    ),
    "clock_step": Wording(
        "Clock",
        "ms",
        {
            "pass": "The wall clock moved {value} against the monotonic clock; up to {limit} is accepted.",
            "fail": "The wall clock moved {value} against the monotonic clock, where {limit} is accepted: "
            "kernel time stamps are off by as much.",
            "na": "No kernel time stamps were used.",
        },
        {"fail": "Let the time service settle (chronyc tracking, ntpq -p), then run again."},
    ),
    "calibration": _certified("tokens or requests"),
    "calibration:token_events_s": _certified("token events"),
    "calibration:requests_s": _certified("requests"),
    "workers_alive": Wording(
        "Lost requests",
        "share",
        {
            "pass": "No worker died, and every request that was sent has an outcome.",
            "fail": "A worker died, and {value} of the requests were lost with it: nobody knows what they would have shown.",
            "na": "No request was sent.",
        },
        {
            "fail": "Read log.txt in the run folder, then run again; a worker killed from outside (for memory, say) leaves "
            "nothing there."
        },
        {
            ("dead", "workers"): "Died: {dead} of {workers} workers, counted from 0.",
            ("exit_codes",): "Exit codes (below 0: killed by that signal): {exit_codes}.",
            (
                "load_share",
                "theirs",
                "total",
                "kept",
                "lost",
            ): "Theirs were {load_share} of the load, {theirs} of {total} "
            "requests: {kept} are on record, {lost} are lost.",
            (
                "load_share",
                "kept",
                "lost",
                "at_least",
            ): "Theirs were {load_share} of the load: {kept} of their requests are on "
            "record, {lost} or more are lost, and more were never sent.",
        },
    ),
    "interrupted": Wording(
        "Complete run",
        "number",
        {
            "pass": "The run came to the end its plan names.",
            "unsure": "The run was stopped before the end its plan names.",
            "na": "Whether the run came to its end is not recorded.",
        },
        {"unsure": "Run it again to the end, or plan a shorter one."},
    ),
    "warmup": Wording(
        "Warm-up",
        "number",
        {
            "pass": "{value} requests warmed the server up before the measurement.",
            "note": "{value} requests warmed the server up; the draft asks for {limit} requests and 10\u202f000 output tokens.",
            "na": "Warm-up does not apply to this run.",
        },
        {"note": "Use --warmup 100 or more, and --warmup-tokens 10000, when the result is to be published."},
        {
            ("output_tokens",): "Warm-up output: {output_tokens} tokens.",
            (
                "asked_requests",
                "asked_output_tokens",
            ): "The plan asked for {asked_requests} requests and {asked_output_tokens} "
            "output tokens, and that was not reached.",
            (
                "unsettled",
                "probes",
            ): "No three in a row of {probes} probes behind it came within 10 % of each other: the server "
            "had not settled.",
        },
    ),
    "warmup:cold": Wording(
        "Warm-up",
        "number",
        {"note": "Cold start: the server was not warmed up, by intent."},
    ),
    "ttft_variants": Wording(
        "First-token variants",
        "share",
        {
            "pass": "First event, first text, first answer token and first visible token came together in every request.",
            "note": "In {value} of the requests the first event, first text or first answer token came at clearly another "
            "time than the first visible token, so tools that stop the clock elsewhere will report another TTFT.",
            "na": "No first token was seen.",
        },
        {"note": "Compare like with like: every variant is among the further metrics of the report."},
        {
            (
                "ttft",
                "ttft_any",
                "ttfo",
                "ttfe",
            ): "Medians in ms: visible {ttft}, any text {ttft_any}, answer {ttfo}, event {ttfe}.",
        },
    ),
    "few_samples": Wording(
        "Successful requests",
        "number",
        {
            "pass": "{value} requests succeeded.",
            "unsure": "Only {value} requests succeeded; no spread can be worked out from fewer than {limit}.",
            "na": "No request was sent.",
        },
        {"unsure": "See why the others failed, or ask for more requests (--requests)."},
    ),
} | SERVER
