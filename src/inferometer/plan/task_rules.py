"""What tasks for a compound system need of the rest of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inferometer.plan.fault import Fault
from inferometer.plan.schema import Plan
from inferometer.plan.workload import TasksWorkload

_SUCCESS = "task_success_rate"
TRACE_HEADER = "traceparent"
"""The header of W3C Trace Context, by which a system's spans are found again."""


_LISTEN = re.compile(r"listen:(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:/\s]+)):(?P<port>[0-9]{1,5})")


def place_to_listen(spans: str | None) -> tuple[str, int] | None:
    """Host and port of `listen:HOST:PORT`; None where `workload.spans` is not of this form."""
    found = None if spans is None else _LISTEN.fullmatch(spans)
    if found is None or int(found["port"]) > 65_535:
        return None
    return found["v6"] or found["host"], int(found["port"])


def task_faults(plan: Plan) -> Iterator[Fault]:
    """Every rule about tasks that the plan breaks."""
    if not isinstance(plan.workload, TasksWorkload):
        if any(one.metric == _SUCCESS for one in plan.slos):
            yield Fault(
                ("slos", "workload.tasks"),
                f"{_SUCCESS} is about tasks: set {{workload.tasks}}, or bound success_rate, which is about requests",
            )
        return
    if plan.instrument.keep_text != "all":
        yield Fault(
            ("instrument.keep_text", "workload.tasks"),
            "answers to tasks are judged after the load, from the text in the record: leave {instrument.keep_text} out",
        )
    spans = plan.workload.spans
    if spans is not None and spans.startswith("listen:") and place_to_listen(spans) is None:
        yield Fault(
            ("workload.spans",),
            "must be a file, or listen:HOST:PORT with a port up to 65535, such as listen:127.0.0.1:4318",
        )
    if plan.load.model == "users":
        yield Fault(
            ("load.model", "workload.tasks"),
            "tasks are sent each by itself: set {load.rate} or {load.concurrency}",
        )
    if plan.target.session_header is not None:
        yield Fault(
            ("target.session_header", "workload.tasks"),
            f"a task is its own session, which its {TRACE_HEADER} header tells already: leave {{target.session_header}} out",
        )
    given = {name.lower() for name in plan.target.headers}
    if TRACE_HEADER in given:
        yield Fault(
            ("target.headers", "workload.tasks"),
            f"each task has a {TRACE_HEADER} header of its own: leave it out of {{target.headers}}",
        )
