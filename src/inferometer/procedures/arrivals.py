"""What a load's rate counts, and how many requests each of it brings.

| workload                | an arrival is  | requests of an arrival                                              |
| ----------------------- | -------------- | ------------------------------------------------------------------- |
| requests                | a request      | 1                                                                   |
| conversations (--turns) | a conversation | the mean of the distribution that turns are drawn from; of rows of   |
|                         |                | a file as measured                                                  |
| recorded sessions       | a session      | measured: steps planned in the sessions that were begun, by these    |

What a system does is measured in requests and tokens a second, and what is offered are arrivals a second. Searches are made
in arrivals; `Arrivals` is the only place where one becomes the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import FileWorkload, PromptsWorkload
from inferometer.procedures.step import Performed, runs

Z_95 = 1.96
Unit = Literal["requests", "conversations", "sessions"]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`each`: requests of an arrival on average; `half`: half its 95 % interval, as a share."""

    unit: Unit = "requests"
    each: float = 1.0
    half: float = 0.0

    @property
    def single(self) -> bool:
        """Whether an arrival is one request."""
        return self.unit == "requests"

    @property
    def per_second(self) -> str:
        """The unit of a rate, in sentences."""
        return f"{self.unit}/s"

    @property
    def column(self) -> str:
        """The unit of a rate, in tables."""
        return "req/s" if self.single else self.per_second

    def rate(self, request_s: float) -> float:
        """Arrivals a second that bring so many requests a second."""
        return request_s / self.each

    def rates(self, request_ci: Interval | None) -> Interval | None:
        """An interval of requests a second in arrivals a second, with the chance of `each`."""
        if request_ci is None or self.single:
            return request_ci
        low, high = request_ci
        middle = (low + high) / 2
        half = math.hypot((high - low) / 2, middle * self.half)
        return self.rate(max(middle - half, 0.0)), self.rate(middle + half)

    def requests(self, rate: float) -> float:
        """Requests a second of so many arrivals a second."""
        return rate * self.each

    def seconds(self, requests: float, rate: float) -> float:
        """How long so many requests take to arrive."""
        return requests / self.requests(rate)


REQUESTS = Arrivals()


def unit_of(plan: Plan, seen: Sequence[Summary] = ()) -> Unit:
    """What the plan's rate counts. `seen`: runs of it; only they tell what a workload file holds."""
    if isinstance(plan.workload, SessionsWorkload):
        return "sessions"
    made = isinstance(plan.workload, FileWorkload) and any(one.conversations is not None for one in seen)
    return "conversations" if made or plan.workload.turns is not None else "requests"


def arrivals_of(plan: Plan, seen: Sequence[Summary]) -> Arrivals:
    """The plan's arrivals, by runs of its workload. Where none says what arrivals bring, it is taken to be one request each."""
    unit = unit_of(plan, seen)
    if unit == "requests":
        return REQUESTS
    turns = plan.workload.turns
    if turns is not None and not isinstance(plan.workload, PromptsWorkload) and math.isfinite(turns.mean()):
        return Arrivals(unit, max(turns.mean(), 1.0))
    known = [(one, talks) for one in seen if (talks := one.conversations) is not None and talks.begun]
    begun = sum(talks.begun for _, talks in known)
    if not begun:
        return Arrivals(unit)
    mean = sum(one.requests.sent + talks.left_out for one, talks in known) / begun
    square = (
        sum(((talks.turns_std or 0.0) ** 2 + one.requests_each**2) * talks.begun for one, talks in known)
        / begun
    )
    variation = math.sqrt(max(square / mean**2 - 1, 0.0)) if mean else 0.0
    return Arrivals(unit, max(mean, 1.0), Z_95 * variation / math.sqrt(begun))


def arrivals_in(plan: Plan, done: Sequence[Performed]) -> Arrivals:
    """The same by those of what was done that are of the plan's workload."""
    of_it = [one for one in runs(done) if one.step.plan.workload.kind == plan.workload.kind]
    return arrivals_of(plan, [one.outcome.summary for one in of_it])
