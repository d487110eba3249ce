"""Campaigns with planted values, saved as repeats lie, and what comparing them gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from campaigns import simulated
from msgspec.structs import replace

from inferometer.documents.campaign import (
    Campaign,
    ProcedureDocument,
    ProcedureReason,
    ProcedureVerdict,
    ReportedValue,
)
from inferometer.documents.campaign_comparison import CampaignComparison, CampaignFigure
from inferometer.documents.part import to_json
from inferometer.judge.procedure_verdict import verdict_of_campaign
from inferometer.studies.campaign_comparison import compare_campaign_folders
from inferometer.studies.comparison import Question

Values = Mapping[str, Mapping[str, float]]
"""By test and name."""
NAMES = {
    "ttft": "ttft_p50", "throughput": "max_output_tok_s", "tradeoff": "knee", "itl": "itl_p99_25",
    "capacity": "max_concurrency",
    "fairness": "jain", "prefix-cache": "ttft_reduction_cold", "memory-pressure": "base_concurrency",
    "long-context": "us_per_token", "guardrail": "input_overhead_50", "cold-start": "load_time",
}  # fmt: skip
"""The value that stands for each test."""


def a_test(name: str, values: Mapping[str, float], **changes: Any) -> ProcedureDocument:
    """A VALID test with these values."""
    reported = tuple(
        ReportedValue(key, key, number, "", (number * 0.99, number * 1.01), None, False)
        for key, number in values.items()
    )
    empty: Any = {
        "runs": (), "undecided": (), "parameters": {}, "ended_by": None, "tables": (), "figures": (), "notes": (),
        "compliance": None, "plan": {}, "verdict": ProcedureVerdict("VALID", ()),
    }  # fmt: skip
    return replace(simulated().tests[0], test=name, values=reported, **{**empty, **changes})


def a_campaign(number: int, seed: int, tests: Sequence[ProcedureDocument], **changes: Any) -> Campaign:
    """A measured campaign of its own time and name, by a version whose figures are not held to runs, which it has none of."""
    one = simulated()
    seeded = replace(one.reproduction, seeds=(seed,))
    names: Any = {
        "id": f"campaign-{number}",
        "version": "planted",
        "started": f"2026-01-02T{number % 24:02}:04:05.000Z",
        "simulated": False,
        "reproduction": seeded,
        "verdict": ProcedureVerdict("VALID", ()),
    }
    return replace(one, tests=tuple(tests), **{**names, **changes})


def consistent(one: Campaign) -> Campaign:
    """The campaign as its tests make it: their kind, its verdict and its line of throughput."""
    reasons = {
        status: ProcedureVerdict(status, (ProcedureReason("planted", status, None, "Planted."),))
        for status in ("INVALID", "INCONCLUSIVE")
    } | {"VALID": ProcedureVerdict("VALID", ())}
    tests = tuple(
        replace(test, simulated=one.simulated, quick=one.quick, verdict=reasons[test.verdict.status])
        for test in one.tests
    )
    shown = {value.name: value.value for test in tests if test.test == "throughput" for value in test.values}
    most: Any = shown.get("max_output_tok_s")
    return replace(
        one,
        tests=tests,
        verdict=verdict_of_campaign([(test.test, test.title, test.verdict) for test in tests]),
        minimum=replace(one.minimum, max_throughput_tok_s=most),
    )


def saved(folder: Path, campaigns: Sequence[Campaign]) -> str:
    """The campaigns in a folder, as repeats lie."""
    for one in campaigns:
        (folder / one.id).mkdir(parents=True)
        (folder / one.id / "campaign.json").write_text(to_json(consistent(one)))
    return str(folder)


def compared(*sides: str, **asked: Any) -> CampaignComparison:
    return compare_campaign_folders(sides, Question(**asked))


def figure(document: CampaignComparison, name: str) -> CampaignFigure:
    return next(one for one in document.contrasts[0].figures if one.name == name)
