"""What a reader says is wrong with an input."""

from __future__ import annotations

from inferometer.errors import PlanError


def told(error: PlanError, most: int = 100) -> None:
    """There is something, not without bounds, and it can be written down."""
    assert 0 < len(error.problems) <= most
    str(error).encode()
