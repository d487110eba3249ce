"""The append-only streams of one worker. What `flush` has returned from survives the death of the process.

A batch is built column by column from the ended exchanges, whose own arrays become Arrow buffers without a copy a value.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from inferometer.journal.redact import Redactor
from inferometer.journal.schema import OUTCOME, PULSE


class _Answer(Protocol):
    event_ns: array[int]
    event_class: bytearray
    texts: list[str]
    first_text: int
    first_visible: int
    first_answer: int
    finish_reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None


class Ended(Protocol):
    """What the journal keeps of an exchange; times are monotonic ns, 0 for: did not happen."""

    index: int
    cycle: int
    t_intended: int
    t_connect: int
    t_connected: int
    t_tls: int
    t_send: int
    t_submit: int
    t_first_byte: int
    t_end: int
    outcome: str
    detail: str | None
    status: int
    attempts: int
    lag_ns: int
    retry_after_s: float | None
    answer: Any


class StreamFile:
    """One Arrow IPC stream on disk, appended to batch by batch."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._sink = open(path, "wb", buffering=0)  # noqa: SIM115 - lives as long as the run
        self._writer = pa.ipc.new_stream(self._sink, schema)
        self._schema = schema

    def append(self, arrays: list[pa.Array]) -> None:
        """Append one batch and hand it to the kernel."""
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the end mark."""
        self._writer.close()
        self._sink.close()


class Journal:
    """One worker's outcomes and pulses. `redactor` is the one point that all text from the server passes."""

    def __init__(self, folder: Path, worker: int, redactor: Redactor) -> None:
        self._outcomes = StreamFile(folder / f"worker-{worker}.arrows", OUTCOME)
        self._pulses = StreamFile(folder / f"pulse-{worker}.arrows", PULSE)
        self._worker = worker
        self._redact = redactor
        self._rows: list[Ended] = []
        self._pulse_rows: list[tuple[int, ...]] = []

    def add(self, exchange: Ended) -> None:
        """Keep an ended exchange for the next flush."""
        self._rows.append(exchange)

    def add_pulse(self, *values: int) -> None:
        """Keep one pulse: PULSE's columns in order, without the worker."""
        self._pulse_rows.append(values)

    @property
    def pending(self) -> int:
        """Exchanges not yet flushed."""
        return len(self._rows)

    def flush(self, phase: int) -> None:
        """Append what has been added since the last flush."""
        if self._rows:
            self._outcomes.append(self._columns(self._rows, phase))
            self._rows = []
        if self._pulse_rows:
            count = len(self._pulse_rows)
            columns = [[self._worker] * count, *zip(*self._pulse_rows, strict=True)]
            self._pulses.append(
                [pa.array(column, field.type) for column, field in zip(columns, PULSE, strict=True)]
            )
            self._pulse_rows = []

    def close(self) -> None:
        """Close both streams; flush first."""
        self._outcomes.close()
        self._pulses.close()

    def _columns(self, rows: Sequence[Ended], phase: int) -> list[pa.Array]:
        count = len(rows)
        answers: list[_Answer] = [row.answer for row in rows]
        redact = self._redact
        columns: dict[str, Any] = {
            "index": [row.index for row in rows],
            "cycle": [row.cycle for row in rows],
            "phase": [phase] * count,
            "worker": [self._worker] * count,
            "t_intended": [row.t_intended for row in rows],
            "t_connect": [row.t_connect or None for row in rows],
            "t_connected": [row.t_connected or None for row in rows],
            "t_tls": [row.t_tls or None for row in rows],
            "t_send": [row.t_send or None for row in rows],
            "t_submit": [row.t_submit or None for row in rows],
            "t_first_byte": [row.t_first_byte or None for row in rows],
            "t_end": [row.t_end for row in rows],
            "event_ns": _ragged([answer.event_ns for answer in answers]),
            "event_class": [bytes(answer.event_class) for answer in answers],
            "first_text": [answer.first_text for answer in answers],
            "first_visible": [answer.first_visible for answer in answers],
            "first_answer": [answer.first_answer for answer in answers],
            "outcome": [row.outcome for row in rows],
            "detail": [_words(redact, row.detail) for row in rows],
            "status": [row.status or None for row in rows],
            "finish_reason": [_words(redact, answer.finish_reason) for answer in answers],
            "text": [redact("".join(answer.texts)) if answer.texts else None for answer in answers],
            "usage_input": [_int32(answer.input_tokens) for answer in answers],
            "usage_output": [_int32(answer.output_tokens) for answer in answers],
            "usage_cached": [_int32(answer.cached_tokens) for answer in answers],
            "usage_reasoning": [_int32(answer.reasoning_tokens) for answer in answers],
            "retry_after_s": [row.retry_after_s for row in rows],
            "attempts": [row.attempts for row in rows],
            "lag_ns": [row.lag_ns for row in rows],
        }
        return [
            column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
            for field in OUTCOME
        ]


def _ragged(lists: Sequence[array[int]]) -> pa.Array:
    """A list<int64> column out of arrays of 64-bit integers."""
    offsets = array("i", [0])
    total = 0
    for values in lists:
        total += len(values)
        offsets.append(total)
    joined = b"".join(values.tobytes() for values in lists)
    values = pa.Array.from_buffers(pa.int64(), total, [None, pa.py_buffer(joined)])
    return pa.ListArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), values
    )


def _words(redact: Redactor, text: str | None) -> str | None:
    """A short text from outside: secrets struck out first, then cut, and always encodable."""
    return redact(text)[:200].encode("utf-8", "replace").decode() if text else None


def _int32(value: int | None) -> int | None:
    """A count as the record can hold it; a server may claim any number."""
    return value if value is None or 0 <= value < 1 << 31 else None
