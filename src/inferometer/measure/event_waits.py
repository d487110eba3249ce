"""How much earlier than its stamp an event may have come: what the record says of reads that held several packets.

Such a read has the stamp of its last packet (drive/unread.py). The record has its first event and the longest that this may
have waited before the stamp; the read's other events follow and have the same stamp. The last of them ends with the last
packet, so that its stamp is its own, unless the read also held events of other requests, which share a connection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def event_waits(event_ns: Ints, offsets: Ints, begun: Ints, waited: Ints) -> Ints:
    """How much earlier than its stamp each event may have come (ns), shape of `event_ns`.

    Answer i has the events `offsets[i]` to `offsets[i + 1]`. `begun`: the first event of each read that held several, as a
    place in `event_ns`; `waited`: its longest wait, below 0 where the read's last event may have waited too. An event did not
    come before the one in front of its read.
    """
    waits = np.zeros(len(event_ns), np.int64)
    if not len(begun):
        return waits
    new = np.ones(len(event_ns) + 1, np.bool_)
    new[1:-1] = np.diff(event_ns) != 0
    new[offsets] = True
    edges = np.flatnonzero(new)
    ends = edges[np.searchsorted(edges, begun, side="right")]
    leading = np.isin(begun, offsets)  # of an answer
    since = np.where(leading, np.iinfo(np.int64).max, event_ns[begun] - event_ns[begun - 1])
    last = ends - 1 + (waited < 0)
    for first, end, wait in zip(
        begun.tolist(), last.tolist(), np.minimum(np.abs(waited), since).tolist(), strict=True
    ):
        waits[first:end] = wait
    return waits
