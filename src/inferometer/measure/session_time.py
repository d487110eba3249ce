"""Where the time of a session went: its wall time along the critical path, split into four parts that sum to it.

Several steps may be under way at once, so their times do not sum to the session's. What decides it is one chain: the step that
ended last, before it the one that it waited for and that ended last, and so on to the session's start. Going back along it, an
instant `until` moves from the session's end to its start, and each piece of time that it passes is of one part:

    until = t_end          model      to t_submit            the request was at the server, or on its way
    until = t_submit       waiting    to t_intended          due, and not sent yet
    until = t_intended     tools      min(gap, tool_ns)      gap: to t_end of the step that was waited for, or the start
                           thinking   min(what is left, think_ns - tool_ns)
                           waiting    what is left then

`until` never goes up, and never beyond the start, so the parts sum to the wall time exactly, whatever a record says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Ints, Mask
from inferometer.measure.session_steps import NONE, SessionRuns

PARTS = ("model", "tools", "thinking", "waiting")


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """Of some runs of sessions: wall time in ns, of which each part (a column for each of PARTS), and steps on the path."""

    wall_ns: Ints
    parts_ns: Ints
    depth: Ints


def session_times(runs: SessionRuns, these: Mask) -> SessionTimes:
    """Of `these` runs, of each of which something was sent."""
    which = np.flatnonzero(these)
    start = runs.start_ns[which]
    step = _last_ended(runs)[which]
    until = np.maximum(runs.end_ns[step], start)
    wall = until - start
    parts, depth = np.zeros((len(which), len(PARTS)), np.int64), np.zeros(len(which), np.int64)
    record, graph = runs.record, runs.graph
    left = np.arange(len(which))
    while len(left):
        row, place = runs.row[step], runs.place[step]
        begun, now = start[left], until[left]
        submitted = np.where(record.t_submit.valid[row], record.t_submit.values[row], record.t_intended[row])
        before = runs.last_before[step]
        prior = np.where(before >= 0, runs.end_ns[before], begun)
        pieces = []
        for instant in (submitted, record.t_intended[row], prior):
            reached = np.clip(instant, begun, now)
            pieces.append(now - reached)
            now = reached
        at_model, late, gap = pieces
        tools = np.clip(graph.tool_ns[place], 0, gap)
        thinking = np.minimum(gap - tools, np.maximum(graph.think_ns[place] - graph.tool_ns[place], 0))
        parts[left] += np.column_stack((at_model, tools, thinking, late + gap - tools - thinking))
        until[left] = now
        depth[left] += 1
        on = before != NONE
        left, step = left[on], before[on]
    return SessionTimes(wall, parts, depth)


def _last_ended(runs: SessionRuns) -> Ints:
    """The entry of each run that ended last."""
    ends = np.where(runs.sent, runs.end_ns, np.iinfo(np.int64).min)
    order = np.lexsort((np.arange(len(runs.row)), ends, runs.run))
    found: Ints = order[runs.offsets[1:] - 1]
    return found
