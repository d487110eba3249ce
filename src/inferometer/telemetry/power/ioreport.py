"""Apple's chips by IOReport, which needs no privilege: the energy counters of the group `Energy Model`.

| channel                                  | scope         | device   |
| ---------------------------------------- | ------------- | -------- |
| `GPU Energy`                             | `accelerator` | `gpu`    |
| `CPU Energy`, `DIE_N_CPU Energy`         | `other`       | `cpu`    |
| `ANE`, `ANE0`, `ANE0_1`                  | `other`       | `ane`    |
| `DRAM`, `DRAM0`, `DRAM0_1`               | `memory`      | `dram`   |

Channels of one device are added up: chips of several dies have one for each. All others (single cores, clusters, SRAM) are
parts of these. Each channel names its unit, mJ, uJ or nJ. The counters are read as differences from the first sample, which is
what IOReport documents them for, so a meter's joules count from its opening.

libIOReport is a private library of macOS without documentation of Apple's; its functions are known from open source that uses
them (socpowerbud, macmon). **Not tried on a Mac.** tests/vectors/power has channels as published.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from inferometer.telemetry.power.bounded_calls import TIMEOUT_S, BoundedCalls
from inferometer.telemetry.power.readings import MeterFailed, PowerReading, Scope, checked_joules

NAME = "ioreport"
GROUP = "Energy Model"
_UNITS = {"mJ": 1e-3, "uJ": 1e-6, "µJ": 1e-6, "nJ": 1e-9}
_DEVICES: tuple[tuple[re.Pattern[str], Scope, str], ...] = (
    (re.compile(r"GPU Energy"), "accelerator", "gpu"),
    (re.compile(r"(DIE_\d+_)?CPU Energy"), "other", "cpu"),
    (re.compile(r"ANE(\d+(_\d+)?)?"), "other", "ane"),
    (re.compile(r"DRAM(\d+(_\d+)?)?"), "memory", "dram"),
)
_UTF8 = 0x08000100
_NAME_BYTES = 256


class Channel(msgspec.Struct, frozen=True):
    """One counter: its difference from the first sample, in `unit`."""

    name: str
    unit: str
    value: int


class EnergyChannels(Protocol):
    """The source of the counters."""

    def read(self) -> Sequence[Channel]:
        """All channels of the group now. Raises MeterFailed."""
        ...

    def close(self) -> None:
        """Release them."""
        ...


class IOReportMeter:
    """See Meter. `channels`: None opens macOS's. Raises MeterFailed."""

    name = NAME

    def __init__(self, channels: EnergyChannels | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._call = BoundedCalls(NAME, MacOSChannels, timeout_s)
        self._channels = channels or self._call(MacOSChannels)

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter."""
        return readings(self._call(self._channels.read))

    def close(self) -> None:
        """See Meter."""
        with contextlib.suppress(MeterFailed):
            self._call(self._channels.close)


def readings(channels: Sequence[Channel]) -> tuple[PowerReading, ...]:
    """The channels by device, added up. Raises MeterFailed."""
    found = []
    for pattern, scope, device in _DEVICES:
        joules = [_joules(channel) for channel in channels if pattern.fullmatch(channel.name)]
        if joules:
            total = checked_joules(NAME, math.fsum(joules))
            found.append(PowerReading(NAME, scope, device, joules=total, method="counter"))
    if not found:
        raise MeterFailed(NAME, "absent", f"the group {GROUP} has no channel that is known here")
    return tuple(found)


def _joules(channel: Channel) -> float:
    unit = _UNITS.get(channel.unit.strip())
    if unit is None:
        words = f"the channel {channel.name} counts in {channel.unit[:20]!r}, not in mJ, uJ or nJ"
        raise MeterFailed(NAME, "malformed", words)
    return channel.value * unit


class MacOSChannels:
    """The channels of this Mac. A pointer named by a Copy or Create function is ours to release (Core Foundation's rule)."""

    def __init__(self) -> None:
        self._core, self._report = _libraries()
        core, report = self._core, self._report
        group = core.CFStringCreateWithCString(None, GROUP.encode(), _UTF8)
        listed = report.IOReportCopyChannelsInGroup(group, None, 0, 0, 0)
        core.CFRelease(group)
        if not listed:
            raise MeterFailed(NAME, "absent", f"this Mac has no group {GROUP}: Apple's chips from M1 on have")
        wanted = core.CFDictionaryCreateMutableCopy(None, 0, listed)
        core.CFRelease(listed)
        subscribed = ctypes.c_void_p()
        self._subscription = report.IOReportCreateSubscription(
            None, wanted, ctypes.byref(subscribed), 0, None
        )
        core.CFRelease(wanted)
        if not self._subscription:
            raise MeterFailed(NAME, "permission", "macOS refuses the subscription; powermetrics may work")
        self._subscribed = subscribed
        self._key = core.CFStringCreateWithCString(None, b"IOReportChannels", _UTF8)
        self._first: int | None = self._sample()

    def read(self) -> Sequence[Channel]:
        """See EnergyChannels."""
        core, report = self._core, self._report
        now = self._sample()
        difference = report.IOReportCreateSamplesDelta(self._first, now, None)
        core.CFRelease(now)
        if not difference:
            raise MeterFailed(NAME, "vanished", "IOReport gives no difference of samples")
        try:
            listed = core.CFDictionaryGetValue(difference, self._key)
            if not listed:
                raise MeterFailed(NAME, "malformed", "the sample has no channels")
            places = range(core.CFArrayGetCount(listed))
            return [self._channel(core.CFArrayGetValueAtIndex(listed, place)) for place in places]
        finally:
            core.CFRelease(difference)

    def close(self) -> None:
        """See EnergyChannels."""
        for held in (self._first, self._key, self._subscribed, self._subscription):
            if held:
                self._core.CFRelease(held)
        self._first = self._key = self._subscription = None
        self._subscribed = ctypes.c_void_p()

    def _sample(self) -> int:
        found: int | None = self._report.IOReportCreateSamples(self._subscription, self._subscribed, None)
        if not found:
            raise MeterFailed(NAME, "vanished", "IOReport gives no sample")
        return found

    def _channel(self, item: int) -> Channel:
        report = self._report
        return Channel(
            self._text(report.IOReportChannelGetChannelName(item)),
            self._text(report.IOReportChannelGetUnitLabel(item)),
            int(report.IOReportSimpleGetIntegerValue(item, 0)),
        )

    def _text(self, string: int | None) -> str:
        buffer = ctypes.create_string_buffer(_NAME_BYTES)
        if not string or not self._core.CFStringGetCString(string, buffer, _NAME_BYTES, _UTF8):
            return ""
        return buffer.value.decode("utf-8", "replace")


def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """Core Foundation and IOReport, with the types of what is called. Raises MeterFailed."""
    try:
        core = ctypes.CDLL("/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation")
        report = ctypes.CDLL("/usr/lib/libIOReport.dylib")
        pointer, word, size = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_long
        signatures = (
            (core.CFStringCreateWithCString, pointer, (pointer, ctypes.c_char_p, ctypes.c_uint32)),
            (core.CFStringGetCString, ctypes.c_ubyte, (pointer, ctypes.c_char_p, size, ctypes.c_uint32)),
            (core.CFDictionaryCreateMutableCopy, pointer, (pointer, size, pointer)),
            (core.CFDictionaryGetValue, pointer, (pointer, pointer)),
            (core.CFArrayGetCount, size, (pointer,)),
            (core.CFArrayGetValueAtIndex, pointer, (pointer, size)),
            (core.CFRelease, None, (pointer,)),
            (report.IOReportCopyChannelsInGroup, pointer, (pointer, pointer, word, word, word)),
            (report.IOReportCreateSubscription, pointer, (pointer, pointer, pointer, word, pointer)),
            (report.IOReportCreateSamples, pointer, (pointer, pointer, pointer)),
            (report.IOReportCreateSamplesDelta, pointer, (pointer, pointer, pointer)),
            (report.IOReportChannelGetChannelName, pointer, (pointer,)),
            (report.IOReportChannelGetUnitLabel, pointer, (pointer,)),
            (report.IOReportSimpleGetIntegerValue, ctypes.c_int64, (pointer, ctypes.c_int32)),
        )
    except (OSError, AttributeError) as cause:
        raise MeterFailed(NAME, "absent", f"IOReport, a part of macOS, cannot be loaded: {cause}") from None
    for function, result, arguments in signatures:
        function.restype, function.argtypes = result, arguments
    return core, report
