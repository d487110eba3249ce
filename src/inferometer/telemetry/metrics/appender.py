"""The record of scrapes on disk: frames that can each be read without those behind them, appended by a thread of its own, so
that a disk that is slow or hangs holds up neither a scrape nor an order.

| a write          | then                                                                                                |
| ---------------- | --------------------------------------------------------------------------------------------------- |
| succeeds         | the record has one whole frame more                                                                 |
| fails            | its frame waits and is tried again; what the failure left of it in the file is cut off first        |
| fails for long   | HELD_BYTES of frames wait, and HELD_BYTES of scrapes; further ones are lost and counted (`failed`)  |
"""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

import pyarrow as pa

from inferometer.errors import SHORTAGES, shortage_of
from inferometer.telemetry.metrics import record
from inferometer.telemetry.metrics.record import Scrape

FLUSH_S = 1.0
"""At most so much is lost if this process is killed."""
FLUSH_BYTES = 16 << 20
"""Of scrapes; more than that is written before the second is over."""
HELD_BYTES = 32 << 20
LEVEL = 1
"""Of zstandard: scrapes are so alike that a higher one takes longer and saves little (docs/server-metrics.md)."""


class Appender(threading.Thread):
    """Takes scrapes from any thread; the file is made when there is something to write."""

    def __init__(self, path: Path, held_bytes: int = HELD_BYTES) -> None:
        super().__init__(daemon=True)
        self._path, self._held_bytes = path, held_bytes
        self._codec = pa.Codec("zstd", compression_level=LEVEL)
        self._changed = threading.Condition()
        self._waiting: list[Scrape] = []
        self._size = 0
        self._over = False
        self._lost = 0
        # Of the one who writes.
        self._frames: deque[tuple[bytes, int]] = deque()
        self._held = 0
        self._whole: int | None = None  # bytes of the file that are whole frames
        self._why: str | None = None

    @property
    def failed(self) -> str | None:
        """Why the record lacks scrapes; None: it lacks none."""
        if self._over and self.is_alive():
            return "the disk does not answer"
        missing = self._lost + sum(scrapes for _, scrapes in self._frames)
        return f"{self._why}: {missing} scrapes are lost" if missing else None

    def add(self, scrape: Scrape) -> None:
        """Take one scrape; never waits for the disk."""
        with self._changed:
            if self._size > self._held_bytes:
                self._lost += 1
                return
            self._waiting.append(scrape)
            self._size += len(scrape.body or "")
            if self._size > FLUSH_BYTES:
                self._changed.notify()

    def close(self, patience_s: float) -> None:
        """Write what waits, for as long at most."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self.join(patience_s)

    def run(self) -> None:
        """Write once in FLUSH_S, until it is closed."""
        over = False
        while not over:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._size > FLUSH_BYTES, FLUSH_S)
                over = self._over
            self.flush()

    def flush(self) -> None:
        """Hand what waits to the kernel, as far as it takes it. For one thread."""
        with self._changed:
            scrapes, self._waiting, self._size = self._waiting, [], 0
        try:
            if scrapes:
                self._hold(
                    self._codec.compress(b"".join(map(record.write, scrapes)), asbytes=True), len(scrapes)
                )
            while self._frames:
                self._append(self._frames[0][0])
                frame, _ = self._frames.popleft()
                self._held -= len(frame)
        except (OSError, MemoryError) as cause:
            shortage = shortage_of(cause)
            words = cause.strerror if isinstance(cause, OSError) else None
            self._why = SHORTAGES[shortage][0] if shortage else words or type(cause).__name__

    def _hold(self, frame: bytes, scrapes: int) -> None:
        if self._frames and self._held + len(frame) > self._held_bytes:
            self._lost += scrapes
            return
        self._frames.append((frame, scrapes))
        self._held += len(frame)

    def _append(self, frame: bytes) -> None:
        """Add a whole frame behind whole frames. Raises OSError."""
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if self._whole is None:
                self._whole = size
            if size > self._whole:
                file.truncate(self._whole)
            left = memoryview(frame)
            while left:
                left = left[file.write(left) :]
        self._whole += len(frame)
