"""Which engine is simulated: a preset by name, and settings over it (docs/engine.md has both); and which system on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.settings import Guards, Settings, changed
from inferometer.server.presets import PRESETS, engine_of
from inferometer.server.systems.conflicts import engine_conflicts
from inferometer.server.systems.settings import SYSTEMS, divided, guarded_by, system_settings
from inferometer.simulation.systems import ChosenSystem

DEFAULT_PRESET = "tiny-cpu"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine to simulate: the name of its preset and what it comes to. `system`: the one that stands on it, if one does."""

    preset: str
    settings: Settings
    system: ChosenSystem | None = None

    @property
    def guards(self) -> tuple[bool, bool]:
        """Whether a system has guardrails of its own on, of input and output; those of an engine are settings."""
        return (False, False) if self.system is None else self.system.settings.guards(self.system.name)

    @property
    def guarded(self) -> bool:
        """Whether any guardrail is on."""
        return any(self.guards) or self.settings.guarded

    def guarded_by(self, which: Guards) -> Chosen:
        """The same with only these of all its guardrails on. Raises ValueError where it has none of them."""
        if self.system is None:
            values = self.settings.guarded_by(which)
            return replace(self, settings=replace(self.settings, **values))  # type: ignore[arg-type]  # each of its field's type
        own, engine = guarded_by(self.system.name, self.system.settings, self.settings, which)
        return replace(self, settings=engine, system=replace(self.system, settings=own))


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
    engine = changed(engine_of(name, system), of_engine)
    if system is None:
        return Chosen(name, engine)
    if problems := engine_conflicts(engine):
        raise PlanError(problems)
    return Chosen(name, engine, ChosenSystem(system, system_settings(own)))
