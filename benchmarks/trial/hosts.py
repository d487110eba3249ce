"""Load hosts: late ones, dead ones, clocks that are not known, shares that are dropped or sent twice, and servers that lie
to one of them. The record is that of one machine, dealt out to the hosts as a run deals it to their workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.trial.client import late_sends, sent_later
from benchmarks.trial.defects import CLOSED, OPEN, Defect, Plant, in_record
from benchmarks.trial.delivery import through, whole
from benchmarks.trial.lies import cut, times
from benchmarks.trial.playing import MS, Ints
from benchmarks.trial.records import Recorded
from inferometer.measure.load_hosts import HostClock, LoadHost
from inferometer.measure.record import Death
from inferometer.telemetry.host import environment

FAMILY = "load hosts"
HERE = environment()
CLOCK = HostClock(
    offset_ns=-(10**15), drift_ppm=0.0, bound_ns=20_000, round_trip_ns=40_000, probes=60, stepped=False
)
"""Of a host on a quiet network."""
WHICH = 1
"""The host that is at fault."""


def dealt(hosts: int, **clock: Any) -> Plant:
    """The load sent by so many hosts with a worker each, in turns; what is said of the clock of one of them, if anything."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        known = tuple(
            LoadHost(f"host-{at + 1}", at, 1, HERE, _clock(replace(CLOCK, offset_ns=at * 10**12), at, clock))
            for at in range(hosts)
        )
        sent = recorded.but(worker=np.arange(len(recorded.measured)) % hosts)
        return replace(sent, more={**sent.more, "hosts": known})

    return plant


def _clock(usual: HostClock, at: int, changed: Mapping[str, Any]) -> HostClock | None:
    if at != WHICH or not changed:
        return usual
    return None if changed.get("probes") == 0 else replace(usual, **changed)


