"""A report that the memory does not hold is refused in words, before the record is read."""

from __future__ import annotations

import pytest

from inferometer.errors import MachineError
from inferometer.run.memory_need import PROGRAM, REQUEST, refuse


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
