"""Throttled and late clients, workers that die, and clocks that step: what the instrument does to its own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.trial.defects import CLOSED, OPEN, Defect, Plant, chosen, in_record
from benchmarks.trial.playing import MS, Ints, Scene
from benchmarks.trial.records import CPU_SHARE, Recorded
from inferometer.measure.record import Death

LATE = ("lateness", "load_exact")
READ = ("receive_lag", "worker_cpu", "error_bound")

TIMES = ("t_taken", "t_send", "t_submit", "t_first_byte", "t_end")


def sent_later(recorded: Recorded, late: Ints) -> Recorded:
    """Each request is sent so much later than it was due, and everything of it happens as much later."""
    columns = recorded.columns
    moved: dict[str, Any] = {name: columns[name] + late for name in TIMES}
    events = [times + int(by) for times, by in zip(columns["event_ns"], late, strict=True)]
    return recorded.but(event_ns=events, **moved)


def late_sends(share: float, ms: float) -> Plant:
    """A share of the sends is so late."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        n = len(recorded.measured)
        return sent_later(recorded, np.where(chosen(random, n, share), round(ms * MS), 0))

    return plant


def held_call(share: float, ms: float, *, loopback: bool) -> Plant:
    """A share of the calls that submit a request stands still for so long before the kernel has the bytes; `t_submit` is read
    before the call. Its length is recorded, but not on the loopback interface."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        late = np.where(chosen(random, len(recorded.measured), share), round(ms * MS), 0)
        events = [times + int(by) for times, by in zip(columns["event_ns"], late, strict=True)]
        moved = {name: columns[name] + late for name in ("t_first_byte", "t_end")}
        calls = np.zeros(len(late)) if loopback else columns["submit_ns"] + late
        return recorded.but(event_ns=events, submit_ns=calls, **moved)

    return plant


def submitted_late(share: float, ms: float) -> Plant:
    """A share of the requests stands still for so long between `t_send` and `t_submit`."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        late = np.where(chosen(random, len(recorded.measured), share), round(ms * MS), 0)
        on_time = {name: columns[name] for name in ("t_taken", "t_send")}
        return sent_later(recorded, late).but(**on_time)

    return plant


def timer(ms: float) -> Plant:
    """A timer that fires every so often."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        each = round(ms * MS)
        due = recorded.columns["t_intended"]
        return sent_later(recorded, (due + each - 1) // each * each - due)

    return plant


Stalls = Callable[[int, int, np.random.Generator], Ints]
"""From a run's start and end to the instants at which the client stands still."""


def read_late(cost_us: float, stall_ms: float = 0.0, each_s: float = 1.0, *, kernel: bool = True) -> Plant:
    """A worker that takes so long for each read, and stands still now and then; it reads what has arrived of one stream
    together. With the kernel's stamps a token has the time of the last packet read with it, else that of the read."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        events: list[Ints] = recorded.columns["event_ns"]
        sizes = np.array([len(times) for times in events])
        arrived = np.concatenate(events)
        owner = np.repeat(np.arange(len(events)), sizes)
        worker = np.asarray(recorded.columns["worker"])
        seen, lag = np.empty_like(arrived), np.zeros(len(arrived), np.int64)
        for one in np.unique(worker):
            mine = np.flatnonzero(worker[owner] == one)
            order = mine[np.argsort(arrived[mine], kind="stable")]
            _read(
                arrived, owner, order, seen, lag, round(cost_us * 1_000), _stalls(arrived, stall_ms, each_s)
            )
        stamps = seen if kernel else seen + lag
        ends = np.cumsum(sizes)
        parts = np.split(stamps, ends[:-1])
        lags = np.maximum.reduceat(lag, ends - sizes) + recorded.columns["lag_ns"]
        found = (
            [_merged(before, after) for before, after in zip(events, parts, strict=True)] if kernel else []
        )
        late = np.array([int(after[-1] - before[-1]) for after, before in zip(parts, events, strict=True)])
        span = int(arrived.max() - arrived.min())
        busy = min(1.0, len(arrived) / len(np.unique(worker)) * cost_us * 1_000 / span + CPU_SHARE)
        done = recorded.but(event_ns=parts, lag_ns=lags, t_end=recorded.columns["t_end"] + late)
        if kernel:
            done = done.but(merged_event=[at for at, _ in found], merged_ns=[waits for _, waits in found])
        done = done.pulsed(
            cpu_ns=lambda beats: beats["cpu_ns"] / CPU_SHARE * busy,
            stall_max_ns=lambda beats: np.full(len(beats["t_ns"]), round(stall_ms * MS)),
        )
        return done if kernel else done.pulsed(reads=lambda beats: np.zeros(len(beats["t_ns"])))

    return plant


def _merged(arrived: Ints, stamps: Ints) -> tuple[list[int], list[int]]:
    """What the worker notes of an answer's reads of several packets: the first event, and how long it waited at least."""
    same = np.diff(stamps) == 0
    begins = np.flatnonzero(same & ~np.concatenate(([False], same[:-1])))
    return begins.tolist(), (stamps[begins] - arrived[begins]).tolist()


