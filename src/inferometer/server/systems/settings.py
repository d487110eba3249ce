"""What makes one reference system differ from another: times of its tools, lengths of its calls, faults.

Read from `key=value` words, as the engine's are: times lose their `_ns` and take a unit (`search=20ms`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.settings import Guards, Settings, check_range, on_or_off, time_ns

SYSTEMS = ("agent", "rag")
GUARDED = ("rag",)
"""Systems that have guardrails among their steps."""
FAULTS = ("step_fails", "drop_tool", "slow_tool", "wrong_answer", "false_usage")
"""Settings that are shares, 0 to 1: of steps, of tool calls, of tool calls, of tasks, of tasks."""


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """Times in ns, lengths in tokens; docs/reference-systems.md explains each. Raises ValueError for what makes no system."""

    planner_tokens: int = 24
    calculator_ns: float = 2_000_000
    search_ns: float = 30_000_000
    clock_ns: float = 1_000_000
    guardrail_ns: float = 5_000_000
    input_guardrail: bool = True
    output_guardrail: bool = True
    retrieval_ns: float = 15_000_000
    rerank_ns: float = 10_000_000
    passages: int = 3
    step_fails: float = 0
    drop_tool: float = 0
    slow_tool: float = 0
    slow_tool_by_ns: float = 1_000_000_000
    wrong_answer: float = 0
    false_usage: float = 0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_range(field.name, getattr(self, field.name))
        for name in ("planner_tokens", "passages"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in FAULTS:
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must be at most 1")

    def guards(self, system: str) -> tuple[bool, bool]:
        """Whether a task of this system passes a guardrail on its way in, and on its way out."""
        there = system in GUARDED
        return there and self.input_guardrail, there and self.output_guardrail


def guarded_by(
    system: str, own: SystemSettings, engine: Settings, which: Guards
) -> tuple[SystemSettings, Settings]:
    """A system and its engine with only these of their guardrails on: both are inside the boundary of a compound system (draft
    4.1.3). `own` and `engine`: with all that there are. Raises ValueError where neither has any of these."""
    before, behind = own.guards(system)
    there = {True: before or behind, False: True, "input": before, "output": behind}[which]
    try:
        values = engine.guarded_by(which)
    except ValueError as why:
        if not there:
            kind = "" if which is True else f"{which} "
            words = f"the {system} system was started without {kind}guardrails, and so was its engine"
            raise ValueError(words) from why
        values = engine.guarded_by(False)
    switched = dataclasses.replace(
        own,
        input_guardrail=own.input_guardrail and which in (True, "input"),
        output_guardrail=own.output_guardrail and which in (True, "output"),
    )
    return switched, dataclasses.replace(engine, **values)  # type: ignore[arg-type]  # each of its field's type


_WHOLE = ("planner_tokens", "passages")
SYSTEM_FIELDS = {field.name.removesuffix("_ns"): field.name for field in dataclasses.fields(SystemSettings)}
"""Key of `key=value`: field."""


def divided(words: Iterable[str], system: str | None) -> tuple[list[str], list[str]]:
    """`key=value` words that set the engine, and those that set the system; without a system all are the engine's."""
    every = list(words)
    own = [word for word in every if system is not None and word.partition("=")[0] in SYSTEM_FIELDS]
    return [word for word in every if word not in own], own


def system_settings(words: Iterable[str]) -> SystemSettings:
    """The defaults with these words applied. Raises PlanError with everything wrong at once."""
    problems: list[Problem] = []
    values: dict[str, float] = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            field = SYSTEM_FIELDS[key]
            values[field] = _value(field, text)
        except ValueError as error:
            problems.append(Problem(f"--set {word}", str(error)))
    if problems:
        raise PlanError(problems)
    try:
        return SystemSettings(**values)  # type: ignore[arg-type]  # each was read by its field's type
    except ValueError as error:
        raise PlanError([Problem("--set", str(error))]) from error


def _value(field: str, text: str) -> float:
    """Raises ValueError in words."""
    if field.endswith("_ns"):
        return time_ns(text)
    if isinstance(SystemSettings.__dataclass_fields__[field].default, bool):
        return on_or_off(text)
    try:
        return int(text) if field in _WHOLE else float(text)
    except ValueError:
        wanted = "a whole number" if field in _WHOLE else "a share from 0 to 1"
        raise ValueError(f"{field} must be {wanted}") from None
