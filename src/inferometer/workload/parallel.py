"""Several lanes at one list of things to do, with the results in the list's order.

| lanes are | for work that                 | because                                                                     |
| --------- | ----------------------------- | --------------------------------------------------------------------------- |
| threads   | waits: for a server's answers | waiting needs no core                                                       |
| processes | keeps a core busy, and there  | threads would hand Python's lock to each other several times a prompt, and  |
|           | is much of it                 | on a busy machine wait for their turn each time: 62 s of work took 420 s    |

Processes are started anew, not forked, for this one may have threads; they take half a second to be of use. They take no
notice of Ctrl-C, which is for the process that started them to interpret, and end with the list, when it is left, or with
that process, however that ends. SIGTERM ends them with a delay: it may be meant for the whole group, and one that died while
it answers would leave half a message behind, for the rest of which this process would wait for ever.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 16
"""Things done in one go: what a hand-over costs is spread over them."""
AHEAD = 4
"""Goes a lane that may wait to be taken up: enough to be kept busy, and few enough to stand in memory."""
MOST_PROCESSES = 4
"""Each holds a tokenizer of its own, 100 to 200 MB."""
GRACE_S = 5.0
"""From SIGTERM on: by then the process that started it has ended, if all were to end."""


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
    with ThreadPoolExecutor(lanes) as pool:
        yield from _through(pool, do, things, lanes)


def in_processes(do: Callable[[T], R], things: Iterable[T], count: int | None = None) -> Iterator[R]:
    """The same over `count` processes, by default one per core, MOST_PROCESSES at most; with one, in this process. `do` is
    sent to each of them pickled."""
    lanes = min(cores(), MOST_PROCESSES) if count is None else count
    if lanes < 2:
        yield from map(do, things)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(lanes, context, initializer=_begin, initargs=(do,)) as pool:
        yield from _through(pool, _do_it, things, lanes)


def _through(pool: Executor, do: Callable[[T], R], things: Iterable[T], lanes: int) -> Iterator[R]:
    source = iter(things)
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


_doing: list[Callable[[Any], Any]] = []
"""In a process of `in_processes`: what it does."""


def _begin(do: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_later)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()
    _doing.append(do)


def _end_later(_signal: int, _frame: FrameType | None) -> None:
    timer = threading.Timer(GRACE_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _leave_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _do_it(thing: Any) -> Any:
    return _doing[0](thing)
