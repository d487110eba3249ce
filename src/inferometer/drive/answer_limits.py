"""What one answer may come to as a whole, whatever the server sends: of each request, so that it costs no other.

| limit        | counts                                                     | looked at                    | outcome           |
| ------------ | ---------------------------------------------------------- | ---------------------------- | ----------------- |
| `bytes`      | the body, without what HTTP puts around it                 | at every read                | `too_large`       |
| `events`     | events of a stream, with text or without, and comments     | every LOOK_BYTES, at its end | `too_many_events` |
| `overrun_ns` | the time since there were more events with text than       | with the deadlines           | `overrun`         |
|              | tokens were requested                                      |                              |                   |
| MOST_VALUES  | commas and opening brackets of an answer that is no stream | before it is decoded         | `too_large`       |

An event holds at least one token, so that a server which keeps to `max_tokens` never begins to overrun. One that ends within
`overrun_ns` all the same has given a whole answer, whose length is for the check `output_length` to judge.
"""

from __future__ import annotations

import msgspec

from inferometer.journal.schema import Outcome
from inferometer.units import NS_PER_S

LOOK_BYTES = 1 << 16
"""Of a body, between two looks at what is counted otherwise: a look costs as much as an event."""


class AnswerLimits(msgspec.Struct, frozen=True):
    """The limits of every answer of a run; see the table above. The largest honest streams, 100,000 tokens in events of 300
    bytes, have half as many bytes and a tenth of the events."""

    bytes: int = 64 << 20
    events: int = 1_000_000
    overrun_ns: int = 60 * NS_PER_S


UNLESS_SET = AnswerLimits()
"""The limits where a plan sets no others."""


class OverLimit(Exception):
    """An answer over one of its limits, and the outcome that says so."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(words)
        self.outcome = outcome


MOST_VALUES = 1 << 21
"""Each value of JSON but the first follows a comma or an opening bracket, and takes some hundred bytes, however few spell it.
An answer of 10,000 tokens with ten alternatives of each has half as many."""


def check_values(body: bytes) -> None:
    """Raises OverLimit for a whole answer whose values could take much more memory than its bytes."""
    if len(body) > MOST_VALUES and sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise OverLimit(Outcome.TOO_LARGE, f"a JSON document of more than {MOST_VALUES} values")
