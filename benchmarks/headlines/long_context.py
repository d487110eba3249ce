"""Draft 5.9: TTFT by length, the exponent, the slope and the maximum throughput at each length, against long runs of each.

The truth of the exponent and the slope is the same fit of the true means: what is held against it is the error of 20 requests a
length, not whether a power law is the right curve. That of the maximum is the rate of a backlog that never empties.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.headlines.headline import Answer, Answers, Headline, Truth, long_runs, of_values
from inferometer.documents.summary import Summary
from inferometer.measure.scaling import fit
from inferometer.plan.lengths import fixed
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.plateau import output
from inferometer.procedures.results import Results
from inferometer.procedures.setup import closed_loop, documents, without_warm_up
from inferometer.procedures.summary_access import stat, statistic

LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
SEARCHED = (2048, 8192)
FULL = 64
"""Requests in flight, more than the engines have places or room for at these lengths."""
TRUTH_REQUESTS, QUICK_REQUESTS = 100, 20
BACKLOG, QUICK_BACKLOG = 2_000, 400


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """Lengths that each preset has room for."""
    del preset
    return {"long-context": {"lengths": LENGTHS} | ({"requests": 8} if quick else {})}


def searching(preset: str, quick: bool) -> Mapping[str, Any]:
    """Two lengths, and the search for the maximum at each."""
    del preset
    return {"long-context": {"lengths": SEARCHED, "search": True} | ({"most_in_flight": 32} if quick else {})}


def _load(plan: Plan, length: int, slots: int, requests: int) -> Plan:
    wanted = documents(plan, fixed(length), fixed(Tests().long_context.output_tokens))
    return closed_loop(without_warm_up(wanted), slots, requests=requests)


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Mean TTFT of each length by itself, and the fit of these means."""
    requests, means = QUICK_REQUESTS if quick else TRUTH_REQUESTS, dict[str, Truth]()
    for length in LENGTHS:

        def alone(summary: Summary, length: int = length) -> Mapping[str, float | None]:
            tokens = statistic(summary.metrics.input_tokens, "mean")
            return {f"ttft_{length}": stat(summary, "ttft", "mean"), f"tokens_{length}": tokens}

        load = partial(_load, length=length, slots=1, requests=requests)
        means |= long_runs(preset, load, alone, quick=quick)
    tokens = [means.pop(f"tokens_{length}").value for length in LENGTHS]
    scaling = fit(tokens, [means[f"ttft_{length}"].value for length in LENGTHS])
    return {"exponent": Truth(scaling.exponent), "us_per_token": Truth(scaling.us_per_token)} | means


def maxima(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Output tokens a second with all places taken."""
    found = dict[str, Truth]()
    for length in SEARCHED:

        def full(summary: Summary, length: int = length) -> Mapping[str, float | None]:
            return {f"max_output_tok_s_{length}": output(summary)}

        load = partial(_load, length=length, slots=FULL, requests=QUICK_BACKLOG if quick else BACKLOG)
        found |= long_runs(preset, load, full, quick=True)
    return found


def answers(results: Results) -> Answers:
    """The values, and the columns of the tables by their lengths."""
    found = dict[str, Answer]()
    for name, table_name, ends in (
        ("ttft", "lengths", ("ttft_mean", "ttft_mean_low", "ttft_mean_high")),
        ("max_output_tok_s", "maxima", ("max_output_tok_s", "low", "high")),
    ):
        table = next((one for one in results.tables if one.name == table_name), None)
        if table is None:
            continue
        at = [[column.name for column in table.columns].index(end) for end in ends]
        for row in table.rows:
            value, low, high = (None if row[column] is None else float(row[column] or 0) for column in at)
            interval = None if low is None or high is None else (low, high)
            found[f"{name}_{row[0]}"] = Answer(value, interval)
    return of_values(results) | found


HEADLINE = Headline("long-context", parameters, truths, ("testbed", "a100-8b"), answers)
SEARCH = Headline("long-context", searching, maxima, ("testbed",), answers, part="search")
