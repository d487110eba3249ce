"""What cannot be asked of a server together with a reference system."""

from __future__ import annotations

from inferometer.errors import Problem
from inferometer.server.engine.settings import Settings
from inferometer.server.options import Options


def engine_conflicts(engine: Settings) -> list[Problem]:
    """Settings of an engine that a system cannot stand on."""
    if not engine.refusal_share:
        return []
    return [Problem("--set refusal_share", "refusals of the engine's are not known to a system: use rag's")]


def conflicts(options: Options) -> list[Problem]:
    """Everything wrong with the options that concern a system."""
    if options.system is None:
        alone = "write spans of a system: add --system agent or --system rag"
        return [] if options.spans is None else [Problem("--spans", alone)]
    problems = []
    if options.beat is not None:
        problems.append(Problem("--interval-us", "a system calls the engine: a fixed script has none"))
    if options.routes is not None:
        problems.append(Problem("--routes", "a system has routes of its own"))
    if options.parts:
        problems.append(
            Problem(
                "--reasoning-tokens/--tool-call-tokens", "a system decides itself what its answer consists of"
            )
        )
    problems += engine_conflicts(options.engine)
    if options.spans is not None:
        try:
            with open(options.spans, "ab"):
                pass
        except OSError as error:
            problems.append(Problem("--spans", f"cannot write {options.spans}: {error.strerror}"))
    return problems
