"""The Long Context workload with lengths of a test's own: document and question (draft 4.3.2.5, A.5)."""

from __future__ import annotations

from inferometer.plan.lengths import Distribution
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.procedures.setup import another_workload

NAME = "long-context"


def documents(plan: Plan, inputs: Distribution | None = None, outputs: Distribution | None = None) -> Plan:
    """The plan with Long Context in place of its workload; None: the standard's lengths. With others it is custom, based on
    Long Context."""
    standard = STANDARD[NAME]
    return another_workload(
        plan,
        name="custom",
        based_on=NAME,
        input_tokens=str(inputs or standard[0]),
        output_tokens=str(outputs or standard[1]),
    )
