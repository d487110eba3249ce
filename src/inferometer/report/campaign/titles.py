"""What is said of each test: how it goes, and what a column means where its heading does not tell. Draft sections are cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inferometer.documents.campaign import ProcedureDocument, ReportedValue
from inferometer.report.campaign.cells import is_number, labelled
from inferometer.report.figures import clean


@dataclass(frozen=True, slots=True)
class Words:
    """Of one test. `columns`: words of a heading, in lower case, to what a column or row with them means. `headline`: words of
    the labels of values that stand for the test, best first; a test without any is stood for by its first value."""

    procedure: str
    columns: Mapping[str, str] = field(default_factory=dict)
    headline: tuple[str, ...] = ()


PERCENTILE = "P50: half of the requests were at or below; P99: all but one in a hundred; P99.9: all but one in a thousand."

WORDS: dict[str, Words] = {
    "ttft": Words(
        "After warm-up, requests arrive at the rate or the concurrency given. The clock of each runs from the "
        "last byte of the request to the first generated token that is not white space (draft 5.1.3).",
        {
            "p99": PERCENTILE,
            "input tokens": "Prompts grouped by their number of tokens; a range begins at its first number and "
            "ends below its second (draft 5.1.4.2).",
        },
    ),
    "throughput": Words(
        "Requests in flight double until throughput rises no more: that is what the full system does. Levels just below "
        "and above have to show that it keeps up with so much and no more; a second answer holds the limit of latency "
        "(draft 5.2.3).",
        {
            "sustainable load": "The highest load at which completions keep up with arrivals, without a limit of "
            "latency (draft 5.2.3).",
            "tokens per gpu-second": "Output tokens per second, divided by the number of accelerators declared "
            "(draft 5.2.4.2).",
            "max input throughput": "Prompt tokens taken in per second, cached ones among them (draft 5.2.4.1).",
        },
    ),
    "tradeoff": Words(
        "Levels in rising order, as percentages of the estimated capacity; each records what was offered and "
        "what was achieved, for beyond saturation the two part (draft 5.3.3).",
        {
            "offered": "Requests sent per second, whatever came of them.",
            "achieved": "Output tokens received per second.",
            "knee": "The first level whose P99 latency is above twice the smallest P99 seen (draft 5.3.4).",
            "saturation": "The first level with less throughput than the level before it (draft 5.3.4).",
            "optimal": "The level of the highest throughput that meets every objective declared (draft 5.3.4).",
        },
        headline=("optimal operating point", "knee point", "saturation point", "peak throughput"),
    ),
    "itl": Words(
        "At each load level the gaps between the tokens of every answer are pooled; the wait for the first "
        "token is never among them. Jitter and longest pause are taken request by request (draft 5.4.3).",
        {
            "p99/p50": "How heavy the tail is: 1 would be perfectly even (draft 5.4.4.3).",
            "jitter": "Standard deviation of one request's gaps.",
            "pause": "The longest gap of one request.",
            "modality": "Whether gaps gather about one length or several; several point to distinct regimes, "
            "batching for one (draft 5.4.4.3).",
        },
        headline=("itl p99", "time between chunks p99"),
    ),
    "capacity": Words(
        "Concurrency doubles until a level fails, then the gap between the last that passed and the first that "
        "failed is halved again and again. Each level is held for the time and completions that draft 5.5.3 asks for.",
        {
            "completion": "Share of requests that completed.",
            "errors": "Out of memory and other system errors; time-outs only lower completion.",
            "tokens in flight": "Tokens of all prompts and answers so far, summed over the requests under way "
            "(draft 5.5.4).",
        },
    ),
    "fairness": Words(
        "Each class is measured alone at the total load of the mix, then all classes together; how much slower "
        "a class becomes is its inflation (draft 5.6.3).",
        {
            "jain": "1 is perfectly fair; below 0.9 is significant unfairness. Of each request's TTFT over what a "
            "prompt of its length takes alone (draft 5.6.4).",
            "starvation": "Share of a class's requests that waited longer than 5 times their class's median "
            "(draft 5.6.4).",
            "inflation": "TTFT in the mix over TTFT alone; 1 means that the other class costs nothing (draft 5.6.4).",
        },
    ),
    "prefix-cache": Words(
        "The same requests three times: with the cache off, with it on and empty, with it on and filled; then "
        "as many as it takes in closed loop, for throughput (draft 5.7.3).",
        {
            "cold": "Cache on, but nothing in it at the start.",
            "warm": "Cache on and filled with the shared beginnings before measuring.",
            "hit rate": "Share of the shared tokens that came from the cache, as the server reports it (draft 5.7.4).",
            "reduction": "By how much TTFT falls, as a share of TTFT without cache (draft 5.7.4).",
        },
    ),
    "memory-pressure": Words(
        "The highest concurrency that is sustained on this workload is found first. Then levels above it are held, and "
        "completions, preemptions and failures counted (draft 5.8.3).",
        {
            "oversub": "Concurrency as a share of the highest that is sustained.",
            "preempt": "Share of requests put back by the server at least once, by its own counters; not "
            "measured where it has none (draft 5.8.4).",
            "recovery": "Share of the preempted requests that completed after all (draft 5.8.4).",
        },
    ),
    "long-context": Words(
        "Lengths in rising order at low concurrency; TTFT against length is fitted by a straight line, a "
        "parabola and a power law, and the fit that explains most with fewest parameters is named (draft 5.9.3).",
        {
            "ms/1k": "Mean TTFT for each 1000 tokens of the prompt (draft 5.9.4).",
            "exponent": "k in TTFT ~ length^k: 1 is proportional, 2 quadratic (draft 5.9.4).",
            "r\u00b2": "Share of the variation that the fit explains, 1 being all of it.",
        },
    ),
    "guardrail": Words(
        "The same benign workload with every filter off, with each alone and with all, at the same offered "
        "loads, which are shares of the capacity without filters (draft 5.10.3).",
        {
            "e2e": "From the last byte of the request to the last token of the answer.",
            "reduction": "By how much throughput falls, as a share of the baseline's; a minus sign is a rise (draft 5.10.4).",
            "change": "Of throughput against the baseline's: a minus sign is a fall.",
            "overhead": "Latency with the filter less latency of the baseline (draft 5.10.4).",
        },
        headline=("overhead",),
    ),
    "cold-start": Words(
        "The system is started again and again without warm-up. Model load time runs to the first healthy "
        "answer, cold-start latency is the TTFT of the first request after it.",
        {
            "load time": "From the command to the first healthy answer.",
            "cold": "These results are of a cold system and stand beside no warm ones.",
        },
        headline=("load time", "cold start latency"),
    ),
}

_UNKNOWN = Words("")


def of(test: ProcedureDocument) -> Words:
    """The words of a test; none for one that this version does not know."""
    return WORDS.get(test.test, _UNKNOWN)


def meanings(test: ProcedureDocument) -> list[tuple[str, str]]:
    """(heading as it stands, what it means) for each heading of the test's values and tables that has a meaning, once each."""
    shown = [labelled(value.label, value.at) for value in test.values]
    for table in test.tables:
        shown += [clean(column.label) for column in table.columns]
        shown += [clean(row[0]) for row in table.rows if row and isinstance(row[0], str)]
    found: dict[str, str] = {}
    for key, means in of(test).columns.items():
        match = next((label for label in shown if key in label.lower()), None)
        if match is not None:
            found.setdefault(match, means)
    return list(found.items())


def headline(test: ProcedureDocument) -> ReportedValue | None:
    """The value that stands for the test."""
    return headline_of(test.test, test.values)


def headline_of(test: str, values: Sequence[ReportedValue]) -> ReportedValue | None:
    """The value that stands for a test of this name: the first number that its words name; where none of them was measured the
    first of these, for no other value stands for it. A value of just that name leaves those that only have it in theirs, such
    as the knee of another latency, out. Of a test without such words, its first value."""
    meant: list[ReportedValue] = []
    for key in WORDS.get(test, _UNKNOWN).headline:
        named = [value for value in values if value.label.lower() == key]
        meant += named or [value for value in values if key in value.label.lower()]
    measured = (value for value in meant if is_number(value.value))
    return next(measured, next(iter(meant or values), None))
