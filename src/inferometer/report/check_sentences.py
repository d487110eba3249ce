"""The sentences of a report, as data: what is said of each check at each status, and what to do about it.

    entry     = CHECKS["code:variant"] where a fact of the check picks a variant (VARIANT), else CHECKS["code"]
    sentence  = says[status] with {value} and {limit} filled in (says["status unknown"] where there is no value),
                then every clause whose facts are all present
    words     = sentence, then the advice for that status

`checks` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.arrival_check_sentences import ARRIVALS
from inferometer.report.arrival_check_sentences import LATE_CAUSES as LATE_CAUSES
from inferometer.report.clock_check_sentences import CLOCKS
from inferometer.report.content_check_sentences import CONTENT
from inferometer.report.delivery_check_sentences import DELIVERY
from inferometer.report.length_check_sentences import LENGTHS
from inferometer.report.server_check_sentences import SERVER
from inferometer.report.server_check_sentences import Wording as Wording
from inferometer.report.session_check_sentences import SESSIONS
from inferometer.report.steadiness_sentences import STEADINESS
from inferometer.report.task_check_sentences import TASKS

_STALL: Mapping[tuple[str, ...], str] = {("stall_max_ms",): "Longest stall of a worker: {stall_max_ms} ms."}

_MERGED = Wording(
    "Read delay",
    "share",
    {
        "pass": "{value} of the gaps between tokens were lost to late reading; up to {limit} is accepted.",
        "fail": "{value} of the gaps between tokens were lost to late reading, more than the accepted {limit}: tokens "
        "that waited together share one time stamp.",
        "na": "There were no gaps between tokens, so none was lost to late reading.",
    },
    {"fail": "Use more workers (--workers) or give the client a dedicated machine."},
    {("p99", "max"): "Data waited {p99} ms (P99) for the client, {max} ms at most.", **_STALL},
)
"""With a kernel's stamps, or a model's of one."""


def _certified(what: str) -> Wording:
    """Of the load that decides; without one, there is no certificate to decide by."""
    return Wording(
        "Calibration",
        "number",
        {
            "pass": f"{{value}} {what} per second and worker; on this machine the instrument is certified up to {{limit}}.",
            "unsure": f"{{value}} {what} per second and worker, but on this machine the instrument is certified only up to "
            "{limit}: the error of its figures at this load is unknown.",
            "note": "This machine has no certificate for the instrument.",
            "na": "This run needs no certificate.",
        },
        {
            "unsure": "Use more workers, lower the load, or repeat inferometer calibrate if it stopped too early.",
            "note": "Run inferometer calibrate once on this machine.",
        },
        {
            ("id",): "Certificate {id}.",
            ("why", "differs"): "A certificate exists but does not match: {differs}.",
        },
    )


VARIANT = {
    "lateness": "loop",
    "load_exact": "of",
    "error_bound": "of",
    "warmup": "of",
    "receive_lag": "source",
    "prompt_length": "judged_by",
    "output_length": "judged_by",
    "token_counts": "against",
    "stale_connections": "kept",
    "streamed": "of",
    "tokens_per_event": "of",
    "calibration": "of",
    "arrival_rate": "of",
    "arrival_dispersion": "of",
    "arrival_lag1": "of",
    "stationary": "of",
    "drift": "of",
    "cache_hits": "of",
    "session_context": "of",
    "session_cache": "of",
    "task_results": "of",
    "error_rate": "of",
    "server_tokens": "side",
    "server_ttft": "side",
}
"""The fact that decides what a check of two kinds measured."""

_ELSEWHERE = SERVER | DELIVERY | CONTENT | ARRIVALS | SESSIONS | TASKS

CHECKS: dict[str, Wording] = {
    "error_rate": Wording(
        "Failed requests",
        "share",
        {
            "pass": "{value} of the requests failed; up to {limit} is accepted.",
            "fail": "{value} of the requests failed, more than the accepted {limit}: the latencies describe only the "
            "requests that succeeded.",
            "unsure": "No request ended, so there is no error rate.",
            "na": "No request was sent, so there is no error rate.",
        },
        {
            "unsure": "Check whether the server responds at all, then send more requests or run longer.",
            "fail": "Look at the error classes and the server's log, then lower the load or repair the server, and run again.",
        },
        {("by_error",): "By class: {by_error}."},
    ),
    "error_rate:own": Wording(
        "Failed requests",
        "share",
        {
            "fail": "{value} of the requests were never connected, because this machine ran out of open files, ports or "
            "buffers: the load was not the requested one, and that is no fault of the server's."
        },
        {
            "fail": "Raise the limit of open files (ulimit -n), widen the range of ports (net.ipv4.ip_local_port_range), keep "
            "connections open (--connection reuse) or lower the load, and run again."
        },
        {("by_error",): "By class: {by_error}."},
    ),
    "error_rate:p99": Wording(
        "Failed requests",
        "share",
        {
            "unsure": "Requests that failed had waited longer than the P99 of those that succeeded: with their waits it would "
            "be longer by {value} at least; up to {limit} is accepted.",
        },
        {
            "unsure": "Look at the error classes and the server's log, then lower the load or repair the server, and run again."
        },
        {
            (
                "series",
                "p99_ms",
                "p99_with_ms",
            ): "P99 of {series}: {p99_ms} ms without them, {p99_with_ms} ms at least with them.",
            ("waited",): "Failed requests that waited longer: {waited}.",
            ("by_error",): "By class: {by_error}.",
        },
    ),
    **LENGTHS,
    "output_length": Wording(
        "Output length",
        "share",
        {
            "pass": "{value} of the answers missed the requested length; up to {limit} is accepted.",
            "fail": "{value} of the answers missed the requested length, more than the accepted {limit}: throughput and "
            "end-to-end latency belong to other lengths than the plan specifies.",
            "unsure": "{value} of the answers seem to miss the requested length, more than the accepted {limit}, but they "
            "were counted by a tokenizer that may not be the model's.",
            "na": "No answer length could be counted.",
        },
        {
            "unsure": "Name the model's own tokenizer (--tokenizer PATH), or let the server report usage.",
            "fail": "Check whether the server honours ignore_eos or its equivalent and whether its context is long enough; "
            "otherwise plan with the lengths that it produces.",
        },
        {
            (
                "asked_mean",
                "counted_mean",
            ): "Requested {asked_mean} tokens on average, counted {counted_mean}.",
            ("finish_reasons",): "Finish reasons: {finish_reasons}.",
        },
    ),
    "token_counts": Wording(
        "Token counts",
        "share",
        {
            "pass": "Server and client differ by {value} in their output token counts; up to {limit} is accepted.",
            "fail": "Server and client differ by {value} in their output token counts, more than the accepted {limit}: one "
            "of the two counts is wrong, and so is every figure per token.",
            "unsure": "The server counted more output tokens than the stream had events ({value} more, {limit} is accepted): "
            "either events hold several tokens or the count is wrong.",
            "unsure unknown": "The server reported no usage to compare with the client's own count of output tokens.",
            "note": "Server and client differ by {value} in their output token counts, within the accepted {limit}. If the "
            "count used is the wrong one, every figure per token is off by as much, which no interval covers.",
            "note unknown": "Non-streaming answers have no events to count, so output tokens are the server's own count, "
            "unchecked.",
            "na": "No output tokens were counted.",
        },
        {
            "note": "Name the model's own tokenizer (--tokenizer PATH) and compare the server's usage for one answer by hand.",
            "note unknown": "Name the model's own tokenizer (--tokenizer PATH), or measure streamed answers, so that they can "
            "be checked.",
            "fail": "Name the model's own tokenizer (--tokenizer PATH) and compare the server's usage for one answer by hand.",
            "unsure": "Let the server report usage in its streams, or name the model's own tokenizer (--tokenizer PATH).",
        },
        {
            ("server", "events"): "Server: {server} tokens; client: {events} events with text.",
            ("against",): "Compared with the client's {against}.",
        },
    ),
    "receive_lag": Wording(
        "Read delay",
        "ms",
        {
            "pass": "The client read 99\u202f% of the arriving data within {value}; up to {limit} is accepted.",
            "fail": "The client left arriving data unread for {value} (P99), more than the accepted {limit}: without kernel "
            "time stamps that delay is part of every latency.",
            "na": "No data arrived, so none was read late.",
        },
        {"fail": "Use more workers (--workers) or give the client a dedicated machine."},
        _STALL,
    ),
    "receive_lag:kernel": _MERGED,
    "receive_lag:modelled": _MERGED,
    "error_bound": Wording(
        "Error of the headlines",
        "ms",
        {
            "pass": "Late reading and sending moved no headline by more than it may: at most {value} where {limit} is "
            "accepted.",
            "fail": "Late reading and sending may have moved a headline by {value}, more than the accepted {limit}.",
            "na": "There is no headline with a bound of the instrument's own error.",
        },
        {
            "fail": "Use more workers (--workers), lower the load, or give the client dedicated cores; the headlines named "
            "here are not to be relied on."
        },
        {
            ("headline", "stated"): "Furthest against its limit: {headline}, stated as {stated} ms.",
            ("beyond",): "Beyond their limits: {beyond}.",
            **_STALL,
        },
    ),
    "error_bound:rate": Wording(
        "Error of the headlines",
        "share",
        {
            "pass": "Late reading and sending moved no headline by more than it may: at most {value} of it where {limit} is "
            "accepted.",
            "fail": "Late reading and sending may have moved a headline by {value} of it, more than the accepted {limit}.",
        },
        {"fail": "Use more workers (--workers), lower the load, or give the client dedicated cores."},
        {
            ("headline", "stated"): "Furthest against its limit: {headline}, stated as {stated} per second.",
            ("beyond",): "Beyond: {beyond}.",
        },
    ),
    "worker_cpu": Wording(
        "Client CPU",
        "share",
        {
            "pass": "The busiest worker used {value} of its core; up to {limit} is accepted.",
            "fail": "The busiest worker used {value} of its core, more than the accepted {limit}: the client may have been "
            "the bottleneck.",
            "na": "The workers' CPU time is not known.",
        },
        {"fail": "Use more workers (--workers), each on its own core."},
        {
            ("host",): "It is one of {host}.",
            ("each_share",): "Each worker: {each_share}.",
            ("waited_share",): "Ready to run but without a core: {waited_share}.",
        },
    ),
    "own_cpu": Wording(
        "CPU beside the workers",
        "share",
        {
            "pass": "The instrument's other processes used {value} of a core while measuring.",
            "note": "The instrument's other processes used {value} of a core while measuring, more than {limit}, and there is "
            "no core beyond those of the workers.",
            "na": "The CPU time of the instrument's other processes is not known.",
        },
        {"note": "Give the client one core more than it has workers, or use fewer workers."},
        {
            ("conductor_s", "elapsed_s"): "Main process: {conductor_s} s of CPU time in {elapsed_s} s.",
            ("scraper_s",): "Scraper of metrics: {scraper_s} s.",
        },
    ),
    "cache_hits:trace": Wording(
        "Prefix cache",
        "share",
        {
            "na": "The trace's prompts share prefixes by design; the server took {value} of the prompt tokens from a cache.",
            "na unknown": "The trace's prompts share prefixes by design; the server reports no cached tokens.",
        },
    ),
    "concurrency_held": Wording(
        "Concurrency held",
        "share",
        {
            "pass": "On average {value} of the requested concurrency was in flight; at least {limit} is required.",
            "fail": "On average only {value} of the requested concurrency was in flight, at least {limit} is required: the "
            "server received a lighter load than the plan specifies.",
            "note": "On average {value} of the requested concurrency was in flight, less than {limit}, as the server ended "
            "requests with an error sooner than it answers others: it was sent the load of the plan and held less of it.",
            "na": "Concurrency is judged only in a closed loop whose slots were all filled.",
        },
        {
            "fail": "Send many more requests than the concurrency, and check whether the server refuses connections."
        },
        {("mean", "asked"): "In flight: {mean} of {asked}.", ("failed",): "Failed: {failed}."},
    ),
    "first_wave": Wording(
        "First wave",
        "number",
        {
            "pass": "Measured requests sent before all slots were in use: {value}; at most {limit} may be.",
            "unsure": "Measured requests sent before all slots were in use: {value}; at most {limit} may be. Latencies "
            "include the burst of the start, and depend on the number of requests.",
            "na": "A first wave is judged in a closed loop of several slots, unless a cold start is measured, and of users "
            "most of whose requests waited.",
        },
        {
            "unsure": "Give the workload file requests for a warm-up: they lead the measurement in. Users who mostly wait "
            "have no lead-in: measure as many slots by --concurrency."
        },
        {("of",): "Of {of} requests."},
    ),
    "users_held": Wording(
        "Users who waited",
        "share",
        {
            "pass": "{value} of the requests had to wait for the previous answer of the same user; up to {limit} is "
            "tolerated.",
            "note": "{value} of the requests, more than {limit}, were sent later than their users' schedules because the "
            "previous answer had not ended: the server received a lighter load than the sum of all users' rates.",
            "na": "Applies only to users with individual rates; this run has none.",
        },
        {
            "note": "These users slow down with this server. To send at a rate regardless of answers, use --rate."
        },
        {("held", "of"): "Held: {held} of {of}."},
    ),
    **STEADINESS,
    "throttled": Wording(
        "Throttling",
        "number",
        {
            "pass": "No machine that was read was slowed down, by heat or power, as each of its parts says.",
            "note": (
                "Machines that were slower than they could be while the load ran: {value}, where {limit} is expected. The "
                "figures are of that state, not of a cool or unlimited one."
            ),
            "na": "Not all parts of the machines show whether they were slowed down (--host-telemetry, or an exporter).",
        },
        {"note": "Let the machine cool down, raise its power limit, or set the clocks, and measure again."},
        {
            ("reasons",): "Reasons: {reasons}.",
            ("slow_hosts",): "Load hosts: {slow_hosts}.",
            ("silent",): "Not shown for: {silent}.",
        },
    ),
    "stale_connections": Wording(
        "Kept connections",
        "share",
        {
            "pass": "No request found its kept-alive connection closed.",
            "note": "{value} of the requests were sent twice, because the server closed kept-alive connections at the moment "
            "of reuse (expected: {limit}).",
            "na": "No connection was to be reused.",
        },
        {
            "note": "Let the server keep idle connections longer; the wait before the second attempt is part of TTFT."
        },
        {("retried", "sent"): "Sent twice: {retried} of {sent}."},
    ),
    "stale_connections:none": Wording(
        "Kept connections",
        "share",
        {
            "note": "The server does not keep connections alive: {value} of the requests had to open a new one (more than "
            "{limit}).",
        },
        {"note": "Let the server keep connections alive, or set --connection new to state it in the plan."},
        {("retried", "sent"): "Sent twice: {retried} of {sent}."},
    ),
    "stale_connections:single_use": Wording(
        "Kept connections",
        "share",
        {
            "note": "The server closes each connection after one answer or, over a WebSocket, sends more behind it. Then each "
            "request had a fresh connection; {value} of the requests found one that had been opened ahead of need.",
        },
        {"note": "Set --connection new. Over a WebSocket, look what follows an answer's end."},
        {("retried", "sent"): "Sent twice: {retried} of {sent}."},
    ),
    "answered_as": Wording(
        "Model that answered",
        "share",
        {
            "pass": "All answers that name a model name the same one.",
            "fail": "{value} of the answers that name a model name another one, more than the accepted {limit}: the figures "
            "are not of one model.",
            "unsure": "All answers name another model than was asked for: an alias of it, or another model.",
            "na": "No answer names its model.",
        },
        {
            "fail": "Look for a router or a fallback in front of the server that hands requests to another model.",
            "unsure": "Name the model as the server does (--model).",
        },
        {("other", "expected"): "They name {other}, not {expected}."},
    ),
    "cache_hits": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache; up to {limit} is accepted.",
            "fail": "The server took {value} of the prompt tokens from a cache, more than the accepted {limit}: TTFT is "
            "shorter than the prompts would cost.",
            "na unknown": "The server reports no cached tokens.",
            "na": "Prompts repeat or share prefixes by plan, so cached tokens are expected.",
        },
        {
            "fail": "Turn prefix caching off on the server, or use --repeatable-prompts if the cache is what you measure."
        },
    ),
    "cache_hits:cold": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache declared cold; up to {limit} is accepted.",
            "fail": "The server took {value} of the prompt tokens from a cache that was declared cold, more than the accepted "
            "{limit}: it knew prompts from before the run.",
        },
        {"fail": "Empty the server's cache before the run, or declare its state as it is (--cache-state)."},
    ),
    "cache_hits:warm": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache declared warm; at least {limit} is required.",
            "fail": "The server took {value} of the prompt tokens from a cache that was declared warm, less than the required "
            "{limit}: it no longer knew the prompts of the run before.",
        },
        {
            "fail": "Send the same plan once before the run, or declare the cache's state as it is (--cache-state)."
        },
    ),
    "cache_hits:shared": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from a cache; up to {limit} is accepted.",
            "fail": "The server took {value} of the prompt tokens from a cache, more than the accepted {limit}: it knew "
            "prompts from before the run, and TTFT is shorter than the workload's own sharing would make it.",
        },
        {"fail": "Empty the server's cache before the run, and check what else is sent to it."},
        {
            (
                "best_share",
            ): "Requests of this run could share at most {best_share} of their tokens with each other."
        },
    ),
    "workload_lengths": Wording(
        "Drawn lengths",
        "number",
        {
            "pass": "The drawn lengths agree with the figures published for the workload: the largest deviation is {value} "
            "of what chance allows (up to {limit}).",
            "note": "The drawn lengths do not agree with the figures published for the workload: the largest deviation is "
            "{value} times what chance allows (up to {limit}).",
            "na": "No figures are published for these lengths, or fewer than 1,000 were drawn.",
        },
        {"note": "Check whether the dataset, its subset and the tokenizer are the intended ones."},
        {
            (
                "side",
                "figure",
                "published",
                "drawn",
            ): "Largest deviation: {side} tokens, {figure}; published {published}, drawn {drawn}."
        },
    ),
    "samples_p99": Wording(
        "P99 samples",
        "number",
        {
            "pass": "P99 is based on {value} successful requests; it needs {limit}.",
            "unsure": "P99 is based on only {value} successful requests; it needs {limit}.",
            "na": "No P99 is reported.",
        },
        {"unsure": "Run longer (--requests or --duration), or rely on the median and its interval only."},
    ),
    "samples_p99_9": Wording(
        "P99.9 samples",
        "number",
        {
            "pass": "P99.9 is based on {value} successful requests; it needs {limit}.",
            "note": "P99.9 is based on {value} successful requests; it needs {limit}: treat it as a rough figure.",
            "na": "No P99.9 is reported.",
        },
    ),
    **CLOCKS,
    "calibration": _certified("tokens or requests"),
    "calibration:token_events_s": _certified("token events"),
    "calibration:requests_s": _certified("requests"),
    "calibration:whole_answers_s": _certified("whole answers"),
    "workers_alive": Wording(
        "Lost requests",
        "share",
        {
            "pass": "No worker died, and every request that was sent has an outcome.",
            "fail": "A worker died, and {value} of the requests were lost with it: their results are unknown.",
            "na": "No request was sent.",
        },
        {
            "fail": "Read log.txt in the run folder, then run again; a worker killed from outside (for example for memory) "
            "writes nothing there."
        },
        {
            ("dead", "workers"): "Died: number {dead} of {workers} workers, counted from 0.",
            ("on_hosts",): "On the load host: {on_hosts}.",
            ("exit_codes",): "Exit codes (below 0: killed by that signal): {exit_codes}.",
            ("shortages",): "Reason: {shortages}.",
            (
                "load_share",
                "theirs",
                "total",
                "kept",
                "lost",
            ): "They had {load_share} of the load, {theirs} of {total} requests: {kept} are on record, {lost} are lost.",
            (
                "load_share",
                "kept",
                "lost",
                "at_least",
            ): "They had {load_share} of the load: {kept} of their requests are on record, {lost} or more are lost, and more "
            "were never sent.",
        },
    ),
    "interrupted": Wording(
        "Complete run",
        "number",
        {
            "pass": "The run reached its planned end.",
            "unsure": "The run was stopped before its planned end, or a part of its journal is lost.",
            "na": "Whether the run reached its end is not recorded.",
        },
        {"unsure": "Run it again to the end, or plan a shorter run."},
    ),
    "warmup": Wording(
        "Warm-up",
        "number",
        {
            "pass": "{value} requests warmed up the server before the measurement.",
            "note": "{value} requests warmed up the server; the draft requires {limit} requests and 10\u202f000 output tokens.",
            "na": "Warm-up does not apply to this run.",
        },
        {"note": "Use --warmup 100 or more, and --warmup-tokens 10000, if the result is to be published."},
        {
            ("output_tokens",): "Warm-up output: {output_tokens} tokens.",
            (
                "asked_requests",
                "asked_output_tokens",
            ): "The plan requested {asked_requests} requests and {asked_output_tokens} output tokens, which was not reached.",
            (
                "unsettled",
                "probes",
            ): "No three consecutive probes of the {probes} after it agreed within 10 %: latency had not stabilised.",
        },
    ),
    "warmup:cold": Wording(
        "Warm-up",
        "number",
        {"note": "Cold start: the server was deliberately not warmed up."},
    ),
    "ttft_variants": Wording(
        "First-token variants",
        "share",
        {
            "pass": "First event, first text, first answer token and first visible token coincided in every request.",
            "note": "In {value} of the requests the first event, first text or first answer token was clearly not at the "
            "time of the first visible token, so tools that stop the clock elsewhere will report a different TTFT.",
            "na": "No first token was received.",
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
            "unsure": "Only {value} requests succeeded; no spread can be computed from fewer than {limit}.",
            "na": "No request was sent.",
        },
        {"unsure": "Find out why the others failed, or send more requests (--requests)."},
    ),
} | _ELSEWHERE
