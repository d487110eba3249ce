"""The requests that a load host needs, as bytes for the wire: the conductor's own file, without the bodies of what others send.

All rows stay where they are, so that a row has one number everywhere and a worker finds its share as it does on one machine;
only the bodies of measured requests that no worker of the host sends are empty. Rows of the warm-up and the lead-in, of which
any worker may be asked for any, and of a loop that goes through them again, are sent whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer.cluster.link import LinkLost
from inferometer.cluster.messages import FilePart
from inferometer.drive.share import Assignment
from inferometer.drive.shares import share_of
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import SCHEDULE, Phase

PART_BYTES = 1 << 20

Send = Callable[[bytes, bytes | None], None]
"""Takes the next bytes of a file, and with the last of them the digest of all."""


def needed(schedule: Schedule, workers: Collection[int], total: int, slots: int | None) -> NDArray[np.bool_]:
    """Which rows a host with these of all `total` workers may send in a load that goes through its requests once."""
    phases = schedule.table.column("phase").to_numpy()
    keep: NDArray[np.bool_] = phases != Phase.MEASURE
    for worker in workers:
        keep[share_of(schedule, Assignment(Phase.MEASURE, slots, worker, total)).own_rows()] = True
    return keep


def send_share(path: Path, keep: NDArray[np.bool_] | None, send: Send) -> None:
    """Send the schedule at `path` with the bodies of the rows to `keep`; None: of all."""
    if keep is None:
        send_file(path, send)
        return
    sink = _Parts(send)
    with pa.memory_map(str(path)) as source, pa.ipc.new_file(pa.PythonFile(sink, "w"), SCHEDULE) as writer:
        reader, first = pa.ipc.open_file(source), 0
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            writer.write_batch(_without(batch, ~keep[first : first + batch.num_rows]))
            first += batch.num_rows
    sink.finish()


def send_file(path: Path, send: Send) -> None:
    """Send a file as it is."""
    sink = _Parts(send)
    with path.open("rb") as source:
        while data := source.read(PART_BYTES):
            sink.write(data)
    sink.finish()


def _without(batch: pa.RecordBatch, emptied: NDArray[np.bool_]) -> pa.RecordBatch:
    """A batch in which these rows have no body and no recorded reply."""
    if not emptied.any():
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, empty in (("body", b""), ("reply", None)):
        column, kind = columns[name], SCHEDULE.field(name).type
        columns[name] = pa.compute.if_else(pa.array(emptied), pa.scalar(empty, kind), column)
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEDULE.names], schema=batch.schema)


class _Parts:
    """A file to write to, which hands on what it is given in parts of PART_BYTES, the last with the digest of all."""

    closed = False

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held = bytearray()
        self._digest = hashlib.blake2b(digest_size=32)

    def write(self, data: bytes) -> int:
        """Take the next bytes."""
        given = bytes(data)  # Arrow hands over a buffer that it uses again
        self._digest.update(given)
        self._held += given
        while len(self._held) > PART_BYTES:
            self._send(bytes(self._held[:PART_BYTES]), None)
            del self._held[:PART_BYTES]
        return len(given)

    def flush(self) -> None:
        """Nothing is held back on purpose."""

    def finish(self) -> None:
        """That is all."""
        self._send(bytes(self._held), self._digest.digest())


_ZSTD = pa.Codec("zstd")


def packed(name: str, data: bytes, digest: bytes | None = None) -> FilePart:
    """Bytes of a file for the wire: rows without a body are nearly nothing."""
    return FilePart(name, _ZSTD.compress(data, asbytes=True), len(data), digest)


def unpacked(part: FilePart) -> bytes:
    """What was packed. Raises LinkLost for what was not, or for more than a part holds."""
    if not 0 <= part.size <= PART_BYTES:
        raise LinkLost(f"{part.name[:40]!r}: a part of {part.size} bytes")
    try:
        data: bytes = _ZSTD.decompress(part.data, part.size, asbytes=True)
    except (OSError, pa.ArrowException) as cause:
        raise LinkLost(f"{part.name[:40]!r}: a part that does not unpack ({cause})") from cause
    return data


class ReceivedFile:
    """One of the two files of requests, as it arrives at a load host."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._digest = hashlib.blake2b(digest_size=32)

    def add(self, data: bytes) -> None:
        """Write the next bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._digest.update(data)

    def whole(self, digest: bytes) -> bool:
        """Whether what has been written is what was sent."""
        return self._digest.digest() == digest

    def close(self) -> None:
        """Nothing comes any more."""
        self._file.close()


def appended(path: Path, at: int, size: int) -> Iterator[bytes]:
    """The bytes of a file that grows, from `at` up to `size`, in parts."""
    with path.open("rb") as source:
        source.seek(at)
        while at < size:
            data = source.read(min(PART_BYTES, size - at))
            if not data:
                return
            at += len(data)
            yield data
