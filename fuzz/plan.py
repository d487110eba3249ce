"""Plan files: a plan, which comes back the same from its own JSON, or a list of problems."""

from __future__ import annotations

from pathlib import Path

from inferometer.errors import PlanError
from inferometer.plan import saved
from inferometer.plan.document import Document, parse
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan

PATH = Path("plan.yaml")


def check(data: bytes) -> None:
    """Read a plan file."""
    plan = built(data.decode("utf-8", "replace"))
    if plan is not None:
        text = saved.to_json(plan)
        again = built(text.decode())
        assert again == plan
        assert again is not None
        assert saved.to_json(again) == text


def built(text: str) -> Plan | None:
    """The plan; None if problems are named."""
    document = Document(str(PATH))
    parse(text, document)
    try:
        return build(PATH, file=document)
    except PlanError as error:
        problems = error.problems
    assert problems
    for problem in problems:
        f"{problem.where}{problem.message}".encode()
    return None
