"""What exporters of machines said over a run, in common terms: numbers over time, by term and labels.

Counters are kept as they stood, since what they added depends on the span. Times are ns on the monotonic clock of the run.
Several series of one term and the same labels become one:

| they are                                         | and come to                                                          |
| ------------------------------------------------ | -------------------------------------------------------------------- |
| parts of a sum: processor time, by processor     | the sum, at the scrapes that have all parts                          |
| the same thing, listed for each pod, or for each | the largest, at the scrapes that have any; of bits of reasons        |
| instance of a GPU that is divided (MIG)          | those that any of them has                                           |

GPUs of one number that differ in host name or UUID are several: `host:0`, `0#2` (_gpus).

What an exporter writes is not trusted: a series without the labels that its term needs, and a value that no such reading can
have, are left out and named in `left_out`. What measures machines meets neither.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from inferometer.telemetry.machines.terms import (
    BY_FAMILY,
    LARGEST,
    Name,
    needed_labels,
    value_range,
)
from inferometer.telemetry.metrics.exposition import HISTOGRAM, Labels
from inferometer.telemetry.metrics.histogram_delta import Floats
from inferometer.telemetry.metrics.series import Endpoint, Ints, Series, Store
from inferometer.telemetry.nvidia import throttle_reasons
from inferometer.units import NS_PER_S

THIS_MACHINE = "host://this-machine"
"""In place of a URL, of the machine that a run was made on."""
SPENT = "cpu_seconds"
NO_REASON = "none"
"""In place of a reason, of an accelerator that says which hold and never gave one."""


@dataclass(frozen=True, slots=True)
class MachineTrack:
    """One number over time: `times` (n,) ns, ascending; `values` (n,) in the unit of the term."""

    term: str
    labels: Mapping[str, str]
    times: Ints
    values: Floats


@dataclass(frozen=True, slots=True)
class MachineTracks:
    """One machine, as one endpoint has it. `exporter`: whose names most of its terms have; `times` of its good scrapes;
    `latencies` of these in ns, -1 where not known; `dropped`: scrapes that gave nothing; `offset_ns`: from
    the run's clock to this machine's wall clock; `idle_until`: its last reading before anything was sent; `left_out`: families
    of which something was unusable, and why."""

    url: str
    exporter: str
    times: Ints
    latencies: Ints
    dropped: int
    offset_ns: int
    tracks: tuple[MachineTrack, ...]
    idle_until: int | None = None
    left_out: tuple[str, ...] = ()
    _by_label: Mapping[tuple[str, ...], Sequence[MachineTrack]] = field(init=False, repr=False, compare=False)
    """The tracks by term, and by term, label and its value: thousands of devices have thousands of tracks a term."""

    def __post_init__(self) -> None:
        """Make the index."""
        found: dict[tuple[str, ...], list[MachineTrack]] = defaultdict(list)
        for one in self.tracks:
            for key in ((one.term,), *((one.term, name, value) for name, value in one.labels.items())):
                found[key].append(one)
        object.__setattr__(self, "_by_label", dict(found))

    def of(self, term: str, **labels: str) -> list[MachineTrack]:
        """The tracks of a term that have these labels."""
        keys: list[tuple[str, ...]] = [(term, *label) for label in labels.items()] or [(term,)]
        fewest = min((self._by_label.get(key, ()) for key in keys), key=len)
        return [one for one in fewest if all(one.labels.get(name) == value for name, value in labels.items())]


def machine_tracks(store: Store, offset_ns: int) -> list[MachineTracks]:
    """Every endpoint that shows a name of terms.py. `offset_ns`: by what stamps are ahead of the run's clock."""
    found = (_tracks(url, endpoint, offset_ns) for url, endpoint in store.endpoints.items())
    return [one for one in found if one is not None]


