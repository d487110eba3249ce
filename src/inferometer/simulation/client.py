"""The client of a simulation: how late it sends, how late it reads, and how long it takes from an answer to the next request.

| key                 | of a worker                                                       | distribution                      |
| ------------------- | ----------------------------------------------------------------- | --------------------------------- |
| `late`              | from the instant a request is due to its being sent               | exponential of this mean          |
| `read_lag`          | from the arrival of data to the read that finds it                | exponential of this mean          |
| `reaction`          | closed loop: from the end of an answer to sending the next request | constant                         |
| `reaction_per_slot` | and for each slot, since the tokens that came with it are decoded | constant                          |

Requests are sent in the order in which they are due: one that is late holds up those behind it. A read finds all that has
arrived, of every stream: as with a kernel's stamps, what it finds of one stream has the time of the last of it. Without `late`
and `read_lag` the client takes no time, and the checks of the client have nothing to judge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from inferometer.errors import PlanError, Problem
from inferometer.server.engine.settings import check_range, time_ns


@dataclass(frozen=True, slots=True)
class ClientModel:
    """Means and constants in ns, see above. The reaction is one machine's (docs/simulation.md). Raises ValueError for a time
    below 0, or of more than a day."""

    late_ns: float = 0.0
    read_lag_ns: float = 0.0
    reaction_ns: float = 220_000.0
    reaction_per_slot_ns: float = 10_000.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_range(field.name, getattr(self, field.name))

    @property
    def takes_time(self) -> bool:
        """Whether it sends or reads late, so that it can be judged."""
        return bool(self.late_ns or self.read_lag_ns)

    def reaction(self, slots: int | None) -> int:
        """The reaction of a closed loop with so many slots, ns; 0 in open loop (None)."""
        return 0 if slots is None else round(self.reaction_ns + slots * self.reaction_per_slot_ns)

    def late(self, draw: Random) -> int:
        """How late one request is sent, ns."""
        return round(draw.expovariate(1 / self.late_ns)) if self.late_ns else 0

    def read_lag(self, draw: Random) -> int:
        """How late one read is, ns."""
        return round(draw.expovariate(1 / self.read_lag_ns)) if self.read_lag_ns else 0


PERFECT = ClientModel()
KEYS = {field.name.removesuffix("_ns"): field.name for field in dataclasses.fields(ClientModel)}


def client(words: Sequence[str]) -> ClientModel:
    """The client of `key=time` words. Raises PlanError with every problem found."""
    values: dict[str, float] = {}
    problems: list[Problem] = []
    for word in words:
        key, _, text = word.partition("=")
        try:
            if key not in KEYS:
                raise ValueError(f"there is no {key!r}; there are {', '.join(KEYS)}")
            values[KEYS[key]] = time_ns(text)
        except ValueError as error:
            problems.append(Problem(f"--client {word}", str(error)))
    if problems:
        raise PlanError(problems)
    try:
        return ClientModel(**values)
    except ValueError as error:
        raise PlanError([Problem("--client", str(error))]) from error
