"""What a report must disclose of how tokens were counted and time was taken.

A campaign has tokenizer, system and seeds of its own. The rest only a run knows (chunking, ITL option, warm-up, clocks): the
rows of its method, which the campaign's document has as `disclosed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from inferometer.documents.campaign import Campaign, MethodRow, ProcedureDocument, ReportedTable
from inferometer.documents.note import WITHHELD
from inferometer.documents.results import Cell
from inferometer.documents.summary import Summary, Sut, TokenizerAccount
from inferometer.plan.declarations import Declared
from inferometer.report.campaign import compliance, overview
from inferometer.report.campaign.cells import labelled, with_unit
from inferometer.report.figures import MARK, UNDECLARED, UNKNOWN, UNMEASURED, Row, clean, figure, text
from inferometer.report.run import disclosure
from inferometer.report.run.rows import declared_guardrails

OPTIONS = {
    "native": "native: each system's own tokenizer (draft 4.4.2, option A)",
    "reference": "reference: one declared tokenizer for every system (draft 4.4.2, option B)",
}
"""Token counting by word; the letters of 4.4.2 and 4.6.3 mean different things."""

HARMLESS = {
    "Token counts": "token_counts",
    "ITL option": "itl_option",
    "Protocol": "protocol",
    "Time stamps": "time_stamps",
    "Clocks": "clocks",
    "Prefix caching": "prefix_caching",
    "Guardrails": "guardrails",
    "Tokenizer": "tokenizer",
    "Seed": "seed",
}
"""Keys of the rows of a run's method that tell no load, by their headings, as long as they hold no words of the tester's. Any
other row may tell one."""

SHARED = {
    "token_counts": "Token counts",
    "chunking": "Chunking",
    "itl_option": "ITL option",
    "time_stamps": "Time stamps",
    "clocks": "Clocks",
    "warm_up": "Warm-up",
    "prefix_caching": "Prefix caching",
    "guardrails": "Guardrails",
}
"""Rows of a run's method that stand in the minimum report's disclosures: key and heading there."""
WORKLOAD_DEVIATION = "workload_deviation"
"""Key of a row that says how a workload differs from the standard one it is based on; its name is the tests that used it."""
SWITCHED = {"input": "the input filter", "output": "the output filter", "full": "all filters"}
"""Configurations of guardrails (draft 5.10.2) in words."""
PERCENTILES = ("P50", "P90", "P95", "P99", "P99.9")


def of_run(summary: Summary) -> tuple[MethodRow, ...]:
    """A run's method, for the campaign's member `disclosed`."""
    undeclared = replace(summary, plan=summary.plan.model_copy(update={"declared": Declared()}))
    own = set(disclosure.method(undeclared))
    return tuple(
        MethodRow(_key(name), name, value, name not in HARMLESS or (name, value) not in own)
        for name, value in disclosure.method(summary)
    )


def _key(name: str) -> str:
    return HARMLESS.get(name) or "".join(c if c.isalnum() else "_" for c in name.lower())


def rows(campaign: Campaign) -> list[Row]:
    """The fields that every report has to have and C.1 lacks, in the draft's order (4.3.3 to 4.8, 5.1.4)."""
    return [
        *execution(campaign),
        *ttft(campaign),
        ("Verdict", campaign.verdict.status),
        *(
            (f"Compliance, {clean(one.test)}", compliance.labelled(one.compliance))
            for one in overview.in_order(campaign)
        ),
    ]


def execution(campaign: Campaign) -> list[Row]:
    """Those of them that hold for every test."""
    return [
        ("Seeds", text(campaign.reproduction.seeds)),
        *_tokenizer(campaign.tokenizer),
        ("Streaming", _protocol(campaign.sut)),
        *((name, method(campaign, key)) for key, name in SHARED.items()),
    ]


def method(campaign: Campaign, key: str) -> str:
    """The row `key` of the method that stands for the system; without a run, what was declared. Of guardrails also the
    configurations that tests switched to (draft 4.8.1)."""
    told = next((clean(one.value) for one in campaign.disclosed if one.key == key), None)
    if told is None and campaign.sut is not None:
        told = _declared(campaign.sut).get(key)
    if told is not None and key == "guardrails":
        told += "".join(_configurations(campaign))
    return told or (WITHHELD if campaign.redacted else UNKNOWN)


