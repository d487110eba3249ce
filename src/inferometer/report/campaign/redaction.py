"""A campaign's document without what tells how much the system takes before it falls over (draft 7.1).

| left out                                           | in its place                                              |
| -------------------------------------------------- | --------------------------------------------------------- |
| values, tables, figures marked `capacity`          | `withheld (capacity)`, and nothing of their contents      |
| columns, values and axes that are loads by unit    | the same, marked or not                                   |
| or by name                                         |                                                           |
| counts of requests where time ended a run          | the same: with the draft's durations they are rates       |
| loads of runs and plans, durations, names of runs  | the same; runs are numbered                               |
| hashes of plans, requests and summaries            | the same: they let a load be guessed and confirmed        |
| parameters other than those of PLAIN               | the same                                                  |
| sentences with a number in them                    | the same, but for numbers of sections, rules, percentiles |
| instants                                           | the day: requests over time would be a rate               |

What is left out is left out of the data, so no rendering can show it. Members, parameters and sentences are kept because they
are known to tell nothing, not left out because they are known to tell: what is new is withheld.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from inferometer.report.campaign.cells import WITHHELD

Document = dict[str, Any]

LOAD_UNITS = (
    "req/s",
    "requests/s",
    "1/s",
    "tok/s",
    "tokens/s",
    "tok/s/GPU",
    "tok/s per GPU",
    "conversations/s",
    "tokens",
    "requests",
)
LOADS = re.compile(
    r"concurren|in.flight|offered|sustain|saturat|capacity|slots|(?<!success.)(?<!fail.)\brate\b|throughput",
    re.IGNORECASE,
)
"""Names and headings of what is a load whatever its unit."""
COUNTS = re.compile(
    r"^(?:n|count|counts|samples|requests|sent|completed|arrived|seconds)$|samples|requests", re.IGNORECASE
)
BY_REQUESTS = ("ttft", "itl", "prefix-cache", "long-context")
"""Tests whose runs end with a number of requests: the number alone tells no rate."""
LENGTHS = re.compile(r"context|input|output|prompt|length", re.IGNORECASE)
"""What is counted in tokens and is no load."""

PLAIN = {
    "requests", "percent", "most_percent", "success_rate", "resolution", "longer", "input_tokens", "output_tokens", "lengths",
    "configurations", "starts", "patience_s", "loop", "classes",
}  # fmt: skip
"""Parameters that tell what was done and not how much the system takes."""

PLAN_PARTS = ("schema", "workload", "tokenizer", "sut")
"""Parts of a plan that hold no load."""

METHOD = {
    "Token counts", "ITL option", "Protocol", "Time stamps", "Clocks", "Prefix caching", "Guardrails", "Tokenizer", "Seed",
}  # fmt: skip
"""Rows of a run's method that hold no load."""

_HARMLESS = re.compile(
    r"\b(?:draft|section|table|appendix)\s+[A-C0-9][\d.]*|\bD-[\w.-]+|\bP\d\d(?:\.9)?\b|HTTP/\d(?:\.\d)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")


def redact(document: Mapping[str, Any], what: str) -> Document:
    """A copy of a campaign's document without what `what` names; `capacity` is the only kind there is.

    Raises:
        ValueError: an unknown kind.
    """
    if what != "capacity":
        raise ValueError(f"{what} is nothing that can be withheld; `capacity` is")
    campaign = _kept(
        copy.deepcopy(dict(document)),
        ("schema", "version", "id", "name", "simulated", "quick", "sut", "environment", "tokenizer"),
    )
    names: dict[str, str] = {}
    campaign |= {name: _label(str(campaign[name])) for name in ("id", "name")}
    campaign |= {name: _day(document[name]) for name in ("started", "ended")}
    if campaign["sut"]:
        campaign["sut"]["notes"] = _sentence(campaign["sut"]["notes"])
    about = document["reproduction"]
    return campaign | {
        "disclosed": [one for one in document.get("disclosed") or [] if one["name"] in METHOD],
        "verdict": _verdict(document["verdict"], names),
        "minimum": _minimum(document["minimum"]),
        "tests": [_test(test, names) for test in document["tests"]],
        "compliance": _statement(document["compliance"], names),
        "reproduction": _kept(about, ("versions", "seed", "seeds"))
        | {"command": WITHHELD, "campaign": WITHHELD},
        "redacted": [what],
    }


