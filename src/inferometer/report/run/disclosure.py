"""How a run was measured: the rows a reader needs to judge or repeat it, for Markdown and HTML alike.

The draft makes these mandatory: tokenizer and counting rule (4.4), seed and lengths (4.3.3), chunking and ITL option (4.6),
clocks (4.7), guardrails (4.8), warm-up (4.5), all five TTFT percentiles with their sample count (5.1.4), prefix caching
(5.1.2.3), deviations (appendix C). What was not declared or not measured is reported in those words: a blank would read as
"none". All text that came from outside passes `figures.clean`.
"""

from __future__ import annotations

from inferometer.documents.load import TraceAccount
from inferometer.documents.summary import (
    InstrumentAccount,
    OutputLengths,
    PromptLengths,
    RequestCounts,
    Summary,
    TokenAccount,
    TokenizerAccount,
    WarmUp,
    WarmUpProbes,
    Window,
)
from inferometer.documents.workload import SessionFile
from inferometer.measure.itl_shape import ItlShape
from inferometer.measure.lengths import Spread
from inferometer.measure.steady import Steady
from inferometer.metrics.catalogue import Metric, Rate
from inferometer.metrics.statistics import Stats
from inferometer.plan.declarations import BOS_EOS, NO_ADJUSTMENT, TOOLS, UNCOUNTED
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import AnyRows
from inferometer.report import checks
from inferometer.report.figures import (
    THIN,
    UNDECLARED,
    UNKNOWN,
    Row,
    clean,
    figure,
    interval,
    moment,
    seconds,
    share,
    statistic,
    text,
)
from inferometer.report.run import round_trip, system_tokens
from inferometer.report.run.rows import guardrails, server
from inferometer.report.workload import best_hits, disclosed_rows

ITL_METHODS = {
    "direct": "direct: over 90 % of the events carry one token and arrive alone, each gap between events is a gap between "
    "tokens (draft B.2.1)",
    "chunk": "chunk: ITL is not measured, gaps are times between chunks, which may carry several tokens (draft 4.6.3, "
    "option A)",
}

SPECIAL_TOKENS = {False: f"{BOS_EOS}; {TOOLS}", True: f"{UNCOUNTED}; {TOOLS}"}
"""Draft 4.4.3; True: no tokenizer was declared."""

CLOCKS = {
    "kernel": "kernel receive time of the bytes that complete each event (SO_TIMESTAMPNS), put on the monotonic clock",
    "user": "monotonic clock of the client, read right after each poll and before any decoding",
    "modelled": "simulated: the model's own instants in virtual time, stamped as by the kernel of a client that reads late",
    "virtual": "simulated: the model's own instants in virtual time; no clock was read",
}


def load(summary: Summary) -> str:
    """The load in a few words: `open loop, 20 requests/s, poisson arrivals`."""
    offered = summary.load.offered
    if summary.load.model == "closed":
        return f"closed loop, {text(offered.concurrency, 'an unknown number')} in flight"
    arrival = offered.arrival or summary.plan.load.arrival
    if arrival == "trace":
        mean = offered.rate
        often = "all at once" if mean is None else f"{text(mean)} requests/s on average"
        return f"open loop, arrivals of a trace, {often}"
    burstiness = offered.burstiness or summary.plan.load.burstiness
    process = "Poisson" if arrival == "poisson" else text(arrival)
    words = f"open loop, {text(offered.rate)} {text(offered.rate_of, 'requests')}/s, {process} arrivals"
    if summary.load.model == "users":
        each = f"{text(offered.user_rate)} requests/s each"
        words = f"{text(offered.users)} users, {each}, who wait for their answers, {process} arrivals"
    return f"{words} (burstiness {text(burstiness)})" if arrival == "gamma" else words


def measured(summary: Summary) -> str:
    """One sentence: how many requests, to what, in which load, of which lengths, for how long."""
    sut, requests = summary.sut, summary.requests
    return (
        f"{figure(requests.sent)} requests to {text(sut.model, 'a model of unknown name')} "
        f"at {server(sut, simulated=summary.run.simulated)} "
        f"({text(sut.api)}, {'streamed' if sut.stream else 'not streamed'}, {text(sut.protocol)}), "
        f"{load(summary)}{_lasting(summary)}.{_lengths(summary)}"
    )


