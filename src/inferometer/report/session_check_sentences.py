"""What is said of the checks of sessions; the form is that of check_sentences.py."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.server_check_sentences import Wording

_NO_SESSIONS = "No recorded agent sessions were sent."
_REPORT = "This is a fault of the instrument or of its record: keep the run folder, and report it."
_WHERE: Mapping[tuple[str, ...], str] = {("where",): "The first of them: {where}."}
_CACHE: Mapping[tuple[str, ...], str] = {
    (
        "best",
        "found",
    ): "Tokens in whole blocks that sessions had computed before: {best}; found in the cache: {found}.",
}
_EMPTY = "Declare the cache as it is (--cache-state, --prefix-caching)."
_UNFINISHED = (
    "Let the sessions end: --requests instead of --duration, or a run many times as long as the longest session. For those "
    "that broke off, see the failures."
)
_ENDS: Mapping[tuple[str, ...], str] = {
    (
        "point",
        "stated_ms",
        "with_ms",
    ): "Most at its {point}: {stated_ms} ms of those that finished, {with_ms} ms or more with the others.",
    ("finished", "unfinished"): "Finished: {finished}; not: {unfinished}.",
}
_COMPARED: Mapping[tuple[str, ...], str] = {
    ("compared", "continued"): "Compared: {compared} requests, {continued} of which repeat something.",
    ("unchecked", "why"): "Not compared: {unchecked} (by the texts that they repeat: {why}).",
}


def _declared(what: str, more: str) -> str:
    return f"Of the tokens that a session had computed before, the server took {{value}} from its cache, {what}; {more}."


SESSIONS: dict[str, Wording] = {
    "session_steps": Wording(
        "Steps of sessions",
        "number",
        {
            "pass": "Every step whose predecessors had succeeded was sent, once.",
            "fail": "Steps of sessions that were left out, sent twice, or sent although a step before them had not succeeded: "
            "{value}; {limit} is accepted. These are not the recorded sessions.",
            "na": _NO_SESSIONS,
        },
        {"fail": _REPORT},
        {
            ("missing",): "Left out: {missing}.",
            ("unready",): "Sent too early: {unready}.",
            ("twice",): "Sent twice: {twice}.",
            **_WHERE,
            ("sent", "planned", "sessions"): "Sent: {sent} of the {planned} steps of {sessions} sessions.",
            ("skipped",): "Left out behind a step that failed: {skipped}.",
            ("ended",): "Due after the end of the load, or behind a step that was: {ended}.",
        },
    ),
    "session_gaps": Wording(
        "Gaps between steps",
        "number",
        {
            "pass": "Every step was due when what it waited for had ended and its delay had passed, and none left before.",
            "fail": "Steps that were due at another instant than the ends of what they waited for and their delays give, or "
            "that left before they were due: {value}; {limit} is accepted. The load is not that of the recorded sessions.",
            "na": "No steps that wait for others were sent.",
        },
        {"fail": _REPORT},
        {
            ("sooner",): "Due sooner: {sooner}.",
            ("later",): "Due later: {later}.",
            ("early",): "Sent before they were due: {early}.",
            ("worst_ms",): "Off by {worst_ms} ms at most.",
            **_WHERE,
            (
                "late_p50_ms",
                "late_p99_ms",
            ): "Sent behind their instant: P50 {late_p50_ms} ms, P99 {late_p99_ms} ms.",
        },
    ),
    "session_context": Wording(
        "What steps repeat",
        "number",
        {
            "pass": "Every request of a session that could be put together anew is, byte for byte, the one that was sent.",
            "fail": "Requests of sessions that are not what schedule and answers give: {value}; {limit} is accepted. They have "
            "another conversation in them than their own.",
            "unsure": "The record does not say what the steps of sessions sent.",
            "na": "No request repeats what was said before, or the record is of an earlier version and does not say what was "
            "sent.",
        },
        {"fail": _REPORT, "unsure": "Run again with this version of the program."},
        {**_WHERE, **_COMPARED},
    ),
    "session_context:unchecked": Wording(
        "What steps repeat",
        "number",
        {
            "note": "Of the requests of sessions none that repeats something was checked: the record does not have the text of "
            "the answers as it was repeated.",
        },
        {"note": "Keep all texts (--keep-text all), or repeat recorded answers (--replies recorded)."},
        _COMPARED,
    ),
    "session_ends": Wording(
        "Unfinished sessions",
        "share",
        {
            "pass": "Sessions that did not finish do not lengthen the duration by more than chance and {limit}.",
            "unsure": "Figures of sessions are of those that finished, and those that broke off or were cut short last longer: "
            "with them the duration is {value} longer than chance makes it; {limit} is accepted.",
            "na": "No recorded agent sessions were sent, or none finished.",
        },
        {"unsure": _UNFINISHED},
        _ENDS,
    ),
    "session_cache": Wording(
        "Cache within sessions",
        "share",
        {
            "pass": _declared("as was declared", "the limit is {limit}"),
            "fail": _declared("not as was declared", "the limit is {limit}"),
            "unsure": _declared("not as was declared", "the limit is {limit}"),
            "note": "The server reports no cached tokens, so the declared cache could not be checked.",
            "na": "No recorded agent sessions were sent, or nothing was declared of the cache that could be checked.",
        },
        {"fail": _EMPTY, "unsure": _EMPTY},
    ),
    "session_cache:untold": Wording(
        "Cache within sessions",
        "share",
        {
            "note": "The server reports no cached tokens, or impossible ones, so the declared cache could not be checked.",
            "na": "No step repeats what its session had sent before.",
        },
        {"note": "Let the server report them (vLLM: --enable-prompt-tokens-details)."},
    ),
    "session_cache:warm": Wording(
        "Cache within sessions",
        "share",
        {
            "pass": _declared("which was declared warm", "at least {limit} is required"),
            "fail": _declared(
                "which was declared warm",
                "at least {limit} is required: it behaved like a cold one, or like none",
            ),
        },
        {"fail": _EMPTY},
        _CACHE,
    ),
    "session_cache:first": Wording(
        "Cache within sessions",
        "share",
        {
            "fail": "The server took {value} of the prompts of first steps from a cache that was declared warm, less than the "
            "required {limit}: it no longer knew the sessions of the run before.",
        },
        {
            "fail": "Send the same plan once before the run, or declare the cache's state as it is (--cache-state)."
        },
        _CACHE,
    ),
    "session_cache:enabled": Wording(
        "Cache within sessions",
        "share",
        {
            "pass": _declared("which was declared enabled", "at least {limit} is expected"),
            "unsure": _declared(
                "which was declared enabled",
                "at least {limit} is expected: it may be off, or too small to hold a session until its next step",
            ),
        },
        {
            "unsure": "Look at the server's own hit rate and at its KV cache, or declare the cache as it is (--prefix-caching)."
        },
        _CACHE,
    ),
    "session_cache:disabled": Wording(
        "Cache within sessions",
        "share",
        {
            "pass": _declared("which was declared disabled", "up to {limit} is accepted"),
            "fail": _declared("which was declared disabled", "up to {limit} is accepted: it is not disabled"),
        },
        {"fail": _EMPTY},
        _CACHE,
    ),
    "cache_hits:sessions": Wording(
        "Prefix cache",
        "share",
        {
            "pass": "The server took {value} of the prompt tokens from its cache beyond what each session had computed before; "
            "up to {limit} is accepted of one that was declared cold.",
            "note": "The server took {value} of the prompt tokens from its cache beyond what each session had computed before, "
            "more than {limit}: sessions begin alike, as with the same tools, or it was not cold.",
            "na": "Steps repeat what their session said before, so cached tokens are expected.",
        },
    ),
}
