"""Lanes: many threads, one order, and what goes wrong is raised in its place."""

from __future__ import annotations

import collections
import itertools
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import MachineError
from inferometer.workload.parallel import AHEAD, AT_ONCE, cores, in_order, in_processes


@given(st.lists(st.integers(), max_size=200), st.integers(1, 5))
def test_results_come_in_the_order_of_the_things(things: list[int], lanes: int) -> None:
    """As `map` would give them."""
    assert list(in_order(lambda x: x * 2, things, lanes)) == [x * 2 for x in things]


def test_processes_give_the_same_in_the_same_order() -> None:
    """Also where one has nothing to do, and where an error ends it."""
    assert list(in_processes(abs, range(-100, 100))) == [abs(x) for x in range(-100, 100)]
    assert list(in_processes(abs, [])) == []
    results = in_processes(math.sqrt, [4.0] * 40 + [-1.0])
    assert [next(results) for _ in range(32)] == [2.0] * 32
    with pytest.raises(ValueError, match="math domain"):
        list(results)


def test_what_is_drawn_from_is_never_far_ahead() -> None:
    """An endless list can be worked through: a few goes a lane are drawn ahead, and no more."""
    drawn = 0

    def endless() -> Iterator[int]:
        nonlocal drawn
        while True:
            drawn += 1
            yield drawn

    results = in_order(lambda x: x, endless(), 3)
    for expected in range(1, 500):
        assert next(results) == expected
        assert drawn <= expected + (AHEAD * 3 + 2) * AT_ONCE


def test_an_error_is_raised_where_its_result_would_be() -> None:
    """What came before it is given first."""

    def odd(number: int) -> int:
        if number == 70:
            raise ValueError("seventy")
        return number

    results = in_order(odd, range(1000), 2)
    assert [next(results) for _ in range(64)] == list(range(64))
    with pytest.raises(ValueError, match="seventy"):
        list(results)


def test_the_threads_end_with_the_list_or_when_it_is_left() -> None:
    """No thread outlives its use."""
    before = threading.active_count()
    list(in_order(abs, range(300), 4))
    left = in_order(abs, range(100_000), 4)
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


ENDLESS = (
    "import itertools, psutil, signal, sys\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
    "from inferometer.workload.parallel import in_processes\n"
    "for at, done in enumerate(in_processes({do}, itertools.repeat(1_000_000))):\n"
    "    if at == 100: print(*(child.pid for child in psutil.Process().children(recursive=True)), flush=True)\n"
)


def endless(do: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A process that does this to an endless list, and those that it started for that."""
    parent = subprocess.Popen(
        [sys.executable, "-c", ENDLESS.format(do=do)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(children) >= 2
    return parent, children


@pytest.mark.skipif(cores() < 2, reason="with one core there are no processes")
def test_no_process_outlives_the_one_that_started_it() -> None:
    """Not even when that is killed."""
    parent, children = endless("abs")
    parent.kill()
    parent.communicate(timeout=30)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


@pytest.mark.skipif(cores() < 2, reason="with one core there are no processes")
def test_a_whole_group_ends_when_it_is_told_to() -> None:
    """Law: SIGTERM to a process and those that it started, which are in the middle of answers of a megabyte, ends them all, and
    the first by its own handler."""
    parent, children = endless("bytes")
    try:
        os.killpg(parent.pid, signal.SIGTERM)
        assert parent.wait(timeout=60) == 3
        _, alive = psutil.wait_procs(children, timeout=30)
        assert not alive
    finally:
        parent.kill()
        parent.communicate()


def lanes_of(process: psutil.Process) -> list[psutil.Process]:
    """The lanes that a process has started, whatever else it has."""
    return [one for one in process.children() if is_lane(one)]


def is_lane(process: psutil.Process) -> bool:
    try:
        return "inferometer.workload.lane" in process.cmdline()
    except psutil.NoSuchProcess:  # or a zombie
        return False


def begun(results: Iterator[int]) -> list[psutil.Process]:
    """The lanes of this process, of which each has given results."""
    for _ in range(AT_ONCE * 8):
        next(results)
    return lanes_of(psutil.Process())


def test_a_lane_that_is_killed_has_words_and_is_no_bug() -> None:
    """Law: the words name the signal, and the code is the machine's; the other lanes end."""
    results = in_processes(abs, itertools.count(), 2)
    lanes = begun(results)
    lanes[0].kill()
    with pytest.raises(MachineError, match=r"a process that makes prompts was killed \(SIGKILL\)") as why:
        collections.deque(results, maxlen=0)
    assert why.value.exit_code == 71
    assert not psutil.wait_procs(lanes, timeout=30)[1]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_ends_no_lane(number: int) -> None:
    """Law: the results are the same."""
    results = in_processes(abs, range(10_000), 2)
    for lane in begun(results):
        lane.send_signal(number)
    assert list(results) == list(range(AT_ONCE * 8, 10_000))


def test_a_lane_that_is_stopped_is_waited_for_within_bounds() -> None:
    """Law: it takes no CPU time, and is ended; one that is stopped for a while only goes on."""
    results = in_processes(abs, itertools.count(), 2, hang_s=1.0)
    lanes = begun(results)
    lanes[0].suspend()
    with pytest.raises(MachineError, match="a process that makes prompts stood still for"):
        collections.deque(results, maxlen=0)
    assert not psutil.wait_procs(lanes, timeout=30)[1]


def test_what_a_lane_does_not_read_is_waited_for_within_bounds() -> None:
    """Law: the same where more is sent than a pipe holds."""
    results = in_processes(len, itertools.repeat(b"x" * 100_000), 2, hang_s=1.0)
    begun(results)[0].suspend()
    with pytest.raises(MachineError, match="stood still"):
        collections.deque(results, maxlen=0)


@pytest.mark.skipif(cores() < 2, reason="with one core there are no processes")
def test_a_command_with_a_lane_that_is_stopped_can_be_ended() -> None:
    """Law: lanes are killed before the threads that wait for them are joined, so SIGTERM ends it by its own handler,
    long before the lane counts as hung."""
    parent, children = endless("bytes")
    try:
        children[0].suspend()
        parent.terminate()
        assert parent.wait(timeout=60) == 3
        _, alive = psutil.wait_procs(children, timeout=30)
        assert not alive
    finally:
        parent.kill()
        parent.communicate()
