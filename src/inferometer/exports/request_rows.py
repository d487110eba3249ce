"""The requests of a run as a table: one row per request that ended, warm-up and lead-in included, in the order they were due.

| column                       | of which rows                                                                     |
| ---------------------------- | --------------------------------------------------------------------------------- |
| times, outcome, counts       | every row; null where the request did not get that far                            |
| a metric of the catalogue    | the samples: successful requests of the measured phase (docs/definitions.md)      |
| `event_times_ms`, `answer`   | only on request                                                                   |

Prompts are never exported, and neither are bodies of requests.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inferometer.exports.exported_run import ExportedRun
from inferometer.exports.formats import Wanted
from inferometer.exports.table_files import MARKS, Column, clean, clean_text, marked, to_csv, to_parquet
from inferometer.journal import tasks
from inferometer.journal.schema import Phase
from inferometer.journal.seal import record_parts
from inferometer.measure.record import Floats, Record
from inferometer.measure.samples import values_of
from inferometer.metrics.catalogue import METRICS
from inferometer.printable import printable
from inferometer.units import NS_PER_MS, NS_PER_S

_KEPT = (
    Column("index", pa.int64(), "row of `requests.arrow`"),
    Column("cycle", pa.int32(), "how many times the schedule had been used up before"),
    Column("worker", pa.int16(), "number of the worker that sent it"),
    Column("attempts", pa.int16(), "2: sent again after a reused connection was found closed"),
    Column("session", pa.int32(), "number of its conversation; null: none"),
    Column("turn", pa.int16(), "number of the turn, from 0"),
    Column("user", pa.int32(), "number of the user; null: not a load of users"),
)
"""Columns of the record that are exported as they are."""
_RENAMED = {
    "status": Column("http_status", pa.int16(), "HTTP status; null: no answer"),
    "input_tokens_asked": Column(
        "requested_input_tokens", pa.int32(), "prompt length requested; null: none was"
    ),
    "output_tokens_asked": Column(
        "requested_output_tokens", pa.int32(), "answer length requested; null: none was"
    ),
    "usage_input": Column("server_input_tokens", pa.int32(), "prompt tokens by the server's count"),
    "usage_output": Column("server_output_tokens", pa.int32(), "output tokens by the server's count"),
    "usage_cached": Column(
        "server_cached_tokens", pa.int32(), "prompt tokens taken from a cache, by the server"
    ),
    "usage_reasoning": Column(
        "server_reasoning_tokens", pa.int32(), "output tokens that are reasoning, by the server"
    ),
}
"""The same under names that say what they count."""
_TIMES = {
    "t_intended": Column("due_s", pa.float64(), "when it was due"),
    "t_submit": Column("sent_s", pa.float64(), "when the kernel took its last byte"),
    "t_first_byte": Column("first_byte_s", pa.float64(), "when the first byte of the answer arrived"),
    "t_end": Column("end_s", pa.float64(), "when the answer ended, or was given up"),
}
"""Times in s from the due time of the first measured request."""
_WORDS = {
    "outcome": Column("outcome", pa.string(), "how it ended (docs/definitions.md)"),
    "detail": Column("detail", pa.string(), "the message of a failure, at most 200 characters"),
    "finish_reason": Column("finish_reason", pa.string(), "why the answer ended"),
}
"""Texts, which may be a server's."""
_PHASE = Column("phase", pa.string(), "`warmup`, `measure`, `probe` or `lead`")
_CLASS = Column("request_class", pa.string(), "its class; null: none")
_TASK = Column("task", pa.string(), "name of its task; null: none, or not judged")
_RESULT = Column(
    "task_result", pa.string(), "`passed`, `failed` or `unjudged`, by the task's criterion; null: no task"
)
_SAMPLE = Column("sample", pa.bool_(), "whether it is one of the samples of the latency metrics")
_METRICS = tuple(
    Column(key, pa.float64(), f"{metric.title}, in {metric.unit}")
    for key, metric in METRICS.items()
    if not metric.pooled
)
EVENT_TIMES = Column("event_times_ms", pa.list_(pa.float64()), "arrival of each event, ms from the sending")
ANSWER = Column("answer", pa.string(), "text of the answer; null: not kept")
COLUMNS = (
    *MARKS,
    *_KEPT,
    _PHASE,
    _CLASS,
    *_WORDS.values(),
    *_RENAMED.values(),
    *_TIMES.values(),
    _TASK,
    _RESULT,
    _SAMPLE,
    *_METRICS,
)
"""Every column that is always there, in order."""


def render_csv(run: ExportedRun, wanted: Wanted) -> bytes:
    """As CSV."""
    return to_csv(request_rows(run, wanted))


def render_parquet(run: ExportedRun, wanted: Wanted) -> bytes:
    """As Parquet."""
    return to_parquet(request_rows(run, wanted), run.marks)


