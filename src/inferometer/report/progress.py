"""One line of progress from the run's counters: a pure function, so that whoever owns the clock decides how often.

    terminal   ━━━━━━━━━───────────  45 %  450/1000 done  32 in flight  3 failed  1612 tok/s  0:24, 0:29 left
    pipe       measuring 24 s: 482 sent, 32 in flight, 450 of 1000 done, 3 failed, 1612 tok/s, 29 s left

What the terminal has no room for is left out from the right; the bar goes first.
"""

from __future__ import annotations

from dataclasses import dataclass

from inferometer.report.figures import ascii_only, figure

_BAR = 20


@dataclass(frozen=True, slots=True)
class Counters:
    """Where a run stands. `total` requests and `eta_s` seconds are None when nobody can know them."""

    phase: str
    sent: int
    in_flight: int
    done: int
    failed: int
    tok_s: float
    elapsed_s: float
    total: int | None = None
    eta_s: float | None = None


def clock(seconds: float) -> str:
    """`0:07`, `12:05`, `1:02:03`; never negative."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def progress(counters: Counters, width: int = 80, ascii_: bool = False) -> str:
    """The live line, at most `width` columns."""
    ended = counters.done + counters.failed
    parts = [
        f"{figure(counters.done)}/{figure(counters.total)} done"
        if counters.total
        else f"{figure(counters.done)} done",
        f"{figure(counters.in_flight)} in flight",
        f"{figure(counters.failed)} failed",
        f"{figure(round(counters.tok_s))} tok/s",
        clock(counters.elapsed_s) + (f", {clock(counters.eta_s)} left" if counters.eta_s is not None else ""),
    ]
    head = counters.phase
    if counters.total:
        share = min(ended / counters.total, 1.0)
        filled = round(share * _BAR)
        percent = f"{int(share * 100):3d} %"
        full = "  ".join([f"{head}  {'━' * filled}{'─' * (_BAR - filled)} {percent}", *parts])
        head = (
            f"{head} {percent}"
            if len(full) > width
            else f"{head}  {'━' * filled}{'─' * (_BAR - filled)} {percent}"
        )
    line = "  ".join([head, *parts])
    while len(line) > width and parts:
        parts.pop()
        line = "  ".join([head, *parts])
    line = line[: max(width, 0)]
    return ascii_only(line) if ascii_ else line


def progress_plain(counters: Counters) -> str:
    """The line for a pipe or a log file: ASCII, complete, no control characters."""
    done = f"{counters.done} of {counters.total} done" if counters.total else f"{counters.done} done"
    left = f", {round(max(counters.eta_s, 0))} s left" if counters.eta_s is not None else ""
    return (
        f"{counters.phase} {round(counters.elapsed_s)} s: {counters.sent} sent, {counters.in_flight} in flight, {done}, "
        f"{counters.failed} failed, {round(counters.tok_s)} tok/s{left}"
    )
