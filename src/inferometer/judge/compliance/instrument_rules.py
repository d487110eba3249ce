"""Checks of what the program itself does, draft 4.2, 4.6 and 4.7.4: kept by how it is built, unless a run shows that it was
not."""

from __future__ import annotations

import re

from inferometer.documents.note import Note
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    each_run,
    not_applicable,
    note,
    satisfied,
    violated,
)

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z")
ITL_METHODS = ("direct", "chunk")


def _source(run: MeasuredRun) -> str | None:
    return run.summary.instrument.timestamp_source


def resolution(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.1: stamps are ns; without the kernel's they are as good as the reading was prompt."""

    def problem(run: MeasuredRun) -> Note | None:
        if _source(run) not in ("kernel", "user"):
            return note("no_timestamps", source=_source(run))
        return run.failure("receive_lag") if _source(run) == "user" else None

    return each_run(evidence.runs, problem, lambda run: note("timestamps", source=_source(run)))


def microseconds(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.1: gaps to the microsecond need the kernel's stamps, for a client reads late by more than that."""

    def problem(run: MeasuredRun) -> Note | None:
        return None if _source(run) == "kernel" else note("timestamps_on_reading", source=_source(run))

    return each_run(evidence.runs, problem, lambda run: note("timestamps", source=_source(run)))


def streaming(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.2: SSE (Q-protocols)."""
    if not evidence.plan.target.stream:
        return violated(note("plan_not_streamed"))
    return each_run(
        evidence.runs,
        lambda run: None if run.summary.sut.stream else note("not_streamed"),
        lambda run: note("stream_protocol", protocol=run.summary.sut.protocol),
    )


def arrivals(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.2: each event's arrival, not the answer's alone."""

    def problem(run: MeasuredRun) -> Note | None:
        return run.failure("streamed") if run.summary.tokens.events else note("no_events")

    return each_run(
        evidence.runs, problem, lambda run: note("events", capacity=True, events=run.summary.tokens.events)
    )


def _built_in(models: tuple[str, ...], codes: tuple[str, ...], kept: Note) -> RuleCheck:
    """What the pacer is built to do, held against the runs of such a load by checks of their verdicts."""

    def check(evidence: Evidence) -> Ruling | None:
        def problem(run: MeasuredRun) -> Note | None:
            if run.load.model not in models:
                return None
            return next((failed for code in codes if (failed := run.failure(code)) is not None), None)

        return each_run(evidence.runs, problem, kept)

    return check


def _recorded(metric: str) -> RuleCheck:
    """Draft 4.2.6: a stamp is there if what is computed from it has samples."""

    def check(evidence: Evidence) -> Ruling | None:
        def problem(run: MeasuredRun) -> Note | None:
            return None if run.measured(metric) else note("instants_missing", metric=metric)

        return each_run(evidence.runs, problem, note("instants_recorded", metric=metric))

    return check


def counts(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.6: input and output tokens of each request, and whose count it is."""

    def problem(run: MeasuredRun) -> Note | None:
        if run.summary.tokens.count_source is None:
            return note("tokens_not_counted")
        missing = [name for name in ("input_tokens", "output_tokens") if not run.measured(name)]
        return note("token_counts_missing", metric=missing[0]) if missing else None

    return each_run(
        evidence.runs, problem, lambda run: note("tokens_counted", source=run.summary.tokens.count_source)
    )


def status(evidence: Evidence) -> Ruling | None:
    """Draft 4.2.6: each request has an outcome."""

    def problem(run: MeasuredRun) -> Note | None:
        requests = run.summary.requests
        lacking = requests.sent - (requests.completed + requests.failed + requests.cancelled)
        return (
            note("outcomes_missing", capacity=True, requests=lacking, sent=requests.sent) if lacking else None
        )

    return each_run(evidence.runs, problem, note("outcomes_recorded"))


def protocol(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.2: the protocol is disclosed, which the program does."""
    return each_run(
        evidence.runs, lambda _: None, lambda run: note("protocol", protocol=run.summary.sut.protocol)
    )


def chunks(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.2: how many events carry one token alone. That is not known at the boundary of a compound system, whose gaps
    are reported as times between chunks that may carry several."""

    def problem(run: MeasuredRun) -> Note | None:
        tokens = run.summary.tokens
        known = tokens.single_token_share is not None or (tokens.system is not None and tokens.events)
        return None if known else note("no_token_events")

    def reported(run: MeasuredRun) -> Note:
        share = run.summary.tokens.single_token_share
        return note("chunks_of_a_compound") if share is None else note("single_token_events", share=share)

    return each_run(evidence.runs, problem, reported)


def itl_method(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.2, 4.6.3, B.2.1: how gaps come about where an event holds several tokens."""

    def problem(run: MeasuredRun) -> Note | None:
        method = run.summary.tokens.itl_method
        return None if method in ITL_METHODS else note("no_itl_method", method=method)

    return each_run(
        evidence.runs, problem, lambda run: note("itl_method", method=run.summary.tokens.itl_method)
    )


def server_stamps(evidence: Evidence) -> Ruling | None:
    """Draft 4.6.3, option C: where the server stamps its tokens, ITL by its stamps is reported."""
    if evidence.runs and all(run.measured("itl_server_ms") for run in evidence.runs):
        return satisfied(note("server_timestamps"))
    return not_applicable(note("no_server_timestamps", api=evidence.plan.target.api))


def moments(evidence: Evidence) -> Ruling | None:
    """Draft 4.7.4: how instants are written."""

    def problem(run: MeasuredRun) -> Note | None:
        started = run.summary.run.started
        return None if MOMENT.fullmatch(started) else note("other_moment_format", started=started)

    return each_run(evidence.runs, problem, note("moment_format"))


def no_ttft(evidence: Evidence) -> Ruling | None:
    """Draft 5.4.3: n tokens of an answer have n - 1 gaps at most; one more would be the wait for the first."""

    def problem(run: MeasuredRun) -> Note | None:
        gaps, tokens = run.measured("itl_ms"), run.measured("output_tokens")
        if gaps is None or tokens is None:
            return note("no_gaps")
        most = tokens.n * (tokens.mean - 1)
        # Answers cut off have gaps and no count; a thousandth lets them be.
        if gaps.n <= most * 1.001 + 1:
            return None
        return note("too_many_gaps", capacity=True, gaps=gaps.n, most=most)

    return each_run(evidence.levels, problem, note("gaps_from_first_token"))


LATE = ("lateness",)
OPEN = ("open",)
CHECKS: dict[str, RuleCheck] = {
    "D-4.2.1-resolution": resolution,
    "D-4.2.1-microsecond": microseconds,
    "D-4.2.2-streaming": streaming,
    "D-4.2.2-arrivals": arrivals,
    "D-4.2.3-open-loop": _built_in(
        OPEN, ("load_exact", "arrival_rate", *LATE), note("open_loop_drawn_ahead")
    ),
    "D-4.2.3-poisson": _built_in(OPEN, ("arrival_dispersion", "arrival_lag1"), note("poisson_by_default")),
    "D-4.2.3-uniform": _built_in((), (), note("constant_arrivals_offered")),
    "D-4.2.3-bursty": _built_in((), (), note("bursty_arrivals_offered")),
    "D-4.2.4-closed-loop": _built_in(("closed",), ("concurrency_held",), note("concurrency_offered")),
    "D-4.2.4-replace": _built_in(("closed",), LATE, note("slots_refilled")),
    "D-4.2.5-isolation": _built_in(OPEN, LATE, note("open_loop_never_waits")),
    "D-4.2.5-async": _built_in(("open", "closed", "users"), ("workers_alive",), note("event_loops")),
    "D-4.2.6-submit": _recorded("e2e_ms"),
    "D-4.2.6-first": _recorded("ttft_ms"),
    "D-4.2.6-each": _recorded("itl_ms"),
    "D-4.2.6-final": _recorded("stream_end_ms"),
    "D-4.2.6-counts": counts,
    "D-4.2.6-status": status,
    "D-4.6.2-protocol": protocol,
    "D-4.6.2-chunk": chunks,
    "D-4.6.2-multi": itl_method,
    "D-4.6.3-declare": itl_method,
    "D-4.6.3-prefer-C": server_stamps,
    "D-4.7.4-precision": resolution,
    "D-4.7.4-format": moments,
    "D-5.4.3-no-ttft": no_ttft,
}
