"""Joins a run's record with the server's own, request by request and token by token.

The key is the nonce at the head of every prompt: the schedule knows it, and the server keeps how each prompt began.

    true TTFT    after[0] - arrived              ours    t_event[first] - t_submit
    true gap     after[i] - after[i - 1]         ours    t_event[i] - t_event[i - 1]
    arrived      the server's kernel had the request; how long the server then took to read it is shown as `read_delay`
    error        ours - true; "of the P99" is the difference of the two P99, over the same requests
    bracketed    a stamp that lies between `before` and `after` of its token's send(): over loopback the client's kernel
                 receives inside that call, so such a stamp is right to the length of one system call
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.native import TruthRow
from inferometer.calibration import join
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

Floats = NDArray[np.float64]
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


def joined(folder: RunFolder, truth: Iterable[TruthRow]) -> Joined:
    """Join. A request that the server does not know, or answered with another number of tokens, counts as missing."""
    schedule = Schedule(folder.schedule)
    mine = join.client_requests(read_table(folder.record, RECORD), join.nonces(schedule.table, schedule.body))
    rows = {row.id: row for row in truth}
    known = [_server_request(row) for row in rows.values()]
    seen = join.joined(mine, known)
    delays: list[tuple[int, int]] = []
    inside = total = 0
    for one, found in join.matched(mine, known):
        row = rows[found.key] if found is not None else None
        if row is None or len(row.after_ns) != len(one.tokens):
            continue
        before, after = np.array(row.before_ns, np.int64), np.array(row.after_ns, np.int64)
        delays.append((row.read_ns - row.arrived_ns, row.arrived_ns - one.intended))
        inside += int(((one.tokens >= before) & (one.tokens <= after)).sum())
        total += len(one.tokens)
    delay, late = np.array(delays, np.float64).reshape(-1, 2).T / NS_PER_MS
    return Joined(
        seen.ttft,
        seen.ttft_true,
        seen.gaps,
        seen.gaps_true,
        inside / total if total else float("nan"),
        delay,
        late,
        len(mine) - len(delays),
    )


def _server_request(row: TruthRow) -> join.ServerRequest:
    """The C server's row."""
    after = np.array(row.after_ns, np.int64)
    ended = int(after[-1]) if len(after) else row.read_ns
    return join.ServerRequest(row.id, row.arrived_ns, row.read_ns, ended, after, np.zeros(0, np.int64))
