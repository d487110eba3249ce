"""The energy of each meter of a machine over the measured phase, and what a token took of it.

The baseline is what the meter showed before anything was sent. While prompts are made then, the client computes: of a scope
that holds the client's processor the baseline is not that of an idle machine (docs/power-and-energy.md).

An exporter may refresh its readings less often than it is scraped, and show the same ones meanwhile. What it shows again is no
sample: gaps are those between readings of the device, not between scrapes. A counter that did not move was not refreshed, as no
device draws nothing. The same power twice may be true, and counts if another reading of the accelerators or meters of that
exporter has changed since the scrape before; if none has, nothing shows that it was read anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from inferometer.measure.energy_figure import EnergyFigure, Tokens, energy_figure
from inferometer.measure.power_series import PowerSeries, by_scope
from inferometer.measure.record import Ints
from inferometer.measure.samples import Samples
from inferometer.measure.throughput import Arrivals, input_tok_s, of_load, output_tok_s
from inferometer.telemetry.machines.terms import OWN
from inferometer.telemetry.machines.tracks import MachineTrack, MachineTracks
from inferometer.telemetry.power.readings import Method, Scope
from inferometer.units import NS_PER_S

SCOPES: tuple[Scope, ...] = ("accelerator", "package", "memory", "machine", "other")
METHODS: tuple[Method, ...] = ("counter", "power", "mean")
ACCELERATOR_LEVELS = frozenset(
    f"accelerator_{name}"
    for name in ("memory_used", "memory_free", "busy", "hertz", "memory_hertz", "temperature")
)
Flags = npt.NDArray[np.bool_]
LEAST_BASELINE_S = 1.0
"""A shorter one is two readings of a meter that averages as long."""


def machine_energy(one: MachineTracks, samples: Samples, begin: int, end: int) -> tuple[EnergyFigure, ...]:
    """A figure for each meter and scope. `begin`, `end`: of the measured phase, in ns."""
    series = by_scope(_series(one))
    if not series:
        return ()
    output, prompt = (_tokens(of_load(samples, arrivals)) for arrivals in (output_tok_s, input_tok_s))
    total = None if output is None or prompt is None else _together(output, prompt)
    return tuple(
        energy_figure(
            several,
            begin,
            end,
            baseline=None if one.idle_until is None else _baseline(several, one.idle_until),
            output=output,
            total=total,
            memory_s=float(samples.e2e.mean()) / 1e3 if len(samples) else None,
        )
        for several in series.values()
    )


def _series(one: MachineTracks) -> list[PowerSeries]:
    """Power and counter of each device at the readings that have either."""
    found: dict[tuple[str, str, str], dict[str, MachineTrack]] = {}
    cached = one.exporter != OWN
    fresh = _refreshed(one) if cached else np.empty(0, np.int64)
    for term in ("power", "energy", "energy_range"):
        for track in one.of(term):
            key = tuple(track.labels.get(name, "") for name in ("meter", "scope", "device"))
            sampled = track
            if cached and term == "energy" and _changes(track).sum() > 1:
                sampled = _at(track, _changes(track))
            elif cached and term == "power":
                sampled = _at(track, np.isin(track.times, fresh))
            found.setdefault((key[0], key[1], key[2]), {})[term] = sampled
    return [
        made
        for (meter, scope, device), tracks in found.items()
        if scope in SCOPES and (made := _one_series(meter, scope, device, tracks)) is not None
    ]


def _changes(track: MachineTrack) -> Flags:
    """Where a value is not the one before; the first is not."""
    return np.concatenate(([True], np.diff(track.values) != 0))


def _at(track: MachineTrack, there: Flags) -> MachineTrack:
    return replace(track, times=track.times[there], values=track.values[there])


def _refreshed(one: MachineTracks) -> Ints:
    """When an accelerator's or a meter's reading was not what it was at the scrape before."""
    tracks = [
        track for track in one.tracks if track.term in ("power", "energy") or track.term in ACCELERATOR_LEVELS
    ]
    return np.unique(
        np.concatenate([np.empty(0, np.int64), *(each.times[_changes(each)] for each in tracks)])
    )


def _one_series(
    meter: str, scope: Scope, device: str, tracks: Mapping[str, MachineTrack]
) -> PowerSeries | None:
    kept = [tracks[term] for term in ("power", "energy") if term in tracks]
    if not kept:
        return None
    times = np.unique(np.concatenate([track.times for track in kept]))
    columns = {}
    for term in ("power", "energy"):
        columns[term] = np.full(len(times), np.nan)
        if term in tracks:
            columns[term][np.searchsorted(times, tracks[term].times)] = tracks[term].values
    method = kept[-1].labels.get("method", "")
    ranges = tracks["energy_range"].values if "energy_range" in tracks else np.empty(0)
    return PowerSeries(
        meter,
        scope,
        device,
        next((one for one in METHODS if one == method), "counter" if "energy" in tracks else "power"),
        times,
        columns["power"],
        columns["energy"],
        float(ranges[-1]) if len(ranges) else None,
    )


def _baseline(series: tuple[PowerSeries, ...], end: int) -> tuple[int, int] | None:
    """From the first reading of all devices to the instant `end`; None if that is too short."""
    begin = max(int(one.t_ns[0]) for one in series)
    return (begin, end) if end - begin >= LEAST_BASELINE_S * NS_PER_S else None


def _tokens(arrivals: Arrivals) -> Tokens | None:
    """None where an answer's count is not known: energy by part of the tokens is none."""
    at, counts = arrivals
    if not len(at) or np.isnan(counts).any():
        return None
    return Tokens(at, np.rint(counts).astype(np.int64))


def _together(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(np.concatenate([one.t_ns, other.t_ns]), np.concatenate([one.counts, other.counts]))