def _lengths(summary: Summary) -> str:
    """Where the lengths of prompts and answers come from."""
    planned = summary.plan.workload
    if summary.load.trace is not None:
        return f" Lengths are those of the trace {clean(summary.load.trace.file)}."
    if summary.workload.prompts is not None:
        return f" Prompts from the file {clean(summary.workload.prompts.file)}."
    if summary.workload.sessions is not None:
        return f" Recorded sessions from the file {clean(summary.workload.sessions.file)}."
    if summary.by_class:
        return f" Requests of {figure(len(summary.by_class))} classes."
    if planned.input_tokens is None or planned.output_tokens is None:
        return ""
    return f" Prompts of {text(str(planned.input_tokens))} tokens, answers of {text(str(planned.output_tokens))} tokens."


def _lasting(summary: Summary) -> str:
    duration = summary.window.duration_s
    return "" if duration is None else f", in {seconds(duration)}"


def requests(summary: Summary) -> str:
    """How the requests ended."""
    counts = summary.requests
    ended = (
        f"{figure(counts.sent)} sent, {figure(counts.completed)} completed, {figure(counts.failed)} failed, "
        f"{figure(counts.cancelled)} cancelled"
    )
    classes = ", ".join(f"{clean(name)} {figure(count)}" for name, count in counts.by_error.items())
    return ended + (f" (failures: {classes})" if classes else "")


def of_those_answered(sent: int, answered: int) -> str:
    """Of how many requests latencies are, beside the count of draft C.1, where that is of more."""
    return f"{figure(answered)} of {figure(sent)} requests were answered, and latencies are of these"


def deviations(summary: Summary) -> list[str]:
    """Where the run parts from the methodology: in everything if it was simulated; every check that did not pass, and every
    declaration that is missing."""
    found = [f"{word}: {means}" for word, means in checks.marks(summary)]
    found += [
        f"{checks.title(check)}: {checks.sentence(check)}"
        for check in checks.ordered(summary.verdict.checks)
        if check.status in ("fail", "unsure", "note")
    ]
    found += [f"Workload: {clean(part)}." for part in summary.workload.deviations]
    sut = summary.sut
    names = {
        "boundary": "SUT boundary",
        "software": "software",
        "accelerator": "hardware",
        "prefix_caching": "prefix caching",
    }
    missing = [words for name, words in names.items() if getattr(sut, name) is None]
    if sut.guardrails.input_filter is None or sut.guardrails.output_filter is None:
        missing.append("guardrails")
    if missing:
        found.append(f"Not declared: {', '.join(missing)}.")
    return [*found, *_unspecified(summary)]


def _unspecified(summary: Summary) -> list[str]:
    """What of draft 4.3.1 is missing (D-4.3-custom-full)."""
    about = summary.workload
    lacking = [
        f"{clean(item.name).lower()} ({clean(item.id)})" for item in about.items if item.id in about.missing
    ]
    return [f"The workload is not fully specified (draft 4.3.1): {', '.join(lacking)}."] if lacking else []


def method(summary: Summary) -> list[Row]:
    """The mandatory disclosures."""
    return [*_requested(summary), *_counted(summary), *_timed(summary)]


def _requested(summary: Summary) -> list[Row]:
    trace = summary.load.trace
    planned = summary.plan.workload
    named = text(planned.name) + (f", based on {text(planned.based_on)}" if planned.based_on else "")
    return [
        ("Load", load(summary)),
        ("Requests", requests(summary)),
        ("Workload", f"{named}{_made_of(summary)}" if trace is None else "lengths of the trace"),
        *((clean(item.name), text(item.value, UNDECLARED)) for item in summary.workload.items),
        *disclosed_rows(summary.workload),
        *([] if trace is None else _trace(trace)),
        ("Seed", clean(planned.seed)),
    ]


ORDERS = {
    "file": "in the file's order",
    "shuffled": "in a drawn order",
    "sampled": "drawn with replacement",
}


