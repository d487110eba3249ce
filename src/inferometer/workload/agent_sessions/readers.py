"""The formats of recorded sessions that are read, by name. To add one, write a Reader in a file of its own and list it here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from inferometer.errors import PlanError, Problem
from inferometer.workload.agent_sessions.aiperf_format import AIPerfFormat
from inferometer.workload.agent_sessions.mlperf_format import MLPerfFormat
from inferometer.workload.agent_sessions.otel_format import OTelFormat
from inferometer.workload.agent_sessions.own_format import OwnFormat
from inferometer.workload.agent_sessions.recorded_lines import beginning
from inferometer.workload.agent_sessions.session import AgentSession
from inferometer.workload.agent_sessions.weka_format import WekaFormat


class Reader(Protocol):
    """One format."""

    @property
    def name(self) -> str:
        """What `--sessions-format` calls it."""

    def detect(self, begins: bytes) -> bool:
        """Whether a file that begins with these bytes, at most 64 KiB without leading blanks, is in this format."""

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """The sessions of a file in its order, each validated as it is read; the file is read to its end once, and is not held.

        Raises PlanError, which names the file without its folder, the line and the field, and none of its words.
        """


READERS: dict[str, Reader] = {
    one.name: one for one in (OwnFormat(), MLPerfFormat(), WekaFormat(), OTelFormat(), AIPerfFormat())
}


def reader_of(path: Path, name: str = "auto") -> Reader:
    """The reader of the format with this name, or where it is `auto`, of the format that the file begins like. Raises
    PlanError."""
    if name != "auto":
        if name not in READERS:
            raise PlanError([Problem("--sessions-format", f"must be auto or {' or '.join(READERS)}")])
        return READERS[name]
    begins = beginning(path)
    if not begins:
        raise PlanError([Problem(path.name, "is empty: write a session a line (docs/agent-sessions.md)")])
    for one in READERS.values():
        if one.detect(begins):
            return one
    words = f"begins like no format that is known: name it with --sessions-format ({', '.join(READERS)})"
    raise PlanError([Problem(path.name, words)])
