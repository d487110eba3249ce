"""The sealed record as numpy columns.

One row is one request that ended. What a request has many of (its stream events) is ragged: one flat array of values and
one of offsets, row i owning `values[offsets[i]:offsets[i + 1]]`, taken from Arrow's buffers without a copy.

| Arrow                   | here                                                                      |
| ----------------------- | ------------------------------------------------------------------------- |
| integer, never null     | `int64` array                                                             |
| integer, may be null    | `Column`: `int64` values (0 where null) and a mask of the valid ones      |
| string                  | `Labels`: a code per row and the names the codes stand for                |
| list of times, classes  | `event_ns`, `event_class` over one array of offsets                       |
| list that may be null   | `emitted_ns` over `emitted_offsets`, empty where null                      |

Nanoseconds stay integers: a double holds them exactly for 104 days of uptime only. Differences are taken first and become
milliseconds last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inferometer.errors import RecordError
from inferometer.journal.schema import EventClass, Outcome, Phase
from inferometer.measure.event_waits import event_waits
from inferometer.units import NS_PER_MS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
TimestampSource = Literal["kernel", "user", "virtual", "modelled"]
"""Who timed the events: the kernel, the client after each poll, or nobody: the model's own instants (simulation/), as they are
or as the kernel of a client that reads late would have stamped them."""

TEXT_CLASSES = (EventClass.CONTENT, EventClass.REASONING, EventClass.TOOL_CALL)
_IS_TEXT = np.isin(np.arange(256), TEXT_CLASSES)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that may hold nulls: `values` (0 where null) and `valid`, both one entry a row."""

    values: Ints
    valid: Mask

    def __getitem__(self, rows: Any) -> Column:
        return Column(self.values[rows], self.valid[rows])


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names: `codes[i]` indexes `names`; -1 is null."""

    codes: Ints
    names: tuple[str, ...]

    def are(self, name: str) -> Mask:
        """Rows whose label is `name`."""
        mask: Mask = self.codes == (self.names.index(name) if name in self.names else -2)
        return mask

    def counts(self, rows: Mask) -> dict[str, int]:
        """How often each label occurs among `rows` (nulls left out), the most frequent first, ties by name."""
        chosen = self.codes[rows]
        tally = np.bincount(chosen[chosen >= 0], minlength=len(self.names))
        pairs = [(name, int(count)) for name, count in zip(self.names, tally, strict=True) if count]
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class Pulse:
    """The workers' health over time, one entry a pulse, in order of worker, then time. Times in ns."""

    worker: Ints
    t_ns: Ints
    cpu_ns: Ints
    reads: Ints
    stall_max_ns: Ints
    clock_offset_ns: Ints
    run_delay_ns: Column

    @classmethod
    def from_table(cls, table: pa.Table) -> Pulse:
        """From a PULSE table; a missing column is a RecordError."""
        worker, t_ns = _ints(table, "worker"), _ints(table, "t_ns")
        order = np.lexsort((t_ns, worker))
        rest = ("cpu_ns", "reads", "stall_max_ns", "clock_offset_ns")
        ints = {name: _ints(table, name)[order] for name in rest}
        return cls(worker[order], t_ns[order], **ints, run_delay_ns=_column(table, "run_delay_ns")[order])


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace that was replayed, as run.json has it.

    rows             arrivals of the plan's window, all of which are due
    rate             requests per second of it; None where all come at once
    shares_prefixes  whether prompts begin alike by the trace's wish
    unprepared       requests that were not yet made when they were due
    unprepared_ms    the longest that one of them was made late
    best_hits        the best possible share of prompt tokens in a prefix cache; None: not known
    """

    rows: int
    rate: float | None
    shares_prefixes: bool
    unprepared: int
    unprepared_ms: float
    best_hits: float | None


@dataclass(frozen=True, slots=True)
class OwnCpu:
    """What the instrument's processes other than the workers took while the load was measured, as run.json has it.

    elapsed_s    from the order to start until the last worker was done
    conductor_s  CPU time of the process that conducts the run: progress display, interrupts, requests of a long trace
    scraper_s    CPU time of the scraper of metrics, to the clock tick; None: there was none, or it died
    cores        that the processes of the run may use
    """

    elapsed_s: float
    conductor_s: float
    scraper_s: float | None
    cores: int

    @property
    def fraction(self) -> float | None:
        """CPU time of both as a share of the elapsed time; None if none passed."""
        spent = self.conductor_s + (self.scraper_s or 0.0)
        return spent / self.elapsed_s if self.elapsed_s > 0 else None


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that ended before its time, as run.json has it.

    worker      which, counted from 0
    phase       the phase that was running or the last that had (0 warm-up, 1 measurement)
    exit_code   of its process; -9: killed by signal 9
    sent        requests it had sent by then, warm-up included, at least
    load_share  its share of the load: of the slots in closed loop, of the arrivals in open loop
    requests    measured requests that were its by the schedule; None where the schedule does not fix them
    shortage    code of what the machine ran out of (errors.py), if it lived to say so
    """

    worker: int
    phase: int
    exit_code: int | None
    sent: int
    load_share: float
    requests: int | None
    shortage: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Record:
    """Every request that ended, warm-up included, and the workers' pulses.

    `event_wait_ns`: how much earlier than its stamp each event may have come; 0 throughout, and `waits_known` False, in a
    record of an earlier version, which does not say.

    `interrupted` says a person stopped the run; `deaths` are the workers that died in it; `replay` is the trace
    that it replayed, if any.
    """

    index: Ints
    attempts: Ints
    measured: Mask
    lead: Mask
    worker: Ints
    t_intended: Ints
    t_taken: Ints
    t_connect: Column
    t_connected: Column
    t_tls: Column
    t_send: Column
    t_submit: Column
    submit_ns: Column
    t_end: Ints
    event_ns: Ints
    event_class: NDArray[np.uint8]
    event_offsets: Ints
    emitted_ns: Ints
    emitted_offsets: Ints
    event_wait_ns: Ints
    waits_known: bool
    first_text: Ints
    first_visible: Ints
    first_answer: Ints
    outcome: Labels
    status: Column
    finish_reason: Labels
    text_chars: Column
    text_bytes: Column
    text_lossy: Mask
    text_unseen: Ints
    text_words: Ints
    usage_input: Column
    usage_output: Column
    usage_cached: Column
    usage_reasoning: Column
    lag_ns: Ints
    input_tokens_asked: Ints
    input_tokens_sent: Ints
    output_tokens_asked: Ints
    input_tokens_shared: Ints
    input_tokens_repeated: Ints
    cycle: Ints
    turn: Ints
    turns: Ints
    session: Column
    user: Column
    due_ns: Column
    server_load_ns: Column
    server_prefill_ns: Column
    output_tokens_local: Column
    request_class: Labels
    pulse: Pulse
    timestamp_source: TimestampSource
    interrupted: bool
    deaths: tuple[Death, ...]
    replay: Replay | None
    single_use: bool
    own_cpu: OwnCpu | None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def ok(self) -> Mask:
        """Rows that succeeded, warm-up included (draft 4.2.6)."""
        return self.outcome.are(Outcome.OK)

    @property
    def of_load(self) -> Mask:
        """Rows that were the server's load while it was measured: measured ones, and the lead-in and lead-out around them."""
        return self.measured | self.lead

    @property
    def simulated(self) -> bool:
        """Whether time was virtual: no server, no sockets, no clock."""
        return self.timestamp_source in ("virtual", "modelled")

    @property
    def client_modelled(self) -> bool:
        """Whether a client that sends or reads late was simulated, which can be judged."""
        return self.timestamp_source == "modelled"

    @property
    def samples(self) -> Mask:
        """Rows that latency metrics are made of: measured phase and successful (docs/definitions.md)."""
        return self.measured & self.ok

    @property
    def opened(self) -> Mask:
        """Rows for which a connection was opened: once they had been taken up. One opened before was not opened for them."""
        mask: Mask = self.t_connect.valid & (self.t_connect.values >= self.t_taken)
        return mask

    @property
    def event_is_text(self) -> Mask:
        """Per event: does it carry generated text, white space included?"""
        mask: Mask = _IS_TEXT[self.event_class]
        return mask

    @classmethod
    def from_tables(
        cls,
        record: pa.Table,
        pulse: pa.Table,
        *,
        interrupted: bool = False,
        timestamp_source: TimestampSource | None = None,
        deaths: Iterable[Death] = (),
        replay: Replay | None = None,
        classes: Sequence[str] = (),
        single_use: bool = False,
        own_cpu: OwnCpu | None = None,
    ) -> Record:
        """Read a RECORD table and a PULSE table (journal/schema.py). `classes`: the names of the requests' classes.
        `single_use`: see RunFacts.

        `timestamp_source` None: "kernel" if any pulse counted a read with a kernel stamp. Raises RecordError where the tables
        contradict themselves.
        """
        pulses = Pulse.from_table(pulse)
        event_ns, offsets = _ragged(record, "event_ns")
        emitted_ns, emitted_offsets = _ragged(record, "emitted_ns")
        event_class, class_offsets = _bytes(record, "event_class")
        if not np.array_equal(np.diff(offsets), np.diff(class_offsets)):
            raise RecordError("the record is damaged: a request has not as many event classes as event times")
        columns: dict[str, Any] = {name: _ints(record, name) for name in _REQUIRED}
        columns |= {name: _column(record, name) for name in _NULLABLE}
        firsts: dict[str, Any] = {
            name: _ints(record, name) for name in ("first_text", "first_visible", "first_answer")
        }
        counts = np.diff(offsets)
        for name, at in firsts.items():
            if bool(((at >= counts) | (at < -1)).any()):
                raise RecordError(f"the record is damaged: {name} points past a request's last event")
        worker = _ints(record, "worker")
        source = timestamp_source or ("kernel" if int(pulses.reads.sum()) else "user")
        waits, waits_known = _waits(record, source, event_ns, offsets, columns)
        return cls(
            **columns,
            **firsts,
            measured=_ints(record, "phase") == Phase.MEASURE,
            lead=_ints(record, "phase") == Phase.LEAD,
            worker=worker,
            event_ns=event_ns,
            event_class=event_class,
            event_offsets=offsets,
            emitted_ns=emitted_ns,
            emitted_offsets=emitted_offsets,
            event_wait_ns=waits,
            waits_known=waits_known,
            outcome=_labels(record, "outcome"),
            finish_reason=_labels(record, "finish_reason"),
            text_chars=_column(record, "text", pc.utf8_length),
            text_bytes=_column(record, "text", _shown_bytes),
            text_lossy=_column(record, "text", _lossy).values > 0,
            text_unseen=_column(record, "text", _unseen).values,
            text_words=_column(record, "text", _words).values,
            request_class=_classed(record, classes),
            pulse=pulses,
            timestamp_source=source,
            interrupted=interrupted,
            deaths=tuple(deaths),
            replay=replay,
            single_use=single_use,
            own_cpu=own_cpu,
        )


