"""The words of a benchmark's remarks and reasons, by their codes."""

from __future__ import annotations

from collections.abc import Iterable

from inferometer.documents.bench import Remark
from inferometer.report.bench.names import Names
from inferometer.report.check_sentences import CHECKS
from inferometer.report.figures import clean, figure, share

SENTENCES: dict[str, str] = {
    # The gate, and the machine.
    "pressure_critical": "memory pressure is critical: nothing measured now would be the engine's",
    "speed_limited": "the processor may run at {percent} % of its speed only, and {least} % is the least to measure at",
    "gate_unread": "this system shows no {what}: the pre-flight gate did not look at it",
    "gate_of_client": "the engine runs on another machine: memory pressure and speed limit were read of the client's alone",
    "gate_overridden": "measured although the pre-flight gate refuses (--force)",
    "pressure_remains": "memory pressure was still {level} when the cool-down ended",
    "throttled": "the processor's speed limit fell to {percent} % meanwhile: thermal throttling",
    "power_unread": "its power is not known: {why}",
    "power_of_several": "its power is not known: {meters} cover the same, and nothing says which of them is the engine's; "
    "name the engine's own with --power NAME=METER",
    "power_elsewhere": "its power is not known: the engine is on another machine, of which only a wall meter could tell",
    "client_throttled": "the speed limit of the client's processor fell to {percent} % meanwhile; the engine's, on another "
    "machine, is not known",
    "duplicate_processes": "{number} instances of {engine} run on this machine and compete: processes {processes}",
    # An engine that could not be measured.
    "unreachable": "no engine answers there: {why}",
    "model_open": "choose a model with --model: the engine lists {offered}",
    "models_unlisted": "nothing at {url} lists a model, as engines do: is an engine there? If so, name its model with --model",
    "model_missing": "the model {model} is not one of this engine, which lists {offered}: {why}",
    "warm_up_hung": "the engine did not answer its first generation in time: {why}",
    "warm_up_failed": "the engine failed its first generation: {why}",
    "engine_failed": "the engine failed: {why}",
    "plan_refused": "this cannot be measured there: {why}",
    "instrument_failed": "the instrument failed: {why}",
    "not_measured": "{engine} was not measured: the benchmark ended before its turn",
    # Models.
    "model_not_listed": "the engine does not list {model}, but answered: it may have used another model",
    "load_refused": "the engine refused to load {model}: {why}",
    "unload_refused": "the engine refused to unload {model}, which may still take memory from the next one: {why}",
    "unload_none": "this engine, as it was started, cannot unload its model: it stays in memory, also in later turns",
    "unload_unknown": "there is no known way to unload this engine's model: it stays in memory, also in later turns",
    "other_engine": "this is called {expected}, and what answers there is {found}",
    "several_engines": "more than one engine answers at this address ({found}): which of them a figure is of is unknown",
    "same_address": "{first} and {second} have one address, {url}: one of them is not what it is called",
    "same_engine": "{first} and {second} are one engine, at {url} (an A/A test): what sets them apart is chance, their "
    "order, or what the engine still had in its cache",
    # Generations.
    "generations_failed": "{failed} of {sent} generations failed, {planned} were planned: {outcomes}",
    "discarded": "{number} of {of} generations are in no statistic: {reason}",
    "tokens_estimated": "the engine did not count the tokens of {number} of {of} generations: a quarter of the characters "
    "stands in, which may be 25 % off",
    "durations_differ": "the engine's durations contradict each other in {number} of {of} generations: the client's are used",
    "ttft_high": "TTFT was over 60 s in {number} of {of} generations: swapping, or an error",
    "speed_high": "{number} of {of} generations were faster than 500 tokens/s, which is not plausible on this machine",
    "clocks_differ": "{prompt}: the engine reports {own} ms for {what}, and by the client's clock it took {client} ms: one of "
    "the two is wrong",
    "early_text": "{prompt}: in every run nothing followed the first text for {pause} ms, more than ten usual gaps: TTFT is "
    "hardly that of the answer, and the speed holds the pause",
    "late_end": "{prompt}: in every run the stream ended {wait} ms after its last text: the speed holds that wait, by the "
    "definition of M5",
    "faster_later": "{prompt}: all later runs were faster than the first, {times} times as fast in the median: the engine "
    "repeats answers that it keeps, or was still warming up",
    "held_back": "{prompt}: TTFT was {ttft} ms in the median, and a whole answer of one token took {one_token} ms: something "
    "between holds answers back, or the engine generates first what it does not send, and the speed is not the engine's",
    "answers_repeated": "{prompt}: all runs were faster than an answer to a new text, {times} times as fast in the median: the "
    "engine, or something before it, sends answers that it has kept from before",
    "drift": "{prompt}: the speed fell with each of {runs} runs, by {share} in all, as in thermal drift",
    "prompts_cached": "by the engine's count, {number} of {of} prompts were mostly in its prefix cache: their TTFT is that of "
    "a repetition",
    "sooner_later": "TTFT of the first run of {prompts} was twice that of all later ones or more, as with a prefix cache: the "
    "median is that of a repetition",
    "fill_missed": "{prompt} was sized to {wanted} tokens, and this engine counts {counted}: compare it by that size",
    "prompt_too_long": "{prompt} and its answer exceed the model's context of {context} tokens: left out",
    # A cross-validation.
    "engine_unknown": "the engine was not recognised ({found}): name it with --engine",
    "counters_unknown": "no counters of this engine are known: there is no row for them",
    "counters_absent": "counters that its adapter names are not at {path}, or without a number: {families}",
    "counters_went_back": "counters went back while it was measured, and are left out: {families}",
    "counters_of_others": "the engine counted {counted} first tokens and {sent} requests were sent: its counters are left out",
    "counters_of_failed": "{failed} of {sent} streamed requests were not answered, and the engine's counters hold them: they "
    "are left out",
    "counters_late": "the engine counted the writing time of {counted} answers and {sent} requests were sent: its counters "
    "give no speed",
    "counters_unchecked": "neither first tokens nor tokens of answers show whether the engine's counters are of these requests "
    "alone: they are left out",
    "counters_differ": "the engine's counters grew by {counted} tokens, and its answers report {usage}: they are left out",
    "lengths_differ": "answers are not of one length: totals and speeds of different requests differ by that, too",
    "timings_absent": "the engine's answers have no timings of its own",
    "tokens_not_reported": "the engine did not report tokens in every answer: those without have no speed",
    # The agentic benchmark.
    "duplicates": "the engine runs more than once, as processes {processes}: end all but one, or use --force",
    "phases_failed": "these phases were not answered: {phases} ({outcomes}); --long-tokens makes the long ones shorter",
    "context_short": "even the short phases do not fit: they need about {needed} tokens and the model takes {context}; serve "
    "it with a longer context",
    "long_left_out": "the model takes {context} tokens: the long phases are left out",
    "long_shortened": "the model takes {context} tokens: the long message has {tokens} instead of {wanted}",
    "restart_missing": "no command to restart it was given, and --restart-required asks for one: --restart {engine}=COMMAND",
    "restart_command_failed": "the command to restart the engine failed (its output is beside the result): the engine was "
    "not restarted",
    "restart_command_hangs": "the command to restart the engine did not return in {seconds} s: the engine was not restarted",
    "restart_old_server_stays": "the command returned, and the old server was never gone: it was not restarted, and its cache "
    "may be full",
    "restart_not_healthy": "the engine was not healthy {seconds} s after its restart began",
    "cached_impossible": "the engine reports {share} of the prompt of {phase} as cached, whose text is new: its count is "
    "wrong, or these prompts were sent before",
    "cached_but_slow": "the engine reports {share} cached in {phase}, yet TTFT is {ratio} of that without the cache: its count "
    "is wrong, or reading prompts is only a small part of TTFT here",
    "uncached_but_fast": "the engine reports {share} cached, yet TTFT is only {ratio} of that of the cold phases: its count "
    "may be wrong",
    "prefix_tests_differ": "by {no} alone the verdict would be no, and by {yes} it would be yes: an engine that keeps whole "
    "prompts only has nothing of prefix-test-1, which is new; a cache that was lost, or is another replica's, is missing "
    "anywhere",
    "ttft_floor": "at least {share} of TTFT of the cold phases is not reading the prompt, as long-context shows: TTFT alone "
    "cannot tell reuse here",
    "cold_slow": "TTFT of the prefix tests is {ratio} of that of cold, but {second} of that of cold-prefix, which is as "
    "cold: the first request was slow for another reason, and by cold-prefix the verdict is {verdict}",
    "early_first_text": "nothing followed the first text of {phases} for {pause} ms, more than ten usual gaps: it was hardly "
    "the answer's, and by the text that came next the verdict by TTFT would be {verdict}",
    # Answers.
    "answers_differ": "{prompt}: its answers share {share} of their words with those of {against}: is it the same model?",
    "early_stop": "{prompt}: {number} of {of} answers ended by themselves with less than half the words of the others",
    "loop": "{prompt}: {number} of {of} answers end in words that repeat themselves",
    # The ranking.
    "ahead": "{first} is ahead of {second}, in the median by {share}: their intervals do not overlap",
    "ahead_within": "{first} is ahead of {second}, in the median by {share}, but another engine ties with both: they share "
    "its place",
    "opposite": "{first} and {second} tie: the first has the better median, and the second the better mean over prompts",
    "overlap": "{first} and {second} tie: their intervals overlap",
    "tokens_not_counted": "{engine} has no place by speed: its tokens are an estimate",
    "place_invalid": "{engine} has no place: its result is INVALID ({why}), so its figures are not to be compared",
    "place_without_interval": "{engine} has no place: it has no interval, so nothing shows what is ahead of it or behind",
    "place_unsure": "the place of {engine} is not certain: its result is INCONCLUSIVE ({why})",
}

