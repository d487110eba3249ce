"""What a report must disclose of how tokens were counted and time was taken, which a campaign's document takes from a run.

    summary of a run --of_run--> [{"name", "value"}]  the campaign's member `disclosed`

The campaign has tokenizer, system and seeds of its own. The rest only a run knows: chunking, ITL option, warm-up, clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inferometer.documents.part import from_data
from inferometer.documents.summary import Summary
from inferometer.report.campaign import compliance
from inferometer.report.campaign.cells import WITHHELD, amount, cell
from inferometer.report.figures import UNDECLARED, UNKNOWN, UNMEASURED, Row, clean, text
from inferometer.report.run import disclosure

OPTIONS = {
    "native": "native: each system's own tokenizer (draft 4.4.2, option A)",
    "reference": "reference: one declared tokenizer for every system (draft 4.4.2, option B)",
}
"""Token counting by word; the letters of 4.4.2 and 4.6.3 mean different things."""

OF_LOAD = ("Load", "Requests", "Window", "Steady window", "Trace: replayed", "Trace: made in time")
"""Rows that tell how much load there was."""
SHARED = (
    "Token counts",
    "Chunking",
    "ITL option",
    "Time stamps",
    "Clocks",
    "Warm-up",
    "Prefix caching",
    "Guardrails",
)
"""Rows of a run's method that stand in the minimum report's disclosures."""
PERCENTILES = ("P50", "P90", "P95", "P99", "P99.9")


def of_run(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """A run's method, for the campaign's member `disclosed`: the run is one that every test's reader may take for the rule."""
    return [{"name": name, "value": value} for name, value in disclosure.method(from_data(summary, Summary))]


def rows(campaign: Mapping[str, Any]) -> list[Row]:
    """The fields that every report has to have and C.1 lacks, in the draft's order (4.3.3 to 4.8, 5.1.4)."""
    tokenizer = campaign["tokenizer"]
    told = _declared(campaign["sut"])
    told |= {clean(one["name"]): clean(one["value"]) for one in campaign["disclosed"]}
    missing = WITHHELD if campaign["redacted"] else UNKNOWN
    return [
        ("Seeds", text(campaign["reproduction"]["seeds"])),
        ("Tokenizer", f"{text(tokenizer.get('name'))}, version {text(tokenizer.get('version'))}"),
        ("Vocabulary size", text(tokenizer.get("vocab_size"))),
        ("Tokenizer source", text(tokenizer.get("source"))),
        ("Token counting", OPTIONS.get(str(tokenizer.get("method")), text(tokenizer.get("method")))),
        ("Special tokens", _special(tokenizer)),
        ("Streaming", _protocol(campaign["sut"])),
        *((name, told.get(name, missing)) for name in SHARED),
        *ttft(campaign),
        ("Verdict", clean(campaign["verdict"]["status"])),
        *(
            (f"Compliance, {clean(one['test'])}", compliance.label(one["compliance"]))
            for one in campaign["tests"]
        ),
    ]


def _declared(sut: Mapping[str, Any]) -> dict[str, str]:
    """What the tester declared, where no run's method is at hand: whether requests were refused, nobody knows."""
    state = {None: UNDECLARED, True: "on", False: "off"}
    rails = sut["guardrails"]
    filters = f"input filter {state[rails['input_filter']]}, output filter {state[rails['output_filter']]}"
    return {
        "Guardrails": f"{filters}, systems {text(rails['names'], UNDECLARED)}, refused requests not known",
        "Prefix caching": f"{text(sut['prefix_caching'], UNDECLARED)}; cache before the run: "
        f"{text(sut['cache_state'])} (declared)",
    }


def _special(tokenizer: Mapping[str, Any]) -> str:
    kind = tokenizer.get("kind")
    return UNKNOWN if kind is None else disclosure.SPECIAL_TOKENS[kind == "none"]


def _protocol(sut: Mapping[str, Any]) -> str:
    return f"{text(sut['protocol'])}, {text(sut['api'])}, {'streamed' if sut['stream'] else 'not streamed'}"


def ttft(campaign: Mapping[str, Any]) -> list[Row]:
    """Sample count and five percentiles of TTFT, from the first table of draft 5.1.5.2; of several it says which."""
    tables = list(_results(campaign))
    first = tables[0] if tables else None
    found = {} if first is None else {str(row[0]).split()[-1]: row for row in first["rows"] if row}
    which = [("TTFT, first level", clean(tables[0]["title"]))] if len(tables) > 1 else []
    return [
        *which,
        *((f"TTFT {name}", _of_row(first, found.get(name))) for name in ("Requests", *PERCENTILES)),
    ]


def _results(campaign: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for test in campaign["tests"]:
        if test["test"] == "ttft":
            yield from (table for table in test["tables"] if table["section"] == "5.1.5.2")


def _of_row(table: Mapping[str, Any] | None, row: Any) -> str:
    """A row's cells; more than one, each with its column's heading."""
    if table is not None and WITHHELD in table["notes"]:
        return WITHHELD
    if table is None or row is None:
        return UNMEASURED
    # Draft 5.1.5.2's table is in ms, whether its heading says so or its note.
    units = ["" if row[0] == "Requests" else column["unit"] or "ms" for column in table["columns"][1:]]
    told = [
        (cell(column["label"]), amount({"value": one, "unit": unit}))
        for one, unit, column in zip(row[1:], units, table["columns"][1:], strict=True)
        if one is not None
    ]
    if len(told) < 2:
        return told[0][1] if told else UNMEASURED
    return "; ".join(f"{label}: {words}" for label, words in told)