_REQUIRED = (
    "index",
    "attempts",
    "t_intended",
    "t_taken",
    "t_end",
    "lag_ns",
    "input_tokens_asked",
    "input_tokens_sent",
    "output_tokens_asked",
    "input_tokens_shared",
    "input_tokens_repeated",
    "cycle",
    "turn",
    "turns",
)
_NULLABLE = (
    "t_connect",
    "t_connected",
    "t_tls",
    "t_send",
    "t_submit",
    "submit_ns",
    "status",
    "usage_input",
    "usage_output",
    "usage_cached",
    "usage_reasoning",
    "server_load_ns",
    "server_prefill_ns",
    "output_tokens_local",
    "session",
    "user",
    "due_ns",
)


def _waits(
    record: pa.Table, source: TimestampSource, event_ns: Ints, offsets: Ints, columns: dict[str, Any]
) -> tuple[Ints, bool]:
    """How much earlier each event may have come, and whether that is known. Without kernel stamps a read is stamped when it is
    done, late by the longest wait of its answer's reads at most."""
    merged = _chunked(record, "merged_event")
    if merged.null_count:
        return np.zeros(len(event_ns), np.int64), False
    sizes = np.diff(offsets)
    if source == "user":
        waits = np.repeat(columns["lag_ns"], sizes)
    else:
        at, each = _ragged(record, "merged_event")
        waited, _ = _ragged(record, "merged_ns")
        begun = at.astype(np.int64) + np.repeat(offsets[:-1], np.diff(each))
        inside = (begun >= 0) & (begun < len(event_ns))  # events that a fault cut off are not there
        waits = event_waits(event_ns, offsets, begun[inside], waited[inside])
    submit = columns["t_submit"]
    since = event_ns - np.repeat(submit.values, sizes)
    return np.where(np.repeat(submit.valid, sizes), np.clip(since, 0, waits), waits), True


