"""Apple's chips by powermetrics(1), which needs root: a stream of property lists, one a sample, read as it comes.

| key of `processor` (mW) | scope         | device    |
| ----------------------- | ------------- | --------- |
| `combined_power`        | `package`     | `package` |
| `gpu_power`             | `accelerator` | `gpu`     |
| `cpu_power`             | `other`       | `cpu`     |
| `ane_power`             | `other`       | `ane`     |

Each value is the mean of its sample, `elapsed_ns` long. A reading is the mean of the samples since the last reading, weighted
by their lengths, or the last sample once more if no new one has arrived. A NUL byte separates the lists; a list is read as soon
as its `</plist>` has arrived.

Not tried on a Mac: written from powermetrics(1) and published output of macOS 13 to 15 (tests/vectors/power).
"""

from __future__ import annotations

import collections
import math
import os
import plistlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.parsers.expat import ExpatError

from inferometer.telemetry.power.command_output import ended, in_one_line, started
from inferometer.telemetry.power.readings import MeterFailed, PowerReading, Scope, checked_watts

NAME = "powermetrics"
INTERVAL_MS = 1000
TIMEOUT_S = 5.0
"""Without a sample for so long, the last one is no longer the power now."""
LARGEST = 1 << 20
"""Bytes of one property list. Those of two samplers have some ten kilobytes."""
REMEDY = "powermetrics needs root: run as root, or allow it without a password in sudoers (visudo)"

_END = b"</plist>"
_KEYS: tuple[tuple[str, Scope, str], ...] = (
    ("combined_power", "package", "package"),
    ("gpu_power", "accelerator", "gpu"),
    ("cpu_power", "other", "cpu"),
    ("ane_power", "other", "ane"),
)


def command() -> tuple[str, ...]:
    """What is run: by sudo without asking for a password, unless we are root."""
    line = ("powermetrics", "--samplers", "cpu_power,gpu_power", "-f", "plist", "-i", str(INTERVAL_MS))
    return line if os.geteuid() == 0 else ("sudo", "-n", *line)


class Sample:
    """The watts of one sample by key, over `seconds`."""

    def __init__(self, watts: Mapping[str, float], seconds: float) -> None:
        self.watts, self.seconds = watts, seconds


def sample(document: bytes) -> Sample:
    """One property list. Raises MeterFailed (`malformed`)."""
    try:
        root: Any = plistlib.loads(document.lstrip(b"\0\r\n "), fmt=plistlib.FMT_XML)
        processor, elapsed = root["processor"], root["elapsed_ns"]
        watts = {key: processor[key] / 1e3 for key, _, _ in _KEYS if key in processor}
        seconds = elapsed / 1e9
    except (ExpatError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        words = "the output is no property list of the sampler cpu_power"
        raise MeterFailed(NAME, "malformed", words) from None
    if not watts:
        raise MeterFailed(NAME, "malformed", "the samples show no power: not one of Apple's chips?")
    if not 0 < seconds < 3600:
        raise MeterFailed(NAME, "malformed", f"a sample of {seconds:g} s")
    return Sample({key: checked_watts(NAME, value) for key, value in watts.items()}, seconds)


def documents(read: Callable[[], bytes]) -> Iterator[bytes]:
    """The property lists of a stream, each as soon as it is whole. `read`: the next bytes, empty at the end.
    Raises MeterFailed."""
    left = bytearray()
    while data := read():
        searched = max(0, len(left) - len(_END))
        left += data
        while (found := left.find(_END, searched)) >= 0:
            yield bytes(left[: found + len(_END)])
            del left[: found + len(_END)]
            searched = 0
        if len(left) > LARGEST:
            raise MeterFailed(NAME, "malformed", f"a property list of more than {LARGEST} bytes")


class PowermetricsMeter:
    """See Meter. `line`: the command; `clock`: seconds, monotonic. Raises MeterFailed."""

    name = NAME

    def __init__(
        self,
        line: Sequence[str] | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_s, self._clock = timeout_s, clock
        self._process: subprocess.Popen[bytes] = started(NAME, line or command())
        self._changed = threading.Condition()
        self._samples: collections.deque[Sample] = collections.deque(maxlen=1000)
        self._last: Sample | None = None
        self._at = self._clock()
        self._failure: MeterFailed | None = None
        threading.Thread(target=self._follow, name="powermetrics", daemon=True).start()

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter. The first reading waits for the first sample."""
        with self._changed:
            self._changed.wait_for(lambda: self._last or self._samples or self._failure, self._timeout_s)
            fresh = list(self._samples)
            self._samples.clear()
            if not fresh and self._failure is not None:
                raise MeterFailed(NAME, self._failure.code, str(self._failure).removeprefix(f"{NAME}: "))
            if not fresh and (self._last is None or self._clock() - self._at > self._timeout_s):
                raise MeterFailed(NAME, "timeout", f"no sample within {self._timeout_s:g} s")
            self._last = fresh[-1] if fresh else self._last
            return means(fresh or [sample for sample in (self._last,) if sample is not None])

    def close(self) -> None:
        """See Meter."""
        ended(self._process)

    def _follow(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        try:
            for document in documents(lambda: os.read(pipe.fileno(), 1 << 16)):
                found = sample(document)
                with self._changed:
                    self._samples.append(found)
                    self._at = self._clock()
                    self._changed.notify_all()
            failure = self._complaint()
        except MeterFailed as cause:
            failure = cause
        except (OSError, ValueError):  # the meter was closed
            failure = MeterFailed(NAME, "vanished", "the meter is closed")
        # Until the meter is closed it would be a zombie, or write what nobody reads.
        ended(self._process)
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def _complaint(self) -> MeterFailed:
        """Why the command has ended by itself, by what it wrote last."""
        pipe = self._process.stderr
        assert pipe is not None
        words = os.read(pipe.fileno(), 1 << 12)
        if b"superuser" in words or b"password" in words or b"sudo" in words:
            return MeterFailed(NAME, "permission", REMEDY)
        return MeterFailed(
            NAME, "vanished", f"powermetrics has ended: {in_one_line(words) or 'without a word'}"
        )


def means(samples: Sequence[Sample]) -> tuple[PowerReading, ...]:
    """The readings of one or more samples: their means, by each key that all of them have."""
    seconds = math.fsum(one.seconds for one in samples)
    return tuple(
        PowerReading(
            NAME,
            scope,
            device,
            watts=math.fsum(one.watts[key] * one.seconds for one in samples) / seconds,
            method="mean",
        )
        for key, scope, device in _KEYS
        if all(key in one.watts for one in samples)
    )
