"""Why requests left late. Lateness is t_submit - t_intended, and three parts add up to it, nanosecond for nanosecond:

| part          | from       | to       | the request waited for                                        | through     |
| ------------- | ---------- | -------- | ------------------------------------------------------------- | ----------- |
| scheduling    | t_intended | t_taken  | the worker, which took it up late                             | us          |
| socket        | t_taken    | t_send   | a connection: the TCP and TLS handshakes; its bytes' making   | see below   |
| back_pressure | t_send     | t_submit | the socket, which took its first byte and not yet its last    | the server  |

A connection opened for the request is the plan's or the server's time (`connecting`), a part of `socket`. What else a request
waits before its first byte is ours. So what counts against the instrument is lateness - connecting - back_pressure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats, Ints, Record, between_ms
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import Stats
from inferometer.units import NS_PER_MS

PARTS = ("scheduling", "socket", "back_pressure")


@dataclass(frozen=True, slots=True)
class Causes:
    """One distribution (ms) a part, over the requests that `lateness_ms` is of."""

    scheduling: Stats
    socket: Stats
    back_pressure: Stats


def sent_rows(record: Record) -> Ints:
    """Rows of the measured requests that were sent, in order of t_submit."""
    rows = np.flatnonzero(record.measured & record.t_submit.valid)
    ordered: Ints = rows[np.lexsort((record.index[rows], record.t_submit.values[rows]))]
    return ordered


def lateness_ms(record: Record) -> Floats:
    """t_submit - t_intended in ms, one entry a measured request that was sent, in order of t_submit."""
    rows = sent_rows(record)
    return between_ms(record.t_intended[rows], record.t_submit[rows])


def parts_ns(record: Record) -> dict[str, Ints]:
    """The PARTS of `lateness_ms` in ns, in its order."""
    rows = sent_rows(record)
    marks = (
        record.t_intended[rows],
        record.t_taken[rows],
        record.t_send.values[rows],
        record.t_submit.values[rows],
    )
    return {
        name: later - marks[place] for place, (name, later) in enumerate(zip(PARTS, marks[1:], strict=True))
    }


def causes(record: Record) -> tuple[Causes | None, dict[str, float] | None]:
    """The parts' distributions, and each part's share of all lateness; None where nothing was sent, or nothing was late."""
    parts = parts_ns(record)
    found = [stats for name in PARTS if (stats := describe(parts[name] / NS_PER_MS)) is not None]
    if len(found) < len(PARTS):
        return None, None
    total = sum(int(part.sum()) for part in parts.values())
    shares = {name: int(part.sum()) / total for name, part in parts.items()} if total > 0 else None
    return Causes(*found), shares


def connecting_ms(record: Record) -> Floats:
    """Time spent on connect and TLS by the requests of `lateness_ms`, in its order; 0 where none was opened for the request."""
    rows = sent_rows(record)
    plain = between_ms(record.t_connect[rows], record.t_connected[rows])
    secured = between_ms(record.t_connect[rows], record.t_tls[rows])
    return np.where(record.opened[rows], np.nan_to_num(np.fmax(plain, secured), nan=0.0), 0.0)


def excused_ms(record: Record) -> Floats:
    """What of `lateness_ms`, in its order, is the plan's or the server's time: connecting and back-pressure."""
    excused: Floats = connecting_ms(record) + parts_ns(record)["back_pressure"] / NS_PER_MS
    return excused
