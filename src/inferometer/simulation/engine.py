"""Which engine is simulated: a preset by name, and settings over it (docs/engine.md has both); and which system on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.settings import Settings, changed
from inferometer.server.presets import PRESETS
from inferometer.server.systems.conflicts import engine_conflicts
from inferometer.server.systems.settings import SYSTEMS, divided, system_settings
from inferometer.simulation.systems import ChosenSystem

DEFAULT_PRESET = "tiny-cpu"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine to simulate: the name of its preset and what it comes to. `system`: the one that stands on it, if one does."""

    preset: str
    settings: Settings
    system: ChosenSystem | None = None


def choose(preset: str | None = None, settings: Sequence[str] = (), system: str | None = None) -> Chosen:
    """The preset with the settings over it, and the system of this name with those that are its own. Raises PlanError with the
    problems found."""
    name = preset or DEFAULT_PRESET
    if system is not None and system not in SYSTEMS:
        words = f"there is no {system!r}; there are: {', '.join(SYSTEMS)}"
        raise PlanError([Problem("--system", words)])
    if name not in PRESETS:
        raise PlanError([Problem("--preset", f"there is no {name!r}; there are: {', '.join(PRESETS)}")])
    of_engine, own = divided(settings, system)
    engine = changed(PRESETS[name], of_engine)
    if system is None:
        return Chosen(name, engine)
    if problems := engine_conflicts(engine):
        raise PlanError(problems)
    return Chosen(name, engine, ChosenSystem(system, system_settings(own)))
