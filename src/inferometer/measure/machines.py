"""What the machines did while the load ran, from readings in common terms (telemetry/machines).

All figures are over the measured phase, from the first request's start to the last one's end:

| figure                | is                                                                                              |
| --------------------- | ----------------------------------------------------------------------------------------------- |
| level                 | over the readings in that time, each alike                                                       |
| counter               | its growth from the last reading before to the first behind, by interpolation at both ends; one  |
|                       | that went back began anew, and counts from 0                                                     |
| cores                 | processor time by time; `others` is what is left of the busy time without the roles that are read |
| stalled               | share of the time in which a task waited for the resource (`some`), or every task did (`full`)   |

A machine whose readings do not enclose that time has no growth of counters: None, never a guess. A machine's own clock is
compared with this one at each reading: it was read between the request for the reading and its answer, so the offset of the
quickest is known to half of what that took.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from inferometer.measure.machine_energy import machine_energy
from inferometer.measure.machine_figures import (
    THERMAL,
    Accelerator,
    ClockOffset,
    Cores,
    FailedMeter,
    Heat,
    MachineSeen,
    Memory,
    Role,
    Stalls,
    Traffic,
)
from inferometer.measure.machine_limits import possible
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples
from inferometer.telemetry.machines.tracks import THIS_MACHINE, MachineTrack, MachineTracks
from inferometer.units import NS_PER_MS, NS_PER_S

IDLE = ("idle", "iowait")


def machines_seen(
    machines: Sequence[MachineTracks], record: Record, samples: Samples
) -> tuple[MachineSeen, ...]:
    """All machines over the measured phase of a record; none where nothing was sent. `samples` of that record."""
    if not machines or not record.measured.any():
        return ()
    begin, end = int(record.t_taken[record.measured].min()), int(record.t_end[record.measured].max())
    if end <= begin:
        return ()
    return tuple(_seen_or_left_out(one, samples, begin, end) for one in machines)


def _seen_or_left_out(one: MachineTracks, samples: Samples, begin: int, end: int) -> MachineSeen:
    """What other programs write about a machine never costs a run its result: a machine whose readings cannot be measured,
    which is an error of ours, is there without figures and says so."""
    try:
        return replace(machine_seen(one, begin, end), energy=machine_energy(one, samples, begin, end))
    except Exception as wrong:  # whatever it is: the run's own record stands without this machine
        failed = f"all figures: they could not be computed ({type(wrong).__name__})"
        return MachineSeen(
            one.url, one.exporter, 0, one.dropped, None, None, None, (), None, None, (), (), (), (),
            left_out=(failed, *one.left_out),
        )  # fmt: skip


def machine_seen(one: MachineTracks, begin: int, end: int) -> MachineSeen:
    """What a machine's readings come to between two instants in ns, of which the second is later."""
    inside = one.times[(one.times >= begin) & (one.times <= end)]
    unread = _unread(one.times, begin, end)
    seen = MachineSeen(
        url=one.url,
        exporter=one.exporter,
        readings=len(inside),
        dropped=one.dropped,
        longest_gap_s=longest_gap_s(one.times, begin, end),
        clock=_clock(one),
        cores=_cores(one, begin, end),
        stalls=_stalls(one, begin, end),
        memory=_memory(one, begin, end),
        heat=_heat(one, begin, end),
        traffic=_traffic(one, begin, end),
        roles=tuple(_role(one, role, begin, end) for role in _named(one, "role")),
        accelerators=tuple(_accelerator(one, device, begin, end) for device in _devices(one)),
        failed_meters=_failed_meters(one, begin, end),
        left_out=(*_unread_words(*unread), *one.left_out),
        unread_s=sum(unread),
    )
    return possible(seen)


def longest_gap_s(times: Ints, begin: int, end: int) -> float | None:
    """The longest time without a reading that is at least partly in the span, its edges included; None without readings."""
    if not len(times):
        return None
    touching = (times[1:] > begin) & (times[:-1] < end)
    between = float(np.diff(times)[touching].max()) / NS_PER_S if touching.any() else 0.0
    return max(between, *_unread(times, begin, end))


def _unread(times: Ints, begin: int, end: int) -> tuple[float, float]:
    """How long the span had lasted, in s, at the first reading, and still lasted at the last one; 0 where one encloses it."""
    if not len(times):
        return (end - begin) / NS_PER_S, 0.0
    first, last = (min(max(int(one), begin), end) for one in (times[0], times[-1]))
    return (first - begin) / NS_PER_S, (end - last) / NS_PER_S


def _unread_words(before_s: float, after_s: float) -> Iterator[str]:
    """What that costs."""
    for seconds, where in ((before_s, "first"), (after_s, "last")):
        if seconds > 0:
            yield (
                f"the {where} {seconds:.3g} s of the measured phase: there is no reading of them; what counters added is not "
                "known, and the other figures are of the rest"
            )