def _kept(part: Mapping[str, Any], names: tuple[str, ...]) -> Document:
    return {name: part[name] for name in names if name in part}


def _day(moment: str | None) -> str | None:
    return moment and moment.partition("T")[0]


def _sentence(text: str | None) -> str | None:
    """The sentence, or WITHHELD where it holds a number that may be a load."""
    if not text:
        return text
    return WITHHELD if _NUMBER.search(_HARMLESS.sub("", text)) else text


_SPOKEN = re.compile(
    r"\d\s*-?(?:rps|qps|r/s|req|tok|conc|in.flight|at.once|users|slots|conversations|x\b)|(?:rate|concurrency|slots)\D{0,3}\d",
    re.IGNORECASE,
)


def _label(text: str) -> str:
    """A label or title without the load in it: `TTFT P50, 12 requests/s` becomes `TTFT P50`."""
    parts = [part for part in text.split(", ") if not _SPOKEN.search(part)]
    return ", ".join(parts) or WITHHELD


def _verdict(verdict: Mapping[str, Any], names: dict[str, str]) -> Document:
    reasons = [
        _kept(reason, ("code", "status"))
        | {"message": _sentence(reason["message"]), "run": _run_name(reason.get("run"), names)}
        for reason in verdict["reasons"]
    ]
    return {"status": verdict["status"], "reasons": reasons}


def _run_name(name: str | None, names: dict[str, str]) -> str | None:
    """Folders may be named after a load; a run is told from another by its number."""
    return None if name is None else names.setdefault(name, f"run {len(names) + 1}")


def _test(test: Mapping[str, Any], names: dict[str, str]) -> Document:
    kept = ("schema", "version", "test", "section", "title", "objective", "simulated", "quick", "ended_by")
    by_time = test["test"] not in BY_REQUESTS
    return _kept(test, kept) | {
        "started": _day(test["started"]),
        "ended": _day(test["ended"]),
        "problem": _sentence(test["problem"]),
        "parameters": {
            name: value
            if value is None or (name in PLAIN and not (by_time and name == "requests"))
            else WITHHELD
            for name, value in test["parameters"].items()
        },
        "plan": _kept(test["plan"], PLAN_PARTS),
        "plan_hash": WITHHELD,
        "verdict": _verdict(test["verdict"], names),
        "compliance": _statement(test["compliance"], names),
        "switches": [
            _kept(one, ("what", "state", "status"))
            | {"how": _sentence(one["how"]), "evidence": _sentence(one["evidence"])}
            for one in test["switches"]
        ],
        "runs": [
            {"run": _run_name(run["run"], names), "part": run["part"], "verdict": run["verdict"]}
            | {"at": WITHHELD, "why": WITHHELD, "fingerprint": WITHHELD}
            for run in test["runs"]
        ],
        "values": [_value(value, by_time) for value in test["values"]],
        "tables": [_table(table, by_time) for table in test["tables"]],
        "figures": [_figure(figure, by_time) for figure in test["figures"]],
        "notes": [_sentence(note) for note in test["notes"]],
        "undecided": [_sentence(one) for one in test["undecided"]],
    }


def _telling(part: Mapping[str, Any], by_time: bool) -> bool:
    """Whether a value, column or axis is a load by its unit or its name, or a count that with the time gives one."""
    names = (str(part.get("name", "")), str(part["label"]))
    if part["unit"] in LOAD_UNITS:
        return not (part["unit"] == "tokens" and any(map(LENGTHS.search, names)))
    if part["unit"]:
        return False
    return any(LOADS.search(name) or (by_time and COUNTS.search(name)) for name in names)


