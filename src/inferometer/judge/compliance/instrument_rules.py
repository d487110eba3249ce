"""Checks of what the program itself does, draft 4.2, 4.6 and 4.7.4: kept by how it is built, unless a run shows that it was
not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inferometer.judge.compliance.evidence import (
    Check,
    Evidence,
    Ran,
    Seen,
    beside,
    broken,
    every,
    met,
    number,
)

FINE = {"kernel": "kernel receive stamps in ns", "user": "the client's monotonic clock in ns"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z")
ITL_METHODS = ("direct", "chunk", "distributed", "server")


def _unstamped(one: Ran) -> str | None:
    source = one.summary["instrument"]["timestamp_source"]
    if source not in FINE:
        return f"no clock stamped it: source {source}"
    return one.fails("receive_lag") if source == "user" else None


def _source(one: Ran) -> str:
    return FINE[one.summary["instrument"]["timestamp_source"]]


def resolution(evidence: Evidence) -> Seen | None:
    """Draft 4.2.1: stamps are ns; without the kernel's they are as good as the reading was prompt."""
    return every(evidence.runs, _unstamped, _source)


def microseconds(evidence: Evidence) -> Seen | None:
    """Draft 4.2.1: gaps to the microsecond need the kernel's stamps, for a client reads late by more than that."""

    def wrong(one: Ran) -> str | None:
        source = one.summary["instrument"]["timestamp_source"]
        return None if source == "kernel" else f"stamped on reading (source {source}), not on arrival"

    return every(evidence.runs, wrong, FINE["kernel"])


def streaming(evidence: Evidence) -> Seen | None:
    """Draft 4.2.2: SSE (Q-protocols)."""
    if not evidence.plan["target"]["stream"]:
        return broken("the plan asks for whole answers")
    return every(
        evidence.runs,
        lambda one: None if one.summary["sut"]["stream"] else "answers were asked for whole",
        lambda one: str(one.summary["sut"]["protocol"]),
    )


def arrivals(evidence: Evidence) -> Seen | None:
    """Draft 4.2.2: each event's arrival, not the answer's alone."""

    def wrong(one: Ran) -> str | None:
        if not one.summary["tokens"]["events"]:
            return "no event was stamped"
        return one.fails("streamed")

    return every(
        evidence.runs,
        wrong,
        lambda one: f"{number(one.summary['tokens']['events'])} events stamped one by one",
    )


def _kept(models: tuple[str, ...], codes: tuple[str, ...], right: str) -> Check:
    """What the pacer is built to do, held against the runs of such a load by checks of their verdicts."""

    def look(evidence: Evidence) -> Seen | None:
        def wrong(one: Ran) -> str | None:
            if one.load["model"] not in models:
                return None
            return next((said for code in codes if (said := one.fails(code)) is not None), None)

        return every(evidence.runs, wrong, right)

    return look


def _recorded(metric: str, words: str) -> Check:
    """Draft 4.2.6: a stamp is there if what is computed from it has samples."""

    def look(evidence: Evidence) -> Seen | None:
        def wrong(one: Ran) -> str | None:
            return None if one.measured(metric) else f"no request has {words} ({metric} has no samples)"

        return every(evidence.runs, wrong, f"{words} of every request, in requests.parquet")

    return look


def counts(evidence: Evidence) -> Seen | None:
    """Draft 4.2.6: input and output tokens of each request, and whose count it is."""

    def wrong(one: Ran) -> str | None:
        if one.summary["tokens"]["count_source"] is None:
            return "nobody counted tokens"
        missing = [name for name in ("input_tokens", "output_tokens") if not one.measured(name)]
        return f"no {missing[0].replace('_', ' ')} are on record" if missing else None

    return every(evidence.runs, wrong, lambda one: f"counted by: {one.summary['tokens']['count_source']}")


def status(evidence: Evidence) -> Seen | None:
    """Draft 4.2.6: each request has an outcome."""

    def wrong(one: Ran) -> str | None:
        asked = one.summary["requests"]
        ended = asked["completed"] + asked["failed"] + asked["cancelled"]
        return (
            None
            if ended == asked["sent"]
            else f"{asked['sent'] - ended} of {asked['sent']} requests have no outcome"
        )

    return every(evidence.runs, wrong, "an outcome a request, in requests.parquet")


def _said(path: tuple[str, str], words: str) -> Check:
    """A disclosure that runs observe: a member of the summary that is not null."""

    def find(one: Ran) -> object:
        part: Mapping[str, object] = one.summary[path[0]]
        return part[path[1]]

    def look(evidence: Evidence) -> Seen | None:
        return every(
            evidence.runs,
            lambda one: f"{words}: not known" if find(one) is None else None,
            lambda one: f"{words}: {find(one)}",
        )

    return look