def _tracks(url: str, endpoint: Endpoint, offset_ns: int) -> MachineTracks | None:
    known = {family: BY_FAMILY[family] for family in endpoint.families if family in BY_FAMILY}
    if not known or not len(endpoint.times):
        return None
    groups: dict[tuple[str, Labels], dict[tuple[str, ...], list[Series]]] = defaultdict(dict)
    series = {family: list(endpoint.series(family)) for family in known}
    gpus = _gpus([one for family, (_, name) in known.items() if "gpu" in name.keep for one in series[family]])
    left_out: set[str] = set()
    for family, (_, name) in known.items():
        for one in series[family]:
            labels = dict(one.labels)
            if one.family.kind == HISTOGRAM or not all(
                labels.get(key) in of for key, of in name.where.items()
            ):
                continue
            labels["gpu"] = gpus.get(_identity(labels), labels.get("gpu", ""))
            kept = _labels(name, labels)
            if lacking := [label for label in needed_labels(name.term) if not dict(kept).get(label)]:
                left_out.add(f"{family}: no label for its {lacking[0]}")
                continue
            scaled, unusable = _scaled(one, name)
            if unusable:
                left_out.add(f"{family}: values that are no reading")
            part = tuple(labels.get(label, "") for label in name.parts)
            groups[name.term, kept].setdefault(part, []).append(scaled)
    tracks = []
    for (term, kept), parts in groups.items():
        times, values = _sum([_once(term, several) for several in parts.values()])
        if len(times):
            tracks.append(MachineTrack(term, dict(kept), times - offset_ns, values))
        elif len(parts) > 1:
            left_out.add(f"{term}: no reading has all of its {len(parts)} parts")
    tracks += _processors(
        tracks, {part for (term, _), parts in groups.items() if term == SPENT for part in parts}
    )
    tracks += [one for track in tracks if track.term == "accelerator_reasons" for one in _by_reason(track)]
    tracks = _all_reasons_at_all_times(_when_read(tracks))
    return MachineTracks(
        url=url,
        exporter=Counter(source for source, _ in known.values()).most_common(1)[0][0],
        times=np.asarray(endpoint.times, np.int64) - offset_ns,
        latencies=np.asarray(endpoint.latencies, np.int64),
        dropped=sum(drops.count for drops in endpoint.drops.values()),
        offset_ns=offset_ns,
        tracks=tuple(tracks),
        idle_until=_idle_until(endpoint, offset_ns),
        left_out=tuple(sorted(left_out)),
    )


def _when_read(tracks: list[MachineTrack]) -> list[MachineTrack]:
    """What was older than the text that it stands in, at the time at which it was read."""
    ages = {one.labels["meter"]: one for one in tracks if one.term == "meter_age"}
    return [
        _aged(one, ages[one.labels["meter"]])
        if one.term in ("power", "energy") and one.labels["meter"] in ages
        else one
        for one in tracks
        if one.term != "meter_age"
    ]


def _aged(track: MachineTrack, age: MachineTrack) -> MachineTrack:
    old, of = np.isin(track.times, age.times), np.isin(age.times, track.times)
    times = track.times.copy()
    times[old] -= np.rint(age.values[of] * NS_PER_S).astype(np.int64)
    order = np.argsort(times, kind="stable")
    return replace(track, times=times[order], values=track.values[order])


def _processors(tracks: Sequence[MachineTrack], parts: Collection[tuple[str, ...]]) -> list[MachineTrack]:
    """How many processors there are, by those that an exporter lists, where it does not say so itself."""
    if any(one.term == "cores" for one in tracks) or not all(part and all(part) for part in parts):
        return []
    spent = [one for one in tracks if one.term == SPENT]
    return [
        MachineTrack("cores", {}, one.times, np.full(len(one.times), float(len(parts)))) for one in spent[:1]
    ]


def _idle_until(endpoint: Endpoint, offset_ns: int) -> int | None:
    """The last reading that the scraper made before it was told that a phase begins."""
    before = [at for at, phase in zip(endpoint.times, endpoint.phases, strict=True) if phase == "baseline"]
    return before[-1] - offset_ns if before else None


