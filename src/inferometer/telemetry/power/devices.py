"""Which of a machine's accelerators are read, by their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.telemetry.power.readings import MeterFailed


def selected(meter: str, handles: Sequence[object], numbers: Sequence[int] | None) -> dict[int, object]:
    """The handles by number: those of `numbers`, or all. Raises MeterFailed (`absent`) if one or all are missing."""
    if not handles:
        raise MeterFailed(meter, "absent", "the driver shows no GPU")
    wanted = range(len(handles)) if numbers is None else numbers
    for number in wanted:
        if not 0 <= number < len(handles):
            words = f"there is no GPU {number}; this machine has {len(handles)}, numbered from 0"
            raise MeterFailed(meter, "absent", words)
    return {number: handles[number] for number in wanted}
