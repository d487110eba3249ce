"""Whose fault it is decides the class of the error and the exit code of the program.

| class           | whose fault          | exit |
| --------------- | -------------------- | ---- |
| PlanError       | the user's words     | 2    |
| PeerError       | the server under test| 5    |
| TokenizerGone   | the same             | 5    |
| CannotSwitch    | the same             | 5    |
| RecordError     | a file on disk       | 2    |
| InstrumentError | ours                 | 70   |

A request that fails is not an error in this sense: it is a row of the record with its class.
"""

from __future__ import annotations

from dataclasses import dataclass


class InferometerError(Exception):
    """Anything the program reports in words instead of a traceback."""

    exit_code = 70


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a plan: `where` is the flag (`--rate`) or `plan.yaml:12 load.rate`."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class PlanError(InferometerError):
    """The flags or the plan file cannot be carried out. Carries every problem found, not just the first."""

    exit_code = 2

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))

    def __reduce__(self) -> tuple[type[PlanError], tuple[list[Problem]]]:
        """Out of another process it comes with its problems."""
        return type(self), (self.problems,)


class PeerError(InferometerError):
    """The server cannot be reached or cannot serve this plan at all.

    `said`: what was tried, and the answer; `advice`: flags of a run that may mend it, which other commands lack; `status`:
    of HTTP, if it answered.
    """

    exit_code = 5

    def __init__(self, said: str, advice: str = "", status: int | None = None) -> None:
        self.said, self.status = said, status
        super().__init__(f"{said} {advice}" if advice else said)


class TokenizerGone(PeerError):
    """The server's /tokenize answered, and then did no more."""


class CannotSwitch(InferometerError):
    """The system under test cannot be brought into a state that a test needs."""

    exit_code = 5


class RecordError(InferometerError):
    """A file of a run folder is missing, damaged, or of a version this program does not read."""

    exit_code = 2


class InstrumentError(InferometerError):
    """Our own fault: a worker died, an invariant broke."""

    exit_code = 70
