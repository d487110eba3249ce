"""Which engine is simulated: a preset by name, and settings over it.

A setting is `key=value`; its keys are the fields of the engine's Speeds, in ns where they end in `_ns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from inferometer.errors import PlanError, Problem
from inferometer.server.model import Speeds

PRESETS = {"reference": Speeds()}
DEFAULT_PRESET = "reference"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine to simulate: the name of its preset and what it comes to."""

    preset: str
    speeds: Speeds

    def facts(self) -> dict[str, Any]:
        """For run.json: all that is needed to build it again, the seed apart."""
        return {"preset": self.preset, "settings": asdict(self.speeds)}


def choose(preset: str | None = None, settings: Sequence[str] = ()) -> Chosen:
    """The preset with the settings over it. Raises PlanError with every problem found."""
    name = preset or DEFAULT_PRESET
    if name not in PRESETS:
        raise PlanError([Problem("--preset", f"there is no {name!r}; there are: {', '.join(PRESETS)}")])
    kinds = {field.name: type(getattr(Speeds(), field.name)) for field in fields(Speeds)}
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in kinds:
            problems.append(
                Problem("--set", f"{setting!r} is not key=value with a key of {', '.join(kinds)}")
            )
            continue
        try:
            values[key] = kinds[key](value)
        except ValueError:
            kind = "a whole number" if kinds[key] is int else "a number"
            problems.append(Problem("--set", f"{key} is {kind}, not {value!r}"))
    if problems:
        raise PlanError(problems)
    try:
        return Chosen(name, replace(PRESETS[name], **values))
    except ValueError as wrong:
        raise PlanError([Problem("--set", str(wrong))]) from wrong
