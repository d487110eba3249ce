"""Answers whose events something collected and then sent on one after the other, so that they do not arrive together.

What collects events and passes each on by a call of its own, or at a pace of its own, sends them closer to one another than
they were made, and then nothing until it has collected as many again. With g the gap between the first two text events of an
answer and G its largest, events closer than

    sqrt(g G), at most CLOSE_NS

came in one lump. An answer was collected if each of these holds:

| condition                                              | reason                                                         |
| ------------------------------------------------------ | -------------------------------------------------------------- |
| g < CLOSE_NS, G >= APART g                             | the first lump has several events, and lumps are far apart     |
| gaps between lumps, less the last, >= VOID those within | they are two kinds of gaps                                     |
| at least two lumps are followed by another             | a single gap is no rule                                        |
| one of: as many events in those lumps, if SEVERAL are  | they were collected up to a number or a size,                  |
| to an eighth;                                          |                                                                |
| lumps of two and more in the mean that begin at even   | or for a time: stalls would make what lies between them even,  |
| intervals, to EVEN, the first and the last left out,   |                                                                |
| while what lies between them varies twice as much;     |                                                                |
| a first lump of three or more, and ALONE single events | or at the beginning alone. A server that stands still now and  |
| and more behind it                                     | then, or guesses ahead, does none of it                        |

The gap before the last lump is shorter where that has fewer events, and it may come so soon that it looks like a part of the
one before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inferometer.measure.large_arrays import pieces
from inferometer.measure.record import Ints, Mask

CLOSE_NS = 2_000_000
"""Five hundred tokens a second are more than most engines produce for one answer; who passes text on at a pace is quicker."""
FLOOR_NS = 50_000
"""Calls one after the other are some ten microseconds apart; the first two say no more than that."""
APART = 10.0
VOID = 3.0
EVEN, TIMES, ALONE = 1.1, 3, 8
"""Longest interval over shortest, of so many or more; and single events. Fewer may come so by chance."""
MOST_NS = (1 << 63) - 1
LEAST = 5
"""Text events: two lumps of two, and one more behind them."""
SEVERAL, ALIKE = 4, 8
"""What is collected up to a number of bytes has an event more or less; of two or three lumps that may be chance."""


def collected(arrivals: Ints, offsets: Ints) -> Iterator[Ints]:
    """The text events of such answers that are not the first of a lump, by their places in `arrivals`, part after part: answer
    i has `arrivals[offsets[i]:offsets[i + 1]]` (ns)."""
    for rows, events in pieces(offsets):
        found = _of_piece(arrivals[events], offsets[rows.start : rows.stop + 1] - events.start)
        if len(found):
            yield found + events.start


def _of_piece(at: Ints, starts: Ints) -> Ints:
    events: Ints = np.diff(starts)
    rows = np.flatnonzero(events >= LEAST)
    first = at[starts[rows] + 1] - at[starts[rows]]
    span = at[starts[rows + 1] - 1] - at[starts[rows]]
    rows = rows[
        (first < CLOSE_NS) & (span > 2 * (events[rows] - 1) * first)
    ]  # nearly none but those looked for
    if not len(rows):
        return np.zeros(0, np.int64)
    gaps = _Gaps(at, starts[rows], events[rows] - 1)
    several = np.bincount(gaps.owner[gaps.wide], minlength=len(rows)) >= 2
    if not several.any():
        return np.zeros(0, np.int64)
    rows = rows[several]
    gaps = _Gaps(at, starts[rows], events[rows] - 1)
    found: Ints = gaps.places[~gaps.wide & _in_like_lumps(gaps)[gaps.owner]] + 1
    return found


class _Gaps:
    """The gaps of some answers, that begin at `starts` and have `counts` of them.

    `owner`: whose each is; `places`: the event in front of each; `behind`: when the one behind it came; `heads`: the first of
    each answer; `wide`: those between lumps; `ns`: how long each is; `first` and `widest` of each answer, the first FLOOR_NS at
    least.
    """

    def __init__(self, at: Ints, starts: Ints, counts: Ints) -> None:
        self.counts, self.heads = counts, np.cumsum(counts) - counts
        self.owner = np.repeat(np.arange(len(counts)), counts)
        self.places = np.arange(int(counts.sum())) + (starts - self.heads)[self.owner]
        self.behind = at[self.places + 1]
        self.ns = self.behind - at[self.places]
        self.first = np.maximum(self.ns[self.heads], FLOOR_NS)
        self.widest = np.maximum.reduceat(self.ns, self.heads)
        close = np.minimum(np.sqrt(self.first * self.widest.astype(np.float64)), CLOSE_NS)
        self.wide: Mask = self.ns >= close[self.owner]


def _in_like_lumps(gaps: _Gaps) -> Mask:
    """Which answers came in lumps of one size, far apart; each has two wide gaps or more."""
    behind = np.flatnonzero(gaps.wide)  # each lump but the last
    mine = gaps.owner[behind]
    begin = np.searchsorted(mine, np.arange(len(gaps.counts)))
    end = np.append(begin[1:], len(mine)) - 1
    upto = behind - gaps.heads[mine] + 1
    sizes = np.diff(upto, prepend=0)
    sizes[begin] = upto[begin]
    least, most = np.minimum.reduceat(sizes, begin), np.maximum.reduceat(sizes, begin)
    last = gaps.counts + 1 - upto[end]
    between = gaps.ns[behind]
    between[end] = gaps.widest  # the gap before the last lump says nothing
    narrow = np.minimum.reduceat(between, begin)
    within = np.maximum.reduceat(np.where(gaps.wide, 0, gaps.ns), gaps.heads)
    lumps = end + 1 - begin
    alike = (least >= 2) & (most - least <= np.where(lumps >= SEVERAL, least // ALIKE, 0)) & (last < 2 * most)
    alone = (sizes[begin] >= 3) & (lumps > ALONE) & (gaps.counts + 1 - sizes[begin] == lumps)
    several = upto[end] >= 2 * lumps
    one_of: Mask = alike | alone | (several & _evenly(gaps, behind, begin, end))
    found: Mask = one_of & (narrow >= VOID * within) & (gaps.widest >= APART * gaps.first)
    return found


def _evenly(gaps: _Gaps, behind: Ints, begin: Ints, end: Ints) -> Mask:
    """Whether the lumps behind the first of each answer begin at even intervals, more so than what lies between them, as by a
    clock. Not the last: the end sends what is left."""
    within = np.ones(len(behind), np.bool_)
    within[end] = within[np.maximum(end - 1, begin)] = False
    shortest, longest = _extremes(np.diff(gaps.behind[behind], append=0), within, begin)
    least, most = _extremes(np.append(gaps.ns[behind[1:]], 0), within, begin)
    even: Mask = (end - 1 - begin >= TIMES) & (longest <= EVEN * shortest)
    return even & (2 * (longest - shortest) <= most - least)


def _extremes(values: Ints, known: Mask, begin: Ints) -> tuple[Ints, Ints]:
    """Least and greatest of the known values of each answer, of which one begins at each of `begin`."""
    least: Ints = np.minimum.reduceat(np.where(known, values, MOST_NS), begin)
    return least, np.maximum.reduceat(np.where(known, values, 0), begin)
