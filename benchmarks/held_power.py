"""What the evidence of measure/length_wait.py sees: servers that stream, and proxies that hold answers until they are whole.

Each run is an engine under a load in virtual time (benchmarks/trial/playing.py). Everything is drawn from the seed of the run.

| lengths  | prompts and answers                                                                  |
| -------- | ------------------------------------------------------------------------------------ |
| uniform  | 128 to 512 tokens, 16 to 64 tokens                                                   |
| wide     | log-normal, up to 4,000 and 250 tokens                                               |
| tied     | as wide; an answer is about a twelfth of its prompt                                  |
| classes  | chats of short prompts and answers, and documents of long ones, in one workload      |
| waves    | answers become longer and shorter as the run goes on                                 |
| short    | answers of 2 to 16 tokens                                                            |

`python -m benchmarks.held_power [TABLE...]` prints the tables of docs/power.md: `streamed`, `ordered`, `held`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.trial.clean import CAPACITY, SLOTS
from benchmarks.trial.playing import (
    DRAINED_NS,
    MS,
    NS_PER_S,
    START,
    Call,
    Ints,
    Played,
    Scene,
    noted,
    planned_ns,
)
from benchmarks.trial.records import pulses, table
from inferometer.journal.schema import PULSE, RECORD
from inferometer.measure.length_wait import LengthWait, length_wait
from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.server.presets import PRESETS

Random = np.random.Generator
Lengths = Callable[[Random, int], tuple[Ints, Ints]]
"""So many prompts and answers, in tokens."""


def _log_normal(random: Random, n: int, middle: float, sigma: float, most: int) -> Ints:
    return np.clip(middle * np.exp(random.normal(0, sigma, n)), 2, most).astype(np.int64)


def uniform(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    return random.integers(128, 513, n), random.integers(16, 65, n)


def wide(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    return _log_normal(random, n, 245, 1.2, 4_000), _log_normal(random, n, 18, 1.0, 250)


def tied(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    prompts = _log_normal(random, n, 245, 1.0, 4_000)
    return prompts, np.clip(prompts / 12 * np.exp(random.normal(0, 0.5, n)), 2, 250).astype(np.int64)


def classes(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    document = random.random(n) < 0.3
    prompts = np.where(document, random.integers(1_500, 3_500, n), random.integers(20, 200, n))
    return prompts, np.where(document, random.integers(40, 100, n), random.integers(3, 25, n))


def waves(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    factor = 1 + 0.8 * np.sin(np.arange(n) / n * 12)
    answers = np.maximum(2, random.integers(10, 40, n) * factor).astype(np.int64)
    return random.integers(128, 513, n), answers


def short(random: Random, n: int) -> tuple[Ints, Ints]:
    """See above."""
    return random.integers(50, 200, n), random.integers(2, 17, n)


WORKLOADS: Mapping[str, Lengths] = {
    "uniform": uniform,
    "wide": wide,
    "tied": tied,
    "classes": classes,
    "waves": waves,
    "short": short,
}

SHORTER = 2.5
"""These answers are a quarter as long as those of which the engines end CAPACITY requests a second, and the prompts as long, so
about so many times as many are their capacity."""

OPEN = (0.3, 0.6, 0.85, 0.95)
CLOSED = {"1 slot": 0.0, "half of the places": 0.5, "all places": 1.0, "3 times the places": 3.0}


class Ordered(Played):
    """The shortest answer is served first."""

    def send(self, at: int) -> None:
        """The next request reaches the server, by the length that it asks for."""
        number = len(self.calls)
        call = Call(number, at)
        self.calls.append(call)
        length = self.answers[number]
        self.engine.submit(
            call, self.prompts[number], length, max(self.clock.own(at), self.engine.now), priority=length
        )


def answered(scene: Scene, lengths: Lengths, kind: type[Played] = Played) -> Samples:
    """The samples of a run."""
    random = np.random.default_rng(scene.seed)
    played = kind(scene, *lengths(random, scene.total))
    due = None
    if scene.rate is None:
        played.closed(scene.slots, scene.total, START)
    else:
        due = planned_ns(scene)
        warm = np.cumsum(random.exponential(NS_PER_S / scene.rate, scene.warm)).astype(np.int64)
        played.open([*warm.tolist(), *(due + int(warm[-1]) + DRAINED_NS).tolist()])
    columns = noted(scene, played, random, due)
    return Samples(Record.from_tables(table(columns, RECORD), table(pulses(columns), PULSE)), streamed=True)


def scenes(preset: str, policy: str = "fcfs") -> Iterator[tuple[str, Scene]]:
    """The loads of an engine; an output guardrail would hold text."""
    base = Scene(engine=replace(PRESETS[preset], output_check_tokens=0, policy=policy))
    for load in OPEN:
        yield f"open, {load:.0%}", replace(base, rate=round(load * SHORTER * CAPACITY[preset], 4))
    for name, share in CLOSED.items():
        yield name, replace(base, rate=None, slots=max(1, round(share * SLOTS[preset])))


@dataclass(slots=True)
class Count:
    """Runs, and in how many of them answers were found to be held."""

    runs: int = 0
    found: int = 0

    def add(self, seen: LengthWait | None) -> None:
        """One more."""
        self.runs += 1
        self.found += seen is not None


def honest(kind: type[Played], policy: str, seeds: range, workloads: Mapping[str, Lengths]) -> None:
    """Runs of servers that stream, by load."""
    counts: dict[str, Count] = {}
    for seed, lengths, preset in product(seeds, workloads.values(), CAPACITY):
        for name, scene in scenes(preset, policy):
            of_seed = replace(scene, seed=seed + sum(map(ord, f"{preset} {name}")))
            counts.setdefault(name, Count()).add(length_wait(answered(of_seed, lengths, kind)))
    rows(counts)


def rows(counts: Mapping[str, Count]) -> None:
    """A row a kind of run."""
    print("| runs | number | found |\n| --- | --- | --- |")
    for name, count in counts.items():
        print(f"| {name} | {count.runs} | {count.found} |")
    print(
        f"\nall: {sum(one.runs for one in counts.values())}, {sum(one.found for one in counts.values())}",
        flush=True,
    )


def held(samples: Samples, share: float, replay_ms: float, random: Random) -> Samples:
    """The same run behind a proxy that holds a share of the answers and sends them on at this pace; 0: at their own."""
    record = samples.record
    begins, ends = record.event_offsets[:-1], record.event_offsets[1:]
    times = record.event_ns.copy()
    for row in np.flatnonzero(random.random(len(record)) < share):
        text = times[begins[row] + 1 : ends[row]]
        own = text - text[0]
        text[:] = text[-1] + (np.arange(len(text)) * round(replay_ms * MS) if replay_ms else own)
    return Samples(replace(record, event_ns=times), streamed=True)


HELD = (
    (1.0, 1.0),
    (1.0, 0.0),
    (0.9, 1.0),
    (0.5, 1.0),
    (0.2, 1.0),
    (0.1, 1.0),
    (0.05, 1.0),
    (0.03, 1.0),
    (0.02, 1.0),
)


def proxies(seeds: range) -> None:
    """Runs behind proxies, by share and pace, of uniform and wide lengths."""
    counts: dict[str, Count] = {}
    for seed, lengths, preset in product(seeds, (uniform, wide), CAPACITY):
        for name, scene in scenes(preset):
            if "3 times" in name or "95" in name:
                continue
            samples = answered(replace(scene, seed=seed + len(name)), lengths)
            for share, replay_ms in HELD:
                random = np.random.default_rng(seed)
                sent = "at their own pace" if not replay_ms else f"{replay_ms:g} ms apart"
                label = f"{share:.0%} held, then sent {sent}"
                counts.setdefault(label, Count()).add(length_wait(held(samples, share, replay_ms, random)))
    rows(counts)


TABLES: Mapping[str, Callable[[], None]] = {
    "streamed": lambda: honest(Played, "fcfs", range(70_000, 70_005), WORKLOADS),
    "ordered": lambda: honest(Ordered, "priority", range(80_000, 80_002), {"uniform": uniform}),
    "held": lambda: proxies(range(90_000, 90_002)),
}


def main() -> int:
    """Print the tables that are named, or all."""
    for name in sys.argv[1:] or TABLES:
        print(f"\n{name}\n")
        TABLES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
