"""The append-only streams of one worker. What `flush` has returned from survives the death of the process.

Ended exchanges are copied into flat arrays, which become Arrow columns without a Python object a value.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from inferometer.journal.redact import Redactor
from inferometer.journal.schema import OUTCOME, PULSE, of_run


class _Answer(Protocol):
    event_ns: array[int]
    event_class: bytearray
    stamps: array[int]
    texts: list[str]
    first_text: int
    first_visible: int
    first_answer: int
    finish_reason: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    steps: str | None
    server_total_ns: int | None
    server_load_ns: int | None
    server_prefill_ns: int | None
    server_decode_ns: int | None

    @property
    def plain(self) -> bool: ...

    def reply(self) -> str: ...


class Ended(Protocol):
    """What the journal keeps of an exchange; times are monotonic ns, 0 for: did not happen."""

    index: int
    cycle: int
    t_intended: int
    t_taken: int
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
    merged: list[int]
    submit_ns: int
    body_crc: int
    retry_after_s: float | None
    answer: Any


class StreamFile:
    """One Arrow IPC stream on disk, of the run with this id, appended to batch by batch."""

    def __init__(self, path: Path, schema: pa.Schema, run: str) -> None:
        schema = of_run(schema, run)
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


MOST_LABELS, LABEL_LENGTH = 64, 200
"""Finish reasons, or names of models, that one worker records; and characters of each. Servers have a handful."""
FURTHER = "(further)"
"""What is recorded for one more."""

_INTEGERS = (
    # The integer columns in the order `Journal.add` takes them, and the value that stands for null (None: never null).
    ("index", None),
    ("cycle", None),
    ("t_intended", None),
    ("t_taken", None),
    ("t_connect", 0),
    ("t_connected", 0),
    ("t_tls", 0),
    ("t_send", 0),
    ("t_submit", 0),
    ("t_first_byte", 0),
    ("t_end", None),
    ("first_text", None),
    ("first_visible", None),
    ("first_answer", None),
    ("status", 0),
    ("usage_input", -1),
    ("usage_output", -1),
    ("usage_cached", -1),
    ("usage_reasoning", -1),
    ("server_total_ns", -1),
    ("server_load_ns", -1),
    ("server_prefill_ns", -1),
    ("server_decode_ns", -1),
    ("attempts", None),
    ("lag_ns", None),
    ("submit_ns", 0),
    ("body_crc", -1),
    ("phase", None),
)


class Journal:
    """One worker's outcomes and pulses. `redactor` is the one point that all text from the server passes; `run` is the id that
    the run has in run.json.

    `add` is on the hot path: it copies an ended exchange into flat arrays, row by row, so that the exchange can go and a flush
    is a few strided copies. `flush` is called between rounds.
    """

    def __init__(self, folder: Path, worker: int, redactor: Redactor, run: str) -> None:
        self._outcomes = StreamFile(folder / f"worker-{worker}.arrows", OUTCOME, run)
        self._pulses = StreamFile(folder / f"pulse-{worker}.arrows", PULSE, run)
        self._worker = worker
        self._redact = redactor
        self._pulse_rows: list[tuple[int | None, ...]] = []
        self._reasons: dict[str, str | None] = {}
        self._names: dict[str, str | None] = {}
        self._clear()

    def _clear(self) -> None:
        self.pending = 0
        self._integers = array("q")
        self._event_ns = array("q")
        self._event_ends = array("i", [0])
        self._emitted_ns = array("q")
        self._emitted_ends = array("i", [0])
        self._merged_event = array("i")
        self._merged_ns = array("q")
        self._merged_ends = array("i", [0])
        self._classes: list[bytes] = []
        self._outcome: list[str] = []
        self._detail: list[str | None] = []
        self._finish: list[str | None] = []
        self._models: list[str | None] = []
        self._text: list[str | None] = []
        self._content: list[str | None] = []
        self._steps: list[str | None] = []
        self._retry_after: list[float | None] = []

    def add(self, exchange: Ended, phase: int) -> None:
        """Keep an ended exchange of a phase for the next flush; `pending` counts them."""
        answer: _Answer = exchange.answer
        self.pending += 1
        self._integers.extend(
            (
                exchange.index,
                exchange.cycle,
                exchange.t_intended,
                exchange.t_taken,
                exchange.t_connect,
                exchange.t_connected,
                exchange.t_tls,
                exchange.t_send,
                exchange.t_submit,
                exchange.t_first_byte,
                exchange.t_end,
                answer.first_text,
                answer.first_visible,
                answer.first_answer,
                exchange.status,
                # Mostly None, and then a call less each.
                -1 if (value := answer.input_tokens) is None else _count(value),
                -1 if (value := answer.output_tokens) is None else _count(value),
                -1 if (value := answer.cached_tokens) is None else _count(value),
                -1 if (value := answer.reasoning_tokens) is None else _count(value),
                -1 if (value := answer.server_total_ns) is None else _duration(value),
                -1 if (value := answer.server_load_ns) is None else _duration(value),
                -1 if (value := answer.server_prefill_ns) is None else _duration(value),
                -1 if (value := answer.server_decode_ns) is None else _duration(value),
                exchange.attempts,
                exchange.lag_ns,
                exchange.submit_ns,
                exchange.body_crc,
                phase,
            )
        )
        merged = exchange.merged
        if merged:
            self._merged_event.extend(merged[::2])
            self._merged_ns.extend(merged[1::2])
        self._merged_ends.append(len(self._merged_ns))
        self._event_ns.extend(answer.event_ns)
        self._event_ends.append(len(self._event_ns))
        self._emitted_ns.extend(answer.stamps)
        self._emitted_ends.append(len(self._emitted_ns))
        self._classes.append(bytes(answer.event_class))
        self._outcome.append(exchange.outcome)
        self._detail.append(None if exchange.detail is None else _words(self._redact, exchange.detail))
        self._finish.append(self._label(self._reasons, answer.finish_reason))
        self._models.append(self._label(self._names, answer.model))
        text = "".join(answer.texts)  # of token ids there is none
        content = None if not text or answer.plain else answer.reply()
        self._text.append(self._redact.short(text) if text else None)
        self._content.append(None if content is None or content == text else self._redact.short(content))
        self._steps.append(answer.steps)
        self._retry_after.append(exchange.retry_after_s)

    def _label(self, known: dict[str, str | None], said: str | None) -> str | None:
        """A finish reason, or a model's name, as the record may hold it. Servers know a handful of them, so each is looked at
        once; one that has another for each answer would make the report as large as the record."""
        if said is None or said in known:
            return said if said is None else known[said]
        words = _words(self._redact, said)
        if words in known.values():  # no more of them than MOST_LABELS
            return words
        if len(known) >= MOST_LABELS:
            return FURTHER
        known[said if len(said) <= LABEL_LENGTH else words or ""] = words
        return words

    def add_pulse(self, *values: int | None) -> None:
        """Keep one pulse: PULSE's columns in order, without the worker."""
        self._pulse_rows.append(values)

    def flush(self) -> None:
        """Append what has been added since the last flush."""
        if self.pending:
            self._outcomes.append(self._columns())
            self._clear()
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

    def _columns(self) -> list[pa.Array]:
        columns: dict[str, pa.Array | Sequence[object]] = {
            "worker": [self._worker] * self.pending,
            "event_ns": pa.ListArray.from_arrays(
                _flat(self._event_ends, pa.int32()), _flat(self._event_ns, pa.int64())
            ),
            "emitted_ns": pa.ListArray.from_arrays(
                _flat(self._emitted_ends, pa.int32()), _flat(self._emitted_ns, pa.int64())
            ),
            "merged_event": pa.ListArray.from_arrays(
                _flat(self._merged_ends, pa.int32()), _flat(self._merged_event, pa.int32())
            ),
            "merged_ns": pa.ListArray.from_arrays(
                _flat(self._merged_ends, pa.int32()), _flat(self._merged_ns, pa.int64())
            ),
            "event_class": self._classes,
            "outcome": self._outcome,
            "detail": self._detail,
            "finish_reason": self._finish,
            "answered_as": self._models,
            "text": self._text,
            "content": self._content,
            "usage_steps": self._steps,
            "retry_after_s": self._retry_after,
        }
        for place, (name, null) in enumerate(_INTEGERS):
            column = _flat(self._integers[place :: len(_INTEGERS)], pa.int64())
            if null is not None:
                column = pc.if_else(pc.equal(column, _INT64[null]), _INT64[None], column)
            columns[name] = column.cast(OUTCOME.field(name).type)
        return [
            column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
            for field in OUTCOME
        ]


# Made once: from a Python integer pyarrow would make them anew, at twenty times the cost of the comparison.
_INT64 = {value: pa.scalar(value, pa.int64()) for value in (None, 0, -1)}


def _flat(values: array[int], kind: pa.DataType) -> pa.Array:
    """An Arrow column over the array's own memory."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _words(redact: Redactor, text: str | None) -> str | None:
    """A short text from outside: secrets struck out first, then cut, and always encodable."""
    return redact.short(text, LABEL_LENGTH) if text else None


def _count(value: int) -> int:
    """A count as the record can hold it, else -1; a server may claim any number."""
    return value if 0 <= value < 1 << 31 else -1


def _duration(value: int) -> int:
    """A duration in ns as the record can hold it, else -1."""
    return value if 0 <= value < 1 << 63 else -1