def grown(track: MachineTrack, begin: int, end: int) -> float | None:
    """What a counter added between two instants, by linear interpolation at both; None where its readings do not enclose
    them."""
    times = track.times
    if len(times) < 2 or times[0] > begin or times[-1] < end:
        return None
    at_ends = np.interp([begin, end], times, risen(track.values))
    return float(at_ends[1] - at_ends[0])


def risen(values: Floats) -> Floats:
    """A counter as if it had never begun anew: below the one before, a value counts from 0."""
    steps = np.diff(values)
    steps = np.where(steps < 0, values[1:], steps)
    return np.concatenate(([0.0], np.cumsum(steps)))


def _all_grown(tracks: Sequence[MachineTrack], begin: int, end: int) -> float | None:
    """The sum over several counters; None where there are none, or one is not known."""
    each = [grown(one, begin, end) for one in tracks]
    known = [value for value in each if value is not None]
    return math.fsum(known) if known and len(known) == len(each) else None


def _most_grown(tracks: Sequence[MachineTrack], begin: int, end: int) -> float | None:
    """The largest growth of several counters; 0 only if all are known."""
    each = [grown(one, begin, end) for one in tracks]
    most = max((value for value in each if value is not None), default=None)
    return None if most == 0 and None in each else most


def _within(tracks: Sequence[MachineTrack], begin: int, end: int) -> Floats:
    """All samples of some tracks in the span."""
    parts = [one.values[(one.times >= begin) & (one.times <= end)] for one in tracks]
    return np.concatenate(parts) if parts else np.empty(0)


def _least(values: Floats) -> float | None:
    return float(values.min()) if len(values) else None


