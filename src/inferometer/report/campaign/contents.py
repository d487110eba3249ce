"""The six sections of draft C.2 as rows and words, for Markdown and HTML alike.

1 system  2 configuration  3 results  4 each test  5 compliance  6 reproduction
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inferometer.documents.part import from_data
from inferometer.documents.summary import Environment, Sut
from inferometer.report.campaign import compliance, compliance_summary, disclosure, titles
from inferometer.report.campaign.cells import WITHHELD, amount, bounds, cell, is_number
from inferometer.report.campaign.minimum import result
from inferometer.report.figures import UNKNOWN, Row, clean, moment, text
from inferometer.report.run import rows as run_rows

Campaign = Mapping[str, Any]

SECTIONS = (
    "System Identification",
    "Test Configuration",
    "Results",
    "Detailed Results",
    "Methodology Compliance",
    "Reproduction Information",
)
"""Draft C.2."""

LIMITATIONS = (
    "What the instrument cannot see from outside, the tester declares; a declared state is marked as such.",
    "Workloads are benign (draft 7.3): adversarial input may be slower or faster.",
    "Results hold for this system, configuration and workload; verify them against samples of production traffic (draft 7.2).",
)

CANNOT_RERUN = "A redacted report cannot be carried out again: the loads it would need are withheld."


def lede(campaign: Campaign) -> str:
    """What was tested, in a sentence or two."""
    minimum = campaign["minimum"]
    what = result(minimum, "model", "")
    return (
        f"{compliance_summary.tally(campaign)}. Model {what} ({result(minimum, 'boundary', '')}) "
        f"on {result(minimum, 'hardware', '')}, software {result(minimum, 'software', '')}; "
        "tests of draft-gaikwad-llm-benchmarking-methodology-00."
    )


def system(campaign: Campaign) -> list[Row]:
    """1. Model, hardware, software as declared; what the server said of itself; the client's machine."""
    declared = run_rows.declared_system(from_data(campaign["sut"], Sut), "", simulated=campaign["simulated"])
    found = [(name, value) for name, value in declared if name != "Guardrails"]
    return [
        *found,
        *(row for row in disclosure.rows(campaign) if row[0] == "Guardrails"),
        *(
            (f"Client: {name.lower()}", value)
            for name, value in run_rows.machine(_client(campaign["environment"]))
        ),
    ]


def _client(environment: Mapping[str, Any]) -> Environment:
    """The client's machine; a campaign that ended early does not know all of it."""
    return from_data({"inferometer": None, "hostname": None, **environment}, Environment)


def configuration(campaign: Campaign) -> list[Row]:
    """2. Workload, load and execution parameters that hold for every test; those of one test stand with it."""
    minimum = campaign["minimum"]
    own = [
        row for row in disclosure.rows(campaign) if not row[0].startswith(("TTFT", "Compliance", "Verdict"))
    ]
    return [
        ("Workload", result(minimum, "workload", "")),
        ("Load model", result(minimum, "load_model", "")),
        ("Requests", result(minimum, "request_count", "")),
        ("Duration", result(minimum, "test_duration_s", "s")),
        ("Time", "simulated" if campaign["simulated"] else "real"),
        ("Sizes", "quick: below the draft's" if campaign["quick"] else "as planned"),
        *own,
    ]


def summaries(campaign: Campaign) -> dict[str, list[Row]]:
    """3. Summaries of latency, throughput and success."""
    minimum = campaign["minimum"]
    named = {"TPOT P50": "tpot_p50_ms", "TPOT P99": "tpot_p99_ms"}
    latency = [row for row in disclosure.ttft(campaign) if row[0] != "TTFT Requests"]
    if not any(test["test"] == "ttft" for test in campaign["tests"]):
        latency = [
            (name, result(minimum, key, "ms"))
            for name, key in (("TTFT P50", "ttft_p50_ms"), ("TTFT P99", "ttft_p99_ms"))
        ]
    counted = [
        ("Requests, first run", clean(one["value"]))
        for one in campaign["disclosed"]
        if one["name"] == "Requests"
    ]
    return {
        "Latency": [*latency, *((name, result(minimum, key, "ms")) for name, key in named.items())],
        "Throughput": [
            ("Max throughput", result(minimum, "max_throughput_tok_s", "tok/s")),
            (
                "Throughput at P99 TTFT < 500 ms",
                result(minimum, "throughput_at_p99_ttft_500ms_tok_s", "tok/s"),
            ),
        ],
        "Success": [
            *counted,
            *(
                (f"{compliance_summary.title(test)}, verdicts of its runs", compliance_summary.runs(test))
                for test in campaign["tests"]
            ),
        ],
    }


