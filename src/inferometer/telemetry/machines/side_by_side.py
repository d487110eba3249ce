"""Parts of a machine's readings that may take long, such as meters, each read on its own time.

Each part has at most one reading under way, on a thread of its own. A text waits for the readings that begin with it, within
its patience, and never for one that an earlier text left behind: a part that hangs takes no reading from the others.

| a part's reading                            | in the text                                                                |
| ------------------------------------------- | -------------------------------------------------------------------------- |
| came within PROMPT_S                        | as it is: of the text's instant                                             |
| came later, or ended since the text before  | with `meter_age`: how long before the text it was made, less than 0: behind |
|                                             | its begin; made is the middle between the reading's begin and its end       |
| and took longer than LONGEST_OF_A_COUNTER_S | without counters, whose instant is what an energy hangs on                  |
| is under way, for LATE_S or longer          | what `late` says                                                            |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial

from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import Part
from inferometer.telemetry.machines.terms import COUNTERS
from inferometer.telemetry.power.bounded_calls import begun

PATIENCE_S = 0.5
"""Half the usual interval between two readings of a machine."""
PATIENCE_AT_THE_ENDS_S = 2.0
"""For a run's first and last reading, which an energy has to lie between: a wall meter's limit of time."""
PROMPT_S = 0.1
LATE_S = 2.0
"""A meter whose reading lasts longer gives none: it may never end."""
LONGEST_OF_A_COUNTER_S = 1.0
"""The middle of a longer reading may be more than half a second from the instant at which the counter stood so."""


@dataclass(slots=True)
class Patience:
    """How long a text waits, in s. `for_all`: for what earlier ones left behind, too."""

    seconds: float = PATIENCE_S
    for_all: bool = False


@dataclass(frozen=True, slots=True)
class Brought:
    """What a part brought, and when it began and ended by the clock of the readings, in s."""

    text: Text
    began: float
    ended: float


class SideBySide:
    """Some parts as one. `late` adds what a text says in the place of a part that has not answered; None: nothing.
    `name_of`: the meter that a part is, whose age the text says; None: it is not one."""

    def __init__(
        self,
        parts: Sequence[Part],
        late: Callable[[Part, Text], None] | None = None,
        name_of: Callable[[Part], str | None] = lambda _: None,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts, self._late, self._name_of = tuple(parts), late, name_of
        self._patience = patience or Patience()
        self._clock = clock
        self._under_way: dict[int, Future[Brought]] = {}
        self._begun: dict[int, float] = {}
        """When the latest reading of each part began."""

    def __call__(self, found: Text) -> None:
        """Add what the parts have brought."""
        began = self._clock()
        belated = {place: one for place, one in self._under_way.items() if one.done()}
        left_behind = set(self._under_way) - set(belated)
        for place, part in enumerate(self._parts):
            if place not in left_behind:
                self._under_way[place], self._begun[place] = begun(partial(self._read, part)), began
        waited = [
            one
            for place, one in self._under_way.items()
            if self._patience.for_all or place not in left_behind
        ]
        wait(waited, self._patience.seconds)
        for place, part in enumerate(self._parts):
            reading = self._under_way[place]
            if reading.done():
                del self._under_way[place]
            else:
                reading = belated.get(place, reading)
            if reading.done():
                self._take(found, part, reading.result(), began)
            elif self._late is not None and began - self._begun[place] >= LATE_S:
                self._late(part, found)

    @property
    def under_way(self) -> tuple[Future[Brought], ...]:
        """The readings that have not been brought yet."""
        return tuple(self._under_way.values())

    def _read(self, part: Part) -> Brought:
        began, found = self._clock(), Text()
        part(found)
        return Brought(found, began, self._clock())

    def _take(self, found: Text, part: Part, brought: Brought, now: float) -> None:
        name = self._name_of(part)
        slow = brought.ended - brought.began > LONGEST_OF_A_COUNTER_S
        found.take(brought.text, without=COUNTERS if slow else frozenset())
        if name is not None and not now <= brought.began <= brought.ended <= now + PROMPT_S:
            found.add("meter_age", now - (brought.began + brought.ended) / 2, {"meter": name})