def agreeing(hosts: int, ppm: float) -> Plant:
    """Nothing is wrong: each host began where its clock's bound allows, and one has a clock of another rate, which is known."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        sent = dealt(hosts, drift_ppm=ppm)(recorded, random)
        worker = np.asarray(sent.columns["worker"])
        by = random.integers(-CLOCK.bound_ns, CLOCK.bound_ns, hosts)[worker]
        begun = np.array(sent.columns["t_intended"]) - int(sent.columns["t_intended"][0])
        rate = np.where(worker == WHICH, np.rint(_due(sent, begun) * ppm * 1e-6), 0)
        return shifted((by + rate).astype(np.int64), sent)

    return plant


def _due(recorded: Recorded, begun: Ints) -> Ints:
    """From the start of the measurement, by the plan; in closed loop from the first request."""
    due = recorded.columns["due_ns"]
    return begun if due[-1] is None else np.array(due, np.int64)


def by_hosts(hosts: int, then: Plant) -> Plant:
    """Dealt out to so many hosts, of which the record is then bent."""
    return lambda recorded, random: then(dealt(hosts)(recorded, random), random)


def of_one(recorded: Recorded) -> Any:
    """Which rows are of the host at fault."""
    return np.asarray(recorded.columns["worker"]) == WHICH


def to_one(plant: Plant) -> Plant:
    """What happens to the requests of one host alone."""

    def planted(recorded: Recorded, random: np.random.Generator) -> Recorded:
        bent, hit = plant(recorded, random), of_one(recorded)
        columns: dict[str, Any] = {}
        for name, values in bent.columns.items():
            before = recorded.columns.get(name)
            if before is None:
                columns[name] = values
            elif isinstance(values, np.ndarray):
                columns[name] = np.where(hit, values, before)
            else:
                columns[name] = [
                    new if one else old for one, new, old in zip(hit, values, before, strict=True)
                ]
        return recorded.but(**columns)

    return planted


def shifted(by: Ints, recorded: Recorded) -> Recorded:
    """Rows on a clock that is wrong by so much: every instant of a row is."""
    return sent_later(recorded, by).but(t_intended=recorded.columns["t_intended"] + by)


def clock_ahead(ms: float) -> Plant:
    """The clock of one host is ahead by more than its bound says."""
    return lambda recorded, random: shifted(np.where(of_one(recorded), round(ms * MS), 0), recorded)


def clock_fast(ppm: float) -> Plant:
    """The clock of one host runs fast, and nobody says so."""

    def plant(recorded: Recorded, random: np.random.Generator) -> Recorded:
        due = _due(recorded, np.array(recorded.columns["t_intended"]))
        return shifted(np.where(of_one(recorded), np.rint(due * ppm * 1e-6), 0).astype(np.int64), recorded)

    return plant


def dropped(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """The requests of one host are in no journal, and nobody says why."""
    return recorded.rows(~(of_one(recorded) & recorded.measured))


def repeated(recorded: Recorded, whose: int) -> Recorded:
    """The measured requests of a host once more, by the host at fault."""
    again = np.flatnonzero((np.asarray(recorded.columns["worker"]) == whose) & recorded.measured)
    rows = np.concatenate((np.arange(len(recorded.measured)), again))
    numbers = np.arange(len(rows)) >= len(recorded.measured)
    found = {
        name: values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]
        for name, values in recorded.columns.items()
    }
    done = replace(recorded, columns=found)
    return done.but(worker=np.where(numbers, WHICH, done.columns["worker"]))


def doubled(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """One host sends its share twice."""
    return repeated(recorded, WHICH)


def sends_anothers(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """One host sends the share of another in place of its own."""
    return repeated(dropped(recorded, random), 0)


def died(recorded: Recorded, random: np.random.Generator) -> Recorded:
    """One host is gone from the middle of the load on."""
    half = int(np.median(recorded.columns["t_intended"]))
    mine = of_one(recorded)
    kept = recorded.rows(~(mine & (recorded.columns["t_intended"] >= half)))
    hosts = len(recorded.more["hosts"])
    death = Death(WHICH, 1, None, int(of_one(kept).sum()), 1 / hosts, int((mine & recorded.measured).sum()))
    known = tuple(
        replace(host, lost="its connection broke") if host.first == WHICH else host
        for host in recorded.more["hosts"]
    )
    return replace(kept, more={"hosts": known, "deaths": (death,)})


def _sending() -> Iterator[tuple[str, int, Plant, Sequence[str]]]:
    late = ("host_lateness", "lateness")
    yield "one of four hosts 5 ms late", 4, to_one(late_sends(1.0, 5.0)), late
    yield "one of eight hosts 20 ms late with 5 % of its sends", 8, to_one(late_sends(0.05, 20.0)), late
    yield "one of four hosts dies half-way", 4, died, ("workers_alive",)
    yield "the share of one of four hosts is lost, without a word", 4, dropped, ("load_exact",)
    yield "one of four hosts sends its share twice", 4, doubled, ("load_exact",)
    yield "one of four hosts sends another's share", 4, sends_anothers, ("load_exact",)
    yield "the clock of one host 5 ms ahead of what is said", 2, clock_ahead(5.0), ("load_exact",)
    yield "the clock of one host 0.1 ms ahead of what is said", 4, clock_ahead(0.1), ("load_exact",)
    yield "the clock of one host 50 ppm faster than is said", 2, clock_fast(50.0), ("load_exact",)
    yield "answers held for one of two hosts", 2, to_one(through(whole)), ("streamed",)
    yield "answers held for one of eight hosts", 8, to_one(through(whole)), ("streamed",)
    yield "usage twice what was made, to one of four hosts", 4, to_one(times(2.0)), (
        "output_length", "token_counts",
    )  # fmt: skip
    yield "prompts cut to 60 tokens for one of four hosts", 4, to_one(
        cut(lambda n, _: np.minimum(n, 60))
    ), ("prompt_length",)  # fmt: skip


CLOCKS: dict[str, dict[str, Any]] = {
    "the clock of one host known to 5 ms": {"bound_ns": 5 * MS},
    "the clock of one host was set": {"stepped": True},
    "the clock of one host never compared": {"probes": 0},
    "the clock of one host not compared for 12 s": {"uncompared_s": 12.0},
}


def defects() -> Iterator[Defect]:
    """All of them."""
    for name, hosts, plant, expects in _sending():
        yield in_record(name, FAMILY, by_hosts(hosts, plant), expects, quick="another" in name)
    for name, clock in CLOCKS.items():
        yield in_record(name, FAMILY, dealt(4, **clock), ("host_clocks",), quick="set" in name)
    yield in_record(
        "answers held for one of four hosts, closed loop",
        FAMILY,
        by_hosts(4, to_one(through(whole))),
        ("streamed",),
        CLOSED,
    )
    yield in_record(
        "one of four hosts dies half-way, closed loop", FAMILY, by_hosts(4, died), ("workers_alive",), CLOSED
    )
    for name, plant, expects in (
        ("the share of one of four hosts is lost, without a word", dropped, "concurrency_held"),
        ("one of four hosts sends its share twice", doubled, "load_exact"),
        ("one of four hosts sends another's share", sends_anothers, "load_exact"),
        ("the clock of one host 5 s ahead of what is said", clock_ahead(5_000.0), "concurrency_held"),
    ):
        yield in_record(f"{name}, closed loop", FAMILY, by_hosts(4, plant), (expects,), CLOSED)
    yield in_record("the clock of one host known to 0.15 ms", FAMILY, dealt(4, bound_ns=150_000), (), OPEN)
