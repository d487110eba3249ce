"""Readiness of descriptors: epoll on Linux, poll elsewhere. The two share their masks and differ in the unit of time."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import Any

READABLE = 1
WRITABLE = 4


def _native() -> Any:
    return select.epoll() if sys.platform == "linux" else select.poll()


class Poller:
    """Level-triggered readiness for many descriptors."""

    def __init__(self) -> None:
        self._native: Any = _native()
        self.register = self._native.register
        self.modify = self._native.modify
        self.unregister = self._native.unregister
        self.poll: Callable[[float, int], list[tuple[int, int]]] = (
            self._native.poll if sys.platform == "linux" else self._poll_seconds
        )

    def _poll_seconds(self, timeout: float, most: int) -> list[tuple[int, int]]:
        ready: list[tuple[int, int]] = self._native.poll(None if timeout < 0 else timeout * 1000)
        return ready[:most]

    def close(self) -> None:
        """Give the descriptor back, where there is one."""
        if sys.platform == "linux":
            self._native.close()
