"""How long the loop may pause between two polls, so that one poll finds several reads.

A poll costs about as much as a token, and so does waking up for it. Where tokens come thick the loop therefore sleeps a little
between polls. Their times are the kernel's, so reading later changes none of them; without kernel stamps there is no pause.
What a pause could still do is bounded here:

| bound                                    | because a pause delays                                                 |
| ---------------------------------------- | ---------------------------------------------------------------------- |
| MOST_NS                                  | everything, so it stays far below what anybody would call late          |
| GAP_SHARE of a stream's mean gap         | a read until the stream's next token may have come: the two would merge |
| TURN_SHARE of a request's mean time      | the end of a request, and so the slot that it frees                     |
| at least LEAST reads expected in a pause | nothing, but a sleep costs something too                                |

A request that falls due ends no pause: the loop begins none that could reach into its instant (ROOM_NS).
"""

from __future__ import annotations

MOST_NS = 250_000
GAP_SHARE = 0.01
TURN_SHARE = 0.0002
LEAST = 2.0
ROOM_NS = 200_000
"""No pause if something falls due so soon after it: a sleep lasts some 60 microseconds longer than asked."""


def pause_ns(elapsed_ns: int, reads: int, ended: int, in_flight: int) -> int:
    """The pause in ns, 0 for none, given what `elapsed_ns` brought: reads, ended requests, and how many were in flight."""
    if reads <= 0:
        return 0
    busy_ns = in_flight * elapsed_ns
    pause = min(MOST_NS, GAP_SHARE * busy_ns / reads)
    if ended:
        pause = min(pause, TURN_SHARE * busy_ns / ended)
    return int(pause) if pause * reads >= LEAST * elapsed_ns else 0
