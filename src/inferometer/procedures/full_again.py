"""The full system once more at the end of a test that measured it: so that same_load.py sees whether it is still the same.

A test of open loops takes the capacity of its beginning (plateau.py) for that of its end: its levels are percentages of it, or
are held against it. One more closed loop, as long as the climb's own, shows that. A test that switches the system repeats its
first configuration instead (repeated.py); a quick campaign makes no run for this, and where an earlier test knew the capacity
there is none to repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.procedures.plateau import plateau, rungs
from inferometer.procedures.saturation import BASE, climb_of
from inferometer.procedures.setup import Setup, reseeded, without_warm_up
from inferometer.procedures.step import Performed, Run, Steps, kept, runs

PART = "full-again"
SEED = 9_000
"""Its requests are none that were sent before."""


def checked_at_end(steps: Callable[[Setup], Steps]) -> Callable[[Setup], Steps]:
    """A test's steps, and the full system behind them."""

    def all_of_them(setup: Setup) -> Steps:
        done: list[Performed] = []
        yield from kept(steps(setup), done)
        again = None if setup.quick else _again(setup, done)
        if again is not None:
            yield again

    return all_of_them


def _again(setup: Setup, done: Sequence[Performed]) -> Run | None:
    """The climb's last run once more, with other requests; None: no levels follow a climb, or the system was switched."""
    if any(one.step.at.cache or one.step.at.configuration for one in runs(done)):
        return None
    for prefix in ("", BASE):
        climbed = runs(done, f"{prefix}pilot")
        tried = [one for one in runs(done, f"{prefix}level") if one.step.plan.load.model == "open"]
        if not climbed or not tried:
            continue
        climb = climb_of(setup, climbed[0].step.plan, prefix)
        top = plateau(climb, rungs(climb, done))
        if top is not None and done[-1] is not tried[-1]:
            plan = reseeded(without_warm_up(top.done.step.plan), SEED)
            at = Conditions(concurrency=top.concurrency)
            return Run(plan, PART, at, Note("full_again", {"concurrency": top.concurrency}))
    return None
