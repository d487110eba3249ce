"""Calls into a vendor's library, which hang when its driver does.

A call runs on a thread of its own and is waited for so long and no longer. One that hangs stays behind on its thread; until it
returns the library is not called again, by whichever meter, so there is never more than one, however often a meter is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from inferometer.telemetry.power.readings import MeterFailed

T = TypeVar("T")

TIMEOUT_S = 2.0
"""For all readings of a meter at one moment, which take milliseconds."""


_left_behind: MutableMapping[object, Future[Any]] = WeakKeyDictionary()
"""By library the latest call that hung in it."""


class BoundedCalls:
    """Calls for one meter into one library, one after the other, each within `timeout_s`."""

    def __init__(self, meter: str, library: object, timeout_s: float = TIMEOUT_S) -> None:
        self._meter, self._library, self._timeout_s = meter, library, timeout_s

    def __call__(self, function: Callable[[], T]) -> T:
        """What the function returns. Raises MeterFailed (`timeout`), and whatever the function raises."""
        hanging = _left_behind.get(self._library)
        if hanging is not None and not hanging.done():
            raise MeterFailed(self._meter, "timeout", "an earlier reading still hangs in the driver")
        call = begun(function)
        try:
            failure = call.exception(self._timeout_s)
        except TimeoutError:
            _left_behind[self._library] = call
            words = f"the driver has not answered within {self._timeout_s:g} s; see the system's log (dmesg)"
            raise MeterFailed(self._meter, "timeout", words) from None
        if failure is not None:
            raise failure
        return call.result()


def begun(function: Callable[[], T]) -> Future[T]:
    """The call, on a thread of its own, which may be left behind."""
    call: Future[T] = Future()
    threading.Thread(target=_carry_out, args=(call, function), daemon=True).start()
    return call


def _carry_out(call: Future[T], function: Callable[[], T]) -> None:
    try:
        found = function()
    except BaseException as failure:
        call.set_exception(failure)
    else:
        call.set_result(found)