def _named(part: Mapping[str, Any], key: str) -> Document:
    """Title or label and name of something withheld: without numbers."""
    shown = (str(part[key]), str(part["name"]).replace("_", " "))
    title = next((words for words in shown if _sentence(words) == words), "something measured")
    return {key: title, "name": "withheld" if _NUMBER.search(str(part["name"])) else part["name"]}


def _value(value: Mapping[str, Any], by_time: bool) -> Document:
    if value["capacity"] or _telling(value, by_time):
        return (
            dict(value)
            | _named(value, "label")
            | {"value": WITHHELD, "ci": None, "note": "", "capacity": True}
        )
    return dict(value) | {"label": _label(value["label"]), "note": _sentence(value["note"])}


def _table(table: Mapping[str, Any], by_time: bool) -> Document:
    if table["capacity"]:
        return dict(table) | _named(table, "title") | {"columns": [], "rows": [], "notes": [WITHHELD]}
    telling = [_telling(column, by_time) for column in table["columns"]]
    return dict(table) | {
        "title": _label(table["title"]),
        "columns": [dict(column) | {"label": _label(column["label"])} for column in table["columns"]],
        "rows": [_row(row, telling, by_time) for row in table["rows"]],
        "notes": [_sentence(note) for note in table["notes"]],
    }


def _row(row: list[Any], telling: list[bool], by_time: bool) -> list[Any]:
    """A row's cells without the loads; a row that names a load, or a unit of one, has none left."""
    words = [one for one in row if isinstance(one, str) and one != WITHHELD]
    whole = any(one in LOAD_UNITS or LOADS.search(one) or (by_time and COUNTS.search(one)) for one in words)
    return [
        _label(one)
        if isinstance(one, str) and not hide
        else WITHHELD
        if hide or (whole and one is not None)
        else one
        for one, hide in zip(row, telling, strict=True)
    ]


def _figure(figure: Mapping[str, Any], by_time: bool) -> Document:
    if figure["capacity"] or _telling(figure["x"], by_time) or _telling(figure["y"], by_time):
        return dict(figure) | _named(figure, "title") | {"series": [], "marks": [], "capacity": True}
    lines = ("series", "marks")
    relabelled = {
        name: [dict(one) | {"label": _label(one["label"])} for one in figure[name]] for name in lines
    }
    return dict(figure) | {"title": _label(figure["title"])} | relabelled


STATED = ("draft", "test", "section", "label", "counts")
"""Members of a statement that hold no load."""


def _statement(statement: Mapping[str, Any] | None, names: dict[str, str]) -> Document | None:
    """Rules and how they stand stay; what was found stays where it holds no number."""
    if statement is None:
        return None
    listed = {
        name: [_finding(one, names) for one in statement[name]]
        for name in ("findings", "deviations")
        if name in statement
    }
    trusted = [_sentence(one) for one in statement.get("limitations") or []]
    return _kept(statement, STATED) | listed | {"limitations": trusted}


def _finding(finding: Mapping[str, Any], names: dict[str, str]) -> Document:
    kept = _kept(finding, ("id", "section", "level", "text", "state"))
    return kept | {"note": _sentence(finding.get("note")), "run": _run_name(finding.get("run"), names)}


def _minimum(minimum: Mapping[str, Any]) -> Document:
    kept = (
        "model", "hardware", "software", "boundary", "workload", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p99_ms",
    )  # fmt: skip
    hidden = (
        "load_model",
        "request_count",
        "test_duration_s",
        "max_throughput_tok_s",
        "throughput_at_p99_ttft_500ms_tok_s",
    )
    notes = [_sentence(one) for one in minimum["notes"]]
    return _kept(minimum, kept) | dict.fromkeys(hidden, WITHHELD) | {"notes": notes}