def _made_of(summary: Summary) -> str:
    """Classes, or the file the prompts are from and how often it was gone through."""
    file, sent = summary.workload.prompts, summary.requests.sent
    if summary.workload.sessions is not None:
        return _sessions_of(summary, summary.workload.sessions)
    classes = ", ".join(clean(one.name) for one in summary.by_class)
    if file is None:
        return f", of the classes {classes}" if classes else ""
    planned = summary.plan.workload
    order = ORDERS[planned.order] if isinstance(planned, AnyRows) else UNKNOWN
    said = f": {figure(file.rows)} prompts from {clean(file.file)} (SHA-256 {clean(file.sha256)}), {order}"
    if sent > file.rows:
        said += f"; {figure(sent)} requests, so prompts were used again, {figure(sent / file.rows, 3)} times on average"
    return said + (f"; classes {classes}" if classes else "")


def _sessions_of(summary: Summary, file: SessionFile) -> str:
    planned = summary.plan.workload
    order = ORDERS[planned.order] if isinstance(planned, SessionsWorkload) else UNKNOWN
    said = (
        f": {figure(file.sessions)} recorded sessions of {figure(file.steps)} steps from {clean(file.file)} "
        f"(format {clean(file.format)}, SHA-256 {clean(file.sha256)}), {order}; {figure(file.branching)} of them branch, "
        f"{figure(file.with_tools)} steps call tools"
    )
    return said + (f"; {figure(file.images)} images" if file.images else "")


def _trace(trace: TraceAccount) -> list[Row]:
    end = "its last row" if trace.end_s is None else f"{text(trace.end_s)} s"
    failed = (
        f"; {figure(trace.failed)} rows that had failed when recorded are left out" if trace.failed else ""
    )
    prefixes = "as its hash ids or texts say" if trace.shares_prefixes else "none"
    return [
        (
            "Trace",
            f"{clean(trace.file)}, format {clean(trace.format)}, SHA-256 {clean(trace.sha256)}",
        ),
        (
            "Trace: replayed",
            f"{figure(trace.rows)} arrivals from {text(trace.start_s)} s to {end} of trace time, "
            f"{text(trace.speed)} times as fast as recorded{failed}",
        ),
        ("Trace: shared prefixes", prefixes),
        (
            "Trace: made in time",
            f"{figure(trace.unprepared)} requests were not yet made when due"
            + (f", by up to {figure(trace.unprepared_ms)} ms" if trace.unprepared else ""),
        ),
    ]


def _counted(summary: Summary) -> list[Row]:
    tokens = summary.tokens
    tokenizer, prompt, output = tokens.tokenizer, tokens.prompt, tokens.output
    return [
        (
            "Tokenizer",
            f"{text(tokenizer.name)}, version {text(tokenizer.version)}, vocabulary {text(tokenizer.vocab_size)}, "
            f"source {text(tokenizer.source)}, method {text(tokenizer.method)}",
        ),
        ("Prompt sizing", _sizing(tokenizer)),
        (
            "Token counts",
            f"from {text(tokens.count_source)}; {SPECIAL_TOKENS[uncounted(tokenizer)]}{_system(summary)}"
            + "".join(
                f"; declared: {said}"
                for key in ("bos_eos", "system_prompt", "tools")
                if (said := _declared(summary, key))
            ),
        ),
        (
            "Prompt tokens, mean",
            f"asked {figure(prompt.asked_mean)}, sent {figure(prompt.sent_mean)}"
            f"{_yardstick(tokenizer)}, server counted {figure(prompt.server_mean)}, missed {figure(prompt.misses)}; "
            f"{_template(prompt)}",
        ),
        (
            "Output tokens, mean",
            f"asked {figure(output.asked_mean)}, server counted {figure(output.server_mean)}, "
            f"client counted {_by_client(tokenizer, output)}, missed {figure(output.misses)}",
        ),
        *_of_system(summary),
        (
            "Chunking",
            f"{_single(tokens)}; mean {figure(tokens.tokens_per_event)} tokens an event; {_chunk_tokens(tokens.chunk_tokens)}",
        ),
        ("ITL option", ITL_METHODS.get(tokens.itl_method or "", text(tokens.itl_method)) + _beside(summary)),
        ("Gaps between tokens", _gaps(summary.itl_shape)),
    ]


