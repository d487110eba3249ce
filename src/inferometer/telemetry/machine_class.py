"""What kind of machine this is, as far as it says what speed is plausible."""

from __future__ import annotations

import psutil


def laptop_class(chip: str | None) -> bool:
    """Whether this is a machine for one person: an Apple chip, or a battery inside. Unknown counts as not."""
    if chip is not None and chip.startswith("Apple "):
        return True
    try:
        return psutil.sensors_battery() is not None
    except (AttributeError, OSError, RuntimeError):  # not on this system, or not readable
        return False