def _stalls(arrived: Ints, stall_ms: float, each_s: float) -> list[tuple[int, int]]:
    """When the worker stands still, from and to."""
    if not stall_ms:
        return []
    begins = np.arange(int(arrived.min()), int(arrived.max()), round(each_s * 1e9))
    return [(int(begin), int(begin) + round(stall_ms * MS)) for begin in begins]


def _read(
    arrived: Ints,
    owner: Ints,
    order: Ints,
    seen: Ints,
    lag: Ints,
    cost: int,
    stalls: list[tuple[int, int]],
) -> None:
    """Read one worker's packets: each read takes `cost` and finds all that has arrived of its stream."""
    times, streams = arrived[order].tolist(), owner[order].tolist()
    waiting: dict[int, list[int]] = {}
    free, place, stall = 0, 0, 0
    while place < len(times) or waiting:
        if not waiting:
            free = max(free, times[place])
        while stall < len(stalls) and stalls[stall][1] <= free:
            stall += 1
        if stall < len(stalls) and stalls[stall][0] <= free:
            free = stalls[stall][1]
        while place < len(times) and times[place] <= free:
            waiting.setdefault(streams[place], []).append(place)
            place += 1
        packets = waiting.pop(next(iter(waiting)))
        chosen = order[packets]
        seen[chosen] = times[packets[-1]]
        lag[chosen] = free - times[packets[-1]]
        free += cost


def clock_steps(ms: float) -> Plant:
    """The wall clock steps half-way, and the kernel's stamps with it, until the offset is sampled anew."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        columns = recorded.columns
        at = int(np.median(columns["t_submit"]))
        by = round(ms * MS)
        until = at + 50 * MS
        events = [np.where((t >= at) & (t < until), t + by, t) for t in columns["event_ns"]]
        return recorded.but(event_ns=[np.sort(times) for times in events]).pulsed(
            clock_offset_ns=lambda beats: beats["clock_offset_ns"] + np.where(beats["t_ns"] >= at, by, 0)
        )

    return plant


def slewed(ms_a_second: float) -> Plant:
    """A clock that is slewed without end; the kernel's stamps are converted with an offset as old as the last sample."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        begin = int(recorded.columns["t_intended"][0])
        return recorded.pulsed(
            clock_offset_ns=lambda beats: (
                beats["clock_offset_ns"] + ((beats["t_ns"] - begin) * ms_a_second / 1_000).astype(np.int64)
            )
        )

    return plant


