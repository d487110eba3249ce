"""A report that the memory does not hold is refused in words, before the record is read."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from inferometer.errors import MachineError
from inferometer.run.memory_need import PROGRAM, REQUEST, addresses_left, refuse


def test_a_report_beyond_the_memory_is_refused_in_words() -> None:
    """Law: what is needed and what is there are named; as much as is needed is enough."""
    rows = 10_000_000
    need = PROGRAM + REQUEST * rows
    refuse(rows, need)
    refuse(0, PROGRAM)
    with pytest.raises(
        MachineError, match=r"10,000,000 requests needs about .* GiB of memory, and .* GiB are free"
    ) as no:
        refuse(rows, need - 1)
    assert (no.value.shortage, no.value.exit_code) == ("memory", 71)


def test_a_limit_of_addresses_counts_as_memory() -> None:
    """Law: under ulimit -v a process has as much left as it has not taken; without a limit, without end."""
    said = subprocess.run(
        [sys.executable, "-c", "from inferometer.run.memory_need import *; print(addresses_left())"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 0 < float(said) < 4 << 30
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert addresses_left() == float("inf")
