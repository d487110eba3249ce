"""Systems that a backlog makes slower: what the search for the maximum says of them."""

from __future__ import annotations

import pytest
from procedures.modelled import System, carried, results, summary
from procedures.summaries import changed, steady

from inferometer.documents.summary import Summary
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import Setup

TOKENS, MOST = 50.0, 10.0
SETUP = Setup(Plan(), Tests())


def slowing(left: float) -> System:
    """Does MOST requests a second with 8 in flight or more; in open loop beyond that its backlog leaves it a share of it."""

    def answer(plan: Plan) -> Summary:
        slots, offered = plan.load.concurrency, plan.load.rate or 0.0
        done = MOST * min(1.0, slots / 8) if slots is not None else min(offered, MOST)
        output = TOKENS * done
        over = slots is None and offered > MOST
        thirds = (output, output * (1 + left) / 2, output * left) if over else None
        ratio = 1.0 if slots is not None else done / offered
        told = steady(
            output, completions=10_000, ratio=ratio, ratio_ci=(ratio, ratio), growing=False, thirds=thirds
        )
        return changed(summary(plan, request_s=done, tokens=TOKENS), steady=told)

    return answer


@pytest.mark.parametrize(
    ("left", "codes"), [(1.0, []), (0.95, []), (0.5, ["throughput_collapses_with_backlog"])]
)
def test_a_backlog_that_makes_a_system_slower_leaves_no_certain_maximum(
    left: float, codes: list[str]
) -> None:
    """The level above the capacity shows it, whose queue grows beyond what any climb tries; no further run is made for it."""
    done = carried("throughput", SETUP, slowing(left))
    found = results("throughput", SETUP, done)
    assert [note.code for note in found.undecided] == codes
    assert len(done) == len(carried("throughput", SETUP, slowing(1.0)))