def worker_died(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """One of two workers dies half-way, and takes its requests with it."""
    columns = recorded.columns
    half = int(np.median(columns["t_intended"]))
    lost = (np.asarray(columns["worker"]) == 1) & (columns["t_intended"] >= half)
    kept = recorded.rows(~lost)
    sent = int((np.asarray(columns["worker"]) == 1).sum() - lost.sum())
    death = Death(1, 1, -9, sent, 0.5, int(((np.asarray(columns["worker"]) == 1) & recorded.measured).sum()))
    return replace(kept, more={"deaths": (death,)})


def interrupted(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """A person stops the run at a third, of a server that was cold when it began."""
    kept = recorded.rows(np.arange(len(recorded.measured)) < len(recorded.measured) // 3)
    return replace(kept, more={"interrupted": True})


def merged_reads(share: float) -> Plant:
    """The first token of a share of the answers is found together with the second, by reads that are late by 3 ms."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        hit = chosen(random, len(recorded.measured), share)
        events = [
            np.concatenate((times[:1], times[2:3], times[2:])) if one else times
            for times, one in zip(recorded.columns["event_ns"], hit, strict=True)
        ]
        lag = np.where(hit, 3 * MS, recorded.columns["lag_ns"])
        waits = [
            [int(times[2] - times[1])] if one else []
            for times, one in zip(recorded.columns["event_ns"], hit, strict=True)
        ]
        merged = [[1] if one else [] for one in hit]
        return recorded.but(event_ns=events, lag_ns=lag, merged_event=merged, merged_ns=waits)

    return plant


SHORT = Scene(seed=13, rate=100.0, answers=(1, 1), prompts=(50, 100))
"""Answers of one token: TTFT is all there is."""
LONG = replace(OPEN, seed=14, answers=(200, 200))


def defects() -> Iterator[Defect]:
    """All of them."""
    late, read = "late client", "late client"
    for share, ms in ((1.0, 5.0), (0.05, 20.0), (0.02, 50.0)):
        yield in_record(
            f"{share:.0%} of the sends {ms:g} ms late", late, late_sends(share, ms), LATE, quick=ms == 20
        )
    for ms in (5.0, 15.6):
        yield in_record(f"a timer of {ms:g} ms", late, timer(ms), LATE)
    for cost in (500.0, 2_000.0):
        yield in_record(
            f"reads that take {cost / 1e3:g} ms", read, read_late(cost), READ, quick=cost == 2_000
        )
    yield in_record("too few workers for the tokens", read, read_late(1_600.0), READ, CLOSED)
    for stall, each in ((200.0, 5.0), (50.0, 1.0), (10.0, 0.5)):
        yield in_record(f"stalls of {stall:g} ms each {each:g} s", read, read_late(20.0, stall, each), READ)
    yield in_record("stalls of 30 ms each 0.5 s, one token", read, read_late(20.0, 30.0, 0.5), READ, SHORT)
    yield in_record(
        "stalls of 20 ms each 1 s, no kernel stamps", read, read_late(20.0, 20.0, 1.0, kernel=False), READ
    )
    yield in_record("reads of 1 ms, no kernel stamps", read, read_late(1_000.0, kernel=False), READ)
    for share in (0.3, 0.03):
        yield in_record(
            f"{share:.0%} of the first tokens read with the second", read, merged_reads(share), READ, LONG
        )
    for share, ms in ((1.0, 1.0), (0.05, 20.0)):
        name = f"{share:.0%} of the sends stand still for {ms:g} ms before the hand-over"
        for loopback, where in ((False, ""), (True, ", loopback")):
            yield in_record(name + where, late, held_call(share, ms, loopback=loopback), (*READ, *LATE))
    yield in_record(
        "5% of the sends stand still for 20 ms before `t_submit`", late, submitted_late(0.05, 20.0), LATE
    )
    yield in_record("one of two workers dies", late, worker_died, ("workers_alive",))
    yield in_record("stopped at a third", late, interrupted, ("interrupted",))
    for ms in (100.0, 20.0, -20.0, 0.5):
        yield in_record(
            f"the clock steps by {ms:g} ms", "clocks", clock_steps(ms), ("clock_step",), quick=ms == 100
        )
    yield in_record("the clock is slewed by 0.5 ms a second", "clocks", slewed(0.5), ("clock_step",))
