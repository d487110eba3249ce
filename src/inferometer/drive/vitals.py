"""How the loop of a worker fares: what it sent and read, and how late."""

from __future__ import annotations


class Vitals:
    """The loop's own health; `reset` begins a new pulse, the totals stay. Times in ns."""

    __slots__ = (
        "finished",
        "in_flight",
        "lag_max",
        "lag_sum",
        "reads",
        "sent",
        "stall_max",
        "stamped",
        "unstamped",
    )

    def __init__(self) -> None:
        self.sent = self.finished = self.in_flight = 0
        self.stamped = self.unstamped = 0  # reads with and without the kernel's time, of this phase
        self.reads = self.lag_sum = self.lag_max = self.stall_max = 0

    def count(self, reads: int, lag_sum: int, lag_max: int) -> None:
        """Add what one round saw."""
        self.reads += reads
        self.stamped += reads
        self.lag_sum += lag_sum
        if lag_max > self.lag_max:
            self.lag_max = lag_max

    def reset(self) -> None:
        """Begin a new pulse."""
        self.reads = self.lag_sum = self.lag_max = self.stall_max = 0
