"""A builder of records: requests written as times in ms from the run's start, everything else by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from inferometer.journal.schema import PULSE, RECORD, EventClass
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

ORIGIN = 10**16 + 1
"""A late, odd monotonic time: doubles no longer hold every nanosecond here."""

TIMES = (
    "t_intended",
    "t_taken",
    "t_connect",
    "t_connected",
    "t_tls",
    "t_send",
    "t_submit",
    "t_first_byte",
    "t_end",
)
TEXT = (EventClass.CONTENT, EventClass.REASONING, EventClass.TOOL_CALL)


def _first(events: list[tuple[float, EventClass]], wanted: tuple[EventClass, ...]) -> int:
    return next((i for i, (_, kind) in enumerate(events) if kind in wanted), -1)


def row(**given: Any) -> dict[str, Any]:
    """One record row. `events`: (ms, class) pairs; times in ms from ORIGIN; unsaid firsts follow from the classes."""
    events = given.pop("events", [])
    start = given.pop("t_intended", 0.0)
    text = sum(kind in TEXT for _, kind in events)
    values: dict[str, Any] = {
        "index": 0,
        "cycle": 0,
        "phase": 1,
        "worker": 0,
        "t_intended": start,
        "t_taken": start,
        "t_send": given.get("t_submit", start),
        "t_submit": start,
        "t_end": events[-1][0] if events else start + 1.0,
        "first_text": _first(events, TEXT),
        "first_visible": _first(events, TEXT),
        "first_answer": _first(events, (EventClass.CONTENT,)),
        "outcome": "ok",
        "text": "word" * text if text else None,
        "attempts": 1,
        "lag_ns": 0,
        "input_tokens_asked": 100,
        "input_tokens_sent": 100,
        "output_tokens_asked": text,
        "input_tokens_shared": 0,
        "input_tokens_repeated": 0,
        "turn": 0,
        "turns": 1,
    } | given
    for name in TIMES:
        if values.get(name) is not None:
            values[name] = ORIGIN + round(values[name] * 1e6)
    values["event_ns"] = [ORIGIN + round(ms * 1e6) for ms, _ in events]
    values["event_class"] = bytes(int(kind) for _, kind in events)
    return {name: values.get(name) for name in RECORD.names}


def pulses(*given: dict[str, Any]) -> pa.Table:
    """A PULSE table; unsaid columns are 0; `t_ms` from ORIGIN."""
    rows = []
    for one in given:
        values = dict.fromkeys(PULSE.names, 0) | one
        values["t_ns"] = ORIGIN + round(values.pop("t_ms", 0.0) * 1e6)
        rows.append(values)
    return pa.Table.from_pylist(rows, schema=PULSE)


@pytest.fixture(scope="session")
def table_of() -> Callable[..., pa.Table]:
    """`table_of(row, row)`: the RECORD table of rows given as keyword dicts."""
    return lambda *rows: pa.Table.from_pylist([row(**one) for one in rows], schema=RECORD)


@pytest.fixture(scope="session")
def build(table_of: Callable[..., pa.Table]) -> Callable[..., Record]:
    """`build(row, row, pulse=[...], **more)`: a Record of rows given as keyword dicts."""

    def make(*rows: dict[str, Any], pulse: tuple[dict[str, Any], ...] = (), **more: Any) -> Record:
        return Record.from_tables(table_of(*rows), pulses(*pulse), **more)

    return make


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., Plan]:
    """`plan_of(target={...}, load={...})`: a plan, closed loop of one slot and cl100k_base unless said otherwise."""

    def make(**parts: Any) -> Plan:
        given = {"load": {"model": "closed", "concurrency": 1, "requests": 10}} | parts
        given["tokenizer"] = {"name": "cl100k_base"} | given.get("tokenizer", {})
        return Plan.model_validate(given)

    return make


@pytest.fixture(scope="session")
def random_rows() -> Callable[..., list[dict[str, Any]]]:
    """`random_rows(seed, n)`: requests of every kind, some failed, some warm-up, with 0 to 12 text events."""

    def make(seed: int, n: int) -> list[dict[str, Any]]:
        random = np.random.default_rng(seed)
        rows = []
        for index in range(n):
            start = float(index * 7 + random.integers(0, 5))
            times = start + np.cumsum(random.integers(1, 40, random.integers(1, 14)))
            kinds = [EventClass.ROLE] + [EventClass.CONTENT] * (len(times) - 1)
            text = len(times) - 1
            rows.append(
                {
                    "index": index,
                    "phase": int(random.random() > 0.2),
                    "t_intended": start,
                    "t_submit": start + float(random.integers(0, 3)),
                    "events": list(zip(times.tolist(), kinds, strict=True)),
                    "outcome": "ok" if text and random.random() > 0.2 else "timeout",
                    "usage_output": int(text + random.integers(0, 3)) if random.random() > 0.3 else None,
                    "output_tokens_local": text if random.random() > 0.5 else None,
                    "input_tokens_sent": int(random.integers(1, 5000)),
                }
            )
        return rows

    return make
