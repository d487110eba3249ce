"""The words of the notes of a test's verdict, by their code; see compliance_notes.py for what an entry is."""

from __future__ import annotations

from collections.abc import Mapping

from inferometer.report.fact_words import Words

VERDICT: Mapping[str, Words] = {
    "partial": "The test did not come to its end: {problem}",
    "unanswered": "Not one request of the runs that count was answered in full.",
    "headline_of_few_requests": (
        "The headline rests on medians of runs with only {requests} requests completed, fewer than the {least} that a "
        "median needs."
    ),
    "headline_of_few_samples": "The headline, {label}, has fewer samples than this percentile needs.",
    "headline_not_measured": "The headline, {label}, was not measured; beside it stands why.",
    "headline_without_interval": "The headline, {label}, has no 95 % interval: there is too little to tell how far off it is.",
    "headline_interval_wide": "The 95 % interval of the headline, {label}, is too wide to say much: {low} to {high}.",
    "failures": lambda failed, ended, refused=0: (
        f"{failed} of {ended} requests failed"
        + (f", {refused} of them refused" if refused else "")
        + ". Times are of those that "
        "were answered: of the others nobody knows how long they would have taken."
    ),
    "model_changed": (
        "The server answered with {first} first and with {then} later, in the same state: the runs are not of one model. Name "
        "one with --model, and look for a router that hands requests to another."
    ),
    "server_changed": (
        "The server called itself {first} first and {then} later, in the same state: the runs may not be of one system."
    ),
    "tests_not_carried_out": "Asked for and not carried out, because the program was ended before: {tests}.",
    "maximum_exceeded": (
        "{test} saw {output_tok_s} output tokens per second on the same workload, more than the maximum of {maximum}: "
        "that is none."
    ),
    "maximum_not_sustained": (
        "{test} offered {rate} requests per second on the same workload, which was not kept up with, though the maximum is "
        "{maximum}: the system changed in between, or that is none."
    ),
    "cache_used_while_off": lambda share: (
        f"The prefix cache was to be off, and the server took {100 * share:.2g} % of the prompt tokens from it."
    ),
    "cache_unused_while_on": lambda tokens: (
        "The prefix cache was to be on and filled, and the server says that it took no token from it. Either it was off, or it "
        "does not keep prefixes this short: a cache holds whole blocks, and the longest prefix that requests share has "
        + (f"{tokens:,} tokens." if tokens is not None else "fewer tokens than one.")
        + " See the engine's block size, or ask for longer prefixes."
    ),
    "refused_while_off": "The guardrails were to be off, and {requests:d} requests were refused by a filter.",
}
