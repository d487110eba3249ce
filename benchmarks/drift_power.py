"""What the checks `drift` and `stationary` see: steady engines, engines that become slower, and engines that are overloaded.

Each run is the reference engine under a load in virtual time, without HTTP: requests go to the engine, its tokens into a
record, and the record through the two checks. Everything is drawn from the seed of the run.

| defect   | the engine's times                                                          |
| -------- | --------------------------------------------------------------------------- |
| steady   | do not change                                                               |
| line     | grow linearly with the requests sent, up to the given factor                |
| step     | are the given factor longer from the middle request on                      |
| swing    | are longer and shorter in turn by the given share, so many times a run      |
| bump     | are the given factor longer in the middle tenth                             |

Each run is judged twice: with every token's arrival, and as if answers had not been streamed. Open loop: Poisson arrivals at a
share of capacity, which is the engine's throughput with twice as many requests as its batch
holds. Closed loop: that many slots. `python -m benchmarks.drift_power [TABLE...]` prints the tables of docs/power.md.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from inferometer.journal.schema import PULSE, RECORD, EventClass
from inferometer.judge.steadiness import drift, stationary, work_variation
from inferometer.measure.backlog import backlogs
from inferometer.measure.drift import drift_of
from inferometer.measure.load import Sweep, spans
from inferometer.measure.record import Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe
from inferometer.plan.schema import Plan
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings
from inferometer.server.presets import PRESETS

COSTS = tuple(
    field.name
    for field in dataclasses.fields(Settings)
    if field.name.endswith("_ns") and field.name != "load_ns"
)

WORKLOADS = {
    "varied": ((50, 500), 48, 0.5),
    "constant": ((256, 256), 48, 0.0),
    "short": ((50, 500), 8, 0.7),
    "one token": ((50, 500), 1, 0.0),
    "long": ((500, 3000), 64, 0.7),
}
"""Prompt tokens (uniform), mean output tokens, and the sigma of their log-normal distribution."""

Factor = Callable[[float], float]
"""The share of the requests sent to how many times slower the engine is."""


def line(factor: float) -> Factor:
    """Slower and slower, up to `factor`."""
    return lambda share: round(1 + (factor - 1) * share, 2)


def step(factor: float) -> Factor:
    """`factor` times slower from half-way on."""
    return lambda share: factor if share >= 0.5 else 1.0


def swing(by: float, times: float) -> Factor:
    """Slower and faster in turn."""
    return lambda share: round(1 + by * math.sin(2 * math.pi * times * share), 2)


def bump(factor: float) -> Factor:
    """`factor` times slower in the middle tenth."""
    return lambda share: factor if 0.45 <= share < 0.55 else 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of a table: an engine, its work, its load (share of capacity, or slots) and the number of requests."""

    preset: str
    workload: str
    requests: int
    share: float | None = None
    slots: int | None = None


class Played:
    """A request: when it was sent, when its tokens came, how long its prompt and its answer are."""

    __slots__ = ("events", "output", "prompt", "sent")

    def __init__(self, sent: int, prompt: int, output: int) -> None:
        self.sent, self.prompt, self.output = sent, prompt, output
        self.events: list[int] = []


def played(
    cell: Cell,
    seed: int,
    factor: Factor | None = None,
    arrivals: Ints | None = None,
) -> list[Played]:
    """The requests of a run, in order of sending. `arrivals`: their instants in ns, in place of Poisson ones."""
    settings, draw = PRESETS[cell.preset], np.random.default_rng(seed)
    engine: Engine[Played] = Engine(settings, seed)
    (low, high), mean, sigma = WORKLOADS[cell.workload]
    prompts = draw.integers(low, high + 1, cell.requests)
    lengths = mean * np.exp(draw.normal(-sigma * sigma / 2, sigma, cell.requests))
    outputs = np.clip(np.round(lengths), 1, 600).astype(int)
    done: list[Played] = []
    now = [1.0]

    def send(at: int) -> None:
        i = len(done)
        slower = 1.0 if factor is None else factor(i / cell.requests)
        if slower != now[0]:
            now[0] = slower
            scaled = {name: getattr(settings, name) * slower for name in COSTS}
            engine.change(dataclasses.replace(settings, **scaled), at)
        done.append(Played(at, int(prompts[i]), int(outputs[i])))
        engine.submit(done[-1], done[-1].prompt, done[-1].output, at)

    if arrivals is None and cell.slots is None:
        each = (cell.share or 1.0) * capacity(cell.preset, cell.workload)
        arrivals = (np.cumsum(draw.exponential(1 / each, cell.requests)) * 1e9).astype(np.int64)
    if arrivals is None:
        for _ in range(min(cell.slots or 1, cell.requests)):
            send(0)
    _drive(engine, send, done, cell.requests, arrivals)
    return done


