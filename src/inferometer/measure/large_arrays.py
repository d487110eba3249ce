"""Large arrays: kept in files that have no name, mapped into memory, and gone through piece by piece.

Percentiles are those of all samples, so a report needs every one of them: hundreds of bytes a request. An array of LARGE bytes
or more therefore lies in a file. Where other memory is wanted, the kernel writes its pages to the disk and reads them again
when they are used, which it cannot do with memory that no file stands for. What is worked out in between has no file, and is
worked out for AT_ONCE entries at a time.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Held = TypeVar("Held", bound=Array)

LARGE = 4 << 20
"""Bytes of an array from which on it lies in a file."""

HUGE = 128 << 20
"""Bytes from which on an array is put in order where it lies."""

AT_ONCE = 1 << 20
"""Entries that are worked on together."""

KEPT = 256 << 20
"""Bytes of freed memory that the C library may keep, and half of it for one array."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Numbers of these parameters in glibc's malloc.h."""

_FOLDER: ContextVar[Path | None] = ContextVar("folder", default=None)


def keep_freed() -> None:
    """From now on this process keeps up to KEPT bytes of freed memory. Else glibc returns each large array to the kernel, which
    clears the memory again for the next: half of the system time of a long report. Other C libraries have no such setting."""
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None:
        set_parameter(_M_TRIM_THRESHOLD, KEPT)
        set_parameter(_M_MMAP_THRESHOLD, KEPT // 2)


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Large arrays made meanwhile lie on this folder's disk; otherwise where temporary files do, which may be memory."""
    keep_freed()
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


class Appended:
    """An array that grows at its end, and moves into a file when it has become large. One value throughout, as a load without
    conversations has in many columns, becomes a view of that value, which takes no memory. Raises OSError where the disk has
    no room."""

    def __init__(self, kind: DTypeLike) -> None:
        self._kind = np.dtype(kind)
        self._one: Array | None = None
        self._same = 0
        self._parts: list[Array] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def add(self, part: Array) -> None:
        """The next entries."""
        if not len(part):
            return
        one = part[:1].copy() if self._one is None else self._one
        if (self._one is None or self._same) and (part == one).all():
            self._one, self._same = one, self._same + len(part)
            return
        if self._same:
            self._keep(np.broadcast_to(one, self._same))
        self._one, self._same = one, 0
        self._keep(part)

    def _keep(self, part: Array) -> None:
        self._parts.append(part)
        self._size += len(part) * self._kind.itemsize
        if self._size >= LARGE:
            self._write()

    def _write(self) -> IO[bytes]:
        """What is not in the file yet. Pages that are written cost a fraction of those that are touched first."""
        if self._file is None:
            folder = _FOLDER.get()
            usable = folder is not None and os.access(folder, os.W_OK)
            self._file = tempfile.TemporaryFile(dir=folder if usable else None)  # noqa: SIM115
        for part in self._parts:
            self._file.write(np.ascontiguousarray(part, self._kind).data)
        self._parts, self._size = [], 0
        return self._file

    def whole(self) -> Array:
        """All of them, after which nothing can be added."""
        if self._file is not None:
            with self._write() as file:
                file.flush()
                return np.frombuffer(mmap.mmap(file.fileno(), 0), self._kind)
        if self._same and self._one is not None:
            return np.broadcast_to(self._one.astype(self._kind)[0], self._same)
        if len(self._parts) == 1:
            return self._parts[0].astype(self._kind, copy=False)
        return np.concatenate([np.zeros(0, self._kind), *self._parts]).astype(self._kind, copy=False)


def in_one(kind: DTypeLike, parts: Iterable[Array]) -> Array:
    """These entries, one part behind the other."""
    appended = Appended(kind)
    for part in parts:
        appended.add(part)
    found = appended.whole()
    return found if found.nbytes >= LARGE else np.require(found, requirements=["C", "W"])


def held(values: Held) -> Held:
    """The array, in a file if it is large. A view of one value takes no memory, and stays one."""
    if values.nbytes < LARGE or not values.strides[0] or _in_file(values):
        return values
    return in_one(values.dtype, [values])  # type: ignore[return-value]


def _in_file(values: Array) -> bool:
    base = values.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


class held_property(cached_property[Held]):  # noqa: N801
    """As cached_property, of an array that is kept in a file if it is large."""

    def __init__(self, made: Callable[[Any], Held]) -> None:
        @functools.wraps(made)
        def kept(owner: Any) -> Held:
            return held(made(owner))

        super().__init__(kept)


def slices(count: int, at_once: int | None = None) -> Iterator[slice]:
    """All of so many entries, `at_once` at a time; by default AT_ONCE."""
    step = AT_ONCE if at_once is None else at_once
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def pieces(offsets: Ints) -> Iterator[tuple[slice, slice]]:
    """All rows, neighbours that are or own about AT_ONCE entries at a time, and these entries: row i owns `offsets[i]` to
    `offsets[i + 1]`."""
    rows = len(offsets) - 1
    by_entries = np.searchsorted(offsets, np.arange(AT_ONCE, int(offsets[-1]), AT_ONCE))
    edges = np.unique(np.concatenate(([0], by_entries, np.arange(AT_ONCE, rows, AT_ONCE), [rows])))
    for start, end in pairwise(edges.astype(np.int64).tolist()):
        yield slice(start, end), slice(int(offsets[start]), int(offsets[end]))


def chosen(values: Held, these: Mask) -> Held:
    """`values[these]`; a view of one value stays one."""
    if len(values) and not values.strides[0]:
        return np.broadcast_to(values[0], int(np.count_nonzero(these)))  # type: ignore[return-value]
    return in_one(values.dtype, (values[part][these[part]] for part in slices(len(values))))  # type: ignore[return-value]


def joined(first: Held, second: Held) -> Held:
    """One behind the other; no copy where nothing is behind."""
    return in_one(first.dtype, (first, second)) if len(second) else first  # type: ignore[return-value]


def ordered(values: Floats) -> Floats:
    """The values in ascending order, without those that are NaN."""
    if values.nbytes < HUGE:
        return np.sort(values[~np.isnan(values)])
    parts = (values[part] for part in slices(len(values)))
    known: Floats = in_one(np.float64, (part[~np.isnan(part)] for part in parts))
    if known.flags.writeable:  # else it is one value
        known.sort()
    return known


def order_by(first: Ints, *ties: Ints) -> Ints:
    """The places of entries in ascending order of `first`; of equal ones by `ties`, one after the other, and then as they
    stand."""
    order: Ints = np.argsort(first, kind="stable")  # the fastest of what is nearly in order
    ascending = first[order]
    same = ascending[1:] == ascending[:-1]
    if ties and same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        places = order[tied]
        order[tied] = places[np.lexsort((*(key[places] for key in reversed(ties)), first[places]))]
    return order


def times_in_order(times: Ints) -> Ints:
    """Instants in ascending order, of those that nearly are already."""
    return np.sort(times, kind="stable")


def variance_of(values: Floats) -> float:
    """The variance over n."""
    mean, total = float(values.mean()), 0.0
    for part in slices(len(values)):
        deviations = values[part] - mean
        total += float(deviations @ deviations)
    return total / len(values)