DISCARDED = {
    "not_streamed": "the answer came whole, so there is no first token",
    "no_tokens": "the engine counted no token",
    "too_short": "the generation took less than 10 ms",
}


REASONS = {
    "nothing_counts": "no generation counts",
    "no_interval": "a prompt with fewer than two samples that count",
    "not_finished": "its turn did not come to its end",
    "clocks_differ": "the engine's durations are not those of the client's clock",
    "early_text": "a pause after the first text",
    "faster_later": "all later runs far faster than the first",
    "held_back": "text that came long after the engine had generated it",
    "answers_repeated": "answers far faster than one to a new text",
    "no_verdict": "the prefix tests allow none",
    "verdict_undecided": "the interval over the repetitions holds several verdicts",
    "early_stop": "answers far shorter than asked for",
    "memory_pressure": "memory was swapped out",
    "duplicate_processes": "the engine ran more than once",
    "cached_impossible": "new text reported as cached",
    "cached_but_slow": "reported as cached, yet slow",
    "uncached_but_fast": "reported as not cached, yet fast",
    "prefix_tests_differ": "one prefix test says yes and another no",
    "cold_slow": "the first request was slow for another reason",
    "ttft_floor": "most of TTFT is not reading the prompt",
    "early_first_text": "a first text that came long before the answer",
}
"""Why a result is not VALID, beside the checks of its run."""
_NAMES = ("engine", "first", "second", "against")
"""Facts that may be an engine's label."""


