"""Whether the system wrote memory to disk while something was measured (asiai's methodology, Quality gates,
memory_pressure).

Every 15 s swap is read and compared with the baseline of the start. Swap in use grown by more than 500 MB, or more than 1,000
pages swapped out, mean that parts of the model or of its cache may be on disk: what is measured then is no longer the engine.
A gate whose readings are unknown did not run, which is neither alarm nor all-clear.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from types import TracebackType

from inferometer.telemetry.machine_readings import Reading, Swap

EVERY_S = 15.0
GROWN_BYTES = 500 * 1000 * 1000
SWAPPED_OUT_PAGES = 1000


class SwapAlert(Reading, frozen=True):
    """The first reading over a limit. `after_s`: time since the baseline; `grown_bytes`, `swapped_out_pages`: growth since
    then, None if unknown."""

    after_s: float
    grown_bytes: int | None
    swapped_out_pages: int | None


class SwapAccount(Reading, frozen=True):
    """What was seen of swap. `readings`: how many were compared with the baseline, 0 if the gate did not run; `grown_bytes`,
    `swapped_out_pages`: the largest growth since the baseline, None if unknown."""

    readings: int
    grown_bytes: int | None
    swapped_out_pages: int | None
    alert: SwapAlert | None


class SwapGate:
    """The comparison, without a clock: `baseline` was read at `begin_s`."""

    def __init__(self, baseline: Swap, begin_s: float) -> None:
        self._baseline, self._begin_s = baseline, begin_s
        self._account = SwapAccount(0, None, None, None)

    @property
    def account(self) -> SwapAccount:
        """What was seen so far."""
        return self._account

    def take(self, swap: Swap, at_s: float) -> SwapAlert | None:
        """Compare a reading of the instant `at_s` with the baseline; the alert if it is over a limit."""
        grown = _growth(swap.used_bytes, self._baseline.used_bytes)
        pages = _growth(swap.swapped_out_pages, self._baseline.swapped_out_pages)
        over = (grown or 0) > GROWN_BYTES or (pages or 0) > SWAPPED_OUT_PAGES
        alert = SwapAlert(at_s - self._begin_s, grown, pages) if over else None
        before = self._account
        self._account = SwapAccount(
            before.readings + (grown is not None or pages is not None),
            _larger(before.grown_bytes, grown),
            _larger(before.swapped_out_pages, pages),
            before.alert or alert,
        )
        return alert


class SwapWatch:
    """A thread that reads swap every 15 s from `start` to `stop`, and once more at its end. Also a context manager.

    `read` gives the reading, `on_alert` is called in the thread with the first alert.
    """

    def __init__(
        self,
        read: Callable[[], Swap],
        on_alert: Callable[[SwapAlert], None] | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._read, self._on_alert, self._every_s = read, on_alert, every_s
        self._gate = SwapGate(Swap(), 0.0)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Read the baseline and begin."""
        self._gate = SwapGate(self._read(), time.monotonic())
        self._stopped.clear()
        self._thread = threading.Thread(target=self._watch, name="swap-watch", daemon=True)
        self._thread.start()

    def stop(self) -> SwapAccount:
        """Read a last time and end; more than once does no harm."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None
            self._look()
        return self.account

    @property
    def account(self) -> SwapAccount:
        """What was seen so far."""
        with self._lock:
            return self._gate.account

    def __enter__(self) -> SwapWatch:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _watch(self) -> None:
        while not self._stopped.wait(self._every_s):
            self._look()

    def _look(self) -> None:
        swap = self._read()
        with self._lock:
            first = self._gate.account.alert is None
            alert = self._gate.take(swap, time.monotonic())
        if alert is not None and first and self._on_alert is not None:
            with contextlib.suppress(Exception):  # words that cannot be printed must not end the watch
                self._on_alert(alert)


def _growth(now: int | None, baseline: int | None) -> int | None:
    return None if now is None or baseline is None else now - baseline


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
