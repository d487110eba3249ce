"""Accelerators and meters of power as parts of the readings of this machine.

A meter that fails is told by its reason in place of a reading, as a sample of value 1: the record itself says why a figure is
missing. It is tried again at the next reading, since one that answered once may do so again. Each is read on its own time
(side_by_side.py).

| the text is for      | words of a failure                                  | a wall meter's device |
| -------------------- | --------------------------------------------------- | --------------------- |
| the run's own record | all: what the meter or the command said             | its host              |
| others, over HTTP    | REASONS, by code; all of them go to `tell` instead  | WALL_METER            |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from inferometer.printable import printable
from inferometer.telemetry import amd, nvidia
from inferometer.telemetry.accelerators import Accelerators, AcceleratorState, this_machines_accelerators
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import Part
from inferometer.telemetry.machines.side_by_side import Patience, SideBySide
from inferometer.telemetry.power import http
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


class MeterPart:
    """One meter. `open_it` may raise MeterFailed, and is asked again until it gives one. `mark`: tells it from another meter of
    the same name. `tell`: takes the words of failures, once each time they change, of a text that others read; None: they are
    in the text."""

    def __init__(
        self,
        spec: str,
        open_it: Callable[[str], Meter],
        mark: str = "",
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._spec, self._open, self._mark, self._tell = spec, open_it, mark, tell
        self._told = ""
        self._meter: Meter | None = None
        self.name = kind_of(spec) + mark

    def __call__(self, found: Text) -> None:
        """Add its readings, or why there are none."""
        try:
            if self._meter is None:
                self._meter = self._open(self._spec)
            readings = self._meter.read()
        except MeterFailed as failure:
            _add_failure(found, failure.meter + self._mark, failure.code, self._words(failure))
            return
        except Exception as failure:
            # Whatever a meter meets, all other readings go on.
            code: FailureCode = "absent" if self._meter is None else "malformed"
            _add_failure(found, self.name, code, _words(self.name, failure))
            return
        for one in readings:
            labels = {
                "meter": one.meter + self._mark,
                "scope": one.scope,
                "device": WALL_METER if self._tell and one.meter == http.NAME else one.device,
                "method": one.method,
            }
            found.add("power", one.watts, labels)
            found.add("energy", one.joules, labels)
            found.add("energy_range", one.wraps_at, labels)

    def _words(self, failure: MeterFailed) -> str:
        if self._tell is None:
            return str(failure)
        if str(failure) != self._told:
            self._told = str(failure)
            self._tell(self._told)
        return f"{failure.meter}: {REASONS[failure.code]}; its machine's `inferometer telemetry serve` prints why"


def _words(name: str, failure: Exception) -> str:
    return printable(f"{name}: {type(failure).__name__}: {failure}")


def _add_failure(found: Text, meter: str, code: FailureCode, words: str) -> None:
    labels = {"meter": meter, "code": code, "words": words[:SHOWN_OF_A_REASON]}
    found.add("meter_failed", 1, labels)


def _add_lateness(part: Part, found: Text) -> None:
    if isinstance(part, MeterPart):
        words = f"{part.name}: no answer in time; what comes late is taken with a later reading"
        _add_failure(found, part.name, "timeout", words)


def _meter_of(part: Part) -> str | None:
    return part.name if isinstance(part, MeterPart) else None


class AcceleratorPart:
    """The accelerators, looked for at the first reading."""

    def __init__(self, look: Callable[[], Accelerators] = this_machines_accelerators) -> None:
        self._look = look
        self._accelerators: Accelerators | None = None

    def __call__(self, found: Text) -> None:
        """Add their states."""
        try:
            if self._accelerators is None:
                self._accelerators = self._look()
            states = self._accelerators.read()
        except Exception as failure:
            # A library of others, as above.
            _add_failure(found, "accelerators", "vanished", _words("accelerators", failure))
            return
        for one in states:
            _add_state(found, one)


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
    SideBySide. `tell`: see MeterPart."""
    named = [one for spec in meters for one in (available() if spec == AUTO else (spec,))]
    seen: Counter[str] = Counter()
    parts: list[Part] = [AcceleratorPart()]
    for spec in dict.fromkeys(named):
        kind = kind_of(spec)
        seen[kind] += 1
        parts.append(MeterPart(spec, open_meter, f"#{seen[kind]}" if seen[kind] > 1 else "", tell))
    return [SideBySide(parts, _add_lateness, _meter_of, patience)]


def kind_of(spec: str) -> str:
    """The name that the failures and readings of a meter have."""
    return spec.partition(":")[0].replace("https", "http")
