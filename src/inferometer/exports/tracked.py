"""What trackers of experiments are given of a run: parameters, figures and tags, as flat names with plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from inferometer.documents.outcomes import distributions, outcomes
from inferometer.documents.part import to_data
from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import marks_of
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS
from inferometer.metrics.statistics import STATISTICS, Stats
from inferometer.printable import printable

EXPERIMENT = "inferometer"
"""The experiment, or project, that runs are logged to."""


def title(summary: Summary) -> str:
    """The run's name, with its verdict unless that is VALID."""
    marks = marks_of(summary)
    return marks.name if marks.verdict == "VALID" else f"{marks.name} [{marks.verdict}]"


def tags(summary: Summary) -> dict[str, str]:
    """The marks, and what the run was of."""
    marks = marks_of(summary)
    found = {
        "run": marks.run,
        "verdict": marks.verdict,
        "reasons": " ".join(marks.reasons),
        "simulated": str(marks.simulated).lower(),
        "interrupted": str(marks.interrupted).lower(),
        "version": summary.version,
        "plan_hash": summary.run.plan_hash or "",
        "model": marks.model or "",
    }
    return {f"inferometer.{name}": value for name, value in found.items()}


def values(summary: Summary) -> dict[str, float]:
    """Every figure that is defined: `ttft_ms.p99`, `output_tok_s`, `requests.failed`, in the units of summary.json."""
    found: dict[str, float] = {}
    for key in METRICS:
        stats: Stats | None = getattr(summary.metrics, key)
        if stats is not None:
            found |= _of(key, stats)
    for key in RATES:
        rate: float | None = getattr(summary.throughput, key)
        if rate is not None:
            found[key] = float(rate)
    if summary.success_rate.value is not None:
        found[SUCCESS] = summary.success_rate.value
    for key, _, stats in distributions(summary):
        found |= _of(key, stats)
    found |= {one.key: one.value for one in outcomes(summary)}
    states = ("sent", "completed", "failed", "cancelled")
    return found | {f"requests.{state}": float(getattr(summary.requests, state)) for state in states}


def _of(key: str, stats: Stats) -> dict[str, float]:
    named = {name: getattr(stats, name) for name in ("n", *STATISTICS)}
    return {f"{key}.{name}": float(value) for name, value in named.items() if value is not None}


def parameters(summary: Summary) -> dict[str, str]:
    """The plan's keys, `load.rate` for one, that have a value."""
    return {name: printable(value) for name, value in _flat("", to_data(summary.plan)) if value}


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif value is not None and value != []:
        yield name, value if isinstance(value, str) else json.dumps(value)
