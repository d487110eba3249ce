"""Several lanes at one list of things to do, with the results in the list's order.

| lanes are | for work that                 | because                                                                     |
| --------- | ----------------------------- | --------------------------------------------------------------------------- |
| threads   | waits: for a server's answers | waiting needs no core                                                       |
| processes | keeps a core busy, and there  | threads would hand Python's lock to each other several times a prompt, and  |
|           | is much of it                 | on a busy machine wait for their turn each time: 62 s of work took 420 s    |

Processes (lane.py) take half a second to be of use, and end with the list or when it is left.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from inferometer.workload.lane import HANG_S, Lane

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 16
"""Things done in one go: what a hand-over costs is spread over them."""
AHEAD = 4
"""Goes a lane that may wait to be taken up: enough to be kept busy, and few enough to stand in memory."""
MOST_PROCESSES = 4
"""Each holds a tokenizer of its own, 100 to 200 MB."""


@dataclass(frozen=True, slots=True)
class Processes:
    """When `spread` starts processes, and how many. Neither changes a result.

    `above`: for more tokens than this; the default is one or two seconds of reading. `count`: the number of processes;
    None: one per core, MOST_PROCESSES at most.
    """

    above: float = 2_000_000
    count: int | None = None


DEFAULT = Processes()


def cores() -> int:
    """Cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def spread(
    do: Callable[[T], R], things: Iterable[T], lanes: int, tokens: float, processes: Processes = DEFAULT
) -> Iterator[R]:
    """`map(do, things)` for a tokenizer with `lanes` lanes: over processes if the tokenizer keeps a core busy and has many
    `tokens` to read, else over threads."""
    if lanes == 1 and tokens > processes.above:
        return in_processes(do, things, processes.count)
    return in_order(do, things, lanes)


def in_order(do: Callable[[T], R], things: Iterable[T], lanes: int) -> Iterator[R]:
    """`map(do, things)` over so many threads. `things` is drawn from in the caller's own, a little ahead of the results.

    What `do` raises is raised here, in its place. With one lane there are no threads.
    """
    if lanes < 2:
        yield from map(do, things)
        return

    def go(batch: list[T]) -> list[R]:
        return [do(one) for one in batch]

    yield from _through(go, things, lanes)


def in_processes(
    do: Callable[[T], R], things: Iterable[T], count: int | None = None, hang_s: float = HANG_S
) -> Iterator[R]:
    """The same over `count` processes, by default one per core, MOST_PROCESSES at most; with one, in this process. `do` is
    sent to each of them pickled. Raises MachineError for one that is killed, or that stands still for `hang_s`."""
    lanes = min(cores(), MOST_PROCESSES) if count is None else count
    if lanes < 2:
        yield from map(do, things)
        return
    idle: SimpleQueue[Lane] = SimpleQueue()

    def go(batch: list[T]) -> list[R]:
        lane = idle.get()
        try:
            return lane.results(batch)
        finally:
            idle.put(lane)

    with ExitStack() as stack:
        started = [stack.enter_context(Lane(do, hang_s)) for _ in range(lanes)]
        for lane in started:
            idle.put(lane)

        def abandon() -> None:
            for lane in started:
                lane.kill()

        yield from _through(go, things, lanes, abandon)


def _through(
    go: Callable[[list[T]], list[R]],
    things: Iterable[T],
    lanes: int,
    abandon: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """What `go` gives for a few things at a time, over so many threads. `abandon`: ends what they wait for, where it is left
    early; they are joined after that."""
    source = iter(things)
    waiting: deque[Future[list[R]]] = deque()
    with ThreadPoolExecutor(lanes) as pool:
        try:
            while batch := list(islice(source, AT_ONCE)):
                waiting.append(pool.submit(go, batch))
                if len(waiting) > AHEAD * lanes:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BaseException:
            abandon()
            raise
        finally:
            for future in waiting:  # left early: what nobody will take need not be done
                future.cancel()