def _most(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _named(one: MachineTracks, label: str) -> list[str]:
    """The values of a label, in order."""
    return sorted({track.labels[label] for track in one.tracks if label in track.labels})


def _devices(one: MachineTracks) -> list[str]:
    found = {track.labels["device"] for track in one.tracks if track.term.startswith("accelerator")}
    return sorted(found, key=lambda device: (len(device), device))


def _per_s(value: float | None, begin: int, end: int) -> float | None:
    return None if value is None else value * NS_PER_S / (end - begin)


def _clock(one: MachineTracks) -> ClockOffset | None:
    """By the quickest reading. Its stamp, on this machine's wall clock as it was at the run's start, is the answer's first
    byte; None for this machine itself, where the difference would be that of a step."""
    tracks = one.of("clock")
    if one.url == THIS_MACHINE or not tracks:
        return None
    track = tracks[0]
    at = np.searchsorted(one.times, track.times)
    took = one.latencies[at]
    known = took >= 0
    if not known.any():
        return None
    quickest = int(np.flatnonzero(known)[np.argmin(took[known])])
    ours = (float(track.times[quickest]) + one.offset_ns) / NS_PER_S
    half = float(took[quickest]) / 2
    offset_ms = (float(track.values[quickest]) - ours) * 1e3 + half / NS_PER_MS
    return ClockOffset(offset_ms, half / NS_PER_MS)


def _cores(one: MachineTracks, begin: int, end: int) -> Cores | None:
    modes = [track for track in one.of("cpu_seconds") if track.labels.get("mode") not in IDLE]
    if not modes:
        return None
    busy = _per_s(_all_grown(modes, begin, end), begin, end)
    ours = [_per_s(grown(track, begin, end), begin, end) for track in one.of("process_cpu")]
    known = [cores for cores in ours if cores is not None]
    others = None
    if busy is not None and known and len(known) == len(ours):
        others = max(0.0, busy - math.fsum(known))
    count = _most(_within(one.of("cores"), begin, end))
    return Cores(
        of=None if count is None else int(count),
        busy=busy,
        others=others,
        stolen=_per_s(_all_grown(one.of("cpu_seconds", mode="steal"), begin, end), begin, end),
        busiest=_busiest(modes, begin, end),
    )


def _busiest(modes: Sequence[MachineTrack], begin: int, end: int) -> float | None:
    """The most processors in use from one reading to the next."""
    times = modes[0].times
    if any(not np.array_equal(one.times, times) for one in modes) or len(times) < 2:
        return None
    total = np.sum([risen(one.values) for one in modes], axis=0)
    touching = (times[1:] > begin) & (times[:-1] < end)
    return _most((np.diff(total) * NS_PER_S / np.diff(times))[touching])


def _stalls(one: MachineTracks, begin: int, end: int) -> tuple[Stalls, ...]:
    found = []
    for resource in _named(one, "resource"):
        some, full = (
            _per_s(
                _all_grown(one.of("stalled_seconds", resource=resource, kind=kind), begin, end), begin, end
            )
            for kind in ("some", "full")
        )
        found.append(Stalls(resource, some, full))
    return tuple(found)


def _memory(one: MachineTracks, begin: int, end: int) -> Memory | None:
    available, total = one.of("memory_available"), one.of("memory_total")
    swap = _within(one.of("swap_used"), begin, end)
    if not len(swap):
        free, whole = (_within(one.of(term), begin, end) for term in ("swap_free", "swap_total"))
        swap = whole - free if len(free) == len(whole) else swap
    pages = _all_grown(one.of("swapped_out"), begin, end)
    if not available and not len(swap) and pages is None:
        return None
    return Memory(
        least_available=_least(_within(available, begin, end)),
        total=_most(_within(total, begin, end)),
        swap_growth=float(swap[-1] - swap[0]) if len(swap) else None,
        swapped_out=pages,
    )


def _heat(one: MachineTracks, begin: int, end: int) -> Heat | None:
    level = _most(_within(one.of("thermal_level"), begin, end))
    hertz = _within(one.of("cpu_hertz"), begin, end)
    found = Heat(
        hottest=_most(_within(one.of("temperature"), begin, end)),
        level=None if level is None else THERMAL[min(int(level), len(THERMAL) - 1)],
        speed_limit=_least(_within(one.of("speed_limit"), begin, end)),
        throttles=_most_grown(one.of("cpu_throttles"), begin, end),
        mhz_low=None if not len(hertz) else float(hertz.min()) / 1e6,
        mhz_high=None if not len(hertz) else float(hertz.max()) / 1e6,
        governors=_governors(one, begin, end),
    )
    return None if found == Heat(None, None, None, None, None, None, ()) else found


def _governors(one: MachineTracks, begin: int, end: int) -> tuple[str, ...]:
    """Those that were in force. An exporter lists all that there are, with 1 for the one in force and 0 for the others."""
    found = {
        track.labels["governor"] for track in one.of("governor") if (_within([track], begin, end) > 0).any()
    }
    return tuple(sorted(found))


def _traffic(one: MachineTracks, begin: int, end: int) -> tuple[Traffic, ...]:
    """Of the devices that moved anything."""
    found = []
    devices = {track.labels["device"] for track in one.tracks if track.term in ("received", "sent")}
    for device in sorted(devices):
        received, sent = (
            _per_s(_all_grown(one.of(term, device=device), begin, end), begin, end)
            for term in ("received", "sent")
        )
        if received or sent:
            found.append(Traffic(device, received, sent))
    return tuple(found)


def _role(one: MachineTracks, role: str, begin: int, end: int) -> Role:
    resident = _within(one.of("process_rss", role=role), begin, end)
    own = one.of("process_memory", role=role)
    known = own[0].values[own[0].times <= end] if own else np.empty(0)
    return Role(
        role=role,
        cores=_per_s(_all_grown(one.of("process_cpu", role=role), begin, end), begin, end),
        most_resident=_most(resident),
        own=float(known[-1]) if len(known) else None,
        growth=float(resident[-1] - resident[0]) if len(resident) else None,
    )


def _failed_meters(one: MachineTracks, begin: int, end: int) -> tuple[FailedMeter, ...]:
    """Each meter by its latest reason, with the readings of all its reasons."""
    latest: dict[str, MachineTrack] = {}
    counts: dict[str, int] = {}
    for track in one.of("meter_failed"):
        meter, inside = track.labels["meter"], len(_within([track], begin, end))
        counts[meter] = counts.get(meter, 0) + inside
        if inside and (meter not in latest or track.times[-1] > latest[meter].times[-1]):
            latest[meter] = track
    return tuple(
        FailedMeter(meter, track.labels["code"], track.labels["words"], counts[meter])
        for meter, track in sorted(latest.items())
    )


def _accelerator(one: MachineTracks, device: str, begin: int, end: int) -> Accelerator:
    def within(term: str) -> Floats:
        return _within(one.of(term, device=device), begin, end)

    described = one.of("accelerator", device=device)
    labels = described[0].labels if described else {}
    used, free, total = (within(f"accelerator_memory_{term}") for term in ("used", "free", "total"))
    hertz = within("accelerator_hertz")
    whole = _most(total) if len(total) else _most(used + free) if len(free) == len(used) else None
    reasons = one.of("accelerator_throttled", device=device)
    shares = {track.labels["reason"]: _mean(_within([track], begin, end)) for track in reasons}
    known = tuple((reason, part) for reason, part in sorted(shares.items()) if part is not None)
    return Accelerator(
        device=device,
        name=labels.get("name"),
        vendor=labels.get("vendor"),
        memory_most=_most(used),
        memory_total=whole,
        busy_mean=_mean(within("accelerator_busy")),
        mhz_low=None if not len(hertz) else float(hertz.min()) / 1e6,
        mhz_mean=None if not len(hertz) else float(hertz.mean()) / 1e6,
        hottest=_most(within("accelerator_temperature")),
        throttled=known or None,
        ecc_errors=_all_grown(one.of("accelerator_ecc", device=device), begin, end),
    )
