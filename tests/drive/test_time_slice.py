"""The slice of the process that measures: shorter where the system lets it be, and nothing else about it changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from inferometer.drive.time_slice import SLICE_NS, shorten, slice_ns

T = TypeVar("T")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux' scheduler")


def _apart(work: Callable[[], T]) -> T:
    """In a thread that ends with it: scheduling is a thread's own."""
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(work).result()


def test_a_thread_that_asks_has_the_shortest_slice_and_keeps_policy_and_nice_value() -> None:
    def work() -> None:
        before = slice_ns()
        shorten()
        if before is None or slice_ns() == before != SLICE_NS:
            pytest.skip("this system has no slices to choose")
        assert slice_ns() == SLICE_NS
        assert os.sched_getscheduler(0) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, 0) == nice

    nice = os.getpriority(os.PRIO_PROCESS, 0)
    _apart(work)


@LINUX
def test_a_thread_of_another_policy_keeps_it() -> None:
    def work() -> int:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        shorten()
        return os.sched_getscheduler(0)

    assert _apart(work) == os.SCHED_BATCH


@LINUX
def test_a_nice_thread_stays_nice() -> None:
    def work() -> int:
        os.setpriority(os.PRIO_PROCESS, 0, 7)
        shorten()
        return os.getpriority(os.PRIO_PROCESS, 0)

    assert _apart(work) == 7
