"""The addresses of a host within a deadline. The system's call takes no limit of time, so a thread makes it; one that hangs is
waited for again by whoever asks next, so that there is never more than one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal

Addresses = list[tuple[Any, ...]]
"""As `socket.getaddrinfo` gives them."""


class NoAddress(Exception):
    """There is no address: the name has none, or none was found in time. The text says so, and ends without a full stop."""

    def __init__(self, reason: Literal["unresolved", "timeout"], words: str) -> None:
        super().__init__(words)
        self.reason = reason


class NameLookup:
    """Of one host, from any thread. `resolve` finds its addresses, and may hang."""

    def __init__(self, host: str, port: int, resolve: Callable[..., Addresses] = socket.getaddrinfo) -> None:
        self._host, self._port, self._resolve = host, port, resolve
        self._pending: Future[Addresses] | None = None

    def addresses(self, until: int) -> Addresses:
        """By the system. `until`: monotonic, ns. Raises NoAddress."""
        pending = self._pending
        if pending is None:
            pending = self._pending = Future()
            threading.Thread(target=self._look_up, args=(pending,), daemon=True).start()
        try:
            failure = pending.exception(max(0.0, (until - time.monotonic_ns()) / 1e9))
        except TimeoutError:
            words = f"the name {self._host} is still being looked up: DNS has not answered in time"
            raise NoAddress("timeout", words) from None
        self._pending = None
        if failure is None:
            return pending.result()
        if isinstance(failure, OSError):
            raise NoAddress(
                "unresolved", f"the name {self._host} does not resolve ({failure.strerror})"
            ) from None
        if isinstance(failure, UnicodeError):
            words = f"the name {self._host} does not resolve (it is not a host name)"
            raise NoAddress("unresolved", words) from None
        raise failure

    def _look_up(self, pending: Future[Addresses]) -> None:
        try:
            found = self._resolve(self._host, self._port, type=socket.SOCK_STREAM)
        except Exception as failure:
            pending.set_exception(failure)
        else:
            pending.set_result(found)
