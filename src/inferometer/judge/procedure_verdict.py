"""The verdict of a test, out of those of its runs: may the test's answer be believed?

A test drives a system where it fails, on purpose. So what a run's verdict says of the system (it failed requests, its queue
grew, few samples came of it) is the test's own subject, and only what it says of the instrument and of the words sent counts
here. Runs that only estimate where to look do not count.

| reason          | when                                                                    | makes the test |
| --------------- | ----------------------------------------------------------------------- | -------------- |
| a check's code  | it failed, or is unsure, in a run that counts                           | as in the run  |
| `contradicted`  | the system was not in the state that it was switched to                 | INVALID        |
| `partial`       | the test did not come to its end                                        | INCONCLUSIVE   |
| `undecided`     | its runs do not settle what the test is about                           | INCONCLUSIVE   |
| `unanswered`    | not one request of the runs that count was answered                     | INCONCLUSIVE   |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.judge.verdict import RunStatus

OF_THE_INSTRUMENT = frozenset(
    {
        "workers_alive",
        "streamed",
        "lateness",
        "arrival_rate",
        "arrival_dispersion",
        "arrival_lag1",
        "concurrency_held",
        "receive_lag",
        "worker_cpu",
        "clock_step",
        "calibration",
        "prompt_length",
        "output_length",
        "token_counts",
        "server_tokens",
    }
)
"""Checks of a run that say whether its numbers are right; the others are about the system or the number of samples."""
BESIDE = {"cold-start": {"receive_lag"}}
"""What a test is not about: a cold start is a time of one first token, and reads no gaps."""
ESTIMATES = ("pilot", "base-pilot", "warm-up")
OF_FILTERS = ("finish_reason", "policy_status")
"""Signals of a filter at work (measure/measurement.py). A refusal in the answer's own field is the model's."""
CACHED_SHARE = 0.001
"""Prompt tokens from a cache that is off: none, but for a rounding."""
WORST: tuple[RunStatus, ...] = ("INVALID", "INCONCLUSIVE", "VALID")

Document = Mapping[str, Any]


def verdict_of_test(document: Document, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`{status, reasons: [{code, status, run, message}]}`. `document`: of the test (docs/tests.md), `summaries`: of its runs,
    in the same order."""
    reasons: list[dict[str, Any]] = []
    counting = OF_THE_INSTRUMENT - BESIDE.get(document["test"], set())
    for run, summary in zip(document["runs"], summaries, strict=True):
        reasons += contradictions(run, summary)
        if run["part"] in ESTIMATES:
            continue
        for check in summary["verdict"]["checks"]:
            if check["code"] in counting and check["status"] in ("fail", "unsure"):
                status = "INVALID" if check["status"] == "fail" else "INCONCLUSIVE"
                reasons.append(_reason(check["code"], status, run["run"], check["message"]))
    if document["ended_by"] is not None:
        reasons.append(
            _reason(
                "partial", "INCONCLUSIVE", None, f"The test did not come to its end: {document['problem']}"
            )
        )
    counted = [
        summary["requests"]["completed"]
        for run, summary in zip(document["runs"], summaries, strict=True)
        if run["part"] not in ESTIMATES
    ]
    if counted and not any(counted):
        words = "Not one request of the runs that count was answered in full."
        reasons.append(_reason("unanswered", "INCONCLUSIVE", None, words))
    reasons += [_reason("undecided", "INCONCLUSIVE", None, words) for words in document["undecided"]]
    return {"status": worst(reason["status"] for reason in reasons), "reasons": _once(reasons)}


def contradictions(
    run: Document, summary: Mapping[str, Any], what: str | None = None
) -> list[dict[str, Any]]:
    """What a run shows that the state it was made in rules out; of `what` was switched, or of all."""
    state = {name: one for name, one in run["state"].items() if what in (None, name)}
    found = []
    cached = summary["throughput"]["cached_input_share"]
    if state.get("prefix_cache") == "disabled" and cached is not None and cached > CACHED_SHARE:
        words = f"The prefix cache was to be off, and the server took {100 * cached:.2g} % of the prompt tokens from it."
        found.append(_reason("contradicted", "INVALID", run["run"], words))
    if run["part"] == "warm" and state.get("prefix_cache") in ("enabled", "flushed") and cached == 0.0:
        words = "The prefix cache was to be on and filled, and the server says that it took no token from it."
        found.append(_reason("contradicted", "INVALID", run["run"], words))
    signals = (summary.get("refusals") or {}).get("by_signal") or {}
    refused = sum(signals.get(name, 0) for name in OF_FILTERS)
    if state.get("guardrails") == "baseline" and refused:
        words = f"The guardrails were to be off, and {refused} requests were refused by a filter."
        found.append(_reason("contradicted", "INVALID", run["run"], words))
    return found


def worst(statuses: Any) -> RunStatus:
    """The worst of some statuses; VALID of none."""
    said = set(statuses)
    return next((status for status in WORST if status in said), "VALID")


def verdict_of_campaign(tests: Sequence[Document]) -> dict[str, Any]:
    """The worst of its tests', and whose that is."""
    status = worst(test["verdict"]["status"] for test in tests)
    guilty = [test for test in tests if test["verdict"]["status"] == status != "VALID"]
    reasons = [
        {"code": test["test"], "status": status, "run": None, "message": f"{test['title']}: {_first(test)}"}
        for test in guilty
    ]
    return {"status": status, "reasons": reasons}


def _first(test: Document) -> str:
    reasons = test["verdict"]["reasons"]
    return str(next(one["message"] for one in reasons if one["status"] == test["verdict"]["status"]))


def _reason(code: str, status: str, run: str | None, message: str) -> dict[str, Any]:
    return {"code": code, "status": status, "run": run, "message": message}


def _once(reasons: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Worst first; of one code and status the first run's, with how many more say so."""
    kept: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for reason in sorted(reasons, key=lambda one: WORST.index(one["status"])):
        own = reason["message"] if reason["run"] is None else ""
        kept.setdefault((reason["code"], reason["status"], own), []).append(reason)
    return [same[0] | {"runs": len(same)} for same in kept.values()]
