"""Which tests of draft section 5 can be carried out with tasks for a compound system, or with recorded sessions of agents.

| test              | tasks                                   | recorded sessions                                      |
| ----------------- | --------------------------------------- | ------------------------------------------------------ |
| `ttft`            | yes: a request is a task                | yes: a rate counts sessions                            |
| `capacity`        | yes: tasks in flight                    | yes: sessions at once                                  |
| `throughput`      | yes: tokens that the user sees, tasks/s | yes: a rate counts sessions                            |
| `tradeoff`, `itl` | yes                                     | yes: likewise                                          |
| `guardrail`       | yes: what the system's filters cost     | yes: likewise                                          |
| `fairness`        | no: it sends classes of its own         | no                                                     |
| `prefix-cache`    | no: what is cached is inside the system | no: a session repeats itself, with any cache           |
| `memory-pressure` | no: it sends documents of its own       | no                                                     |
| `long-context`    | no: likewise                            | no                                                     |
| `cold-start`      | yes: a task after each start            | no: a session has several requests                     |

A search needs tokens per second, which only a tokenizer counts at the boundary of a compound system (draft 4.1.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inferometer.errors import Problem
from inferometer.plan.procedure_parameters import Tests, searched
from inferometer.plan.schema import NO_TOKENIZER, Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import TasksWorkload

_OF_ITS_OWN: Mapping[str, str] = {
    "fairness": "it sends classes of requests of its own",
    "memory-pressure": "it fills an engine's memory with documents of its own",
    "long-context": "it sends documents of its own, longer and longer ones",
}
_TASKS: Mapping[str, str] = {
    **_OF_ITS_OWN,
    "prefix-cache": "it measures what an engine's cache saves, and a compound system's calls and their caches are inside its "
    "boundary",
}
_SESSIONS: Mapping[str, str] = {
    **_OF_ITS_OWN,
    "prefix-cache": "it compares requests that share a prefix with others, and a session's steps repeat its own words: "
    "`inferometer run --sessions` reports what the cache held of them",
    "cold-start": "it sends one request after each start, and a session has several",
}


def of_workload(names: Sequence[str], plan: Plan, tests: Tests) -> Iterator[Problem]:
    """Why tests cannot be carried out with the plan's tasks or sessions, each in words."""
    if isinstance(plan.workload, TasksWorkload):
        yield from _refused(names, _TASKS, "--tasks", "tasks")
    if isinstance(plan.workload, SessionsWorkload):
        yield from _refused(names, _SESSIONS, "--sessions", "recorded sessions")
    seeking = [name for name in names if "pilot_requests" in searched(name, tests)]
    if plan.compound and plan.tokenizer.name == NO_TOKENIZER and seeking:
        yield Problem(
            "--tokenizer",
            f"{', '.join(seeking)} search by output tokens per second, which the usage of a compound system does not tell: "
            "name a tokenizer",
        )


def _refused(names: Sequence[str], why: Mapping[str, str], flag: str, what: str) -> Iterator[Problem]:
    for name in names:
        if name in why:
            yield Problem(name, f"cannot be carried out with {what} ({flag}): {why[name]}; leave it out")
