"""The sealed record as numpy columns.

One row is one request that ended. What a request has many of (its stream events) is ragged: one flat array of values and
one of offsets, row i owning `values[offsets[i]:offsets[i + 1]]`.

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
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inferometer.errors import RecordError
from inferometer.journal import text_counts
from inferometer.journal.schema import EventClass, Outcome, Phase
from inferometer.measure.event_waits import event_waits
from inferometer.measure.large_arrays import Appended, held, held_property, order_by, pieces
from inferometer.measure.load_hosts import LoadHost
from inferometer.measure.record_columns import (
    LONGEST,
    Array,
    GatheredColumn,
    GatheredLists,
    GatheredNames,
    check_range,
    chunked,
    filled,
    ints,
    ragged,
    ragged_bytes,
)
from inferometer.units import NS_PER_MS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
TimestampSource = Literal["kernel", "user", "virtual", "modelled"]
"""Who timed the events: the kernel, the client after each poll, or nobody: the model's own instants (simulation/), as they are
or as the kernel of a client that reads late would have stamped them."""

TEXT_CLASSES = (EventClass.CONTENT, EventClass.REASONING, EventClass.TOOL_CALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that may hold nulls: `values` (0 where null) and `valid`, both one entry a row."""

    values: Ints
    valid: Mask

    def __getitem__(self, rows: Any) -> Column:
        return Column(self.values[rows], self.valid[rows])


MOST_COUNTED, REST = 32, "(others)"
"""Labels that are told by name, and what the others are told as: servers may invent one for each answer."""


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
        """How often each label occurs among `rows` (nulls left out), the most frequent first, ties by name; those beyond
        MOST_COUNTED together under REST."""
        chosen = self.codes[rows]
        tally = np.bincount(chosen[chosen >= 0], minlength=len(self.names))
        pairs = [(name, int(count)) for name, count in zip(self.names, tally, strict=True) if count]
        pairs.sort(key=lambda pair: (-pair[1], pair[0]))
        found = dict(pairs[:MOST_COUNTED])
        rest = sum(count for _, count in pairs[MOST_COUNTED:])
        return found | ({REST: found.get(REST, 0) + rest} if rest else {})


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
        worker, t_ns = (ints(table, name).astype(np.int64) for name in ("worker", "t_ns"))
        order = np.lexsort((t_ns, worker))
        rest = ("cpu_ns", "reads", "stall_max_ns", "clock_offset_ns")
        columns = {name: ints(table, name).astype(np.int64)[order] for name in rest}
        waited = chunked(table, "run_delay_ns")
        delays = Column(filled(waited).astype(np.int64), np.asarray(pc.is_valid(waited).to_numpy(), np.bool_))
        return cls(worker[order], t_ns[order], **columns, run_delay_ns=delays[order])


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
class UsageColumns:
    """What a compound system says of the tokens of all its steps, one entry a request (draft 4.1.3)."""

    input: Column
    output: Column
    cached: Column


