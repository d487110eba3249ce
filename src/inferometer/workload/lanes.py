"""Several threads at one list of things to do, with the results in the list's order.

It pays where the work is mostly done outside Python's lock: a tokenizer's reading, which is compiled code, or a server's.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 16
"""Things done by a thread in one go: what a hand-over costs is spread over them."""
AHEAD = 4
"""Goes a lane that may wait to be taken up: enough to be kept busy, and few enough to stand in memory."""


def cores() -> int:
    """Cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def in_order(do: Callable[[T], R], things: Iterable[T], lanes: int) -> Iterator[R]:
    """`map(do, things)` over so many threads. `things` is drawn from in the caller's own, a little ahead of the results.

    What `do` raises is raised here, in its place. With one lane there are no threads.
    """
    if lanes < 2:
        yield from map(do, things)
        return
    source = iter(things)
    with ThreadPoolExecutor(lanes) as pool:
        waiting: deque[Future[list[R]]] = deque()
        try:
            while batch := list(islice(source, AT_ONCE)):
                waiting.append(pool.submit(_all, do, batch))
                if len(waiting) > AHEAD * lanes:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:  # left early: what nobody will take need not be done
                future.cancel()


def _all(do: Callable[[T], R], batch: list[T]) -> list[R]:
    return [do(one) for one in batch]
