"""Whether the client's machine spoilt a run, so that the same run made again may be sound.

Another process that takes a core, a host that stops the virtual machine, a step of the clock: these come and go, and have to do
with the machine that the client runs on and not with what the server answered. A run that is INVALID by such checks alone says
nothing of the system; made again, it chooses nothing by its result. A run that fails in any other way is kept as it is.
"""

from __future__ import annotations

from inferometer.documents.summary import Summary

OF_THE_MACHINE = frozenset({"lateness", "receive_lag", "error_bound", "worker_cpu", "own_cpu", "clock_step"})
"""Checks that a busy or interrupted machine fails for a while."""


def spoilt_by(summary: Summary) -> tuple[str, ...]:
    """The codes of the checks that a run failed, where all are of the machine; none: not spoilt, or not by that alone."""
    failed = [check.code for check in summary.verdict.checks if check.status == "fail"]
    if summary.verdict.status != "INVALID" or not set(failed) <= OF_THE_MACHINE:
        return ()
    return tuple(failed)