_UNSEEN = (
    "[\\x00-\\x08\\x0e-\\x1f\\x7f\\p{Cf}\\x{115f}\\x{1160}\\x{3164}\\x{ffa0}\\x{2800}\\x{fe00}-\\x{fe0f}]"
)
"""Characters that nobody sees and that are no white space; more of them in engines/visibility.py."""


def _shown_bytes(texts: Any) -> Any:
    """UTF-8 bytes of each text without what nobody sees."""
    return pc.binary_length(pc.replace_substring_regex(texts, _UNSEEN, ""))


_JOINED = "([^\\x00-\\x7f\\p{Cf}\\x{2800}])" + _UNSEEN + "{1,2}"
"""A character beyond ASCII, and what joins it to the next or says how it is drawn: parts of one sign."""


def _unseen(texts: Any) -> Any:
    """Characters that nobody sees, but for those that belong to a sign that is seen."""
    alone = pc.replace_substring_regex(texts, _JOINED, "\\1")
    return pc.subtract(pc.utf8_length(alone), pc.utf8_length(pc.replace_substring_regex(alone, _UNSEEN, "")))


def _words(texts: Any) -> Any:
    """Words of each text: what stands between white space and can be seen. No tokenizer in use makes one token of two, since
    they all cut a text at its white space first, so these are the fewest tokens that it can have."""
    return pc.count_substring_regex(pc.replace_substring_regex(texts, _UNSEEN, ""), "\\S+")