@dataclass(frozen=True)
class Record:
    """Every request that ended, warm-up included, and the workers' pulses.

    `event_wait_ns`: how much earlier than its stamp each event may have come; 0 throughout, and `waits_known` False, in a
    record of an earlier version, which does not say.

    `interrupted` says a person stopped the run; `deaths` are the workers that died in it; `replay` is the trace
    that it replayed, if any. `hosts`: those that sent the load together; none: one machine did. `system_usage`: of a compound
    system what its usage said; its requests have no usage of their own then (`apart_from_system`).
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
    answered_as: Labels
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
    hosts: tuple[LoadHost, ...]
    system_usage: UsageColumns | None = None
    cached_overstated: int = 0
    """Measured requests whose server claims more cached tokens than the prompt has: no value in `usage_cached`."""

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
    def input_tokens(self) -> Floats:
        """Prompt tokens by the declared tokenizer, NaN where it counted none: a step of a recorded session is as long as what
        its session said before."""
        sent = self.input_tokens_sent.astype(np.float64)
        sent[self.input_tokens_sent <= 0] = np.nan
        return sent

    def apart_from_system(self) -> Record:
        """The same with usage as a compound system's word of itself (draft 4.1.3): it counts calls that the user never sees,
        so no figure of what the user sees may rest on it."""
        none = Column(np.broadcast_to(np.int64(0), len(self)), np.broadcast_to(np.bool_(False), len(self)))
        usage = UsageColumns(self.usage_input, self.usage_output, self.usage_cached)
        return replace(
            self,
            usage_input=none,
            usage_output=none,
            usage_cached=none,
            usage_reasoning=none,
            system_usage=usage,
        )

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

    @held_property
    def sent_rows(self) -> Ints:
        """Rows of the measured requests that were sent, in order of t_submit."""
        rows = np.flatnonzero(self.measured & self.t_submit.valid)
        ordered: Ints = rows[order_by(self.t_submit.values[rows], self.index[rows])]
        return ordered

    @property
    def event_is_text(self) -> Mask:
        """Per event: does it carry generated text, white space included?"""
        return is_text(self.event_class)

    @classmethod
    def from_tables(
        cls,
        record: pa.Table | Iterable[pa.Table],
        pulse: pa.Table,
        *,
        interrupted: bool = False,
        timestamp_source: TimestampSource | None = None,
        deaths: Iterable[Death] = (),
        replay: Replay | None = None,
        classes: Sequence[str] = (),
        single_use: bool = False,
        own_cpu: OwnCpu | None = None,
        hosts: Iterable[LoadHost] = (),
    ) -> Record:
        """Read a RECORD table, whole or in parts, and a PULSE table (journal/schema.py). `classes`: the names of the requests'
        classes. `single_use`: see RunFacts.

        `timestamp_source` None: "kernel" if any pulse counted a read with a kernel stamp. Raises RecordError where the tables
        contradict themselves.
        """
        pulses = Pulse.from_table(pulse)
        source = timestamp_source or ("kernel" if int(pulses.reads.sum()) else "user")
        parts = _Parts(source)
        for part in [record] if isinstance(record, pa.Table) else record:
            parts.add(part)
        return cls(
            **parts.fields(classes),
            pulse=pulses,
            timestamp_source=source,
            interrupted=interrupted,
            deaths=tuple(deaths),
            replay=replay,
            single_use=single_use,
            own_cpu=own_cpu,
            hosts=tuple(hosts),
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


_FIRSTS = ("first_text", "first_visible", "first_answer")
COLUMNS = (
    *_REQUIRED,
    *_NULLABLE,
    *_FIRSTS,
    *("phase", "worker", "event_ns", "event_class", "emitted_ns", "merged_event", "merged_ns"),
    *("outcome", "finish_reason", "answered_as", "request_class", *text_counts.NAMES),
)
"""What is read of a RECORD table; of one of an earlier version `text` as well."""


_INSTANTS = (
    "t_intended",
    "t_taken",
    "t_connect",
    "t_connected",
    "t_tls",
    "t_send",
    "t_submit",
    "t_end",
    "due_ns",
)
_COUNTS = (
    *("input_tokens_asked", "input_tokens_sent", "output_tokens_asked"),
    *("input_tokens_shared", "input_tokens_repeated", "output_tokens_local"),
    *("usage_input", "usage_output", "usage_cached", "usage_reasoning"),
    *text_counts.NAMES,
)


def _possible(name: str, values: Array) -> Array:
    """A column of a part, 0 where null. Raises RecordError for an instant that is out of all time and a count below 0."""
    if name in _INSTANTS:
        check_range(name, values, -LONGEST)
    elif name in _COUNTS:
        check_range(name, values, 0)
    return values


class _Parts:
    """The columns of a record as it is read part by part."""

    def __init__(self, source: TimestampSource) -> None:
        self._source = source
        names = ("phase", "worker", "text_lossy", "text_unseen", "text_words", *_REQUIRED, *_FIRSTS)
        self._ints = {name: Appended(np.int64) for name in names}
        columns = ("request_class", "text_chars", "text_bytes", *_NULLABLE)
        self._columns = {name: GatheredColumn() for name in columns}
        self._names = {name: GatheredNames() for name in ("outcome", "finish_reason", "answered_as")}
        self._events, self._emitted = GatheredLists(np.int64), GatheredLists(np.int64)
        self._classes, self._waits = Appended(np.uint8), Appended(np.int64)
        self._waits_known = True

    def add(self, part: pa.Table) -> None:
        """The next rows. Raises RecordError where they contradict themselves, or hold what cannot be."""
        for name in (*_REQUIRED, *_FIRSTS, "phase", "worker"):
            self._ints[name].add(_possible(name, ints(part, name)))
        for name in ("request_class", *_NULLABLE):
            _possible(name, filled(chunked(part, name)))
            self._columns[name].add(chunked(part, name))
        for name, names in self._names.items():
            names.add(chunked(part, name))
        counted = _text_counts(part)
        for name in ("text_chars", "text_bytes"):
            _possible(name, filled(counted[name]))
            self._columns[name].add(counted[name])
        for name in ("text_lossy", "text_unseen", "text_words"):
            self._ints[name].add(_possible(name, filled(counted[name].cast(pa.int32()))))
        self._add_events(part)

    def _add_events(self, part: pa.Table) -> None:
        event_ns, offsets = ragged(part, "event_ns")
        check_range("event_ns", event_ns, -LONGEST)
        event_class, class_offsets = ragged_bytes(part, "event_class")
        counts = np.diff(offsets)
        if not np.array_equal(counts, np.diff(class_offsets)):
            raise RecordError("the record is damaged: a request has not as many event classes as event times")
        for name in _FIRSTS:
            at = ints(part, name)
            if bool(((at >= counts) | (at < -1)).any()):
                raise RecordError(f"the record is damaged: {name} points past a request's last event")
        waits = _waits(part, self._source, event_ns, offsets)
        self._waits_known = self._waits_known and waits is not None
        self._waits.add(np.broadcast_to(np.int64(0), len(event_ns)) if waits is None else waits)
        self._events.add(event_ns, offsets)
        self._classes.add(event_class)
        self._emitted.add(*ragged(part, "emitted_ns"))

    def fields(self, classes: Sequence[str]) -> dict[str, Any]:
        """Those of a Record, after which this is empty."""
        fields: dict[str, Any] = {name: gathered.whole() for name, gathered in self._ints.items()}
        fields |= {name: Column(*gathered.whole()) for name, gathered in self._columns.items()}
        fields |= {name: Labels(*gathered.whole()) for name, gathered in self._names.items()}
        phase = fields.pop("phase")
        fields["measured"], fields["lead"] = phase == Phase.MEASURE, phase == Phase.LEAD
        cached, prompt = fields["usage_cached"], fields["usage_input"]
        over = cached.valid & prompt.valid & (cached.values > prompt.values)  # a part larger than its whole
        fields["usage_cached"] = Column(np.where(over, 0, cached.values), cached.valid & ~over)
        fields["cached_overstated"] = int((over & fields["measured"]).sum())
        fields["text_lossy"] = fields["text_lossy"] > 0
        fields["request_class"] = _classed(fields["request_class"], classes)
        fields["event_ns"], fields["event_offsets"] = self._events.whole()
        fields["emitted_ns"], fields["emitted_offsets"] = self._emitted.whole()
        fields["event_class"], waits = self._classes.whole(), self._waits.whole()
        known = fields["waits_known"] = self._waits_known
        fields["event_wait_ns"] = waits if known else np.broadcast_to(np.int64(0), len(waits))
        return fields


def _waits(record: pa.Table, source: TimestampSource, event_ns: Ints, offsets: Ints) -> Ints | None:
    """How much earlier each event may have come; None: not known. Without kernel stamps a read is stamped when it is
    done, late by the longest wait of its answer's reads at most."""
    if chunked(record, "merged_event").null_count:
        return None
    sizes = np.diff(offsets)
    if source == "user":
        waits = np.repeat(ints(record, "lag_ns"), sizes)
    else:
        at, each = ragged(record, "merged_event")
        if not len(at):
            return np.broadcast_to(np.int64(0), len(event_ns))
        waited, _ = ragged(record, "merged_ns")
        begun = at.astype(np.int64) + np.repeat(offsets[:-1], np.diff(each))
        inside = (begun >= 0) & (begun < len(event_ns))  # events that a fault cut off are not there
        waits = event_waits(event_ns, offsets, begun[inside], waited[inside])
    submit = chunked(record, "t_submit")
    since = event_ns - np.repeat(filled(submit), sizes)
    sent = np.asarray(pc.is_valid(submit).to_numpy(), np.bool_)
    return np.where(np.repeat(sent, sizes), np.clip(since, 0, waits), waits)


