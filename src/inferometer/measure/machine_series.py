"""What is drawn of the machines over a run: processors, memory, heat, accelerators and power, on the run's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.measure.machines import IDLE, risen
from inferometer.measure.record import Floats, Ints
from inferometer.telemetry.machines.tracks import MachineTrack, MachineTracks
from inferometer.units import NS_PER_S

POINTS_MOST = 600
"""Points of a drawn series; more would be narrower than a pixel."""
_GIB = float(1 << 30)


@dataclass(frozen=True, slots=True)
class MachineCurve:
    """One line of one picture of one machine. `picture`: its title, `unit`: of the values; times in s from the run's start."""

    url: str
    picture: str
    unit: str
    label: str
    t_s: tuple[float, ...]
    values: tuple[float, ...]


def machine_curves(machines: Sequence[MachineTracks], start: int) -> tuple[MachineCurve, ...]:
    """All that is drawn, machine by machine. `start` of the run in ns."""
    return tuple(curve for one in machines for curve in _curves_or_none(one, start))


def _curves_or_none(one: MachineTracks, start: int) -> tuple[MachineCurve, ...]:
    """As in machines.py: what cannot be drawn of a machine is missing, and the run's other pictures are not."""
    try:
        return tuple(_curves(one, start))
    except Exception:  # the machine's figures, made of the same readings, are there or say why they are not
        return ()


def _curves(one: MachineTracks, start: int) -> Iterator[MachineCurve]:
    def curve(picture: str, unit: str, label: str, times: Ints, values: Floats) -> MachineCurve:
        step = max(1, -(-len(times) // POINTS_MOST))
        t_s = (times[::step] - start) / NS_PER_S
        return MachineCurve(
            one.url, picture, unit, label, tuple(t_s.tolist()), tuple(values[::step].tolist())
        )

    def levels(picture: str, unit: str, term: str, scale: float, *names: str) -> Iterator[MachineCurve]:
        for track in one.of(term):
            label = " ".join(track.labels.get(name, "") for name in names).strip() or picture.lower()
            yield curve(picture, unit, label, track.times, track.values * scale)

    modes = [track for track in one.of("cpu_seconds") if track.labels.get("mode") not in IDLE]
    if modes and all(np.array_equal(each.times, modes[0].times) for each in modes):
        total: Floats = np.sum([risen(each.values) for each in modes], axis=0)
        yield curve("Processors in use", "processors", "all", *_rates(modes[0].times, total))
        for track in one.of("process_cpu"):
            yield curve("Processors in use", "processors", track.labels["role"], *_rate_of(track))
    yield from levels("Memory available", "GiB", "memory_available", 1 / _GIB)
    yield from levels("Temperature", "°C", "temperature", 1.0, "zone", "sensor")
    yield from levels("Accelerators busy", "%", "accelerator_busy", 100.0, "device")
    yield from levels("Accelerator memory in use", "GiB", "accelerator_memory_used", 1 / _GIB, "device")
    yield from levels("Accelerator clocks", "MHz", "accelerator_hertz", 1e-6, "device")
    yield from levels("Accelerator temperature", "°C", "accelerator_temperature", 1.0, "device")
    yield from levels("Power", "W", "power", 1.0, "meter", "scope", "device")
    metered = {tuple(sorted(track.labels.items())) for track in one.of("power")}
    for track in one.of("energy"):
        if tuple(sorted(track.labels.items())) not in metered:
            label = " ".join(track.labels.get(name, "") for name in ("meter", "scope", "device"))
            yield curve("Power", "W", label, *_rate_of(track))


def _rate_of(track: MachineTrack) -> tuple[Ints, Floats]:
    return _rates(track.times, risen(track.values))


def _rates(times: Ints, total: Floats) -> tuple[Ints, Floats]:
    """A growing total by time, at the middle between two readings."""
    if len(times) < 2:
        return times[:0], total[:0]
    middle: Ints = times[:-1] + np.diff(times) // 2
    return middle, np.diff(total) * NS_PER_S / np.diff(times)