def _lossy(texts: Any) -> Any:
    """1 where a text holds the replacement character U+FFFD, else 0; null where there is none."""
    return pc.cast(pc.match_substring(texts, "\ufffd"), pa.int64())


def _chunked(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise RecordError(f"the record has no column `{name}`")
    return table.column(name)


def _ints(table: pa.Table, name: str) -> Ints:
    column = _chunked(table, name)
    if column.null_count:
        raise RecordError(f"the record is damaged: column `{name}` holds nulls")
    return np.asarray(column.to_numpy(), np.int64)


def _column(table: pa.Table, name: str, through: Any = None) -> Column:
    column = _chunked(table, name)
    if through is not None:
        column = through(column)
    # pyarrow turns integers with nulls into doubles; filling them first keeps every nanosecond.
    values = np.asarray(pc.fill_null(column, 0).to_numpy(), np.int64)
    return Column(values, np.asarray(pc.is_valid(column).to_numpy(), np.bool_))


def _labels(table: pa.Table, name: str) -> Labels:
    coded = _one_array(table, name, pa.string()).dictionary_encode()
    codes = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    return Labels(codes, tuple(coded.dictionary.to_pylist()))


def _classed(table: pa.Table, names: Sequence[str]) -> Labels:
    column = _column(table, "request_class")
    codes = np.where(column.valid, column.values, -1)
    if bool((codes >= len(names)).any()):
        raise RecordError("the record is damaged: a request is of a class that has no name")
    return Labels(codes, tuple(names))


def _one_array(table: pa.Table, name: str, empty: pa.DataType) -> pa.Array:
    chunks = _chunked(table, name).chunks
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.array([], empty)


def _ragged(table: pa.Table, name: str) -> tuple[Ints, Ints]:
    array = _one_array(table, name, pa.list_(pa.int64()))
    offsets = np.asarray(array.offsets.to_numpy(), np.int64)
    values = np.asarray(array.values.to_numpy(zero_copy_only=False), np.int64)
    return values[offsets[0] : offsets[-1]], offsets - offsets[
        0
    ]  # a sliced table owns only a part of the values


def _bytes(table: pa.Table, name: str) -> tuple[NDArray[np.uint8], Ints]:
    array = _one_array(table, name, pa.binary())
    _, offset_buffer, data = array.buffers()
    if len(array) == 0 or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    raw = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    offsets = raw.astype(np.int64)
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return values[offsets[0] : offsets[-1]], offsets - offsets[0]


def between_ms(start: Column | Ints, end: Column | Ints) -> Floats:
    """`end - start` in ms, one entry a row; NaN where either is null."""
    first, first_valid = _parts(start)
    last, last_valid = _parts(end)
    return np.where(first_valid & last_valid, (last - first) / NS_PER_MS, np.nan)


def _parts(column: Column | Ints) -> tuple[Ints, Mask | np.bool_]:
    return (column.values, column.valid) if isinstance(column, Column) else (column, np.bool_(True))