def _drive(
    engine: Engine[Played],
    send: Callable[[int], None],
    done: list[Played],
    requests: int,
    arrivals: Ints | None,
) -> None:
    while True:
        due = engine.next_due()
        if arrivals is not None and len(done) < requests and (due is None or arrivals[len(done)] <= due):
            send(int(arrivals[len(done)]))
            continue
        if due is None:
            return
        while (emission := engine.advance(due)) is not None:
            for request, _, count, ended in emission.tokens:
                request.events.extend([int(emission.at)] * count)
                if ended and arrivals is None and len(done) < requests:
                    send(int(emission.at))


@cache
def capacity(preset: str, workload: str) -> float:
    """Requests per second of an engine that always has twice as many as its batch holds, over 7,000 of 10,000."""
    slots = min(2 * PRESETS[preset].max_batch, 600)
    ends = sorted(one.events[-1] for one in played(Cell(preset, workload, 10_000, slots=slots), 99))
    return 7_000 / ((ends[9_000] - ends[2_000]) / 1e9)


ORIGIN = 10**12


def record_of(requests: Sequence[Played], *, streamed: bool = True) -> Record:
    """The record that an ideal client would have made."""
    n = len(requests)
    sent = np.array([one.sent for one in requests]) + ORIGIN
    end = np.array([one.events[-1] for one in requests]) + ORIGIN
    outputs = np.array([one.output for one in requests])
    prompts = np.array([one.prompt for one in requests])
    zeros = np.zeros(n, np.int64)
    events = [np.array(one.events if streamed else one.events[-1:], np.int64) + ORIGIN for one in requests]
    values: dict[str, Any] = {name: None if RECORD.field(name).nullable else zeros for name in RECORD.names}
    values |= {
        "index": np.arange(n), "phase": zeros + 1, "attempts": zeros + 1, "turns": zeros + 1,
        "t_intended": sent, "t_taken": sent, "t_send": sent, "t_submit": sent, "t_first_byte": sent, "t_end": end,
        "event_ns": events, "event_class": [bytes([EventClass.CONTENT] * len(one)) for one in events],
        "outcome": ["ok"] * n, "finish_reason": ["length"] * n, "text": ["text"] * n,
        "usage_input": prompts, "usage_output": outputs,
        "input_tokens_asked": prompts, "input_tokens_sent": prompts, "output_tokens_asked": outputs,
    }  # fmt: skip
    columns = {
        name: pa.array([None] * n if value is None else value, RECORD.field(name).type)
        for name, value in values.items()
    }
    pulse = pa.Table.from_pylist([], schema=PULSE)
    return Record.from_tables(pa.table(columns, schema=RECORD), pulse, timestamp_source="virtual")


def plan_of(cell: Cell, *, streamed: bool = True) -> Plan:
    """The plan of a cell, as far as the checks look at it."""
    load = (
        {"model": "open", "rate": 1.0}
        if cell.slots is None
        else {"model": "closed", "concurrency": cell.slots}
    )
    return Plan.model_validate({"load": load | {"requests": cell.requests}, "target": {"stream": streamed}})


class Alarms(NamedTuple):
    """Whether `drift` and `stationary` raise an alarm, and whether `drift` does since the run is too short to tell."""

    drift: bool
    stationary: bool
    short: bool


def alarms(cell: Cell, requests: Sequence[Played], *, streamed: bool = True) -> Alarms:
    """What the checks say of a run."""
    load, record = plan_of(cell, streamed=streamed).load, record_of(requests, streamed=streamed)
    samples, sweep = Samples(record, streamed=streamed), Sweep(record)
    parts = spans(record, sweep, cell.slots, float(np.median(samples.e2e)))
    found = drift(drift_of(record, samples, parts.steady, cell.slots), None, trace=False)
    work = work_variation([describe(samples.input_tokens), describe(samples.output_tokens)])
    queue = backlogs(record, sweep, parts.load, (), streamed=streamed)
    queued = stationary(load, queue, 1.0, work).status == "unsure"
    return Alarms(found.status == "unsure", queued, found.status == "unsure" and found.value is None)


