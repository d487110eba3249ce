"""What the machines did while the load ran, for Markdown and HTML: rows of figures, and pictures on the run's time."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.documents.results import Axis, Series
from inferometer.documents.summary import Summary
from inferometer.measure.energy import UNIT_SPREAD
from inferometer.measure.energy_figure import EnergyFigure
from inferometer.measure.machine_figures import Accelerator, FailedMeter, MachineSeen
from inferometer.measure.series import RunSeries
from inferometer.report.charts import Chart
from inferometer.report.figures import clean, figure, share
from inferometer.telemetry.machines.terms import ACCELERATORS

HEAD = ("Reading", "Value")
LOW = 250
"""Height of a chart over time, as of the others."""
_GIB, _MIB = float(1 << 30), float(1 << 20)
_SECONDS = Axis("Time", "s")
ROLES = {"client": "This program", "engine": "The server's processes"}


def title(one: MachineSeen) -> str:
    """Whose figures they are."""
    return "This machine" if one.own else f"{clean(one.url)} ({one.exporter})"


def figures(one: MachineSeen) -> list[tuple[str, str]]:
    """Rows under HEAD; what was not read has none."""
    return [
        *_readings(one),
        *_cores(one),
        *_memory(one),
        *_heat(one),
        *(row for device in one.accelerators for row in _accelerator(device)),
        *_traffic(one),
        *_processes(one),
        *(row for energy in one.energy for row in _energy(energy)),
        *_several_plugs(one),
        *((f"{_whose(failed)}: no reading", _why(failed)) for failed in one.failed_meters),
        *(("Left out", clean(words)) for words in one.left_out),
    ]


def _energy(one: EnergyFigure) -> Iterator[tuple[str, str]]:
    """Energy with its method and validity, the power while idle, and what a token took."""
    devices = f"{len(one.devices)} devices" if len(one.devices) > 1 else clean(one.devices[0])
    kind = _kind(one)
    scope = _BEHIND.get(kind, _SCOPES[one.scope]) if one.scope == "machine" else _SCOPES[one.scope]
    what = f"{clean(one.meter)}, {scope}" + ("" if kind == "command" else f" ({devices})")
    if one.joules is None or one.method is None:
        yield f"Energy by {what}", f"none: {_REASONS.get(one.reason or '', one.reason or 'unknown')}"
        return
    gap = "" if one.largest_gap_s is None else f", at most {figure(one.largest_gap_s, 3)} s between readings"
    limit = f"the limit is {figure(one.largest_gap_limit_s, 3)} s"
    doubt = "" if one.valid else f"; NOT VALID, {_REASONS['disagree'] if one.reason == 'disagree' else limit}"
    yield (
        f"Energy by {what}",
        f"{figure(one.joules)} J in {figure(one.duration_s)} s, {_METHODS[one.method]}{gap}{doubt}",
    )
    idle = "" if one.idle_w is None else f"; {figure(one.idle_w, 3)} W before the load"
    part = "" if one.idle_share is None else f", {share(one.idle_share)} of it"
    yield "Mean power by it", f"{figure(one.mean_w)} W{idle}{part}"
    if one.other_joules is not None:
        yield "The same by its power", f"{figure(one.other_joules)} J"
    for name, unit, ratio in (
        ("Energy per output token", "J", one.joules_per_output_token),
        ("Energy per token, prompts included", "J", one.joules_per_total_token),
        ("Output tokens per second and watt", "tokens/s/W", one.output_tokens_per_s_per_w),
    ):
        if ratio is not None:
            ends = ratio.interval
            known = (
                f" (95 % interval {figure(ends[0])} to {figure(ends[1])})"
                if ends is not None
                else f" (no interval: {_WITHHELD.get(ratio.withheld or '', ratio.withheld or 'unknown')})"
            )
            yield name, f"{figure(ratio.value)} {unit}{known}"


def _kind(one: EnergyFigure) -> str:
    """Of its meter, which is numbered from the second of a kind on."""
    return one.meter.partition("#")[0]


def _several_plugs(one: MachineSeen) -> Iterator[tuple[str, str]]:
    """What the energies of several wall meters are of, for none is that of all."""
    plugs = [energy.meter for energy in one.energy if energy.scope == "machine" and _kind(energy) in _BEHIND]
    if len(plugs) > 1:
        yield (
            f"Of {clean(', '.join(sorted(plugs)))}",
            "each is of what is behind that meter alone, and so is its energy per token; they are not added up",
        )


_BEHIND = {"http": "everything behind its plug", "command": "everything behind what the command reads"}
"""The scope `machine` by kind of meter."""
_SCOPES = {
    "accelerator": "accelerators",
    "package": "processor packages",
    "memory": "memory of processors",
    "machine": "the platform",
    "other": "a part of a package",
}
_METHODS = {
    "counter": "by its counter",
    "power": "by power at instants, trapezoids",
    "mean": "by mean power between readings",
}
_REASONS = {
    "no_readings": "it gave no readings of that kind",
    "too_few": "fewer than two readings",
    "not_covered": "no reading before the load, or none behind it",
    "counter_reset": "its counter went backwards",
    "counter_stuck": "its counter never moved",
    "counter_jumped": "its counter jumped ahead",
    "implausible": "a power is negative or more than it can draw (1 MW, one device 10 kW), or its counter grew as fast",
    "disagree": "its counter and its power are far apart",
    "no_power": "all its readings are 0 W",
    "unit_changes": f"its largest reading is {UNIT_SPREAD:g} or more times its smallest, as if its unit changed",
}
_WITHHELD = {
    "memory_unknown": "how long the load remembers is not known",
    "few_blocks": "the run is too short",
    "few_tokens": "too few tokens",
    "wide": "it would reach 0",
}


def _whose(failed: FailedMeter) -> str:
    return "State of accelerators" if failed.meter == ACCELERATORS else f"Meter {clean(failed.meter)}"


def _why(failed: FailedMeter) -> str:
    return f"{clean(failed.words)} ({clean(failed.code)}, {figure(failed.readings)} times)"


def _readings(one: MachineSeen) -> Iterator[tuple[str, str]]:
    lost = f", {figure(one.dropped)} lost" if one.dropped else ""
    gap = "" if one.longest_gap_s is None else f", at most {figure(one.longest_gap_s, 3)} s without one"
    yield "Readings", f"{figure(one.readings)}{lost}{gap}"
    if one.clock is not None:
        yield (
            "Its clock, less this machine's",
            f"{figure(one.clock.offset_ms, 3)} ms, known to {figure(one.clock.bound_ms, 3)} ms",
        )


def _cores(one: MachineSeen) -> Iterator[tuple[str, str]]:
    cores = one.cores
    if cores is None or cores.busy is None:
        return
    of = "" if cores.of is None else f" of {cores.of}"
    most = "" if cores.busiest is None else f" (at most {figure(cores.busiest, 3)})"
    yield "Processors in use", f"{figure(cores.busy, 3)}{of}{most}"
    if cores.others is not None:
        yield "Of these, by other programs", figure(cores.others, 3)
    if cores.stolen:
        yield "Of these, taken by other virtual machines", figure(cores.stolen, 3)
    for stall in one.stalls:
        if stall.some is not None:
            full = "" if stall.full is None else f"; all tasks waited in {share(stall.full)}"
            yield (
                f"Time in which a task waited for {_RESOURCES.get(stall.resource, stall.resource)}",
                f"{share(stall.some)}{full}",
            )


_RESOURCES = {"cpu": "a processor", "memory": "memory", "io": "a disk"}


def _memory(one: MachineSeen) -> Iterator[tuple[str, str]]:
    memory = one.memory
    if memory is None:
        return
    if memory.least_available is not None:
        of = "" if memory.total is None else f" of {figure(memory.total / _GIB, 3)} GiB"
        yield "Memory available, at least", f"{figure(memory.least_available / _GIB, 3)} GiB{of}"
    if memory.swap_growth or memory.swapped_out:
        grown = "" if memory.swap_growth is None else f"{figure(memory.swap_growth / _MIB, 3)} MiB"
        pages = "" if memory.swapped_out is None else f"{figure(memory.swapped_out)} pages written"
        yield "Swap, growth", ", ".join(filter(None, (grown, pages)))


def _heat(one: MachineSeen) -> Iterator[tuple[str, str]]:
    heat = one.heat
    if heat is None:
        return
    if heat.hottest is not None:
        yield "Hottest sensor", f"{figure(heat.hottest, 3)} °C"
    if heat.level is not None:
        yield "Thermal level, at worst", heat.level
    if heat.speed_limit is not None:
        yield "Processor speed allowed, at least", share(heat.speed_limit)
    if heat.throttles is not None:
        yield "Slowed down by the hardware, any one processor", f"at most {figure(heat.throttles)} times"
    if heat.mhz_low is not None and heat.mhz_high is not None:
        yield "Processor frequency", f"{figure(heat.mhz_low)} to {figure(heat.mhz_high)} MHz"
    if heat.governors:
        yield "Frequency governor", ", ".join(map(clean, heat.governors))


def _accelerator(one: Accelerator) -> Iterator[tuple[str, str]]:
    name = f"Accelerator {clean(one.device)}" + ("" if one.name is None else f", {clean(one.name)}")
    parts = []
    if one.busy_mean is not None:
        parts.append(f"busy {share(one.busy_mean)} of the time")
    if one.memory_most is not None:
        of = "" if one.memory_total is None else f" of {figure(one.memory_total / _GIB, 3)}"
        parts.append(f"{figure(one.memory_most / _GIB, 3)}{of} GiB in use at most")
    if one.mhz_mean is not None and one.mhz_low is not None:
        parts.append(f"{figure(one.mhz_mean)} MHz (at least {figure(one.mhz_low)})")
    if one.hottest is not None:
        parts.append(f"{figure(one.hottest, 3)} °C at most")
    if parts:
        yield name, ", ".join(parts)
    if one.throttled is not None:
        slow = [
            f"{clean(reason)} in {share(part)} of the readings" for reason, part in one.throttled if part > 0
        ]
        yield f"{name}: throttled", ", ".join(slow) or "in no reading"
    if one.ecc_errors:
        yield f"{name}: uncorrected memory errors", figure(one.ecc_errors)


def _traffic(one: MachineSeen) -> Iterator[tuple[str, str]]:
    for device in one.traffic:
        received, sent = (
            "unknown" if rate is None else f"{figure(rate / 1e6, 3)} MB/s"
            for rate in (device.received_s, device.sent_s)
        )
        yield f"Network device {clean(device.device)}", f"{received} received, {sent} sent"


def _processes(one: MachineSeen) -> Iterator[tuple[str, str]]:
    for role in one.roles:
        parts = []
        if role.cores is not None:
            parts.append(f"{figure(role.cores, 3)} processors")
        if role.most_resident is not None:
            grown = "" if role.growth is None else f" (grown by {figure(role.growth / _MIB, 3)})"
            parts.append(f"{figure(role.most_resident / _MIB)} MiB resident at most{grown}")
        if role.own is not None:
            parts.append(f"{figure(role.own / _MIB)} MiB of its own")
        if parts:
            yield ROLES.get(role.role, clean(role.role)), ", ".join(parts)


def pictures(
    series: RunSeries, within: tuple[float, float], steady: tuple[float, float] | None
) -> list[Chart]:
    """A chart for each picture of each machine."""
    found: dict[tuple[str, str], list[Series]] = {}
    units: dict[tuple[str, str], str] = {}
    for curve in series.machines:
        key = curve.url, curve.picture
        inside = [
            (t, value)
            for t, value in zip(curve.t_s, curve.values, strict=True)
            if within[0] <= t <= within[1]
        ]
        if inside:
            x, y = (tuple(column) for column in zip(*inside, strict=True))
            found.setdefault(key, []).append(Series(clean(curve.label), x, y))
            units[key] = curve.unit
    many = len({url for url, _ in found}) > 1
    return [
        Chart(
            f"{picture}, {clean(url)}" if many else picture, "timeline", _SECONDS, Axis(units[url, picture]),
            tuple(lines), (), LOW, within, steady,
        )
        for (url, picture), lines in found.items()
    ]  # fmt: skip


def seen(summary: Summary) -> tuple[MachineSeen, ...]:
    """The machines that were read at all."""
    return tuple(one for one in summary.machines if figures(one))
