"""The words for what tests note that bring the system into states: one entry a code."""

from __future__ import annotations

from inferometer.report.campaign.step_notes import PER_SECOND
from inferometer.report.fact_words import Words


def _at_equal_load(
    first: float,
    then: float,
    loads: int,
    rate: float | None,
    concurrency: int | None,
    unit: str = PER_SECOND,
) -> str:
    load = f"{rate:.4g} {unit}" if rate is not None else f"{concurrency} in flight"
    others = f" So it is at {loads - 1} other {'load' if loads == 2 else 'loads'}." if loads > 1 else ""
    return (
        f"Two runs at {load} came to {first:.4g} and {then:.4g} output tokens/s, beyond the intervals of both: either the "
        "system changed, or what it does at one load varies by more than runs of this length can tell. Levels cannot be held "
        f"against each other.{others}"
    )


REPEATED: dict[str, Words] = {
    "no_headline": "Nothing was measured that answers what the test asks.",
    "drifted_between": (
        "{latency} P50 of {of} was {first:.4g} ms at first and {again:.4g} ms at the end: the system changed during the test, "
        "and what it did by itself is not told from what the test compares. Measure again on a system that stays as it is."
    ),
    "changed_at_equal_load": _at_equal_load,
    "base_not_held": (
        "At {percent:g} % of what the system was found to sustain ({rate:.4g} {unit}) only {completed:.3g} % of the "
        "requests ended: it sustains less than that now, so the percentages are of another system."
    ),
    "not_repeated": (
        "{of} was not measured again at the end, so a change of the system during the test would not be seen."
    ),
    "repeated_too_short": (
        "{of} was measured again at the end, but {latency} of its requests cannot tell a change of the system from chance: "
        "they are too few, or what one meets depends too long on those before it. Longer runs can tell."
    ),
}


PREFIX_CACHE: dict[str, Words] = {
    "no_saturation_without_cache": "The highest rate sustained without cache was not found, so no pass was made.",
    "cache_not_shown": (
        "Nothing shows that the prefix cache was switched: the server reports no cached tokens, neither in usage nor in "
        "metrics, and TTFT fell by no more than chance. Have it report them."
    ),
    "control_quicker": (
        "Requests that share nothing with others were quicker with the cache by {reduction:.3g} %, those that share by "
        "{sharing:.3g} %, though a cache saves the former nothing: something else was switched as well, so the reduction is "
        "not known to be the cache's."
    ),
    "of_the_quickest": "of P{percent:g}, of the warm pass: those that waited least for others, and that no cache helps",
    "hits_by_usage": "of the shared prefixes' tokens, by the server's usage",
    "hits_not_reported": "the server does not say what it took from its cache",
    "of_the_median": "of the median",
    "output_in_closed_loop": "output tokens a second in closed loop",
    "throughput_not_measured_both_ways": "throughput was not measured both ways",
    "cold_cache": (
        "Cold: enabled, with a warm-up that shares nothing with the measured requests, so that these alone fill the cache. "
        "Draft 4.5.1's population is left out on purpose."
    ),
    "warm_cache": "Warm: the warm-up begins with the prefixes of the measured requests.",
    "empty_hit_rate": "An empty hit rate: the server's usage does not say what came from its cache.",
    "throughput_without_search": (
        "Closed loop at one concurrency, no search: what the system does there, not the most it can."
    ),
    "cache_passes": "All passes at {rate:.4g} {unit}, {percent:g} % of the highest rate sustained without cache.",
    "planned_workload_shares": "The workload is the plan's, whose requests have prefixes in common.",
    "recommended_workload_shares": (
        "The plan's requests have nothing in common, so the workload is the recommended one, Code Completion."
    ),
    "shared": "Shared: {sharing}.",
    "passes_differ": "The passes did not send the same requests.",
}


GUARDRAIL: dict[str, Words] = {
    "no_saturation_without_guardrails": (
        "The highest rate sustained without guardrails was not found, so no level was measured."
    ),
    "no_configuration_with_guardrails": (
        "The system could be brought into no configuration with guardrails, so nothing was compared."
    ),
    "filters_not_shown": lambda configurations: (
        f"Nothing shows that filters were switched in {', '.join(configurations)}: the system did not confirm it, nothing was "
        "refused or held back there alone, and neither TTFT nor end-to-end latency surely rose."
    ),
    "refused": "{why}",
    "configuration_missing": "not measured",
    "configuration_left_out": "{configuration}: not measured. {why}",
    "configuration_not_measured": "{configuration} was not measured: {why}",
    "of_the_medians": "of the medians",
    "medians_not_told_apart": (
        "of the medians; no interval, for the requests are too few, or what one meets depends too long on those before it: "
        "longer levels give one"
    ),
    "of_the_maxima": "of the most output tokens per second of each",
    "within_chance": "within chance: the interval contains 0",
    "configuration_still_rose": (
        "{configuration}: throughput still rose at {concurrency} requests in flight, the most that was tried; its maximum "
        "is higher."
    ),
    "maximum_by_climb": (
        "Requests in flight double in closed loop until that adds less than 4 %; measured there, with the same requests in "
        "every configuration."
    ),
    "differences_of_statistics": (
        "Differences of a statistic with and without the guardrails, not statistics of differences."
    ),
    "output_filter_like_total": "The draft has no formula for the output filter: it is taken like the total.",
    "output_without_search": (
        "Output tokens a second with {concurrency} requests in flight, without a search for the most the system can."
    ),
    "same_rates_for_all": (
        "Every configuration was offered the same rates: percentages of {rate:.4g} {unit}, which the baseline sustains."
    ),
    "planned_workload": "The workload is the plan's, {workload}.",
    "recommended_conversation": "The plan chose no workload, so it is the recommended one, Conversation.",
    "benign_content": (
        "Content is benign: random words or text of the workload's kind, nothing that a filter is to stop."
    ),
    "content_of_the_file": (
        "Content is the file's: whether a filter is to stop any of it is not known here. Draft 5.10 wants content that is let "
        "pass; what was refused is counted, and in no overhead."
    ),
    "benign_requests_refused": (
        "{configuration}: {requests} requests were refused at a level; refused requests are no samples of latency, "
        "and overheads are of the requests that were answered with and without the filters."
    ),
}


COLD_START: dict[str, Words] = {
    "cold_start_without_warm_up": (
        "Cold start measurement: the warm-up was skipped, and nothing was generated before the first request."
    ),
    "cold_start_figures": (
        "Model load time is from the start to the first healthy answer; cold start latency is the TTFT of the first request "
        "after that, with nothing else in flight."
    ),
    "load_on_first_request": "A server that loads its model on the first request has that load in the latency.",
    "starts_incomplete": "{complete} of {starts} starts were measured whole.",
    "median_of_starts": "median of {starts} starts",
    "load_is_a_setting": "the setting `load` of the simulated engine: nothing was loaded",
    "load_not_simulated": (
        "nothing was loaded: the simulated engine is there at once, and a load takes the time of its setting `load`"
    ),
    "no_start_measured": "no start was measured",
}
