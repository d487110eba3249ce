"""The draft's rules as data: catalogue.json, which ships with the package.

| level                          | counts as | a test that breaks it                                |
| ------------------------------ | --------- | ---------------------------------------------------- |
| MUST, REQUIRED                 | MUST      | is not compliant                                     |
| SHOULD, RECOMMENDED            | SHOULD    | is conditionally compliant at best                   |
| states                         |           | has a deviation to list; the label stands (draft 2)  |

Draft 2 binds by words in capitals alone. What it states plainly (60 s, 10 levels, 500 requests a class) is listed all the same,
for appendix C asks for deviations.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.part import from_data

Level = Literal["MUST", "REQUIRED", "SHOULD", "RECOMMENDED", "states"]
Weight = Literal["MUST", "SHOULD", "states"]
Kind = Literal["program", "runs", "plan", "declared", "report", "campaign", "comparison"]
"""What a rule is checked on: what the program does in every run, what runs show, the plan, somebody's word, the tables and
figures of a test, all tests of a campaign together, or the systems that are compared."""

DRAFT = "draft-gaikwad-llm-benchmarking-methodology-00"
TESTS = {
    "ttft": "5.1",
    "throughput": "5.2",
    "tradeoff": "5.3",
    "itl": "5.4",
    "capacity": "5.5",
    "fairness": "5.6",
    "prefix-cache": "5.7",
    "memory-pressure": "5.8",
    "long-context": "5.9",
    "guardrail": "5.10",
    "cold-start": "4.5.3",
    "compare": "6",
}
"""What can carry a statement, and its section. Section 6 counts toward `compare` alone, and nothing else does."""
WEIGHTS: dict[Level, Weight] = {
    "MUST": "MUST",
    "REQUIRED": "MUST",
    "SHOULD": "SHOULD",
    "RECOMMENDED": "SHOULD",
    "states": "states",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One duty. `tests`: the tests it is about, or `all`; `text` what it asks, `how` how that is found out."""

    id: str
    section: str
    level: Level
    tests: tuple[str, ...]
    kind: Kind
    text: str
    how: str

    @property
    def weight(self) -> Weight:
        """What the level counts as."""
        return WEIGHTS[self.level]

    def about(self, test: str) -> bool:
        """Whether it is a duty of this test."""
        return test in self.tests or ("all" in self.tests and test != "compare")


@functools.cache
def catalogue() -> tuple[Rule, ...]:
    """Every rule, in the draft's order."""
    text = importlib.resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    return from_data(json.loads(text), tuple[Rule, ...])