def guardrails(sut: Sut, tests: Sequence[ProcedureDocument], summaries: Mapping[str, Summary]) -> str:
    """The guardrails as declared for the system, and how many requests of all runs were refused, with the
    configurations in which they were: one that stands for the system tells nothing of the filters of others."""
    refused: Counter[str] = Counter()
    for run in (run for test in tests for run in test.runs):
        count = summaries[run.run].requests.by_error.get("refused", 0)
        refused[run.state.get("guardrails", "baseline")] += count
    words = [
        f"{figure(count)} with {SWITCHED[state]}"
        if state in SWITCHED
        else f"{figure(count)} without a switched filter"
        for state, count in refused.items()
        if count
    ]
    where = f" ({', '.join(words)})" if words else ""
    return f"{declared_guardrails(sut)}, refused requests in all runs {figure(refused.total())}{where}"


def _configurations(campaign: Campaign) -> Iterator[str]:
    """The configurations of guardrails, other than none, in which tests made runs."""
    for test in overview.in_order(campaign):
        states = [
            state for run in test.runs if (state := run.state.get("guardrails", "baseline")) != "baseline"
        ]
        named = [SWITCHED[state] for state in dict.fromkeys(states) if state in SWITCHED]
        if named:
            yield f"; {overview.title(test)} has runs with {', '.join(named)}"


def _declared(sut: Sut) -> dict[str, str]:
    """What the tester declared, where no run's method is at hand: whether requests were refused, nobody knows."""
    caching = text(sut.prefix_caching, UNDECLARED)
    return {
        "guardrails": f"{declared_guardrails(sut)}, refused requests not known",
        "prefix_caching": f"{caching}; cache before the run: {text(sut.cache_state)} (declared)",
    }


def _tokenizer(tokenizer: TokenizerAccount | None) -> list[Row]:
    one = tokenizer or TokenizerAccount(None, None, None, None, None, None)
    special = UNKNOWN if one.kind is None else disclosure.SPECIAL_TOKENS[disclosure.uncounted(one)]
    return [
        ("Tokenizer", f"{text(one.name)}, version {text(one.version)}"),
        ("Vocabulary size", text(one.vocab_size)),
        ("Tokenizer source", text(one.source)),
        ("Token counting", OPTIONS.get(str(one.method), text(one.method))),
        ("Special tokens", special),
    ]


def _protocol(sut: Sut | None) -> str:
    if sut is None:
        return UNKNOWN
    return f"{text(sut.protocol)}, {text(sut.api)}, {'streamed' if sut.stream else 'not streamed'}"


def ttft(campaign: Campaign, *, count: bool = True) -> list[Row]:
    """Sample count (if wanted) and five percentiles of TTFT, from the first table of draft 5.1.5.2; of several it says
    which."""
    tables = list(_results(campaign))
    first = tables[0] if tables else None
    found = {} if first is None else {str(row[0]).split()[-1]: row for row in first.rows if row}
    which = [("TTFT, first level", labelled(tables[0].title, tables[0].at))] if len(tables) > 1 else []
    names = ("Requests", *PERCENTILES) if count else PERCENTILES
    return [
        *which,
        *((f"TTFT {name}", _of_row(first, found.get(name))) for name in names),
    ]


def _results(campaign: Campaign) -> Iterator[ReportedTable]:
    for test in campaign.tests:
        if test.test == "ttft":
            yield from (table for table in test.tables if table.section == "5.1.5.2")


def _of_row(table: ReportedTable | None, row: tuple[Cell, ...] | None) -> str:
    """A row's cells; more than one, each with its column's heading."""
    if table is not None and table.capacity and not table.rows:
        return WITHHELD
    if table is None or row is None:
        return UNMEASURED
    # Draft 5.1.5.2's table is in ms, whether its heading says so or its note.
    columns = table.columns[1:]
    units = ["" if row[0] == "Requests" else column.unit or "ms" for column in columns]
    at = table.rows.index(row)
    marks = [MARK if (at, number) in table.few else "" for number in range(1, len(row))]
    cells = [
        (clean(column.label), with_unit(one, unit) + mark)
        for one, unit, column, mark in zip(row[1:], units, columns, marks, strict=True)
        if one is not None
    ]
    if len(cells) < 2:
        return cells[0][1] if cells else UNMEASURED
    return "; ".join(f"{label}: {words}" for label, words in cells)