def request_rows(run: ExportedRun, wanted: Wanted) -> pa.Table:
    """The table. Raises RecordError where the record cannot be read."""
    more = (*((EVENT_TIMES,) if wanted.token_times else ()), *((ANSWER,) if wanted.answers else ()))
    schema = pa.schema([column.field for column in (*COLUMNS[len(MARKS) :], *more)])
    parts = pa.Table.from_batches([], schema=schema)
    return marked(pa.concat_tables([parts, *_parts(run, wanted, schema)]), run.marks)


def _parts(run: ExportedRun, wanted: Wanted, schema: pa.Schema) -> Iterator[pa.Table]:
    """The record part by part, each with its share of the metrics."""
    names = [*(column.name for column in _KEPT), "phase", "request_class", *_WORDS, *_RENAMED, *_TIMES]
    names += ["event_ns"] * wanted.token_times + ["text"] * wanted.answers
    record = run.samples.record
    origin, metrics, results = _origin(record), _metrics(run), _results(run)
    begin = 0
    for part in record_parts(run.folder.record, names):
        rows = slice(begin, begin + len(part))
        begin = rows.stop
        columns = {column.name: part[column.name] for column in _KEPT}
        columns |= {_PHASE.name: _named(part["phase"], {int(one): one.name.lower() for one in Phase})}
        classes = {at: printable(name) for at, name in enumerate(record.request_class.names)}
        columns |= {_CLASS.name: _named(part["request_class"], classes)}
        columns |= {column.name: clean(part[name]) for name, column in _WORDS.items()}
        columns |= {column.name: _requested(part, name) for name, column in _RENAMED.items()}
        columns |= {column.name: _since(part[name], origin, NS_PER_S) for name, column in _TIMES.items()}
        keys = list(zip(part["index"].to_pylist(), part["cycle"].to_pylist(), strict=True))
        judged = [results.get(key, (None, None)) for key in keys]
        columns |= {
            _TASK.name: pa.array([None if one is None else printable(one) for one, _ in judged], pa.string())
        }
        columns |= {_RESULT.name: pa.array([result for _, result in judged], pa.string())}
        columns |= {_SAMPLE.name: pa.array(record.samples[rows])}
        columns |= {name: pa.array(values[rows], from_pandas=True) for name, values in metrics.items()}
        if wanted.token_times:
            columns |= {EVENT_TIMES.name: _event_times(part)}
        if wanted.answers:
            columns |= {ANSWER.name: clean_text(part["text"])}
        yield pa.table([columns[name] for name in schema.names], schema=schema)


def _results(run: ExportedRun) -> dict[tuple[int, int], tuple[str, str]]:
    """Task and result of each request that was judged."""
    path = run.folder.tasks
    if not path.is_file():
        return {}
    table = tasks.read(path, run.summary.run.id).select(["index", "cycle", "task", "state"])
    return {(row["index"], row["cycle"]): (row["task"], row["state"]) for row in table.to_pylist()}


def _origin(record: Record) -> int:
    """When the first measured request was due; of a run without one, when the first of all was. ns."""
    due = record.t_intended[record.measured] if record.measured.any() else record.t_intended
    return int(due.min()) if len(due) else 0


def _metrics(run: ExportedRun) -> dict[str, Floats]:
    """Of each metric with one value a request: the values, one entry a row of the record; NaN where undefined."""
    found = {}
    for column in _METRICS:
        values = np.full(len(run.samples.record), np.nan)
        values[run.samples.rows] = values_of(run.samples, column.name)
        found[column.name] = values
    return found


def _named(codes: pa.ChunkedArray, names: dict[int, str]) -> pa.Array:
    """Names in the place of their numbers."""
    return pa.array([None if code is None else names.get(code) for code in codes.to_pylist()], pa.string())


def _requested(part: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of _RENAMED. Of a recorded step no length is requested, which the record holds as 0."""
    values = part[name]
    if not name.endswith("_asked"):
        return values
    return pc.if_else(pc.greater(values, 0), values, pa.scalar(None, values.type))


def _since(instants: pa.ChunkedArray, origin: int, unit: int) -> pa.ChunkedArray:
    """The difference is taken in whole nanoseconds and divided last."""
    return pc.divide(pc.cast(pc.subtract(instants, origin), pa.float64()), float(unit))


def _event_times(part: pa.Table) -> pa.Array:
    """Arrivals of a request's events from its sending; null: it was not sent."""
    pairs = zip(part["event_ns"].to_pylist(), part["t_submit"].to_pylist(), strict=True)
    times = [None if sent is None else [(one - sent) / NS_PER_MS for one in events] for events, sent in pairs]
    return pa.array(times, EVENT_TIMES.type)
