"""Accelerators and meters of power as parts of the readings of this machine.

A meter that fails is told by its reason in place of a reading, as a sample of value 1: the record itself says why a figure is
missing. It is tried again at the next reading, since one that answered once may do so again. Each is read on its own time
(side_by_side.py).

| the text is for      | words of a failure                                  | a wall meter's device |
| -------------------- | --------------------------------------------------- | --------------------- |
| the run's own record | all: what the meter or the command said             | its host              |
| others, over HTTP    | REASONS, by code; all of them go to `tell` instead  | WALL_METER            |

Of several meters of one kind, the second is `http#2`, in readings and in the words of its failures. Two devices that would have
one name, such as two sockets of one power strip, are `strip` and `strip#2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from inferometer.printable import printable
from inferometer.telemetry import amd, nvidia
from inferometer.telemetry.accelerators import Accelerators, AcceleratorState, this_machines_accelerators
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import Part
from inferometer.telemetry.machines.side_by_side import Patience, SideBySide
from inferometer.telemetry.machines.terms import ACCELERATORS
from inferometer.telemetry.power import command, http
from inferometer.telemetry.power.meters import available, open_meter
from inferometer.telemetry.power.readings import FailureCode, Meter, MeterFailed

AUTO = "auto"
SHOWN_OF_A_REASON = 300
WALL_METER = "meter"
REASONS: Mapping[FailureCode, str] = {
    "absent": "the machine has no such meter, or its library is not installed",
    "permission": "it may not be read by this user",
    "vanished": "it does not answer, or part of it does no more",
    "timeout": "no reading in time",
    "malformed": "what came is no reading",
}
"""What strangers read of a failure: its full words hold paths, a command's output and names of hosts."""
_MHZ = 1e6
_REASONS = {"nvidia": nvidia.REASONS, "amd": amd.REASONS}


class _Failures:
    """The failures of one part. `tell`: takes their words, once each time they change, of a text that others read; None: they
    are in the text."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell, self._told = tell, ""

    def add(self, found: Text, name: str, code: FailureCode, words: str) -> None:
        """A failure of a meter. `words`: without its name."""
        full = printable(f"{name}: {words}")
        if self._tell is not None:
            if full != self._told:
                self._told = full
                self._tell(full)
            full = f"{name}: {REASONS[code]}; its machine's `inferometer telemetry serve` prints why"
        found.add("meter_failed", 1, {"meter": name, "code": code, "words": full[:SHOWN_OF_A_REASON]})

    def add_late(self, found: Text, name: str) -> None:
        """That a reading has not come. These words tell no more than the code does."""
        words = f"{name}: no answer in time; what comes late is taken with a later reading"
        found.add("meter_failed", 1, {"meter": name, "code": "timeout", "words": words})


class MeterPart:
    """One meter. `open_it` may raise MeterFailed, and is asked again until it gives one. `mark`: tells it from another meter of
    the same name, `device_mark`: its device from another meter's of the same name. `tell`: see _Failures."""

    def __init__(
        self,
        spec: str,
        open_it: Callable[[str], Meter],
        mark: str = "",
        tell: Callable[[str], None] | None = None,
        device_mark: str = "",
    ) -> None:
        self._spec, self._open, self._mark, self._device_mark = spec, open_it, mark, device_mark
        self._shown, self.failures = tell is None, _Failures(tell)
        self._meter: Meter | None = None
        self.name = kind_of(spec) + mark

    def __call__(self, found: Text) -> None:
        """Add its readings, or why there are none."""
        try:
            if self._meter is None:
                self._meter = self._open(self._spec)
            readings = self._meter.read()
        except MeterFailed as failure:
            self.failures.add(found, failure.meter + self._mark, failure.code, _said(failure))
            return
        except Exception as failure:
            # Whatever a meter meets, all other readings go on.
            code: FailureCode = "absent" if self._meter is None else "malformed"
            self.failures.add(found, self.name, code, _unforeseen(failure))
            return
        for one in readings:
            device = one.device if self._shown or one.meter != http.NAME else WALL_METER
            labels = {
                "meter": one.meter + self._mark,
                "scope": one.scope,
                "device": device + self._device_mark,
                "method": one.method,
            }
            found.add("power", one.watts, labels)
            found.add("energy", one.joules, labels)
            found.add("energy_range", one.wraps_at, labels)


