"""A builder of whole runs: a good one, of which a test changes what it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from inferometer.journal.schema import PULSE, RECORD, EventClass
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.plan.arrivals import instants
from inferometer.plan.schema import Load, Plan
from inferometer.plan.workload_kind import DEFAULT_SEED

MS = 1_000_000
EVENTS = 4
RATE = 50.0


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` merged into its sub-dicts."""
    parts = {
        key: base.get(key, {}) | value if isinstance(value, dict) else value for key, value in changes.items()
    }
    return base | parts


def good_columns(n: int, warm: int) -> dict[str, Any]:
    """Columns of a good Poisson run: `warm` warm-up requests, then n, each with a role event and 4 tokens 10 ms apart. They are
    due when the plan of `run` has them due."""
    random = np.random.default_rng(11)
    total = warm + n
    load = Load(model="open", rate=RATE, requests=n, warmup=warm)
    before, due = instants(load, DEFAULT_SEED, warm, None, stream=1), instants(load, DEFAULT_SEED, n, None)
    start = 10**12 + int(before.max(initial=0))
    intended = np.concatenate((10**12 + before, start + due))
    submit = intended + random.integers(10_000, 100_000, total)
    ttft = random.lognormal(np.log(40 * MS), 0.2, total).astype(np.int64)
    text = (submit + ttft)[:, None] + np.arange(EVENTS) * 10 * MS
    times = np.column_stack((submit + ttft - MS, text))
    kinds = bytes([EventClass.ROLE] + [EventClass.CONTENT] * EVENTS)
    return {
        "index": np.arange(total),
        "phase": (np.arange(total) >= warm).astype(np.int8),
        "due_ns": np.concatenate((before, due)),
        "t_intended": intended,
        "t_taken": intended,
        "t_send": submit,
        "t_submit": submit,
        "t_end": times[:, -1] + MS,
        "event_ns": list(times),
        "event_class": [kinds] * total,
        "first_text": np.ones(total),
        "first_visible": np.ones(total),
        "first_answer": np.ones(total),
        "outcome": ["ok"] * total,
        "finish_reason": ["length"] * total,
        "text": ["some words here "] * total,
        "usage_input": np.full(total, 120),
        "usage_output": np.full(total, EVENTS),
        "usage_cached": np.zeros(total),
        "attempts": np.ones(total),
        "lag_ns": np.full(total, 30_000),
        "merged_event": [[] for _ in range(total)],
        "merged_ns": [[] for _ in range(total)],
        "submit_ns": np.full(total, 9_000),
        "input_tokens_asked": np.full(total, 100),
        "input_tokens_sent": np.full(total, 100),
        "output_tokens_asked": np.full(total, EVENTS),
        "output_tokens_local": np.full(total, EVENTS),
    }


def table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """A table of the schema; a column not given is 0, or null where it may be."""
    rows = len(next(iter(columns.values())))
    arrays = []
    for field in schema:
        given = columns.get(field.name, [None] * rows if field.nullable else np.zeros(rows))
        numeric = isinstance(given, np.ndarray) and pa.types.is_integer(field.type)
        arrays.append(pa.array(given.astype(field.type.to_pandas_dtype()) if numeric else given, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[Plan, Measurement, Record]]:
    """`run(n=1200, warm=100, plan={...}, pulse={...}, more={...}, column=values or function of the good values)`."""

    def make(
        n: int = 1200,
        warm: int = 100,
        plan: dict[str, Any] | None = None,
        pulse: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        **changes: Any,
    ) -> tuple[Plan, Measurement, Record]:
        columns = good_columns(n, warm)
        for name, change in changes.items():
            columns[name] = change(columns[name]) if callable(change) else change
        beats = 100
        start, end = int(columns["t_intended"].min()), int(np.max(columns["t_end"]))
        health = {
            "t_ns": np.linspace(start - MS, end + MS, beats),
            "cpu_ns": np.linspace(0, (end - start) * 0.3, beats),
            "reads": np.ones(beats),
        } | (pulse or {})
        load = {"model": "open", "rate": RATE, "requests": n}
        made = Plan.model_validate(merged({"load": load, "tokenizer": {"name": "cl100k_base"}}, plan or {}))
        record = Record.from_tables(table(columns, RECORD), table(health, PULSE), **(more or {}))
        return made, measure(made, record), record

    return make
