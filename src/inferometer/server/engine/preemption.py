"""What preemptions came to, counted since the engine was made (draft 5.8.4).

| counted     | is                                                                                               |
| ----------- | ------------------------------------------------------------------------------------------------ |
| `events`    | times a request lost its blocks                                                                  |
| `requests`  | requests that did, once at least                                                                 |
| `finished`  | of these, those that have put out all their tokens since                                         |
| `discarded` | tokens whose keys and values were in the blocks lost, prompt and answer; blocks that are swapped |
|             | out lose none. With a prefix cache some may be found there again                                 |
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preempted:
    """The counts."""

    events: int = 0
    requests: int = 0
    finished: int = 0
    discarded: int = 0

    def __sub__(self, before: Preempted) -> Preempted:
        """What was added since."""
        return Preempted(
            self.events - before.events,
            self.requests - before.requests,
            self.finished - before.finished,
            self.discarded - before.discarded,
        )