def chunks(evidence: Evidence) -> Seen | None:
    """Draft 4.6.2: how many events carry one token alone."""

    def wrong(one: Ran) -> str | None:
        return "no event carried tokens" if one.summary["tokens"]["single_token_share"] is None else None

    return every(
        evidence.runs,
        wrong,
        lambda one: f"{one.summary['tokens']['single_token_share']:.1%} of the events carry one token",
    )


def itl_method(evidence: Evidence) -> Seen | None:
    """Draft 4.6.2, 4.6.3, B.2.1: how gaps come about where an event holds several tokens."""

    def wrong(one: Ran) -> str | None:
        method = one.summary["tokens"]["itl_method"]
        return None if method in ITL_METHODS else f"no ITL method is declared ({method})"

    return every(evidence.runs, wrong, lambda one: f"ITL method: {one.summary['tokens']['itl_method']}")


def server_stamps(evidence: Evidence) -> Seen | None:
    """Draft 4.6.3, option C: the interfaces that are spoken carry no stamps of single tokens."""
    methods = {one.summary["tokens"]["itl_method"] for one in evidence.runs}
    if methods == {"server"}:
        return met("the server's stamps are used")
    api = evidence.plan["target"]["api"]
    return beside(f"the interface ({api}) carries no time stamps of the server's for single tokens")


def moments(evidence: Evidence) -> Seen | None:
    """Draft 4.7.4: how instants are written."""

    def wrong(one: Ran) -> str | None:
        started = one.summary["run"]["started"]
        return None if MOMENT.fullmatch(started) else f"{started} is no UTC instant with milliseconds"

    return every(evidence.runs, wrong, "ISO 8601, UTC, milliseconds")


def no_ttft(evidence: Evidence) -> Seen | None:
    """Draft 5.4.3: n tokens of an answer have n - 1 gaps at most; one more would be the wait for the first."""

    def wrong(one: Ran) -> str | None:
        gaps, tokens = one.measured("itl_ms"), one.measured("output_tokens")
        if gaps is None or tokens is None:
            return "no gaps between tokens were measured"
        most = tokens["n"] * (tokens["mean"] - 1)
        # Answers cut off have gaps and no count; a thousandth lets them be.
        return (
            None
            if gaps["n"] <= most * 1.001 + 1
            else f"{gaps['n']} gaps, where {number(most)} lie between tokens"
        )

    return every(evidence.levels, wrong, "gaps begin at the first token")


LATE = ("lateness",)
OPEN = ("open",)
CHECKS: dict[str, Check] = {
    "D-4.2.1-resolution": resolution,
    "D-4.2.1-microsecond": microseconds,
    "D-4.2.2-streaming": streaming,
    "D-4.2.2-arrivals": arrivals,
    "D-4.2.3-open-loop": _kept(
        OPEN, ("arrival_rate", *LATE), "all instants of an open loop are drawn before the start"
    ),
    "D-4.2.3-poisson": _kept(
        OPEN, ("arrival_dispersion", "arrival_lag1"), "Poisson arrivals are the default of an open loop"
    ),
    "D-4.2.3-uniform": _kept((), (), "--arrival constant: evenly spaced"),
    "D-4.2.3-bursty": _kept((), (), "--arrival gamma with --burstiness below 1"),
    "D-4.2.4-closed-loop": _kept(("closed",), ("concurrency_held",), "--concurrency holds so many in flight"),
    "D-4.2.4-replace": _kept(("closed",), LATE, "a slot's next request goes out when its last one ends"),
    "D-4.2.5-isolation": _kept(OPEN, LATE, "no open-loop request waits for the answer to another"),
    "D-4.2.5-async": _kept(
        ("open", "closed", "users"),
        ("workers_alive",),
        "worker processes, each with an event loop of its own",
    ),
    "D-4.2.6-submit": _recorded("e2e_ms", "the instant of submission"),
    "D-4.2.6-first": _recorded("ttft_ms", "the arrival of the first token"),
    "D-4.2.6-each": _recorded("itl_ms", "the arrival of each further token"),
    "D-4.2.6-final": _recorded("stream_end_ms", "the arrival of the last token and of the end"),
    "D-4.2.6-counts": counts,
    "D-4.2.6-status": status,
    "D-4.6.2-protocol": _said(("sut", "protocol"), "protocol"),
    "D-4.6.2-chunk": chunks,
    "D-4.6.2-multi": itl_method,
    "D-4.6.3-declare": itl_method,
    "D-4.6.3-prefer-C": server_stamps,
    "D-4.7.4-precision": resolution,
    "D-4.7.4-format": moments,
    "D-5.4.3-no-ttft": no_ttft,
}
