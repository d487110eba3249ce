"""The streams of a load host's journal on the conductor's clock: raw rows, every instant of a row moved by one and the same
offset.

    t_conductor = t_host + offset(t_intended)

Differences within a request, from which every latency and the lateness come, stay what they were on the host's own clock to the
nanosecond; what is uncertain is where the row as a whole lies among those of other hosts, by the bound of the clock's fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inferometer.errors import RecordError
from inferometer.journal.schema import OUTCOME, PULSE, TIMES
from inferometer.journal.stream_batches import StreamBatches
from inferometer.whole_file import replacing

Offsets = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""From instants of a host's clock to what the conductor's shows beyond it then; ns, same shape."""


def moved_outcomes(batch: pa.RecordBatch, offsets: Offsets) -> pa.RecordBatch:
    """A batch of OUTCOME on the conductor's clock."""
    shift = offsets(batch.column("t_intended").to_numpy())
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in TIMES:
        columns[name] = pc.add(columns[name], pa.array(shift))
    events = columns["event_ns"]
    counts = np.diff(events.offsets.to_numpy())
    values = events.flatten().to_numpy() + np.repeat(shift, counts)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    columns["event_ns"] = pa.ListArray.from_arrays(pa.array(starts), pa.array(values, pa.int64()))
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def moved_pulses(batch: pa.RecordBatch, offsets: Offsets) -> pa.RecordBatch:
    """A batch of PULSE on the conductor's clock; wall time stays the host's."""
    at = batch.column("t_ns").to_numpy()
    shift = offsets(at)
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["t_ns"] = pa.array(at + shift)
    columns["clock_offset_ns"] = pc.subtract(columns["clock_offset_ns"], pa.array(shift))
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def move(raw: Path, target: Path, offsets: Offsets) -> None:
    """Write a host's stream, as far as it is whole, on the conductor's clock; it appears at once. One that was cut off stays
    without its end mark, as its reader expects it. Raises RecordError for what is no stream of this version."""
    stream = StreamBatches(raw)
    if stream.schema is None:
        target.write_bytes(b"")
        return
    kinds = {kind.metadata[b"inferometer"]: (kind, how) for kind, how in _KINDS}
    kind, moved = kinds.get((stream.schema.metadata or {}).get(b"inferometer", b""), (None, None))
    if kind is None or moved is None or not stream.schema.equals(kind):
        raise RecordError(f"{raw.name}: is no stream of this version")
    with replacing(target) as part, pa.OSFile(str(part), "wb") as sink:
        writer = pa.ipc.new_stream(sink, stream.schema)
        for batch in _batches(stream):
            writer.write_batch(moved(batch, offsets))
        if stream.whole:
            writer.close()


def _batches(stream: StreamBatches) -> Iterator[pa.RecordBatch]:
    return (batch for _, _, batch in stream)


_KINDS = ((OUTCOME, moved_outcomes), (PULSE, moved_pulses))
