"""The accelerators of the machine that this process runs on, by whichever vendor's library answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferometer.telemetry.accelerator_readings import Accelerators, AcceleratorState
from inferometer.telemetry.amd import AmdAccelerators
from inferometer.telemetry.nvidia import NvidiaAccelerators
from inferometer.telemetry.power.readings import MeterFailed

__all__ = ["AcceleratorState", "Accelerators", "NoAccelerators", "this_machines_accelerators"]

VENDORS: tuple[Callable[[], Accelerators], ...] = (NvidiaAccelerators, AmdAccelerators)


class NoAccelerators:
    """See Accelerators. A machine without one, or without a library that reads it."""

    def read(self) -> tuple[AcceleratorState, ...]:
        """See Accelerators."""
        return ()

    def close(self) -> None:
        """See Accelerators."""


def this_machines_accelerators(vendors: Sequence[Callable[[], Accelerators]] = VENDORS) -> Accelerators:
    """The accelerators of the first vendor that has any here; NoAccelerators if none has.

    Raises MeterFailed if none was read, and one vendor's library failed for another reason than that there is nothing
    (`absent`): there may be some.

    Apple's GPUs show neither memory nor clocks without privilege; theirs is the machine's memory.
    """
    failures: list[MeterFailed] = []
    for vendor in vendors:
        opened: Accelerators = NoAccelerators()
        try:
            opened = vendor()
            if opened.read():
                return opened
        except MeterFailed as failure:
            failures.append(failure)
        opened.close()
    told = [one for one in failures if one.code != "absent"]
    if told:
        raise told[0]
    return NoAccelerators()
