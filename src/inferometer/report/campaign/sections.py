"""From a campaign's tests to its document: the parts that are about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer import __version__
from inferometer.report.campaign.disclosure import of_run
from inferometer.report.run.composition import moment

SCHEMA = "inferometer/campaign/1"

LINES = (
    *(
        "model",
        "hardware",
        "software",
        "boundary",
        "workload",
        "load_model",
        "request_count",
        "test_duration_s",
    ),
    *("ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p99_ms"),
)
"""Lines of draft C.1 that a run fills."""

Document = Mapping[str, Any]


def compose(
    *,
    name: str,
    label: str,
    started: int,
    ended: int,
    simulated: bool,
    quick: bool,
    tests: Sequence[Document],
    summaries: Mapping[str, Mapping[str, Any]],
    verdict: Mapping[str, Any],
    compliance: Any,
    reproduction: Mapping[str, Any],
) -> dict[str, Any]:
    """The campaign's document (docs/tests.md). `name`: of its folder, `summaries`: of its runs, by the name of their folder."""
    first = next(iter(summaries.values()), None)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "id": name,
        "name": label,
        "started": moment(started),
        "ended": moment(ended),
        "simulated": simulated,
        "quick": quick,
        "sut": None if first is None else first["sut"],
        "environment": None if first is None else first["environment"],
        "tokenizer": None if first is None else first["tokens"]["tokenizer"],
        "disclosed": _disclosed(tests, summaries),
        "verdict": dict(verdict),
        "minimum": minimum(tests, summaries),
        "tests": list(tests),
        "compliance": compliance,
        "reproduction": dict(reproduction),
        "redacted": None,
    }


def _disclosed(tests: Sequence[Document], summaries: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """The method of the run that stands for the system. Where it relies on the warm-up of its test's first run, that one's."""
    shown = _representative(tests)
    if shown is None:
        return []
    mine = next(test for test in tests if shown in test["runs"])
    warmed = {row["name"]: row for row in of_run(summaries[mine["runs"][0]["run"]])}
    bare = not summaries[shown["run"]]["plan"]["load"]["warmup"]
    rows = of_run(summaries[shown["run"]])
    return [warmed.get("Warm-up", row) if bare and row["name"] == "Warm-up" else row for row in rows]


def minimum(tests: Sequence[Document], summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the lines of draft C.1 need. Latencies are of the first level of the TTFT test, or of the first level there is; None
    is: not measured."""
    run = _representative(tests)
    summary = None if run is None else summaries[run["run"]]
    values = {
        value["name"]: value["value"]
        for test in tests
        if test["test"] == "throughput"
        for value in test["values"]
    }
    found: dict[str, Any] = {
        **dict.fromkeys(LINES),
        "max_throughput_tok_s": values.get("max_output_tok_s"),
        "throughput_at_p99_ttft_500ms_tok_s": values.get("throughput_at_ttft_limit"),
        "notes": [],
    }
    if summary is None:
        return found
    sut, metrics = summary["sut"], summary["metrics"]
    for metric in ("ttft", "tpot"):
        for name in ("p50", "p99"):
            found[f"{metric}_{name}_ms"] = (metrics[f"{metric}_ms"] or {}).get(name)
    version = sut["model_version"]
    count = sut["accelerator_count"]
    offered = summary["load"]["offered"]
    slots = offered["concurrency"]
    return found | {
        "model": " ".join(part for part in (sut["model"], version, sut["quantization"]) if part),
        "hardware": f"{sut['accelerator']} x {count}" if sut["accelerator"] and count else sut["accelerator"],
        "software": sut["software"],
        "boundary": sut["boundary"],
        "workload": summary["plan"]["workload"]["name"],
        "load_model": f"closed loop, {slots} in flight"
        if slots
        else f"open loop, {offered['rate']:.4g} requests/s",
        "request_count": summary["requests"]["sent"],
        "test_duration_s": summary["window"]["duration_s"],
        "of_run": run and run["run"],
        "seed": summary["plan"]["workload"]["seed"],
    }


def _representative(tests: Sequence[Document]) -> Document | None:
    """The run whose latencies stand for the system: the first level of the TTFT test; else the one that confirmed the highest
    load; else the first that was no mere search."""
    found = [(test["test"], run) for test in tests for run in test["runs"] if not _searching(run["part"])]
    levels = [run for test, run in found if test == "ttft"]
    confirmed = [run for test, run in found if test == "throughput" and run["part"] == "confirm"]
    chosen: Document | None = next(iter([*levels, *confirmed[-1:], *(run for _, run in found)]), None)
    return chosen


def _searching(part: str) -> bool:
    return part.startswith("base-") or part in ("pilot", "warm-up")
