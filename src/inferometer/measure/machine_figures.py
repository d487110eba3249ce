"""The figures of a machine over the measured phase of a run. None: not read, or not known. How they are made: machines.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inferometer.measure.energy import LARGEST_GAP_S
from inferometer.measure.energy_figure import EnergyFigure
from inferometer.telemetry.machines.terms import ACCELERATORS
from inferometer.telemetry.machines.tracks import THIS_MACHINE

THERMAL: tuple[Literal["nominal", "fair", "serious", "critical"], ...] = (
    "nominal",
    "fair",
    "serious",
    "critical",
)
LIMITED = 1.0 - 1e-6
"""A processor whose speed limit is below is slower than it could be."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Processors in use, of `of`: by everything, by others than the roles that are read, and by other virtual machines of the
    same host. Means over the measured phase; `busiest`: the most between two readings."""

    of: int | None
    busy: float | None
    others: float | None
    stolen: float | None
    busiest: float | None


@dataclass(frozen=True, slots=True)
class Stalls:
    """Share of the time lost to waiting for a resource, 0 to 1."""

    resource: str
    some: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: the least that was available, of all; swap in use at the end less that at the beginning. Pages swapped out."""

    least_available: float | None
    total: float | None
    swap_growth: float | None
    swapped_out: float | None


@dataclass(frozen=True, slots=True)
class Heat:
    """The hottest reading in degrees Celsius, the worst thermal level, the lowest speed limit as a share, the most that
    the hardware slowed down any one processor (or core, or package, as they are counted); the lowest and the highest
    frequency in MHz, and the governors."""

    hottest: float | None
    level: Literal["nominal", "fair", "serious", "critical"] | None
    speed_limit: float | None
    throttles: float | None
    mhz_low: float | None
    mhz_high: float | None
    governors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Mean bytes per second of a network device."""

    device: str
    received_s: float | None
    sent_s: float | None


@dataclass(frozen=True, slots=True)
class Role:
    """The processes of a role: processors in use, the most resident bytes, the bytes that belong to them (PSS or footprint) at
    the last reading that has them, and how much resident memory grew."""

    role: str
    cores: float | None
    most_resident: float | None
    own: float | None
    growth: float | None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator. Bytes, shares from 0 to 1, MHz, degrees Celsius. `throttled`: by reason the share of the readings in
    which it was slower than it could be; None where it does not say."""

    device: str
    name: str | None
    vendor: str | None
    memory_most: float | None
    memory_total: float | None
    busy_mean: float | None
    mhz_low: float | None
    mhz_mean: float | None
    hottest: float | None
    throttled: tuple[tuple[str, float], ...] | None
    ecc_errors: float | None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The machine's wall clock less this one's, in ms, and half of the quickest reading's duration, by which it may be off."""

    offset_ms: float
    bound_ms: float


@dataclass(frozen=True, slots=True)
class FailedMeter:
    """A meter that gave no reading in `readings` of those of the measured phase, by its latest reason."""

    meter: str
    code: str
    words: str
    readings: int


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """A machine over the measured phase. `readings`: in it; `dropped`: in the whole run; `longest_gap_s`: of it, without
    a reading; `unread_s`: of it, before the first reading or after the last; `left_out`: what of its readings was unusable, and
    why. None: not read, or not known."""

    url: str
    exporter: str
    readings: int
    dropped: int
    longest_gap_s: float | None
    clock: ClockOffset | None
    cores: Cores | None
    stalls: tuple[Stalls, ...]
    memory: Memory | None
    heat: Heat | None
    traffic: tuple[Traffic, ...]
    roles: tuple[Role, ...]
    accelerators: tuple[Accelerator, ...]
    failed_meters: tuple[FailedMeter, ...]
    energy: tuple[EnergyFigure, ...] = ()
    left_out: tuple[str, ...] = ()
    unread_s: float = 0.0

    @property
    def own(self) -> bool:
        """Whether it is the machine that the run was made on."""
        return self.url == THIS_MACHINE

    @property
    def throttle_reasons(self) -> tuple[str, ...]:
        """Why it was slower than it could be: reasons of accelerators, and `cpu_thermal`, `cpu_limit`."""
        found = {reason for one in self.accelerators for reason, share in one.throttled or () if share > 0}
        if self.heat is not None:
            found |= {"cpu_thermal"} if (self.heat.throttles or 0) > 0 else set()
            limit = self.heat.speed_limit
            found |= {"cpu_limit"} if limit is not None and limit < LIMITED else set()
        return tuple(sorted(found))

    @property
    def throttled(self) -> bool | None:
        """Whether it was slower than it could be; None where no reading shows it of some part, or of any."""
        if self.throttle_reasons:
            return True
        parts = bool(self.accelerators) or self._has_processors
        return False if parts and not self.silent else None

    @property
    def silent(self) -> tuple[str, ...]:
        """Its parts of which no reading in the measured phase, or in its last part, shows whether they were slowed down: those
        that were read, and accelerators that may be there, but could not be read."""
        partly = self.unread_s > LARGEST_GAP_S
        found = [
            f"accelerator {one.device}"
            for one in self.accelerators
            if one.throttled is None or (partly and not any(share for _, share in one.throttled))
        ]
        if any(one.meter == ACCELERATORS for one in self.failed_meters):
            found.append("accelerators")
        heat = self.heat
        says = heat is not None and (heat.throttles is not None or heat.speed_limit is not None)
        return (*found, *(["processors"] if self._has_processors and (partly or not says) else []))

    @property
    def _has_processors(self) -> bool:
        """Whether its processors are read. A temperature alone may be of anything."""
        heat = self.heat
        return self.cores is not None or (
            heat is not None
            and (heat.throttles, heat.speed_limit, heat.mhz_low, *heat.governors) != (None, None, None)
        )
