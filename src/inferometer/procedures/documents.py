"""The Long Context workload with lengths of a test's own: document and question (draft 4.3.2.5, A.5)."""

from __future__ import annotations

from typing import Any

from inferometer.plan.lengths import Distribution
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.procedures.setup import variant

NAME = "long-context"

_OTHER_WORDS: dict[str, Any] = {
    "dataset": None,
    "dataset_subset": None,
    "dataset_version": None,
    "prompts": None,
    "order": "file",
    "prompts_sha256": None,
    "file": None,
    "file_sha256": None,
    "classes": (),
    "turns": None,
    "think_ms": None,
    "replies": "server",
    "domain": None,
    "language": None,
    "prefix_sharing": None,
}
"""What another workload may have said of its own words."""


def documents(plan: Plan, inputs: Distribution | None = None, outputs: Distribution | None = None) -> Plan:
    """The plan with Long Context in place of its workload; None: the standard's lengths. With others it is custom, based on
    Long Context."""
    standard = STANDARD[NAME]
    workload = {
        "name": "custom",
        "based_on": NAME,
        "input_tokens": str(inputs or standard[0]),
        "output_tokens": str(outputs or standard[1]),
    }
    return variant(plan, workload={**_OTHER_WORDS, **workload})