def _of_system(summary: Summary) -> list[Row]:
    said = system_tokens.line(summary)
    return [] if said is None else [("Tokens by the system's usage", said)]


def _single(tokens: TokenAccount) -> str:
    if tokens.single_token_share is None:
        return f"how many of {figure(tokens.events)} events carry one token is not known"
    return f"{share(tokens.single_token_share)} of {figure(tokens.events)} events carry one token"


def _beside(summary: Summary) -> str:
    """The options of draft 4.6.3 that stand beside the gaps that the client measured, with option B's warning."""
    server, spread_out = summary.metrics.itl_server_ms, summary.metrics.itl_distributed_ms
    words = ""
    if server is not None:
        words += "; server: ITL by the server's own stamps stands beside them (option C)"
    if spread_out is not None:
        words += (
            "; distributed: stands beside them too, with zeros between the tokens of a chunk, which understate the variance "
            f"(option B): {figure(spread_out.n)} gaps, P50 {figure(spread_out.p50)} ms"
        )
    return words


def _chunk_tokens(chunks: Spread | None) -> str:
    """The distribution of chunk sizes (draft 4.6.3, option A)."""
    if chunks is None:
        return "no chunks were timed"
    points = ", ".join(
        f"{label} {figure(value)}"
        for label, value in (
            ("P50", chunks.p50),
            ("P95", chunks.p95),
            ("P99", chunks.p99),
            ("max", chunks.max),
        )
    )
    return f"tokens that arrive together: mean {figure(chunks.mean)}, {points} of {figure(chunks.n)} chunks"


def _system(summary: Summary) -> str:
    """Whether there is a system prompt, as far as it is known."""
    said = next((one.value for one in summary.workload.items if one.id == "D-4.3.1-system-prompt"), None)
    if said is None:
        return ""
    return "; there is no separate system prompt" if said == "none" else f"; system prompt {clean(said)}"


def uncounted(tokenizer: TokenizerAccount) -> bool:
    """Whether the client counts no text of the run's: nobody declared a tokenizer, and the server has no /tokenize."""
    return tokenizer.kind in ("none", "ids", "learned")


def counted_by(summary: Summary) -> str | None:
    """Whose tokens the figures per token are in, where they are not the server's own: named beside each headline."""
    tokens = summary.tokens
    if tokens.tokenizer.method == "reference":
        return clean(tokens.tokenizer.name or UNKNOWN)
    return "estimated" if tokens.count_source == "estimate" else None


def unit_of(summary: Summary, metric: Metric | Rate) -> str:
    """The unit of a figure, with whose tokens it is in if those are not the server's own."""
    by = counted_by(summary) if metric.tokens else None
    return metric.unit if by is None else f"{metric.unit}, {by}"


def _sizing(tokenizer: TokenizerAccount) -> str:
    """How prompts reached their length."""
    learned = tokenizer.learned
    if learned is not None:
        return (
            f"to {figure(learned.ratio)} of the server's tokens for one of cl100k_base (95 % interval {figure(learned.low)} to "
            f"{figure(learned.high)}), learned before the load from {figure(learned.requests)} unmeasured requests of "
            f"{figure(learned.prompt_tokens)} tokens in all, which also showed {figure(learned.template)} tokens of a template"
            + (
                f"; for one token of its usage the server's /tokenize would have {figure(learned.disputed)}"
                if learned.disputed is not None
                else ""
            )
        )
    ways = {
        "server": "cut until the server's /tokenize counted the requested length",
        "ids": "sent as so many token ids",
        "none": "by cl100k_base as a yardstick: their length in the server's tokens is another",
    }
    return ways.get(tokenizer.kind or "", f"by {text(tokenizer.name)}, the declared tokenizer")


def _yardstick(tokenizer: TokenizerAccount) -> str:
    return {"none": " by the yardstick", "learned": " by the learned ratio"}.get(tokenizer.kind or "", "")


