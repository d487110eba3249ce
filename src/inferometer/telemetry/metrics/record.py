"""The raw record of scrapes: what one scrape is, how it is a line, and how lines are read again.

One scrape a line, JSON in UTF-8, ended by a line feed. The first three members are always there:

| member         | type              | meaning                                                              |
| -------------- | ----------------- | -------------------------------------------------------------------- |
| `endpoint_url` | string            | the full URL that was asked, as it may be shown                      |
| `timestamp_ns` | integer           | wall clock at the first byte of the response, ns since the epoch      |
| `body`         | string or null    | the response as text; null where there is none, which `error` explains |
| `latency_ns`   | integer, optional | from the start of the request to the last byte of the body           |
| `content_type` | string, optional  | the response's header                                                |
| `phase`        | string, optional  | `baseline`, `warmup`, `profiling` or `final`                         |
| `error`        | string, optional  | a short code of why there is no body                                 |

`telemetry/scrapes.jsonl.zst` in a run's folder is these lines compressed with zstandard; plain lines are read as well. Other
members are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from inferometer.errors import RecordError
from inferometer.whole_file import check_regular

PHASES = ("baseline", "warmup", "profiling", "final")
LONGEST_LINE = 1 << 28
"""Bytes; a line beyond this is no scrape."""
UNPACKED, UNPACKED_TIMES = 1 << 30, 5_000
"""A compressed record that comes to more bytes than this, and to as many times its own, is made to take time."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 16
"""Bytes read at once, and so at most lost before the place where a compressed file ends too early."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of one endpoint, or why there is none. Times in ns; the table above says what each member is."""

    endpoint_url: str
    timestamp_ns: int
    body: str | None
    latency_ns: int | None = None
    content_type: str | None = None
    phase: str | None = None
    error: str | None = None


_decoder = msgspec.json.Decoder(Scrape)
_encoder = msgspec.json.Encoder()


def write(scrape: Scrape) -> bytes:
    """The scrape as one line, with the line feed; members that are None are left out, but for `body`."""
    members = {name: getattr(scrape, name) for name in Scrape.__slots__}
    return (
        _encoder.encode(
            {name: value for name, value in members.items() if value is not None or name == "body"}
        )
        + b"\n"
    )


def read(path: Path) -> Iterator[Scrape]:
    """The scrapes of a file, in its order, whether compressed or not.

    A run that was killed leaves a last line without its end, or a compressed frame without its end: what is whole before it is
    given. Raises RecordError, which names the file and the line, for anything else that is no scrape.
    """
    number = 0
    torn = b""
    for line, whole in _lines(path):
        number += 1
        if whole and line.strip():
            yield _scrape(path, number, line)
        elif not whole:
            torn = line
    if torn.strip():
        try:
            last = _scrape(path, number, torn)
        except RecordError:
            return  # the line that was being written when the run was killed
        yield last


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """The lines of a file without their line feeds; the second is whether there was one. Raises RecordError."""
    parts: list[bytes] = []
    waiting = number = 0
    for chunk in _chunks(path):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        waiting += len(first)
        if waiting > LONGEST_LINE:
            raise RecordError(f"{path}:{number + 1}: a line of more than {LONGEST_LINE} bytes is no scrape")
        for other in others:
            yield b"".join(parts), True
            parts, waiting = [other], len(other)
            number += 1
    yield b"".join(parts), False


def _scrape(path: Path, number: int, line: bytes) -> Scrape:
    """One line as a scrape. Raises RecordError."""
    try:
        scrape = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise RecordError(
            f"{path}:{number}: not a scrape ({wrong}); each line is a JSON object with endpoint_url, timestamp_ns and body"
        ) from wrong
    if scrape.body is None and scrape.error is None:
        raise RecordError(f"{path}:{number}: a scrape has a body, or an error that says why not")
    if not 0 <= scrape.timestamp_ns < 1 << 63:
        raise RecordError(
            f"{path}:{number}: timestamp_ns is nanoseconds since 1970, not {scrape.timestamp_ns}"
        )
    if scrape.phase is not None and scrape.phase not in PHASES:
        raise RecordError(f"{path}:{number}: phase is one of {', '.join(PHASES)}, not {scrape.phase!r}")
    return scrape


def _chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes, decompressed where they are compressed."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            compressed = file.read(4) == _ZSTD
            file.seek(0)
            if not compressed:
                yield from iter(lambda: file.read(_CHUNK), b"")
                return
            stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
            most, seen = max(UNPACKED, UNPACKED_TIMES * os.fstat(file.fileno()).st_size), 0
            while chunk := _decompressed(path, stream):
                seen += len(chunk)
                if seen > most:
                    raise RecordError(f"{path}: unpacks to more than {UNPACKED_TIMES:,} times its size")
                yield chunk
    except OSError as wrong:
        raise RecordError(f"{path}: cannot be read: {wrong.strerror or wrong}") from wrong


def _decompressed(path: Path, stream: pa.CompressedInputStream) -> bytes:
    """The next bytes; none at the end, nor where a frame ends too early. RecordError for what is not zstandard."""
    try:
        chunk: bytes = stream.read(_CHUNK)
    except OSError as wrong:
        if "truncated" in str(wrong).lower():
            return b""
        raise RecordError(f"{path}: damaged: {wrong}") from wrong
    return chunk
