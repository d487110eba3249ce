"""The words of the notes of judge/compliance and of a test's verdict, by their code.

An entry is a template, filled in with the note's facts, or a function of those it needs where words hang on values.

| in a template | shown as                                             |
| ------------- | ---------------------------------------------------- |
| `{limit}`     | 10,000 or 0.1234; of several, `25, 50`               |
| `{n:d}`       | 10000                                                |
| `{share:%}`   | 12.3%                                                |
| `{unit:unit}` | a unit behind its number: nothing, `%`, or ` s`      |
| `{names:or}`  | `this or that`                                       |
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.documents.note import Note
from inferometer.plan.declarations import BOS_EOS, NO_ADJUSTMENT, SYSTEM_PROMPTS, TOOLS, UNCOUNTED
from inferometer.report.fact_words import Words, called
from inferometer.report.verdict_notes import VERDICT


def number(value: float) -> str:
    """A number in a note: no more digits than a reader needs."""
    return f"{value:,.10g}" if float(value).is_integer() else f"{value:,.4g}"


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(_shown, value))
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


class _Template(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        match format_spec:
            case "":
                return _shown(value)
            case "d":
                return str(value)
            case "%":
                return f"{value:.1%}"
            case "unit":
                return value if value in ("", "%") else "" if value is None else f" {value}"
            case "or":
                return " or ".join(value)
        raise ValueError(f"no way to show a fact: {format_spec}")


_TEMPLATE = _Template()


def worded(note: Note) -> str:
    """The note in words. Raises KeyError for a code that has none."""
    words = NOTES[note.code]
    return _TEMPLATE.vformat(words, (), note.facts) if isinstance(words, str) else called(words, note.facts)


# Words that hang on values.

INSTANTS = {
    "e2e_ms": "the instant of submission",
    "ttft_ms": "the arrival of the first token",
    "itl_ms": "the arrival of each further token",
    "stream_end_ms": "the arrival of the last token and of the end",
}
STAMPS = {"kernel": "kernel receive stamps in ns", "user": "the client's monotonic clock in ns"}
PURPOSES = {
    "load_model": "the load model",
    "range": "the range",
    "search_bounds": "the bounds of the search",
    "ttft_threshold": "the threshold of TTFT",
    "context_lengths": "the context lengths",
}
"""What parameters are together."""
DECLARATIONS = {
    "terminology_read": "the terminology draft was read beside this one",
    "model_loaded": "the model was in accelerator memory before the warm-up",
    "publication_considered": "what publishing capacity figures exposes was weighed",
    "workloads_varied": "workloads were varied, and compared with production traffic where there is any",
    "isolated": "the system is isolated",
    "recovery_ready": "recovery is prepared",
    "monitored": "cascading failures are watched for",
}
SPECIAL_TOKENS = {
    "bos_eos": BOS_EOS,
    "uncounted": UNCOUNTED,
    "system_prompt": SYSTEM_PROMPTS,
    "tools": TOOLS,
}
OUTSIDE = {
    "https": "its address is https (TLS belongs to a gateway)",
    "network": "a network lies between it and the client",
    "api_key": "it is sent an API key (authentication belongs to a gateway)",
    "rate_limit": "requests were turned away with status 429 (rate limiting belongs to a gateway)",
    "filter": "a filter is on, or ended answers",
}
"""What does not belong inside the boundary `engine` (draft 4.1.1)."""
COMPOUND = {"tool": "tools", "retrieval": "retrieval", "rerank": "reranking"}
"""What only a compound system holds (draft 4.1.3)."""
ON = {True: "on", False: "off", None: "not declared"}


def _round_trips(before_ms: float | None, during_ms: float | None, after_ms: float | None) -> str:
    stages = {"before": before_ms, "while measuring": during_ms, "behind": after_ms}
    seen = [f"{number(ms)} ms {stage}" for stage, ms in stages.items() if ms is not None]
    return f"round trips of TCP handshakes, P50: {', '.join(seen)}"


def _less_round_trip(most_ms: float | None) -> str:
    most = "" if most_ms is None else f" (at most {number(most_ms)} ms)"
    return f"TTFT less the least round trip{most} stands beside TTFT as measured; nothing else is adjusted"


def _workload(based_on: str | None, name: str) -> str:
    return f"{name}, based on {based_on}" if based_on else name


def _short_answer(share: float | None, tokens: float, limit: float) -> str:
    shorter = "" if share is None else f"; {share:.1%} have fewer than that"
    return f"an answer has {number(tokens)} tokens, at least {number(limit)}{shorter}"


def _shares(classes: Sequence[str], shares: Sequence[float]) -> str:
    pairs = zip(classes, shares, strict=True)
    return ", ".join(f"{name} {share:.0%}" for name, share in pairs)


def _class_ranges(
    classes: Sequence[str],
    least_input: Sequence[int],
    most_input: Sequence[int],
    least_output: Sequence[int],
    most_output: Sequence[int],
) -> str:
    rows = zip(classes, least_input, most_input, least_output, most_output, strict=True)
    said = [f"{name} {a} to {b} tokens in, {c} to {d} out" for name, a, b, c, d in rows]
    return f"other ranges: {'; '.join(said)}"


def _probes_vary(variation: float | None, limit: float) -> str:
    return "not shown" if variation is None else f"probes vary by {variation:.1%}, limit {limit:.0%}"


def _no_table(table: str | None, sections: Sequence[str]) -> str:
    return f"no table {table or 'of ' + ' or '.join(sections)}"


def _model(model: str | None, quantization: str | None, version: str) -> str:
    name, bits = model or "the one served", quantization or "none declared"
    return f"{name}, version {version}, quantization {bits}"


def _hardware(accelerator: str, count: int | None, memory: str) -> str:
    return f"{accelerator} x {count}, {memory}" if count else f"{accelerator}, no accelerator"


def _ttft_variants(message: str | None) -> str:
    return "to the first content" + ("" if message is None else f"; {message}")


def _or_none(value: float | None) -> str:
    return "none" if value is None else number(value)


def _no_grpc(stream: bool, http: str = "1.1", framing: str = "server-sent events") -> str:
    return f"HTTP/{http}{f' with {framing}' if stream else ''}, not gRPC"


CHECK_FAILED = "check {check} failed: {value}{unit:unit}, limit {limit}{unit:unit}"
GUARDRAILS_NOT_DECLARED = "the state of guardrails is not declared (--guardrails)"
TOO_SHORT_WARM_UP = (
    "{requests:d} requests and {output_tokens:d} output tokens, at least {least_requests:d} and "
    "{least_output_tokens:d}"
)

INSTRUMENT: Mapping[str, Words] = {
    "check_failed": CHECK_FAILED,
    "timestamps": lambda source: STAMPS[source],
    "no_timestamps": "no clock stamped it: source {source}",
    "timestamps_on_reading": "stamped on reading (source {source}), not on arrival",
    "plan_not_streamed": "the plan asks for whole answers",
    "not_streamed": "answers were asked for whole",
    "stream_protocol": "{protocol}",
    "no_events": "no event was stamped",
    "events": "{events} events stamped one by one",
    "instants_recorded": lambda metric: f"{INSTANTS[metric]} of every request, in requests.parquet",
    "instants_missing": lambda metric: f"no request has {INSTANTS[metric]} ({metric} has no samples)",
    "tokens_not_counted": "tokens were not counted",
    "token_counts_missing": lambda metric: f"no {metric.replace('_', ' ')} are on record",
    "tokens_counted": "counted by: {source}",
    "outcomes_missing": "{requests:d} of {sent:d} requests have no outcome",
    "outcomes_recorded": "an outcome a request, in requests.parquet",
    "protocol": "protocol: {protocol}",
    "no_token_events": "no event carried tokens",
    "single_token_events": "{share:%} of the events carry one token",
    "chunks_of_a_compound": "an event may carry several tokens: how many is not known at the boundary of a compound system",
    "no_itl_method": "no ITL method is declared ({method})",
    "itl_method": "ITL method: {method}",
    "server_timestamps": "ITL by the server's stamps stands beside the client's",
    "no_server_timestamps": "the server sent no time stamps of single tokens over its interface ({api})",
    "other_moment_format": "{started} is not a UTC instant with milliseconds",
    "moment_format": "ISO 8601, UTC, milliseconds",
    "no_gaps": "no gaps between tokens were measured",
    "too_many_gaps": "{gaps:d} gaps, where {most} lie between tokens",
    "gaps_from_first_token": "gaps begin at the first token",
    "open_loop_drawn_ahead": "all instants of an open loop are drawn before the start",
    "poisson_by_default": "Poisson arrivals are the default of an open loop",
    "constant_arrivals_offered": "--arrival constant: evenly spaced",
    "bursty_arrivals_offered": "--arrival gamma with --burstiness below 1",
    "concurrency_offered": "--concurrency holds this many in flight",
    "slots_refilled": "a slot's next request goes out when its last one ends",
    "open_loop_never_waits": "no open-loop request waits for the answer to another",
    "event_loops": "worker processes, each with its own event loop",
}
SYSTEM: Mapping[str, Words] = {
    "not_declared": lambda declaration: (
        f"not declared: {DECLARATIONS[declaration]} (--declare {declaration})"
    ),
    "declared_kept": lambda declaration: DECLARATIONS[declaration],
    "declared_not_kept": "declared otherwise: {declaration} is no",
    "no_boundary": "no boundary is declared (--boundary)",
    "boundary": "boundary: {boundary}",
    "loading_measured": "loading is what is measured",
    "no_weights": "the reference server has no weights to load",
    "not_an_engine": "a duty of engines' tests",
    "not_a_gateway": "a duty of gateways' tests",
    "embedded_declared_separate": "declared to be separate machines, yet the embedded server was measured",
    "no_loopback_address": "{url} is no loopback address (or --declare same_machine)",
    "separate_machines": "client and server are on separate machines",
    "over_loopback": "over loopback",
    "one_machine_declared": "one machine, though its address is no loopback",
    "one_clock": "one machine, one clock",
    "clock_accuracy_not_declared": "clocks of separate machines: accuracy not declared (--declare "
    "clock_accuracy_ms=N, or same_machine)",
    "clock_accuracy": "clocks agree to {ms} ms, limit {limit_ms} ms",
    "clock_accuracy_only_declared": "clocks agree to {ms} ms, limit {limit_ms} ms, by declaration alone: no time service "
    "holds the client's clock synchronised, by its own account",
    "clock_not_synchronised": "no time service holds the client's clock synchronised, by its own account (if something else "
    "does: --declare clock_sync=..., clock_accuracy_ms=N)",
    "client_clock": "the client's clock is within {ms} ms of UTC, limit {limit_ms} ms, by {method}; a client cannot see the "
    "server's",
    "client_clock_not_shown": lambda ms, limit_ms: (
        "the client's clock is synchronised, "
        + ("to an error that is not known" if ms is None else f"to within {number(ms)} ms")
        + f"; within {number(limit_ms)} ms is not shown (--declare clock_accuracy_ms=N)"
    ),
    "client_clock_by_ptp": "the client's clock follows {method}; a client cannot see the server's",
    "client_clock_sync": "{method}; {ms} ms; of the client's clock: a client cannot see the server's",
    "ptp": "PTP",
    "clocks_not_compared": "no figure compares two clocks, so none needs them to agree below a millisecond",
    "clock_sync_not_declared": "how clocks are synchronised, and how well, is not stated (--declare clock_sync=..., "
    "clock_accuracy_ms=N)",
    "clock_sync": "{method}; {ms} ms",
    "no_network": "no network in between",
    "handshakes": "TCP handshakes took P50 {p50_ms} ms, reported as connect_ms",
    "network_rtt": "{words}",
    "no_handshake": "no connection was opened while measuring (--declare network_rtt=...)",
    "no_adjustment": NO_ADJUSTMENT,
    "round_trips": _round_trips,
    "ttft_less_round_trip": _less_round_trip,
    "latency_adjustments": lambda words, most_ms: f"{_less_round_trip(most_ms)}; declared: {words}",
    "latency_adjustment": "{words}",
    "perhaps_not_autoregressive": "the model is called {model}: {part} suggests that it does not write token by token, and "
    "section 3 leaves such models out",
    "perhaps_on_device": "{hint} on the client's own machine: if that is the device of its user and no network service, "
    "section 3 leaves it out",
    "nothing_out_of_scope": "nothing seen points to what section 3 leaves out",
    "completion_no_accuracy": "success of tasks is stated as completion by each task's own criterion; the report says that it "
    "is no statement about quality or accuracy, which section 3 leaves out",
    "not_a_compound": "a duty of compound systems' tests",
    "no_tasks": "a compound system is given tasks (--tasks), and this run has none",
    "tasks_not_judged": "the answers were not held to their tasks' criteria",
    "no_task_decided": "of no task it is decided whether it succeeded",
    "too_few_judged": lambda ended, unjudged: f"{unjudged:,} of {ended:,} answers could not be judged",
    "tasks_completed": "{ended:d} tasks, from their sending to the end of their answers, and whether each succeeded",
    "compound_inside": lambda boundary, parts: (
        f"the boundary is {boundary}, yet the system itself tells of {' and '.join(COMPOUND[part] for part in parts)}"
    ),
    "compound_parts": lambda parts: f"the system tells of {' and '.join(COMPOUND[part] for part in parts)}",
    "compound_parts_unseen": (
        "no retrieval and no tool is seen: only the system's own spans (--spans), or steps in its usage, show them"
    ),
    "outside_the_engine": lambda parts: (
        "the boundary is engine, yet " + "; ".join(OUTSIDE[part] for part in parts)
    ),
    "nothing_outside_the_engine": "nothing seen that an engine leaves out",
    "no_interface_of_boundary": "the draft names an interface for engines and gateways",
    "interface": "over {scheme}; the draft has {expected} for the boundary {boundary}",
    "guardrails_not_declared": GUARDRAILS_NOT_DECLARED,
    "filter_at_work": "declared off, yet a content filter ended answers",
    "filter_inside_engine": "filters are on, yet the boundary engine leaves them out (draft 4.1.1)",
    "no_guardrails": "the reference server has none",
    "filters": lambda input_filter, output_filter: (
        f"input filter {ON[input_filter]}, output filter {ON[output_filter]}"
    ),
    "filter_not_declared": "{filter} filter: not declared (--guardrails)",
    "filter": lambda filter, on: f"{filter} filter: {ON[on]}",
    "filter_switched": "{filter} filter: on in some runs and off in others; each run states its own",
    "filters_off": "none are on",
    "filters_on": "they are on",
    "filter_names": "{names}",
    "filters_not_named": "safety systems are not named (--guardrails both:NAME)",
    "refusals": "{requests:d} requests were refused, by the server's own signals",
    "not_production": "not declared a production-representative gateway",
    "guardrails_off_not_declared": "whether they are off is not declared (--guardrails)",
    "guardrails_off_disclosed": "noted among the disclosures: off",
    "guardrails_compared": "off and on",
    "guardrails_not_compared": lambda configurations: f"only: {', '.join(configurations) or 'none'}",
    "no_model": "no model is named",
    "no_model_version": "the model's version is not declared (sut.model_version)",
    "model": _model,
    "no_hardware": "no hardware is declared (--hardware H100x4:80GB)",
    "no_accelerator_memory": "the memory of {accelerator} is not declared (--hardware {accelerator}x{count:d}:80GB)",
    "hardware": _hardware,
    "prefix_caching_not_declared": "whether prefix caching is on is not declared (--prefix-caching)",
    "cache_at_work": "declared disabled, yet {share:%} of the input tokens came from a cache",
    "prefix_caching": "prefix caching {state}",
    "switch_contradicted": lambda what, state, evidence: (
        f"{what} {state} is contradicted: {evidence or 'see the switches'}"
    ),
    "never_switched": "{what} was never switched",
    "switches_declared": "declared by whoever switched: {states}",
    "switches_verified": "{what}: verified",
    "cache_passes_missing": "not measured both without and with the cache",
    "other_requests": "not shown to be the same requests as the first pass",
    "same_requests": lambda fingerprint: f"requests {str(fingerprint)[:12]} in each pass",
    "no_shared_prefix": "requests share no prefix that is disclosed",
    "configurations_left_out": "without {configurations}",
    "configurations": "{configurations}",
    "baseline_first": "baseline first",
    "other_first": "{configuration} came first",
}
WORKLOAD: Mapping[str, Words] = {
    "item": "{value}",
    "item_missing": "missing from the workload's specification",
    "items_missing": "missing: {items}",
    "standard_workload": "a standard workload",
    "custom_workload": "a custom workload, fully specified",
    "workload": _workload,
    "other_workload": lambda name, based_on, draft: (
        f"{_workload(based_on, name)}; the draft has {' or '.join(draft)}"
    ),
    "stand_in": "a stand-in for {based_on}: its lengths and shared prefixes, without the texts of its dataset (--dataset)",
    "workload_variant": "{name}, with this test's lengths",
    "workload_of_test": "this test has a workload of its own",
    "seed": "seed {seed:d}",
    "requests_from_seed": "`inferometer workload make` writes the requests of seed {seed:d}",
    "no_seed": "seed: not known",
    "no_dataset": "no dataset was drawn from",
    "no_dataset_version": "the version of {dataset} is not disclosed (--dataset-version)",
    "no_preprocessing": "how {dataset} was preprocessed is not disclosed",
    "dataset_disclosed": "version, selection and preprocessing are among the disclosures",
    "no_counting_method": "not declared",
    "not_native": f"declared native, but {CHECK_FAILED}",
    "counting_method": "{method} (draft 4.4.2)",
    "special_tokens": lambda topic: SPECIAL_TOKENS[topic],
    "special_tokens_declared": lambda topic, words: f"{SPECIAL_TOKENS[topic]}; {words}",
    "vocab_size": "vocab size {size:d}",
    "no_vocab_size": "vocab size: not known",
    "tokenizer_source": "source {source}",
    "no_tokenizer_source": "source: not known",
    "tokenizer": "{name}, version {version}",
    "no_tokenizer": "no tokenizer is named (--tokenizer)",
    "no_tokenizer_version": "{name}: its version is not known",
    "cold_start": "a cold start has no warm-up (draft 4.5.3)",
    "warm_up_not_known": "the run does not show it",
    "warm_up_volume": "at least {least_requests:d} requests and {least_output_tokens:d} output tokens",
    "short_warm_up": TOO_SHORT_WARM_UP,
    "warm_up_not_counted": "{requests:d} requests, and nobody counted their output tokens: at least {least_requests:d} and "
    "{least_output_tokens:d} are required",
    "warm_up_drained": "all of it had ended",
    "warm_up_not_drained": "not all of the warm-up is known to have ended before the measurement",
    "probes": "one probe before, three and more after",
    "no_probes": "no probe was measured before and after",
    "probes_agree": lambda limit: f"three probes in a row within {limit:.0%}",
    "probes_vary": _probes_vary,
    "caching_not_tested": "prefix caching is not what is tested",
    "cache_filled": "the warm-up carried the prefixes",
    "cache_not_filled": lambda prefixes: (
        f"the cache was not filled with the prefixes ({prefixes or 'not known'})"
    ),
    "no_cold_start": "not about cold starts",
    "warm_up_sent": "{requests:d} requests of warm-up were sent",
    "no_warm_up": "no warm-up",
    "marked_cold": "marked as cold starts",
    "not_marked_cold": "the run is not marked as a cold start",
    "server_sent_events": "server-sent events",
    "whole_answers": "answers are asked for whole",
    "no_grpc": _no_grpc,
    "grpc_streams": "streams of gRPC",
    "other_streams": "{framing}",
    "warm_up": "{requests} requests, described in full in the report",
}
PROCEDURE: Mapping[str, Words] = {
    "parameter": "{parameter} {value}{unit:unit}, at least {limit}{unit:unit}",
    "parameters": lambda **facts: ", ".join(f"{name} {_shown(value)}" for name, value in facts.items()),
    "parameters_missing": lambda purpose, parameters: (
        f"{PURPOSES[purpose]}: {', '.join(parameters)} not given"
    ),
    "lasted": "at least {limit_s} s",
    "too_short": "lasted {seconds} s, at least {limit_s} s",
    "samples": "at least {limit} samples of {metric}",
    "too_few_samples": "{n} samples of {metric}, at least {limit}",
    "percentages": "{parameter} {percent}%",
    "percentages_missing": "{parameter} {percent}%; without {missing}%",
    "load_model": "{models} loop",
    "other_load_model": "{model}: neither open nor closed loop",
    "open_loop": "open loop",
    "closed_loop": "closed loop",
    "rates": lambda rates, of="requests": f"{_shown(rates)} {of}/s",
    "no_rate": "no rate: arrivals of a {arrival}",
    "poisson_arrivals": "Poisson",
    "no_poisson_arrivals": "{arrival} arrivals, and no level with Poisson arrivals",
    "concurrency": "{concurrency} in flight",
    "no_concurrency": "no concurrency",
    "loop_not_requested": "no {loop} loop is requested",
    "rate_range": "{low} to {high} requests/s in steps of {step}",
    "no_rate_range": "neither given (min_rate, max_rate, rate_step) nor taken from a pilot",
    "rate_range_of_pilot": "by a pilot's estimate: from half of it, in steps of a quarter, between a 64th and 64 times "
    "of it",
    "levels_planned": "{levels:d} levels from {first}%",
    "too_few_levels_planned": "{levels:d} levels from {first}%, at least {limit} from 10%",
    "levels_measured": "{levels:d} levels were measured",
    "too_few_levels_measured": "{levels:d} levels were measured, at least {limit}",
    "answer_lengths_unknown": "the lengths of answers are not known",
    "short_answer": _short_answer,
    "long_answers": "every answer has at least {limit} tokens",
    "short_answers_planned": "answers of {lengths} tokens are requested, at least {limit}",
    "no_percentage": "its load is no percentage of saturation",
    "percentages_of_saturation": "percentages of saturation",
    "answers_vary": "answers of {lengths} tokens",
    "answers_of_one_length": "{tokens} tokens each",
    "slots": "at least {limit_s} s and {completions} completions a slot",
    "too_few_completions": "{completed} completions of {slots:d} slots, at least {limit}",
    "classes": lambda classes: f"{len(classes)} classes: {', '.join(classes)}",
    "too_few_classes": lambda classes, limit: (
        f"{len(classes)} classes: {', '.join(classes)}, at least {limit}"
    ),
    "class_ranges": "those of the draft",
    "other_class_ranges": _class_ranges,
    "class_shares": _shares,
    "class_shares_incomplete": lambda classes, shares: f"{_shares(classes, shares)}: not 100% together",
    "fairness_load": "{percent}% of saturation, {low} to {high}%",
    "no_classes": "no classes",
    "small_class": "{name}: {requests} requests, at least {limit}",
    "class_counts": "at least {limit} requests a class",
    "classes_alone": "each class alone first",
    "classes_not_alone": "not measured alone: {classes}",
    "percent_of_capacity": "{percent}% of capacity",
    "not_oversubscribed": "{percent}% of capacity, none above 100%",
    "capacity_searched": "searched with this test's workload",
    "capacity_not_searched": "no search by this test: another's answer may have been taken",
    "few_at_once": "{concurrency} in flight, 1 to {most}",
    "too_many_at_once": "{model} loop, {concurrency} in flight; closed, 1 to {most}",
    "tokens_as_drafted": "{tokens} tokens",
    "other_tokens": "{tokens} tokens; the draft has {draft}",
    "ascending": "in ascending order",
    "not_ascending": "in the order {contexts}",
}
UNCHECKED = {
    "gaming": "whether a system recognises a benchmark shows in no observation",
    "prompts": "what prompts of a file or a trace say is not looked at",
}
"""Why nobody can check a statement."""
PRECONDITIONS = {
    "components": "neither the server's metrics have the wait in its queue, nor its answers the time of prefill",
    "objectives": "no objectives are given (--slo)",
    "accelerators": "no accelerators are declared, so there is nothing to divide by",
    "batch": "the share of the batch in use could not be measured",
}
MEASUREMENT: Mapping[str, Words] = {
    "cannot_be_checked": lambda why: f"cannot be checked: {UNCHECKED[why]}",
    "precondition": lambda why: PRECONDITIONS[why],
    "columns": "table {table}: {columns}",
    "cells_of_runs": "table {table}: {columns}, each row as a run has it",
    "cells_of_no_run": "table {table}: row {row:d} is that of no run ({columns})",
    "rows_missing": "table {table}: without {rows}",
    "rows_of_runs": "table {table}: {rows}, as the runs have them",
    "row_of_no_run": "table {table}: {row} is that of no run",
    "does_not_follow": lambda value, shown, expected: (
        f"{value} is {_or_none(shown)}, but {_or_none(expected)} follows from the table"
    ),
    "point_follows": "{point} as the table has it",
    "five_parts": "all five",
    "nothing_shown": "nothing was measured",
    "configured": "warm-up had ended; configured as declared",
    "ttft_by_definition": "from submission to the first token",
    "negative_ttft": "a TTFT of {ms} ms",
    "load_held": "until the last request",
    "load_cut": lambda sent, planned: (
        f"ended early: {sent} requests" + ("" if planned is None else f" of {planned}")
    ),
    "first_content": "to the first text that is not white space",
    "content_before_anything": "content comes before anything on average",
    "framing_left_out": "events are parsed before they are looked at",
    "search_bracketed": "between a load that holds and one that does not",
    "search_to_its_bound": "up to the highest concurrency of the search",
    "search_open": "no load that holds beside one that does not",
    "beyond_every_run": "{value} tok/s lies outside what any run of the search measured",
    "refused_without_sign": "a level is refused without a sign of saturation ({sign} and the others)",
    "steadiness_judged": "thirds of each level are compared",
    "steadiness_unknown": "it had no steady span",
    "ramp_left_out": "figures are of the last 90 %",
    "ramp_included": "the steady span begins after {share:%} of the sending time",
    "points_given": "both, or why there is none",
    "gaps_of_pairs": "gaps between tokens that follow each other",
    "burst": "all slots are filled at once",
    "classes_recorded": "class and instants of every request, in requests.parquet",
    "no_index": "{value} is no index: above 0, 1 at most",
    "index_read": "{value}; below {limit} it is unfair",
    "off_first": "without a cache first",
    "other_pass_first": "{part} came first",
    "cache_filled_before": "its warm-up carried the prefixes",
    "warm_up_prompts": "prompts of at most {tokens} tokens; the shortest context has {context}",
    "benign": "prompts that this program makes are benign",
    "lines": "{lines}",
    "lines_missing": "not known: {lines}",
    "minimum_report": "minimum.txt",
    "minimum_notes": "every deviation, and the guardrails",
    "full_report": "report.md and report.html have the six sections",
}
REPORT: Mapping[str, Words] = {
    "tables": "table {tables}",
    "no_table": _no_table,
    "empty_table": "table {table} is empty",
    "empty_columns": "table {table}: not measured: {columns}",
    "figure": "figure {figure}",
    "no_figure": "no figure {figure}",
    "values": "{names}",
    "no_values": "no value of {section}",
    "not_measured": "not measured: {names}",
    "ttft_missing": lambda statistics: (
        "no sample of TTFT" if statistics == ("n",) else f"TTFT without {', '.join(statistics)}"
    ),
    "ttft_percentiles": "P50, P90, P95, P99 and P99.9",
    "ttft_moments": "mean, minimum and maximum",
    "ttft_samples": "{n} samples",
    "no_buckets": "no TTFT by input length",
    "other_buckets": "other buckets: from {from_tokens}",
    "buckets": "the draft's six",
    "one_bucket": "prompts are of one range of lengths",
    "ttft_variants": _ttft_variants,
    "no_ttft_any": "TTFT to any token is not reported beside it",
    "load": "{model} loop with its parameters",
    "load_not_reported": "neither rate nor concurrency is reported",
    "extent": "{requests} requests in {seconds} s",
    "extent_not_reported": "request count or duration is not reported",
    "shape": "{names}",
    "shape_unknown": lambda name, value: f"{name}: {value or 'not reported'}",
}
STATEMENT: Mapping[str, Words] = {
    "no_evidence": "nothing that was measured or shown is evidence of it",
    "simulated": "simulated: nothing was measured",
    "judged_of_campaign": "judged of all tests of a campaign together",
    "no_engine": "no test of an engine",
    "uniform_in": "in: {tests}",
    "uniform_nowhere": "no test used synthetic-uniform",
    "not_checked": "not checked",
}
_COMPARED_BY = {"paired": "the t-test on pairs of runs", "welch": "Welch's t"}
COMPARISON: Mapping[str, Words] = {
    "intervals_given": "95 % intervals stand beside every difference",
    "fewest_runs": "{runs:d} runs of the side with fewest, at least {limit}",
    "tested": lambda tests: f"{' and '.join(_COMPARED_BY[test] for test in tests)}, and the bootstrap",
    "not_tested": "too few runs to test",
    "checklist": "checklist: {item} is {status}",
    "normalised": lambda by: "by price per hour" if by == "price" else "by the number of accelerators",
    "normalised_without_prices": "normalised by accelerators: no prices were given (--price)",
    "not_normalised": "hardware differs, and nothing is normalised (--price)",
    "hardware_not_declared": "whether hardware differs is not declared",
    "same_hardware": "hardware does not differ",
    "reference_tokenizer": "counted by the reference tokenizer cl100k_base",
    "other_tokenizers": "counted by: {tokenizers} ({methods})",
}
NOTES: Mapping[str, Words] = {
    **INSTRUMENT, **SYSTEM, **WORKLOAD, **PROCEDURE, **MEASUREMENT, **REPORT, **STATEMENT, **COMPARISON, **VERDICT,
}  # fmt: skip
