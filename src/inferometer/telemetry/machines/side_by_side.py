"""Parts of a machine's readings that may take long, such as meters, read side by side: one that hangs holds up no other.

Each part has at most one reading under way, on a thread of its own. All together are waited for so long and no longer. What a
part brings later is in the text after that, with which it then is late by less than an interval; until then the text says that
it has not answered. A counter's instant is what an energy hangs on, so of what comes late counters are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial

from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import Part
from inferometer.telemetry.machines.terms import COUNTERS
from inferometer.telemetry.power.bounded_calls import begun

PATIENCE_S = 1.0
"""For all parts together: the interval at which a machine is read."""


class SideBySide:
    """Some parts as one. `late` adds what a text says in the place of a part that has not answered; None: nothing."""

    def __init__(
        self,
        parts: Sequence[Part],
        late: Callable[[Part, Text], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._parts, self._late, self._patience_s = tuple(parts), late, patience_s
        self._under_way: dict[int, Future[Text]] = {}

    def __call__(self, found: Text) -> None:
        """Add what the parts bring in time."""
        left_behind = set(self._under_way)
        for place, part in enumerate(self._parts):
            if place not in self._under_way:
                self._under_way[place] = begun(partial(_read, part))
        wait(self._under_way.values(), self._patience_s)
        for place, part in enumerate(self._parts):
            reading = self._under_way[place]
            if not reading.done():
                if self._late is not None:
                    self._late(part, found)
                continue
            del self._under_way[place]
            found.take(reading.result(), without=COUNTERS if place in left_behind else frozenset())


def _read(part: Part) -> Text:
    found = Text()
    part(found)
    return found
