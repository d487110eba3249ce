"""Joins a run's record with the server's own, request by request and token by token.

The key is the nonce at the head of every prompt: the schedule knows it, and the server keeps how each prompt began.

    true TTFT    after[0] - read                 ours    t_event[first] - t_submit
    true gap     after[i] - after[i - 1]         ours    t_event[i] - t_event[i - 1]
    error        ours - true; "of the P99" is the difference of the two P99, over the same requests
    bracketed    a stamp that lies between `before` and `after` of its token's send(): over loopback the client's kernel
                 receives inside that call, so such a stamp is right to the length of one system call
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.native import TruthRow
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, EventClass, Phase
from inferometer.journal.seal import read_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Joined:
    """Both views of the measured requests that succeeded. Everything in ms but `bracketed`, a share.

    ttft, gaps: ours and true, entry by entry the same request or gap. `read_delay`: from the kernel's receipt of a request to
    the server's reading it. `sent_late`: from the intended instant to the kernel's receipt at the server.
    """

    ttft: Floats
    ttft_true: Floats
    gaps: Floats
    gaps_true: Floats
    bracketed: float
    read_delay: Floats
    sent_late: Floats
    missing: int

    def error(self, what: str, percentile: float | None = None) -> float:
        """Error of the mean, or of a percentile, of `ttft` or `gaps`, ms."""
        ours, true = getattr(self, what), getattr(self, what + "_true")
        if percentile is None:
            return float(ours.mean() - true.mean())
        return float(np.percentile(ours, percentile) - np.percentile(true, percentile))


def nonces(schedule: Schedule) -> list[str]:
    """The nonce of every scheduled request."""
    places = schedule.table.select(["nonce_at", "nonce_len"]).to_pydict()
    spans = zip(places["nonce_at"], places["nonce_len"], strict=True)
    return [schedule.body(row)[at : at + length].decode() for row, (at, length) in enumerate(spans)]


def joined(folder: RunFolder, truth: Iterable[TruthRow]) -> Joined:
    """Join. A request that the server does not know, or answered with another number of tokens, counts as missing."""
    names = nonces(Schedule(folder.schedule))
    length = len(names[0])
    known = {row.id[:length]: row for row in truth}
    columns = ("index", "cycle", "phase", "outcome", "t_intended", "t_submit", "event_ns", "event_class")
    table = read_table(folder.record, RECORD).select(columns).to_pydict()
    ttft: list[tuple[int, int]] = []
    gaps: list[tuple[Ints, Ints]] = []
    delays: list[tuple[int, int]] = []
    inside = total = missing = 0
    for values in zip(*table.values(), strict=True):
        index, cycle, phase, outcome, intended, submitted, times, classes = values
        if phase != Phase.MEASURE or outcome != "ok":
            continue
        if cycle:
            raise ValueError("a schedule that was gone through again cannot be joined: give --requests")
        row = known.get(names[index])
        events = np.array(times, np.int64)[np.frombuffer(classes, np.uint8) == EventClass.CONTENT]
        if row is None or len(row.after_ns) != len(events):
            missing += 1
            continue
        before, after = np.array(row.before_ns, np.int64), np.array(row.after_ns, np.int64)
        ttft.append((int(events[0]) - submitted, int(after[0]) - row.read_ns))
        gaps.append((np.diff(events), np.diff(after)))
        delays.append((row.read_ns - row.arrived_ns, row.arrived_ns - intended))
        inside += int(((events >= before) & (events <= after)).sum())
        total += len(events)
    ours, true = np.array(ttft, np.float64).reshape(-1, 2).T / NS_PER_MS
    delay, late = np.array(delays, np.float64).reshape(-1, 2).T / NS_PER_MS
    return Joined(
        ours,
        true,
        _in_ms([pair[0] for pair in gaps]),
        _in_ms([pair[1] for pair in gaps]),
        inside / total if total else float("nan"),
        delay,
        late,
        missing,
    )


def _in_ms(pieces: Sequence[Ints]) -> Floats:
    return np.concatenate(pieces) / NS_PER_MS if pieces else np.zeros(0)