def _template(prompt: PromptLengths) -> str:
    """What the lengths asked for are lengths of."""
    if prompt.template is None:
        return "the lengths asked for are those of the text alone, without the chat template"
    return (
        f"the lengths asked for include the chat template, {figure(prompt.template)} tokens by the server's count of one "
        "short request before the start"
    )


def _by_client(tokenizer: TokenizerAccount, output: OutputLengths) -> str:
    """The client's own count, or why there is none."""
    if output.local_mean is not None:
        return figure(output.local_mean)
    if uncounted(tokenizer):
        return "nothing (not applicable: no tokenizer)"
    return "nothing (the server was gone)" if tokenizer.kind == "server" else figure(None)


def _timed(summary: Summary) -> list[Row]:
    sut, instrument, window = summary.sut, summary.instrument, summary.window
    return [
        (
            "Protocol",
            f"{text(sut.protocol)}, {text(sut.api)}, {'streamed' if sut.stream else 'not streamed'}",
        ),
        ("Time stamps", CLOCKS.get(instrument.timestamp_source or "", UNKNOWN)),
        ("Clocks", _clocks(summary)),
        ("Network round trip", round_trip.told(summary)),
        *_warm_up(summary.warm_up),
        *_lead(summary.requests),
        (
            "Prefix caching",
            f"{text(sut.prefix_caching, UNDECLARED)}; cache before the run: {text(sut.cache_state)} (declared); "
            f"cached prompt tokens {_cached(summary)}; best possible {best_hits(summary.workload.prefix_hits)}",
        ),
        ("Guardrails", guardrails(summary)),
        (
            "Window",
            f"{seconds(window.duration_s)} from {moment(window.start)}. {text(window.definition)}",
        ),
        ("Steady window", _steady(window)),
        ("Steady state", _steady_state(summary.steady)),
    ]


def _warm_up(warm: WarmUp) -> list[Row]:
    """The procedure that was followed (draft 4.5)."""
    if warm.skipped:
        return [("Warm-up", "COLD START: no warm-up, by intent")]
    requested, probes = warm.asked, warm.probes
    none = warm.output_tokens is None
    counted = "output tokens not counted" if none else f"{figure(warm.output_tokens)} output tokens"
    said = (
        f"{figure(warm.requests)} requests sent, {figure(warm.completed)} completed, "
        f"{counted}, kept apart; asked for: {figure(requested.requests)} requests"
    )
    said += f" and {figure(requested.output_tokens)} output tokens" if requested.output_tokens else ""
    said += "" if warm.reached else ", not reached"
    if warm.drained is not None:
        said += "; all had ended before the measurement" if warm.drained else "; not all of them ended"
    if warm.waiting is not None or warm.running is not None:
        said += f"; the server then said: waiting {figure(warm.waiting)}, running {figure(warm.running)}"
    if warm.requests and warm.prefixes not in (None, "none shared"):
        said += f"; shared prefixes: {warm.prefixes}"
    return [("Warm-up", said), ("Warm-up verified", _probes(probes))]


def _lead(requests: RequestCounts) -> list[Row]:
    """How a closed loop was entered and left."""
    if not requests.lead_in:
        return []
    said = (
        f"{figure(requests.lead_in)} requests before the first measured one and {figure(requests.lead_out)} after the "
        "last kept all slots in use; they are not measured"
    )
    return [("Lead-in and lead-out", said)]


def _probes(probes: WarmUpProbes) -> str:
    if not probes.most:
        return "no"
    found = {True: "stable", False: "not stable", None: "not decided"}[probes.stable]
    after = ", ".join(figure(one) for one in probes.after_ms) or "none"
    return (
        f"{found}: end-to-end latency of single requests of {figure(probes.input_tokens)} + "
        f"{figure(probes.output_tokens)} tokens {figure(probes.before_ms)} ms before, {after} ms behind (at most "
        f"{figure(probes.most)}); (max - min) / median of the last three {share(probes.variation)}, "
        f"limit {share(probes.limit)}"
    )