def _labels(name: Name, labels: Mapping[str, str]) -> Labels:
    kept = {ours: labels[theirs] for theirs, ours in name.keep.items() if theirs in labels}
    return tuple(sorted({**name.labels, **kept}.items()))


def _scaled(one: Series, name: Name) -> tuple[Series, bool]:
    """In our unit, without what is no reading; whether there was such a value."""
    values = one.values * name.scale
    least, largest = value_range(name.term)
    there = (np.abs(one.values) < LARGEST) & (values >= least) & (values <= largest)
    return replace(one, times=one.times[there], values=values[there]), not there.all()


def _identity(labels: Mapping[str, str]) -> tuple[str, str, str]:
    return labels.get("gpu", ""), labels.get("Hostname", ""), labels.get("UUID", "")


def _gpus(series: Sequence[Series]) -> dict[tuple[str, str, str], str]:
    """What each GPU is called: its number, with its host if there are several, and which one it is of those that had that
    number there, as after an exchange. One that does not say whose it is, is the first of its number."""
    found = {_identity(dict(one.labels)): None for one in series}
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for gpu, host, uuid in found:
        if uuid:
            alike[gpu, host].append(uuid)
    hosts = {host for _, host, _ in found if host}
    names: dict[tuple[str, str, str], str] = {}
    for gpu, host, uuid in found:
        number = alike[gpu, host].index(uuid) if uuid else 0
        whose = f"{host}:{gpu}" if host and len(hosts) > 1 else gpu
        names[gpu, host, uuid] = f"{whose}#{number + 1}" if number and gpu else whose
    return names


def _once(term: str, several: list[Series]) -> tuple[Ints, Floats]:
    """One thing by several series: the largest of those that are there, or the bits that any has."""
    times: Ints = reduce(np.union1d, (one.times for one in several))
    if len(several) == 1:
        return times, several[0].values
    together = (
        np.zeros(len(times), np.int64) if term == "accelerator_reasons" else np.full(len(times), -np.inf)
    )
    for one in several:
        at = np.searchsorted(times, one.times)
        if term == "accelerator_reasons":
            together[at] |= one.values.astype(np.int64)
        else:
            together[at] = np.maximum(together[at], one.values)
    return times, together.astype(np.float64)


def _sum(parts: list[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Over the parts, at the scrapes that have all of them: a part of a sum is none."""
    common: Ints = reduce(np.intersect1d, (times for times, _ in parts))
    rows = [values[np.searchsorted(times, common)] for times, values in parts]
    total: Floats = np.sum(rows, axis=0)
    return common, total


def _by_reason(track: MachineTrack) -> list[MachineTrack]:
    """A track for each reason of NVML's bits that was there once; of a device that never gave one, NO_REASON at 0."""
    bits = [int(value) for value in track.values]
    named = {each: throttle_reasons(each) for each in set(bits)}
    found = []
    for reason in sorted({reason for reasons in named.values() for reason in reasons}) or [NO_REASON]:
        there: Floats = np.array([reason in named[each] for each in bits], np.float64)
        labels = {**track.labels, "reason": reason}
        found.append(MachineTrack("accelerator_throttled", labels, track.times, there))
    return found


def _all_reasons_at_all_times(tracks: list[MachineTrack]) -> list[MachineTrack]:
    """A reading that names some reasons of a device, but not this one, says that this one does not hold: a reason that has a
    line only while it holds, as those that a newer driver adds, has a share of all readings, and not of its own."""
    said: dict[str, Ints] = {}
    for one in tracks:
        if one.term == "accelerator_throttled":
            device = one.labels["device"]
            said[device] = np.union1d(said.get(device, one.times), one.times)
    return [
        _at_all(one, said[one.labels["device"]]) if one.term == "accelerator_throttled" else one
        for one in tracks
    ]


def _at_all(track: MachineTrack, times: Ints) -> MachineTrack:
    values = np.zeros(len(times))
    values[np.searchsorted(times, track.times)] = track.values
    return replace(track, times=times, values=values)
