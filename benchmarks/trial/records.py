"""From a record to what the instrument says of it: the product's own measure and judge, and its headlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.trial.playing import MS, Columns, Scene, load_of, play
from inferometer.journal.schema import PULSE, RECORD
from inferometer.judge.judge import judge
from inferometer.judge.verdict import Verdict
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.metrics.catalogue import Metrics
from inferometer.metrics.statistics import Interval, Stats
from inferometer.plan.schema import Plan

PULSE_MS = 250
OFFSET_NS = 1_700_000_000 * 10**9
"""Wall clock minus the run's clock."""
CPU_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run's record before it is judged. `plan`: what its plan says, by part; `pulse`: columns of the pulses that differ;
    `more`: further arguments of `Record.from_tables`."""

    scene: Scene
    columns: Columns
    plan: Mapping[str, Any] = field(default_factory=dict)
    pulse: Columns = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def but(self, **columns: Any) -> Recorded:
        """The same with other columns."""
        return replace(self, columns=self.columns | columns)

    def planned(self, **parts: Any) -> Recorded:
        """The same under another plan: parts are merged."""
        return replace(self, plan=merged(self.plan, parts))

    def pulsed(self, **columns: Any) -> Recorded:
        """The same with other pulses."""
        return replace(self, pulse=self.pulse | columns)

    def rows(self, chosen: Any) -> Recorded:
        """Some of its rows."""
        numbers = np.flatnonzero(np.asarray(chosen))
        kept = {
            name: values[numbers] if isinstance(values, np.ndarray) else [values[n] for n in numbers]
            for name, values in self.columns.items()
        }
        return replace(self, columns=kept)

    @property
    def measured(self) -> Any:
        """Which rows are of the measured phase."""
        return np.asarray(self.columns["phase"]) == 1


def truthful(scene: Scene) -> Recorded:
    """The record of a good client with a server as it is."""
    workload = {"seed": scene.seed}
    return Recorded(scene, play(scene), {"load": load_of(scene), "workload": workload})


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` merged into its parts."""
    parts = {
        key: {**base.get(key, {}), **value} if isinstance(value, dict) else value
        for key, value in changes.items()
    }
    return {**base, **parts}


def table(columns: Columns, schema: pa.Schema) -> pa.Table:
    """A table of the schema; a column not given is 0, or null where it may be."""
    rows = len(next(iter(columns.values())))
    arrays = []
    for field_ in schema:
        values = columns.get(field_.name, [None] * rows if field_.nullable else np.zeros(rows))
        if isinstance(values, np.ndarray) and pa.types.is_integer(field_.type):
            values = values.astype(field_.type.to_pandas_dtype())
        arrays.append(pa.array(values, field_.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def pulses(columns: Columns) -> Columns:
    """The pulses of one worker that used CPU_SHARE of its core, four a second."""
    start, end = int(np.min(columns["t_intended"])), int(np.max(columns["t_end"]))
    at = np.arange(start - MS, end + (PULSE_MS + 1) * MS, PULSE_MS * MS)
    zero = np.zeros(len(at))
    parts = []
    for worker in np.unique(columns["worker"]):
        parts.append(
            {
                "worker": np.full(len(at), int(worker)),
                "t_ns": at,
                "cpu_ns": (at - at[0]) * CPU_SHARE,
                "run_delay_ns": zero,
                "reads": np.ones(len(at)),
                "clock_offset_ns": np.full(len(at), OFFSET_NS),
                "stall_max_ns": np.full(len(at), 300_000),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, slots=True)
class Judged:
    """What the instrument says of a run."""

    measurement: Measurement
    verdict: Verdict

    @property
    def status(self) -> str:
        """The verdict in a word."""
        return str(self.verdict.status)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The checks that decided, failures first."""
        return tuple(dict.fromkeys(reason.code for reason in self.verdict.reasons))


def judged(recorded: Recorded) -> Judged:
    """Measured and judged as a live run with the kernel's time stamps is."""
    plan = Plan.model_validate(dict(recorded.plan))
    beats = pulses(recorded.columns)
    beats |= {name: change(beats) if callable(change) else change for name, change in recorded.pulse.items()}
    record = Record.from_tables(table(recorded.columns, RECORD), table(beats, PULSE), **dict(recorded.more))
    measurement = measure(plan, record)
    return Judged(measurement, judge(plan, measurement, record))


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that a report leads with, and its 95 % interval, if it has one."""

    value: float
    interval: Interval | None


POINTS = {"TTFT": "ttft_ms", "TPOT": "tpot_ms", "ITL": "itl_ms", "latency": "e2e_ms"}
RATES = {"output tokens/s": "output_tok_s", "requests/s": "request_s"}


def latencies(metrics: Metrics) -> dict[str, Headline]:
    """Those of latency alone."""
    found: dict[str, Headline] = {}
    for name, metric in POINTS.items():
        stats: Stats | None = getattr(metrics, metric)
        if stats is not None:
            for label, point in (("P50", "p50"), ("P99", "p99")):
                found[f"{name} {label}"] = Headline(getattr(stats, point), getattr(stats.ci95, point))
    return found


def headlines(measurement: Measurement) -> dict[str, Headline]:
    """Those that the run has, by name."""
    found = latencies(measurement.metrics)
    throughput = measurement.throughput
    for name, rate in RATES.items():
        value = getattr(throughput.steady, rate)
        if value is not None:
            found[name] = Headline(value, getattr(throughput.ci95, rate))
    return found


OF_SYSTEM = "the system's "
"""How headlines begin that are the system's own word."""


@dataclass(frozen=True, slots=True)
class Bent:
    """The headline that is farthest from the truth, by what share of it; `outside`: how many have an interval without it."""

    headline: str
    share: float
    outside: int

    @property
    def of_system(self) -> bool:
        """Whether the headline is the system's own word, which nobody outside can check."""
        return self.headline.startswith(OF_SYSTEM)


def bent(said: Mapping[str, Headline], truth: Mapping[str, Headline]) -> Bent:
    """How far what is said is from the truth. A headline that is not given is not bent."""
    worst, outside = Bent("-", 0.0, 0), 0
    for name, headline in said.items():
        if name not in truth or truth[name].value == 0:
            continue
        true = truth[name].value
        share = headline.value / true - 1
        outside += _outside(headline, truth[name])
        if abs(share) > abs(worst.share):
            worst = Bent(name, share, 0)
    return replace(worst, outside=outside)


def sure(said: Mapping[str, Headline], truth: Mapping[str, Headline]) -> Bent:
    """The same of headlines whose interval leaves the truth out: the others claim no more than they know."""
    return bent({name: one for name, one in said.items() if _outside(one, truth.get(name))}, truth)


def _outside(said: Headline, truth: Headline | None) -> bool:
    return (
        truth is not None
        and said.interval is not None
        and not said.interval[0] <= truth.value <= said.interval[1]
    )
