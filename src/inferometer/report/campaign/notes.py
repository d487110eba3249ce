"""The words for what procedures note: one entry a code. A template's places are the note's facts; a function takes those
it needs."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.note import Note, WordedNote
from inferometer.report.campaign.state_notes import COLD_START, GUARDRAIL, PREFIX_CACHE, REPEATED
from inferometer.report.campaign.step_notes import PER_SECOND, STEPS
from inferometer.report.campaign.task_notes import TASKS
from inferometer.report.fact_words import Words, called


def worded(note: Note) -> str:
    """A note as a sentence or a phrase."""
    words = WORDS[note.code]
    return (
        words.format_map({"unit": PER_SECOND, **note.facts})
        if isinstance(words, str)
        else called(words, note.facts)
    )


def with_words(note: Note) -> WordedNote:
    """A note as documents have it."""
    return WordedNote(note.code, note.facts, note.capacity, worded(note))


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _percents(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g} %" for value in values)


def _four(value: float) -> str:
    """To four significant digits, without an exponent."""
    return f"{float(f'{value:.4g}'):,.10g}"


def _answers(rest: str) -> str:
    return f"All answers are asked to have {{tokens}} tokens (draft 5.5.2); the plan's {rest}. Input lengths are the plan's."


def _capacity_above(threshold: float | None, maximum: float) -> str:
    hint = "" if threshold else ", and no threshold of TTFT was held"
    return f"All levels up to the maximum of {maximum:g} met the criteria{hint}: the capacity lies above."


def _base_not_found(concurrency: int | None) -> str:
    so_far = "" if concurrency is None else f"; so far {concurrency} met the criteria"
    return f"The search for the base found no capacity{so_far}."


def _too_short(seconds: float, levels: Sequence[float]) -> str:
    return f"Shorter than {seconds:g} s: {_numbers(levels)}."


def _no_maximum(lengths: Sequence[int]) -> str:
    at = ", ".join(f"{length:,}" for length in lengths)
    return f"No maximum throughput was found for prompts of {at} tokens: it still rose, or requests failed."


def _no_option(option: str, levels: Sequence[str]) -> str:
    lacking = (
        "the server's times of their tokens" if option == "C" else "as many counted tokens as that takes"
    )
    at = ", ".join(levels)
    return f"ITL by option {option} of draft 4.6.3 cannot be had at {at}: the answers do not carry {lacking}."


def _no_gaps(levels: Sequence[str], least: int) -> str:
    return (
        f"No answer of at least {least} tokens was streamed at {', '.join(levels)}: its gaps are not known."
    )


def _itl_method(method: str | None, counted: bool = True) -> str:
    words = ITL_METHODS.get(method or "", "none: nothing was streamed")
    if method == "chunk" and not counted:
        words = "chunk timing: how many tokens an event carries is not known, so gaps are times between chunks, and no ITL"
    return f"Measurement method (draft 4.6.3): {words}."


ITL_METHODS = {
    "direct": "direct: one token an event, each gap is timed",
    "chunk": "chunk timing: several tokens an event, gaps are times between chunks",
}


def _short_answers(percent: float, short_share: float, least: int) -> str:
    return (
        f"At {percent:g} %: {100 * short_share:.3g} % of the answers have fewer than {least} tokens "
        "and are left out of the tables, though not of the picture (draft 5.4.2 wants none)."
    )


def _shape(modality: str | None, tail: str | None) -> str:
    return f"{modality or 'modality not measured'}; tail: {tail or 'not measured'}"


def _knee(latency: str, p99_ms: float, least_ms: float, percent: float, settled: bool) -> str:
    doubt = "" if settled else "; its 95 % interval does not settle it"
    return (
        f"{latency} P99, {p99_ms:.4g} ms, exceeds 2 x {least_ms:.4g} ms, the least of all levels: the first level to do so, "
        f"{percent:g} % of capacity{doubt}"
    )


def _fall(
    achieved: float,
    before: float,
    rate_before: float,
    explained: bool | None,
    interval_before: Sequence[float] | None = None,
    interval: Sequence[float] | None = None,
    unit: str = PER_SECOND,
) -> str:
    words = (
        f"the first level with less throughput than the one before: {achieved:.5g} after {before:.5g} tok/s "
        f"at {rate_before:.4g} {unit}"
    )
    if interval_before is None or interval is None:
        return f"{words}; there are no intervals to tell it from chance"
    spans = " and ".join(f"{low:.5g} to {high:.5g}" for low, high in (interval_before, interval))
    verdict = "a decrease within them" if explained else "more than their widths explain"
    return f"{words}; 95 % intervals {spans}: {verdict}"


def _optimum(
    objectives: Sequence[str], achieved: float | None, unsettled_rate: float | None, unit: str = PER_SECOND
) -> str:
    met = ", ".join(objectives)
    if achieved is None:
        words = f"no level meets {met} by its intervals"
    else:
        words = f"the highest throughput, {achieved:.5g} tok/s, among the levels that meet {met}"
    if unsettled_rate is None:
        return words
    return f"{words}; at {unsettled_rate:.4g} {unit} the intervals do not settle it"


def _unreliable_levels(percent: Sequence[float], least: int) -> str:
    levels = _percents(percent)
    return f"Fewer than {least:,} samples, so that P99 is not reliable (draft 5.1.4.3): {levels}."


def _classes(classes: Sequence[str]) -> str:
    return f"Requests are Synthetic-Skewed's within each class's ranges, whatever the plan's workload: {'; '.join(classes)}."


def _unfair_unsettled(index: float, alone: float | None, limit: float) -> str:
    beside = "" if alone is None else f", and that of the classes alone is {alone:.3f}"
    return (
        f"Jain's index of {index:.3f} is below {limit:g}{beside}. The intervals do not settle whether the mix does that or "
        "chance: more requests of each class would."
    )


def _not_alone(classes: Sequence[str]) -> str:
    return f"Not measured alone: {', '.join(classes)}; so there is no inflation, and no index."


def _not_measured(what: Sequence[str]) -> str:
    return f"Not measured: {', '.join(what)}."


def _lengths_left_out(lengths: Sequence[int], why: str) -> str:
    left_out = ", ".join(f"{length:,}" for length in lengths)
    return f"Left out, for the model has no room: {left_out} tokens. {why}"


def _change(percent: float, **facts: float | None) -> str:
    """What changed from the base to a level under memory pressure."""
    figures = (
        ("completion", "completion", "%"),
        ("TTFT P99", "ttft_p99", "ms"),
        ("throughput", "output_tok_s", "tok/s"),
    )
    parts = [
        f"{label} {_four(now)} {unit} (base {_four(base)})"
        for label, name, unit in figures
        if (now := facts[name]) is not None and (base := facts[f"base_{name}"]) is not None
    ]
    told = ", ".join(parts) or "nothing of it was measured at both levels"
    return f"{percent:g} %: {told}."


def _pressure_workload(
    standard: bool, ttft_p99_ms: float | None, input_tokens: str, output_tokens: str, success_rate: float
) -> str:
    name = "Long Context" if standard else "documents and questions as of Long Context, with other lengths"
    criterion = (
        "no threshold of TTFT was held (memory-pressure.ttft_p99_ms)"
        if ttft_p99_ms is None
        else f"TTFT P99 <= {ttft_p99_ms:g} ms"
    )
    return (
        f"Workload: {name} ({input_tokens} in, {output_tokens} out). The base was searched for with it: "
        f"success rate >= {100 * success_rate:g} %, no system errors, {criterion}."
    )


SEARCHES: dict[str, Words] = {
    "search_not_ended": "The search did not come to its end.",
    "fewest_in_flight_failed": "With as few as {concurrency} in flight more than 1 % of the requests failed.",
    "system_never_full": (
        "With more than {concurrency} in flight requests fail, so what a full system does was not seen: it may do more."
    ),
    "search_given_up": "The search was given up: {tried} were {held} once, and then not.",
    "criteria_search_given_up": "The search was given up: levels met the criteria once, and then did not.",
    "throughput_of_filling_server": lambda share: (
        f"About {100 * share:.3g} % of a throughput at the highest load is missing: its run began with an idle server, and "
        "its requests last too long for its length. Give levels more time (throughput.duration_s)."
    ),
    "capacity_measured": lambda concurrency, gain, of="requests": (
        f"Measured with {concurrency} {of} in flight, so that the system is never idle; the last doubling added "
        f"{100 * gain:.2g} % to throughput, and the intervals' upper ends allow for as much again."
    ),
    "capacity_between": lambda kept, refused, unit=PER_SECOND: (
        f"The system kept up with {_four(kept)} {unit}, and not with {_four(refused)}."
    ),
    "capacity_not_sustained": lambda kept, refused, unit=PER_SECOND: (
        f"The system kept up with {_four(kept)} {unit}, and not with {_four(refused)}: what it does with a full queue lies "
        "outside of that, so the answer is the former."
    ),
    "limit_search_not_ended": "The search under a limit of latency did not come to its end.",
    "objectives_not_measured": lambda objectives: (
        f"No level measured {', '.join(objectives)}: no load is known to meet what was not measured."
    ),
    "search_doubles_and_bisects": lambda resolution: (
        f"The search doubles, and bisects until the gap is 1 or {100 * resolution:g} %, whichever is wider; "
        "the answer was run twice."
    ),
    "unsettled_taken_as_not_sustained": lambda rates: (
        f"Never settled by their intervals, and taken as not sustained: {_numbers(rates)}."
    ),
    "unsettled_taken_as_not_met": lambda levels: (
        f"Never settled by their intervals, and taken as not met: {_numbers(levels)}."
    ),
    "highest_load_sustained": "The highest load that was to be tried was sustained: the maximum lies above it.",
    "maximum_above_highest_load": "The maximum lies above the highest load that was to be tried.",
    "lowest_load_not_sustained": "Not even the lowest load was sustained.",
    "one_request_failed_the_criteria": "Not even one request at a time met the criteria.",
    "throughput_collapses": lambda concurrency, more, left: (
        f"More requests in flight make the system slower: with {more} it does {100 * left:.0f} % of what it does with "
        f"{concurrency}. In open loop nothing holds them back: what it sustains is that only until a queue forms by chance."
    ),
    "slower_with_more_in_flight": lambda of, concurrency, more, left: (
        (f"{of}: more" if of else "More")
        + f" requests in flight make the system slower: with {more} it does {100 * left:.0f} % of what it does with "
        f"{concurrency}. The maximum is that of a client that holds them back."
    ),
    "loads_beyond_collapse": lambda percents, left: (
        f"Once a queue has formed by chance, the system does no more than {left:.3g} % of the rate that is 100 %. At "
        f"{_percents(percents)} it may have met that or not, and another run may differ: take lower percentages."
    ),
    "throughput_collapses_with_backlog": lambda rate, left, unit=PER_SECOND: (
        f"A backlog makes the system slower: offered {_four(rate)} {unit}, it did {100 * left:.0f} % of the capacity at "
        "the end. An open loop near the capacity has such a backlog sooner or later."
    ),
    "throughput_still_rose": "Throughput still rose at the highest concurrency, {concurrency}.",
    "closed_loop_saturation_rule": lambda least_gain: (
        "This tool's own rule, for the draft names no saturation in closed loop: the system is full when twice as many "
        f"requests in flight add less than {100 * least_gain:g} % to throughput."
    ),
    "concurrency_levels": "Levels double, from {lowest} to {highest} at most.",
    "lowest_level_is_the_answer": (
        "The lowest level is the answer already: the throughput may be reached with fewer in flight."
    ),
    "highest_sustainable_rate": "the highest sustainable rate of draft 5.2, without objectives",
    "given_with_the_plan": "given with the plan",
    "no_level_measured": "No load level was measured.",
    "no_concurrency_measured": "No concurrency level was measured.",
    "no_pilot_measured": "Not even the pilot was measured.",
    "not_all_levels_measured": "Not all load levels were measured.",
    "levels_missing": "{missing} of the load levels were not measured.",
    "not_measured": _not_measured,
}
"""How a search for a load went, and which of its levels are missing."""

TTFT: dict[str, Words] = {
    "no_percentages_of_saturation": "The saturation rate was not found, so no percentage of it was measured.",
    "few_ttfts": "{of}: {samples} of {requests} requests have a TTFT.",
    "times_of_successes": "Times in ms; only requests that succeeded.",
    "p99_9_unreliable": "Fewer than {least:,} samples: P99.9 is not reliable (draft 5.1.4.3).",
    "p99_unreliable": "Fewer than {least:,} samples: P99 is not reliable either.",
    "empty_ranges_left_out": "Ranges without a sample are left out.",
    "components_by_server": (
        "By the server's own metrics, which leave out the network; ~ is an estimate from the buckets of a histogram."
    ),
    "components_by_answer": lambda rest=True: (
        "By the durations that the engine reports with each answer; this program cannot verify them."
        + (" The last row is TTFT less the others." if rest else "")
    ),
    "components_beyond_ttft": (
        "In {requests:d} of {of:d} answers these durations add up to more than TTFT by this program's clock: they are not its "
        "parts there, and what is left of TTFT leaves those answers out."
    ),
    "components_add_up": (
        "Their means add up to {parts_ms} ms, more than the mean TTFT of {ttft_ms} ms by this program's clock: they are not "
        "parts of it, or not of the same requests."
    ),
    "events_before_first_token": (
        "Other events came before the first token that is not white space; TTFT is to that token, of content, reasoning or a "
        "tool call."
    ),
}

THROUGHPUT: dict[str, Words] = {
    "without_latency_constraint": lambda binding: (
        "without latency constraint" + (f"; more is refused by: {binding}" if binding else "")
    ),
    "completions_keep_up": "the highest load at which completions keep up with arrivals",
    "bound_by": "more is refused by: {binding}",
    "bound_below_levels": lambda binding, least, unit=PER_SECOND: (
        f"not found: by the line through its levels the limit ({binding}) lies below {_four(least)} {unit}, the least load "
        "that was run"
    ),
    "bound_by_from_below": lambda binding, least, unit=PER_SECOND: (
        f"more is refused by: {binding}; without an interval: it would begin below {_four(least)} {unit}, the least load "
        "that was run"
    ),
    "not_bound": "the limit holds up to the maximum",
    "held_at_highest": "the limit holds at {rate:.4g} {unit}, the highest load that was tried under it: nearer to the "
    "maximum what a level meets of its queue is chance",
    "limit_levels_too_short": "levels of {requests} requests have no P99 that could be held against a limit",
    "missed_at_least_load": "missed at a tenth of the maximum already",
    "limit_not_found": "not found",
    "beyond_is_a_ratio": "Worst: the value by its limit, of the objective that is furthest beyond; above 1 it is missed.",
    "objectives_apart": "The first rows hold no latency objective; the last two do.",
    "no_objective_held": "The plan has no latency objective: the last two rows hold the draft's own ten-times rule.",
    "cached_and_not_prefilled": "they are counted as input and were not prefilled",
    "batches_inside_a_compound": "the batches of its engine are inside the boundary of a compound system",
    "batch_size_unknown": "no engine says how large a batch it allows: declare it with `throughput.max_batch`",
    "running_not_scraped": "the engine's metrics show no running requests",
    "running_of_batch": "{running:.4g} running requests on average, of a batch of {max_batch}",
    "running_above_batch": "{peak:.4g} requests ran at once: more than the batch of {max_batch} that was declared",
    "by_declared_accelerators": "by the declared number of accelerators",
    "no_accelerator_declared": "no accelerator is declared",
}

TRADEOFF: dict[str, Words] = {
    "no_capacity_rate": "The capacity was not found.",
    "level_of_highest_throughput": "the level of the highest throughput, {percent:g} % of capacity",
    "at_rate": "at {rate:.4g} {unit}",
    "latency_not_measured": "{latency} was not measured",
    "knee": _knee,
    "not_reached_knee": "not reached: {latency} P99 never exceeds 2 x {least_ms:.4g} ms, the least of all levels",
    "peak_not_reached": (
        "Neither a knee nor a fall of throughput was reached, and the highest level, {percent:g} %, may have been kept up "
        "with: the peak may lie beyond. Add levels, up to 120 % of capacity or more."
    ),
    "knee_not_settled": "The knee may be chance: no intervals settle where P99 exceeds twice its least; longer levels may.",
    "fall_not_settled": "The fall of throughput at the saturation point may be chance.",
    "knee_of_ttft": "Knee: of TTFT P99, the first level in ascending order; those of TPOT and E2E are extras (draft 5.3.4).",
    "not_reached_saturation": "not reached: throughput rises up to the last level, {percent:g} % of capacity",
    "first_fall_of_throughput": _fall,
    "not_asked_without_objectives": "not asked: the plan has no objectives",
    "optimum": _optimum,
    "no_level_meets_objectives": _optimum,
    "load_model_replaced": (
        "The plan's load is a {model} loop; this test needs an open one, and has Poisson arrivals (5.3.2)."
    ),
    "throughput_did_not_fall": "Throughput did not fall up to {percent:g} %; {most_percent:g} % is the most tried.",
    "p99_unreliable_at_levels": _unreliable_levels,
    "intervals_by_thirds": (
        "Where answers are long beside the run, the interval of throughput is by the spread of its three thirds."
    ),
    "no_throughput_at_levels": lambda percent: f"No throughput was measured at {_percents(percent)}.",
}

ITL: dict[str, Words] = {
    "no_saturation_rate": "The saturation rate was not found.",
    "no_gaps_at_levels": _no_gaps,
    "no_long_answer_streamed": "no answer of at least {least} tokens was streamed",
    "distribution_shape": _shape,
    "levels_are_shares_of_saturation": "Levels are shares of the saturation rate.",
    "gaps_of_long_answers": "Over answers of at least {least} tokens; TTFT is no part of it.",
    "gaps_by_the_servers_stamps": "Gaps between the instants at which the server reports to have emitted its tokens "
    "(draft 4.6.3, option C), of all answers: without the network and the client, and not verified by it.",
    "jitter_and_pause": "Jitter is the standard deviation of the gaps of one answer, a pause its longest gap.",
    "itl_method": _itl_method,
    "itl_stamps_disagree": lambda levels, share: (
        f"At {', '.join(levels)} tokens arrived further apart, by more than {100 * share:g} % on average, than the server's "
        "stamps say: what stands for the test is the server's word against this program's clock."
    ),
    "itl_option_not_measured": _no_option,
    "gaps_distributed": (
        "Each token has the arrival time of its chunk (draft 4.6.3, option B): this understates the variance of ITL."
    ),
    "short_answers_left_out": _short_answers,
    "few_gaps": (
        "At {percent:g} %: {answers} answers and {gaps:g} gaps; draft 5.4.2 wants at least {least_answers} and {least_gaps:,}."
    ),
}

CAPACITY: dict[str, Words] = {
    "lowest_that_failed": "the lowest that did not meet the criteria: {concurrency}",
    "no_concurrency_met_the_criteria": "no concurrency met the criteria",
    "tokens_in_flight_by_client": "input and output so far, over all requests in flight, by the client's records",
    "levels_in_order_run": "Levels in the order they were run.",
    "maximum_concurrency": "Maximum concurrent requests meeting criteria: {concurrency}",
    "system_errors": lambda errors: (
        f"Errors are out-of-memory and other system errors as a client sees them: {', '.join(errors)}. "
        "Timeouts and refusals only lower completion."
    ),
    "no_ttft_threshold": "No threshold of TTFT P99 was given (capacity.ttft_p99_ms): none was held (draft 5.5.2).",
    "ttft_threshold": "Threshold held: TTFT P99 <= {ms:g} ms, by its 95 % interval.",
    "levels_too_short": _too_short,
    "answers_as_in_workload_file": (
        "The workload was made before, so answers have its lengths; draft 5.5.2 wants them to be of one."
    ),
    "answers_of_one_length_in_classes": _answers("classes have lengths of their own"),
    "answers_of_one_length_in_prompt_file": _answers("prompts that name a length of their own keep it"),
    "answers_of_one_length": _answers("workload has {planned}"),
    "capacity_above_maximum": _capacity_above,
}

FAIRNESS: dict[str, Words] = {
    "no_saturation_of_mix": "The highest rate sustained of the mix was not found, so there is no load to mix classes at.",
    "mix_not_measured": "The mix was not measured.",
    "no_isolated_cost": "no isolated TTFT to normalise by",
    "isolated_overloaded": "without meaning: a class alone was more than the system sustains, or may have been",
    "class_alone_unsettled": (
        "Class {class} alone ({rate:.4g} requests/s): a queue grew, and the run does not settle whether the system sustains "
        "that: give it more time (fairness.duration_s), or lower the load."
    ),
    "class_alone_overloaded": "Class {class} alone ({rate:.4g} requests/s) is more than the system sustains: lower the load.",
    "mix_overloaded": (
        "The system fell behind with the mix at {rate:.4g} requests/s, {percent:g} % of what it was found to sustain: it was "
        "another by then than with each class alone, or its capacity is less. Lower the load (fairness.percent)."
    ),
    "significantly_unfair_index": "significant unfairness: below {limit:g}",
    "fair_index": "{limit:g} or above",
    "unfair_alone_index": "below {limit:g}, but little below that of the classes alone",
    "unfair_unsettled_index": "below {limit:g}; whether by the mix or by chance, the intervals do not settle",
    "unfairness_of_chance": "what chance alone comes to",
    "mean_slowdown": "of TTFT / what the prompt's length takes alone, the mean",
    "over_medians": "over {medians:g} medians of its TTFT in the mix",
    "median_mix_over_alone": "of the median, mix / alone",
    "jain_over_requests": (
        "The index is over all successful requests: TTFT / the TTFT expected of a prompt of that length when its class is "
        "alone, by a curve through its isolated run."
    ),
    "jain_by_chance": (
        "Requests of one length wait by chance for others of their class, so the index of the classes alone is below 1 too: "
        "what lies between the two is the mix's doing."
    ),
    "starvation": (
        "Starvation: a wait for the first token of over {medians:g} times the median of the class in the mix. A request that "
        "never got one counts once it has waited that long. Against the median alone only requests with a first token count."
    ),
    "inflation": "TTFT in the mix / TTFT of the class alone at as many offered tokens a second.",
    "offered_tokens": "Offered tokens a second are input and output together, by the means of the class's lengths.",
    "mix_offered": (
        "The mix was offered at {rate:.4g} requests/s, {percent:g} % of the highest rate sustained of it, for {seconds:.0f} s."
    ),
    "classes_drawn": _classes,
    "significantly_unfair": "Jain's index of {index:.3f} is below {limit:g}: significant unfairness (draft 5.6.4).",
    "unfair_unsettled": _unfair_unsettled,
    "unfair_alone": (
        "Jain's index of {index:.3f} is below {limit:g}, but that of the classes alone is {alone:.3f}: most of it is chance "
        "within the classes, not the mix."
    ),
    "class_behind": (
        "{class} requests waited {slowdown:.3g} times what their lengths take alone, {other} ones {least:.3g} times (means)."
    ),
    "class_starved": (
        "{percent:.3g} % of the {class} requests waited over {medians:g} times their class's median alone: the class starves."
    ),
    "few_requests_of_class": "{class}: {completed} requests completed of {requests} asked for.",
    "classes_not_measured_alone": _not_alone,
}

MEMORY_PRESSURE: dict[str, Words] = {
    "percent_of_base_concurrency": "100 % is the base: the highest concurrency that met the criteria of the search.",
    "errors_seen_by_client": "Errors are out-of-memory and other system errors, as a client sees them.",
    "no_pressure_level_measured": "no level was measured",
    "capacity_of_this_workload": "of the search on this test's workload",
    "search_found_none": "the search found none",
    "degradation_rule": (
        "graceful: at every level at least the share that fits completes (100 / level), at half of the base's throughput or "
        "more; the tool's own rule"
    ),
    "fewer_than_two_p99": "no two levels have a P99 of TTFT",
    "of_the_p99s_intervals": "its interval is from the ends of both P99s' intervals, which is wider than need be",
    "p99_without_interval": "without an interval: one of the two P99s has none",
    "change_from_base": _change,
    "pressure_workload": _pressure_workload,
    "pressure_levels": (
        "Each level lasted {seconds:g} s in closed loop, and at least as long as {requests:g} requests take at the rate of "
        "the capacity; requests in flight at its end were waited for, up to their time "
        "limit; those cut off count neither as completed nor as failed."
    ),
    "preemption_not_measured": (
        "Preemption was not measured: neither a client nor the server's metrics, as far as known, tell of it."
    ),
    "preemptions_counted_by": lambda sources: (
        f"Preemptions are by the {' and '.join(sources)}, over the load of each level, lead-in and lead-out included."
    ),
    "preemption_events_only": (
        "The server counts how often requests were preempted, not how many were: rate, recovery and loss were not measured."
    ),
    "no_base_capacity": _base_not_found,
    "base_above_maximum": (
        "The capacity lies above the maximum of {maximum:g} that was to be tried: the percentages are of that. "
        "Give a higher memory-pressure.maximum, or a threshold with memory-pressure.ttft_p99_ms."
    ),
    "pressure_levels_missing": "{missing} of {levels} levels were not measured.",
}

LONG_CONTEXT: dict[str, Words] = {
    "time_per_1k_tokens": "Time per 1K tokens is mean TTFT / mean input tokens as counted by the server * 1000.",
    "throughput_at_concurrency": "Throughput is that with {concurrency} in flight: no maximum was looked for.",
    "no_length_measured": "No length was measured.",
    "lengths_left_out": _lengths_left_out,
    "throughput_of_a_backlog": (
        "With a backlog that never empties: the number in flight doubles until that adds less than 4 %."
    ),
    "no_maximum_at_lengths": _no_maximum,
    "few_lengths": "fewer than {least} lengths were measured",
    "not_fitted": "Not fitted: fewer than {least} lengths were measured.",
    "log_log_fit": "least squares of ln TTFT over ln tokens",
    "lowest_aicc": "lowest AICc of linear, power and quadratic",
    "on_linear_scale": "on the linear scale",
    "slope_of_linear_model": "slope of the linear model",
    "too_few_lengths_for_aicc": "AICc needs at least five lengths, of the quadratic model six",
}

WORDS: dict[str, Words] = (
    STEPS | SEARCHES | TTFT | THROUGHPUT | TRADEOFF | ITL | CAPACITY | FAIRNESS | PREFIX_CACHE | MEMORY_PRESSURE
    | LONG_CONTEXT | GUARDRAIL | COLD_START | REPEATED | TASKS
)  # fmt: skip
"""By code. A test holds them to the codes that procedures have."""