def worded(remark: Remark, names: Names | None = None) -> str:
    """A remark as a sentence without its full stop. A code without words is shown as it is. `names`: what to call engines."""
    sentence = SENTENCES.get(remark.code)
    if sentence is None:
        return clean(f"{remark.code} {dict(remark.facts)}")
    facts = {name: _fact(name, value) for name, value in remark.facts.items()}
    if names is not None:
        facts |= {name: names.get(facts[name], facts[name]) for name in _NAMES if name in facts}
    if remark.code in ("place_invalid", "place_unsure") and "why" in facts:
        facts["why"] = reasons(facts["why"].split(", "))
    return clean(sentence.format_map(_Facts(facts)))


def reasons(codes: Iterable[str]) -> str:
    """Why a result is not VALID: each code with what it means."""
    return ", ".join(_reason(code) for code in codes)


def _reason(code: str) -> str:
    if code in REASONS:
        return f"{code}: {REASONS[code]}"
    check = CHECKS.get(code)
    if check is None or check.title.lower() == code.replace("_", " "):
        return clean(code)
    return f"{code}: {check.title.lower()}"


class _Facts(dict[str, str]):
    """A fact that a remark does not have is unknown."""

    def __missing__(self, name: str) -> str:
        return "unknown"


def _fact(name: str, value: str | float | None) -> str:
    if value is None:
        return "unknown"
    if name == "reason":
        return DISCARDED.get(str(value), str(value))
    if isinstance(value, str):
        return value
    return share(value) if name == "share" else figure(value, trim=True)
