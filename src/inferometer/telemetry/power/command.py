"""A meter of the user's: a command that prints one number, the watts that the whole machine draws now.

| printed                         | reading     |
| ------------------------------- | ----------- |
| `231.5`, and any white space    | 231.5 W     |
| a unit, several numbers, words  | `malformed` |
| exit code other than 0          | `vanished`  |
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.telemetry.power.command_output import output
from inferometer.telemetry.power.readings import PowerReading, number

NAME = "command"
TIMEOUT_S = 5.0


class CommandMeter:
    """See Meter. `command`: the program and its arguments; it runs anew for each reading."""

    name = NAME

    def __init__(self, command: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        self._command, self._timeout_s = tuple(command), timeout_s

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter."""
        watts = number(NAME, output(NAME, self._command, self._timeout_s))
        return (PowerReading(NAME, "machine", "0", watts=watts, method="power"),)

    def close(self) -> None:
        """See Meter."""
