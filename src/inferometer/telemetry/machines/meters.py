"""Accelerators and meters of power as parts of the readings of this machine.

A meter that fails is told by its reason in place of a reading, as a sample of value 1: the record itself says why a figure is
missing. It is tried again at the next reading, since one that answered once may do so again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from inferometer.telemetry.accelerators import Accelerators, AcceleratorState, this_machines_accelerators
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.local import Part
from inferometer.telemetry.machines.terms import THROTTLE_REASONS
from inferometer.telemetry.power.meters import available, open_meter
from inferometer.telemetry.power.readings import Meter, MeterFailed

AUTO = "auto"
SHOWN_OF_A_REASON = 300
_MHZ = 1e6


class MeterPart:
    """One meter. `open_it` may raise MeterFailed, and is asked again until it gives one. `mark`: tells it from another meter of
    the same name."""

    def __init__(self, spec: str, open_it: Callable[[str], Meter], mark: str = "") -> None:
        self._spec, self._open, self._mark = spec, open_it, mark
        self._meter: Meter | None = None

    def __call__(self, found: Text) -> None:
        """Add its readings, or why there are none."""
        try:
            if self._meter is None:
                self._meter = self._open(self._spec)
            readings = self._meter.read()
        except MeterFailed as failure:
            words = str(failure)[:SHOWN_OF_A_REASON]
            found.add(
                "meter_failed", 1, {"meter": failure.meter + self._mark, "code": failure.code, "words": words}
            )
            return
        for one in readings:
            labels = {
                "meter": one.meter + self._mark,
                "scope": one.scope,
                "device": one.device,
                "method": one.method,
            }
            found.add("power", one.watts, labels)
            found.add("energy", one.joules, labels)
            found.add("energy_range", one.wraps_at, labels)


class AcceleratorPart:
    """The accelerators, looked for at the first reading."""

    def __init__(self, look: Callable[[], Accelerators] = this_machines_accelerators) -> None:
        self._look = look
        self._accelerators: Accelerators | None = None

    def __call__(self, found: Text) -> None:
        """Add their states."""
        if self._accelerators is None:
            self._accelerators = self._look()
        for one in self._accelerators.read():
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
        for reason in THROTTLE_REASONS:
            found.add("accelerator_throttled", reason in one.throttle, {**labels, "reason": reason})


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def opened(meters: Sequence[str]) -> Sequence[Part]:
    """The accelerators, and these meters; `auto` is each that this machine seems to have."""
    named = [one for spec in meters for one in (available() if spec == AUTO else (spec,))]
    seen: Counter[str] = Counter()
    parts: list[Part] = [AcceleratorPart()]
    for spec in dict.fromkeys(named):
        kind = spec.partition(":")[0].replace("https", "http")
        seen[kind] += 1
        parts.append(MeterPart(spec, open_meter, f"#{seen[kind]}" if seen[kind] > 1 else ""))
    return parts
