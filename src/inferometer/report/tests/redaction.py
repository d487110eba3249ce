"""A campaign's document without what tells how much the system takes before it falls over (draft 7.1).

    left out                                  in its place
    values, tables, figures marked capacity   the words `withheld (capacity)`; nothing of their contents
    columns, values, axes in a unit of load   the same, marked or not
    loads of runs and plans, hashes of plans  the same: a hash lets a load be guessed and confirmed
    parameters other than those of PLAIN      the same
    sentences with a number in them           the same, but for numbers of sections, rules and percentiles
    instants                                  the day: requests over time would be a rate

What is left out is left out of the data, so no rendering can show it. Deciding by what is allowed, not by what is known to
tell, keeps it right for parameters and sentences that do not exist yet.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from inferometer.report.tests.cells import WITHHELD

Document = dict[str, Any]

LOAD_UNITS = ("req/s", "requests/s", "tok/s", "tokens/s", "tok/s/GPU", "conversations/s")
LOADS = re.compile(
    r"concurren|in.flight|offered|sustain|saturat|(?<!success.)\brate\b|_rate\b|throughput", re.IGNORECASE
)
"""Names and headings of what is a load whatever its unit."""

PLAIN = {
    "requests", "percent", "most_percent", "duration_s", "level_s", "throughput_s", "success_rate", "resolution", "longer",
    "input_tokens", "output_tokens", "lengths", "configurations", "starts", "patience_s", "requests_per_class", "loop",
    "completions_per_slot",
}  # fmt: skip
"""Parameters that tell what was done and not how much the system takes."""

PLAN_PARTS = ("schema", "workload", "tokenizer", "sut", "sampling")
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
    """A copy without what `what` names; `capacity` is the only kind there is. The document is a campaign's.

    Raises:
        ValueError: an unknown kind.
    """
    if what != "capacity":
        raise ValueError(f"{what} is nothing that can be withheld; `capacity` is")
    campaign = copy.deepcopy(dict(document))
    names: dict[str, str] = {}
    campaign["tests"] = [_test(test, names) for test in campaign["tests"]]
    campaign |= {
        "started": _day(campaign["started"]),
        "ended": _day(campaign["ended"]),
        "verdict": _verdict(campaign["verdict"], names),
        "minimum": _minimum(campaign["minimum"]),
        "compliance": _statement(campaign["compliance"], names),
        "disclosed": [one for one in campaign.get("disclosed") or [] if one["name"] in METHOD],
        "reproduction": _reproduction(campaign["reproduction"]),
        "redacted": [what],
    }
    for name in ("id", "name"):
        campaign[name] = (
            WITHHELD if LOADS.search(str(campaign[name])) or _spoken(campaign[name]) else campaign[name]
        )
    campaign["sut"]["notes"] = _sentence(campaign["sut"]["notes"])
    return campaign


def _spoken(text: object) -> bool:
    """Whether a name tells a load: `h100-20rps`."""
    return bool(re.search(r"\d\s*(?:rps|req|r/s|tok|conc)", str(text), re.IGNORECASE))


def _day(moment: str | None) -> str | None:
    return moment and moment.partition("T")[0]


def _sentence(text: str | None) -> str | None:
    """The sentence, or WITHHELD where it holds a number that may be a load."""
    if not text:
        return text
    return WITHHELD if _NUMBER.search(_HARMLESS.sub("", text)) else text


def _verdict(verdict: Mapping[str, Any], names: dict[str, str]) -> Document:
    reasons = [
        dict(reason)
        | {
            "message": _sentence(reason["message"]),
            "run": _run_name(reason["run"], names) if reason.get("run") else None,
        }
        for reason in verdict["reasons"]
    ]
    return dict(verdict) | {"reasons": reasons}


def _run_name(name: str, names: dict[str, str]) -> str:
    """Folders may be named after a load; a run is told from another by its number."""
    return names.setdefault(name, f"run {len(names) + 1}")


def _test(test: Mapping[str, Any], names: dict[str, str]) -> Document:
    runs = [
        dict(run)
        | {"run": _run_name(run["run"], names), "at": WITHHELD, "why": WITHHELD, "summary_sha256": WITHHELD}
        for run in test["runs"]
    ]
    parameters = {
        name: value if name in PLAIN or value is None else WITHHELD
        for name, value in test["parameters"].items()
    }
    return dict(test) | {
        "started": _day(test["started"]),
        "ended": _day(test["ended"]),
        "problem": _sentence(test["problem"]),
        "parameters": parameters,
        "plan": {name: part for name, part in test["plan"].items() if name in PLAN_PARTS},
        "plan_hash": WITHHELD,
        "verdict": _verdict(test["verdict"], names),
        "compliance": _statement(test["compliance"], names),
        "switches": [dict(one) | {"how": _sentence(one["how"]), "evidence": _sentence(one["evidence"])}
                     for one in test["switches"]],
        "runs": runs,
        "values": [_value(value) for value in test["values"]],
        "tables": [_table(table) for table in test["tables"]],
        "figures": [_figure(figure) for figure in test["figures"]],
        "notes": [_sentence(note) for note in test["notes"]],
        "undecided": [_sentence(one) for one in test["undecided"]],
    }  # fmt: skip


def _telling(part: Mapping[str, Any]) -> bool:
    """Whether a value, column or axis is a load by its unit or its name."""
    named = f"{part.get('name', '')} {part['label']}"
    return part["unit"] in LOAD_UNITS or (part["unit"] in ("", "tokens") and bool(LOADS.search(named)))


def _heading(part: Mapping[str, Any], key: str) -> str:
    """Title or label of something withheld, or its name, or neither where numbers are in both."""
    named = (str(part[key]), str(part["name"]).replace("_", " "))
    return next((words for words in named if _sentence(words) == words), "something measured")


def _renamed(part: Mapping[str, Any]) -> Document:
    """Its name, where that holds no number."""
    return {"name": "withheld"} if _NUMBER.search(str(part["name"])) else {}


def _value(value: Mapping[str, Any]) -> Document:
    if value["capacity"] or _telling(value):
        told = {
            "label": _heading(value, "label"),
            "value": WITHHELD,
            "ci": None,
            "note": "",
            "capacity": True,
        }
        return dict(value) | told | _renamed(value)
    return dict(value) | {"note": _sentence(value["note"])}


def _table(table: Mapping[str, Any]) -> Document:
    if table["capacity"]:
        told = {"title": _heading(table, "title"), "columns": [], "rows": [], "notes": [WITHHELD]}
        return dict(table) | told | _renamed(table)
    telling = [_telling(column) for column in table["columns"]]
    rows = [
        [WITHHELD if hide else one for one, hide in zip(row, telling, strict=True)] for row in table["rows"]
    ]
    title = _heading(table, "title") if any(telling) else table["title"]
    return dict(table) | {"title": title, "rows": rows, "notes": [_sentence(note) for note in table["notes"]]}


def _figure(figure: Mapping[str, Any]) -> Document:
    if figure["capacity"] or _telling(figure["x"]) or _telling(figure["y"]):
        told = {"title": _heading(figure, "title"), "series": [], "marks": [], "capacity": True}
        return dict(figure) | told | _renamed(figure)
    series = [dict(one) | {"label": _label(one["label"])} for one in figure["series"]]
    marks = [dict(one) | {"label": _label(one["label"])} for one in figure["marks"]]
    return dict(figure) | {"series": series, "marks": marks}


def _label(label: str) -> str:
    """Of a series or mark: `90 %` stays, `12 req/s` does not."""
    return WITHHELD if _spoken(label) or LOADS.search(label) else label


def _statement(statement: Mapping[str, Any] | None, names: dict[str, str]) -> Document | None:
    """Rules and how they stand stay; what was found stays where it holds no number."""
    if statement is None:
        return None
    listed = {
        name: [_finding(one, names) for one in statement[name]]
        for name in ("findings", "deviations")
        if name in statement
    }
    kept = {name: part for name, part in statement.items() if name in STATED}
    trusted = (
        {"limitations": [_sentence(one) for one in statement["limitations"]]}
        if "limitations" in statement
        else {}
    )
    return kept | listed | trusted


STATED = ("draft", "test", "section", "label", "counts")
"""Members of a statement that hold no load."""


def _finding(finding: Mapping[str, Any], names: dict[str, str]) -> Document:
    run = finding.get("run")
    return dict(finding) | {"note": _sentence(finding.get("note")), "run": run and _run_name(run, names)}


def _minimum(minimum: Mapping[str, Any]) -> Document:
    hidden = ("load_model", "test_duration_s", "max_throughput_tok_s", "throughput_at_p99_ttft_500ms_tok_s")
    return (
        dict(minimum)
        | dict.fromkeys(hidden, WITHHELD)
        | {"notes": [_sentence(one) for one in minimum["notes"]]}
    )


def _reproduction(about: Mapping[str, Any]) -> Document:
    return dict(about) | {"command": WITHHELD, "plan_file": WITHHELD, "run_folders": []}