def _text_counts(part: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The counts of the record, or, in one of an earlier version, of its texts."""
    if "text" in part.column_names and chunked(part, "text_chars").null_count == len(part):
        texts = part.column("text")
        counted = [text_counts.text_counts(chunk) for chunk in texts.chunks] or [
            text_counts.text_counts(pa.array([], pa.string()))
        ]
        columns = map(pa.chunked_array, zip(*counted, strict=True))
        return dict(zip(text_counts.NAMES, columns, strict=True))
    return {name: chunked(part, name) for name in text_counts.NAMES}


def _classed(column: Column, names: Sequence[str]) -> Labels:
    codes = np.where(column.valid, column.values, -1)
    if bool((codes >= len(names)).any()):
        raise RecordError("the record is damaged: a request is of a class that has no name")
    return Labels(held(codes), tuple(names))


def is_text(classes: NDArray[np.uint8]) -> Mask:
    """Which of these events carry generated text."""
    found: Mask = classes == int(TEXT_CLASSES[0])
    for kind in TEXT_CLASSES[1:]:
        found |= classes == int(kind)
    return found


def counted(chosen: Mask, offsets: Ints) -> Ints:
    """How many of each row's entries are `chosen`; row i owns `chosen[offsets[i]:offsets[i + 1]]`."""
    found = np.zeros(len(offsets) - 1, np.int64)
    if not chosen.any():
        return found
    for rows, entries in pieces(offsets):
        starts = offsets[rows] - entries.start
        some = offsets[rows.start + 1 : rows.stop + 1] > offsets[rows]
        if some.any():  # reduceat would give an empty row its neighbour's entry
            these = chosen[entries].view(np.uint8)
            found[rows][some] = np.add.reduceat(these, starts[some], dtype=np.int32)
    return found


def between_ms(start: Column | Ints, end: Column | Ints) -> Floats:
    """`end - start` in ms, one entry a row; NaN where either is null."""
    first, first_valid = _parts(start)
    last, last_valid = _parts(end)
    return np.where(first_valid & last_valid, (last - first) / NS_PER_MS, np.nan)


def _parts(column: Column | Ints) -> tuple[Ints, Mask | np.bool_]:
    return (column.values, column.valid) if isinstance(column, Column) else (column, np.bool_(True))
