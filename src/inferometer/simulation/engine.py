"""Which engine is simulated: a preset by name, and settings over it (docs/engine.md has both)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.settings import Settings, changed
from inferometer.server.presets import PRESETS

DEFAULT_PRESET = "tiny-cpu"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine to simulate: the name of its preset and what it comes to."""

    preset: str
    settings: Settings


def choose(preset: str | None = None, settings: Sequence[str] = ()) -> Chosen:
    """The preset with the settings over it. Raises PlanError with every problem found."""
    name = preset or DEFAULT_PRESET
    if name not in PRESETS:
        raise PlanError([Problem("--preset", f"there is no {name!r}; there are: {', '.join(PRESETS)}")])
    return Chosen(name, changed(PRESETS[name], settings))
