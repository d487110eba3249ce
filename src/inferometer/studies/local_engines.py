"""Engines under measurement that run more than once on this machine, by its processes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inferometer.documents.bench import Remark
from inferometer.studies.detection import PATTERNS, Local
from inferometer.telemetry.processes import (
    EngineProcess,
    duplicates,
    engine_processes,
    own_line,
)


def duplicate_instances(here: Local, keys: Collection[str]) -> Iterator[Remark]:
    """A remark for each of these engines (keys of ADAPTERS) that runs more than once on this machine (asiai's methodology,
    Environment Safety 3)."""
    for key, several in duplicates(_engines(here)).items():
        if key in keys:
            processes = ", ".join(map(_named, several))
            yield Remark(
                "duplicate_processes", {"engine": key, "number": len(several), "processes": processes}
            )


def instances(here: Local, key: str) -> tuple[int, ...]:
    """The first processes of an engine's instances that listen on this machine, if there are two or more."""
    return tuple(one.process.pid for one in duplicates(_engines(here)).get(key, ()))


def _engines(here: Local) -> tuple[EngineProcess, ...]:
    return engine_processes(PATTERNS, here.running, here.listening, own_line(here.running))


def _named(one: EngineProcess) -> str:
    ports = "ports hidden" if one.ports is None else f"port {', '.join(map(str, one.ports))}"
    return f"{one.process.pid} ({ports})"
