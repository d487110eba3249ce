"""A run as one request of Prometheus remote write 1.0: the families of `prometheus.py`, protobuf, compressed by snappy.

The specification (prometheus.io/docs/specs/remote_write_spec, version 1.0 of April 2023) has four messages, which use two of
protobuf's wire types; so they are written here, without generated code:

| message        | field            | number | wire type                    |
| -------------- | ---------------- | ------ | ---------------------------- |
| `WriteRequest` | `timeseries`     | 1      | 2: length, then bytes        |
| `TimeSeries`   | `labels`         | 1      | 2                            |
|                | `samples`        | 2      | 2                            |
| `Label`        | `name`, `value`  | 1, 2   | 2                            |
| `Sample`       | `value`          | 1      | 1: eight bytes, little-endian|
|                | `timestamp`      | 2      | 0: varint, ms since the epoch|

Labels are in the order of their names, `__name__` among them, and an empty one is left out. The samples stand at the end of the
measured phase. Snappy is the block format, not the framed one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from inferometer.exports.exported_run import ExportedRun, period_of
from inferometer.exports.formats import Push, Wanted
from inferometer.exports.prometheus import Family, Sample, families
from inferometer.units import NS_PER_MS

PUSH = Push(
    {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "snappy",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }
)
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def render(run: ExportedRun, _wanted: Wanted) -> bytes:
    """The body of the request."""
    at_ms = period_of(run.summary).end_ns // NS_PER_MS
    return compressed(write_request(families(run.summary), at_ms))


def compressed(message: bytes) -> bytes:
    """The message as a snappy block."""
    block: bytes = pa.compress(message, codec="snappy", asbytes=True)
    return block


def write_request(found: Sequence[Family], at_ms: int) -> bytes:
    """The message `WriteRequest`, all samples at one instant."""
    return b"".join(_nested(1, _time_series(sample, at_ms)) for family in found for sample in family.samples)


def _time_series(sample: Sample, at_ms: int) -> bytes:
    named = {"__name__": sample.name, **{name: value for name, value in sample.labels.items() if value}}
    labels = b"".join(
        _nested(1, _nested(1, name.encode()) + _nested(2, value.encode("utf-8", "replace")))
        for name, value in sorted(named.items())
    )
    value = _key(1, _FIXED64) + struct.pack("<d", sample.value)
    return labels + _nested(2, value + _key(2, _VARINT) + _varint(at_ms))


def _nested(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow. `value` is not negative."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
