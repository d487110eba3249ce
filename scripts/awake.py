"""Keeping this machine's cores awake while something is measured.

Linux lets an idle core sleep, and waking it delays whatever was due: on a virtual machine its host has to schedule it again. A
process that holds /dev/cpu_dma_latency open with the value 0 keeps every core awake until it closes the file, which the
documentation of Linux calls a PM QoS request. It takes the rights of root.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

QOS = Path("/dev/cpu_dma_latency")
AT_ONCE = bytes(4)
"""An integer of 32 bits: microseconds that a core may take to wake up."""


@contextmanager
def kept_awake(place: Path = QOS) -> Iterator[bool]:
    """Keep the cores awake inside the block. Whether that was allowed."""
    try:
        request = place.open("r+b", buffering=0)
    except OSError:
        yield False
        return
    with request:
        request.write(AT_ONCE)
        yield True
