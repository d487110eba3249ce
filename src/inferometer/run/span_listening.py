"""A system's spans, taken while the load runs (`--spans listen:HOST:PORT`): the receiver's process as a run sees it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inferometer.errors import InstrumentError, PlanError, Problem
from inferometer.isolation import Child
from inferometer.journal.folder import RunFolder
from inferometer.plan.schema import Plan
from inferometer.plan.task_rules import place_to_listen
from inferometer.plan.workload import TasksWorkload

QUIET_S = 6.0
"""OpenTelemetry's processors send what they have every 5 s."""
LONGEST_S = 60.0
_LOOK_S = 0.25
_LEAVE_S = 2.0

Collected = Callable[[], Path | None]
"""Once the load is over: where the spans are; None: the run does not listen for any."""


@contextlib.contextmanager
def listening(plan: Plan, folder: RunFolder, note: Callable[[str], None]) -> Iterator[Collected]:
    """Listen for as long as the block lasts. Raises PlanError where that is not possible."""
    workload = plan.workload
    place = place_to_listen(workload.spans) if isinstance(workload, TasksWorkload) else None
    if place is None:
        yield lambda: None
        return
    host, port = place
    folder.system_spans.touch()
    with open(folder.log, "ab") as log:
        child = Child(
            "inferometer.telemetry.span_receiver", host, str(port), str(folder.system_spans),
            called="the receiver of spans", stderr=log,
        )  # fmt: skip
    try:
        state, _, words = child.stdout.readline().decode().strip().partition(" ")
        if state == "failed":
            raise PlanError([Problem("--spans", f"cannot listen at {host}, port {port}: {words}")])
        if state != "listening":
            raise child.killed() or InstrumentError("the receiver of spans did not start; log.txt says more")
        shown = f"[{host}]" if ":" in host else host
        note(f"taking the system's spans at http://{shown}:{words}/v1/traces")
        yield lambda: _collected(folder.system_spans, note)
    finally:
        child.end(_LEAVE_S)
        child.close()


def _collected(path: Path, note: Callable[[str], None]) -> Path:
    """Wait until no spans have come for QUIET_S; Ctrl-C ends that."""
    note(f"waiting for the system's last spans ({QUIET_S:g} s without any)")
    began = since = time.monotonic()
    size = path.stat().st_size
    with contextlib.suppress(KeyboardInterrupt):
        while (now := time.monotonic()) - since < QUIET_S and now - began < LONGEST_S:
            time.sleep(_LOOK_S)
            if (grown := path.stat().st_size) != size:
                size, since = grown, time.monotonic()
    return path