def _said(failure: MeterFailed) -> str:
    return str(failure).removeprefix(f"{failure.meter}: ")


def _unforeseen(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"


class AcceleratorPart:
    """The accelerators, looked for until they or their absence are found. `tell`: see _Failures."""

    name = ACCELERATORS

    def __init__(
        self,
        look: Callable[[], Accelerators] = this_machines_accelerators,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._look, self.failures = look, _Failures(tell)
        self._accelerators: Accelerators | None = None

    def __call__(self, found: Text) -> None:
        """Add their states, or why there are none."""
        try:
            if self._accelerators is None:
                self._accelerators = self._look()
            states = self._accelerators.read()
        except MeterFailed as failure:
            self.failures.add(found, self.name, failure.code, str(failure))
            return
        except Exception as failure:
            # A library of others, as above.
            self.failures.add(found, self.name, "vanished", _unforeseen(failure))
            return
        for one in states:
            _add_state(found, one)


def _add_lateness(part: Part, found: Text) -> None:
    if isinstance(part, MeterPart | AcceleratorPart):
        part.failures.add_late(found, part.name)


def _meter_of(part: Part) -> str | None:
    return part.name if isinstance(part, MeterPart) else None


def _add_state(found: Text, one: AcceleratorState) -> None:
    labels = {"device": one.device}
    found.add("accelerator", 1, {**labels, "vendor": one.vendor, "name": one.name or ""})
    found.add("accelerator_memory_used", one.memory_used_bytes, labels)
    found.add("accelerator_memory_total", one.memory_total_bytes, labels)
    found.add("accelerator_busy", _share(one.utilisation_percent), labels)
    found.add("accelerator_hertz", None if one.sm_mhz is None else one.sm_mhz * _MHZ, labels)
    found.add("accelerator_memory_hertz", None if one.memory_mhz is None else one.memory_mhz * _MHZ, labels)
    found.add("accelerator_temperature", one.temperature_c, labels)
    found.add("accelerator_ecc", one.ecc_uncorrected, labels)
    if one.throttle is not None:
        # Those that do not hold now are said too: without any line it would not be known that there are none.
        for reason in dict.fromkeys((*_REASONS[one.vendor], *one.throttle)):
            found.add("accelerator_throttled", reason in one.throttle, {**labels, "reason": reason})


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def opened(
    meters: Sequence[str], patience: Patience, tell: Callable[[str], None] | None = None
) -> Sequence[Part]:
    """The accelerators and these meters, as one part; `auto` is each that this machine seems to have. `patience`: see
    SideBySide. `tell`: see _Failures."""
    devices: Counter[str] = Counter()
    parts: list[Part] = [AcceleratorPart(tell=tell)]
    for spec, mark in _marks(meters).items():
        device = _device_of(spec, shown=tell is None)
        device_mark = "" if device is None else _number(devices, device)
        parts.append(MeterPart(spec, open_meter, mark, tell, device_mark))
    return [SideBySide(parts, _add_lateness, _meter_of, patience)]


def names_of(some: Sequence[str], meters: Sequence[str]) -> frozenset[str]:
    """The names that the readings of some of a run's meters have."""
    marks = _marks(meters)
    return frozenset(kind_of(spec) + marks[spec] for spec in _found(some) if spec in marks)


def _found(meters: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(one for spec in meters for one in (available() if spec == AUTO else (spec,))))


def _marks(meters: Sequence[str]) -> dict[str, str]:
    """Each meter, with what tells it from those of its kind before it."""
    kinds: Counter[str] = Counter()
    return {spec: _number(kinds, kind_of(spec)) for spec in _found(meters)}


def _number(seen: Counter[str], name: str) -> str:
    seen[name] += 1
    return f"#{seen[name]}" if seen[name] > 1 else ""


def _device_of(spec: str, *, shown: bool) -> str | None:
    """What the device of a wall meter is called, where the plan alone says whose it is; None: its library names it. `shown`:
    with its host."""
    kind = kind_of(spec)
    if kind == http.NAME and shown:
        return re.split("[/?#]", spec.partition("//")[2], maxsplit=1)[0]
    return kind if kind in (http.NAME, command.NAME) else None


def kind_of(spec: str) -> str:
    """The name that the failures and readings of a meter have."""
    return spec.partition(":")[0].replace("https", "http")
