"""Where requests stand that do not stand alone: which of them are one conversation, who sends them, and when.

A session is one conversation. Its turns are requests, one after the other (sessions.py has what they say). `random.Random` over
SHA-256 of the seed draws for each session the number of its turns, then the think time before every turn but the first.

| load   | the first turn is due                          | each other turn                                               |
| ------ | ---------------------------------------------- | ------------------------------------------------------------- |
| open   | at an arrival: the rate is that of sessions    | the think time after the answer before it                     |
| closed | when a slot is free                            | the same; the slot is its session's until that has ended      |
| users  | at its user's next instant                     | the same, but not before the think time after the answer      |

The next session is that user's whose next instant comes first. So which request is whose, and when, is known before the start.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from inferometer.errors import PlanError, Problem
from inferometer.plan.arrivals import phase_instants, user_instants
from inferometer.plan.lengths import Distribution
from inferometer.units import NS_PER_MS, seconds_to_ns
from inferometer.workload import lengths

if TYPE_CHECKING:
    from inferometer.plan.schema import Load
    from inferometer.plan.workload import AnyWorkload

Session = tuple[int, ...]
"""One think time a turn, in ns; that of the first is 0."""

ONE_TURN: Session = (0,)
MOST_TURNS = 2**15 - 1
"""What the column `turns` of a schedule holds (journal/schema.py)."""


class Place(NamedTuple):
    """Where a request stands: the `turn`-th of its session's `turns`, both counted from 0, and whose it is.

    `due_ns` from the phase's start: when it is due whatever is answered, or None where only an answer tells. `user`: None but
    where there are users. `session`: None where there are no sessions.
    """

    session: int | None
    turn: int
    turns: int
    think_ns: int
    due_ns: int | None = None
    user: int | None = None


def drawn(spec: AnyWorkload, at_most: Iterable[int] | None = None) -> Iterator[Session]:
    """Sessions without end, or as many as there are numbers: each of them caps the turns of one. ValueError without `turns`;
    PlanError where one would have more than MOST_TURNS."""
    if spec.turns is None:
        raise ValueError("the plan has no turns")
    digest = hashlib.sha256(b"inferometer sessions %d" % spec.seed).digest()
    rng = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 (a repeatable stream, not a secret one)
    for most in repeat(None) if at_most is None else at_most:
        turns = lengths.draw(spec.turns, rng)
        if (turns if most is None else min(turns, most)) > MOST_TURNS:
            raise PlanError(
                [Problem("--turns", f"a conversation would have {turns:,} turns; {MOST_TURNS:,} is the most")]
            )
        thinks = [0, *(_think(spec.think_ms, rng) for _ in range(turns - 1))]
        yield tuple(thinks[:most])


def _think(length: Distribution | None, rng: random.Random) -> int:
    return 0 if length is None else lengths.draw(length, rng) * NS_PER_MS


def arranged(
    load: Load, seed: int, sessions: Iterator[Session], requests: int | None, *, warm: bool, alone: bool
) -> list[Place]:
    """The places of a phase's requests, session after session. `requests`: how many at most; the last session may be cut.

    `alone`: requests are no sessions, but belong to users. None for `requests` needs a load that ends by time.
    """
    if load.model == "users":
        places = _of_users(load, seed, sessions, warm=warm)
    elif load.model == "open":
        starts = phase_instants(load, seed, warmup=warm).tolist()
        places = _of_starts(sessions, starts)
    else:
        places = _of_starts(sessions, repeat(None))
    found: list[Place] = []
    for place in places:
        if len(found) == requests:
            break
        found.append(place._replace(session=None) if alone else place)
    return found


def _of_starts(sessions: Iterator[Session], starts: Iterable[int | None]) -> Iterator[Place]:
    # The instants first: `zip` takes one more session than there are instants otherwise.
    for number, (start, session) in enumerate(zip(starts, sessions, strict=False)):
        for turn, think in enumerate(session):
            yield Place(number, turn, len(session), think, start if turn == 0 else None)


def _of_users(load: Load, seed: int, sessions: Iterator[Session], *, warm: bool) -> Iterator[Place]:
    """Until each user's next instant lies behind the load's duration, if it has one; what of a session does is cut off."""
    assert load.users is not None, "a plan that was checked"
    end = seconds_to_ns(load.duration_s) if load.duration_s is not None and not warm else None
    instants = [user_instants(load, seed, user, stream=int(warm)) for user in range(load.users)]
    waiting = [(next(one), user) for user, one in enumerate(instants)]
    heapq.heapify(waiting)
    for number, session in enumerate(sessions):
        due, user = waiting[0]
        if end is not None and due >= end:
            return
        for turn, think in enumerate(session):
            if end is not None and due >= end:
                break
            yield Place(number, turn, len(session), think, due, user)
            due = next(instants[user])
        heapq.heapreplace(waiting, (due, user))
