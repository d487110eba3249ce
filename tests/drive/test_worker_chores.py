"""What a worker does beside sending and reading: everything in its turn, however long a round of its loop takes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inferometer.drive.worker import EXPIRY_NS, PULSE_NS, TICK_NS, chore_at


@pytest.mark.parametrize(
    "round_ns", [TICK_NS, PULSE_NS - 1, PULSE_NS, 2 * PULSE_NS, EXPIRY_NS, 20 * EXPIRY_NS]
)
def test_deadlines_and_pulses_are_looked_at_however_long_rounds_take(round_ns: int) -> None:
    """Law: each is done in its own time, or in the second tick behind it. Timeouts held for no request while a server's flood
    made every round last longer than the time between two pulses."""
    now = next_pulse = next_expiry = 0
    pulses: list[int] = []
    expiries: list[int] = []
    for _ in range(1000):
        chore = chore_at(now, next_pulse, next_expiry)
        if chore == "pulse":
            next_pulse = now + PULSE_NS
            pulses.append(now)
        elif chore == "expiry":
            next_expiry = now + EXPIRY_NS
            expiries.append(now)
        now += round_ns
    for done, period in ((pulses, PULSE_NS), (expiries, EXPIRY_NS)):
        gaps = [later - earlier for earlier, later in pairwise(done)]
        assert gaps
        assert max(gaps) <= period + 2 * round_ns
