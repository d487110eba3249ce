"""How many of an answer's tokens were generated from its first text event to its last: what TPOT divides that time by.

A token that shows nothing may stand before the first text, where a format character or an empty delta begins the answer, or
after the last, where it ends the sequence. The time between has nothing of it, so it is not counted there. Of an answer with n
tokens, without reasoning that was not sent (tokens.py), e text events, p events without text before or after them and i between
them, s = n - e tokens have no text event of their own. z is 1 where the answer ended by itself (finish reason `stop`), since
servers count the token that ends it, else 0.

| the answer                                            | tokens outside        | why                                          |
| ----------------------------------------------------- | --------------------- | -------------------------------------------- |
| s <= p + i + z: one token an event suffices           | s - i to min(s, p + z)| what is not between is outside               |
| s is larger: events hold several tokens, or have none | 0 to min(s, p)        | an event without text may be padding         |
| events without text hold characters that nobody sees  | p at least            | what has text was generated                  |
| counted by a tokenizer                                | p if they do, else 0  | it counts text alone                         |
| estimated                                             | 0                     | no evidence                                  |

The least of each range is taken. Where the range is wider than BENT_SHARE of n - 1, it cannot be told: NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inferometer.journal.schema import EventClass
from inferometer.measure.delivery import BENT_SHARE
from inferometer.measure.large_arrays import pieces
from inferometer.measure.record import Floats, Ints, Mask, Record, counted, is_text
from inferometer.measure.tokens import CountSource

_SERVER, _TOKENIZER = (tuple(CountSource).index(one) for one in (CountSource.SERVER, CountSource.TOKENIZER))


@dataclass(frozen=True, slots=True)
class Silent:
    """Events without text of each answer: before its first text event or after its last, and between them."""

    outside: Ints
    between: Ints


def span_tokens(record: Record, rows: Ints, tokens: Floats, source: Ints) -> Floats:
    """Tokens from first to last text event of each of `rows`, of which events can have `tokens` by `source` (CountSource, as in
    tokens.Counts); NaN where it cannot be told, all of them where there is no text."""
    silent, events = _silent(record, rows), _counted(record.event_is_text, record, rows)
    with_text = record.text_unseen[rows] >= silent.outside + silent.between
    told = np.where(with_text, silent.outside, 0)
    by_server = source == _SERVER
    surplus = np.maximum(np.nan_to_num(tokens) - events, 0.0)
    ended = np.where(record.finish_reason.are("stop")[rows], 1, 0)
    explained = surplus <= silent.outside + silent.between + ended
    least = np.where(explained, np.maximum(surplus - silent.between, 0.0), 0.0)
    most = np.minimum(surplus, silent.outside + np.where(explained, ended, 0))
    least = np.maximum(least, np.minimum(surplus, told))
    unknown = by_server & (most - least > BENT_SHARE * (tokens - 1.0))
    outside = np.where(by_server, least, np.where(source == _TOKENIZER, told, 0))
    left = np.where(events > 0, tokens - outside, tokens)
    return np.where(unknown & (events > 0), np.nan, np.maximum(left, np.minimum(tokens, 1.0)))


def _counted(chosen: Mask, record: Record, rows: Ints) -> Ints:
    """How many of each answer's events are `chosen`."""
    found: Ints = counted(chosen, record.event_offsets)[rows]
    return found


def _silent(record: Record, rows: Ints) -> Silent:
    """Of answers without text all are outside."""
    if not (record.event_class == EventClass.EMPTY).any():
        none = np.zeros(len(rows), np.int64)
        return Silent(none, none)
    between = np.zeros(len(record), np.int64)
    for some, events in pieces(record.event_offsets):
        starts = record.event_offsets[some.start : some.stop + 1] - events.start
        between[some] = _between(record.event_class[events], starts)
    every = _counted(record.event_class == EventClass.EMPTY, record, rows)
    return Silent(every - between[rows], between[rows])


def _between(classes: NDArray[np.uint8], offsets: Ints) -> Ints:
    """Events without text between the first text event and the last of each answer, which has the classes `offsets[i]` to
    `offsets[i + 1]`."""
    empty = np.concatenate(([0], np.cumsum(classes == EventClass.EMPTY)))
    texts = np.concatenate(([0], np.cumsum(is_text(classes))))
    places = np.append(np.flatnonzero(is_text(classes)), len(classes))
    begins, ends = texts[offsets[:-1]], texts[offsets[1:]]
    some = ends > begins
    first, last = places[np.where(some, begins, -1)], places[np.where(some, ends - 1, -1)]
    return np.where(some, empty[last] - empty[first], 0)