def detail(test: Mapping[str, Any]) -> dict[str, Any]:
    """4. One test: objective, set-up, procedure, what was measured. Tables and figures are drawn from the document."""
    about = titles.of(test)
    reasons = compliance_summary.reasons(test["verdict"])
    return {
        "name": clean(test["test"]),
        "title": compliance_summary.title(test),
        "section": clean(test["section"]),
        "verdict": clean(test["verdict"]["status"]),
        "compliance": compliance.label(test["compliance"]),
        "problem": compliance_summary.problem(test),
        "objective": clean(test["objective"] or about.objective),
        "procedure": about.procedure,
        "when": f"{moment(test['started'])} to {moment(test['ended'])}; {compliance_summary.runs(test)}",
        "setup": [(clean(name), text(value, "none")) for name, value in test["parameters"].items()],
        "switches": [_switch(one) for one in test["switches"]],
        "reasons": reasons,
        "undecided": [told for one in test["undecided"] if (told := clean(one)) not in reasons],
        "values": [
            {
                "label": clean(one["label"]),
                "value": amount(one),
                "interval": bounds(one),
                "note": clean(one["note"]).removeprefix(f"{amount(one)}: "),
            }
            for one in test["values"]
        ],
        "meanings": titles.meanings(test),
        "notes": [clean(note) for note in test["notes"]],
        "runs": [_run(one) for one in test["runs"]],
    }


def _switch(one: Mapping[str, Any]) -> str:
    seen = f"; seen: {clean(one['evidence'])}" if one["evidence"] else ""
    return f"{clean(one['what'])} {clean(one['state'])}: {clean(one['status'])}, by {clean(one['how'])}{seen}"


def _run(one: Mapping[str, Any]) -> dict[str, str]:
    at = (
        WITHHELD
        if one["at"] == WITHHELD
        else ", ".join(f"{clean(k)} {cell(v)}" for k, v in one["at"].items())
    )
    # The whole fingerprint is in campaign.json; its head is enough to tell two apart.
    made_of = cell(one.get("fingerprint") or UNKNOWN)
    if made_of != WITHHELD:
        made_of = made_of.removeprefix("sha256:")[:12]
    keys = ("run", "part", "why", "verdict")
    return {key: clean(one[key]) for key in keys} | {"at": at, "requests": made_of}


def performed(campaign: Campaign) -> list[dict[str, str]]:
    """5. Label of each test with how many findings there were of each kind."""
    return [
        row | {"tally": compliance.tally(test["compliance"])}
        for row, test in zip(compliance_summary.overview(campaign), campaign["tests"], strict=True)
    ]


def findings(campaign: Campaign) -> list[dict[str, str]]:
    """5. What is not simply in order, worst first; what several tests share stands once, with their names."""
    tests: dict[tuple[str, ...], list[str]] = {}
    about: dict[tuple[str, ...], dict[str, str]] = {}
    statements = [("campaign", campaign["compliance"])]
    statements += [(clean(test["test"]), test["compliance"]) for test in campaign["tests"]]
    for name, statement in statements:
        for one in compliance.findings(statement):
            about[key := tuple(one.values())] = one
            tests.setdefault(key, []).append(name)
    order = {"fail": 0, "unsure": 1, "note": 2}
    every = len(campaign["tests"])
    return [
        about[key] | {"tests": "all tests" if len(names) == every > 1 else ", ".join(names)}
        for key, names in sorted(tests.items(), key=lambda item: order[about[item[0]]["class"]])
    ]


def limitations(campaign: Campaign) -> list[str]:
    """5. What holds of every report, then what the statements leave to trust."""
    told = [one for test in campaign["tests"] for one in compliance.limitations(test["compliance"])]
    return list(dict.fromkeys([*LIMITATIONS, *told]))


def reproduction(campaign: Campaign) -> dict[str, Any]:
    """6. Harness, configuration and data, and the command that carries it out again."""
    about = campaign["reproduction"]
    plan = about["plan"]
    harness = [(clean(name), text(value)) for name, value in about["versions"].items()]
    data = [("Seeds", text(about["seeds"])), ("Plan, resolved", "tests.json, and in this report")]
    data += [
        (
            "Requests",
            "requests.parquet of each run folder; each run's fingerprint of them stands with the test",
        )
    ]
    data += [
        (f"Plan of {clean(test['test'])}", text(test["plan_hash"], UNKNOWN)) for test in campaign["tests"]
    ]
    return {
        "redacted": CANNOT_RERUN if compliance_summary.redacted(campaign) else "",
        "command": clean(about["command"]),
        "harness": [
            ("Inferometer", clean(campaign["version"])),
            *(row for row in harness if row[0] != "inferometer"),
        ],
        "plan": clean(plan) if isinstance(plan, str) else json.dumps(plan, indent=2, ensure_ascii=False),
        "data": data,
    }


def cells_of(table: Mapping[str, Any]) -> list[list[tuple[str, bool]]]:
    """(text, whether it is a number) of each cell of each row."""
    return [[(cell(one), is_number(one)) for one in row] for row in table["rows"]]