Row = tuple[str, int, int, int, int, int]
"""Label, runs, and in how many of them `drift` raised an alarm, and did so for shortness, `stationary` did, and either."""


def counted(label: str, runs: Iterable[tuple[Cell, int, Factor | None]]) -> Iterator[Row]:
    """Two rows of a table: the runs streamed, and the same not streamed."""
    found: tuple[list[Alarms], list[Alarms]] = ([], [])
    for cell, seed, factor in runs:
        requests = played(cell, seed, factor)
        for streamed, rows in zip((True, False), found, strict=True):
            rows.append(alarms(cell, requests, streamed=streamed))
    for suffix, rows in zip(("", ", not streamed"), found, strict=True):
        slower, queued, short = (sum(column) for column in zip(*rows, strict=True))
        either = sum(one.drift or one.stationary for one in rows)
        yield f"{label}{suffix}", len(rows), slower, short, queued, either


EACH = tuple(product(PRESETS, WORKLOADS))
LOADS: dict[str, dict[str, Any]] = {
    "open, 30 %": {"share": 0.3},
    "open, 60 %": {"share": 0.6},
    "open, 85 %": {"share": 0.85},
    "closed, 1 slot": {"slots": 1},
    "closed, 8 slots": {"slots": 8},
    "closed, 32 slots": {"slots": 32},
    "closed, 64 slots": {"slots": 64},
}
DEFECTS = {
    "line to 1.1": line(1.1),
    "step to 1.1": step(1.1),
    "line to 1.2": line(1.2),
    "step to 1.3": step(1.3),
    "line to 1.5": line(1.5),
    "swing by 30 %, twice": swing(0.3, 2),
    "bump to 2": bump(2.0),
}


def steady_runs() -> Iterator[Row]:
    """False alarms: 1,050 runs of 1,000 requests."""
    for name, load in LOADS.items():
        cells = [Cell(*one, 1_000, **load) for one in EACH]
        yield from counted(name, ((cell, seed, None) for cell in cells for seed in range(101, 107)))


def slower_runs() -> Iterator[Row]:
    """Detection: one run of each engine and workload under each load."""
    for name, load in LOADS.items():
        for defect in ("step to 1.3", "line to 1.5"):
            yield from _slower(f"{defect}, 1,000 requests, {name}", defect, 1_000, load)


def lesser_runs() -> Iterator[Row]:
    """Detection of lesser changes, and of those that come and go."""
    for name in ("open, 30 %", "open, 60 %", "closed, 8 slots", "closed, 64 slots"):
        for defect in ("line to 1.1", "step to 1.1", "line to 1.2", "swing by 30 %, twice", "bump to 2"):
            yield from _slower(f"{defect}, 1,000 requests, {name}", defect, 1_000, LOADS[name])


def _slower(label: str, defect: str, requests: int, load: dict[str, Any]) -> Iterator[Row]:
    return counted(label, ((Cell(*one, requests, **load), 111, DEFECTS[defect]) for one in EACH))


def overload_runs() -> Iterator[Row]:
    """Overload: two runs of each engine with two workloads."""
    for share, requests in product((1.0, 1.02, 1.05, 1.1), (1_000, 5_000)):
        cells = [
            Cell(preset, work, requests, share=share) for preset in PRESETS for work in ("varied", "short")
        ]
        runs = ((cell, seed, None) for cell in cells for seed in (121, 122))
        yield from counted(f"{share:.0%} of capacity, {requests:,} requests", runs)


TABLES = {"steady": steady_runs, "slower": slower_runs, "lesser": lesser_runs, "overload": overload_runs}


def main(names: Sequence[str]) -> None:
    """Print tables in Markdown."""
    for name in names or TABLES:
        print("\n| runs | number | `drift` | too short | `stationary` | either |")
        print("| --- | --- | --- | --- | --- | --- |")
        for row in TABLES[name]():
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