def _clocks(summary: Summary) -> str:
    if summary.run.simulated:
        return "none: all latencies are differences of virtual time"
    own, words = round_trip.adjustment(summary), _declared(summary, "latency_adjustment")
    adjusted = "; ".join(part for part in (own, words) if part) or NO_ADJUSTMENT
    return (
        "all latencies are differences on the client's one monotonic clock, so no clocks need to agree; "
        f"{adjusted}; wall clock moved {figure(summary.instrument.clock_step_ms)} ms during the run"
        f"{_synchronised(summary.instrument)}"
    )


def _synchronised(instrument: InstrumentAccount) -> str:
    """Draft 4.7.2, of the client's own clock; nothing where nothing is known of it."""
    state = instrument.clock_state
    if state is None or state.synchronised is None:
        return ""
    if not state.synchronised:
        return "; the client's wall clock was not synchronised, by its own account"
    error = "an unknown error" if state.error_ms is None else f"{figure(state.error_ms)} ms"
    return (
        f"; the client's wall clock was synchronised by {clean(state.method or UNKNOWN)}, to within {error}"
    )


def _declared(summary: Summary, name: str) -> str | None:
    """What the tester declared of this; None: nothing."""
    said = getattr(summary.plan.declared, name)
    return None if said is None else text(said)


def _steady(window: Window) -> str:
    start, end = window.steady_start_s, window.steady_end_s
    return "none" if start is None or end is None else f"{seconds(start)} to {seconds(end)} of the window"


def _cached(summary: Summary) -> str:
    cached = summary.throughput.cached_input_share
    return "not reported by the server" if cached is None else share(cached)


MODALITY = {
    "unimodal": "one mode, at {modes} ms",
    "multimodal": "several modes, at {modes} ms",
    "undetermined": "number of modes undetermined",
}
TAILS = {
    "exponential or lighter": "a tail no heavier than exponential",
    "heavy": "a tail heavier than exponential",
    "undetermined": "tail undetermined",
}
SOURCES = {"server": "waiting at the server", "in_flight": "in flight"}
RISING = {True: "rising", False: "not rising", None: "held by the closed loop"}
STABLE = {True: "stable", False: "not stable", None: "there was none"}


def _gaps(shape: ItlShape | None) -> str:
    """The summary's `itl_shape`: jitter, longest pause, modes and tail (draft 5.4.4.2, 5.4.4.3)."""
    if shape is None:
        return "none: nothing was streamed, or nothing succeeded"
    modes = ", ".join(figure(one) for one in shape.modes_ms)
    return (
        f"jitter {_percentiles(shape.jitter_ms)}, longest pause {_percentiles(shape.max_pause_ms)}; "
        f"{MODALITY[shape.modality].format(modes=modes)}; "
        f"P99 / P50 {figure(shape.tail_ratio)}, {TAILS[shape.tail]}. "
        f"Of {figure(shape.answers)} answers of at least {figure(shape.least_output_tokens)} tokens; "
        f"{figure(shape.short_answers)} shorter ones ({share(shape.short_share)}) left out"
    )


def _percentiles(stats: Stats | None) -> str:
    return f"P50 {figure(statistic(stats, 'p50'))} and P99 {figure(statistic(stats, 'p99'))} ms"


def _steady_state(steady: Steady | None) -> str:
    """The summary's `steady`: completion ratio, queue and output over the steady window (draft 5.2.3.1, 5.2.3.2)."""
    if steady is None:
        return "not known: there was no steady window"
    queue, ratio = steady.queue, steady.completion_ratio
    parts = [f"{figure(steady.arrivals)} requests sent, {figure(steady.completions)} completed"]
    if ratio is not None:
        parts[0] += (
            f" (of those due {figure(ratio)}, 95{THIN}% interval {interval(steady.completion_ratio_ci95)})"
        )
    if queue is not None:
        thirds = ", ".join(figure(one) for one in queue.thirds)
        parts.append(f"requests {SOURCES[queue.source]} by thirds {thirds}: {RISING[queue.rising]}")
    if steady.output_thirds_tok_s:
        output = ", ".join(figure(one) for one in steady.output_thirds_tok_s)
        parts.append(f"output tokens/s by thirds {output}: {STABLE[steady.stable]}")
    return "; ".join(parts)
